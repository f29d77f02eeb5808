#!/usr/bin/env python3
"""Fifty tabs on one server, chats with streams and consoles: see tabs.mjs.

    CHROMIUM            the browser, default the first found on the path
    TABS, ROUNDS        default 50 and 3
"""

import json
import math
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from http.server import ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "clients"))
sys.dont_write_bytecode = True

import environment
from quiet import Quiet

TABS = int(os.environ.get("TABS", "50"))
# How many chats of one user may be answered at once.
TURNS_OF_A_USER = 8
WORDS = 60
PAUSE = 0.25


class Slow(Quiet):
    """A model that says the question's number with each of its words, a few in a second."""

    def do_GET(self):
        self.reply({"object": "list", "data": [{"id": "m", "object": "model"}]})

    def do_POST(self):
        asked = [message["content"] for message in self.body()["messages"] if message["role"] == "user"][-1]
        number = str(asked).split("number ")[-1].split(".")[0]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        pieces = [({"role": "assistant", "content": f"{number}:{word}. "}, None) for word in range(1, WORDS + 1)]
        for delta, finish in [*pieces, ({}, "stop")]:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
            self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
            self.wfile.flush()
            time.sleep(PAUSE)
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True


class Model(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def add_users(folder):
    """The keys of as many users as have that many turns at once."""
    def toolrack(*arguments):
        command = [environment.TOOLRACK, *arguments, "--data-dir", folder, "--config", Path(folder) / "toolrack.toml"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    keys = []
    for number in range(math.ceil(TABS / 2 / TURNS_OF_A_USER)):
        toolrack("user", "add", f"user{number}")
        keys.append(re.search(r"trk_\S+", toolrack("key", "create", f"user{number}")).group())
    return keys


def pid_of(address):
    """The process that listens on the port of an address."""
    port = f":{int(address.rsplit(':', 1)[1]):04X}"
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    inode = next(row[9] for row in rows if row[1].endswith(port) and row[3] == "0A")
    for folder in Path("/proc").glob("[0-9]*/fd"):
        try:
            if any(os.readlink(entry) == f"socket:[{inode}]" for entry in folder.iterdir()):
                return folder.parent.name
        except OSError:
            continue
    raise LookupError(f"nobody listens at {address}")


def main():
    browser = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not browser:
        print("FAILED  there is no chromium on the path; CHROMIUM may name one\n0 passed, 1 failed")
        return 1
    folder = environment.node("node-browser", [HERE / name for name in ("package.json", "package-lock.json")] + sorted(HERE.glob("*.mjs")))
    model = Model(("127.0.0.1", 0), Slow)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    upstream = f"http://127.0.0.1:{model.server_address[1]}/v1"
    keys = ["sk-admin"]
    with environment.toolrack(
            upstream, "--api-key", keys[0], configuration='[user]\nlevel = "admin"\n',
            prepare=lambda folder: keys.extend(add_users(folder))) as address:
        variables = {**os.environ, "TOOLRACK_URL": address, "TOOLRACK_PID": pid_of(address), "KEYS": ",".join(keys), "CHROMIUM": browser,
                     "TABS": str(TABS), "WORDS": str(WORDS)}
        return subprocess.run(["node", folder / "tabs.mjs"], env=variables, stdin=subprocess.DEVNULL).returncode


if __name__ == "__main__":
    sys.exit(main())
