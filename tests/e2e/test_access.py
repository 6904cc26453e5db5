"""Who may call listen.http: every path of the API without a token, with a wrong one, from pages of other hosts, and under
names that are not this machine's."""
import http.client
import os
import re

import pytest

import harness

TOKEN, PULL_TOKEN = "api-token-" + "x" * 22, "pull-token-" + "x" * 22
SRC = os.path.join(os.path.dirname(__file__), "..", "..", "src", "serve")
NAME = "spool.example.org"


def routes():
    """Every row of the table of routes, with something in place of what varies."""
    with open(os.path.join(SRC, "api.c"), encoding="utf-8") as f:
        rows = re.findall(r'\{"([A-Z]+)", "(/[^"]*)", \w+, \w+, (true|false)\}', f.read())
    assert len(rows) >= 19
    return [(method, path.replace("*", "shop") + ("1" if path.endswith("/") else ""), pull == "true")
            for method, path, pull in rows]


class Door:
    def __init__(self):
        self.spool = harness.Spool()
        self.port = harness.free_port()
        self.spool.add_bot("shop", intake="none", deliver="pull",
                           pull_token_file=self.spool.write("pull.token", PULL_TOKEN + "\n"))
        self.spool.configure(None, listen={"http": f"127.0.0.1:{self.port}", "http_hosts": NAME,
                                           "api_token_file": self.spool.write("api.token", TOKEN + "\n")})
        self.spool.start()
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def ask(self, method, path, token=None, host=None, body=b"{}", **headers):
        """Returns status, headers and body."""
        c = self.connection
        c.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        c.putheader("Host", host or f"127.0.0.1:{self.port}")
        if token:
            c.putheader("Authorization", f"Bearer {token}")
        for name, value in headers.items():
            c.putheader(name.replace("_", "-"), value)
        if method == "POST":
            c.putheader("Content-Length", str(len(body)))
        c.endheaders(body if method == "POST" else None)
        r = c.getresponse()
        return r.status, r.headers, r.read()

    def close(self):
        self.connection.close()
        self.spool.close()


@pytest.fixture(scope="module")
def door():
    d = Door()
    yield d
    d.close()


@pytest.mark.parametrize("method,path,pull", routes())
def test_every_call(door, method, path, pull):
    here = f"http://127.0.0.1:{door.port}"
    for token in (None, "wrong-token-wrong-token", TOKEN[:-1], TOKEN + "x", "x" + TOKEN):
        status, headers, body = door.ask(method, path, token)
        assert (status, headers["WWW-Authenticate"]) == (401, "Bearer"), token
        assert b'"unauthorized"' in body and TOKEN.encode() not in body
    assert door.ask(method, path, Authorization=f"Basic {TOKEN}")[0] == 401
    assert door.ask(method, path + f"?token={TOKEN}", Cookie=f"token={TOKEN}")[0] == 401
    if not pull:
        assert door.ask(method, path, PULL_TOKEN)[0] == 401

    for origin in ("http://evil.example", "null", "https://127.0.0.1", f"{here}.evil.example", "http://127.0.0.1:1"):
        status, _, body = door.ask(method, path, TOKEN, Origin=origin)
        assert status == 403 and b'"bad_origin"' in body, origin
    for site in ("cross-site", "same-site"):
        assert door.ask(method, path, TOKEN, Sec_Fetch_Site=site)[0] == 403
    assert door.ask(method, path, PULL_TOKEN, Origin="http://evil.example")[0] == 403
    for host in ("evil.example", f"evil.example:{door.port}", "127.0.0.1.evil.example", "localhost.evil.example"):
        for more in ({}, {"Origin": "http://" + host}):
            status, _, body = door.ask(method, path, TOKEN, host, **more)
            assert status == 403 and b'"bad_host"' in body, host
        assert door.ask(method, path, PULL_TOKEN, host, Origin="http://" + host)[0] == 403

    if path == "/v1/tail":
        return  # waits
    for status, _, body in (door.ask(method, path, TOKEN, Origin=here, Sec_Fetch_Site="same-origin"),
                            door.ask(method, path, TOKEN, f"localhost:{door.port}")):
        assert status not in (401, 403) or b"socket" in body, body


