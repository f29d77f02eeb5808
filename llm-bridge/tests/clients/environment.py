"""Programs for the tests against real clients and real servers: installed once into a folder outside the repository's files,
started on free ports, ended with the test.

    TOOLRACK_BIN         the program, default target/debug/toolrack
    TOOLRACK_TEST_CACHE  where packages are installed, default target/test-cache
    CI                   with `true`, what would be skipped fails
"""

import fcntl
import hashlib
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or REPOSITORY / "target")
TOOLRACK = Path(os.environ.get("TOOLRACK_BIN") or TARGET / "debug" / "toolrack")
CACHE = Path(os.environ.get("TOOLRACK_TEST_CACHE") or TARGET / "test-cache").resolve()
# A llama.cpp server with a tiny random model; it comes beside the repository, not with it.
TINY_LLAMA = REPOSITORY.parent / "shared" / "tools" / "tiny_llama.py"

START_SECONDS = 120


def skipped(what):
    """Says what is left out; how many checks passed and failed by that: in CI nothing may be left out."""
    in_ci = os.environ.get("CI") == "true"
    print(f"{'FAILED ' if in_ci else 'skipped:'} {what}", flush=True)
    return 0, int(in_ci)


def free_port():
    """A port of loopback. Systems give others for connections and for port 0, so that nobody gets it while its server is started again."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as one, suppress(OSError):
            one.bind(("127.0.0.1", port))
            return port


def installed(name, sources, install):
    """The folder `name` of the cache, filled by `install(folder)` unless that was done with the same sources."""
    folder, wanted = CACHE / name, hashlib.sha256(b"".join(Path(s).read_bytes() for s in sources)).hexdigest()
    mark = folder / "installed"
    CACHE.mkdir(parents=True, exist_ok=True)
    # Several programs may want it at once.
    with open(CACHE / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not mark.exists() or mark.read_text() != wanted:
            began = time.monotonic()
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            install(folder)
            mark.write_text(wanted)
            print(f"installed {name} in {time.monotonic() - began:.0f} s", flush=True)
    return folder


def python(name, *requirements, options=()):
    """An interpreter that has the packages of these files; `options` are pip's."""

    def install(folder):
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        files = [argument for file in requirements for argument in ("-r", str(file))]
        pip = [folder / "bin/python", "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--no-compile"]
        subprocess.run([*pip, *options, *files], check=True)

    return installed(name, requirements, install) / "bin/python"


def node(name, sources):
    """A folder with the packages of `sources`, which are the package files and the scripts that use them."""
    packages = [source for source in sources if source.name.startswith("package")]

    def install(folder):
        for source in packages:
            shutil.copy(source, folder)
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--silent"], cwd=folder, check=True)

    folder = installed(name, packages, install)
    # A script finds packages from where it lies.
    for source in sources:
        shutil.copy(source, folder)
    return folder


def output(command):
    """What a program prints; its log is left out."""
    parts = [str(part) for part in command]
    return subprocess.run(parts, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          check=True).stdout


@contextmanager
def running(command, ready):
    """A server: what `ready` matched in its output."""
    with running_process(command, ready) as (found, _process):
        yield found


@contextmanager
def running_process(command, ready, variables=None):
    """A server: what `ready` matched in its output, and its process."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TOOLRACK_")}
    log = tempfile.TemporaryFile("w+", encoding="utf-8")
    found, lines = threading.Event(), []
    process = subprocess.Popen(
        [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", env={**inherited, "NO_COLOR": "1", **(variables or {})})

    def read():
        for line in process.stdout:
            log.write(line)
            match = re.search(ready, line)
            if match and not lines:
                lines.append(match.group(1))
                found.set()
        found.set()

    threading.Thread(target=read, daemon=True).start()
    try:
        if not found.wait(START_SECONDS) or not lines:
            log.seek(0)
            raise RuntimeError(f"{Path(str(command[0])).name} did not start:\n{log.read()}")
        yield lines[0], process
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            print("warning: a server had to be killed", flush=True)


@contextmanager
def toolrack(upstream, *flags, configuration="", listen="127.0.0.1:0", prepare=None):
    """The server in front of `upstream`, with nothing of this machine's configuration; its address. `prepare` gets the folder of its data
    before it starts."""
    with tempfile.TemporaryDirectory(prefix="toolrack-") as folder:
        settings = Path(folder) / "toolrack.toml"
        settings.write_text(configuration)
        if prepare:
            prepare(folder)
        command = [TOOLRACK, "serve", "--upstream", upstream, "--listen", listen,
                   "--data-dir", folder, "--config", settings, *flags]
        with running(command, r"(http://127\.0\.0\.1:\d+)/ ") as address:
            yield address


@contextmanager
def llama(interpreter, *flags):
    """The llama.cpp server; its address."""
    command = [interpreter, TINY_LLAMA, "--port", "0", "--dir", CACHE / "tiny-llama", *flags]
    with running(command, r"READY (\S+)") as address:
        yield address
