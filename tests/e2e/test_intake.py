"""Intake by long polling: what is asked, what is confirmed when, and what every kind of trouble does."""
import json

import pytest

from harness import TOKEN, BotApi, wait_until

TOKEN2 = "123456:AAF0-test-token-that-must-not-be-seen-2"


@pytest.fixture
def pulled(spool):
    """A daemon whose events nobody takes: what comes in stays pending."""
    spool.configure(deliver="pull")
    return spool


def asked_at(api):
    return [q["at"] / 1000 for q in api.log()]


def test_it_takes_stores_and_confirms(pulled, api):
    api.generate(250, chats=7, kinds="varied")
    pulled.start()
    pulled.wait_counts(pending=250)
    wait_until(lambda: api.state()["queued"] == 0, "all is confirmed")
    first, *others = api.log()
    assert first["offset"] in (None, 0)
    assert [q["offset"] for q in others] == [q["last"] + 1 for q in api.log() if q["n"]]
    kinds = json.loads(first["allowed_updates"])
    assert "message" in kinds and "my_chat_member" in kinds and "chat_member" not in kinds
    assert len({q["conn"] for q in api.log()}) == 1  # kept alive


def test_the_bytes_are_kept(pulled, api):
    members = '"message":{"chat" : {"id":7},\t"text":"\\u00e4 ä  1e3","x":1E+2}'
    api.control("inject", updates=[{"kind": "message", "members": members}])
    pulled.start()
    pulled.wait_counts(pending=1)
    wanted = '{"update_id":%d, %s}' % (api.state()["tail"] - 1, members)  # in a line, newlines are blanks
    assert wanted.encode() in pulled.api_bytes("POST", "/v1/claim", '{"bot":"shop"}')


def test_the_last_request_at_a_stop_confirms(pulled, api):
    pulled.start()
    wait_until(lambda: api.state()["waiting"], "a poll waits")
    api.fault("status")
    api.generate(3)
    pulled.wait_log("intake fails")  # the request that would have confirmed them
    assert api.state()["confirmed"] == 0
    pulled.stop()
    last = api.log()[-1]
    assert (last["limit"], last["timeout"]) == (1, 0)
    assert api.state()["queued"] == 0


def test_id_reset_to_a_lower_number(make_api, make_spool):
    api = make_api("--first-id", "727334708")
    spool = make_spool(api)
    spool.configure(deliver="pull")
    api.generate(3)
    spool.start()
    spool.wait_counts(pending=3)
    wait_until(lambda: api.state()["queued"] == 0, "confirmed")
    api.control("next_id", id=117314199)
    api.generate(3)
    spool.wait_counts(pending=6)
    wait_until(lambda: api.state()["queued"] == 0, "confirmed too")
    assert [q["offset"] for q in api.log()][-1] == 117314202


def test_redelivered_updates_are_dropped_at_the_door(pulled, api):
    pulled.start()
    wait_until(lambda: api.state()["waiting"], "a poll waits")
    entry = b'{"update_id":%d,\n"message":{"chat":{"id":1},"text":"again"}}' % (api.state()["tail"] + 2)
    api.inject_raw(entry, entry, entry)  # in one answer; its last id is right
    pulled.wait_counts(pending=1)
    assert pulled.counts()["since_made"]["duplicates"] == 2
    wait_until(lambda: api.state()["waiting"], "a poll waits again")
    api.fault("status", count=100)
    api.generate(5)
    pulled.wait_counts(pending=6)
    pulled.kill()
    assert api.state()["queued"] == 5
    api.control("clear_faults")
    pulled.configure(api_root=f"http://localhost:{api.port}")  # another root: polled without an offset
    pulled.start()
    wait_until(lambda: api.state()["queued"] == 0, "confirmed at last")
    assert pulled.counts()["pending"] == 6 and pulled.counts()["since_made"]["duplicates"] == 7


def test_429_waits_exactly(pulled, api):
    api.fault("status", status=429, retry_after=3)
    api.generate(1)
    pulled.start()
    pulled.wait_counts(pending=1)
    first, second = asked_at(api)[:2]
    assert 2.9 <= second - first <= 4.5


def test_409_takes_a_fresh_connection_and_says_why(pulled, api):
    api.fault("status", status=409, body=json.dumps({
        "ok": False, "error_code": 409, "description": "Conflict: terminated by other getUpdates request; make sure "
        "that only one bot instance is running"}))
    api.generate(1)
    pulled.start()
    pulled.wait_counts(pending=1)
    first, second = api.log()[:2]
    assert first["conn"] != second["conn"]
    assert "another" in pulled.log() or "other" in pulled.log()


