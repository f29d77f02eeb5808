"""A model server that writes the call which its script has for a question, and then repeats what the tool said."""

import http.server
import json
import threading
from contextlib import contextmanager

# How models write a call, in turns.
FORMS = [
    lambda name, arguments: "<tool_call>\n%s\n</tool_call>" % compact({"name": name, "arguments": arguments}),
    lambda name, arguments: "[TOOL_CALLS]%s[ARGS]%s" % (name, compact(arguments)),
    lambda name, arguments: "<|python_tag|>%s" % compact({"name": name, "parameters": arguments}),
    lambda name, arguments: "functools[%s]" % compact({"name": name, "arguments": arguments}),
]


def compact(value):
    return json.dumps(value, ensure_ascii=False)


def written(form, name, arguments):
    """A call as text. In the names that models are given there are no dots."""
    return FORMS[form % len(FORMS)](name.replace(".", "_"), arguments)


class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.reply("application/json", json.dumps({"object": "list", "data": [{"id": "scripted", "object": "model"}]}))

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = self.server.answer(request["messages"])
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        message = {"index": 0, "finish_reason": "stop"}
        if not request.get("stream"):
            whole = {**message, "message": {"role": "assistant", "content": text}}
            return self.reply("application/json", json.dumps({"object": "chat.completion", "choices": [whole], "usage": usage}))
        pieces = [text[at:at + 7] for at in range(0, len(text), 7)]
        chunks = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
        chunks += [{"choices": [{**message, "delta": {}}]}, {"choices": [], "usage": usage}]
        return self.reply("text/event-stream", "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n")

    def reply(self, kind, body):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    """`script` gives the name and the arguments of the call that a question asks for, or nothing."""

    daemon_threads = True

    def __init__(self, script):
        super().__init__(("127.0.0.1", 0), Model)
        self.script, self.asked = script, 0

    def answer(self, messages):
        if messages[-1]["role"] == "tool":
            return f"The tool says: {messages[-1]['content']}"
        call = self.script(messages[-1]["content"])
        if call is None:
            return "The script has no call for that."
        self.asked += 1
        return f"One moment.\n\n{written(self.asked, *call)}"


@contextmanager
def model(script):
    """The server; its address."""
    server = Server(script)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
