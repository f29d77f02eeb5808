#!/usr/bin/env python3
"""Real clients against a running server: each SDK goes through the table of cases (cases.py) in front of a scripted model. In front of a
llama.cpp server, where there is one, curl checks what goes over the wire.

    python3 llm-bridge/tests/clients/run.py [--all] [--table] [NAME ...]     only clients whose name contains one of these

Without `--all`, the frameworks, and the SDKs in front of llama.cpp, are left to .ci/long. `--table` prints what each SDK cannot be asked.

See environment.py for the variables. The last line is `N passed, M failed`.
"""

import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True

import checks
import environment
import table
from model import Model

HERE = environment.HERE
LLAMA = HERE.parent / "llama" / "requirements.txt"

# The packages of each environment; the name, its driver, and the APIs that it speaks.
PYTHON = {
    "sdk": [("openai", "openai_client.py", ["chat", "responses"]), ("anthropic", "anthropic_client.py", ["messages"]),
            ("google-genai", "google_client.py", ["generate"]), ("ollama", "ollama_client.py", ["chat"])],
}
FRAMEWORKS = {
    "langchain": [("LangChain", "langchain_client.py", ["chat", "responses", "anthropic", "google", "ollama"])],
    "agents": [("pydantic-ai", "pydantic_ai_client.py", ["chat", "responses", "anthropic", "google"]),
               ("openai-agents", "agents_client.py", ["chat", "responses"])],
    "llama-index": [("LlamaIndex", "llama_index_client.py", ["chat"]), ("smolagents", "smolagents_client.py", ["chat"])],
    # It brings an older openai with it, which is run as well.
    "litellm": [("LiteLLM", "litellm_client.py", ["chat", "anthropic", "ollama"]),
                ("openai 2", "openai_client.py", ["chat", "responses"])],
    "mirascope": [("mirascope", "mirascope_client.py", ["responses"])],
}
NODE = [("openai", "openai_client.mjs", ["chat", "responses"]), ("anthropic", "anthropic_client.mjs", ["messages"]),
        ("google-genai", "google_client.mjs", ["generate"]), ("ollama", "ollama_client.mjs", ["chat"]),
        ("AI SDK", "ai_sdk.mjs", ["chat", "responses", "compatible", "anthropic", "google", "ollama"])]


def sdks(everything):
    """(name, command) of each SDK and API; what it needs is installed on the way."""
    found = []
    for name, drivers in {**PYTHON, **(FRAMEWORKS if everything else {})}.items():
        interpreter = environment.python(f"python-{name}", HERE / f"requirements-{name}.txt")
        found += [(f"{sdk} (Python), {api}", [interpreter, HERE / driver, api]) for sdk, driver, apis in drivers for api in apis]
    scripts = [HERE / "driver.mjs", *(HERE / driver for _sdk, driver, _apis in NODE)]
    folder = environment.node("node", [HERE / "package.json", HERE / "package-lock.json", *scripts])
    node = folder / "node_modules/.bin/node"
    found += [(f"{sdk} (Node), {api}", [node, folder / driver, api]) for sdk, driver, apis in NODE for api in apis]
    return found


def is_wanted(name):
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    return not words or any(word in name for word in words)


def through(name, run, *arguments):
    """Runs an SDK through cases; a driver that ends is a failed check."""
    checks.WHO = name
    try:
        left_out = run(*arguments)
        if left_out and "--table" in sys.argv:
            print(f"cannot  {name}: {'; '.join(left_out)}", flush=True)
    except (RuntimeError, OSError) as error:

        @checks.check("the driver")
        def _(error=error):
            raise error


def script(name, command, address="", model=""):
    """Runs a client that is a script with checks of its own; how many passed and failed."""
    variables = {**os.environ, "TOOLRACK_URL": address, "TOOLRACK_MODEL": model, "TOOLRACK_CLIENT": f"{name} -> {model}",
                 "PYTHONDONTWRITEBYTECODE": "1", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
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
    counts = []
    curl = [sys.executable, HERE / "curl_client.py"]
    wanted = [sdk for sdk in sdks("--all" in sys.argv) if is_wanted(sdk[0])]
    if is_wanted("definitions"):
        interpreter = environment.python("python-sdk", HERE / "requirements-sdk.txt")
        counts.append(script("definitions", [interpreter, HERE / "definitions.py"]))
    if is_wanted("curl"):
        with environment.toolrack("demo") as address:
            counts.append(script("curl", curl, address, "demo"))
    model = Model()
    with environment.toolrack(model.address, "--api-key", table.KEY) as address:
        for name, command in wanted:
            through(name, table.run_scripted, command, address, model, checks.check)
    if environment.TINY_LLAMA.exists():
        interpreter = environment.python("python-llama", LLAMA)
        # One slot: a request that was given up and not cancelled would hold up the next.
        with environment.llama(interpreter, "--ctx", "16384") as server, environment.toolrack(f"{server}/v1") as address:
            if is_wanted("curl"):
                counts.append(script("curl", curl, address, "llama.cpp"))
            for name, command in wanted if "--all" in sys.argv else []:
                through(f"{name} -> llama.cpp", table.run_live, command, address, "tiny", checks.check)
    else:
        counts.append(environment.skipped(f"clients in front of llama.cpp: there is no {environment.TINY_LLAMA}"))
    counts.append(tuple(checks.counts().values()))
    passed, failed = (sum(column) for column in zip(*counts))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
