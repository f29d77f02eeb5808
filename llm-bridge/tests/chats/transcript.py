"""Replays `docs/transcript.md`: every command in its blocks is run again, in a fresh folder, and has to say what stands there.

    python3 transcript.py [--write]     --write puts what was said into the file

Blocks that begin with ```console are run, in order. A line after `$ ` is a command for the shell, which has `toolrack` in its path. `toolrack chat`
is run in a terminal: lines after `> ` are typed, and so is the line below a question that ends with `[y/N]`. A command that ends with `&` goes on until
the end. Blocks below a line that is a name, such as `notes/tea.md`:, are files, and are there from the start. What differs from run to run (times,
ids, places) is compared as such: see VARYING. A line `…` stands for any lines.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / "clients")]

import environment
from checks import check, expect
from terminal import Terminal

FILE = environment.REPOSITORY / "docs" / "transcript.md"
# Where the person of the transcript works, and the port that the server has there.
HOME, PORT = "/home/ada", "7331"
VARYING = [
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
    (r"\d{4}-\d\d-\d\d", "DATE"),
    (r"\b\d\d:\d\d:\d\d\b", "CLOCK"),
    (r"\b(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b", "DAY"),
    (r"[+-]\d\d:\d\d\b", "OFFSET"),
    (r"\b[0-9a-f]{32}\b", "ID"),
    (r"-[A-Za-z0-9]{6}\.md\b", "-ID.md"),
    (r'"(call_id|id)":"[A-Za-z0-9-]+"', r'"\1":"ID"'),
    (r"\b\d+(\.\d+)? (ms|s)\b", "DURATION"),
    (r"- duration_ms: \d+", "- duration_ms: N"),
    (r'"duration_ms":\d+', '"duration_ms":N'),
    (r'"score":[\d.e-]+', '"score":N'),
    (r"(?<=  )[0-9a-z]{9,16}(?=  )", "ID"),
    (r"/tmp/toolrack-\w+", "/tmp/toolrack-ID"),
    (r"/usr(/local)?/lib/python3\.\d+", "/usr/lib/python3"),
    (r", line \d+,", ", line N,"),
]


def files(text):
    """The files of a text: their names and what is in them."""
    return re.findall(r"^`([\w./-]+)`:\n\n```\w+\n(.*?)^```$", text, re.M | re.S)


def blocks(text):
    """The blocks to run: where their lines begin and end in the file."""
    return [match.span(1) for match in re.finditer(r"^```console\n(.*?)^```$", text, re.M | re.S)]


def steps(block):
    """The commands of a block, each with the lines below it."""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            expect(found, f"a block begins with a command, and not with `{line}`")
            found[-1][1].append(line)
    return found


class Replay:
    def __init__(self, folder):
        self.folder = folder
        self.port = str(environment.free_port())
        (folder / "bin").mkdir()
        (folder / "bin" / "toolrack").symlink_to(environment.TOOLRACK.resolve())
        self.home = folder / "ada"
        self.home.mkdir()
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("TOOLRACK_", "http_", "https_", "HTTP_", "HTTPS_"))}
        self.environment = {**clean, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "TOOLRACK_LISTEN": f"127.0.0.1:{self.port}",
                            "NO_COLOR": "1", "TZ": "UTC", "HOME": str(self.home)}
        self.running = []

    def shown(self, text):
        """What was said, as it is said where the person of the transcript works."""
        return text.replace(str(self.home), HOME).replace(f":{self.port}", f":{PORT}").rstrip("\n")

    def here(self, text):
        return text.replace(HOME, str(self.home)).replace(f":{PORT}", f":{self.port}")

    def run(self, command, below):
        command, below = self.here(command), [self.here(line) for line in below]
        if re.match(r"toolrack chat( --config \S+)?$", command):
            return self.shown(self.chat(command.split()[2:], below))
        if command.endswith("&"):
            return self.shown(self.start(command[:-1]))
        done = subprocess.run(["bash", "-c", command], cwd=self.home, env=self.environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=180)
        return self.shown(done.stdout)

    def chat(self, arguments, below):
        typed = [line.removeprefix("> ") for before, line in zip(["", *below], below)
                 if line.startswith("> ") or before.endswith("[y/N]")]
        with Terminal(arguments, self.home, self.environment) as chat:
            shown = chat.greeting
            while typed:
                shown += chat.ask(typed.pop(0), typed) + "> "
        return shown.removesuffix("> ")

    def start(self, command):
        process = subprocess.Popen(["bash", "-c", f"exec {command}"], cwd=self.home, env=self.environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
        self.running.append(process)
        said = ""
        for line in process.stdout:
            said += line
            if "http://127.0.0.1" in line:
                break
        return said

    def stop(self):
        for process in self.running:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(20)


def varied(text):
    for pattern, word in VARYING:
        text = re.sub(pattern, word, text)
    return text


def same(seen, wanted):
    """Whether two texts are the same but for what varies; `…` stands for any lines."""
    parts = [re.escape(varied(part)) for part in re.split(r"^…$", wanted, flags=re.M)]
    return re.fullmatch(".*".join(parts), varied(seen), re.S) is not None


def run_all(text, each):
    """Runs the blocks of a text; `each` is given a command, what is to be said, and what is."""
    with tempfile.TemporaryDirectory(prefix="toolrack-transcript-") as folder:
        replay = Replay(Path(folder).resolve())
        for name, said in files(text):
            (replay.home / name).parent.mkdir(parents=True, exist_ok=True)
            (replay.home / name).write_text(said)
        try:
            for start, end in blocks(text):
                for command, below in steps(text[start:end]):
                    each((start, end), command, "\n".join(below), replay.run(command, below))
        finally:
            replay.stop()


def replay():
    """The transcript in `docs/` says what is so."""

    def compare(_place, command, wanted, seen):
        @check(f"transcript: {command}"[:100])
        def _():
            expect(same(seen, wanted), f"docs/transcript.md has\n{wanted}\nand what is said is\n{seen}\n"
                   "(python3 llm-bridge/tests/chats/transcript.py --write puts it there)")

    run_all(FILE.read_text(), compare)


def write():
    """Puts what is said now into the file, but where it is the same or cut with `…`."""
    text, new = FILE.read_text(), {}
    run_all(text, lambda place, command, wanted, seen: new.setdefault(place, []).append(
        f"$ {command}\n{wanted if same(seen, wanted) else seen}".rstrip("\n")))
    for (start, end), said in reversed(new.items()):
        text = f"{text[:start]}{chr(10).join(said)}\n{text[end:]}"
    FILE.write_text(text)


if __name__ == "__main__":
    write() if "--write" in sys.argv else replay()
