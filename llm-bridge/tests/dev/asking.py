#!/usr/bin/env python3
"""Tools that ask their user: at a server that is killed while somebody is asked, and in a terminal; and results of each kind, in a terminal and
on the page. The tools are those of the example `asking` of `llm-bridge`, which has to be built beside the program.

    python3 llm-bridge/tests/dev/asking.py [NAME ...]     only parts whose name contains one of these

    TOOLRACK_TEST_POSTGRES_URL   a PostgreSQL server; `.ci/with-servers` starts one
    CHROMIUM                     the browser, default the first found on the path
    SHOTS                        folder for screenshots; none are taken without it

See ../clients/environment.py for the other variables. The last line is `N passed, M failed`.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "chats"), str(HERE.parent / "clients")]
sys.dont_write_bytecode = True
os.environ.setdefault("TOOLRACK_CLIENT", "asking")

import environment
import scripted
from bank import PROGRAM, Bank, Model, bank, until
from checks import check, expect, finish
from terminal import CTRL_C, CTRL_D, PROMPT, Terminal, called

POSTGRES = os.environ.get("TOOLRACK_TEST_POSTGRES_URL")
BEA = {"name": "Bea", "day": 3}


def killed_amid(bank):
    """A turn has asked twice, has the answer to the first question, and its server is killed; the id of the second."""
    bank.stream = bank.begins()
    bank.answer("From which account?", "Joint")
    asked = bank.question("To whom")
    bank.kill()
    bank.start()
    return asked


def once(bank, said):
    paid = f"{bank.amount} EUR from Joint to Bea on day 3, confirmed: true"
    expect(bank.paid() == [paid], f"paid: {bank.paid()}")
    expect(bank.model.asked == [f"Pay {bank.amount}."], f"the model was asked {bank.model.asked}")
    expect(paid in said, said)
    expect(bank.questions() == [], f"still asked: {bank.questions()}")


def answered_meanwhile(store):
    with bank(store) as made:
        asked = killed_amid(made)
        expect([one["id"] for one in made.questions()] == [asked], "the question is gone with its server")
        made.answer("To whom", BEA)
        once(made, made.again())


def asks_again(bank, asked):
    """The conversation comes again, and the same is asked; the stream."""
    stream = bank.begins()
    for line in stream:
        if b'"question":{"' in line:
            expect(asked in line.decode(), f"another question than {asked}: {line}")
            return stream
    raise AssertionError("nothing is asked")


def answered_then(store):
    """The conversation comes again, and then the answer."""
    with bank(store) as made:
        stream = asks_again(made, killed_amid(made))
        made.answer("To whom", BEA)
        once(made, spoken(stream))


def spoken(stream):
    """The text of the rest of a stream."""
    chunks = [json.loads(line[6:]) for line in stream if line.startswith(b"data: {")]
    return "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks if chunk.get("choices"))


def killed_again(store):
    """Also the server is killed that goes on."""
    with bank(store) as made:
        asked = killed_amid(made)
        asks_again(made, asked)
        made.kill()
        made.start()
        made.answer("To whom", BEA)
        once(made, made.again())


def declined(store):
    with bank(store) as made:
        asked = killed_amid(made)
        made.got(f"/api/questions/{asked}", {"decline": True, "reason": "too much"})
        said = made.again()
        expect("has declined to answer: too much" in said, said)
        expect(made.paid() == [] and made.questions() == [], f"{made.paid()}, {made.questions()}")


def expired(store):
    with bank(store, "[guard]\napproval_seconds = 4\n") as made:
        asked = killed_amid(made)
        until("the question expires", lambda: made.got(f"/api/questions/{asked}")["state"] == "expired")
        status, refused = made.ask(f"/api/questions/{asked}", {"answer": BEA})
        expect(status == 409, f"{status}: {refused}")
        said = made.again()
        expect("nobody has answered within 4 s" in said, said)
        expect(made.paid() == [] and made.questions() == [], f"{made.paid()}, {made.questions()}")
        expect(made.model.asked == [f"Pay {made.amount}."], f"{made.model.asked}")


def in_a_chat(store, end):
    """As the page does it: the question is still in the card and in the inbox, and the answer goes on with the turn."""
    with bank(store) as made:
        chat = f"/api/chats/{made.got('/api/chats', {})['id']}"
        answer = lambda: made.got(chat)["messages"][-1]
        card = lambda: next((part for part in answer()["parts"] if part["type"] == "call"), {})
        made.got(f"{chat}/turn", {"content": f"Pay {made.amount}."})
        made.answer("From which account?", "Joint")
        asked = made.question("To whom")
        # As long as the answer is kept at least.
        until("the card asks", lambda: (card().get("question") or {}).get("id") == asked)
        time.sleep(3)
        end(made)
        made.start()
        until("the turn is over", lambda: answer()["status"] == "cut_off")
        expect((card()["state"], card()["question"]["id"]) == ("running", asked), f"{card()}")
        made.answer("To whom", BEA)
        made.got(f"{chat}/turn", {"continue": answer()["id"]})
        done = until("the turn goes on", lambda: answer()["status"] == "done" and answer())
        calls = [part for part in done["parts"] if part["type"] == "call"]
        expect([(call["state"], call["question"]) for call in calls] == [("ok", None)], f"{calls}")
        once(made, "".join(part.get("text", "") for part in done["parts"]))
        # The next message goes on from there.
        made.got(f"{chat}/turn", {"content": "Thanks."})
        until("the next turn ends", lambda: answer()["status"] == "done" and len(made.got(chat)["messages"]) == 4)


def chromium():
    """The browser, and the folder with what drives it; nothing where there is none."""
    browser = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not browser:
        _, failed = environment.skipped("the page: there is no chromium on the path; CHROMIUM may name one")
        check("page")(lambda: expect(not failed, "there is no chromium"))
        return None
    sources = [HERE.parent / "browser" / name for name in ("package.json", "package-lock.json")]
    return browser, environment.node("node-browser", [*sources, HERE / "asking.mjs", HERE / "parts.mjs"])


def page():
    """The page, in a browser."""
    if not (found := chromium()):
        return
    browser, folder = found
    for way in ("card", "inbox", "reloaded"):

        @check(f"the page: the question is answered in the {way}")
        def _(way=way):
            with bank("") as made:
                variables = {**os.environ, "TOOLRACK_URL": made.base, "CHROMIUM": browser, "AMOUNT": str(made.amount), "WAY": way}
                looks = subprocess.Popen(["node", folder / "asking.mjs"], env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE, text=True)
                if looks.stdout.readline() == "kill\n":
                    made.kill()
                    made.start()
                _, fault = looks.communicate("killed\n", timeout=120)
                expect(looks.returncode == 0, fault)
                once(made, made.paid()[0])


def killed():
    """A server that is killed while somebody is asked."""
    stores = {"SQLite": ""}
    if POSTGRES:
        stores["PostgreSQL"] = f'url = "{POSTGRES}/postgres"'
    else:
        passed, failed = environment.skipped("PostgreSQL: TOOLRACK_TEST_POSTGRES_URL is not set")
        if failed:
            check("PostgreSQL")(lambda: expect(False, "TOOLRACK_TEST_POSTGRES_URL is not set"))
    for name, store in stores.items():
        check(f"{name}: the turn goes on with an answer that came meanwhile")(lambda: answered_meanwhile(store))
        check(f"{name}: the turn asks the same question, and goes on with the answer")(lambda: answered_then(store))
        check(f"{name}: the server that goes on is killed, too")(lambda: killed_again(store))
        check(f"{name}: the tool is told that nobody wants to answer")(lambda: declined(store))
        check(f"{name}: the model is told that nobody has answered in time")(lambda: expired(store))
        check(f"{name}: a chat, killed")(lambda: in_a_chat(store, Bank.kill))
        check(f"{name}: a chat, stopped")(lambda: in_a_chat(store, Bank.end))


# How the program asks, at its end: the last choice, a field of the form.
CHOICE, NAME, DAY, CONFIRMED = "  2. Joint\n", "  name — Whole name.\n", "  day — Day of the month.\n", "(default true)\n"
PAID = "40 EUR from Joint to Bea on day 3, confirmed: "
PAY = ["pay", "--level", "user", "--amount", "40"]
SAFE, CODE = ["open_safe", "--level", "user"], "? Which code?\n"


def calls():
    """`toolrack call` in a terminal."""
    for name, arguments, lines, code, shows, hides in [
        ("a number", ["balance"], ["2"], 0, ["? Which account?", "  1. Savings", "Joint: 40 EUR"], []),
        ("a text", ["balance"], ["savings"], 0, ["Savings: 40 EUR"], []),
        ("what is no choice is asked again", ["balance"], ["3", "Jont", "2"], 0, ["3", "did you mean", "Joint: 40 EUR"], []),
        ("an empty line declines", ["balance"], [""], 1, ["declined to answer"], ["40 EUR"]),
        ("the end of the input declines", ["balance"], [CTRL_D], 1, ["declined to answer: nobody is at the terminal"], ["40 EUR"]),
        ("Ctrl-C stops the call", ["balance"], [CTRL_C], 1, ["stopped while it waited for the user's answer to: Which account?"], ["40 EUR"]),
        ("a form", PAY, ["2", "Bea", "3", ""], 0, ["? To whom, and when?", f"{PAID}true"], []),
        ("a form with a word for each field", PAY, ["Joint", "Bea", "3", "no"], 0, [f"{PAID}false"], []),
        ("a form that does not fit is asked again", PAY, ["2", "Bea", "31", "", "Bea", "3", "true"], 0, ["28", f"{PAID}true"], []),
        ("Ctrl-C in a form", PAY, ["2", "Bea", CTRL_C], 1, ["stopped while it waited for the user's answer to: To whom, and when?"], ["40 EUR"]),
        ("the end in a form", PAY, ["2", "Bea", CTRL_D], 1, ["declined to answer"], ["40 EUR"]),
        ("a secret is not shown", SAFE, ["0451"], 0, ["It is open."], ["0451"]),
    ]:
        @check(f"a call in a terminal: {name}")
        def _(arguments=arguments, lines=lines, code=code, shows=shows, hides=hides):
            with tempfile.TemporaryDirectory() as folder:
                shown, exit_code = called(arguments, folder, lines, (CHOICE, NAME, DAY, CONFIRMED, CODE), PROGRAM)
                expect(exit_code == code and all(part in shown for part in shows), f"{exit_code}: {shown}")
                expect(not any(part in shown for part in hides), shown)


def piped(folder, arguments, lines):
    """What the program prints with these lines as its input, and its exit code."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("TOOLRACK_")}
    done = subprocess.run([PROGRAM.resolve(), *arguments], input=lines, cwd=folder, env=variables, capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr, done.returncode


def pipes():
    """The same through a pipe."""
    for name, arguments, lines, code, shows in [
        ("a choice", ["balance"], "Joint\n", 0, "Joint: 40 EUR"),
        ("a choice after one that is none", ["balance"], "Jont\n2\n", 0, "Joint: 40 EUR"),
        ("nothing", ["balance"], "", 1, "declined to answer: nobody is at the terminal"),
        ("a form", PAY, "2\nBea\n3\n\n", 0, f"{PAID}true"),
        ("a secret", SAFE, "0451\n", 0, "It is open."),
        ("half a form", PAY, "2\nBea\n", 1, "declined to answer: nobody is at the terminal"),
    ]:
        @check(f"a call with a pipe: {name}")
        def _(arguments=arguments, lines=lines, code=code, shows=shows):
            with tempfile.TemporaryDirectory() as folder:
                shown, exit_code = piped(folder, ["call", *arguments], lines)
                expect(exit_code == code and shows in shown, f"{exit_code}: {shown}")


def chats():
    """`toolrack chat`, in a terminal and with a pipe."""
    model = Model()
    with scripted.model(model.script) as address, tempfile.TemporaryDirectory() as folder:
        arguments = ["--upstream", address, "--level", "user"]

        def said(chat, *lines):
            shown = ""
            for line in lines:
                chat.type(line)
                shown += chat.read(PROMPT, CHOICE, NAME, DAY, CONFIRMED)
            return shown

        with Terminal(arguments, folder, program=PROGRAM) as chat:

            @check("a chat in a terminal: a choice and a form")
            def _():
                shown = said(chat, "Pay 40.", "2", "Bea", "3", "")
                expect(f"{PAID}true" in shown and "? To whom, and when?" in shown, shown)

            @check("a chat in a terminal: what does not fit is asked again")
            def _():
                shown = said(chat, "Pay 40.", "none", "2", "Bea", "31", "", "Bea", "3", "")
                expect(shown.count("1. Savings") == 2 and shown.count(NAME) == 2 and f"{PAID}true" in shown, shown)

            @check("a chat in a terminal: Ctrl-C stops the answer, and the chat goes on")
            def _():
                shown = said(chat, "Pay 41.", CTRL_C, "Pay 40.", "2", "Bea", "3", "")
                expect("stopped; press Ctrl-C again to end the chat" in shown and f"{PAID}true" in shown, shown)
                expect("41 EUR" not in shown, shown)

            @check("a chat in a terminal: the end of the input declines")
            def _():
                shown = said(chat, "Pay 42.", CTRL_D)
                expect("declined to answer: nobody is at the terminal" in shown, shown)

        @check("a chat with a pipe: the next lines are the answers")
        def _():
            shown, code = piped(folder, ["chat", *arguments], "Pay 40.\n2\nBea\n3\n\nThanks.\n")
            expect(code == 0 and f"{PAID}true" in shown and "The script has no call for that." in shown, f"{code}: {shown}")


TABLE, END = [" account   EUR", " Joint     40"], "That is **all**."
FILES = {"image.svg": b"<svg ", "sound.wav": b"RIFF", "report.csv": b"account,EUR\nJoint,40\n"}


def saved(folder):
    for name, begin in FILES.items():
        expect((folder / name).read_bytes().startswith(begin), f"{name}: {[file.name for file in folder.iterdir()]}")


def parts():
    """A result of each kind of part, which asks in the middle."""
    with tempfile.TemporaryDirectory() as folder:

        @check("a call in a terminal: a result of every kind")
        def _():
            shown, code = called(["report", "--level", "user", "--output", "call"], folder, ["2"], (CHOICE,), PROGRAM)
            expect(code == 0 and all(part in shown for part in ["Reading the accounts.", *TABLE, END]), f"{code}: {shown}")
            saved(Path(folder, "call"))

        @check("a call with a pipe: a result of every kind is whole in the reply")
        def _():
            variables = {name: value for name, value in os.environ.items() if not name.startswith("TOOLRACK_")}
            done = subprocess.run([PROGRAM.resolve(), "call", "report", "--level", "user"], input="2\n", cwd=folder, env=variables,
                                  capture_output=True, text=True, timeout=60)
            kinds = [part["type"] for part in json.loads(done.stdout)["content"]]
            expect(kinds == ["text", "table", "image", "audio", "resource", "markdown"], f"{kinds}: {done.stderr}")

        model = Model()
        with scripted.model(model.script) as address:
            with Terminal(["--upstream", address, "--level", "user", "--output", "chat"], folder, program=PROGRAM) as chat:

                @check("a chat in a terminal: a result of every kind, each piece as it comes")
                def _():
                    chat.type("Report.")
                    first = chat.read(PROMPT, CHOICE)
                    expect("Reading the accounts." in first and first.endswith(CHOICE), first)
                    chat.type("2")
                    rest = chat.read(PROMPT)
                    expect(all(part in rest for part in [*TABLE, END]), rest)
                    saved(Path(folder, "chat"))

    if not (found := chromium()):
        return
    browser, modules = found

    @check("the page: a result of every kind, each piece as it comes")
    def _():
        with bank("") as made:
            variables = {**os.environ, "TOOLRACK_URL": made.base, "CHROMIUM": browser}
            looked = subprocess.run(["node", modules / "parts.mjs"], env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                    timeout=120)
            expect(looked.returncode == 0, looked.stderr)


PARTS = {"killed": killed, "page": page, "calls": calls, "pipes": pipes, "chats": chats, "parts": parts}


def main():
    for name, part in PARTS.items():
        if not sys.argv[1:] or any(word in name for word in sys.argv[1:]):
            part()
    finish()


if __name__ == "__main__":
    main()
