#!/usr/bin/env python3
"""What `toolrack doctor` says of the chat templates of common models: the table in docs/doctor.md is true.

    python3 llm-bridge/tests/llama/common.py             whether the table is what it says now
    python3 llm-bridge/tests/llama/common.py --write     writes the table anew

The templates are not ours to keep; two packages bring them (../../templates/tests/packages.txt). The last line is `N passed, M failed`.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "clients"))
sys.dont_write_bytecode = True
os.environ.setdefault("TOOLRACK_CLIENT", "common models")

import environment
from checks import check, expect, finish
from doctor import examined
from packaged import package_folder

PAGE = environment.REPOSITORY / "docs" / "doctor.md"
BEGIN, END = "<!-- made by llm-bridge/tests/llama/common.py -->\n\n", "\n<!-- end -->"
TRL, AXOLOTL = "trl/chat_templates", "axolotl/utils/chat_templates/templates"
# The models, and where their template is.
MODELS = [
    ("Command A", AXOLOTL, "command_a_tool_use"),
    ("DeepSeek V3", TRL, "deepseekv3"),
    ("DeepSeek R1, distilled", TRL, "deepseek_r1_distill"),
    ("EXAONE 4", AXOLOTL, "exaone4"),
    ("Falcon-H1", AXOLOTL, "falcon_h1"),
    ("Gemma 3", TRL, "gemma3"),
    ("Gemma 4", TRL, "gemma4_v5"),
    ("GLM-4.5", TRL, "glm4moe"),
    ("gpt-oss", TRL, "gptoss"),
    ("Jamba", AXOLOTL, "jamba"),
    ("LFM2", TRL, "lfm2_v2"),
    ("LFM2.5", TRL, "lfm2_2_5_v2"),
    ("Llama 3", TRL, "llama3"),
    ("Llama 3.1", TRL, "llama3_1"),
    ("Llama 3.2", TRL, "llama3_2"),
    ("Llama 4", AXOLOTL, "llama4"),
    ("Mistral (tokenizer v3, Tekken)", AXOLOTL, "mistral_v3_tekken"),
    ("Mistral (tokenizer v7, Tekken)", AXOLOTL, "mistral_v7_tekken"),
    ("Nemotron 3 Nano", TRL, "nemotron_3_nano"),
    ("Nemotron H", AXOLOTL, "nemotron_h"),
    ("Phi-3", TRL, "phi3"),
    ("Phi-3.5", TRL, "phi3_5"),
    ("Phi-4", AXOLOTL, "phi_4"),
    ("Qwen2.5", TRL, "qwen2_5"),
    ("Qwen3", TRL, "qwen3"),
    ("Qwen3 2507", TRL, "qwen3_instruct_2507"),
    ("Qwen3-VL", TRL, "qwen3_vl"),
    ("Qwen3.5", TRL, "qwen3_5_think"),
    ("Qwen3.6", TRL, "qwen3_6"),
]


def table(model):
    """The rows of the models, with what is seen of their templates."""
    folders = {place: package_folder(place) for place in (TRL, AXOLOTL)}
    lines = ["| model | lists tools | writes calls in |", "|---|---|---|"]
    for name, place, stem in MODELS:
        # Nothing else is looked at, so that it need not be right.
        found = examined(model, "--seconds", "10", "--template", folders[place] / f"{stem}.jinja")["probes"]["template"]
        lists = {"yes": "yes", "partly": "yes", "no": "no"}[found["verdict"]]
        dialect = f"`{found['dialect']}`" if "dialect" in found else "no known dialect" if lists == "yes" else "–"
        lines.append(f"| {name} | {lists} | {dialect} |")
    return "\n".join(lines) + "\n"


def main():
    with environment.llama(environment.python("python-llama", HERE / "requirements.txt"), "--say", "Hello.") as model:

        @check("what the doctor says of common models is what the page says")
        def _():
            before, rest = PAGE.read_text().split(BEGIN)
            stands, after = rest.split(END)
            found = table(model)
            if "--write" in sys.argv:
                PAGE.write_text(before + BEGIN + found + END + after)
            else:
                expect(stands == found, f"--write writes it anew:\n{found}")

    return finish()


if __name__ == "__main__":
    sys.exit(main())
