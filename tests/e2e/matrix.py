"""The crash matrix: the daemon dies (or a call of the store fails) at a failpoint, is started again, and all promises hold.

A cell is a failpoint, the pass at which it strikes, a way in (poll, webhook) and a way out (exec, worker, http, pull,
dropin, call). In each, some twenty updates go through every row of the outcome table that the way out has
(matrix_handlers.py, matrix_run.py); what must hold afterwards is in matrix_promises.py. What commands do to the files of a
spool is in matrix_acts.py, with cells of its own.

    tests/e2e/matrix.py [POINT | POINT/INTAKE/DELIVERY | POINT/ACT]...

runs all cells (or those named), each at its first and its middle pass, and prints a table. Run from the build directory.
"""
import collections
import concurrent.futures
import os
import sys
import time
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lint"))
import failpoints  # noqa: E402
import matrix_acts  # noqa: E402
from harness import has_failpoints, is_sanitized  # noqa: E402
from matrix_promises import violations  # noqa: E402
from matrix_handlers import PATIENCE  # noqa: E402
from matrix_run import Run  # noqa: E402

INTAKES = ("poll", "webhook")
WORKERS = int(os.environ.get("MATRIX_JOBS") or (3 if is_sanitized() else 6))  # they mostly wait
DELIVERIES = ("exec", "worker", "http", "pull", "dropin", "call")

# With an errno the place fails instead. Of an act, intake is "act" and delivery its name.
Cell = collections.namedtuple("Cell", "point at intake delivery errno", defaults=(0,))


def name_of(cell):
    return f"{cell.point}@{cell.at}/{cell.intake}/{cell.delivery}" + (f" errno {cell.errno}" if cell.errno else "")


def asks_for_more(point):
    return point.split(".")[0] in ("file", "checkpoint") or \
        point in ("store.flush", "store.flushed", "store.checkpoint", "store.checkpointed", "store.compact",
                  "store.compacted")


def reference(intake, delivery):
    """A run without a crash: keeps all promises, and says how often each failpoint was passed."""
    if intake == "act":
        return matrix_acts.reference(delivery)
    run = Run(intake, delivery, slow=True)
    try:
        run.feed()
        if run.handling:
            run.handling.begin()
        status = run.live("*=passes:" + run.passes_path, ask_for_more=True)
        passes = run.passes()
        run.live_on()
        wrong = list(violations(run))
        assert status == 0 and not wrong, f"{intake}/{delivery}, no crash: {status} {wrong}"
        return passes
    finally:
        run.close()


# What strikes only on the way back from another failure, which is made too.
BACK = ("store.open", "spool.recover")
# Failures that end a start are none to recover from: the first pass that is behind it, if there is one.
BEHIND_START = {"store.open": 2, "file.rename": 2, "store.before_marker": None, "store.walk": 20}


def strike(cell):
    """The environment's text for a cell."""
    if not cell.errno:
        return f"{cell.point}=crash@{cell.at}"
    spec = f"{cell.point}=errno:{cell.errno}@{cell.at}"
    return spec + ";store.write=errno:5@3" if cell.point in BACK and cell.intake != "act" else spec


def run_cell(cell, more="", patience=PATIENCE):
    """Returns what is wrong, as sentences; None if the failpoint was not reached."""
    if cell.intake == "act":
        return matrix_acts.run(cell, strike(cell))
    run = Run(cell.intake, cell.delivery, patience, "20ms" if cell.point in ("store.sync", "store.synced") else "always",
              slow=cell.point.endswith("expired"))
    try:
        return live(run, cell, more)
    except AssertionError as e:
        run.die()
        return [str(e), *violations(run)]
    finally:
        run.close()


def live(run, cell, more):
    run.feed()
    if run.handling:
        run.handling.begin()
    spec = strike(cell) + more + (f";*=passes:{run.passes_path}" if cell.errno else "")
    status = run.live(spec, ask_for_more=asks_for_more(cell.point))
    if cell.errno and status == 0:
        if run.passes().get(cell.point, 0) < cell.at:
            return None
    elif status == 42:
        run.look()
    else:
        return None if status == 0 else [f"it ended with {status}: {run.spool.log()[-2000:]}"]
    run.live_on()
    return list(violations(run))


