"""Delivery: exec, worker, http and pull; retries, order, the breaker, leases."""
import http.server
import json
import os
import ssl
import threading
import time

import pytest

from harness import wait_until

FAST = {"retry": "[50ms]", "jitter": 0}


def in_order(record, word="end"):
    """Whether each lane saw its events by growing id."""
    last = {}
    for row in record.lines(word):
        number = int(row["update_id"])
        if number <= last.get(row["lane"], -1):
            return False
        last[row["lane"]] = number
    return True


# ---- exec

def test_exec_hands_over_the_bytes_and_the_envelope(spool, api):
    out = os.path.join(spool.dir, "seen")
    handler = spool.shell_handler(f'cat >>{out}; env | grep ^TGSPOOL_ | sort >>{out}.env')
    spool.configure(command=handler)
    api.inject_message(42, "hello")
    spool.start()
    spool.wait_counts(done=1)
    update = api.state()["tail"] - 1
    with open(out, "rb") as f:
        body = f.read()
    assert body.startswith(b'{"update_id":%d,\n"message":' % update) and b"hello" in body
    env = dict(line.rstrip("\n").split("=", 1) for line in open(out + ".env"))
    assert env["TGSPOOL_ID"] == f"shop/{update}"
    assert (env["TGSPOOL_BOT"], env["TGSPOOL_KIND"], env["TGSPOOL_ATTEMPT"]) == ("shop", "message", "1")
    assert env["TGSPOOL_KEY"].startswith(f"123456:{update}:")
    assert int(env["TGSPOOL_AGE"].split(".")[0]) < 60
    assert abs(float(env["TGSPOOL_RECEIVED_AT"]) - time.time()) < 60


def test_exec_each_chat_in_order_and_chats_side_by_side(spool, api):
    spool.configure(command=spool.shell_handler("sleep 0.02"), concurrency=4)
    api.generate(80, chats=8)
    spool.start()
    spool.wait_counts(done=80)
    assert in_order(spool.record)
    open_lanes, most = set(), 0
    for row in spool.record.lines():
        if row["word"] == "start":
            assert row["lane"] not in open_lanes, "two of one lane at once"
            open_lanes.add(row["lane"])
        else:
            open_lanes.discard(row["lane"])
        most = max(most, len(open_lanes))
    assert 2 <= most <= 4


def test_exec_retries_on_the_schedule_and_then_is_dead(spool, api):
    handler = spool.shell_handler('echo "no stock" >&2; exit 3')
    spool.configure(command=handler, retry="[200ms, 600ms]", jitter=0, max_attempts=3)
    api.inject_message(1, "x")
    spool.start()
    spool.wait_counts(dead=1)
    assert [r["attempt"] for r in spool.record.lines("start")] == ["1", "2", "3"]
    event = spool.events()[0]
    assert (event["reason"], event["attempts"]) == ("attempts", 3)
    assert "no stock" in event["error"]
    at = [h["at"] for h in event["history"]]
    assert 0.2 <= at[1] - at[0] < 1.5 and 0.6 <= at[2] - at[1] < 2
    assert len({r["key"] for r in spool.record.lines("start")}) == 1


def test_exec_a_retry_holds_only_its_own_chat(spool, api):
    handler = spool.shell_handler(
        'case $TGSPOOL_LANE in *1) [ $TGSPOOL_ATTEMPT -ge 3 ] || exit 1;; esac')
    spool.configure(command=handler, retry="[400ms]", jitter=0)
    for i in range(4):
        api.inject_message(1, str(i))
        api.inject_message(2, str(i))
    spool.start()
    spool.wait_counts(done=8)
    assert in_order(spool.record)
    lanes = [r["lane"][-1] for r in spool.record.lines("end")]
    assert lanes[:4] == ["2"] * 4


@pytest.mark.parametrize("body,reason", [("exit 65", "rejected")])
def test_exec_rejected(spool, api, body, reason):
    spool.configure(command=spool.shell_handler(body))
    api.inject_message(1, "x")
    spool.start()
    spool.wait_counts(dead=1)
    assert spool.events()[0]["reason"] == reason
    assert len(spool.record.lines("start")) == 1


def test_exec_a_handler_gives_the_time_of_its_retry(spool, api):
    handler = spool.shell_handler('[ $TGSPOOL_ATTEMPT = 2 ] || { echo retry-after: 2 >&2; exit 1; }')
    spool.configure(command=handler, **FAST)
    api.inject_message(1, "x")
    spool.start()
    spool.wait_counts(done=1)
    event = spool.events()[0]
    assert 2 <= event["finished_at"] - event["history"][0]["at"] < 4


