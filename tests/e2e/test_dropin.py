"""The drop-in Bot API by hand: what a library could ask, and what it must get."""
import http.client
import http.server
import json
import os
import signal
import socket
import threading
import time
import zlib

import pytest

from harness import TOKEN, free_port, wait_until

ALIAS = "123456:shop-by-another-name-for-its-program"
MIB = 1 << 20


class Client:
    """Asks the drop-in listener, over one connection."""

    def __init__(self, port, token=TOKEN, timeout=30):
        self.token = token
        self.c = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)

    def send(self, method, **args):
        self.c.request("POST", f"/bot{self.token}/{method}", json.dumps(args), {"Content-Type": "application/json"})

    def read(self):
        r = self.c.getresponse()
        return r.status, json.loads(r.read())

    def call(self, method, **args):
        self.send(method, **args)
        return self.read()

    def get(self, **args):
        status, answer = self.call("getUpdates", **args)
        assert status == 200, answer
        return answer["result"]

    def ids(self, **args):
        return [u["update_id"] for u in self.get(**args)]


@pytest.fixture
def rig(spool, api):
    """A daemon with a drop-in listener that is not started yet; `spool.port` is the listener's."""
    spool.port = free_port()
    spool.configure(listen={"dropin": f"127.0.0.1:{spool.port}"}, deliver="dropin",
                    dropin_token_file=spool.write("alias", ALIAS))
    return spool


def start(rig, api, count=0, **args):
    rig.start()
    if count:
        api.generate(count, **args)
        wait_until(lambda: rig.counts()["since_made"]["received"] >= count, "updates in the spool")
    return Client(rig.port)


# ---- offsets

def test_offsets_confirm_what_was_given_and_nothing_else(rig, api):
    bot = start(rig, api, 5)
    first = bot.ids()
    assert len(first) == 5 and first == sorted(first)
    assert bot.ids(offset=0) == first, "without an offset nothing is confirmed"
    assert bot.ids(offset=first[0]) == first, "nor by the first one's own id"
    assert bot.ids(offset=first[2]) == first[2:]
    assert rig.counts()["done"] == 2
    assert bot.ids(offset=first[0]) == first[2:], "what is done stays so"
    assert bot.ids(offset=first[4] + 1000) == first[2:], "an offset from the future confirms nothing"
    assert bot.ids(offset=first[4] + 1) == []
    rig.wait_counts(done=5, pending=0, processing=0)


def test_an_offset_does_not_confirm_what_was_never_given(rig, api):
    bot = start(rig, api, 10)
    first = bot.ids(limit=3)
    assert len(first) == 3
    assert len(bot.ids(offset=first[2] + 5, limit=100)) == 7
    assert rig.counts()["done"] == 3


def test_limit_and_timeout_are_clamped(rig, api):
    bot = start(rig, api, 120)
    assert len(bot.ids(limit=0)) == 1
    assert len(bot.ids(limit=-7)) == 1
    assert len(bot.ids(limit=1000)) == 100
    assert bot.ids(offset=2, timeout=-5)


def test_a_negative_offset_leaves_the_last_and_discards_the_rest(rig, api):
    bot = start(rig, api, 450)
    first = bot.ids(limit=2)
    last = bot.ids(offset=-3)
    assert len(last) == 3 and last[0] > first[1]
    rig.wait_counts(dead=447)
    dead = rig.events(state="dead", limit=1)[0]
    assert dead["reason"] == "discarded"
    assert bot.ids(offset=last[2] + 1) == []
    assert rig.counts()["done"] == 3
    assert api.state()["confirmed"] == 450, "nothing was thrown away at Telegram's"


