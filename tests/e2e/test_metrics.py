"""Metrics, health and readiness of the real daemon; what contrib/ has for Prometheus and Grafana, with their own tools."""
import http.client
import json
import os
import re
import shutil
import subprocess
import urllib.parse

import pytest
from harness import TOKEN, UnixConnection, end_process, free_port, has_failpoints, wait_until

TOP = os.path.abspath(os.environ.get("srcdir") or os.path.join(os.path.dirname(__file__), "../.."))
PROMETHEUS = os.path.join(TOP, "contrib/prometheus")
API_TOKEN, PULL_TOKEN = "a" * 40, "b" * 40
SECOND = "222222:AAF0-test-token-that-must-not-be-seen-2"


def need(program):
    if not shutil.which(program):
        pytest.skip(f"no {program}: install prometheus")


def tool(*args, input=None):
    return subprocess.run(args, capture_output=True, text=True, input=input, timeout=60)


def scrape(spool):
    """The metrics by the socket: the text, and a dictionary of its samples."""
    c = UnixConnection(spool.socket)
    try:
        c.request("GET", "/metrics")
        r = c.getresponse()
        assert (r.status, r.getheader("Content-Type")) == (200, "text/plain; version=0.0.4; charset=utf-8")
        text = r.read().decode()
    finally:
        c.close()
    return text, {m[1]: float(m[2]) for m in re.finditer(r"^([a-z].*) (\S+)$", text, re.M)}


def metric(spool, sample):
    return scrape(spool)[1][sample]


def get(port, path, token=None):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        c.request("GET", path, headers={"Authorization": "Bearer " + token} if token else {})
        r = c.getresponse()
        return r.status, r.read().decode()
    finally:
        c.close()


@pytest.fixture
def daemon(make_spool, make_api):
    """Two bots, one that polls and one that takes webhooks, and the API on a port; three updates are done."""
    api = make_api(tokens=(TOKEN, SECOND))
    spool = make_spool(api)
    spool.upstream, spool.port = api, free_port()
    spool.add_bot("hooked", token=SECOND, api_root=api.url, intake="webhook", webhook_url="https://bot.example/hook/hooked",
                  webhook_secret_file=spool.write("secret", "c" * 40), deliver="pull",
                  pull_token_file=spool.write("pull", PULL_TOKEN))
    spool.configure(deliver="exec", command=spool.shell_handler(), poll_timeout="1s",
                    listen={"http": f"127.0.0.1:{spool.port}", "api_token_file": spool.write("api", API_TOKEN),
                            "webhook": f"127.0.0.1:{free_port()}"})
    api.generate(3)
    spool.start()
    spool.wait_counts(done=3)
    return spool


def test_promtool_finds_nothing_wrong(daemon):
    need("promtool")
    text, samples = scrape(daemon)
    r = tool("promtool", "check", "metrics", input=text)
    assert (r.returncode, r.stdout, r.stderr) == (0, "", "")
    assert samples['tgspool_delivered_total{bot="shop",box="in"}'] == 3
    assert samples['tgspool_handler_seconds_count{bot="shop",box="in"}'] == 3
    assert samples['tgspool_webhooks_total{bot="hooked",code="200"}'] == 0
    assert samples["tgspool_db_bytes"] > 0 and samples["tgspool_disk_free_bytes"] > 0
    assert samples["process_resident_memory_bytes"] > 1 << 20
    for secret in (API_TOKEN, "AAF0", "c" * 40):
        assert secret not in text


def test_no_door_without_the_token(daemon):
    for path in "/metrics", "/healthz", "/readyz":
        assert get(daemon.port, path)[0] == 401
        assert get(daemon.port, path, "x" * 40)[0] == 401
        assert get(daemon.port, path, PULL_TOKEN)[0] == 401
    assert "tgspool_build_info" in get(daemon.port, "/metrics", API_TOKEN)[1]
    assert get(daemon.port, "/healthz", API_TOKEN)[0] == 200
    # nobody has set its webhook
    wait_until(lambda: get(daemon.port, "/readyz", API_TOKEN)[0] == 503, "it is seen that no webhook is set")
    reasons = json.loads(get(daemon.port, "/readyz", API_TOKEN)[1])["reasons"]
    assert [(r["what"], r["bot"]) for r in reasons] == [("intake", "hooked")]
    assert "tgspool webhook set hooked" in reasons[0]["message"]