def test_exec_past_its_lease_ends_with_all_its_children(spool, api):
    pid_file = os.path.join(spool.dir, "pid")
    handler = spool.shell_handler(
        f'[ $TGSPOOL_ATTEMPT = 1 ] || {{ record end; exit 0; }}\n'
        f'trap "" TERM\nsleep 300 &\necho $! >{pid_file}\nwait\nsleep 300')
    spool.configure(command=handler, lease="1s", **FAST)
    api.inject_message(1, "x")
    spool.start()
    spool.wait_counts(done=1)
    pid = int(open(pid_file).read())
    wait_until(lambda: not os.path.exists(f"/proc/{pid}") or "Z" in open(f"/proc/{pid}/stat").read(),
               "the handler's child is gone")
    assert spool.events()[0]["attempts"] == 2


def test_exec_a_handler_that_cannot_start_costs_nothing(spool, api):
    path = os.path.join(spool.dir, "not-there-yet")
    spool.configure(command=path, **FAST)
    api.generate(5, chats=5)
    spool.start()
    wait_until(lambda: spool.counts()["breaker"]["open"], "the breaker opens")
    assert spool.counts()["dead"] == 0
    os.rename(spool.shell_handler(), path)
    spool.wait_counts(done=5, timeout=90)
    assert {e["attempts"] for e in spool.events()} == {1}


def test_a_broken_deploy_opens_the_breaker(spool, api):
    broken = spool.write("broken", "")
    spool.configure(command=spool.shell_handler(f"[ ! -e {broken} ] || exit 1"), **FAST, max_attempts=8)
    api.generate(60, chats=12)
    spool.start()
    wait_until(lambda: spool.counts()["breaker"]["open"], "the breaker opens")
    os.unlink(broken)
    spool.wait_counts(done=60, timeout=90)
    assert in_order(spool.record)


# ---- worker

def test_worker_one_after_the_other(spool, api):
    spool.configure(deliver="worker", concurrency=2, command=spool.python_handler('''
for e in requests():
    record("start", e)
    assert "message" in e["update"], e
    record("end", e)
    answer(e, ok=True)
'''))
    api.generate(200, chats=10)
    spool.start()
    spool.wait_counts(done=200)
    assert len(spool.record) == 200 and in_order(spool.record)


def test_worker_failures(spool, api):
    spool.configure(deliver="worker", **FAST, command=spool.python_handler('''
for e in requests():
    record("start", e)
    text = e["update"]["message"]["text"]
    if text == "fail" and e["attempt"] < 3:
        answer(e, ok=False, error="not yet")
    elif text == "dead":
        answer(e, ok=False, error="never", dead=True)
    elif text == "die" and e["attempt"] < 2:
        os._exit(1)
    elif text == "slow" and e["attempt"] < 2:
        answer(e, ok=False, retry_after=1)
    else:
        record("end", e)
        answer(e, ok=True)
'''))
    for chat, text in enumerate(["fail", "dead", "die", "slow", "fine"]):
        api.inject_message(chat + 1, text)
    spool.start()
    spool.wait_counts(done=4, dead=1)
    attempts = {e["chat"]: e["attempts"] for e in spool.events()}
    assert attempts == {1: 3, 2: 1, 3: 2, 4: 2, 5: 1}
    assert spool.events(state="dead")[0]["reason"] == "rejected"


def test_worker_extends_its_lease(spool, api):
    spool.configure(deliver="worker", lease="2s", command=spool.python_handler('''
for e in requests():
    for _ in range(4):
        answer(e, extend="2s")
        time.sleep(1)
    record("end", e)
    answer(e, ok=True)
'''))
    api.inject_message(1, "x")
    spool.start()
    spool.wait_counts(done=1)
    assert spool.events()[0]["attempts"] == 1


def test_worker_that_talks_nonsense(spool, api):
    spool.configure(deliver="worker", **FAST, max_attempts=2, command=spool.python_handler('''
for e in requests():
    print("this is no JSON", flush=True)
    answer({"id": "somebody/else"}, ok=True)
    answer(e, ok=e["attempt"] == 2)
'''))
    api.inject_message(1, "x")
    spool.start()
    wait_until(lambda: spool.counts()["done"] + spool.counts()["dead"] == 1, "it ends one way or the other")


