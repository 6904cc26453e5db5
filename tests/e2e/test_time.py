"""The wall clock is set back and forward by hours and years, while the daemon runs and between its runs: waits are as long as
they were meant to be, nothing stands still, nothing is removed too early."""
import os
import struct
import time

import pytest

from harness import BUILD, has_failpoints, wait_until

HOUR, YEAR = 3600, 365 * 86400
STEPS = [-5 * YEAR, 3 * HOUR, -3 * HOUR, 10 * YEAR]
OTHER_TOKEN = "654321:AAF0-test-token-that-must-not-be-seen-2"


class Clock:
    """What the daemon takes for the wall clock."""

    def __init__(self, directory):
        self.path = os.path.join(directory, "clock")
        with open(self.path, "wb") as f:
            f.write(bytes(8))
        library = os.path.join(BUILD, "tests/e2e/stepped_clock.so")
        assert os.path.exists(library), "make builds it with the tests"
        # AddressSanitizer wants to be the first library, but for no reason that counts here
        asan = os.environ.get("ASAN_OPTIONS", "")
        self.env = {"LD_PRELOAD": library, "STEPPED_CLOCK": self.path,
                    "ASAN_OPTIONS": asan + (":" if asan else "") + "verify_asan_link_order=0"}

    def step(self, seconds):
        with open(self.path, "r+b") as f:
            f.write(struct.pack("=q", int(seconds * 1000)))


@pytest.fixture
def clock(spool):
    return Clock(spool.dir)


FAIL_FIRST = """
[ "$TGSPOOL_ATTEMPT" != 1 ] || { echo not yet >&2; exit 1; }
printf '%s\\n' "$TGSPOOL_AGE" >>AGES
"""


@pytest.fixture
def two(spool, api):
    """A bot with a handler that fails once, and one that is asked by the test."""
    handler = spool.shell_handler(FAIL_FIRST.replace("AGES", os.path.join(spool.dir, "ages")))
    spool.add_bot("pull", token=OTHER_TOKEN, api_root=api.url, intake="none", deliver="pull", lease="3s")
    spool.configure(deliver="exec", command=handler, retry="[1s]", jitter=0)
    return spool


def claim(spool, **args):
    status, answer = spool.api("POST", "/v1/claim", {"bot": "pull", **args})
    assert status == 200, answer
    return answer["events"]


def ack(spool, e):
    assert spool.api("POST", "/v1/ack", {"id": e["id"], "lease": e["lease"]})[0] == 200


def give(spool, n):
    """An update for the pull bot, which asks nobody for any."""
    line = ('{"bot":"pull","bot_id":654321,"box":"in","update_id":%d,"kind":"message","state":"pending",'
            '"received_at":%.3f,"payload":{"update_id":%d,"message":{"chat":{"id":%d}}}}\n' % (n, time.time(), n, n))
    assert spool.api("POST", "/v1/import", line)[0] == 200


def test_steps_while_it_runs(two, api, clock):
    two.start(env=clock.env)
    give(two, 100)
    kept = wait_until(lambda: claim(two, wait=1, lease="1h"), "an event whose lease lasts")[0]
    for n, seconds in enumerate(STEPS):
        give(two, n)
        held = wait_until(lambda: claim(two, wait=1, lease="2s"), "an event to hold")[0]
        api.inject_message(n, "hello")
        wait_until(lambda: len(two.record.lines("start")) == 2 * n + 1, "the first try")
        begin = time.monotonic()
        clock.step(seconds)
        wait_until(lambda: len(two.record) == n + 1, "the second try", 20)
        assert time.monotonic() - begin < 15
        again = claim(two, wait=20, lease="60s")
        assert [(e["id"], e["attempt"]) for e in again] == [(held["id"], 2)], "the lease has ended, and only once"
        assert again[0]["age"] < 120
        assert two.api("POST", "/v1/extend", {"id": again[0]["id"], "lease": again[0]["lease"], "by": "5m"})[0] == 200
        ack(two, again[0])
    ack(two, kept)
    with open(os.path.join(two.dir, "ages"), encoding="utf-8") as f:
        assert all(int(age) < 120 for age in f), "ages are not by the wall clock"
    two.wait_log("the clock was set forward by ", 30)
    clock.step(-5 * YEAR)
    two.wait_log("and removes nothing", 30)
    two.stop()
    assert two.cli("verify")


def lease_after_a_step(spool, clock, seconds, more):
    """What is claimed right after the clock was set while a lease of ten minutes lasts: the same again, if it is broken."""
    spool.start(env={**clock.env, **more})
    give(spool, 1)
    held = wait_until(lambda: claim(spool, wait=1, lease="10m"), "an event to hold")[0]
    clock.step(seconds)
    again = claim(spool, wait=1 if not more else 20, lease="10m")
    assert not again or again[0]["id"] == held["id"]
    return again


@pytest.mark.skipif(not has_failpoints(), reason="needs --enable-failpoints")
def test_a_lease_by_the_wall_clock_is_seen(two, clock):
    """Of a daemon that goes by the wall clock, these tests would tell."""
    assert lease_after_a_step(two, clock, 3 * HOUR, {"TGSPOOL_FAILPOINTS": "break.wall_clock=errno:1"})


def test_a_lease_lasts_over_a_step(two, clock):
    assert not lease_after_a_step(two, clock, 3 * HOUR, {})


def test_what_waits_does_not_expire_by_a_clock_that_may_be_wrong(two, clock):
    """Ten years later, as it seems: what came before is held back, what comes is handed over."""
    two.configure(bot="pull", expire="{message: 1h}")
    two.start(env=clock.env)
    give(two, 1)
    two.wait_counts(bot="pull", pending=1)
    two.stop()
    clock.step(10 * YEAR)
    two.start(env=clock.env)
    assert claim(two, wait=1) == []
    line = two.events(bot="pull")
    assert [(e["state"], e["attempts"]) for e in line] == [("pending", 0)], line
    two.stop()
    clock.step(0)
    two.start(env=clock.env)
    assert claim(two, wait=1) == [] and two.events(bot="pull", state="pending"), "it keeps the rest of ten minutes"
    two.stop()
    assert two.cli("verify")


def test_steps_between_runs(two, api, clock):
    """Killed while an event waits for its retry and another is held; then the clock stands elsewhere."""
    two.configure(retry="[3s]")
    two.start(env=clock.env)
    for n, seconds in enumerate([-5 * YEAR, 10 * YEAR, -3 * HOUR, 0]):
        give(two, n)
        held = wait_until(lambda: claim(two, wait=1, lease="5s"), "an event to hold")[0]
        api.inject_message(n, "hello")
        wait_until(lambda: len(two.record.lines("start")) == 2 * n + 1, "the first try begins")
        wait_until(lambda: two.events(bot="shop", state="pending"), "it has failed, and that is stored")
        two.kill() if n % 2 else two.stop()
        clock.step(seconds)
        two.start(env=clock.env)
        wait_until(lambda: len(two.record) == n + 1, "the second try", 40)
        again = wait_until(lambda: claim(two, wait=20, lease="60s"), "the lease to end", 60)
        assert again[0]["id"] == held["id"]
        ack(two, again[0])
    two.wait_counts(done=4, pending=0)
    assert len(two.events(bot="pull", state="done")) == 4, "nothing was removed by a time that may be wrong"
    assert "the clock stands " in two.log()
    assert "nothing is removed for 60m, and what has expired waits for 10m" in two.log()
    two.stop()
    assert two.cli("verify")