def test_the_page_needs_no_token(door):
    for path, kind in (("/", "text/html"), ("/page/page.css", "text/css"), ("/page/main.js", "text/javascript"),
                       ("/page/icon.svg", "image/svg+xml")):
        status, headers, body = door.ask("GET", path)
        assert status == 200 and headers["Content-Type"].startswith(kind) and body
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self';") and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy and "http" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cross-Origin-Resource-Policy"] == headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert headers["Cache-Control"] == "no-cache" and headers["Set-Cookie"] is None
        assert door.ask("HEAD", path)[2] == b""
        assert door.ask("GET", path, If_None_Match=headers["ETag"])[::2] == (304, b"")
        assert door.ask("POST", path)[0] == 405
        assert door.ask("GET", path, host="evil.example")[0] == 403
        assert door.ask("GET", path, Origin="http://evil.example")[0] == 403
        assert door.ask("GET", path, Sec_Fetch_Site="cross-site")[0] == 200  # a link leads to it
    for path in ("/page/", "/page/embed", "/page/../main.js", "/index.html", "/favicon.ico", "/page/main.js/"):
        assert door.ask("GET", path)[0] in (400, 401), path


def test_the_page_is_small_and_loads_nothing_from_elsewhere(door):
    total = 0
    for name in sorted(os.listdir(os.path.join(SRC, "page"))):
        if name == "embed":
            continue
        status, _, body = door.ask("GET", "/" if name == "index.html" else "/page/" + name)
        assert status == 200, name
        total += len(body)
        for url in re.findall(rb"https?://[^\s\"')]+", body):
            assert url.startswith(b"http://www.w3.org/"), (name, url)  # the names of SVG, which nobody loads
        assert not re.search(rb"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|style=|\son\w+=\"", body), name
    assert total < 66000


def test_every_word_is_in_chinese_too(door):
    words = door.ask("GET", "/page/words.js")[2].decode()
    known = set(re.findall(r'"((?:[^"\\]|\\.)+)":\s*"', words))
    for name in sorted(os.listdir(os.path.join(SRC, "page"))):
        with open(os.path.join(SRC, "page", name), encoding="utf-8") as f:
            for text in re.findall(r'\bt\("((?:[^"\\]|\\.)+)"', f.read()):
                assert text in known, (name, text)


def test_names_of_a_proxy(door):
    assert door.ask("GET", "/", host=NAME)[0] == 200
    assert door.ask("GET", "/v1/status", TOKEN, host=NAME, Origin="https://" + NAME)[0] == 200
    assert door.ask("GET", "/v1/status", TOKEN, Origin="https://" + NAME)[0] == 200  # a proxy that names the address
    # a consumer is no browser, and may have a name of its own for this machine
    assert door.ask("POST", "/v1/claim", PULL_TOKEN, "queue.internal", b'{"bot":"shop","max":1}')[0] == 200
    door.spool.configure(None, listen={"http_hosts": "[a.example, b.example]"})
    door.spool.process.send_signal(1)
    harness.wait_until(lambda: door.ask("GET", "/", host="b.example")[0] == 200, "the reload")
    assert door.ask("GET", "/", host=NAME)[0] == 403


def test_guesses_are_told_but_do_not_fill_the_log(door):
    for i in range(30):
        assert door.ask("GET", "/v1/status", f"a-guess-of-the-token-{i}")[0] == 401
    lines = [x for x in door.spool.log().splitlines() if "wrong token" in x]
    assert len(lines) == 1 and "from 127.0.0.1" in lines[0] and "tgspool config" in lines[0]
    assert "a-guess" not in door.spool.log() and TOKEN not in door.spool.log()