# ---- http

class Hook(http.server.ThreadingHTTPServer):
    """A webhook bot: answers what `decide` says, a status or (status, headers)."""

    daemon_threads = True

    def __init__(self, decide, tls=None):
        self.seen = []
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.seen.append((self.path, self.headers, body))
                answer = decide(self.headers, body)
                status, headers = answer if isinstance(answer, tuple) else (answer, {})
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args):
                pass
        super().__init__(("127.0.0.1", 0), Handler)
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.socket = context.wrap_socket(self.socket, server_side=True)
        threading.Thread(target=self.serve_forever, daemon=True).start()


@pytest.fixture
def make_hook():
    hooks = []

    def make(decide=lambda headers, body: 200, tls=None):
        hooks.append(Hook(decide, tls))
        return hooks[-1]
    yield make
    for hook in hooks:
        hook.shutdown()
        hook.server_close()


def test_http_posts_as_telegram_would(spool, api, make_hook):
    hook = make_hook()
    secret = spool.write("hook.secret", "Abc-123_secret\n")
    spool.configure(deliver="http", url=f"http://127.0.0.1:{hook.server_port}/bot/hook?x=1", url_secret_file=secret)
    api.inject_message(7, "hi")
    spool.start()
    spool.wait_counts(done=1)
    path, headers, body = hook.seen[0]
    update = api.state()["tail"] - 1
    assert path == "/bot/hook?x=1"
    assert body.startswith(b'{"update_id":%d,\n' % update)
    assert headers["Content-Type"] == "application/json"
    assert headers["X-Telegram-Bot-Api-Secret-Token"] == "Abc-123_secret"
    assert headers["X-Tgspool-Id"] == f"shop/{update}" and headers["X-Tgspool-Attempt"] == "1"
    assert headers["Idempotency-Key"].startswith(f"123456:{update}:")


def test_http_statuses(spool, api, make_hook):
    def decide(headers, body):
        text = json.loads(body)["message"]["text"]
        first = headers["X-Tgspool-Attempt"] == "1"
        return {"gone": 410, "error": 500 if first else 204, "limited": (429, {"Retry-After": "1"}) if first else 200,
                "fine": 299}[text]
    hook = make_hook(decide)
    spool.configure(deliver="http", url=f"http://127.0.0.1:{hook.server_port}/", **FAST)
    for chat, text in enumerate(["error", "gone", "fine"]):
        api.inject_message(chat + 1, text)
    spool.start()
    spool.wait_counts(done=2, dead=1)
    assert spool.events(state="dead")[0]["reason"] == "rejected"
    assert {e["chat"]: e["attempts"] for e in spool.events()} == {1: 2, 2: 1, 3: 1}


def test_http_429_is_free_and_waits(spool, api, make_hook):
    times = []

    def decide(headers, body):
        times.append(time.monotonic())
        return (429, {"Retry-After": "2"}) if len(times) == 1 else 200
    hook = make_hook(decide)
    spool.configure(deliver="http", url=f"http://127.0.0.1:{hook.server_port}/", **FAST)
    api.inject_message(1, "x")
    spool.start()
    spool.wait_counts(done=1)
    assert times[1] - times[0] >= 1.9
    assert spool.events()[0]["attempts"] == 1


@pytest.mark.parametrize("status", [502, 503, 504])
def test_http_unavailable_costs_nothing(spool, api, make_hook, status):
    answers = [status] * 4
    hook = make_hook(lambda headers, body: answers.pop() if answers else 200)
    spool.configure(deliver="http", url=f"http://127.0.0.1:{hook.server_port}/", max_attempts=2, **FAST)
    api.generate(3)
    spool.start()
    spool.wait_counts(done=3)
    assert {e["attempts"] for e in spool.events()} == {1}


