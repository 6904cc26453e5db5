"""kill -9, placed: in a poll, between commit and confirm, in a handler. Nothing is lost, nothing is handled twice but
what was in flight, and each chat keeps its order."""
import collections
import os
import subprocess

import pytest

from harness import has_failpoints, wait_until

pytestmark = pytest.mark.once
UPDATES, CHATS, KILLS, SLOTS = 5000, 40, 20, 4


def wait_crash(spool):
    """Waits until the daemon has died at its failpoint, by _exit(42): nothing of it runs any more, as after kill -9."""
    try:
        code = spool.process.wait(60)
    except subprocess.TimeoutExpired:
        raise AssertionError("the failpoint was not hit:\n" + spool.log()[-3000:]) from None
    assert code == 42, spool.log()[-3000:]


def kill_in_a_poll(spool, api):
    """While a getUpdates of this daemon is with the server, all else being done."""
    by_workers(spool)
    spool.start()
    wait_until(lambda: api.state()["queued"] == 0, "all has come", 120)
    spool.wait_counts(pending=0, processing=0, timeout=300)
    wait_until(lambda: api.state()["waiting"], "a poll is under way")
    spool.kill()
    wait_until(lambda: not api.state()["waiting"], "it was this daemon's")


def kill_at(point, n):
    def kill(spool, api):
        spool.start(env={"TGSPOOL_FAILPOINTS": f"{point}=crash@{n}"}, wait=False)
        wait_crash(spool)
    return kill


def kill_in_a_handler(spool, api):
    """While handlers run in all slots: they are held between their start and their end."""
    hold, started, ended = spool.write("hold", ""), len(spool.record.lines("start")), len(spool.record)
    spool.start(wait=False)
    wait_until(lambda: len(spool.record.lines("start")) == started + SLOTS, "handlers run", 120)
    spool.kill()  # and the handlers with it, before it is gone
    os.unlink(hold)
    assert len(spool.record) == ended, "not one of them had ended"


def by_processes(spool):
    """A process an event, which the places in handlers are about."""
    spool.configure(deliver="exec", command=spool.shell_handler("while [ -e ${0%/*}/hold ]; do sleep 0.02; done"))


def by_workers(spool):
    """The same record by workers: thousands of processes would take minutes."""
    spool.configure(deliver="worker", command=spool.python_handler("""
for e in requests():
    record("start", e)
    record("end", e)
    answer(e, ok=True)
"""))


@pytest.mark.limit(900)
def test_twenty_kills_over_5000_updates(spool, api):
    if not has_failpoints():
        pytest.skip("needs a build with --enable-failpoints")
    spool.level = "info"
    spool.configure(concurrency=SLOTS, retry="[20ms]", jitter=0)
    by_processes(spool)
    places = [
        ("between commit and confirm", kill_at("poll.before_next", 2)),
        ("before the write", kill_at("commit.before_write", 3)),
        ("after the write", kill_at("commit.after_write", 2)),
        ("in a handler", kill_in_a_handler),
        ("after the start of a handler", kill_at("exec.after_spawn", 20)),
    ]
    hit = collections.Counter()
    in_flight = set()
    made = 0
    for i in range(KILLS):
        made += api.generate(UPDATES // KILLS, chats=CHATS)["made"]
        name, kill = places[i % len(places)] if i < KILLS - 4 else ("in a poll", kill_in_a_poll)
        kill(spool, api)
        hit[name] += 1
        in_flight |= in_flight_now(spool)
    assert sum(hit.values()) == KILLS and min(hit.values()) >= 3 and made == UPDATES
    spool.start()
    spool.wait_counts(pending=0, processing=0, done=UPDATES, timeout=300)
    wait_until(lambda: api.state()["queued"] == 0, "all is confirmed")
    check(spool, in_flight)


def in_flight_now(spool):
    """The ids that may have been with a handler at the kill: started and not ended, or ended so late that the end may not
    have been stored. A handler holds its slot until then, and may take long to exit while the other slots go on."""
    starts = collections.Counter(spool.record.ids("start"))
    ends = collections.Counter(spool.record.ids("end"))
    cut = {i for i, n in starts.items() if ends[i] < n}
    return cut | set(spool.record.ids("end")[-8 * SLOTS:])


def check(spool, in_flight):
    ends = spool.record.lines("end")
    times = collections.Counter(r["id"] for r in ends)
    assert len(times) == UPDATES, "an update was not handled"
    twice = {i for i, n in times.items() if n > 1}
    assert len(twice) <= KILLS * SLOTS, "more than were in slots"
    assert twice <= in_flight, f"handled twice, not having been in flight: {sorted(twice - in_flight)[:5]}"
    first = {}
    for row in ends:
        first.setdefault(row["id"], row)
    last = collections.defaultdict(int)
    for row in first.values():
        assert int(row["update_id"]) > last[row["lane"]], f"out of order: {row}"
        last[row["lane"]] = int(row["update_id"])


@pytest.mark.parametrize("point", ["poll.before_next", "poll.before_accept", "commit.before_write",
                                   "commit.after_write", "exec.after_spawn", "deliver.before_complete"])
@pytest.mark.parametrize("n", [1, 3])
def test_a_kill_at_each_point(spool, api, point, n):
    if not has_failpoints():
        pytest.skip("needs a build with --enable-failpoints")
    spool.configure(retry="[20ms]", jitter=0)
    if point.startswith(("exec.", "deliver.")):
        by_processes(spool)
        made = 40
    else:
        by_workers(spool)
        made = 250  # three polls
    api.generate(made, chats=5)
    spool.start(env={"TGSPOOL_FAILPOINTS": f"{point}=crash@{n}"}, wait=False)
    wait_crash(spool)
    spool.start()
    spool.wait_counts(pending=0, processing=0, done=made)
    wait_until(lambda: api.state()["queued"] == 0, "all is confirmed")
    assert len(set(spool.record.ids())) == made
    assert len(spool.record) <= made + 2, "more were handled twice than handlers run at once"


def test_a_full_disk_stops_intake_and_loses_nothing(spool, api):
    if not has_failpoints():
        pytest.skip("needs a build with --enable-failpoints")
    spool.configure(command=spool.shell_handler(), retry="[20ms]", jitter=0)
    api.generate(50, chats=5)
    spool.start(env={"TGSPOOL_FAILPOINTS": "store.write=errno:28@3"})
    spool.wait_counts(pending=0, processing=0, done=50, timeout=60)
    wait_until(lambda: api.state()["queued"] == 0, "all is confirmed")
    assert len(set(spool.record.ids())) == 50
    assert os.path.isdir(spool.data)
