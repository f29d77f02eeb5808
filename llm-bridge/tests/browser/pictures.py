#!/usr/bin/env python3
"""Makes the pictures of the book, docs/pictures: the page, an approval, the console and a terminal, as they are now. Look at each before it is committed. With names only those
are made; those of clients are made by their names alone: `open-webui`, which needs 1.1 GB, and `claude`, `codex` and `opencode`, which need as much.

    CHROMIUM     the browser, default the first found on the path
    PICTURES     another folder
"""

import html
import json
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import replace
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "clients"), str(HERE.parent / "agents")]
sys.dont_write_bytecode = True

import environment
from agents import AGENTS, command, variables
from quiet import Quiet
from run import model

CONFIGURATION = """
[user]
id = "ada"
level = "admin"
[[tools]]
name = "send_mail"
description = "Sends a mail."
type = "function"
handler = "fixed"
permission = "guest"
effect = "destructive"
parameters = { type = "object", properties = { to = { type = "string" }, subject = { type = "string" }, text = { type = "string" } }, required = ["to", "text"] }
implementation = { type = "mock", mock_response = "The mail is sent." }
"""
TRIP = "The hotel for four of us is 2,340 €, and we get 17% off. What does each of us pay?"
MAIL = "Write to the hotel that we arrive at six."
BRIEFLY = " Answer in one sentence."
COLUMNS, ROWS = 110, 40
# What lets agents write without being asked.
WRITING = ("--permission-mode", "acceptEdits", "--dangerously-bypass-approvals-and-sandbox")


class Traveller(Quiet):
    """A model that plans a trip: it calls tools as a good one would, and says what they found."""

    def do_GET(self):
        self.reply({"object": "list", "data": [{"id": "qwen3", "object": "model"}]})

    def do_POST(self):
        body = self.body()
        messages = body["messages"]
        asked = max(at for at, message in enumerate(messages) if message["role"] == "user")
        results = [message["content"] for message in messages[asked:] if message["role"] == "tool"]
        # Coding agents have it write titles too, without tools.
        call, text = self.next(str(messages[asked]["content"]), results) if body.get("tools") else (None, "The price of a hotel")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        pieces = [{"role": "assistant", "content": ""}]
        if call:
            function = {"name": call[0], "arguments": json.dumps(call[1])}
            pieces.append({"tool_calls": [{"index": 0, "id": f"call_{asked}_{len(results)}", "type": "function", "function": function}]})
        else:
            pieces += [{"content": piece} for piece in re.findall(r"\S+\s*", text)]
        for delta in (*pieces, None):
            choice = {"index": 0, "delta": delta or {}, "finish_reason": None if delta else "tool_calls" if call else "stop"}
            chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "qwen3", "choices": [choice]}
            self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def next(self, question, results):
        """The call that it makes now, or what it says."""
        if "arrive" in question:
            text = "Dear Sir or Madam, we arrive on Friday at 18:00. Kind regards, Ada"
            call = ("send_mail", {"to": "desk@hotel.example", "subject": "Our arrival", "text": text})
            return (call, None) if not results else (None, "Done: the hotel knows that you arrive at 18:00.")
        if not results:
            return ("calculate", {"expression": "2340 * (100 - 17) / 100"}), None
        found = [re.search(r"[\d.]+", result)[0] for result in results]
        if len(found) == 1:
            return ("calculate", {"expression": f"{found[0]} / 4"}), None
        answer = f"Each of you pays **{float(found[1]):.2f} €**."
        if BRIEFLY in question:
            return None, answer.replace("*", "")
        table = f"| | |\n|---|--:|\n| Price | 2,340.00 € |\n| 17% off | −{2340 - float(found[0]):,.2f} € |\n| **Together** | **{float(found[0]):,.2f} €** |"
        return None, f"{answer}\n\n{table}"