def test_409_by_a_webhook_names_it(pulled, api):
    api.call("setWebhook", url="https://example.org/x")
    api.generate(1)
    pulled.start()
    pulled.wait_log("webhook")
    api.call("deleteWebhook")
    pulled.wait_counts(pending=1, timeout=90)


@pytest.mark.parametrize("status", [401, 404])
def test_a_refused_token_is_read_again(pulled, api, make_api, status):
    other = make_api(tokens=(TOKEN2,), port=0)
    other.generate(2)
    pulled.configure(api_root=other.url)
    if status == 404:
        other.fault("status", status=404, body='{"ok":false,"error_code":404,"description":"Not Found"}', count=1)
        pulled.write("shop.token", TOKEN2 + "\n")
    pulled.start()
    wait_until(lambda: "token" in pulled.log() and "intake fails" in pulled.log(), "it says that the token is refused")
    pulled.write("shop.token", TOKEN2 + "\n")
    pulled.wait_counts(pending=2, timeout=90)


@pytest.mark.parametrize("fault", [
    {"type": "status", "status": 500}, {"type": "status", "status": 502}, {"type": "status", "status": 504},
    {"type": "status", "status": 200, "body": "<html>a captive portal</html>", "content_type": "text/html"},
    {"type": "reset_before"}, {"type": "close_before"}, {"type": "lost"}, {"type": "cut", "at": 100},
    {"type": "reset_after", "at": 100}, {"type": "bad_json"},
], ids=lambda f: f"{f['type']}-{f.get('status', '')}")
def test_trouble_is_waited_out(pulled, api, fault):
    """Two failures, with a growing pause; nothing is lost, nothing confirmed before it is stored."""
    api.generate(20)
    api.fault(count=2, **fault)
    pulled.start()
    pulled.wait_counts(pending=20)
    at = asked_at(api)
    # on the connection that getWebhookInfo left idle, one that breaks before its answer is asked again at once
    pauses = [b - a for a, b in zip(at, at[1:])][:2]
    assert max(pauses) >= 0.7 or fault["type"] == "lost", "the next try came too early"
    assert "intake" in pulled.log()
    wait_until(lambda: api.state()["queued"] == 0, "confirmed at last")


def test_trouble_is_told_with_its_time_and_backs_off(pulled, api):
    api.fault("status", status=502, count=4)
    api.generate(1)
    pulled.start()
    pulled.wait_counts(pending=1, timeout=60)
    at = asked_at(api)
    pauses = [b - a for a, b in zip(at, at[1:])][:4]
    assert pauses[0] >= 0.7 and pauses[3] > pauses[0] * 2, pauses
    pulled.wait_log("intake works again: after=")


def test_a_server_that_is_not_there_yet(make_spool):
    late = BotApi()
    port = late.port
    late.stop()
    spool = make_spool()
    spool.add_bot("shop", api_root=f"http://127.0.0.1:{port}")
    spool.configure(deliver="pull")
    spool.start()
    spool.wait_log("intake fails")
    late = BotApi(port=port)
    try:
        late.generate(1)
        spool.wait_counts(pending=1)
    finally:
        late.stop()


def test_a_name_that_does_not_resolve(make_spool):
    spool = make_spool()
    spool.add_bot("shop", api_root="http://no-such-host.invalid:1")
    spool.configure(deliver="pull")
    spool.start()
    spool.wait_log("no-such-host.invalid")
    spool.stop()


@pytest.mark.parametrize("kind", ["hang", "half_open"])
def test_a_silent_connection_does_not_hang_intake(pulled, api, kind):
    """The hard deadline is the poll's time-out and 10 s."""
    pulled.configure(poll_timeout="1s")
    api.generate(1)
    api.fault(kind)
    pulled.start()
    pulled.wait_counts(pending=1, timeout=40)
    at = asked_at(api)
    assert 9 < at[1] - at[0] < 16


@pytest.mark.parametrize("how", ["eof", "reset"])
def test_an_idle_poll_that_ends_is_an_empty_answer(pulled, api, how):
    pulled.start()
    wait_until(lambda: api.state()["waiting"], "a poll waits")
    asked = api.log()[-1]["at"]
    wait_until(lambda: api.state()["now"] - asked > 10500, "it was idle for 10 s")
    api.control("end_poll", how=how)
    api.generate(1)
    pulled.wait_counts(pending=1, timeout=5)
    assert "intake fails" not in pulled.log()


