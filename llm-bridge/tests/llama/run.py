#!/usr/bin/env python3
"""The server in front of a real llama.cpp server with a tiny model of noise: text calls, native calls, refusals and failures.

    python3 llm-bridge/tests/llama/run.py [NAME ...]     only parts whose name contains one of these

See ../clients/environment.py for the variables. The last line is `N passed, M failed`.
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "clients"), str(HERE.parent / "chats")]
sys.dont_write_bytecode = True
os.environ.setdefault("TOOLRACK_CLIENT", "llama.cpp")

import environment
import every_tool
from checks import MARKUP, check, expect, finish

ARGUMENTS = '{"expression": "(17 + 4) * 23"}'
# What the model writes, and the dialect it is.
SAID = {
    "function tag": "Let me see.\n<function=calculate><parameter=expression>(17 + 4) * 23</parameter></function>",
    "function tag over lines":
        "<function=calculate>\n<parameter=expression>\n(17 + 4) * 23\n</parameter>\n</function>",
    "tool_call tag": 'Let me see.\n<tool_call>\n{"name": "calculate", "arguments": %s}\n</tool_call>' % ARGUMENTS,
    "bare object": '{"name": "calculate", "arguments": %s}' % ARGUMENTS,
    "bare array": '[{"name": "calculate", "arguments": %s}]' % ARGUMENTS,
    "fenced": 'Let me see.\n```json\n{"name": "calculate", "arguments": %s}\n```' % ARGUMENTS,
    "thought before": '<think>A <b>sum</b>.</think><tool_call>{"name": "calculate", "arguments": %s}</tool_call>' % ARGUMENTS,
}
# The dialects of models that people run on this server, as their templates have them.
EXPRESSION = "(17 + 4) * 23"
SAID |= {
    "gemma4": '<|tool_call>call:calculate{expression:<|"|>%s<|"|>}<tool_call|>' % EXPRESSION,
    "mistral": "Let me see.\n[TOOL_CALLS]calculate[ARGS]%s" % ARGUMENTS,
    "llama3_json": '<|python_tag|>{"name": "calculate", "parameters": %s}' % ARGUMENTS,
    "glm47": "Let me see.\n<tool_call>calculate<arg_key>expression</arg_key><arg_value>%s</arg_value></tool_call>" % EXPRESSION,
    "deepseek_v31":
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>calculate<｜tool▁sep｜>%s<｜tool▁call▁end｜><｜tool▁calls▁end｜>" % ARGUMENTS,
    "kimi_k2":
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.calculate:0<|tool_call_argument_begin|>%s"
        "<|tool_call_end|><|tool_calls_section_end|>" % ARGUMENTS,
    "harmony":
        "<|channel|>analysis<|message|>A sum.<|end|><|start|>assistant<|channel|>commentary to=functions.calculate "
        "<|constrain|>json<|message|>%s<|call|>" % ARGUMENTS,
    "minimax_m2":
        '<minimax:tool_call>\n<invoke name="calculate">\n<parameter name="expression">%s</parameter>\n</invoke>\n'
        "</minimax:tool_call>" % EXPRESSION,
    "lfm2": '<|tool_call_start|>[calculate(expression="%s")]<|tool_call_end|>' % EXPRESSION,
    "pythonic": '[calculate(expression="%s")]' % EXPRESSION,
    "phi4_mini_json": 'functools[{"name": "calculate", "arguments": %s}]' % ARGUMENTS,
    "cohere_command": '<|START_ACTION|>[{"tool_name": "calculate", "parameters": %s}]<|END_ACTION|>' % ARGUMENTS,
}
PLAIN = 'Tags like <b>bold</b>, a < b, {"a": [1, 2]} and `code` are text.'
STOPPED = "[Stopped: the model made the same tool call 4 times."
QUESTION = [{"role": "user", "content": "What is (17 + 4) * 23?"}]
# A template whose reasoning the server knows and keeps apart, and one that opens it, which only the operator can know.
REASONS = """{%- for m in messages -%}
{{ m.role + ':\n' }}
{%- if m.role == 'assistant' and m.reasoning_content -%}{{ '<think>\n' + m.reasoning_content + '\n</think>\n\n' }}{%- endif -%}
{{ (m.content or '') + '\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ 'assistant:\n' }}{%- if enable_thinking is defined and not enable_thinking -%}
{{ '<think>\n\n</think>\n\n' }}{%- endif -%}{%- endif -%}"""
OPENS = "{% for m in messages %}{{ m.role + ': ' + (m.content or '') + '\n' }}{% endfor %}assistant:<think>\n"
THOUGHT = "hm, a <b>sum</b>\n"
# A template without tools in it: told in the fields of the API, they are not seen by the model.
NO_TOOLS = "{% for m in messages %}{{ m.role + ': ' + (m.content or '') + '\\n' }}{% endfor %}assistant:"
# A template that refuses them, as some do.
REFUSES = "{% if tools %}{{ raise_exception('this template does not support tools') }}{% endif %}" + NO_TOOLS

DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def call(url, body=None):
    """The status and the body of a reply, as text."""
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    try:
        with DIRECT.open(request, timeout=120) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def ask(address, stream=False, **more):
    """A chat in one form: content, reasoning, finish reason, what happened, usage."""
    body = {"messages": QUESTION, "stream": stream, "seed": 1, **more}
    if stream:
        body["stream_options"] = {"include_usage": True}
    status, text = call(f"{address}/v1/chat/completions", body)
    expect(status == 200, f"{status}: {text}")
    if not stream:
        reply = json.loads(text)
        choice = reply["choices"][0]
        message = choice["message"]
        return {"content": message["content"] or "", "reasoning": message.get("reasoning_content", ""),
                "finish": choice["finish_reason"], "events": reply.get("x_toolrack", []), "usage": reply["usage"],
                "calls": message.get("tool_calls", []), "reply": reply}
    chunks = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    expect(not any("error" in chunk for chunk in chunks), text[-2000:])
    expect(text.rstrip().endswith("data: [DONE]"), text[-2000:])
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    return {"content": "".join(delta.get("content") or "" for delta in deltas),
            "reasoning": "".join(delta.get("reasoning_content") or "" for delta in deltas),
            "finish": chunks[-2]["choices"][0]["finish_reason"],
            "events": [chunk["x_toolrack"] for chunk in chunks if "x_toolrack" in chunk], "usage": chunks[-1]["usage"],
            "calls": [one for delta in deltas for one in delta.get("tool_calls", [])], "reply": chunks}


def finished(got):
    return [event for event in got["events"] if event["type"] == "call_finished"]


def for_both(name, body):
    """The same check of a whole reply and of a stream."""
    for stream in (False, True):
        check(f"{name}, {'streamed' if stream else 'whole'}")(lambda: body(stream))


def text_calls(interpreter):
    """The model writes each form; the tool runs, and nothing of the form is seen."""
    for form, said in SAID.items():
        with environment.llama(interpreter, "--ctx", "32768", "--say", said) as model, \
                environment.toolrack(f"{model}/v1") as address:

            def runs(stream, form=form):
                got = ask(address, stream)
                expect(all(mark not in got["content"] for mark in (*MARKUP, "</think>", "<think>")), got["content"])
                done = finished(got)
                expect([one["success"] for one in done] == [True, True, False, False], f"{done}")
                expect(done[0]["name"] == "calculate" and "483" in json.dumps(done[0]["result"]), f"{done[0]}")
                # The model says the same again and again, which is brought to an end.
                expect(STOPPED in got["content"] and got["finish"] == "stop", f"{got}")
                expect(got["usage"]["completion_tokens"] > 0, f"{got['usage']}")
                if form == "thought before":
                    expect("A <b>sum</b>." in got["reasoning"], f"{got}")

            for_both(f"text call, {form}", runs)

    with environment.llama(interpreter, "--ctx", "32768", "--say", PLAIN) as model, \
            environment.toolrack(f"{model}/v1") as address:

        def plain(stream):
            got = ask(address, stream)
            expect(got["content"] == PLAIN and got["finish"] == "stop" and not got["events"], f"{got}")

        for_both("plain text comes through as it is", plain)


def tag_lines(interpreter):
    """The model writes lines that are calls; what they write down is there, and the lines are not seen."""
    said = "I note that.\nCLAIM: Water is wet.\nLEARNING: factual Ada is on leave."
    with environment.llama(interpreter, "--ctx", "32768", "--say", said) as model, \
            environment.toolrack(f"{model}/v1") as address:

        def writes(stream):
            got = ask(address, stream)
            expect("CLAIM" not in got["content"] and "LEARNING" not in got["content"], got["content"])
            # Calls of one answer are made at once, and either may be the first to finish.
            done = sorted(finished(got)[:2], key=lambda one: one["name"])
            expect([one["name"] for one in done] == ["claim", "learning"] and all(one["success"] for one in done), f"{done}")
            effects = [effect for one in done for effect in one["side_effects"]]
            expect([effect.split("-")[0] for effect in effects]
                   == [f"created:inbox/{kind}/{time.gmtime().tm_year}" for kind in ("claims", "learnings")], f"{effects}")

        for_both("lines that are calls", writes)


def clients_text_call(interpreter):
    """A call of the client's own tool, written as text, comes back to the client as a native call."""
    said = 'One moment.\n<tool_call>\n{"name": "order_state", "arguments": {"order": 4711}}\n</tool_call>'
    tool = {"type": "function", "function": {"name": "order_state", "description": "The state of an order.",
            "parameters": {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]}}}
    with environment.llama(interpreter, "--ctx", "32768", "--say", said) as model, \
            environment.toolrack(f"{model}/v1") as address:

        def comes_back(stream):
            got = ask(address, stream, tools=[tool])
            expect(got["finish"] == "tool_calls" and len(got["calls"]) == 1, f"{got}")
            function = got["calls"][0]["function"]
            expect(function == {"name": "order_state", "arguments": '{"order":4711}'}
                   or json.loads(function["arguments"]) == {"order": 4711}, f"{function}")
            expect(got["content"].strip() == "One moment.", f"{got}")

        for_both("a text call of the client's tool is native for the client", comes_back)


def native_calls(interpreter):
    """The server's own parser and grammars: what it reads as calls is run, and every bundled schema is taken."""
    # Nobody is there to approve what destroys something.
    configuration = "[guard]\napprove_destructive = false\n"
    with (
        environment.llama(interpreter, "--ctx", "32768") as model,
        environment.toolrack(f"{model}/v1", configuration=configuration) as address,
    ):
        status, text = call(f"{address}/api/tools")
        tools = [tool for tool in json.loads(text)["tools"] if tool["enabled"]]
        expect(status == 200 and tools, text)

        def required(stream):
            got = ask(address, stream, tool_choice="required", max_tokens=600)
            started = [event for event in got["events"] if event["type"] == "call_started"]
            expect(started and all(event["dialect"] == "native" for event in started), f"{got}")
            expect(len(finished(got)) == len(started), f"{got}")

        for_both("tool_choice required calls a tool", required)

        def cut_off(stream):
            got = ask(address, stream, tool_choice="required", max_tokens=60)
            expect(got["finish"] == "length" and not finished(got), f"{got}")

        for_both("a call that is cut off at the token limit is not run", cut_off)

        for tool in tools:
            choice = {"type": "function", "function": {"name": tool["name"]}}

            def named(stream, tool=tool, choice=choice):
                got = ask(address, stream, tool_choice=choice, max_tokens=600)
                started = [event for event in got["events"] if event["type"] == "call_started"]
                expect(started and started[0]["name"] == tool["name"], f"{got}")
                expect(isinstance(started[0]["arguments"], dict), f"{started[0]}")

            for_both(f"llama.cpp takes the schema of {tool['name']}", named)

        def none(stream):
            got = ask(address, stream, tool_choice="none", max_tokens=100)
            expect(not got["events"] and got["finish"] in ("stop", "length"), f"{got}")

        for_both("tool_choice none calls nothing", none)

        def fields(stream):
            got = ask(address, stream, tool_choice="none", max_tokens=20)
            text = json.dumps(got["reply"])
            expect('"timings"' in text and '"system_fingerprint"' in text, text[-1500:])

        for_both("the server's own fields pass through", fields)

        @check("a request that llama.cpp refuses is refused with its words")
        def _():
            status, text = call(f"{address}/v1/chat/completions",
                                {"messages": QUESTION, "tool_choice": "none", "temperature": "hot"})
            expect(status in (400, 500, 502) and json.loads(text)["error"]["message"], f"{status} {text}")


def schemas(interpreter):
    """Every bundled schema, also of tools that are off here, given to llama.cpp itself."""
    listed = environment.output([environment.TOOLRACK, "tools", "list", "--json"])
    with environment.llama(interpreter, "--ctx", "32768") as model:
        for tool in json.loads(listed):

            @check(f"llama.cpp makes a grammar of {tool['name']}")
            def _(tool=tool):
                name = tool["name"].replace(".", "_")
                definition = {"type": "function", "function": {
                    "name": name, "description": tool["description"], "parameters": tool["parameters"]}}
                status, text = call(f"{model}/v1/chat/completions", {
                    "messages": QUESTION, "tools": [definition], "tool_choice": "required", "max_tokens": 600, "seed": 1})
                expect(status == 200, f"{status} {text}")


def template(interpreter, name, text, *flags):
    file = environment.CACHE / f"{name}.jinja"
    file.write_text(text)
    return environment.llama(interpreter, "--ctx", "32768", "--template", file, *flags)


def reasoning(interpreter):
    """Reasoning stays apart, whether the server knows it, the operator does, or the text shows it."""

    def apart(address, said):
        def body(stream):
            grammar = "root ::= " + json.dumps(said)
            got = ask(address, stream, tool_choice="none", grammar=grammar)
            expect(got["reasoning"].strip() == THOUGHT.strip() and got["content"].strip() == "Hello there", f"{got}")

        return body

    with template(interpreter, "reasons", REASONS) as model, environment.toolrack(f"{model}/v1") as address:
        said = f"<think>\n{THOUGHT}</think>\n\nHello there"
        check("llama.cpp itself knows the reasoning")(lambda: expect(
            "reasoning_content" in call(f"{model}/v1/chat/completions", {
                "messages": QUESTION, "grammar": "root ::= " + json.dumps(said)})[1], "no field for it"))
        for_both("reasoning that the server knows", apart(address, said))
    with template(interpreter, "opens", OPENS) as model, \
            environment.toolrack(f"{model}/v1", configuration="[chat]\nthinking = true\n") as address:
        for_both("reasoning that the template opens", apart(address, f"{THOUGHT}</think>\n\nHello there"))
    with environment.llama(interpreter, "--ctx", "32768") as model, environment.toolrack(f"{model}/v1") as address:
        for_both("reasoning in the text", apart(address, f"<think>\n{THOUGHT}</think>\n\nHello there"))


def templates(interpreter):
    """Templates that do not know tools, or refuse them."""
    for name, text in (("no tools", NO_TOOLS), ("refuses tools", REFUSES)):
        said = ("--say", SAID["tool_call tag"])
        with template(interpreter, name.replace(" ", "-"), text, *said) as model, \
                environment.toolrack(f"{model}/v1") as address:

            def runs(stream):
                got = ask(address, stream)
                expect(finished(got) and finished(got)[0]["success"], f"{got}")
                expect(all(mark not in got["content"] for mark in MARKUP), got["content"])

            for_both(f"a template that {'has no tools' if text is NO_TOOLS else name}", runs)


def every(interpreter):
    """Each tool of the bundle, called by the model; what has to come of it is in ../chats/tools.toml."""
    with every_tool.folder() as made:
        tools = every_tool.listed(made)
        table = []
        check("every tool of the bundle has a row")(lambda: table.extend(every_tool.rows(tools)))
        for row in table:

            @check(f"{row['name']}, called by the model")
            def _(row=row):
                row = made.fill(row)
                said = json.dumps({"name": row["name"].replace(".", "_"), "arguments": row["arguments"]}, ensure_ascii=False)
                with environment.llama(interpreter, "--ctx", "32768", "--say", f"<tool_call>{said}</tool_call>") as model, \
                        made.serving("admin", "--upstream", f"{model}/v1") as address:
                    text, events = every_tool.ask(address, row["asks"], row.get("approved", False), seed=1)
                every_tool.came_of_it(made, row, events)
                expect(all(mark not in text for mark in MARKUP), text)


PARTS = {"every tool": every, "text calls": text_calls, "tag lines": tag_lines, "client's text calls": clients_text_call, "native calls": native_calls,
         "schemas": schemas, "templates": templates, "reasoning": reasoning}


def main():
    if not environment.TINY_LLAMA.exists():
        print(f"skipped: llama.cpp ({environment.TINY_LLAMA.name} is not beside the repository)")
        print("0 passed, 0 failed")
        return
    interpreter = environment.python("python-llama", HERE / "requirements.txt")
    for name, part in PARTS.items():
        if not sys.argv[1:] or any(word in name for word in sys.argv[1:]):
            try:
                part(interpreter)
            except Exception as error:

                @check(name)
                def _(error=error):
                    raise error
    finish()


if __name__ == "__main__":
    main()
