"""A disk that fills up under a running daemon. The spool lies on a small file system of the test's own (tmpfs), in a mount
namespace of this process."""
import ctypes
import errno
import json
import os
import signal
import time

import pytest

from harness import EX_TEMPFAIL, wait_until
from test_webhook import Hook

MB = 1 << 20
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
EX_DATAERR, EX_IOERR = 65, 74
libc = ctypes.CDLL(None, use_errno=True)


def call(name, *args):
    if getattr(libc, name)(*args) < 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")


@pytest.fixture(scope="module")
def namespace():
    """What is mounted from here on is seen by this process and its children only. Who is not root becomes it inside."""
    uid, gid = os.getuid(), os.getgid()
    if uid == 0:
        call("unshare", CLONE_NEWNS)
    else:
        call("unshare", CLONE_NEWNS | CLONE_NEWUSER)
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as f:
                f.write(text)
    call("mount", None, b"/", None, MS_REC | MS_PRIVATE, None)


class Disk:
    """The file system under a spool, and a file that fills it."""

    def __init__(self, spool, size):
        self.path = spool.data
        self.filler = os.path.join(self.path, "filler")
        os.mkdir(self.path, 0o700)
        call("mount", b"none", self.path.encode(), b"tmpfs", 0, f"size={size},mode=0700".encode())

    def free(self):
        s = os.statvfs(self.path)
        return s.f_bavail * s.f_frsize

    def fill(self, leave=0):
        """Takes room until only so much is left."""
        with open(self.filler, "ab") as f:
            while self.free() > leave:
                try:
                    os.write(f.fileno(), bytes(min(MB, self.free() - leave)))
                except OSError as e:
                    assert e.errno == errno.ENOSPC
                    break

    def empty(self):
        os.unlink(self.filler)

    def unmount(self):
        call("umount2", self.path.encode(), 2)  # MNT_DETACH


@pytest.fixture
def on_disk(namespace, spool):
    disks = []

    def make(size, **options):
        disks.append(Disk(spool, size))
        spool.spool.update(options)
        return disks[-1]
    yield make
    spool.close()
    for disk in disks:
        disk.unmount()


def disk_status(spool):
    return spool.api("GET", "/v1/status")[1]["disk"]


def intake(spool):
    return spool.counts()["intake"]


def test_intake_stops_at_the_mark_and_goes_on_by_itself(spool, api, on_disk):
    disk = on_disk(48 * MB, min_free="16M", reserve="4M")
    gate = os.path.join(spool.dir, "gate")
    spool.configure(deliver="exec", lease="1h", poll_timeout="1s",
                    command=spool.shell_handler(f"while [ ! -e {gate} ]; do sleep 0.05; done"))
    spool.start()
    wait_until(lambda: disk_status(spool)["reserve"] == 4 * MB, "the reserve is made")
    assert 4 * MB <= os.stat(os.path.join(disk.path, "reserve")).st_blocks * 512 < 5 * MB  # more of many pieces
    ids = [api.inject_message(chat, "before") for chat in (1, 1, 2)]
    wait_until(lambda: len(spool.record.lines("start")) == 2, "two handlers run")

    disk.fill(leave=8 * MB)
    spool.api("POST", "/v1/keys", {"bot": "shop", "key": "a write"})  # while it is idle, it looks but each ten seconds
    wait_until(lambda: disk_status(spool)["held"], "the disk is seen to be full")
    state = disk_status(spool)
    assert state["low"] and not state["full"] and state["free"] <= 8 * MB
    assert state["held"].endswith("needs 18 MB")
    assert intake(spool)["state"] == "held" and intake(spool)["held"] == state["held"]
    assert not spool.counts()["paused"]["intake"]
    later = [api.inject_message(chat, "meanwhile") for chat in (1, 3)]

    # what adds to the spool is refused
    line = spool.cli("export", "--state", "processing").encode()
    status, answer = spool.api("POST", "/v1/import", line)
    assert (status, answer["error"]["code"]) == (503, "no_room")
    assert spool.api("POST", "/v1/bots/shop/calls", {"method": "sendMessage", "body": {"chat_id": 1, "text": "a"}})[0] == 503
    assert spool.api("POST", "/v1/replay", {"all": True})[0] == 503
    warned = spool.cli("status", code=None)
    assert "intake is held: the disk has" in warned.stderr and "df -h" in warned.stderr

    # what is there ends
    with open(gate, "w", encoding="ascii"):
        pass
    spool.wait_counts(done=3)
    assert sorted(spool.record.ids()) == sorted(f"shop/{i}" for i in ids)
    assert spool.api("POST", "/v1/replay", {"id": f"shop/{ids[0]}"})[0] == 200
    spool.wait_counts(done=4)
    assert api.state()["queued"] >= len(later)  # Telegram keeps them

    disk.empty()
    spool.wait_counts(done=6)
    assert disk_status(spool)["held"] is None
    assert spool.log().count("intake stops: the disk has") == 2  # once by the watch, once by the poll
    spool.stop()

    disk.fill(leave=8 * MB)  # a command that opens the spool itself looks, too
    r = spool.cli("import", "-", input=line, text=False, code=None)
    assert r.returncode == EX_TEMPFAIL and b"nothing new is taken now: the disk has" in r.stderr
    disk.empty()
    assert spool.cli("import", "-", input=line, text=False).startswith(b"0 new, ")


