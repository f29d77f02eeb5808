"""Calls that are required: a model of noise makes a valid one, in every dialect and for every set of functions."""

import json
import operator
import os
import re
import time
from pathlib import Path

import environment
from checks import check, expect

DIALECTS = ("hermes", "mistral", "llama3_json", "deepseek_v31", "kimi_k2", "pythonic", "harmony", "jamba")
# Whose texts have no quotes around them: noise seldom ends one before it has to, so they get short ones.
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

# Schemas of which a part is easily missed; the values are short, so that noise comes to their end.
NAME = {"type": "string", "minLength": 1, "maxLength": 9}
AWKWARD = {
    "one of two has to be there": {
        "type": "object", "properties": {"id": {"type": "integer"}, "name": NAME}, "additionalProperties": False,
        "anyOf": [{"required": ["id"]}, {"required": ["name"]}]},
    "siblings of references and choices": {
        "type": "object", "required": ["short", "narrow", "kind", "long"], "$defs": {"name": NAME},
        "properties": {
            "short": {"$ref": "#/$defs/name", "maxLength": 2},
            "narrow": {"type": "integer", "minimum": -7, "anyOf": [{"maximum": -5}, {"const": 12}]},
            "kind": {"enum": ["a", "b", "c", 1], "type": "string", "allOf": [{"enum": ["b", "d", 1]}]},
            "long": {"type": "string", "minLength": 257, "maxLength": 258}}},
    "items by position, and many of them": {
        "type": "object", "required": ["pair", "many"],
        "properties": {
            "pair": {"type": "array", "prefixItems": [NAME, {"type": "integer"}], "items": False, "minItems": 2},
            "many": {"type": "array", "items": {"type": "null"}, "minItems": 17},
            "never": False}},
    "bounds of numbers": {
        "type": "object", "required": ["share", "positive", "fraction", "big", "port"],
        "properties": {
            "share": {"type": "number", "minimum": -1, "maximum": 1},
            "positive": {"type": "number", "exclusiveMinimum": 0},
            "fraction": {"type": "number", "exclusiveMinimum": -0.25, "exclusiveMaximum": 12.5},
            "big": {"type": "integer", "minimum": 999, "exclusiveMaximum": 1000000},
            "port": {"type": "integer", "minimum": 1, "maximum": 65535}}},
    "a tree": {
        "type": "object", "required": ["value"], "additionalProperties": False,
        "properties": {"value": {"type": "integer"}, "children": {"type": "array", "items": {"$ref": "#"}, "maxItems": 3}}},
    "many texts of different lengths": {
        "type": "object",
        "properties": {f"text_{at}": {"type": "string", "minLength": at % 3, "maxLength": 2000 + 7 * at} for at in range(300)}},
}
BOUNDS = {"minimum": operator.ge, "maximum": operator.le, "exclusiveMinimum": operator.gt, "exclusiveMaximum": operator.lt}
SOME = ("hermes", "pythonic", "qwen3_coder", "gemma4")


def all_dialects():
    """The names of all rows, from the page that a test of the crate compares with them."""
    page = (environment.REPOSITORY / "docs" / "dialects.md").read_text()
    table = page.split("\n## The dialects\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `(\w+)` \|", table, re.M)


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


def shortened(schema):
    """A schema whose texts are short."""
    if isinstance(schema, list):
        return [shortened(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    short = {key: shortened(part) for key, part in schema.items()}
    is_text = short.get("type") == "string" and "enum" not in short
    return {"maxLength": max(30, short.get("minLength", 0)), **short} if is_text else short


def fits(value, schema, root=None):
    """Whether a value has the types, values, members, lengths and bounds that its schema asks for."""
    if isinstance(schema, bool):
        return schema
    root = schema if root is None else root
    both = list(schema.get("allOf", []))
    if "$ref" in schema:
        target = root
        for name in schema["$ref"].split("/")[1:]:
            target = target[name]
        both.append(target)
    if not all(fits(value, part, root) for part in both):
        return False
    if any(key in schema and not any(fits(value, part, root) for part in schema[key]) for key in ("anyOf", "oneOf")):
        return False
    if value not in schema.get("enum", [value]) or value != schema.get("const", value):
        return False
    kinds = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict,
             "null": type(None)}
    kind = kinds.get(schema.get("type"), object)
    if not isinstance(value, kind) or isinstance(value, bool) and kind not in (bool, object):
        return False
    if isinstance(value, (int, float)):
        return all(holds(value, schema[key]) for key, holds in BOUNDS.items() if key in schema)
    if isinstance(value, str):
        return schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value))
    if isinstance(value, list):
        by_position, others = schema.get("prefixItems", []), schema.get("items", {})
        items = [by_position[at] if at < len(by_position) else others for at in range(len(value))]
        return (schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value))
                and all(fits(one, item, root) for one, item in zip(value, items)))
    if isinstance(value, dict):
        members, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        return (all(name in value for name in schema.get("required", []))
                and all(fits(one, members.get(name, others), root) for name, one in value.items()))
    return True


