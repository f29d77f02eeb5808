"""The google-genai package."""

import base64
import json

from google import genai
from google.genai import types

from driver import Driver, serve

MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}


class Generate(Driver):
    can = ("tools", "parallel", "choice", "none", "named", "schema", "picture", "stop", "abort", "whole", "key")

    def begin(self, wanted):
        contents = []
        for one in wanted.messages:
            if one["role"] == "system":
                continue
            parts = [types.Part(text=one["text"])]
            if "picture" in one:
                parts.append(types.Part.from_bytes(data=base64.b64decode(one["picture"]), mime_type="image/png"))
            contents.append(types.Content(role={"assistant": "model"}.get(one["role"], "user"), parts=parts))
        return contents

    def config(self, wanted):
        made = {"automatic_function_calling": types.AutomaticFunctionCallingConfig(disable=True)}
        if system := [one["text"] for one in wanted.messages if one["role"] == "system"]:
            made["system_instruction"] = system[0]
        if wanted.tools:
            declarations = [
                types.FunctionDeclaration(name=one["name"], description=one["description"], parameters_json_schema=one["schema"])
                for one in wanted.tools]
            made["tools"] = [types.Tool(function_declarations=declarations)]
        if wanted.choice:
            named = isinstance(wanted.choice, dict)
            choice = {"mode": "ANY", "allowed_function_names": [wanted.choice["name"]]} if named else {"mode": MODES[wanted.choice]}
            made["tool_config"] = types.ToolConfig(function_calling_config=types.FunctionCallingConfig(**choice))
        if wanted.schema:
            made |= {"response_mime_type": "application/json", "response_json_schema": wanted.schema}
        if wanted.stop:
            made["stop_sequences"] = wanted.stop
        if wanted.max_tokens:
            made["max_output_tokens"] = wanted.max_tokens
        return types.GenerateContentConfig(**made)

    def ask(self, wanted, contents, outcome):
        retry = types.HttpRetryOptions(attempts=wanted.retries + 1, initial_delay=0.1, max_delay=0.2)
        http = types.HttpOptions(base_url=wanted.url, timeout=30_000, retry_options=retry)
        client = genai.Client(api_key=wanted.key, http_options=http)
        asked = {"model": wanted.model, "contents": contents, "config": self.config(wanted)}
        if wanted.abort:
            stream = client.models.generate_content_stream(**asked)
            next(part for part in stream if part.text)
            stream.close()
            return []
        replies = list(client.models.generate_content_stream(**asked)) if wanted.stream else [client.models.generate_content(**asked)]
        parts = [part for reply in replies if reply.candidates and reply.candidates[0].content
                 for part in reply.candidates[0].content.parts or []]
        outcome.text = "".join(part.text for part in parts if part.text and not part.thought)
        usage = replies[-1].usage_metadata
        outcome.usage = [usage.prompt_token_count, usage.candidates_token_count]
        if wanted.schema:
            outcome.json = json.loads(outcome.text)
        contents.append(types.Content(role="model", parts=parts))
        calls = [part.function_call for part in parts if part.function_call]
        return [(one.id, one.name, one.args) for one in calls]

    def give(self, contents, results):
        parts = [types.Part(function_response=types.FunctionResponse(id=id, name=name, response={"output": text}))
                 for id, name, _arguments, text in results]
        contents.append(types.Content(role="user", parts=parts))


if __name__ == "__main__":
    serve({"generate": Generate})
