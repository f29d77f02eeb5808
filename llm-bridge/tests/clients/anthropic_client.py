"""The anthropic package."""

import json

import anthropic

from driver import Driver, serve


class Messages(Driver):
    can = ("tools", "parallel", "choice", "none", "named", "schema", "picture", "stop", "abort", "whole", "pieces", "key")

    def begin(self, wanted):
        messages = []
        for one in wanted.messages:
            content = one["text"]
            if "picture" in one:
                source = {"type": "base64", "media_type": "image/png", "data": one["picture"]}
                content = [{"type": "image", "source": source}, {"type": "text", "text": content}]
            messages.append({"role": one["role"], "content": content})
        return messages

    def ask(self, wanted, messages, outcome):
        client = anthropic.Anthropic(base_url=wanted.url, api_key=wanted.key, max_retries=wanted.retries, timeout=30)
        asked = {"model": wanted.model, "max_tokens": wanted.max_tokens or 1000}
        asked["messages"] = [one for one in messages if one["role"] != "system"]
        if system := [one["content"] for one in messages if one["role"] == "system"]:
            asked["system"] = system[0]
        if wanted.tools:
            asked["tools"] = [
                {"name": one["name"], "description": one["description"], "input_schema": one["schema"]} for one in wanted.tools]
        if wanted.choice:
            named = isinstance(wanted.choice, dict)
            asked["tool_choice"] = {"type": "tool", **wanted.choice} if named else {
                "type": {"required": "any"}.get(wanted.choice, wanted.choice)}
        if wanted.schema:
            asked["output_config"] = {"format": {"type": "json_schema", "schema": wanted.schema}}
        if wanted.stop:
            asked["stop_sequences"] = wanted.stop
        if wanted.abort:
            with client.messages.stream(**asked) as stream:
                return [] if next(stream.text_stream) else None
        if wanted.stream:
            with client.messages.stream(**asked) as stream:
                for event in stream:
                    if event.type == "content_block_delta" and event.delta.type == "input_json_delta":
                        outcome.sees_call()
                reply = stream.get_final_message()
        else:
            reply = client.messages.create(**asked)
        outcome.text = "".join(block.text for block in reply.content if block.type == "text")
        outcome.usage = [reply.usage.input_tokens, reply.usage.output_tokens]
        if wanted.schema:
            outcome.json = json.loads(outcome.text)
        messages.append({"role": "assistant", "content": reply.content})
        return [(block.id, block.name, block.input) for block in reply.content if block.type == "tool_use"]

    def give(self, messages, results):
        content = [{"type": "tool_result", "tool_use_id": id, "content": text} for id, _name, _arguments, text in results]
        messages.append({"role": "user", "content": content})


if __name__ == "__main__":
    serve({"messages": Messages})
