"""`toolrack chat` and `toolrack call` in a terminal, as a person has them."""

import fcntl
import os
import pty
import re
import select
import subprocess
import termios
import time

import environment

PROMPT = "\n> "
# Where a person is asked for an answer, the program waits in the middle of it.
QUESTION = "[y/N]\n"
# How long somebody still has to answer is another in each run.
CLOCK = re.compile(r" \(\d+ s to answer\)\n")
CTRL_C, CTRL_D = b"\x03", b"\x04"
SECONDS = 60


class Terminal:
    """A program in a terminal of its own; a chat, where nothing else is said."""

    def __init__(self, arguments, folder, variables=None, command="chat", program=environment.TOOLRACK):
        if variables is None:
            variables = {name: value for name, value in os.environ.items() if not name.startswith("TOOLRACK_")}
        self.ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [str(program.resolve()), command, *map(str, arguments)], cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs,
            env={**variables, "NO_COLOR": "1", "TERM": "dumb"}, start_new_session=True,
            # So that Ctrl-C reaches it.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(theirs)

    def __enter__(self):
        self.greeting = self.read(PROMPT)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(15)
        os.close(self.ours)

    def read(self, *ends):
        """What is shown until it ends so and nothing more comes."""
        shown, began = "", time.monotonic()
        while True:
            ready, _, _ = select.select([self.ours], [], [], 0.3)
            if ready:
                try:
                    piece = os.read(self.ours, 65536)
                except OSError:  # It has ended.
                    return shown
                shown += piece.decode("utf-8", "replace").replace("\r\n", "\n")
            elif (plain := CLOCK.sub("\n", shown)).endswith(ends):
                return plain
            if time.monotonic() - began > SECONDS:
                raise TimeoutError(f"no end after {SECONDS} s: {shown}")

    def type(self, line):
        """A line, or keys as they are."""
        os.write(self.ours, line if isinstance(line, bytes) else line.encode() + b"\n")

    def ask(self, question, answers=()):
        """All that is shown of a question, what was typed included, up to the next prompt. The answers are taken as a person is asked."""
        shown, line = "", question
        while True:
            self.type(line)
            shown += self.read(PROMPT, QUESTION)
            if not shown.endswith(QUESTION):
                return re.sub(r"> $", "", shown)
            if not answers:
                raise ValueError(f"nobody answers: {shown}")
            line = answers.pop(0)


def called(arguments, folder, lines, ends=(": ", QUESTION), program=environment.TOOLRACK):
    """What `toolrack call` shows where these lines are typed as it asks for something, which ends so, and its exit code."""
    terminal, shown = Terminal(arguments, folder, command="call", program=program), ""
    try:
        for line in lines:
            shown += terminal.read(*ends)
            terminal.type(line)
        shown += terminal.read()
        return shown, terminal.process.wait(15)
    finally:
        terminal.process.kill()
        os.close(terminal.ours)
