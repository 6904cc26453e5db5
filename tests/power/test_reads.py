"""A disk that cannot be read, once or for ever: what was not read in whole is told, nothing is taken for damaged or gone, and all
goes on once it works. What writes meanwhile is tried by test_faults.py."""
import json
import os
import random
import shutil
import sys
import time

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from disk import faults  # noqa: E402
from harness import wait_until  # noqa: E402
from stage import Stage  # noqa: E402

EIO, EX_IOERR = 5, 74
ALL = bool(os.environ.get("FAULTS_ALL"))
SAMPLE = 8
UNFINISHED, ENDED = 17, 11


class Kept:
    """A spool with tables, a log and a backup, at rest; each try finds it as it was."""

    def __init__(self):
        self.stage = s = Stage(1)
        self.copy = s.disk + ".kept"
        s.spool.configure(lease="1h", spool={"cache": "64K", "reserve": "off"})
        s.start()
        for turn in range(3):
            s.generate(8, size=60000 if turn != 1 else 0)
            wait_until(lambda: s.api.state()["queued"] == 0, "all is taken")
            s.finish(s.claim(3))
            s.key()
            s.spool.cli("compact")
        s.finish(s.claim(2))
        s.generate(4)
        wait_until(lambda: s.api.state()["queued"] == 0, "all is taken")
        s.run("backup", s.backup)
        s.believed()
        s.spool.stop()
        shutil.copytree(s.disk, self.copy)

    def renew(self):
        s = self.stage
        s.power_off()
        s.put(lambda to: shutil.copytree(self.copy, to))
        s.begin()
        return s


@pytest.fixture(scope="module")
def kept():
    k = Kept()
    yield k
    k.stage.close()


# ---- commands ----------------------------------------------------------------------------------------------------------

def counts(stage, *where):
    found = json.loads(stage.spool.cli("--json", "verify", *where))
    return found["faults"], found["unfinished"], found["ended"]


def data_is_there(s):
    assert counts(s) == (0, UNFINISHED, ENDED)


def backup_is_there(s):
    assert counts(s, s.backup) == (0, UNFINISHED, ENDED)


def both(s):
    data_is_there(s)
    backup_is_there(s)


def restored(s):
    """Or nothing is, and it can be done again."""
    if s.spool.cli("--json", "verify", code=None).returncode:
        s.run("restore", s.backup)
    both(s)


def nothing_changed(_):
    """It only reads."""


def is_exported(r):
    assert len(r.stdout.splitlines()) == UNFINISHED + ENDED


def is_listed(r):
    assert len(json.loads(r.stdout)["events"]) == UNFINISHED + ENDED


def says_all_well(r):
    assert "all well" in r.stdout


def anything(_):
    pass


# command, what stands there afterwards, what a success must have said; which files it reads
DATA = ("data/db/*.sst", "data/db/*.log", "data/db/MANIFEST-*", "data/db/CURRENT", "data/db/OPTIONS-*", "data/db", "data/SPOOL")
BACKUP = ("backup/BACKUP", "backup/state-1/db/*", "backup/state-1/db", "backup/state-1/SPOOL", "backup")
COMMANDS = {
    "verify": (("verify",), nothing_changed, says_all_well, DATA),
    "export": (("export",), nothing_changed, is_exported, DATA),
    "list": (("list", "--json", "--limit", "100"), nothing_changed, is_listed, DATA),
    "repair": (("repair",), data_is_there, says_all_well, DATA),
    "backup": (("backup", "{backup}"), both, anything, DATA + BACKUP + ("backup/state-2.new/*",)),
    "verify backup": (("verify", "{backup}"), nothing_changed, says_all_well, BACKUP),
    "restore": (("restore", "{backup}"), restored, anything, BACKUP + ("data/*",)),
}
PAIRS = [(what, path) for what, command in COMMANDS.items() for path in command[3]]


