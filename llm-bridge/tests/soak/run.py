#!/usr/bin/env python3
"""Many users of one server for a long time, honest and hostile ones at once: honest ones get their answers all the while, and when all
have left, memory, descriptors and threads are what they were before.

    python3 llm-bridge/tests/soak/run.py

    SOAK_SECONDS  how long it goes on, default 120; a quarter of it is for warming up
    SOAK_USERS    how many honest users there are, default 16; beside them are half as many hostile ones

See ../clients/environment.py for the other variables. The last line is `N passed, M failed`.
"""

import http.client
import json
import os
import random
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "clients"))
sys.dont_write_bytecode = True
os.environ.setdefault("TOOLRACK_CLIENT", "soak")

import environment
from checks import check, expect, finish

SECONDS = float(os.environ.get("SOAK_SECONDS", "120"))
USERS = int(os.environ.get("SOAK_USERS", "16"))
# How long anything may take on a machine that has other things to do, and how long the server may take to come to rest.
PATIENCE, REST = 30, 60
# More than the server reads of a request.
TOO_LARGE = 33 << 20
# What may be left: caches fill up to their bounds.
MORE_MEMORY, MORE_DESCRIPTORS, MORE_THREADS = 32, 4, 2

CONFIGURATION = """
[[tools]]
name = "count.once"
description = "Answers once a day."
type = "function"
handler = "fixed"
parameters = { type = "object" }
implementation = { type = "mock", mock_response = "done" }
daily_limit = 1
"""


