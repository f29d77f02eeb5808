"""Every tool of the bundle in a chat: the rows of `tools.toml`, the model that has them as its script, the folder they are asked in, and
what has to come of them."""

import http.server
import json
import subprocess
import tempfile
import threading
import tomllib
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import environment
import scripted
from checks import expect

HERE = Path(__file__).resolve().parent
LEVELS = ["guest", "user", "admin"]
FOUND = {"results": [{"title": "Green tea", "url": "https://tea.example/green",
                      "content": "Green tea is steeped at 75 degrees."}]}
DOCUMENTS = {
    "tea.md": "# Tea\n\n## Green\n\nGreen tea is steeped at 75 degrees for two minutes. Boiling water makes it bitter.\n\n"
              "## Black\n\nBlack tea is steeped at 95 degrees for four minutes.\n",
    "kitchen.md": "# Kitchen\n\nThe Kettle is part of the Kitchen. Ada Lovelace bought the Kettle in 2024.\n",
}
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class SearchEngine(http.server.BaseHTTPRequestHandler):
    """Finds the same for everybody, as SearXNG does."""

    def do_GET(self):
        body = json.dumps(FOUND).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Folder:
    """A folder with documents, a search engine and a model; servers are started in it."""

    def __init__(self, path, engine):
        self.path, self.engine, self.model = path, engine, None
        # The calls that the model writes, by question.
        self.script = {}
        self.values = {"page": f"{engine}/page", "folder": str(path), "job": "no job yet"}

    def settings(self, level, more=""):
        """A configuration for a user of that level."""
        file = self.path / f"{level}.toml"
        file.write_text(f"""
upstream = "{self.model}"
data_dir = "{self.path}/data"

[user]
id = "ada"
level = "{level}"

[limits]
max_identical_calls = 1

[search]
engine = "searxng"
url = "{self.engine}"

[code_executor]
enabled = true
timeout_seconds = 5
{more}""")
        return file

    def toolrack(self, *arguments, level="admin"):
        """What a command prints."""
        command = [environment.TOOLRACK, *arguments, "--config", self.settings(level)]
        done = subprocess.run([str(part) for part in command], cwd=self.path, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        expect(done.returncode == 0, done.stderr)
        return done.stdout

    @contextmanager
    def serving(self, level, *flags):
        command = [environment.TOOLRACK, "serve", "--listen", "127.0.0.1:0", "--config", self.settings(level), *flags]
        with environment.running(command, r"(http://127\.0\.0\.1:\d+)/ ") as address:
            yield address

    def call(self, question):
        """What the model calls for a question."""
        return next((self.fill(call) for asks, call in self.script.items() if self.fill(asks) == question), None)

    def fill(self, value):
        """A row with its `{words}` filled in."""
        if isinstance(value, str):
            for word, text in self.values.items():
                value = value.replace("{%s}" % word, text)
            return value
        if isinstance(value, list):
            return [self.fill(item) for item in value]
        if isinstance(value, dict):
            return {key: self.fill(item) for key, item in value.items()}
        return value


@contextmanager
def folder():
    """The folder, with its documents added, and the model."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), SearchEngine)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(prefix="toolrack-chats-") as path:
        made = Folder(Path(path).resolve(), f"http://127.0.0.1:{server.server_port}")
        (made.path / "documents").mkdir()
        for name, text in DOCUMENTS.items():
            (made.path / "documents" / name).write_text(text)
        with scripted.model(made.call) as made.model:
            made.toolrack("documents", "add", "documents")
            try:
                yield made
            finally:
                server.shutdown()


def listed(made):
    """The tools as the program lists them, by name."""
    return {tool["name"]: tool for tool in json.loads(made.toolrack("tools", "list", "--json"))}


def rows(made, tools):
    """The rows of the table, one for each tool of the bundle; from now on the model knows them."""
    table = tomllib.loads((HERE / "tools.toml").read_text())["tool"]
    names = [row["name"] for row in table]
    bundled = [name for name, tool in tools.items() if tool["source"].startswith("tools/")]
    missing = [name for name in bundled if name not in names]
    expect(not missing, f"tools without a row: {', '.join(missing)}. Add to llm-bridge/tests/chats/tools.toml a table [[tool]] with `name`,"
           " `asks` (what a person writes), the `arguments` of the call, and parts of the `result`; what each is stands at its top")
    unknown = [name for name in names if name not in tools]
    expect(not unknown, f"rows in llm-bridge/tests/chats/tools.toml for tools that are not there: {', '.join(unknown)}")
    expect(len(names) == len(set(names)), f"a tool has two rows: {names}")
    made.script = {row["asks"]: [row["name"], row["arguments"]] for row in table}
    return table


def ask(address, question, approve=False, **more):
    """A streamed chat: the text, and what happened. A person approves what is asked, or refuses it."""
    # Of a client without tools only calls of tools that are offered are calls; the others are its own text.
    own = [{"type": "function", "function": {"name": "clients_own"}}]
    body = {"messages": [{"role": "user", "content": question}], "stream": True, "tools": own, **more}
    request = urllib.request.Request(f"{address}/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    text, events = "", []
    with DIRECT.open(request, timeout=120) as reply:
        for line in reply:
            if not line.startswith(b"data: {"):
                continue
            chunk = json.loads(line[6:])
            expect("error" not in chunk, chunk)
            text += "".join(choice["delta"].get("content") or "" for choice in chunk.get("choices", []))
            event = chunk.get("x_toolrack")
            if event:
                events.append(event)
                if event.get("approval"):
                    answer(address, event["approval"], approve)
    return text, events


def answer(address, approval, approve):
    """Answers an approval as the page does."""
    body = json.dumps({"approve": approve}).encode()
    request = urllib.request.Request(f"{address}/api/approvals/{approval}", body, {"Content-Type": "application/json"})
    with DIRECT.open(request, timeout=20) as reply:
        expect(reply.status == 200, reply.status)


def came_of_it(made, row, events):
    """Checks the first call of a chat against its row."""
    started = [event for event in events if event["type"] == "call_started"]
    finished = [event for event in events if event["type"] == "call_finished"]
    expect(started and finished, f"no call: {events}")
    expect(started[0]["name"] == row["name"], f"{started[0]['name']} is called")
    expect(started[0]["arguments"] == row["arguments"], f"arguments {started[0]['arguments']}")
    expect(finished[0]["success"] is not row.get("refused", False), f"{finished[0]}")
    asked = any(event.get("approval") for event in events)
    expect(asked is row.get("approved", False), f"a person was {'' if asked else 'not '}asked: {events}")
    said = json.dumps(finished[0], ensure_ascii=False, separators=(",", ":"))
    for part in row["result"]:
        expect(part in said or json.dumps(part)[1:-1] in said, f"no `{part}` in {said}")
    effects = finished[0].get("side_effects", [])
    wanted = row.get("effects", [])
    expect(len(effects) == len(wanted) and all(map(str.startswith, effects, wanted)), f"effects {effects}")
    for effect in effects:
        what, place = effect.split(":", 1)
        if place.startswith("job/"):
            if what == "created":
                made.values["job"] = place[4:]
        elif what in ("created", "deleted"):
            expect((made.path / "data" / place).is_file() is (what == "created"), f"{effect}, but the file says otherwise")
