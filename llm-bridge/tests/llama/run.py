#!/usr/bin/env python3
"""The server in front of a real llama.cpp server with a tiny model of noise: text calls, native calls, refusals and failures.

    python3 llm-bridge/tests/llama/run.py [NAME ...]     only parts whose name contains one of these; "packaged templates" only so

See ../clients/environment.py for the variables. The last line is `N passed, M failed`.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "clients"), str(HERE.parent / "chats")]
sys.dont_write_bytecode = True
os.environ.setdefault("TOOLRACK_CLIENT", "llama.cpp")

import constrained
import continued
import doctor
import environment
import every_tool
import opened
import packaged
import raw
import tries
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
# A template without tools in it: reported in the fields of the API, they are not seen by the model.
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
                expect(STOPPED in got["content"] and got["finish"] == "length", f"{got}")
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


def crowded(interpreter):
    """All bundled tools before a model whose context has no room for them: a token is about a character here. What is hidden is called by its
    name; beside the rest of a turn that the model makes of one text there is no more room, so the context ends it."""
    for context in (2560, 4096):
        with environment.llama(interpreter, "--ctx", str(context), "--say", PLAIN) as model, \
                environment.toolrack(f"{model}/v1") as address:

            def answers(stream):
                got = ask(address, stream)
                expect(got["content"] == PLAIN and got["finish"] == "stop" and not got["events"], f"{got}")

            for_both(f"a context of {context} tokens has room beside the tools", answers)

    with environment.llama(interpreter, "--ctx", "4096", "--say", SAID["tool_call tag"]) as model, \
            environment.toolrack(f"{model}/v1") as address:

        def calls(stream):
            done = finished(ask(address, stream))
            expect(done and done[0]["name"] == "calculate" and "483" in json.dumps(done[0]["result"]), f"{done}")

        for_both("a tool without room in the context is called", calls)


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
            # Here a character is about a token, and the name alone is more than these.
            named = {"type": "function", "function": {"name": "file_manager.create_document"}}
            got = ask(address, stream, tool_choice=named, max_tokens=20)
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


def deep_analysis(interpreter):
    """A tool that asks the model itself: each step reported over SSE, its bounds, citations, and an end when the client goes away. And names
    and relations that the model draws from documents: of noise nothing is kept."""
    call_it = '<tool_call>\n%s\n</tool_call>' % json.dumps(
        {"name": "deep_analysis", "arguments": {"question": "How are documents searched, and what is a stream of events?"}})
    # Twice more than an answer may have. It is a list of searches as well, and cites a passage that is there and one that is not.
    said = "documents and events [1] [99]\n" * 300

    def in_folder(folder, *arguments, stop_after=None):
        """What the program says, with the documents of that folder."""
        command = [environment.TOOLRACK, *arguments, "--config", f"{folder}/toolrack.toml", "--data-dir", folder]
        process = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        if stop_after is not None:
            time.sleep(stop_after)
            process.send_signal(signal.SIGINT)
        text, _ = process.communicate(timeout=120)
        return process.returncode, text

    def slot(model):
        """What llama.cpp is at: whether it writes, and for which question."""
        (slot,) = json.loads(call(f"{model}/slots")[1])
        return slot["is_processing"], slot.get("id_task")

    def events(address, **more):
        """The tools' events of a streamed chat that calls the tool, each with the time at which it came. Whoever stops reading goes away."""
        body = {"messages": QUESTION, "stream": True, "seed": 1, "grammar": "root ::= " + json.dumps(call_it),
                # Beside a grammar only tools that are named are offered.
                "toolrack": {"allowed_tools": ["deep_analysis"]}, **more}
        request = urllib.request.Request(f"{address}/v1/chat/completions", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with DIRECT.open(request, timeout=120) as reply:
            for line in reply:
                if line.startswith(b"data: {"):
                    event = json.loads(line[6:]).get("x_toolrack")
                    if event:
                        yield time.monotonic(), event

    with tempfile.TemporaryDirectory(prefix="toolrack-documents-") as folder:
        settings = f'[documents]\nfile = "{folder}/documents.db"\n[chat]\ntool_style = "prompt"\n'
        Path(folder, "toolrack.toml").write_text(settings)
        pages = Path(folder, "pages")
        shutil.copytree(environment.REPOSITORY / "docs", pages)
        code, reported = in_folder(folder, "documents", "add", pages)
        expect(code == 0, reported)

        with environment.llama(interpreter, "--ctx", "65536", "--say", said) as model, \
                environment.toolrack(f"{model}/v1", configuration=settings) as address:
            took = {}

            @check("each step of a deep analysis is reported, and its answer is cut at its bound")
            def _():
                got = []
                for at, event in events(address):
                    got.append((at, event))
                    if event["type"] == "call_finished":
                        break
                steps = [event["message"].split('"')[0] for _, event in got if event["type"] == "call_status"]
                expect(steps[0] == "Splitting the question" and steps[-1].startswith("Writing the answer from"), f"{steps}")
                expect(steps.count("Searching the documents for ") == 2, f"what was searched for is not searched for again: {steps}")
                expect(any(step.startswith("Reading ") for step in steps), f"{steps}")
                result = got[-1][1]["result"]
                expect(result["truncated"] and len(result["answer"]) <= 4000 * 4, f"{len(result['answer'])}")
                expect("[1]" in result["answer"] and "[99]" not in result["answer"], result["answer"][:200])
                expect([source["number"] for source in result["sources"]] == [1], f"{result['sources']}")
                expect(result["sources"][0]["source"].startswith(folder) and result["sources"][0]["place"], f"{result['sources']}")
                writing = next(at for at, event in got if event.get("message", "").startswith("Writing"))
                took["writing"] = got[-1][0] - writing

            @check("who goes away ends a deep analysis, and llama.cpp writes no more")
            def _():
                chat = events(address)
                next(at for at, event in chat if event.get("message", "").startswith("Writing"))
                while not slot(model)[0]:
                    time.sleep(0.01)
                chat.close()
                gone = time.monotonic()
                while slot(model)[0]:
                    expect(time.monotonic() - gone < 10, "it writes on")
                    time.sleep(0.02)
                ended, (_, task) = time.monotonic() - gone, slot(model)
                expect(ended < took["writing"] / 2, f"after {ended:.2f} s, where it writes for {took['writing']:.2f} s")
                time.sleep(1)
                expect(slot(model) == (False, task), "it was asked again")

        # Here a character is about a token: room for a few passages only.
        with environment.llama(interpreter, "--ctx", "4096", "--say", "documents and events [1]") as model:

            @check("a deep analysis reads less where the model has no room")
            def _():
                code, reported = in_folder(folder, "call", "deep_analysis", '{"question": "documents, tools, events, servers"}',
                                       "--upstream", f"{model}/v1")
                expect(code == 0 and "That was too much for the model: reading " in reported, reported)
                expect('"answer": "documents and events [1]"' in reported and '"success": true' in reported, reported)

        with environment.llama(interpreter, "--ctx", "32768") as model:

            @check("an analysis by noise ends within its bounds")
            def _():
                for question in ("documents and events", "What is a tool, a plugin, a source and a module?"):
                    code, reported = in_folder(folder, "call", "deep_analysis", json.dumps({"question": question}),
                                           "--upstream", f"{model}/v1")
                    expect(reported.count("Searching the documents for") <= 12 and reported.count("Writing the answer from") <= 1, reported)
                    expect(code == 0 or "wrote no answer" in reported, reported)

            @check("an extraction that is stopped goes on, and of noise nothing is kept")
            def _():
                known = in_folder(folder, "call", "graph_search", '{"entity": "SQLite"}')
                code, reported = in_folder(folder, "documents", "extract", "--upstream", f"{model}/v1", stop_after=2)
                done = re.search(r"(\d+) passages read, 0 names and 0 relations found, (\d+) tokens", reported)
                left = re.search(r"stopped with (\d+) passages to go", reported)
                expect(code == 1 and done and left and int(done[1]) > 0 and int(done[2]) > 0, reported)
                code, reported = in_folder(folder, "documents", "extract", "--upstream", f"{model}/v1")
                rest = re.search(r"(\d+) passages read, 0 names and 0 relations found", reported)
                # One may have been kept in the moment of the stop.
                expect(code == 0 and rest and int(left[1]) - int(rest[1]) in (0, 1), f"{code}: {left[0]}, then {reported}")
                again = in_folder(folder, "call", "graph_search", '{"entity": "SQLite"}')
                # No name is known, so the search is off, as it was before.
                for code, reported in (known, again):
                    expect(code == 1 and "no model has extracted names" in reported, reported)

        note = Path(folder, "note.txt")
        note.write_text("At noon green tea is steeped at 75 degrees, as old Ada Lovelace says.\n")
        answer = ('Here you are:\n```json\n{"name": "ada lovelace", "kind": "Person"}\n{"name": "Grace Hopper", "kind": "person"}\n'
                  '{"subject": "green tea", "relation": "is steeped at", "object": "75 degrees"}\n{"subject": "green t')
        with environment.llama(interpreter, "--ctx", "8192", "--say", answer) as model:

            @check("names and relations that the model draws are found, and what it makes up is not")
            def _():
                expect(in_folder(folder, "documents", "add", note)[0] == 0, "not added")
                code, reported = in_folder(folder, "documents", "extract", note, "--upstream", f"{model}/v1")
                expect(code == 0 and "1 passage read, 3 names and 1 relation found" in reported, reported)
                code, reported = in_folder(folder, "call", "graph_search", '{"entity": "Green tea", "relation": "steeped_at"}')
                expect(code == 0 and '"object": "75 degrees"' in reported and "note.txt" in reported, reported)
                code, reported = in_folder(folder, "call", "graph_search", '{"entity": "Grace Hopper"}')
                expect("do not name" in reported, reported)


def every(interpreter):
    """Each tool of the bundle, called by the model; what has to come of it is in ../chats/tools.toml."""
    with every_tool.folder() as made:
        tools = every_tool.listed(made)
        table = []
        check("every tool of the bundle has a row")(lambda: table.extend(every_tool.rows(made, tools)))
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


PARTS = {"text calls": text_calls, "crowded": crowded, "tag lines": tag_lines, "client's text calls": clients_text_call, "native calls": native_calls,
         "constrained": lambda interpreter: constrained.constrained(interpreter, call, template), "schemas": schemas, "templates": templates,
         "reasoning": reasoning, "every tool": every, "deep analysis": deep_analysis, "transcripts": continued.transcripts,
         "tries": tries.tries, "packaged templates": packaged.packaged,
         "doctor": lambda interpreter: doctor.doctor(interpreter, lambda *named: template(interpreter, *named), OPENS, REFUSES),
         "opened": lambda interpreter: opened.opened(interpreter, call),
         "raw": lambda interpreter: raw.raw(interpreter, call, ask, finished, for_both, template)}
# Run where they are named: their packages take minutes to install.
NAMED_ONLY = {"packaged templates"}


def main():
    if not environment.TINY_LLAMA.exists():
        print(f"FAILED  there is no {environment.TINY_LLAMA}\n0 passed, 1 failed")
        return 1
    interpreter = environment.python("python-llama", HERE / "requirements.txt")
    for name, part in PARTS.items():
        if any(word in name for word in sys.argv[1:]) or not (sys.argv[1:] or name in NAMED_ONLY):
            try:
                part(interpreter)
            except Exception as error:

                @check(name)
                def _(error=error):
                    raise error
    return finish()


if __name__ == "__main__":
    sys.exit(main())
