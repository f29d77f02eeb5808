"""The tests of the installed wheel; `run.py` builds and installs it."""

import copy
import json
import pickle
import re
import subprocess
import sys
import threading
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PACKAGE.parents[1] / "tests/clients"))

import checks
from checks import check, finish
from toolrack_dialects import Aborted, Call, CallBegin, CallDelta, Frame, Reasoning, Scanner, Text, dialect_names, parse

checks.WHO = "wheel"
EXAMPLES = re.findall(r"```python\n(.*?)```", (PACKAGE / "README.md").read_text(), re.S)
CASES = [json.loads(line) for line in (PACKAGE.parent / "tests/data/dialects.jsonl").read_text().splitlines()]
HERMES = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'


def run(*arguments):
    done = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True)
    assert not done.returncode, done.stdout + done.stderr
    return done.stdout


def refused(error, call):
    """The message with which a call is refused."""
    try:
        call()
    except error as refusal:
        return str(refusal)
    raise AssertionError(f"no {error.__name__}")


@check("the README's examples print what it says")
def _():
    assert run("-c", EXAMPLES[0]) == "Sure.\n\nadd {'a': 1}\n"
    assert run("-c", EXAMPLES[1]).splitlines() == [
        "thinking: Where", "thinking: ?", "text: One mo", "text: ment.", "", 'call: weather {"city":"Oslo"}']


@check("the types are the module's, and the README's examples are well typed")
def _():
    run("-m", "mypy.stubtest", "toolrack_dialects")
    for number, example in enumerate(EXAMPLES):
        file = Path.cwd() / f"example{number}.py"
        file.write_text(example)
        run("-m", "mypy", "--strict", file)


@check("calls are values: they can be copied, sent to other processes and put into sets, and not changed")
def _():
    parsed = parse(HERMES, ["add"])
    copied, deep = pickle.loads(pickle.dumps(parsed)), copy.deepcopy(parsed)
    assert copied.calls == deep.calls == parsed.calls and len({*copied.calls, *parsed.calls}) == 1
    assert (copied.content, copied.reasoning, copied.dialect) == (parsed.content, parsed.reasoning, parsed.dialect)
    assert parsed.calls is parsed.calls and isinstance(parsed.calls, tuple)
    refused(AttributeError, lambda: setattr(parsed.calls[0], "name", "other"))


@check(f"{len(CASES)} cases, whole and in pieces of four characters")
def _():
    for case in CASES:
        text, tools, thinking, expected = case["input"], case["tools"], case.get("thinking", False), case["expect"]
        calls = [(call["name"], call["arguments"]) for call in expected["calls"]]
        whole = parse(text, tools, thinking=thinking)
        assert [(call.name, call.parsed_arguments()) for call in whole.calls] == calls, (case["id"], whole)
        scanner = Scanner(tools, thinking=thinking)
        events = [event for at in range(0, len(text), 4) for event in scanner.push(text[at:at + 4])] + scanner.finish()
        parts = {kind: [event for event in events if isinstance(event, kind)] for kind in (Text, Reasoning, Call)}
        assert parts[Call] == list(whole.calls), case["id"]
        assert "".join(part.text for part in parts[Text]) == whole.content == expected["content"], (case["id"], whole)
        assert "".join(part.text for part in parts[Reasoning]) == whole.reasoning == expected["reasoning"], (case["id"], whole)


@check("a call is announced, and its pieces are its arguments")
def _():
    scanner = Scanner(["add"], deltas=True)
    events = [event for char in HERMES for event in scanner.push(char)] + scanner.finish()
    begins = [event for event in events if isinstance(event, CallBegin)]
    (call,) = [event for event in events if isinstance(event, Call)]
    assert [(begin.index, begin.name, begin.dialect) for begin in begins] == [(0, "add", "hermes")]
    assert "".join(event.arguments for event in events if isinstance(event, CallDelta)) == call.arguments == '{"a": 1}'


@check("what is cut off is aborted and comes back as text, and so does what is too long")
def _():
    scanner = Scanner(["add"], deltas=True)
    events = scanner.push(HERMES[:40]) + scanner.finish()
    assert [event.reason for event in events if isinstance(event, Aborted)] == ["the text ended inside it"], events
    assert "".join(event.text for event in events if isinstance(event, (Text, Frame))) == HERMES[:40]
    scanner = Scanner(["add"], max_call_bytes=64)
    long = HERMES.replace("1", "1" * 100)
    events = scanner.push(long) + scanner.finish()
    assert [event.reason for event in events if isinstance(event, Aborted)] == ["it is too long"], events
    assert "".join(event.text for event in events if isinstance(event, (Text, Frame))) == long


@check("tools in each form, and none")
def _():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    text = "<function=add><parameter=a>1</parameter></function>"
    for tool in ({"type": "function", "function": {"name": "add", "parameters": schema}},
                 {"name": "add", "parameters": schema}, {"name": "add", "input_schema": schema},
                 {"name": "add", "inputSchema": schema}):
        assert parse(text, [tool]).calls[0].parsed_arguments() == {"a": 1}, tool
    for tools in (["add"], ("add",), iter(["add"]), None):
        assert parse(text, tools).calls[0].parsed_arguments() == {"a": "1"}
    bare = '{"name": "add", "arguments": {}}'
    assert parse(bare, ["add"]).calls and not parse(bare, ["other"]).calls and not parse(bare, []).calls


@check("wrong use is refused with a word")
def _():
    assert "dialect_names" in refused(ValueError, lambda: parse("", dialect="nonesuch"))
    assert "hermes" in dialect_names()
    assert "list" in refused(TypeError, lambda: parse("", "add"))
    assert "list" in refused(TypeError, lambda: parse("", {"name": "add"}))
    assert "name" in refused(TypeError, lambda: parse("", [1]))
    assert "name" in refused(ValueError, lambda: parse("", [{"type": "function", "function": {}}]))
    refused(TypeError, lambda: parse("", [{"name": "add", "parameters": object()}]))
    refused(TypeError, lambda: parse(b"bytes"))
    refused(TypeError, lambda: Scanner(max_call_bytes="1"))
    scanner = Scanner()
    scanner.finish()
    assert scanner.finish() == [] and "finished" in refused(RuntimeError, lambda: scanner.push("x"))


@check("values are equal, read only, and shown")
def _():
    call, same = parse(HERMES).calls[0], parse(HERMES).calls[0]
    assert call == same and call != Text and repr(call) == 'Call("add", "{\\"a\\": 1}")', repr(call)
    refused(AttributeError, lambda: setattr(call, "name", "x"))


@check("threads parse at the same time")
def _():
    found = []
    text = HERMES * 200
    threads = [threading.Thread(target=lambda: found.append(len(parse(text, ["add"]).calls))) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert found == [200] * 8


finish()
