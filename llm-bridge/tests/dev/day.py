#!/usr/bin/env python3
"""A day of somebody who writes tools: `cargo xtask dev` runs, twelve tools of `day/` are saved into `tools/` one after another, with mistakes
that are made and corrected, and each is called over HTTP as soon as it is there. Prints how long each took.

    day.py             in this folder, which it leaves as it was
    day.py --short     the same with a few of them
    day.py --clone     in a fresh clone, with a target folder of its own
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

from run import Dev, environment

SOURCES = HERE / "day"

# What is wrong in a file as it is first saved: a text, what stands in its place, and what the compiler says of it.
MISTAKES = {
    "forecast.rs": ("default = 3", "default = 30", "14"),
    "temperature.rs": ("    /// The temperature with its unit, C or F.\n", "", "has no doc comment"),
    "delete_note.rs": ("permission = Permission::User, ", "", "permission"),
}

# The files in the order in which they are saved, each with a tool, its arguments, and what its result has in it.
DAY = [
    ("greeting.rs", "greeting", {"name": "Ada"}, "Hello, Ada!"),
    ("forecast.rs", "forecast", {"city": "Oslo", "days": "3", "unit": "Fahrenheit"}, "Oslo, 3 days, in Fahrenheit"),
    ("temperature.rs", "temperature", {"text": "20 C"}, '"fahrenheit": 68.0'),
    ("travel/trains.rs", "travel.trains", {"from": "Oslo", "to": "Bergen"}, "12:30 Oslo to Bergen"),
    ("primes.rs", "primes", {"below": 100}, "25"),
    ("visits.rs", "visits", {}, "1"),
    ("degrees.rs", "degrees", {}, "3.5"),
    ("square.rs", "square", {}, "image/svg+xml"),
    ("story.rs", "story", {"sentences": 2}, "It rained for 1 days. It rained for 2 days."),
    ("trip.rs", "trip", {"to": "Bergen"}, "07:30 Oslo to Bergen; Bergen, 1 days"),
    ("balance.rs", "balance", {}, "Joint: 40 EUR"),
    ("delete_note.rs", "delete_note", {"name": "milk"}, "milk"),
    # Besides: a resource, and the tool that needs it.
    ("bell.rs", None, None, None),
    ("ring.rs", "ring", {}, "1"),
]


SHORT = {"greeting.rs", "forecast.rs", "degrees.rs", "balance.rs", "bell.rs", "ring.rs"}


class Day:
    def __init__(self, dev, tools):
        self.dev, self.tools = dev, tools

    def ask(self, path, body=None):
        """The status and the answer."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.dev.address + path, data, {"content-type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def call(self, tool, arguments):
        """The reply; None where there is no such tool. What the call waits for is answered, and the call repeated."""
        body = {"tool_name": tool, "arguments": arguments}
        status, reply = self.ask("/execute", body)
        if status == 404:
            return None
        if question := reply.get("question"):
            assert self.ask(f"/api/questions/{question}", {"answer": "Joint"})[0] == 200, question
        elif approval := reply.get("approval"):
            assert self.ask(f"/api/approvals/{approval}", {"approve": True})[0] == 200, approval
        else:
            return reply
        return self.ask("/execute", body)[1]

    def save(self, name, text):
        file = self.tools / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        return time.monotonic()

    def play(self, name, tool, arguments, wanted):
        text = (SOURCES / name).read_text()
        if mistake := MISTAKES.get(name):
            right, wrong, said = mistake
            assert right in text, name
            self.save(name, text.replace(right, wrong))
            message = self.dev.became("failed")["message"]
            assert name in message and said in message, message
            print(f"{name}: a mistake is shown", flush=True)
        before, began = len(self.dev.said), self.save(name, text)
        ready = lambda: next((line for line in self.dev.said[before:] if line.startswith("Ready")), None)
        if tool is None:
            self.dev.until(ready, f"{name} is not taken over")
            return
        reply = self.dev.until(lambda: self.call(tool, arguments), f"{tool} is not there")
        took = time.monotonic() - began
        assert reply["success"] and wanted in json.dumps(reply), reply
        line = self.dev.until(ready, "it is not said")
        print(f"{name}: called after {took:.1f} s. {line.strip()}", flush=True)
        if name == DAY[0][0]:
            self.compare_with_guide(tool, self.dev.said[before:])

    def compare_with_guide(self, tool, said):
        """What is said is what the guide shows, but for the tool, the times and where this is."""
        guide = (environment.REPOSITORY / "docs/writing-tools.md").read_text()
        shown = re.search(r"```text\n(Saved: .*?)```", guide, re.S).group(1)
        plain = lambda text: re.sub(r"\d+\.\d+ ?s|\d+\.\d+(?=[,)])", "N", re.sub(r" \(/[^)]*\)|\x1b\[[0-9;]*m", "", text))
        shown = plain(shown.replace("tools/weather.rs", f"tools/{tool.replace('.', '/')}.rs").replace("weather", tool))
        said = plain("".join(said))
        assert shown in said, f"the guide shows\n{shown}in place of\n{said}"


def main():
    with tempfile.TemporaryDirectory(prefix="day-") as folder:
        folder, repository = Path(folder), environment.REPOSITORY
        if "--clone" in sys.argv[1:]:
            repository = folder / "toolrack"
            subprocess.run(["git", "clone", "--quiet", environment.REPOSITORY, repository], check=True)
            os.environ["CARGO_TARGET_DIR"] = str(repository / "target")
        steps = [step for step in DAY if "--short" not in sys.argv[1:] or step[0] in SHORT]
        tools = repository / "tools"
        files = [tools / name for name, *_ in steps]
        taken = [str(file) for file in files if file.exists()]
        assert not taken, f"in the way: {', '.join(taken)}"
        passed, failed, dev = 0, 0, None
        try:
            began = time.monotonic()
            dev = Dev(folder, repository)
            print(f"serves after {time.monotonic() - began:.1f} s", flush=True)
            day = Day(dev, tools)
            for step in steps:
                day.play(*step)
                passed += 1
        except AssertionError as error:
            failed += 1
            print(f"FAILED  {error}")
        finally:
            for file in files:
                file.unlink(missing_ok=True)
            shutil.rmtree(tools / "travel", ignore_errors=True)
            if dev and not dev.stop():
                failed += 1
                print("FAILED  it does not end")
            if repository == environment.REPOSITORY:
                # What others find built has none of these tools.
                subprocess.run(["cargo", "build", "--quiet"], cwd=repository, check=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
