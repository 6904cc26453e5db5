"""Real bot libraries, unmodified but for their API root, behind the drop-in listener, and as webhook bots behind
`deliver: http`. The bots are in bots/; npm installs the libraries into the build directory."""
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

from harness import BUILD, TOKEN, end_process, free_port, wait_until

pytestmark = pytest.mark.once
HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bots")
ALIAS = "123456:alias-of-the-shop-for-its-own-program"
CONFIRM_AFTER = ("grammy.js", "telegraf.js")  # these confirm when their handlers have ended
POLLING = CONFIRM_AFTER + ("grammy-runner.js", "node-telegram-bot-api.js", "python-telegram-bot.py")


@pytest.fixture(scope="session")
def modules():
    """The libraries from npm; its folder of node_modules."""
    if not shutil.which("npm"):
        pytest.skip("no npm: install nodejs and npm")
    to = os.path.join(BUILD, "tests", "logs", "npm")
    os.makedirs(to, exist_ok=True)
    with open(os.path.join(HERE, "package-lock.json"), "rb") as f:
        stamp = os.path.join(to, "installed-" + hashlib.sha256(f.read()).hexdigest()[:16])
    if not os.path.exists(stamp):
        for name in ("package.json", "package-lock.json"):
            shutil.copy(os.path.join(HERE, name), to)
        done = subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=to, timeout=300,
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        open(stamp, "w").close()
    return os.path.join(to, "node_modules")


def check_python_library():
    """The bot is written for 13, Debian 12's; 20 and later have another interface."""
    version = subprocess.run([sys.executable, "-W", "ignore", "-c", "import telegram; print(telegram.__version__)"],
                             capture_output=True, text=True).stdout
    if not version.startswith("13."):
        pytest.skip(f"python3-python-telegram-bot 13 is wanted; there is {version.strip() or 'none'}")


class Bot:
    """A bot program and what it wrote down."""

    def __init__(self, rig, modules, program, record="bot", **env):
        self.record = os.path.join(rig.dir, record + ".record")
        self.output = os.path.join(rig.dir, record + ".output")
        self.command = [sys.executable if program.endswith(".py") else "node", os.path.join(HERE, program)]
        self.env = {**os.environ, "NODE_PATH": modules, "BOT_TOKEN": ALIAS, "BOT_RECORD": self.record,
                    "BOT_API_ROOT": f"http://127.0.0.1:{rig.port}", **{k: str(v) for k, v in env.items()}}
        self.process = None
        if program.endswith(".py"):
            check_python_library()
        rig.programs.append(self)

    def start(self):
        ready = len(self.lines("ready"))
        with open(self.output, "ab") as out:
            self.process = subprocess.Popen(self.command, env=self.env, stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=out)
        wait_until(lambda: len(self.lines("ready")) > ready or self.process.poll() is not None, "the bot starts")
        assert self.process.poll() is None, self.said()
        return self

    def kill(self):
        end_process(self.process, signal.SIGKILL)

    def said(self):
        with open(self.output, encoding="utf-8", errors="replace") as f:
            return f.read()

    def lines(self, word=None):
        try:
            with open(self.record, encoding="utf-8") as f:
                rows = [line.split() for line in f if line.endswith("\n")]
        except FileNotFoundError:
            return []
        return [r for r in rows if word in (None, r[0])]

    def handled(self):
        return {int(r[1]) for r in self.lines("end")}

    def begun(self):
        return {int(r[1]) for r in self.lines("start")}

    def in_order(self):
        """Whether, in each chat, updates were begun in order, not counting those that came again."""
        last, seen = {}, set()
        for _, serial, chat in self.lines("start"):
            serial = int(serial)
            if serial in seen:
                continue
            seen.add(serial)
            if serial < last.get(chat, -1):
                return False
            last[chat] = serial
        return True


@pytest.fixture
def rig(spool, api):
    spool.port, spool.programs = free_port(), []
    spool.configure(listen={"dropin": f"127.0.0.1:{spool.port}"}, deliver="dropin",
                    dropin_token_file=spool.write("alias", ALIAS))
    yield spool
    for bot in spool.programs:
        if bot.process and bot.process.poll() is None:
            bot.kill()


def wait_handled(bot, count, timeout=60):
    wait_until(lambda: len(bot.handled()) >= count, f"{count} updates handled", timeout)


# ---- (a) tgspool is killed

@pytest.mark.parametrize("program", POLLING)
def test_tgspool_killed_under_a_bot(rig, api, modules, program):
    rig.start()
    bot = Bot(rig, modules, program, BOT_HANDLER_MS=1).start()
    api.generate(500, chats=7)
    rng = random.Random(program)
    for kill in range(2):
        wait_handled(bot, 60 + kill * 150)
        time.sleep(rng.uniform(0, 0.1))
        rig.kill()
        rig.start()
    wait_handled(bot, 500)
    assert bot.process.poll() is None, bot.said()
    assert bot.in_order()
    rig.wait_counts(done=500, pending=0, processing=0, dead=0)


