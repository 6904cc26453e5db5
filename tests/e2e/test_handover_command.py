"""tgspool handover: how it asks the daemon, here one that answers by a script, and what people see of it."""
import http.server
import json
import socketserver
import subprocess
import threading

import pytest

from harness import EX_UNAVAILABLE, EX_USAGE, TGSPOOL

EX_TEMPFAIL = 75


class Daemon(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Answers each request with the next of its answers."""

    daemon_threads = True

    def __init__(self, path):
        self.answers, self.asked = [], []
        super().__init__(str(path), Handler)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.asked.append(f"{self.command} {self.path}")
        status, body = self.server.answers.pop(0)
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = answer

    def address_string(self):
        return "unix"

    def log_message(self, *args):
        pass


@pytest.fixture
def daemon(tmp_path):
    d = Daemon(tmp_path / "sock")
    yield d
    d.shutdown()
    d.server_close()


def handover(tmp_path, *args, code=0):
    r = subprocess.run([TGSPOOL, "--socket", str(tmp_path / "sock"), "handover", *args], capture_output=True, text=True,
                       timeout=60, stdin=subprocess.DEVNULL)
    assert r.returncode == code, f"exit {r.returncode}\n{r.stdout}\n{r.stderr}"
    return r


def state(name, pending=0, processing=0, **more):
    return 200, {"bot": "shop", "state": name, "pending": pending, "processing": processing, "calls": 0,
                 "deliver": "running", "trouble": None, "had_webhook": None, "allowed_updates": None, "message": "",
                 **more}


DONE = state("done", allowed_updates=["message", "poll"], message="the old bot can start")


def test_progress_and_end(daemon, tmp_path):
    daemon.answers = [state("draining", 3, 1), state("draining", 3, 1), state("draining", 0, 1), state("telling"), DONE]
    r = handover(tmp_path, "shop")
    assert r.stdout.splitlines() == [
        "shop: intake has ended; 3 events wait, 1 are being processed",
        "shop: intake has ended; 0 events wait, 1 are being processed",
        "shop: empty; telling Telegram the last that was taken",
        "allowed_updates: as before, message, poll",
        "shop: the old bot can start"]
    assert r.stderr == ""
    assert daemon.asked[0] == "POST /v1/bots/shop/handover"
    assert set(daemon.asked[1:]) == {"GET /v1/bots/shop/handover?wait=2s"} and len(daemon.asked) == 5


def test_what_holds_it_up_is_told_once(daemon, tmp_path):
    daemon.answers = [state("draining", 2, deliver="paused"), state("draining", 2, deliver="paused"),
                      state("telling", trouble="Telegram does not answer"),
                      state("telling", trouble="Telegram does not answer"),
                      state("done", calls=2, allowed_updates="default", message="the old bot can start")]
    r = handover(tmp_path, "shop")
    assert r.stderr.count("delivery is paused") == 1
    assert f"next: tgspool resume shop deliver --socket {tmp_path}/sock" in r.stderr
    assert r.stderr.count("Telegram does not answer") == 1
    assert "Telegram's default list again" in r.stdout
    assert "2 calls are still going out" in r.stdout


def test_a_long_wait_is_told_again_with_its_cause(daemon, tmp_path):
    broken = {"open": True, "cause": "unavailable", "since": 1700000000.0, "probe_at": None}
    daemon.answers = [state("draining", 2, breaker=broken)] * 11 + [DONE]
    r = handover(tmp_path, "shop")
    assert r.stdout.count("2 events wait") == 3, "at first, and every ten seconds: five answers of two"
    assert r.stderr.count("the handler cannot be reached") == 3
    assert f"next: tgspool list --bot shop --state pending --limit 5 --socket {tmp_path}/sock" in r.stderr


def test_json_is_one_document(daemon, tmp_path):
    daemon.answers = [state("draining", 1), DONE]
    answer = json.loads(handover(tmp_path, "shop", "--json").stdout)
    assert answer["state"] == "done" and answer["allowed_updates"] == ["message", "poll"]


def test_taken_back_meanwhile(daemon, tmp_path):
    daemon.answers = [state("draining", 1), state("none")]
    assert "intake was resumed meanwhile" in handover(tmp_path, "shop", code=EX_TEMPFAIL).stderr


def test_refusals(daemon, tmp_path):
    daemon.answers = [(409, {"error": {"code": "not_running", "message": "the bot is in no section of the config"}})]
    r = handover(tmp_path, "shop", code=EX_TEMPFAIL)
    assert "the bot is in no section of the config" in r.stderr
    assert "not a bot's name" in handover(tmp_path, "a/b", code=EX_USAGE).stderr
    handover(tmp_path, code=EX_USAGE)
    assert len(daemon.asked) == 1


def test_without_a_daemon(tmp_path):
    r = handover(tmp_path, "shop", code=EX_UNAVAILABLE)
    assert str(tmp_path / "sock") in r.stderr
