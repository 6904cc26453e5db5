"""contrib/alerts as they stand, against a server that stands in for each service: what arrives is what the alert says,
whatever its message holds, and no secret is in the arguments of a process."""
import base64
import hashlib
import hmac
import http.server
import json
import os
import subprocess
import threading
import urllib.parse

import pytest

pytestmark = pytest.mark.once
SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../contrib/alerts")
# what a shell, JSON, a header or a pattern of sed might stumble over
EVIL = 'a "quoted" back\\slash \\n and \\" $(touch /tmp/x) `id` \'; é 漢 %s {"next":"rm"} ,"message":"x" &amp; \\u0041'
NEXT = "tgspool list --bot shop --state dead"


class Service:
    """Takes one kind of answer for all requests, and keeps the requests."""

    def __init__(self, answer=b"{}", status=200):
        service = self
        self.requests = []
        self.answer, self.status = answer, status

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                service.requests.append((self.path, dict(self.headers), body))
                self.send_response(service.status)
                self.send_header("Content-Length", str(len(service.answer)))
                self.end_headers()
                self.wfile.write(service.answer)

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def serve():
    services = []

    def make(*args, **options):
        services.append(Service(*args, **options))
        return services[-1]
    yield make
    for s in services:
        s.close()


@pytest.fixture
def run(tmp_path):
    def go(script, settings, alert=None, code=0, mode=0o600):
        alert = {"alert": "dead", "bot": "shop", "state": "firing", "value": 3, "since": 1796007846.827,
                 "message": EVIL, "next": NEXT, **(alert or {})}
        env = tmp_path / "settings"
        env.write_text("".join(f"{k}='{v}'\n" for k, v in settings.items()))
        env.chmod(mode)
        line = json.dumps(alert, ensure_ascii=False, separators=(",", ":")) + "\n"
        r = subprocess.run([os.path.join(SCRIPTS, script), str(env)], input=line.encode(), capture_output=True, timeout=60)
        assert r.returncode == code, r.stderr.decode()
        return r
    return go


TEXT = f"[alert] tgspool dead, bot shop\n{EVIL}\nnext: {NEXT}"


def test_mail(run, tmp_path):
    fake = tmp_path / "sendmail"
    fake.write_text(f"#!/bin/sh\necho \"$@\" >{tmp_path}/arguments\ncat >{tmp_path}/mail\n")
    fake.chmod(0o700)
    run("mail", {"MAIL_TO": "you@example.org", "MAIL_FROM": "bot@example.org", "SENDMAIL": f"{fake} -a alerts"})
    head, body = (tmp_path / "mail").read_text().split("\n\n", 1)
    assert "To: you@example.org\nFrom: bot@example.org\nSubject: [alert] tgspool dead, bot shop\n" in head
    assert body == f"{EVIL}\n\nnext: {NEXT}\n"
    assert (tmp_path / "arguments").read_text() == "-a alerts -i -t\n"


def test_ntfy(run, serve):
    s = serve()
    run("ntfy", {"NTFY_URL": s.url + "/topic", "NTFY_TOKEN": "tk_secret"})
    (path, headers, body), = s.requests
    assert path == "/topic" and headers["Authorization"] == "Bearer tk_secret"
    assert headers["Title"] == "[alert] tgspool dead, bot shop" and headers["Priority"] == "high"
    assert body.decode() == f"{EVIL}\n\nnext: {NEXT}\n"
    run("ntfy", {"NTFY_URL": s.url + "/topic"}, {"state": "over", "bot": None})
    path, headers, body = s.requests[1]
    assert "Authorization" not in headers and headers["Priority"] == "default"
    assert headers["Title"] == "[over] tgspool dead"
    s.status = 500
    run("ntfy", {"NTFY_URL": s.url + "/topic"}, code=22)


def signature(key, message):
    return base64.b64encode(hmac.new(key.encode(), message.encode(), hashlib.sha256).digest()).decode()


