"""A model server in OpenAI's form, scripted to write the file that it is asked for with whatever tool the client offers."""

import http.server
import json
import re
import shlex
import threading
from contextlib import contextmanager

# What the question looks like in which the file is named, and what is done with it.
QUESTION = "Create the file {path} with exactly this content: {content}"
ASKED = re.compile(r"Create the file (/[\w./-]+) with exactly this content: ([\w ]+)")

WRITERS = ("write", "write_file", "create_file")
PATHS = ("file_path", "filepath", "path", "filename")
CONTENTS = ("content", "contents", "text")
SHELLS = ("exec_command", "shell", "shell_command", "bash", "run_shell_command")
COMMANDS = ("cmd", "command")


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


def message(request):
    """What the model answers: the call once it is asked and has a tool, and then that it is done."""
    questions = [found for message in request["messages"] if message["role"] == "user" for text in texts(message)
                 for found in ASKED.findall(text)]
    has_result = any(message["role"] == "tool" for message in request["messages"])
    schema = (request.get("response_format") or {}).get("json_schema", {}).get("schema")
    if schema:
        return {"role": "assistant", "content": json.dumps(example(schema))}
    if not questions or not request.get("tools") or has_result:
        return {"role": "assistant", "content": "The file is written."}
    name, found = call(request["tools"], *questions[-1])
    function = {"name": name, "arguments": json.dumps(found)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": function}]}


class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.reply("application/json", json.dumps({"object": "list", "data": [{"id": "writer", "object": "model"}]}))

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
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
        self.faults = []


@contextmanager
def writer():
    """The server; its address, and what it could not do."""
    server = Server()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", server.faults
    finally:
        server.shutdown()
        server.server_close()
