#!/usr/bin/env python3
"""`cargo xtask dev` with the real Cargo: a tool is saved in `tools/`, made wrong, corrected and removed, and so are settings. Prints how long
each takes. In between, a browser looks at the page: see page.mjs. Then `dev` of a program of its own, that of `fixtures/embedding`.

    CHROMIUM     the browser, default the first found on the path
    SHOTS        folder for screenshots; none are taken without it
"""

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "clients"))
sys.dont_write_bytecode = True

import environment

# On a machine that does nothing else it takes three seconds, and some minutes where nothing is built yet.
PATIENCE = 300
PATIENCE_AT_FIRST = 3600
TOOL = environment.REPOSITORY / "tools" / "dev_probe.rs"
FIXTURES = environment.REPOSITORY / "fixtures"
OWN_TOOL = FIXTURES / "embedding" / "tools" / "dev_probe.rs"
# All of its workspace, so that dependencies have the same features as in the tests.
OWN_PROGRAM = ["--workspace", "--bin", "embedding"]
TEXT = '''//! A tool that a test has written, and removes.

use registry_core::prelude::*;

/// Adds something to a number.
#[tool]
async fn dev_probe(
    /// The number.
    number: i64,
) -> i64 {
    number + 1
}
'''


def lines(out):
    """The lines of a program, in a terminal as well."""
    try:
        yield from iter(out.readline, "")
    except OSError:  # The terminal is closed.
        pass


