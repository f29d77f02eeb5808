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

    for flags in ([], ["--strict"]):
        tools = defined("openai", *flags)
        for tool in tools:
            fits(ChatCompletionToolParam, tool)
        client = openai.OpenAI(api_key="k", base_url="http://127.0.0.1:9/v1", http_client=CLIENT, max_retries=0)
        body = sent(lambda: client.chat.completions.create(model="m", messages=ASKED, tools=tools))
        expect(body["tools"] == tools and len(tools) == len(TOOLS), f"{body}")


@check("openai takes Responses definitions")
def _():
    import openai
    from openai.types.responses import FunctionTool

    for flags in ([], ["--strict"]):
        tools = defined("responses", *flags)
        for tool in tools:
            FunctionTool.model_validate(tool, strict=True)
        client = openai.OpenAI(api_key="k", base_url="http://127.0.0.1:9/v1", http_client=CLIENT, max_retries=0)
        body = sent(lambda: client.responses.create(model="m", input="hello", tools=tools))
        expect(body["tools"] == tools and len(tools) == len(TOOLS), f"{body}")


@check("anthropic takes definitions")
def _():
    import anthropic
    from anthropic.types import ToolParam

    tools = defined("anthropic")
    for tool in tools:
        fits(ToolParam, tool)
    client = anthropic.Anthropic(api_key="k", base_url="http://127.0.0.1:9", max_retries=0,
                                 http_client=httpx2.Client(transport=httpx2.MockTransport(keep)))
    body = sent(lambda: client.messages.create(model="m", max_tokens=9, messages=ASKED, tools=tools))
    expect(body["tools"] == tools and len(tools) == len(TOOLS), f"{body}")


@check("google-genai takes definitions")
def _():
    from google import genai
    from google.genai import types

    tools = defined("gemini")
    # These types refuse keys that they do not know.
    read = [types.Tool.model_validate(tool) for tool in tools]
    expect(len(read) == 1, f"{read}")
    declared = [declaration.name for declaration in read[0].function_declarations]
    expect(declared == TOOLS, f"{declared}")
    client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url="http://127.0.0.1:9", httpx_client=CLIENT))
    config = types.GenerateContentConfig(tools=read)
    body = sent(lambda: client.models.generate_content(model="m", contents="What is 2 + 3?", config=config))
    declarations = body["tools"][0]["functionDeclarations"]
    expect([declaration["name"] for declaration in declarations] == TOOLS, f"{body}")
    wanted = [declaration["description"] for declaration in tools[0]["functionDeclarations"]]
    expect([declaration["description"] for declaration in declarations] == wanted, f"{body}")


@check("ollama takes definitions")
def _():
    import ollama

    tools = defined("ollama")
    for tool in tools:
        ollama.Tool.model_validate(tool)
    client = ollama.Client(host="http://127.0.0.1:9", transport=httpx.MockTransport(keep))
    body = sent(lambda: client.chat(model="m", messages=ASKED, tools=tools))
    # The package leaves out what its types do not have; names and what the bundled tools say come through.
    expect(body["tools"] == tools and len(tools) == len(TOOLS), f"{body['tools']}\n{tools}")


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
