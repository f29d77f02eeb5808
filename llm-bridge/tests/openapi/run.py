#!/usr/bin/env python3
"""A running server against what its own /openapi.json says: whether the document is one, schemathesis with good and bad
requests to every address, and the answers that random requests do not get.

See ../clients/environment.py for the variables. The last line is `N passed, M failed`.
"""

import os
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
CLIENTS = HERE.parent / "clients"
sys.path.insert(0, str(CLIENTS))
sys.dont_write_bytecode = True

import checks
import environment
from checks import check, expect, finish

CONFIGURATION = """
[user]
id = "ada"
level = "admin"

[[tools]]
name = "garden.hours"
description = "Tells when the garden is open."
type = "function"
handler = "fixed"
parameters = { type = "object", properties = { day = { type = "string" } }, required = ["day"] }
implementation = { type = "mock", mock_response = { open = 9, closed = 17 } }

[[tools]]
name = "garden.once"
description = "Answers once a day."
type = "function"
handler = "fixed"
parameters = { type = "object" }
implementation = { type = "mock", mock_response = "once" }
daily_limit = 1

[[tools]]
name = "garden.deed"
description = "Shows the deed of the garden."
type = "function"
handler = "fixed"
permission = "owner"
parameters = { type = "object" }
implementation = { type = "mock", mock_response = "mine" }

[[tools]]
name = "garden.burn"
description = "Burns the garden down."
type = "function"
handler = "fixed"
parameters = { type = "object" }
implementation = { type = "mock", mock_response = "burnt" }
permission = "guest"
effect = "destructive"
"""

# Examples for each address and phase. The same seed asks the same.
EXAMPLES, SEED = int(os.environ.get("OPENAPI_EXAMPLES", "30")), 1
SECONDS = 300 if EXAMPLES <= 30 else 3600


def run(address, folder, saved):
    document = f"{address}/openapi.json"
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(document, timeout=20) as answer:
        saved.write_bytes(answer.read())
    variables = {**os.environ, "TOOLRACK_URL": address, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1",
                 "PYTHONPATH": f"{CLIENTS}{os.pathsep}{HERE}", "SCHEMATHESIS_HOOKS": "hooks", "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "120"}

    def passes(*command):
        done = subprocess.run([str(part) for part in command], env=variables, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS, check=False,
                              # schemathesis leaves a folder of its own where it runs.
                              cwd=saved.parent)
        expect(done.returncode == 0, done.stdout)
        return done.stdout

    @check("the document is valid OpenAPI")
    def _():
        passes(folder / "openapi-spec-validator", "--subschema-errors", "all", saved)

    # First, because what comes after it switches tools off.
    @check("what takes a certain state is answered as the document says")
    def _():
        passes(folder / "python", HERE / "answers.py")

    @check("so is every other request, good or bad")
    def _():
        reported = passes(
            folder / "schemathesis", "--config-file", HERE / "schemathesis.toml", "--no-color", "run", document,
            "--phases", "examples,coverage,fuzzing", "--max-examples", EXAMPLES, "--seed", SEED, "--workers", 1,
            "--generation-database", "none", "--request-timeout", 20, "--warnings", "off", "--continue-on-failure")
        print("".join(line + "\n" for line in reported.splitlines() if "generated" in line or "Tested:" in line), end="")


def main():
    checks.WHO = "OpenAPI"
    folder = environment.python("python-openapi", HERE / "requirements.txt").parent
    with tempfile.TemporaryDirectory(prefix="openapi-") as place, \
            environment.toolrack("demo", configuration=CONFIGURATION) as address:
        run(address, folder, Path(place) / "openapi.json")
    finish()


if __name__ == "__main__":
    main()
