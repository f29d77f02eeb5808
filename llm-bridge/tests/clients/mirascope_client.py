"""mirascope, which fails at an item of a response that it has not asked for."""

from mirascope import llm

from driver import Driver, serve


class Responses(Driver):
    can = ("whole", "key")

    def begin(self, wanted):
        def message(role, text):
            match role:
                case "system":
                    return llm.messages.system(text)
                case "user":
                    return llm.messages.user(text)
            return llm.messages.assistant(text, model_id=None, provider_id=None)

        return [message(one["role"], one["text"]) for one in wanted.messages]

    def ask(self, wanted, messages, outcome):
        llm.register_provider("openai", scope="openai/", base_url=f"{wanted.url}/v1", api_key=wanted.key)
        model = llm.Model(f"openai/{wanted.model}", **({"max_tokens": wanted.max_tokens} if wanted.max_tokens else {}))
        if wanted.stream:
            reply = model.stream(messages)
            reply.finish()
        else:
            reply = model.call(messages)
        outcome.text, outcome.usage = reply.text(), [reply.usage.input_tokens, reply.usage.output_tokens]
        return []


if __name__ == "__main__":
    serve({"responses": Responses})
