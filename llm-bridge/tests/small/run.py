#!/usr/bin/env python3
"""The program that was built without the features that can be left out: it answers chats and calls tools, and says of each setting that needs one of them
which it is. TOOLRACK_BIN names it.
"""

import json
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "clients"))
sys.dont_write_bytecode = True

import environment

# Each with the feature that it needs.
SETTINGS = [
    ('[store]\nurl = "postgres://u:hush@h/d"\n', "store.url", "postgres"),
    ('[store]\nredis = "redis://h"\n', "store.redis", "redis"),
    ('[audit]\nheads = ["postgres://u:hush@h/d"]\n', "audit.heads", "postgres"),
    ("[documents]\nextract = true\n", "documents", "documents"),
]


def ask(address, path, body=None):
    """The status and the answer."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address + path, data, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def said(folder, *words, configuration="", variables=None):
    """The exit code of a command, and what it writes."""
    settings = Path(folder) / "settings.toml"
    settings.write_text(configuration)
    command = [environment.TOOLRACK, "--config", settings, "--data-dir", Path(folder) / "data", *words]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env={**os.environ, **(variables or {})})
    return done.returncode, done.stdout + done.stderr


def served(address):
    question = {"model": "m", "messages": [{"role": "user", "content": "What is 17% of 2,340?"}]}
    status, answer = ask(address, "/v1/chat/completions", question)
    yield "a chat is answered with a tool", status == 200 and "397.8" in answer, answer
    status, answer = ask(address, "/execute", {"tool_name": "calculate", "arguments": {"expression": "2 + 3"}})
    yield "a tool is called", status == 200 and json.loads(answer)["success"], answer
    status, answer = ask(address, "/api/tools")
    yield "no tool searches documents", status == 200 and "calculate" in answer and "retrieve_documents" not in answer, answer
    status, answer = ask(address, "/")
    yield "the page is said to be missing", status == 404 and "`page`" in answer, answer
    status, answer = ask(address, "/api/documents")
    yield "documents are said to be missing", status == 404 and "`documents`" in answer, answer
    status, answer = ask(address, "/openapi.json")
    yield "what is served is described", status == 200 and "/v1/chat/completions" in answer, answer[:400]


def settings(folder):
    for configuration, setting, feature in SETTINGS:
        code, text = said(folder, "config", configuration=configuration)
        is_named = code == 1 and setting in text and f"--features {feature}" in text and "hush" not in text
        yield f"{setting} names the feature {feature}", is_named, text
    code, text = said(folder, "documents", "add", "notes")
    yield "so does the command `documents`", code == 1 and "--features documents" in text, text
    code, text = said(folder, "config", variables={"TOOLRACK_EMBEDDINGS_MODEL": "m"})
    yield "and a variable", code == 1 and "TOOLRACK_EMBEDDINGS_MODEL" in text and "--features documents" in text, text
    code, text = said(folder, "--help")
    yield "it is not offered", code == 0 and "documents" not in text, text


def main():
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="small-") as folder:
        command = [environment.TOOLRACK, "serve", "--upstream", "demo", "--listen", "127.0.0.1:0", "--data-dir", folder]
        with environment.running(command, r"(http://127\.0\.0\.1:\d+)/v1") as address:
            checks = [*served(address), *settings(folder)]
    for name, holds, found in checks:
        print(f"{'ok     ' if holds else 'FAILED '} {name}" + ("" if holds else f": {found}"), flush=True)
        passed, failed = passed + bool(holds), failed + (not holds)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
