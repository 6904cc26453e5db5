"""The command line: with the daemon over its socket, and without one on the locked store."""
import json
import os
import signal
import socket
import stat
import subprocess
import threading

import pytest

from harness import EX_TEMPFAIL, EX_UNAVAILABLE, EX_USAGE, TGSPOOL, TOKEN, end_process, wait_until

MARKER = "a private line"


@pytest.fixture
def filled(spool, api):
    """Three done, one dead (chat 9), by a handler that refuses what says "bad" until a file is there."""
    spool.fixed = os.path.join(spool.dir, "fixed")
    spool.configure(command=spool.shell_handler(
        f'if grep -q bad; then [ -e {spool.fixed} ] || {{ echo "no such item" >&2; exit 65; }}; fi'))
    for chat in (1, 2, 3):
        api.inject_message(chat, MARKER)
    spool.bad = f"shop/{api.inject_message(9, 'bad ' + MARKER)}"
    spool.start()
    spool.wait_counts(done=3, dead=1)
    return spool


@pytest.fixture(params=["with the daemon", "without it"])
def either(request, filled):
    """The same, asked over the socket and in-process."""
    if request.param == "without it":
        filled.stop()
    filled.running = request.param == "with the daemon"
    return filled


def test_status(either):
    text = either.cli("status")
    assert "shop" in text and max(map(len, text.splitlines())) <= 60
    boxes = {b["box"]: b for b in either.cli_json("status")["boxes"]}
    assert (boxes["in"]["done"], boxes["in"]["dead"]) == (3, 1)
    assert "out" in boxes and not any(line.split()[1] == "out" for line in text.splitlines() if line), "no calls"


def test_list(either):
    text = either.cli("list", env={"COLUMNS": "80"})
    assert either.bad in text and max(map(len, text.splitlines())) <= 80
    assert MARKER not in text
    assert len(either.cli_json("list")["events"]) == 4
    assert [e["id"] for e in either.cli_json("list", "--state", "dead")["events"]] == [either.bad]
    assert len(either.cli_json("list", "--chat", "2")["events"]) == 1
    assert len(either.cli_json("list", "--limit", "2")["events"]) == 2
    assert either.cli_json("list", "--kind", "poll")["events"] == []
    assert either.cli("list", "--state", "nonsense", code=None).returncode == EX_USAGE
    assert [e["id"] for e in either.cli_json("list", "--error", "no such item")["events"]] == [either.bad]
    assert either.cli_json("list", "--error", "rejected")["events"] == [], "a reason is no error text"


def test_show(either):
    text = either.cli("show", either.bad)
    assert "dead" in text and "rejected" in text and "no such item" in text
    assert MARKER not in text and MARKER in either.cli("show", either.bad, "--payload")
    assert either.cli_json("show", either.bad)["reason"] == "rejected"
    assert either.cli("show", "shop/1", code=None).returncode != 0
    assert either.cli("show", "nonsense", code=None).returncode == EX_USAGE


def test_replay(either):
    open(either.fixed, "w").close()
    either.cli("replay", either.bad)
    if not either.running:
        box = next(b for b in either.cli_json("status")["boxes"] if b["box"] == "in")
        assert box["pending"] == 1
        either.start()
    either.wait_counts(done=4, dead=1, pending=0)
    old, new = [e for e in either.events() if e["chat"] == 9]
    if old["seq"] > new["seq"]:
        old, new = new, old
    assert old["replayed_as"] == new["seq"] and new["replay_of"] == old["seq"]
    assert old["key"] == new["key"]
    assert old["id"] == new["id"] == either.bad and old["ref"] == f"shop/@{old['seq']}"
    ids = [line.split()[0] for line in either.cli("list", "--chat", "9").splitlines()[1:]]
    assert ids == [old["ref"], either.bad], "no two rows bear one id"
    assert either.cli_json("show", old["ref"])["seq"] == old["seq"]
    assert either.cli_json("show", either.bad)["seq"] == new["seq"]


