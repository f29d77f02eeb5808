"""`toolrack doctor` before a real llama.cpp: what it says is true of a model of noise, and of one that says the same each time."""

import json
import subprocess
import tempfile
from pathlib import Path

import environment
from checks import check, expect

# Each answers all questions of the doctor at once.
SAYS = {
    "hermes": "\n".join('<tool_call>{"name": "%s", "arguments": %s}</tool_call>' % call for call in (
        ("weather", '{"city": "Reykjavik"}'), ("add", '{"a": 4711, "b": 1889}'), ("weather", '{"city": "Antananarivo"}'))),
    "pythonic": '[weather(city="Reykjavik"), add(a=4711, b=1889), weather(city="Antananarivo")]',
    "qwen3_coder": "\n".join("<tool_call>\n<function=%s>\n%s</function>\n</tool_call>" % (name, "".join(
        "<parameter=%s>\n%s\n</parameter>\n" % argument for argument in arguments)) for name, arguments in (
        ("weather", [("city", "Reykjavik")]), ("add", [("a", "4711"), ("b", "1889")]), ("weather", [("city", "Antananarivo")]))),
}


def examined(model, *flags, folder=None):
    """The report of `toolrack doctor --json`."""
    command = [environment.TOOLRACK, "doctor", "--json", "--upstream", f"{model}/v1", *flags]
    with tempfile.TemporaryDirectory() as empty:
        done = subprocess.run(command, cwd=folder or empty, capture_output=True, text=True, timeout=600)
    expect(done.returncode == 0, f"{done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def settings(**these):
    """The settings that are recommended: these, and no others."""
    return {"tool_style": None, "dialect": None, "route": None, "template": None, **these}


def seen(report, **expected):
    found = {probe: finding["verdict"] for probe, finding in report["probes"].items() if probe in expected}
    wanted = {probe: verdict for probe, verdict in expected.items() if found.get(probe) not in verdict.split(" or ")}
    expect(not wanted, f"expected {wanted}: {json.dumps(report, indent=1)}")


def doctor(interpreter, template, opens, refuses):
    with environment.llama(interpreter, "--ctx", "32768") as model:

        @check("the doctor sees what llama.cpp does, and that noise makes no right call")
        def _():
            report = examined(model)
            # Noise may be short.
            seen(report, native="wrong or no", text="no", route="no", parallel="not_tried", required="yes", streams="yes or unknown", speed="yes or unknown",
                 thinking="no", pictures="refused", structured="yes", context="yes", cache="yes")
            probes = report["probes"]
            expect((probes["context"]["tokens"], probes["context"]["trained_tokens"]) == (32768, 131072), f"{probes['context']}")
            expect(probes["cache"]["cached_tokens"] > 3000, f"{probes['cache']}")
            expect(report["server"]["kind"] == "llama.cpp" and report["server"]["lists_model"], f"{report['server']}")
            expect(report["settings"] == settings() and "no right call" in report["advice"][0], f"{report}")

    for dialect, said in SAYS.items():
        with environment.llama(interpreter, "--ctx", "32768", "--say", said) as model:

            @check(f"the doctor finds {dialect} in the text")
            def _(model=model, dialect=dialect):
                report = examined(model)
                seen(report, native="text", text="yes", route="yes", parallel="yes", streams="yes", structured="no", cache="yes")
                expect([report["probes"][probe]["dialect"] for probe in ("native", "text")] == [dialect] * 2, f"{report}")
                # Whatever it writes is read.
                expect(report["settings"] == settings(), f"{report['settings']}")

    with environment.llama(interpreter, "--ctx", "32768", "--say", SAYS["hermes"]) as model:

        @check("the doctor leaves a model at the raw route that is set, where that is no worse")
        def _():
            with tempfile.TemporaryDirectory() as folder:
                Path(folder, "toolrack.toml").write_text('[models."*"]\nroute = "raw"\n')
                report = examined(model, folder=folder)
                seen(report, native="text", route="yes", parallel="yes")
                expect(report["probes"]["route"]["chat_right"] == 3 and report["settings"] == settings(route="raw"), f"{report}")

    with template("doctor-refuses", refuses, "--say", SAYS["pythonic"]) as model:

        @check("the doctor describes tools in the prompt where the template refuses them, and writes that down")
        def _():
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder, "toolrack.toml")
                file.write_text("# Ours.\n[limits]\nmax_rounds = 3 # few\n")
                report = examined(model, "--write", folder=folder)
                seen(report, native="refused", text="yes", route="not_tried", required="not_tried", named="not_tried")
                expect(report["settings"] == settings(tool_style="prompt", dialect="pythonic"), f"{report['settings']}")
                expect("--jinja" in report["advice"][0], f"{report['advice']}")
                expect(file.read_text() == "# Ours.\n[limits]\nmax_rounds = 3 # few\n\n" + report["toml"], file.read_text())
                again = examined(model, "--write", folder=folder)
                expect("already" in again["written"] and report["settings"] == again["settings"], f"{again}")

    with template("doctor-opens", opens, "--say", "hm, a sum\n</think>\n\nOne, two, three.") as model:

        @check("the doctor sees answers that begin inside thinking")
        def _():
            report = examined(model)
            seen(report, native="no", thinking="yes")
            expect(report["probes"]["thinking"]["place"] == "unopened", f"{report['probes']['thinking']}")
            expect(any("`thinking = true`" in advice for advice in report["advice"]), f"{report['advice']}")
