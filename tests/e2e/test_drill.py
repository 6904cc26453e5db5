"""tgspool drill: what passes, and for each check what makes just that one fail. Each drill waits most of its time, so
several of them run at once."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading

import pytest

from harness import EX_CONFIG, EX_USAGE, TGSPOOL, end_process, is_sanitized, wait_until

EX_SOFTWARE = 70
LIMIT = "300s"  # only on a machine that is very busy does it take so long
LEASE = "8s"  # nor there shall a handler that works be too slow
pytestmark = pytest.mark.limit(600)  # those that look at what ran meanwhile may wait for it
AT_ONCE = 2 if is_sanitized() else 4  # each starts daemon after daemon

CALL = '''#!/usr/bin/python3
import json, os, sys, urllib.error, urllib.request
update = json.load(sys.stdin)
body = json.dumps({"chat_id": update["message"]["chat"]["id"], "text": "done"}).encode()
try:
    urllib.request.urlopen(urllib.request.Request(os.environ["TGSPOOL_API_ROOT"] + "/bot123:abc/sendMessage", body,
                                                  {"Content-Type": "application/json"})).read()
except urllib.error.HTTPError as e:
    wait = json.loads(e.read())["parameters"]["retry_after"]
    %s
'''
WAITS = 'print(f"retry-after: {wait}", file=sys.stderr)\n    sys.exit(1)'

WRONG_ID = '''#!/usr/bin/python3
import json, sys
for line in sys.stdin:
    print(json.dumps({"id": "shop/1", "ok": True}), flush=True)
'''

WORKER = '''#!/usr/bin/python3
import json, os, sys
print(os.environ["TGSPOOL_DRILL"], "SECRET" in os.environ, file=open("%(dir)s/environment", "w"))
for line in sys.stdin:
    e = json.loads(line)
    done = "%(dir)s/" + e["key"].replace(":", "-")
    if not os.path.exists(done):
        open(done, "w").close()
        open("%(dir)s/effects", "a").write("x")
    print(json.dumps({"id": e["id"], "ok": True}), flush=True)
'''


class Drill:
    """A config of a user, who is careful with all that is real, and a drill that runs by it."""

    def __init__(self, bot="", spool="", args=(), listen="", handler=None):
        self.dir = tempfile.mkdtemp(prefix="tgspool-")
        self.config = os.path.join(self.dir, "tgspool.yaml")
        self.scratch = os.path.join(self.dir, "tmp")
        os.mkdir(self.scratch)
        self.real = os.path.join(self.dir, "real")
        os.makedirs(os.path.join(self.real, "db"))
        for name in ("spool", "db/000004.log", "db/000007.sst"):
            with open(os.path.join(self.real, name), "w") as f:
                f.write("not to be touched " * 20)
        self.before = self.stats()
        self.told = self.write("told", "")
        alert = self.write("alert", f"#!/bin/sh\ncat >>'{self.told}'\n", 0o700)
        if handler:
            bot += f"\n    command: {self.write('handler', handler.replace('%(dir)s', self.dir), 0o700)}"
        self.telegram = socket.create_server(("127.0.0.1", 0))
        self.visitors = []
        threading.Thread(target=self.listen, daemon=True).start()
        root = f"http://127.0.0.1:{self.telegram.getsockname()[1]}"
        self.write("tgspool.yaml", f"spool:\n  dir: {self.real}\n  {spool}\nlisten:\n  socket: {self.dir}/sock\n"
                                   f"  {listen}\nalerts:\n  command: {alert}\n  url_file: {self.dir}/missing\n"
                                   f"bots:\n  shop:\n    token_env: SECRET\n    api_root: {root}\n    {bot}\n")
        self.args, self.process, self.started = args, None, threading.Event()

    def start(self):
        self.process = subprocess.Popen(
            [TGSPOOL, "drill", "-c", self.config, "--json", "--limit", LIMIT, "--lease", LEASE,
             *(a.replace("%(dir)s", self.dir) for a in self.args)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "TMPDIR": self.scratch, "SECRET": "5:AAF0-this-is-no-token-that-one-may-use"})
        self.started.set()

    def write(self, name, text, mode=0o600):
        path = os.path.join(self.dir, name)
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, mode)
        return path

    def listen(self):
        """Stands for Telegram, where nobody may come to."""
        try:
            while True:
                self.visitors.append(self.telegram.accept()[0])
        except OSError:
            pass

    def stats(self):
        found = {}
        for folder, dirs, files in os.walk(self.real):
            for name in dirs + files + ["."]:
                s = os.lstat(os.path.join(folder, name))
                found[os.path.join(folder, name)] = (s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns)
        return found

    def result(self):
        """Waits; returns the answer and the exit code, when all that is real was left alone."""
        assert self.started.wait(300)
        out, err = self.process.communicate(timeout=310)
        assert self.stats() == self.before
        assert not self.visitors
        with open(self.told) as f:
            assert f.read() == ""
        assert "AAF0-this" not in out + err
        for folder, _, files in os.walk(self.scratch):
            for name in files:
                if name == "sock":
                    continue
                with open(os.path.join(folder, name), "rb") as f:
                    assert b"AAF0-this" not in f.read()
        return json.loads(out) if out else err, self.process.returncode

    def close(self):
        self.telegram.close()
        if self.process:
            if self.process.poll() is None:
                end_process(self.process)
            self.process.stdout.close()
            self.process.stderr.close()
        shutil.rmtree(self.dir, ignore_errors=True)


OWN = ("--run-handler", "--yes")
PASSING = {
    "exec": dict(bot="command: /bin/false"),  # not run
    "worker": dict(bot="deliver: worker\n    command: /bin/false\n    order: thread"),
    "http": dict(bot="deliver: http\n    url: http://127.0.0.1:9/hook", spool="sync: 20ms"),
    "pull": dict(bot="deliver: pull\n    order: bot"),
    "dropin": dict(bot="deliver: dropin", listen="dropin: 127.0.0.1:9"),
    "webhook": dict(bot="deliver: pull\n    order: none\n    intake: webhook\n    expire: auto",
                    listen="webhook: 127.0.0.1:9"),
    "own exec": dict(handler=CALL % WAITS, args=(*OWN, "3", "5")),
    "own worker": dict(bot="deliver: worker", handler=WORKER,
                       args=(*OWN, "--probe", "sh -c 'cat %(dir)s/effects 2>/dev/null | wc -c'", "1", "2", "4", "5")),
}
# By the number of the check that fails; a word of what was seen.
FAILING = {
    1: ("not synced", dict(bot="command: /bin/false", spool="sync: off")),
    # its lock is left by the kill, which comes a quarter of a lease after it began
    2: ("File exists", dict(handler="#!/bin/sh\nmkdir %(dir)s/lock.$TGSPOOL_UPDATE_ID || exit 7\nsleep 3\n"
                                      "rmdir %(dir)s/lock.$TGSPOOL_UPDATE_ID\n", args=OWN)),
    # waits until calls are taken again, those of other updates too, and forgets its own
    3: ("sendMessage got a 429", dict(handler=CALL % "__import__('time').sleep(wait + 0.2)", args=OWN)),
    4: ("dead (attempts)", dict(bot="command: /bin/false\n    max_attempts: 1")),
    5: ("had 2 effects", dict(handler="#!/bin/sh\necho x >>%(dir)s/effects\n",
                              args=(*OWN, "--probe", "sh -c 'cat %(dir)s/effects 2>/dev/null | wc -l'"))),
    6: ("min_free is 0", dict(bot="command: /bin/false", spool="min_free: 0")),
}
if is_sanitized():  # which makes each start of a daemon long; these take all ways through the code
    PASSING = {name: PASSING[name] for name in ("exec", "own worker")}
    FAILING = {number: FAILING[number] for number in (5,)}


@pytest.fixture(scope="module", autouse=True)
def drills():
    all_of_them = {name: Drill(**options) for name, options in PASSING.items()}
    all_of_them.update({number: Drill(**options) for number, (_, options) in FAILING.items()})
    ended = threading.Event()

    def work(todo):
        for drill in todo:
            if not ended.is_set():
                drill.start()
                drill.process.wait()
    todo = iter(list(all_of_them.values()))  # shared: next() of a list's iterator is one step
    workers = [threading.Thread(target=work, args=(todo,), daemon=True) for _ in range(AT_ONCE)]
    for w in workers:
        w.start()
    yield all_of_them
    ended.set()
    for drill in all_of_them.values():
        drill.close()


@pytest.fixture
def directory():
    """As short as a TMPDIR must be that sockets are made in."""
    path = tempfile.mkdtemp(prefix="tgspool-")
    yield pathlib.Path(path)
    shutil.rmtree(path)


def run(*args, input="", env=None):
    return subprocess.run([TGSPOOL, "drill", *args], input=input, capture_output=True, text=True, timeout=100,
                          env={**os.environ, **(env or {})})


def processes_of(text):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if text.encode() in f.read():
                    found.append(int(pid))
        except OSError:
            pass
    return found


@pytest.mark.parametrize("sig,code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_clean(directory, sig, code):
    config = directory / "tgspool.yaml"
    config.write_text("bots:\n  shop:\n    token_env: NONE\n    command: /bin/false\n")
    process = subprocess.Popen([TGSPOOL, "drill", "-c", str(config), "--limit", LIMIT, "4"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(directory)})
    scratch = re.search(r"scratch  (\S+)", process.stdout.readline() + process.stdout.readline()).group(1)
    wait_until(lambda: any("start" in open(f).read() for f in [scratch + "/4/record"] if os.path.exists(f)),
               "the handler hangs")
    assert len(processes_of(scratch)) >= 2  # the daemon and the handler
    process.send_signal(sig)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code and " ... " not in out, out + err
    assert os.listdir(directory) == ["tgspool.yaml"]
    wait_until(lambda: not processes_of(scratch), "nothing of it runs")


def test_killed_itself_it_leaves_nothing_running(directory):
    config = directory / "tgspool.yaml"
    config.write_text("bots:\n  shop:\n    token_env: NONE\n    command: /bin/false\n")
    process = subprocess.Popen([TGSPOOL, "drill", "-c", str(config), "--limit", LIMIT, "4"], stdout=subprocess.PIPE,
                               text=True, env={**os.environ, "TMPDIR": str(directory)})
    scratch = re.search(r"scratch  (\S+)", process.stdout.readline() + process.stdout.readline()).group(1)
    wait_until(lambda: len(processes_of(scratch)) >= 2, "daemon and handler run")
    process.kill()
    process.communicate()
    wait_until(lambda: not processes_of(scratch), "nothing of it runs")


def test_what_is_refused(directory):
    config = directory / "tgspool.yaml"
    ran = directory / "ran"
    config.write_text("bots:\n  a:\n    token_env: NONE\n    command: touch %s\n  b:\n    token_env: NINE\n"
                      "    deliver: pull\n" % ran)

    def refused(*args, code=EX_USAGE, **options):
        r = run("-c", str(config), *args, **options)
        assert r.returncode == code and r.stdout == "", r.stderr
        return r.stderr
    assert f"tgspool drill -c {config} --bot a" in refused()
    assert 'no bot "c"' in refused("--bot", "c", code=66)
    assert 'no check "7"' in refused("--bot", "a", "7")
    assert "a time of 10s to 1h" in refused("--bot", "a", "--limit", "1s")
    assert "give it 260s at least" in refused("--bot", "a", "--lease", "10s", "--limit", "60s")
    assert "needs --run-handler" in refused("--bot", "a", "--probe", "true")
    assert "exec and worker" in refused("--bot", "b", "--run-handler", "--yes")
    # shown, and not run without leave
    shown = refused("--bot", "a", "--run-handler", input="n\n")
    assert f"touch {ran}" in shown and "add --yes" in shown and not ran.exists()
    assert "tgspool init" in refused("-c", "/nowhere", code=EX_CONFIG)


def test_probe_that_is_none(directory):
    config = directory / "tgspool.yaml"
    config.write_text("bots:\n  shop:\n    token_env: NONE\n    command: /bin/true\n")
    for probe, why in (("echo many", "not a number"), ("/nowhere", "cannot be started"), ("false", "status 0"),
                       ("echo 5", "saw no effect")):
        r = run("-c", str(config), "--run-handler", "--yes", "--probe", probe, "--limit", LIMIT, "5",
                env={"TMPDIR": str(directory)})
        assert r.returncode == EX_SOFTWARE and why in r.stdout and "5 the same update twice ... FAIL" in r.stdout, r.stdout


def own(directory, script, *args, bot="", deliver="worker", env=None):
    """A drill of a handler of the user's; returns its checks by number."""
    handler = directory / "handler"
    handler.write_text(script)
    handler.chmod(0o700)
    config = directory / "tgspool.yaml"
    config.write_text(f"bots:\n  shop:\n    token_env: NONE\n    deliver: {deliver}\n    command: {handler}\n    {bot}\n")
    r = run("-c", str(config), "--run-handler", "--yes", "--json", *args, env={"TMPDIR": str(directory), **(env or {})})
    return {c["number"]: c for c in json.loads(r.stdout)["checks"]}, r.returncode


