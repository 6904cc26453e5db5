"""net/http_client through tests/net/probe-client, against peers that do as they should, and worse."""

import base64
import json
import os
import pathlib
import socket
import ssl
import subprocess
import time

import pytest
from peers import (Certificates, DeadPort, NameServer, Server, always, answer, find_program, free_port,
                   wait_for_port)

PROBE = pathlib.Path(os.environ.get("builddir", ".")).resolve() / "tests/net/probe-client"
OK = answer(b"fine", headers=["Content-Type: text/plain"])
PASSWORD = "s3cret-pass:word@"
LOGIN = "us%65r:s3cret-pass%3Aword%40"
PROXY_PASSWORD = "pl41nProxyS3cret"  # tinyproxy takes letters and digits only
PROXY_LOGIN = f"user:{PROXY_PASSWORD}"


def basic(password):
    return base64.b64encode(f"user:{password}".encode()).decode()


def ask(*args, dns=None, log=False, hosts=None):
    """Runs the probe; returns its answers. Neither output may show a secret, and the probe must end well."""
    env = dict(os.environ)
    if dns:
        env["PROBE_DNS"] = dns.address
    if hosts:
        env["CARES_HOSTS"] = str(hosts)
    p = subprocess.run([PROBE, *map(str, args)], capture_output=True, timeout=60, env=env)
    assert p.returncode == 0, p.stderr.decode()
    for secret in (PASSWORD, LOGIN, basic(PASSWORD), PROXY_PASSWORD, basic(PROXY_PASSWORD), "123:TOKEN"):
        assert secret.encode() not in p.stdout + p.stderr
    answers = [json.loads(line) for line in p.stdout.decode(errors="replace").splitlines()]
    return (answers, p.stderr.decode()) if log else answers


@pytest.fixture
def serve():
    """serve(script, ...) starts a Server that ends with the test."""
    started = []

    def start(script, **kw):
        started.append(Server(script, **kw))
        return started[-1]

    yield start
    for s in started:
        s.close()


@pytest.fixture
def names():
    started = []

    def start(table):
        started.append(NameServer(table))
        return started[-1]

    yield start
    for s in started:
        s.close()


@pytest.fixture(scope="module")
def certs(tmp_path_factory):
    return Certificates(tmp_path_factory.mktemp("certs"))


def url(server, host="127.0.0.1", scheme="http"):
    return f"{scheme}://{host}:{server.port}"


# ---- requests and answers ---------------------------------------------------------------------------------------------


