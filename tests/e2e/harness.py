"""What the end-to-end tests are made of: the Bot API test server, the daemon, handlers, and waiting for things.

Where the programs are comes from the environment: TGSPOOL_BIN and TGSPOOL_BOTAPI, else the build directory
`builddir` (the current one).
"""
import base64
import http.client
import json
import os
import re
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "net"))
from ports import free_port  # noqa: E402,F401

BUILD = os.path.abspath(os.environ.get("builddir", "."))
TGSPOOL = os.path.abspath(os.environ.get("TGSPOOL_BIN") or os.path.join(BUILD, "tgspool"))
BOTAPI = os.path.abspath(os.environ.get("TGSPOOL_BOTAPI") or os.path.join(BUILD, "tests/botapi/tgspool-botapi"))
TOKEN = "123456:AAF0-test-token-that-must-not-be-seen-1"

EX_USAGE, EX_NOINPUT, EX_UNAVAILABLE, EX_TEMPFAIL, EX_CONFIG = 64, 66, 69, 75, 78


def wait_until(predicate, what, timeout=30):
    """Calls predicate until it gives something true, which is returned."""
    end = time.monotonic() + timeout
    pause = 0.005
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {timeout} s in vain: {what}")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)


def end_process(process, sig=signal.SIGTERM, timeout=40):
    """Ends one process and returns its code."""
    if process.poll() is None:
        process.send_signal(sig)
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise AssertionError(f"{process.args[0]} did not end on signal {int(sig)}")


def is_in_program(text):
    with open(TGSPOOL, "rb") as f:
        return text in f.read()


def has_failpoints():
    """Whether the daemon was built with --enable-failpoints."""
    return is_in_program(b"TGSPOOL_FAILPOINTS")


def is_sanitized():
    """Whether it was built with --enable-asan."""
    return is_in_program(b"__asan_init")


def often(n):
    """How often what is sampled is repeated: everything takes several times as long with sanitizers."""
    return -(-n // 4) if is_sanitized() else n


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path, timeout=60):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class BotApi:
    """The test server. Its control interface is described in tests/botapi/control.c."""

    def __init__(self, *args, tokens=(TOKEN,), tls=None, port=0):
        command = [BOTAPI, "--with-parent", "--listen", f"127.0.0.1:{port}", *args]
        for token in tokens:
            command += ["--token", token]
        if tls:
            command += ["--tls-cert", tls[0], "--tls-key", tls[1]]
        self.tls = tls
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError("the test server did not start")
        self.port = int(line)
        self.host = "localhost" if tls else "127.0.0.1"
        self.url = f"{'https' if tls else 'http'}://{self.host}:{self.port}"

    def connect(self, timeout=90):
        if self.tls:
            return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout,
                                               context=ssl._create_unverified_context())
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def request(self, method, path, body=None, headers=None, connection=None):
        """Returns status, headers and body."""
        c = connection or self.connect()
        c.request(method, path, body, headers or {})
        r = c.getresponse()
        answer = (r.status, r.headers, r.read())
        if not connection:
            c.close()
        return answer

    def control(self, command, **args):
        status, _, body = self.request("POST", "/control/" + command, json.dumps(args))
        answer = json.loads(body)
        if status != 200:
            raise AssertionError(f"{command}: {answer['error']}")
        return answer

    def state(self, **args):
        return self.control("state", **args)

    def log(self, after=0, method="getUpdates", **args):
        log = self.control("log", after=after, **args)["log"]
        return [q for q in log if method is None or q["method"] == method]

    def generate(self, count, **args):
        return self.control("generate", count=count, **args)

    def inject_raw(self, *entries, **args):
        """Entries are bytes; "@ID@" in one becomes its id."""
        items = [{"raw_base64": base64.b64encode(e).decode()} for e in entries]
        return self.control("inject", updates=items, **args)["ids"]

    def inject_message(self, chat, text, **args):
        members = json.dumps({"message": {"message_id": 1, "from": {"id": chat, "is_bot": False, "first_name": "A"},
                                          "chat": {"id": chat, "type": "private"}, "date": 1, "text": text}})
        return self.control("inject", updates=[{"kind": "message", "members": members[1:-1]}], **args)["ids"][0]

    def fault(self, type, **args):
        return self.control("fault", type=type, **args)

    def call(self, method, token=TOKEN, connection=None, **args):
        """A Bot API call as a library would send it. Returns status and answer."""
        status, _, body = self.request("POST", f"/bot{token}/{method}", json.dumps(args),
                                       {"Content-Type": "application/json"}, connection)
        return status, json.loads(body)

    def stop(self):
        end_process(self.process)
        self.process.stdout.close()


