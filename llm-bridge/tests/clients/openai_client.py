"""The openai package: chat completions and Responses."""

import json

import openai

from driver import Driver, serve


def client(wanted):
    return openai.OpenAI(base_url=f"{wanted.url}/v1", api_key=wanted.key, max_retries=wanted.retries, timeout=30)


class Chat(Driver):
    can = ("tools", "parallel", "choice", "none", "named", "schema", "picture", "stop", "abort", "whole", "pieces", "extra", "functions",
           "key", "beside")

    def begin(self, wanted):
        return [message(one) for one in wanted.messages]

    def ask(self, wanted, messages, outcome):
        if wanted.beside:
            outcome.text = beside(client(wanted), wanted)
            return []
        asked = {"model": wanted.model, "messages": messages, "extra_body": wanted.extra, **options(wanted)}
        create = client(wanted).chat.completions
        if wanted.abort:
            with create.create(**asked, stream=True) as stream:
                return [] if next(chunk for chunk in stream if chunk.choices[0].delta.content) else None
        if wanted.stream:
            with create.stream(**asked, stream_options={"include_usage": True}) as stream:
                for event in stream:
                    if event.type == "tool_calls.function.arguments.delta":
                        outcome.sees_call()
                reply = stream.get_final_completion()
        else:
            reply = create.create(**asked)
        said = reply.choices[0].message
        outcome.text, outcome.usage = said.content or "", [reply.usage.prompt_tokens, reply.usage.completion_tokens]
        if wanted.schema:
            outcome.json = json.loads(outcome.text)
        messages.append(said.model_dump(exclude_none=True, exclude={"parsed"}))
        if said.function_call:
            return [(None, said.function_call.name, json.loads(said.function_call.arguments))]
        return [(one.id, one.function.name, json.loads(one.function.arguments)) for one in said.tool_calls or []]

    def give(self, messages, results):
        for id, name, _arguments, text in results:
            # Deprecated functions have no ids.
            result = {"role": "tool", "tool_call_id": id} if id else {"role": "function", "name": name}
            messages.append({**result, "content": text})


def beside(api, wanted):
    """What stands beside the chat."""
    match wanted.beside:
        case "model":
            return api.models.retrieve(wanted.model).id
        case "embedding":
            made = api.embeddings.create(model=wanted.model, input="Hello", encoding_format="float")
            return " ".join(f"{number:g}" for number in made.data[0].embedding)
        case "completion":
            return api.completions.create(model=wanted.model, prompt="Hello").choices[0].text


def message(one):
    if "picture" not in one:
        return {"role": one["role"], "content": one["text"]}
    url = {"url": f"data:image/png;base64,{one['picture']}"}
    return {"role": "user", "content": [{"type": "text", "text": one["text"]}, {"type": "image_url", "image_url": url}]}


def options(wanted):
    made = {}
    if wanted.tools:
        made["tools"] = [
            {"type": "function", "function": {"name": one["name"], "description": one["description"], "parameters": one["schema"]}}
            for one in wanted.tools]
    if wanted.choice:
        named = isinstance(wanted.choice, dict)
        made["tool_choice"] = {"type": "function", "function": wanted.choice} if named else wanted.choice
    if wanted.schema:
        made["response_format"] = {"type": "json_schema", "json_schema": {"name": "number", "schema": wanted.schema, "strict": True}}
    if wanted.stop:
        made["stop"] = wanted.stop
    if wanted.max_tokens:
        made["max_tokens"] = wanted.max_tokens
    return made


class Responses(Driver):
    can = ("tools", "parallel", "choice", "none", "named", "schema", "picture", "abort", "whole", "pieces", "key", "kept")
    previous = None

    def begin(self, wanted):
        self.previous = None
        items = []
        for one in wanted.messages:
            content = one["text"]
            if "picture" in one:
                url = f"data:image/png;base64,{one['picture']}"
                content = [{"type": "input_text", "text": content}, {"type": "input_image", "image_url": url, "detail": "auto"}]
            items.append({"role": one["role"], "content": content})
        return items

    def ask(self, wanted, items, outcome):
        asked = {"model": wanted.model, "input": items, "store": wanted.kept}
        if self.previous:
            asked["previous_response_id"] = self.previous.id
        if wanted.tools:
            asked["tools"] = [
                {"type": "function", "name": one["name"], "description": one["description"], "parameters": one["schema"], "strict": False}
                for one in wanted.tools]
        if wanted.choice:
            named = isinstance(wanted.choice, dict)
            asked["tool_choice"] = {"type": "function", **wanted.choice} if named else wanted.choice
        if wanted.schema:
            asked["text"] = {"format": {"type": "json_schema", "name": "number", "schema": wanted.schema, "strict": True}}
        if wanted.max_tokens:
            asked["max_output_tokens"] = wanted.max_tokens
        responses = client(wanted).responses
        if wanted.abort:
            with responses.create(**asked, stream=True) as stream:
                return [] if next(event for event in stream if event.type == "response.output_text.delta") else None
        if wanted.stream:
            with responses.stream(**asked) as stream:
                for event in stream:
                    if event.type == "response.function_call_arguments.delta":
                        outcome.sees_call()
                reply = stream.get_final_response()
        else:
            reply = responses.create(**asked)
        outcome.text, outcome.usage = reply.output_text, [reply.usage.input_tokens, reply.usage.output_tokens]
        if wanted.schema:
            outcome.json = json.loads(outcome.text)
        calls = [(one.call_id, one.name, json.loads(one.arguments)) for one in reply.output if one.type == "function_call"]
        if not wanted.kept:
            items += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in reply.output]
        elif calls:
            items.clear()
            self.previous = reply
        else:
            outcome.json = kept(responses, self.previous, reply)
        return calls

    def give(self, items, results):
        items += [{"type": "function_call_output", "call_id": id, "output": text} for id, _name, _arguments, text in results]


def kept(responses, first, last):
    """What the server has of two responses, of which the last continues the first; it is deleted."""
    items = [item.type for item in responses.input_items.list(last.id, order="asc", limit=2)]
    same = all(plain(responses.retrieve(one.id)) == plain(one) for one in (first, last))
    gone = []
    for one in (first, last):
        responses.delete(one.id)
        try:
            responses.retrieve(one.id)
        except openai.NotFoundError as error:
            gone.append(error.status_code)
    return {"items": items, "same": same, "gone": gone}


def plain(response):
    """A response without what the SDK has read in it."""
    ours = {"output": {"__all__": {"parsed_arguments": True, "content": {"__all__": {"parsed"}}}}}
    return response.model_dump(mode="json", exclude_unset=True, exclude=ours)


if __name__ == "__main__":
    serve({"chat": Chat, "responses": Responses})