def test_an_answer_to_another_event_is_none(directory):
    """The daemon passes it by, so the drill does: that no update was handled is seen."""
    checks, code = own(directory, WRONG_ID, "--limit", LIMIT, "--lease", "5s", "1",
                       bot="order: none\n    concurrency: 4\n    max_attempts: 2")
    assert (checks[1]["result"], code) == ("fail", EX_SOFTWARE), checks
    # who was too slow is told what gives more time
    assert "a lease is 5s here" in checks[1]["seen"] and "--lease" in checks[1]["seen"], checks


@pytest.mark.once
def test_a_worker_that_dies_is_told_as_it_died(directory):
    for end, told in (("sys.exit(3)", "exit status 3"), ("os.kill(os.getpid(), 9)", "signal 9")):
        checks, _ = own(directory, f"#!/usr/bin/python3\nimport os, sys\nsys.stdin.readline()\n{end}\n",
                        "--limit", "100s", "--lease", "3s", "1", bot="max_attempts: 2")
        assert checks[1]["result"] == "fail" and told in checks[1]["seen"], checks


@pytest.mark.once
def test_what_killed_handlers_started_is_ended(directory):
    """A kill of the daemon ends its handlers, not what these have started: the drill leaves none of that running."""
    mark = f"sleep 98765 {directory.name}"
    script = f"#!/bin/bash\ncat >/dev/null\n(exec -a '{mark}' sleep 98765) &\nwait\n"
    checks, _ = own(directory, script, "--limit", LIMIT, "--lease", LEASE, "2", deliver="exec", bot="max_attempts: 2")
    assert checks[2]["result"] == "fail", checks
    assert processes_of(mark) == []