def test_an_empty_answer_at_once_is_not_followed_within_a_second(pulled, api):
    api.fault("empty", count=3)
    pulled.start()
    wait_until(lambda: len(api.log()) >= 4, "four polls")
    at = asked_at(api)
    assert min(b - a for a, b in zip(at, at[1:])) >= 0.9


def test_slow_answers_are_read(pulled, api):
    api.generate(3)
    api.fault("drip", ms=1)
    pulled.start()
    pulled.wait_counts(pending=3)


def test_a_large_answer(pulled, api):
    api.generate(30, size=400_000)
    pulled.start()
    pulled.wait_counts(pending=30)


POISON = {
    "broken JSON": b'{"update_id":@ID@,"message":{{}',
    "no update_id": b'{"message":{"chat":{"id":3},"text":"no id"}}',
    "invalid UTF-8": b'{"update_id":@ID@,\n"message":{"chat":{"id":3},"text":"\xff\xfe\xc3"}}',
    "a 40-digit number": b'{"update_id":@ID@,\n"message":{"chat":{"id":3},"date":' + b"1234567890" * 4 + b"}}",
    "a 40-digit chat": b'{"update_id":@ID@,\n"message":{"chat":{"id":' + b"1234567890" * 4 + b"}}}",
    "not an object": b'"text"',
    "deeply nested": b'{"update_id":@ID@,\n"message":' + b'{"a":' * 500 + b"1" + b"}" * 500 + b"}",
    "an unknown kind": b'{"update_id":@ID@,\n"hologram":{"chat":{"id":3}}}',
}


@pytest.mark.parametrize("poison", POISON)
def test_a_poison_update_stops_nothing(pulled, api, poison):
    api.generate(3)
    api.inject_raw(POISON[poison])
    api.generate(3)
    pulled.start()

    def over():
        counts = pulled.counts()
        return counts["pending"] + counts["dead"] == 7
    wait_until(over, "seven events", 60)
    wait_until(lambda: api.state()["queued"] == 0, "all is confirmed", 60)
    counts = pulled.counts()
    if poison in ("broken JSON", "no update_id", "not an object"):
        assert counts["dead"] == 1
        assert pulled.events(state="dead")[0]["reason"] == "rejected"
    else:
        assert counts["dead"] == 0


def test_several_bots_on_connections_of_their_own(make_api, make_spool):
    tokens = (TOKEN, "777:BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB")
    api = make_api(tokens=tokens)
    spool = make_spool(api)
    spool.add_bot("second", token=tokens[1], api_root=api.url, deliver="pull")
    spool.configure(deliver="pull")
    api.generate(5)
    api.generate(6, bot=777)
    api.fault("hang", bot=777)
    spool.start()
    spool.wait_counts(pending=5)
    assert api.log()[0]["conn"] != api.log(bot=777)[0]["conn"]


# ---- TLS

def tls_spool(make_api, make_spool, certificates, which, ca=True):
    api = make_api(tls=certificates[which])
    spool = make_spool(api)
    spool.configure(deliver="pull", **({"ca_file": certificates["ca"]} if ca else {}))
    api.generate(2)
    return api, spool


def test_tls_with_a_good_certificate(make_api, make_spool, certificates):
    api, spool = tls_spool(make_api, make_spool, certificates, "good")
    spool.start()
    spool.wait_counts(pending=2)


@pytest.mark.parametrize("which,ca", [("wrong host", True), ("expired", True), ("self-signed", True), ("good", False)])
def test_tls_that_must_be_refused(make_api, make_spool, certificates, which, ca):
    api, spool = tls_spool(make_api, make_spool, certificates, which, ca)
    spool.start()
    spool.wait_log("intake fails")
    assert "certificate" in spool.log()
    assert api.log() == []
    assert spool.counts()["pending"] == 0


def test_a_plain_poll_to_a_tls_server_fails(make_api, make_spool, certificates):
    api = make_api(tls=certificates["good"])
    spool = make_spool()
    spool.add_bot("shop", api_root=f"http://localhost:{api.port}")
    spool.configure(deliver="pull")
    spool.start()
    spool.wait_log("intake fails")


def test_time_between_polls_when_nothing_comes(pulled, api):
    pulled.configure(poll_timeout="1s")
    pulled.start()
    wait_until(lambda: len(api.log()) >= 3, "three polls")
    at = asked_at(api)
    assert all(0.8 < b - a < 4 for a, b in zip(at, at[1:])), at
