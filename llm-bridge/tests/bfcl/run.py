#!/usr/bin/env python3
"""BFCL's multi-turn categories, executed and scored by BFCL's own code: a model gets through Toolrack at least what it gets without.

The model is a script that knows the right calls and writes them natively, or in a dialect as text. What it is scored for is what its
client could read. Without Toolrack that is nothing of a call in text.

    TOOLRACK_EVERY_ENTRY=1   all 800 entries; otherwise one of 20
    run.py [WORD]            only the ways with the word in their names
"""

import ast
import json
import os
import sys
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "clients"))
sys.dont_write_bytecode = True
os.environ.setdefault("TOOLRACK_CLIENT", "BFCL")

import environment
from checks import check, expect, finish

CATEGORIES = ("base", "long_context", "miss_func", "miss_param")
FILES = {"GorillaFileSystem": "gorilla_file_system", "MathAPI": "math_api", "MessageAPI": "message_api", "TwitterAPI": "posting_api",
         "TicketAPI": "ticket_api", "TradingBot": "trading_bot", "TravelAPI": "travel_booking", "VehicleControlAPI": "vehicle_control"}
TYPES = {"dict": "object", "float": "number", "tuple": "array"}
# What BFCL says where functions come later.
MORE = "I have updated some more functions you can choose from. What about now?"
# How many answers of a turn a client takes.
MOST_STEPS = 20


def as_json(call):
    return json.dumps({"name": call[0], "arguments": call[1]})


def as_tags(call):
    values = [(name, value if isinstance(value, str) else json.dumps(value)) for name, value in call[1].items()]
    parameters = "".join(f"<parameter={name}>\n{value}\n</parameter>\n" for name, value in values)
    return f"<tool_call>\n<function={call[0]}>\n{parameters}</function>\n</tool_call>"


def as_python(call):
    return f"{call[0]}({', '.join(f'{name}={value!r}' for name, value in call[1].items())})"


# How calls are written as text: each of an answer.
DIALECTS = {
    "hermes": lambda calls: "\n".join(f"<tool_call>\n{as_json(call)}\n</tool_call>" for call in calls),
    "qwen3_coder": lambda calls: "\n".join(map(as_tags, calls)),
    "pythonic": lambda calls: f"[{', '.join(map(as_python, calls))}]",
    "mistral": lambda calls: f"[TOOL_CALLS][{', '.join(map(as_json, calls))}]",
    "bare_json": lambda calls: "\n".join(map(as_json, calls)),
}


