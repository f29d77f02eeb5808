"""LiteLLM, for OpenAI-compatible servers, for Anthropic and for Ollama."""

import json

import litellm

from driver import Driver, serve
from openai_client import message, options

litellm.suppress_debug_info = True
litellm.telemetry = False


class LiteLlm(Driver):
    can = ("tools", "parallel", "choice", "none", "named", "schema", "picture", "stop", "abort", "whole", "pieces", "key")
    prefix, path = "openai", "/v1"

    def begin(self, wanted):
        return [message(one) for one in wanted.messages]

    def ask(self, wanted, messages, outcome):
        asked = {"model": f"{self.prefix}/{wanted.model}", "api_base": wanted.url + self.path, "api_key": wanted.key, "timeout": 30,
                 "num_retries": wanted.retries, "messages": messages, **options(wanted)}
        if not wanted.stream:
            reply = litellm.completion(**asked)
        else:
            chunks = []
            for chunk in (stream := litellm.completion(**asked, stream=True, stream_options={"include_usage": True})):
                chunks.append(chunk)
                if chunk.choices and chunk.choices[0].delta.tool_calls:
                    outcome.sees_call()
                if wanted.abort and chunk.choices[0].delta.content:
                    stream.completion_stream.close()
                    return []
            reply = litellm.stream_chunk_builder(chunks, messages=messages)
        said = reply.choices[0].message
        outcome.text, outcome.usage = said.content or "", [reply.usage.prompt_tokens, reply.usage.completion_tokens]
        if wanted.schema:
            outcome.json = json.loads(outcome.text)
        messages.append(said.model_dump(exclude_none=True))
        return [(one.id, one.function.name, json.loads(one.function.arguments)) for one in said.tool_calls or []]

    def give(self, messages, results):
        messages += [{"role": "tool", "tool_call_id": id, "content": text} for id, _name, _arguments, text in results]


def driver(prefix, path, *cannot):
    can = tuple(one for one in LiteLlm.can if one not in cannot)
    return type("Of", (LiteLlm,), {"prefix": prefix, "path": path, "can": can})


if __name__ == "__main__":
    serve({
        "chat": driver("openai", "/v1"),
        # It gives up no stream of another provider: one that is left open can stop the next request for ever, when it is collected while
        # the lock of httpx's pool is held. It asks for a form by a call.
        "anthropic": driver("anthropic", "", "abort", "schema"),
        "ollama": driver("ollama_chat", "", "abort", "pieces", "choice", "none", "named"),
    })
