"""Intake by webhook: the sender of the test server behaves as Telegram's; what comes is stored once, in order, before it
is answered, whatever happens to either side."""
import collections
import http.client
import json
import random
import socket
import ssl
import time

import pytest

from harness import free_port, wait_until

SECRET = "Webhook_secret-0123456789"
MEBIBYTE = 1 << 20


class Hook:
    """A spool whose bot takes webhooks; deliver: pull without a consumer, so that all stays where it is."""

    def __init__(self, spool, api, **listen):
        self.spool, self.api, self.port = spool, api, free_port()
        self.tls = "tls_cert" in listen
        self.url = f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}/hook/shop"
        self.secret = spool.write("shop.hook", SECRET + "\n")
        spool.configure(listen={"webhook": f"127.0.0.1:{self.port}", **listen}, intake="webhook", deliver="pull",
                        webhook_url=self.url, webhook_secret_file=self.secret)

    def set(self, **options):
        status, answer = self.api.call("setWebhook", url=self.url, secret_token=SECRET, **options)
        assert status == 200, answer

    def connect(self):
        if self.tls:
            return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30,
                                               context=ssl._create_unverified_context())
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)

    def post(self, body, bot="shop", secret=SECRET, method="POST", path=None, connection=None, headers=()):
        """Returns status, headers and body."""
        c = connection or self.connect()
        c.putrequest(method, path or "/hook/" + bot)
        for name, value in headers:
            c.putheader(name, value)
        if secret is not None:
            c.putheader("X-Telegram-Bot-Api-Secret-Token", secret)
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        c.putheader("Content-Type", "application/json")
        c.putheader("Content-Length", str(len(body)))
        c.endheaders()
        try:
            c.send(body)
        except OSError:
            pass  # refused early: the answer is there all the same
        r = c.getresponse()
        answer = (r.status, dict(r.getheaders()), r.read())
        if not connection:
            c.close()
        return answer

    def stored(self):
        """Update ids in the order of the spool, by what Telegram keeps in order: not our lanes, as it sends the callback
        queries of a chat beside its messages."""
        telegrams = {s["id"]: s["lane"] for s in sent(self.api)}
        lanes = collections.defaultdict(list)
        for e in sorted(self.spool.events(limit=1000), key=lambda e: e["seq"]):
            lanes[telegrams.get(e["update_id"], "polled")].append(e["update_id"])
        return lanes


@pytest.fixture
def hook(spool, api):
    return Hook(spool, api)


def message(update_id, chat=7, text="hello"):
    return {"update_id": update_id, "message": {"message_id": 1, "date": 1, "text": text,
                                                "chat": {"id": chat, "type": "private"},
                                                "from": {"id": chat, "is_bot": False, "first_name": "A"}}}


def sent(api, after=0):
    return api.control("sent", after=after)["sent"]


def check_all_once_in_order(hook, count):
    lanes = hook.stored()
    ids = [i for lane in lanes.values() for i in lane]
    assert len(ids) == len(set(ids)) == count
    for lane, in_order in lanes.items():
        assert in_order == sorted(in_order), f"out of order in {lane}"


def test_what_telegram_sends_is_stored_and_then_answered(hook, spool, api):
    spool.start()
    hook.set(max_connections=8)
    api.generate(300, chats=20, kinds="varied")
    wait_until(lambda: api.state()["queued"] == 0, "all is taken")
    state = api.state()
    assert 2 <= state["most_in_flight"] <= 8 and state["failures"] == 0
    assert len({s["conn"] for s in sent(api)}) <= 8, "connections are kept"
    check_all_once_in_order(hook, 300)
    intake = spool.counts()["intake"]
    assert (intake["mode"], intake["state"], intake["taken"]) == ("webhook", "taking", 300)
    assert api.log() == [], "nothing was polled"


