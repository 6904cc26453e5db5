"""A disk that fails, at each of its operations: a clear message, nothing lost that was acknowledged, no abort, and on by itself
once it works again. A sample here; `make faults` takes them all, $FAULTS_JOBS (4) at once."""
import concurrent.futures
import contextlib
import json
import os
import random
import sys
import time

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import faults  # noqa: E402
from harness import has_failpoints, often, wait_until  # noqa: E402
from stage import Stage  # noqa: E402

AT_ONCE = int(os.environ.get("FAULTS_JOBS") or 4)
SAMPLE, SAMPLE_OF_READS = often(12), often(3)  # test_reads.py has more of those


def side_by_side(function, runs):
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        done = [pool.submit(function, *args) for args in runs]
        failures = [str(f.exception()) for f in done if f.exception()]
    assert not failures, "\n".join(failures)


@pytest.mark.limit(900)
def test_a_sample():
    """Each time the same."""
    rng = random.Random(5)
    runs = [(*rng.choice(faults.CHANGES), rng.choice((1, 2, 3, 5, 8, 13, 21)), rng.choice((0, 1, 2))) for _ in range(SAMPLE)]
    runs += [(*rng.choice(faults.READS), rng.choice((1, 2, 5, 13, 34, 89)), rng.choice((0, 1, 2)))
             for _ in range(SAMPLE_OF_READS)]
    side_by_side(faults.run, runs)


if os.environ.get("FAULTS_ALL"):
    @pytest.mark.limit(36000)
    def test_all():
        runs = [(*place, count) for place in faults.ALL for count in (0, 1, 2)]
        side_by_side(faults.until_unharmed, runs)


def test_an_idle_daemon_notices():
    """Memory cannot be written to tables, and nothing else is written that would tell."""
    with contextlib.closing(Stage(1)) as s:
        s.spool.configure(poll_timeout="50s")
        s.begin()
        s.start(fault="sync:data/db/*.sst:5:1:0")
        s.generate(5)
        wait_until(lambda: s.spool.counts()["pending"] == 5 and s.api.state()["waiting"], "all is there, and it is idle")
        s.checkpoint()
        wait_until(lambda: not s.spool.api("GET", "/v1/status")[1]["healthy"], "it is told", 60)
        assert "Input/output error" in s.spool.log()


@pytest.mark.once
def test_a_confirmation_before_the_write_is_caught():
    """A program that runs a commit's callbacks before its write: what fails then was promised."""
    if not has_failpoints():
        pytest.skip("needs a build with --enable-failpoints")
    found = []
    for n in range(4, 12):
        try:
            faults.run("write", "data/db/*.log", faults.EIO, n, 1,
                       more={"TGSPOOL_FAILPOINTS": "break.callback_before_write=errno:1"})
        except AssertionError as e:
            found.append(str(e))
            if "are lost" in found[-1]:
                return
    raise AssertionError(f"not seen: {found}")


# ---- what takes several batches ----------------------------------------------------------------------------------------

LINES = 2500


def lines():
    return "".join(json.dumps({"bot": "shop", "bot_id": 123456, "box": "in", "update_id": i, "kind": "message",
                               "received_at": time.time(), "state": "pending", "attempts": 0,
                               "payload": {"update_id": i, "message": {"chat": {"id": i}}}}) + "\n"
                   for i in range(1, LINES + 1))


@pytest.mark.once
@pytest.mark.parametrize("verb", ["import", "discard"])
def test_a_batch_of_many_fails(make_spool, verb):
    """A write fails in the middle of what takes several: it is not told that all is done."""
    if not has_failpoints():
        pytest.skip("needs a build with --enable-failpoints")
    refused = []

    def fail_at(n):
        spool = make_spool()
        spool.add_bot("shop", api_root="http://127.0.0.1:1")
        spool.configure(intake="none", deliver="pull")
        if verb == "discard":
            spool.cli("import", input=lines())
        spool.start(env={"TGSPOOL_FAILPOINTS": f"store.write=errno:5@{n}"})
        wait_until(lambda: spool.api("GET", "/v1/status")[1]["healthy"], "it has come back")
        if verb == "import":
            status, answer = spool.api("POST", "/v1/import", lines())
        else:
            status, answer = spool.api("POST", "/v1/discard", {"state": "pending"})
        wait_until(lambda: spool.api("GET", "/v1/status")[1]["healthy"], "it has come back")
        there = spool.counts()["pending" if verb == "import" else "dead"]
        assert status == 503 or there == LINES, f"told {answer}, but it is {there}"
        refused.append(status == 503)
        spool.kill()
    side_by_side(fail_at, [(n,) for n in range(1, 9)])
    assert sum(refused) >= 2
