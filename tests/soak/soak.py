#!/usr/bin/env python3
"""make soak: a daemon under mixed load with faults, for SOAK_SECONDS (3600), which shows whether memory, descriptors, disk or
latency creep.

Six bots: polled with exec, worker, http, pull and dropin, and one with webhook intake and workers that answer with calls; some
SOAK_RATE (20) updates a second, of 20 chats each. One in fifty handlers fails the first time; workers die, leases lapse, the
http bot is down or limited at times; Telegram answers 429, 502, nothing or half; backups go on beside it, and events of four
days ago are imported, to a bot that has no others (retention stops at the first event that must stay), so that retention and
the archive have work. Built with failpoints, also a sync fails once in a while.

In the first third the daemon is killed over and over. The rest is one life, and but for its first moments it is cut into
PARTS, of which each gives a value. Through these goes a straight line, the middle one of those through any two of them
(Theil and Sen), which a few odd ones do not bend: what it rises by, from the first part to the last, must be no more than
LIMITS say. In the end everything must have been handled, something removed and archived, and verify must find the spool
sound. Exit status 0 if so.

In a run of less than some minutes a part holds few events, so that latencies say little.

SOAK_LEAKS breaks the daemon on purpose (leaks.c), to see that it is noticed; test_soak.py does so.
"""
import collections
import http.client
import http.server
import itertools
import json
import os
import random
import re
import signal
import statistics
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
sys.dont_write_bytecode = True
# pylint: disable-next=wrong-import-position
from harness import BUILD, BotApi, Spool, free_port, has_failpoints, is_sanitized, wait_until

SECONDS = int(os.environ.get("SOAK_SECONDS") or 3600)
RATE = float(os.environ.get("SOAK_RATE") or 20)
BOTS = ("exec", "worker", "http", "pull", "dropin", "hook")
TOKENS = {name: f"{100001 + i}:AAF0-test-token-that-must-not-be-seen-{name}" for i, name in enumerate(BOTS)}
OLD_TOKEN = "100000:AAF0-test-token-that-must-not-be-seen-old"
SECRET = "Webhook_secret-0123456789"
SAMPLE_S = 2
PARTS = 6
# By how much each may rise. What grows to a plateau (memory of RocksDB and of malloc, its open tables) still rises a little;
# two children more have ten descriptors.
LIMITS = {"rss MB": 8 if is_sanitized() else 2.5, "fds": 12, "tables": 30, "threads": 1, "children": 2, "db MB": 4,
          "p50 ms": 200, "p99 ms": 1000}
DB_PER_EVENT = 200  # bytes that each event more may add to "db MB": it is kept for dedupe_for
NOT_NOW = (OSError, http.client.HTTPException, ValueError)

EXEC = r"""#!/bin/sh
set -- $(sed -n 's/.*"text":"t=\([0-9.]*\) n=\([0-9]*\)".*/\1 \2/p')
[ $(($2 % 50)) != 7 ] || [ "$TGSPOOL_ATTEMPT" != 1 ] || exit 1
echo "exec $2 $1 $(date +%s.%N)" >>HANDLED
"""

WORKER = r"""
import re
for e in requests():
    text = next(iter(v for k, v in e["update"].items() if k != "update_id"))["text"]
    t, n = re.match(r"t=([0-9.]+) n=([0-9]+)", text).groups()
    first = e["attempt"] == 1
    if int(n) % 200 == 3 and first:
        os._exit(1)
    if int(n) % 50 == 7 and first:
        answer(e, ok=False, error="not yet")
        continue
    fd = os.open("HANDLED", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, f"{e['bot']} {n} {t} {time.time()}\n".encode())
    os.close(fd)
    calls = [{"method": "sendMessage", "chat_id": int(n) % 20 + 1, "text": "x"}] if int(n) % 5 == 0 else []
    answer(e, ok=True, calls=calls)
"""


def fit(points):
    """A straight line through points (x, y), the median one: its y at the first x and at the last."""
    slope = statistics.median((d - b) / (c - a) for (a, b), (c, d) in itertools.combinations(points, 2))
    offset = statistics.median(y - slope * x for x, y in points)
    return offset + slope * points[0][0], offset + slope * points[-1][0]