def test_feishu(run, serve):
    s = serve(b'{"code":0,"msg":"success","data":{}}')
    run("feishu", {"FEISHU_WEBHOOK": s.url + "/hook/1", "FEISHU_SECRET": "s3cret"})
    body = json.loads(s.requests[0][2])
    assert body["msg_type"] == "text" and body["content"] == {"text": TEXT}
    assert body["sign"] == signature(body["timestamp"] + "\ns3cret", "")
    run("feishu", {"FEISHU_WEBHOOK": s.url + "/hook/1"})
    assert "sign" not in json.loads(s.requests[1][2])
    s.answer = b'{"code":19021,"msg":"sign match fail"}'
    r = run("feishu", {"FEISHU_WEBHOOK": s.url + "/hook/1"}, code=1)
    assert b"sign match fail" in r.stderr


@pytest.mark.parametrize("secret", ["short", "SEC" + 64 * "9f"])
def test_dingtalk(run, serve, secret):
    s = serve(b'{"errcode":0,"errmsg":"ok"}')
    run("dingtalk", {"DINGTALK_WEBHOOK": s.url + "/robot/send?access_token=abc", "DINGTALK_SECRET": secret})
    path, _, body = s.requests[0]
    query = urllib.parse.parse_qs(path.partition("?")[2])
    assert query["access_token"] == ["abc"]
    assert query["sign"] == [signature(secret, query["timestamp"][0] + "\n" + secret)]
    assert json.loads(body) == {"msgtype": "text", "text": {"content": TEXT}}
    s.answer = b'{"errcode":310000,"errmsg":"sign not match"}'
    run("dingtalk", {"DINGTALK_WEBHOOK": s.url + "/robot/send?access_token=abc"}, code=1)
    assert "sign=" not in s.requests[1][0]


def test_wecom(run, serve):
    s = serve(b'{"errcode":0,"errmsg":"ok"}')
    run("wecom", {"WECOM_WEBHOOK": s.url + "/send?key=abc"})
    path, headers, body = s.requests[0]
    assert path == "/send?key=abc" and headers["Content-Type"] == "application/json"
    assert json.loads(body) == {"msgtype": "text", "text": {"content": TEXT}}
    s.answer = b'{"errcode":93000,"errmsg":"invalid webhook url"}'
    run("wecom", {"WECOM_WEBHOOK": s.url + "/send?key=abc"}, code=1)


def test_bark(run, serve):
    s = serve(b'{"code":200,"message":"success"}')
    run("bark", {"BARK_URL": s.url + "/KEY"})
    body = json.loads(s.requests[0][2])
    assert body == {"title": "[alert] tgspool dead, bot shop", "body": f"{EVIL}\nnext: {NEXT}",
                    "level": "timeSensitive", "group": "tgspool"}


def test_serverchan(run, serve):
    s = serve(b'{"code":0,"message":""}')
    run("serverchan", {"SERVERCHAN_URL": s.url + "/KEY.send"})
    body = json.loads(s.requests[0][2])
    assert body == {"title": "[alert] tgspool dead, bot shop", "desp": f"{EVIL}\n\nnext: {NEXT}"}


def test_settings_are_private(run):
    r = run("wecom", {"WECOM_WEBHOOK": "http://127.0.0.1:9/"}, mode=0o640, code=1)
    assert b"others can read" in r.stderr
    r = run("wecom", {"OTHER": "x"}, code=1)
    assert b"lacks WECOM_WEBHOOK" in r.stderr


def test_no_secret_in_arguments(run, serve, tmp_path):
    """A curl that writes down its arguments."""
    fake = tmp_path / "curl"
    fake.write_text(f"#!/bin/sh\necho \"$@\" >>{tmp_path}/arguments\ncat >/dev/null\necho '{{\"errcode\":0}}'\n")
    fake.chmod(0o700)
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{tmp_path}:{path}"
    try:
        run("dingtalk", {"DINGTALK_WEBHOOK": "https://example.org/send?access_token=hidden", "DINGTALK_SECRET": "hidden"})
    finally:
        os.environ["PATH"] = path
    assert "hidden" not in (tmp_path / "arguments").read_text()