class Script:
    """A model that answers what is next in its script, over OpenAI's chat completions."""

    def __init__(self):
        self.answers, self.dialect = [], None
        script = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self.reply({"object": "list", "data": [{"id": "script", "object": "model", "created": 0, "owned_by": "script"}]})

            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                if not self.path.endswith("/chat/completions"):
                    self.send_error(404)
                    return
                calls = script.answers.pop(0) if script.answers else []
                message = {"role": "assistant", "content": None if calls else "Done."}
                if calls and script.dialect:
                    message["content"] = "I call.\n" + DIALECTS[script.dialect](calls)
                elif calls:
                    message["tool_calls"] = [{"id": f"c{time.monotonic_ns()}{at}", "type": "function", "function": {
                        "name": name, "arguments": json.dumps(arguments)}} for at, (name, arguments) in enumerate(calls)]
                self.reply({"id": "a", "object": "chat.completion", "created": 0, "model": "script", "choices": [
                    {"index": 0, "message": message, "finish_reason": "tool_calls" if "tool_calls" in message else "stop"}]})

            def reply(self, value):
                body = json.dumps(value).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def openai_schema(schema):
    """A schema of BFCL as OpenAI has it."""
    if isinstance(schema, list):
        return [openai_schema(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: openai_schema(value) for name, value in schema.items()}
    if isinstance(made.get("type"), str):
        made["type"] = TYPES.get(made["type"], made["type"])
        if made["type"] == "any":
            del made["type"]
    return made


class Data:
    """The entries, with their functions and the right calls."""

    def __init__(self):
        import bfcl_eval

        folder = Path(bfcl_eval.__file__).parent / "data"
        rows = lambda path: [json.loads(line) for line in path.read_text().splitlines() if line]
        self.functions = {name: rows(folder / "multi_turn_func_doc" / f"{file}.json") for name, file in FILES.items()}
        self.entries, step = [], 1 if os.environ.get("TOOLRACK_EVERY_ENTRY") else 20
        for category in CATEGORIES:
            name = f"BFCL_v4_multi_turn_{category}.json"
            truths = {row["id"]: row["ground_truth"] for row in rows(folder / "possible_answer" / name)}
            self.entries += [(entry, truths[entry["id"]]) for entry in rows(folder / name)[::step]]

    def of(self, entry):
        return [function for name in entry["involved_classes"] for function in self.functions[name]]


def read_call(text, functions):
    """The name and the arguments of a call in Python."""
    call = ast.parse(text, mode="eval").body
    names = next((list(function["parameters"]["properties"]) for function in functions if function["name"] == call.func.id), [])
    arguments = dict(zip(names, map(ast.literal_eval, call.args)))
    return call.func.id, arguments | {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}


# How often a server had an error in place of an answer.
ERRORS = {}


def ask(address, model, messages, tools):
    """The message of the answer; `None` where there is an error."""
    body = json.dumps({"model": model, "messages": messages, "tools": tools, "max_tokens": 200, "seed": 1}).encode()
    request = urllib.request.Request(f"{address}/chat/completions", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)["choices"][0]["message"]
    except urllib.error.HTTPError as error:
        ERRORS[address] = ERRORS.get(address, 0) + 1
        print(f"  {error.code}: {error.read()[:200]!r}", flush=True)
        return None


def converse(data, entry, truth, address, model, script, way):
    """The calls of a conversation: of each turn, of each answer."""
    from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils import execute_multi_turn_func_call

    functions, later = data.of(entry), entry.get("missed_function", {})
    missing = {name for names in later.values() for name in names}
    messages, turns = [], []
    for at, question in enumerate(entry["question"]):
        missing -= set(later.get(str(at), []))
        tools = [{"type": "function", "function": {
            "name": function["name"], "description": function["description"], "parameters": openai_schema(function["parameters"])}}
            for function in functions if function["name"] not in missing]
        messages += question or [{"role": "user", "content": MORE}]
        # One entry's answer calls a function that is not there yet.
        calls = [call for call in (read_call(call, functions) for call in truth[at]) if call[0] not in missing]
        # Half of the turns all at once, half one after another.
        script.answers = [calls] if at % 2 else [[call] for call in calls]
        steps = []
        for _ in range(MOST_STEPS):
            message = ask(address, model, messages, tools)
            if message is None:
                break
            messages.append({name: value for name, value in message.items() if name in ("role", "content", "tool_calls")})
            made = message.get("tool_calls") or []
            if not made:
                break
            try:
                steps.append([as_python((call["function"]["name"], json.loads(call["function"]["arguments"]))) for call in made])
            except ValueError:
                # What is no JSON cannot be executed, and ends the turn, as BFCL has it.
                break
            results, _ = execute_multi_turn_func_call(
                steps[-1], entry["initial_config"], entry["involved_classes"], way, entry["id"], "long_context" in entry["id"])
            messages += [{"role": "tool", "tool_call_id": call["id"], "content": result} for call, result in zip(made, results)]
        turns.append(steps)
    return turns


def score(data, address, model, script, way, entries):
    """How many entries BFCL takes for right."""
    from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker import multi_turn_checker

    right, wrong = 0, []
    for entry, truth in entries:
        turns = converse(data, entry, truth, address, model, script, way)
        result = multi_turn_checker(turns, truth, entry, entry["id"].rsplit("_", 1)[0], way)
        right += result["valid"]
        if not result["valid"]:
            wrong.append((entry["id"], str(result.get("error_message"))[:200]))
    print(f"  {way}: {right} of {len(entries)}", flush=True)
    return right, wrong


def play():
    data, script = Data(), Script()
    words = [word for word in sys.argv[1:] if word != "--inside"]
    wanted = lambda name: not words or any(word in name for word in words)
    entries = data.entries
    with environment.toolrack(script.address) as toolrack:
        address, model = f"{toolrack}/v1", "script:plain"
        script.dialect = None
        direct, wrong = score(data, script.address, "script", script, "direct", entries)

        if wanted("native"):
            @check(f"native calls get through Toolrack what they get without: {direct} of {len(entries)}")
            def _():
                through, wrong = score(data, address, model, script, "through", entries)
                expect(through >= direct > 0, f"{through}: {wrong[:5]}")

        for dialect in filter(wanted, DIALECTS):
            script.dialect = dialect
            lost, _ = score(data, script.address, "script", script, f"direct_{dialect}", entries[::20])

            @check(f"calls in {dialect} get what native ones get: {direct}, and without Toolrack {lost} of {len(entries[::20])}")
            def _():
                through, wrong = score(data, address, model, script, f"through_{dialect}", entries)
                expect(through >= direct, f"{through}: {wrong[:5]}")

    if wanted("noise") and environment.TINY_LLAMA.exists():
        interpreter = environment.python("python-llama", HERE.parent / "llama" / "requirements.txt")
        few = entries[::max(1, len(entries) // 8)]
        with environment.llama(interpreter, "--ctx", "131072") as model, environment.toolrack(f"{model}/v1") as toolrack:

            @check("noise gets through Toolrack what it gets without")
            def _():
                script.dialect = None
                direct, _ = score(data, f"{model}/v1", "noise", script, "noise", few)
                through, wrong = score(data, f"{toolrack}/v1", "noise:plain", script, "noise_through", few)
                expect(through >= direct, f"{through} of {direct}: {wrong[:5]}")
                expect(f"{toolrack}/v1" not in ERRORS, f"errors: {ERRORS}")
    return finish()


def main():
    if "--inside" in sys.argv:
        return play()
    # Most of what the package wants is for asking models.
    interpreter = environment.python("python-bfcl", HERE / "requirements.txt", options=("--no-deps",))
    os.execv(interpreter, [str(interpreter), __file__, "--inside", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
