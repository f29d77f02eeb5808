#!/usr/bin/env python3
"""Accounts of users on MCP servers: authorized in a browser, renewed, revoked, exchanged; hostile servers; and tokens that are seen nowhere.
People sign in with the provider of provider.mjs; the MCP servers and their authorization server are in elsewhere.py.

See ../clients/environment.py for the variables. The last line is `N passed, M failed`.
"""

import base64
import concurrent.futures
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "clients"))
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

import environment
from checks import check, expect, finish
from elsewhere import Elsewhere
from run import Browser, token

HOSTILE = ["other", "inside", "impostor", "unproven", "tokens-inside", "huge", "round", "deep"]
PATIENCE = 60

CONFIGURATION = """
public_url = "{toolrack}"

[store]
server = "{name}"

[guard]
audit_arguments = true

[sign_in]
issuer = "{provider}"
audience = ["{toolrack}/mcp"]
client_id = "page"
client_secret = "of the page & more"

[sign_in.groups.admins]
level = "admin"

[sign_in.groups.staff]
level = "user"
"""


def server_table(world, name, more=""):
    return f'\n[mcp_servers.{name}]\nurl = "{world.url}/{name}/mcp"\neffects = {{ whoami = "read" }}\nauth = "oauth"\n{more}'


class Rack:
    """A toolrack on a data folder, that can be killed and started again."""

    def __init__(self, world, provider, folder, name="main", address=None, public=None, remove=()):
        self.folder, self.world = Path(folder), world
        self.url = f"http://127.0.0.1:{address or environment.free_port()}"
        public = public or self.url
        text = CONFIGURATION.format(toolrack=public, provider=provider, name=name)
        for server in ["tracker", "desk", *HOSTILE]:
            text += "" if server in remove else server_table(world, server)
        text += server_table(world, "team", "shared = true\n")
        exchange = f'client_id = "rack"\nclient_secret_env = "RACK_SECRET"\nauthorization_server = "{world.url}/as"\n'
        text += server_table(world, "ledger", exchange).replace('"oauth"', '"exchange"')
        self.settings = self.folder / f"{name}.toml"
        self.settings.write_text(text)
        self.log = open(self.folder.parent / f"{name}.log", "a")
        self.process = None

    def arguments(self):
        return ["--data-dir", self.folder, "--config", self.settings]

    def start(self):
        command = [environment.TOOLRACK, "serve", "--upstream", "demo", "--listen", self.url.removeprefix("http://"), *self.arguments()]
        self.process = subprocess.Popen([str(part) for part in command], stdout=self.log, stderr=self.log,
                                        env={"PATH": "/usr/bin:/bin", "RACK_SECRET": "of-this&server", "TOOLRACK_LOG": "debug,hyper=info,h2=info,sqlx=info"})
        wait(lambda: answers(self.url), "the server does not start")

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def command(self, *words):
        done = subprocess.run([str(part) for part in [environment.TOOLRACK, *words, *self.arguments()]], capture_output=True, text=True,
                              env={"PATH": "/usr/bin:/bin", "RACK_SECRET": "of-this&server"}, timeout=120)
        self.log.write(done.stdout + done.stderr)
        self.log.flush()
        return done


def answers(url):
    try:
        return Browser().send("GET", f"{url}/healthz").status == 200
    except OSError:
        return False


def wait(condition, what):
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        found = condition()
        if found:
            return found
        time.sleep(0.2)
    raise AssertionError(what)