def test_pause_and_resume(filled, api):
    filled.cli("pause", "shop", "deliver")
    api.inject_message(5, "x")
    filled.wait_counts(pending=1)
    filled.cli("discard", filled.events(state="pending")[0]["id"])
    filled.wait_counts(pending=0, dead=2)
    assert filled.events(state="dead", chat=5)[0]["reason"] == "discarded"
    api.inject_message(6, "x")
    filled.wait_counts(pending=1)
    filled.cli("resume", "shop")
    filled.wait_counts(pending=0, done=4)
    filled.cli("pause", "shop", "intake")
    api.inject_message(7, "x")
    assert filled.counts()["paused"]["intake"]
    filled.stop()
    filled.start()
    assert filled.counts()["paused"]["intake"], "a pause outlives a restart"
    assert filled.counts()["pending"] == 0
    filled.cli("resume", "shop")
    filled.wait_counts(done=5)


def test_export_and_import(either, make_spool, api):
    lines = either.cli("export", text=False)
    assert len(lines.splitlines()) == 4
    other = make_spool(api)
    other.configure(deliver="pull", intake="none")
    answer = other.cli("import", text=False, input=lines)
    events = other.cli_json("list", "--payload")["events"]
    assert len(events) == 4 and answer is not None
    assert {e["state"] for e in events} == {"done", "dead"}
    assert {e["key"] for e in events} == {e["key"] for e in either.cli_json("list")["events"]}
    other.cli("import", text=False, input=lines)
    assert len(other.cli_json("list")["events"]) == 4, "known ones come in once"


def test_tail(filled, api):
    tail = subprocess.Popen([TGSPOOL, "-c", filled.config, "--json", "tail"], stdout=subprocess.PIPE, text=True)
    try:
        got = []
        threading.Thread(target=lambda: got.extend(iter(tail.stdout.readline, "")), daemon=True).start()

        def seen():
            api.inject_message(8, MARKER)
            return got
        wait_until(seen, "a line of tail")
        assert "shop/" in got[0] and MARKER not in got[0]
        json.loads(got[0])
    finally:
        tail.terminate()
        tail.wait()


def test_config_shows_what_holds(filled):
    text = filled.cli("config")
    assert "max_attempts" in text and TOKEN not in text


def test_version(filled):
    assert filled.cli("version").startswith("tgspool ")


def test_check(spool, api):
    spool.configure(command=spool.shell_handler())
    api.generate(7)
    text = spool.cli("check")
    assert "test_123456_bot" in text and "7" in text and TOKEN not in text
    assert api.state()["confirmed"] == 0 and api.log() == [], "a check takes nothing"
    os.chmod(os.path.join(spool.dir, "handler"), 0o600)
    r = spool.cli("check", "--offline", code=None)
    assert r.returncode != 0 and "handler" in r.stdout + r.stderr


def test_check_of_a_refused_token(spool, api):
    spool.configure(command=spool.shell_handler())
    spool.write("shop.token", "123456:another-token-that-is-refused-here-now")
    r = spool.cli("check", code=None)
    assert r.returncode != 0 and "token" in r.stdout + r.stderr


def test_init(make_spool):
    where = os.path.join(make_spool().dir, "new")
    r = subprocess.run([TGSPOOL, "init", where], capture_output=True, text=True, timeout=30)
    assert r.returncode == 0, r.stderr
    config = os.path.join(where, "tgspool.yaml")
    assert os.path.exists(config)
    tokens = [f for f in os.listdir(where) if f.endswith("token")]
    assert tokens and all(stat.S_IMODE(os.stat(os.path.join(where, f)).st_mode) == 0o600 for f in tokens)
    again = subprocess.run([TGSPOOL, "init", where], capture_output=True, text=True, timeout=30)
    assert again.returncode != 0, "it overwrites nothing"


def test_init_that_is_refused_makes_nothing(make_spool):
    """Neither a token that is none nor a path that is too long for a socket leaves a directory, nor one above it."""
    top = make_spool().dir
    before = sorted(os.listdir(top))
    for where, token in (("new/deeper", "no-token"), ("x" * 110 + "/deeper", TOKEN)):
        r = subprocess.run([TGSPOOL, "init", os.path.join(top, where)], capture_output=True, text=True, timeout=30,
                           env={**os.environ, "TGSPOOL_TOKEN": token})
        assert r.returncode != 0 and sorted(os.listdir(top)) == before, r.stderr
    r = subprocess.run([TGSPOOL, "init", "new/deeper/"], capture_output=True, text=True, timeout=30, cwd=top,
                       env={**os.environ, "TGSPOOL_TOKEN": TOKEN})
    assert r.returncode == 0 and f"config   {top}/new/deeper/tgspool.yaml\n" in r.stdout, r.stderr


