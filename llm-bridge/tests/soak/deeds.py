"""What the users of the soak do: honest ones, who must get what they ask for, and hostile ones, who must not."""

import http.client
import json
import socket
import time
from urllib.parse import quote

from checks import expect

# How long anything may take on a machine that has other things to do.
PATIENCE = 60
# More than the server reads of a request.
TOO_LARGE = 33 << 20


class Client:
    """One user of the server."""

    def __init__(self, place, key, dice):
        self.place, self.key, self.dice = place, key, dice

    def send(self, method, path, body=None, key=None, **headers):
        """The answer, with its whole body as text."""
        connection = http.client.HTTPConnection(self.place.hostname, self.place.port, timeout=PATIENCE)
        try:
            wanted = {"Content-Type": "application/json", "Authorization": f"Bearer {key or self.key}"}
            wanted.update((name.replace("_", "-"), value) for name, value in headers.items())
            data = body if isinstance(body, (bytes, str, type(None))) else json.dumps(body)
            connection.request(method, path, data, wanted)
            answer = connection.getresponse()
            answer.text = answer.read().decode()
            return answer
        finally:
            connection.close()

    def get(self, path, *statuses, method="GET", body=None, **headers):
        """The JSON of an answer that has one of these statuses, or 200."""
        answer = self.send(method, path, body, **headers)
        expect(answer.status in (statuses or (200,)), f"{method} {path}: {answer.status} {answer.text[:400]}")
        return json.loads(answer.text) if answer.text else None

    def post(self, path, body, *statuses, **headers):
        return self.get(path, *statuses, method="POST", body=body, **headers)

    def delete(self, path, *statuses):
        return self.get(path, *(statuses or (200, 204)), method="DELETE")

    def sum(self):
        first, second = self.dice.randrange(10, 1000), self.dice.randrange(10, 1000)
        return f"What is {first} * {second}?", str(first * second)

    def socket(self):
        return socket.create_connection((self.place.hostname, self.place.port), timeout=PATIENCE)


def said(answer, wanted):
    expect(wanted in answer.replace(",", ""), f"{wanted} is not in {answer[-600:]}")


def chats(client):
    question, answer = client.sum()
    found = client.post("/v1/chat/completions", {"model": "demo", "messages": [{"role": "user", "content": question}]})
    said(found["choices"][0]["message"]["content"], answer)


def streams(client):
    question, answer = client.sum()
    body = {"model": "demo", "stream": True, "messages": [{"role": "user", "content": question}]}
    got = client.send("POST", "/v1/chat/completions", body)
    chunks = [json.loads(line[6:]) for line in got.text.splitlines() if line.startswith("data: {")]
    said("".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"]), answer)
    expect(got.status == 200 and got.text.rstrip().endswith("data: [DONE]"), f"{got.status} {got.text[-500:]}")


def in_events(client, path, body, **headers):
    """The JSON of all events, or lines, of a stream."""
    got = client.send("POST", path, body, **headers)
    expect(got.status == 200, f"{got.status} {got.text[:400]}")
    lines = (line.removeprefix("data: ") for line in got.text.splitlines())
    return [json.loads(line) for line in lines if line.startswith("{")]


def speaks_anthropic(client):
    question, answer = client.sum()
    body = {"model": "demo", "max_tokens": 1000, "messages": [{"role": "user", "content": question}]}
    whole = client.post("/v1/messages", body, x_api_key=client.key)
    said("".join(block.get("text", "") for block in whole["content"]), answer)
    events = in_events(client, "/v1/messages", {**body, "stream": True})
    said("".join(event["delta"].get("text", "") for event in events if event["type"] == "content_block_delta"), answer)
    expect(events[-1]["type"] == "message_stop", f"{events[-3:]}")


def speaks_gemini(client):
    question, answer = client.sum()
    body = {"contents": [{"role": "user", "parts": [{"text": question}]}]}
    text = lambda reply: "".join(part.get("text", "") for part in reply["candidates"][0]["content"].get("parts", []))
    said(text(client.post("/v1beta/models/demo:generateContent", body, x_goog_api_key=client.key)), answer)
    said("".join(map(text, in_events(client, "/v1beta/models/demo:streamGenerateContent?alt=sse", body))), answer)


def speaks_ollama(client):
    question, answer = client.sum()
    body = {"model": "demo", "messages": [{"role": "user", "content": question}]}
    said(client.post("/api/chat", {**body, "stream": False})["message"]["content"], answer)
    lines = in_events(client, "/api/chat", body)
    said("".join(line["message"]["content"] for line in lines), answer)
    expect(lines[-1]["done"] is True, f"{lines[-1]}")


def executes(client):
    first, second = client.dice.randrange(1000), client.dice.randrange(1000)
    found = client.post("/execute", {"tool_name": "calculate", "arguments": {"expression": f"{first} + {second}"}})
    said(json.dumps(found["result"]), str(first + second))


def lists(client):
    for path in ("/v1/models", "/api/tools", "/api/chats", "/api/approvals", "/api/questions"):
        expect(client.get(path), path)


def keeps_a_chat(client):
    """Begins a chat, asks twice, reads it on two ways, and deletes it."""
    chat = client.post("/api/chats", {"title": "Sums"}, 201)["id"]
    for _ in range(2):
        question, answer = client.sum()
        client.post(f"/api/chats/{chat}/turn", {"content": question}, 202)
        events = client.send("GET", f"/api/chats/{chat}/turn")
        expect(events.status in (200, 204), f"{events.status} {events.text[:300]}")
        last = client.get(f"/api/chats/{chat}")["messages"][-1]
        expect(last["status"] == "done", f"{last}")
        said(json.dumps(last["parts"]), answer)
    expect(chat in json.dumps(client.get("/api/chats?search=what")), "it is not found")
    client.delete(f"/api/chats/{chat}")
    client.get(f"/api/chats/{chat}", 404)


def continues_a_response(client):
    question, answer = client.sum()
    first = client.post("/v1/responses", {"model": "demo", "input": question})
    said(json.dumps(first["output"]), answer)
    question, answer = client.sum()
    second = client.post("/v1/responses", {"model": "demo", "input": question, "previous_response_id": first["id"]})
    said(json.dumps(second["output"]), answer)
    for one in (second, first):
        client.delete(f"/v1/responses/{one['id']}")


def adds_a_document(client):
    name = f"{client.dice.randrange(10**9)}.md"
    word = f"word{client.dice.randrange(10**9)}"
    client.post(f"/api/documents?name={name}", f"# Notes\n\nThe password of the tea room is {word}.\n", Content_Type="application/octet-stream")
    found = client.post("/execute", {"tool_name": "retrieve_documents", "arguments": {"query": word}})
    expect(word in json.dumps(found["result"]), f"{found}")
    listed = client.get("/api/documents")["documents"]
    path = next(one["path"] for one in listed if one["path"].endswith(name))
    client.delete(f"/api/documents?path={quote(path)}")


INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "soak", "version": "1"}}}


