#!/usr/bin/env python3
"""Tools that ask their user: at a server that is killed while somebody is asked, and in a terminal. The tools are those of the example
`asking` of `llm-bridge`, which has to be built beside the program.

    python3 llm-bridge/tests/dev/asking.py [NAME ...]     only parts whose name contains one of these

    TOOLRACK_TEST_POSTGRES_URL   a PostgreSQL server; `.ci/with-servers` starts one
    CHROMIUM                     the browser, default the first found on the path
    SHOTS                        folder for screenshots; none are taken without it

See ../clients/environment.py for the other variables. The last line is `N passed, M failed`.
"""

import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "chats"), str(HERE.parent / "clients")]
sys.dont_write_bytecode = True
os.environ.setdefault("TOOLRACK_CLIENT", "asking")

import environment
import scripted
from checks import check, expect, finish
from terminal import CTRL_C, CTRL_D, PROMPT, Terminal, called

PROGRAM = environment.TARGET / "debug/examples/asking"
POSTGRES = os.environ.get("TOOLRACK_TEST_POSTGRES_URL")
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
PATIENCE = 40
BEA = {"name": "Bea", "day": 3}
AMOUNTS = itertools.count(1)


def until(what, look):
    """What `look` gives once that is something."""
    end = time.monotonic() + PATIENCE
    while not (found := look()):
        if time.monotonic() > end:
            raise TimeoutError(f"not after {PATIENCE} s: {what}")
        time.sleep(0.05)
    return found


class Bank:
    """A folder with the settings of a server, which is started and killed in it, and a model that pays."""

    def __init__(self, folder, model, store, more=""):
        self.folder, self.amount = folder, next(AMOUNTS)
        self.log, self.listen = (folder / "log").open("w"), "127.0.0.1:0"
        (folder / "toolrack.toml").write_text(f'upstream = "{model}"\n[user]\nid = "ada"\nlevel = "user"\n[store]\n{store}\n{more}')
        self.start()

    def start(self):
        command = [PROGRAM, "serve", "--listen", self.listen, "--data-dir", "data", "--config", "toolrack.toml"]
        read = (self.folder / "log").stat().st_size
        variables = {name: value for name, value in os.environ.items() if not name.startswith("TOOLRACK_")}
        self.process = subprocess.Popen([str(part) for part in command], cwd=self.folder, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=self.log, env=variables)
        said = lambda: (self.folder / "log").read_text()[read:]
        self.base = until("the server listens", lambda: said().partition("Chat at ")[2].partition("/ ")[0] or None)
        self.listen = self.base.removeprefix("http://")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        self.process.terminate()
        self.process.wait(30)

    def ask(self, path, body=None):
        """The status and the reply."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"content-type": "application/json"})
        try:
            with DIRECT.open(request, timeout=PATIENCE) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def got(self, path, body=None):
        status, reply = self.ask(path, body)
        expect(status < 300, f"{path}: {status} {reply}")
        return reply

    def begins(self, wait=300):
        """Begins a turn in which something is to be paid; its stream."""
        body = {**self.conversation(), "stream": True, "toolrack": {"question_wait_seconds": wait}}
        request = urllib.request.Request(self.base + "/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"})
        return DIRECT.open(request, timeout=PATIENCE)

    def conversation(self):
        return {"messages": [{"role": "user", "content": f"Pay {self.amount}."}]}

    def questions(self):
        return self.got("/api/questions")["questions"]

    def question(self, begin):
        """The id of the open question that begins so."""
        found = lambda: [asked["id"] for asked in self.questions() if asked["message"].startswith(begin)]
        return until(begin, found)[0]

    def answer(self, begin, answer):
        asked = self.question(begin)
        self.got(f"/api/questions/{asked}", {"answer": answer})
        return asked

    def again(self):
        """What the model says when the conversation comes again."""
        return self.got("/v1/chat/completions", self.conversation())["choices"][0]["message"]["content"]

    def paid(self):
        """What was paid of this amount."""
        paper = self.folder / "payments"
        return [line for line in paper.read_text().splitlines() if line.startswith(f"{self.amount} EUR")] if paper.exists() else []


class Model:
    """What the model was asked, and what it says: it pays, and repeats what the tool says."""

    def __init__(self):
        self.asked = []

    def script(self, text):
        self.asked.append(text)
        words = str(text).rstrip(".").split()
        return ("pay", {"amount": int(words[1])}) if words[:1] == ["Pay"] else None


@contextmanager
def bank(store, more=""):
    model = Model()
    with scripted.model(model.script) as address, tempfile.TemporaryDirectory(prefix="asking-") as folder:
        made = Bank(Path(folder), address, store, more)
        made.model = model
        try:
            yield made
        finally:
            made.kill()


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
        time.sleep(0.5)
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


def page():
    """The page, in a browser."""
    browser = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not browser:
        _, failed = environment.skipped("the page: there is no chromium on the path; CHROMIUM may name one")
        check("page")(lambda: expect(not failed, "there is no chromium"))
        return
    sources = [HERE.parent / "browser" / name for name in ("package.json", "package-lock.json")]
    folder = environment.node("node-browser", [*sources, HERE / "asking.mjs"])
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


PARTS = {"killed": killed, "page": page, "calls": calls, "pipes": pipes, "chats": chats}


def main():
    for name, part in PARTS.items():
        if not sys.argv[1:] or any(word in name for word in sys.argv[1:]):
            part()
    finish()


if __name__ == "__main__":
    main()
