#!/usr/bin/env python3
"""Somebody adds crates of tools with `cargo xtask add`: the crate of the fixtures from its folder, and what is none. What is added is listed
and called. In this folder, which it leaves as it was.

    add.py           a crate from a folder, and every mistake
    add.py --all     besides, a new crate of `cargo xtask new-crate`: its tests, and its way through a repository

The last line is `N passed, M failed`.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "clients"))
sys.dont_write_bytecode = True
os.environ.setdefault("TOOLRACK_CLIENT", "add")

import environment
from checks import check, expect, finish

REPOSITORY = environment.REPOSITORY
MANIFEST = REPOSITORY / "tools/Cargo.toml"
KEPT = [MANIFEST, REPOSITORY / "Cargo.toml", REPOSITORY / "Cargo.lock"]
DESK = ["desk.contrast", "desk.convert_unit", "desk.days_between", "desk.summarize_csv", "desk.text_statistics"]


def run(*command, cwd=REPOSITORY, **variables):
    """What a command says, and its status."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TOOLRACK_")}
    ran = subprocess.run([str(part) for part in command], cwd=cwd, env={**environ, **variables}, stdin=subprocess.DEVNULL,
                         capture_output=True, text=True)
    return ran.returncode, ran.stdout, ran.stderr


def xtask(*arguments):
    return run("cargo", "xtask", *arguments)


def added_lines(before):
    return [line for line in MANIFEST.read_text().splitlines() if line not in before.splitlines()]


def refused(before, arguments, *said):
    """It fails, says so, and leaves everything as it was."""
    status, _, errors = xtask("add", *arguments)
    expect(status != 0, f"{arguments} was added")
    for words in said:
        expect(words in errors, f"{arguments}: `{words}` is not said, but\n{errors}")
    expect(MANIFEST.read_text() == before, f"{arguments}: tools/Cargo.toml was changed")


def mistakes(before):
    refused(before, [], "usage: cargo xtask add")
    refused(before, ["fixtures/nowhere"], "there is no crate in fixtures/nowhere: it has no Cargo.toml", "--git URL")
    refused(before, ["no crate"], "nothing was added", "a folder given by its path")
    refused(before, ["fixtures/toolrack-desk", "--rename", "d"], "leave out --rename")
    refused(before, ["--git", f"file://{REPOSITORY}/nowhere"], "nothing was added", "a repository by --git URL")
    refused(before, ["fixtures/only_core"], "nothing was added: only_core has no tools", 'links = "only_core"')


def from_a_folder(before):
    status, said, errors = xtask("add", "fixtures/toolrack-desk")
    expect(status == 0, errors)
    guide = re.search(r"```text\n(Added toolrack-desk .*?)```", (REPOSITORY / "docs/writing-tools.md").read_text(), re.S).group(1)
    expect(said.endswith(guide) and [line.strip() for line in guide.splitlines()[1:]] == DESK, f"the guide shows\n{guide}in place of\n{said}")
    (line,) = added_lines(before)
    expect(re.fullmatch(r'toolrack-desk = \{ version = "[\d.]+", path = "\.\./fixtures/toolrack-desk" \}', line), line)
    listed = json.loads(xtask("list-tools", "--module", "desk", "--json")[1])
    expect([tool["name"] for tool in listed] == DESK, listed)
    status, said, errors = xtask("call", "desk.contrast", "--text", "#000000", "--background", "#ffffff")
    expect(status == 0 and json.loads(said)["result"]["ratio"] == 21.0, said + errors)
    status, said, _ = xtask("add", "fixtures/toolrack-desk")
    expect(status == 0 and "tools/Cargo.toml has it already" in said, said)
    status, _, errors = run("cargo", "remove", "--package", "tools", "toolrack-desk")
    expect(status == 0 and MANIFEST.read_text() == before, errors)


def from_a_repository(before):
    """What others get of a crate that was begun with `new-crate`."""
    with tempfile.TemporaryDirectory(prefix="add-") as folder:
        crate = Path(folder) / "toolrack-units"
        status, said, errors = xtask("new-crate", "toolrack-units", crate)
        expect(status == 0, errors)
        status, said, errors = run("cargo", "test", "--quiet", cwd=crate, CARGO_TARGET_DIR=str(environment.TARGET))
        expect(status == 0 and "2 passed" in said, said + errors)
        # Who has the crate has not this project beside it.
        manifest, ours = (crate / "Cargo.toml").read_text(), f"file://{REPOSITORY}"
        (crate / "Cargo.toml").write_text(re.sub(r'path = "[^"]*"', f'git = "{ours}"', manifest))
        for command in (["init", "--quiet"], ["add", "."], ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "--quiet", "-m", "Begin"]):
            subprocess.run(["git", *command], cwd=crate, check=True)
        url = f"file://{crate}"
        refused(before, ["--git", url], f'[patch."{ours}"]', 'registry-core = { path = "registry-core" }', "add toolrack-units again")
        (REPOSITORY / "Cargo.toml").write_text(KEPT_TEXTS[1] + f'\n[patch."{ours}"]\nregistry-core = {{ path = "registry-core" }}\n')
        status, said, errors = xtask("add", "--git", url)
        expect(status == 0 and said.endswith("with one tool:\n  units.greet\n"), said + errors)
        (line,) = added_lines(before)
        expect(line.startswith(f'toolrack-units = {{ git = "{url}"'), line)
        status, said, errors = xtask("call", "units.greet", "--name", "Ada")
        expect(status == 0 and json.loads(said)["result"] == "Hello, Ada!", said + errors)


KEPT_TEXTS = [file.read_text() for file in KEPT]


def put_back():
    for file, text in zip(KEPT, KEPT_TEXTS):
        file.write_text(text)


def main():
    before = KEPT_TEXTS[0]
    parts = [mistakes, from_a_folder, *([from_a_repository] if "--all" in sys.argv[1:] else [])]
    try:
        for part in parts:
            check(part.__name__.replace("_", " "))(lambda: part(before))
            put_back()
    finally:
        put_back()
        # What others find built has none of these tools.
        subprocess.run(["cargo", "build", "--quiet"], cwd=REPOSITORY, check=True)
    finish()


if __name__ == "__main__":
    main()
