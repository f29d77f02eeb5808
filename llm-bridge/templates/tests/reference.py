"""Compares the prompts of this crate with those of `transformers`, to the byte.

    python3 reference.py PROGRAM                 the templates and conversations beside this file; PROGRAM is the example `render`
    python3 reference.py PROGRAM FOLDER          the templates of a folder, which are not ours to keep
    python3 reference.py --write                 what the tests of the crate expect, made anew by the reference

Needs `transformers` and `jinja2`. The last line is `N passed, M failed`.
"""

import difflib
import json
import subprocess
import sys
from datetime import datetime
from pathlib import Path

from transformers.utils.chat_template_utils import _compile_jinja_template

HERE = Path(__file__).resolve().parent
NOW = datetime(2026, 2, 3, 4, 5, 6)
EXPECTED = HERE / "expected.json"


def cases(folder, conversations):
    """Each template with each conversation, by its name."""
    for template in sorted(folder.glob("*.jinja")):
        for name, conversation in conversations.items():
            yield f"{template.stem}/{name}", {"template": template.read_bytes().decode(), **conversation}


def reference(case):
    """The prompt, or that there is none."""
    given = {"messages": case["messages"], "tools": case.get("tools"), "documents": None,
             "add_generation_prompt": case.get("add_generation_prompt", False)}
    tokens = {name: case[name] for name in ("bos_token", "eos_token") if name in case}
    try:
        template = _compile_jinja_template(case["template"])
        return {"prompt": template.render(**{**given, **tokens, **case.get("others", {}), "strftime_now": NOW.strftime})}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def rendered(program, all_cases):
    lines = "".join(json.dumps(case) + "\n" for case in all_cases)
    output = subprocess.run([program], input=lines.encode(), stdout=subprocess.PIPE, check=True).stdout.decode()
    return [json.loads(line) for line in output.split("\n")[:-1]]


def main():
    conversations = json.loads((HERE / "conversations.json").read_text())
    if sys.argv[1:] == ["--write"]:
        prompts = {name: reference(case).get("prompt") for name, case in cases(HERE / "templates", conversations)}
        EXPECTED.write_text(json.dumps(prompts, indent=1, ensure_ascii=False) + "\n")
        print(f"wrote {len(prompts)} prompts, {list(prompts.values()).count(None)} refusals")
        return 0
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else HERE / "templates"
    named = dict(cases(folder, conversations))
    passed = refused = failed = 0
    for (name, case), ours in zip(named.items(), rendered(sys.argv[1], named.values()), strict=True):
        theirs = reference(case)
        # Where the reference has no prompt, such as for a loop over `None`, there is none to compare.
        if ours.get("prompt") == theirs.get("prompt") or "error" in theirs:
            passed += 1
            refused += "error" in theirs
            continue
        failed += 1
        print(f"FAILED {name}")
        if "error" in ours or "error" in theirs:
            print(f"  ours: {ours.get('error')}\n  theirs: {theirs.get('error')}")
        else:
            pair = [prompt["prompt"].splitlines(keepends=True) for prompt in (theirs, ours)]
            print("".join(f"  {line!r}\n" for line in difflib.unified_diff(*pair, "theirs", "ours", n=1)))
    print(f"{refused} of these are refused by the reference")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
