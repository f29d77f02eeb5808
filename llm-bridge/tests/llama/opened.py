"""Calls of strict tools: a model of noise may write what it likes, until it opens a call; then it has to be a whole one."""

import json
import os
from pathlib import Path

import environment
from checks import check, expect
from constrained import AWKWARD, valid

HERE = Path(__file__).resolve().parent
# Tokens of the model with which it opens a call, in each dialect.
OPENINGS = {
    "hermes": "<tool_call>",
    "qwen3_coder": "<tool_call>",
    "glm47": "<tool_call>",
    "mistral": "[TOOL_CALLS]",
    "llama3_json": "<|python_tag|>",
    "deepseek_v31": "<｜tool▁calls▁begin｜>",
    "kimi_k2": "<|tool_calls_section_begin|>",
    # Here the grammar begins in the middle of a token.
    "harmony": "<|channel|>commentary to=functions.",
    "jamba": "<tool_calls>",
    "cohere_command": "<|START_ACTION|>",
    "minimax_m2": "<minimax:tool_call>",
    "gemma4": "<|tool_call>",
}
# How much likelier these are made, by `logit_bias`.
LIKELIER = 8
# With short words, so that noise comes to their ends.
FUNCTIONS = [
    {"name": "set_light", "description": "Sets a light.", "parameters": {
        "type": "object", "properties": {"on": {"type": "boolean"}, "level": {"type": "number", "minimum": 0, "maximum": 9}},
        "required": ["on", "level"], "additionalProperties": False}},
    {"name": "list_lights", "description": "All lights.", "parameters": {
        "type": "object", "properties": {}, "additionalProperties": False}},
    {"name": "greet", "description": "Greets.", "parameters": {
        "type": "object", "properties": {"name": {"type": "string", "minLength": 1, "maxLength": 6}},
        "required": ["name"], "additionalProperties": False}},
]


def opened(interpreter, call):
    is_long = bool(os.environ.get("TOOLRACK_EVERY_SET"))
    seeds = range(40 if is_long else 4)
    settings = "".join(f'[models."{name}"]\nroute = "raw"\ndialect = "{name}"\n' for name in OPENINGS)
    command = [interpreter, HERE / "tokens.py", environment.TINY_LLAMA, json.dumps(sorted(set(OPENINGS.values()))), "--port", "0",
               "--ctx", "65536"]
    with environment.running(command, r"READY (\S+)") as model, \
            environment.toolrack(f"{model}/v1", configuration=settings) as address:

        def number(token):
            ids = json.loads(call(f"{model}/tokenize", {"content": token, "parse_special": True})[1])["tokens"]
            expect(len(ids) == 1, f"{token}: {ids}")
            return str(ids[0])

        def ask(dialect, functions, seed, is_strict, likelier=LIKELIER, most=500):
            tools = [{"type": "function", "function": {**function, "strict": is_strict}} for function in functions]
            body = {"messages": [{"role": "user", "content": "Go on."}], "tools": tools, "seed": seed, "max_tokens": most,
                    "model": f"{dialect}:plain", "logit_bias": {number(OPENINGS[dialect]): likelier}}
            status, text = call(f"{address}/v1/chat/completions", body)
            expect(status == 200, f"{status} {text}")
            message = json.loads(text)["choices"][0]["message"]
            return message.get("tool_calls") or [], message["content"] or ""

        for dialect in OPENINGS:

            @check(f"{dialect}: a call that was opened is whole, and without the grammar it is none")
            def _(dialect=dialect):
                called = 0
                for seed in seeds:
                    calls, content = ask(dialect, FUNCTIONS, seed, True)
                    called += bool(calls)
                    expect(not calls or valid(calls, FUNCTIONS), f"{seed}: {calls}")
                    expect(calls or OPENINGS[dialect] not in content, f"{seed}: {content}")
                    calls, content = ask(dialect, FUNCTIONS, seed, False)
                    expect(not calls, f"{seed}: {calls}")
                expect(called > len(seeds) / 2, f"{called} of {len(seeds)}")

            @check(f"{dialect}: an answer without a call is as it would be")
            def _(dialect=dialect):
                said = 0
                for seed in seeds:
                    held, free = (ask(dialect, FUNCTIONS, seed, is_strict, -100) for is_strict in (True, False))
                    expect(held == free and not held[0], f"{seed}: {held} {free}")
                    said += bool(held[1])
                # Noise may end at once.
                expect(said > len(seeds) / 2, f"{said} of {len(seeds)}")

            for name, schema in AWKWARD.items() if is_long else ():

                @check(f"{dialect}: a call that was opened is whole with {name}")
                def _(dialect=dialect, schema=schema):
                    functions = [{"name": "act", "description": "Acts.", "parameters": schema}]
                    # Texts without quotes around them go on as long as they may.
                    calls, content = ask(dialect, functions, 1, True, most=20000)
                    expect(valid(calls, functions), f"{calls} {content[:400]}")
