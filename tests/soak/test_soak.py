"""make soak notices daemons that are broken on purpose (leaks.c), says so of nothing else, and would notice in an hour what
creeps too slowly to be seen here."""
import collections
import os
import random
import re
import subprocess
import sys
import threading

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import soak  # noqa: E402

pytestmark = pytest.mark.once

# What each breaks, and what must be said of it: each of the first, and one of the second (where a machine is so busy that
# everything waits from the start, p50 has no further to go). The slow one is the witness that what is not broken does not
# creep; but how long things take depends on what else the machine does, and what is too slow may also be late.
LATENCY = {"p50 ms", "p99 ms"}
RUNS = {"fds=2,keep_kb=512,disk_kb=128": ({"fds", "rss MB", "db MB"}, set()), "slow_ms=5": (set(), LATENCY)}
SLOW = re.compile("(p50 ms|p99 ms)(:| creeps)|not handled: ")
HOUR, SAMPLE_S = 3600, 10
CROWD = (2400, 2700)  # s, in which there are more descriptors: that is no trend


@pytest.fixture(scope="module")
def said():
    """The status and the output of a run each, all at once."""
    done = {}

    def run(leaks):
        env = {**os.environ, "SOAK_SECONDS": "45", "SOAK_RATE": "20", "SOAK_LEAKS": leaks}
        r = subprocess.run([sys.executable, os.path.join(HERE, "soak.py")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           text=True, timeout=400, env=env)
        done[leaks] = r.returncode, r.stdout
    threads = [threading.Thread(target=run, args=(leaks,)) for leaks in RUNS]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return done


@pytest.mark.parametrize("leaks", RUNS)
def test_a_broken_daemon(said, leaks):
    status, output = said[leaks]
    fails = re.findall(r"^FAIL: (.*)", output, re.M)
    creeps = {m[1] for m in (re.fullmatch(r"(.+) creeps: \d+, then \d+", f) for f in fails) if m}
    each, one_of = RUNS[leaks]
    assert status == 1 and creeps >= each and (not one_of or creeps & one_of), output
    others = [f for f in fails if f.split(" creeps: ")[0] not in each and not SLOW.match(f)]
    assert not others, output


def hour(**a_minute):
    """What is said of an hour of samples, with the noise of a real one, in which something rises by so much a minute."""
    s, rng = soak.Soak.__new__(soak.Soak), random.Random(1)
    s.begin, s.troubles, s.samples, s.latencies = 0, [], [], []
    for t in range(0, HOUR, SAMPLE_S):
        crowd = 100 if CROWD[0] <= t < CROWD[1] else 0
        kinds = collections.Counter(other=70 + rng.randrange(10) + crowd)
        plateau = 1 - 1 / (1 + t / 300)
        row = {"rss MB": 20 + 4 * plateau + rng.uniform(-1, 1), "fds": kinds["other"], "tables": 15 + rng.randrange(15),
               "threads": 4, "children": 3 + rng.randrange(3), "db MB": 3 + 110e-6 * 40 * t + rng.uniform(-1, 1),
               "events": 40 * t, "kinds": kinds}
        s.samples.append((t, {k: v + a_minute.get(k.split()[0], 0) * t / 60 if k != "kinds" else v for k, v in row.items()}))
        for _ in range(200):
            slow = rng.uniform(500, 1100) if rng.random() < 0.03 else rng.uniform(10, 90)
            s.latencies.append((t, slow + a_minute.get("ms", 0) * t / 60))
    s.judge_rises()
    return [t.split(" creeps")[0] for t in s.troubles]


@pytest.mark.parametrize("leak, noticed", [({}, []), ({"fds": 1}, ["fds"]), ({"rss": 0.1}, ["rss MB"]),
                                           ({"db": 0.4}, ["db MB"]), ({"ms": 10}, ["p50 ms"])])
def test_an_hour(monkeypatch, leak, noticed):
    monkeypatch.setattr(soak, "SECONDS", HOUR)
    monkeypatch.setitem(soak.LIMITS, "rss MB", 2.5)  # of a build without sanitizers
    assert hour(**leak) == noticed
