"""curl: what goes over the wire, byte by byte."""

import json
import subprocess

from checks import (BOUND, CHOICE, DEMO, ORDER, ORDER_TOOL, QUESTION, URL, answered, check, expect, finish, ordered)

SERVER = {} if DEMO else {"tool_choice": "none"}


def curl(path, body=None, *flags):
    """The status, the headers in lower case, and the body."""
    command = ["curl", "--silent", "--show-error", "--no-buffer", "--max-time", "60", "--include", *flags, URL + path]
    if body is not None:
        command += ["--header", "Content-Type: application/json", "--data-binary", "@-"]
    text = json.dumps(body) if body is not None else ""
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    head, _, rest = done.stdout.decode().partition("\r\n\r\n")
    status, *lines = head.split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    return int(status.split()[1]), headers, rest


def ask(messages, **more):
    return curl("/v1/chat/completions", {"messages": messages, **BOUND, **more})


@check("models and health")
def _():
    status, _headers, body = curl("/v1/models")
    expect(status == 200 and json.loads(body)["object"] == "list", body)
    status, _headers, body = curl("/healthz")
    expect(status == 200 and json.loads(body)["status"] == "ok", body)


@check("chat, without a model's name")
def _():
    status, headers, body = ask(QUESTION, **SERVER)
    expect(status == 200 and headers["content-type"].startswith("application/json"), f"{status} {headers}")
    reply = json.loads(body)
    answered(reply["choices"][0]["message"]["content"])
    expect(reply["model"] and reply["object"] == "chat.completion", body)


@check("a stream is events with one whole chunk each and [DONE]")
def _():
    status, headers, body = ask(QUESTION, stream=True, stream_options={"include_usage": True}, **SERVER)
    expect(status == 200 and headers["content-type"].startswith("text/event-stream"), f"{status} {headers}")
    events = body.strip().split("\n\n")
    expect(events[-1] == "data: [DONE]", events[-1])
    chunks = [json.loads(event.removeprefix("data: ")) for event in events[:-1] if not event.startswith(":")]
    expect(len({chunk["id"] for chunk in chunks}) == 1, "several ids")
    expect(all(chunk["object"] == "chat.completion.chunk" for chunk in chunks), "another object")
    expect(all(len(chunk["choices"]) == 1 for chunk in chunks[:-1]), "a chunk without its choice")
    expect(chunks[0]["choices"][0]["delta"].get("role") == "assistant", f"{chunks[0]}")
    expect(sum("role" in chunk["choices"][0]["delta"] for chunk in chunks[:-1]) == 1, "the role twice")
    finish_reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks[:-1]]
    expect(finish_reasons[-1] and not any(finish_reasons[:-1]), f"{finish_reasons}")
    answered("".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks[:-1]))
    if DEMO:
        details = [chunk["x_toolrack"] for chunk in chunks if "x_toolrack" in chunk]
        finished = [one for one in details if one["type"] == "call_finished"]
        expect(finished and finished[0]["success"] is True and finished[0]["name"] == "calculate", f"{details}")
        statuses = [chunk["event"]["data"] for chunk in chunks if "event" in chunk]
        expect(statuses[-1]["done"] is True, f"{statuses}")


@check("its own tool comes back")
def _():
    status, _headers, body = ask(ORDER, tools=[ORDER_TOOL], **CHOICE)
    choice = json.loads(body)["choices"][0]
    expect(status == 200 and choice["finish_reason"] == "tool_calls", body)
    function = choice["message"]["tool_calls"][0]["function"]
    ordered(function["name"], json.loads(function["arguments"]))


@check("errors have a status and a message")
def _():
    for path, body, flags, wanted in [
        ("/v1/chat/completions", {}, [], 400),
        ("/v1/chat/completions", {"messages": QUESTION, "tool_choice": "maybe"}, [], 400),
        ("/v1/chat/completions", None, [], 405),
        ("/v1/nothing", None, [], 404),
        ("/v1/models", None, ["--header", "Origin: http://elsewhere.example"], 403),
        ("/v1/models", None, ["--header", "Host: elsewhere.example"], 421),
    ]:
        status, _headers, text = curl(path, body, *flags)
        expect(status == wanted, f"{path} {body} {flags}: {status} {text}")
        expect(json.loads(text)["error"]["message"], text)
    done = subprocess.run(["curl", "--silent", "--output", "/dev/null", "--write-out", "%{http_code}", "--data", "x=1",
                           f"{URL}/v1/chat/completions"], capture_output=True, text=True, check=True)
    expect(done.stdout == "415", done.stdout)


finish()
