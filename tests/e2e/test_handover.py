"""Moving a bot in and out: nothing is lost, and the old bot goes on behind the last update (doc/migration.md)."""
import json
import signal
import subprocess
import time

import pytest

from harness import TGSPOOL, TOKEN, free_port, wait_until

NEW_TOKEN = "123456:BBF0-test-token-that-must-not-be-seen-2"


def poll(api, offset=None, **args):
    """A getUpdates of the old bot; returns the update ids."""
    args = {"timeout": 0, **args, **({"offset": offset} if offset is not None else {})}
    status, answer = api.call("getUpdates", **args)
    assert status == 200, answer
    return [u["update_id"] for u in answer["result"]]


def drain(api):
    """The old bot handles and confirms all there is."""
    ids = poll(api)
    while ids:
        last = ids[-1]
        ids = poll(api, last + 1)


def allowed(api):
    return api.call("getWebhookInfo")[1]["result"].get("allowed_updates")


def handover(spool, **query):
    status, answer = spool.api("POST", "/v1/bots/shop/handover", query=query)
    assert status == 200, answer
    return answer


def look(spool, **query):
    return spool.api("GET", "/v1/bots/shop/handover", query=query)[1]


def start_polling(spool, api, count=20):
    """An old bot with a list of its own was here; tgspool takes and handles some updates."""
    poll(api, allowed_updates=["message", "chat_member"])
    spool.configure(command=spool.shell_handler())
    spool.start()
    api.generate(count, chats=3)
    spool.wait_counts(done=count, pending=0, processing=0)


def test_out_to_a_polling_bot(spool, api):
    start_polling(spool, api)
    assert allowed(api) != ["message", "chat_member"], "tgspool asks for more"
    out = spool.cli("handover", "shop")
    assert "the old bot can start" in out and "chat_member" in out
    state = api.state()
    assert state["queued"] == 0 and state["confirmed"] == 20 and not state["waiting"]
    assert sorted(allowed(api)) == ["chat_member", "message"]
    asked = len(api.log())
    ids = api.generate(5)
    assert poll(api) == list(range(ids["first_id"], ids["last_id"] + 1)), "the old bot gets what comes then"
    assert len(api.log()) == asked + 1, "and tgspool does not ask any more"
    assert look(spool)["state"] == "done"


def test_the_default_list_is_given_back(spool, api):
    spool.configure(command=spool.shell_handler(), allowed_updates="[message]")
    spool.start()
    api.generate(3)
    spool.wait_counts(done=3)
    assert allowed(api) == ["message"]
    answer = handover(spool, wait="30s")
    assert (answer["state"], answer["allowed_updates"], answer["had_webhook"]) == ("done", "default", False)
    assert allowed(api) is None


def test_it_waits_for_the_box_and_outlives_a_restart(spool, api):
    gate = spool.dir + "/gate"
    spool.configure(command=spool.shell_handler(f"while [ ! -e {gate} ]; do sleep 0.05; done"), concurrency=1)
    spool.start()
    api.generate(4, chats=1)
    spool.wait_counts(pending=3, processing=1)
    first = handover(spool)
    assert first["state"] == "draining" and first["pending"] + first["processing"] == 4
    assert look(spool, wait="200ms")["state"] == "draining"
    api.generate(2, chats=1)
    time.sleep(0.3)
    assert api.state()["queued"] >= 2, "nothing more is taken"
    spool.kill()
    spool.start()
    assert look(spool)["state"] == "none" and spool.counts()["paused"]["intake"]
    assert handover(spool)["state"] == "draining"
    open(gate, "w").close()
    assert handover(spool, wait="30s")["state"] == "done"
    state = api.state()
    assert (state["confirmed"], state["queued"]) == (4, 2), "what was taken is confirmed, and only that"
    assert len(set(spool.record.ids())) == 4


def test_paused_deliveries_are_told(spool, api):
    spool.configure(command=spool.shell_handler())
    spool.start()
    spool.cli("pause", "shop", "deliver")
    api.generate(3)
    spool.wait_counts(pending=3)
    answer = handover(spool)
    assert (answer["state"], answer["deliver"]) == ("draining", "paused")
    assert "tgspool resume shop deliver" in answer["message"]
    spool.cli("resume", "shop", "deliver")
    assert handover(spool, wait="30s")["state"] == "done"


def test_resume_ends_it(spool, api):
    start_polling(spool, api)
    assert handover(spool, wait="30s")["state"] == "done"
    spool.cli("resume", "shop")
    wait_until(lambda: look(spool)["state"] == "none", "it is over")
    api.generate(5)
    spool.wait_counts(done=25)