def test_webhooks_get_503_while_the_database_is_too_large(spool, api, on_disk):
    on_disk(64 * MB, min_free=0, max_db="4M")
    hook = Hook(spool, api)
    spool.start()
    body = json.dumps({"message": {"chat": {"id": 1}, "text": "x" * 60000}})[1:]
    ids = iter(range(1, 1000))

    def post():
        return hook.post(f'{{"update_id":{next(ids)},{body}'.encode())

    def refused():
        status, headers, _ = post()
        return status == 503 and headers
    headers = wait_until(refused, "a webhook is refused", 60)
    assert headers["Retry-After"] == "30"
    assert "the database has" in disk_status(spool)["held"]
    assert "intake stops at spool.max_db" in spool.log() or "spool.max_db is 4.0 MB" in spool.log()
    received = spool.counts()["since_made"]["received"]
    spool.configure(spool={"max_db": "1G"})  # the quick way out
    spool.process.send_signal(signal.SIGHUP)
    wait_until(lambda: post()[0] == 200, "webhooks are taken again")
    assert spool.counts()["since_made"]["received"] == received + 1
    spool.stop()


def test_a_full_disk_loses_nothing(spool, api, on_disk):
    """No mark, no reserve: writes fail in the middle, and the store opens again when there is room."""
    disk = on_disk(48 * MB, min_free=0, reserve="off")
    spool.configure(deliver="pull", poll_timeout="1s", concurrency=1000)
    spool.start()
    for round in range(2):
        before = len(spool.log())

        def fails():
            disk.fill(leave=6 * MB)  # again and again: old logs and tables go
            return "will reopen" in spool.log()[before:]
        disk.fill(leave=6 * MB)
        api.generate(300, chats=20, size=60000)
        wait_until(fails, "a write fails", 60)
        assert spool.process.poll() is None
        status, answer = spool.api("GET", "/v1/status")
        assert status == 200
        disk.empty()
        spool.wait_counts(pending=300, timeout=90)
        acknowledge(spool, 300 * (round + 1))
    assert spool.counts()["since_made"]["received"] == 600
    spool.stop()


def acknowledge(spool, done):
    """Claims and acknowledges until so many are done. While the store fails, claims are empty."""
    def step():
        events = spool.api("POST", "/v1/claim", {"bot": "shop", "max": 100})[1].get("events")
        if events:
            acks = [{"id": e["id"], "lease": e["lease"]} for e in events]
            status, answer = spool.api("POST", "/v1/ack", {"events": acks})
            assert status == 200 and all(e.get("ok") for e in answer["events"])
        return not events and spool.counts()["done"] == done
    wait_until(step, f"{done} are done", 60)


