#!/usr/bin/env python3
"""Sign-in with a real OpenID provider: people on the page, programs with access tokens, and what is not let in. See provider.mjs.

See ../clients/environment.py for the variables. The last line is `N passed, M failed`.
"""

import base64
import hashlib
import hmac
import html
import http.client
import json
import re
import secrets
import sys
import time
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "clients"))
sys.dont_write_bytecode = True

import environment
from checks import check, expect, finish

# Some seconds after an expiry a token still counts, because clocks differ.
LEEWAY = 30
SHORT = "urn:toolrack:short"

CONFIGURATION = """
public_url = "{toolrack}"

[sign_in]
issuer = "{provider}"
audience = ["{toolrack}/mcp", "urn:toolrack:short"]
client_id = "page"
client_secret = "of the page & more"
groups_required = true

[sign_in.groups.admins]
level = "admin"

[sign_in.groups.staff]
level = "user"
"""


class Browser:
    """Keeps cookies for each server, and says of its requests what browsers say."""

    def __init__(self):
        self.cookies = {}

    def send(self, method, url, form=None, headers=None, site="none", data=None):
        parts = urlsplit(url)
        jar = self.cookies.setdefault(parts.netloc, {})
        sent = {"cookie": "; ".join(f"{name}={value}" for name, value in jar.items()), "sec-fetch-site": site, **(headers or {})}
        body = None
        if form is not None:
            body, sent["content-type"] = urlencode(form), "application/x-www-form-urlencoded"
        if data is not None:
            body, sent["content-type"] = json.dumps(data), "application/json"
        connection = http.client.HTTPConnection(parts.netloc, timeout=30)
        connection.request(method, parts.path + (f"?{parts.query}" if parts.query else ""), body, {k: v for k, v in sent.items() if v})
        answer = connection.getresponse()
        answer.text = answer.read().decode()
        connection.close()
        for cookie in answer.headers.get_all("set-cookie") or []:
            name, value = cookie.split(";")[0].split("=", 1)
            if not value or "1970" in cookie or "Max-Age=0" in cookie:
                jar.pop(name, None)
            else:
                jar[name] = value
        return answer

    def page(self, method, url, **more):
        """What this server's page asks for."""
        return self.send(method, url, site="same-origin", **more)

    def follow(self, url, until):
        """Follows redirects, signs in and agrees where the provider asks, up to an address that begins with `until`."""
        answer, url = self.send("GET", url), url
        for _ in range(20):
            if answer.status in (301, 302, 303):
                url = urljoin(url, answer.headers["location"])
                if url.startswith(until):
                    return url
                answer = self.send("GET", url)
                continue
            form = re.search(r'<form[^>]*action="([^"]+)"', answer.text)
            prompt = re.search(r'name="prompt" value="(\w+)"', answer.text)
            expect(form and prompt, f"{url} answered {answer.status}: {answer.text[:500]}")
            url = urljoin(url, html.unescape(form[1]))
            answer = self.send("POST", url, {"prompt": prompt[1], "login": self.who, "password": "any"})
        raise AssertionError("too many redirects")

    def sign_in(self, toolrack, who, to="/"):
        """Signs in at the provider; the address it sends back to."""
        self.who = who
        return self.follow(f"{toolrack}/sign-in?{urlencode({'to': to})}", f"{toolrack}/sign-in/callback")


def url64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def token(provider, who, resource):
    """An access token, as a program gets one."""
    verifier, browser = secrets.token_urlsafe(48), Browser()
    browser.who = who
    query = urlencode({"client_id": "program", "response_type": "code", "redirect_uri": "http://127.0.0.1/callback", "scope": "openid tools",
                       "resource": resource, "code_challenge": url64(hashlib.sha256(verifier.encode()).digest()), "code_challenge_method": "S256"})
    back = browser.follow(f"{provider}/auth?{query}", "http://127.0.0.1/callback")
    code = parse_qs(urlsplit(back).query)["code"][0]
    answer = browser.send("POST", f"{provider}/token", {
        "grant_type": "authorization_code", "code": code, "client_id": "program", "redirect_uri": "http://127.0.0.1/callback",
        "code_verifier": verifier, "resource": resource})
    expect(answer.status == 200, answer.text)
    return json.loads(answer.text)["access_token"]


