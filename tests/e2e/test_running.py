"""The daemon as a service: what it tells the service manager, its log, credentials, and how many children it may have."""
import os
import signal

from harness import wait_until


def test_children_are_bounded_over_all_bots(spool, api, make_api):
    other = make_api(tokens=("222222:another-token-of-another-bot-00",))
    go = os.path.join(spool.dir, "go")
    wait = f"while [ ! -e {go} ]; do sleep 0.05; done"
    spool.add_bot("ship", "222222:another-token-of-another-bot-00", api_root=other.url)
    spool.configure("ship", command=spool.shell_handler(wait, "second"), concurrency=2)
    spool.configure("shop", command=spool.shell_handler(wait), concurrency=4, spool={"max_children": 2})
    api.generate(6, chats=6)
    other.generate(2, chats=2)
    spool.start()
    spool.wait_log("spool.max_children is 2, but concurrency allows 6 handlers at once")

    def children():
        return spool.api("GET", "/v1/status")[1]["children"]
    wait_until(lambda: children()["running"] == 2 and children()["bots_waiting"] >= 1, "all places are taken")
    wait_until(lambda: len(spool.record.lines("start")) == 2, "two handlers run")
    assert spool.counts("shop")["processing"] + spool.counts("ship")["processing"] == 2
    assert "2 of 2 children run" in spool.cli("status", code=None).stderr
    spool.configure(spool={"max_children": 4})
    spool.process.send_signal(signal.SIGHUP)
    wait_until(lambda: len(spool.record.lines("start")) == 4, "the raised limit is used")
    assert children() == {"running": 4, "max": 4, "bots_waiting": children()["bots_waiting"]}
    open(go, "w").close()
    spool.wait_counts(done=6)
    spool.wait_counts(bot="ship", done=2)
    wait_until(lambda: children()["running"] == 0, "nothing runs")
    assert {r["attempt"] for r in spool.record.lines("end")} == {"1"}, "waiting costs no try"
