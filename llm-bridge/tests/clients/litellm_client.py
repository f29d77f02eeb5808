"""LiteLLM, in its OpenAI-compatible form."""

import asyncio
import json

import litellm

from checks import (BOUND, CHOICE, DEMO, ORDER, ORDER_TOOL, QUESTION, RESULT, URL, answered, check, expect, finish,
                    ordered, reported)

litellm.suppress_debug_info = True
litellm.telemetry = False
COMMON = {"model": "openai/default" if DEMO else "openai/tiny", "api_base": f"{URL}/v1", "api_key": "any",
          "num_retries": 0, "timeout": 60}
# As an ordinary argument the package drops it where the client has no tools of its own.
SERVER = {} if DEMO else {"extra_body": {"tool_choice": "none"}}


def ask(messages, **more):
    return litellm.completion(messages=messages, **{**COMMON, **BOUND, **more})


@check("models")
def _():
    models = litellm.get_valid_models(check_provider_endpoint=True, custom_llm_provider="openai",
                                      api_base=f"{URL}/v1", api_key="any")
    expect(len(models) == 1, f"{models}")


@check("chat")
def _():
    reply = ask(QUESTION, **SERVER)
    answered(reply.choices[0].message.content)
    expect(reply.usage.total_tokens > 0, f"{reply.usage}")


@check("stream, in the naive loop")
def _():
    answered("".join(chunk.choices[0].delta.content or "" for chunk in ask(QUESTION, stream=True, **SERVER)))


@check("stream, put together by the package, with usage")
def _():
    chunks = list(ask(QUESTION, stream=True, stream_options={"include_usage": True}, **SERVER))
    whole = litellm.stream_chunk_builder(chunks, messages=QUESTION)
    answered(whole.choices[0].message.content)
    expect(chunks[-1].usage.total_tokens > 0, f"{chunks[-1]}")


@check("stream, asynchronous")
def _():
    async def read():
        stream = await litellm.acompletion(messages=QUESTION, stream=True, **COMMON, **BOUND, **SERVER)
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    answered(asyncio.run(read()))


@check("its own tool, there and back")
def _():
    message = ask(ORDER, tools=[ORDER_TOOL], **CHOICE).choices[0].message
    expect(len(message.tool_calls or []) == 1, f"{message}")
    call = message.tool_calls[0]
    ordered(call.function.name, json.loads(call.function.arguments))
    result = {"role": "tool", "tool_call_id": call.id, "content": RESULT}
    reported(ask([*ORDER, message, result], tools=[ORDER_TOOL]).choices[0].message.content)


@check("its own tool, there and back, streamed")
def _():
    chunks = list(ask(ORDER, tools=[ORDER_TOOL], stream=True, **CHOICE))
    message = litellm.stream_chunk_builder(chunks, messages=ORDER).choices[0].message
    call = message.tool_calls[0]
    ordered(call.function.name, json.loads(call.function.arguments))
    result = {"role": "tool", "tool_call_id": call.id, "content": RESULT}
    chunks = ask([*ORDER, message, result], tools=[ORDER_TOOL], stream=True)
    reported("".join(chunk.choices[0].delta.content or "" for chunk in chunks))


@check("a bad request is the package's error")
def _():
    try:
        ask(QUESTION, n=2)
    except litellm.BadRequestError as error:
        expect(error.status_code == 400 and "`n`" in str(error), f"{error!r}")
    else:
        raise AssertionError("no error")


@check("given up in mid-stream, the next request is answered")
def _():
    long = {} if DEMO else {"max_tokens": 100_000, "logit_bias": {"4": -100}}
    stream = ask(QUESTION, stream=True, **{**SERVER, **long})
    next(iter(stream))
    stream.completion_stream.close()
    answered(ask(QUESTION, timeout=20, **SERVER).choices[0].message.content)


finish()
