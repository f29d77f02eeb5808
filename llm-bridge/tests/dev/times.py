#!/usr/bin/env python3
"""How long a saved tool takes under `cargo xtask dev`, from the save to the first call that finds the change, on the clock and in time of the
processors. Where the time went is what `dev` says of the fastest. The tools are in a folder of `tools/`, or in crates of tools that are added to it; it is left as it was.

    times.py [TOOLS [SAVES [CRATES]]]     beside the bundled tools, 1 of them, 10 saves and no crates by default
"""

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

from run import Dev, environment

FOLDER = environment.REPOSITORY / "tools" / "dev_times"
MANIFEST = environment.REPOSITORY / "tools" / "Cargo.toml"
KEPT = [MANIFEST, environment.REPOSITORY / "Cargo.lock"]


def tool(number, step):
    """A tool with the kinds of arguments that tools have."""
    return f'''//! A tool that a measurement has written, and removes.

use registry_core::prelude::*;

/// Does thing number {number}.
#[tool(permission = Permission::User, timeout = secs(5), tags = ["generated"])]
async fn thing_{number:04}(
    /// What to do it with.
    text: &str,
    /// How often.
    #[arg(default = {number % 100 + 1}, range = 1..=100)]
    times: u32,
    /// How to end it.
    ending: Option<String>,
) -> Result<String, ToolError> {{
    let result = text.repeat(times as usize);
    Ok(format!("{step} {{result}}{{}}", ending.unwrap_or_default()))
}}
'''


def processors(pid):
    """How long processors have worked for the children of a process that have ended, in seconds. See proc_pid_stat(5): cutime and cstime."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def write(number, step, places):
    (places[number % len(places)] / f"thing_{number:04}.rs").write_text(tool(number, step))


def crates(count, folder):
    """New crates of tools, added to the program: their folders of tools."""
    names = [f"toolrack-times-{number}" for number in range(count)]
    for name in names:
        subprocess.run(["cargo", "xtask", "new-crate", name, str(folder / name)], cwd=environment.REPOSITORY, check=True, capture_output=True)
        for example in ("greet", "greeting"):
            (folder / name / f"src/{example}.rs").unlink()
    lines = [f'{name} = {{ path = "{folder / name}" }}' for name in names]
    MANIFEST.write_text(MANIFEST.read_text().replace("[dependencies]\n", "[dependencies]\n" + "".join(f"{line}\n" for line in lines), 1))
    return [folder / name / "src" for name in names]


def measure(dev, saves, places):
    """The times of each save, and the line in which `dev` says what they went to."""
    for step in range(1, saves + 1):
        said, worked, began = len(dev.said), processors(dev.process.pid), time.monotonic()
        write(0, step, places)
        dev.until(lambda: dev.call({"text": "a", "times": 2}) == f"{step} aa", "the change is not taken over")
        took = time.monotonic() - began
        line = dev.until(lambda: next((line for line in dev.said[said:] if line.startswith("Ready")), None), "it is not said")
        yield took, processors(dev.process.pid) - worked, re.sub(r"^Ready .*? after the save ", "", line.strip())


def main():
    tools, saves, count = [*map(int, sys.argv[1:]), *(1, 10, 0)[len(sys.argv) - 1:]]
    assert not FOLDER.exists(), f"{FOLDER} is in the way"
    before = {file: file.read_bytes() for file in KEPT}
    with tempfile.TemporaryDirectory(prefix="dev-") as folder:
        try:
            FOLDER.mkdir()
            places = crates(count, Path(folder)) or [FOLDER]
            for number in range(tools):
                write(number, 0, places)
            dev = Dev(Path(folder), tool="times_0.thing_0000" if count else "dev_times.thing_0000")
            try:
                times = list(measure(dev, saves, places))
            finally:
                dev.stop()
        finally:
            shutil.rmtree(FOLDER, ignore_errors=True)
            for file, text in before.items():
                file.write_bytes(text)
    clock, work, _ = zip(*times)
    where = f" in {count} crates" if count else ""
    print(f"{tools} tools{where} beside the bundled ones, {saves} saves, each until its first call:")
    print(f"on the clock {min(clock):.1f} s at best, median {statistics.median(clock):.1f} s, {max(clock):.1f} s at most")
    print(f"processors {min(work):.1f} s at best, median {statistics.median(work):.1f} s")
    print(f"the fastest {min(times)[2]}")


if __name__ == "__main__":
    main()
