#!/usr/bin/env python3
"""Open WebUI's server in front of this one: a user signs up, and sees the answers of a scripted model and of tools of the server, by the
requests that its page makes.

    python3 llm-bridge/tests/clients/webui.py

See environment.py for the variables. The last line is `N passed, M failed`.
"""

import json
import os
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from contextlib import contextmanager

sys.dont_write_bytecode = True
os.environ.setdefault("TOOLRACK_CLIENT", "Open WebUI")

import environment
from checks import check, expect, finish
from model import USAGE, Model, call, reply, say
from table import KEY

CALCULATE = ("calculate", {"expression": "(17 + 4) * 23"})
QUESTION = [{"role": "user", "content": "What is (17 + 4) * 23?"}]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
# How long an answer may take that is kept and not sent, in seconds.
PATIENCE = 30


class WebUi:
    """A running one, and a user who is signed in."""

    def __init__(self, address):
        self.address, self.token = address, None
        self.until_up()
        user = {"name": "Ada", "email": "ada@example.org", "password": "Lovelace-1815"}
        self.token = self.json("/api/v1/auths/signup", user)["token"]

    def ask(self, path, body=None, content_type="application/json"):
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content-Type": content_type, **({"Authorization": f"Bearer {self.token}"} if self.token else {})}
        request = urllib.request.Request(self.address + path, data, headers)
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as refused:
            raise AssertionError(f"{path}: {refused.code} {refused.read().decode()[:1000]}") from refused

    def json(self, *arguments):
        return json.loads(self.ask(*arguments))

    def until_up(self):
        """It listens some time after it says that it has started."""
        began = time.monotonic()
        while True:
            try:
                return self.ask("/health")
            except OSError:
                if time.monotonic() - began > PATIENCE:
                    raise
                time.sleep(0.2)

    def until(self, path, holds, body=None):
        """What there is once it holds."""
        began = time.monotonic()
        while not holds(found := self.json(path, body)):
            expect(time.monotonic() - began < PATIENCE, f"{path}: {json.dumps(found)[:2000]}")
            time.sleep(0.2)
        return found


def vectors(request):
    """Embeddings: how often each letter stands in a text."""
    texts = request["input"] if isinstance(request["input"], list) else [request["input"]]
    data = [{"object": "embedding", "index": index, "embedding": [float(text.lower().count(letter)) for letter in LETTERS]}
            for index, text in enumerate(texts)]
    return {"object": "list", "data": data, "model": request["model"], "usage": USAGE}


