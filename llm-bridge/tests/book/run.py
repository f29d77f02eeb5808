#!/usr/bin/env python3
"""Follows pages of the docs to the letter: a fresh clone, the files that a page has one write, its commands in the order of the page, and what it
says that they print.

    run.py [PAGE …]      default: those of PAGES; `docs/first-tool.md` names one
    run.py --list        what would be done, and what would not

How a page is read:

- A block `sh` is run, line by line, in one shell for each page. A command that serves is left running to the end of the page.
- A block behind one of `sh`, with nothing but a paragraph between them, is what was printed, if it is `text` or `json`. `…` stands for anything; where a line
  is nothing else, for any lines. Lines before, between and behind those that are shown may be others.
  A time and an id of 16 or 32 digits stand for any.
- A command may fail where what it is to print has `error` in it, and nowhere else.
- A block of `rust` or `toml` behind a paragraph that ends with a colon and names a file is that file.
- What cannot be followed has a comment before it that says why: `<!-- not followed: needs systemd -->`.
- What the reader has already is made by a command in a comment before the block, `<!-- before: mkdir notes -->`, and a value that only the reader knows is named
  in one: `<!-- for KEY: $(toolrack key create ada) -->`.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "clients"))
sys.dont_write_bytecode = True

import environment

PAGES = ["README.md", *(f"docs/{name}.md" for name in (
    "install", "first-tool", "documents", "access-control", "troubleshooting", "writing-tools", "rust", "axum", "apis",
    "clients", "clients/curl"))]

# The longest that one command may take: the first one builds the program.
PATIENCE = 3600
SERVES = re.compile(r"^\s*(\w+=\S+ )*(cargo run( --)?$|cargo run -- serve|toolrack( serve|$)|cargo xtask dev)")
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"
ID = r"\b(?:[0-9a-f]{32}|[0-9a-f]{16})\b"
ADDRESS = "http://127.0.0.1:7331/healthz"


class Block:
    def __init__(self, language, text, line, before, comments):
        self.language, self.text, self.line = language, text, line
        self.reason = next((text for kind, text in comments if kind == "not followed"), None)
        self.first = [text for kind, text in comments if kind == "before"]
        self.values = {kind.removeprefix("for "): text for kind, text in comments if kind.startswith("for ")}
        # The paragraph before it.
        self.before = before
        self.output = None

    def file(self):
        """The file that it is, if it is one."""
        extension = {"rust": "rs", "toml": "toml"}.get(self.language.split(",")[0])
        if not extension or not self.before.rstrip().endswith(":"):
            return None
        named = re.findall(rf"`([\w./-]+\.{extension})`", self.before)
        return named[-1] if named else None

    def with_values(self, command):
        """A command with what only the reader knows."""
        for name, value in self.values.items():
            command = command.replace(name, value)
        return command

    def may_fail(self):
        """Whether what it is to print is an error."""
        return self.output is not None and "error" in self.output.text

    def commands(self):
        """Each with the lines that belong to it."""
        commands, open_ended = [], False
        for line in self.text.splitlines():
            if open_ended and commands:
                commands[-1] += "\n" + line
            elif line.strip() and not line.lstrip().startswith("#"):
                commands.append(line)
            open_ended = bool(commands) and commands[-1].rstrip().endswith(("\\", "|", "&&"))
        return commands


def blocks(text):
    """The blocks of code of a page."""
    found, paragraph, comments, fence, body, began = [], "", [], None, [], 0
    since_commands = None
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if fence is not None:
            if stripped == "```":
                block = Block(fence, "\n".join(body), began, paragraph, comments)
                if block.language in ("text", "json") and since_commands and not since_commands.output and not since_commands.reason:
                    since_commands.output = block
                elif block.language == "sh" or block.file():
                    found.append(block)
                since_commands = block if block.language == "sh" else None
                fence, body, paragraph, comments = None, [], "", []
            else:
                body.append(line)
        elif stripped.startswith("```"):
            fence, began = stripped[3:], number
        elif comment := re.match(r"<!-- (not followed|before|for \w+): (.*) -->$", stripped):
            comments.append(comment.groups())
        elif stripped.startswith("#"):
            paragraph, since_commands, comments = "", None, []
        elif stripped:
            paragraph += " " + stripped
            # A list or a table is no paragraph between a command and its output.
            if stripped.startswith(("- ", "|")):
                since_commands = None
        elif paragraph:
            paragraph = paragraph + "\n"
            paragraph = paragraph.rsplit("\n\n", 1)[-1]
    return found


def matches(shown, printed):
    """The first line that was shown and not printed; `None` where all were, in their order."""
    lines = [line.strip() for line in printed.splitlines()]
    at = 0
    for line in (line.strip() for line in shown.splitlines()):
        if line in ("", "…"):
            continue
        wanted = re.compile("".join(map(part_pattern, re.split(f"(…|{TIME}|{ID})", line))))
        while at < len(lines) and not wanted.fullmatch(lines[at]):
            at += 1
        if at == len(lines):
            return line
        at += 1
    return None


def part_pattern(part):
    """What a part of a line that is shown stands for."""
    return ".*" if part == "…" else next((kind for kind in (TIME, ID) if re.fullmatch(kind, part)), re.escape(part))


class Shell:
    """One shell for each page, so that what a line sets holds for those behind it."""

    def __init__(self, folder, variables):
        self.process = subprocess.Popen(["bash"], cwd=folder, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        start_new_session=True)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.count = 0

    def run(self, command, served=False):
        """What a command prints, and its status; with `served` it is left running once it serves."""
        self.count += 1
        mark = f"--followed-{self.count}-"
        # Nothing that asks is to read the commands behind it, and a comment is not to hide what stands behind that.
        line = f"{command.split('#')[0].rstrip()} </dev/null &" if served else f"{{ {command}\n}} </dev/null"
        self.process.stdin.write(f"{line}\necho {mark}$?\n".encode())
        self.process.stdin.flush()
        printed, deadline = "", time.monotonic() + PATIENCE
        ended = re.compile(rf"{mark}(\d+)\n")
        while time.monotonic() < deadline:
            printed += (self.process.stdout.read() or b"").decode(errors="replace")
            if match := ended.search(printed):
                printed = printed[:match.start()] + printed[match.end():]
                if not served:
                    return printed, int(match.group(1))
                while time.monotonic() < deadline:
                    if is_served():
                        return printed, 0
                    if self.process.poll() is not None:
                        break
                    time.sleep(0.5)
                return printed, 1
            if self.process.poll() is not None:
                return printed, 1
            time.sleep(0.05)
        return printed + "\n(it did not end)", 1

    def end(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
            except ProcessLookupError:
                break
            time.sleep(1 if number == signal.SIGTERM else 0)
        self.process.wait()


def is_served():
    try:
        with urllib.request.urlopen(ADDRESS, timeout=2) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


def follow(page, repository, variables):
    """How many blocks passed, how many failed, and how many are not followed."""
    passed, failed, over = 0, 0, 0
    found = blocks((environment.REPOSITORY / page).read_text())
    shell = Shell(repository, variables)
    try:
        for block in found:
            place = f"{page}:{block.line}"
            if block.reason:
                print(f"        {place}: not followed: {block.reason}", flush=True)
                over += 1
                continue
            if name := block.file():
                if block.language.startswith("rust"):
                    (repository / name).parent.mkdir(parents=True, exist_ok=True)
                    (repository / name).write_text(block.text + "\n")
                    print(f"        {place}: {name} is written", flush=True)
                continue
            printed = ""
            for command in [*block.first, *map(block.with_values, block.commands())]:
                text, status = shell.run(command, bool(SERVES.match(command.split("#")[0].rstrip())))
                printed += text
                if status and not block.may_fail():
                    failed += 1
                    print(f"FAILED  {place}: {command}\n{text}", flush=True)
                    break
            else:
                missing = block.output and matches(block.output.text, printed)
                if missing:
                    failed += 1
                    print(f"FAILED  {place}: it does not print `{missing}`, but\n{printed}", flush=True)
                else:
                    passed += 1
                    print(f"ok      {place}: {block.commands()[0].splitlines()[0]}{' …' if len(block.commands()) > 1 else ''}", flush=True)
    finally:
        shell.end()
    return passed, failed, over


def listed(pages):
    for page in pages:
        for block in blocks((environment.REPOSITORY / page).read_text()):
            if block.file():
                print(f"{page}:{block.line}: writes {block.file()}")
                continue
            for command in [*block.first, *block.commands()]:
                print(f"{page}:{block.line}: {'(' + block.reason + ') ' if block.reason else ''}{command}")
            if block.output:
                print(f"{page}:{block.output.line}:   prints {len(block.output.text.splitlines())} lines")


def main():
    pages = [argument for argument in sys.argv[1:] if not argument.startswith("--")] or PAGES
    if "--list" in sys.argv:
        listed(pages)
        return 0
    if is_served():
        print(f"FAILED  something answers at {ADDRESS} already\n0 passed, 1 failed")
        return 1
    passed = failed = over = 0
    with tempfile.TemporaryDirectory(prefix="book-") as place:
        place = Path(place)
        home, tools = place / "home", place / "bin"
        home.mkdir()
        tools.mkdir()
        target = environment.TARGET.resolve()
        # What `cargo install` would put there.
        (tools / "toolrack").symlink_to(target / "debug/toolrack")
        variables = {name: value for name, value in os.environ.items() if not name.startswith("TOOLRACK_")}
        kept = {"CARGO_HOME": Path.home() / ".cargo", "RUSTUP_HOME": Path.home() / ".rustup"}
        for name, folder in kept.items():
            variables.setdefault(name, str(folder))
        variables.update(HOME=str(home), CARGO_TARGET_DIR=str(target), NO_COLOR="1", CARGO_TERM_COLOR="never", PATH=f"{tools}:{os.environ['PATH']}")
        repository = place / "toolrack"
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", environment.REPOSITORY, repository], check=True)
        for page in pages:
            # Each from the beginning, as somebody would who reads only that.
            for undone in (["checkout", "--quiet", "."], ["clean", "--quiet", "-fdx"]):
                subprocess.run(["git", *undone], cwd=repository, check=True)
            counts = follow(page, repository, variables)
            passed, failed, over = passed + counts[0], failed + counts[1], over + counts[2]
    print(f"{over} blocks are not followed\n{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
