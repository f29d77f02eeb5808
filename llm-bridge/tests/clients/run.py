#!/usr/bin/env python3
"""Real clients against a running server: in front of the demo model, and in front of a llama.cpp server where there is one.

    python3 llm-bridge/tests/clients/run.py [--all] [NAME ...]     only clients whose name contains one of these

Without `--all`, litellm and the older openai that it brings are left to .ci/long.

See environment.py for the variables. The last line is `N passed, M failed`.
"""

import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True

import environment

HERE = environment.HERE
LLAMA = HERE.parent / "llama" / "requirements.txt"


def clients():
    """(name, command) of each client; what it needs is installed on the way."""
    current = environment.python("python", HERE / "requirements.txt")
    folder = environment.node("node", [HERE / name for name in (
        "package.json", "package-lock.json", "checks.mjs", "openai_client.mjs", "ai_sdk.mjs")])
    node = folder / "node_modules/.bin/node"
    found = [
        ("openai (Python)", [current, HERE / "openai_client.py"]),
        ("openai (Node)", [node, folder / "openai_client.mjs"]),
        ("AI SDK", [node, folder / "ai_sdk.mjs"]),
        ("curl", [sys.executable, HERE / "curl_client.py"]),
    ]
    if "--all" in sys.argv:
        older = environment.python("python-litellm", HERE / "requirements-litellm.txt")
        found += [("openai 2 (Python)", [older, HERE / "openai_client.py"]), ("litellm", [older, HERE / "litellm_client.py"])]
    return found


def without_server():
    """The same for what needs no server."""
    providers = environment.python("python-definitions", HERE / "requirements-definitions.txt")
    return [("definitions", [providers, HERE / "definitions.py"])]


def is_wanted(client):
    words = [word for word in sys.argv[1:] if word != "--all"]
    return not words or any(word in client[0] for word in words)


def run(name, command, address, model):
    """Runs a client; how many of its checks passed and failed."""
    variables = {
        **os.environ, "TOOLRACK_URL": address, "TOOLRACK_MODEL": model, "TOOLRACK_CLIENT": f"{name} -> {model}",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True", "PYTHONDONTWRITEBYTECODE": "1", "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }
    try:
        done = subprocess.run([str(part) for part in command], env=variables, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240, check=False)
        output = done.stdout
    except subprocess.TimeoutExpired as error:
        output = (error.stdout or b"").decode(errors="replace") + "\ntimed out"
    last = re.search(r"^(\d+) passed, (\d+) failed$", output, re.MULTILINE)
    if last:
        print(output.replace(last.group(0), "").strip(), flush=True)
        return int(last[1]), int(last[2])
    print(f"{output.strip()}\nFAILED  {name} -> {model}: it did not come to its end", flush=True)
    return 0, 1


def main():
    counts = [run(*client, "", "no server") for client in without_server() if is_wanted(client)]
    wanted = [client for client in clients() if is_wanted(client)]
    with environment.toolrack("demo") as address:
        counts += [run(*client, address, "demo") for client in wanted]
    if environment.TINY_LLAMA.exists():
        interpreter = environment.python("python-llama", LLAMA)
        # One slot: a request that was given up and not cancelled would hold up the next.
        with environment.llama(interpreter, "--ctx", "16384") as model, environment.toolrack(f"{model}/v1") as address:
            counts += [run(*client, address, "llama.cpp") for client in wanted]
    else:
        counts.append(environment.skipped(f"clients in front of llama.cpp: there is no {environment.TINY_LLAMA}"))
    passed, failed = (sum(column) for column in zip(*counts))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
