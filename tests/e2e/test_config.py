"""The config from outside: every mistake ends with 78 and its place, whatever the command; init makes what check and
config accept; secrets show nowhere."""
import json
import os
import pty
import signal
import stat
import subprocess

import pytest

from harness import EX_CONFIG, EX_USAGE, TGSPOOL, TOKEN

EX_DATAERR, EX_CANTCREAT = 65, 73
OTHER_TOKEN = "123456:AAF0-another-token-of-the-same-bot-9"
BOT = "bots:\n  shop:\n    token_file: {dir}/token\n    command: /bin/true\n"


def tgspool(*args, env=None, **options):
    clean = {k: v for k, v in os.environ.items() if k != "TGSPOOL_TOKEN"}
    return subprocess.run([TGSPOOL, *map(str, args)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=60, env={**clean, **(env or {})}, **options)


def write(path, text, mode=0o600):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(mode)
    return path


@pytest.fixture
def config(tmp_path):
    """Writes a config with its token; returns the function that does."""
    write(tmp_path / "token", TOKEN + "\n")
    write(tmp_path / "short", "fifteen-letters\n")

    def make(text):
        text = text if isinstance(text, bytes) else text.replace("{dir}", str(tmp_path))
        return write(tmp_path / "tgspool.yaml", text, 0o644)
    return make


MISTAKES = [
    (BOT + "    leese: 5s\n", "5:5", "did you mean lease?"),
    (BOT + "    lease: 5s\n    lease: 6s\n", "6:5", "named twice"),
    (BOT + "    lease: 5 s\n", "5:12", "accepted: a time of 1s to 12h"),
    (BOT + "    lease: [5s]\n", "5:12", "a list where a single value is needed"),
    (BOT + "    url: http://localhost/\n", "5:10", "only with deliver: http"),
    (BOT + "    intake: webhook\n", "5:13", "add webhook: HOST:PORT to the section listen"),
    (BOT + "    deliver: redis\n", "5:14", "planned for a later version"),
    ("listen: {dropin: '0.0.0.0:8481'}\n" + BOT, "1:18", "off loopback and would be without encryption"),
    ("listen: {http: '127.0.0.1:8481'}\n" + BOT, "1:16", "listen.http needs api_token_file"),
    ("listen: {http: '127.0.0.1:8481', api_token_file: '{dir}/short'}\n" + BOT, "1:50", "accepted: 16 to 256 of"),
    ("listen: {socket_group: no-such-group}\n" + BOT, "1:24", 'there is no group "no-such-group"'),
    ("listen: {webhook: '127.0.0.1:8481'}\n" + BOT + "    intake: webhook\n    webhook_secret_file: {dir}/none\n",
     "7:26", "No such file"),
    (BOT + "    token: " + TOKEN + "\n", "5:5", "name that by token_file"),
    (BOT.replace("/bin/true", "/bin/true 'x"), "4:24", "never closed"),
    (BOT + "spool: {dir: spool}\n", "5:14", "relative path"),
    ("log: {}\n", "1:1", "no bot is configured"),
    ("alerts: {telegram: kiosk 1}\n" + BOT, "1:20", 'there is no bot "kiosk"'),
    ("spool: &x {}\n" + BOT, "1:8", "anchors"),
    (BOT + "---\n" + BOT, "5:1", "a second document"),
    ("spool: {dir: [[[[[[[x]]]]]]]}\n" + BOT, "1:18", "nested deeper"),
    (b"\x7fELF\x02\x01\x01\0\0", "1:1", "not a text file"),
    (BOT.replace("{dir}/token", "{dir}/nothing"), "3:17", "No such file"),
    (BOT.replace("{dir}/token", "{dir}"), "3:17", "is a directory"),
]


@pytest.mark.parametrize("text,place,says", MISTAKES, ids=[m[2] for m in MISTAKES])
@pytest.mark.parametrize("command", [["run"], ["check", "--offline"]], ids=["run", "check"])
def test_mistake_is_told_with_its_place(config, command, text, place, says):
    path = config(text)
    run = tgspool(*command, "-c", path)
    told = run.stdout + run.stderr
    assert run.returncode == EX_CONFIG, told
    assert f"{path}:{place}: " in told
    assert says in told
    assert TOKEN not in told


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_token_file_that_others_may_read(config, tmp_path, mode):
    path = config(BOT)
    (tmp_path / "token").chmod(mode)
    run = tgspool("run", "-c", path)
    assert run.returncode == EX_CONFIG
    assert f"{path}:3:17: " in run.stderr and "chmod 600" in run.stderr


def test_two_sections_of_one_bot(config, tmp_path):
    write(tmp_path / "other", OTHER_TOKEN)
    path = config(BOT + "  twin:\n    token_file: {dir}/other\n    deliver: pull\n")
    run = tgspool("run", "-c", path)
    assert run.returncode == EX_CONFIG
    assert f"{path}:5:3: bots.shop (line 2) and bots.twin (line 5) are the same bot, id 123456" in run.stderr
    assert "AAF0" not in run.stderr


def test_config_that_is_no_file(tmp_path):
    for path in (tmp_path, tmp_path / "nothing.yaml"):
        run = tgspool("run", "-c", path)
        assert run.returncode == EX_CONFIG
        assert str(path) in run.stderr


def test_config_shows_what_is_in_force(config, tmp_path):
    path = config(BOT + "    lease: 90\n    expire: {poll: 1h}\n")
    run = tgspool("config", "-c", path)
    assert run.returncode == 0 and run.stderr == ""
    shown = [line.split() for line in run.stdout.split("\n")]
    assert ["lease:", "90s", "#", "line", "5"] in shown
    assert ["jitter:", "20", "#", "default"] in shown
    assert not [line for line in shown if line[:1] == ["url:"]]
    assert TOKEN not in run.stdout
    again = tgspool("config", "-c", write(tmp_path / "again.yaml", run.stdout))
    assert again.returncode == 0
    values = json.loads(tgspool("config", "--json", "-c", path).stdout)
    assert values["bots"]["shop"]["lease"] == {"value": "90s", "from": "file", "line": 5}
    assert values["bots"]["shop"]["expire"]["value"] == {"poll": "1h"}
    assert values["bots"]["shop"]["concurrency"] == {"value": 2, "from": "default"}
    assert values["bots"]["shop"]["proxy_file"]["value"] is None


def test_warning_for_plain_http(config):
    path = config(BOT + "    api_root: http://api.example.org\n")
    run = tgspool("config", "-c", path)
    assert run.returncode == 0
    assert f"{path}:5:15: api_root goes to another machine by plain http" in run.stderr


def test_list_of_options():
    options = json.loads(tgspool("config", "--options", "--json").stdout)["options"]
    names = {f"{o['section']}.{o['name']}": o for o in options}
    assert names["bots.lease"]["default"] == "60s" and names["bots.lease"]["reloadable"]
    assert not names["spool.dir"]["reloadable"]
    assert names["alerts.oldest"]["default"] == "5m" and names["alerts.url_file"]["reloadable"]
    text = tgspool("config", "--options").stdout
    assert "bots.NAME.lease\n" in text and "alerts.oldest\n" in text
    assert max(map(len, text.split("\n"))) <= 80


# ---- init -------------------------------------------------------------------------------------------------------------

def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_init_makes_what_check_accepts(tmp_path):
    home = tmp_path / "a b" / "bot"
    run = tgspool("init", home, "--name", "shop", env={"TGSPOOL_TOKEN": TOKEN})
    assert run.returncode == 0, run.stderr
    assert f"tgspool check -c '{home}/tgspool.yaml'" in run.stdout
    assert f"tgspool run -c '{home}/tgspool.yaml'" in run.stdout
    assert TOKEN not in run.stdout + run.stderr
    assert (home / "shop.token").read_text() == TOKEN + "\n"
    assert [mode(home / n) for n in ("tgspool.yaml", "shop.token", "spool", "on-update")] == [
        0o600, 0o600, 0o700, 0o700]
    check = tgspool("check", "--offline", "-c", home / "tgspool.yaml")
    assert check.returncode == 0, check.stdout + check.stderr


def test_init_handler_works(tmp_path):
    tgspool("init", tmp_path, env={"TGSPOOL_TOKEN": TOKEN})
    subprocess.run([tmp_path / "on-update"], input=b'{"update_id":1}', check=True, timeout=10,
                   env={"PATH": os.environ["PATH"], "TGSPOOL_ID": "bot/1", "TGSPOOL_KIND": "message"})
    assert "bot/1 message, 15 bytes" in (tmp_path / "handled.log").read_text()


def test_init_without_a_token(tmp_path):
    run = tgspool("init", tmp_path)
    assert run.returncode == 0
    assert "Put the bot's token into the token file" in run.stdout
    check = tgspool("check", "--offline", "-c", tmp_path / "tgspool.yaml")
    assert check.returncode == EX_CONFIG
    assert "not a bot token" in check.stdout + check.stderr


def test_init_never_overwrites(tmp_path):
    write(tmp_path / "bot.token", OTHER_TOKEN)
    write(tmp_path / "on-update", "mine")
    run = tgspool("init", tmp_path, "--json", env={"TGSPOOL_TOKEN": TOKEN})
    assert run.returncode == 0 and json.loads(run.stdout)["token"] == "kept"
    assert (tmp_path / "bot.token").read_text() == OTHER_TOKEN
    assert (tmp_path / "on-update").read_text() == "mine"
    before = (tmp_path / "tgspool.yaml").read_bytes()
    run = tgspool("init", tmp_path, env={"TGSPOOL_TOKEN": TOKEN})
    assert run.returncode == EX_CANTCREAT and "is there already" in run.stderr
    assert (tmp_path / "tgspool.yaml").read_bytes() == before


def test_init_refuses_what_it_cannot_make(tmp_path):
    run = tgspool("init", tmp_path / "x", env={"TGSPOOL_TOKEN": "secret-but-no-token"})
    assert run.returncode == EX_DATAERR and "secret-but" not in run.stderr
    assert not (tmp_path / "x" / "tgspool.yaml").exists()
    long = tmp_path / ("d" * 120)
    run = tgspool("init", long, env={"TGSPOOL_TOKEN": TOKEN})
    assert run.returncode == EX_CONFIG and "socket" in run.stderr and not long.exists()
    assert tgspool("init", tmp_path, "--name", "no/name").returncode == EX_USAGE


def ask_on_a_terminal(directory, ahead):
    """Runs init on a terminal and types the token, before it asks (ahead) or after; returns what was shown."""
    pid, terminal = pty.fork()
    if pid == 0:
        if ahead:
            os.read(0, 16)  # the first line; the token is in the terminal's queue before the program begins
        os.environ.pop("TGSPOOL_TOKEN", None)
        os.execv(TGSPOOL, [TGSPOOL, "init", str(directory)])
    shown = b""
    if ahead:
        os.write(terminal, b".\n" + TOKEN.encode() + b"\n")
    while b"empty: later" not in shown:
        shown += os.read(terminal, 4096)
    if not ahead:
        os.write(terminal, TOKEN.encode() + b"\n")
    while True:
        try:
            got = os.read(terminal, 4096)
        except OSError:  # the terminal's other end is closed
            break
        if not got:
            break
        shown += got
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(terminal)
    return shown


def test_init_asks_without_echo(tmp_path):
    shown = ask_on_a_terminal(tmp_path, ahead=False)
    assert TOKEN.encode() not in shown
    assert (tmp_path / "bot.token").read_text() == TOKEN + "\n"


def test_init_takes_what_was_typed_ahead(tmp_path):
    ask_on_a_terminal(tmp_path, ahead=True)
    assert (tmp_path / "bot.token").read_text() == TOKEN + "\n"


# ---- reload -----------------------------------------------------------------------------------------------------------

def test_reload_tells_what_is_unwise(spool):
    spool.configure(deliver="pull")
    spool.start()
    assert "plain http" not in spool.log()
    spool.configure(deliver="http", url="http://h.example.org/")
    spool.process.send_signal(signal.SIGHUP)
    spool.wait_log("url goes to another machine by plain http")


def test_reload_cannot_move_a_listener(spool):
    spool.configure(deliver="pull")
    spool.start()
    with open(spool.config, encoding="utf-8") as f:
        text = f.read()
    spool.write("tgspool.yaml", text.replace("listen:\n", "listen:\n  dropin: 127.0.0.1:8482\n"))
    spool.process.send_signal(signal.SIGHUP)
    spool.wait_log("listen.dropin cannot change while tgspool runs (from unset to 127.0.0.1:8482)")
