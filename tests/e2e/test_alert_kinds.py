"""Alerts, to a command: kinds that take their time, and those of a start that fails."""
import json
import os
import time

import pytest

from harness import free_port, has_failpoints, wait_until
from test_alerts import EX_IOERR, check_nothing_leaks

EX_DATAERR = 65


def test_what_arrives_nowhere_is_tried_again_soon(spool):
    """At the start of a machine, say, while the network is not up."""
    if not has_failpoints():
        pytest.skip("needs a build with --enable-failpoints")
    sent = os.path.join(spool.dir, "sent")
    command = spool.write("alert-command", f"#!/bin/sh\ncat >>'{sent}'; [ -e '{spool.dir}/up' ]\n", 0o700)
    spool.configure(command="/bin/true", alerts={"command": command})
    fails = {"TGSPOOL_FAILPOINTS": "store.open=errno:5"}

    def starts():
        spool.start(env=fails, expect_exit=EX_IOERR)
        with open(sent, encoding="utf-8") as f:
            return len(f.readlines())

    def pass_by(seconds):
        for name in ("data/alerted", "tgspool-alerted"):
            stamp = os.path.join(spool.dir, name)
            if os.path.exists(stamp):
                at = os.stat(stamp).st_mtime - seconds
                os.utime(stamp, (at, at))

    assert starts() == 1
    assert starts() == 1  # not at once
    pass_by(61)
    spool.write("up", "")
    assert starts() == 2
    pass_by(61)
    assert starts() == 2  # now it arrived: it is told again by alerts.repeat
    pass_by(3600)
    assert starts() == 3


def test_a_damaged_log(spool, api):
    """It is told at the start, which it prevents. Nobody starts tgspool again after that, so a destination that is up a
    little later gets it, too."""
    sent = os.path.join(spool.dir, "sent")
    command = spool.write("alert-command", f"""#!/bin/sh
cat >>'{sent}'
[ -e '{sent}.once' ] || {{ touch '{sent}.once'; exit 1; }}
""", 0o700)
    spool.configure(deliver="pull", alerts={"command": command})
    api.generate(60, chats=3, size=500)
    spool.start()
    spool.wait_counts(pending=60)
    spool.kill()
    logs = [os.path.join(spool.data, "db", n) for n in os.listdir(os.path.join(spool.data, "db")) if n.endswith(".log")]
    with open(max(logs, key=os.path.getsize), "r+b") as f:
        f.seek(os.path.getsize(f.name) // 2)
        byte = f.read(1)[0]
        f.seek(-1, os.SEEK_CUR)
        f.write(bytes([byte ^ 4]))
    spool.start(expect_exit=EX_DATAERR)
    with open(sent, encoding="utf-8") as f:
        alerts = [json.loads(line) for line in f]
    assert len(alerts) == 2, "told again as the first try failed, and no more then"
    for got in alerts:
        assert (got["alert"], got["state"], got["next"]) == ("corruption", "firing", "tgspool verify")
        assert "tgspool does not start, the store is damaged" in got["message"]
    check_nothing_leaks(spool)


def test_what_else_is_told(spool, api, make_api):
    """What takes a minute to a day before it is told, with a clock of alerts that goes 10,000 times as fast: what died,
    leases that ran out, a handler that is down, and updates that Telegram will soon drop."""
    if not has_failpoints():
        pytest.skip("needs a build with --enable-failpoints")
    sent = os.path.join(spool.dir, "sent")
    command = spool.write("alert-command", f"#!/bin/sh\ncat >>'{sent}'\n", 0o700)
    slow, down = make_api(tokens=("222222:" + "s" * 30,)), make_api(tokens=("333333:" + "d" * 30,))
    spool.add_bot("slow", "222222:" + "s" * 30, api_root=slow.url, deliver="pull", poll_timeout="1s", lease="2s")
    spool.add_bot("down", "333333:" + "d" * 30, api_root=down.url, deliver="http", poll_timeout="1s",
                  url=f"http://127.0.0.1:{free_port()}/")
    spool.configure(command=spool.shell_handler("exit 65"), poll_timeout="1s",
                    alerts={"command": command, "oldest": "30d", "repeat": "30d"})
    spool.start(env={"TGSPOOL_FAILPOINTS": "alert.hurry=errno:10000"})

    def told(kind):
        try:
            with open(sent, encoding="utf-8") as f:
                alerts = [json.loads(line) for line in f if line.endswith("\n")]
        except FileNotFoundError:
            return []
        return [a for a in alerts if (a["alert"], a["state"]) == (kind, "firing")]

    def wait_told(kind, bot, text, next_command):
        wait_until(lambda: told(kind), f"{kind} is told", 60)
        assert {a["bot"] for a in told(kind)} == {bot}
        got = told(kind)[0]
        assert text in got["message"] and got["next"] == next_command, got
        spool.cli(*next_command.split()[1:], code=None)

    time.sleep(1.5)  # a look of its own: what is there at the first one is not counted
    spool.cli("pause", "slow", "intake")
    api.generate(3, chats=3)
    down.generate(2, chats=2)
    spool.wait_counts(dead=3)
    wait_told("dead", "shop", "died", "tgspool list --bot shop --state dead")
    wait_told("breaker", "down", "the handler cannot be reached or started", "tgspool status")
    wait_told("upstream", "slow", "updates wait at Telegram, which drops them when they are 24 hours old", "tgspool status")
    spool.cli("resume", "slow", "intake")
    slow.generate(1)
    spool.wait_counts(bot="slow", pending=1)
    status, claimed = spool.api("POST", "/v1/claim", {"bot": "slow", "lease": "1s"})
    assert status == 200 and len(claimed["events"]) == 1
    wait_told("lease", "slow", "1 lease ran out", "tgspool status")
    assert not told("oldest") and not told("store")