def bearer(toolrack, given, path="/api/tools"):
    return Browser().send("GET", f"{toolrack}{path}", headers={"authorization": f"Bearer {given}"}, site="")


def signed_in(toolrack, browser):
    answer = browser.page("GET", f"{toolrack}/api/session")
    return json.loads(answer.text) if answer.status == 200 else None


def on_the_page(toolrack, provider):
    ada = Browser()
    health = json.loads(ada.page("GET", f"{toolrack}/healthz").text)
    expect(health["sign_in"] is True, health)
    expect(signed_in(toolrack, ada) is None, "nobody has signed in")
    back = ada.sign_in(toolrack, "ada", "/?from=there")
    host = urlsplit(toolrack).netloc
    begun = dict(ada.cookies[host])
    answer = ada.send("GET", back, site="cross-site")
    expect(answer.status == 303 and answer.headers["location"] == f"{toolrack}/?from=there", answer.headers.items())
    cookie = next(c for c in answer.headers.get_all("set-cookie") if c.startswith("toolrack-session="))
    expect("HttpOnly" in cookie and "SameSite=Lax" in cookie, cookie)
    session = signed_in(toolrack, ada)
    expect((session["user"], session["level"], len(session["sessions"])) == ("ada", "admin", 1), session)
    # Used once: neither again, nor with the code again.
    expect(ada.send("GET", back, site="cross-site").status == 400, "the callback was taken twice")
    replay = Browser()
    replay.cookies[host] = begun
    answer = replay.send("GET", back, site="cross-site")
    expect(answer.status == 503 and signed_in(toolrack, replay) is None, f"the code was taken twice: {answer.status}")
    return ada


def refusals(toolrack, ada):
    host, secret = urlsplit(toolrack).netloc, ada.cookies[urlsplit(toolrack).netloc]["toolrack-session"]
    # Somebody else's browser ends no sign-in that was begun in another.
    mallory, victim = Browser(), Browser()
    stolen = mallory.sign_in(toolrack, "bob")
    expect(victim.send("GET", stolen, site="cross-site").status == 400, "a stolen callback was taken")
    victim.sign_in(toolrack, "bob")
    expect(victim.send("GET", stolen, site="cross-site").status == 400, "a state of another sign-in was taken")
    expect(signed_in(toolrack, victim) is None, "the victim is signed in")
    # Who is in no group does not come in, and becomes no user.
    eve = Browser()
    answer = eve.send("GET", eve.sign_in(toolrack, "eve"), site="cross-site")
    expect(answer.status == 403 and "no group" in html.unescape(answer.text), answer.text)
    expect('data-code="sign_in_not_allowed"' in answer.text, answer.text)
    # Another page has the browser send its cookie in vain.
    for site, status in (("same-origin", 200), ("cross-site", 401), ("same-site", 401)):
        answer = ada.send("POST", f"{toolrack}/api/chats", headers={"content-type": "application/json"}, site=site)
        expect((answer.status == 401) == (status == 401), f"{site}: {answer.status}")
    # Nobody is sent elsewhere.
    bob = Browser()
    answer = bob.send("GET", bob.sign_in(toolrack, "bob", "//evil.example/"), site="cross-site")
    expect(answer.headers["location"] == f"{toolrack}/", answer.headers["location"])
    expect(signed_in(toolrack, bob)["level"] == "user", "bob's group makes a user")
    # The secret is no key.
    expect(bearer(toolrack, secret).status == 401, "a session was taken for a key")


def sign_out(toolrack, provider, ada):
    host = urlsplit(toolrack).netloc
    secret = ada.cookies[host]["toolrack-session"]
    answer = ada.page("POST", f"{toolrack}/sign-out")
    location = json.loads(answer.text)["location"]
    expect(location.startswith(f"{provider}/session/end?client_id=page&post_logout_redirect_uri="), location)
    expect("toolrack-session" not in ada.cookies[host], ada.cookies)
    asked = ada.send("GET", location)
    expect(asked.status == 200, f"the provider does not end its session: {asked.text[:300]}")
    thief = Browser()
    thief.cookies[host] = {"toolrack-session": secret}
    expect(signed_in(toolrack, thief) is None, "the session goes on")


