"""The three boundaries at which a program between Telegram and a bot can lose or double something, each at its moment:
written and not confirmed; confirmed and the handler failed; the handler succeeded and the process died."""
import collections
import json
import os

import pytest

from harness import free_port, has_failpoints, wait_until
from test_crash import wait_crash

SECRET = "Webhook_secret-0123456789"
pytestmark = [pytest.mark.once, pytest.mark.skipif(not has_failpoints(), reason="needs --enable-failpoints")]


class Intake:
    """A spool with a way in, and one update with Telegram."""

    def __init__(self, name, spool, api):
        self.name, self.spool, self.api = name, spool, api
        spool.configure(retry="[20ms]", jitter=0, concurrency=1)
        if name == "webhook":
            port = free_port()
            url = f"http://127.0.0.1:{port}/hook/shop"
            spool.configure(listen={"webhook": f"127.0.0.1:{port}"}, intake="webhook", webhook_url=url,
                            webhook_secret_file=spool.write("hook", SECRET + "\n"))
            api.control("webhook", retry_ms=30, cap_ms=100)
            assert api.call("setWebhook", url=url, secret_token=SECRET)[0] == 200
        self.id = api.inject_message(7, "one")

    def dies_at(self, point, more=""):
        self.spool.start(env={"TGSPOOL_FAILPOINTS": point + "=crash@1" + more}, wait=False)
        wait_crash(self.spool)

    def believed(self):
        """How often Telegram was told that the update arrived."""
        if self.name == "webhook":
            return sum(s["status"] == 200 for s in self.api.control("sent")["sent"])
        return self.api.state()["confirmed"]

    def came(self):
        """How often Telegram gave it."""
        if self.name == "webhook":
            return sum("refused" not in (s["error"] or "") for s in self.api.control("sent")["sent"])
        return sum(q["n"] for q in self.api.log())

    def event(self):
        """Of a spool that no daemon runs on."""
        events = [json.loads(line) for line in self.spool.cli("export").splitlines()]
        assert [e["update_id"] for e in events] == [self.id]
        return events[0]

    def goes_on(self):
        self.spool.start()
        self.spool.wait_counts(pending=0, processing=0, done=1)
        wait_until(lambda: self.api.state()["queued"] == 0, "Telegram knows")

    def ends(self):
        return self.spool.record.lines("end")


@pytest.fixture(params=["poll", "webhook"])
def intake(request, spool, api):
    return Intake(request.param, spool, api)


def written_and_not_confirmed(intake, more=""):
    intake.spool.configure(command=intake.spool.shell_handler("sleep 0.2"))
    intake.dies_at({"poll": "poll.before_next", "webhook": "webhook.before_answer"}[intake.name], more)
    assert intake.event()["state"] != "dead" and intake.believed() == 0 and intake.came() == 1


def test_written_and_not_confirmed(intake):
    """It is handled once: the stored offset says that it is there, and a webhook that comes again is known by its bytes."""
    written_and_not_confirmed(intake)
    intake.goes_on()
    again = intake.name == "webhook"
    assert intake.came() == 1 + again and intake.spool.counts()["since_made"]["duplicates"] == again
    intake.spool.stop()
    assert intake.event()["state"] == "done" and intake.believed() == 1
    assert len(intake.ends()) == 1


def test_confirmed_and_the_handler_failed(intake):
    """Telegram has forgotten it, so that only the spool can give it again, also after a crash with the failure."""
    intake.spool.configure(command=intake.spool.shell_handler(
        "[ -e ${0%/*}/mended ] || { : >${0%/*}/failed; exit 1; }"), retry="[1s]")
    intake.spool.start()
    wait_until(lambda: intake.believed() == 1, "Telegram knows")
    wait_until(lambda: intake.spool.counts()["pending"] == 1 and len(intake.spool.record.lines("start")) >= 1, "it failed")
    intake.spool.kill()
    before = intake.event()
    assert before["state"] == "pending" and before["attempts"] >= 1 and not intake.ends()
    intake.dies_at("outcome.before_retry")
    intake.spool.write("mended", "")
    intake.goes_on()
    intake.spool.stop()
    assert intake.came() == 1, "Telegram was not asked for it again"
    assert intake.event()["state"] == "done" and len(intake.ends()) == 1


@pytest.mark.parametrize("point", ["deliver.before_complete", "outcome.before_done", "deliver.after_complete"])
def test_the_handler_succeeded_and_the_process_died(intake, point):
    """Nobody can know, so it is handed over again, under the same key, by which a handler tells; and is done then."""
    hold = intake.spool.write("hold", "")
    intake.spool.configure(command=intake.spool.shell_handler("while [ -e ${0%/*}/hold ]; do sleep 0.02; done"))
    intake.spool.start(env={"TGSPOOL_FAILPOINTS": point + "=crash@1"}, wait=False)
    wait_until(lambda: intake.believed() == 1, "Telegram knows")
    wait_until(lambda: len(intake.spool.record.lines("start")) == 1, "it is being handled")
    os.unlink(hold)
    wait_crash(intake.spool)
    assert intake.event()["state"] == "processing" and len(intake.ends()) == 1
    intake.goes_on()
    intake.spool.stop()
    assert intake.event()["state"] == "done" and intake.came() == 1
    ends = intake.ends()
    assert collections.Counter(r["id"] for r in ends) == {f"shop/{intake.id}": 2}
    assert len({r["key"] for r in ends}) == 1 and len({r["attempt"] for r in ends}) == 1


# ---- would it be seen?

@pytest.mark.parametrize("intake", ["webhook"], indirect=True)
def test_a_confirmation_before_the_write_is_seen(intake):
    """Of a program that runs a commit's callbacks before its write: it dies at the same place with nothing written. (The next
    poll is a turn of the loop later; that one before the sync is for tests/power.)"""
    with pytest.raises(AssertionError, match=r"assert \[\] == "):
        written_and_not_confirmed(intake, ";break.callback_before_write=errno:1")
