"""Alerts, to a command, a URL and a chat at once: what stands still, what fails, and what is over."""
import http.server
import json
import os
import signal
import threading
import time

import pytest

from harness import EX_CONFIG, EX_UNAVAILABLE, TOKEN, has_failpoints, wait_until

SECRET_PATH = "/hook/SECRET-of-the-url-5678"
EX_IOERR = 74


class Url:
    """What alerts.url_file leads to. With hang it answers nobody."""

    def __init__(self):
        url = self
        self.bodies, self.hang, self.asked = [], False, 0
        self.ended = threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                url.asked += 1
                if url.hang:
                    url.ended.wait(60)
                    self.close_connection = True
                    return
                if self.path == SECRET_PATH and self.headers["Content-Type"] == "application/json":
                    url.bodies.append(json.loads(body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()


class Destinations:
    """All three, each of which says what it got."""

    def __init__(self, spool, api, url):
        self.spool, self.api, self.url = spool, api, url
        self.file = os.path.join(spool.dir, "alerts")
        spool.write("alert.url", f"http://127.0.0.1:{url.server.server_port}{SECRET_PATH}\n")
        spool.write("alert-command", f"#!/bin/sh\ncat >>'{self.file}'\n", 0o700)
        self.options = {"command": os.path.join(spool.dir, "alert-command"),
                        "url_file": os.path.join(spool.dir, "alert.url"), "telegram": "shop 42"}

    def commanded(self):
        try:
            with open(self.file, encoding="utf-8") as f:
                return [json.loads(line) for line in f if line.endswith("\n")]
        except FileNotFoundError:
            return []

    def written(self):
        return [q["args"] for q in self.api.log(method="sendMessage")]

    def wait(self, alert, state, timeout=60):
        """Waits until this alert is at all three; returns it."""
        found = []

        def arrived():
            found[:] = [a for a in self.commanded() if a["alert"] == alert and a["state"] == state]
            return (found and found[0] in self.url.bodies and
                    any(found[0]["message"] in json.dumps(w, ensure_ascii=False) for w in self.written()))
        wait_until(arrived, f"{alert} {state}: command {self.commanded()}, url {self.url.bodies}, "
                            f"telegram {self.written()}", timeout)
        return found[0]

    def count(self, alert, state="firing"):
        return sum(a["alert"] == alert and a["state"] == state for a in self.commanded())


@pytest.fixture
def url():
    u = Url()
    yield u
    u.close()


@pytest.fixture
def all_three(spool, api, url):
    return Destinations(spool, api, url)


def check_nothing_leaks(spool):
    log = spool.log()
    assert "SECRET" not in log and TOKEN not in log and TOKEN.split(":")[1] not in log


def test_age(spool, api, all_three):
    """The alert on age comes within its threshold + 10 s, again, and is taken back; then a reload takes two
    destinations away."""
    block = spool.write("block", "")
    handler = spool.shell_handler(f"while [ -e '{block}' ]; do sleep 0.05; done")
    spool.configure(command=handler, alerts={**all_three.options, "oldest": "2s", "repeat": "1s"})
    spool.start()
    api.inject_message(1, "a secret of 5678")
    wait_until(lambda: spool.record.ids("start"), "the handler has it")
    began = time.monotonic()
    got = all_three.wait("oldest", "firing")
    assert time.monotonic() - began < 2 + 10
    assert got["bot"] == "shop" and got["value"] >= 2 and got["since"] < time.time() + 1
    assert got["message"].startswith("the oldest unfinished update waits for ")
    assert got["next"] == "tgspool list --bot shop --state pending,processing"
    assert spool.cli(*got["next"].split()[1:]).count("shop/") == 1  # the command is one
    wait_until(lambda: all_three.count("oldest") >= 2, "it is told again")
    os.unlink(block)
    over = all_three.wait("oldest", "over")
    assert over["bot"] == "shop" and "no event waits for 2s any more" in over["message"]

    before = len(all_three.written()), len(all_three.url.bodies)
    block = spool.write("block", "")
    spool.configure(alerts={"command": all_three.options["command"], "oldest": "1s"})
    spool.process.send_signal(signal.SIGHUP)
    spool.wait_log("reloaded")
    firing = all_three.count("oldest")
    api.inject_message(1, "x")
    wait_until(lambda: all_three.count("oldest") > firing, "the command gets the next one")
    os.unlink(block)
    spool.stop()
    assert (len(all_three.written()), len(all_three.url.bodies)) == before
    check_nothing_leaks(spool)
    assert "a secret" not in spool.log()


def test_store_that_cannot_be_opened(spool, all_three):
    if not has_failpoints():
        pytest.skip("needs a build with --enable-failpoints")
    spool.configure(command="/bin/true", alerts=all_three.options)
    fails = {"TGSPOOL_FAILPOINTS": "store.open=errno:5"}
    spool.start(env=fails, expect_exit=EX_IOERR)
    got = all_three.wait("store", "firing", 5)
    assert got["bot"] is None and "tgspool does not start" in got["message"] and got["next"] == "tgspool check"
    spool.start(env=fails, expect_exit=EX_IOERR)  # as a supervisor does
    assert all_three.count("store") == 1
    spool.start()
    over = all_three.wait("store", "over", 40)
    assert "works again" in over["message"]
    spool.stop()
    spool.start()
    spool.stop()
    assert all_three.count("store", "over") == 1
    check_nothing_leaks(spool)


def test_store_that_fails(spool, api, all_three):
    if not has_failpoints():
        pytest.skip("needs a build with --enable-failpoints")
    spool.configure(command="/bin/true", alerts=all_three.options)
    spool.start(env={"TGSPOOL_FAILPOINTS": "store.write=errno:5@12"})
    api.generate(40, chats=5)
    got = all_three.wait("store", "firing")
    assert "the store fails" in got["message"]
    api.fault("status", method="getUpdates", count=1000, status=401)  # and then a person must act
    api.generate(1)
    got = all_three.wait("intake", "firing", 40)
    assert got["bot"] == "shop" and "401" in got["message"] and got["value"] >= 10
    all_three.wait("store", "over", 40)
    api.control("clear_faults")
    spool.write("shop.token", TOKEN + "\n\n")  # as after a new token: it is read again
    spool.wait_counts(pending=0, processing=0)
    spool.stop()


def test_a_full_disk_and_damage(spool, api, all_three):
    """That too little is free is told at once; a changed byte when it is read."""
    spool.configure(deliver="pull", concurrency=300, alerts=all_three.options)
    api.generate(300, chats=300)
    spool.start()
    spool.wait_counts(pending=300)
    spool.cli("verify")  # by a checkpoint, so that all is in tables
    spool.configure(spool={"min_free": "8000G"})
    spool.process.send_signal(signal.SIGHUP)
    got = all_three.wait("disk", "firing")
    assert got["value"] > 0 and got["bot"] is None
    spool.stop()

    tables = [os.path.join(d, n) for d, _, names in os.walk(spool.data) for n in names if n.endswith(".sst")]
    with open(max(tables, key=os.path.getsize), "r+b") as f:  # among its first rows
        f.seek(500)
        byte = f.read(1)[0]
        f.seek(500)
        f.write(bytes([byte ^ 4]))
    spool.start()

    def told():
        spool.api("POST", "/v1/claim", {"bot": "shop", "max": 100})
        return all_three.count("corruption")
    wait_until(told, "damage is told", 40)
    got = all_three.wait("corruption", "firing")
    assert "the store is damaged" in got["message"] and got["next"] == "tgspool verify"


def test_destinations_that_fail_disturb_nobody(spool, api, all_three):
    """The URL hangs, Telegram says 429, the command gets all; then they work again, and nothing was lost."""
    block = spool.write("block", "")
    handler = spool.shell_handler(f"while [ -e '{block}' ]; do sleep 0.05; done")
    all_three.url.hang = True
    api.fault("status", method="sendMessage", count=1, status=429, retry_after=1)
    spool.configure(command=handler, concurrency=2, alerts={**all_three.options, "oldest": "1s", "repeat": "1h"})
    spool.start()
    api.inject_message(1, "x")
    wait_until(lambda: all_three.count("oldest"), "the command gets it")
    wait_until(lambda: all_three.url.asked, "the URL is asked")
    slowest = 0
    for _ in range(40):  # the loop goes on
        began = time.monotonic()
        spool.counts()
        slowest = max(slowest, time.monotonic() - began)
        time.sleep(0.02)
    assert slowest < 5
    spool.wait_log("alerts.telegram fails: the Bot API asks for a pause of 1 s (429)")
    all_three.url.hang = False
    all_three.url.ended.set()
    spool.wait_log("alerts.url fails: ")
    all_three.wait("oldest", "firing")
    spool.wait_log("alerts.telegram works again")
    assert "alerts.command fails" not in spool.log()
    os.unlink(block)
    spool.stop()
    check_nothing_leaks(spool)


def test_alert_test(spool, api, all_three):
    """By the command itself, and by the daemon, which then need not share its files."""
    spool.configure(command="/bin/true")
    r = spool.cli("alert-test", code=EX_CONFIG)
    assert r == ""
    spool.configure(alerts=all_three.options)
    assert spool.cli("alert-test") == "command   delivered\nurl       delivered\ntelegram  delivered\n"
    assert all_three.wait("test", "firing", 5)["next"] == "tgspool status"
    text = all_three.written()[0]["text"]
    assert text == "[alert] tgspool test\nthis is a test: alerts of tgspool arrive here\nnext: tgspool status"

    spool.write("alert-command", "#!/bin/sh\necho a-secret-of-the-handler >&2\nexit 3\n", 0o700)
    spool.configure(alerts={**all_three.options, "url_file": spool.write("gone.url", "http://127.0.0.1:9/" + "SECRET")})
    spool.start()
    api.fault("status", method="sendMessage", count=1, status=400, body=json.dumps(
        {"ok": False, "error_code": 400, "description": "Bad Request: chat not found"}))
    r = spool.cli("alert-test", code=EX_UNAVAILABLE)
    assert r.splitlines() == [
        "command   FAILED: exit status 3", "url       FAILED: cannot connect to 127.0.0.1 port 9: 127.0.0.1: "
        "Connection refused", "telegram  FAILED: the Bot API answered 400: Bad Request: chat not found"]
    answer = json.loads(spool.cli("--json", "alert-test", code=EX_UNAVAILABLE))["destinations"]
    assert [(d["name"], d["delivered"]) for d in answer] == [("command", False), ("url", False), ("telegram", True)]
    spool.stop()
    assert "a-secret-of-the-handler" not in spool.log()
    check_nothing_leaks(spool)


def test_warnings_of_the_config(spool, all_three):
    spool.configure(command="/bin/true", alerts={"telegram": "shop 42"})
    r = spool.cli("config", code=None)
    assert "when Telegram cannot be reached, this alert cannot be sent either" in r.stderr
    proxy = spool.write("proxy", "socks5://user:password1@127.0.0.1:9\n")
    spool.configure(proxy_file=proxy, alerts=all_three.options)
    r = spool.cli("config", code=None)
    assert "alerts.telegram goes out directly, while bots.shop reaches Telegram by a proxy" in r.stderr
    r = spool.cli("check", "--offline", code=None)
    assert "alerts command: " in r.stdout and "alerts: go to command url_file telegram" in r.stdout
    spool.configure(alerts={**all_three.options, "command": "/nowhere/mail x"})
    r = spool.cli("check", "--offline", code=None)
    assert r.returncode == EX_CONFIG and "BAD  alerts command: /nowhere/mail cannot be run" in r.stdout
    spool.configure(alerts={**all_three.options, "url_file": spool.write("ftp", "ftp://example.org/")})
    r = spool.cli("alert-test", code=None)
    assert r.returncode == EX_CONFIG and "alerts.url_file: " in r.stderr


def test_a_new_token_in_its_file(spool, api, all_three):
    """Telegram refuses the one that the daemon knows; the next alert goes out with the one of the file."""
    spool.configure(command="/bin/true", intake="none", alerts={"telegram": "shop 42"})
    other = TOKEN.replace("AAF0", "AAF1")
    spool.write("shop.token", other + "\n")
    spool.start()
    assert "telegram  FAILED: the Bot API does not accept the token (401)" in spool.cli("alert-test", code=EX_UNAVAILABLE)
    spool.write("shop.token", TOKEN + "\n")
    assert spool.cli("alert-test") == "telegram  delivered\n"
    spool.stop()
    check_nothing_leaks(spool)


def test_a_command_that_hangs_is_ended(spool, all_three):
    if not has_failpoints():
        pytest.skip("needs a build with --enable-failpoints")
    pid = os.path.join(spool.dir, "pid")
    spool.write("alert-command", f"#!/bin/sh\nsleep 300 &\necho $! >'{pid}'\nwait\n", 0o700)
    spool.configure(command="/bin/true", alerts={"command": all_three.options["command"]})
    r = spool.cli("alert-test", code=EX_UNAVAILABLE, env={"TGSPOOL_FAILPOINTS": "alert.impatient=errno:1"})
    assert r == "command   FAILED: the command took longer than 30 s and was ended\n"
    with open(pid, encoding="ascii") as f:
        child = int(f.read())

    def is_gone():  # what it started: nobody may have collected it yet
        try:
            with open(f"/proc/{child}/stat", encoding="ascii") as f:
                return f.read().rpartition(")")[2].split()[0] == "Z"
        except FileNotFoundError:
            return True
    wait_until(is_gone, "what it started is ended too")


def test_a_pause_is_reminded_of(spool, api, all_three):
    """In place of the alert on age; what waited is old when it is resumed."""
    spool.configure(deliver="pull", alerts={**all_three.options, "oldest": "2s"})
    spool.start()
    assert spool.api("POST", "/v1/pause", {"bot": "shop", "what": "deliver"})[0] == 200
    api.inject_message(1, "x")
    got = all_three.wait("paused", "firing")
    assert got["bot"] == "shop" and got["next"] == "tgspool resume shop"
    assert "delivery is paused" in got["message"] and all_three.count("oldest") == 0
    spool.cli(*got["next"].split()[1:])
    all_three.wait("oldest", "firing")
    spool.stop()
