"""Times the streaming parser beside those of vLLM and SGLang, in Python, on the same texts in pieces of four characters.

The peers' parsers are read from their wheels on PyPI (375 MB); what they import beside them (torch, transformers, the servers) is replaced by empty
classes, which costs them nothing. Each opponent gets a new parser for each text, and they take turns; the best of the rounds counts.
`python3 tests/run.py bench` runs it.
"""

import importlib
import importlib.abc
import importlib.machinery
import json
import logging
import signal
import subprocess
import sys
import time
import types
import zipfile
from pathlib import Path

from toolrack_dialects import Call, CallBegin, CallDelta, Scanner

WHEELS = {"vllm": ("0.33.0", ("vllm/tool_parsers/", "vllm/parser/")), "sglang": ("0.5.23", ("sglang/srt/function_call/", "sglang/srt/environ.py"))}
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}, "text": {"type": "string"}, "line": {"type": "integer"}}}
TOOL = {"type": "function", "function": {"name": "write_file", "parameters": SCHEMA}}
ROUNDS, PIECE = 7, 4
# Seconds that a parser has for one text: some regular expressions of the peers need more time with each letter, without end.
LIMIT = 20


class Plain:
    """Stands for any class of what is not there: it holds what it is given."""

    def __init__(self, **fields):
        self.__dict__.update(fields)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return None

    def model_dump(self, **_options):
        return dict(self.__dict__)


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every module that is not installed."""

    ROOTS = ("vllm", "sglang", "torch", "transformers", "xgrammar", "openai", "openai_harmony", "mistral_common")
    FUNCTIONS = {"init_logger": logging.getLogger, "make_tool_call_id": lambda **_: "id", "is_mistral_tokenizer": lambda _: False,
                 "is_list_of": lambda *_: False}

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in self.ROOTS:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        home = CACHE / spec.name.split(".")[0] / spec.name.replace(".", "/")
        module.__path__ = [str(home)] if home.is_dir() else []
        module.__getattr__ = lambda name: self.attribute(name)
        return module

    def attribute(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self.FUNCTIONS.get(name) or type(name, (Plain,), {})

    def exec_module(self, module):
        pass


CACHE = Path(sys.argv[1])


def fetch():
    """The parsers of the wheels, in a folder for each."""
    for name, (version, parts) in WHEELS.items():
        folder = CACHE / name
        if not (folder / "done").exists():
            folder.mkdir(parents=True, exist_ok=True)
            subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, f"{name}=={version}"], check=True)
            (wheel,) = folder.glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(folder, [part for part in archive.namelist() if part.startswith(parts)])
            wheel.unlink()
            (folder / "done").touch()


class Ours:
    def __init__(self, tools):
        self.scanner = Scanner(tools, deltas=True)
        self.found = []

    def push(self, text):
        self.take(self.scanner.push(text))

    def take(self, events):
        for event in events:
            match event:
                case Call(name, arguments):
                    self.found.append((name, json.loads(arguments)))

    def end(self):
        self.take(self.scanner.finish())
        return self.found


class Streamed:
    """Calls put together from names and pieces of arguments, as a client would."""

    def __init__(self):
        self.parts = {}

    def add(self, index, name, arguments):
        part = self.parts.setdefault(index, ["", ""])
        part[0] += name or ""
        part[1] += arguments or ""

    def end(self):
        return [(name, json.loads(arguments or "{}")) for name, arguments in self.parts.values()]


class SGLang(Streamed):
    def __init__(self, detector, tools):
        super().__init__()
        self.detector, self.tools = detector(), tools

    def push(self, text):
        for call in self.detector.parse_streaming_increment(text, self.tools).calls:
            self.add(call.tool_index, call.name, call.parameters)


class VLlm(Streamed):
    def __init__(self, parser, request):
        super().__init__()
        self.parser, self.request, self.text, self.ids = parser(TOKENIZER, request.tools), request, "", []

    def push(self, text):
        before, ids = self.text, self.ids
        self.text, self.ids = before + text, [*ids, len(ids)]
        delta = self.parser.extract_tool_calls_streaming(before, self.text, text, ids, self.ids, self.ids[-1:], self.request)
        for call in delta and delta.tool_calls or []:
            function = call.function
            function = function if isinstance(function, dict) else function.__dict__
            self.add(call.index, function.get("name"), function.get("arguments"))


class Tokenizer(Plain):
    def get_vocab(self):
        return {"<tool_call>": -1, "</tool_call>": -2, "<|python_tag|>": -3, "[TOOL_CALLS]": -4}

    def encode(self, text, **_options):
        return [-3]


TOKENIZER = Tokenizer()


def texts(dialect):
    """Texts of a kind in a dialect: prose, one call with a long argument, many calls."""
    prose = "The harbour was quiet. Nobody had seen the ferry since the morning, and the tide was turning.\n" * 200
    write = {
        "hermes": lambda call: f"<tool_call>\n{json.dumps(call)}\n</tool_call>",
        "llama3_json": lambda call: json.dumps({"name": call["name"], "parameters": call["arguments"]}),
        "pythonic": lambda call: f"{call['name']}({', '.join(f'{key}={value!r}' for key, value in call['arguments'].items())})",
    }[dialect]
    join = {"hermes": "\n".join, "llama3_json": "; ".join, "pythonic": lambda calls: f"[{', '.join(calls)}]"}[dialect]
    call = lambda length: {"name": "write_file", "arguments": {"path": "notes/a.md", "line": 7, "text": "All quiet. " * (length // 11)}}
    for kind, calls in (("16 KB of prose", []), ("a call of 4 KB", [call(4096)]), ("8 calls", [call(100)] * 8)):
        yield kind, join([write(call) for call in calls]) if calls else prose, [(call["name"], call["arguments"]) for call in calls]


def opponents(dialect):
    """Each opponent's name, and how it is made for a text."""
    yield "toolrack", lambda: Ours([TOOL])
    names = {"hermes": ("hermes_tool_parser.Hermes2ProToolParser", "hermes_detector.HermesDetector"),
             "llama3_json": ("llama_tool_parser.Llama3JsonToolParser", "llama32_detector.Llama32Detector"),
             "pythonic": ("pythonic_tool_parser.PythonicToolParser", "pythonic_detector.PythonicDetector")}[dialect]

    def load(package, name):
        module, name = name.split(".")
        return getattr(importlib.import_module(f"{package}.{module}"), name)

    parser, detector = load("vllm.tool_parsers", names[0]), load("sglang.srt.function_call", names[1])
    tool = Plain(type="function", function=Plain(name="write_file", parameters=SCHEMA))
    yield f"vLLM {WHEELS['vllm'][0]}", lambda: VLlm(parser, Plain(tools=[tool], tool_choice="auto"))
    yield f"SGLang {WHEELS['sglang'][0]}", lambda: SGLang(detector, [tool])