def speaks_mcp(client):
    """A session with one call, as an MCP client has it."""
    accept = {"Accept": "application/json, text/event-stream"}
    begun = client.send("POST", "/mcp", INITIALIZE, **accept)
    expect(begun.status == 200, f"{begun.status} {begun.text[:300]}")
    session = {**accept, "Mcp_Session_Id": begun.getheader("mcp-session-id")}
    client.send("POST", "/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"}, **session)
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "calculate", "arguments": {"expression": "6 * 7"}}}
    got = client.send("POST", "/mcp", call, **session)
    expect(got.status == 200 and "42" in got.text, f"{got.status} {got.text[:300]}")
    ended = client.send("DELETE", "/mcp", **session)
    expect(ended.status in (200, 202, 204), f"{ended.status} {ended.text[:300]}")


def is_refused(answer, *statuses):
    expect(answer.status in statuses, f"{answer.status} {answer.text[:300]}")


def nonsense(client):
    body = client.dice.choice(["", "{", "[" * 50_000, '{"messages": 7}', '{"messages": [{"role": "user"', "\0" * 100, '"\\ud800"'])
    path = client.dice.choice(["/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1beta/models/demo:generateContent", "/api/chat", "/api/chats", "/execute", "/mcp"])
    is_refused(client.send("POST", path, body), 400, 406, 413, 415, 422)


def unknown_tools(client):
    body = {"tool_name": f"x{client.dice.randrange(10**9)}.{client.dice.randrange(10**9)}", "arguments": {}}
    is_refused(client.send("POST", "/execute", body), 200, 400, 403, 404, 422)


def over_the_limit(client):
    is_refused(client.send("POST", "/execute", {"tool_name": "count.once", "arguments": {}}), 200, 429)


def wrong_keys(client):
    word = client.dice.randbytes(24).hex()
    key = client.dice.choice([f"trk_{word}", word, f"{word}.{word}.{word}", "x" * 20_000])
    is_refused(client.send("GET", "/api/tools", key=key), 401)


def forged_heads(client):
    """Cookies, traces and marks that nobody has given."""
    word = client.dice.randbytes(16).hex()
    answer = client.send("POST", "/execute", {"tool_name": "calculate", "arguments": {"expression": "1"}},
                         Cookie=f"toolrack_session={word}; __Host-toolrack_session={word * 100}",
                         traceparent=client.dice.choice([f"00-{word}-{word[:16]}-01", "00-" + "f" * 5000, "ff-0-0-0"]),
                         tracestate="a=b," * client.dice.randrange(500), x_toolrack_reads=word, x_toolrack_hops=word[:3])
    is_refused(answer, 200, 400, 403, 404)


def anothers_things(client):
    """Ids that belong to somebody else, or to nobody."""
    word = client.dice.randbytes(8).hex()
    item = {"model": "demo", "input": [{"type": "item_reference", "id": f"msg_{word * 3}"}]}
    for method, path, body in (("POST", "/v1/responses", item), ("GET", f"/api/chats/chat_{word}", None), ("POST", f"/api/chats/chat_{word}/turn", {"content": "Go."}),
                               ("POST", f"/api/approvals/{word}", {"approve": True}), ("POST", f"/api/questions/{word}", {"decline": True}),
                               ("GET", f"/v1/responses/resp_{word}", None), ("GET", f"/api/files/{word}/x", None),
                               ("GET", f"/api/traces/{word}", None), ("DELETE", "/api/documents?path=../../etc/passwd", None),
                               ("POST", "/refresh-tools", {}), ("POST", "/api/tools", {})):
        is_refused(client.send(method, path, body), 400, 403, 404)