class Dev:
    """`cargo xtask dev`, with what it says, in a terminal of its own or without one."""

    def __init__(self, folder, repository=environment.REPOSITORY, tool="dev_probe", terminal=False, program=("cargo", "xtask"), cargo=()):
        self.tool = tool
        self.settings = folder / "toolrack.toml"
        self.settings.write_text("")
        command = [*program, "dev", "--upstream", "demo", "--listen", "127.0.0.1:0", "--data-dir", folder / "data",
                   "--config", self.settings, *(("--", *cargo) if cargo else ())]
        variables = {name: value for name, value in os.environ.items() if not name.startswith("TOOLRACK_")}
        if terminal:
            ours, theirs = pty.openpty()
            colourless = ("NO_COLOR", "CARGO_TERM_COLOR")
            variables = {**{name: value for name, value in variables.items() if name not in colourless}, "TERM": "xterm-256color"}
        else:
            ours, theirs = os.pipe()
        self.process = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
                                        env={**variables, "CARGO_TERM_PROGRESS_WHEN": "never"}, cwd=repository)
        os.close(theirs)
        # As it is shown, and without colours.
        self.shown, self.said = [], []
        threading.Thread(target=self.listen, args=[open(ours, errors="replace")], daemon=True).start()
        self.address = self.until(lambda: re.search(r"Chat at (http://[\d.:]+)/", self.text()), "it does not serve",
                                  PATIENCE_AT_FIRST).group(1)

    def listen(self, out):
        for line in lines(out):
            self.shown.append(line)
            self.said.append(re.sub(r"\x1b\[[0-9;]*m", "", line))

    def stop(self):
        """Whether it ends."""
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return False
        return True

    def text(self):
        return "".join(self.said)

    def until(self, holds, otherwise, patience=PATIENCE):
        """Waits until something holds."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            if found := holds():
                return found
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise AssertionError(f"{otherwise}:\n{self.text()[-4000:]}")

    def call(self, arguments, tool=None):
        """The tool's result; None where there is no such tool, or it is off."""
        body = json.dumps({"tool_name": tool or self.tool, "arguments": arguments}).encode()
        request = urllib.request.Request(f"{self.address}/execute", body, {"content-type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer).get("result")
        except urllib.error.HTTPError as error:
            assert error.code == 404, error.code
            return None

    def state(self):
        """The state of the build, as the page hears it."""
        with urllib.request.urlopen(f"{self.address}/api/dev/events", timeout=60) as events:
            return json.loads(next(line for line in events if line.startswith(b"data:"))[5:])

    def became(self, state):
        return self.until(lambda: (now := self.state())["state"] == state and now, f"the state is never {state}")


def saved(dev, what, text, holds, otherwise, file=TOOL):
    """Saves the tool, waits until it does what it should, and prints how long that took."""
    before, began = len(dev.said), time.monotonic()
    file.write_text(text)
    dev.until(holds, otherwise)
    took = time.monotonic() - began
    dev.until(lambda: any(line.startswith("Ready") for line in dev.said[before:]), "it is not said")
    line = next(line for line in dev.said[before:] if line.startswith("Ready"))
    print(f"{what}: called after {took:.1f} s. {line.strip()}", flush=True)


def play(dev):
    assert dev.call({"number": 1}) is None
    saved(dev, "a new tool", TEXT, lambda: dev.call({"number": 41}) == 42, "the tool is not called")
    saved(dev, "changed", TEXT.replace("+ 1", "+ 2"), lambda: dev.call({"number": 40}) == 42, "the change is not taken over")

    TOOL.write_text(TEXT.replace("number + 1", 'number + "one"'))
    message = dev.became("failed")["message"]
    assert "tools/dev_probe.rs" in message and "cannot add" in message and "\x1b[" in message, message
    dev.until(lambda: message in "".join(dev.shown), "the terminal does not show the whole of it in its colours")
    assert dev.call({"number": 40}) == 42
    saved(dev, "corrected", TEXT, lambda: dev.call({"number": 41}) == 42, "the correction is not taken over")
    assert dev.became("current")

    # One that cannot be used is not told as new.
    TOOL.write_text(TEXT.replace("#[tool]", '#[tool(enabled = |_| false, needs = "the variable DEV_PROBE_KEY")]'))
    dev.until(lambda: "; off: dev_probe (needs the variable DEV_PROBE_KEY)" in dev.text(), "it is not said that the tool is off")
    saved(dev, "on again", TEXT, lambda: dev.call({"number": 41}) == 42, "the tool stays off")
    yield "tool"

    yield from as_editors_save(dev)

    dev.settings.write_text("listen = 1\n")
    message = dev.became("failed")["message"]
    assert "line 1" in message and "toolrack.toml" in message, message
    dev.until(lambda: "line 1" in dev.text(), "it is not said here")
    assert dev.call({"number": 41}) == 42
    began = time.monotonic()
    dev.settings.write_text("[[tools]]\nname = 'dev_fixed'\ndescription = 'A tool.'\ntype = 'function'\nhandler = 'fixed'\n"
                            "parameters = { type = 'object' }\nimplementation = { type = 'mock', mock_response = 'done' }\n")
    dev.until(lambda: "new: dev_fixed" in dev.text(), "the settings are not taken over")
    print(f"settings: after {time.monotonic() - began:.1f} s", flush=True)
    # A fault in a tool of a file keeps the tools that there are.
    right = dev.settings.read_text()
    dev.settings.write_text(right.replace("handler = 'fixed'\n", ""))
    message = dev.became("failed")["message"]
    assert "toolrack.toml:1: tool dev_fixed: `handler` is missing" in message, message
    assert dev.call({}, "dev_fixed") == "done" and "`handler` is missing" in dev.text()
    dev.settings.write_text(right)
    assert dev.became("current")
    yield "settings"

    TOOL.unlink()
    dev.until(lambda: dev.call({"number": 41}) is None, "the removed tool is still called")
    dev.until(lambda: "gone: dev_probe" in dev.text(), "it is not said that the tool is gone")
    yield "removed"


def as_editors_save(dev):
    """The ways in which a file comes to be what it is."""
    def adds(number):
        return TEXT.replace("+ 1", f"+ {number}")

    def is_called(number):
        return lambda: dev.call({"number": 0}) == number

    beside = TOOL.with_suffix(".tmp")
    try:
        beside.write_text(adds(3))
        beside.replace(TOOL)
        dev.until(is_called(3), "a file that was written beside and renamed over it is not taken over")
        yield "renamed over"

        # The file before is kept under another name, and its time goes with it.
        kept = TOOL.with_suffix(".rs~")
        TOOL.replace(kept)
        TOOL.write_text(adds(4))
        dev.until(is_called(4), "the new file in the place of one that was moved away is not taken over")
        kept.replace(TOOL)
        dev.until(is_called(3), "a file that was moved back, with its time, is not taken over")
        yield "moved away and back"
    finally:
        beside.unlink(missing_ok=True)
        TOOL.with_suffix(".rs~").unlink(missing_ok=True)

    for number, pause in ((5, 0.05), (7, 0.08), (9, 0.3)):
        TOOL.write_text(adds(number))
        time.sleep(pause)
        TOOL.write_text(adds(number + 1))
        dev.until(is_called(number + 1), f"the second of two saves within {pause} s is not taken over")
    assert dev.became("current")
    yield "twice"

    TOOL.write_bytes(adds(11).replace("\n", "\r\n").encode())
    dev.until(is_called(11), "a file with CRLF is not taken over")
    function = adds(12).split("\n\n", 2)[2].replace("#[tool]\n", "")
    TOOL.write_text(f"\ufeff#[registry_core::tool]\n{function}", "utf-8")
    said = len(dev.said)
    dev.until(is_called(12), "a file with a mark of the byte order is not taken over")
    assert "has neither" not in "".join(dev.said[said:]), "a file with a mark of the byte order is warned of"
    yield "bytes"

    older = TOOL.with_suffix(".older")
    older.write_text(adds(15))
    os.utime(older, (0, 1_700_000_000))
    shutil.copy2(older, TOOL)
    older.unlink()
    dev.until(is_called(15), "an older file copied over it is not taken over")
    yield "older"

    said = len(dev.said)
    TOOL.write_text("")
    dev.until(lambda: dev.call({"number": 0}) is None, "the tool of a file that is empty now is still called")
    dev.until(lambda: "has neither" in "".join(dev.said[said:]), "an empty file is not warned of")
    TOOL.write_text(adds(13))
    dev.until(is_called(13), "what is written into an empty file is not taken over")
    yield "emptied"

    renamed = TOOL.with_name("dev_probe_renamed.rs")
    try:
        said = len(dev.said)
        TOOL.replace(renamed)
        dev.until(lambda: any(line.startswith("Ready") for line in dev.said[said:]), "the renamed file is not built")
        assert dev.call({"number": 0}) == 13 and dev.became("current"), "".join(dev.said[said:])
        assert "gone" not in "".join(dev.said[said:]), "".join(dev.said[said:])
        renamed.write_text(adds(14).replace("fn dev_probe", "fn dev_probe_renamed"))
        dev.until(lambda: dev.call({"number": 0}, "dev_probe_renamed") == 14, "the renamed tool is not called")
        assert dev.call({"number": 0}) is None
    finally:
        renamed.unlink(missing_ok=True)
    TOOL.write_text(TEXT)
    dev.until(is_called(1), "the tool does not come back")
    yield "renamed"


def page(dev):
    """The page, in a browser."""
    browser = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not browser:
        return environment.skipped("the page under `dev`: there is no chromium on the path; CHROMIUM may name one")
    sources = [HERE.parent / "browser" / name for name in ("package.json", "package-lock.json")]
    folder = environment.node("node-browser", [*sources, HERE / "page.mjs"])
    variables = {**os.environ, "TOOLRACK_URL": dev.address, "CHROMIUM": browser, "TOOL": str(TOOL)}
    status = subprocess.run(["node", folder / "page.mjs"], env=variables, stdin=subprocess.DEVNULL).returncode
    return int(status == 0), int(status != 0)


def own(folder):
    """`dev` of a program of its own."""
    subprocess.run(["cargo", "build", "--quiet", *OWN_PROGRAM], cwd=FIXTURES, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", FIXTURES / "target"))
    dev = Dev(folder, FIXTURES, program=(target / "debug" / "embedding",), cargo=OWN_PROGRAM)
    try:
        assert dev.call({"number": 1}) is None
        saved(dev, "its own program", TEXT, lambda: dev.call({"number": 41}) == 42, "the tool is not called", OWN_TOOL)
        OWN_TOOL.write_text(TEXT.replace("number + 1", "numbers + 1"))
        message = dev.became("failed")["message"]
        assert "embedding/tools/dev_probe.rs:" in message and dev.call({"number": 41}) == 42, message
        OWN_TOOL.unlink()
        dev.until(lambda: dev.call({"number": 41}) is None, "the removed tool is still called")
        assert dev.became("current")
    finally:
        OWN_TOOL.unlink(missing_ok=True)
        ended = dev.stop()
    assert ended, "the program of its own does not end"


def main():
    assert not TOOL.exists() and not OWN_TOOL.exists(), "a tool dev_probe.rs is in the way"
    passed, failed = 0, 0
    with tempfile.TemporaryDirectory(prefix="dev-") as folder:
        dev = Dev(Path(folder), terminal=True)
        try:
            for _ in play(dev):
                passed += 1
            more, less = page(dev)
            passed, failed = passed + more, failed + less
        except AssertionError as error:
            failed += 1
            print(f"FAILED  {error}")
        finally:
            TOOL.unlink(missing_ok=True)
            if dev.stop():
                passed += 1
            else:
                failed += 1
                print("FAILED  it does not end")
    with tempfile.TemporaryDirectory(prefix="dev-") as folder:
        try:
            own(Path(folder))
            passed += 1
        except AssertionError as error:
            failed += 1
            print(f"FAILED  {error}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
