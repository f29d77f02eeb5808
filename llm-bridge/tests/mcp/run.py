#!/usr/bin/env python3
"""The MCP server against the protocol's conformance suite, the Inspector, the Python client and agent frameworks; the MCP client
against servers that others have made.

    python3 llm-bridge/tests/mcp/run.py [NAME ...]     only parts whose name contains one of these

The parts are `conformance`, `inspector`, `servers`, `client`, `ai-sdk`, `frameworks` and `load`. The example `mcp_conformance` has to be built beside
the program. `frameworks` and `load` are parts of .ci/long; `load` needs the program and the example `mcp_bare` built with `--release`, or it is the
compiler that is measured.
See ../clients/environment.py for the variables. The last line is `N passed, M failed`.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "clients"))
sys.dont_write_bytecode = True
os.environ.setdefault("TOOLRACK_CLIENT", "MCP")

import checks
import environment
import framework
from checks import check, expect

PACKAGES = [HERE / "package.json", HERE / "package-lock.json"]
RELEASE = environment.TARGET / "release"
REVISIONS = ("2026-07-28", "2025-11-25")
ALSO = {"json-schema-2020-12"}
ERAS = ("modern", "legacy")
# Calls of one measurement, how many are under way at once, and how often both servers are measured by turns.
LOAD_CALLS, LOAD_AT_ONCE, LOAD_ROUNDS = 600, 10, 5
LEAST_RATIO = 0.8

CONFIGURATION = """
[search]
engine = "searxng"
url = "{search}"

[[tools]]
name = "house.burn"
description = "Burns a document of the house for good."
type = "function"
handler = "fixed"
permission = "guest"
effect = "destructive"
parameters = {{ type = "object", properties = {{ name = {{ type = "string", description = "The document." }} }}, required = ["name"] }}
implementation = {{ type = "mock", mock_response = "burnt" }}

[[tools]]
name = "house.keys"
description = "Tells where the keys of the house are."
type = "function"
handler = "fixed"
permission = "user"
parameters = {{ type = "object" }}
implementation = {{ type = "mock", mock_response = "under the mat" }}
"""


def wanted(part):
    return not sys.argv[1:] or any(word in part for word in sys.argv[1:])


def node_packages():
    """The interpreter, and where the packages lie."""
    folder = environment.node("node-mcp", PACKAGES)
    node = folder / "node_modules/node/bin/node"
    if not node.exists():
        # What fetches the program is an install script, and those may be switched off.
        script = folder / "node_modules/node/installArchSpecificPackage.js"
        subprocess.run(["node", script], cwd=script.parent, check=True, stdout=subprocess.DEVNULL)
    return node, folder / "node_modules/@modelcontextprotocol"


def example(name, beside=environment.TOOLRACK.parent):
    return environment.running([beside / "examples" / name, "127.0.0.1:0"], r"READY (\S+)")


@contextmanager
def search_engine():
    """A search engine that never answers; its address, and a file into which it writes what it sees."""
    with tempfile.NamedTemporaryFile("r", prefix="toolrack-search-") as seen:

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                with open(seen.name, "a", encoding="utf-8") as file:
                    print("asked", file=file, flush=True)
                    # Nothing more comes from the client, so what ends this is that it goes away.
                    self.rfile.read(1)
                    print("left", file=file, flush=True)

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", seen.name
        finally:
            server.shutdown()


@contextmanager
def toolrack(search="http://127.0.0.1:9", program=environment.TOOLRACK):
    """The server, and the folder with its configuration."""
    with tempfile.TemporaryDirectory(prefix="toolrack-mcp-") as folder:
        (Path(folder) / "toolrack.toml").write_text(CONFIGURATION.format(search=search))
        command = [program, "serve", "--upstream", "demo", "--listen", "127.0.0.1:0",
                   "--data-dir", folder, "--config", Path(folder) / "toolrack.toml"]
        with environment.running(command, r"(http://127\.0\.0\.1:\d+)/ ") as address:
            yield address, folder


SERVERS = """
[user]
level = "admin"

[mcp_servers.everything]
command = "{node}"
args = ["{packages}/server-everything/dist/index.js"]