class Person:
    """Somebody with an access token of the provider, and a browser that keeps cookies."""

    def __init__(self, name, given):
        self.name, self.given, self.browser = name, given, Browser()

    def ask(self, rack, method, path, body=None):
        import http.client
        connection = http.client.HTTPConnection(urlsplit(rack.url).netloc, timeout=60)
        headers = {"authorization": f"Bearer {self.given}", "content-type": "application/json"}
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        answer.text = answer.read().decode()
        connection.close()
        SEEN.append(answer.text)
        return answer

    def call(self, rack, tool):
        answer = self.ask(rack, "POST", "/execute", {"tool_name": tool, "arguments": {}})
        return answer.status, json.loads(answer.text)

    def begin(self, rack, server, browser=None):
        """Begins, and goes to the authorization server: the address that it sends back to."""
        browser = browser or self.browser
        answer = browser.send("POST", f"{rack.url}/api/connections/{server}", headers={"authorization": f"Bearer {self.given}"}, site="same-origin")
        expect(answer.status == 200, f"{answer.status} {answer.text}")
        SEEN.append(answer.text)
        location = json.loads(answer.text)["location"]
        back = browser.send("GET", location)
        expect(back.status == 302, f"{back.status} {back.text}")
        return back.headers["location"]

    def connect(self, rack, server):
        ended = self.browser.send("GET", self.begin(rack, server), site="cross-site")
        SEEN.append(ended.text)
        return ended


# What people and models were shown.
SEEN = []


def asked_for(answer, server):
    status, body = answer
    return status == 403 and body.get("authorize_at", "").endswith(f"/connect/{server}")


def authorize(world, rack, ada, bob):
    expect("tracker.whoami" not in ada.ask(rack, "GET", "/api/tools").text, "the tools are there, and nobody has let the server in")
    reports = wait(lambda: [r for r in json.loads(ada.ask(rack, "GET", "/api/mcp-servers").text)["mcp_servers"]
                            if r["name"] == "tracker" and r["error"]], "no report")
    expect("/connect/tracker" in reports[0]["error"], reports)
    page = Browser().send("GET", f"{rack.url}/connect/tracker")
    expect(page.status == 200 and "connect.js" in page.text, page.text)
    expect('data-languages="de en"' in page.text, page.text)
    files = re.findall(r'"\.\./(page/[^"]+)"', page.text)
    for ending in ("/connect.js", "/connect.css", "/styles.css", "/languages/en.js"):
        expect(any(file.endswith(ending) for file in files), (ending, files))
    for file in files:
        expect(Browser().send("GET", f"{rack.url}/{file}").status == 200, file)
    slashed = Browser().send("GET", f"{rack.url}/connect/tracker/")
    expect(slashed.status == 307 and slashed.headers["location"] == "../tracker", f"{slashed.status} {slashed.headers}")
    world.who = "ada-there"
    ended = ada.connect(rack, "tracker")
    expect(ended.status == 200 and "tracker" in ended.text, ended.text)
    # The page's languages know it by that.
    expect('data-code="connected" data-about="tracker"' in ended.text, ended.text)
    for file in re.findall(r'"\.\./(page/[^"]+)"', ended.text):
        expect(Browser().send("GET", f"{rack.url}/{file}").status == 200, file)
    wait(lambda: "tracker.whoami" in ada.ask(rack, "GET", "/api/tools").text, "the tools do not come")
    status, body = ada.call(rack, "tracker.whoami")
    expect(status == 200 and body["result"] == "ada-there", body)
    # The tools are for all; the account is ada's.
    expect(asked_for(bob.call(rack, "tracker.whoami"), "tracker"), "bob used ada's account")
    world.who = "bob-there"
    expect(bob.connect(rack, "tracker").status == 200, "bob was not let in")
    expect(bob.call(rack, "tracker.whoami")[1]["result"] == "bob-there", "not bob")
    expect(ada.call(rack, "tracker.whoami")[1]["result"] == "ada-there", "not ada")
    listed = {c["server"]: c for c in json.loads(bob.ask(rack, "GET", "/api/connections").text)["connections"]}
    expect(listed["tracker"]["connected"] and not listed["desk"]["connected"] and listed["tracker"]["scope"] == "tools", listed)
    # The model is told what to ask the user for.
    world.who = "ada-there"
    expect(ada.connect(rack, "desk").status == 200, "ada was not let in")
    wait(lambda: "desk.whoami" in bob.ask(rack, "GET", "/api/tools").text, "the tools do not come")
    expect("/connect/desk" in bob.call(rack, "desk.whoami")[1]["error"], "no link")


