#!/usr/bin/env python3
"""Makes the pictures of the book, docs/pictures: the page, an approval, the console and a terminal, as they are now. Look at each before it is committed. With names only those
are made; `open-webui` is made by its name alone, as it needs 1.1 GB.

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
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "clients")]
sys.dont_write_bytecode = True

import environment
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
effect = "destructive"
parameters = { type = "object", properties = { to = { type = "string" }, subject = { type = "string" }, text = { type = "string" } }, required = ["to", "text"] }
implementation = { type = "mock", mock_response = "The mail is sent." }
"""
TRIP = "The hotel for four of us is 2,340 €, and we get 17% off. What does each of us pay?"
MAIL = "Write to the hotel that we arrive at six."
BRIEFLY = " Answer in one sentence."
COLUMNS, ROWS = 110, 40


class Traveller(Quiet):
    """A model that plans a trip: it calls tools as a good one would, and says what they found."""

    def do_GET(self):
        self.reply({"object": "list", "data": [{"id": "qwen3", "object": "model"}]})

    def do_POST(self):
        messages = self.body()["messages"]
        asked = max(at for at, message in enumerate(messages) if message["role"] == "user")
        results = [message["content"] for message in messages[asked:] if message["role"] == "tool"]
        call, text = self.next(str(messages[asked]["content"]), results)
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


def printed(command, typed=""):
    """What a program writes to a terminal, and what is typed there when it asks."""
    ours, theirs = pty.openpty()
    ioctl(theirs, TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    variables = {name: value for name, value in os.environ.items() if not name.startswith("TOOLRACK_")}
    process = subprocess.Popen([str(part) for part in command], stdin=theirs, stdout=theirs, stderr=theirs, env={**variables, "TERM": "xterm", "COLUMNS": str(COLUMNS)})
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
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.decode(errors="replace").replace("\r\n", "\n"))


def terminal(upstream, folder):
    """A session in a terminal, as a page for the browser."""
    settings = folder / "terminal.toml"
    settings.write_text(CONFIGURATION)
    common = ["--config", settings, "--data-dir", folder / "terminal", "--upstream", upstream]
    parts = []
    for words, typed in ((["chat", TRIP + BRIEFLY], ""), (["chat", MAIL], "y\n")):
        shown = f'toolrack {words[0]} "{words[1]}"'
        said = printed([environment.TOOLRACK, *words, *common], typed).strip()
        parts.append(f"<b>$ {html.escape(shown)}</b>\n{html.escape(said)}")
    style = "body { margin: 0; background: #16181d; } pre { margin: 0; padding: 18px 22px; color: #d5d9e0; font: 14px/1.5 'DejaVu Sans Mono', monospace; white-space: pre-wrap; width: %dch } b { color: #8fd18f }" % COLUMNS
    page = folder / "terminal.html"
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
        variables = {**os.environ, **of_client, "TOOLRACK_URL": address, "CHROMIUM": browser, "PICTURES": str(pictures), "TRIP": TRIP, "MAIL": MAIL,
                     "TERMINAL": terminal(upstream, Path(folder)).as_uri()}
        return subprocess.run(["node", node / "pictures.mjs", *sys.argv[1:]], env=variables, stdin=subprocess.DEVNULL).returncode


if __name__ == "__main__":
    sys.exit(main())