def has_form(text, schema):
    """Whether a text is JSON that fits a schema."""
    try:
        return fits(json.loads(text or ""), schema)
    except ValueError:
        return False


def valid(calls, functions):
    """Whether there are calls, and each is one of the functions with arguments that fit it."""
    known = {function["name"]: function["parameters"] for function in functions}
    for call in calls:
        name = call["function"]["name"]
        if name not in known or not fits(json.loads(call["function"]["arguments"]), known[name]):
            return False
    return bool(calls)


def required(address, call, functions, model="noise"):
    """What is wrong with the answer to a request in which a call of one of these functions is required."""
    tools = [{"type": "function", "function": function} for function in functions]
    body = {"messages": [{"role": "user", "content": "Go on."}], "tools": tools, "tool_choice": "required",
            "parallel_tool_calls": False, "seed": 1, "model": f"{model}:plain"}
    status, text = call(f"{address}/v1/chat/completions", body)
    calls = json.loads(text)["choices"][0]["message"].get("tool_calls") if status == 200 else None
    return None if valid(calls or [], functions) else (status, text[:400])


def constrained(interpreter, call, template):
    every = sets()
    is_long = bool(os.environ.get("TOOLRACK_EVERY_SET"))
    with environment.llama(interpreter, "--ctx", "65536") as model:
        for at, dialect in enumerate(DIALECTS + TAGS):
            step = (4 if is_long else 200) if dialect in TAGS else (1 if is_long else 40)
            chosen = every[at % min(step, len(every))::step]
            with environment.toolrack(f"{model}/v1", configuration=f'[chat]\ntool_style = "prompt"\ndialect = "{dialect}"\n') as address:

                @check(f"{dialect}: a required call is made and valid for each of {len(chosen)} sets of functions")
                def _(chosen=chosen):
                    began, wrong = time.monotonic(), []
                    for name, functions in chosen:
                        problem = required(address, call, shortened(functions) if dialect in TAGS else functions)
                        if problem:
                            wrong.append((name, *problem))
                    print(f"  {dialect}: {len(chosen)} sets, {time.monotonic() - began:.0f} s")
                    expect(not wrong, f"{len(wrong)} of {len(chosen)}: {wrong[:3]}")

                for name, schema in AWKWARD.items() if dialect in SOME else ():

                    @check(f"{dialect}: a required call is valid with {name}")
                    def _(schema=schema):
                        problem = required(address, call, [{"name": "act", "description": "Acts.", "parameters": schema}])
                        expect(not problem, f"{problem}")

        names = all_dialects()
        settings = "".join(f'[models."{name}"]\ntool_style = "prompt"\ndialect = "{name}"\n' for name in names)
        with environment.toolrack(f"{model}/v1", configuration=settings) as address:

            @check(f"a required call is made and valid in each of {len(names)} dialects")
            def _():
                began, wrong = time.monotonic(), []
                for at, dialect in enumerate(names):
                    for name, functions in every[1:2] + (every[at::200] if is_long else []):
                        problem = required(address, call, shortened(functions), dialect)
                        if problem:
                            wrong.append((dialect, name, *problem))
                print(f"  all dialects: {time.monotonic() - began:.0f} s")
                expect(len(names) > 60 and not wrong, f"{len(wrong)}: {wrong[:3]}")

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
                        if not has_form(content, schema):
                            wrong.append((name, model, status, text[:400]))
                expect(not wrong, f"{len(wrong)} of {len(chosen)}: {wrong[:3]}")

        with environment.toolrack(f"{model}/v1", configuration='[chat]\ntool_style = "prompt"\n') as address:

            chosen = every if is_long else every[::80]

            @check(f"left to itself the same model calls nothing of {len(chosen)} sets, and nothing it says has the form of a schema")
            def _():
                began, wrong = time.monotonic(), []
                for name, functions in chosen:
                    tools = [{"type": "function", "function": function} for function in functions]
                    body = {"messages": [{"role": "user", "content": "Go on."}], "tools": tools, "seed": 1,
                            "max_tokens": 200, "model": "noise:plain"}
                    status, text = call(f"{address}/v1/chat/completions", body)
                    message = json.loads(text)["choices"][0]["message"] if status == 200 else {"tool_calls": text}
                    if message.get("tool_calls") or has_form(message["content"], functions[0]["parameters"]):
                        wrong.append((name, status, text[:400]))
                print(f"  without: {len(chosen)} sets, {time.monotonic() - began:.0f} s")
                expect(not wrong, f"{len(wrong)} of {len(chosen)}: {wrong[:3]}")

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
