"""Power cuts: 20 rounds (or $POWER_ROUNDS), and that a broken daemon is caught. A failed round: POWER_SEED=N runs it alone."""
import concurrent.futures
import contextlib
import os
import shutil
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rounds  # noqa: E402
from disk import MKDIR, OPEN, RENAME, SYNC, UNLINK, WRITE, Disk  # noqa: E402
from harness import has_failpoints  # noqa: E402
from stage import Died, Lost, Stage  # noqa: E402

ROUNDS = int(os.environ.get("POWER_ROUNDS") or 20)
SEEDS = [int(os.environ["POWER_SEED"])] if os.environ.get("POWER_SEED") else range(ROUNDS)


@pytest.mark.once
@pytest.mark.limit(3600)
def test_rounds():
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        done = [pool.submit(rounds.run, seed) for seed in SEEDS]
        failures = [str(f.exception()) for f in done if f.exception()]
    assert not failures, "\n".join(failures)


# ---- tests of the test: what is broken is caught ------------------------------------------------------------------------

def first_loss(stage, fault=None, env=None, cuts=60):
    """What is lost on the strict disk of the first of some cuts of a daemon at work that loses anything; else "". """
    for cut in range(rounds.START + 40, rounds.START + 40 + cuts):
        with contextlib.closing(stage(cut)) as s:
            s.begin()
            with contextlib.suppress(Died):
                s.start(cut=cut, fault=fault, more=env)
                s.load()
            s.put(s.disk_after().strict)
            try:
                s.check()
            except Lost as e:
                return str(e)
    return ""


def no_sync(seed):
    s = Stage(seed)
    s.spool.configure(spool={"sync": "off"})
    return s


@pytest.mark.once
def test_an_acknowledgement_before_the_sync_is_caught():
    if not has_failpoints():
        pytest.skip("needs a build with --enable-failpoints")
    assert "are lost" in first_loss(Stage, env={"TGSPOOL_FAILPOINTS": "break.callback_before_sync=errno:1"})


@pytest.mark.once
def test_no_syncs_are_caught():
    assert "are lost" in first_loss(no_sync)


@pytest.mark.once
@pytest.mark.parametrize("path, loss", [("data", "there is no spool"), ("data/db", "verify: 65"),
                                        ("data/db/*.log", "are lost")])
def test_a_sync_left_out_is_caught(path, loss):
    assert loss in first_loss(Stage, fault=f"sync:{path}:-1:1:0")


@pytest.mark.once
def test_none_is_caught_where_nothing_is_broken():
    assert first_loss(Stage, cuts=6) == ""


def test_the_journal_tells_all():
    """What it tells of a run makes the very files that the run left."""
    with contextlib.closing(Stage(7)) as s:
        s.begin()
        with contextlib.suppress(Died):
            s.start(cut=rounds.START + 500)
            s.load()
        s.disk_after().whole(s.disk + ".told")
        assert tree(s.disk + ".told") == tree(s.disk)


def tree(top):
    found = {}
    for where, dirs, names in os.walk(top):
        found[os.path.relpath(where, top)] = sorted(dirs)
        for name in names:
            with open(os.path.join(where, name), "rb") as f:
                found[os.path.relpath(f.name, top)] = f.read()
    return found


class TestDisk:
    """The model itself: the rules that its head tells."""

    @pytest.fixture
    def disk(self, tmp_path):
        os.mkdir(tmp_path / "disk")
        return Disk(str(tmp_path / "disk"))

    @staticmethod
    def do(disk, *operations):
        for op, path, ino, a, second in operations:
            disk.take(op, os.path.join(disk.root, path), ino, a,
                      os.path.join(disk.root, second).encode() if isinstance(second, str) else second)

    @staticmethod
    def left(disk):
        shutil.rmtree(disk.root)
        return {k: v for k, v in tree(disk.strict(disk.root)).items() if isinstance(v, bytes)}

    NEW = ((OPEN, "a", 5, 1, b""), (WRITE, "", 5, 0, b"abc"))
    TOP = (OPEN, "", 1, 0, b"")

    def test_a_synced_file_without_a_synced_name(self, disk):
        self.do(disk, *self.NEW, (SYNC, "", 5, 0, b""))
        assert self.left(disk) == {}

    def test_a_synced_name_without_synced_bytes(self, disk):
        self.do(disk, *self.NEW, self.TOP, (SYNC, "", 1, 0, b""))
        assert self.left(disk) == {"a": b""}

    def test_both(self, disk):
        self.do(disk, *self.NEW, (SYNC, "", 5, 0, b""), self.TOP, (SYNC, "", 1, 0, b""), (WRITE, "", 5, 3, b"d"))
        assert self.left(disk) == {"a": b"abc"}

    def test_an_unsynced_removal_and_rename(self, disk):
        self.do(disk, *self.NEW, (SYNC, "", 5, 0, b""), self.TOP, (SYNC, "", 1, 0, b""), (RENAME, "a", 0, 0, "b"))
        assert self.left(disk) == {"a": b"abc"}
        self.do(disk, (SYNC, "", 1, 0, b""), (UNLINK, "b", 0, 0, b""))
        assert self.left(disk) == {"b": b"abc"}

    def test_a_rename_between_directories(self, disk):
        self.do(disk, *self.NEW, (SYNC, "", 5, 0, b""), (MKDIR, "d", 0, 0, b""), self.TOP, (SYNC, "", 1, 0, b""),
                (RENAME, "a", 0, 0, "d/b"), (SYNC, "", 1, 0, b""))
        assert self.left(disk) == {"a": b"abc"}, "never of no name"
        self.do(disk, (OPEN, "d", 9, 0, b""), (SYNC, "", 9, 0, b""))
        assert self.left(disk) == {"d/b": b"abc"}, "and not of two"
