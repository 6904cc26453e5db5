"""The daemon as a service: what it tells the service manager, its log, credentials, and how many children it may have."""
import http.client
import os
import re
import resource
import signal
import socket
import time

import pytest

from harness import EX_CONFIG, TOKEN, free_port, wait_until


def test_children_are_bounded_over_all_bots(spool, api, make_api):
    other = make_api(tokens=("222222:another-token-of-another-bot-00",))
    go = os.path.join(spool.dir, "go")
    wait = f"while [ ! -e {go} ]; do sleep 0.05; done"
    spool.add_bot("ship", "222222:another-token-of-another-bot-00", api_root=other.url)
    spool.configure("ship", command=spool.shell_handler(wait, "second"), concurrency=2)
    spool.configure("shop", command=spool.shell_handler(wait), concurrency=4, spool={"max_children": 2})
    api.generate(6, chats=6)
    other.generate(2, chats=2)
    spool.start()
    spool.wait_log("spool.max_children is 2, but concurrency allows 6 handlers at once")

    def children():
        return spool.api("GET", "/v1/status")[1]["children"]
    wait_until(lambda: children()["running"] == 2 and children()["bots_waiting"] >= 1, "all places are taken")
    wait_until(lambda: len(spool.record.lines("start")) == 2, "two handlers run")
    assert spool.counts("shop")["processing"] + spool.counts("ship")["processing"] == 2
    assert "2 of 2 children run" in spool.cli("status", code=None).stderr
    spool.configure(spool={"max_children": 4})
    spool.process.send_signal(signal.SIGHUP)
    wait_until(lambda: len(spool.record.lines("start")) == 4, "the raised limit is used")
    assert children() == {"running": 4, "max": 4, "bots_waiting": children()["bots_waiting"]}
    open(go, "w").close()
    spool.wait_counts(done=6)
    spool.wait_counts(bot="ship", done=2)
    wait_until(lambda: children()["running"] == 0, "nothing runs")
    assert {r["attempt"] for r in spool.record.lines("end")} == {"1"}, "waiting costs no try"


