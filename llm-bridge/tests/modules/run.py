#!/usr/bin/env python3
"""A module in Python, with FastAPI and uvicorn and as it would stand anywhere else, used through a running server.

See ../clients/environment.py for the variables. The last line is `N passed, M failed`.
"""

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "clients"))
sys.dont_write_bytecode = True

import checks
import environment
from checks import check, expect, finish

CONFIGURATION = """
module_timeout = 1
tool_execution_timeout = 2
slow_modules = "slow"
discovery_timeout = 2
breaker = {{ failures = 0 }}

[user]
id = "ada"
level = "admin"

[module_services]
research = "{module}"
slow = "{module}"
gone = "http://127.0.0.1:9"
"""

# Reads what Prometheus would, with the library of those who made the format.
READ_METRICS = """
import json, sys
from prometheus_client.parser import text_string_to_metric_families
families = text_string_to_metric_families(sys.stdin.read())
print(json.dumps([[f.name, f.type, [[s.name, s.labels, s.value] for s in f.samples]] for f in families]))
"""

OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(address, path, body=None):
    """The status and the body of an answer."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address + path, data, {"Content-Type": "application/json"})
    try:
        with OPENER.open(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def equal(seen, wanted):
    expect(seen == wanted, f"{seen!r} and not {wanted!r}")


def run(address, module, interpreter):
    def call(tool, arguments=None, **more):
        return ask(address, "/execute", {"tool_name": tool, "arguments": arguments or {}, **more})

    def fails(tool, error, retryable):
        _status, reply = call(tool)
        equal((reply["success"], reply["error"], reply.get("retryable", False)), (False, error, retryable))

    @check("its tools are found by themselves, with their levels")
    def _():
        tools = {tool["name"]: tool for tool in ask(address, "/api/tools")[1]["tools"]}
        equal(tools["research.web_search"]["level"], "guest")
        equal(tools["research.wipe"]["level"], "admin")
        expect("research.odd" not in tools, "a tool of an unknown level is the owner's")
        schema = tools["research.web_search"]["parameters"]
        equal(schema["required"], ["query"])
        equal(schema["properties"]["order"]["enum"], ["date", "rank"])
        equal(schema["properties"]["max_results"]["type"], "integer")

    @check("what is known of the modules, asked anew")
    def _():
        for path, body in (("/refresh-tools", {}), ("/api/modules", None)):
            modules = {module["name"]: module for module in ask(address, path, body)[1]["modules"]}
            equal((modules["research"]["tools"], modules["research"]["error"]), (6, None))
            equal(modules["research"]["version"], "1.0.0")
            expect("research.odd" in json.dumps(modules["research"]["faults"]), modules["research"]["faults"])
            expect(modules["gone"]["tools"] == 0 and modules["gone"]["error"], modules["gone"])

    @check("a call brings its result, for who is signed in")
    def _():
        arguments = {"query": "rust", "max_results": "2", "user_id": "root"}
        status, reply = call("research.web_search", arguments)
        equal((status, reply["success"]), (200, True))
        equal(reply["result"]["found"], ["rust 0", "rust 1"])
        equal(reply["result"]["user"], "ada")
        status, reply = call("research.web_search", {"query": "rust"}, user_id="root")
        equal((status, reply["success"], reply["result"]["user"]), (200, True, "ada"))

    @check("by the module's own entry point, with either name")
    def _():
        for tool in ("web_search", "research.web_search"):
            body = {"tool_name": tool, "arguments": {"query": "test"}}
            status, reply = ask(address, "/api/modules/research/execute", body)
            equal((status, reply["success"], reply["tool_name"]), (200, True, tool))

    @check("arguments are checked before they are sent")
    def _():
        for arguments in ({}, {"query": "a", "order": "size"}, {"query": "a", "max_results": "many"}):
            status, reply = call("research.web_search", arguments)
            equal((status, reply["success"]), (422, False))

    @check("names that are none, word for word")
    def _():
        fails("nowhere.search", "Unknown module: nowhere", False)
        fails("nothing", "Invalid tool name format: nothing. Expected 'module.tool_name'.", False)

    @check("a failure of the tool is reported in its words")
    def _():
        fails("research.fail", "The index is being built.", False)

    @check("a status that is none, word for word")
    def _():
        fails("research.crash", 'Module returned status 500: {"detail":"no index"}', True)

    @check("a call that takes too long, in an ordinary module and in a slow one")
    def _():
        for tool, limit in (("research.sleep", 1), ("slow.sleep", 2)):
            began = time.monotonic()
            fails(tool, f"Tool execution timed out ({limit}s).", True)
            took = time.monotonic() - began
            expect(limit <= took < limit + 1.5, f"took {took:.1f} s")

    @check("what is measured, in the format of Prometheus")
    def _():
        with OPENER.open(address + "/metrics", timeout=60) as answer:
            text = answer.read().decode()
        command = [interpreter, "-c", READ_METRICS]
        read = subprocess.run(command, input=text, stdout=subprocess.PIPE, text=True, check=True).stdout
        families = {name: (kind, samples) for name, kind, samples in json.loads(read)}
        expect(not any(kind == "unknown" for kind, _samples in families.values()), families.keys())
        equal(families["toolrack_call_duration_seconds"][0], "histogram")

        def value(family, **labels):
            kind, samples = families[family]
            wanted = family + ("_total" if kind == "counter" else "")
            found = [sample for sample in samples if sample[0] == wanted and sample[1].items() >= labels.items()]
            return sum(sample[2] for sample in found)

        equal(value("toolrack_calls", tool="research.sleep", kind="module", outcome="timeout", source="http"), 1)
        equal(value("toolrack_calls", tool="research.fail", outcome="failed"), 1)
        equal(value("toolrack_calls", tool="unknown", outcome="tool_not_found"), 2)
        equal(value("toolrack_module_state", module="research", state="reachable"), 1)
        equal(value("toolrack_module_state", module="gone", state="away"), 1)
        equal(value("toolrack_module_tools", module="research"), 6)

    @check("the module goes away: its tools stay, and calls fail and say so")
    def _():
        module.kill()
        module.wait()
        _status, reply = call("research.web_search", {"query": "rust"})
        expect(reply["error"].startswith("Tool execution error: "), reply)
        equal((reply["success"], reply["retryable"]), (False, True))
        modules = {module["name"]: module for module in ask(address, "/refresh-tools", {})[1]["modules"]}
        expect(modules["research"]["error"] and modules["research"]["tools"] == 6, modules["research"])


def main():
    checks.WHO = "FastAPI"
    interpreter = environment.python("python-modules", HERE / "requirements.txt")
    command = [interpreter, "-m", "uvicorn", "research:app", "--app-dir", HERE, "--port", "0"]
    with environment.running_process(command, r"running on (http://127\.0\.0\.1:\d+)") as (url, module):
        with environment.toolrack("demo", configuration=CONFIGURATION.format(module=url)) as address:
            run(address, module, interpreter)
    finish()


if __name__ == "__main__":
    main()
