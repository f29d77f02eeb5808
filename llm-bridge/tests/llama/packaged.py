"""Prompts of the chat templates that people run, which are not ours to keep and which packages bring: as `transformers` renders them."""

import re
import subprocess

import environment
from checks import check, expect

TESTS = environment.REPOSITORY / "llm-bridge" / "templates" / "tests"
# Where each package has them, and how many prompts of them there are at least.
FOLDERS = {"trl/chat_templates": 1400, "axolotl/utils/chat_templates/templates": 650}


def package_folder(place):
    """A folder of the packages, which are installed without what they do with models."""
    packages = environment.python("python-template-packages", TESTS / "packages.txt", options=("--no-deps",)).parent.parent
    (folder,) = packages.glob(f"lib/python*/site-packages/{place}")
    return folder


def packaged(_):
    subprocess.run(["cargo", "build", "--quiet", "-p", "toolrack-templates", "--example", "render"], cwd=environment.REPOSITORY, check=True)
    render = environment.TARGET / "debug" / "examples" / "render"
    interpreter = environment.python("python-templates", TESTS / "requirements.txt")
    for place, least in FOLDERS.items():

        @check(f"templates of {place.split('/')[0]} are rendered as transformers renders them")
        def _(place=place, least=least):
            folder = package_folder(place)
            done = subprocess.run([interpreter, TESTS / "reference.py", render, folder], capture_output=True, text=True)
            passed, failed = map(int, re.search(r"(\d+) passed, (\d+) failed", done.stdout).groups())
            refused = int(re.search(r"(\d+) of these are refused", done.stdout)[1])
            expect(done.returncode == failed == 0 and passed - refused >= least, done.stdout[-3000:] + done.stderr[-2000:])
            print(f"  {passed - refused} prompts of {len(list(folder.glob('*.jinja')))} templates", flush=True)