def test_a_directory_with_blanks(make_spool):
    """Its socket is asked like any other, and a command that is proposed can be run as it stands."""
    where = os.path.join(make_spool().dir, "a b")
    init = subprocess.run([TGSPOOL, "init", where], capture_output=True, text=True, timeout=30,
                          env={**os.environ, "TGSPOOL_TOKEN": TOKEN})
    config = os.path.join(where, "tgspool.yaml")
    assert init.returncode == 0, init.stderr
    r = subprocess.run([TGSPOOL, "status", "-c", config], capture_output=True, text=True, timeout=30)
    assert f"tgspool run -c '{config}'" in r.stderr, r.stderr
    with open(config) as f:
        text = f.read()
    with open(config, "w") as f:
        f.write(text.replace("    deliver: exec", "    intake: none\n    deliver: exec"))
    daemon = subprocess.Popen([TGSPOOL, "run", "-c", config], stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: os.path.exists(os.path.join(where, "tgspool.sock")), "it listens")
        r = subprocess.run([TGSPOOL, "status", "-c", config], capture_output=True, text=True, timeout=30)
        assert r.returncode == 0 and "no daemon" not in r.stdout + r.stderr, r.stderr
    finally:
        end_process(daemon)


@pytest.mark.parametrize("args", [
    ["list", "--bot", "-c", "FILE"], ["list", "-c", "--json"], ["--socket", "--json", "list"], ["list", "--error", "--json"]])
def test_a_value_that_was_forgotten(args):
    """The option behind it is not taken for the value."""
    option = next(i for i, a in enumerate(args) if a[0] == "-")
    r = subprocess.run([TGSPOOL, *args], capture_output=True, text=True, timeout=30)
    assert r.returncode == EX_USAGE
    assert f"{args[option]} needs a value, " in r.stderr and f'"{args[option + 1]}" looks like an option' in r.stderr


def test_values_that_begin_with_a_dash(spool):
    spool.configure(deliver="pull")
    spool.start()
    for given in (["--chat", "-100123"], ["--error=-x"], ["--error", "-> x"], ["--error", "-"]):
        assert spool.cli_json("list", *given)["events"] == []


@pytest.mark.parametrize("args", [["nonsense"], ["list", "--nonsense"], ["show"], []])
def test_wrong_usage(spool, args):
    spool.configure(deliver="pull")
    r = spool.cli(*args, code=None)
    assert r.returncode == EX_USAGE and r.stderr + r.stdout


@pytest.mark.parametrize("command", ["run", "init", "check", "config", "status", "list", "show", "replay", "discard",
                                     "export", "import", "pause", "resume", "tail", "version"])
def test_help_of_every_command(command):
    r = subprocess.run([TGSPOOL, command, "--help"], capture_output=True, text=True, timeout=30)
    assert r.returncode == 0 and command in r.stdout
    assert max(map(len, r.stdout.splitlines())) <= 80


def test_options_before_and_behind(filled):
    one = subprocess.run([TGSPOOL, "status", "--json", "-c", filled.config], capture_output=True, timeout=30)
    two = subprocess.run([TGSPOOL, "--json", "-c", filled.config, "status"], capture_output=True, timeout=30)
    assert json.loads(one.stdout)["boxes"] and json.loads(two.stdout)["boxes"]


def test_nothing_to_talk_to(filled):
    filled.stop()
    r = filled.cli("--socket", filled.socket + ".none", "status", code=None)
    assert r.returncode in (EX_UNAVAILABLE, 0)


