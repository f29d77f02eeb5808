#!/usr/bin/env python3
"""Chats as a person has them: every tool, called by a scripted model, over HTTP and in a terminal, and the transcript of `docs/`.

    python3 llm-bridge/tests/chats/run.py [NAME ...]     only parts whose name contains one of these

See ../clients/environment.py for the variables. The last line is `N passed, M failed`.
"""

import json
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "clients")]
sys.dont_write_bytecode = True
os.environ.setdefault("TOOLRACK_CLIENT", "chats")

import every_tool
import transcript
from checks import check, expect, finish
from every_tool import LEVELS
from terminal import CTRL_D, Terminal, called

# How calls begin: nothing for a person's eyes.
MARKS = ("<tool_call", "[TOOL_CALLS]", "<|python_tag|>", "functools[")


def repeats(text, row):
    """Whether a text has what the model learns of the row's result, as text or in JSON."""
    return all(part in text or json.dumps(part)[1:-1] in text for part in row.get("reported", row["result"]))



def every():
    """Each tool is called at the level that it needs, and is not one below."""
    with every_tool.folder() as made, ExitStack() as servers:
        tools = every_tool.listed(made)
        table = []
        check("every tool of the bundle has a row")(lambda: table.extend(every_tool.rows(made, tools)))
        address = {level: servers.enter_context(made.serving(level)) for level in LEVELS}
        for row in table:
            tool = tools[row["name"]]

            @check(f"{row['name']} in a chat")
            def _(row=row, tool=tool):
                row = made.fill(row)
                if tool["level"] != "guest":
                    below = LEVELS[LEVELS.index(tool["level"]) - 1]
                    _text, events = every_tool.ask(address[below], row["asks"])
                    made_by = [event for event in events if event["type"] == "call_finished" and event["success"]]
                    expect(events and not made_by, f"it is called by a {below}: {events}")
                if row.get("approved"):
                    text, events = every_tool.ask(address[tool["level"]], row["asks"], approve=False)
                    expect("A person has refused this call" in text, text)
                text, events = every_tool.ask(address[tool["level"]], row["asks"], row.get("approved", False))
                every_tool.came_of_it(made, row, events)
                row = made.fill(row)
                expect(repeats(text, row), text)
                expect(not any(mark in text for mark in MARKS), text)


def terminal():
    """The same in a terminal, where a person is asked before a file is deleted."""
    with every_tool.folder() as made:
        table = {row["name"]: row for row in every_tool.rows(made, every_tool.listed(made))}
        with Terminal(["--config", made.settings("admin")], made.path) as chat:
            for name, answers in [("calculate", []), ("retrieve_documents", []), ("claim", []), ("file_manager.create_document", []),
                                  ("file_manager.delete_file", ["n"]), ("file_manager.delete_file", ["y"]),
                                  ("code_executor.run_shell", [])]:

                @check(f"{name} in a terminal{''.join(f', answered {one}' for one in answers)}")
                def _(row=table[name], answers=answers):
                    shown = chat.ask(row["asks"], list(answers))
                    expect(f"· {row['name']} " in shown, shown)
                    if answers == ["n"]:
                        expect("A person has refused this call" in shown, shown)
                    else:
                        expect(repeats(shown, row), shown)
                    asked = "This call cannot be undone. Run it? [y/N]" in shown
                    expect(asked is row.get("approved", False), shown)


def calls():
    """`toolrack call` asks for what is missing, and before something is deleted."""
    with tempfile.TemporaryDirectory() as folder:
        admin = ("--level", "admin")
        for name, arguments, lines, code, shows in [
            ("asks for the missing argument", ["calculate"], ["6*7"], 0, ['"result": "42"']),
            ("says what is missing without an answer", ["calculate"], [""], 1, ["`expression` is required", "calculate --help"]),
            ("says so at the end of the input", ["calculate"], [CTRL_D], 1, ["`expression` is required"]),
            ("asks only for what is missing", ["file_manager.create_document", *admin, "--path", "a.md"], ["hello"], 0, ["Created a.md"]),
            ("asks before a file is deleted, and takes a no", ["file_manager.delete_file", *admin], ["a.md", "n"], 1,
             ["This call cannot be undone", "A person has refused this call"]),
            ("asks before a file is deleted, and takes a yes", ["file_manager.delete_file", *admin], ["a.md", "y"], 0, ["Deleted a.md"]),
        ]:
            @check(f"a call in a terminal {name}")
            def _(arguments=arguments, lines=lines, code=code, shows=shows):
                shown, exit_code = called(arguments, folder, lines)
                expect(exit_code == code and all(part in shown for part in shows), f"{exit_code}: {shown}")


PARTS = {"every tool": every, "terminal": terminal, "calls": calls, "transcript": transcript.replay}


def main():
    for name, part in PARTS.items():
        if not sys.argv[1:] or any(word in name for word in sys.argv[1:]):
            try:
                part()
            except Exception as error:

                @check(name)
                def _(error=error):
                    raise error
    finish()


if __name__ == "__main__":
    main()
