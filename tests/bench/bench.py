#!/usr/bin/env python3
"""Benchmarks of the daemon; they print figures and judge nothing.

    bench.py bench-intake [--updates N] [--size BYTES] [--batch N] [--sync always|20ms|off]
        Updates a second from a local Bot API server, stored and synced, handed to nobody.
    bench.py bench-backlog [--updates N] [--size BYTES]
        A daemon with so many updates waiting: resident memory, and the time from its start to the first delivery.

From the build directory; or `make bench-intake`, `make bench-backlog` with BENCH_ARGS="...".
"""
import argparse
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))
from harness import BotApi, Spool, wait_until  # noqa: E402


def memory(pid):
    """Resident memory in MiB: now, of it anonymous, and at most so far."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        fields = dict(line.split(":", 1) for line in f)
    return [int(fields[name].split()[0]) / 1024 for name in ("VmRSS", "RssAnon", "VmHWM")]


def show_memory(what, spool):
    print("{:34} {:8.1f} MiB resident ({:.1f} anonymous, at most {:.1f})".format(what, *memory(spool.process.pid)))


def processor_s(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def fill(spool, options):
    """Takes all updates of the flood in, measuring."""
    received = (lambda: spool.counts()["pending"])
    spool.start()
    wait_until(received, "the first updates", 60)
    n0, t0, cpu0 = received(), time.monotonic(), processor_s(spool.process.pid)
    last = n0
    while last < options.updates:
        time.sleep(0.2)
        now = received()
        if now == last and time.monotonic() - t0 > 30 + options.updates / 1000:
            sys.exit(f"intake stands still at {now}:\n{spool.log()[-2000:]}")
        last = now
    seconds = time.monotonic() - t0
    cpu = processor_s(spool.process.pid) - cpu0
    print(f"{'intake':34} {(last - n0) / seconds:8.0f} updates/s ({last - n0} of {options.size} bytes in {seconds:.2f} s,"
          f" {options.batch} an answer, sync {options.sync}, {100 * cpu / seconds:.0f} % of one core)")


def bench_intake(spool, options):
    fill(spool, options)
    show_memory("memory at the end", spool)


def bench_backlog(spool, options):
    fill(spool, options)
    show_memory("memory after intake", spool)
    spool.stop()
    first = os.path.join(spool.dir, "first")
    handler = spool.write("handler", f"#!/bin/sh\n[ -e {first} ] || : >{first}\nsleep 0.05\n", 0o700)
    spool.configure(deliver="exec", command=handler, intake="none")
    spool.start(wait=False)
    end = time.monotonic() + 120
    while not os.path.exists(first):
        if time.monotonic() > end or spool.process.poll() is not None:
            sys.exit("nothing was delivered:\n" + spool.log()[-2000:])
        time.sleep(0.001)
    print(f"{'start to first delivery':34} {1000 * (time.monotonic() - spool.started_at):8.0f} ms"
          f" ({options.updates} waiting)")
    show_memory("memory at the first delivery", spool)
    time.sleep(10)
    show_memory("memory after 10 s of deliveries", spool)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["bench-intake", "bench-backlog"])
    parser.add_argument("--updates", type=int)
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--sync", default="always")
    options = parser.parse_args()
    options.updates = options.updates or {"bench-intake": 300_000, "bench-backlog": 1_000_000}[options.what]
    api = BotApi("--flood", str(options.updates), "--size", str(options.size), "--batch", str(options.batch))
    spool = Spool(api, level="info")
    spool.configure(deliver="pull", spool={"sync": options.sync})
    try:
        {"bench-intake": bench_intake, "bench-backlog": bench_backlog}[options.what](spool, options)
    finally:
        spool.close()
        api.stop()


if __name__ == "__main__":
    main()