def renewed(world, rack, ada):
    world.seconds = 1
    ada.connect(rack, "tracker")
    before = world.refreshed
    time.sleep(1.1)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: ada.call(rack, "tracker.whoami"), range(16)))
    expect(all(body.get("result") == "ada-there" for _, body in results), results)
    expect(world.refreshed > before and world.reused == 0, f"{world.refreshed} {world.reused}")
    world.seconds = 3600
    ada.connect(rack, "tracker")
    # One that the server does not take any more, though it has not ended.
    with world.lock:
        for at in [at for at, of in world.access.items() if of["user"] == "ada-there"]:
            del world.access[at]
    before = world.refreshed
    expect(ada.call(rack, "tracker.whoami")[1].get("result") == "ada-there", "not renewed")
    expect(world.refreshed == before + 1, f"renewed {world.refreshed - before} times")


def asked_for_more(world, rack, ada):
    expect(asked_for(ada.call(rack, "tracker.more"), "tracker"), "not asked for more")
    begun = ada.browser.send("POST", f"{rack.url}/api/connections/tracker", headers={"authorization": f"Bearer {ada.given}"}, site="same-origin")
    scope = parse_qs(urlsplit(json.loads(begun.text)["location"]).query)["scope"][0]
    expect("extra" in scope.split(), scope)
    expect(ada.connect(rack, "tracker").status == 200, "not let in again")


def refused(world, rack, ada, bob):
    back = ada.begin(rack, "desk")
    for what, address, browser in [
        ("another state", back.replace("state=", "state=x"), ada.browser),
        ("another browser", back, Browser()),
        ("another issuer", back.replace(urlencode({"i": f"{world.url}/as"})[2:], "https%3A%2F%2Fevil.example"), ada.browser),
    ]:
        saved = json.loads(json.dumps(ada.browser.cookies))
        ended = browser.send("GET", address, site="cross-site")
        expect(ended.status == 403 and "Not connected" in ended.text, f"{what}: {ended.status} {ended.text}")
        ada.browser.cookies = saved
    # Bob's authorization is of no use in ada's browser, nor hers in a browser in which he is signed in.
    theirs = bob.begin(rack, "desk")
    expect(ada.browser.send("GET", theirs, site="cross-site").status == 403, "bob's state was taken")
    back = ada.begin(rack, "desk")
    signed_in = Browser()
    callback = signed_in.sign_in(rack.url, "bob")
    expect(signed_in.send("GET", callback, site="cross-site").status == 303, "bob is not signed in")
    signed_in.cookies[urlsplit(rack.url).netloc] |= ada.browser.cookies[urlsplit(rack.url).netloc]
    expect(signed_in.send("GET", back, site="cross-site").status == 403, "ada's authorization was taken with bob signed in")
    for sent in ("wrong", "none"):
        world.issuer_sent = sent
        expect(ada.connect(rack, "desk").status == 403, f"an issuer was taken: {sent}")
    world.issuer_sent = "right"
    # A code is good once.
    back = ada.begin(rack, "desk")
    saved = json.loads(json.dumps(ada.browser.cookies))
    expect(ada.browser.send("GET", back, site="cross-site").status == 200, "not taken")
    ada.browser.cookies = saved
    expect(ada.browser.send("GET", back, site="cross-site").status == 403, "a code was taken twice")
    # Without saying who it is nobody begins; another page cannot have a signed-in browser begin.
    expect(Browser().send("POST", f"{rack.url}/api/connections/desk", site="same-origin").status == 401, "a stranger begins")
    expect(signed_in.send("POST", f"{rack.url}/api/connections/desk", site="cross-site").status == 401, "another page begins")
    expect(signed_in.send("POST", f"{rack.url}/api/connections/desk", site="same-origin").status == 200, "the own page does not begin")


def hostile(world, rack, ada):
    for name in HOSTILE:
        began = time.monotonic()
        answer = ada.ask(rack, "POST", f"/api/connections/{name}")
        body = json.loads(answer.text)
        if name == "tokens-inside":
            expect(answer.status == 502 or answer.status == 200, answer.text)
        else:
            expect(answer.status == 502 and body["error"]["type"] == "authorization_failed" or "authorization_failed" in answer.text, f"{name}: {answer.text}")
        expect(time.monotonic() - began < 30, f"{name} takes long")
        expect(answers(rack.url), f"the server is gone after {name}")
    ended = ada.browser.send("GET", ada.begin(rack, "tokens-inside"), site="cross-site")
    expect(ended.status in (403, 503), ended.text)
    expect(world.inside == 0, "an address inside was reached")


