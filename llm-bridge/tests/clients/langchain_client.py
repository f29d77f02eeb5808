"""LangChain with its models for OpenAI (chat and Responses), Anthropic, Google and Ollama."""

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from driver import Driver, serve


def openai(wanted, **more):
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model=wanted.model, base_url=f"{wanted.url}/v1", api_key=wanted.key, max_retries=wanted.retries, timeout=30,
                      stop_sequences=wanted.stop, stream_usage=True, max_tokens=wanted.max_tokens, **more)


def responses(wanted):
    return openai(wanted, use_responses_api=True)


def anthropic(wanted):
    from langchain_anthropic import ChatAnthropic

    return ChatAnthropic(model=wanted.model, base_url=wanted.url, api_key=wanted.key, max_retries=wanted.retries, timeout=30,
                         stop_sequences=wanted.stop, max_tokens=wanted.max_tokens or 1000)


def google(wanted):
    from langchain_google_genai import ChatGoogleGenerativeAI

    return ChatGoogleGenerativeAI(model=wanted.model, base_url=wanted.url, google_api_key=wanted.key, max_retries=wanted.retries + 1,
                                  timeout=30, max_output_tokens=wanted.max_tokens)


def ollama(wanted):
    from langchain_ollama import ChatOllama

    headers = {"headers": {"Authorization": f"Bearer {wanted.key}"}, "timeout": 30}
    return ChatOllama(model=wanted.model, base_url=wanted.url, client_kwargs=headers, stop=wanted.stop, num_predict=wanted.max_tokens)


class LangChain(Driver):
    can = ("tools", "parallel", "choice", "none", "named", "schema", "picture", "stop", "abort", "whole", "pieces", "key")
    choices = {"required": "any"}

    def begin(self, wanted):
        kinds = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}
        return [kinds[one["role"]](content(one)) for one in wanted.messages]

    def ask(self, wanted, messages, outcome):
        model = self.model(wanted)
        if wanted.tools:
            tools = [{"type": "function", "function": {"name": one["name"], "description": one["description"], "parameters": one["schema"]}}
                     for one in wanted.tools]
            choice = wanted.choice["name"] if isinstance(wanted.choice, dict) else self.choices.get(wanted.choice, wanted.choice)
            model = model.bind_tools(tools, **({"tool_choice": choice} if choice else {}))
        if wanted.schema:
            schema = {"title": "number", "description": "A number.", **wanted.schema}
            outcome.json = model.with_structured_output(schema, method="json_schema").invoke(messages)
            return []
        if not wanted.stream:
            reply = model.invoke(messages)
        else:
            reply = None
            for chunk in model.stream(messages):
                if chunk.tool_call_chunks:
                    outcome.sees_call()
                if wanted.abort and chunk.text:
                    return []
                reply = chunk if reply is None else reply + chunk
        outcome.text = reply.text
        usage = reply.usage_metadata
        outcome.usage = [usage["input_tokens"], usage["output_tokens"]]
        messages.append(reply)
        return [(one["id"], one["name"], one["args"]) for one in reply.tool_calls]

    def give(self, messages, results):
        messages += [ToolMessage(text, tool_call_id=id, name=name) for id, name, _arguments, text in results]


def content(one):
    if "picture" not in one:
        return one["text"]
    url = {"url": f"data:image/png;base64,{one['picture']}"}
    return [{"type": "text", "text": one["text"]}, {"type": "image_url", "image_url": url}]


def driver(make, *cannot, **choices):
    can = tuple(one for one in LangChain.can if one not in cannot)
    return type("Of", (LangChain,), {"model": staticmethod(make), "can": can, "choices": {**LangChain.choices, **choices}})


if __name__ == "__main__":
    serve({
        "chat": driver(openai),
        # The API has no stop sequences.
        "responses": driver(responses, "stop"),
        # It has no way to choose no tool.
        "anthropic": driver(anthropic, "none"),
        # Of stop sequences it knows only with each request; "any tool" it writes as the names of its own, which leaves the server's out.
        "google": driver(google, "pieces", "stop", "choice"),
        # It streams in any case.
        "ollama": driver(ollama, "pieces", "whole", "choice", "none", "named"),
    })
