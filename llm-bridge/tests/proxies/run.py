#!/usr/bin/env python3
"""The server behind nginx and Caddy, with TLS, at the root and below a path, with the configurations of docs/install.md: only ports, names of files and
the address of the server are others.

    python3 llm-bridge/tests/proxies/run.py

See ../clients/environment.py for the variables. The last line is `N passed, M failed`.
"""

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "clients"))
sys.dont_write_bytecode = True
os.environ.setdefault("TOOLRACK_CLIENT", "proxies")

import environment
from checks import check, expect, finish

PAGE = (environment.REPOSITORY / "docs" / "install.md").read_text()
NAME, KEY = "tools.example", "behind-a-proxy"
QUESTION = {"model": "demo", "stream": True, "messages": [{"role": "user", "content": "What is 17% of 2,340?"}]}


def block(language, after):
    """The first code block of a language behind a line of the page."""
    return re.search(rf"```{language}\n(.*?)```", PAGE[PAGE.index(after):], re.S).group(1)


def certificate(folder):
    pem, key = folder / "name.pem", folder / "name.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={NAME}", "-addext",
                    f"subjectAltName=DNS:{NAME}", "-out", pem, "-keyout", key], check=True, capture_output=True)
    return pem, key


class Resolved(urllib.request.HTTPSHandler):
    """Finds the name on this machine, and believes its certificate."""

    def __init__(self, pem, port):
        context = ssl.create_default_context(cafile=pem)

        class Connection(urllib.request.http.client.HTTPSConnection):
            def connect(self):
                self.sock = context.wrap_socket(socket.create_connection(("127.0.0.1", port), 30), server_hostname=NAME)

        super().__init__(context=context)
        self.connection = Connection

    def https_open(self, request):
        return self.do_open(self.connection, request)


class Client:
    def __init__(self, pem, port, base):
        self.base, self.public = f"https://{NAME}:{port}{base}", f"https://{NAME}{base}"
        self.opener = urllib.request.build_opener(Resolved(pem, port))

    def open(self, path, body=None, key=KEY, **headers):
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json", **headers, **({"authorization": f"Bearer {key}"} if key else {})}
        try:
            return self.opener.open(urllib.request.Request(self.base + path, data, headers), timeout=60)
        except urllib.error.HTTPError as error:
            return error

    def text(self, *arguments, **named):
        with self.open(*arguments, **named) as answer:
            return answer.status, answer.read().decode()


def nginx(folder, port, server, base, pem, key):
    """nginx with the page's server block."""
    text = block("nginx", "**nginx**").replace("listen 443 ssl", f"listen 127.0.0.1:{port} ssl").replace("127.0.0.1:7331", server)
    text = text.replace("/etc/ssl/tools.example.pem", str(pem)).replace("/etc/ssl/tools.example.key", str(key))
    if base:
        # As the comments of the block say.
        text = re.sub(r"location / \{", f"location {base}/ {{", text).replace(f"proxy_pass http://{server};", f"proxy_pass http://{server}/;")
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    file = folder / "nginx.conf"
    file.write_text(f"daemon off; pid {folder}/pid; error_log stderr;\nevents {{}}\nhttp {{ access_log off; {temporary}\n{text}\n}}\n")
    return ["nginx", "-p", folder, "-c", file], {}


def caddy(folder, port, server, base, pem, key):
    """Caddy with the page's block; its own certificate would need a name that the world knows."""
    inner = block("text", "**Caddy**").replace("127.0.0.1:7331", server)
    body = inner[inner.index("{") + 1:inner.rindex("}")]
    if base:
        expect("handle_path /rack/* { reverse_proxy … }" in PAGE, "the page says something else of a path")
        body = f"handle_path {base}/* {{\n{body}\n}}"
    file = folder / "Caddyfile"
    file.write_text(f"{{\n\tadmin off\n\tauto_https off\n}}\n{NAME}:{port} {{\n\tbind 127.0.0.1\n\ttls {pem} {key}\n{body}\n}}\n")
    return ["caddy", "run", "--config", file, "--adapter", "caddyfile"], {"HOME": str(folder), "XDG_DATA_HOME": str(folder)}


