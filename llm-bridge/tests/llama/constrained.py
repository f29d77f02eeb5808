"""Calls that are required: a model of noise makes a valid one, in every dialect and for every set of functions."""

import json
import os
import time
from pathlib import Path

import environment
from checks import check, expect

DIALECTS = ("hermes", "mistral", "llama3_json", "deepseek_v31", "kimi_k2", "pythonic", "harmony", "jamba")
# Whose texts have no quotes around them: noise seldom ends one before it has to.
TAGS = ("qwen3_coder", "glm47", "minimax_m2", "gemma4")
BFCL = Path(__file__).resolve().parents[4] / "shared" / "corpus" / "bfcl"
# Of our own, where the corpus is not there.
OWN = [
    [{"name": "book_table", "description": "Books a table.", "parameters": {
        "type": "object",
        "properties": {
            "place": {"type": "string", "description": "Restaurant."},
            "people": {"type": "integer", "minimum": 1, "maximum": 12},
            "when": {"type": "object", "properties": {"day": {"type": "string", "enum": ["today", "tomorrow"]},
                                                      "hour": {"type": "integer"}}, "required": ["day"]},
            "wishes": {"type": "array", "items": {"type": "string"}},
            "outside": {"type": "boolean"},
        },
        "required": ["place", "people", "when"]}}],
    [{"name": "set_light", "description": "Sets a light.", "parameters": {
        "type": "object", "properties": {"on": {"type": "boolean"}, "level": {"type": "number"}}, "required": ["on"]}},
     {"name": "list_lights", "description": "All lights.", "parameters": {"type": "object", "properties": {}}}],
]

# A template that opens the model's thinking, in a form that llama.cpp knows.
OPENS_THINKING = """{%- for m in messages %}<|im_start|>{{ m.role }}
{% if m.role == 'assistant' and m.reasoning_content %}<think>
{{ m.reasoning_content }}
</think>

{% endif %}{{ m.content }}<|im_end|>
{% endfor %}{% if tools %}{{ tools | tojson }}<tool_call>{% endif %}{% if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is defined and enable_thinking is false %}<think>

</think>

{% else %}<think>
{% endif %}{% endif %}"""


def sets():
    """Sets of functions: name, functions."""
    found = [(f"own {at}", functions) for at, functions in enumerate(OWN)]
    if not BFCL.exists():
        print("skipped  BFCL's function sets: the corpus is not here")
        return found
    for file in sorted(BFCL.glob("*.jsonl")):
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        found += [(row["id"], [tool["function"] for tool in row["tools"]]) for row in rows]
    return found


def fits(value, schema):
    """Whether a value has the types, values and members that its schema asks for."""
    kinds = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict}
    if "enum" in schema and value not in schema["enum"]:
        return False
    kind = kinds.get(schema.get("type"))
    if kind is None:
        return True
    if not isinstance(value, kind) or isinstance(value, bool) and schema["type"] != "boolean":
        return False
    if isinstance(value, list):
        return all(fits(one, schema.get("items", {})) for one in value)
    if isinstance(value, dict):
        members = schema.get("properties", {})
        return (all(name in value for name in schema.get("required", []))
                and all(fits(one, members.get(name, {})) for name, one in value.items()))
    return True


def valid(calls, functions):
    """Whether there are calls, and each is one of the functions with arguments that fit it."""
    known = {function["name"]: function["parameters"] for function in functions}
    for call in calls:
        name = call["function"]["name"]
        if name not in known or not fits(json.loads(call["function"]["arguments"]), known[name]):
            return False
    return bool(calls)


def constrained(interpreter, call, template):
    every = sets()
    is_long = bool(os.environ.get("TOOLRACK_EVERY_SET"))
    with environment.llama(interpreter, "--ctx", "65536") as model:
        for at, dialect in enumerate(DIALECTS + TAGS):
            step = (40 if dialect in TAGS else 1) if is_long else 40
            # Without a text, where there is no time.
            chosen = every[1:2] if dialect in TAGS and not is_long else every[at % min(step, len(every))::step]
            with environment.toolrack(f"{model}/v1", configuration=f'[chat]\ntool_style = "prompt"\ndialect = "{dialect}"\n') as address:

                @check(f"{dialect}: a required call is made and valid for each of {len(chosen)} sets of functions")
                def _(chosen=chosen):
                    began, wrong = time.monotonic(), []
                    for name, functions in chosen:
                        tools = [{"type": "function", "function": function} for function in functions]
                        body = {"messages": [{"role": "user", "content": "Go on."}], "tools": tools, "tool_choice": "required",
                                "parallel_tool_calls": False, "seed": 1, "model": "noise:plain"}
                        status, text = call(f"{address}/v1/chat/completions", body)
                        calls = json.loads(text)["choices"][0]["message"].get("tool_calls") if status == 200 else None
                        if not valid(calls or [], functions):
                            wrong.append((name, status, text[:400]))
                    print(f"  {dialect}: {len(chosen)} sets, {time.monotonic() - began:.0f} s")
                    expect(not wrong, f"{len(wrong)} of {len(chosen)}: {wrong[:3]}")

        with environment.toolrack(f"{model}/v1") as address:
            chosen = every if is_long else every[::40]

            @check(f"an answer has its form for each of {len(chosen)} schemas")
            def _():
                wrong = []
                for name, functions in chosen:
                    schema = functions[0]["parameters"]
                    form = {"type": "json_schema", "json_schema": {"name": "form", "schema": schema}}
                    # With the server's tools, too, where the form is asked for at the end.
                    for model in ("noise:plain", "noise"):
                        body = {"messages": [{"role": "user", "content": "Go on."}], "response_format": form, "seed": 1, "max_tokens": 2000,
                                "model": model}
                        status, text = call(f"{address}/v1/chat/completions", body)
                        content = json.loads(text)["choices"][0]["message"]["content"] if status == 200 else ""
                        try:
                            if not fits(json.loads(content), schema):
                                wrong.append((name, model, status, text[:400]))
                        except ValueError:
                            wrong.append((name, model, status, text[:400]))
                expect(not wrong, f"{len(wrong)} of {len(chosen)}: {wrong[:3]}")

        with environment.toolrack(f"{model}/v1", configuration='[chat]\ntool_style = "prompt"\n') as address:

            @check("left to itself the same model calls nothing")
            def _():
                for name, functions in every[::400]:
                    tools = [{"type": "function", "function": function} for function in functions]
                    body = {"messages": [{"role": "user", "content": "Go on."}], "tools": tools, "seed": 1,
                            "max_tokens": 500, "model": "noise:plain"}
                    status, text = call(f"{address}/v1/chat/completions", body)
                    expect(status == 200 and not json.loads(text)["choices"][0]["message"].get("tool_calls"), f"{name}: {text[:400]}")

    # llama.cpp hands out what follows as reasoning.
    with template(interpreter, "opens-thinking", OPENS_THINKING) as model, \
            environment.toolrack(f"{model}/v1", configuration='[chat]\ntool_style = "prompt"\n') as address:

        @check("a required call is made where the template opens the model's thinking")
        def _():
            tools = [{"type": "function", "function": function} for function in OWN[0]]
            for seed in range(10):
                body = {"messages": [{"role": "user", "content": "Go on."}], "tools": tools, "tool_choice": "required", "seed": seed,
                        "model": "noise:plain"}
                status, text = call(f"{address}/v1/chat/completions", body)
                calls = json.loads(text)["choices"][0]["message"].get("tool_calls") if status == 200 else None
                expect(valid(calls or [], OWN[0]), f"{seed}: {status} {text[:400]}")
