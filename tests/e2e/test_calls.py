"""Calls going out, and the API on the network, by the real daemon against the Bot API test server."""
import http.client
import json
import os
import random
import shlex
import ssl
import time

import pytest

from harness import TOKEN, free_port, wait_until

API_TOKEN = "api-token-of-the-tests-0123456789"
PULL_TOKEN = "pull-token-of-the-shop-0123456789"


def out(spool):
    boxes = spool.api("GET", "/v1/status")[1]["boxes"]
    return next(b for b in boxes if b["bot"] == "shop" and b["box"] == "out")


def wait_out(spool, **numbers):
    wait_until(lambda: all(out(spool)[k] == v for k, v in numbers.items()), f"calls: {numbers}; {out(spool)}", 40)


def sent(api, method="sendMessage"):
    return [q for q in api.log(method=None) if q["method"].lower() == method.lower()]


def post(spool, method="sendMessage", status=201, **more):
    got, answer = spool.api("POST", "/v1/bots/shop/calls", {"method": method, **more})
    assert got == status, answer
    return answer


def test_calls_of_handlers(spool, api):
    """exec writes them, a worker answers them with keys; what must not go out is kept for a person to see."""
    spool.write("exec", "#!/bin/sh\nprintf '[{\"method\":\"sendMessage\",\"chat_id\":%s,\"text\":\"x\"},"
                        "{\"method\":\"deleteWebhook\"}]' ${TGSPOOL_LANE#chat:}\n", 0o700)
    spool.configure(command=os.path.join(spool.dir, "exec"))
    for chat in (5, 6):
        api.inject_message(chat, "hello")
    spool.start()
    spool.wait_counts(done=2)
    wait_out(spool, done=2, dead=2)
    assert sorted(int(q["args"]["chat_id"]) for q in sent(api)) == [5, 6]
    assert not sent(api, "deleteWebhook")
    dead = spool.events(box="out", state="dead")
    assert {(e["method"], e["reason"]) for e in dead} == {("deleteWebhook", "rejected")}
    shown = spool.cli("show", dead[0]["id"], code=None)
    assert "deleteWebhook" in shown.stdout and "not taken from an answer" in shown.stdout
    assert "replay" not in shown.stderr and "--payload" in shown.stderr, "another try would be refused as well"
    status = spool.cli("status", code=None)
    assert "2 dead calls" in status.stdout + status.stderr
    assert TOKEN not in spool.log()


@pytest.mark.limit(180)
def test_killed_while_calls_go_out(spool, api):
    """Every call arrives, whatever is killed when, and each of a chat in its order. A kill between send and record may
    repeat one; nothing else does."""
    spool.configure(deliver="pull")
    spool.start()
    rng = random.Random(4)
    for n in range(60):
        answer = post(spool, body={"chat_id": n % 3, "text": str(n)}, key=f"k{n}")
        assert answer == {"first": True, "id": f"shop/out/@{n + 1}"}
        assert post(spool, status=200, body={"chat_id": 9, "text": "other"}, key=f"k{n}") == {"first": False}
        if n % 20 == 19:
            time.sleep(rng.uniform(0, 0.05))
            spool.kill()
            spool.start()
    wait_out(spool, pending=0, processing=0, dead=0, done=60)
    texts = [int(q["args"]["text"]) for q in sent(api)]
    assert set(texts) == set(range(60))
    assert len(texts) <= 60 + 3 * 4, "more repeated than was under way at a kill"
    for chat in range(3):
        firsts = list(dict.fromkeys(t for t in texts if t % 3 == chat))
        assert firsts == sorted(firsts)


def test_once_is_not_repeated_after_a_kill(spool, api):
    spool.configure(deliver="pull")
    spool.start()
    api.fault("hang", method="sendMessage", count=2)
    post(spool, body={"chat_id": 1, "text": "once"}, once=True)
    post(spool, body={"chat_id": 2, "text": "again"})
    wait_until(lambda: len(sent(api)) == 2, "both are on their way")
    spool.kill()
    spool.start()
    wait_out(spool, done=1, dead=1)
    assert sorted(q["args"]["text"] for q in sent(api)) == ["again", "again", "once"]
    dead = spool.events(box="out", state="dead")
    assert dead[0]["once"] and "maybe sent, not repeated" in dead[0]["error"]
    assert "next: tgspool replay shop/out/@1" in spool.cli("show", "shop/out/@1", code=None).stderr


def test_a_limited_chat_holds_itself_only(spool, api):
    spool.configure(deliver="pull")
    spool.start()
    api.fault("status", method="sendMessage", count=1, status=429, retry_after=3)
    started = time.monotonic()
    post(spool, body={"chat_id": 1, "text": "limited"})
    wait_until(lambda: sent(api), "it was tried")
    post(spool, body={"chat_id": 2, "text": "free"})
    wait_out(spool, done=1, pending=1)
    assert time.monotonic() - started < 3
    wait_out(spool, done=2)
    assert time.monotonic() - started >= 3
    assert [q["args"]["text"] for q in sent(api)] == ["limited", "free", "limited"]
    assert spool.events(box="out", chat=1)[0]["attempts"] == 1, "a 429 costs nothing"