def test_telegram_is_told_until_it_hears(spool, api):
    start_polling(spool, api)
    api.fault("status", count=2, status=502)
    answer = handover(spool, wait="1s")
    wait_until(lambda: look(spool)["state"] != "draining", "it is being told")
    assert answer["state"] == "done" or "502" in (look(spool)["trouble"] or "502")
    assert handover(spool, wait="40s")["state"] == "done"
    wait_until(lambda: api.state()["queued"] == 0, "it is confirmed")


def test_without_a_daemon_it_is_refused(spool, api):
    spool.configure(command=spool.shell_handler())
    r = spool.cli("handover", "shop", code=None)
    assert r.returncode != 0 and "tgspool" in r.stderr
    spool.start()
    assert spool.api("POST", "/v1/bots/nobody/handover")[0] == 404
    assert spool.api("PUT", "/v1/bots/shop/handover")[0] == 405
    assert spool.api("POST", "/v1/bots/shop/handover", query={"wait": "2h"})[0] == 422


# ---- with webhooks

@pytest.fixture
def hooked(spool):
    """A bot that takes webhooks and has a handler; returns the URL."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/hook/shop"
    spool.configure(listen={"webhook": f"127.0.0.1:{port}"}, intake="webhook", webhook_url=url,
                    webhook_secret_file=spool.write("hook", "secret-of-the-webhook\n"),
                    command=spool.shell_handler())
    return url


def test_in_from_a_webhook_bot_and_out_again(hooked, spool, api):
    old = f"http://127.0.0.1:{free_port()}/old-bot"  # nobody is there now: its updates wait
    api.control("webhook", retry_ms=50, cap_ms=200)
    api.call("setWebhook", url=old, allowed_updates=["message"])
    api.generate(10, chats=2)
    spool.start()
    wait_until(lambda: spool.counts()["intake"]["webhook"] == "taken", "the old bot's webhook is seen")
    spool.cli("webhook", "set", "shop")
    spool.wait_counts(done=10)
    assert allowed(api) != ["message"]
    answer = handover(spool, wait="30s")
    assert (answer["state"], answer["allowed_updates"], answer["had_webhook"]) == ("done", ["message"], True)
    assert api.state()["webhook"] == "" and allowed(api) == ["message"]
    api.generate(5, chats=2)
    assert api.state()["queued"] == 5, "they wait for the old bot"
    api.call("setWebhook", url=old)
    assert api.state()["queued"] == 5
    assert [q["args"].get("drop_pending_updates") for q in api.log(method="deleteWebhook")] == [None]


def test_a_webhook_that_comes_during_the_handover_waits(hooked, spool, api):
    gate = spool.dir + "/gate"
    spool.configure(command=spool.shell_handler(f"while [ ! -e {gate} ]; do sleep 0.05; done"))
    spool.start()
    spool.cli("webhook", "set", "shop")
    api.control("webhook", retry_ms=50, cap_ms=100)
    api.generate(2, chats=1)
    wait_until(lambda: api.state()["queued"] == 0, "taken")
    assert handover(spool)["state"] == "draining"
    api.generate(3, chats=3)
    wait_until(lambda: any(s["status"] == 503 for s in api.control("sent")["sent"]), "it is told to come again")
    open(gate, "w").close()
    assert handover(spool, wait="30s")["state"] == "done"
    assert api.state()["queued"] == 3 and spool.counts()["since_made"]["received"] == 2


# ---- the other paths

def test_in_from_a_polling_bot(spool, api):
    made = api.generate(6, chats=2)
    assert len(poll(api, limit=3)) == 3
    poll(api, made["first_id"] + 2, limit=1)  # it confirmed two, and was stopped in its third
    spool.configure(command=spool.shell_handler())
    spool.start()
    spool.wait_counts(done=4)
    assert api.state()["queued"] == 0 or wait_until(lambda: api.state()["queued"] == 0, "all is confirmed")


def test_from_a_webhook_to_polling(hooked, spool, api):
    api.call("setWebhook", url=f"http://127.0.0.1:{free_port()}/old-bot")
    api.generate(10, chats=2)
    spool.configure(intake="poll", webhook_url=None, webhook_secret_file=None)
    spool.start()
    wait_until(lambda: "tgspool webhook delete shop" in spool.counts()["intake"].get("trouble", ""), "it waits")
    spool.cli("webhook", "delete", "shop")
    spool.wait_counts(done=10)


def test_to_another_machine(spool, make_spool, api):
    start_polling(spool, api)
    spool.stop()
    other = make_spool(api)
    subprocess.run(["cp", "-a", spool.data, other.data], check=True)
    other.configure(command=other.shell_handler())
    api.generate(5, chats=3)
    other.start()
    other.wait_counts(done=25)
    assert len(other.record) == 5
    other.stop()


def test_to_another_machine_by_export(spool, make_spool, api):
    start_polling(spool, api)
    spool.cli("pause", "shop", "deliver")
    api.generate(4, chats=3)
    spool.wait_counts(pending=4)
    spool.stop()
    spool.cli("export", spool.dir + "/events.jsonl")
    other = make_spool(api)
    other.configure(command=other.shell_handler())
    other.cli("import", spool.dir + "/events.jsonl")
    api.generate(5, chats=3)
    other.start()
    other.wait_counts(done=29)
    assert len(other.record) == 9
    other.stop()


def test_a_new_token(make_api, make_spool):
    api = make_api()
    spool = make_spool(api)
    start_polling(spool, api)
    port = api.port
    api.stop()
    other = make_api(tokens=(NEW_TOKEN,), port=port)
    wait_until(lambda: "does not accept the token" in spool.counts()["intake"].get("trouble", ""), "it is refused")
    other.generate(5, chats=3)
    spool.write("shop.token", NEW_TOKEN + "\n")
    spool.process.send_signal(signal.SIGHUP)
    spool.wait_counts(done=25, pending=0)
    assert NEW_TOKEN not in spool.log() and TOKEN not in spool.log()


def test_from_the_cloud_to_a_server_of_ones_own(make_api, make_spool):
    cloud, own = make_api("--first-id", "900000"), make_api("--first-id", "100")
    spool = make_spool(cloud)
    start_polling(spool, cloud)
    wait_until(lambda: cloud.state()["queued"] == 0, "the last is confirmed before the logout")
    cloud.call("logOut")
    own.generate(5, chats=3)
    spool.configure(api_root=own.url)
    spool.process.send_signal(signal.SIGHUP)
    spool.wait_counts(done=25, pending=0)
    assert own.log()[0]["offset"] is None, "the other server has numbers of its own"
    wait_until(lambda: own.state()["queued"] == 0, "all is confirmed")


def test_and_back_to_the_cloud(make_api, make_spool):
    """The cloud lets a bot in again some time after its logout; until then it is asked on and on, and updates wait."""
    own, cloud = make_api("--first-id", "900000"), make_api("--first-id", "100")
    spool = make_spool(own)
    start_polling(spool, own)
    wait_until(lambda: own.state()["queued"] == 0, "the last is confirmed before the logout")
    own.call("logOut")
    cloud.generate(5, chats=3)
    cloud.fault("status", method="getUpdates", status=429, retry_after=1, count=2)
    spool.configure(api_root=cloud.url)
    spool.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "trouble" in spool.counts()["intake"] or len(cloud.log()) >= 2, "it is not let in")
    spool.wait_counts(done=25, pending=0)
    assert [q["offset"] for q in cloud.log()[:3]] == [None] * 3, "this server has numbers of its own"
    wait_until(lambda: cloud.state()["queued"] == 0, "all is confirmed")
    assert len(set(spool.record.ids())) == 25 and spool.counts()["dead"] == 0


def test_a_new_token_of_a_webhook_bot(make_api, make_spool):
    """The webhook has to be set anew by the new token; what came in between waits at Telegram, what was stored is kept."""
    api = make_api()
    spool = make_spool(api)
    gate, hook = spool.dir + "/gate", free_port()
    spool.configure(listen={"webhook": f"127.0.0.1:{hook}"}, intake="webhook",
                    webhook_url=f"http://127.0.0.1:{hook}/hook/shop",
                    webhook_secret_file=spool.write("hook", "secret-of-the-webhook\n"),
                    command=spool.shell_handler(f"while [ ! -e {gate} ]; do sleep 0.05; done"))
    spool.start()
    spool.cli("webhook", "set", "shop")
    api.generate(6, chats=2)
    wait_until(lambda: spool.counts()["since_made"]["received"] == 6, "they are taken")
    port = api.port
    api.stop()  # revoked: from here on Telegram knows the new token only, and sends nothing by the old webhook
    other = make_api("--first-id", "7000", tokens=(NEW_TOKEN,), port=port)
    other.generate(5, chats=3)
    spool.write("shop.token", NEW_TOKEN + "\n")
    spool.process.send_signal(signal.SIGHUP)
    spool.wait_log("reloaded ")
    spool.cli("webhook", "set", "shop")
    assert other.state()["webhook"] == f"http://127.0.0.1:{hook}/hook/shop"
    wait_until(lambda: spool.counts()["since_made"]["received"] == 11, "those that waited come")
    open(gate, "w").close()
    spool.wait_counts(done=11, pending=0, dead=0)
    assert len(spool.record) == 11
    assert NEW_TOKEN not in spool.log() and TOKEN not in spool.log()