def test_it_is_handled(hook, spool, api):
    spool.configure(deliver="exec", command=spool.shell_handler())
    spool.start()
    hook.set()
    api.generate(30, chats=3)
    spool.wait_counts(done=30, pending=0, processing=0)
    assert len(set(spool.record.ids())) == 30


def test_who_has_no_secret_learns_nothing(hook, spool):
    spool.start()
    answers = [hook.post(message(1), bot=bot, secret=secret)
               for bot, secret in (("shop", "wrong"), ("shop", None), ("shop", ""), ("shop", SECRET + "x"),
                                   ("shop", SECRET[:-1]), ("nobody", SECRET), ("nobody", None), ("x" * 300, ""),
                                   ("shop/", SECRET), ("sh%6fp", SECRET), ("SHOP", SECRET))]
    for status, headers, body in answers:
        headers.pop("Date", None)
        assert (status, headers, body) == (401, answers[0][1], answers[0][2])
    assert spool.counts()["intake"]["refused"] >= 4 and spool.counts()["pending"] == 0
    assert SECRET not in spool.log()
    assert hook.post(message(1))[0] == 200


@pytest.mark.parametrize("request_, status", [
    (dict(method="GET"), 405), (dict(method="PUT"), 405), (dict(path="/"), 404), (dict(path="/hook/"), 404),
    (dict(path="/bot123/getMe"), 404), (dict(body=b""), 400), (dict(body=b"hello"), 400), (dict(body=b"[1]"), 400),
    (dict(body=b'{"update_id":1'), 400), (dict(body=b'{"update_id":1}{}'), 400),
    (dict(body=b'{"update_id":1,"message":{"text":"' + b"x" * MEBIBYTE + b'"}}'), 413)])
def test_what_is_no_webhook(hook, spool, request_, status):
    spool.start()
    assert hook.post(**{"body": message(1), **request_})[0] == status
    assert spool.counts()["pending"] == 0
    assert hook.post(message(1))[0] == 200


def test_as_large_as_it_may_be(hook, spool):
    spool.start()
    body = json.dumps(message(1, text="")).encode().replace(b'""', b'"' + b"x" * (MEBIBYTE - 300) + b'"')
    assert hook.post(body)[0] == 200
    assert spool.events(payload=1)[0]["payload"]["message"]["text"] == "x" * (MEBIBYTE - 300)


def test_without_update_id_it_is_kept_as_dead(hook, spool):
    spool.start()
    assert hook.post({"message": {"text": "no id"}})[0] == 200
    assert hook.post({"message": {"text": "no id"}})[0] == 200
    dead = spool.events(state="dead")
    assert len(dead) == 1 and dead[0]["reason"] == "rejected"


def test_a_duplicate_is_answered_and_dropped(hook, spool):
    spool.start()
    c = hook.connect()
    for _ in range(3):
        assert hook.post(message(5), connection=c)[::2] == (200, b"")
    assert hook.post(message(5, text="other bytes"), connection=c)[0] == 200
    assert [e["update_id"] for e in spool.events()] == [5, 5]
    assert spool.counts()["since_made"]["duplicates"] == 2


def test_paused_intake_asks_to_come_again(hook, spool):
    spool.start()
    spool.cli("pause", "shop", "intake")
    status, headers, _ = hook.post(message(1))
    assert status == 503 and 1 <= int(headers["Retry-After"]) <= 60
    assert spool.counts()["intake"]["state"] == "held"
    spool.stop()
    spool.start()
    assert hook.post(message(1))[0] == 503, "a pause outlives the daemon"
    spool.cli("resume", "shop", "intake")
    assert hook.post(message(1))[0] == 200


def test_a_failing_store_is_never_answered_200(hook, spool, api):
    spool.start(env={"TGSPOOL_FAILPOINTS": "store.write=errno:28@3"})
    hook.set(max_connections=4)
    api.control("webhook", retry_ms=100, cap_ms=500)
    api.generate(60, chats=6)
    wait_until(lambda: api.state()["queued"] == 0, "all is taken in the end", 60)
    check_all_once_in_order(hook, 60)


