"""What runs out other than room: a file system that became read-only, inodes, descriptors, memory. Each time: a clear message,
no corruption, nothing lost, and on by itself where it can."""
import contextlib
import os
import re
import resource
import signal
import subprocess
import sys
import time

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import TGSPOOL, UnixConnection, is_sanitized, wait_until  # noqa: E402
from stage import Stage  # noqa: E402
from test_disk import MB, acknowledge, call, namespace, on_disk  # noqa: E402,F401  pylint: disable=unused-import

EROFS = 30
MS_RDONLY, MS_REMOUNT = 1, 32
CRASHES = {-signal.SIGSEGV, -signal.SIGBUS, -signal.SIGKILL}


def nothing_is_lost(spool, n, **options):
    """So many events wait, once the store is back, and can be handled; and the spool is sound. options: of wait_counts."""
    spool.wait_counts(pending=n, **options)
    acknowledge(spool, n)
    spool.stop()
    assert spool.cli_json("verify")["faults"] == 0


# ---- read-only ------------------------------------------------------------------------------------------------------------

def test_read_only_while_running():
    """As ext4 does it when it finds an error: nothing can be written any more, until somebody mounts it anew."""
    with contextlib.closing(Stage(3)) as s:
        s.begin()
        s.start(fault=f"*:data*:{EROFS}:400:3")
        wait_until(lambda: s.load(seconds=0.3) or "Read-only file system" in s.spool.log(), "it is met, and it says why", 60)
        s.drain()
        s.spool.stop()
        s.check()
        s.goes_on()


def test_read_only_at_the_start(spool, api, on_disk):  # noqa: F811
    disk = on_disk(48 * MB, min_free=0)
    spool.configure(deliver="pull")
    api.generate(20, chats=3)
    spool.start()
    spool.wait_counts(pending=20)
    spool.stop()
    call("mount", None, disk.path.encode(), None, MS_REMOUNT | MS_RDONLY, None)
    spool.start(expect_exit=74)
    assert "Read-only file system" in spool.log()
    assert "read-only" in spool.cli("check", code=None).stdout.lower()
    call("mount", None, disk.path.encode(), None, MS_REMOUNT, None)
    spool.start()
    spool.wait_counts(pending=20)
    acknowledge(spool, 20)
    spool.stop()


# ---- inodes ---------------------------------------------------------------------------------------------------------------

def test_no_inodes(spool, api, on_disk):  # noqa: F811
    disk = on_disk("48m,nr_inodes=200", min_free=0, reserve="off")
    spool.configure(deliver="pull", poll_timeout="1s")
    spool.start()
    files = 0
    with contextlib.suppress(OSError):
        while True:
            with open(os.path.join(disk.path, f"file-{files}"), "w", encoding="ascii"):
                files += 1
    api.generate(200, chats=20, size=60000)
    wait_until(lambda: "will reopen" in spool.log(), "no new file can be made", 60)
    assert "df -i" in spool.log()
    for i in range(files):
        os.unlink(os.path.join(disk.path, f"file-{i}"))
    nothing_is_lost(spool, 200, timeout=90)


# ---- descriptors ------------------------------------------------------------------------------------------------------------

def test_few_descriptors_at_the_start(spool, api):
    """One more each time, until it runs."""
    spool.configure(deliver="pull")
    api.generate(20, chats=3)
    spool.start()
    spool.wait_counts(pending=20)
    spool.stop()
    for n in range(4, 200, 4):
        told = len(spool.log())
        code = run_limited(spool, resource.RLIMIT_NOFILE, n)
        if code is None:
            break
        assert 64 <= code <= 78, f"{n} descriptors: ended with {code}: {spool.log()[-2000:]}"
        assert "Too many open files" in spool.log()[told:], f"{n}: {spool.log()[told:]}"
    else:
        raise AssertionError("it never ran")
    assert n < 60
    spool.start()
    spool.wait_counts(pending=20)
    acknowledge(spool, 20)
    spool.stop()


