"""The raw route: prompts that are those of llama.cpp itself to the byte, and calls that no parser of the server has read."""

import http.server
import json
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager

import environment
from checks import MARKUP, check, expect

TESTS = environment.REPOSITORY / "llm-bridge" / "templates" / "tests"
ROUTE = '[models."*"]\nroute = "raw"\n[chat]\nsystem_prompt = ""\nsystem_prompt_with_tools = ""\n'
CHAT = ROUTE.replace('"raw"', '"chat"')
SAID = 'Let me see.\n<tool_call>\n{"name": "calculate", "arguments": {"expression": "(17 + 4) * 23"}}\n</tool_call>'
TOOL = {"type": "function", "function": {"name": "set_light", "description": "Sets a light.", "parameters": {
    "type": "object", "properties": {"on": {"type": "boolean"}, "level": {"type": "integer"}}, "required": ["on", "level"]}}}


@contextmanager
def recording(model):
    """An address that passes everything on to `model`, and what was posted there: paths and bodies."""
    posted = []

    class Between(http.server.BaseHTTPRequestHandler):
        def pass_on(self, body=None):
            headers = {"Content-Type": "application/json"}
            try:
                reply = urllib.request.urlopen(urllib.request.Request(model + self.path, body, headers), timeout=120)
            except urllib.error.HTTPError as error:
                reply = error
            with reply:
                data = reply.read()
                self.send_response(reply.status)
                for name in ("Content-Type", "Server"):
                    self.send_header(name, reply.headers.get(name, ""))
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        def do_GET(self):
            self.pass_on()

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            posted.append((self.path, json.loads(body)))
            self.pass_on(body)

        def version_string(self):
            return "llama.cpp"

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Between)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", posted
    finally:
        server.shutdown()


def as_openai(message):
    """A message as clients send it: arguments are text."""
    message = {name: value for name, value in message.items() if name != "thinking"}
    calls = [{**one, "function": {**one["function"], "arguments": json.dumps(one["function"]["arguments"])}}
             for one in message.get("tool_calls", [])]
    return {**message, "tool_calls": calls} if calls else message


def prompts(interpreter, call, template):
    """What the raw route sends is what llama.cpp makes of the same conversation."""
    conversations = json.loads((TESTS / "conversations.json").read_text())
    # The answer of the model is asked for in any case.
    conversations = {name: one for name, one in conversations.items() if name != "finished"}
    templates = {"its own": None, "tags": (TESTS / "templates/tags.jinja").read_text()}
    for title, text in templates.items():
        server = template(interpreter, "raw", text) if text else environment.llama(interpreter, "--ctx", "65536")
        with server as model, recording(model) as (between, posted), \
                environment.toolrack(f"{between}/v1", configuration=ROUTE) as raw, \
                environment.toolrack(f"{between}/v1", configuration=CHAT) as chat:
            for name, conversation in conversations.items():

                @check(f"the prompt is llama.cpp's, template {title}, {name}")
                def _(conversation=conversation):
                    body = {"messages": [as_openai(one) for one in conversation["messages"]], "max_tokens": 1, "seed": 1}
                    if "tools" in conversation:
                        body["tools"] = conversation["tools"]
                    if "others" in conversation:
                        body["chat_template_kwargs"] = conversation["others"]
                    posted.clear()
                    for address in (raw, chat):
                        status, reply = call(f"{address}/v1/chat/completions", {**body, "stream": False})
                        expect(status == 200, f"{status} {reply}")
                    sent = {path: body for path, body in posted if path != "/tokenize"}
                    expect(set(sent) == {"/completion", "/v1/chat/completions"}, f"{[path for path, _ in posted]}")
                    status, theirs = call(f"{model}/apply-template", sent["/v1/chat/completions"])
                    expect(status == 200, theirs)
                    ours, theirs = sent["/completion"]["prompt"], json.loads(theirs)["prompt"]
                    at = next((at for at, pair in enumerate(zip(ours, theirs)) if pair[0] != pair[1]), min(len(ours), len(theirs)))
                    expect(ours == theirs, f"from {at}: {ours[max(at - 60, 0):at + 200]!r} is not {theirs[max(at - 60, 0):at + 200]!r}")


def raw(interpreter, call, ask, finished, for_both, template):
    prompts(interpreter, call, template)
    with environment.llama(interpreter, "--ctx", "65536", "--say", SAID) as model, recording(model) as (between, posted), \
            environment.toolrack(f"{between}/v1", configuration='[models."*"]\nroute = "raw"\n') as address:

        def runs(stream):
            posted.clear()
            got = ask(address, stream)
            expect(all(mark not in got["content"] for mark in MARKUP), got["content"])
            done = finished(got)
            expect(done and done[0]["name"] == "calculate" and "483" in json.dumps(done[0]["result"]), f"{done}")
            expect({path for path, _ in posted} <= {"/completion", "/tokenize"}, f"{[path for path, _ in posted]}")
            expect("483" in posted[-1][1]["prompt"], posted[-1][1]["prompt"][-500:])

        for_both("a text call by the raw route", runs)

    with environment.llama(interpreter, "--ctx", "65536") as model, recording(model) as (between, posted), \
            environment.toolrack(f"{between}/v1", configuration=ROUTE) as address:
        choice = {"type": "function", "function": {"name": "set_light"}}
        for seed in range(3):

            def required(stream, seed=seed):
                posted.clear()
                got = ask(address, stream, tools=[TOOL], tool_choice=choice, max_tokens=600, seed=seed)
                expect(got["finish"] == "tool_calls" and got["calls"], f"{got}")
                expect([path for path, _ in posted if path != "/tokenize"] == ["/completion"], f"{[path for path, _ in posted]}")
                for one in got["calls"] if not stream else []:
                    arguments = json.loads(one["function"]["arguments"])
                    expect(one["function"]["name"] == "set_light" and isinstance(arguments["on"], bool)
                           and isinstance(arguments["level"], int), f"{one}")

            for_both(f"a required call by the raw route, seed {seed}", required)
