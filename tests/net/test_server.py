"""net/http_server and net/http_pool through tests/net/probe-server: TLS, streams of any size, abuse."""

import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time

import pytest
from abuse import flood, read_to_end, shapes
from peers import Certificates, Server, answer, reset

PROBE = pathlib.Path(os.environ.get("builddir", ".")).resolve() / "tests/net/probe-server"
PAGE = os.sysconf("SC_PAGE_SIZE")
SANITIZED = b"__asan_init" in PROBE.read_bytes() if PROBE.exists() else False
BIG = 20_000_000 if SANITIZED else 500_000_000
GROWTH = 4 << 20
PEER = b"GET /local/peer HTTP/1.1\r\nHost: a\r\n\r\n"


class Probe:
    """A running probe-server."""

    def __init__(self, *args):
        self.process = subprocess.Popen([PROBE, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.first = self.line()
        self.port = int(self.first.split()[1]) if self.first.startswith("port ") else 0

    def line(self):
        return self.process.stdout.readline().decode().rstrip("\n")

    def rss(self):
        """Bytes of resident memory."""
        return int(pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * PAGE

    def connect(self, tls=None, name=None):
        s = socket.create_connection(("127.0.0.1", self.port), 20)
        return tls.wrap_socket(s, server_hostname=name) if tls else s

    def ask(self, request=PEER, tls=None, name=None):
        """One request on a connection of its own; returns the whole answer."""
        with self.connect(tls, name) as s:
            s.sendall(request)
            return read_answer(s)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        err = self.process.communicate(timeout=20)[1]
        assert self.process.returncode == 0, err.decode()


def read_answer(s, left=b""):
    """Reads one answer with a Content-Length, or up to the end."""
    while b"\r\n\r\n" not in left:
        more = s.recv(65536)
        if not more:
            return left
        left += more
    head, body = left.split(b"\r\n\r\n", 1)
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            while len(body) < int(line.split(b":")[1]):
                body += s.recv(65536)
            break
    return head + b"\r\n\r\n" + body


@pytest.fixture
def probe():
    """probe(OPTION, VALUE, ...) starts one that must end well with the test."""
    started = []

    def start(*args):
        started.append(Probe(*args))
        return started[-1]

    yield start
    for p in started:
        if p.process.poll() is None:
            p.stop()


@pytest.fixture
def upstream():
    started = []

    def start(script, **kw):
        started.append(Server(script, **kw))
        return f"http://127.0.0.1:{started[-1].port}", started[-1]

    yield start
    for s in started:
        s.close()


@pytest.fixture(scope="module")
def certs(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("certs"))


@pytest.fixture
def trust(certs):
    return ssl.create_default_context(cafile=certs.ca)


# ---- TLS ----------------------------------------------------------------------------------------------------------


def start_tls(probe, certs, *args):
    return probe("cert", certs.dir / "good.pem", "key", certs.dir / "key.pem", *args)


def test_tls(probe, certs, trust):
    p = start_tls(probe, certs)
    with p.connect(trust, "good.test") as s:
        assert s.version() == "TLSv1.3"
        for _ in range(3):
            s.sendall(PEER)
            assert read_answer(s).endswith(b"\r\n\r\n127.0.0.1 tls")
    assert p.ask(tls=trust, name="127.0.0.1").endswith(b" tls")
    assert probe().ask().endswith(b"127.0.0.1 plain")


def test_tls_body_larger_than_a_record(probe, certs, trust):
    p = start_tls(probe, certs)
    body = os.urandom(90000)
    got = p.ask(b"POST /local/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 90000\r\n\r\n" + body, trust, "good.test")
    assert got.split(b"\r\n\r\n", 1)[1] == body


def test_tls_versions_and_protocols(probe, certs, trust):
    p = start_tls(probe, certs)
    trust.maximum_version = ssl.TLSVersion.TLSv1_2
    with p.connect(trust, "good.test") as s:
        assert s.version() == "TLSv1.2"
    trust.set_alpn_protocols(["h2", "http/1.1"])
    with p.connect(trust, "good.test") as s:
        assert s.selected_alpn_protocol() == "http/1.1"
    trust.set_alpn_protocols(["h2"])
    with p.connect(trust, "good.test") as s:
        assert s.selected_alpn_protocol() is None
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        p.connect(old)


def test_tls_resumes(probe, certs, trust):
    p = start_tls(probe, certs)
    trust.maximum_version = ssl.TLSVersion.TLSv1_2  # where the session is there at once
    with p.connect(trust, "good.test") as s:
        session = s.session
    s = socket.create_connection(("127.0.0.1", p.port), 20)
    with trust.wrap_socket(s, server_hostname="good.test", session=session) as s:
        assert s.session_reused


def test_a_plain_client_on_the_tls_port(probe, certs):
    p = start_tls(probe, certs)
    with p.connect() as s:
        s.sendall(PEER)
        assert b"HTTP/1.1 200" not in read_to_end(s)


def test_tls_chain_is_shown_whole(probe, certs, tmp_path):
    (tmp_path / "chain.pem").write_bytes((certs.dir / "good.pem").read_bytes() + (certs.dir / "ca.pem").read_bytes())
    p = probe("cert", tmp_path / "chain.pem", "key", certs.dir / "key.pem")
    shown = subprocess.run(["openssl", "s_client", "-showcerts", "-connect", f"127.0.0.1:{p.port}"],
                           input=b"", capture_output=True, timeout=20).stdout
    assert shown.count(b"BEGIN CERTIFICATE") == 2


@pytest.mark.parametrize("make, cert, key, says", [
    (None, "absent.pem", "key.pem", "tls_cert: "),
    (None, "good.pem", "absent.pem", "tls_key: "),
    (None, "key.pem", "key.pem", "holds no certificate"),
    (None, "good.pem", "good.pem", "holds no private key"),
    (["genpkey", "-algorithm", "RSA", "-out", "stranger.pem"], "good.pem", "stranger.pem", "does not belong"),
    (["ec", "-in", "key.pem", "-aes128", "-passout", "pass:x", "-out", "locked.pem"], "good.pem", "locked.pem",
     "passphrase"),
])
def test_wrong_files(probe, certs, make, cert, key, says):
    if make:
        subprocess.run(["openssl", *make], cwd=certs.dir, check=True, capture_output=True)
    p = probe("cert", certs.dir / cert, "key", certs.dir / key)
    assert says in p.first and p.process.wait(20) in (66, 77, 78)


def test_reload(probe, certs, tmp_path):
    """A failed reload keeps the old certificate, a good one shows the new; open connections go on."""
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    shutil.copy(certs.dir / "good.pem", cert)
    shutil.copy(certs.dir / "key.pem", key)
    p = probe("cert", cert, "key", key)
    trust = ssl.create_default_context(cafile=certs.ca)
    early = p.connect(trust, "good.test")
    cert.write_text("nonsense\n")
    p.process.send_signal(signal.SIGHUP)
    assert "holds no certificate" in p.line()
    assert p.ask(tls=trust, name="good.test").endswith(b" tls")
    shutil.copy(certs.dir / "other.pem", cert)
    p.process.send_signal(signal.SIGHUP)
    assert p.line() == "reloaded"
    assert p.ask(tls=ssl.create_default_context(cafile=certs.ca), name="other.test").endswith(b" tls")
    with pytest.raises(ssl.SSLCertVerificationError):
        p.connect(ssl.create_default_context(cafile=certs.ca), "good.test")
    early.sendall(PEER)
    assert read_answer(early).endswith(b" tls")


def test_slow_handshake(probe, certs, trust):
    """Nothing, half a hello, garbage: each is closed within the header time-out, and others are served."""
    p = start_tls(probe, certs, "header", 400)
    began = time.monotonic()
    silent, half, noise = p.connect(), p.connect(), p.connect()
    half.sendall(bytes.fromhex("1603010200010001fc0303"))
    noise.sendall(b"\x00" * 50)
    assert p.ask(tls=trust, name="good.test").endswith(b" tls")
    for s in (noise, silent, half):
        read_to_end(s)
    assert 0.3 < time.monotonic() - began < 15


# ---- streams ------------------------------------------------------------------------------------------------------


def sink_and_source(conn):
    """Counts what is POSTed; answers GET with BIG bytes, in chunks if the path says so."""
    while True:
        head = b""
        while b"\r\n\r\n" not in conn.left:
            more = conn.sock.recv(65536)
            if not more:
                return
            conn.left += more
        head, conn.left = conn.left.split(b"\r\n\r\n", 1)
        if head.startswith(b"POST"):
            answer_upload(conn, head)
        else:
            send_big(conn, b"/chunked" in head.split(b"\r\n")[0])


def answer_upload(conn, head):
    got = len(conn.left)
    if b"chunked" in head.lower():
        got, tail = conn.left.count(b"x"), conn.left
        while not tail.endswith(b"0\r\n\r\n"):
            piece = conn.sock.recv(1 << 20)
            got += piece.count(b"x")
            tail = tail[-20:] + piece
    else:
        want = int([h for h in head.split(b"\r\n") if h.lower().startswith(b"content-length")][0].split(b":")[1])
        while got < want:
            got += len(conn.sock.recv(1 << 20))
    conn.left = b""
    conn.send(answer(b"%d" % got))


def send_big(conn, chunked):
    piece = b"x" * 100_000
    if chunked:
        conn.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        piece = b"186a0\r\n" + piece + b"\r\n"
    else:
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % BIG)
    for _ in range(BIG // 100_000):
        conn.send(piece)
    if chunked:
        conn.send(b"0\r\n\r\n")


class Memory:
    """Looks at a probe's memory from the first to the last tenth of a transfer."""

    def __init__(self, p):
        self.p, self.seen = p, []

    def at(self, done):
        while done >= BIG // 10 * (len(self.seen) + 1):
            self.seen.append(self.p.rss())

    def check(self):
        assert len(self.seen) >= 9
        if not SANITIZED:
            assert max(self.seen) - self.seen[0] < GROWTH, self.seen


@pytest.mark.parametrize("path", ["/file/x", "/chunked/x"])
def test_a_large_answer(probe, upstream, path):
    url, _ = upstream(sink_and_source)
    p = probe("upstream", url)
    memory, got = Memory(p), 0
    with p.connect() as s:
        s.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        while got < BIG:
            piece = s.recv(1 << 20)
            assert piece
            got += piece.count(b"x")
            memory.at(got)
    assert got == BIG
    memory.check()


@pytest.mark.parametrize("chunked", [False, True])
def test_a_large_request(probe, upstream, chunked):
    url, _ = upstream(sink_and_source)
    p = probe("upstream", url)
    memory, piece = Memory(p), b"x" * 100_000
    with p.connect() as s:
        if chunked:
            s.sendall(b"POST /up HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
            piece = b"186a0\r\n" + piece + b"\r\n"
        else:
            s.sendall(b"POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % BIG)
        for i in range(BIG // 100_000):
            s.sendall(piece)
            memory.at((i + 1) * 100_000)
        if chunked:
            s.sendall(b"0\r\n\r\n")
        assert read_answer(s).endswith(b"\r\n\r\n%d" % BIG)
    memory.check()


def test_a_reader_that_stops_stops_the_upstream(probe, upstream):
    """Back-pressure goes all the way: what is in between has bounds."""
    sent = []

    def script(conn):
        conn.request()
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 200000000\r\n\r\n")
        for _ in range(2000):
            conn.send(b"x" * 100_000)
            sent.append(1)

    url, _ = upstream(script)
    p = probe("upstream", url)
    before = p.rss()
    with p.connect() as s:
        s.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        last, since = -1, time.monotonic()
        while time.monotonic() - since < 1:
            if len(sent) != last:
                last, since = len(sent), time.monotonic()
            time.sleep(0.05)
        assert 0 < len(sent) < 1000
        if not SANITIZED:
            assert p.rss() - before < GROWTH
        assert p.ask().endswith(b"plain")


def test_headers_on_their_way(probe, upstream):
    def script(conn):
        conn.request()
        conn.send(answer(b"fine", headers=["Content-Type: x/y", "X-Hop: 1", "Connection: x-hop", "Keep-Alive: 5",
                                           "Date: then", "X-End: 2"]))

    url, s = upstream(script)
    got = probe("upstream", url).ask(b"GET /a?b=1 HTTP/1.1\r\nHost: proxy\r\nX-One: 1\r\nConnection: keep-alive, "
                                     b"X-Two\r\nX-Two: 2\r\nTE: trailers\r\nUser-Agent: it\r\n\r\n")
    sent = s.requests[0].decode()
    assert sent.startswith("GET /a?b=1 HTTP/1.1\r\n") and f"Host: 127.0.0.1:{s.port}\r\n" in sent
    assert "X-One: 1\r\n" in sent and "User-Agent: it\r\n" in sent and sent.count("Connection:") == 1
    assert "X-Two" not in sent and "TE:" not in sent and "proxy" not in sent and "Content-Length" not in sent
    assert b"Content-Type: x/y\r\n" in got and b"X-End: 2\r\n" in got and b"Date: then\r\n" in got
    assert b"X-Hop" not in got and b"Keep-Alive" not in got and got.count(b"Date:") == 1
    assert got.endswith(b"\r\n\r\nfine")


def test_versions_and_head(probe, upstream):
    def script(conn):
        while (r := conn.request()) is not None:
            if r.startswith(b"HEAD"):
                conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n")
            elif b"/204" in r:
                conn.send(b"HTTP/1.1 204 No Content\r\n\r\n")
            else:
                conn.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n")

    url, _ = upstream(script)
    p = probe("upstream", url)
    with p.connect() as s:  # all on one connection
        s.sendall(b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\nGET /204 HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n"
                  b"Connection: close\r\n\r\n")
        head, empty, chunked = read_to_end(s).split(b"HTTP/1.1 ")[1:]
    assert b"Content-Length: 7\r\n" in head and head.endswith(b"\r\n\r\n")
    assert empty.startswith(b"204") and b"Content-Length" not in empty and b"chunked" not in empty
    assert b"Transfer-Encoding: chunked\r\n" in chunked and b"Connection: close" in chunked
    assert chunked.endswith(b"0\r\n\r\n") and b"abc" in chunked
    with p.connect() as s:
        s.sendall(b"GET / HTTP/1.0\r\n\r\n")
        old = read_to_end(s)
    assert b"chunked" not in old and b"Connection: close" in old and old.endswith(b"\r\n\r\nabcdefg")


@pytest.mark.parametrize("cut", ["length", "chunked", "reset"])
def test_an_answer_that_is_cut(probe, upstream, cut):
    """Whoever asked sees that it was cut, never a whole shorter one; also one of HTTP/1.0."""
    def script(conn):
        conn.request()
        length = b"Content-Length: 100" if cut == "length" else b"Transfer-Encoding: chunked"
        conn.send(b"HTTP/1.1 200 OK\r\n" + length + b"\r\n\r\n5\r\nabcde\r\n")
        if cut == "reset":
            time.sleep(0.2)
            conn.reset()

    url, _ = upstream(script)
    p = probe("upstream", url)
    with p.connect() as s:
        s.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert not read_to_end(s).endswith(b"0\r\n\r\n")
    with p.connect() as s:
        s.sendall(b"GET / HTTP/1.0\r\n\r\n")
        got = read_to_end(s)
        assert got.endswith(b"(reset)") or b"Content-Length: 100" in got


def test_no_upstream(probe, upstream):
    url, s = upstream(lambda conn: None)
    s.close()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        p = probe("upstream", f"http://127.0.0.1:{free.getsockname()[1]}")
        got = p.ask(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc")
    assert got.startswith(b"HTTP/1.1 502 ")


def test_an_upstream_that_stalls(probe, upstream):
    held = threading.Event()

    def script(conn):
        conn.request()
        held.wait(20)

    url, _ = upstream(script)
    p = probe("upstream", url, "stall", 300)
    began = time.monotonic()
    assert p.ask(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").startswith(b"HTTP/1.1 504 ")
    assert time.monotonic() - began < 10
    held.set()


def test_a_client_that_leaves_ends_the_call(probe, upstream):
    ended = threading.Event()

    def script(conn):
        conn.request()
        if conn.sock.recv(1) == b"":
            ended.set()

    url, _ = upstream(script)
    p = probe("upstream", url)
    s = p.connect()
    s.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    time.sleep(0.3)
    s.close()
    assert ended.wait(20)


def test_a_reused_connection_that_was_just_closed(probe, upstream):
    """A small request is sent again on a new one; a large one had a new one from the start."""
    def script(conn):
        conn.request()
        conn.send(answer(b"fine"))
        if conn.number == 1:
            conn.sock.recv(1)
            conn.reset()
        elif conn.request() is not None:
            conn.send(answer(b"more"))

    url, s = upstream(script)
    p = probe("upstream", url)
    get = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    with p.connect() as c:
        c.sendall(get)
        assert read_answer(c).endswith(b"fine")
        c.sendall(get)
        assert read_answer(c).endswith(b"fine") and s.connections == 2
        c.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100000)
        assert read_answer(c).endswith(b"fine") and s.connections == 3


def test_the_pool_has_bounds(probe, upstream):
    """Twelve at once over four connections: all are answered, and no fifth is made."""
    now, most, lock = [0], [0], threading.Lock()

    def script(conn):
        while conn.request() is not None:
            with lock:
                now[0] += 1
                most[0] = max(most[0], now[0])
            time.sleep(0.05)
            with lock:
                now[0] -= 1
            conn.send(answer(b"fine"))

    url, s = upstream(script)
    p = probe("upstream", url, "pool", 4)
    clients = [p.connect() for _ in range(12)]
    for c in clients:
        c.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    for c in clients:
        assert read_answer(c).endswith(b"fine")
        c.close()
    assert s.connections == 4 and 1 < most[0] <= 4


def test_idle_connections_of_the_pool_end(probe, upstream):
    ended = threading.Event()

    def script(conn):
        conn.request()
        conn.send(answer(b"fine"))
        if conn.sock.recv(1) == b"":
            ended.set()

    url, _ = upstream(script)
    assert probe("upstream", url, "keep-idle", 200).ask(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").endswith(b"fine")
    assert ended.wait(20)


def test_continue_is_for_those_who_ask(probe, upstream):
    """100 Continue only once somebody wants the body."""
    url, _ = upstream(sink_and_source)
    p = probe("upstream", url)
    head = " HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
    with p.connect() as s:
        s.sendall(("POST /local/refuse" + head).encode())
        assert read_answer(s).startswith(b"HTTP/1.1 401 ")
    for path in ("/local/echo", "/up"):
        with p.connect() as s:
            s.sendall(f"POST {path}{head}".encode())
            assert s.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
            s.sendall(b"hello")
            assert read_answer(s).startswith(b"HTTP/1.1 200 OK")


def test_limits_of_a_gathered_body(probe):
    p = probe()
    assert p.ask(b"POST /local/echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100001\r\n\r\n").startswith(b"HTTP/1.1 413 ")
    with p.connect() as s:
        s.sendall(b"POST /local/echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n186a1\r\n" + b"x" * 100001)
        assert read_answer(s).startswith(b"HTTP/1.1 413 ")


# ---- abuse --------------------------------------------------------------------------------------------------------

HOST = b"GET /local/peer HTTP/1.1\r\nHost: a\r\n"
POST = b"POST /local/echo HTTP/1.1\r\nHost: a\r\n"
SHAPES = shapes(HOST, POST)


@pytest.mark.parametrize("path", [b"/local/echo", b"/up"])
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(probe, upstream, shape, path):
    """Each is refused, nothing behind it is taken for a request, and no upstream sees a second one."""
    url, up = upstream(lambda conn: conn.request() and read_to_end(conn.sock))
    p = probe("upstream", url)
    behind = b"GET /local/peer?smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
    with p.connect() as s:
        s.sendall(SHAPES[shape].replace(b"/local/echo", path) + behind)
        got = read_to_end(s)
    assert got.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 431 ", b"HTTP/1.1 501 ", b"HTTP/1.1 413 ")), got
    assert got.count(b"HTTP/1.1 ") == 1 and b"Connection: close" in got
    assert not any(b"smuggled" in r for r in up.requests)
    assert p.ask().endswith(b"plain")


FLOODS = {
    "idle": b"",
    "slow heads": b"GET /local/peer HTTP/1.1\r\nX: ",
    "large heads": HOST + b"X: " + b"a" * 15000,
    "slow bodies": POST + b"Content-Length: 90000\r\n\r\n" + b"a" * 60000,
    "slow chunks": POST + b"Transfer-Encoding: chunked\r\n\r\nffff\r\n" + b"a" * 50000,
    "held, and more behind": b"GET /local/hold HTTP/1.1\r\nHost: a\r\n\r\n" + b"a" * 60000,
    "half-closed": None,
}


@pytest.mark.parametrize("how", FLOODS)
def test_a_thousand_connections(probe, how):
    """Bounded memory, and somebody honest is answered meanwhile; where all are being served, told to come again."""
    p = probe("header", 3000, "body", 3000)
    for _ in range(20):
        p.ask()
    before = p.rss()
    held = flood(p.port, 1000, FLOODS[how] or b"", how == "half-closed")
    began, seen = time.monotonic(), []
    while time.monotonic() - began < 30:
        seen.append(p.rss() - before)
        try:
            got = p.ask()
            if got.endswith(b"plain") or (how.startswith("held") and got.startswith(b"HTTP/1.1 503 ")):
                break
        except ConnectionError:
            pass
        time.sleep(0.2)
    else:
        pytest.fail("an honest client was not served")
    if not SANITIZED:
        assert max(seen) < GROWTH, seen
    for s in held:
        s.close()


def test_a_thousand_connections_by_tls(probe, certs, trust):
    p = start_tls(probe, certs, "header", 3000)
    for _ in range(20):
        p.ask(tls=trust, name="good.test")
    before = p.rss()
    held = flood(p.port, 1000, bytes.fromhex("1603010200010001fc0303"))
    seen = [p.rss() - before]
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            assert p.ask(tls=trust, name="good.test").endswith(b" tls")
            break
        except OSError:
            time.sleep(0.2)
    else:
        pytest.fail("an honest client was not served")
    if not SANITIZED:
        assert max(seen) < GROWTH, seen
    for s in held:
        s.close()


def test_a_client_that_vanished_is_noticed(probe):
    """While it waits for an answer: the kernel asks after it."""
    p = probe()
    with p.connect() as s:
        s.sendall(b"GET /local/hold HTTP/1.1\r\nHost: a\r\n\r\n")
        ours = f"0100007F:{p.port:04X}", f"0100007F:{s.getsockname()[1]:04X}"
        end = time.monotonic() + 20
        while time.monotonic() < end:  # an acknowledgement may have its own timer first
            rows = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
            timers = [r[5].split(":")[0] for r in rows if tuple(r[1:3]) == ours]
            if timers == ["02"]:
                return
            time.sleep(0.1)
        pytest.fail(f"no keepalive: {timers}")


def test_idle_tls_connections_need_little(probe, certs, trust):
    p = start_tls(probe, certs, "max-connections", 100)
    for _ in range(20):
        p.ask(tls=trust, name="good.test")
    before = p.rss()
    held = [p.connect(trust, "good.test") for _ in range(100)]
    for s in held:
        s.sendall(PEER)
        read_answer(s)
    if not SANITIZED:
        assert p.rss() - before < GROWTH, p.rss() - before
    for s in held:
        s.close()


def test_beyond_the_cap(probe):
    """The answer says when to come again, and the longest idle makes room."""
    p = probe("max-connections", 3)
    busy = [p.connect() for _ in range(2)]
    for s in busy:
        s.sendall(b"GET /local/hold HTTP/1.1\r\nHost: a\r\n\r\n")
    idle = p.connect()
    idle.sendall(PEER)
    read_answer(idle)
    with p.connect() as s:
        s.sendall(POST + b"Content-Length: 50000\r\n\r\n" + b"x" * 50000)
        got = read_to_end(s)
    assert got.startswith(b"HTTP/1.1 503 ") and b"Retry-After: 1\r\n" in got and b"Connection: close\r\n" in got
    time.sleep(1.2)
    assert p.ask().endswith(b"plain")
    assert read_to_end(idle) == b""


def test_a_streamed_body_that_trickles(probe, upstream):
    """Less than a KiB in a time-out is no progress, however many bytes come."""
    url, _ = upstream(lambda conn: conn.request())
    p = probe("upstream", url, "body", 600)
    began = time.monotonic()
    with p.connect() as s:
        s.sendall(b"POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n")
        s.settimeout(0.05)
        got = b""
        while not got and time.monotonic() - began < 20:
            try:
                s.sendall(b"x")
                got = s.recv(4096)
            except TimeoutError:
                pass
    assert got.startswith(b"HTTP/1.1 408 ")
