"""A model server in OpenAI's form, scripted to ask Toolrack for the time, and then to write the file that it is asked for with
whatever tool the client offers. It thinks before each call."""

import http.server
import json
import re
import shlex
import threading
import uuid
from contextlib import contextmanager

# What the question looks like in which the file is named, and what is done with it.
QUESTION = "Create the file {path} with exactly this content: {content}"
ASKED = re.compile(r"Create the file (/[\w./-]+) with exactly this content: ([\w ]+)")

WRITERS = ("write", "write_file", "create_file")
PATHS = ("file_path", "filepath", "path", "filename")
CONTENTS = ("content", "contents", "text")
SHELLS = ("exec_command", "shell", "shell_command", "bash", "run_shell_command")
COMMANDS = ("cmd", "command")
# A tool of Toolrack itself, which takes no arguments.
SERVER_TOOL = "current_time"


class Unsuitable(Exception):
    """No tool of the request writes a file."""


def example(schema):
    """Any value that fits a schema."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "string")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        return {name: example(schema.get("properties", {}).get(name, {})) for name in schema.get("required", [])}
    return {"string": "writing a file", "boolean": False, "integer": 1, "number": 1, "array": []}.get(kind)


def arguments(schema, known):
    """Arguments for a tool with this schema: `known` is a list of (names of a parameter, its value). None where one has no place."""
    properties, found = schema.get("properties", {}), example(schema)
    for names, value in known:
        name = next((name for name in properties if name.lower() in names), None)
        if name is None:
            return None
        found[name] = [*value] if properties[name].get("type") == "array" else value if isinstance(value, str) else shlex.join(value)
    return found


def call(tools, path, content):
    """Name and arguments of the call that writes the file: of a tool for it, or else of a shell."""
    functions = [tool["function"] for tool in tools if tool["type"] == "function"]
    command = ["sh", "-c", f"printf %s {shlex.quote(content)} > {shlex.quote(path)}"]
    for wanted, known in (
        (WRITERS, [(PATHS, path), (CONTENTS, content)]),
        (SHELLS, [(COMMANDS, command)]),
    ):
        for function in functions:
            if function["name"].lower() in wanted:
                found = arguments(function.get("parameters", {}), known)
                if found is not None:
                    return function["name"], found
    raise Unsuitable(f"none of {[function['name'] for function in functions]} writes a file")


def texts(message):
    content = message.get("content") or ""
    return [content] if isinstance(content, str) else [part.get("text", "") for part in content]


def has_result(request):
    """Whether the conversation has a result of the server's tool."""
    calls = [call for message in request["messages"] for call in message.get("tool_calls") or []]
    ids = {call["id"] for call in calls if call["function"]["name"] == SERVER_TOOL}
    return any(message.get("tool_call_id") in ids for message in request["messages"])


def calling(name, found):
    """An answer that thinks and calls a tool."""
    function = {"name": name, "arguments": json.dumps(found)}
    calls = [{"id": f"call_{uuid.uuid4().hex}", "type": "function", "function": function}]
    return {"role": "assistant", "reasoning_content": f"I need {name}.", "content": None, "tool_calls": calls}


def message(request):
    """What the model answers to the question: a call of a tool of the server, one of the client's tool that writes, and a text."""
    questions = [found for message in request["messages"] if message["role"] == "user" for text in texts(message)
                 for found in ASKED.findall(text)]
    schema = (request.get("response_format") or {}).get("json_schema", {}).get("schema")
    if schema:
        return {"role": "assistant", "content": json.dumps(example(schema))}
    tools = request.get("tools") or []
    called = {call["function"]["name"] for message in request["messages"] for call in message.get("tool_calls") or []}
    if questions and SERVER_TOOL not in called and any(tool["function"]["name"] == SERVER_TOOL for tool in tools):
        return calling(SERVER_TOOL, {})
    # Requests for a title have the question and no tool of the client.
    if questions and tools and called <= {SERVER_TOOL}:
        return calling(*call(tools, *questions[-1]))
    return {"role": "assistant", "content": "The file is written."}


class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.reply("application/json", json.dumps({"object": "list", "data": [{"id": "writer", "object": "model"}]}))

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked_back |= has_result(request)
        try:
            answer = message(request)
        except Unsuitable as error:
            self.server.faults.append(str(error))
            answer = {"role": "assistant", "content": str(error)}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        reason = "tool_calls" if "tool_calls" in answer else "stop"
        if not request.get("stream"):
            choice = {"index": 0, "finish_reason": reason, "message": answer}
            return self.reply("application/json", json.dumps({"object": "chat.completion", "choices": [choice], "usage": usage}))
        for index, tool_call in enumerate(answer.get("tool_calls", [])):
            tool_call["index"] = index
        chunks = [{"choices": [{"index": 0, "delta": answer}]}, {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
                  {"choices": [], "usage": usage}]
        body = "".join(f"data: {json.dumps({'object': 'chat.completion.chunk', **chunk})}\n\n" for chunk in chunks)
        self.reply("text/event-stream", body + "data: [DONE]\n\n")

    def reply(self, kind, body):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Model)
        self.url = f"http://127.0.0.1:{self.server_port}/v1"
        # What no tool of a request could do.
        self.faults = []
        # Whether a result of the server's tool has come since this was reset.
        self.asked_back = False


@contextmanager
def writer():
    """The server."""
    server = Server()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
