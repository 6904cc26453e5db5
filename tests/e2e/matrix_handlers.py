"""What takes the events in the crash matrix: a handler of each kind, which fails in every way of the outcome table. What
it does the first time is known by the chat."""
import http.client
import http.server
import json
import threading
import time

from harness import TOKEN, Record, wait_until

PATIENCE = 60
NOT_NOW = (OSError, http.client.HTTPException, ValueError)  # of a daemon that is away

PLAIN = (1, 2, 3)
RETRY, REJECT, UNAVAILABLE, SLOW, WAIT, HELD, LIMITED = 101, 102, 103, 104, 105, 106, 107

SHELL = f"""
first() {{ (set -C; : >"${{0%/*}}/first-$1") 2>/dev/null; }}
case $TGSPOOL_LANE in
chat:{RETRY}) first retry && exit 1 ;;
chat:{REJECT}) exit 65 ;;
chat:{UNAVAILABLE}) first unavailable && exit 69 ;;
chat:{SLOW}) [ $TGSPOOL_KIND = message ] && {{ first slow && exec sleep 60; sleep 0.3; }} ;;
chat:{WAIT}) echo retry-after: 600 >&2; exit 1 ;;
chat:{HELD}) first held && exec sleep 60 ;;
esac
"""

WORKER = f"""
def first(word):
    try:
        os.close(os.open(os.path.join(os.path.dirname(RECORD), "first-" + word), os.O_CREAT | os.O_EXCL))
        return True
    except FileExistsError:
        return False

for e in requests():
    record("start", e)
    chat = int(e["lane"].split(":")[1])
    if chat == {RETRY} and first("retry"):
        answer(e, ok=False, error="not yet")
    elif chat == {REJECT}:
        answer(e, ok=False, error="never", dead=True)
    elif chat == {UNAVAILABLE} and first("unavailable"):
        os._exit(1)
    elif chat == {SLOW} and e["kind"] == "message" and first("slow"):
        time.sleep(60)
    elif chat == {SLOW} and e["kind"] == "message":
        time.sleep(0.3)
        record("end", e)
        answer(e, ok=True, **CALLS(e, chat))
    elif chat == {WAIT}:
        answer(e, ok=False, error="later", retry_after=600)
    elif chat == {HELD} and first("held"):
        time.sleep(60)
    else:
        record("end", e)
        answer(e, ok=True, **CALLS(e, chat))
"""


class Handling:
    """A program of the test's own that takes events: it writes the record and knows what it did for the first time."""

    def __init__(self, spool, slow):
        self.spool, self.slow, self.lock, self.over = spool, slow, threading.Lock(), threading.Event()
        self.firsts, self.acked, self.connections = set(), set(), 0
        self.thread = None

    def come_to_rest(self):
        pass

    def first(self, word):
        with self.lock:
            new = word not in self.firsts
            self.firsts.add(word)
            return new

    def record(self, word, e):
        row = " ".join([word] + [str(e.get(f, "")) for f in Record.FIELDS])
        with self.lock, open(self.spool.record.path, "a", encoding="utf-8") as f:
            f.write(row + "\n")

    def begin(self):
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def end(self):
        self.over.set()
        if self.thread:
            self.thread.join(PATIENCE)