def names_in(text):
    return {re.sub(r"_(bucket|sum|count)$", "", n) for n in re.findall(r"\b(?:tgspool|process)_[a-z_]+", text)}


def test_dashboard_and_rules_speak_of_what_is_there(daemon):
    daemon.upstream.fault("status", method="getUpdates", count=1000)  # so that Telegram is asked what waits
    wait_until(lambda: "tgspool_upstream_pending{bot=\"shop\"}" in scrape(daemon)[1], "what waits is known")
    known = set(re.findall(r"^# TYPE (\S+)", scrape(daemon)[0], re.M))
    with open(os.path.join(TOP, "contrib/grafana/tgspool.json")) as f:
        dashboard = json.load(f)
    expressions = [t["expr"] for p in dashboard["panels"] for t in p["targets"]]
    expressions += [a["expr"] for a in dashboard["annotations"]["list"]]
    expressions += [v["query"]["query"] for v in dashboard["templating"]["list"] if v["type"] == "query"]
    used = names_in(" ".join(expressions))
    assert len(used) > 20 and used <= known
    assert known - used <= {"tgspool_last_received_timestamp_seconds", "tgspool_upstream_asked_age_seconds"}
    with open(os.path.join(PROMETHEUS, "tgspool.rules.yml")) as f:
        rules = f.read()
    used = names_in("\n".join(re.findall(r"expr: (?:\|\n)?((?:.*\n)(?: {10,}.*\n)*)", rules)))
    assert len(used) > 10 and used <= known


def test_every_alert_has_its_rule_and_its_place_in_the_run_book():
    with open(os.path.join(PROMETHEUS, "tgspool.rules.yml")) as f:
        rules = f.read()
    for name in "oldest dead lease intake disk store corruption upstream breaker".split():
        assert f"name: {name}}}" in rules and f"doc/operations.md#{name}\n" in rules
    with open(os.path.join(TOP, "doc/operations.md")) as f:
        headings = set(re.findall(r"^#+ (\S+)$", f.read(), re.M))
    assert set(re.findall(r"doc/operations\.md#(\S+)", rules)) <= headings


def test_rules_fire_when_they_should(tmp_path):
    need("promtool")
    r = tool("promtool", "check", "rules", os.path.join(PROMETHEUS, "tgspool.rules.yml"))
    assert r.returncode == 0, r.stdout + r.stderr
    r = tool("promtool", "test", "rules", os.path.join(PROMETHEUS, "tgspool.rules.test.yml"))
    assert r.returncode == 0, r.stdout + r.stderr