def printed(command, typed="", variables=None, place=None):
    """What a program writes to a terminal, and what is typed there when it asks."""
    ours, theirs = pty.openpty()
    ioctl(theirs, TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    variables = variables or {name: value for name, value in os.environ.items() if not name.startswith("TOOLRACK_")}
    process = subprocess.Popen([str(part) for part in command], stdin=theirs, stdout=theirs, stderr=theirs, cwd=place, env={**variables, "TERM": "xterm", "COLUMNS": str(COLUMNS)})
    os.close(theirs)
    text, last = b"", time.monotonic()
    while time.monotonic() - last < 30:
        if select.select([ours], [], [], 0.2)[0]:
            try:
                piece = os.read(ours, 1 << 16)
            except OSError:
                break
            if not piece:
                break
            text, last = text + piece, time.monotonic()
        elif typed and b"[y/N]" in text:
            os.write(ours, typed.encode())
            typed = ""
    process.wait(30)
    plain = re.sub(r"\x1b(\[[0-9;?<>]*[A-Za-z]|\][^\x07]*\x07|[(][A-Z0-9]|[0-9])", "", text.decode(errors="replace").replace("\r\n", "\n"))
    return "".join(character for character in plain if character == "\n" or character.isprintable()).strip()


def terminal(upstream, folder):
    """A session in a terminal, as a page for the browser."""
    settings = folder / "terminal.toml"
    settings.write_text(CONFIGURATION)
    common = ["--config", settings, "--data-dir", folder / "terminal", "--upstream", upstream]
    said = []
    for words, typed in ((["chat", TRIP + BRIEFLY], ""), (["chat", MAIL], "y\n")):
        said.append((f'toolrack {words[0]} "{words[1]}"', printed([environment.TOOLRACK, *words, *common], typed)))
    return session(folder / "terminal.html", said)


def agents(address, folder, wanted):
    """A session with each coding agent that is wanted by its name, as a page for the browser."""
    for agent in AGENTS:
        if agent.name in wanted:
            place = folder / agent.name
            place.mkdir()
            # Codex says something of a home in the folder for temporary files.
            around = {**variables(agent, place), "TMPDIR": "/var/tmp"}
            # Nothing is written, so nothing has to be allowed.
            asking = replace(agent, arguments=tuple(word for word in agent.arguments if word not in WRITING))
            said = printed(command(asking, address, TRIP + BRIEFLY), variables=around, place=place)
            shown = f'toolrack launch {agent.name} -- {" ".join(asking.arguments)} "{TRIP + BRIEFLY}"'
            yield f"AGENT_{agent.name}", session(folder / f"{agent.name}.html", [(shown, said)]).as_uri()


def session(page, said):
    """Commands with what they print, as a page."""
    parts = (f"<b>$ {html.escape(shown)}</b>\n{html.escape(text)}" for shown, text in said)
    style = "body { margin: 0; background: #16181d; } pre { margin: 0; padding: 18px 22px; color: #d5d9e0; font: 14px/1.5 'DejaVu Sans Mono', monospace; white-space: pre-wrap; overflow-wrap: anywhere; width: %dch } b { color: #8fd18f }" % COLUMNS
    page.write_text(f"<!doctype html><meta charset=utf-8><style>{style}</style><pre>{(chr(10) * 2).join(parts)}</pre>")
    return page


@contextmanager
def client(address, wanted):
    """The variables for the picture of Open WebUI, which is installed for it, where that is wanted by its name."""
    if "open-webui" not in wanted:
        yield {}
        return
    from webui import open_webui

    with open_webui(address) as page:
        yield {"OPEN_WEBUI_URL": page.address, "OPEN_WEBUI_TOKEN": page.token}


def main():
    browser = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not browser:
        print("there is no chromium on the path; CHROMIUM may name one")
        return 1
    node = environment.node("node-browser", [HERE / name for name in ("package.json", "package-lock.json")] + sorted(HERE.glob("*.mjs")))
    pictures = Path(os.environ.get("PICTURES") or environment.REPOSITORY / "docs/pictures").resolve()
    upstream = model(Traveller)
    with tempfile.TemporaryDirectory(prefix="pictures-") as folder, environment.toolrack(upstream, configuration=CONFIGURATION) as address, \
            client(address, sys.argv[1:]) as of_client:
        variables = {**os.environ, **of_client, "TOOLRACK_URL": address, "CHROMIUM": browser, "PICTURES": str(pictures), "TRIP": TRIP, "MAIL": MAIL, **dict(agents(address, Path(folder), sys.argv[1:])),
                     "TERMINAL": terminal(upstream, Path(folder)).as_uri()}
        return subprocess.run(["node", node / "pictures.mjs", *sys.argv[1:]], env=variables, stdin=subprocess.DEVNULL).returncode


if __name__ == "__main__":
    sys.exit(main())