def test_a_reload_takes_a_new_secret(hook, spool):
    spool.start()
    spool.write("shop.hook", "another-secret_1\n")
    spool.process.send_signal(1)
    wait_until(lambda: hook.post(message(1), secret="another-secret_1")[0] == 200, "the new secret counts")
    assert hook.post(message(2), secret=SECRET)[0] == 401


def test_from_polling_to_webhook_and_back(hook, spool, api):
    spool.configure(intake="poll", webhook_url=None, webhook_secret_file=None)
    spool.start()
    api.generate(20, chats=2)
    wait_until(lambda: api.state()["queued"] == 0, "polled")
    assert spool.counts()["intake"]["offset"] > 0
    spool.configure(intake="webhook", webhook_url=hook.url, webhook_secret_file=hook.secret)
    spool.process.send_signal(1)
    spool.wait_log("reloaded")
    wait_until(lambda: not api.state()["waiting"], "the poll is over")
    hook.set()
    api.generate(20, chats=2)
    wait_until(lambda: api.state()["queued"] == 0, "sent")
    check_all_once_in_order(hook, 40)
    spool.configure(intake="poll", webhook_url=None, webhook_secret_file=None)
    seen = len(api.log())
    spool.process.send_signal(1)
    wait_until(lambda: len(api.log()) > seen, "it polls again")
    assert api.log()[seen]["offset"] is None, "the offset of before is not sent"
    wait_until(lambda: "tgspool webhook delete shop" in spool.counts()["intake"].get("trouble", ""), "it says what to do")
    assert api.state()["webhook"] == hook.url, "and does not fight"
    api.call("deleteWebhook")
    api.generate(20, chats=2)
    wait_until(lambda: api.state()["queued"] == 0, "polled again", 60)
    check_all_once_in_order(hook, 60)


def test_anothers_webhook_is_told_and_left(hook, spool, api):
    api.call("setWebhook", url=f"http://127.0.0.1:{free_port()}/elsewhere/secret-path")
    spool.start()
    wait_until(lambda: spool.counts()["intake"]["webhook"] == "taken", "it is seen")
    assert "tgspool webhook set shop" in spool.counts()["intake"]["trouble"]
    spool.wait_log("another program has set it")
    assert spool.log().count("another program has set it") == 1 and "secret-path" not in spool.log()
    assert not [q for q in api.log(method=None) if q["method"] not in ("getWebhookInfo", "setWebhook")]


def test_one_that_is_set_is_believed_at_its_first_update(hook, spool, api):
    spool.start()
    wait_until(lambda: spool.counts()["intake"]["webhook"] == "not set", "it is seen")
    assert "tgspool webhook set shop" in spool.counts()["intake"]["trouble"]
    hook.set()
    api.generate(1)
    wait_until(lambda: spool.counts()["intake"]["webhook"] == "set", "sooner than it asks by itself", 10)
    assert "trouble" not in spool.counts()["intake"]


def random_kills(hook, spool, api, kills):
    """Starts the daemon and kills it, by kill -9 or at a failpoint."""
    points = ["webhook.before_accept", "webhook.before_answer", "commit.before_write", "commit.after_write"]
    for i in range(kills):
        if i % 2:
            spool.start(env={"TGSPOOL_FAILPOINTS": f"{points[i // 2 % 4]}=crash@{random.randint(2, 9)}"}, wait=False)
            try:
                spool.process.wait(6)
            except Exception:
                spool.kill()
        else:
            before = api.state()["confirmed"]
            spool.start()
            wait_until(lambda: api.state()["confirmed"] > before + random.randint(3, 25) or not api.state()["queued"],
                       "some were taken")
            spool.kill()


