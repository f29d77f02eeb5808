"""Checks of an agent framework that is given the tools of an MCP server: its model is asked with names that every model API takes, and
calls one of them."""

import json
import os
import re
import subprocess
from pathlib import Path

import environment
from checks import check, expect
from model import Model, call, say

# The names that OpenAI accepts.
LEGAL = re.compile(r"[a-zA-Z0-9_-]{1,64}")

# A server that takes its time to start, as most do that are fetched first.
SLOW = """
[mcp]
first_list_seconds = 30

[mcp_servers.slow]
command = "sh"
args = ["-c", "sleep 1.5; exec {program} mcp --config /dev/null --data-dir {folder}/slow"]
"""


def program(folder, configuration):
    """The program as a server over standard input and output, with a slow server of its own."""
    file = Path(folder) / "toolrack.toml"
    file.write_text(configuration + SLOW.format(program=environment.TOOLRACK, folder=folder))
    return {"command": str(environment.TOOLRACK), "args": ["mcp", "--config", str(file), "--data-dir", folder]}


def checks_of(name, command, servers):
    """Over each transport; over standard input and output the tools of the slow server are in the first list."""
    model = Model()
    for way, server in servers.items():
        wanted = {"calculate", "house_keys", *({"slow_calculate"} if way == "stdio" else ())}

        @check(f"{name}, {way}: names are legal for a model, and one is called (N8)")
        def _(server=server, wanted=wanted):
            model.play([call(("house_keys", {})), say("", repeats=True)])
            variables = {**os.environ, "TOOLRACK_MCP": json.dumps(server), "TOOLRACK_UPSTREAM": model.address, "NO_PROXY": "127.0.0.1",
                         "no_proxy": "127.0.0.1", "PYTHONDONTWRITEBYTECODE": "1"}
            done = subprocess.run([str(part) for part in command], env=variables, stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, timeout=120, check=False)
            expect(done.returncode == 0, f"exit {done.returncode}: {done.stdout[-1000:]} {done.stderr[-3000:]}")
            names = {tool["function"]["name"] for tool in model.asked[0]["tools"]}
            expect(wanted <= names and all(LEGAL.fullmatch(one) for one in names), f"{names}")
            expect("under the mat" in json.loads(done.stdout.splitlines()[-1])["text"], done.stdout)
