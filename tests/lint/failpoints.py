"""The failpoints as the source has them: FAILPOINT("name"), and FAILPOINT_EACH("prefix", ...) once for each outcome."""
import collections
import os
import re

SRC = os.path.abspath(os.environ.get("srcdir") or os.path.join(os.path.dirname(__file__), "..", ".."))

# A name, where it stands, and whether the place can fail as well (an errno), not only die and wait.
Point = collections.namedtuple("Point", "name path line fails")

# Switches: they bend what the program does and are no place in its work.
SWITCHES = re.compile(r"break\.|alert\.(?:impatient|hurry)$|request\.impatient$")

ONE = re.compile(r'(\(void\))?FAILPOINT\("([^"]+)"\)')
EACH = re.compile(r'(\(void\))?FAILPOINT_EACH\("([^"]+)"')


def sources():
    for folder, dirs, names in os.walk(os.path.join(SRC, "src")):
        dirs.sort()
        for name in sorted(names):
            if name.endswith(".c"):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as f:
                    yield os.path.relpath(path, SRC), f.read()


def outcomes():
    """The names of the outcomes as core/outcome.c has them, blanks made underscores."""
    with open(os.path.join(SRC, "src/core/outcome.c"), encoding="utf-8") as f:
        body = re.search(r"names\[\] = \{(.*?)\}", f.read(), re.S).group(1)
    return [n.replace(" ", "_") for n in re.findall(r'"([^"]+)"', body)]


def all_points():
    """Every failpoint, in the order of the source; one that stands in two places comes twice."""
    found = []
    for path, text in sources():
        for number, line in enumerate(text.split("\n"), 1):
            for m in ONE.finditer(line):
                found.append(Point(m.group(2), path, number, not m.group(1)))
            for m in EACH.finditer(line):
                found += [Point(m.group(2) + o, path, number, not m.group(1)) for o in outcomes()]
    return found


def places():
    """Those at which a crash means something."""
    return [p for p in all_points() if not SWITCHES.match(p.name)]


# ---- what must have one -------------------------------------------------------------------------------------------------

# A verb and its past, for the moments before and after a call.
VERBS = {"store.open": "store.opened", "store.get": "store.got", "store.write": "store.written",
         "store.delete_range": "store.range_deleted", "store.sync": "store.synced", "store.close": "store.closed",
         "store.flush": "store.flushed", "store.checkpoint": "store.checkpointed", "store.compact": "store.compacted",
         "store.drop": "store.dropped", "store.rebuild": "store.rebuilt", "store.walk": "store.walked",
         "store.scan": "store.scanned", "file.rename": "file.renamed", "file.link": "file.linked",
         "proc.fork": "proc.forked"}
# What follows (or goes before) has a failpoint of its own.
ALONE = {"checkpoint.before_marker", "store.before_marker", "swap.before_commit", "swap.before_marker",
         "archive.after_sync", "commit.after_callbacks"}

CALLS = re.compile(r"\b(rename(?:at2?)?|link(?:at)?|v?fork|posix_spawnp?|write_batch|rocksdb_(?:open\w*|get_pinned_cf|"
                   r"iter_seek\w*|write|flush_(?:wal|cf)|checkpoint_create|suggest_compact_range_cf|"
                   r"delete_file_in_range_cf|close|repair_db|compact_range\w*))\(")
BROKEN = re.compile(r'FAILPOINT\("break\.')
# By file: where events are taken, written, handed over and ended: what somebody outside sees, what becomes of an event. One has
# a failpoint in front of it; the other half, which other_half() asks for, may be in a callback.
STEPS = {"src/intake/": "spool_accept|botapi_get_updates",
         "src/deliver/": "child_start|child_write|http_client_request|botapi_call|spool_complete_with",
         "src/serve/": "spool_serve_confirm", "src/spool/finish.c": "outcome_decide", "src/store/commit.c": "db_write"}