@pytest.mark.limit(300)
def test_killed_at_random_nothing_is_lost_or_doubled(hook, spool, api):
    spool.level = "info"
    spool.configure()
    api.control("webhook", retry_ms=60, cap_ms=250, lose_every=9, lose_after_ms=40, timeout_ms=3000)
    spool.start()
    hook.set(max_connections=6)
    # kinds that Telegram keeps for a day: a slow run outlives the 30 s of an inline query
    api.generate(400, chats=25, kinds=["message", "edited_message", "my_chat_member", "chat_join_request"])
    spool.kill()
    random_kills(hook, spool, api, 8)
    spool.start()
    wait_until(lambda: api.state()["queued"] == 0, "all is taken", 120)
    tries = sent(api)
    assert len(tries) > 400 and any(s["status"] == 0 for s in tries), "some were sent twice"
    assert spool.counts()["since_made"]["duplicates"] > 0, "and came twice"
    check_all_once_in_order(hook, 400)


def test_telegrams_networks_through_a_trusted_proxy(spool, api):
    hook = Hook(spool, api, telegram_only="true", trusted_proxy="[127.0.0.1, 10.0.0.0/8]")
    spool.start()

    def post(n, *forwarded):
        return hook.post(message(n), headers=[("X-Forwarded-For", f) for f in forwarded])[0]
    assert post(1) == 403, "the proxy itself is not Telegram"
    assert post(2, "149.154.167.220") == 200
    assert post(3, "::ffff:91.108.7.255") == 200
    assert post(4, "91.108.8.0") == 403
    assert post(5, "149.154.167.220, 8.8.8.8") == 403, "who stands last counts"
    assert post(6, "8.8.8.8, 149.154.160.1, 10.1.2.3") == 200
    assert post(7, "149.154.167.220", "8.8.8.8") == 403, "two fields are one list"
    assert post(8, "nonsense") == 403
    assert sorted(e["update_id"] for e in spool.events()) == [2, 3, 6]
    assert spool.log().count("which is not Telegram's") == 1


def test_tls_and_a_new_certificate(spool, api, certificates, tmp_path):
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"

    def use(name):
        for path, source in zip((cert, key), certificates[name]):
            path.write_bytes(open(source, "rb").read())
            path.chmod(0o600)

    def shown():
        return ssl.get_server_certificate(("127.0.0.1", hook.port))
    use("good")
    hook = Hook(spool, api, tls_cert=cert, tls_key=key)
    spool.start()
    hook.set(max_connections=3)
    api.generate(20, chats=3)
    wait_until(lambda: api.state()["queued"] == 0, "all is taken by TLS")
    assert api.state()["failures"] == 0
    first = shown()
    use("self-signed")
    spool.process.send_signal(1)
    wait_until(lambda: shown() != first, "the new certificate is shown")
    second = shown()
    cert.write_text("not a certificate")
    spool.process.send_signal(1)
    spool.wait_log("the old certificate and configuration stay")
    assert shown() == second
    api.generate(20, chats=3)
    wait_until(lambda: api.state()["queued"] == 0, "and goes on")
    check_all_once_in_order(hook, 40)


def test_idle_connections_are_kept_and_bad_ones_do_no_harm(hook, spool, api):
    spool.start()
    c = hook.connect()
    assert hook.post(message(1), connection=c)[0] == 200
    slow = []
    for start in (b"", b"POST /hook/shop HT", b"POST /hook/shop HTTP/1.1\r\nHost: x\r\nContent-Length: 500000\r\n\r\n{",
                  b"\x16\x03\x01\x02\x00", b"POST /hook/shop HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
                  b"Content-Length: 3\r\n\r\n0\r\n\r\n"):
        for _ in range(40):
            s = socket.create_connection(("127.0.0.1", hook.port), 10)
            s.sendall(start)
            slow.append(s)
    hook.set()
    api.generate(100, chats=10)
    wait_until(lambda: api.state()["queued"] == 0, "honest ones are served")
    time.sleep(12)  # past the time-outs of heads
    assert hook.post(message(2), connection=c)[0] == 200, "the idle connection is still there"
    for s in slow:
        s.close()
    assert spool.counts()["pending"] == 102
