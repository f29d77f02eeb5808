"""The Python client against a running server, over HTTP and over standard input and output, in both eras."""

import asyncio
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, asynccontextmanager, nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "clients"))

import anyio
import httpx2
from mcp import MCPError, StdioServerParameters, types
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

import environment
from checks import URL, check, expect, finish

PROGRAM, FOLDER, SEEN = os.environ["TOOLRACK_PROGRAM"], os.environ["TOOLRACK_FOLDER"], Path(os.environ["TOOLRACK_SEEN"])
SETTINGS = ["--config", f"{FOLDER}/toolrack.toml", "--data-dir", FOLDER]
MODES = {"modern": "2026-07-28", "legacy": "legacy"}
# A change made by one program is seen by another within a moment.
SOON = 20


def toolrack(*arguments):
    """What the program prints, on the data of the running server."""
    command = [PROGRAM, *arguments, *SETTINGS]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout


def audit(tool):
    """The outcomes of a tool's calls, oldest first."""
    lines = toolrack("audit", "export", "--tool", tool, "--origin", "mcp").splitlines()
    records = [json.loads(line)["record"] for line in lines]
    return [record for record in records if record["phase"] == "outcome"]


def key_of(user, level):
    toolrack("user", "add", user, "--level", level)
    return toolrack("key", "create", user).strip()


def request(method, path, body=None, **headers):
    """The status and the body of a plain request."""
    connection = http.client.HTTPConnection(URL.removeprefix("http://"), timeout=20)
    connection.putrequest(method, path, skip_host="Host" in headers)
    data = json.dumps(body).encode() if body is not None else b""
    sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
            "Content-Length": str(len(data)), **headers}
    for name, value in sent.items():
        connection.putheader(name, value)
    connection.endheaders(data)
    reply = connection.getresponse()
    return reply.status, reply.read().decode()


@asynccontextmanager
async def over_http(mode, key=None, address=URL, **options):
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as plain:
        transport = streamable_http_client(f"{address}/mcp", http_client=plain)
        async with Client(transport, mode=MODES[mode], cache=None, **options) as client:
            yield client


@asynccontextmanager
async def over_stdio(mode, settings=None, **options):
    # As in a host's configuration: a command and its arguments.
    server = StdioServerParameters(command=PROGRAM, args=["mcp", *(settings or SETTINGS)], env={"TOOLRACK_LOG": "warn"})
    async with Client(server, mode=MODES[mode], cache=None, **options) as client:
        yield client


WAYS = {"HTTP": over_http, "stdio": over_stdio}


def everywhere(name):
    """A check over both transports and in both eras."""

    def run(body):
        for way, connect in WAYS.items():
            for mode in MODES:

                async def one(connect=connect, mode=mode):
                    with anyio.fail_after(60):
                        await body(connect, mode)

                check(f"{way}, {mode}: {name}")(lambda one=one: asyncio.run(one()))
        return body

    return run


def text(result):
    return "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))


async def until(holds, what):
    """Waits until something holds that nothing tells of."""
    began = time.monotonic()
    while not await anyio.to_thread.run_sync(holds):
        expect(time.monotonic() - began < SOON, what)
        await anyio.sleep(0.05)