@pytest.mark.once
def test_only_what_was_shown_is_said(directory):
    checks, code = own(directory, "#!/bin/sh\n", "--limit", LIMIT, "--lease", LEASE, "1", "4", "5", deliver="exec",
                       bot="order: none")
    assert code == 0 and [c["result"] for c in checks.values()] == ["pass", "pass", "pass"], checks
    assert "once" not in checks[1]["seen"], "a handler may have failed and been tried again"
    assert "waited" not in checks[4]["seen"], "there is no order, so nothing waits"
    assert "--probe" in checks[5]["seen"]


def test_an_expiry_that_is_too_short(directory):
    config = directory / "tgspool.yaml"
    config.write_text("bots:\n  shop:\n    token_env: NONE\n    deliver: pull\n    expire: {message: 1s}\n")
    r = run("-c", str(config), "--json", "--limit", LIMIT, "4", env={"TMPDIR": str(directory)})
    seen = json.loads(r.stdout)["checks"][0]["seen"]
    assert r.returncode == EX_SOFTWARE and "dead (expired)" in seen and "the config's expire" in seen, seen


def test_a_scratch_directory_with_blanks(directory):
    config, scratch = directory / "tgspool.yaml", directory / "a b 'c"
    scratch.mkdir()
    config.write_text("bots:\n  shop:\n    token_env: NONE\n    deliver: pull\n")
    r = run("-c", str(config), "--limit", LIMIT, "1", env={"TMPDIR": str(scratch)})
    assert r.returncode == 0 and list(scratch.iterdir()) == [], r.stdout + r.stderr