@contextmanager
def proxy(make, *arguments):
    folder, port = arguments[0], arguments[1]
    command, variables = make(*arguments)
    with open(folder / "proxy.log", "w") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **variables})
    try:
        until = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError((folder / "proxy.log").read_text()) from None
                time.sleep(0.1)
        yield
    finally:
        # Caddy would wait for the stream that was left.
        process.kill()
        process.wait(15)


def checks(title, client):
    @check(f"{title}: health and lists")
    def _():
        status, text = client.text("/healthz", key=None)
        expect(status == 200 and json.loads(text)["status"] == "ok", text)
        status, text = client.text("/v1/models")
        expect(status == 200 and "demo" in text, text)

    @check(f"{title}: without a key it is a 401")
    def _():
        status, text = client.text("/v1/models", key=None)
        expect(status == 401 and "invalid_api_key" in text, text)

    @check(f"{title}: an answer comes piece by piece")
    def _():
        with client.open("/v1/chat/completions", QUESTION) as answer:
            reads, first = [], None
            while piece := answer.read1(65536):
                first = first or time.monotonic()
                reads.append(piece)
            took = time.monotonic() - first
        text = b"".join(reads).decode()
        expect("397.8" in text and text.rstrip().endswith("data: [DONE]"), text)
        # The demo takes its time between words; a proxy that buffers sends all of it at once.
        expect(len(reads) > 5 and took > 0.05, f"{len(reads)} pieces in {took:.3f} s")

    @check(f"{title}: the page and each file that it names")
    def _():
        status, page = client.text("/", key=None)
        expect(status == 200 and "<html" in page, page[:200])
        named = [link for link in re.findall(r'(?:src|href)="([^"#:]+)"', page)]
        expect(named and not any(link.startswith("/") for link in named), f"{named}")
        for link in named:
            status, _text = client.text("/" + link.removeprefix("./"), key=None)
            expect(status == 200, f"{link}: {status}")

    @check(f"{title}: MCP")
    def _():
        call = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "proxies", "version": "1"}}}
        status, text = client.text("/mcp", call, accept="application/json, text/event-stream")
        expect(status == 200 and '"serverInfo"' in text, text)

    @check(f"{title}: an answer that waits for an approval names the address as clients know it")
    def _():
        asked = {**QUESTION, "messages": [{"role": "user", "content": "Erase all."}]}
        with client.open("/v1/chat/completions", asked) as answer:
            text = ""
            while "/api/approvals/" not in text and (piece := answer.read1(65536)):
                text += piece.decode()
        expect(f"{client.public}/api/approvals/" in text, text)


def main():
    missing = [name for name in ("nginx", "caddy", "openssl") if not shutil.which(name)]
    if missing:
        environment.skipped(f"not installed: {', '.join(missing)}")
        finish()
    tool = """
[[tools]]
name = "erase"
description = "Erases all."
type = "function"
handler = "fixed"
parameters = { type = "object" }
permission = "guest"
effect = "destructive"
implementation = { type = "mock", mock_response = "erased" }
"""
    for name, make in (("nginx", nginx), ("Caddy", caddy)):
        for base in ("", "/rack"):
            with tempfile.TemporaryDirectory(prefix="toolrack-proxy-") as place:
                folder = Path(place)
                # nginx's workers are of another user.
                folder.chmod(0o755)
                pem, key = certificate(folder)
                settings = block("toml", "## Behind a proxy").replace('listen = "127.0.0.1:7331"\n', "").replace('"…"', f'"{KEY}"')
                settings = settings.replace('public_url = "https://tools.example"', f'public_url = "https://{NAME}{base}"')
                with environment.toolrack("demo", configuration=settings + tool) as address:
                    port = environment.free_port()
                    with proxy(make, folder, port, address.removeprefix("http://"), base, pem, key):
                        checks(f"{name}, {'below ' + base if base else 'at the root'}", Client(pem, port, base))
    finish()


if __name__ == "__main__":
    main()