def test_ids_only_grow_and_the_rest_of_the_bytes_stays(rig, api):
    bot = start(rig, api)
    api.control("next_id", id=700000000)
    api.inject_message(1, "high")
    high = bot.get(timeout=10)[0]
    assert high["update_id"] == 700000000
    wait_until(lambda: api.state()["queued"] == 0, "confirmed at Telegram's")
    api.control("next_id", id=1000)
    api.inject_raw(b'{"x":{"update_id":7}, "update_id" : @ID@ ,\n"message":{"message_id":1,"chat":{"id":1},"text":"\xff"}}')
    bot.send("getUpdates", offset=700000001, timeout=10)
    body = bot.c.getresponse().read()
    assert b'[{"x":{"update_id":7}, "update_id" : 700000001 ,\n"message"' in body and b'"text":"\xff"}}]' in body
    api.inject_message(1, "low again")
    assert bot.ids(offset=700000002, timeout=10) == [700000002]


def test_what_was_not_confirmed_comes_again_after_a_kill(rig, api):
    bot = start(rig, api, 6)
    first = bot.ids(limit=4)
    assert bot.ids(offset=first[1], limit=2) == first[1:3]
    rig.kill()
    rig.start()
    bot = Client(rig.port)
    again = bot.ids()
    assert again[:3] == first[1:] and len(again) == 5
    assert bot.ids(offset=again[-1] + 1) == []
    rig.wait_counts(done=6)


# ---- waiting

def test_a_poll_waits_and_is_woken_at_once(rig, api):
    bot = start(rig, api)
    began = time.monotonic()
    assert bot.get(timeout=1) == []
    assert 0.9 < time.monotonic() - began < 5
    bot.send("getUpdates", timeout=20)
    wait_until(lambda: rig.counts()["consumer"]["waiting"], "the poll waits")
    began = time.monotonic()
    api.inject_message(5, "now")
    assert bot.read()[1]["result"][0]["message"]["text"] == "now"
    assert time.monotonic() - began < 2


def test_of_two_polls_the_older_gets_the_conflict(rig, api):
    old, new = start(rig, api), Client(rig.port)
    old.send("getUpdates", timeout=20)
    wait_until(lambda: rig.counts()["consumer"]["waiting"], "the first poll waits")
    assert new.get(timeout=0) == [], "one that does not wait disturbs nobody"
    new.send("getUpdates", timeout=20)
    status, answer = old.read()
    assert (status, answer["error_code"]) == (409, 409)
    assert answer["description"] == ("Conflict: terminated by other getUpdates request; make sure that only one bot "
                                     "instance is running")
    api.inject_message(5, "for the newer")
    assert len(new.read()[1]["result"]) == 1


def test_a_client_that_left_takes_nothing_with_it(rig, api):
    gone, bot = start(rig, api), Client(rig.port)
    gone.send("getUpdates", timeout=20)
    wait_until(lambda: rig.counts()["consumer"]["waiting"], "the poll waits")
    gone.c.close()
    wait_until(lambda: not rig.counts()["consumer"]["waiting"], "it is forgotten")
    api.inject_message(5, "for the next")
    assert len(bot.get(timeout=10)) == 1
    assert "second program" not in rig.log()


def test_stopping_confirms_and_says_come_again(rig, api):
    bot = start(rig, api, 3)
    ids = bot.ids()
    other = Client(rig.port)
    other.send("getUpdates", offset=ids[-1] + 1, timeout=30)
    rig.wait_counts(done=3)
    rig.process.terminate()
    status, answer = other.read()
    assert (status, answer["ok"]) == (502, False)
    rig.stop()


# ---- arguments, paths, tokens

def test_every_way_to_pass_arguments(rig, api):
    bot = start(rig, api, 9)
    first = bot.ids(limit=9)
    seen = 0

    def ask(method, path, body=None, type=None):
        bot.c.request(method, f"/bot{TOKEN}{path}", body, {"Content-Type": type} if type else {})
        r = bot.c.getresponse()
        return [u["update_id"] for u in json.loads(r.read())["result"]]

    form = "multipart/form-data; boundary=xx"
    part = '--xx\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
    ways = [
        ("GET", "/getUpdates?limit=1&offset={}"),
        ("POST", "/GETUPDATES?offset={}", "limit=1", "application/x-www-form-urlencoded"),
        ("POST", "/getupdates?limit=1", '{{"limit":50,"offset":"{}"}}', "application/json"),
        ("POST", "/getUpdates", part.format("limit", 1) + part.format("offset", "{}") + "--xx--\r\n", form),
        ("GET", "/get%55pdates?limit=1&offset={}"),
        ("POST", "/test/getUpdates?limit=1&offset={}"),
    ]
    for way in ways:
        seen += 1
        args = [a.format(first[seen]) if isinstance(a, str) else a for a in way]
        assert ask(*args) == [first[seen]], way


