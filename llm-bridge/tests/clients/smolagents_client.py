"""The model of smolagents for OpenAI-compatible servers; where it has tools it requires a call of one of them."""

import json

from smolagents import OpenAIServerModel, Tool

from driver import Driver, serve


class Chat(Driver):
    # Results go back as text of the user, and streams have no end but their own.
    can = ("one_round", "stop", "whole", "key")

    def begin(self, wanted):
        return [{"role": one["role"], "content": [{"type": "text", "text": one["text"]}]} for one in wanted.messages]

    def ask(self, wanted, messages, outcome):
        more = {"max_tokens": wanted.max_tokens} if wanted.max_tokens else {}
        model = OpenAIServerModel(model_id=wanted.model, api_base=f"{wanted.url}/v1", api_key=wanted.key, retry=False,
                                  client_kwargs={"max_retries": wanted.retries, "timeout": 30}, **more)
        asked = {"tools_to_call_from": [own_tool(one) for one in wanted.tools] or None, "stop_sequences": wanted.stop}
        if not wanted.stream:
            said = model.generate(messages, **asked)
            outcome.text, calls = said.content or "", said.tool_calls or []
            outcome.usage = [said.token_usage.input_tokens, said.token_usage.output_tokens]
            found = [(one.id, one.function.name, one.function.arguments) for one in calls]
        else:
            outcome.text, pieces = "", {}
            for delta in model.generate_stream(messages, **asked):
                outcome.text += delta.content or ""
                for piece in delta.tool_calls or []:
                    call = pieces.setdefault(piece.index, [None, "", ""])
                    call[0] = call[0] or piece.id
                    call[1] += piece.function.name or "" if piece.function else ""
                    call[2] += piece.function.arguments or "" if piece.function else ""
            found = [tuple(call) for call in pieces.values()]
        return [(id, name, json.loads(text) if isinstance(text, str) else text) for id, name, text in found]


def own_tool(one):
    class Own(Tool):
        name, description = one["name"], one["description"]
        inputs, output_type = one["schema"]["properties"], "string"
        skip_forward_signature_validation = True

        def forward(self, **_):
            return ""

    return Own()


if __name__ == "__main__":
    serve({"chat": Chat})