def once(make, pieces):
    """Nanoseconds of a text, and what was found; or the failure."""
    signal.setitimer(signal.ITIMER_REAL, LIMIT)
    began = time.perf_counter_ns()
    try:
        parser = make()
        for piece in pieces:
            parser.push(piece)
        found = parser.end()
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return time.perf_counter_ns() - began, found


def give_up(*_):
    raise TimeoutError(f"no end within {LIMIT} s")


def main():
    signal.signal(signal.SIGALRM, give_up)
    logging.disable(logging.CRITICAL)
    fetch()
    sys.meta_path.append(Absent())
    print(f"{'dialect':<12} {'text':<16} {'parser':<15} {'ns a piece':>10} {'ratio':>7}  calls")
    for dialect in ("hermes", "llama3_json", "pythonic"):
        players = dict(opponents(dialect))
        for kind, text, expected in texts(dialect):
            pieces = [text[at:at + PIECE] for at in range(0, len(text), PIECE)]
            best = dict.fromkeys(players, (10**18, None))
            for _ in range(ROUNDS):
                for name, make in players.items():
                    # One that needs more than a second is not timed again.
                    if best[name][1] is None or best[name][0] < 10**9:
                        best[name] = min(best[name], once(make, pieces), key=lambda measured: measured[0])
            ours = best["toolrack"][0]
            for name, (took, found) in best.items():
                calls = "right" if found == expected else f"wrong: {str(found)[:60]}"
                print(f"{dialect:<12} {kind:<16} {name:<15} {took / len(pieces):>10.0f} {took / ours:>7.1f}  {calls}", flush=True)


if __name__ == "__main__":
    main()