def test_a_plain_request(serve):
    s = serve(always(OK))
    (a,) = ask("header", "X-One:1", "body", "hello", url(s) + "/base/", "POST", "/path?q=1")
    assert (a["fail"], a["status"], a["body"], a["content_type"]) == ("ok", 200, "fine", "text/plain")
    assert a["complete"] and a["sent"] and not a["reused"] and a["retry_after_s"] == -1
    head, body = s.requests[0].split(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /base/path?q=1 HTTP/1.1"
    assert f"Host: 127.0.0.1:{s.port}" in lines and "X-One: 1" in lines and "Content-Length: 5" in lines
    assert "Accept-Encoding: identity" in lines and "Connection: keep-alive" in lines and body == b"hello"
    assert any(line.startswith("User-Agent: tgspool/") for line in lines)


def test_login_in_the_url(serve):
    s = serve(always(OK))
    ask(f"http://{LOGIN}@127.0.0.1:{s.port}", "GET", "/")
    assert b"Authorization: Basic " + basic(PASSWORD).encode() in s.requests[0]


def test_keep_alive(serve):
    s = serve(always(OK))
    for how in ("0", "1"):
        answers = ask("in-callback", how, url(s), *["GET", "/"] * 3)
        assert [a["reused"] for a in answers] == [False, True, True]
    assert s.connections == 2


def test_a_connection_is_not_kept_when_the_server_says_so(serve):
    s = serve(always(answer(b"", headers=["Connection: close"])))
    assert [a["reused"] for a in ask(url(s), *["GET", "/"] * 2)] == [False, False]


def test_a_connection_with_something_left_on_it_is_not_kept(serve):
    s = serve(always(OK + b"HTTP/1.1 200 OK\r\n"))
    answers = ask(url(s), *["GET", "/"] * 2)
    assert [(a["fail"], a["reused"]) for a in answers] == [("ok", False)] * 2


def test_chunked_interim_and_bodiless(serve):
    def script(conn):
        conn.request()
        conn.send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for piece in (b"3\r\nabc\r\n", b"4;x=y\r\ndefg\r\n", b"0\r\n\r\n"):
            conn.send(piece)
        conn.request()
        conn.send(b"HTTP/1.1 204 No Content\r\n\r\n")
        conn.request()
        conn.send(OK)

    answers = ask(url(serve(script)), *["GET", "/"] * 3)
    assert [(a["status"], a["body"], a["complete"]) for a in answers] == \
        [(200, "abcdefg", True), (204, "", True), (200, "fine", True)]
    assert answers[2]["reused"]


def test_an_answer_until_the_connection_ends(serve):
    def script(conn):
        conn.request()
        conn.send(answer(b"all of it", length=False))

    (a,) = ask(url(serve(script)), "GET", "/")
    assert (a["fail"], a["body"], a["complete"]) == ("ok", "all of it", False)


def test_errors_and_retry_after_are_answers(serve):
    (a,) = ask(url(serve(always(answer(b"{}", "429 Too Many Requests", ["Retry-After: 17"])))), "GET", "/")
    assert (a["fail"], a["status"], a["retry_after_s"]) == ("ok", 429, 17)


def test_large_bodies_both_ways(serve):
    s = serve(always(answer(b"y" * 3_000_000)))
    (a,) = ask("max-body", 4_000_000, "body-size", 5_000_000, url(s), "POST", "/")
    assert (a["fail"], a["body_bytes"], a["sent"]) == ("ok", 3_000_000, True)
    assert s.requests[0].endswith(b"\r\n\r\n" + b"x" * 5_000_000)


def test_buffers_are_given_back(serve, certs):
    for tls, kind in ((None, "http"), (certs.server("good"), "https")):
        s = serve(always(answer(b"y" * 3_000_000)), tls=tls)
        answers = ask("ca", certs.ca, "max-body", 4_000_000, "body-size", 3_000_000, "idle", 50,
                      url(s, scheme=kind), *["POST", "/"] * 3)
        assert [(a["fail"], a["reused"]) for a in answers] == [("ok", False), ("ok", True), ("ok", True)]
        for a in answers[1:]:
            assert a["memory"] < answers[0]["memory"] + 150_000


@pytest.mark.parametrize("data", [answer(b"y" * 2000),
                                  b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" + b"y" * 2000,
                                  answer(b"y" * 2000, length=False)])
def test_an_answer_larger_than_allowed(serve, data):
    (a,) = ask("max-body", 1000, url(serve(always(data))), "GET", "/")
    assert a["fail"] == "bad-answer" and "too large" in a["error"]


def test_an_answer_that_is_not_http(serve):
    (a,) = ask(url(serve(always(b"SSH-2.0-OpenSSH\r\n\r\n"))), "GET", "/")
    assert a["fail"] == "bad-answer"


def test_an_early_refusal_is_read(serve):
    def script(conn):
        conn.sock.recv(1000)
        conn.send(answer(b"no", "413 Content Too Large", ["Connection: close"]))
        time.sleep(0.2)

    (a,) = ask("body-size", 20_000_000, url(serve(script)), "POST", "/")
    assert (a["fail"], a["status"], a["sent"]) == ("ok", 413, False)


def test_a_request_that_would_be_two_is_not_sent(serve):
    s = serve(always(OK))
    for args in (("GET", "/a b"), ("GET", "/a\r\nX: y"), ("G\nET", "/")):
        (a,) = ask(url(s), *args)
        assert a["fail"] == "bad-answer" and not a["sent"]
    (a,) = ask("header", "X:a\r\nY: b", url(s), "GET", "/")
    assert a["fail"] == "bad-answer" and s.connections == 0


def test_unix_socket(serve, tmp_path):
    path = str(tmp_path / "s")
    s = serve(always(OK), path=path)
    assert [a["body"] for a in ask("unix:" + path, *["GET", "/v1/status"] * 2)] == ["fine", "fine"]
    assert s.requests[0].startswith(b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n")
    (a,) = ask("unix:" + path + "-not", "GET", "/")
    assert a["fail"] == "refused" and "No such file" in a["error"]
    (a,) = ask("unix:/" + "x" * 200, "GET", "/")
    assert a["fail"] == "refused"


def test_options_that_are_wrong(tmp_path):
    not_pem = tmp_path / "not.pem"
    not_pem.write_text("hello")
    for args in (["socks5://h"], ["ftp://h"], ["h"], ["proxy", "unix:/x", "http://h"],
                 ["proxy", "https://h", "http://h"], ["proxy", f"http://{LOGIN}@h/path", "http://h"],
                 ["ca", tmp_path / "none", "https://h"], ["ca", not_pem, "https://h"]):
        (a,) = ask(*args)
        assert a["fail"] == "options" and a["exit_code"] in (66, 78) and a["error"]


# ---- broken connections -------------------------------------------------------------------------------------------------


def test_reset_before_an_answer(serve):
    def script(conn):
        conn.request()
        conn.reset()

    s = serve(script)
    (a,) = ask(url(s), "GET", "/")
    assert (a["fail"], a["sent"], a["reused"]) == ("reset", True, False) and s.connections == 1


def test_closed_before_an_answer(serve):
    (a,) = ask(url(serve(lambda conn: conn.request())), "GET", "/")
    assert a["fail"] == "reset" and "closed the connection without an answer" in a["error"]


@pytest.mark.parametrize("data", [answer(b"whole")[:-2], b"HTTP/1.1 200 OK\r\nConte",
                                  b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc"])
@pytest.mark.parametrize("by_reset", [False, True])
def test_cut_answers(serve, data, by_reset):
    def script(conn):
        conn.request()
        conn.send(data)
        time.sleep(0.1)
        if by_reset:
            conn.reset()

    (a,) = ask(url(serve(script)), "GET", "/")
    assert a["fail"] == "cut", a


def test_a_reused_connection_that_is_reset_is_made_anew(serve):
    def script(conn):
        conn.request()
        conn.send(OK)
        if conn.number == 1:
            conn.request()
            conn.reset()
        else:
            conn.request()
            conn.send(OK)

    s = serve(script)
    answers = ask("body", "x", url(s), *["POST", "/"] * 3)
    assert [(a["fail"], a["reused"]) for a in answers] == [("ok", False), ("ok", False), ("ok", True)]
    assert s.connections == 2 and len(s.requests) == 4


def test_it_is_made_anew_only_once(serve):
    def script(conn):
        if conn.number == 1:
            conn.request()
            conn.send(OK)
        conn.request()
        conn.reset()

    s = serve(script)
    answers = ask(url(s), *["GET", "/"] * 2)
    assert [a["fail"] for a in answers] == ["ok", "reset"] and s.connections == 2


def test_a_reset_after_the_first_byte_is_not_sent_again(serve):
    def script(conn):
        conn.request()
        conn.send(OK)
        conn.request()
        conn.send(b"H")

    s = serve(script)
    assert [a["fail"] for a in ask(url(s), *["GET", "/"] * 2)] == ["ok", "cut"] and s.connections == 1


def test_a_late_reset_is_not_sent_again(serve):
    def script(conn):
        conn.request()
        conn.send(OK)
        conn.request()
        time.sleep(5.5)

    s = serve(script)
    answers = ask(url(s), *["GET", "/"] * 2)
    assert [a["fail"] for a in answers] == ["ok", "reset"] and s.connections == 1
    assert answers[1]["reused"] and 5000 < answers[1]["waited_ms"] < 8000


def test_a_close_while_idle_is_noticed(serve):
    def script(conn):
        conn.request()
        conn.send(OK)

    s = serve(script)
    answers, log = ask("log", "1", "idle", 1000, url(s), *["GET", "/"] * 2, log=True)
    assert [(a["fail"], a["reused"]) for a in answers] == [("ok", False)] * 2
    assert "sending again" not in log and len(s.requests) == 2


def test_bytes_while_idle_end_the_connection(serve):
    def script(conn):
        conn.request()
        conn.send(OK)
        time.sleep(0.1)
        conn.send(OK)
        time.sleep(2)

    answers = ask("idle", 1000, url(serve(script)), *["GET", "/"] * 2)
    assert [(a["fail"], a["reused"]) for a in answers] == [("ok", False)] * 2


# ---- time ---------------------------------------------------------------------------------------------------------------


def test_deadline_without_an_answer(serve):
    def script(conn):
        conn.request()
        time.sleep(6)

    (a,) = ask("deadline", 1000, url(serve(script)), "GET", "/")
    assert a["fail"] == "timeout" and a["sent"] and a["took_ms"] < 5000 and "1s" in a["error"]


def test_deadline_within_a_dripping_answer(serve):
    def script(conn):
        conn.request()
        conn.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(100):
            conn.send(b"x")
            time.sleep(0.05)

    (a,) = ask("deadline", 1000, url(serve(script)), "GET", "/")
    assert a["fail"] == "timeout" and a["took_ms"] < 4000 and "within the answer" in a["error"]


def test_waited_time(serve):
    def script(conn):
        while conn.request():
            time.sleep(0.4)
            conn.send(OK)

    for a in ask(url(serve(script)), *["GET", "/"] * 2):
        assert 350 <= a["waited_ms"] < 3000


def test_cancel_and_free(serve):
    def script(conn):
        if conn.number == 1:
            conn.request()
            time.sleep(3)
        while conn.request():
            conn.send(OK)

    s = serve(script)
    answers = ask("cancel", 200, url(s), *["GET", "/"] * 2)
    assert [a["fail"] for a in answers] == ["cancelled", "ok"] and s.connections == 2
    (a,) = ask("free-in-callback", 1, url(s), *["GET", "/"] * 2)
    assert a["fail"] == "ok"


def test_cancel_while_connecting(names):
    dns = names({"slow.test": {"A": "silent", "AAAA": "silent"}})
    answers = ask("cancel", 100, "http://slow.test:1", "GET", "/", dns=dns)
    assert [a["fail"] for a in answers] == ["cancelled"]


# ---- names and addresses --------------------------------------------------------------------------------------------------


def test_refused():
    port = free_port()
    (a,) = ask(f"http://127.0.0.1:{port}", "GET", "/")
    assert a["fail"] == "refused" and "refused" in a["error"] and not a["sent"]


def test_names(serve, names):
    s = serve(always(OK))
    dns = names({"one.test": {"A": ["127.0.0.1"]}, "nothing.test": {}, "fails.test": {"A": "servfail", "AAAA": "servfail"}})
    assert ask(url(s, "one.test"), "GET", "/", dns=dns)[0]["fail"] == "ok"
    assert f"Host: one.test:{s.port}".encode() in s.requests[0]
    for name, text in (("unknown.test", "no such name"), ("nothing.test", "no address"), ("fails.test", "name server")):
        (a,) = ask(url(s, name), "GET", "/", dns=dns)
        assert a["fail"] == "resolve" and text in a["error"] and name in a["error"]


def test_each_connection_is_a_look_up(serve, names):
    s = serve(always(answer(headers=["Connection: close"])))
    dns = names({"one.test": {"A": ["127.0.0.1"]}})
    assert [a["fail"] for a in ask(url(s, "one.test"), *["GET", "/"] * 3, dns=dns)] == ["ok"] * 3
    assert dns.asked.count(("one.test", "A")) == 3


def test_hosts_file(serve, tmp_path, names):
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 home.test\n")
    dns = names({})
    (a,) = ask(url(serve(always(OK)), "home.test"), "GET", "/", hosts=hosts, dns=dns)
    assert a["fail"] == "ok" and ("home.test", "A") not in dns.asked


def test_ip_4_and_6(serve, names):
    s = serve(always(OK))
    dns = names({"dual.test": {"A": ["127.0.0.1"], "AAAA": ["::1"]}})
    assert ask("ip", 4, url(s, "dual.test"), "GET", "/", dns=dns)[0]["fail"] == "ok"
    assert {kind for _, kind in dns.asked} == {"A"}
    (a,) = ask("ip", 6, url(s, "dual.test"), "GET", "/", dns=dns)
    assert a["fail"] == "refused" and "::1" in a["error"]
    (a,) = ask("ip", 6, url(s), "GET", "/")
    assert a["fail"] == "resolve" and "no IPv6 address" in a["error"]


def test_ipv6_is_preferred(serve, names):
    six = serve(always(answer(b"six")), family=socket.AF_INET6, address="::1", port=free_port())
    serve(always(answer(b"four")), port=six.port)
    dns = names({"dual.test": {"A": ["127.0.0.1"], "AAAA": ["::1"]},
                 "later.test": {"A": ["127.0.0.1"], "AAAA": (6, ["::1"])}})
    assert ask(url(six, "dual.test"), "GET", "/", dns=dns)[0]["body"] == "six"
    (a,) = ask(url(six, "later.test"), "GET", "/", dns=dns)
    assert a["body"] == "four" and a["took_ms"] < 5000
    assert ask(url(six, "[::1]"), "GET", "/")[0]["body"] == "six"


def test_no_answer_for_ipv6(serve, names):
    s = serve(always(OK))
    dns = names({"half.test": {"A": ["127.0.0.1"], "AAAA": "silent"}, "fails.test": {"A": ["127.0.0.1"], "AAAA": "servfail"}})
    for name in ("half.test", "fails.test"):
        (a,) = ask(url(s, name), "GET", "/", dns=dns)
        assert a["fail"] == "ok" and a["took_ms"] < 3000


def test_no_name_server():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as deaf:
        deaf.bind(("127.0.0.1", 0))

        class Deaf:
            address = "127.0.0.1:%d" % deaf.getsockname()[1]

        (a,) = ask("connect", 500, "http://some.test", "GET", "/", dns=Deaf)
    assert a["fail"] == "resolve" and "no name server answered" in a["error"] and a["took_ms"] < 2000


def test_a_dead_ipv6_address_beside_a_living_ipv4_one(serve, names):
    s = serve(always(OK), port=free_port())
    dead = DeadPort(socket.AF_INET6, "::1", s.port)
    dns = names({"dual.test": {"A": ["127.0.0.1"], "AAAA": ["::1"]}})
    (a,) = ask(url(s, "dual.test"), "GET", "/", dns=dns)
    dead.close()
    assert a["fail"] == "ok" and 240 <= a["took_ms"] < 5000


def test_refused_addresses_cost_no_time(serve, names):
    s = serve(always(OK), port=free_port())
    dns = names({"many.test": {"A": [*(f"127.0.0.{i}" for i in range(2, 14)), "127.0.0.1"], "AAAA": ["::1"]}})
    (a,) = ask(url(s, "many.test"), "GET", "/", dns=dns)
    assert a["fail"] == "ok" and a["took_ms"] < 3000  # 250 ms each would be more


def test_connect_timeout(names):
    port = free_port()
    dead = DeadPort(socket.AF_INET, "127.0.0.1", port)
    (a,) = ask("connect", 400, f"http://127.0.0.1:{port}", "GET", "/")
    dead.close()
    assert a["fail"] == "refused" and "400ms" in a["error"] and a["took_ms"] < 2000


# ---- TLS ------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def good_test(names):
    return names({"good.test": {"A": ["127.0.0.1"]}, "a.b.another.test": {"A": ["127.0.0.1"]},
                  "b.another.test": {"A": ["127.0.0.1"]}})


def test_tls(serve, certs, good_test):
    resumed = []

    def script(conn):
        resumed.append(conn.sock.session_reused)
        for _ in range(2):
            conn.request()
            conn.send(OK)
        conn.sock.unwrap()

    s = serve(script, tls=certs.server("good"))
    answers = ask("ca", certs.ca, "idle", 100, url(s, "good.test", "https"), *["GET", "/"] * 4, dns=good_test)
    assert [(a["fail"], a["reused"]) for a in answers] == [("ok", False), ("ok", True)] * 2
    assert resumed == [False, True]
    assert ask("ca", certs.ca, url(s, scheme="https"), "GET", "/")[0]["fail"] == "ok"  # an address in the certificate
    assert ask("ca", certs.ca, url(s, "good.test.", "https"), "GET", "/", dns=good_test)[0]["fail"] == "ok"


def test_tls_names_the_host_it_wants(serve, certs, good_test):
    wanted = []
    context = certs.server("good")
    context.sni_callback = lambda sock, name, ctx: wanted.append(name)
    s = serve(always(OK), tls=context)
    ask("ca", certs.ca, url(s, "good.test", "https"), "GET", "/", dns=good_test)
    ask("ca", certs.ca, url(s, scheme="https"), "GET", "/")
    assert wanted == ["good.test", None]


def test_tls_large_bodies(serve, certs):
    s = serve(always(answer(b"y" * 3_000_000)), tls=certs.server("good"))
    (a,) = ask("ca", certs.ca, "max-body", 4_000_000, "body-size", 5_000_000, url(s, scheme="https"), "POST", "/")
    assert (a["fail"], a["body_bytes"]) == ("ok", 3_000_000)
    assert s.requests[0].endswith(b"\r\n\r\n" + b"x" * 5_000_000)


@pytest.mark.parametrize("cert, host, texts", [
    ("other", "good.test", ["good.test", "other.test", "another.test"]),
    ("other", "127.0.0.1", ["127.0.0.1", "other.test"]),
    ("other", "a.b.another.test", ["a.b.another.test", "other.test"]),
    ("expired", "good.test", ["expired", "good.test", "renewed", "clock"]),
    ("self", "good.test", ["self-signed", "ca_file"]),
])
def test_tls_certificates_that_are_refused(serve, certs, good_test, cert, host, texts):
    s = serve(always(OK), tls=certs.server(cert))
    (a,) = ask("ca", certs.ca, url(s, host, "https"), "GET", "/", dns=good_test)
    assert a["fail"] == "tls" and not a["sent"] and s.requests == []
    for text in texts:
        assert text in a["error"]


def test_tls_wildcard(serve, certs, good_test):
    s = serve(always(OK), tls=certs.server("other"))
    assert ask("ca", certs.ca, url(s, "b.another.test", "https"), "GET", "/", dns=good_test)[0]["fail"] == "ok"


def test_tls_a_signer_beside_those_of_the_system(serve, certs, good_test):
    s = serve(always(OK), tls=certs.server("good"))
    assert ask("also-ca", certs.ca, url(s, "good.test", "https"), "GET", "/", dns=good_test)[0]["fail"] == "ok"
    other = serve(always(OK), tls=certs.server("self"))
    (a,) = ask("also-ca", certs.ca, url(other, "good.test", "https"), "GET", "/", dns=good_test)
    assert a["fail"] == "tls" and other.requests == []


def test_tls_unknown_signer(serve, certs, good_test):
    s = serve(always(OK), tls=certs.server("good"))
    (a,) = ask(url(s, "good.test", "https"), "GET", "/", dns=good_test)
    assert a["fail"] == "tls" and "signed by none" in a["error"] and "ca_file" in a["error"]


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
def test_tls_too_old(serve, certs):
    s = serve(always(OK), tls=certs.server("good", ssl.TLSVersion.TLSv1_1))
    (a,) = ask("ca", certs.ca, url(s, scheme="https"), "GET", "/")
    assert a["fail"] == "tls" and "TLS 1.2" in a["error"]


def test_tls_of_a_server_without(serve, certs):
    (a,) = ask("ca", certs.ca, "connect", 300, url(serve(always(OK)), scheme="https"), "GET", "/")
    assert a["fail"] == "tls"
    (a,) = ask("ca", certs.ca, url(serve(lambda conn: conn.send(OK)), scheme="https"), "GET", "/")
    assert a["fail"] == "tls" and "does not speak TLS" in a["error"]
    (a,) = ask("ca", certs.ca, url(serve(lambda conn: conn.sock.recv(1) and conn.reset()), scheme="https"), "GET", "/")
    assert a["fail"] == "tls"
    (a,) = ask("ca", certs.ca, "connect", 300, url(serve(lambda conn: time.sleep(2)), scheme="https"), "GET", "/")
    assert a["fail"] == "tls" and "300ms" in a["error"]


def test_tls_that_ends_without_farewell(serve, certs):
    def cut(conn):
        conn.request()
        conn.send(answer(b"part", length=False))
        time.sleep(0.1)
        os.close(conn.sock.detach())

    (a,) = ask("ca", certs.ca, url(serve(cut, tls=certs.server("good")), scheme="https"), "GET", "/")
    assert a["fail"] == "cut"


def test_tls_reset_of_a_reused_connection(serve, certs):
    def script(conn):
        conn.request()
        conn.send(OK)
        if conn.number == 1:
            conn.request()
            os.close(conn.sock.detach())

    s = serve(script, tls=certs.server("good"))
    answers = ask("ca", certs.ca, url(s, scheme="https"), *["GET", "/"] * 2)
    assert [(a["fail"], a["reused"]) for a in answers] == [("ok", False)] * 2


# ---- proxies --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def proxies(tmp_path):
    """proxies(name) starts tinyproxy or microsocks with a user and a password; returns the port. proxies.kill()."""
    running = []

    def start(name):
        program, port = find_program(name), free_port()
        if not program:
            pytest.skip(f"no {name}: install it")
        if name == "tinyproxy":
            conf = tmp_path / "tinyproxy.conf"
            conf.write_text(f'Port {port}\nListen 127.0.0.1\nTimeout 60\nMaxClients 20\nAllow 127.0.0.1\n'
                            f'BasicAuth user {PROXY_PASSWORD}\nLogFile "{tmp_path}/log"\n')
            args = [program, "-d", "-c", str(conf)]
        else:
            args = [program, "-i", "127.0.0.1", "-p", str(port), "-u", "user", "-P", PROXY_PASSWORD]
        running.append(subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        wait_for_port(port, running[-1])
        return port

    def kill():
        for p in running:
            p.kill()
            p.wait()

    start.kill = kill
    yield start
    kill()


REAL = [("tinyproxy", "http"), ("microsocks", "socks5"), ("microsocks", "socks5h")]


@pytest.mark.parametrize("program, scheme", REAL)
def test_through_a_real_proxy(serve, certs, proxies, names, program, scheme):
    port = proxies(program)
    plain, tls = serve(always(OK)), serve(always(OK), tls=certs.server("good"))
    proxy = ("proxy", f"{scheme}://{PROXY_LOGIN}@127.0.0.1:{port}")
    for s, kind in ((plain, "http"), (tls, "https")):
        answers = ask("log", 1, "ca", certs.ca, *proxy, url(s, scheme=kind), *["GET", "/x"] * 3)
        assert [(a["fail"], a["reused"]) for a in answers] == [("ok", False), ("ok", True), ("ok", True)]
    assert plain.requests[0].startswith(b"GET /x HTTP/1.1\r\n")  # the proxy's login is not for the target
    assert b"Basic" not in plain.requests[0]
    # who resolves
    dns = names({"good.test": {"A": ["127.0.0.1"]}, "localhost.test": {"A": ["127.0.0.1"]}})
    (a,) = ask("ca", certs.ca, *proxy, url(tls, "good.test", "https"), "GET", "/", dns=dns)
    if scheme == "socks5":
        assert a["fail"] == "ok" and ("good.test", "A") in dns.asked
    else:
        assert a["fail"] == "proxy" and dns.asked == []
        assert ask(*proxy, url(plain, "localhost"), "GET", "/", dns=dns)[0]["fail"] == "ok"
    assert dns.asked == [] or scheme == "socks5"


@pytest.mark.parametrize("program, scheme", REAL)
@pytest.mark.parametrize("login", ["user:wr0ng-passw0rd@", ""])
def test_a_wrong_password_for_a_real_proxy(serve, proxies, program, scheme, login):
    s = serve(always(OK))
    (a,) = ask("proxy", f"{scheme}://{login}127.0.0.1:{proxies(program)}", url(s), "GET", "/")
    assert a["fail"] == "proxy" and a["proxy_auth"] and "password" in a["error"] and s.connections == 0
    assert "wr0ng" not in a["error"]


@pytest.mark.parametrize("program, scheme", REAL)
def test_a_real_proxy_and_a_dead_target(proxies, program, scheme):
    proxy = f"{scheme}://{PROXY_LOGIN}@127.0.0.1:{proxies(program)}"
    (a,) = ask("proxy", proxy, f"http://127.0.0.1:{free_port()}", "GET", "/")
    assert a["fail"] == "proxy" and not a["proxy_auth"] and "127.0.0.1" in a["error"]


@pytest.mark.parametrize("program, scheme", REAL)
def test_a_real_proxy_is_killed(serve, proxies, program, scheme):
    port = proxies(program)

    def script(conn):
        conn.request()
        conn.send(OK)
        conn.request()
        proxies.kill()

    answers = ask("proxy", f"{scheme}://{PROXY_LOGIN}@127.0.0.1:{port}", url(serve(script)), *["GET", "/"] * 3)
    # the second meets the kill on its reused connection, so it goes out again, to nobody
    assert [a["fail"] for a in answers] == ["ok", "proxy", "proxy"]
    assert all("proxy" in a["error"] for a in answers[1:])


@pytest.mark.parametrize("scheme", ["http", "socks5", "socks5h"])
def test_proxies_that_misbehave(serve, scheme):
    def run(script, *args):
        s = serve(script)
        (a,) = ask("connect", 500, *args, "proxy", f"{scheme}://{LOGIN}@127.0.0.1:{s.port}", "http://127.0.0.1:9", "GET", "/")
        assert a["fail"] == "proxy" and not a["sent"], a
        return a

    run(lambda conn: None)
    run(lambda conn: conn.send(b"\x00\x01\x02nonsense\r\n\r\n"))
    run(lambda conn: conn.send(b"HTTP/1.1 403 Forbidden\r\n\r\n") or time.sleep(0.2))
    run(lambda conn: conn.send(b"\x05\xff") or time.sleep(0.2))
    run(lambda conn: conn.send(b"HTTP/1.1 200 OK\r\n\r\nmore") or time.sleep(0.2))
    run(lambda conn: conn.send(b"\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00more") or time.sleep(0.2))
    assert "500ms" in run(lambda conn: time.sleep(2))["error"]
    (a,) = ask("proxy", f"{scheme}://127.0.0.1:{free_port()}", "http://127.0.0.1:9", "GET", "/")
    assert a["fail"] == "proxy" and "proxy" in a["error"]


def test_socks5_tries_the_next_address(serve, names):
    wanted = []

    def script(conn):
        conn.sock.recv(100)
        conn.send(b"\x05\x00")
        wanted.append(conn.sock.recv(100)[3:8])
        if len(wanted) == 1:
            conn.send(b"\x05\x05\x00\x01\x00\x00\x00\x00\x00\x00")
        else:
            conn.send(b"\x05\x00\x00\x03\x02ab\x00\x00")
            always(OK)(conn)

    dns = names({"two.test": {"A": ["127.0.0.8", "127.0.0.9"]}})
    (a,) = ask("proxy", f"socks5://127.0.0.1:{serve(script).port}", "http://two.test", "GET", "/", dns=dns)
    assert a["fail"] == "ok" and sorted(wanted) == [b"\x01\x7f\0\0\x08", b"\x01\x7f\0\0\x09"]
    (a,) = ask("proxy", "socks5://127.0.0.1:9", "http://unknown.test", "GET", "/", dns=dns)
    assert a["fail"] == "resolve"


# ---- secrets --------------------------------------------------------------------------------------------------------------


def test_a_secret_path_is_not_shown(serve):
    s = serve(always(OK))
    args = ("log", 1, "secret", 1, url(s), "GET", "/bot123:TOKEN/getMe")
    answers, log = ask(*args, log=True)  # ask() looks for it
    assert answers[0]["fail"] == "ok" and "secret path" in log
    answers, log = ask("log", 1, "secret", 1, f"http://127.0.0.1:{free_port()}", "GET", "/bot123:TOKEN/x", log=True)
    assert answers[0]["fail"] == "refused" and "secret path" in log