COMMITTED = re.compile(r"\b(?:spool_on_durable|spool_on_written|store_on_done)\([^;]*?\b(\w+), [\w&]+\);")
# Functions whose callers have it, and callbacks after which nothing is seen from outside.
GUARDED = {("src/store/db.c", "write_batch"): "db_write: store.write",
           ("src/store/db.c", "db_failed_behind"): "writes nothing",
           ("src/store/commit.c", "store_commit"): "a write_batch of its own: commit.before_write",
           ("src/intake/poll.c", "step_storing"): "start_storing: poll.before_accept",
           ("src/intake/poll.c", "store_poison"): "one that nobody can read, dead at once: as any other answer",
           ("src/intake/poll.c", "saved"): "ask: poll.before_next",
           ("src/serve/dropin_updates.c", "on_written"): "ask_answer: dropin.before_answer",
           ("src/spool/claim.c", "claim_written"): "hands over: *.before_spawn, *.before_give, *.before_request, "
                                                   "lease.before_answer",
           ("src/spool/retain.c", "drop_files"): "db_drop_files",
           ("src/spool/remember.c", "outcome_settled"): "an outcome is forgotten",
           ("src/spool/migrate.c", "done"): "the next slice: migrate.slice",
           ("src/daemon/bots.c", "on_offset_dropped"): "polling starts, as at a start",
           ("src/serve/handover.c", "pause_written"): "giveback.before_confirm",
           ("src/serve/api_bulk.c", "job_cut"): "a job goes on",
           ("src/serve/api_bulk.c", "job_written"): "a job goes on",
           ("src/serve/api_bulk.c", "job_batch"): "a job goes on",
           ("src/serve/api_import.c", "import_written"): "an import goes on: api.before_answer",
           ("src/spool/spool.c", "fn"): "the two verbs themselves",
           ("src/drill/handler.c", "exec_own"): "a handler of the drill, no daemon",
           ("src/drill/handler.c", "start_own"): "a handler of the drill, no daemon"}


def other_half(name):
    """The failpoint that must be there as well, or None."""
    if name in ALONE:
        return None
    for first, second in (("before_", "after_"), ("after_", "before_")):
        if "." + first in name:
            return name.replace("." + first, "." + second)
    return VERBS.get(name) or next((verb for verb, past in VERBS.items() if past == name), None)


def functions(text):
    """(name, first line, its lines) of each function."""
    lines = text.split("\n")
    for n, line in enumerate(lines):
        if line != "{":
            continue
        head = n - 1
        while head > 0 and lines[head].startswith((" ", "\t")):
            head -= 1
        m = re.search(r"(\w+)\(", lines[head])
        end = next(i for i in range(n, len(lines)) if lines[i] == "}")
        if m:
            yield m.group(1), n + 1, lines[n:end]


def steps_of(path):
    """What STEPS says of this file, as a pattern; None: nothing."""
    words = "|".join(names for place, names in STEPS.items() if path.startswith(place))
    return words and re.compile(r"\b(%s)\(" % words)


def unguarded(path, text):
    """Sentences about calls that have no failpoint before and after them in their function, steps that have none before
    them, and callbacks of commits that have none."""
    steps = steps_of(path)
    bodies = {name: lines for name, _, lines in functions(text)}
    for name, first, lines in functions(text):
        if (path, name) in GUARDED:
            continue
        points = [i for i, line in enumerate(lines) if "FAILPOINT" in line and not BROKEN.search(line)]
        for i, line in enumerate(lines):
            call, step = CALLS.search(line), steps and steps.search(line)
            if call and not (points and points[0] <= i <= points[-1] and len(points) > 1):
                yield "%s:%d: %s has no failpoint on either side of %s" % (path, first + i, name, call.group(1))
            if step and not (points and points[0] < i):
                yield "%s:%d: %s has no failpoint before %s" % (path, first + i, name, step.group(1))
    for m in COMMITTED.finditer(text):
        name = m.group(1)
        if (path, name) not in GUARDED and not any("FAILPOINT" in line for line in bodies.get(name, ())):
            yield "%s: %s, which a commit calls back, has no failpoint" % (path, name)


def stale():
    """Sentences about GUARDED: functions that are gone, and failpoints it names that are."""
    texts, names = dict(sources()), {p.name for p in all_points()}
    for (path, name), why in GUARDED.items():
        if not re.search(r"\b%s\b" % name, texts.get(path, "")):
            yield "GUARDED names %s of %s, which is gone" % (name, path)
        for point in re.findall(r"(?<![*\w])[a-z]+\.[a-z]\w+", why):
            if point not in names:
                yield "GUARDED names the failpoint %s, which is gone" % point


# ---- would it be seen? --------------------------------------------------------------------------------------------------

# Where nothing but a name says that there is a moment to die at: between two steps of a long work.
MOMENTS = re.compile(r"archive\.|backup\.|checkpoint\.|commit\.after_callbacks$|export\.|migrate\.|outcome\.after_|"
                     r"spool\.recover$|store\.(?:stall|before_marker|delete_range|range_deleted)$|swap\.")


def unseen():
    """Sentences about failpoints that could be taken out, with their other half, and nobody would say a word."""
    texts, promised = dict(sources()), " ".join(GUARDED.values())
    for p in places():
        pair = [name for name in (p.name, other_half(p.name)) if name]
        if MOMENTS.match(p.name) or any(name in promised for name in pair):
            continue
        text = texts[p.path]
        for name in pair:
            each = re.escape(name.split("_")[0] + "_")
            text = re.sub(r'FAILPOINT\("%s"\)|FAILPOINT_EACH\("%s", ' % (re.escape(name), each), "(0, ", text)
        if text == texts[p.path] or not any(True for _ in unguarded(p.path, text)):
            yield "%s:%d: %s could be taken out unseen" % (p.path, p.line, p.name)
