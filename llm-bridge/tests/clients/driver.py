"""What the drivers of the SDKs in Python have in common.

A driver reads neutral requests from its standard input and writes neutral outcomes, a line of JSON each. It puts a request into the words
of its SDK, runs the client's tools until the model has answered, and gives back what the SDK gave it.
"""

import json
import os
import sys
import time
from types import SimpleNamespace

SETTLED = {
    "tools": [], "results": {}, "choice": None, "schema": None, "by_call": False, "one_round": False, "stop": None, "stream": False,
    "retries": 0, "abort": False, "extra": {}, "max_tokens": None, "kept": False, "beside": None,
}
ROUNDS = 4


class Outcome:
    """What came of a request; `text` is the last answer, `calls` all that the SDK handed out."""

    def __init__(self):
        self.text, self.calls, self.json, self.usage = "", [], None, None
        self.began, self.first_call = time.monotonic(), None

    def sees_call(self):
        """The first piece of a call is here."""
        self.first_call = self.first_call or time.monotonic()

    def fields(self):
        early = self.first_call and time.monotonic() - self.first_call
        return {"text": self.text, "calls": self.calls, "json": self.json, "usage": self.usage, "early": early}


class Driver:
    """What an SDK does with a request; `can` are the features that it has."""

    can = ()

    def run(self, wanted, outcome):
        """Asks until there are no calls any more: `ask` gives the calls, as (id, name, arguments), and `give` takes their results."""
        state = self.begin(wanted)
        for _ in range(ROUNDS):
            calls = self.ask(wanted, state, outcome)
            outcome.calls += [[name, arguments] for _id, name, arguments in calls]
            if not calls or wanted.abort or wanted.one_round:
                return
            self.give(state, [(*one, wanted.results[one[1]]) for one in calls])
            # A choice is for the first answer; in the next it would ask for a call for ever.
            wanted.choice = None


def failure(error):
    """An exception of the SDK: the first in its chain with a status."""
    one = error
    while one is not None:
        status = next((value for name in ("status_code", "code", "status") if isinstance(value := getattr(one, name, None), int)), None)
        if status is not None:
            return {"type": type(error).__name__, "status": status, "message": f"{error} {one}"}
        one = one.__cause__ or one.__context__
    return {"type": type(error).__name__, "status": None, "message": str(error)}


def serve(drivers):
    """Runs the driver that the command line names."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    driver = drivers[sys.argv[1]]()
    print(json.dumps({"can": driver.can}), file=out, flush=True)
    for line in sys.stdin:
        wanted, outcome = SimpleNamespace(**{**SETTLED, **json.loads(line)}), Outcome()
        try:
            driver.run(wanted, outcome)
            fields = outcome.fields()
        except Exception as error:
            fields = {**outcome.fields(), "error": failure(error)}
        print(json.dumps(fields, default=str), file=out, flush=True)
