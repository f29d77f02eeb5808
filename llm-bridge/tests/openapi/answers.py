"""The answers that take a certain state to get, each held against the document: status, content type, headers and schema."""

import sys

import schemathesis
from schemathesis.specs.openapi.checks import (
    content_type_conformance, response_headers_conformance, response_schema_conformance, status_code_conformance)

from checks import URL, check, expect, finish

CHECKS = [status_code_conformance, content_type_conformance, response_headers_conformance, response_schema_conformance]
DOCUMENT = schemathesis.openapi.from_url(f"{URL}/openapi.json")
QUESTION = [{"role": "user", "content": "What is (17 + 4) * 23?"}]


def ask(method, path, wanted, body=None, **more):
    """The answer, which has to have the status `wanted` and to be as the document says."""
    kind = "application/octet-stream" if isinstance(body, bytes) else "application/json"
    given = {} if body is None else {"body": body, "media_type": kind}
    case = DOCUMENT[path][method].Case(**given, **more)
    response = case.call()
    expect(response.status_code == wanted, f"{response.status_code} and not {wanted}: {response.text[:2000]}")
    case.validate_response(response, checks=CHECKS)
    return response


def call(tool, wanted, arguments=None, **more):
    return ask("POST", "/execute", wanted, {"tool_name": tool, "arguments": arguments or {}, **more}).json()


@check("calls, of every status")
def _():
    expect(call("garden.hours", 200, {"day": "Sunday"})["result"] == {"open": 9, "closed": 17}, "another result")
    call("garden.hours", 422)
    call("garden.weeds", 404)
    call("garden.deed", 403)
    call("garden.once", 200)
    expect("retry_at" in call("garden.once", 429), "no retry_at")
    body = {"tool_name": "hours", "arguments": {"day": "Sunday"}}
    ask("POST", "/api/modules/{module}/execute", 200, body, path_parameters={"module": "garden"})
    once = ask("POST", "/execute", 429, {"tool_name": "garden.once"})
    expect(int(once.headers["retry-after"][0]) > 0, once.headers)


@check("an approval, from its question to its second answer")
def _():
    approval = call("garden.burn", 202)["approval"]
    waiting = ask("GET", "/api/approvals", 200).json()["approvals"]
    expect([one["id"] for one in waiting] == [approval], waiting)
    place = {"path_parameters": {"id": approval}}
    ask("POST", "/api/approvals/{id}", 400, {"approve": "yes"}, **place)
    answered = ask("POST", "/api/approvals/{id}", 200, {"approve": True}, **place).json()
    expect(answered["state"] == "approved", answered)
    ask("POST", "/api/approvals/{id}", 409, {"approve": False, "reason": "Too late."}, **place)
    expect(call("garden.burn", 200)["result"] == "burnt", "another result")
    ask("POST", "/api/approvals/{id}", 404, {"approve": True}, path_parameters={"id": "none"})


@check("the tools, listed, found, switched off and on")
def _():
    tools = ask("GET", "/api/tools", 200).json()["tools"]
    expect("garden.hours" in [tool["name"] for tool in tools], tools)
    found = ask("GET", "/api/tools", 200, query={"search": "garden open"}).json()["tools"]
    expect(found[0]["name"] == "garden.hours", found)
    ask("GET", "/api/tools", 400, query={"sort": "name"})
    for enabled in (False, True):
        ask("POST", "/api/tools/{name}", 200, {"enabled": enabled}, path_parameters={"name": "garden.hours"})
    ask("POST", "/api/tools/{name}", 404, {"enabled": True}, path_parameters={"name": "garden.weeds"})
    tools = ask("GET", "/manifest", 200).json()["tools"]
    expect("toolrack.garden.hours" in [tool["name"] for tool in tools], tools)


@check("chat, whole and streamed, with a call on the way")
def _():
    body = {"model": "demo", "messages": QUESTION}
    whole = ask("POST", "/v1/chat/completions", 200, body).json()
    expect("483" in whole["choices"][0]["message"]["content"] and whole["x_toolrack"], whole)
    streamed = ask("POST", "/v1/chat/completions", 200, {**body, "stream": True})
    # It reads so many events of a stream and no more.
    expect(streamed.text.startswith('data: {"id":'), streamed.text)
    expect(streamed.headers["content-type"] == ["text/event-stream"], streamed.headers)
    ask("POST", "/v1/chat/completions", 400, {**body, "toolrack": []})


@check("a response that is kept, from its request to its end")
def _():
    given = ask("POST", "/v1/responses", 200, {"model": "demo", "input": "Hello"}).json()
    place = {"path_parameters": {"id": given["id"]}}
    kept = ask("GET", "/v1/responses/{id}", 200, **place).json()
    expect(kept == given, kept)
    items = ask("GET", "/v1/responses/{id}/input_items", 200, query={"limit": "1", "order": "asc"}, **place).json()["data"]
    expect([item["content"][0]["text"] for item in items] == ["Hello"], items)
    ask("GET", "/v1/responses/{id}/input_items", 400, query={"limit": "0"}, **place)
    ask("POST", "/v1/responses/{id}/cancel", 400, **place)
    for wanted in (200, 404):
        ask("DELETE", "/v1/responses/{id}", wanted, **place)
    ask("GET", "/v1/responses/{id}", 404, **place)


@check("documents, added, listed and removed")
def _():
    tea, path = {"query": {"name": "notes/tea.md"}}, "uploads/ada/notes/tea.md"
    for outcome in ("new", "unchanged"):
        added = ask("POST", "/api/documents", 200, b"# Tea\n\nSteeped at 75 degrees.\n", **tea).json()
        expect(added == {"path": path, "outcome": outcome, "passages": 1}, added)
    listed = ask("GET", "/api/documents", 200, query={"below": "uploads/ada"}).json()["documents"]
    expect([(one["path"], one["removable"]) for one in listed] == [(path, True)], listed)
    for wanted, query, body in [
            (400, {}, b"x"), (400, {"name": "../tea.md"}, b"x"), (413, {"name": "tea.md"}, b"x" * (50 * 1024 * 1024 + 1)),
            (415, {"name": "tea.png"}, b"x"), (422, {"name": "tea.pdf"}, b"x")]:
        ask("POST", "/api/documents", wanted, body, query=query)
    ask("POST", "/api/documents", 415, {"name": "tea.md"}, **tea)
    for wanted in (200, 404):
        ask("DELETE", "/api/documents", wanted, query={"path": path})


@check("what another page and another name of this machine get")
def _():
    for path in ("/openapi.json", "/healthz", "/api/tools"):
        ask("GET", path, 403, headers={"Origin": "http://evil.example"})
        ask("GET", path, 421, headers={"Host": "evil.example"})


@check("a body that is too large")
def _():
    ask("POST", "/execute", 413, {"tool_name": "x" * (33 * 1024 * 1024)})


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    finish()
