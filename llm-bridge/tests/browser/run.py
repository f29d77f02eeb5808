#!/usr/bin/env python3
"""The chat page in a real browser, in front of a server with the demo model: see page.mjs.

    CHROMIUM     the browser, default the first found on the path
    SHOTS        folder for screenshots; none are taken without it
"""

import os
import shutil
import subprocess
import sys
import tempfile
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
handler = "fixed"
effect = "destructive"
parameters = { type = "object", properties = { title = { type = "string", description = "The note's title." } }, required = ["title"] }
implementation = { type = "mock", mock_response = "The note is gone." }
"""

# So that the tools that search documents are on.
DOCUMENT = "# Coffee\n\nEspresso is made at 93 degrees.\n"


def with_documents(folder):
    """A configuration of a server that has a document."""
    (folder / "coffee.md").write_text(DOCUMENT)
    file = folder / "documents.db"
    configuration = f"[documents]\nfile = '{file}'\n"
    settings = folder / "settings.toml"
    settings.write_text(configuration)
    environment.output([environment.TOOLRACK, "--config", settings, "documents", "add", folder / "coffee.md"])
    return configuration + CONFIGURATION


def main():
    browser = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not browser:
        print("FAILED  there is no chromium on the path; CHROMIUM may name one\n0 passed, 1 failed")
        return 1
    folder = environment.node("node-browser", [HERE / name for name in ("package.json", "package-lock.json", "page.mjs")])
    with tempfile.TemporaryDirectory(prefix="documents-") as place, \
            environment.toolrack("demo", configuration=with_documents(Path(place))) as address:
        variables = {**os.environ, "TOOLRACK_URL": address, "CHROMIUM": browser}
        return subprocess.run(["node", folder / "page.mjs"], env=variables, stdin=subprocess.DEVNULL).returncode


if __name__ == "__main__":
    sys.exit(main())