def test_a_port_that_is_taken(spool):
    """What makes run fail makes check fail."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        spool.configure(deliver="dropin", listen={"dropin": f"127.0.0.1:{port}"})
        for command, code in (("check", EX_UNAVAILABLE), ("run", EX_UNAVAILABLE)):
            args = (command, "--offline") if command == "check" else (command,)
            r = spool.cli(*args, code=None)
            assert r.returncode == code and "Address already in use; end what listens there" in r.stdout + r.stderr, r
    r = spool.cli("check", "--offline")
    assert f"listen.dropin: 127.0.0.1:{port} is free" in r


def test_messages_of_a_second_daemon(filled):
    r = filled.cli("run", code=None)
    assert r.returncode == EX_TEMPFAIL and f"in use by process {filled.process.pid}" in r.stderr
    assert f"next: tgspool status -c {filled.config}" in r.stderr
    filled.wait_log("starts: 1 bot,")
    filled.process.send_signal(signal.SIGHUP)
    filled.wait_log(": 1 bot\n")


def test_check_tells_whether_the_daemon_runs(filled):
    r = filled.cli("check", code=None)
    assert r.returncode == 0, r.stdout + r.stderr
    assert "the daemon runs" in r.stdout and "next: tgspool status -c" in r.stderr
    filled.stop()
    files = sorted((name, os.stat(os.path.join(where, name)).st_mtime_ns)
                   for where, _, names in os.walk(os.path.join(filled.dir, "data")) for name in names)
    r = filled.cli("check", code=None)
    assert r.returncode == 0 and "no daemon runs" in r.stdout and "next: tgspool run -c" in r.stderr
    assert files == sorted((name, os.stat(os.path.join(where, name)).st_mtime_ns)
                           for where, _, names in os.walk(os.path.join(filled.dir, "data")) for name in names)


def test_the_first_start_on_a_bot(tmp_path, api):
    """contrib/demo/demo as contrib/start calls it with a token: it looks and takes nothing; with --take-updates it takes
    and hands over, and Ctrl-C ends all of it."""
    demo = os.path.join(os.path.dirname(__file__), "../../contrib/demo/demo")
    where = tmp_path / "bot"
    command = [demo, "--dir", str(where), "--api-root", api.url]
    env = {**os.environ, "TGSPOOL_TOKEN": TOKEN, "TGSPOOL_BIN": TGSPOOL}
    api.generate(5, chats=2)
    r = subprocess.run(command, capture_output=True, text=True, timeout=60, env=env)
    assert r.returncode == 0, r.stdout + r.stderr
    assert "Nothing was taken" in r.stdout and api.log() == [] and api.state()["queued"] == 5
    with open(tmp_path / "out", "wb") as out:
        p = subprocess.Popen([*command, "--take-updates"], stdout=out, stderr=out, env=env, start_new_session=True,
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # as a terminal's shell does
    handled = where / "handled.log"
    try:
        wait_until(lambda: handled.exists() and len(handled.read_text().splitlines()) == 5, "all are handled")
        wait_until(lambda: api.state()["queued"] == 0, "and confirmed")
        os.killpg(p.pid, signal.SIGINT)  # as a terminal does
        assert p.wait(30) == 130, (tmp_path / "out").read_text()
    finally:
        if p.poll() is None:
            os.killpg(p.pid, signal.SIGKILL)
            p.wait()
    said = (tmp_path / "out").read_text()
    assert "Taking updates" in said and TOKEN not in r.stdout + r.stderr + said
    assert not (where / "tgspool.sock").exists(), "the daemon ended in order"


def test_demo_keeps_to_its_token(tmp_path):
    demo = os.path.join(os.path.dirname(__file__), "../../contrib/demo/demo")
    where = tmp_path / "bot"
    subprocess.run([TGSPOOL, "init", str(where)], check=True, capture_output=True, env={**os.environ, "TGSPOOL_TOKEN": TOKEN})
    other = "654321:another-token-that-must-not-be-seen-2"
    r = subprocess.run([demo, "--dir", str(where)], capture_output=True, text=True, timeout=30,
                       env={**os.environ, "TGSPOOL_BIN": TGSPOOL, "TGSPOOL_TOKEN": other})
    assert r.returncode == 1 and "another token" in r.stderr and str(where) in r.stderr
    assert TOKEN not in r.stderr + r.stdout and other not in r.stderr + r.stdout
