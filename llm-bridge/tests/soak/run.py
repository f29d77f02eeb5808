#!/usr/bin/env python3
"""Many users of one server for a long time, honest and hostile ones at once: honest ones get their answers all the while, and when all
have left, memory, descriptors and threads are what they were before, and the database has more of the audit and of nothing else.

    python3 llm-bridge/tests/soak/run.py

    SOAK_SECONDS  how long it goes on, default 120; a quarter of it is for warming up
    SOAK_USERS    how many honest users there are, default 16; beside them are half as many hostile ones
    SOAK_RATE     how much is done in a second, by all of them, default 40

See ../clients/environment.py for the other variables. The last line is `N passed, M failed`.
"""

import os
import random
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.server import ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "clients"))
sys.dont_write_bytecode = True
os.environ.setdefault("TOOLRACK_CLIENT", "soak")

import environment
from checks import check, expect, finish
from deeds import HONEST, HOSTILE, Client, executes
from quiet import Quiet

SECONDS = float(os.environ.get("SOAK_SECONDS", "120"))
USERS = int(os.environ.get("SOAK_USERS", "16"))
RATE = float(os.environ.get("SOAK_RATE", "40"))
OTHERS = max(1, USERS // 2)
# How long the server may take to come to rest.
REST = 60
# What may be left: caches fill up to their bounds.
MORE_MEMORY, MORE_DESCRIPTORS, MORE_THREADS = 32, 4, 2
# Tables that grow with what is called, and are swept by the hour or the day: rows of a user at most. Transcripts have a bound in bytes,
# of which they are counted anew whenever a sixteenth has come.
SWEPT, TRANSCRIPTS = {"approvals": 64, "call_counts": 8}, (1 << 20) * 9 // 8

CONFIGURATION = """
[conversations]
max_total_transcript_mebibytes = 1
[module_services]
hostile = "%s"
[[tools]]
name = "count.once"
description = "Answers once a day."
type = "function"
handler = "fixed"
parameters = { type = "object" }
implementation = { type = "mock", mock_response = "done" }
daily_limit = 1
[[tools]]
name = "erase"
description = "Erases all."
type = "function"
handler = "fixed"
parameters = { type = "object" }
permission = "guest"
effect = "destructive"
implementation = { type = "mock", mock_response = "erased" }
"""


class Module(Quiet):
    """A module that does not do what it says."""

    def do_GET(self):
        names = ("nonsense", "endless", "late", "cut")
        self.reply({"name": "hostile", "description": "", "tools": [
            {"name": name, "description": name, "required_permission": "user", "effect": "read", "input_schema": {"type": "object"}}
            for name in names]})

    def do_POST(self):
        name = self.body().get("tool_name", "").rpartition(".")[2]
        self.close_connection = True
        try:
            if name == "nonsense":
                self.reply({"result": [[[]]]})
            elif name == "endless":
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(b'{"result": "')
                for _ in range(1000):
                    self.wfile.write(b"x" * 65536)
            elif name == "late":
                time.sleep(2)
                self.reply({"tool_name": name, "success": True, "result": "late"})
        except OSError:
            pass


class Soak:
    """What is under way, and what has come of it."""

    def __init__(self, address, keys):
        self.place, self.keys = urlsplit(address), keys
        self.counts, self.faults, self.times = Counter(), [], []

    def run(self, seconds):
        """All users at once, for a while."""
        until = time.monotonic() + seconds
        people = [(HONEST, key, number) for number, key in enumerate(self.keys)]
        people += [(HOSTILE, self.keys[number % len(self.keys)], 1000 + number) for number in range(OTHERS)]
        threads = [threading.Thread(target=self.user, args=(*person, until)) for person in people]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def user(self, deeds, key, seed, until):
        dice = random.Random(seed)
        client, pause = Client(self.place, key, dice), (USERS + OTHERS) / RATE
        # Who begins last shall not begin when all others are done.
        time.sleep(dice.random() * min(pause, until - time.monotonic()))
        while time.monotonic() < until:
            deed = dice.choice(deeds)
            began = time.monotonic()
            try:
                deed(client)
                self.counts[deed.__name__] += 1
            except Exception as error:
                self.faults.append(f"{deed.__name__} after {time.monotonic() - began:.1f} s: {error!r}"[:700])
                if len(self.faults) <= 20:
                    print(f"        {self.faults[-1]}", flush=True)
            took = time.monotonic() - began
            if deeds is HONEST:
                self.times.append(took)
            time.sleep(max(0, min(dice.random() * 2 * pause - took, until - time.monotonic())))


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


def rows(data):
    """How many rows each table of each database has, and how many bytes are in use, and in records of the audit."""
    found, size, audit, transcripts = Counter(), 0, 0, 0
    for file in sorted(data.glob("*.db")):
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
            pages, free, each = (database.execute(f"PRAGMA {what}").fetchone()[0] for what in ("page_count", "freelist_count", "page_size"))
            size += (pages - free) * each
            names = [name for name, in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
            # An index of texts has tables of its own, and needs its extension to be read.
            indexes = tuple(name for name, in database.execute("SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL%'"))
            for name in names:
                if not name.startswith(("sqlite_", *indexes)):
                    found[name] += database.execute(f'SELECT COUNT(*) FROM "{name}"').fetchone()[0]
            if "audit" in names:
                audit += database.execute("SELECT COALESCE(SUM(LENGTH(record)), 0) FROM audit").fetchone()[0]
                transcripts += database.execute("SELECT COALESCE(SUM(size), 0) FROM transcripts").fetchone()[0]
    return found, size, audit, transcripts


def users(settings):
    """The keys of new users."""
    def toolrack(*arguments):
        return environment.output([environment.TOOLRACK, *arguments, "--config", settings])

    def add(number):
        toolrack("user", "add", f"user{number}")
        return toolrack("key", "create", f"user{number}").strip()

    first = add(0)
    with ThreadPoolExecutor(2) as pool:
        return [first, *pool.map(add, range(1, USERS))]


def verified(settings):
    environment.output([environment.TOOLRACK, "audit", "verify", "--config", settings])


def main():
    module = ThreadingHTTPServer(("127.0.0.1", 0), Module)
    module.daemon_threads = True
    threading.Thread(target=module.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(prefix="toolrack-soak-") as folder:
        settings, data = Path(folder) / "toolrack.toml", Path(folder) / "data"
        hostile = f"http://127.0.0.1:{module.server_address[1]}"
        settings.write_text(f'upstream = "demo"\napi_key = "trk_{os.urandom(16).hex()}"\ndata_dir = "{data}"\n{CONFIGURATION % hostile}')
        keys = users(settings)
        command = [environment.TOOLRACK, "serve", "--listen", "127.0.0.1:0", "--config", settings]
        with environment.running_process(command, r"(http://127\.0\.0\.1:\d+)/ ") as (address, process):
            soak = Soak(address, keys)
            soak.run(SECONDS / 4)
            before, kept = at_rest(process), rows(data)
            soak.run(SECONDS * 3 / 4)
            loaded = held(process)
            most = [was + more for was, more in zip(before, (MORE_MEMORY, MORE_DESCRIPTORS, MORE_THREADS))]
            after, left = at_rest(process, most), rows(data)

            times = sorted(soak.times)
            print(f"        {sum(soak.counts.values())} deeds of {USERS} users and {OTHERS} others in {SECONDS:.0f} s: "
                  + ", ".join(f"{name} {count}" for name, count in soak.counts.most_common()))
            if times:
                print(f"        honest ones: half within {times[len(times) // 2]:.2f} s, 99 of 100 within "
                      f"{times[len(times) * 99 // 100]:.2f} s, all within {times[-1]:.2f} s")
            for name, seen in (("warm", before), ("under load", loaded), ("at rest", after)):
                print(f"        {name}: {seen[0]} MiB, {seen[1]} descriptors, {seen[2]} threads")
            grown = {name: f"{kept[0][name]} to {count}" for name, count in left[0].items() if count != kept[0][name]}
            print(f"        rows: {grown}\n        in use: {kept[1] >> 10} to {left[1] >> 10} KiB, of it records of the audit "
                  f"{kept[2] >> 10} to {left[2] >> 10} KiB", flush=True)

            @check("each deed was done, and answered as it deserves")
            def _():
                kinds = Counter(fault.split()[0] for fault in soak.faults)
                expect(not soak.faults, f"{len(soak.faults)} faults, {dict(kinds)}, such as " + "\n".join(soak.faults[:8]))
                missing = {deed.__name__ for deed in HONEST + HOSTILE} - set(soak.counts)
                expect(not missing, f"never done: {missing}; it takes longer")

            for number, what in enumerate(("memory", "descriptors", "threads")):

                @check(f"{what} come back" if what != "memory" else "memory comes back")
                def _(number=number):
                    expect(after[number] <= most[number], f"{before[number]} before, {after[number]} after")

            @check("the database has more of the audit and of nothing else")
            def _():
                for name, count in left[0].items():
                    more = USERS * SWEPT[name] if name in SWEPT else kept[0][name]
                    expect(name.startswith("audit") or name == "transcripts" or count <= more, f"{name}: {kept[0][name]} rows, then {count}")
                expect(left[3] <= TRANSCRIPTS, f"{left[3]} bytes of transcripts")
                # A record has its columns and three indexes besides its text.
                more, records = left[1] - kept[1], left[2] - kept[2]
                expect(more < 3 * records + (8 << 20), f"{more} bytes more, for {records} of the audit")

            check("the audit is whole")(lambda: verified(settings))

            @check("it serves on")
            def _():
                executes(Client(soak.place, keys[0], random.Random(0)))
    module.shutdown()
    finish()


if __name__ == "__main__":
    main()