def test_http_a_bot_that_is_down_finds_all_in_order(spool, api, make_hook):
    hook = make_hook()
    port = hook.server_port
    hook.shutdown()
    hook.server_close()
    spool.configure(deliver="http", url=f"http://127.0.0.1:{port}/", max_attempts=2, concurrency=1, **FAST)
    api.generate(20, chats=1)
    spool.start()
    spool.wait_counts(pending=20)
    wait_until(lambda: spool.counts()["breaker"]["open"], "the breaker opens")
    http.server.ThreadingHTTPServer.allow_reuse_address = True
    seen = []

    class Again(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            seen.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["update_id"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args):
            pass
    again = http.server.ThreadingHTTPServer(("127.0.0.1", port), Again)
    threading.Thread(target=again.serve_forever, daemon=True).start()
    try:
        spool.wait_counts(done=20, timeout=90)
        assert seen == sorted(seen) and len(seen) == 20
        assert spool.counts()["dead"] == 0
    finally:
        again.shutdown()
        again.server_close()


@pytest.mark.parametrize("which,good", [("good", True), ("wrong host", False), ("self-signed", False)])
def test_http_by_tls(spool, api, make_hook, certificates, which, good):
    hook = make_hook(tls=certificates[which])
    spool.configure(deliver="http", url=f"https://localhost:{hook.server_port}/", **FAST)
    api.inject_message(1, "x")
    spool.start(env={"SSL_CERT_FILE": certificates["ca"]})
    if good:
        spool.wait_counts(done=1)
    else:
        wait_until(lambda: spool.counts()["breaker"]["open"] or spool.counts()["dead"], "it is refused")
        assert hook.seen == []


# ---- pull

@pytest.fixture
def pulled(spool):
    spool.configure(deliver="pull", **FAST)
    return spool.start()


def claim(spool, **args):
    status, answer = spool.api("POST", "/v1/claim", {"bot": "shop", **args})
    assert status == 200, answer
    return answer["events"]


def test_pull_claim_ack_nack(pulled, api):
    api.generate(6, chats=3)
    pulled.wait_counts(pending=6)
    events = claim(pulled, max=10, consumer="a")
    assert len(events) == 3 and len({e["lane"] for e in events}) == 3, "one a lane"
    assert events[0]["update"]["update_id"] == events[0]["update_id"]
    one, two, three = [{"id": e["id"], "lease": e["lease"]} for e in events]
    assert pulled.api("POST", "/v1/ack", one)[0] == 200
    status, answer = pulled.api("POST", "/v1/nack", {"events": [{**two, "error": "later"}, {**three, "dead": True}]})
    assert status == 200 and all(e["ok"] for e in answer["events"])
    assert pulled.counts()["done"] == 1 and pulled.counts()["dead"] == 1
    assert pulled.api("POST", "/v1/ack", one)[0] == 409, "its lease is over"
    wait_until(lambda: claim(pulled, max=10, wait=1, lease="1s"), "the others can be had")


def test_pull_waits_for_an_update(pulled, api):
    got = []
    t = threading.Thread(target=lambda: got.extend(claim(pulled, wait=20)), daemon=True)
    t.start()
    wait_until(lambda: api.state()["waiting"], "a poll waits")
    api.generate(1)
    t.join(20)
    assert len(got) == 1


def test_pull_a_consumer_that_died_loses_its_lease(pulled, api):
    api.generate(1)
    pulled.wait_counts(pending=1)
    assert claim(pulled, lease="1s")[0]["attempt"] == 1
    again = wait_until(lambda: claim(pulled, wait=5), "the event comes back")
    assert again[0]["attempt"] == 2


def test_pull_extend(pulled, api):
    api.generate(1)
    pulled.wait_counts(pending=1)
    e = claim(pulled, lease="1s")[0]
    assert pulled.api("POST", "/v1/extend", {"id": e["id"], "lease": e["lease"], "by": "60s"})[0] == 200
    assert claim(pulled, wait=2) == []
    assert pulled.api("POST", "/v1/ack", {"id": e["id"], "lease": e["lease"]})[0] == 200


@pytest.mark.parametrize("order,most", [("none", 6), ("bot", 1), ("chat", 2)])
def test_order(spool, api, order, most):
    spool.configure(deliver="pull", order=order, concurrency=100)
    api.generate(6, chats=2)
    spool.start()
    spool.wait_counts(pending=6)
    assert len(claim(spool, max=100)) == most


def test_expired_updates_are_dead(spool, api):
    spool.configure(deliver="pull", expire="{message: 1s}", order="none", concurrency=100)
    api.generate(2, kinds=["message", "poll"])
    spool.start()
    spool.wait_counts(pending=2)
    wait_until(lambda: spool.counts()["oldest_unfinished_age"] >= 2, "they are old")
    assert [e["kind"] for e in claim(spool, max=10, wait=1)] == ["poll"]
    spool.wait_counts(dead=1)
    assert spool.events(state="dead")[0]["reason"] == "expired"
