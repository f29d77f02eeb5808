"""The openai package."""

import json

import openai

from checks import (BOUND, CHOICE, DEMO, ORDER, ORDER_TOOL, QUESTION, RESULT, URL, answered, check, expect, finish,
                    ordered, reported)

client = openai.OpenAI(base_url=f"{URL}/v1", api_key="any", max_retries=0, timeout=60)
MODEL = client.models.list().data[0].id
SERVER = {"tool_choice": "auto" if DEMO else "none"}


def ask(messages, **more):
    return client.chat.completions.create(model=MODEL, messages=messages, **{**BOUND, **more})


@check("models")
def _():
    models = client.models.list().data
    expect(len(models) == 1 and models[0].id and models[0].object == "model", f"{models}")


@check("chat")
def _():
    reply = ask(QUESTION, **SERVER)
    answered(reply.choices[0].message.content)
    expect(reply.choices[0].finish_reason in ("stop", "length"), f"{reply}")
    expect(reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens > 0, f"{reply.usage}")
    if DEMO:
        kinds = [event["type"] for event in reply.x_toolrack]
        expect(kinds[0] == "call_started" and kinds[-1] == "call_finished", f"{kinds}")


@check("stream, in the naive loop")
def _():
    text, events = "", []
    for chunk in ask(QUESTION, stream=True, **SERVER):
        text += chunk.choices[0].delta.content or ""
        events += [chunk.x_toolrack["type"]] if getattr(chunk, "x_toolrack", None) else []
    answered(text)
    if DEMO:
        expect("call_started" in events and "call_finished" in events, f"{events}")


@check("stream, in the package's accumulator")
def _():
    with client.chat.completions.stream(model=MODEL, messages=QUESTION, **BOUND, **SERVER) as stream:
        kinds = {event.type for event in stream}
        answered(stream.get_final_completion().choices[0].message.content)
    expect("content.delta" in kinds or not DEMO, f"{kinds}")


@check("usage at the end of a stream")
def _():
    chunks = list(ask(QUESTION, stream=True, stream_options={"include_usage": True}, **SERVER))
    expect(chunks[-1].choices == [] and chunks[-1].usage.total_tokens > 0, f"{chunks[-1]}")
    expect(not any(chunk.usage for chunk in chunks[:-1]), "usage in an earlier chunk")


@check("usage only where it is asked for")
def _():
    expect(not any(chunk.usage for chunk in ask(QUESTION, stream=True, **SERVER)), "usage in a chunk")


@check("its own tool, there and back")
def _():
    message = ask(ORDER, tools=[ORDER_TOOL], **CHOICE).choices[0].message
    expect(len(message.tool_calls or []) == 1, f"{message}")
    call = message.tool_calls[0]
    ordered(call.function.name, json.loads(call.function.arguments))
    result = {"role": "tool", "tool_call_id": call.id, "content": RESULT}
    reply = ask([*ORDER, message, result], tools=[ORDER_TOOL])
    reported(reply.choices[0].message.content)
    expect(reply.choices[0].finish_reason in ("stop", "length"), f"{reply}")


@check("its own tool, there and back, streamed")
def _():
    with client.chat.completions.stream(
            model=MODEL, messages=ORDER, tools=[ORDER_TOOL], **BOUND, **CHOICE) as stream:
        for _event in stream:
            pass
        choice = stream.get_final_completion().choices[0]
    expect(choice.finish_reason == "tool_calls" and len(choice.message.tool_calls) == 1, f"{choice}")
    call = choice.message.tool_calls[0]
    ordered(call.function.name, json.loads(call.function.arguments))
    said = {"role": "assistant", "content": choice.message.content, "tool_calls": [
        {"id": call.id, "type": "function",
         "function": {"name": call.function.name, "arguments": call.function.arguments}}]}
    result = {"role": "tool", "tool_call_id": call.id, "content": RESULT}
    chunks = ask([*ORDER, said, result], tools=[ORDER_TOOL], stream=True)
    reported("".join(chunk.choices[0].delta.content or "" for chunk in chunks))


@check("its own tool in deltas, in the package's accumulator")
def _():
    # The demo writes questions of other lengths in other dialects.
    for more in range(6 if DEMO else 1):
        order = [{"role": "user", "content": ORDER[0]["content"] + "!" * more}]
        with client.chat.completions.stream(model=MODEL, messages=order, tools=[ORDER_TOOL], **BOUND, **CHOICE,
                                            extra_body={"toolrack": {"deltas": True}}) as stream:
            events = list(stream)
            choice = stream.get_final_completion().choices[0]
        expect(choice.finish_reason == "tool_calls" and len(choice.message.tool_calls) == 1, f"{choice}")
        call = choice.message.tool_calls[0]
        ordered(call.function.name, json.loads(call.function.arguments))
        pieces = [event.chunk.choices[0].delta.tool_calls[0] for event in events
                  if event.type == "chunk" and event.chunk.choices and event.chunk.choices[0].delta.tool_calls]
        expect(pieces[0].function.name == call.function.name and pieces[0].function.arguments == "", f"{pieces[0]}")
        expect("".join(piece.function.arguments for piece in pieces) == call.function.arguments, f"{pieces}")
        expect(all(piece.id is None for piece in pieces[1:]), f"{pieces}")


@check("a server's tool and its own in one conversation")
def _():
    if not DEMO:
        return
    first = ask(QUESTION, tools=[ORDER_TOOL]).choices[0].message
    answered(first.content)
    message = ask([*QUESTION, first, *ORDER], tools=[ORDER_TOOL]).choices[0].message
    ordered(message.tool_calls[0].function.name, json.loads(message.tool_calls[0].function.arguments))


@check("a bad request is the package's error")
def _():
    for stream in (False, True):
        try:
            ask([], stream=stream)
        except openai.BadRequestError as error:
            expect(error.status_code == 400 and error.param == "messages", f"{error!r}")
            expect("messages" in error.message and error.type == "invalid_request_error", f"{error!r}")
        else:
            raise AssertionError("no error")


@check("what is not there is the package's error")
def _():
    try:
        client.embeddings.create(model=MODEL, input="x", encoding_format="float")
    except openai.NotFoundError as error:
        expect(error.type == "not_found", f"{error!r}")
    else:
        raise AssertionError("no error")


@check("given up in mid-stream, the next request is answered")
def _():
    long = {} if DEMO else {"max_tokens": 100_000, "logit_bias": {"4": -100}}
    for _round in range(3):
        stream = ask(QUESTION, stream=True, **{**SERVER, **long})
        next(iter(stream))
        stream.close()
    # A model server with one slot is free only if the bridge has given up too.
    answered(client.with_options(timeout=20).chat.completions.create(
        model=MODEL, messages=QUESTION, **BOUND, **SERVER).choices[0].message.content)


finish()