def test_prometheus_scrapes_it(daemon, tmp_path):
    """By the piece of its configuration that we give, with only address and paths put in."""
    need("prometheus")
    port = free_port()
    with open(os.path.join(PROMETHEUS, "tgspool.scrape.yml")) as f:
        config = f.read()
    for old, new in (("/etc/prometheus/tgspool.token", daemon.write("scrape", API_TOKEN + "\n")),
                     ("127.0.0.1:8480", f"127.0.0.1:{daemon.port}"),
                     ("- tgspool.rules.yml", "- " + os.path.join(PROMETHEUS, "tgspool.rules.yml"))):
        assert old in config
        config = config.replace(old, new)
    (tmp_path / "prometheus.yml").write_text("global: {scrape_interval: 1s, evaluation_interval: 1s}\n" + config)
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen(
            ["prometheus", f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data",
             f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)

    def ask(path):
        try:
            status, body = get(port, path)
        except OSError:
            assert process.poll() is None, (tmp_path / "log").read_text()
            return None
        return json.loads(body)["data"] if status == 200 else None

    def value(expr):
        result = (ask("/api/v1/query?query=" + urllib.parse.quote(expr)) or {}).get("result")
        return result and float(result[0]["value"][1])

    try:
        wait_until(lambda: value('up{job="tgspool"}') == 1, "Prometheus has scraped it", 60)
        wait_until(lambda: value('tgspool_delivered_total{bot="shop",box="in"}') == 3, "what it has found", 60)

        def judged():
            rules = [r for g in (ask("/api/v1/rules") or {"groups": []})["groups"] for r in g["rules"]]
            return rules if rules and all(r["health"] != "unknown" for r in rules) else None
        rules = wait_until(judged, "every rule was evaluated", 60)
        assert {r["health"] for r in rules} == {"ok"} and len(rules) >= 14
    finally:
        end_process(process)


def test_a_poll_that_fails(spool, api):
    """It is not ready, says why, asks how much waits, and counts."""
    spool.configure(deliver="pull", poll_timeout="1s")
    spool.start()
    wait_until(lambda: spool.counts()["intake"]["answered_at"], "a good poll")
    assert spool.ask("GET", "/readyz", None, 60) == (200, b'{"ready":true,"reasons":[]}')
    api.fault("status", method="getUpdates", status=502, count=1000)
    api.generate(5)
    wait_until(lambda: spool.counts()["intake"].get("upstream_pending") == 5, "what waits is known", 60)
    status, answer = spool.api("GET", "/readyz")
    assert status == 503 and [r["what"] for r in answer["reasons"]] == ["intake"], answer
    assert metric(spool, 'tgspool_upstream_pending{bot="shop"}') == 5
    assert metric(spool, 'tgspool_poll_errors_total{bot="shop",code="5xx"}') >= 1
    assert spool.counts()["intake"]["errors"]["5xx"] >= 1 and spool.counts()["intake"]["errors"]["401"] == 0
    wait_until(lambda: metric(spool, 'tgspool_intake_failing_seconds{bot="shop"}') > 0, "for how long it fails")
    shown = spool.cli("status")
    assert "5 wait at Telegram" in shown and max(map(len, shown.splitlines())) <= 60
    assert spool.api("POST", "/v1/pause", {"bot": "shop", "what": "intake"})[0] == 200
    wait_until(lambda: spool.api("GET", "/readyz")[0] == 200, "what a person paused is not unready")
    assert metric(spool, 'tgspool_paused{bot="shop",box="in",what="intake"}') == 1


def test_gaps_are_counted_once_and_for_good(spool, api):
    gaps = 'tgspool_upstream_gaps_total{bot="shop"}'
    spool.configure(deliver="pull")
    api.generate(2)
    spool.start()
    spool.wait_counts(pending=2)
    spool.stop()
    api.generate(4)
    api.control("advance", ms=25 * 3600 * 1000)  # they die of age, unseen
    api.generate(1)
    spool.start()
    spool.wait_counts(pending=3)
    assert metric(spool, gaps) == 4
    assert re.search(r"warn  shop: updates missing before update \d+: 4; ", spool.log())
    spool.kill()
    spool.start()
    assert metric(spool, gaps) == 4
    wait_until(lambda: spool.counts()["intake"]["state"] == "asking", "it polls")
    wait_until(lambda: api.state()["queued"] == 0, "all is confirmed")
    api.control("next_id", id=1000)  # as after a quiet week
    api.generate(2)
    spool.wait_counts(pending=5)
    assert metric(spool, gaps) == 4
    assert spool.log().count("updates missing") == 1
    assert "4 updates lost at Telegram" in spool.cli("status")


def test_a_store_that_fails(spool, api):
    """Alive and not ready, and the metrics still come."""
    if not has_failpoints():
        pytest.skip("needs a build with --enable-failpoints")
    spool.configure(deliver="pull")
    api.generate(1)
    spool.start(env={"TGSPOOL_FAILPOINTS": "commit.before_write=errno:5@20+"})

    # it is opened again now and then, until the next write fails: what follows holds most of the time
    def reasons():
        api.generate(1)
        status, answer = spool.api("GET", "/readyz")
        return status == 503 and answer["reasons"]
    found = wait_until(reasons, "a write has failed", 60)
    assert [r["what"] for r in found] == ["store"] and "failpoint" in found[0]["message"]

    def failed():
        samples = scrape(spool)[1]
        return not samples["tgspool_store_healthy"] and samples
    samples = wait_until(failed, "the metrics tell it", 60)
    assert samples["tgspool_store_corrupt"] == 0
    assert 'tgspool_received_total{bot="shop",box="in"}' in samples
    assert spool.api("GET", "/healthz") == (200, {"ok": True})