def test_tokens_and_paths(rig, api):
    start(rig, api)
    assert Client(rig.port, ALIAS).call("getUpdates")[0] == 200
    status, answer = Client(rig.port, ALIAS).call("getMe")
    assert status == 200 and answer["result"]["id"] == 123456, "the alias is not what upstream was told"
    for token in (TOKEN[:-1], TOKEN + "x", ALIAS + "x", "", "123456:nonsense"):
        status, answer = Client(rig.port, token).call("getMe")
        assert (status, answer) == (401, {"ok": False, "error_code": 401, "description": "Unauthorized"})
    bot = Client(rig.port)
    for path in ("/", f"/bot{TOKEN}", f"/bot{TOKEN}/", f"/bot{TOKEN}//getUpdates", f"/v1/status",
                 f"/file/bot{TOKEN}/../bot{TOKEN}/getUpdates"):
        bot.c.request("GET", path)
        r = bot.c.getresponse()
        assert (r.status, json.loads(r.read())["error_code"]) == (404, 404), path
    assert [q for q in api.log(method=None) if q["method"].lower() == "getme"]
    assert TOKEN not in rig.log() and ALIAS not in rig.log()


def test_bad_arguments(rig, api):
    bot = start(rig, api)
    for body in ("{", "[]", "nonsense"):
        bot.c.request("POST", f"/bot{TOKEN}/getUpdates", body, {"Content-Type": "application/json"})
        assert bot.read()[0] == 400
    bot.c.request("POST", f"/bot{TOKEN}/getUpdates", "x" * (2 * MIB), {"Content-Type": "application/json"})
    assert bot.c.getresponse().status == 413


# ---- reload

def reload(rig, **options):
    rig.configure(**options)
    seen = rig.log().count("reloaded ")
    rig.process.send_signal(signal.SIGHUP)
    wait_until(lambda: rig.log().count("reloaded ") > seen, "the reload")


def test_a_reload_keeps_what_was_given_and_takes_new_names(rig, api):
    bot = start(rig, api, 3)
    ids = bot.ids()
    other = ALIAS + "-2"
    reload(rig, dropin_token_file=rig.write("alias-2", other))
    assert Client(rig.port, ALIAS).call("getMe")[0] == 401
    assert Client(rig.port, other).ids() == ids
    assert bot.ids(offset=ids[1]) == ids[1:]
    waits = Client(rig.port)
    assert waits.ids(offset=ids[2] + 1) == []
    api.inject_message(1, "left for another")
    wait_until(lambda: rig.counts()["since_made"]["received"] == 4, "it arrives")
    assert len(waits.ids()) == 1
    rig.cli("pause", "shop", "deliver")
    waits.send("getUpdates", timeout=30)
    wait_until(lambda: rig.counts()["consumer"]["waiting"], "a poll waits")
    reload(rig, deliver="pull", dropin_token_file=None)
    status, answer = waits.read()
    assert (status, answer["error_code"]) == (409, 409)
    rig.cli("resume", "shop")
    claimed = rig.api("POST", "/v1/claim", {"bot": "shop", "wait": "10s"})[1]["events"]
    assert [e["update"]["message"]["text"] for e in claimed] == ["left for another"]


# ---- filters

def test_a_wanted_update_behind_many_unwanted_ones(rig, api):
    """More than a few batches of them: who waits gets it without waiting for the next to arrive, or for anything else
    that makes the daemon look."""
    bot = start(rig, api, 6500, chats=7, kinds=["message"])
    api.generate(1, kinds=["callback_query"])
    wait_until(lambda: rig.counts()["since_made"]["received"] == 6501, "it is in the spool")
    bot.c.timeout = 90
    got = bot.get(allowed_updates=["callback_query"], timeout=1)
    assert [list(u)[1] for u in got] == ["callback_query"]