def leaks(world, rack, ada):
    for tool in ("leak", "leak_error"):
        status, body = ada.call(rack, f"tracker.{tool}")
        expect(not body["success"] and "withheld" in body["error"] or "[token]" in body["error"], body)


def shared(world, rack, ada, bob):
    expect(bob.ask(rack, "POST", "/api/connections/team").status == 403, "bob connects the account of all")
    world.who = "team-there"
    expect(ada.connect(rack, "team").status == 200, "ada does not")
    wait(lambda: "team.whoami" in bob.ask(rack, "GET", "/api/tools").text, "the tools do not come")
    expect(bob.call(rack, "team.whoami")[1].get("result") == "team-there", "bob does not use it")
    expect(bob.ask(rack, "DELETE", "/api/connections/team").status == 403, "bob ends it")
    world.who = "ada-there"


def subject(given):
    claims = given.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["sub"]


def exchanged(world, rack, ada, bob):
    wait(lambda: "ledger.whoami" in ada.ask(rack, "GET", "/api/tools").text, "the tools do not come")
    for person in (ada, bob):
        expect(person.call(rack, "ledger.whoami")[1].get("result") == f"{person.name}-exchanged", person.name)
        # What was exchanged for an earlier token serves as long as it is good.
        expect(any(subject(given) == person.name for given in world.exchanged), "another's token was exchanged")
    number = len(world.exchanged)
    ada.call(rack, "ledger.whoami")
    expect(len(world.exchanged) == number, "exchanged again, though the token holds")
    with world.lock:
        world.access = {at: of for at, of in world.access.items() if not of["user"].endswith("-exchanged")}
    expect(ada.call(rack, "ledger.whoami")[1].get("result") == "ada-exchanged", "not exchanged again")


def on_page(world, rack, provider):
    """Eve signs in on the page, and has no access token to send."""
    def done():
        return json.loads(Browser().send("GET", f"{provider}/done").text)

    def signed_in():
        browser = Browser()
        expect(browser.send("GET", browser.sign_in(rack.url, "eve"), site="cross-site").status == 303, "eve is not signed in")
        return browser

    def call(browser, headers=None):
        answer = browser.page("POST", f"{rack.url}/execute", data={"tool_name": "ledger.whoami", "arguments": {}}, headers=headers)
        SEEN.append(answer.text)
        return answer.status, json.loads(answer.text)

    def exchanged_anew():
        with world.lock:
            world.access = {at: of for at, of in world.access.items() if not of["user"].endswith("-exchanged")}

    def is_asked(answer):
        return answer[0] == 403 and "sign in on the page" in answer[1]["error"]

    first = signed_in()
    expect(call(first)[1].get("result") == "eve-exchanged", call(first))
    expect(subject(world.exchanged[-1]) == "eve", "another's token was exchanged")
    listed = {c["server"]: c for c in json.loads(first.page("GET", f"{rack.url}/api/connections").text)["connections"]}
    expect(listed["ledger"]["connected"] and not any(server.startswith("@") for server in listed), listed)
    number = len(world.exchanged)
    call(first)
    expect(len(world.exchanged) == number, "exchanged again, though the token holds")
    # It is hers also with a key, and after the server was killed.
    made = rack.command("key", "create", "eve")
    expect(made.returncode == 0, made.stderr)
    key = {"authorization": f"Bearer {made.stdout.strip()}"}
    rack.kill()
    rack.start()
    wait(lambda: "ledger.whoami" in first.page("GET", f"{rack.url}/api/tools").text, "the tools do not come back")
    for answer in (call(first), call(Browser(), key)):
        expect(answer[1].get("result") == "eve-exchanged", answer)
    # What ends soon is renewed first, and each refresh token is used once.
    Browser().send("POST", f"{provider}/lasts?20")
    second = signed_in()
    before = done()["renewed"]
    for number in (1, 2):
        exchanged_anew()
        expect(call(second)[1].get("result") == "eve-exchanged", "not exchanged again")
        expect(done()["renewed"] >= before + number, done())
    expect(len(set(world.exchanged[-2:])) == 2, "the same token was exchanged twice")
    Browser().send("POST", f"{provider}/lasts?300")
    # It ends with the session that it is of, also elsewhere; another session of hers goes on.
    revoked = done()["revoked"]
    expect(second.page("POST", f"{rack.url}/sign-out").status == 200, "not signed out")
    expect(done()["revoked"] > revoked, "it is not revoked")
    expect(call(second)[0] == 401, "the session goes on")
    for answer in (call(first), call(Browser(), key)):
        expect(answer[1].get("result") == "eve-exchanged", answer)
    revoked = done()["revoked"]
    session = json.loads(first.page("GET", f"{rack.url}/api/session").text)["session"]
    expect(first.page("DELETE", f"{rack.url}/api/session/{session}").status == 204, "the session is not ended")
    expect(done()["revoked"] > revoked, "it is not revoked")
    expect(is_asked(call(Browser(), key)), f"it goes on: {call(Browser(), key)}")
    # With the person too.
    third = signed_in()
    expect(call(third)[1].get("result") == "eve-exchanged", "not exchanged")
    revoked = done()["revoked"]
    removed = rack.command("user", "remove", "eve")
    expect(removed.returncode == 0 and done()["revoked"] > revoked, removed.stderr)


