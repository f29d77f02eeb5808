"""A model server that answers as the script of a case says, and keeps what it was asked."""

import http.server
import json
import threading
import time

USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
# An answer that does not end is given up by then, in seconds.
ENDLESS = 30


def say(*pieces, **more):
    """A step that is text, in these pieces."""
    return {"pieces": [{"content": piece} for piece in pieces], "finish": "stop", **more}


def call(*calls, text=None, pieces=1, **more):
    """A step that calls tools: (name, arguments) each, the arguments in that many pieces."""
    deltas = [{"content": text}] if text else []
    for index, (name, arguments) in enumerate(calls):
        whole = json.dumps(arguments)
        size = -(-len(whole) // pieces)
        begin = {"index": index, "id": f"call_{name}_{index}", "type": "function", "function": {"name": name, "arguments": ""}}
        deltas.append({"tool_calls": [begin]})
        deltas += [{"tool_calls": [{"index": index, "function": {"arguments": whole[at:at + size]}}]}
                   for at in range(0, len(whole), size)]
    return {"pieces": deltas, "finish": "tool_calls", **more}


def fail(status, **error):
    """A step that is an error."""
    return {"status": status, "error": {"message": f"scripted {status}", **error}}


def reply(body):
    """A step that is a whole reply, where there is no chat; or what makes it of the request."""
    return {"status": 200, "body": body}


def step_of(messages):
    """How often the model has answered since the user's last words."""
    asked = max((at for at, message in enumerate(messages) if message["role"] == "user"), default=-1)
    return sum(message["role"] == "assistant" for message in messages[asked:])


def whole(step):
    """The completion of a step, for a client that wants it in one."""
    message, calls = {"role": "assistant", "content": ""}, {}
    for delta in step["pieces"]:
        message["content"] += delta.get("content") or ""
        for piece in delta.get("tool_calls", ()):
            known = calls.setdefault(piece["index"], {**piece, "function": {"name": "", "arguments": ""}})
            for field, text in piece["function"].items():
                known["function"][field] += text
    if calls:
        message["tool_calls"] = list(calls.values())
    choice = {"index": 0, "message": message, "finish_reason": step["finish"]}
    return {"object": "chat.completion", "id": "c", "created": 1, "model": "scripted", "choices": [choice], "usage": USAGE}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        models = [{"id": "scripted", "object": "model", "created": 1, "owned_by": "test"}]
        self.reply(200, {"object": "list", "data": models}, {})

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        step = self.server.model.next(request)
        if "status" in step:
            body = step.get("body") or {"error": step["error"]}
            return self.reply(step["status"], body(request) if callable(body) else body, step.get("headers", {}))
        try:
            if request.get("stream"):
                self.stream(step)
            else:
                self.reply(200, whole(step), {})
        except (BrokenPipeError, ConnectionResetError):
            pass
        finally:
            self.close_connection = True
            self.server.model.over()

    def stream(self, step):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for delta in step["pieces"]:
            self.event({"choices": [{"index": 0, "delta": delta}]})
            time.sleep(step.get("pause", 0))
        deadline = time.monotonic() + ENDLESS
        while step.get("endless") and self.server.model.is_played(step) and time.monotonic() < deadline:
            self.event({"choices": [{"index": 0, "delta": {"content": "on "}}]})
            time.sleep(0.01)
        self.event({"choices": [{"index": 0, "delta": {}, "finish_reason": step["finish"]}]})
        self.event({"choices": [], "usage": USAGE})
        self.wfile.write(b"data: [DONE]\n\n")

    def event(self, chunk):
        self.wfile.write(f"data: {json.dumps({'object': 'chat.completion.chunk', 'id': 'c', 'model': 'scripted', **chunk})}\n\n".encode())
        self.wfile.flush()

    def reply(self, status, body, headers):
        self.send_response(status)
        data = json.dumps(body).encode()
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


class Model:
    """The server. `play` sets the script of the next case."""

    def __init__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads, self.server.model = True, self
        self.lock, self.script, self.asked, self.streams = threading.Condition(), [], [], 0
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server.server_port}/v1"

    def play(self, script):
        with self.lock:
            self.script, self.asked = script, []

    def is_played(self, step):
        """Whether a step is still of this case."""
        return any(one is step for one in self.script)

    def next(self, request):
        with self.lock:
            self.asked.append(request)
            messages = request.get("messages", [])
            at = step_of(messages)
            step = self.script[at] if at < len(self.script) else fail(500, code=f"no step {at}")
            self.streams += "status" not in step
        results = [message["content"] for message in messages if message["role"] == "tool"]
        if step.get("repeats") and results:
            return {**step, "pieces": [{"content": f"The tools say: {' and '.join(map(str, results))}"}]}
        return step

    def over(self):
        with self.lock:
            self.streams -= 1
            self.lock.notify_all()

    def is_idle(self, seconds):
        """Whether no answer is being read any more, within that time."""
        with self.lock:
            return self.lock.wait_for(lambda: self.streams == 0, seconds)