def many_values(client):
    body = '{"model": "demo", "messages": [' + "{}," * 700_000 + "{}]}"
    is_refused(client.send("POST", "/v1/chat/completions", body), 400, 503)


def hoards_sessions(client):
    """MCP sessions that nobody ends."""
    for _ in range(3):
        is_refused(client.send("POST", "/mcp", INITIALIZE, Accept="application/json, text/event-stream"), 200, 429)


def leaves_a_chat(client):
    """Starts a turn and deletes the chat under it."""
    chat = client.post("/api/chats", {}, 201)["id"]
    client.post(f"/api/chats/{chat}/turn", {"content": client.sum()[0]}, 202)
    is_refused(client.send("DELETE", f"/api/chats/{chat}"), 200, 204, 409)
    is_refused(client.send("POST", f"/api/chats/{chat}/stop", {}), 200, 404)
    is_refused(client.send("DELETE", f"/api/chats/{chat}"), 200, 204, 404)


def asks_for_erasure(client):
    """Asks for what a person would have to approve, and lets nobody answer."""
    is_refused(client.send("POST", "/execute", {"tool_name": "erase", "arguments": {}}), 202, 403, 429)


def calls_hostile_tools(client):
    """Tools of a module that answers with nonsense, with too much, late or not at all."""
    name = client.dice.choice(["nonsense", "endless", "late", "cut"])
    answer = client.send("POST", "/execute", {"tool_name": f"hostile.{name}", "arguments": {}})
    is_refused(answer, 200, 429, 503)
    expect(answer.status != 200 or json.loads(answer.text)["success"] is (name == "late"), answer.text[:300])


def too_large(client):
    """Sends more than anybody may send; it is refused on the way, or the connection is cut."""
    try:
        is_refused(client.send("POST", "/execute", b" " * TOO_LARGE), 413)
    except ConnectionError:
        pass


def leaves(client):
    """Goes away in the middle of an answer."""
    body = json.dumps({"model": "demo", "stream": True, "messages": [{"role": "user", "content": client.sum()[0]}]}).encode()
    with client.socket() as connection:
        connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\n"
                           b"Content-Length: %d\r\n\r\n%s" % (client.key.encode(), len(body), body))
        connection.recv(client.dice.choice([1, 100, 1000]))


def ask_on(client, connection):
    """Asks for an answer in Ollama's lines on an open connection."""
    body = json.dumps({"model": "demo", "messages": [{"role": "user", "content": client.sum()[0]}]}).encode()
    connection.sendall(b"POST /api/chat HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\n"
                       b"Content-Length: %d\r\n\r\n%s" % (client.key.encode(), len(body), body))


def reads_nothing(client):
    """Asks again and again, and reads no answer."""
    with client.socket() as connection:
        for _ in range(5):
            ask_on(client, connection)
        time.sleep(client.dice.random())


def half_closes(client):
    """Says that nothing more will come, when all has come."""
    with client.socket() as connection:
        ask_on(client, connection)
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1000)


def one_token_for_all(client):
    """Calls of an MCP session with one progress token, at once and left at once."""
    accept = {"Accept": "application/json, text/event-stream"}
    begun = client.send("POST", "/mcp", INITIALIZE, **accept)
    is_refused(begun, 200, 429)
    if begun.status == 200:
        session = begun.getheader("mcp-session-id")
        for number in range(3):
            call = {"jsonrpc": "2.0", "id": 2 + number, "method": "tools/call", "params": {
                "name": "hostile_late", "arguments": {}, "_meta": {"progressToken": "t"}}}
            body = json.dumps(call).encode()
            with client.socket() as connection:
                connection.sendall(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\n"
                                   b"Accept: application/json, text/event-stream\r\nMcp-Session-Id: %s\r\nContent-Length: %d\r\n\r\n%s"
                                   % (client.key.encode(), session.encode(), len(body), body))
        is_refused(client.send("DELETE", "/mcp", Mcp_Session_Id=session, **accept), 200, 202, 204)


def dawdles(client):
    """Never comes to the end of what it says."""
    with client.socket() as connection:
        connection.sendall(b"POST /execute HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-"[:client.dice.randrange(5, 45)])
        time.sleep(client.dice.random())


HONEST = [chats, streams, speaks_anthropic, speaks_gemini, speaks_ollama, executes, lists, keeps_a_chat, continues_a_response, adds_a_document, speaks_mcp]
HOSTILE = [nonsense, unknown_tools, over_the_limit, wrong_keys, forged_heads, anothers_things, many_values, hoards_sessions, leaves_a_chat,
           asks_for_erasure, calls_hostile_tools, too_large, leaves, reads_nothing, half_closes, one_token_for_all,
           dawdles]
