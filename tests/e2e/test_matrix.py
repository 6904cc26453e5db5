"""A sample of the crash matrix (all of it: make matrix); the proof that it covers what there is; and the proof that it
would see a break, on programs that are broken on purpose."""
import os
import subprocess
import time

import pytest

import matrix
from harness import has_failpoints, wait_until
from matrix import Cell, failpoints

pytestmark = [pytest.mark.limit(600), pytest.mark.once,
              pytest.mark.skipif(not has_failpoints(), reason="needs --enable-failpoints")]

# Which cells are taken changes from day to day: those of one in so many failpoints. A run of another day is repeated with its
# number.
TURN = int(os.environ.get("MATRIX_TURN") or time.time() // 86400)
ONE_IN = 6

# Those that no cell passes: the test that does, and what to look for in it.
ELSEWHERE = {
    "migrate.slice": ("tests/spool/test-migrate.c", "migrate.slice=crash"),
    "spool.recover": ("tests/spool/test-failures.c", "spool.recover=errno"),  # and in cells that fail twice
    # A claim that comes to nothing between two callbacks: no row of the table of outcomes.
    "outcome.before_returned": ("tests/spool/test-outcomes.c", "OUTCOME_RETURNED"),
    "outcome.after_returned": ("tests/spool/test-outcomes.c", "OUTCOME_RETURNED"),
}


@pytest.fixture(scope="module")
def passed():
    """A run without a crash of each combination and act, which keeps all promises: how often each place was passed."""
    return matrix.references()


def check(cells):
    cells = matrix.sample(cells, TURN // ONE_IN)[TURN % ONE_IN::ONE_IN]
    bad = [f"{matrix.name_of(cell)} (MATRIX_TURN={TURN}): {'; '.join(wrong)}"
           for cell, wrong in matrix.in_parallel(matrix.run_sure, cells) if wrong]
    assert not bad, "\n".join(bad)


def test_every_failpoint_is_somewhere_passed(passed):
    names = {p.name for p in failpoints.places()}
    reached = set().union(*passed.values())
    assert not names - reached - set(ELSEWHERE), "no cell passes these, and ELSEWHERE names no test"
    assert not set(ELSEWHERE) - names, "these are gone from the source"
    for name, (path, word) in ELSEWHERE.items():
        with open(os.path.join(failpoints.SRC, path), encoding="utf-8") as f:
            assert word in f.read(), f"{path} does not pass {name}"


def test_a_crash_at_each_failpoint(passed):
    check(matrix.lives(matrix.crash_cells(passed)))


def test_a_crash_in_what_is_done_to_a_whole_spool(passed):
    check(matrix.acts(matrix.crash_cells(passed)))


def test_a_failure_at_each_failpoint_that_can_fail(passed):
    check(matrix.lives(matrix.fault_cells(passed)))


# ---- would it be seen?

def seen(cells, broken):
    """What is found wrong in cells of a program that is broken."""
    return sum(matrix.in_parallel(lambda cell: matrix.run_cell(cell, f";{broken}", 8) or [], cells), [])


def test_a_lost_order_entry_is_seen():
    wrong = seen([Cell("poll.after_next", 1, "poll", "exec")], "break.lost_order=errno:1@2")
    assert any("verify ends with" in w and "has no lane" in w for w in wrong), wrong


def test_an_ack_that_is_answered_early_is_seen():
    cells = [Cell("store.write", n, "poll", "pull") for n in range(5, 13)]
    wrong = seen(cells, "break.early_answer=errno:1")
    assert any("was acknowledged to its consumer, and is not done" in w for w in wrong), wrong
    assert not seen(cells[:4], "break.early_answer=errno:0"), "the same of the program as it is"


def test_a_telegram_that_is_told_early_is_seen():
    """A commit's callbacks run before its write. (Before its sync alone would be nothing that a kill can show: the kernel
    has the bytes. That is for tests/power.)"""
    wrong = seen([Cell("store.write", n, "webhook", "exec") for n in (2, 3, 4, 5)], "break.callback_before_write=errno:1")
    assert any("Telegram believes that" in w for w in wrong), wrong