class Soak:
    """What is under way, and what has come of it."""

    def __init__(self, address, keys):
        self.place, self.keys = urlsplit(address), keys
        self.counts, self.faults, self.times = Counter(), [], []
        self.until = 0.0

    def request(self, method, path, body=None, key=None):
        """The status and the whole body of an answer, as text."""
        connection = http.client.HTTPConnection(self.place.hostname, self.place.port, timeout=PATIENCE)
        try:
            headers = {"Content-Type": "application/json"}
            if key:
                headers["Authorization"] = f"Bearer {key}"
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def run(self, seconds):
        """All users at once, for a while."""
        self.until = time.monotonic() + seconds
        people = [(HONEST, key, number) for number, key in enumerate(self.keys)]
        people += [(HOSTILE, self.keys[number % len(self.keys)], 1000 + number) for number in range(max(1, USERS // 2))]
        threads = [threading.Thread(target=self.user, args=person) for person in people]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def user(self, deeds, key, seed):
        dice = random.Random(seed)
        while time.monotonic() < self.until:
            deed = dice.choice(deeds)
            began = time.monotonic()
            try:
                deed(self, key, dice)
                self.counts[deed.__name__] += 1
                if deeds is HONEST:
                    self.times.append(time.monotonic() - began)
            except Exception as error:
                self.faults.append(f"{deed.__name__}: {error!r}"[:500])


def sum_to_ask(dice):
    first, second = dice.randrange(10, 1000), dice.randrange(10, 1000)
    return f"What is {first} * {second}?", str(first * second)


def chats(soak, key, dice):
    question, answer = sum_to_ask(dice)
    body = {"model": "demo", "messages": [{"role": "user", "content": question}]}
    status, text = soak.request("POST", "/v1/chat/completions", json.dumps(body), key)
    expect(status == 200 and answer in json.loads(text)["choices"][0]["message"]["content"].replace(",", ""), f"{status} {text}")


def streams(soak, key, dice):
    question, answer = sum_to_ask(dice)
    body = {"model": "demo", "stream": True, "messages": [{"role": "user", "content": question}]}
    status, text = soak.request("POST", "/v1/chat/completions", json.dumps(body), key)
    chunks = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    said = "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])
    expect(status == 200 and answer in said.replace(",", "") and text.rstrip().endswith("data: [DONE]"), f"{status} {text[-500:]}")


def executes(soak, key, dice):
    first, second = dice.randrange(1000), dice.randrange(1000)
    body = {"tool_name": "calculate", "arguments": {"expression": f"{first} + {second}"}}
    status, text = soak.request("POST", "/execute", json.dumps(body), key)
    expect(status == 200 and str(first + second) in json.dumps(json.loads(text)["result"]).replace(",", ""), f"{status} {text}")


def lists(soak, key, _dice):
    for path in ("/v1/models", "/api/tools"):
        status, text = soak.request("GET", path, key=key)
        expect(status == 200 and json.loads(text), f"{path}: {status} {text}")


def is_refused(answer, *statuses):
    expect(answer[0] in statuses, f"{answer[0]} {answer[1][:300]}")


def nonsense(soak, key, dice):
    body = dice.choice(["", "{", "[" * 50_000, '{"messages": 7}', '{"messages": [{"role": "user"', "\0" * 100, '"\\ud800"'])
    is_refused(soak.request("POST", "/v1/chat/completions", body, key), 400, 413, 422)


def unknown_tools(soak, key, dice):
    body = {"tool_name": f"x{dice.randrange(10**9)}.{dice.randrange(10**9)}", "arguments": {}}
    is_refused(soak.request("POST", "/execute", json.dumps(body), key), 200, 400, 403, 404, 422)


def over_the_limit(soak, key, _dice):
    body = {"tool_name": "count.once", "arguments": {}}
    is_refused(soak.request("POST", "/execute", json.dumps(body), key), 200, 429)


def wrong_keys(soak, _key, dice):
    is_refused(soak.request("GET", "/api/tools", key=f"trk_{dice.randbytes(24).hex()}"), 401, 403, 429)


def too_large(soak, key, _dice):
    """Sends more than anybody may send; it is refused on the way, or the connection is cut."""
    try:
        is_refused(soak.request("POST", "/execute", b" " * TOO_LARGE, key), 413)
    except ConnectionError:
        pass


def leaves(soak, key, dice):
    """Goes away in the middle of an answer."""
    question, _ = sum_to_ask(dice)
    body = json.dumps({"model": "demo", "stream": True, "messages": [{"role": "user", "content": question}]}).encode()
    with socket.create_connection((soak.place.hostname, soak.place.port), timeout=PATIENCE) as connection:
        connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\n"
                           b"Content-Length: %d\r\n\r\n%s" % (key.encode(), len(body), body))
        connection.recv(dice.choice([1, 100, 1000]))


def dawdles(soak, _key, dice):
    """Never comes to the end of what it says."""
    with socket.create_connection((soak.place.hostname, soak.place.port), timeout=PATIENCE) as connection:
        connection.sendall(b"POST /execute HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-"[:dice.randrange(5, 45)])
        time.sleep(dice.random())


HONEST = [chats, streams, executes, lists]
HOSTILE = [nonsense, unknown_tools, over_the_limit, wrong_keys, too_large, leaves, dawdles]


def held(process):
    """What a process holds: MiB of memory, descriptors, threads."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{process.pid}/status").read_text().splitlines())
    descriptors = len(os.listdir(f"/proc/{process.pid}/fd"))
    return int(status["VmRSS"].split()[0]) // 1024, descriptors, int(status["Threads"])


def at_rest(process, most=None):
    """What it holds when nothing is under way: as soon as it is no more than `most`, or has not changed for a while."""
    began, last, since = time.monotonic(), None, time.monotonic()
    while True:
        now = held(process)
        if now[1:] != last:
            last, since = now[1:], time.monotonic()
        rests = all(a <= b for a, b in zip(now, most)) if most else time.monotonic() - since > 15
        if rests or time.monotonic() - began > REST:
            return now
        time.sleep(0.5)


def users(settings):
    """The keys of new users."""
    def toolrack(*arguments):
        return environment.output([environment.TOOLRACK, *arguments, "--config", settings])

    keys = []
    for number in range(USERS):
        toolrack("user", "add", f"user{number}")
        keys.append(toolrack("key", "create", f"user{number}").strip())
    return keys


def main():
    with tempfile.TemporaryDirectory(prefix="toolrack-soak-") as folder:
        settings = Path(folder) / "toolrack.toml"
        settings.write_text(f'upstream = "demo"\ndata_dir = "{folder}/data"\n{CONFIGURATION}')
        keys = users(settings)
        command = [environment.TOOLRACK, "serve", "--listen", "127.0.0.1:0", "--config", settings]
        with environment.running_process(command, r"(http://127\.0\.0\.1:\d+)/ ") as (address, process):
            soak = Soak(address, keys)
            soak.run(SECONDS / 4)
            before = at_rest(process)
            soak.run(SECONDS * 3 / 4)
            loaded = held(process)
            most = [was + more for was, more in zip(before, (MORE_MEMORY, MORE_DESCRIPTORS, MORE_THREADS))]
            after = at_rest(process, most)

            times = sorted(soak.times)
            print(f"        {sum(soak.counts.values())} deeds of {USERS} users and {max(1, USERS // 2)} others in {SECONDS:.0f} s: "
                  + ", ".join(f"{name} {count}" for name, count in soak.counts.most_common()))
            if times:
                print(f"        honest ones: half within {times[len(times) // 2]:.2f} s, 99 of 100 within "
                      f"{times[len(times) * 99 // 100]:.2f} s, all within {times[-1]:.2f} s")
            for name, seen in (("warm", before), ("under load", loaded), ("at rest", after)):
                print(f"        {name}: {seen[0]} MiB, {seen[1]} descriptors, {seen[2]} threads", flush=True)

            @check("each deed was done, and answered as it deserves")
            def _():
                expect(not soak.faults, f"{len(soak.faults)} faults, such as " + "\n".join(soak.faults[:5]))
                missing = {deed.__name__ for deed in HONEST + HOSTILE} - set(soak.counts)
                expect(not missing, f"never done: {missing}; it takes longer")

            for number, what in enumerate(("memory", "descriptors", "threads")):

                @check(f"{what} come back" if what != "memory" else "memory comes back")
                def _(number=number):
                    expect(after[number] <= most[number], f"{before[number]} before, {after[number]} after")

            @check("it serves on")
            def _():
                executes(soak, keys[0], random.Random(0))
    finish()


if __name__ == "__main__":
    main()