class Http(Handling):
    """A webhook of a bot."""

    def __init__(self, spool, slow):
        super().__init__(spool, slow)
        handling = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                try:
                    status, headers = handling.answer(self.headers)
                    if not status:
                        handling.hang(headers["hang"])
                        self.close_connection = True
                    else:
                        self.send_response(status)
                        for name, value in headers.items():
                            self.send_header(name, value)
                        self.send_header("Content-Length", "0")
                        self.end_headers()
                except OSError:
                    self.close_connection = True

            def do_GET(self):
                self.send_response(204)
                self.end_headers()

            def log_message(self, *args):
                pass

        class Server(http.server.ThreadingHTTPServer):
            def process_request(self, request, client_address):
                handling.count(1)
                super().process_request(request, client_address)

            def process_request_thread(self, request, client_address):
                super().process_request_thread(request, client_address)
                handling.count(-1)

        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *args: None  # of a daemon that died
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"

    def hang(self, seconds):
        """What hangs does nothing any more, whoever waits for it."""
        self.count(-1)
        self.over.wait(seconds)
        self.count(1)

    def count(self, n):
        with self.lock:
            self.connections += n

    def come_to_rest(self):
        """What a daemon asked that is dead by now is still to be read. Connections are taken in their order, and each ends
        when all that it brought is done."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=PATIENCE)
        connection.request("GET", "/")
        connection.getresponse().read()
        connection.close()
        wait_until(lambda: not self.connections, "its requests are answered", PATIENCE)

    def answer(self, headers):
        e = {f: headers.get("X-Tgspool-" + f.replace("_", "-"), "") for f in Record.FIELDS}
        e["key"] = headers["Idempotency-Key"]
        e["update_id"] = e["id"].split("/")[1]
        chat = int(e["lane"].split(":")[1])
        self.record("start", e)
        if chat == RETRY and self.first("retry"):
            return 500, {}
        if chat == REJECT:
            return 410, {}
        if chat == UNAVAILABLE and self.first("unavailable"):
            return 503, {}
        if chat == LIMITED and self.first("limited"):
            return 429, {"Retry-After": "1"}
        if chat == WAIT:
            return 500, {"Retry-After": "600"}
        if (chat == SLOW and e["kind"] == "message" and self.first("slow")) or (chat == HELD and self.first("held")):
            return 0, {"hang": 8}
        if chat == SLOW and e["kind"] == "message":
            self.over.wait(0.3)
        self.record("end", e)
        return 200, {}

    def run(self):
        self.server.serve_forever(0.02)

    def end(self):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()
        super().end()


class Pull(Handling):
    """Claims and acks, and says again what was not answered."""

    def say(self, verb, e, **more):
        while not self.over.is_set():
            try:
                status, _ = self.spool.api("POST", "/v1/" + verb, {"id": e["id"], "lease": e["lease"], **more})
                if status == 200 and verb == "ack":
                    with self.lock:
                        self.acked.add(e["id"])
                if status != 503:
                    return
            except NOT_NOW:
                pass
            time.sleep(0.02)

    def take(self, e):
        chat = int(e["lane"].split(":")[1])
        self.record("start", e)
        if chat == RETRY and self.first("retry"):
            self.say("nack", e, error="not yet")
        elif chat == REJECT:
            self.say("nack", e, error="never", dead=True)
        elif chat == WAIT:
            self.say("nack", e, error="later", retry_after=600)
        elif chat == SLOW and e["kind"] == "message" and self.first("slow"):
            pass  # and never a word of it again
        else:
            if chat == SLOW and e["kind"] == "message":
                self.over.wait(0.3)  # by then what is behind it has expired
            self.record("end", e)
            self.say("ack", e)

    def run(self):
        while not self.over.is_set():
            try:
                status, answer = self.spool.api("POST", "/v1/claim", {"bot": "shop", "max": 2, "wait": "200ms",
                                                                      "lease": "3s"}, timeout=5)
            except NOT_NOW:
                status, answer = 0, {}
            for e in answer.get("events", []) if status == 200 else []:
                self.take(e)
            if status != 200:
                time.sleep(0.02)


class Dropin(Handling):
    """A bot that polls the drop-in API, as libraries do: its offset outlives the daemon."""

    def __init__(self, spool, slow):
        super().__init__(spool, slow)
        self.taken = set()
        self.ids = {}  # of updates by their text

    def is_there(self, kind):
        try:
            return self.spool.events(kind=kind, box="in")
        except (*NOT_NOW, AssertionError):
            return False

    def get_updates(self, connection, offset):
        connection.request("POST", f"/bot{TOKEN}/getUpdates", json.dumps({"offset": offset, "timeout": 1, "limit": 5}),
                           {"Content-Type": "application/json"})
        r = connection.getresponse()
        return r.status, json.loads(r.read())

    def run(self):
        offset, connection = 0, http.client.HTTPConnection("127.0.0.1", self.spool.dropin, timeout=10)
        while self.slow and not self.over.is_set() and not self.is_there("edited_message"):
            time.sleep(0.02)
        if self.slow:
            self.over.wait(1.2)  # by then what expires has expired
        while not self.over.is_set():
            try:
                status, answer = self.get_updates(connection, offset)
            except NOT_NOW:
                connection.close()
                status = 0
            if status != 200:
                time.sleep(0.02)
                continue
            with self.lock:
                self.acked |= self.taken  # the offset confirmed them
            for u in answer["result"]:
                kind = next(k for k in u if k != "update_id")
                # Served under an id that only grows, maybe another one; and maybe sooner than the injection is answered.
                i = wait_until(lambda text=u[kind]["text"]: self.ids.get(text), "an update of ours")
                e = {"id": f"shop/{i}", "attempt": 1, "lane": f"chat:{u[kind]['chat']['id']}", "kind": kind, "key": "-",
                     "update_id": i}
                self.record("start", e)
                self.record("end", e)
                self.taken.add(e["id"])
                offset = u["update_id"] + 1