class Manager:
    """What a service manager hears: datagrams, each a list of NAME=VALUE lines."""

    def __init__(self, spool):
        self.path = os.path.join(spool.dir, "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.heard = []

    def environment(self, watchdog_ms):
        return {"NOTIFY_SOCKET": self.path, "WATCHDOG_USEC": str(watchdog_ms * 1000)}

    def wait(self, line, timeout=30):
        """Waits for a datagram that begins so; returns what came up to it, it included."""
        end, first = time.monotonic() + timeout, len(self.heard)
        while time.monotonic() < end:
            self.socket.settimeout(max(0.01, end - time.monotonic()))
            try:
                self.heard.append(self.socket.recv(4096).decode())
            except TimeoutError:
                break
            if self.heard[-1].startswith(line):
                return self.heard[first:]
        raise AssertionError(f"waited {timeout} s for {line}; heard {self.heard[first:]}")

    def drain(self):
        self.socket.settimeout(0.01)
        try:
            while self.socket.recv(4096):
                pass
        except TimeoutError:
            pass


def monotonic_us():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000


def test_the_service_manager_is_told(spool, api):
    spool.configure(deliver="pull")
    manager = Manager(spool)
    spool.start(env=manager.environment(400))
    manager.wait("READY=1")
    assert spool.api("GET", "/v1/status")[0] == 200, "ready means that the socket answers"
    manager.wait("STATUS=1 bots, 0 events waiting")
    manager.wait("WATCHDOG=1")
    manager.wait("WATCHDOG=1")

    before = monotonic_us()
    spool.process.send_signal(signal.SIGHUP)
    reloading = manager.wait("RELOADING=1")[-1].split("\n")
    assert before <= int(reloading[1].removeprefix("MONOTONIC_USEC=")) <= monotonic_us()
    manager.wait("READY=1")
    spool.write("tgspool.yaml", "a mistake")
    spool.process.send_signal(signal.SIGHUP)
    manager.wait("RELOADING=1")
    manager.wait("READY=1")  # a refused reload has ended too
    spool.wait_log("reload refused")

    spool.process.terminate()
    manager.wait("STOPPING=1")
    asked = manager.wait("EXTEND_TIMEOUT_USEC=")[-1]
    assert int(asked.split("=")[1]) >= 20_000_000, "shutdown_wait and some"
    assert spool.process.wait(30) == 0


def test_a_loop_that_hangs_misses_its_pings(spool, api):
    """The ping comes from the tick: who waits for a disk for ever does not send it."""
    spool.configure(deliver="pull")
    manager = Manager(spool)
    spool.start(env={**manager.environment(400), "TGSPOOL_FAILPOINTS": "poll.before_accept=sleep:600000@1"})
    manager.wait("READY=1")
    manager.wait("WATCHDOG=1")
    api.generate(1)
    wait_until(lambda: hangs(spool), "the loop hangs")
    manager.drain()
    with pytest.raises(AssertionError, match="waited 2 s"):
        manager.wait("WATCHDOG=1", 2)
    spool.kill()


def hangs(spool):
    """Whether the daemon takes a connection (the kernel does) and does not answer."""
    try:
        spool.ask("GET", "/healthz", None, 1)
    except TimeoutError:
        return True
    return False


def test_a_failed_store_is_not_a_hang(spool, api):
    """Killed by the watchdog it would be no better off: it opens the store again by itself."""
    spool.configure(deliver="pull")
    manager = Manager(spool)
    spool.start(env={**manager.environment(400), "TGSPOOL_FAILPOINTS": "store.write=errno:28;store.open=errno:28@2+"},
                wait=False)
    manager.wait("READY=1")
    api.generate(1)
    manager.wait("STATUS=the store fails")
    manager.wait("WATCHDOG=1")
    manager.wait("WATCHDOG=1")
    spool.kill()


def test_secrets_come_from_credentials(spool, api):
    """As LoadCredential= of a unit gives them: in a private directory, with the mode of an access list."""
    os.mkdir(os.path.join(spool.dir, "cred"), 0o700)
    spool.write("cred/shop.token", TOKEN + "\n", 0o440)
    path = spool.write("cred/api.token", "the-token-of-the-api\n", 0o440)
    port = free_port()
    spool.configure(deliver="pull", token_file=None, token_credential="shop.token",
                    listen={"http": f"127.0.0.1:{port}", "api_token_file": path})
    api.generate(1)
    spool.start(expect_exit=EX_CONFIG)
    assert "LoadCredential=" in spool.log()
    spool.start(env={"CREDENTIALS_DIRECTORY": os.path.join(spool.dir, "cred")})
    spool.wait_counts(pending=1)
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    c.request("GET", "/v1/status", headers={"Authorization": "Bearer the-token-of-the-api"})
    assert c.getresponse().status == 200
    c.close()


def test_the_log_in_the_journal(spool, api):
    """Standard error is the journal's stream: a priority in front, no time, at most 100 columns."""
    api.fault("status", status=502, count=1)
    api.generate(1)
    spool.configure(deliver="pull")
    log = os.open(spool.log_path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    st = os.fstat(log)
    spool.start(env={"JOURNAL_STREAM": f"{st.st_dev}:{st.st_ino}"})
    spool.wait_log("intake works again")
    spool.stop()
    with open(spool.log_path, encoding="utf-8") as f:
        lines = f.read().splitlines()
    os.close(log)
    for line in lines:
        assert re.match(r"<[3467]>(error|warn |info |debug) \S", line), line
        assert len(line) - 3 <= 100, line
    assert any(line.startswith("<4>warn  shop: intake fails: ") for line in lines)


def test_the_limit_of_open_files_is_raised(spool, api):
    """For the daemon, not for its handlers."""
    spool.configure(command=spool.shell_handler("ulimit -Sn >$0.limit"))
    api.generate(1)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        spool.start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    with open(f"/proc/{spool.process.pid}/limits", encoding="ascii") as f:
        line = next(row for row in f if row.startswith("Max open files")).split()
    assert line[3] == line[4] == str(hard), line
    spool.wait_counts(done=1)
    with open(os.path.join(spool.dir, "handler.limit"), encoding="ascii") as f:
        assert f.read() == "256\n"
