"""A run of the crash matrix: one directory, one Bot API server, and the lives of a daemon on them."""
import collections
import json
import os

from harness import BotApi, Spool, end_process, free_port, wait_until
from matrix_handlers import (HELD, LIMITED, NOT_NOW, PATIENCE, PLAIN, REJECT, RETRY, SHELL, SLOW, UNAVAILABLE, WAIT, WORKER,
                             Dropin, Http, Pull)

SLOTS = 4  # as many may be under way at once
SECRET = "Webhook_secret-0123456789"

class Run:
    """One directory, one Bot API server, and the lives of a daemon on them."""

    def __init__(self, intake, delivery, patience=PATIENCE, sync="always", slow=False):
        """slow: one handler outlasts its lease, and what waits behind it expires. In others leases are long, so that none
        ends on a slow machine."""
        self.intake, self.delivery, self.patience, self.sync, self.slow = intake, delivery, patience, sync, slow
        self.api = BotApi()
        self.spool = Spool(self.api, level="info")
        self.fed = {}  # update id: chat and kind
        self.before = None  # what stood there when it had died: see `look`
        self.handling = None
        self.passes_path = os.path.join(self.spool.dir, "passes")
        self.configure()

    def configure(self):
        s = self.spool
        s.spool["sync"] = self.sync
        options = {"retry": "[20ms]", "jitter": 0, "lease": "2s" if self.slow else "60s", "concurrency": SLOTS,
                   "shutdown_wait": 0, "poll_timeout": "1s", "expire": "{edited_message: 1s}" if self.slow else "off",
                   "deliver": "worker" if self.delivery == "call" else self.delivery}
        if self.delivery == "exec":
            options["command"] = s.shell_handler(SHELL)
        elif self.delivery in ("worker", "call"):
            calls = ("{'calls': [{'method': 'sendMessage', 'chat_id': chat, 'text': e['id']}]}"
                     if self.delivery == "call" else "{}")
            options["command"] = s.python_handler(f"def CALLS(e, chat):\n    return {calls}\n" + WORKER)
        else:
            self.handling = {"http": Http, "pull": Pull, "dropin": Dropin}[self.delivery](s, self.slow)
        if self.delivery == "http":
            options["url"] = self.handling.url
        if self.delivery == "dropin":
            s.dropin = free_port()
            s.listen["dropin"] = f"127.0.0.1:{s.dropin}"
            s.bots["shop"]["dropin_token_file"] = s.write("alias", "123456:shop-by-another-name-for-its-program")
            for o in ("lease", "concurrency", "retry", "jitter", "shutdown_wait"):
                options.pop(o)
        if self.intake == "webhook":
            port = free_port()
            url = f"http://127.0.0.1:{port}/hook/shop"
            s.listen["webhook"] = f"127.0.0.1:{port}"
            options.update(intake="webhook", webhook_url=url, webhook_secret_file=s.write("hook", SECRET + "\n"))
            options.pop("poll_timeout")
            self.api.control("webhook", retry_ms=30, cap_ms=100)
            self.api.call("setWebhook", url=url, secret_token=SECRET, max_connections=4)
        s.configure(**options)

    # ---- updates

    def inject(self, chat, kind="message"):
        text = f"n{len(self.fed)}"
        members = json.dumps({kind: {"message_id": 1, "date": 1, "text": text, "chat": {"id": chat, "type": "private"},
                                     "from": {"id": chat, "is_bot": False, "first_name": "A"}}})
        for i in self.api.control("inject", updates=[{"kind": kind, "members": members[1:-1]}])["ids"]:
            self.fed[i] = (chat, kind)
            if self.delivery == "dropin":
                self.handling.ids[text] = i

    def feed(self):
        if self.slow:
            self.inject(SLOW)
            self.inject(SLOW, "edited_message")
        for n in range(12):
            self.inject(PLAIN[n % len(PLAIN)])
        for chat in (RETRY, RETRY, REJECT, UNAVAILABLE, WAIT):
            self.inject(chat)
        if self.delivery == "http":
            self.inject(LIMITED)
        if self.delivery == "call":
            for status in (429, 502, 400):
                self.api.fault("status", method="sendMessage", status=status, retry_after=0)
            self.api.fault("reset_after", method="sendMessage", at=5)

    # ---- the daemon

    def alive(self):
        return self.spool.process.poll() is None

    def boxes(self):
        """The counts of both boxes; None while there is no answer."""
        try:
            status, answer = self.spool.api("GET", "/v1/status", timeout=10)
            return {b["box"]: b for b in answer["boxes"]} if status == 200 else None
        except (*NOT_NOW, KeyError):
            return None

    def discard_waiting(self):
        """Nobody waits ten minutes here."""
        try:
            for e in self.spool.events(state="pending", chat=WAIT, box="in"):
                if e.get("attempts") or e.get("history"):
                    self.spool.api("POST", "/v1/discard", {"ids": [e["id"]]})
        except (*NOT_NOW, AssertionError, KeyError):
            pass

    def settled(self):
        boxes = self.boxes()
        if not boxes or self.api.state()["queued"]:
            return False
        box = boxes["in"]
        if box["pending"] and self.delivery != "dropin":
            self.discard_waiting()
        left = sum(b["pending"] + b["processing"] for b in boxes.values())
        return left == 0 and box["done"] + box["dead"] >= len(self.fed)

    def live(self, failpoint, ask_for_more=False):
        """The first life, up to a stop that finds a handler at work. Returns the exit status."""
        self.spool.start(env={"TGSPOOL_FAILPOINTS": failpoint}, wait=False)
        self.wait(self.settled, "all is handled")
        if ask_for_more and self.alive():
            self.ask_for_more()
        if self.alive():
            self.inject(HELD)
            held = str(max(self.fed))
            self.wait(lambda: any(r["update_id"] == held for r in self.spool.record.lines("start")), "one is at work")
        return self.stop()

    def live_on(self):
        """The last life: it finishes what there is, and is killed."""
        self.hold_no_more()
        self.spool.start(wait=False)
        if not any(chat == HELD for chat, _ in self.fed.values()):
            self.inject(HELD)
        self.wait(self.settled, "all is handled in the end")
        self.boxes()  # answered after the commit of what was seen
        if not self.alive():
            raise AssertionError(f"the last life ended with {self.spool.process.returncode}: {self.spool.log()[-2000:]}")
        self.spool.kill()

    def wait(self, predicate, what):
        wait_until(lambda: not self.alive() or predicate(),
                   f"{what}; {self.boxes()}\n{self.spool.log()[-3000:]}", self.patience)

    def stop(self):
        if self.alive():
            try:
                end_process(self.spool.process)
            except ProcessLookupError:
                pass
        return self.spool.process.wait(PATIENCE)

    def hold_no_more(self):
        """The one that was to be held until a stop is held by nobody now, whether it had come so far or not."""
        self.spool.write("first-held", "")
        if self.handling:
            self.handling.first("held")

    def die(self):
        if self.alive():
            self.spool.kill()

    def ask_for_more(self):
        """What only a person asks for."""
        for method, path in (("POST", "/v1/checkpoint"), ("POST", "/v1/compact")):
            try:
                self.spool.api(method, path, timeout=20)
            except NOT_NOW:
                pass
        self.wait(lambda: not (self.compaction() or {}).get("running"), "the compaction ends")

    def compaction(self):
        try:
            return self.spool.api("GET", "/v1/compact", timeout=10)[1]
        except NOT_NOW:
            return None

    # ---- what stands there

    def stored(self):
        """All events by box, of a spool that no daemon runs on; nothing of it is changed."""
        out = {"in": [], "out": []}
        for box in out:
            r = self.spool.cli("export", "--box", box, code=None)
            if r.returncode == 0:
                out[box] = [json.loads(line) for line in r.stdout.split("\n") if line]
        return out

    def believed(self):
        """The ids of which Telegram believes that they arrived."""
        if self.intake == "webhook":
            return {s["id"] for s in self.api.control("sent")["sent"] if s["status"] == 200}
        queued = {u for u in self.fed if u >= self.api.state()["head"]} if self.api.state()["queued"] else set()
        return set(self.fed) - queued

    def sent_calls(self):
        """Those that Telegram answered. Where the answer was cut, it may be sent again: Telegram has no way to tell."""
        return [q["args"]["text"] for q in self.api.log(method=None)
                if q["method"] == "sendMessage" and q["status"] == 200 and not q["fault"]]

    def look(self):
        """Notes what stood there when the daemon had died, before anything else runs."""
        if self.handling:
            self.handling.come_to_rest()
        stored = self.stored()
        self.before = {"believed": self.believed(), "stored": stored,
                       "ends": collections.Counter(self.spool.record.ids()),
                       "acked": set(self.handling.acked) if self.handling else set(),
                       "calls": collections.Counter(self.sent_calls())}

    def passes(self):
        with open(self.passes_path, encoding="ascii") as f:
            return {name: int(n) for name, n in (line.split() for line in f)}

    def close(self):
        if self.handling:
            self.handling.end()
        self.spool.close()
        self.api.stop()
