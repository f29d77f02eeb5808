"""The definitions of tools, as the providers' own packages read them: each makes a request from them.

Nothing is sent: a transport of ours takes what would be. Where a package checks definitions itself, that check is asked.
"""

import json
import os
import subprocess
import sys

import httpx
import httpx2
from pydantic import TypeAdapter

import environment
from checks import check, expect, finish

TOOLS = ["calculate", "current_time", "research.fetch_webpage"]


def defined(provider, *flags):
    """What `toolrack tools --format` prints."""
    command = [environment.TOOLRACK, "tools", "--format", provider, "--allowed", ",".join(TOOLS), *flags]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TOOLRACK_")}
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, env=inherited)
    expect("left out" not in done.stderr, done.stderr)
    return json.loads(done.stdout)


def recorded(name):
    """What the tests of the lowering have on record for schemas that are hard to say."""
    file = environment.HERE.parent.parent / "apis" / "tests" / "data" / f"tricky.{name}.json"
    return json.loads(file.read_text())["list"]


class Kept(Exception):
    """What would have been sent."""


def keep(request):
    raise Kept(request.content.decode())


def sent(ask):
    """The body that a package would send."""
    try:
        ask()
    except Exception as error:
        while error is not None:
            if isinstance(error, Kept):
                return json.loads(str(error))
            error = error.__cause__ or error.__context__
        raise
    raise AssertionError("nothing was sent")


CLIENT = httpx.Client(transport=httpx.MockTransport(keep))
ASKED = [{"role": "user", "content": "What is 2 + 3?"}]


def fits(type_, value):
    """Asks whether a value is what a package's type says."""
    TypeAdapter(type_).validate_python(value)


@check("openai takes chat definitions")
def _():
    import openai
    from openai.types.chat import ChatCompletionToolParam

    for tools in defined("openai"), defined("openai", "--strict"), recorded("openai"), recorded("openai.strict"):
        for tool in tools:
            fits(ChatCompletionToolParam, tool)
        client = openai.OpenAI(api_key="k", base_url="http://127.0.0.1:9/v1", http_client=CLIENT, max_retries=0)
        body = sent(lambda: client.chat.completions.create(model="m", messages=ASKED, tools=tools))
        expect(body["tools"] == tools and len(tools) >= len(TOOLS), f"{body}")


@check("openai takes Responses definitions")
def _():
    import openai
    from openai.types.responses import FunctionTool

    for tools in defined("responses"), defined("responses", "--strict"), recorded("responses"):
        for tool in tools:
            FunctionTool.model_validate(tool, strict=True)
        client = openai.OpenAI(api_key="k", base_url="http://127.0.0.1:9/v1", http_client=CLIENT, max_retries=0)
        body = sent(lambda: client.responses.create(model="m", input="hello", tools=tools))
        expect(body["tools"] == tools and len(tools) >= len(TOOLS), f"{body}")


@check("anthropic takes definitions")
def _():
    import anthropic
    from anthropic.types import ToolParam

    client = anthropic.Anthropic(api_key="k", base_url="http://127.0.0.1:9", max_retries=0,
                                 http_client=httpx2.Client(transport=httpx2.MockTransport(keep)))
    for tools in defined("anthropic"), recorded("anthropic"):
        for tool in tools:
            fits(ToolParam, tool)
        body = sent(lambda: client.messages.create(model="m", max_tokens=9, messages=ASKED, tools=tools))
        expect(body["tools"] == tools and len(tools) >= len(TOOLS), f"{body}")


@check("google-genai takes definitions")
def _():
    from google import genai
    from google.genai import types

    client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url="http://127.0.0.1:9", httpx_client=CLIENT))
    for tools in defined("gemini"), recorded("gemini"):
        # These types refuse keys that they do not know.
        read = [types.Tool.model_validate(tool) for tool in tools]
        config = types.GenerateContentConfig(tools=read)
        body = sent(lambda: client.models.generate_content(model="m", contents="What is 2 + 3?", config=config))
        expect(len(body["tools"]) == 1, f"{body}")
        for given, made in zip(tools[0]["functionDeclarations"], body["tools"][0]["functionDeclarations"], strict=True):
            expect(given["name"] == made["name"] and given["description"] == made["description"], f"{made}")
            schema = given.get("parameters") or given.get("parametersJsonSchema")
            if schema is None:  # It takes nothing.
                continue
            kept = made.get("parameters") or made.get("parametersJsonSchema") or made.get("parameters_json_schema")
            expect(list(schema["properties"]) == list(kept["properties"]), f"{made}")


@check("ollama takes definitions")
def _():
    import ollama

    tools = defined("ollama")
    for tool in tools:
        ollama.Tool.model_validate(tool)
    client = ollama.Client(host="http://127.0.0.1:9", transport=httpx.MockTransport(keep))
    body = sent(lambda: client.chat(model="m", messages=ASKED, tools=tools))
    expect(body["tools"] == tools and len(tools) == len(TOOLS), f"{body['tools']}\n{tools}")
    # Of nested properties the package's types know nothing, so it leaves these out.
    tools = recorded("ollama")
    body = sent(lambda: client.chat(model="m", messages=ASKED, tools=tools))
    for given, made in zip(tools, body["tools"], strict=True):
        given, made = given["function"], made["function"]
        expect(given["name"] == made["name"] and given["description"] == made["description"], f"{made}")
        expect(set(given["parameters"]["properties"]) == set(made["parameters"].get("properties", {})), f"{made}")


@check("an unknown provider ends with 2 and names the known")
def _():
    command = [environment.TOOLRACK, "tools", "--format", "mistral"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    expect(done.returncode == 2 and not done.stdout, f"{done}")
    known = ("openai", "responses", "ollama", "gemini", "anthropic", "mcp")
    expect(all(name in done.stderr for name in known), done.stderr)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    finish()