class Record:
    """What handlers wrote down, a line an event: a word, then the fields of FIELDS."""

    FIELDS = ("id", "attempt", "lane", "kind", "key", "update_id")
    SHELL = " ".join(f"${{TGSPOOL_{f.upper()}-}}" for f in FIELDS)

    def __init__(self, path):
        self.path = path

    def lines(self, word=None):
        """Dictionaries, in the order in which they were written. A line is one write with O_APPEND."""
        try:
            with open(self.path, encoding="utf-8") as f:
                rows = [line.rstrip("\n").split(" ") for line in f if line.endswith("\n")]
        except FileNotFoundError:
            return []
        return [dict(zip(("word",) + self.FIELDS, r)) for r in rows if word in (None, r[0])]

    def ids(self, word="end"):
        return [r["id"] for r in self.lines(word)]

    def __len__(self):
        return len(self.lines("end"))


class Spool:
    """A directory with a config, and the daemon run on it."""

    def __init__(self, api=None, level="debug"):
        self.dir = tempfile.mkdtemp(prefix="tgspool-")  # short: a socket's path has 107 bytes
        self.config = os.path.join(self.dir, "tgspool.yaml")
        self.socket = os.path.join(self.dir, "sock")
        self.data = os.path.join(self.dir, "data")
        self.log_path = os.path.join(self.dir, "log")
        self.record = Record(os.path.join(self.dir, "record"))
        self.process = None
        self.level = level
        self.bots = {}
        self.spool = {"reserve": "off"}  # many daemons run at once, each would take 64 MB
        self.listen = {}
        self.alerts = {}
        if api:
            self.add_bot("shop", api_root=api.url)

    # ---- configuration

    def write(self, name, text, mode=0o600):
        path = os.path.join(self.dir, name)
        with open(path, "wb") as f:
            f.write(text.encode() if isinstance(text, str) else text)
        os.chmod(path, mode)
        return path

    def add_bot(self, name, token=TOKEN, **options):
        self.bots[name] = {"token_file": self.write(name + ".token", token + "\n"), **options}

    def configure(self, bot="shop", spool=None, listen=None, alerts=None, **options):
        """Sets options of a bot (None takes one away) and writes the file."""
        self.spool.update(spool or {})
        self.listen.update(listen or {})
        if alerts is not None:
            self.alerts = alerts
        if bot:
            self.bots[bot].update(options)
            self.bots[bot] = {k: v for k, v in self.bots[bot].items() if v is not None}
        text = f"spool:\n  dir: {self.data}\n"
        text += "".join(f"  {k}: {v}\n" for k, v in self.spool.items())
        text += f"listen:\n  socket: {self.socket}\n" + "".join(f"  {k}: {v}\n" for k, v in self.listen.items())
        if self.alerts:
            text += "alerts:\n" + "".join(f"  {k}: {v}\n" for k, v in self.alerts.items())
        text += f"log:\n  level: {self.level}\nbots:\n"
        for name, opts in self.bots.items():
            text += f"  {name}:\n" + "".join(f"    {k}: {v}\n" for k, v in opts.items())
        self.write("tgspool.yaml", text)
        return self.config

    def shell_handler(self, body="", name="handler"):
        """A handler that writes down start and end around some lines of shell."""
        to = shlex.quote(self.record.path)
        return self.write(name, f"#!/bin/sh\nrecord() {{ printf '%s\\n' \"$1 {Record.SHELL}\" >>{to}; }}\n"
                                f"record start\n{body}\nrecord end\n", 0o700)

    def python_handler(self, body, name="worker.py"):
        path = self.write(name, f"import json, os, sys, time\nRECORD = {self.record.path!r}\n" + WORKER_HEAD + body)
        return f"{sys.executable} {path}"

    # ---- the daemon

    def start(self, env=None, wait=True, expect_exit=None):
        self.started_at = time.monotonic()
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen([TGSPOOL, "run", "-c", self.config], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, env={**os.environ, **(env or {})})
        if expect_exit is not None:
            code = self.process.wait(30)
            assert code == expect_exit, self.log()
        elif wait:
            wait_until(self.is_up, "the daemon answers on its socket", 30)
        return self

    def is_up(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the daemon ended with {self.process.returncode}:\n{self.log()[-3000:]}")
        try:
            return self.api("GET", "/v1/status")[0] == 200
        except OSError:
            return False

    def stop(self, code=0):
        got = end_process(self.process)
        assert got == code, f"ended with {got}:\n{self.log()[-3000:]}"

    def kill(self):
        end_process(self.process, signal.SIGKILL)

    def log(self):
        """The log, with messages that go on on a second line made whole."""
        try:
            with open(self.log_path, encoding="utf-8", errors="replace") as f:
                return re.sub(r"\n(?:<\d>|\S+ )(?:error|warn |info |debug) (?:[\w-]+: )?\.\.\.", "", f.read())
        except FileNotFoundError:
            return ""

    def wait_log(self, text, timeout=30):
        wait_until(lambda: text in self.log(), f"{text!r} in the log", timeout)

    # ---- asking it

    def api_bytes(self, method, path, body=None, timeout=60):
        """A request over the control socket; returns the answer's bytes."""
        return self.ask(method, path, body, timeout)[1]

    def ask(self, method, path, body, timeout):
        c = UnixConnection(self.socket, timeout)
        try:
            c.request(method, path, body if body is None or isinstance(body, (str, bytes)) else json.dumps(body))
            r = c.getresponse()
            return r.status, r.read()
        finally:
            c.close()

    def api(self, method, path, body=None, query=None, timeout=60):
        """The same with a query; returns status and answer."""
        if query:
            path += "?" + urllib.parse.urlencode(query)
        status, answer = self.ask(method, path, body, timeout)
        return status, json.loads(answer or b"null")

    def cli(self, *args, code=0, input=None, text=True, env=None):
        """Runs a command; returns its standard output (with code=None the whole result)."""
        r = subprocess.run([TGSPOOL, "-c", self.config, *args], capture_output=True, text=text, timeout=60,
                           input=input, env={**os.environ, **(env or {})})
        if code is None:
            return r
        assert r.returncode == code, f"{args}: exit {r.returncode}\n{r.stdout}\n{r.stderr}"
        return r.stdout

    def cli_json(self, *args):
        return json.loads(self.cli("--json", *args))

    def counts(self, bot="shop"):
        """The in-box of a bot as GET /v1/status shows it; pending, processing, done, dead among it."""
        boxes = self.api("GET", "/v1/status")[1]["boxes"]
        return next(b for b in boxes if b["bot"] == bot and b["box"] == "in")

    def wait_counts(self, timeout=60, bot="shop", **numbers):
        def reached():
            counts = self.counts(bot)
            return all(counts[k] == v for k, v in numbers.items())
        try:
            wait_until(reached, "", timeout)
        except AssertionError:
            raise AssertionError(f"{timeout} s for {numbers}; there are {json.dumps(self.counts(bot))}") from None

    def events(self, **filters):
        events, after = [], {}
        while True:
            status, page = self.api("GET", "/v1/events", query={**filters, **after})
            assert status == 200, page
            events += page["events"]
            if not page.get("next"):
                return events
            after = {"after": page["next"]}

    def close(self):
        if self.process and self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.dir, ignore_errors=True)


WORKER_HEAD = '''
def record(word, e):
    row = [word] + [str(e.get(f, "")) for f in %r]
    fd = os.open(RECORD, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, (" ".join(row) + "\\n").encode())
    os.close(fd)

def answer(e, **fields):
    sys.stdout.write(json.dumps({"id": e["id"], **fields}) + "\\n")
    sys.stdout.flush()

def requests():
    for line in sys.stdin.buffer:
        yield json.loads(line.decode("utf-8", "replace"))
''' % (Record.FIELDS,)
