#!/usr/bin/env python3
"""Coding agents, started by `toolrack launch`: each is asked to write a file, and the file is there. A scripted model answers,
and calls a tool of the server before.

    python3 llm-bridge/tests/agents/run.py [NAME ...]     only agents whose name contains one of these

An agent that does not install is left out. See ../clients/environment.py for the variables. The last line is `N passed, M failed`.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "clients")]
sys.dont_write_bytecode = True

import environment
from agents import AGENTS, command, variables
from writer import QUESTION, writer

CONTENT = "written by an agent"
RUN_SECONDS = 180


def write(agent, server):
    """Runs the agent in a folder of its own; why it failed, or nothing."""
    with tempfile.TemporaryDirectory(prefix="toolrack-agent-") as made:
        home, project = Path(made) / "home", Path(made) / "project"
        home.mkdir()
        project.mkdir()
        file = project / "hello.txt"
        launch = command(agent, server, QUESTION.format(path=file, content=CONTENT))
        try:
            done = subprocess.run([str(part) for part in launch], cwd=project, env=variables(agent, home), stdin=subprocess.DEVNULL, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=RUN_SECONDS, check=False)
        except subprocess.TimeoutExpired as error:
            return f"it did not end in {RUN_SECONDS} s\n{(error.stdout or b'').decode(errors='replace')}"
        if not file.exists():
            return f"there is no file; exit status {done.returncode}\n{done.stdout}"
        written = file.read_text().strip()
        if written != CONTENT or done.returncode:
            return f"the file has {written!r}; exit status {done.returncode}\n{done.stdout}"
        return None


def main():
    wanted = [agent for agent in AGENTS if not sys.argv[1:] or any(word in agent.name for word in sys.argv[1:])]
    passed = failed = 0
    with writer() as model, environment.toolrack(model.url) as server:
        for agent in wanted:
            try:
                variables(agent, "")
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
                failed += environment.skipped(f"{agent.package}: it does not install: {error}")[1]
                continue
            model.asked_back = False
            fault = write(agent, server)
            if not fault and not model.asked_back:
                fault = "the tool of the server was not called"
            print(f"FAILED  {agent.package}: {fault}" if fault else f"ok      {agent.package} wrote the file", flush=True)
            passed, failed = passed + (not fault), failed + bool(fault)
        for fault in model.faults if failed else []:
            print(f"note: {fault}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