def run_sure(cell):
    """The same; one that was not reached this time (on a slow machine, say) is tried again, and at its first pass. Returns
    the cell as it was run and what is wrong."""
    wrong = run_cell(cell)
    for _ in range(2):
        if wrong is None:
            cell = cell._replace(at=BEHIND_START.get(cell.point, 1) if cell.errno and cell.intake != "act" else 1)
            wrong = run_cell(cell)
    return cell, ["it was not reached"] if wrong is None else wrong


def in_parallel(function, items, workers=WORKERS):
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        return list(pool.map(function, items))


def references():
    """{(intake, delivery): {failpoint: passes}}."""
    pairs = [(i, d) for d in DELIVERIES for i in INTAKES] + [("act", a) for a in matrix_acts.ACTS]
    return dict(zip(pairs, in_parallel(lambda p: reference(*p), pairs)))


def ats(point, intake, passes):
    """At which passes it strikes. Syncs come more often in a cell about them than in others."""
    if intake != "act" and point in ("store.sync", "store.synced"):
        return (1, 5)
    return sorted({1, max(1, passes // 2)})


def crash_cells(passed):
    """Every cell there is."""
    names = {p.name for p in failpoints.places()}
    return [Cell(point, at, *pair) for pair, passes in passed.items() for point in sorted(passes) if point in names
            for at in ats(point, pair[0], passes[point])]


def fault_cells(passed):
    """The calls that can fail, of the daemon and of commands, on a disk that is full (28) or broken (5)."""
    fails = {p.name for p in failpoints.places() if p.fails}
    cells = []
    for (intake, delivery), passes in passed.items():
        if intake == "act" and delivery in matrix_acts.IN_DAEMON:
            continue
        found = {point: ats(point, intake, passes[point]) for point in fails & set(passes)}
        if intake != "act":
            found.update({"spool.recover": (1,), **{point: (at,) if at else () for point, at in BEHIND_START.items()}})
        cells += [Cell(point, at, intake, delivery, errno) for point in sorted(found) for at in found[point]
                  for errno in (5, 28)]
    return cells


def acts(cells):
    return [c for c in cells if c.intake == "act"]


def lives(cells):
    return [c for c in cells if c.intake != "act"]


def sample(cells, turn):
    """One cell of each failpoint; which, changes with the turn."""
    by_point = collections.defaultdict(list)
    for cell in cells:
        by_point[cell.point].append(cell)
    return [found[(zlib.crc32(point.encode()) + turn) % len(found)] for point, found in sorted(by_point.items())]


def chosen(cells, words):
    return [c for c in cells if not words or any(w in (c.point, f"{c.point}/{c.intake}/{c.delivery}",
                                                       f"{c.point}/{c.delivery}") for w in words)]


def print_table(results):
    pairs = [(i, d) for d in DELIVERIES for i in INTAKES] + [("act", a) for a in matrix_acts.ACTS]
    pairs = [p for p in pairs if any((c.intake, c.delivery) == p for c, _ in results)]
    table = collections.defaultdict(list)
    for cell, wrong in results:
        table[cell.point, cell.intake, cell.delivery].append(not wrong)
    print(" " * 26 + " ".join(f"{d:>9}" for _, d in pairs) + "\n" + " " * 26 + " ".join(f"{i:>9}" for i, _ in pairs))
    for point in sorted({c.point for c, _ in results}):
        cells = (table[(point, *p)] for p in pairs)
        print(f"{point:26}" + " ".join(f"{'-' if not c else len(c) if all(c) else 'FAIL':>9}" for c in cells))


def main():
    if not has_failpoints():
        sys.exit("matrix: the daemon was built without --enable-failpoints")
    begin = time.monotonic()
    passed = references()
    cells = chosen(crash_cells(passed) + fault_cells(passed), sys.argv[1:])
    results = in_parallel(run_sure, cells)
    print_table(results)
    bad = [(cell, wrong) for cell, wrong in results if wrong]
    for cell, wrong in bad:
        print(f"\n{name_of(cell)}:\n    " + "\n    ".join(wrong))
    print(f"\n{len(cells)} cells in {time.monotonic() - begin:.0f} s, {len(bad)} failed")
    return int(bool(bad) or not cells)


if __name__ == "__main__":
    sys.exit(main())