def try_command(kept, what, path, n, count):
    """Returns whether the fault was met."""
    s = kept.renew()
    args, holds, said, _ = COMMANDS[what]
    if what == "restore":
        shutil.rmtree(s.spool.data)
        s.begin()
    r = s.run(*[a.format(backup=s.backup) for a in args], code=None, fault=f"read:{path}:{EIO}:{n}:{count}")
    kept.code = r.returncode
    told = f"{what}, the {n}th read of {path}, {count or 'all'}: {r.returncode} {r.stdout[-500:]} {r.stderr}"
    met = faults(s.journal)
    assert r.returncode in (0, EX_IOERR), told
    assert met or r.returncode == 0, told
    assert "orruption" not in r.stderr and "damaged" not in r.stderr, told
    assert r.returncode == 0 or "Input/output error" in r.stderr, told
    try:
        if r.returncode == 0:
            said(r)
        holds(s)
    except AssertionError as e:
        raise AssertionError(f"{told}: {e}") from e
    return met


def test_a_sample_of_commands(kept):
    """Each time the same."""
    rng = random.Random(7)
    for what, path in rng.sample(PAIRS, SAMPLE):
        try_command(kept, what, path, rng.choice((1, 2, 5, 13, 60)), rng.choice((0, 1)))


@pytest.mark.parametrize("what, path", [("backup", "backup"), ("backup", "backup/BACKUP"), ("verify", "data/SPOOL"),
                                        ("restore", "backup/BACKUP"), ("repair", "data/db/CURRENT")])
def test_a_command_gives_up(kept, what, path):
    """What it must know cannot be read: it neither guesses nor takes it for absent."""
    assert try_command(kept, what, path, 1, 0)
    assert not os.path.exists(kept.stage.backup + "/state-2")
    assert kept.code == EX_IOERR


if ALL:
    @pytest.mark.limit(36000)
    @pytest.mark.parametrize("what, path", PAIRS)
    def test_all(kept, what, path):
        """n grows until the fault is not met any more."""
        for count in (0, 1):
            n = 1
            while try_command(kept, what, path, n, count):
                n += max(1, n // 3)


# ---- the daemon --------------------------------------------------------------------------------------------------------

def box_in(status):
    return next(b for b in status["boxes"] if b["box"] == "in")


def look_at_all(s):
    """Every answer is whole, or says that it is not. Returns whether all were whole."""
    whole = s.look() is not None
    for seq in (1, 4, 12, 20):
        status, answer = s.ask("GET", f"/v1/events/shop/@{seq}")
        assert status in (200, 503), answer
        assert status == 503 or answer["payload"]
        whole &= status == 200
    claims, answer = s.ask("POST", "/v1/claim", {"bot": "shop", "max": 1})
    whole &= claims == 200
    told = s.ask("GET", "/v1/status")[1]
    b = box_in(told)
    assert claims == 503 or answer["events"] or b["processing"], "there is a lane that nobody has"
    assert (b["pending"] + b["processing"], b["done"], b["dead"]) == (UNFINISHED, ENDED, 0), b
    assert not told["healthy"] or b["oldest_unfinished_age"] is not None, b
    assert told["health"] != "corrupt", told["trouble"]
    assert told["healthy"] or "Input/output error" in told["trouble"], told
    return whole


@pytest.mark.parametrize("n, count", [(1, 0), (60, 3)] + ALL * [(n, c) for n in (1, 2, 4, 9, 20, 40, 80) for c in (1, 2, 0)])
def test_a_daemon_that_cannot_read(kept, n, count):
    s = kept.renew()
    s.disk_fails(False)
    s.spool.start(env=s.env(fault=f"read:data/db/*.sst:{EIO}:{n}:{count}"))
    s.disk_fails(True)
    end = time.monotonic() + 30
    while len(faults(s.journal)) < max(count, 1) and time.monotonic() < end:
        look_at_all(s)
    look_at_all(s)
    assert faults(s.journal)
    s.disk_fails(False)
    wait_until(lambda: look_at_all(s), "all can be read again", 70)
    if count == 0:
        assert "alert store" in s.spool.log()
    s.spool.stop()
    s.disk_fails(True)
    data_is_there(s)


def test_a_start_that_cannot_read(kept):
    """It says so and ends; the next one goes on as if nothing had been."""
    for path in DATA:
        s = kept.renew()
        s.spool.start(env=s.env(fault=f"read:{path}:{EIO}:1:0"), wait=False)
        wait_until(lambda: s.spool.process.poll() is not None or s.is_up(), "it is up, or it gives up", 60)
        code = s.spool.process.poll()
        assert code in (None, EX_IOERR) and faults(s.journal), f"{path}: {code} {s.spool.log()[-2000:]}"
        assert "damaged" not in s.spool.log()
        s.power_off()
        data_is_there(s)
