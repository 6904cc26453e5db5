"""The daemon as a process: one on a directory, stop, reload, secrets, and mistakes in the config."""
import os
import re
import signal
import stat
import subprocess
import time

import pytest

from harness import EX_CONFIG, EX_TEMPFAIL, TGSPOOL, TOKEN, wait_until

MARKER = "MARKER-of-a-private-message"


def test_a_second_daemon_is_told_who_holds_the_directory(spool, make_spool, api):
    spool.configure(deliver="pull")
    spool.start()
    second = make_spool(api)
    second.data = spool.data
    second.configure(deliver="pull")
    second.start(expect_exit=EX_TEMPFAIL)
    assert str(spool.process.pid) in second.log()
    assert spool.is_up()


def test_files_are_private(spool, api):
    spool.configure(command=spool.shell_handler())
    api.generate(3)
    spool.start()
    spool.wait_counts(done=3)
    for root, dirs, files in os.walk(spool.data):
        for name in [*dirs, *files]:
            mode = os.lstat(os.path.join(root, name)).st_mode
            assert stat.S_IMODE(mode) & 0o077 == 0, f"{name}: {mode:o}"
    assert stat.S_IMODE(os.stat(spool.data).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(spool.socket).st_mode) == 0o660


def test_sigterm_lets_handlers_end(spool, api):
    go = os.path.join(spool.dir, "go")
    spool.configure(command=spool.shell_handler(f"while [ ! -e {go} ]; do sleep 0.05; done"), shutdown_wait="20s")
    api.generate(1)
    spool.start()
    wait_until(lambda: spool.record.lines("start"), "a handler runs")
    spool.process.terminate()
    time.sleep(0.3)
    assert spool.process.poll() is None, "it did not wait for the handler"
    open(go, "w").close()
    assert spool.process.wait(20) == 0
    assert len(spool.record) == 1
    assert spool.cli_json("list")["events"][0]["state"] == "done"


def test_sigterm_releases_what_does_not_end(spool, api):
    spool.configure(command=spool.shell_handler("[ $TGSPOOL_ATTEMPT = 1 ] && [ ! -e $0.done ] && : >$0.done && sleep 99"),
                    shutdown_wait="500ms")
    api.generate(1)
    spool.start()
    wait_until(lambda: spool.record.lines("start"), "a handler runs")
    spool.stop()
    event = spool.cli_json("list")["events"][0]
    assert (event["state"], event["attempts"], event["interrupted"]) == ("pending", 0, 1)
    spool.start()
    spool.wait_counts(done=1)
    assert [r["attempt"] for r in spool.record.lines("end")] == ["1"], "an interruption costs no attempt"


def test_a_second_sigterm_does_no_harm(spool, api):
    spool.configure(command=spool.shell_handler("sleep 1"))
    api.generate(1)
    spool.start()
    wait_until(lambda: spool.record.lines("start"), "a handler runs")
    spool.process.terminate()
    time.sleep(0.1)
    spool.process.terminate()
    assert spool.process.wait(20) == 0


def test_a_stale_socket_is_replaced(spool, api):
    spool.configure(deliver="pull")
    spool.start()
    spool.kill()
    assert os.path.exists(spool.socket)
    spool.start()
    spool.stop()


def reload(spool):
    spool.process.send_signal(signal.SIGHUP)


def test_reload_takes_a_new_handler_and_a_new_bot(spool, api, make_api):
    spool.configure(command=spool.shell_handler("exit 1"), retry="[100ms]", max_attempts=1000)
    api.generate(2)
    spool.start()
    wait_until(lambda: len(spool.record.lines("start")) >= 2, "it fails")
    other = make_api(tokens=("777:CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC",))
    other.generate(3)
    spool.add_bot("second", token="777:CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC", api_root=other.url, deliver="pull")
    spool.configure(command=spool.shell_handler(name="good"))
    reload(spool)
    spool.wait_counts(done=2, timeout=90)
    spool.wait_counts(pending=3, bot="second")
    del spool.bots["second"]
    spool.configure()
    reload(spool)
    wait_until(lambda: spool.counts("second")["orphan"], "the bot that left is an orphan")


