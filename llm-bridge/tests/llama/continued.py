"""A conversation of several turns with a tool, of which the client sends back the texts only: each prompt goes on from the one before, and
llama.cpp has what they share in its cache."""

import http.server
import json
import tempfile
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import environment
from checks import check, expect

TURNS = 10
# llama.cpp may read the end of what it has in its cache again.
READ_AGAIN = 64
# How the template of the tiny model ends a prompt with tools, and nothing else: it does not stand before the answer later.
ASKED_TO_CALL = "<|use_tool|>"
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def sent(url, body=None):
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    try:
        with DIRECT.open(request, timeout=120) as reply:
            return reply.status, reply.read(), reply.headers["Content-Type"]
    except urllib.error.HTTPError as error:
        return error.code, error.read(), error.headers["Content-Type"]


@contextmanager
def recorded(model):
    """The model server behind an address that keeps each question, as a chat or as a prompt, with the chunks of its answer."""
    chats = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def reply(self, body=None):
            status, text, kind = sent(model + self.path, body)
            if body is not None and status == 200 and self.path.endswith(("/chat/completions", "/completion")):
                lines = text.decode().splitlines()
                chats.append((body, [json.loads(line[6:]) for line in lines if line.startswith("data: {")]))
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def do_GET(self):
            self.reply()

        def do_POST(self):
            self.reply(self.rfile.read(int(self.headers["Content-Length"])))

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", chats
    finally:
        server.shutdown()


def tokens(model, body):
    """The prompt of a request, in tokens."""
    prompt = json.loads(body).get("prompt")
    if prompt is None:
        status, text, _ = sent(f"{model}/apply-template", body)
        expect(status == 200, f"{status} {text}")
        prompt = json.loads(text)["prompt"]
    whole = {"content": prompt, "add_special": True, "parse_special": True}
    return json.loads(sent(f"{model}/tokenize", whole)[1])["tokens"]


def shared(one, other):
    """How many tokens two prompts begin with alike."""
    return next((at for at, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))


def read_again(model, chats):
    """Of each prompt but the first: how many tokens it shares with the one before, and how many of these were read again."""
    prompts = [tokens(model, body) for body, _ in chats]
    common = [shared(*pair) for pair in zip(prompts, prompts[1:])]
    timings = [next(chunk["timings"] for chunk in reversed(chunks) if "timings" in chunk) for _, chunks in chats]
    expect([one["cache_n"] + one["prompt_n"] for one in timings] == [len(prompt) for prompt in prompts], f"{timings}")
    cached = [one["cache_n"] for one in timings[1:]]
    return [(had, had - kept) for had, kept in zip(common, cached)]


def messages(body):
    """The conversation as it was written."""
    text = body.decode()
    begin = text.index('"messages":') + len('"messages":')
    return text[begin:begin + json.JSONDecoder().raw_decode(text[begin:])[1]]


@contextmanager
def serving(upstream, folder):
    command = [environment.TOOLRACK, "serve", "--upstream", f"{upstream}/v1", "--listen", "127.0.0.1:0",
               "--data-dir", folder, "--config", f"{folder}/toolrack.toml"]
    with environment.running(command, r"(http://127\.0\.0\.1:\d+)/ ") as address:
        yield address


def converse(upstream, configuration, **wishes):
    """Ten turns, with a restart after the fifth."""
    with tempfile.TemporaryDirectory(prefix="toolrack-") as folder:
        Path(folder, "toolrack.toml").write_text(configuration)
        said = []
        for half in range(2):
            with serving(upstream, folder) as address:
                for turn in range(TURNS // 2):
                    said.append({"role": "user", "content": f"Question {half * TURNS // 2 + turn}: what is it?"})
                    body = {"messages": said, "max_tokens": 400, "seed": turn, "toolrack": {"allowed_tools": ["calculate"]}, **wishes}
                    status, text, _ = sent(f"{address}/v1/chat/completions", body)
                    expect(status == 200, f"{status} {text}")
                    content = json.loads(text)["choices"][0]["message"]["content"].strip()
                    said.append({"role": "assistant", "content": content})


def transcripts(interpreter):
    with environment.llama(interpreter, "--ctx", "65536") as model, recorded(model) as (upstream, chats):

        @check("each prompt goes on from the one before, and llama.cpp has it in its cache")
        def _():
            converse(upstream, "")
            called = sum('"tool_calls"' in json.dumps(chunks) for _, chunks in chats)
            expect(called >= TURNS // 2, f"only {called} calls")
            for (one, _), (other, _) in zip(chats, chats[1:]):
                expect(messages(other).startswith(messages(one)[:-1]), f"{messages(one)}\n{messages(other)}")
            figures = read_again(model, chats)
            expect(all(again <= READ_AGAIN for _, again in figures), f"(shared, read again): {figures}")
            had = sum(had for had, _ in figures)
            print(f"  {len(chats)} prompts share {had} tokens with the one before; at most "
                  f"{max(again for _, again in figures)} of one were read again", flush=True)
            chats.clear()

        @check("without transcripts a prompt does not go on from the one before")
        def _():
            converse(upstream, "[conversations]\ntranscripts = false\n")
            goes_on = [messages(other).startswith(messages(one)[:-1]) for (one, _), (other, _) in zip(chats, chats[1:])]
            expect(not all(goes_on), f"{goes_on}")
            had = sum(had for had, _ in read_again(model, chats))
            print(f"  {len(chats)} prompts share {had} tokens with the one before", flush=True)
            chats.clear()

        @check("by the raw route, too, each prompt goes on from the one before, and llama.cpp has it in its cache")
        def _():
            converse(upstream, '[models."*"]\nroute = "raw"\n', tool_choice="required", parallel_tool_calls=False)
            asked = [json.loads(body)["prompt"] for body, _ in chats]
            expect(len(asked) >= 2 * TURNS, f"only {len(asked) - TURNS} calls")
            answered = ["".join(chunk.get("content", "") for chunk in chunks) for _, chunks in chats]
            for one, answer, other in zip(asked, answered, asked[1:]):
                begun = one.removesuffix(ASKED_TO_CALL) + (answer.rstrip() if one.endswith(ASKED_TO_CALL) else "")
                expect(other.startswith(begun), f"after {begun[-200:]!r} comes {other[len(begun) - 200:]!r}")
            figures = read_again(model, chats)
            expect(all(again <= READ_AGAIN for _, again in figures), f"(shared, read again): {figures}")
            print(f"  {len(asked)} prompts share {sum(had for had, _ in figures)} tokens with the one before; at most "
                  f"{max(again for _, again in figures)} of one were read again", flush=True)
            chats.clear()