def forged(given, header, sign):
    claims = given.split(".")[1]
    message = f"{url64(json.dumps(header).encode())}.{claims}"
    return f"{message}.{url64(sign(message.encode()))}"


def by_programs(toolrack, provider, short):
    where = Browser().send("GET", f"{toolrack}/mcp", site="").headers["www-authenticate"]
    metadata = json.loads(Browser().send("GET", re.search(r'resource_metadata="([^"]+)"', where)[1]).text)
    expect(metadata["authorization_servers"] == [provider], metadata)
    given = token(provider, "ada", metadata["resource"])
    expect(bearer(toolrack, given).status == 200, "a token is not taken")
    initialize = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}
    connection = http.client.HTTPConnection(urlsplit(toolrack).netloc, timeout=30)
    connection.request("POST", "/mcp", json.dumps(initialize), {
        "authorization": f"Bearer {given}", "content-type": "application/json", "accept": "application/json, text/event-stream"})
    expect(connection.getresponse().status == 200, "MCP does not take the token")
    other = bearer(toolrack, token(provider, "ada", "https://other.example/mcp"))
    expect(other.status == 401 and 'error="invalid_token"' in other.headers["www-authenticate"], other.text)
    public = Browser().send("GET", f"{provider}/jwks").text.encode()
    header = json.loads(base64.urlsafe_b64decode(given.split(".")[0] + "=="))
    for what, fake in (
        ("none", forged(given, {"alg": "none"}, lambda _: b"")),
        ("HMAC with the public key", forged(given, {**header, "alg": "HS256"}, lambda message: hmac.digest(public, message, "sha256"))),
        ("another's signature", forged(given, header, lambda _: secrets.token_bytes(256))),
    ):
        expect(bearer(toolrack, fake).status == 401, what)
    eve = bearer(toolrack, token(provider, "eve", metadata["resource"]))
    expect(eve.status == 403 and "sign_in_not_allowed" in eve.text, eve.text)
    # One that has expired.
    while time.time() < short[1] + LEEWAY + 2:
        time.sleep(1)
    expired = bearer(toolrack, short[0])
    expect(expired.status == 401 and "expired" in expired.text, expired.text)
    return given


def rotated(toolrack, provider, old):
    Browser().send("POST", f"{provider}/rotate")
    new = token(provider, "ada", f"{toolrack}/mcp")
    for _ in range(15):
        if bearer(toolrack, new).status == 200:
            break
        time.sleep(1)
    expect(bearer(toolrack, new).status == 200, "the new key is not known")
    expect(bearer(toolrack, old).status == 401, "the key that the provider dropped is still taken")


def main():
    toolrack = f"http://127.0.0.1:{environment.free_port()}"
    folder = environment.node("node-sign-in", [HERE / name for name in ("package.json", "package-lock.json", "provider.mjs")])
    with environment.running(["node", folder / "provider.mjs", toolrack], r"provider at (\S+)") as provider:
        configuration = CONFIGURATION.format(toolrack=toolrack, provider=provider)
        with environment.toolrack("demo", configuration=configuration, listen=toolrack.removeprefix("http://")):
            short = token(provider, "ada", SHORT), time.time() + 1
            expect(bearer(toolrack, short[0]).status == 200, "a token that has not expired is not taken")
            ada, given = [], []
            check("b21 people sign in on the page, once for each sign-in")(lambda: ada.append(on_the_page(toolrack, provider)))
            check("b21 nobody else is signed in, and nobody is sent elsewhere")(lambda: refusals(toolrack, ada[0]))
            check("b21 who signs out is signed out")(lambda: sign_out(toolrack, provider, ada[0]))
            check("b21 n10 programs find the provider, and its tokens alone are taken")(
                lambda: given.append(by_programs(toolrack, provider, short)))
            check("b21 the provider's keys change")(lambda: rotated(toolrack, provider, given[0]))
    finish()


if __name__ == "__main__":
    main()
