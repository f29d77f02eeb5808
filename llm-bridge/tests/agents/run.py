#!/usr/bin/env python3
"""Coding agents, started by `toolrack launch`: each is asked to write a file, and the file is there. A scripted model answers,
and calls a tool of the server before.

    python3 llm-bridge/tests/agents/run.py [NAME ...]     only agents whose name contains one of these

An agent that does not install is left out. See ../clients/environment.py for the variables. The last line is `N passed, M failed`.
"""

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "clients")]
sys.dont_write_bytecode = True

import environment
from writer import QUESTION, writer

CONTENT = "written by an agent"
INSTALL_SECONDS, RUN_SECONDS = 600, 180
NODE = "node@22.23.3"


@dataclass
class Agent:
    """The package of an agent, and the arguments with which it does what it is asked, without a person."""

    name: str
    package: str
    arguments: tuple


AGENTS = [
    Agent("claude", "@anthropic-ai/claude-code@2.1.197", ("--permission-mode", "acceptEdits", "-p")),
    # Its own sandbox does not start in every container.
    Agent("codex", "@openai/codex@0.169.0", ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")),
    Agent("gemini", "@google/gemini-cli@0.61.0", ("--skip-trust", "--approval-mode", "yolo", "-p")),
    Agent("opencode", "opencode-ai@1.18.33", ("run",)),
    Agent("qwen", "@qwen-code/qwen-code@0.15.10", ("--yolo", "-p")),
]


def programs(package):
    """The folder with the programs of a package."""

    def install(folder):
        (folder / "package.json").write_text('{"private": true}')
        npm = ["npm", "install", "--no-audit", "--no-fund", "--silent", package]
        subprocess.run(npm, cwd=folder, stdin=subprocess.DEVNULL, timeout=INSTALL_SECONDS, check=True)

    name = "agent-" + "".join(c if c.isalnum() else "-" for c in package).strip("-")
    return environment.installed(name, [], install) / "node_modules/.bin"


def node():
    """The folder with the node program, which some agents want newer than that of the system."""
    return programs(NODE).parent / "node/bin"


def write(agent, server, path):
    """Runs the agent in a folder of its own; why it failed, or nothing."""
    with tempfile.TemporaryDirectory(prefix="toolrack-agent-") as made:
        home, project = Path(made) / "home", Path(made) / "project"
        home.mkdir()
        project.mkdir()
        file = project / "hello.txt"
        command = [environment.TOOLRACK, "launch", agent.name, "--server", server, "--", *agent.arguments,
                   QUESTION.format(path=file, content=CONTENT)]
        # Nothing of this machine's configuration, and no other provider's keys.
        variables = {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8", "TERM": "xterm-256color", "NO_PROXY": "127.0.0.1",
                     "no_proxy": "127.0.0.1"}
        try:
            done = subprocess.run([str(part) for part in command], cwd=project, env=variables, stdin=subprocess.DEVNULL, text=True,
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
                path = os.pathsep.join([str(programs(agent.package)), str(node()), os.environ["PATH"]])
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
                failed += environment.skipped(f"{agent.package}: it does not install: {error}")[1]
                continue
            model.asked_back = False
            fault = write(agent, server, path)
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
