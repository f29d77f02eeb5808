"""LlamaIndex with its model for OpenAI-compatible servers."""

import json

from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock
from llama_index.core.tools import FunctionTool, ToolMetadata
from llama_index.llms.openai_like import OpenAILike

from driver import Driver, serve


class Described(ToolMetadata):
    """A tool that is described by a JSON schema."""

    def __init__(self, one):
        super().__init__(description=one["description"], name=one["name"], fn_schema=None)
        self.schema = one["schema"]

    def get_parameters_dict(self):
        return self.schema


class Chat(Driver):
    # A stream that is given up is left to the collector of garbage.
    can = ("tools", "parallel", "choice", "none", "named", "picture", "stop", "whole", "key")

    def begin(self, wanted):
        return [said(one) for one in wanted.messages]

    def ask(self, wanted, messages, outcome):
        more = {name: value for name, value in {"stop": wanted.stop}.items() if value}
        model = OpenAILike(model=wanted.model, api_base=f"{wanted.url}/v1", api_key=wanted.key, max_retries=wanted.retries, timeout=30,
                           is_chat_model=True, is_function_calling_model=True, max_tokens=wanted.max_tokens, additional_kwargs=more)
        asked = {}
        if wanted.tools:
            tools = [FunctionTool(fn=lambda **_: None, metadata=Described(one)) for one in wanted.tools]
            choice = wanted.choice["name"] if isinstance(wanted.choice, dict) else wanted.choice
            asked = model._prepare_chat_with_tools(tools, chat_history=list(messages), allow_parallel_tool_calls=True,
                                                   **({"tool_choice": choice} if choice else {}))
        asked = {"messages": list(messages), **asked}
        if wanted.stream:
            for reply in model.stream_chat(**asked):
                pass
        else:
            reply = model.chat(**asked)
        outcome.text = reply.message.content or ""
        messages.append(reply.message)
        calls = model.get_tool_calls_from_response(reply, error_on_no_tool_call=False)
        return [(one.tool_id, one.tool_name, one.tool_kwargs) for one in calls]

    def give(self, messages, results):
        messages += [ChatMessage(role="tool", content=text, additional_kwargs={"tool_call_id": id, "name": name})
                     for id, name, _arguments, text in results]


def said(one):
    blocks = [TextBlock(text=one["text"])]
    if "picture" in one:
        blocks.append(ImageBlock(url=f"data:image/png;base64,{one['picture']}"))
    return ChatMessage(role=one["role"], blocks=blocks)


if __name__ == "__main__":
    serve({"chat": Chat})