@everywhere("lists and calls")
async def _(connect, mode):
    async with connect(mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        expect(list(tools) == sorted(tools) and {"calculate", "house_burn"} <= set(tools), f"{list(tools)}")
        calculate, burn = tools["calculate"], tools["house_burn"]
        expect(calculate.title and calculate.annotations.read_only_hint and calculate.output_schema, f"{calculate}")
        expect(burn.annotations.destructive_hint and not burn.annotations.read_only_hint, f"{burn.annotations}")
        before = len(audit("calculate"))
        result = await client.call_tool("calculate", {"expression": "(17 + 4) * 23"})
        expect(not result.is_error and "483" in text(result), f"{result}")
        expect(result.structured_content and "483" in json.dumps(result.structured_content), f"{result}")
        records = audit("calculate")
        expect(len(records) == before + 1 and records[-1]["success"], f"{records[-1:]}")


@everywhere("errors are reported")
async def _(connect, mode):
    async with connect(mode) as client:
        for arguments in ({"expression": "1 +"}, {}):
            result = await client.call_tool("calculate", arguments)
            expect(result.is_error and "expression" in text(result).lower(), f"{result}")
        try:
            result = await client.call_tool("calculat", {"expression": "1"})
        except MCPError as error:
            expect(error.error.code == -32602 and "calculate" in error.error.message, f"{error.error}")
        else:
            raise AssertionError(f"an unknown tool gave {result}")
        expect(audit("calculat")[-1]["error"] == "tool_not_found", f"{audit('calculat')}")


def seen():
    """How often the search engine was asked, and how often it was left without having answered."""
    lines = SEEN.read_text().split()
    return {"asked": lines.count("asked"), "left": lines.count("left")}


@everywhere("progress is reported, and a cancelled call ends")
async def _(connect, mode):
    words = []

    async def hear(progress, total, message):
        words.append((progress, message))

    async with connect(mode) as client:
        asked, before = seen(), len(audit("web_search"))
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:

                async def call():
                    await client.call_tool("web_search", {"query": "rust"}, progress_callback=hear)

                group.start_soon(call)
                await until(lambda: words and seen()["asked"] > asked["asked"], f"heard {words}, engine {seen()}")
                scope.cancel()
        expect("rust" in words[0][1], f"{words}")
        await until(lambda: seen()["left"] > asked["left"], f"the tool goes on: {seen()}")
        await until(lambda: len(audit("web_search")) > before, "no outcome in the audit")
        expect(audit("web_search")[-1]["error"] == "cancelled", f"{audit('web_search')[-1]}")


@everywhere("a change of the list is reported")
async def _(connect, mode):
    changed = anyio.Event()

    async def heard(message):
        # Of some versions it is wrapped.
        if isinstance(getattr(message, "root", message), types.ToolListChangedNotification):
            changed.set()

    async def wait(client):
        if mode == "legacy":
            await changed.wait()
            return
        async for _ in subscription:
            return

    async with connect(mode, message_handler=heard) as client:
        listening = client.listen(tools_list_changed=True) if mode == "modern" else nullcontext()
        async with listening as subscription:
            for switch, is_there in (("disable", False), ("enable", True)):
                await anyio.to_thread.run_sync(toolrack, "tools", switch, "current_time")
                with anyio.fail_after(SOON):
                    await wait(client)
                names = [tool.name for tool in (await client.list_tools()).tools]
                expect(("current_time" in names) == is_there, f"{switch}: {names}")
                changed = anyio.Event()


@everywhere("a person approves through the client")
async def _(connect, mode):
    for action, content, reported in (("accept", {"approve": True}, "burnt"), ("accept", {"approve": False}, None),
                                  ("decline", None, None), ("cancel", None, None)):
        asked = []

        async def answer(_, params, action=action, content=content):
            asked.append(params)
            return types.ElicitResult(action=action, content=content)

        name = f"{connect.__name__} {mode} {action} {content}"
        async with connect(mode, elicitation_callback=answer) as client:
            result = await client.call_tool("house_burn", {"name": name})
        expect(len(asked) == 1 and "house.burn" in asked[0].message and name in asked[0].message, f"{asked}")
        expect(result.is_error == (reported is None) and (reported is None or reported in text(result)), f"{action}: {result}")


@everywhere("a client that cannot ask waits for an answer from elsewhere")
async def _(connect, mode):
    results, name = [], f"{connect.__name__} {mode}"

    def pending():
        approvals = json.loads(request("GET", "/api/approvals")[1])["approvals"]
        return [one["id"] for one in approvals if one["arguments"] == {"name": name}]

    async with connect(mode) as client:
        async with anyio.create_task_group() as group:

            async def call():
                # Its own name is understood as well.
                results.append(await client.call_tool("house.burn", {"name": name}))

            group.start_soon(call)
            await until(pending, "no approval waits")
            status, body = request("POST", f"/api/approvals/{pending()[0]}", {"approve": True})
            expect(status == 200, f"{status}: {body}")
    expect(not results[0].is_error and "burnt" in text(results[0]), f"{results}")


@check("HTTP: keys decide what is there")
def _():
    guest, user = key_of("gast", "guest"), key_of("ada", "user")

    async def names(key, mode):
        async with over_http(mode, key) as client:
            return {tool.name for tool in (await client.list_tools()).tools}

    for mode in MODES:
        of_guest, of_user = (asyncio.run(names(key, mode)) for key in (guest, user))
        expect(of_guest < of_user and "house_keys" in of_user - of_guest, f"{of_guest} {of_user}")

    async def refused():
        async with over_http("modern", guest) as client:
            return await client.call_tool("house_keys", {})

    result = asyncio.run(refused())
    expect(result.is_error and audit("house.keys")[-1]["error"] == "permission_denied", f"{result}")
    status, body = request("POST", "/mcp", {}, Authorization="Bearer trk_0000")
    expect(status == 401, f"{status}: {body}")


INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "check", "version": "1"}}}


