#!/usr/bin/env python3
"""Builds the wheel, installs it as a user would, and tests it; with `bench` times it beside the parsers of vLLM and SGLang.

See llm-bridge/tests/clients/environment.py for the variables. The last line of a test is `N passed, M failed`.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent
sys.path.insert(0, str(PACKAGE.parents[1] / "tests/clients"))
sys.dont_write_bytecode = True

import environment


def installed(interpreter, folder):
    """Builds the wheel as for a release; where it was installed."""
    subprocess.run([interpreter.parent / "maturin", "build", "--quiet", "--locked", "--out", folder,
                    "--target-dir", environment.TARGET / "python"], cwd=PACKAGE, check=True)
    (wheel,) = Path(folder).glob("*.whl")
    print(f"{wheel.name}: {wheel.stat().st_size >> 10} KiB", flush=True)
    site = Path(folder) / "site"
    subprocess.run([interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--target", site, wheel],
                   check=True)
    return site


if __name__ == "__main__":
    interpreter = environment.python("wheel", HERE / "requirements.txt")
    with tempfile.TemporaryDirectory() as folder:
        variables = {"PATH": "/usr/bin:/bin", "HOME": folder, "PYTHONPATH": str(installed(interpreter, folder))}
        command = [interpreter, HERE / "wheel.py"]
        if sys.argv[1:] == ["bench"]:
            peers = environment.python("wheel-bench", HERE / "bench_requirements.txt")
            command = [peers, HERE / "bench.py", environment.CACHE / "wheel-peers"]
        sys.exit(subprocess.run(command, env={**os.environ, **variables}, cwd=folder).returncode)