def killed(world, rack, ada):
    back = ada.begin(rack, "desk")
    rack.kill()
    rack.start()
    expect(ada.browser.send("GET", back, site="cross-site").status == 200, "what began before is lost")
    expect(ada.call(rack, "tracker.whoami")[1].get("result") == "ada-there", "the connection is lost")
    # Killed while it renews: another takes over.
    world.seconds = 1
    ada.connect(rack, "desk")
    time.sleep(1.1)
    world.lock.acquire()
    try:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            calling = pool.submit(lambda: ada.call(rack, "desk.whoami"))
            time.sleep(2)
            rack.kill()
            calling.exception(30)
    finally:
        world.lock.release()
    world.seconds = 3600
    rack.start()
    # The token may have been renewed without anybody who could keep it; then the user lets it in again.
    expect(ada.connect(rack, "desk").status == 200, "ada is not let in again")
    wait(lambda: ada.call(rack, "desk.whoami")[1].get("result") == "ada-there", "the call does not come through")


def elsewhere_too(world, rack, provider, ada):
    """Another server on the same store and key."""
    other = Rack(world, provider, rack.folder, "second", public=rack.url)
    other.start()
    try:
        back = ada.begin(rack, "desk").replace(rack.url, other.url)
        ada.browser.cookies[urlsplit(other.url).netloc] = ada.browser.cookies[urlsplit(rack.url).netloc]
        expect(ada.browser.send("GET", back, site="cross-site").status == 200, "another server does not end it")
        expect(ada.call(rack, "desk.whoami")[1].get("result") == "ada-there", "the first does not know it")
    finally:
        other.kill()


