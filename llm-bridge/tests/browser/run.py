#!/usr/bin/env python3
"""The chat page in a real browser, in front of a server with the demo model: see page.mjs.

    CHROMIUM     the browser, default the first found on the path
    SHOTS        folder for screenshots; none are taken without it
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "clients"))
sys.dont_write_bytecode = True

import environment

# A call that cannot be undone, for the page to ask about.
CONFIGURATION = """
[[tools]]
name = "erase_note"
description = "Erases a note for good."
type = "function"
effect = "destructive"
parameters = { type = "object", properties = { title = { type = "string", description = "The note's title." } }, required = ["title"] }
implementation = { type = "mock", mock_response = "The note is gone." }
"""


def main():
    browser = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not browser:
        print("FAILED  there is no chromium on the path; CHROMIUM may name one\n0 passed, 1 failed")
        return 1
    folder = environment.node("node-browser", [HERE / name for name in ("package.json", "package-lock.json", "page.mjs")])
    with environment.toolrack("demo", configuration=CONFIGURATION) as address:
        variables = {**os.environ, "TOOLRACK_URL": address, "CHROMIUM": browser}
        return subprocess.run(["node", folder / "page.mjs"], env=variables, stdin=subprocess.DEVNULL).returncode


if __name__ == "__main__":
    sys.exit(main())
