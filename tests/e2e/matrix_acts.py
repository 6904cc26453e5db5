"""What is done to a spool as a whole, with a crash at each failpoint on the way: backup, restore, repair, export, retention,
a handover. After the crash the same is done again, and it must come out as if nothing had been.

An act has `prepare`, which makes a directory once; `go`, which does it to a copy with some failpoints and returns the exit
status of what they were in; and `wrong`, which does it again and yields sentences about what is not as it should be."""
import glob
import gzip
import json
import os
import shutil
import signal
import time

from harness import BotApi, Spool, end_process, wait_until
from matrix_handlers import NOT_NOW, PATIENCE

WAITING, DONE = 40, 10
OLD = 5001  # so many that their payload goes by a range, and its files with it


def box_of(status):
    return next(b for b in status["boxes"] if b["box"] == "in")


class Act:
    """A directory that is prepared once, and a copy of it for each cell."""

    def __init__(self):
        self.api = BotApi()
        self.spool = Spool(self.api, level="info")
        self.passes_path = os.path.join(self.spool.dir, "passes")

    def close(self):
        self.spool.close()
        self.api.stop()

    def fill(self, tables=False):
        """Events that wait, and some that are done, in the files of a spool that nobody runs on."""
        s = self.spool
        s.configure(deliver="pull", concurrency=50)
        self.api.generate(WAITING + DONE, chats=WAITING + DONE)
        s.start()
        s.wait_counts(pending=WAITING + DONE)
        self.finish(DONE)
        if tables:  # what was in memory is in tables then
            assert s.api("POST", "/v1/checkpoint")[0] == 201
        s.kill()

    def finish(self, n):
        _, answer = self.spool.api("POST", "/v1/claim", {"bot": "shop", "max": n, "wait": "5s"})
        events = [{"id": e["id"], "lease": e["lease"]} for e in answer["events"]]
        status, answer = self.spool.api("POST", "/v1/ack", {"events": events})
        assert status == 200 and len(events) == n and all(e["ok"] for e in answer["events"]), answer

    def passes(self):
        with open(self.passes_path, encoding="ascii") as f:
            return {point: int(n) for point, n in (line.split() for line in f)}

    def command(self, spec, *args):
        return self.spool.cli(*args, code=None, env={"TGSPOOL_FAILPOINTS": spec}).returncode

    def wrong_spool(self, pending=WAITING, done=DONE):
        r = self.spool.cli("verify", code=None)
        if r.returncode:
            yield f"verify ends with {r.returncode}: {r.stdout}{r.stderr}"
        box = box_of(self.spool.cli_json("status"))
        if (box["pending"] + box["processing"], box["done"]) != (pending, done):
            yield f"there are {box['pending']} waiting, {box['processing']} processing, {box['done']} done"


class Backup(Act):
    """Of a daemon's spool into a directory that has an earlier one, from which tables are linked."""

    def prepare(self):
        s = self.spool
        self.fill(tables=True)
        self.into = os.path.join(s.dir, "backup")
        s.cli("backup", self.into)
        s.start()
        self.finish(DONE)
        s.kill()

    def go(self, spec):
        return self.command(spec, "backup", self.into)

    def wrong(self):
        found = self.spool.cli_json("verify", self.into)
        if found["faults"] or found["ended"] not in (DONE, 2 * DONE):
            yield f"the backup after the crash: {found}"
        self.spool.cli("backup", self.into)
        found = self.spool.cli_json("verify", self.into)
        if found["faults"] or found["ended"] != 2 * DONE or found["unfinished"] != WAITING - DONE:
            yield f"the backup: {found}"
        yield from self.wrong_spool(WAITING - DONE, 2 * DONE)


class Restore(Act):
    """A backup is put in the place of a spool that is gone."""

    def prepare(self):
        self.fill()
        self.into = os.path.join(self.spool.dir, "backup")
        self.spool.cli("backup", self.into)
        shutil.rmtree(self.spool.data)

    def go(self, spec):
        return self.command(spec, "restore", self.into)

    def wrong(self):
        r = self.spool.cli("--json", "status", code=None)
        if r.returncode or not json.loads(r.stdout)["boxes"]:
            self.spool.cli("restore", self.into)
        yield from self.wrong_spool()
        if not box_of(self.spool.cli_json("status"))["paused"]["deliver"]:
            yield "it hands out what may have been handled since"


class Repair(Act):
    """Of a database whose index is gone: all of it can be had from its tables and its log."""

    def prepare(self):
        self.fill(tables=True)
        for path in glob.glob(os.path.join(self.spool.data, "db", "MANIFEST-*")):
            os.unlink(path)

    def go(self, spec):
        return self.command(spec, "repair", "--apply")

    def wrong(self):
        r = self.spool.cli("repair", "--apply", code=None)
        if r.returncode:
            yield f"repair ends with {r.returncode}: {r.stdout}{r.stderr}"
            return
        yield from self.wrong_spool()