@pytest.mark.parametrize("change,named", [
    ({"spool": {"dir": "/nowhere-else"}}, "dir"), ({"deliver": "nonsense"}, "deliver"),
], ids=["not reloadable", "wrong"])
def test_a_refused_reload_changes_nothing(spool, api, change, named):
    spool.configure(deliver="pull")
    spool.start()
    text = open(spool.config).read()
    if "spool" in change:
        text = text.replace(spool.data, change["spool"]["dir"])
    else:
        text = text.replace("deliver: pull", "deliver: nonsense")
    spool.write("tgspool.yaml", text)
    before = spool.log()
    reload(spool)
    wait_until(lambda: named in spool.log()[len(before):], "the refusal is logged")
    api.generate(1)
    spool.wait_counts(pending=1)


def test_reload_during_work_loses_nothing(spool, api):
    spool.configure(command=spool.shell_handler("sleep 0.01"), concurrency=4)
    api.generate(200, chats=10)
    spool.start()
    for n in (30, 80, 120):
        wait_until(lambda: len(spool.record) > n, f"{n} are handled")
        reload(spool)
    spool.wait_counts(done=200)
    assert len(spool.record) == 200


# ---- secrets

def environment_of(pid):
    with open(f"/proc/{pid}/environ", "rb") as f:
        return f.read()


def test_nothing_secret_is_seen(spool, api):
    """The token and the text of messages and of handlers' errors, at level debug, over logs, arguments, environments."""
    seen = os.path.join(spool.dir, "seen")
    handler = spool.shell_handler(
        f"cat >/dev/null\nenv >>{seen}\ntr '\\0' ' ' </proc/$PPID/cmdline >>{seen}\n"
        f"case $TGSPOOL_ATTEMPT in 1) echo '{MARKER} of the handler {TOKEN}' >&2; exit 1;; esac")
    spool.configure(command=handler, retry="[20ms]", token_file=None, token_env="SHOP_TOKEN")
    api.inject_raw(f'{{"update_id":@ID@,"message":{{{{"{MARKER}"}}'.encode())
    for i in range(5):
        api.inject_message(i, MARKER)
    spool.start(env={"SHOP_TOKEN": TOKEN})
    spool.wait_counts(done=5, dead=1)
    for fault in ({"type": "cut", "at": 50}, {"type": "bad_json", "body": f'{{"ok":true,"result":["{MARKER}"'},
                  {"type": "status", "status": 409}, {"type": "status", "status": 429, "retry_after": 1},
                  {"type": "status", "status": 400, "body": f'{{"ok":false,"error_code":400,"description":"{TOKEN}"}}'}):
        api.fault(**fault)
    api.inject_message(6, MARKER)  # for the poll that waits already; the faults are for those to come
    spool.wait_counts(done=6)
    api.inject_message(7, MARKER)
    spool.wait_counts(done=7, timeout=90)
    assert api.state()["faults"] == 0
    status = repr(spool.api("GET", "/v1/status")) + repr(spool.events())
    cmdline = open(f"/proc/{spool.process.pid}/cmdline").read()
    spool.stop()
    for place, text in {"log": spool.log(), "arguments": cmdline, "children": open(seen).read()}.items():
        assert TOKEN not in text and TOKEN.split(":")[1] not in text, f"the token is in {place}"
        assert MARKER not in text, f"a message is in {place}"
    assert TOKEN not in status
    assert "debug" in spool.log() and "SHOP_TOKEN" not in open(seen).read()


def test_debug_says_something(spool, api):
    spool.configure(command=spool.shell_handler())
    api.generate(1)
    spool.start()
    spool.wait_counts(done=1)
    assert re.search(r"debug", spool.log())


# ---- mistakes

GOOD = """spool:
  dir: @DIR@/data
listen:
  socket: @DIR@/sock
bots:
  shop:
    token_file: @DIR@/token
    deliver: pull
"""

