"""A disk that fails: one operation, of one kind of file, from its n-th on; once, a few times or for ever. The same work is
done each time, with n growing, until the run ends unharmed."""
import os
import signal

from disk import faults
from harness import wait_until
from stage import Stage

EIO, ENOSPC = 5, 28
# What may fail, with names below the watched directory; those of RocksDB's that a flush and a compaction write are *.sst.
PLACES = {
    "write": ("data/db/*.log", "data/db/*.sst", "data/db/MANIFEST-*", "data/db/*.dbtmp", "data/db/OPTIONS-*",
              "data/db/LOG", "data/SPOOL.new", "data/lock", "archive/*", "backup/*"),
    "sync": ("data/db/*.log", "data/db/*.sst", "data/db/MANIFEST-*", "data/db/*.dbtmp", "data/db", "data", "data/SPOOL.new",
             "archive*", "backup*"),
    "open": ("data/db/*.log", "data/db/*.sst", "data/db/MANIFEST-*", "data/db/*.dbtmp", "data/db/LOG", "data/*", "archive/*",
             "backup/*"),
    "rename": ("data/db/*", "data/SPOOL", "data/checkpoints/*", "backup/*"),
    "link": ("data/checkpoints/*", "backup/*"),
    "unlink": ("data/db/*", "data/checkpoints/*", "data/*", "backup/*"),
    "mkdir": ("data*", "data/checkpoints*", "backup*"),
    "truncate": ("data/*",),
    "allocate": ("data/db/*", "data/reserve"),
}
READS = [("read", path, EIO) for path in ("data/db/*.sst", "data/db/*.log", "data/db/MANIFEST-*", "data/db/CURRENT",
                                          "data/db/OPTIONS-*", "data/db", "data", "data/SPOOL", "data/lock", "archive/*",
                                          "backup", "backup/*")]
CHANGES = [(operation, path, error) for operation, paths in PLACES.items() for path in paths for error in (EIO, ENOSPC)]
ALL = CHANGES + READS


class Harm:
    """What a run did: whether the fault was met, and how the daemon took it."""

    def __init__(self):
        self.met, self.exit = False, None


def work(s):
    """All that writes. Whatever the disk does, the daemon goes on answering."""
    def alive():
        code = s.spool.process.poll()
        assert code is None, f"the daemon ended with {code}:\n{s.spool.log()[-3000:]}"
    for turn in range(6):
        alive()
        s.generate(6, size=0 if turn % 2 else 60000)
        wait_until(lambda: s.api.state()["queued"] == 0 or "fail" in s.spool.log() or "cannot" in s.spool.log(),
                   "updates are taken, or it says why not")
        s.finish(s.claim(6))
        s.key()
        s.call()
        s.old_events(5)
        s.look()
        if turn % 3 == 1:
            s.checkpoint()
        if turn % 3 == 2:
            s.spool.cli("compact", code=None)
            s.run("backup", s.backup, code=None, fault=s.fault)
    alive()


def run(operation, path, error, n, count, seed=1, more=None):
    """One run. Returns its Harm; raises where something is lost, or the daemon does not take it well. more: environment."""
    s = Stage(seed)
    try:
        s.spool.configure(spool={"archive_dir": s.archive, "retain_done": "1s", "retain_dead": "1s", "reserve": "1M"})
        s.fault = f"{operation}:{path}:{error}:{n}:{count}"
        s.begin()
        harm = Harm()
        s.spool.start(env=s.env(fault=s.fault, more=more), wait=False)
        wait_until(lambda: s.spool.process.poll() is not None or s.is_up(), "it is up, or it gives up", 60)
        harm.exit = s.spool.process.poll()
        if harm.exit is None:
            work(s)
            if count:
                s.drain()  # by itself
            s.power_off()
        elif path.endswith("/LOG") and harm.exit == -signal.SIGABRT:
            pass  # RocksDB 7.8 ends the process where it cannot write that, as it opens; see doc/architecture.md
        else:
            well_told = harm.exit == 74 if operation == "read" else 64 <= harm.exit <= 78
            assert well_told and "cannot" in s.spool.log(), f"ended with {harm.exit}: {s.spool.log()[-3000:]}"
        harm.met = bool(faults(s.journal))
        assert "damaged" not in s.spool.log(), s.spool.log()[-3000:]
        s.check()
        s.goes_on()
        return harm
    except Exception as e:
        raise AssertionError(f"{s.fault}: {e!r}\n{s.spool.log()[-2000:]}") from e
    finally:
        s.close()


def until_unharmed(operation, path, error, count):
    """n grows until the operation is not met any more. The log tells how far it is."""
    n = runs = 0
    met = True
    while met:
        n += max(1, n // 3) if not os.environ.get("FAULTS_EACH") else 1
        runs += 1
        try:
            met = run(operation, path, error, n, count).met
        except AssertionError as e:
            print(f"FAIL {e}", flush=True)
            raise
    print(f"{operation}:{path}:{error}:1..{n}:{count}: {runs} runs", flush=True)
