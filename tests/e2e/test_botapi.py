"""The test server itself: does it behave as Telegram's Bot API does? All other tests lean on it."""
import http.client
import json
import socket
import threading
import time

import pytest

from harness import TOKEN, BotApi, wait_until

FIRST = 1000


@pytest.fixture
def api(make_api):
    return make_api("--first-id", str(FIRST))


def ids(answer):
    status, body = answer
    assert status == 200, body
    return [u["update_id"] for u in body["result"]]


def get(api, **args):
    """A poll that is no quick repetition of the one before, which would be limited to one update."""
    return ids(api.call("getUpdates", **args))


class Later(threading.Thread):
    """A call in a thread of its own."""

    def __init__(self, api, method="getUpdates", **args):
        super().__init__(daemon=True)
        self.run = lambda: setattr(self, "answer", api.call(method, **args))
        self.start()

    def result(self):
        self.join(60)
        return self.answer


def waits(api):
    wait_until(lambda: api.state()["waiting"], "a poll waits")


def test_offset_absent_or_zero_confirms_nothing(api):
    api.generate(3)
    assert get(api) == [1000, 1001, 1002]
    assert get(api, offset=0, limit=2)[0] == 1000
    assert api.state()["confirmed"] == 0


def test_offset_confirms_on_arrival(api):
    api.generate(5)
    assert get(api, offset=1003) == [1003, 1004]
    assert (api.state()["head"], api.state()["confirmed"]) == (1003, 3)
    api.fault("lost")
    with pytest.raises((ConnectionError, http.client.BadStatusLine)):
        api.call("getUpdates", offset=1004)
    assert api.state()["confirmed"] == 4


def test_negative_offset_deletes_all_but_the_last(api):
    api.generate(10)
    assert get(api, offset=-3) == [1007, 1008, 1009]
    assert api.state()["deleted"] == 7
    assert get(api, offset=-100) == [1007, 1008, 1009]


@pytest.mark.parametrize("ahead,confirmed", [(0, 4), (10, 4), (11, 0), (10**6, 0)])
def test_offset_at_and_behind_the_tail(api, ahead, confirmed):
    api.generate(4)
    assert len(get(api, offset=1004 + ahead)) == 4 - confirmed
    assert api.state()["confirmed"] == confirmed


def test_offset_in_the_past_or_above_all_serves_from_the_head(make_api):
    api = make_api("--first-id", "500000")
    api.generate(3)
    assert len(get(api, offset=2_000_000_000)) == 3
    assert len(get(api, offset=500000 - 100001)) == 3
    assert len(get(api, offset=500000 - 100000)) == 3
    assert api.state()["confirmed"] == 0


def test_limit_is_clamped_and_counts(api):
    api.generate(150)
    assert len(get(api, offset=1)) == 100
    assert len(get(api, offset=2, limit=1000)) == 100
    assert len(get(api, offset=3, limit=0)) == 1
    assert len(get(api, offset=4, limit=7)) == 7
    assert len(get(api, offset=5, limit="nonsense")) == 100


def test_same_offset_within_half_a_second_gives_one(api):
    api.generate(5)
    assert len(get(api, offset=1000)) == 5
    assert len(get(api, offset=1000)) == 1
    assert len(get(api, offset=1001)) == 4


def test_same_offset_within_three_seconds_waits_three(api):
    assert get(api, offset=77) == []
    start = time.monotonic()
    assert get(api, offset=77) == []
    assert 2.5 < time.monotonic() - start < 5


def test_answer_stops_near_4_mib(api):
    api.generate(12, size=500_000)
    assert len(get(api)) == 8
    assert api.request("POST", "/control/inject", json.dumps({"updates": [{"members": "x" * 600_000}]}))[0] == 400


def test_long_poll_ends_with_an_update(api):
    poll = Later(api, offset=5, timeout=50)
    waits(api)
    start = time.monotonic()
    api.generate(2)
    assert ids(poll.result())[0] == 1000
    assert time.monotonic() - start < 5


def test_long_poll_ends_with_its_time(api):
    start = time.monotonic()
    assert get(api, offset=5, timeout=1) == []
    assert 0.9 < time.monotonic() - start < 5


def test_the_older_poll_fails_only_when_the_newer_waits(api):
    older = Later(api, offset=1, timeout=50)
    waits(api)
    api.call("getUpdates", offset=2)  # does not wait: timeout 0
    assert api.state()["waiting"] and api.state()["conflicts"] == 0
    newer = Later(api, offset=3, timeout=50)
    status, answer = older.result()
    assert (status, answer["error_code"]) == (409, 409)
    assert answer["description"] == ("Conflict: terminated by other getUpdates request; make sure that only one bot "
                                     "instance is running")
    api.generate(1)
    assert ids(newer.result()) == [1000]