# what to put into the good config, line of the mistake (None: the file as a whole), words of the message
MISTAKES = {
    "an unknown option": (("deliver: pull", "delivr: pull"), 8, ["delivr"]),
    "an unknown section": (("listen:", "listne:"), 3, ["listne"]),
    "a repeated option": (("deliver: pull", "deliver: pull\n    deliver: pull"), 9, ["deliver"]),
    "a repeated section": (("bots:", "spool:\n  dir: /x\nbots:"), 5, ["spool"]),
    "a repeated bot": (("    deliver: pull", "    deliver: pull\n  shop:\n    deliver: pull"), 9, ["shop"]),
    "a bad unit": (("deliver: pull", "deliver: pull\n    lease: 5 parsecs"), 9, ["lease"]),
    "a number out of range": (("deliver: pull", "deliver: pull\n    max_attempts: 0"), 9, ["max_attempts", "1"]),
    "a bad word": (("deliver: pull", "deliver: pigeon"), 8, ["pigeon", "exec", "worker", "http", "pull"]),
    "an option that does not apply": (("deliver: pull", "deliver: pull\n    url: http://127.0.0.1/"), 9, ["url"]),
    "a needed option is missing": (("deliver: pull", "deliver: exec"), None, ["command"]),
    "a planned word": (("deliver: pull", "deliver: redis"), 8, ["redis", "planned"]),
    "a bad bot name": (("shop:", "sh op:"), 6, ["sh op"]),
    "a list for a word": (("deliver: pull", "deliver: [pull]"), 8, ["deliver"]),
    "a tab": (("    deliver: pull", "\tdeliver: pull"), 8, []),
    "no bots": (("bots:\n  shop:\n    token_file: @DIR@/token\n    deliver: pull\n", ""), None, ["bot"]),
    "no token": (("    token_file: @DIR@/token\n", ""), None, ["token_file"]),
    "a missing token file": (("@DIR@/token", "@DIR@/nothing"), None, ["nothing"]),
    "a world-readable token file": (("@DIR@/token", "@DIR@/open"), None, ["open", "chmod"]),
    "an empty token file": (("@DIR@/token", "@DIR@/empty"), None, ["empty"]),
    "a token that is none": (("@DIR@/token", "@DIR@/nonsense"), 7, ["token_file", "digits"]),
    "an unset token variable": (("token_file: @DIR@/token", "token_env: NOT_SET_HERE"), 7, ["token_env", "not set"]),
    "two bots of one id": (("  shop:", "  twin:\n    token_file: @DIR@/token\n    deliver: pull\n  shop:"), None,
                           ["twin", "shop"]),
    "a bad proxy": (("deliver: pull", "deliver: pull\n    proxy_file: @DIR@/proxy"), None, ["proxy"]),
    "a bad url": (("deliver: pull", "deliver: http\n    url: ftp://x"), 9, ["url", "http"]),
    "an unclosed quote": (("deliver: pull", "deliver: exec\n    command: sh -c 'x"), 9, ["command"]),
    "an anchor's alias": (("deliver: pull", "deliver: *x"), 8, []),
}


def run_on(directory, text):
    path = os.path.join(directory, "tgspool.yaml")
    if isinstance(text, bytes):
        with open(path, "wb") as f:
            f.write(text)
    elif text is not None:
        with open(path, "w") as f:
            f.write(text)
    r = subprocess.run([TGSPOOL, "run", "-c", path], capture_output=True, text=True, timeout=30)
    assert r.returncode == EX_CONFIG, (r.returncode, r.stderr)
    assert path in r.stderr, "the file is not named"
    return r.stderr


@pytest.fixture
def directory(make_spool):
    spool = make_spool()
    spool.write("token", TOKEN)
    spool.write("open", TOKEN, 0o644)
    spool.write("empty", "")
    spool.write("nonsense", "not a token")
    spool.write("proxy", "gopher://secret-user:secret-word@x")
    return spool.dir


@pytest.mark.parametrize("mistake", MISTAKES)
def test_config_mistakes(directory, mistake):
    (old, new), line, words = MISTAKES[mistake]
    assert old in GOOD
    said = run_on(directory, GOOD.replace(old, new, 1).replace("@DIR@", directory))
    if line:
        assert re.search(rf"tgspool\.yaml:{line}:\d+: ", said), said
    for word in words:
        assert word in said, said
    assert TOKEN not in said and "secret-word" not in said
    assert not os.path.exists(os.path.join(directory, "data")), "something was made"


@pytest.mark.parametrize("content", [b"\x7fELF\x02\x01\x01\x00\x00\xff\xfe" * 100, b"", b"spool: [1, 2", b"- a\n- b\n",
                                     b"just words", b"bots: {}\n", b"\xef\xbb\xbfbots:\n  x: 1\n", b"a" * 2_000_000],
                         ids=["binary", "empty", "unclosed", "list", "scalar", "no bots", "bom", "huge"])
def test_config_files_that_are_none(directory, content):
    run_on(directory, content)


def test_a_directory_as_config(directory):
    os.mkdir(os.path.join(directory, "tgspool.yaml"))
    assert "directory" in run_on(directory, None)


def test_the_good_config_is_good(directory):
    path = os.path.join(directory, "tgspool.yaml")
    with open(path, "w") as f:
        f.write(GOOD.replace("@DIR@", directory))
    r = subprocess.run([TGSPOOL, "check", "--offline", "-c", path], capture_output=True, text=True, timeout=30)
    assert r.returncode == 0, r.stdout + r.stderr