def test_allowed_updates_filter_here_and_are_remembered(rig, api):
    bot = start(rig, api)
    api.generate(6, kinds=["message", "edited_message", "callback_query"])
    rig.wait_counts(pending=6)
    got = bot.get(allowed_updates=["callback_query", "chat_member"])
    assert [("callback_query" in u) for u in got] == [True, True]
    assert rig.counts()["done"] == 4, "what is not wanted is done"
    bot.get(allowed_updates=["callback_query", "chat_member"])
    assert rig.log().count("wants chat_member") == 1
    api.generate(2, kinds=["message", "callback_query"])
    wait_until(lambda: rig.counts()["since_made"]["received"] == 8, "two more")
    assert len(bot.get(offset=got[-1]["update_id"] + 1)) == 1, "the list is remembered"
    api.generate(2, kinds=["message", "callback_query"])
    wait_until(lambda: rig.counts()["since_made"]["received"] == 10, "two more")
    assert len(bot.get(allowed_updates=[])) == 3, "an empty list is Telegram's default"


# ---- methods about webhooks

def test_webhook_methods_are_answered_here(rig, api):
    bot = start(rig, api, 4)
    asked = len(api.log(method=None))
    assert bot.call("deleteWebhook") == (200, {"ok": True, "result": True,
                                               "description": "Webhook is already deleted"})
    assert bot.call("setWebhook")[1]["ok"] and bot.call("SETWEBHOOK", url="")[1]["ok"]
    status, answer = bot.call("setWebhook", url="https://example.org/x")
    assert (status, answer["error_code"]) == (400, 400) and "tgspool" in answer["description"]
    assert bot.call("getWebhookInfo")[1]["result"] == {"url": "", "has_custom_certificate": False,
                                                       "pending_update_count": 4}
    assert bot.call("logOut")[1]["result"] is True and bot.call("close")[1]["result"] is True
    assert {q["method"] for q in api.log(after=asked, method=None)} <= {"getUpdates"}
    assert bot.call("deleteWebhook", drop_pending_updates=True)[1]["ok"]
    assert bot.get() == []
    rig.wait_counts(dead=4)


def test_a_bot_that_is_delivered_otherwise(rig, api):
    rig.configure(deliver="http", url="http://127.0.0.1:9/hook")
    bot = start(rig, api, 1)
    status, answer = bot.call("getUpdates")
    assert status == 409 and answer["description"].startswith("Conflict: can't use getUpdates method while webhook")
    assert bot.call("setWebhook", url="https://example.org/x")[1]["description"] == "Webhook was set"
    assert bot.call("getWebhookInfo")[1]["result"]["url"] == "https://example.org/x"
    assert bot.call("deleteWebhook")[1]["description"] == "Webhook was deleted"
    assert bot.call("sendMessage", chat_id=7, text="hi")[1]["result"]["chat"]["id"] == 7
    assert rig.counts()["consumer"] is None


# ---- status

def test_status_counts_what_is_confirmed_and_perhaps_unhandled(rig, api):
    bot = start(rig, api, 3)
    bot.call("getMe")
    ids = bot.ids()
    bot.ids(offset=ids[-1] + 1)
    consumer = rig.counts()["consumer"]
    assert (consumer["confirmed"], consumer["confirmed_before"]) == (3, 0)
    bot = Client(rig.port)
    bot.call("getMe")
    bot.ids()
    consumer = rig.counts()["consumer"]
    assert (consumer["confirmed"], consumer["confirmed_before"]) == (0, 3)
    text = rig.cli("status", code=None)
    shown = text.stdout + text.stderr
    assert "3 confirmed, perhaps unhandled" in shown and "tgspool replay shop --state done --since 5m" in shown
    rig.cli("replay", "shop", "--state", "done", "--since", "5m")
    assert len(bot.ids()) == 3


# ---- what is passed on

