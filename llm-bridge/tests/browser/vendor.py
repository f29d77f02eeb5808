#!/usr/bin/env python3
"""The libraries of the page, as npm has them: `vendor.json` in their folder names packages, versions and files.

    vendor.py          fetches them anew
    vendor.py --check  compares what is there with npm, and says what differs

A module imports its neighbours by file; npm's files name packages instead, and that is all that is changed. A name that ends in `.gz` is
kept compressed, and served so.
"""

import fnmatch
import gzip
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "src/server/page/vendor"
# What the files call each other at npm.
NEIGHBOURS = {"preact": "preact.js", "preact/hooks": "hooks.js", "@preact/signals-core": "signals-core.js", "htm": "htm.js"}


def packed(package, version, folder):
    """The files of a package, by name."""
    archive = subprocess.run(["npm", "pack", "--silent", f"{package}@{version}"], cwd=folder, check=True, text=True,
                             stdout=subprocess.PIPE).stdout.split()[-1]
    with tarfile.open(folder / archive) as archived:
        return {member.name.removeprefix("package/"): archived.extractfile(member).read()
                for member in archived if member.isfile()}


def adapted(name, content):
    """The content of a file as the page has it."""
    if name.endswith((".woff2", ".css.gz")):
        return content
    text = content.decode()
    text = re.sub(r"\n?//# sourceMappingURL=\S+\s*$", "\n", text)
    return re.sub(r'(from ?)"([^"./][^"]*)"', lambda found: f'{found[1]}"./{NEIGHBOURS[found[2]]}"'
                  if found[2] in NEIGHBOURS else found[0], text).encode()


def wanted():
    """The files of the folder and what they contain, as npm has them."""
    files = {}
    with tempfile.TemporaryDirectory(prefix="vendor-") as place:
        for package, about in json.loads((FOLDER / "vendor.json").read_text()).items():
            content = packed(package, about["version"], Path(place))
            for pattern, target in about["files"].items():
                for source in fnmatch.filter(content, pattern):
                    name = target + Path(source).name if target.endswith("/") else target
                    files[name] = adapted(name, content[source])
            licence = next(name for name in sorted(content) if name.upper().startswith("LICENSE"))
            files[f"licences/{package.strip('@').replace('/', '-')}.txt"] = content[licence]
    return files


def present(path):
    if not path.exists():
        return None
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def main():
    check = sys.argv[1:] == ["--check"]
    files = wanted()
    different = [name for name, content in files.items() if present(FOLDER / name) != content]
    for name in different:
        print(f"{'differs from npm' if check else 'fetched'}: {name}")
        if not check:
            path = FOLDER / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(gzip.compress(files[name], 9, mtime=0) if path.suffix == ".gz" else files[name])
    ours = {"vendor.json", "README.md"}
    others = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*")
                    if path.is_file() and not path.name.endswith(".d.ts") and str(path.relative_to(FOLDER)) not in ours | files.keys())
    for name in others:
        print(f"not from npm: {name}")
    print(f"{len(files)} files, {len(different)} {'different' if check else 'fetched'}, {len(others)} unknown")
    return int(bool(others) or (check and bool(different)))


if __name__ == "__main__":
    sys.exit(main())