def ended(world, rack, provider, ada, bob):
    number = world.revoked.count("ada-there")
    expect(ada.ask(rack, "DELETE", "/api/connections/desk").status == 204, "not ended")
    expect(ada.ask(rack, "DELETE", "/api/connections/desk").status == 404, "ended twice")
    expect(world.revoked.count("ada-there") == number + 1, world.revoked)
    expect(asked_for(ada.call(rack, "desk.whoami"), "desk"), "it goes on")
    # Revoked there.
    with world.lock:
        for family in {of["family"] for of in world.refresh.values() if of["user"] == "bob-there"}:
            world.end_family(family)
    expect(asked_for(bob.call(rack, "tracker.whoami"), "tracker"), "bob goes on")
    world.who = "bob-there"
    expect(bob.connect(rack, "tracker").status == 200, "bob was not let in again")
    rows = rack.command("connections", "list")
    expect(rows.returncode == 0 and "bob" in rows.stdout and "(shared)" in rows.stdout, rows.stdout + rows.stderr)
    revoked = rack.command("connections", "revoke", "tracker", "ada")
    expect(revoked.returncode == 0, revoked.stderr)
    expect(asked_for(ada.call(rack, "tracker.whoami"), "tracker"), "ada goes on")
    # With the person all goes, here and there.
    rack.kill()
    number = world.revoked.count("bob-there")
    erased = rack.command("user", "erase", "bob")
    expect(erased.returncode == 0 and "1 connection" in erased.stderr + erased.stdout, erased.stdout + erased.stderr)
    expect(world.revoked.count("bob-there") == number + 1, "bob's account is open")
    expect("bob" not in rack.command("connections", "list").stdout, "bob is listed")
    # A server that is not configured any more.
    rack.start()
    world.who = "ada-there"
    expect(ada.connect(rack, "desk").status == 200, "not let in")
    rack.kill()
    number = world.revoked.count("ada-there")
    without = Rack(world, provider, rack.folder, "main", urlsplit(rack.url).port, remove=["desk"])
    without.start()
    try:
        wait(lambda: world.revoked.count("ada-there") == number + 1, "the account on a server that is gone is open")
    finally:
        without.kill()


def nothing_seen(world, folder):
    places = [path for path in Path(folder).rglob("*") if path.is_file()]
    expect(any(path.name == "toolrack.db" for path in places), places)
    texts = [(str(path), path.read_bytes()) for path in places] + [("what was answered", "\n".join(SEEN).encode())]
    expect(len(world.secrets) > 20, "too few secrets to look for")
    for place, text in texts:
        for secret in world.secrets:
            expect(secret.encode() not in text, f"{secret} is in {place}")
    key = next(path for path in places if path.name == "connections.key")
    expect(key.stat().st_mode & 0o777 == 0o600, oct(key.stat().st_mode))


def main():
    world = Elsewhere()
    sources = [HERE / name for name in ("package.json", "package-lock.json", "provider.mjs")]
    packages = environment.node("node-sign-in", sources)
    port = environment.free_port()
    with tempfile.TemporaryDirectory(prefix="toolrack-connections-") as folder:
        (Path(folder) / "data").mkdir()
        with environment.running(["node", packages / "provider.mjs", f"http://127.0.0.1:{port}"], r"provider at (\S+)") as provider:
            rack = Rack(world, provider, Path(folder) / "data", address=port)
            rack.start()
            ada, bob = (Person(name, token(provider, name, f"{rack.url}/mcp")) for name in ("ada", "bob"))
            again = lambda: [setattr(person, "given", token(provider, person.name, f"{rack.url}/mcp")) for person in (ada, bob)]
            try:
                check("b21 each user lets the server into an account of the user's own")(lambda: authorize(world, rack, ada, bob))
                check("b21 tokens are renewed, once each")(lambda: renewed(world, rack, ada))
                check("b21 a server that asks for more gets it when the user agrees")(lambda: asked_for_more(world, rack, ada))
                check("b21 nobody ends another's authorization")(lambda: refused(world, rack, ada, bob))
                check("b21 hostile metadata leads nowhere")(lambda: hostile(world, rack, ada))
                check("b21 a server that says the token is not listened to")(lambda: leaks(world, rack, ada))
                again()
                check("b21 an operator connects the account of all")(lambda: shared(world, rack, ada, bob))
                check("b21 a sign-in is exchanged")(lambda: exchanged(world, rack, ada, bob))
                check("b21 a sign-in on the page is exchanged")(lambda: on_page(world, rack, provider))
                check("b21 what has begun survives a kill")(lambda: killed(world, rack, ada))
                again()
                check("b21 another server on the same store ends it too")(lambda: elsewhere_too(world, rack, provider, ada))
                check("b21 what is ended is revoked, and erased with the person")(lambda: ended(world, rack, provider, ada, bob))
            finally:
                rack.kill()
            check("b21 no token is kept or shown anywhere")(lambda: nothing_seen(world, folder))
    finish()


if __name__ == "__main__":
    main()
