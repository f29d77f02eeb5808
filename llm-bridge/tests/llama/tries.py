"""`toolrack try` before a real llama.cpp: the table is right for a model of noise, and for one that says the same each time."""

import json
import subprocess
import tempfile

import environment
from checks import check, expect

TRIES = 2
CALL = '<tool_call>{"name": "%s", "arguments": %s}</tool_call>'


def tried(model, *tools):
    """The exit code and the rows of `toolrack try --json`, by tool."""
    command = [environment.TOOLRACK.resolve(), "try", "--json", "-n", str(TRIES), "--seconds", "60", "--upstream", f"{model}/v1", *tools]
    with tempfile.TemporaryDirectory() as empty:
        done = subprocess.run(command, cwd=empty, capture_output=True, text=True, timeout=600)
    expect(done.stdout, f"{done.returncode}: {done.stderr}")
    return done.returncode, {row["tool"]: row for row in json.loads(done.stdout)["examples"]}


def counts(row):
    return row["tries"], row["chosen"], row["right"]


def tries(interpreter):
    with environment.llama(interpreter, "--ctx", "32768") as model:

        @check("try sees that noise is never right, and counts what it did each time")
        def _():
            code, rows = tried(model, "calculate")
            row = rows["calculate"]
            expect(code == 1 and (row["tries"], row["right"]) == (TRIES, 0), f"{code}: {row}")
            # With this model's template llama.cpp makes a call of any tool of the noise; or it goes on for longer than an answer may take.
            otherwise = row["no_call"] + sum(row["instead"].values()) + sum(row["failures"].values())
            expect(row["chosen"] + otherwise == TRIES and row["advice"], f"{row}")

        _, rows = tried(model, "calculate")
        expected = rows["calculate"]["expected"]

    with environment.llama(interpreter, "--ctx", "32768", "--say", "I see.\n" + CALL % ("calculate", json.dumps(expected))) as model:

        @check("try sees that a call in the text is right each time, and of no use for another tool")
        def _():
            code, rows = tried(model, "calculate")
            expect(code == 0 and counts(rows["calculate"]) == (TRIES, TRIES, TRIES), f"{code}: {rows}")
            code, rows = tried(model, "current_time")
            row = rows["current_time"]
            expect(code == 1 and counts(row) == (TRIES, 0, 0) and row["instead"] == {"calculate": TRIES}, f"{code}: {row}")

    with environment.llama(interpreter, "--ctx", "32768", "--say", CALL % ("calculate", '{"expression": "1 + 1"}')) as model:

        @check("try sees which argument is another")
        def _():
            code, rows = tried(model, "calculate")
            row = rows["calculate"]
            expect(code == 1 and counts(row) == (TRIES, TRIES, 0), f"{code}: {row}")
            expect([one["times"] for one in row["differences"]] == [TRIES] and row["advice"], f"{row}")
