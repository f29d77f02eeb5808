"""Checks that print a line each and a sum at the end."""

import os
import sys
import time
import traceback

URL = os.environ.get("TOOLRACK_URL", "http://127.0.0.1:7331")
# The demo model gives answers that can be foretold; the tiny one gives noise in the right form.
DEMO = os.environ.get("TOOLRACK_MODEL", "demo") == "demo"
WHO = os.environ.get("TOOLRACK_CLIENT", "")

QUESTION = [{"role": "user", "content": "What is (17 + 4) * 23?"}]
ORDER = [{"role": "user", "content": "What is the state of order 4711?"}]
ORDER_TOOL = {
    "type": "function",
    "function": {
        "name": "order_state",
        "description": "Look up the state of an order by its number.",
        "parameters": {
            "type": "object",
            "properties": {"order": {"type": "integer", "description": "The number of the order"}},
            "required": ["order"],
        },
    },
}
# The tiny model would never end by itself.
BOUND = {} if DEMO else {"max_tokens": 400, "seed": 1}
# The tiny model calls what it likes, without instructions.
CHOICE = {} if DEMO else {"tool_choice": {"type": "function", "function": {"name": "order_state"}}}
MARKUP = ("<tool_call", "</tool_call", "<function=", "</function", "<parameter", '{"name"', '"arguments"', "```")

_counts = {"passed": 0, "failed": 0}


def check(name):
    """Runs a function as a check."""

    def run(body):
        began = time.monotonic()
        try:
            body()
            _counts["passed"] += 1
            print(f"ok      {WHO}: {name} ({time.monotonic() - began:.1f} s)", flush=True)
        except Exception as error:
            _counts["failed"] += 1
            text = str(error) if isinstance(error, AssertionError) else traceback.format_exc()
            print(f"FAILED  {WHO}: {name}\n        " + text.strip().replace("\n", "\n        "), flush=True)
        return body

    return run


def counts():
    """How many checks passed and failed so far."""
    return dict(_counts)


def finish():
    """Prints the sum and ends the program."""
    print(f"{_counts['passed']} passed, {_counts['failed']} failed", flush=True)
    sys.exit(1 if _counts["failed"] or not _counts["passed"] else 0)


def expect(truth, what):
    """A check's condition; `what` says what was seen."""
    if not truth:
        raise AssertionError(what)


def answered(text):
    """The answer to QUESTION, clean of any markup."""
    expect(isinstance(text, str), f"no text but {text!r}")
    if DEMO:
        expect("483" in text, f"no 483 in {text!r}")
        expect(not any(mark in text for mark in MARKUP), f"markup in {text!r}")


def ordered(name, arguments):
    """The call of the client's own tool."""
    expect(name == "order_state", f"called {name}")
    expect(set(arguments) == {"order"} and isinstance(arguments["order"], int), f"arguments {arguments}")
    if DEMO:
        expect(arguments["order"] == 4711, f"arguments {arguments}")


def reported(text):
    """The answer from the client's result."""
    expect(isinstance(text, str), f"no text but {text!r}")
    if DEMO:
        expect("shipped on Tuesday" in text, f"the result is not in {text!r}")


RESULT = '{"state": "shipped on Tuesday"}'