@check("HTTP: another user's session is unknown")
def _():
    keys = [toolrack("key", "create", user).strip() for user in ("ada", "gast")]
    connection = http.client.HTTPConnection(URL.removeprefix("http://"), timeout=20)
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    connection.request("POST", "/mcp", json.dumps(INITIALIZE), {**headers, "Authorization": f"Bearer {keys[0]}"})
    session = connection.getresponse().getheader("mcp-session-id")
    expect(session, "no session")
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    statuses = [request("POST", "/mcp", ping, Authorization=f"Bearer {key}", **{"Mcp-Session-Id": session})[0] for key in keys]
    expect(statuses == [200, 404], f"{statuses}")


@check("HTTP: other pages and other names are turned away")
def _():
    for header, status in (({"Origin": "http://evil.example"}, 403), ({"Host": "evil.example"}, 421)):
        found, body = request("POST", "/mcp", INITIALIZE, **header)
        expect(found == status, f"{header}: {found} {body}")


@asynccontextmanager
async def beside(way, mode, server, settings=""):
    """A client of a program whose only MCP server is this command: the names in its first list, and how long that took."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="toolrack-mcp-"))
        file = Path(folder) / "toolrack.toml"
        command, arguments, cwd = (json.dumps(one) for one in (server[0], server[1:], folder))
        file.write_text(f"{settings}\n[mcp_servers.other]\ncommand = {command}\nargs = {arguments}\ncwd = {cwd}\n")
        flags = ["--config", str(file), "--data-dir", folder]
        if way == "stdio":
            connecting = over_stdio(mode, settings=flags)
        else:
            serve = [PROGRAM, "serve", "--upstream", "demo", "--listen", "127.0.0.1:0", *flags]
            connecting = over_http(mode, address=stack.enter_context(environment.running(serve, r"(http://127\.0\.0\.1:\d+)/ ")))
        async with connecting as client:
            began = time.monotonic()
            names = {tool.name for tool in (await client.list_tools()).tools}
            yield client, names, time.monotonic() - began


def first_list(way, mode):
    @check(f"{way}, {mode}: the first list has the tools of a server that starts slowly (N9)")
    def _():
        async def run():
            slow = ["sh", "-c", f"sleep 1.5; exec '{PROGRAM}' mcp --config /dev/null --data-dir inner"]
            async with beside(way, mode, slow, "mcp.first_list_seconds = 30") as (client, names, took):
                expect("other_calculate" in names, f"{took:.1f} s: {names}")
                result = await client.call_tool("other_calculate", {"expression": "6*7"})
                expect("42" in text(result), f"{result}")

        asyncio.run(run())

    @check(f"{way}, {mode}: a server that never answers delays the first list alone, for a bounded time (N9)")
    def _():
        async def run():
            async with beside(way, mode, ["sleep", "600"]) as (client, names, took):
                expect("calculate" in names and 3 < took < 10, f"{took:.1f} s: {names}")
                began = time.monotonic()
                await client.list_tools()
                expect(time.monotonic() - began < 2, f"the second list took {time.monotonic() - began:.1f} s")

        asyncio.run(run())


for way in WAYS:
    for mode in MODES:
        first_list(way, mode)


@check("stdio: a server that fails delays nothing (N9)")
def _():
    async def run():
        async with beside("stdio", "legacy", ["false"], "mcp.first_list_seconds = 60") as (_client, names, took):
            expect("calculate" in names and took < 30, f"{took:.1f} s: {names}")

    asyncio.run(run())


finish()
