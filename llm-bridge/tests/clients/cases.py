"""The cases that every SDK goes through: what the client asks, what the model does, and what both see.

`ask` is the neutral request that a driver puts into the words of its SDK (see driver.py), `script` the steps of the model (see model.py).
Of the outcome, `text` is contained in the last answer, `calls` are those that the client ran, `json` is the structured answer and `error`
the status that the SDK's own exception carries. `seen` has a part of each request that the model server got, in their order.
"""

from dataclasses import dataclass, field

from model import call, fail, reply, say

CALCULATE = ("calculate", {"expression": "(17 + 4) * 23"})
TIME = ("current_time", {"time_zone": "Tokyo"})
ORDER = ("order_state", {"order": 4711})
# The smallest picture, in PNG.
PICTURE = ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


def tool(name, description, **properties):
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": description, "schema": schema}


ORDER_TOOL = tool("order_state", "Look up the state of an order.", order={"type": "integer", "description": "Its number"})
NOTE_TOOL = tool("note", "Write a note.", text={"type": "string", "description": "What to write"})
RESULTS = {"order_state": "shipped on Tuesday", "note": "written"}
NUMBER = {
    "type": "object", "properties": {"value": {"type": "integer"}}, "required": ["value"], "additionalProperties": False,
}
OWN = {"tools": [ORDER_TOOL], "results": RESULTS}
OLD = {"extra": {"functions": [{"name": "old", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]}}
ECHO = say("", repeats=True)
A_TOOL = [call(CALCULATE), ECHO]
# Answers of text in which a client finds calls by itself.
PROTOCOL = '<tool_call>{"name": "order_state", "arguments": {"order": 4711}}</tool_call>'


def user(text, **more):
    return {"role": "user", "text": text, **more}


@dataclass
class Case:
    name: str
    script: list
    ask: dict = field(default_factory=dict)
    # The words of the features that an SDK may lack.
    needs: tuple = ()
    # What is in the answer: a text or several.
    text: str | tuple | None = None
    calls: list | None = None
    json: object = None
    error: int | None = None
    # A part of the error's message.
    says: str | None = None
    seen: list | None = None
    # How often the model is asked; by default once for each of `seen`.
    asked: int | None = None
    usage: tuple | None = None
    # The client reads the beginning of a call while the model still writes it.
    early: bool = False
    # Which ways of asking: whole, streamed.
    ways: tuple = (False, True)
    messages: list = field(default_factory=lambda: [user("Please.")])


# What stands beside the chat.
VECTOR = {"object": "list", "model": "scripted", "data": [{"object": "embedding", "index": 0, "embedding": [0.5, -1.0]}],
          "usage": {"prompt_tokens": 1, "total_tokens": 1}}
COMPLETION = {"id": "c", "object": "text_completion", "created": 1, "model": "scripted", "usage": {},
              "choices": [{"index": 0, "text": " world", "finish_reason": "stop", "logprobs": None}]}


def offered(*names):
    return {"tools": [{"function": {"name": name}} for name in names]}


# A request in which no tool is offered.
NO_TOOLS = {"tools": None}

CASES = [
    Case("plain", [say("Hel", "lo, ", "world.")], text="Hello, world.", calls=[], seen=[{}], usage=(11, 7)),
    Case(
        "a conversation with instructions", [say("Bob.")], text="Bob.", ask={"max_tokens": 50},
        messages=[{"role": "system", "text": "Be brief."}, user("I am Bob."), {"role": "assistant", "text": "Hello."},
                  user("Who am I?")],
        seen=[{"max_tokens": 50}],
    ),
    Case("one server tool", A_TOOL, text="483", calls=[], seen=[{}, {}], usage=(22, 14)),
    Case(
        "one server tool, written as text",
        [say('<tool_call>\n{"name": "calculate", "argu', 'ments": {"expression": "(17 + 4) * 23"}}\n</tool_call>'), ECHO],
        text="483", calls=[], seen=[{}, {}],
    ),
    Case("two server tools", [call(CALCULATE, TIME), ECHO], text="+09:00", calls=[], seen=[{}, {}]),
    Case(
        "its own tool, there and back", [call(ORDER, text="I look."), ECHO], OWN, needs=("tools",), text="shipped on Tuesday",
        calls=[ORDER], seen=[offered("order_state"), {}],
    ),
    Case(
        "two calls of its own tools at once (N2)", [call(ORDER, ("note", {"text": "x"})), ECHO],
        {"tools": [ORDER_TOOL, NOTE_TOOL], "results": RESULTS}, needs=("tools", "parallel"), text=("shipped on Tuesday", "written"),
        calls=[ORDER, ("note", {"text": "x"})], seen=[{}, {}],
    ),
    Case(
        "server tool and its own tool at once", [call(CALCULATE, ORDER), ECHO], OWN, needs=("tools",),
        text="483", calls=[ORDER], seen=[{}, {}],
    ),
    Case(
        "server tool, then its own tool", [call(CALCULATE), call(ORDER), ECHO], OWN, needs=("tools",),
        text="shipped on Tuesday", calls=[ORDER], seen=[{}, {}, {}],
    ),
    Case("tool choice auto", [say("No.")], {**OWN, "choice": "auto"}, needs=("tools", "choice"), text="No.", calls=[],
         seen=[offered("order_state")]),
    Case("tool choice none", [say("No.")], {**OWN, "choice": "none"}, needs=("tools", "none"), text="No.", calls=[], seen=[{}]),
    Case(
        "tool choice required (N1)", [call(CALCULATE), call(ORDER), ECHO], {**OWN, "choice": "required"},
        needs=("tools", "choice"), calls=[ORDER],
        seen=[{"tool_choice": "required"}, {"tool_choice": "required"}, {}], text="shipped on Tuesday",
    ),
    Case(
        "a call of its own tool where one is required (N1)", [call(CALCULATE), call(ORDER)], {"tools": [ORDER_TOOL], "one_round": True},
        needs=("one_round",), calls=[ORDER], seen=[{"tool_choice": "required"}, {"tool_choice": "required"}],
    ),
    Case(
        "tool choice named (N1)", [call(ORDER), ECHO], {**OWN, "choice": {"name": "order_state"}},
        needs=("tools", "named"), calls=[ORDER], text="shipped on Tuesday", seen=[{}, {}],
    ),
    # Free of its form the model can call tools; then it is asked for the form.
    Case(
        "structured output after a server tool (N12)", [call(CALCULATE), say('{"value": ', "483}")], {"schema": NUMBER},
        needs=("schema",), json={"value": 483},
        seen=[{"response_format": None}, {"response_format": None}, {"response_format": {"type": "json_"}}],
    ),
    Case(
        "structured output by a call that is required (N1)", [call(CALCULATE), call(("final_result", {"value": 483}))],
        {"schema": NUMBER, "by_call": True}, needs=("by_call",), json={"value": 483},
        seen=[{"tool_choice": "required"}, {"tool_choice": "required"}],
    ),
    Case(
        "picture", [say("A dot.")], needs=("picture",), text="A dot.", messages=[user("What is it?", picture=PICTURE)],
        seen=[{"messages": PICTURE}],
    ),
    # Only what is new is sent; the rest is kept.
    Case(
        "a kept response is continued, retrieved, listed and deleted", [call(ORDER), ECHO], {**OWN, "kept": True},
        needs=("tools", "kept"), text="shipped on Tuesday", calls=[ORDER],
        json={"items": ["message", "function_call", "function_call_output"], "same": True, "gone": [404, 404]},
        seen=[{}, {"messages": ["Please.", "shipped on Tuesday"]}],
    ),
    Case(
        "kept items are referred to over two turns", [call(ORDER, text="I look."), ECHO], {**OWN, "kept": True, "again": "And now?"},
        needs=("tools", "references"), text="shipped on Tuesday", calls=[ORDER, ORDER],
        seen=[{}, {"messages": ["I look.", "shipped on Tuesday"]}, {"messages": ["I look.", "The tools say", "And now?"]}, {}],
    ),
    Case("one model (N6)", [], {"beside": "model"}, needs=("beside",), ways=(False,), text="scripted", asked=0),
    Case("an unknown model (N6)", [], {"beside": "model", "model": "none"}, needs=("beside",), ways=(False,), error=404, asked=0),
    Case("embeddings (N6)", [reply(VECTOR)], {"beside": "embedding"}, needs=("beside",), ways=(False,), text="0.5 -1",
         seen=[{"input": "Hello"}]),
    Case("a completion (N6)", [reply(COMPLETION)], {"beside": "completion"}, needs=("beside",), ways=(False,), text=" world",
         seen=[{"prompt": "Hello"}]),
    Case("stop sequence", [say("One two")], {"stop": ["three"]}, needs=("stop",), text="One two", seen=[{"stop": ["three"]}]),
    Case("abort in the middle", [say("Begin.", endless=True)], {"abort": True}, needs=("abort",), ways=(True,), seen=[{}]),
    Case(
        "the beginning of a call is read before its end (N3)",
        [call(("note", {"text": "x" * 600}), pieces=12, pause=0.1), say("Done.")], {"tools": [NOTE_TOOL], "results": RESULTS},
        needs=("tools", "pieces"), ways=(True,), early=True, calls=[("note", {"text": "x" * 600})],
    ),
    Case("calls in a text of its own protocol (N7)", [say("So: ", PROTOCOL)], text=PROTOCOL, calls=[], seen=[{}]),
    Case("grammar (N12)", [say("yes")], {"extra": {"grammar": 'root ::= "yes"'}}, needs=("extra",), text="yes", ways=(False,),
         seen=[{"grammar": 'root ::= "yes"', **NO_TOOLS}]),
    Case("the deprecated `functions` (N15)", [call(("old", {"a": 1})), ECHO], {**OLD, "results": {"old": "grey"}},
         needs=("functions",), ways=(False,), calls=[("old", {"a": 1})], text="grey", seen=[offered("old"), {}]),
    Case(
        "context too long (N5)", [fail(400, type="invalid_request_error", code="context_length_exceeded")], error=400,
        says="scripted 400", seen=[{}],
    ),
    Case("401 for a wrong key (N16)", [], {"key": "wrong"}, error=401, asked=0, needs=("key",)),
    Case("404 for an unknown model", [fail(404, code="model_not_found")], error=404, says="scripted 404", seen=[{}]),
    Case("429", [fail(429, code="rate_limit_exceeded")], error=429, says="scripted 429"),
    Case("a model server that fails is a 502", [fail(500, type="server_error")], error=502, says="scripted 500"),
    # What must not be sent again is a 424, which no SDK sends again.
    Case("a model server that refuses this server is asked once (N5)", [fail(401)], {"retries": 2}, error=424, says="scripted 401",
         seen=[{}]),
    Case("a retry does not repeat a server tool (N4)", [call(CALCULATE), fail(429)], {"retries": 2}, needs=("whole",), error=424,
         ways=(False,)),
    Case("nor where the model server fails (N4)", [call(CALCULATE), fail(500)], {"retries": 2}, needs=("whole",), error=424,
         ways=(False,)),
]

# In front of a real model with random weights, of which only the form can be foretold.
LIVE = [
    # Some SDKs take an answer that was cut off for an error, so there are tokens enough for its end. Offered tools, the model would call
    # some instead.
    Case("plain", [], {"model": "tiny:plain", "max_tokens": 400}, ways=(False,)),
    Case("tool choice named", [], {**OWN, "choice": {"name": "order_state"}, "max_tokens": 400}, needs=("tools", "named"),
         calls=["order_state"]),
    Case("abort in the middle", [], {"model": "tiny:plain", "abort": True}, needs=("abort",), ways=(True,)),
    Case("plain after that", [], {"model": "tiny:plain", "max_tokens": 400}, ways=(False,)),
]
