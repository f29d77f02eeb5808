"""The ollama package."""

import json

import ollama

from driver import Driver, serve


class Chat(Driver):
    can = ("tools", "parallel", "schema", "picture", "stop", "abort", "whole", "key")

    def begin(self, wanted):
        return [{"role": one["role"], "content": one["text"], **({"images": [one["picture"]]} if "picture" in one else {})}
                for one in wanted.messages]

    def ask(self, wanted, messages, outcome):
        client = ollama.Client(host=wanted.url, headers={"Authorization": f"Bearer {wanted.key}"}, timeout=30)
        options = {name: value for name, value in {"stop": wanted.stop, "num_predict": wanted.max_tokens}.items() if value}
        tools = [{"type": "function", "function": {"name": one["name"], "description": one["description"], "parameters": one["schema"]}}
                 for one in wanted.tools]
        asked = {"model": wanted.model, "messages": messages, "tools": tools, "format": wanted.schema, "options": options}
        if wanted.abort:
            stream = client.chat(**asked, stream=True)
            next(part for part in stream if part.message.content)
            stream.close()
            return []
        replies = list(client.chat(**asked, stream=True)) if wanted.stream else [client.chat(**asked)]
        outcome.text = "".join(reply.message.content or "" for reply in replies)
        outcome.usage = [replies[-1].prompt_eval_count, replies[-1].eval_count]
        if wanted.schema:
            outcome.json = json.loads(outcome.text)
        calls = [one for reply in replies for one in reply.message.tool_calls or []]
        messages.append({"role": "assistant", "content": outcome.text, "tool_calls": calls})
        return [(None, one.function.name, dict(one.function.arguments)) for one in calls]

    def give(self, messages, results):
        messages += [{"role": "tool", "tool_name": name, "content": text} for _id, name, _arguments, text in results]


if __name__ == "__main__":
    serve({"chat": Chat})