@pytest.mark.parametrize("reserve", ["8M", "off"])
def test_a_kill_on_a_full_disk(spool, api, on_disk, reserve):
    """The database cannot be opened without room: the reserve is that."""
    disk = on_disk(48 * MB, min_free=0, reserve=reserve)
    spool.configure(deliver="pull", poll_timeout="1s", concurrency=1000)
    spool.start()
    if reserve != "off":
        wait_until(lambda: disk_status(spool)["reserve"] == 8 * MB, "the reserve is made")
    api.generate(100, chats=20, size=2000)
    spool.wait_counts(pending=100)
    disk.fill()
    spool.kill()
    if reserve == "off":
        spool.start(expect_exit=EX_IOERR)
        assert "No space left on device" in spool.log()
        assert "df -h" in spool.log()
        disk.empty()
        spool.start()
        spool.wait_counts(pending=100)
        spool.stop()
        return
    spool.start()
    assert "the reserve was given up" in spool.log()
    assert spool.counts()["pending"] == 100
    assert "needs 16 MB" in disk_status(spool)["held"]  # nothing new until it is there again
    acknowledge(spool, 100)
    api.generate(10)
    disk.empty()
    spool.wait_counts(pending=10)
    assert disk_status(spool)["reserve"] == 8 * MB
    spool.stop()


def test_compact(spool, api, make_spool):
    """Without a daemon and with one, at its work."""
    spool.configure(deliver="pull", poll_timeout="1s", concurrency=1000)
    api.generate(2000, chats=50, size=2000)
    spool.start()
    spool.wait_counts(pending=2000)
    acknowledge(spool, 2000)
    first = spool.cli_json("compact")
    assert first["state"] == "finished" and first["before"] > 0 and first["after"] > 0
    assert "the database was compacted from" in spool.log()
    assert spool.cli("compact").startswith("the database had ")
    api.generate(1)
    spool.wait_counts(pending=1)
    spool.stop()
    assert spool.cli("compact").endswith(" now\n")
    assert json.loads(spool.cli("--json", "verify"))["ended"] == 2000


def test_a_damaged_table_under_a_running_daemon(spool, api):
    """What is whole before the damage is handed out as it was; then nothing more, and no end of the process."""
    spool.configure(deliver="pull", poll_timeout="1s", concurrency=1000)
    api.generate(300, chats=300, size=2000)
    spool.start()
    spool.wait_counts(pending=300)
    payloads = {e["id"]: e["payload"] for e in spool.events(payload=1)}
    spool.kill()
    spool.start()  # its recovery writes tables
    spool.kill()
    tables = [os.path.join(spool.data, "db", f) for f in os.listdir(os.path.join(spool.data, "db")) if f.endswith(".sst")]
    with open(max(tables, key=os.path.getsize), "r+b") as f:
        f.seek(os.path.getsize(f.name) // 2)
        byte = f.read(1)
        f.seek(-1, os.SEEK_CUR)
        f.write(bytes([byte[0] ^ 4]))
    spool.start()

    def claim():
        status, answer = spool.api("POST", "/v1/claim", {"bot": "shop", "max": 4})
        for e in answer.get("events", []):
            assert e["update"] == payloads[e["id"]]
        return status == 503 or spool.api("GET", "/v1/status")[1]["health"] != "ok"
    wait_until(claim, "the damage is met", 60)
    status = spool.api("GET", "/v1/status")[1]
    assert (status["healthy"], status["health"]) == (False, "corrupt") and "Corruption" in status["trouble"]
    api.generate(1)
    time.sleep(3)  # it would be opened again after one second, if it were only a failure
    assert spool.log().count("the store failed") == 1 and spool.log().count("it is damaged and stays closed") == 1
    assert spool.api("GET", "/v1/status")[1]["health"] == "corrupt"
    status, answer = spool.api("POST", "/v1/claim", {"bot": "shop"})
    assert status == 503 and "Corruption" in answer["error"]["message"], "an answer without events would say that there are none"
    assert intake(spool)["state"] == "held"
    assert spool.cli("check", code=None).returncode == EX_DATAERR
    assert "the store is damaged and stays closed" in spool.cli("status", code=None).stderr
    spool.stop()
