"""Runs an SDK through the table of cases, by its driver."""

import json
import os
import subprocess
import tempfile
import time
import uuid
from contextlib import contextmanager

from cases import A_TOOL, CASES, LIVE, user
from checks import expect

KEY = "key-of-the-test"
# How long a driver may take for one case, in seconds.
PATIENCE = 60
# How long before the end the beginning of a call is to be read, where the model writes for 1.2 s.
EARLY = 0.5
# How soon an answer that was given up is given up towards the model.
GIVEN_UP = 5
TURNS = 10


class Driver:
    """A driver's process."""

    def __init__(self, command):
        environment = {**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", "PYTHONDONTWRITEBYTECODE": "1",
                       "LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENAI_API_KEY": KEY}
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.log, text=True, env=environment)
        self.can = self.read()["can"]

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            self.log.seek(0)
            raise RuntimeError(f"the driver has ended:\n{self.log.read()[-4000:]}")
        return json.loads(line)

    def ask(self, wanted):
        self.process.stdin.write(json.dumps(wanted) + "\n")
        self.process.stdin.flush()
        return self.read()


@contextmanager
def driver(command):
    one = Driver(command)
    try:
        yield one
    finally:
        one.process.stdin.close()
        try:
            one.process.wait(10)
        except subprocess.TimeoutExpired:
            one.process.kill()


def contains(whole, part):
    """Whether `part` is in `whole`; `None` stands for a field that is not there."""
    match part:
        case dict():
            if not isinstance(whole, dict):
                return False
            return all(contains(whole.get(key), value) for key, value in part.items())
        case list():
            return isinstance(whole, list) and all(any(contains(one, wanted) for one in whole) for wanted in part)
        case str():
            return part in (whole if isinstance(whole, str) else json.dumps(whole))
        case _:
            return whole == part


def judged(case, outcome, asked, model):
    """Compares what came of a case with what the table says."""
    error = outcome.get("error")
    if case.error is None:
        expect(error is None, f"failed: {error}")
    else:
        expect(error and error["status"] == case.error, f"no error {case.error} but {error or outcome}")
        expect(case.says is None or case.says in error["message"], f"no {case.says!r} in {error['message']!r}")
    for text in [case.text] if isinstance(case.text, str) else case.text or ():
        expect(text in (outcome["text"] or ""), f"no {text!r} in {outcome['text']!r}")
    if case.calls is not None:
        calls = [[name, arguments] for name, arguments in case.calls]
        expect(outcome["calls"] == calls, f"calls {outcome['calls']}")
    if case.json is not None:
        expect(outcome["json"] == case.json, f"no {case.json} but {outcome['json']}")
    if case.usage is not None and outcome["usage"] is not None:
        expect(tuple(outcome["usage"]) == case.usage, f"usage {outcome['usage']}")
    if case.early:
        expect((outcome["early"] or 0) > EARLY, f"the call is read {outcome['early']} s before its end")
    times = case.asked if case.asked is not None else len(case.seen) if case.seen is not None else None
    expect(times is None or len(asked) == times, f"the model was asked {len(asked)} times: {json.dumps(asked)[-1500:]}")
    for wanted, request in zip(case.seen or [], asked):
        expect(contains(request, wanted), f"no {json.dumps(wanted)[:300]} in {json.dumps(request)[:1500]}")
    # A server tool's result goes to the model once: asked for it twice, a client or an SDK has repeated it.
    if any("pieces" in step and step["finish"] == "tool_calls" for step in case.script) and case.error is not None:
        first = [request for request in asked if request["messages"][-1]["role"] == "user"]
        expect(len(first) == 1, f"the turn was begun {len(first)} times")
    expect(model.is_idle(GIVEN_UP), "the model's answer was not given up")


def judged_live(case, outcome):
    """The same in front of a real model."""
    expect("error" not in outcome, f"failed: {outcome.get('error')}")
    expect(isinstance(outcome["text"], str), f"no text but {outcome['text']!r}")
    expect([name for name, _arguments in outcome["calls"][:1]] == (case.calls or []), f"calls {outcome['calls']}")


def conversation(messages):
    """A conversation that no other check has: what failed in one goes on where the same comes again."""
    first = next(at for at, message in enumerate(messages) if message["role"] == "user")
    words = f"{messages[first]['text']} [{uuid.uuid4()}]"
    return [*messages[:first], {**messages[first], "text": words}, *messages[first + 1:]]


def run(command, check, cases, prepare, judge, wanted):
    """Runs all cases that the SDK can be asked; gives those that it cannot, and why."""
    left_out = []
    with driver(command) as one:
        for case in cases:
            if missing := [need for need in case.needs if need not in one.can]:
                left_out.append(f"{case.name} ({', '.join(missing)})")
                continue
            for streamed in case.ways:

                @check(f"{case.name}{', streamed' if streamed else ''}")
                def _(case=case, streamed=streamed):
                    prepare(case)
                    messages = conversation(case.messages)
                    judge(case, one.ask({**wanted, "key": KEY, "messages": messages, "stream": streamed, **case.ask}))
    return left_out


def goes_on(command, address, model):
    """Ten turns with a tool each, of which the client sends the texts alone: the model gets what it has had to the byte, and more."""
    with driver(command) as one:
        said, asked = [], []
        for turn in range(TURNS):
            model.play(A_TOOL)
            said = said + [user(f"Question {turn}.")] if said else conversation([user("Question 0.")])
            wanted = {"url": address, "model": "scripted", "key": KEY, "messages": said, "stream": turn % 2 == 1}
            outcome = one.ask(wanted)
            expect("error" not in outcome, f"failed: {outcome.get('error')}")
            said = said + [{"role": "assistant", "text": outcome["text"]}]
            asked += [request["messages"] for request in model.asked]
    expect(len(asked) == 2 * TURNS, f"the model was asked {len(asked)} times")
    for before, after in zip(asked, asked[1:]):
        before, after = json.dumps(before), json.dumps(after)
        expect(after.startswith(before[:-1]), f"{after}\ndoes not go on from\n{before}")


def run_scripted(command, address, model, check, only=()):
    """In front of the scripted model."""
    if not only or any(word in "ten turns" for word in only):
        check("ten turns, each of which goes on from the one before")(lambda: goes_on(command, address, model))

    def judge(case, outcome):
        judged(case, outcome, list(model.asked), model)

    cases = [case for case in CASES if not only or any(word in case.name for word in only)]
    return run(command, check, cases, lambda case: model.play(case.script), judge, {"url": address, "model": "scripted"})


def run_live(command, address, name, check):
    """In front of a real model of this name."""
    return run(command, check, LIVE, lambda _case: None, judged_live, {"url": address, "model": name})