def run_limited(spool, what, n):
    """The daemon with a limit: its exit status; None if it came up, and was ended again."""
    with open(spool.log_path, "ab") as log:
        spool.process = subprocess.Popen([TGSPOOL, "run", "-c", spool.config], stdin=subprocess.DEVNULL, stdout=log,
                                         stderr=log, preexec_fn=lambda: resource.setrlimit(what, (n, n)))

    def settled():
        if spool.process.poll() is not None:
            return True
        try:
            return spool.api("GET", "/v1/status", timeout=5)[0] == 200
        except OSError:
            return False
    wait_until(settled, "it is up, or has ended", 60)
    if spool.process.poll() is not None:
        return spool.process.returncode
    spool.process.send_signal(signal.SIGTERM)
    return spool.process.wait(60) or None


def cpu_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_no_descriptors_while_running(spool, api):
    """Clients take them all: new ones wait, told once, without a busy loop; the store cannot open its files and comes back."""
    spool.configure(deliver="pull", poll_timeout="1s")
    spool.start()
    api.generate(20, chats=3)
    spool.wait_counts(pending=20)
    pid = spool.process.pid
    limit = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    used = len(os.listdir(f"/proc/{pid}/fd"))
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 2, limit[1]))
    clients = []
    for _ in range(8):
        c = UnixConnection(spool.socket)
        c.connect()
        clients.append(c)
    wait_until(lambda: "Too many open files" in spool.log(), "it says so")
    before, at = cpu_of(pid), time.monotonic()
    time.sleep(2)
    assert cpu_of(pid) - before < 0.5 * (time.monotonic() - at), "a busy loop"
    assert spool.log().count("Too many open files") < 50
    api.generate(100, chats=3, size=60000)
    time.sleep(3)
    assert spool.process.poll() is None, spool.log()[-3000:]
    for c in clients:
        c.close()
    resource.prlimit(pid, resource.RLIMIT_NOFILE, limit)
    nothing_is_lost(spool, 120, timeout=90)


# ---- ulimit -f -----------------------------------------------------------------------------------------------------------

@pytest.mark.once
def test_files_may_grow_no_further(spool, api):
    """By default, the signal of that ends a process without a word."""
    spool.configure(deliver="pull", poll_timeout="1s")
    spool.start()
    pid = spool.process.pid
    limit = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (1 << 18, limit[1]))
    api.generate(100, chats=3, size=60000)
    wait_until(lambda: "File too large" in spool.log(), "it says so")
    time.sleep(1)
    assert spool.process.poll() is None, spool.log()[-3000:]
    resource.prlimit(pid, resource.RLIMIT_FSIZE, limit)
    nothing_is_lost(spool, 100, timeout=90)


# ---- memory -----------------------------------------------------------------------------------------------------------------

if not is_sanitized():  # whose shadow takes terabytes of addresses
    def test_little_memory(spool, api):
        """A little more each time, until it runs: each time it ends, and damages nothing."""
        spool.configure(deliver="pull")
        api.generate(200, chats=3, size=2000)
        spool.start()
        spool.wait_counts(pending=200)
        spool.kill()
        endings = []
        for n in range(16, 900, 24):
            told = len(spool.log())
            endings.append(run_limited(spool, resource.RLIMIT_AS, n * MB))
            if endings[-1] is None:
                break
            assert re.search("memory|shared librar", spool.log()[told:]), spool.log()[told:]
            assert endings[-1] not in CRASHES, f"{n} MB: {endings} {spool.log()[-2000:]}"
        assert endings[-1] is None, "it never ran"
        spool.start()
        nothing_is_lost(spool, 200)

    def test_no_more_memory_while_running(spool, api):
        spool.configure(deliver="pull", poll_timeout="1s")
        spool.start()
        api.generate(50, chats=3)
        spool.wait_counts(pending=50)
        with open(f"/proc/{spool.process.pid}/statm", encoding="ascii") as f:
            have = int(f.read().split()[0]) * os.sysconf("SC_PAGESIZE")
        resource.prlimit(spool.process.pid, resource.RLIMIT_AS, (have + MB, have + MB))
        api.generate(250, chats=3, size=60000)
        wait_until(lambda: spool.process.poll() is not None, "it ends", 60)
        assert spool.process.returncode in (71, -signal.SIGABRT) and "memory" in spool.log()[-500:]
        spool.start()
        nothing_is_lost(spool, 300, timeout=90)
