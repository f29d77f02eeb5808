"""pydantic-ai with its models for OpenAI (chat and Responses), Anthropic and Google; it runs the client's tools itself."""

import asyncio
import base64

from pydantic_ai import Agent, BinaryContent, NativeOutput, StructuredDict, Tool
from pydantic_ai.messages import ModelRequest, ModelResponse, SystemPromptPart, TextPart, UserPromptPart

from driver import Driver, serve


def chat(wanted):
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    client = AsyncOpenAI(base_url=f"{wanted.url}/v1", api_key=wanted.key, max_retries=wanted.retries, timeout=30)
    return OpenAIChatModel(wanted.model, provider=OpenAIProvider(openai_client=client))


def responses(wanted):
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    client = AsyncOpenAI(base_url=f"{wanted.url}/v1", api_key=wanted.key, max_retries=wanted.retries, timeout=30)
    return OpenAIResponsesModel(wanted.model, provider=OpenAIProvider(openai_client=client))


def anthropic(wanted):
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = AsyncAnthropic(base_url=wanted.url, api_key=wanted.key, max_retries=wanted.retries, timeout=30)
    return AnthropicModel(wanted.model, provider=AnthropicProvider(anthropic_client=client))


def google(wanted):
    from google import genai
    from google.genai import types
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    retry = types.HttpRetryOptions(attempts=wanted.retries + 1, initial_delay=0.1, max_delay=0.2)
    client = genai.Client(api_key=wanted.key, http_options=types.HttpOptions(base_url=wanted.url, timeout=30_000, retry_options=retry))
    return GoogleModel(wanted.model, provider=GoogleProvider(client=client))


class PydanticAi(Driver):
    can = ("tools", "parallel", "schema", "by_call", "picture", "stop", "abort", "whole", "key")

    def run(self, wanted, outcome):
        asyncio.run(self.answer(wanted, outcome))

    async def answer(self, wanted, outcome):
        *before, last = wanted.messages
        prompt = [last["text"]]
        if "picture" in last:
            prompt.append(BinaryContent(base64.b64decode(last["picture"]), media_type="image/png"))
        settings = {"stop_sequences": wanted.stop} if wanted.stop else {}
        if wanted.max_tokens:
            settings["max_tokens"] = wanted.max_tokens
        output = StructuredDict(wanted.schema, name="number") if wanted.schema else str
        if wanted.schema and not wanted.by_call:
            output = NativeOutput(output)
        agent = Agent(self.model(wanted), tools=[own_tool(one, wanted, outcome) for one in wanted.tools], output_type=output, retries=0)
        asked = {"message_history": [said(one) for one in before], "model_settings": settings}
        if wanted.abort:
            async with agent.run_stream(prompt, **asked) as reply:
                async for _text in reply.stream_text(debounce_by=None):
                    return
        # To the end of the run: `run_stream` ends with the first text.
        async def read(_context, events):
            async for _event in events:
                pass

        reply = await agent.run(prompt, **asked, event_stream_handler=read if wanted.stream else None)
        usage = reply.usage() if callable(reply.usage) else reply.usage
        outcome.usage = [usage.input_tokens, usage.output_tokens]
        outcome.text, outcome.json = (None, reply.output) if wanted.schema else (reply.output, None)


def own_tool(one, wanted, outcome):
    def run(**arguments):
        outcome.calls.append([one["name"], arguments])
        return wanted.results[one["name"]]

    # In their order, so that the outcome is the same each time.
    return Tool.from_schema(run, name=one["name"], description=one["description"], json_schema=one["schema"], sequential=True)


def said(one):
    if one["role"] == "assistant":
        return ModelResponse([TextPart(one["text"])])
    return ModelRequest([(SystemPromptPart if one["role"] == "system" else UserPromptPart)(one["text"])])


def driver(make, *cannot):
    can = tuple(one for one in PydanticAi.can if one not in cannot)
    return type("Of", (PydanticAi,), {"model": staticmethod(make), "can": can})


if __name__ == "__main__":
    serve({
        "chat": driver(chat),
        # The API has no stop sequences.
        "responses": driver(responses, "stop"),
        # It knows models by their names, and none of another name as one that has forms.
        "anthropic": driver(anthropic, "schema"),
        "google": driver(google),
    })