def test_a_client_that_left_is_no_rival(api):
    with socket.create_connection(("127.0.0.1", api.port)) as s:
        s.sendall(f"GET /bot{TOKEN}/getUpdates?timeout=50 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        waits(api)
    wait_until(lambda: not api.state()["waiting"], "the poll is forgotten")
    assert api.state()["conflicts"] == 0


def test_webhook_conflicts(api):
    poll = Later(api, timeout=50)
    waits(api)
    assert api.call("setWebhook", url="https://example.org/hook")[1]["result"] is True
    assert poll.result()[1]["description"] == "Conflict: terminated by setWebhook request"
    status, answer = api.call("getUpdates")
    assert status == 409
    assert answer["description"] == ("Conflict: can't use getUpdates method while webhook is active; use deleteWebhook "
                                     "to delete the webhook first")
    assert api.call("getWebhookInfo")[1]["result"]["url"] == "https://example.org/hook"
    api.generate(3)
    assert api.call("deleteWebhook")[1]["result"] is True
    assert api.call("getWebhookInfo")[1]["result"]["pending_update_count"] == 3
    assert api.call("deleteWebhook", drop_pending_updates=True)[0] == 200
    assert api.state()["queued"] == 0


def test_allowed_updates_apply_when_made_and_are_remembered(api):
    api.call("getUpdates", offset=1, allowed_updates=["message", "chat_member"])
    assert api.generate(4, kinds=["message", "poll"])["made"] == 2
    api.call("getUpdates", offset=2)
    api.call("getUpdates", offset=3, allowed_updates="not a list")
    assert api.generate(1, kinds=["chat_member"])["made"] == 1
    for i, default in enumerate(([], ["nothing_known"])):
        api.call("getUpdates", offset=4, allowed_updates=["message"])
        api.call("getUpdates", offset=5 + i, allowed_updates=default)
        assert api.generate(2, kinds=["poll", "chat_member"])["made"] == 1
    assert api.state()["not_allowed"] == 4


@pytest.mark.parametrize("kind,seconds", [("inline_query", 30), ("callback_query", 150), ("shipping_query", 150),
                                          ("chosen_inline_result", 600), ("message", 86400)])
def test_unfetched_updates_die_of_age(api, kind, seconds):
    api.generate(2, kinds=[kind])
    api.control("advance", ms=seconds * 1000 - 5000)
    assert api.state()["queued"] == 2
    api.control("advance", ms=6000)
    assert (api.state()["queued"], api.state()["expired"]) == (0, 2)


def test_the_bytes_of_an_answer(api):
    api.control("inject", updates=[{"kind": "message", "members": '"message":{"text":"a"}'}])
    _, headers, body = api.request("GET", f"/bot{TOKEN}/getUpdates")
    assert body == b'{"ok":true,"result":[{"update_id":1000,\n"message":{"text":"a"}}]}'
    assert headers["Content-Type"] == "application/json"


def test_raw_entries_come_as_they_are(api):
    assert api.inject_raw(b'{"update_id":@ID@,"x":"\xff"}', b"{broken") == [1000, 1001]
    body = api.request("GET", f"/bot{TOKEN}/getUpdates")[2]
    assert body == b'{"ok":true,"result":[{"update_id":1000,"x":"\xff"},{broken]}'


def test_next_id_resets_only_an_empty_queue(api):
    api.generate(1)
    with pytest.raises(AssertionError, match="not empty"):
        api.control("next_id", id=500)
    assert get(api, offset=1001) == []
    api.control("next_id", id=500)
    api.generate(2)
    assert get(api, offset=1002) == [500, 501]  # in the future: confirms nothing


@pytest.mark.parametrize("token,status", [("123456:WRONG", 401), ("999:AAAA", 401), ("nonsense", 404), ("", 404)])
def test_wrong_tokens(api, token, status):
    got, answer = api.call("getMe", token=token)
    assert (got, answer["error_code"], answer["ok"]) == (status, status, False)


def test_names_and_ways_of_passing_arguments(api):
    api.generate(9)
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    boundary = "xyz"
    multipart = "".join(f'--{boundary}\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n'
                        for k, v in {"limit": 4, "offset": 1004}.items()) + f"--{boundary}--\r\n"
    ways = [("GET", "?limit=2&offset=1001", None, {}, 2),
            ("POST", "", "limit=3&offset=1002", form, 3),
            ("POST", "?limit=1", "limit=3&offset=1003", form, 1),
            ("POST", "", multipart, {"Content-Type": f"multipart/form-data; boundary={boundary}"}, 4)]
    for method, query, body, headers, n in ways:
        for name in ("getUpdates",):
            status, _, answer = api.request(method, f"/bot{TOKEN}/{name}{query}", body, headers)
            assert len(json.loads(answer)["result"]) == n, (query, body)
    assert api.state()["head"] == 1004
    for name in ("GETME", "getme", "test/getMe"):
        assert api.call(name)[1]["result"]["id"] == 123456


def test_other_methods_are_recorded(api):
    status, answer = api.call("sendMessage", chat_id=7, text="naïve")
    assert (status, answer["result"]["chat"]["id"], answer["result"]["text"]) == (200, 7, "naïve")
    assert api.log(method="sendMessage")[0]["args"] == {"chat_id": "7", "text": "naïve"}
    assert api.call("noSuchMethod")[0] == 404


def test_the_log_tells_what_was_asked(api):
    c = api.connect()
    for offset in (5, 6):
        api.call("getUpdates", connection=c, offset=offset, limit=3, timeout=0, allowed_updates=["poll"])
    api.call("getUpdates")
    one, two, three = api.log()
    assert (one["offset"], one["limit"], one["timeout"], one["allowed_updates"]) == (5, 3, 0, '["poll"]')
    assert one["conn"] == two["conn"] != three["conn"]
    assert three["offset"] is None and three["status"] == 200
    c.close()


def test_fault_429(api):
    api.fault("status", status=429, retry_after=7)
    status, headers, body = api.request("GET", f"/bot{TOKEN}/getUpdates")
    assert (status, headers["Retry-After"], json.loads(body)["parameters"]["retry_after"]) == (429, "7", 7)
    assert api.request("GET", f"/bot{TOKEN}/getUpdates")[0] == 200


def test_faults_in_front_confirm_nothing(api):
    api.generate(3)
    api.fault("status", count=2)
    api.fault("empty")
    for status in (502, 502, 200):
        got, headers, body = api.request("GET", f"/bot{TOKEN}/getUpdates?offset=1002")
        assert got == status
    assert json.loads(body)["result"] == []
    assert api.state()["confirmed"] == 0 and api.state()["faults"] == 0


def test_faults_of_the_connection(api):
    api.generate(3)

    def ask():
        return api.request("GET", f"/bot{TOKEN}/getUpdates")
    for kind in ("reset_before", "lost", "close_before"):
        api.fault(kind)
        with pytest.raises((ConnectionError, http.client.BadStatusLine)):
            ask()
    api.fault("cut", at=30)
    with pytest.raises(http.client.IncompleteRead) as e:
        ask()
    assert len(e.value.partial) == 30
    api.fault("reset_after", at=30)
    with pytest.raises((ConnectionError, http.client.IncompleteRead)):
        ask()
    for kind in ("hang", "half_open"):
        api.fault(kind, ms=300)
        with pytest.raises((http.client.IncompleteRead, http.client.BadStatusLine)):
            ask()
    api.fault("drip", ms=1)
    assert ask()[0] == 200
    api.fault("bad_json")
    api.fault("broken_update", at=1)
    for _ in range(2):
        with pytest.raises(json.JSONDecodeError):
            json.loads(ask()[2])
    assert json.loads(ask()[2])["ok"]


@pytest.mark.parametrize("how", ["eof", "reset"])
def test_a_waiting_poll_can_be_ended(api, how):
    errors = []

    def poll():
        try:
            api.call("getUpdates", timeout=50)
        except OSError as e:
            errors.append(type(e).__name__)
        except http.client.HTTPException as e:
            errors.append(type(e).__name__)
    t = threading.Thread(target=poll, daemon=True)
    t.start()
    waits(api)
    assert api.control("end_poll", how=how)["ended"]
    t.join(20)
    assert errors == ["RemoteDisconnected" if how == "eof" else "ConnectionResetError"]


def test_two_bots_have_queues_of_their_own(make_api):
    api = make_api(tokens=(TOKEN, "777:BBBB"))
    api.generate(2, bot=777)
    assert len(ids(api.call("getUpdates"))) == 0
    assert len(ids(api.call("getUpdates", token="777:BBBB"))) == 2


def test_tls(make_api, certificates):
    api = make_api(tls=certificates["good"])
    api.generate(150, size=20_000)
    assert len(get(api)) == 100


def test_flood(make_api):
    api = make_api("--flood", "250", "--size", "1024", "--batch", "100")
    offset, seen = 0, []
    for expected in (100, 100, 50, 0):
        status, answer = api.call("getUpdates", offset=offset)
        assert len(answer["result"]) == expected
        seen += [u["update_id"] for u in answer["result"]]
        offset = seen[-1] + 1
    assert seen == list(range(100_000_000, 100_000_250))
    body = api.request("GET", f"/bot{TOKEN}/getUpdates?limit=1")[2]
    assert 1024 <= len(body) - len(b'{"ok":true,"result":[]}') < 1060


def test_generated_kinds(api):
    every = ["message", "edited_message", "channel_post", "edited_channel_post", "inline_query", "chosen_inline_result",
             "callback_query", "shipping_query", "pre_checkout_query", "poll", "poll_answer", "my_chat_member",
             "chat_join_request", "chat_boost", "business_message", "purchased_paid_media"]
    api.generate(len(every), kinds=every)
    result = api.call("getUpdates")[1]["result"]
    assert [list(u)[1] for u in result] == every
    api.generate(12, kinds="varied", chats=4)
    result = api.call("getUpdates", offset=result[-1]["update_id"] + 1)[1]["result"]
    assert len({list(u)[1] for u in result}) > 4


def test_the_server_ends_on_sigterm():
    api = BotApi()
    api.stop()
    assert api.process.returncode == -15
