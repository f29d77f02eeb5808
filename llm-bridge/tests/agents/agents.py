"""Coding agents from npm, each installed once, and how each is started."""

import os
import subprocess
from dataclasses import dataclass

import environment

INSTALL_SECONDS = 600
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


def variables(agent, home):
    """What it gets of the environment: nothing of this machine's configuration, and no other provider's keys."""
    path = os.pathsep.join([str(programs(agent.package)), str(programs(NODE).parent / "node/bin"), os.environ["PATH"]])
    return {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8", "TERM": "xterm-256color", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}


def command(agent, server, question):
    """Has it do what it is asked, in front of a server."""
    return [environment.TOOLRACK, "launch", agent.name, "--server", server, "--", *agent.arguments, question]