class Soak:
    def __init__(self):
        self.api = BotApi(tokens=tuple(TOKENS.values()))
        self.spool = Spool(level="warn")
        self.handled_path = os.path.join(self.spool.dir, "handled")
        self.over, self.lock = threading.Event(), threading.Lock()
        self.made = dict.fromkeys(BOTS, 0)
        self.handled = {name: set() for name in BOTS}
        self.latencies, self.samples, self.troubles, self.threads = [], [], [], []
        self.imported = self.kills = self.backups = 0
        self.begin = time.monotonic()

    # ---- set up

    def configure(self):
        s = self.spool
        self.dropin, self.webhook, self.hook_server = free_port(), free_port(), self.http_bot()
        exec_handler = s.write("handler", EXEC.replace("HANDLED", self.handled_path), 0o700)
        worker = s.python_handler(WORKER.replace("HANDLED", self.handled_path))
        options = {
            "exec": {"deliver": "exec", "command": exec_handler},
            "worker": {"deliver": "worker", "command": worker, "concurrency": 2},
            "http": {"deliver": "http", "url": f"http://127.0.0.1:{self.hook_server.server_port}/"},
            "pull": {"deliver": "pull", "lease": "3s"},  # so that leases that lapse are short after a restart, too
            "dropin": {"deliver": "dropin"},
            "hook": {"deliver": "worker", "command": worker, "intake": "webhook",
                     "webhook_url": f"http://127.0.0.1:{self.webhook}/hook/hook",
                     "webhook_secret_file": s.write("hook.secret", SECRET + "\n")},
        }
        for name, o in options.items():
            s.add_bot(name, token=TOKENS[name], api_root=self.api.url, retry="[500ms, 1s]", **o)
        s.add_bot("old", token=OLD_TOKEN, api_root=self.api.url, intake="none", deliver="pull")
        # a small cache is full soon, and then no longer looks like a leak
        s.configure(bot=None, listen={"dropin": f"127.0.0.1:{self.dropin}", "webhook": f"127.0.0.1:{self.webhook}"},
                    spool={"cache": "1M", "retain_done": "20s", "retain_dead": "20s",
                           "archive_dir": os.path.join(s.dir, "archive")})
        # few connections, which stay: all are there soon, and no longer look like a leak
        status, answer = self.api.call("setWebhook", token=TOKENS["hook"], secret_token=SECRET, max_connections=4,
                                       url=f"http://127.0.0.1:{self.webhook}/hook/hook")
        assert status == 200, answer

    def http_bot(self):
        soak = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                text = re.search(rb't=([0-9.]+) n=([0-9]+)', body)
                n, first = int(text[2]), self.headers["X-Tgspool-Attempt"] == "1"
                after = None
                if n % 50 == 7 and first:
                    status = 500
                elif n % 97 == 5 and random.random() < 0.5:
                    status, after = 429, "1"
                elif n % 101 == 6 and random.random() < 0.5:
                    status = 503
                else:
                    status = 200
                    soak.note("http", n, float(text[1]))
                self.send_response(status)
                if after:
                    self.send_header("Retry-After", after)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        server.handle_error = lambda *args: None  # of a daemon that died
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    def note(self, bot, n, sent):
        with self.lock, open(self.handled_path, "a", encoding="utf-8") as f:
            f.write(f"{bot} {n} {sent} {time.time()}\n")

    def start(self):
        # a sanitizer must not keep what was freed, nor insist on being the first library
        env = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1:verify_asan_link_order=0"}
        if has_failpoints():
            env["TGSPOOL_FAILPOINTS"] = "store.sync=errno:5@1500;store.write=errno:28@4000"
        if os.environ.get("SOAK_LEAKS"):
            env.update({"LD_PRELOAD": os.path.join(BUILD, "tests/soak/leaks.so"), "TGSPOOL_LEAKS": os.environ["SOAK_LEAKS"],
                        "TGSPOOL_LEAKS_FILE": os.path.join(self.spool.data, "db", "left")})
        self.spool.start(env=env)

    # ---- what goes on at once, each in a thread

    def in_threads(self, *functions):
        def guarded(f):
            while not self.over.is_set():
                try:
                    f()
                except NOT_NOW:
                    self.over.wait(0.2)
                except Exception as e:  # pylint: disable=broad-except
                    self.troubles.append(f"{f.__name__}: {e!r}")
                    self.over.wait(1)
        for f in functions:
            self.threads.append(threading.Thread(target=guarded, args=(f,), daemon=True))
            self.threads[-1].start()

    def pull_bot(self):
        status, answer = self.spool.api("POST", "/v1/claim", {"bot": "pull", "max": 5, "wait": "1s", "lease": "3s"},
                                        timeout=10)
        for e in answer["events"] if status == 200 else []:
            t, n = re.search(r"t=([0-9.]+) n=([0-9]+)", json.dumps(e["update"])).groups()
            if int(n) % 60 == 11 and e["attempt"] == 1:
                continue  # the lease lapses
            self.note("pull", int(n), float(t))
            self.spool.api("POST", "/v1/ack", {"id": e["id"], "lease": e["lease"]}, timeout=10)
        if status != 200:
            self.over.wait(0.2)

    def dropin_bot(self):
        c, offset = http.client.HTTPConnection("127.0.0.1", self.dropin, timeout=20), 0
        try:
            while not self.over.is_set():
                c.request("POST", f"/bot{TOKENS['dropin']}/getUpdates", json.dumps({"offset": offset, "timeout": 1}),
                          {"Content-Type": "application/json"})
                r = c.getresponse()
                answer = json.loads(r.read())
                for u in answer["result"] if r.status == 200 else []:
                    t, n = re.search(r"t=([0-9.]+) n=([0-9]+)", json.dumps(u)).groups()
                    self.note("dropin", int(n), float(t))
                    offset = u["update_id"] + 1
                if r.status != 200:
                    self.over.wait(0.2)
        finally:
            c.close()

    def load(self):
        """Until the last moments, in which what is under way may end."""
        for name in BOTS:
            n = int(RATE / len(BOTS) * 0.5 + random.random())
            if not n or time.monotonic() - self.begin > SECONDS:
                continue
            updates = []
            for i in range(self.made[name], self.made[name] + n):
                chat = i % 20 + 1
                text = f"t={time.time():.3f} n={i}"
                members = {"message": {"message_id": i, "date": 1, "chat": {"id": chat, "type": "private"},
                                       "from": {"id": chat, "is_bot": False, "first_name": "A" * 300}, "text": text}}
                updates.append({"kind": "message", "members": json.dumps(members, separators=(",", ":"))[1:-1]})
            self.api.control("inject", bot=int(TOKENS[name].split(":")[0]), updates=updates)
            self.made[name] += n
        self.over.wait(0.5)

    def telegram_faults(self):
        self.over.wait(3)
        bot = int(TOKENS[random.choice(BOTS)].split(":")[0])
        kind, args = random.choice([("status", {"status": 502}), ("reset_before", {}), ("lost", {}),
                                    ("cut", {"at": 40}), ("status", {"status": 429, "retry_after": 1})])
        self.api.fault(kind, bot=bot, method=random.choice(["getUpdates", "sendMessage"]), **args)

    def backup(self):
        self.over.wait(max(10, SECONDS / 60))
        r = self.spool.cli("backup", os.path.join(self.spool.dir, "backup"), code=None)
        self.backups += r.returncode == 0
        if r.returncode not in (0, 69, 75):
            self.troubles.append(f"backup: exit {r.returncode}: {r.stderr}")

    def import_old(self):
        self.over.wait(5)
        at, lines = time.time() - 4 * 86400, []
        for i in range(self.imported, self.imported + 100):
            lines.append(json.dumps({"bot": "old", "bot_id": 100000, "box": "in", "update_id": 10 ** 9 + i,
                                     "kind": "message", "received_at": at, "finished_at": at, "attempts": 1,
                                     "state": "done", "payload": {"update_id": 10 ** 9 + i, "message": {"text": "x" * 500}}}))
        if self.spool.api("POST", "/v1/import", "".join(s + "\n" for s in lines))[0] == 200:
            self.imported += len(lines)

    # ---- looking

    def descriptors(self, pid):
        """How many descriptors of each kind the daemon has: files by their name without numbers, connections by their port."""
        ports = {self.dropin: "dropin", self.webhook: "webhook", self.hook_server.server_port: "http bot", self.api.port: "api"}
        sockets = {}
        with open(f"/proc/{pid}/net/tcp", encoding="ascii") as f:
            for line in list(f)[1:]:
                row = line.split()
                near, far = (ports.get(int(a.split(":")[1], 16)) for a in row[1:3])
                sockets[row[9]] = f"tcp {near or far or 'other'}"
        kinds = collections.Counter()
        for fd in os.listdir(f"/proc/{pid}/fd"):
            try:
                what = os.readlink(f"/proc/{pid}/fd/{fd}")
            except OSError:
                continue  # closed meanwhile
            if what.startswith("socket:["):
                kinds[sockets.get(what[8:-1], "other socket")] += 1
            else:
                kinds[re.sub(r"[0-9]+", "N", what.rsplit("/", 1)[-1])] += 1
        return kinds

    def collect(self, f):
        """Reads what handlers wrote since the last time."""
        for line in f:
            bot, n, sent, at = line.split()
            if int(n) not in self.handled[bot]:
                self.handled[bot].add(int(n))
                self.latencies.append((time.monotonic(), 1000 * (float(at) - float(sent))))

    def sample(self):
        pid = self.spool.process.pid
        with open(f"/proc/{pid}/status", encoding="utf-8") as f:
            status = dict(line.split(":", 1) for line in f if ":" in line)
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as f:
            children = len(f.read().split())
        kinds = self.descriptors(pid)
        boxes = self.spool.api("GET", "/v1/status")[1]["boxes"]
        events = sum(b[k] for b in boxes for k in ("pending", "processing", "done", "dead"))
        db = os.path.join(self.spool.data, "db")
        size = sum(os.stat(os.path.join(db, f)).st_blocks * 512 for f in os.listdir(db))
        tables = kinds["N.sst"]
        # pages of files (the program, its libraries) are no memory that it could leak
        return {"rss MB": int(status["RssAnon"].split()[0]) / 1024, "threads": int(status["Threads"]),
                "fds": sum(kinds.values()) - tables, "tables": tables, "kinds": kinds,
                "children": children, "db MB": size / 1e6, "events": events,
                "bytes/event": size / max(events, 1),
                "waiting": sum(b["pending"] + b["processing"] for b in boxes)}

    def look(self, f):
        try:
            self.samples.append((time.monotonic(), self.sample()))
        except NOT_NOW:
            pass
        self.collect(f)

    def between(self, a, b):
        """The medians (of threads and children the most) from one time to another, and latencies."""
        rows = [s for t, s in self.samples if a <= t - self.begin < b]
        out = {k: (max if k in ("threads", "children") else statistics.median)(r[k] for r in rows)
               for k in (rows[0] if rows else ()) if k != "kinds"}
        kinds = sum((r["kinds"] for r in rows), collections.Counter())
        out["kinds"] = {k: n / len(rows) for k, n in kinds.items()}
        ms = sorted(v for t, v in self.latencies if a <= t - self.begin < b)
        if ms:
            out.update({"p50 ms": ms[len(ms) // 2], "p99 ms": ms[len(ms) * 99 // 100], "handled": len(ms)})
        return out

    COLUMNS = ("rss MB", "fds", "tables", "threads", "children", "db MB", "events", "bytes/event", "waiting", "handled",
               "p50 ms", "p99 ms")

    def print_row(self, name, row):
        print(f"{name:>8}" + "".join(f"{row.get(c, float('nan')):>12.{1 if c.endswith('MB') else 0}f}" for c in self.COLUMNS),
              flush=True)

    # ---- the whole

    def run(self):
        self.configure()
        self.start()
        self.in_threads(self.pull_bot, self.dropin_bot, self.load, self.telegram_faults, self.backup, self.import_old)
        print(f"{SECONDS} s, {RATE:g} updates a second; the daemon is killed until {SECONDS // 3} s")
        print(f"{'until s':>8}" + "".join(f"{c:>12}" for c in self.COLUMNS))
        step, kill_every = max(10, min(60, SECONDS / 20)), max(10, min(120, SECONDS / 15))
        shown = killed = 0
        with open(self.handled_path, "a+", encoding="utf-8") as f:
            f.seek(0)
            while (now := time.monotonic() - self.begin) < SECONDS:
                self.over.wait(SAMPLE_S)
                if self.spool.process.poll() is not None:
                    self.troubles.append(f"the daemon ended with {self.spool.process.returncode}")
                    break
                if now < SECONDS / 3 - kill_every / 2 and now - killed > kill_every:
                    killed, self.kills = now, self.kills + 1
                    self.spool.kill()
                    self.start()
                self.look(f)
                if now - shown >= step:
                    self.print_row(f"{now:.0f}", self.between(shown, now))
                    shown = now
            self.drain(f)
        self.over.set()
        for t in self.threads:  # a backup uses the spool by itself where no daemon does
            t.join(60)
        return self.judge()

    def drain(self, f):
        def all_handled():
            self.collect(f)
            return all(len(self.handled[b]) == self.made[b] for b in BOTS)
        try:
            wait_until(all_handled, "all is handled", 120)
        except AssertionError:
            self.troubles.append("not handled: " + ", ".join(f"{b} {self.made[b] - len(self.handled[b])}" for b in BOTS))

    def judge_rises(self):
        # the first moments of the life are its start
        start = SECONDS / 3 + SECONDS / 18
        length = (SECONDS - start) / PARTS
        parts = [self.between(start + i * length, start + (i + 1) * length) for i in range(PARTS)]
        parts = [p for p in parts if "events" in p]
        allowed = dict(LIMITS)
        if parts:
            allowed["db MB"] += max(0, parts[-1]["events"] - parts[0]["events"]) * DB_PER_EVENT / 1e6
        print(f"{'from ' + str(round(start)) + ' s on':>20}{'first':>9}{'last':>9}{'rise':>9}{'allowed':>9}{'a day':>9}")

        def line(name, values, limit=None):
            first, last = fit(values)
            day = (last - first) * 86400 / (length * (PARTS - 1))
            print(f"{name:>20}{first:>9.1f}{last:>9.1f}{last - first:>9.1f}"
                  f"{'' if limit is None else format(limit, '.1f'):>9}{day:>9.0f}")
            if limit is not None and last - first > limit:
                self.troubles.append(f"{name} creeps: {first:.0f}, then {last:.0f}")
        for name, limit in allowed.items():
            values = [(i, p[name]) for i, p in enumerate(parts) if name in p]
            if len(values) < PARTS / 2:
                self.troubles.append(f"{name}: not measured")
            else:
                line(name, values, limit)
        for kind in sorted({k for p in parts for k in p["kinds"]}) if len(parts) > 1 else ():
            line(kind, [(i, p["kinds"].get(kind, 0)) for i, p in enumerate(parts)])

    def judge(self):
        self.judge_rises()
        if self.spool.process.poll() is None:
            retention = self.spool.api("GET", "/v1/status")[1]["retention"]
            print(f"{retention['removed']} removed, {retention['archived']} archived")
            if not retention["removed"] or not retention["archived"]:
                self.troubles.append("nothing was removed and archived")
            self.spool.stop()
        r = self.spool.cli("verify", code=None)
        if r.returncode:
            self.troubles.append(f"verify: exit {r.returncode}: {r.stdout}{r.stderr}")
        print(f"{sum(self.made.values())} updates, {self.imported} imported, {self.kills} kills, {self.backups} backups")
        for t in sorted(set(self.troubles)):
            print("FAIL: " + t)
        log = self.spool.log()
        if self.troubles:
            print(log[-5000:])
        self.spool.close()
        self.api.stop()
        print("nothing creeps" if not self.troubles else "failed")
        return int(bool(self.troubles))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *args: sys.exit(1))
    sys.exit(Soak().run())
