"""A server with the tools of the example `asking` before a model that has them called, which is started and killed in a folder of its own."""

import itertools
import json
import os
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import environment
import scripted
from checks import expect

PROGRAM = environment.TARGET / "debug/examples/asking"
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
PATIENCE = 40
AMOUNTS = itertools.count(1)


def until(what, look):
    """What `look` gives once that is something."""
    end = time.monotonic() + PATIENCE
    while not (found := look()):
        if time.monotonic() > end:
            raise TimeoutError(f"not after {PATIENCE} s: {what}")
        time.sleep(0.05)
    return found


class Bank:
    """A folder with the settings of a server, which is started and killed in it, and a model that pays."""

    def __init__(self, folder, model, store, more=""):
        self.folder, self.amount = folder, next(AMOUNTS)
        self.log, self.listen = (folder / "log").open("w"), f"127.0.0.1:{environment.free_port()}"
        (folder / "toolrack.toml").write_text(f'upstream = "{model}"\n[user]\nid = "ada"\nlevel = "user"\n[store]\n{store}\n{more}')
        self.start()

    def start(self):
        command = [PROGRAM, "serve", "--listen", self.listen, "--data-dir", "data", "--config", "toolrack.toml"]
        read = (self.folder / "log").stat().st_size
        variables = {name: value for name, value in os.environ.items() if not name.startswith("TOOLRACK_")}
        self.process = subprocess.Popen([str(part) for part in command], cwd=self.folder, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=self.log, env=variables)
        said = lambda: (self.folder / "log").read_text()[read:]

        def address():
            expect(self.process.poll() is None, f"the server has ended: {said()}")
            return said().partition("Chat at ")[2].partition("/ ")[0]

        self.base = until("the server listens", address)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        self.process.terminate()
        self.process.wait(30)

    def ask(self, path, body=None):
        """The status and the reply."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"content-type": "application/json"})
        try:
            with DIRECT.open(request, timeout=PATIENCE) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def got(self, path, body=None):
        status, reply = self.ask(path, body)
        expect(status < 300, f"{path}: {status} {reply}")
        return reply

    def begins(self, wait=300):
        """Begins a turn in which something is to be paid; its stream."""
        body = {**self.conversation(), "stream": True, "toolrack": {"question_wait_seconds": wait}}
        request = urllib.request.Request(self.base + "/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"})
        return DIRECT.open(request, timeout=PATIENCE)

    def conversation(self):
        return {"messages": [{"role": "user", "content": f"Pay {self.amount}."}]}

    def questions(self):
        return self.got("/api/questions")["questions"]

    def question(self, begin):
        """The id of the open question that begins so."""
        found = lambda: [asked["id"] for asked in self.questions() if asked["message"].startswith(begin)]
        return until(begin, found)[0]

    def answer(self, begin, answer):
        asked = self.question(begin)
        self.got(f"/api/questions/{asked}", {"answer": answer})
        return asked

    def again(self):
        """What the model says when the conversation comes again."""
        return self.got("/v1/chat/completions", self.conversation())["choices"][0]["message"]["content"]

    def paid(self):
        """What was paid of this amount."""
        paper = self.folder / "payments"
        return [line for line in paper.read_text().splitlines() if line.startswith(f"{self.amount} EUR")] if paper.exists() else []


class Model:
    """What the model was asked, and what it says: it pays, and repeats what the tool says."""

    def __init__(self):
        self.asked = []

    def script(self, text):
        self.asked.append(text)
        if text == "Report.":
            return "report", {}
        words = str(text).rstrip(".").split()
        return ("pay", {"amount": int(words[1])}) if words[:1] == ["Pay"] else None


@contextmanager
def bank(store, more=""):
    model = Model()
    with scripted.model(model.script) as address, tempfile.TemporaryDirectory(prefix="asking-") as folder:
        made = Bank(Path(folder), address, store, more)
        made.model = model
        try:
            yield made
        finally:
            made.kill()