def test_keep_and_text(directory):
    config = directory / "tgspool.yaml"
    config.write_text("bots:\n  shop:\n    token_env: NONE\n    command: /bin/false\n    concurrency: 3\n")
    r = run("-c", str(config), "--keep", "--lease", "4s", "--limit", LIMIT, "6", "4", env={"TMPDIR": str(directory)})
    assert r.returncode == 0, r.stdout + r.stderr
    assert re.findall(r"^(\d) .* \.\.\. (\w+)$", r.stdout, re.M) == [("4", "pass"), ("6", "pass")]
    kept = re.search(r"kept: (\S+)", r.stdout).group(1)
    assert sorted(os.listdir(kept)) == ["4", "6a", "6b"] and os.stat(kept).st_mode & 0o777 == 0o700
    with open(kept + "/4/tgspool.yaml") as f:
        made = f.read()
    assert "concurrency: 3" in made and "lease: 4s" in made and "lease 4s (yours: 1m)" in r.stdout
    assert max(len(line) for line in r.stdout.splitlines() if kept not in line) <= 80


# ---- the last to be looked at: all of them have run meanwhile

@pytest.mark.parametrize("name", PASSING)
def test_passes(drills, name):
    drill = drills[name]
    answer, code = drill.result()
    assert [(c["number"], c["seen"]) for c in answer["checks"] if c["result"] != "pass"] == []
    numbers = [int(a) for a in PASSING[name].get("args", ()) if a.isdigit()]
    assert [c["number"] for c in answer["checks"]] == (numbers or [1, 2, 3, 4, 5, 6])
    assert all(c["seen"] for c in answer["checks"])
    assert (code, answer["result"], answer["kept"]) == (0, "pass", None)
    assert os.listdir(drill.scratch) == []
    if name == "own worker":
        with open(os.path.join(drill.dir, "environment")) as f:
            assert f.read() == "1 False\n"
    if name == "own exec":
        assert "a call that got a 429 was made again" in answer["checks"][0]["seen"]


@pytest.mark.parametrize("number", FAILING)
def test_fails_alone(drills, number):
    """Just that check fails, says why, and what is left tells more."""
    answer, code = drills[number].result()
    failed = [c["number"] for c in answer["checks"] if c["result"] == "fail"]
    assert failed == [number], [(c["number"], c["seen"]) for c in answer["checks"]]
    seen = answer["checks"][number - 1]["seen"]
    assert FAILING[number][0] in seen
    assert (code, answer["result"]) == (EX_SOFTWARE, "fail")
    assert os.path.dirname(answer["kept"]) == drills[number].scratch
    if number != 6:
        with open(os.path.join(answer["kept"], str(number), "log")) as f:
            assert "tgspool" in f.read()
