"""What a reload has to change although its option's text stays, or although it comes at a bad moment."""
import http.client
import json
import shutil
import signal
import threading

import pytest

import harness
from harness import TOKEN, free_port, wait_until

API_TOKEN = "api-token-0123456789abcdef"
PULL, NEW_PULL = "pull-token-0123456789abcdef", "pull-token-of-tomorrow-0123456"


def reload(spool):
    before = spool.log().count("reloaded ") + spool.log().count("reload refused")
    spool.process.send_signal(signal.SIGHUP)
    wait_until(lambda: spool.log().count("reloaded ") + spool.log().count("reload refused") > before, "it is reloaded")


class Waiting(threading.Thread):
    """A claim that waits."""

    def __init__(self, port, token):
        super().__init__(daemon=True)
        self.port, self.token, self.status, self.answer = port, token, None, None
        self.start()

    def run(self):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        c.request("POST", "/v1/claim", json.dumps({"bot": "shop", "wait": "50s"}), {"Authorization": "Bearer " + self.token})
        r = c.getresponse()
        self.answer = json.loads(r.read())
        self.status = r.status


def test_a_claim_that_waits_ends_with_its_token(spool, api):
    port = free_port()
    pull = spool.write("pull", PULL)
    spool.configure(listen={"http": f"127.0.0.1:{port}", "api_token_file": spool.write("api", API_TOKEN)},
                    deliver="pull", pull_token_file=pull)
    spool.start()
    old, owner = Waiting(port, PULL), Waiting(port, API_TOKEN)
    # both wait as soon as a third, which waits for nothing, was answered behind them
    wait_until(lambda: spool.api("POST", "/v1/claim", {"bot": "shop"})[0] == 200, "it serves")
    old.join(0.5)
    assert old.status is None and owner.status is None
    spool.write("pull", NEW_PULL)
    reload(spool)
    old.join(30)
    assert old.status == 401 and old.answer["error"]["code"] == "unauthorized"
    assert owner.status is None, "whose token is still one goes on waiting"
    new = Waiting(port, NEW_PULL)
    api.generate(2, chats=2)
    new.join(30)
    owner.join(30)
    assert new.status == owner.status == 200
    assert len(new.answer["events"]) == len(owner.answer["events"]) == 1


def test_a_poll_that_waits_ends_with_its_token(spool, api):
    """At the drop-in listener; one that came by the name that stays goes on."""
    alias, port = "123456:shop-by-another-name-for-its-program", free_port()
    spool.configure(listen={"dropin": f"127.0.0.1:{port}"}, deliver="dropin",
                    dropin_token_file=spool.write("alias", alias))
    spool.start()

    def poll(token):
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        c.request("GET", f"/bot{token}/getUpdates?timeout=45")
        wait_until(lambda: spool.counts()["consumer"]["waiting"], "it waits")
        return c
    waits = poll(alias)
    spool.write("alias", alias + "-of-tomorrow")
    reload(spool)
    assert waits.getresponse().status == 401
    waits = poll(TOKEN)
    spool.write("alias", alias)
    reload(spool)
    assert spool.counts()["consumer"]["waiting"]
    api.generate(1)
    answer = waits.getresponse()
    assert answer.status == 200 and len(json.loads(answer.read())["result"]) == 1


def test_a_ca_file_is_read_anew(make_api, make_spool, certificates):
    """Under the same name: for the poll, for what the drop-in API passes on."""
    api = make_api(tls=certificates["good"])
    spool = make_spool(api)
    port = free_port()
    ca = spool.write("ca.pem", open(certificates["self-signed"][0], "rb").read(), 0o644)
    spool.configure(listen={"dropin": f"127.0.0.1:{port}"}, deliver="dropin", ca_file=ca, api_root=api.url)
    api.inject_message(1, "x")
    spool.start()

    def get_me():
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        c.request("GET", f"/bot{TOKEN}/getMe")
        return c.getresponse().status
    wait_until(lambda: "trouble" in spool.counts()["intake"], "the poll fails")
    assert get_me() == 502
    shutil.copy(certificates["ca"], ca)
    reload(spool)
    assert get_me() == 200
    spool.wait_counts(pending=1)


def test_the_ca_file_of_a_handler(make_spool, api, make_tls_hook, certificates):
    """deliver: http to a server whose certificate only ca_file vouches for; and that file is read anew."""
    hook = make_tls_hook(certificates["good"])
    spool = make_spool(api)
    ca = spool.write("ca.pem", open(certificates["self-signed"][0], "rb").read(), 0o644)
    spool.configure(deliver="http", url=f"https://localhost:{hook.server_port}/", ca_file=ca, retry="[100ms]")
    api.inject_message(1, "x")
    spool.start()
    wait_until(lambda: spool.counts()["breaker"]["open"], "it is not trusted")
    assert hook.seen == []
    shutil.copy(certificates["ca"], ca)
    reload(spool)
    spool.wait_counts(done=1)
    assert len(hook.seen) == 1


@pytest.fixture
def make_tls_hook():
    from test_deliver import Hook
    hooks = []

    def make(tls):
        hooks.append(Hook(lambda headers, body: 200, tls))
        return hooks[-1]
    yield make
    for hook in hooks:
        hook.shutdown()
        hook.server_close()


def test_a_refused_reload_leaves_nothing(spool, api):
    """Not the new bot in front of the one that cannot be, and not a changed order of one that was here before."""
    spool.configure(deliver="pull")
    spool.start()
    spool.add_bot("first", "222222:another-token-of-another-bot-00", api_root=api.url)
    spool.configure("first", deliver="pull")
    spool.add_bot("second", "333333:another-token-of-another-bot-01", api_root=api.url)
    spool.configure("second", deliver="http", url="https://localhost:1/", ca_file=spool.write("no.pem", "nonsense"))
    reload(spool)
    assert "reload refused" in spool.log()
    status = spool.api("GET", "/v1/status")[1]
    assert {b["bot"] for b in status["boxes"]} == {"shop"}
    spool.stop()
    spool.bots = {"shop": spool.bots["shop"]}
    spool.configure()
    spool.start()
    assert {b["bot"] for b in spool.api("GET", "/v1/status")[1]["boxes"]} == {"shop"}, "nor on disk"


def test_a_switch_to_webhooks_while_the_store_is_away(make_spool, api):
    """The offset of the polling before is dropped when the store is back: a later poll must not confirm by it."""
    if b"TGSPOOL_FAILPOINTS" not in open(harness.TGSPOOL, "rb").read():
        pytest.skip("needs a build with --enable-failpoints")
    spool = make_spool(api)
    spool.configure(deliver="pull", listen={"webhook": f"127.0.0.1:{free_port()}"})
    spool.start(env={"TGSPOOL_FAILPOINTS": "store.write=errno:5@25;store.open=errno:5@2"})

    def fails():
        api.generate(1)
        return "the store fails" in spool.log()
    wait_until(fails, "the store fails")
    assert api.log()[-1]["offset"], "there is one to be dropped"
    spool.configure(intake="webhook", webhook_secret_file=spool.write("hook", "Webhook_secret-0123456789"))
    reload(spool)
    assert "the store works again" not in spool.log(), "the reload came in time"
    spool.wait_log("the store works again")
    wait_until(lambda: spool.counts()["pending"], "it serves")
    seen = len(api.log())
    spool.configure(intake="poll", webhook_secret_file=None)
    reload(spool)
    wait_until(lambda: len(api.log()) > seen, "it polls again")
    assert api.log()[seen]["offset"] is None