# ---- (b) the bot is killed

@pytest.mark.parametrize("program", POLLING)
def test_a_bot_killed_in_its_handlers(rig, api, modules, program):
    rig.start()
    bot = Bot(rig, modules, program, BOT_HANDLER_MS=200).start()
    first = api.generate(40, chats=8)["first_serial"]

    def is_at_work():
        ready = len(bot.handled()) >= 3 if program in CONFIRM_AFTER else rig.counts()["done"] > 0
        return ready and bot.begun() - bot.handled()
    wait_until(is_at_work, "some handlers at work")
    bot.kill()
    assert bot.begun() - bot.handled(), "nothing was in its handler"
    wait_until(lambda: not rig.counts()["consumer"]["waiting"], "its poll is forgotten")
    counts = rig.counts()
    confirmed = counts["consumer"]["confirmed"]
    assert confirmed == counts["done"] and counts["consumer"]["confirmed_before"] == 0
    bot.env["BOT_HANDLER_MS"] = "0"
    bot.start()
    rig.wait_counts(done=40, pending=0, processing=0)
    wait_until(lambda: len(bot.handled()) >= 40 - confirmed, "what was not confirmed is handled")
    lost = set(range(first, first + 40)) - bot.handled()
    if program in CONFIRM_AFTER:
        wait_handled(bot, 40)
        return
    assert len(lost) <= confirmed
    wait_until(lambda: rig.counts()["consumer"]["confirmed_before"] == confirmed, "it is back")
    shown = rig.cli("status", code=None)
    if lost:
        assert f"{confirmed} confirmed, perhaps unhandled" in shown.stdout + shown.stderr
    rig.cli("replay", "shop", "--state", "done", "--since", "5m")
    wait_handled(bot, 40)


# ---- (c) starts, stops, rivals

@pytest.mark.parametrize("program", POLLING)
def test_starts_stops_and_rivals(rig, api, modules, program):
    rig.start()
    bot = Bot(rig, modules, program).start()
    api.generate(5)
    wait_handled(bot, 5)
    rig.wait_counts(done=5)
    bot.process.terminate()
    assert bot.process.wait(15) == 0, bot.said()
    assert bot.lines("stopped") and not bot.lines("error"), bot.lines()
    assert {q["method"].lower() for q in api.log(method=None)} <= {"getupdates", "getme", "getwebhookinfo"}
    assert api.state()["confirmed"] == 5
    bot.start()
    wait_until(lambda: rig.counts()["consumer"]["waiting"], "it polls again")
    rival = Bot(rig, modules, program, "rival").start()
    wait_until(lambda: bot.lines("conflict") or rival.lines("conflict"), "the conflict that the library expects", 30)
    assert not bot.lines("error") and not rival.lines("error"), bot.lines() + rival.lines()


# ---- webhook bots

# Each, and which method's call comes in the webhook's answer: telegraf puts few there, python-telegram-bot's own server
# none, so that one stands behind another server as well.
WEBHOOK_BOTS = {"grammy-webhook.js": "sendmessage", "telegraf-webhook.js": "deletemessage",
                "python-telegram-bot.py": None, "ptb-webhook-answer.py": "sendmessage"}


@pytest.mark.parametrize("program", WEBHOOK_BOTS)
def test_webhook_bots_behind_http(rig, api, modules, program):
    secret, port = "secret-of-the-hook", free_port()
    rig.configure(deliver="http", url=f"http://127.0.0.1:{port}/hook", concurrency=4,
                  url_secret_file=rig.write("hook-secret", secret))
    rig.start()
    bot = Bot(rig, modules, program, BOT_PORT=port, BOT_SECRET=secret).start()
    first = api.generate(30, chats=5)["first_serial"]
    rig.wait_counts(done=30, pending=0, processing=0)
    wait_handled(bot, 30)  # one library's server answers before its handler has ended
    assert bot.handled() == set(range(first, first + 30)) and bot.in_order()

    def replies(method):
        asked = [q["args"] for q in api.log(method=None) if q["method"].lower() == method]
        return sorted(int(a["text"].rpartition(" ")[2] if "text" in a else a["message_id"]) for a in asked)
    answered = WEBHOOK_BOTS[program]
    for method in {"sendmessage", answered} - {None}:
        wait_until(lambda: len(replies(method)) >= 30, "the replies arrive")
    wait_until(lambda: box_out(rig)["done"] == (30 if answered else 0), "each of the answers is recorded as sent")
    for method in {"sendmessage", answered} - {None}:
        assert replies(method) == list(range(first, first + 30)), "each once, " + method


def box_out(rig):
    boxes = rig.api("GET", "/v1/status")[1]["boxes"]
    return next(b for b in boxes if b["bot"] == "shop" and b["box"] == "out")