class Upstream:
    """A Bot API server that is told by the path what to do; keeps what it was asked."""

    def __init__(self):
        self.asked, self.left = [], threading.Event()
        upstream = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def read_body(self):
                crc, left = 0, int(self.headers.get("Content-Length", 0))
                if self.headers.get("Transfer-Encoding") == "chunked":
                    while (n := int(self.rfile.readline(), 16)):
                        crc = zlib.crc32(self.rfile.read(n), crc)
                        self.rfile.readline()
                    self.rfile.readline()
                while left:
                    piece = self.rfile.read(min(left, MIB))
                    if not piece:
                        upstream.left.set()
                        break
                    crc = zlib.crc32(piece, crc)
                    left -= len(piece)
                return crc

            def answer(self):
                body = self.read_body()
                upstream.asked.append((self.command, self.path, dict(self.headers.items()), body))
                if self.path.startswith("/file/"):
                    self.send_response(206 if "Range" in self.headers else 200)
                    size = int(self.path.rpartition("/")[2])
                    self.send_header("Content-Length", str(size))
                    self.send_header("Content-Type", "image/x-test")
                    self.send_header("Connection", "keep-alive, X-Hop")
                    self.send_header("X-Hop", "1")
                    self.end_headers()
                    piece = b"\x00\xff" * (MIB // 2)
                    try:
                        for at in range(0, size, MIB):
                            self.wfile.write(piece[:min(MIB, size - at)])
                    except OSError:
                        upstream.left.set()
                elif "hang" in self.path:
                    if not self.connection.recv(1):
                        upstream.left.set()
                elif "cut" in self.path:
                    self.send_response(200)
                    self.send_header("Content-Length", "1000")
                    self.end_headers()
                    self.wfile.write(b"{")
                    self.close_connection = True
                elif "nonsense" in self.path:
                    self.wfile.write(b"no http at all\r\n\r\n")
                    self.close_connection = True
                else:
                    text = json.dumps({"ok": True, "result": body}).encode()
                    self.send_response(200)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(text)))
                    self.end_headers()
                    if self.command != "HEAD":
                        self.wfile.write(text)

            do_GET = do_POST = do_HEAD = answer

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def relay(make_spool):
    """A daemon in front of an Upstream, which polls nothing."""
    upstream = Upstream()
    spool = make_spool()
    spool.port = free_port()
    spool.upstream = upstream
    spool.add_bot("shop", api_root=upstream.url, intake="none", deliver="dropin",
                  dropin_token_file=spool.write("alias", ALIAS))
    spool.configure(listen={"dropin": f"127.0.0.1:{spool.port}"})
    # where memory is measured, a sanitizer must not keep what was freed
    spool.start(env={"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"})
    yield spool
    upstream.server.shutdown()
    upstream.server.server_close()


def test_headers_that_are_passed_on_and_those_that_are_not(relay):
    bot = Client(relay.port, ALIAS)
    bot.c.request("POST", f"/bot{ALIAS}/sendPhoto?a=%20b", b"body",
                  {"Content-Type": "application/x-test", "Accept": "x/y", "Range": "bytes=1-", "Connection": "X-Mine",
                   "X-Mine": "1", "TE": "trailers", "X-Kept": "yes"})
    status, answer = bot.read()
    assert status == 200 and answer["result"] == zlib.crc32(b"body")
    method, path, headers, _ = relay.upstream.asked[0]
    headers = {k.lower(): v for k, v in headers.items()}
    assert (method, path) == ("POST", f"/bot{TOKEN}/sendPhoto?a=%20b")
    assert headers["content-type"] == "application/x-test" and headers["accept"] == "x/y"
    assert headers["range"] == "bytes=1-" and headers["x-kept"] == "yes" and headers["content-length"] == "4"
    assert headers["host"] == relay.upstream.url.partition("//")[2]
    assert "te" not in headers and "x-mine" not in headers
    bot.c.request("GET", f"/file/bot{ALIAS}/photos/1000", headers={"Range": "bytes=0-"})
    r = bot.c.getresponse()
    assert (r.status, r.getheader("Content-Type"), r.getheader("X-Hop"), len(r.read())) == (206, "image/x-test",
                                                                                            None, 1000)
    assert relay.upstream.asked[1][1] == f"/file/bot{TOKEN}/photos/1000"
    bot.c.request("HEAD", f"/bot{ALIAS}/getMe")
    assert bot.c.getresponse().read() == b""
    assert bot.call("getMe")[0] == 200