[mcp_servers.clock]
command = "{clock}"
pin = true
"""


class Serving:
    """A Toolrack with MCP servers that others have made."""

    def __init__(self, address, process):
        self.address, self.process = address, process

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refused:
            return json.load(refused)

    def call(self, tool, **arguments):
        return self.ask("/execute", {"tool_name": tool, "arguments": arguments})

    def states(self):
        return {state["name"]: state for state in self.ask("/api/mcp-servers")["mcp_servers"]}

    def until(self, holds, what):
        began = time.monotonic()
        while not holds(self.states()):
            expect(time.monotonic() - began < 60, f"{what}: {self.states()}")
            time.sleep(0.1)

    def children(self):
        reported = subprocess.run(["pgrep", "-P", str(self.process.pid)], stdout=subprocess.PIPE, text=True, check=False)
        return [int(child) for child in reported.stdout.split()]


def servers(node, packages):
    """Servers that others have made are listed, called, killed and found again."""
    clock = environment.python("python-mcp", HERE / "requirements.txt").parent / "mcp-server-time"
    with tempfile.TemporaryDirectory(prefix="toolrack-mcp-") as folder:
        configuration = Path(folder) / "toolrack.toml"
        configuration.write_text(SERVERS.format(node=node, packages=packages, clock=clock))
        command = [environment.TOOLRACK, "serve", "--upstream", "demo", "--listen", "127.0.0.1:0", "--data-dir", folder,
                   "--config", configuration]
        with environment.running_process(command, r"(http://127\.0\.0\.1:\d+)/ ") as (address, process):
            serving = Serving(address, process)

            def lists():
                serving.until(lambda all: all and {state["state"] for state in all.values()} == {"connected"}, "connected")
                states = serving.states()
                expect(states["everything"]["tools"] >= 10 and states["clock"]["tools"] == 2, f"{states}")
                expect(not any(state["faults"] or state["changes"] for state in states.values()), f"{states}")

            def calls():
                said = serving.call("everything.get-sum", a=2, b=3)
                expect(said["success"] and "5" in said["result"], f"{said}")
                said = serving.call("everything.get-structured-content", location="Chicago")
                expect("temperature" in said["result"], f"{said}")
                said = serving.call("everything.get-tiny-image")
                expect(any(part["type"] == "image" for part in said["content"]), f"{said}")
                said = serving.call("clock.get_current_time", timezone="Europe/Oslo")
                expect(said["success"] and "Oslo" in json.dumps(said["result"]), f"{said}")

            def refuses():
                said = serving.call("everything.get-sum", a="two", b=3)
                expect(not said["success"] and "a" in said["error"], f"{said}")
                said = serving.call("clock.get_current_time", timezone="No/Where")
                expect(not said["success"] and "No/Where" in said["error"], f"{said}")

            def comes_back():
                before = serving.children()
                expect(len(before) == 2, f"{before}")
                for child in before:
                    os.kill(child, 9)
                serving.until(lambda all: all and all["everything"]["restarts"] == all["clock"]["restarts"] == 1, "back")
                expect(not set(before) & set(serving.children()), "they are other programs")
                expect(serving.call("everything.echo", message="again")["success"], "it is called again")
                expect(serving.call("clock.get_current_time", timezone="UTC")["success"], "it is called again")

            check("servers of others: listed")(lists)
            check("servers of others: called")(calls)
            check("servers of others: a wrong call is reported")(refuses)
            check("servers of others: killed, and found again")(comes_back)


def conformance(node, packages):
    """Every scenario that a revision asks of a server; those that are not scored are printed and not counted."""
    suite = packages / "conformance/dist/index.js"
    for revision in REVISIONS:
        with example("mcp_conformance") as address, tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([node, suite, "server", "--url", address, "--requirements", revision], cwd=folder,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, timeout=300, check=False)
        summary = done.stdout.partition("=== SUMMARY ===")[2]
        unscored = dict(re.findall(r"^  [✓✗] (\S+) \((.+)\)$", summary, re.MULTILINE))
        scenarios = re.findall(r"^([✓✗~]) (\S+): (\d+) passed, (\d+) failed", summary, re.MULTILINE)
        # What is not scored yet and is done here all the same.
        required = [one for one in scenarios if one[1] not in unscored or one[1] in ALSO]

        def whole(required=required, done=done):
            expect(done.returncode == 0 and len(required) >= 30 and ALSO <= {name for _, name, *_ in scenarios}, f"{len(required)} scenarios\n{done.stdout[-3000:]}")

        check(f"conformance {revision} comes to its end")(whole)
        for mark, name, passed, failed in required:

            def passes(mark=mark, passed=passed, failed=failed):
                expect(mark == "✓" and failed == "0" and passed != "0", f"{passed} passed, {failed} failed")

            check(f"conformance {revision}: {name}, {passed} checks")(passes)
        failing = [f"{name} ({unscored[name]})" for mark, name, *_ in scenarios if name in unscored and mark != "✓"]
        print(f"        conformance {revision}: {len(required)} required scenarios; not scored and failing: "
              f"{', '.join(failing) or 'none'}", flush=True)


class Inspector:
    def __init__(self, node, packages):
        self.command = [node, packages / "inspector/clients/launcher/build/index.js", "--cli", "--transport", "http",
                        "--format", "json", "-q"]

    def run(self, address, era, *arguments):
        command = [*self.command, "--server-url", address, "--protocol-era", era, *arguments]
        return subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=120, check=False)

    def result(self, address, era, *arguments):
        done = self.run(address, era, *arguments)
        expect(done.returncode == 0, f"exit {done.returncode}: {done.stdout[-1000:]} {done.stderr[-2000:]}")
        return json.loads(done.stdout)["result"]


def inspector(node, packages):
    """The Inspector lists and calls, in both eras; `--strict` holds every schema against its rules."""
    program = Inspector(node, packages)
    with toolrack() as (address, _):
        for era in ERAS:

            def lists(era=era):
                names = [tool["name"] for tool in
                         program.result(f"{address}/mcp", era, "--method", "tools/list", "--strict")["tools"]]
                expect("calculate" in names and "house_burn" in names and names == sorted(names), f"{names}")

            def calls(era=era):
                result = program.result(f"{address}/mcp", era, "--method", "tools/call", "--tool-name", "calculate",
                                        "--tool-args-json", '{"expression": "(17 + 4) * 23"}')
                expect("483" in json.dumps(result) and not result.get("isError"), f"{result}")

            def fails(era=era):
                done = program.run(f"{address}/mcp", era, "--method", "tools/call", "--tool-name", "calculate",
                                   "--tool-args-json", '{"expression": "1 +"}')
                expect(done.returncode != 0 and "expression" in done.stdout + done.stderr, f"{done}")

            check(f"inspector, {era}: lists, strictly")(lists)
            check(f"inspector, {era}: calls")(calls)
            check(f"inspector, {era}: an error is one")(fails)


def load(node, packages):
    """Calls in a second, beside those of a server that is nothing but the library with one tool."""
    program = Inspector(node, packages)

    def measured(address, tool, arguments):
        result = program.result(address, "modern", "--method", "tools/call", "--tool-name", tool, "--tool-args-json",
                                json.dumps(arguments), "--load", "--load-requests", str(LOAD_CALLS),
                                "--load-concurrency", str(LOAD_AT_ONCE))
        expect(result["ok"] == LOAD_CALLS and not result["errors"] and not result["toolErrors"], f"{result}")
        return result["throughput"]

    def is_near():
        ours, bare = [], []
        with toolrack(program=RELEASE / "toolrack") as (address, _), example("mcp_bare", RELEASE) as alone:
            for _ in range(LOAD_ROUNDS):
                bare.append(measured(alone, "add", {"a": 1, "b": 2}))
                ours.append(measured(f"{address}/mcp", "calculate", {"expression": "1 + 2"}))
        # By turns, and of each the best: what else the machine does can only make it slower.
        ratio = max(ours) / max(bare)
        print(f"        load: {max(ours):.0f} calls/s, bare {max(bare):.0f} calls/s, ratio {ratio:.2f}", flush=True)
        expect(ratio >= LEAST_RATIO, f"{ratio:.2f} of the bare server's calls per second; {ours} and {bare}")

    if not (RELEASE / "examples" / "mcp_bare").exists():
        environment.skipped("load: `cargo build --release --workspace --bin toolrack --example mcp_bare` makes what it needs")
        return
    check(f"load: at least {LEAST_RATIO} of a bare server's calls")(is_near)


def client():
    """The Python client, in a program of its own; how many of its checks passed and failed."""
    interpreter = environment.python("python-mcp", HERE / "requirements.txt")
    with search_engine() as (search, seen), toolrack(search) as (address, folder):
        variables = {**os.environ, "TOOLRACK_URL": address, "TOOLRACK_FOLDER": folder, "TOOLRACK_SEEN": seen,
                     "TOOLRACK_PROGRAM": str(environment.TOOLRACK), "TOOLRACK_CLIENT": "mcp (Python)",
                     "PYTHONDONTWRITEBYTECODE": "1", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        done = subprocess.run([interpreter, HERE / "client.py"], env=variables, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, check=False)
    last = re.search(r"^(\d+) passed, (\d+) failed$", done.stdout, re.MULTILINE)
    if not last:
        print(f"{done.stdout.strip()}\nFAILED  mcp (Python): it did not come to its end", flush=True)
        return 0, 1
    print(done.stdout.replace(last.group(0), "").strip(), flush=True)
    return int(last[1]), int(last[2])


def through(frameworks):
    """A framework after the other with the tools of a server, over both transports."""
    with toolrack() as (address, _), tempfile.TemporaryDirectory(prefix="toolrack-mcp-") as folder:
        program = framework.program(folder, CONFIGURATION.format(search="http://127.0.0.1:9"))
        for name, command in frameworks:
            framework.checks_of(name, command, {"HTTP": {"url": f"{address}/mcp"}, "stdio": program})


def ai_sdk():
    clients, script = HERE.parent / "clients", HERE / "frameworks" / "ai_sdk_agent.mjs"
    folder = environment.node("node", [clients / "package.json", clients / "package-lock.json", script])
    through([("AI SDK", [folder / "node_modules/.bin/node", folder / script.name])])


def frameworks():
    def python(packages, script):
        requirements = HERE.parent / "clients" / f"requirements-{packages}.txt"
        return [environment.python(f"python-{packages}", requirements), HERE / "frameworks" / script]

    through([("LangChain", python("langchain", "langchain_agent.py")), ("openai-agents", python("agents", "openai_agent.py")),
             ("pydantic-ai", python("agents", "pydantic_ai_agent.py"))])


def main():
    passed, failed = client() if wanted("client") else (0, 0)
    for part, run in (("ai-sdk", ai_sdk), ("frameworks", frameworks)):
        if wanted(part):
            run()
    if any(wanted(part) for part in ("conformance", "inspector", "servers", "load")):
        node, packages = node_packages()
        for part in (conformance, inspector, servers, load):
            if wanted(part.__name__):
                part(node, packages)
    counts = checks.counts()
    passed, failed = passed + counts["passed"], failed + counts["failed"]
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
