"""openai-agents over chat completions and Responses; it runs the client's tools itself."""

import asyncio
import json

from agents import (Agent, AgentOutputSchemaBase, FunctionTool, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner,
                    set_tracing_disabled)
from openai import AsyncOpenAI

from driver import Driver, serve

set_tracing_disabled(True)


class Agents(Driver):
    can = ("tools", "parallel", "choice", "none", "named", "schema", "picture", "abort", "whole", "key")
    model = None

    def run(self, wanted, outcome):
        asyncio.run(self.answer(wanted, outcome))

    async def answer(self, wanted, outcome):
        client = AsyncOpenAI(base_url=f"{wanted.url}/v1", api_key=wanted.key, max_retries=wanted.retries, timeout=30)
        choice = wanted.choice["name"] if isinstance(wanted.choice, dict) else wanted.choice
        settings = ModelSettings(tool_choice=choice, max_tokens=wanted.max_tokens, include_usage=True)
        agent = Agent(
            name="client", model=self.model(model=wanted.model, openai_client=client), model_settings=settings,
            tools=[own_tool(one, wanted, outcome) for one in wanted.tools],
            output_type=Schema(wanted.schema) if wanted.schema else None)
        items = [item(one) for one in wanted.messages]
        if wanted.stream:
            reply = Runner.run_streamed(agent, items, max_turns=4)
            async for event in reply.stream_events():
                if wanted.abort and event.type == "raw_response_event" and getattr(event.data, "type", "") == "response.output_text.delta":
                    reply.cancel()
            if wanted.abort:
                return
        else:
            reply = await Runner.run(agent, items, max_turns=4)
        usage = reply.context_wrapper.usage
        outcome.usage = [usage.input_tokens, usage.output_tokens]
        outcome.text, outcome.json = (None, reply.final_output) if wanted.schema else (reply.final_output, None)


class Schema(AgentOutputSchemaBase):
    """A JSON schema as the form of the answer."""

    def __init__(self, schema):
        self.schema = schema

    def is_plain_text(self):
        return False

    def name(self):
        return "number"

    def json_schema(self):
        return self.schema

    def is_strict_json_schema(self):
        return True

    def validate_json(self, json_str):
        return json.loads(json_str)


def own_tool(one, wanted, outcome):
    async def run(_context, arguments):
        outcome.calls.append([one["name"], json.loads(arguments)])
        return wanted.results[one["name"]]

    return FunctionTool(name=one["name"], description=one["description"], params_json_schema=one["schema"], on_invoke_tool=run,
                        strict_json_schema=False)


def item(one):
    if "picture" not in one:
        return {"role": one["role"], "content": one["text"]}
    url = f"data:image/png;base64,{one['picture']}"
    return {"role": "user", "content": [{"type": "input_text", "text": one["text"]},
                                        {"type": "input_image", "image_url": url, "detail": "auto"}]}


class Chat(Agents):
    model = OpenAIChatCompletionsModel


class Responses(Agents):
    model = OpenAIResponsesModel


if __name__ == "__main__":
    serve({"chat": Chat, "responses": Responses})