def test_a_chunked_upload(relay):
    bot = Client(relay.port)
    bot.c.request("POST", f"/bot{TOKEN}/sendDocument", iter([b"a" * 70000, b"b"]), encode_chunked=True,
                  headers={"Transfer-Encoding": "chunked"})
    assert bot.read()[1]["result"] == zlib.crc32(b"a" * 70000 + b"b")


def rss(spool):
    with open(f"/proc/{spool.process.pid}/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmRSS"))


def test_memory_does_not_grow_with_a_file(relay):
    size, piece = 500 * MIB, os.urandom(MIB)
    bot = Client(relay.port, timeout=60)
    bot.c.putrequest("POST", f"/bot{TOKEN}/sendVideo")
    bot.c.putheader("Content-Length", str(size))
    bot.c.endheaders()
    crc, seen = 0, []
    for _ in range(size // MIB):
        bot.c.send(piece)
        crc = zlib.crc32(piece, crc)
        seen.append(rss(relay))
    assert bot.read()[1]["result"] == crc
    assert max(seen[-50:]) - max(seen[:50]) < 4 * MIB
    bot.c.request("GET", f"/file/bot{TOKEN}/videos/{size}")
    r, seen, n = bot.c.getresponse(), [], 0
    while (data := r.read(MIB)):
        n += len(data)
        seen.append(rss(relay))
    assert n == size
    assert max(seen[-50:]) - max(seen[:50]) < 4 * MIB


def test_a_slow_reader_does_not_fill_memory(relay):
    before = rss(relay)
    bot = Client(relay.port)
    bot.c.request("GET", f"/file/bot{TOKEN}/{200 * MIB}")
    time.sleep(1)
    assert rss(relay) - before < 8 * MIB
    bot.c.close()
    wait_until(relay.upstream.left.is_set, "upstream sees that the reader left")


def test_a_client_that_leaves_cancels_upstream(relay):
    bot = Client(relay.port)
    bot.send("hang")
    wait_until(lambda: relay.upstream.asked, "the call is upstream")
    bot.c.close()
    wait_until(relay.upstream.left.is_set, "upstream sees it")
    relay.upstream.left.clear()
    raw = socket.create_connection(("127.0.0.1", relay.port))
    raw.sendall(f"POST /bot{TOKEN}/sendVideo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nabc".encode())
    time.sleep(0.2)
    raw.close()
    wait_until(relay.upstream.left.is_set, "upstream sees the end of an upload")


def test_calls_under_way_outlive_a_reload_but_not_the_daemon(relay):
    bot, other = Client(relay.port), Upstream()
    bot.send("hang")
    wait_until(lambda: relay.upstream.asked, "the call is upstream")
    reload(relay, api_root=other.url)
    assert Client(relay.port).call("getMe")[0] == 200 and other.asked
    assert not relay.upstream.left.is_set()
    relay.stop()  # a sanitizer sees what is left
    wait_until(relay.upstream.left.is_set, "the call is ended")
    other.server.shutdown()
    other.server.server_close()


def test_upstream_that_fails(relay):
    bot = Client(relay.port)
    status, answer = bot.call("nonsense")
    assert (status, answer["ok"], answer["error_code"]) == (502, False, 502)
    assert TOKEN not in answer["description"]
    bot.send("cut")
    with pytest.raises(http.client.IncompleteRead):
        bot.c.getresponse().read()
    relay.upstream.server.shutdown()
    relay.upstream.server.server_close()
    status, answer = Client(relay.port).call("sendMessage", text="x")
    assert (status, answer["error_code"]) == (502, 502)
    assert Client(relay.port).call("getWebhookInfo")[0] == 200, "what is answered here goes on"