def test_discard_and_replay(spool, api):
    spool.configure(deliver="pull")
    spool.start()
    api.fault("hang", method="sendMessage", count=1)
    post(spool, body={"chat_id": 1, "text": "x"})
    wait_until(lambda: sent(api), "it is under way")
    assert spool.api("POST", "/v1/discard", {"id": "shop/out/@1"})[0] == 409
    spool.cli("discard", "--force", "shop/out/@1")
    wait_out(spool, dead=1, processing=0)
    spool.cli("replay", "shop/out/@1")
    wait_out(spool, done=1)
    assert out(spool)["dead_replayed"] == 1
    assert "dead call" not in (lambda r: r.stdout + r.stderr)(spool.cli("status", code=None)), "it was seen to"
    exported = spool.cli("export", "--box", "out")
    assert len(exported.splitlines()) == 2
    spool.cli("import", "-", input=exported)
    assert out(spool)["done"] == 1 and out(spool)["dead"] == 1, "all were known"


# ---- the API on the network

class Network:
    def __init__(self, port, context=None):
        self.port, self.context = port, context

    def ask(self, method, path, body=None, token=API_TOKEN, headers=None, timeout=30):
        c = (http.client.HTTPSConnection("localhost", self.port, timeout=timeout, context=self.context)
             if self.context else http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout))
        try:
            c.request(method, path, json.dumps(body) if body is not None else None,
                      {**({"Authorization": f"Bearer {token}"} if token else {}), **(headers or {})})
            r = c.getresponse()
            return r.status, json.loads(r.read())
        finally:
            c.close()


def listen(spool, **more):
    port = free_port()
    spool.configure(deliver="pull", pull_token_file=spool.write("pull", PULL_TOKEN),
                    listen={"http": f"127.0.0.1:{port}", "api_token_file": spool.write("api", API_TOKEN), **more})
    return port


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_consumers_on_the_network(spool, api, certificates, tls):
    more, context = {}, None
    if tls:
        cert, key = certificates["good"]
        more = {"tls_cert": cert, "tls_key": key}
        context = ssl.create_default_context(cafile=certificates["ca"])
    net = Network(listen(spool, **more), context)
    spool.start()
    assert net.ask("GET", "/v1/status", token=None)[0] == 401
    assert net.ask("GET", "/v1/status", token=PULL_TOKEN)[0] == 401
    assert net.ask("GET", "/v1/status")[0] == 200
    assert net.ask("GET", "/v1/status", headers={"Origin": "https://evil.example"})[0] == 403
    api.generate(3)
    got = []
    while len(got) < 3:
        status, answer = net.ask("POST", "/v1/claim", {"bot": "shop", "wait": 20, "consumer": "there"}, PULL_TOKEN)
        assert status == 200
        for e in answer["events"]:
            got.append(e["id"])
            word = {"id": e["id"], "lease": e["lease"]}
            key = {"bot": "shop", "key": e["key"], **word}
            assert net.ask("POST", "/v1/keys", key, PULL_TOKEN) == (201, {"first": True})
            assert net.ask("POST", "/v1/ack", {**word, "calls": [{"method": "sendMessage", "chat_id": 1}]},
                           PULL_TOKEN)[0] == 200
            assert net.ask("POST", "/v1/keys", {"bot": "shop", "key": e["key"]}, PULL_TOKEN)[1]["state"] == "done"
    wait_out(spool, done=3)
    log = spool.log()
    assert API_TOKEN not in log and PULL_TOKEN not in log


def test_claims_are_bounded_and_those_that_left_take_nothing(spool, api):
    net = Network(listen(spool))
    spool.configure(concurrency=2)
    spool.start()
    for _ in range(3):
        with pytest.raises(OSError):
            net.ask("POST", "/v1/claim", {"bot": "shop", "wait": 60}, PULL_TOKEN, timeout=0.2)
    api.generate(5, chats=5)
    spool.wait_counts(pending=5)
    first = net.ask("POST", "/v1/claim", {"bot": "shop", "max": 100}, PULL_TOKEN)[1]["events"]
    assert len(first) == 2
    assert net.ask("POST", "/v1/claim", {"bot": "shop", "max": 100}, PULL_TOKEN)[1]["events"] == []
    assert all(e["interrupted"] == 0 for e in spool.events())


def test_a_new_pull_token_by_reload(spool, api):
    net = Network(listen(spool))
    spool.start()
    assert net.ask("POST", "/v1/claim", {"bot": "shop"}, PULL_TOKEN)[0] == 200
    spool.write("pull", PULL_TOKEN + "-new")
    spool.process.send_signal(1)
    wait_until(lambda: net.ask("POST", "/v1/claim", {"bot": "shop"}, PULL_TOKEN + "-new")[0] == 200, "the new one")
    assert net.ask("POST", "/v1/claim", {"bot": "shop"}, PULL_TOKEN)[0] == 401


def test_a_changed_handler_is_tried_at_once(spool, api):
    """A breaker that waits long must not make who mends the command wait, too."""
    spool.configure(command="/bin/sh -c 'exit 69'", retry="[60s]")
    api.generate(1)
    spool.start()
    wait_until(lambda: spool.counts()["breaker"]["open"], "the breaker opens")
    started = time.monotonic()
    spool.configure(command=shlex.join(["/bin/sh", "-c", "exit 0"]))
    spool.process.send_signal(1)
    spool.wait_counts(done=1, timeout=30)
    assert time.monotonic() - started < 20
