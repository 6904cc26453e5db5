"""A spool on a disk that power.c watches, what was promised about it, and whether a disk keeps the promises."""
import gzip
import http.client
import json
import os
import random
import shutil
import subprocess
import time

from disk import Disk
from harness import BUILD, TGSPOOL, BotApi, Spool, UnixConnection, wait_until

LAYER = os.path.join(BUILD, "tests/power/power.so")
CUT, UNKNOWN = 77, 86
NO_SPOOL = 69


class Died(Exception):
    """The process that was asked has had its power cut."""


class Lost(AssertionError):
    """A promise was broken."""


class Promises:
    """What somebody was told that is safe: updates by id, events that ended, keys, calls by their ids."""

    def __init__(self):
        self.updates, self.ended, self.keys, self.calls = set(), set(), set(), set()

    def any(self):
        return bool(self.updates or self.ended or self.keys or self.calls)


class Stage:
    """A daemon, the Bot API test server, and their disk. Used by one thread."""

    def __init__(self, seed, **options):
        self.rng = random.Random(seed)
        self.api = BotApi()
        self.spool = Spool(self.api, level="info")
        self.disk = os.path.join(self.spool.dir, "disk")
        self.spool.data = os.path.join(self.disk, "data")
        self.backup = os.path.join(self.disk, "backup")
        self.archive = os.path.join(self.disk, "archive")
        self.journal = os.path.join(self.spool.dir, "journal")
        self.failing = os.path.join(self.spool.dir, "failing")
        self.disk_fails(True)
        os.mkdir(self.disk, 0o700)
        self.promises = Promises()
        self.durable = True  # else they need not be kept
        self.made = []  # ids of updates, in Telegram's order
        self.in_order = iter(range(1, 1 << 30))
        self.spool.configure(**{"deliver": "pull", "concurrency": 1000, "lease": "1s", "retry": "[20ms]", "jitter": 0,
                                "poll_timeout": "1s", **options})

    def close(self):
        self.spool.close()
        self.api.stop()

    # ---- running under the layer

    def env(self, cut=None, fault=None, more=None):
        env = {"LD_PRELOAD": LAYER, "TGSPOOL_POWER_DIR": self.disk, "TGSPOOL_POWER_JOURNAL": self.journal,
               "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0", **(more or {})}
        if cut:
            env["TGSPOOL_POWER_CUT"] = str(cut)
        if fault:
            env["TGSPOOL_POWER_FAULT"] = fault
            env["TGSPOOL_POWER_WHEN"] = self.failing
        return env

    def disk_fails(self, fails):
        """Whether the disk has its fault now; at first it has."""
        if fails:
            with open(self.failing, "w", encoding="ascii"):
                pass
        else:
            os.unlink(self.failing)

    def start(self, **env):
        """Starts the daemon under the layer; Died if its power is cut before it answers."""
        self.spool.start(env=self.env(**env), wait=False)
        wait_until(self.answers, "the daemon answers or has died", 60)
        return self

    def is_up(self):
        try:
            return self.spool.api("GET", "/v1/status")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def answers(self):
        if self.spool.process.poll() is not None:
            self.died()
        return self.is_up()

    def died(self):
        code = self.spool.process.wait(60)
        if code == CUT:
            raise Died
        raise AssertionError(f"the daemon ended with {code}:\n{self.spool.log()[-3000:]}")

    def ask(self, method, path, body=None):
        """A request; Died if it is not answered since the power was cut."""
        try:
            return self.spool.api(method, path, body)
        except (OSError, http.client.HTTPException):
            self.died()

    def run(self, *args, code=0, **env):
        """A command under the layer. Returns the result; Died if its power was cut, and that of the daemon with it."""
        r = subprocess.run([TGSPOOL, "-c", self.spool.config, *args], capture_output=True, text=True, timeout=100,
                           env={**os.environ, **self.env(**env)})
        if r.returncode == CUT or (self.spool.process and self.spool.process.poll() == CUT):
            if self.spool.process and self.spool.process.poll() is None:
                self.spool.kill()
            raise Died
        if code is not None and r.returncode != code:
            raise AssertionError(f"{args}: exit {r.returncode}\n{r.stdout}\n{r.stderr}")
        return r

    # ---- what a bot does, and what it is told

    def generate(self, count, size=0):
        made = self.api.generate(count, chats=5, size=size)
        self.made += range(made["first_id"], made["last_id"] + 1)

    def hook(self, port):
        update_id = next(self.in_order)
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            c.request("POST", "/hook/shop", json.dumps({"update_id": update_id, "message": {
                "message_id": 1, "date": 1, "chat": {"id": update_id % 4, "type": "private"}, "text": "x" * 300}}),
                {"X-Telegram-Bot-Api-Secret-Token": "Webhook_secret-0123456789", "Content-Type": "application/json"})
            if c.getresponse().status == 200:
                self.promises.updates.add(update_id)
        except (OSError, http.client.HTTPException):
            self.died()
        finally:
            c.close()

    def claim(self, n=10):
        return self.ask("POST", "/v1/claim", {"bot": "shop", "max": n})[1].get("events", [])

    def finish(self, events, calls=False):
        items = [{"id": e["id"], "lease": e["lease"]} for e in events]
        if calls and items:
            items[0]["calls"] = [{"method": "sendMessage", "chat_id": 1, "text": "from an ack"}]
        status, answer = self.ask("POST", "/v1/ack", {"events": items})
        for e, a in zip(events, answer.get("events", []) if status == 200 else []):
            if a.get("ok"):
                self.promises.ended.add(e["update_id"])

    def key(self):
        name = f"key-{next(self.in_order)}"
        if self.ask("POST", "/v1/keys", {"bot": "shop", "key": name})[0] == 201:
            self.promises.keys.add(name)

    def call(self):
        status, answer = self.ask("POST", "/v1/bots/shop/calls",
                                  {"method": "sendMessage", "body": {"chat_id": self.rng.randrange(3), "text": "x"}})
        if status == 201:
            self.promises.calls.add(answer["id"])

    def checkpoint(self):
        status, made = self.ask("POST", "/v1/checkpoint")
        if status == 201:
            self.ask("DELETE", "/v1/checkpoint/" + made["id"])

    def old_events(self, n):
        """Brings in updates that ended days ago, whose time is over."""
        at = time.time() - 4 * 86400
        ids = [next(self.in_order) for _ in range(n)]
        lines = [json.dumps({"bot": "shop", "bot_id": 123456, "box": "in", "update_id": i, "kind": "message",
                             "received_at": at, "finished_at": at + 1, "attempts": 1, "state": "done",
                             "payload": {"update_id": i, "message": {"chat": {"id": i % 7}, "text": "x" * 200}}})
                 for i in ids]
        if self.ask("POST", "/v1/import", "".join(line + "\n" for line in lines))[0] == 200:
            self.promises.updates |= set(ids)

    def look(self):
        """A list holds all that is there, or it is told that it cannot. Returns its events, None for none."""
        promised = self.promises.updates | self.promises.ended
        status, answer = self.ask("GET", "/v1/events?limit=1000&payload=1")
        if status != 200:
            assert status == 503, f"{status} {answer}"
            return None
        if not answer["next"] and not os.path.isdir(self.archive):
            there = {e["update_id"] for e in answer["events"] if e["box"] == "in"}
            assert not promised - there, f"a list is silently short by {promised - there}"
        return answer["events"]

    def load(self, seconds=20, size=0, port=None, calls=True, old=False):
        """A bot's work, by turns, until the power is cut or the time is over."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if port:
                self.hook(port)
            else:
                self.generate(self.rng.randint(1, 8), size)
            turn = self.rng.random()
            if turn < 0.5:
                self.finish(self.claim(self.rng.randint(1, 10)), calls=calls and turn < 0.1)
            elif turn < 0.65:
                self.key()
            elif turn < 0.8 and calls:
                self.call()
            elif turn < 0.85:
                self.checkpoint()
            elif old:
                self.old_events(self.rng.randint(1, 20))

    # ---- the power is off

    def believed(self):
        """What Telegram believes delivered."""
        state = self.api.state()
        self.promises.updates |= set(self.made[:len(self.made) - state["queued"]])

    def power_off(self):
        """Where it was not cut at an operation: now."""
        if self.spool.process and self.spool.process.poll() is None:
            self.spool.kill()

    def disk_after(self):
        """The disk as it was before this run, and what the journal tells of the run."""
        return self.base.read(self.journal)

    def begin(self):
        """Takes the disk as it is for all that the next run finds."""
        if os.path.exists(self.journal):
            os.unlink(self.journal)
        self.base = Disk(self.disk)

    def put(self, make, *args):
        """Puts another disk in: one that `make` writes."""
        shutil.rmtree(self.disk)
        make(self.disk, *args)

    def check(self):
        """The disk that is in keeps what was promised, and is whole. Returns its events."""
        self.believed()
        r = self.spool.cli("--json", "verify", code=None)
        if r.returncode == NO_SPOOL:
            if self.durable and self.promises.any():
                raise Lost(f"there is no spool: {os.listdir(self.disk)}")
            return []
        if r.returncode:
            raise Lost(f"verify: {r.returncode} {r.stdout} {r.stderr}")
        events = [json.loads(line) for line in self.spool.cli("export").splitlines()]
        if self.durable:
            self.compare(events, self.archived())
        return events

    def compare(self, events, archived):
        p = self.promises
        updates = {e["update_id"] for e in events if e["box"] == "in"} | archived
        ended = {e["update_id"] for e in events if e["box"] == "in" and e["state"] == "done"} | archived
        calls = {f"shop/out/@{e['seq']}" for e in events if e["box"] == "out"}
        for what, promised, there in (("updates that Telegram believes delivered", p.updates, updates),
                                      ("acknowledged events", p.ended, ended), ("calls", p.calls, calls)):
            if promised - there:
                raise Lost(f"{len(promised - there)} of {len(promised)} {what} are lost: {sorted(promised - there)[:5]}")

    def archived(self):
        """What whole members of the archive hold; a torn last one is what a cut leaves."""
        ids = set()
        for name in sorted(os.listdir(self.archive)) if os.path.isdir(self.archive) else []:
            try:
                with gzip.open(os.path.join(self.archive, name), "rb") as f:
                    for line in f:
                        ids.add(json.loads(line)["update_id"])
            except (EOFError, OSError, ValueError):
                pass
        return ids

    def drain(self):
        """All that is there, and that Telegram has, comes to its end."""
        def drained():
            self.finish(self.claim(100))
            c = self.spool.counts()
            return c["pending"] + c["processing"] == 0 and not self.api.state()["queued"]
        self.spool.api("POST", "/v1/resume", {"bot": "shop", "what": "deliver"})
        wait_until(drained, "all comes to its end", 60)

    def goes_on(self):
        """A daemon on the disk that is in: all is there, and comes to its end."""
        self.spool.start()
        for name in self.promises.keys:
            status, answer = self.spool.api("POST", "/v1/keys", {"bot": "shop", "key": name})
            if status == 201 and self.durable:
                raise Lost(f"the key {name} is lost")
        self.drain()
        assert "damaged" not in self.spool.log(), self.spool.log()[-3000:]
        self.spool.stop()
        self.check()

    # ---- backups

    in_backup = None  # updates and ended ones that a backup was told to hold

    def promised_to_a_backup(self):
        """What is in the spool now, and so in the next backup."""
        self.believed()
        return set(self.promises.updates), set(self.promises.ended)

    def check_backup(self):
        """A backup that a command said it had made is whole, and holds what was there before."""
        if not self.in_backup:
            return
        r = self.spool.cli("--json", "verify", self.backup, code=None)
        if r.returncode:
            raise Lost(f"the backup: {r.returncode} {r.stdout} {r.stderr}")
        found = json.loads(r.stdout)
        updates, ended = self.in_backup
        if found["unfinished"] + found["ended"] < len(updates) or found["ended"] < len(ended):
            raise Lost(f"the backup lacks some of {len(updates)}, {len(ended)} of them ended: {found}")

    def spool_is_there(self):
        return self.spool.cli("--json", "verify", code=None).returncode == 0