def checks_of(page, model):
    def asks(path="/api/chat/completions", **more):
        """An answer for which a tool of the server is called."""
        model.play([call(CALCULATE), say("", repeats=True)])
        return page.ask(path, {"model": "scripted", "messages": QUESTION, **more})

    @check("the models are listed, by both APIs")
    def _():
        models = {one["id"] for one in page.json("/api/models")["data"]}
        expect({"scripted", "scripted:plain", "ollama.scripted"} <= models, f"{models}")

    @check("an answer with a tool of the server")
    def _():
        text = json.loads(asks(stream=False))["choices"][0]["message"]["content"]
        expect("483" in text and len(model.asked) == 2, text)

    @check("the same, streamed")
    def _():
        lines = [line[6:] for line in asks(stream=True).splitlines() if line.startswith("data: ")]
        expect(lines.pop() == "[DONE]", lines)
        deltas = [choice["delta"] for line in lines for choice in json.loads(line)["choices"]]
        text = "".join(delta.get("content") or "" for delta in deltas)
        expect("483" in text and not any(delta.get("tool_calls") for delta in deltas), lines)

    @check("a chat of the page is kept, with what the tool did")
    def _():
        question, answer = str(uuid.uuid4()), str(uuid.uuid4())
        message = {"id": question, "role": "user", "content": QUESTION[0]["content"], "parentId": None, "childrenIds": [answer]}
        begun = json.loads(asks(stream=True, parent_id=None, session_id="page", id=answer, user_message=message))

        def is_done(chat):
            return chat["chat"]["history"]["messages"].get(answer, {}).get("done")

        kept = page.until(f"/api/v1/chats/{begun['chat_id']}", is_done)["chat"]["history"]["messages"][answer]
        states = [status["description"] for status in kept["statusHistory"]]
        expect("483" in kept["content"], kept)
        expect(states[0] == "calculate: running" and "done" in states[-1] and kept["statusHistory"][-1]["done"], states)

    @check("a title is asked for without tools, where the model's alias says so (N14)")
    def _():
        model.play([say("A title")])
        said = page.json("/api/v1/tasks/title/completions", {"model": "scripted:plain", "messages": QUESTION, "stream": False})
        expect(said["choices"][0]["message"]["content"] == "A title" and "tools" not in model.asked[0], model.asked)

    @check("an answer by Ollama's API")
    def _():
        lines = [json.loads(line) for line in asks("/ollama/api/chat", model="ollama.scripted", stream=True).splitlines()]
        expect("483" in "".join(line["message"]["content"] for line in lines) and lines[-1]["done"], lines)

    @check("a file is indexed and found, by embeddings of the model server (N6)")
    def _():
        model.play([reply(vectors)])
        edge = "edge-of-the-form"
        head = 'Content-Disposition: form-data; name="file"; filename="house.txt"\r\nContent-Type: text/plain'
        body = f"--{edge}\r\n{head}\r\n\r\nThe keys of the house are under the mat.\r\n--{edge}--\r\n".encode()
        file = page.json("/api/v1/files/?process=true", body, f"multipart/form-data; boundary={edge}")["id"]
        state = page.until(f"/api/v1/files/{file}/process/status", lambda state: state["status"] in ("completed", "failed"))
        expect(state["status"] == "completed", state)
        found = page.json("/api/v1/retrieval/query/doc", {"collection_name": f"file-{file}", "query": "Where are the keys?"})
        expect("under the mat" in json.dumps(found), found)


@contextmanager
def open_webui(address):
    """Open WebUI in front of a server of ours, with a user who is signed in."""
    interpreter = environment.python("python-open-webui", environment.HERE / "requirements-open-webui.txt", options=["--no-deps"])
    with tempfile.TemporaryDirectory(prefix="open-webui-") as data:
        # Nothing is fetched and nothing reported.
        variables = {
            "DATA_DIR": data, "STATIC_DIR": f"{data}/static", "HOME": data, "FROM_INIT_PY": "true", "WEBUI_SECRET_KEY": "test",
            "OFFLINE_MODE": "True", "HF_HUB_OFFLINE": "1", "ANONYMIZED_TELEMETRY": "False", "DO_NOT_TRACK": "true",
            "OPENAI_API_BASE_URL": f"{address}/v1", "OPENAI_API_KEY": KEY, "ENABLE_OLLAMA_API": "False",
            "RAG_EMBEDDING_ENGINE": "openai", "RAG_EMBEDDING_MODEL": "scripted", "RAG_OPENAI_API_BASE_URL": f"{address}/v1",
            "RAG_OPENAI_API_KEY": KEY, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", "PYTHONDONTWRITEBYTECODE": "1",
        }
        port = environment.free_port()
        command = [interpreter, "-m", "uvicorn", "open_webui.main:app", "--host", "127.0.0.1", "--port", str(port)]
        with environment.running_process(command, "(Scheduler worker started)", variables):
            yield WebUi(f"http://127.0.0.1:{port}")


def main():
    model = Model()
    with environment.toolrack(model.address, "--api-key", KEY) as address, open_webui(address) as page:
        # Both APIs have the model; a prefix tells them apart.
        ollama = {"enable": True, "prefix_id": "ollama", "key": KEY}
        page.ask("/ollama/config/update", {
            "ENABLE_OLLAMA_API": True, "OLLAMA_BASE_URLS": [address], "OLLAMA_API_CONFIGS": {"0": ollama}})
        checks_of(page, model)
    finish()


if __name__ == "__main__":
    main()
