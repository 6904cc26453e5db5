"""Abuse of the daemon's three listeners: what is no request is refused, memory stays bounded, and whoever is honest is
served meanwhile: a webhook's POST, a claim by the API, a getUpdates."""
import http.server
import json
import os
import resource
import socket
import sys
import threading
import time

import pytest

from harness import BotApi, Spool, free_port, is_sanitized, wait_until

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "net"))
from abuse import flood, read_to_end, shapes  # noqa: E402

MIB = 1 << 20
GROWTH = 4 * MIB
HOOKED, POLLED = "123456:AAF0-test-token-of-the-webhook-bot-1", "234567:AAF0-test-token-of-the-polling-bot-1"
FILED = "345678:AAF0-test-token-of-the-bot-with-files-1"
SECRET = "Webhook_secret-0123456789"
API_TOKEN = "api-token-0123456789abcdef"
PAGE = os.sysconf("SC_PAGE_SIZE")
PATIENCE = 60


class Files(http.server.BaseHTTPRequestHandler):
    """The server behind for what is passed on: files of 20 MB, and short answers to all else."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        size = 20_000_000 if self.path.startswith("/file/") else 11
        self.send_response(200)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        try:
            for _ in range(size // 100_000):
                self.wfile.write(b"x" * 100_000)
            self.wfile.write(b'{"ok":true}' if size == 11 else b"")
        except OSError:
            self.close_connection = True

    do_POST = do_GET

    def log_message(self, *args):
        pass


class Doors:
    """A daemon with a bot at each kind of listener. Its heads lack the empty line."""

    def __init__(self):
        self.api = BotApi(tokens=(HOOKED, POLLED))
        self.spool = Spool(level="info")
        s, self.port = self.spool, {name: free_port() for name in ("webhook", "http", "dropin")}
        s.add_bot("hooked", HOOKED, api_root=self.api.url, intake="webhook", deliver="pull",
                  webhook_secret_file=s.write("hook", SECRET))
        self.files = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files)
        self.files.daemon_threads = True
        threading.Thread(target=self.files.serve_forever, daemon=True).start()
        s.add_bot("filed", FILED, api_root=f"http://127.0.0.1:{self.files.server_port}", intake="none", deliver="pull")
        s.add_bot("polled", POLLED, api_root=self.api.url, intake="poll", deliver="dropin")
        s.configure(None, listen={**{k: f"127.0.0.1:{v}" for k, v in self.port.items()},
                                  "api_token_file": s.write("api", API_TOKEN)})
        s.start()
        self.updates = 0

    def heads(self, door):
        """Of a GET and of a POST that are let in."""
        path = {"webhook": "/hook/hooked", "http": "/v1/ack", "dropin": f"/bot{POLLED}/getUpdates"}[door]
        tail = (f"{'/v1/status' if door == 'http' else path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                f"Authorization: Bearer {API_TOKEN}\r\nX-Telegram-Bot-Api-Secret-Token: {SECRET}\r\n")
        return f"GET {tail}".encode(), f"POST {tail}".replace("/v1/status", "/v1/ack").encode()

    def rss(self):
        with open(f"/proc/{self.spool.process.pid}/statm") as f:
            return int(f.read().split()[1]) * PAGE

    def ask(self, door, request, body=b""):
        """A status and a body; 0 if there was no answer."""
        try:
            with socket.create_connection(("127.0.0.1", self.port[door]), 30) as s:
                s.sendall(request + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                got = read_to_end(s)
        except OSError:
            return 0, b""
        head, _, rest = got.partition(b"\r\n\r\n")
        return (int(head.split(b" ")[1]), rest) if head.startswith(b"HTTP/1.1 ") else (0, b"")

    def honest(self):
        """Serves one of each kind. Returns what was not served."""
        left = set()
        self.updates += 1
        body = json.dumps({"update_id": self.updates, "message": {"message_id": 1, "date": 1, "text": "x",
                                                                  "chat": {"id": self.updates, "type": "private"}}})
        if self.ask("webhook", self.heads("webhook")[1], body.encode())[0] != 200:
            left.add("webhook")
        claim = self.heads("http")[1].replace(b"/v1/ack", b"/v1/claim")
        status, answer = self.ask("http", claim, b'{"bot":"hooked","wait":"5s"}')
        if status != 200:
            left.add("http")
        else:
            for e in json.loads(answer)["events"]:
                self.ask("http", self.heads("http")[1], json.dumps({"id": e["id"], "lease": e["lease"]}).encode())
        status, answer = self.ask("dropin", self.heads("dropin")[1], b"limit=1")
        if status != 200 or not json.loads(answer)["ok"]:
            left.add("dropin")
        if self.ask("dropin", f"GET /bot{FILED}/getMe HTTP/1.1\r\nHost: a\r\n".encode())[0] != 200:
            left.add("passed on")
        return left

    def close(self):
        self.spool.close()
        self.api.stop()
        self.files.shutdown()
        self.files.server_close()


@pytest.fixture(scope="module")
def doors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # the daemon has it too
    d = Doors()
    try:
        for _ in range(5):
            assert not d.honest()
        yield d
    finally:
        d.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


DOORS = ("webhook", "http", "dropin")


@pytest.mark.parametrize("door", DOORS)
def test_what_is_no_request_is_refused(doors, door):
    """One answer, and nothing behind it is taken for a request."""
    get, post = doors.heads(door)
    behind = get.replace(b" HTTP", b"?smuggled HTTP") + b"\r\n"
    before = doors.rss()
    for name, shape in shapes(get, post).items():
        with socket.create_connection(("127.0.0.1", doors.port[door]), 30) as s:
            s.sendall(shape + behind)
            got = read_to_end(s)
        assert got.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 405 ", b"HTTP/1.1 413 ", b"HTTP/1.1 431 ",
                               b"HTTP/1.1 501 ")), (name, got)
        assert got.count(b"HTTP/1.1 ") == 1 and b"Connection: close" in got, (name, got)
    assert not doors.honest()
    assert is_sanitized() or doors.rss() - before < GROWTH


def what_floods(get, post):
    """What each of a thousand connections says before it says no more."""
    stranger = b"POST /v1/ack HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    return {
        "idle": b"",
        "slow heads": get[:-2] + b"x",
        "large heads": get + b"X: " + b"a" * 15000,
        "bodies of strangers": stranger + b"Content-Length: 90000\r\n\r\n" + b"a" * 60000,
        "small slow bodies": post + b"Content-Length: 1000\r\n\r\n" + b"a" * 10,
        "slow bodies": post + b"Content-Length: 90000\r\n\r\n" + b"a" * 60000,
        "slow chunks": post + b"Transfer-Encoding: chunked\r\n\r\nffff\r\n" + b"a" * 50000,
        "half-closed": get,
    }


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("how", what_floods(b"", b""))
def test_a_thousand_connections(doors, door, how):
    before = doors.rss()
    held = flood(doors.port[door], 1000, what_floods(*doors.heads(door))[how], how == "half-closed")
    seen = []

    def all_served():
        seen.append(doors.rss() - before)
        return not doors.honest()
    try:
        wait_until(all_served, "the honest are served, before the time-outs of the abusers", 25)
        if not is_sanitized():
            assert max(seen) < GROWTH, seen
    finally:
        for s in held:
            s.close()


@pytest.mark.parametrize("what", ("updates", "events", "files"))
def test_answers_that_nobody_reads(doors, what):
    """200 clients with a right token ask for large answers and do not read them."""
    want = 100
    if doors.spool.counts("polled")["pending"] < want:
        for _ in range(want):
            doors.api.control("inject", bot=234567, updates=[
                {"kind": "message", "members": json.dumps({"message": {
                    "message_id": 1, "date": 1, "text": "y" * 40000, "chat": {"id": 5, "type": "private"}}})[1:-1]}])
        wait_until(lambda: doors.spool.counts("polled")["pending"] +
                   doors.spool.counts("polled")["processing"] >= want, "a backlog of 4 MB")
    door = "http" if what == "events" else "dropin"
    get = doors.heads(door)[0].replace(b"/v1/status", b"/v1/events?payload=1&limit=1000&bot=polled")
    if what == "files":
        get = f"GET /file/bot{FILED}/x HTTP/1.1\r\nHost: a\r\n".encode()
    assert not doors.honest()
    before, held, seen = doors.rss(), [], []
    for _ in range(200):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.connect(("127.0.0.1", doors.port[door]))
        s.sendall(get + b"\r\n")
        held.append(s)
        seen.append(doors.rss() - before)

    def all_served():
        seen.append(doors.rss() - before)
        return not doors.honest()
    end = time.monotonic() + 3
    try:
        wait_until(all_served, "the honest are served", PATIENCE)
        while time.monotonic() < end:
            seen.append(doors.rss() - before)
            time.sleep(0.02)
        if not is_sanitized():
            assert max(seen) < 32 * MIB, max(seen)
    finally:
        for s in held:
            s.close()