class Export(Act):
    """To a file; what a crash leaves of that is no export."""

    def prepare(self):
        self.fill()

    def go(self, spec):
        return self.command(spec, "export", os.path.join(self.spool.dir, "first"))

    def wrong(self):
        path = os.path.join(self.spool.dir, "again")
        self.spool.cli("export", path)
        with open(path, encoding="utf-8") as f:
            if len({json.loads(line)["id"] for line in f}) != WAITING + DONE:
                yield "the export lacks events"
        yield from self.wrong_spool()


class InDaemon(Act):
    """What a daemon does by itself."""

    def start(self, spec):
        self.spool.start(env={"TGSPOOL_FAILPOINTS": spec}, wait=False)

    def until(self, predicate, what):
        """Waits, or until the daemon is dead."""
        def reached():
            try:
                return self.spool.process.poll() is not None or predicate()
            except NOT_NOW:
                return False
        wait_until(reached, what, PATIENCE)

    def end(self):
        if self.spool.process.poll() is None:
            try:
                end_process(self.spool.process)
            except ProcessLookupError:
                pass
        return self.spool.process.wait(PATIENCE)

    def go(self, spec):
        self.start(spec)
        self.act()
        return self.end()


class Retain(InDaemon):
    """What ended long ago goes, and is archived before."""

    def prepare(self):
        s = self.spool
        s.configure(deliver="pull", intake="none", spool={"retain_done": "30d", "retain_dead": "30d"})
        s.cli("import", text=False, input=b"".join(self.line(i) for i in range(1, OLD + 1)))
        s.configure(spool={"retain_done": "1s", "retain_dead": "1s", "archive_dir": os.path.join(s.dir, "archive")})

    @staticmethod
    def line(i):
        at = time.time() - 4 * 86400
        return json.dumps({"bot": "shop", "bot_id": 123456, "box": "in", "update_id": i, "kind": "message",
                           "received_at": at, "finished_at": at + 1, "attempts": 1, "state": "done",
                           "payload": {"update_id": i, "message": {"chat": {"id": i}, "text": "x"}}}).encode() + b"\n"

    def act(self):
        self.until(lambda: self.spool.counts()["done"] == 0, "all of it goes")
        time.sleep(0.3)  # the files of what went are dropped behind it

    def wrong(self):
        self.spool.start()
        self.act()
        self.spool.stop()
        lines = []
        for path in glob.glob(os.path.join(self.spool.dir, "archive", "*")):
            with gzip.open(path) as f:
                lines += f.read().splitlines()
        if {json.loads(line)["update_id"] for line in lines} != set(range(1, OLD + 1)):
            yield f"the archive has {len(lines)} lines"
        yield from self.wrong_spool(0, 0)


class Handover(InDaemon):
    """The bot goes elsewhere: Telegram is told what was taken."""

    def prepare(self):
        s = self.spool
        s.configure(command=s.shell_handler())
        s.start()
        self.api.generate(DONE, chats=3)
        s.wait_counts(done=DONE, pending=0)
        s.kill()

    def act(self):
        self.until(lambda: self.ask()["state"] == "done", "the handover")

    def ask(self):
        return self.spool.api("POST", "/v1/bots/shop/handover", query={"wait": "5s"})[1]

    def wrong(self):
        self.spool.start()
        answer = self.ask()
        if answer["state"] != "done":
            yield f"the handover: {answer}"
        if self.api.state()["queued"]:
            yield "Telegram was not told what was taken"
        self.spool.process.send_signal(signal.SIGTERM)
        self.spool.process.wait(PATIENCE)
        yield from self.wrong_spool(0, DONE)


ACTS = {"backup": Backup, "restore": Restore, "repair": Repair, "export": Export, "retain": Retain, "handover": Handover}
IN_DAEMON = {name for name, act in ACTS.items() if issubclass(act, InDaemon)}


def reference(name):
    """How often each failpoint is passed without a crash."""
    act = ACTS[name]()
    try:
        act.prepare()
        status = act.go("*=passes:" + act.passes_path)
        wrong = list(act.wrong())
        assert status == 0 and not wrong, f"{name}, no crash: {status} {wrong}"
        return act.passes()
    finally:
        act.close()


def run(cell, spec):
    """Returns what is wrong; None if the failpoint was not reached."""
    act = ACTS[cell.delivery]()
    try:
        act.prepare()
        status = act.go(f"{spec};*=passes:{act.passes_path}" if cell.errno else spec)
        if cell.errno and status != 42:  # it may do well without a link, say
            if act.passes().get(cell.point, 0) < cell.at:
                return None
        elif status != 42:
            return None if status == 0 else [f"it ended with {status}"]
        return list(act.wrong())
    finally:
        act.close()
