"""tgspool webhook set, info and delete: what Telegram is told, what people are, and that nothing waiting is lost."""
import json
import os
import subprocess

import pytest

from harness import EX_CONFIG, EX_UNAVAILABLE, EX_USAGE, TGSPOOL, TOKEN

EX_NOINPUT = 66
SECRET = "Hook-secret_9"
URL = "http://127.0.0.1:9/hook/shop"  # nobody is there, and nobody needs to be


class Command:
    def __init__(self, tmp_path, api):
        self.dir, self.api = tmp_path, api
        self.path = tmp_path / "tgspool.yaml"
        for name, text in (("token", TOKEN), ("secret", SECRET)):
            (tmp_path / name).write_text(text + "\n")
            (tmp_path / name).chmod(0o600)

    def write(self, listen="webhook: 127.0.0.1:9", **options):
        base = {"token_file": f"{self.dir}/token", "api_root": self.api.url, "deliver": "pull"}
        lines = [f"    {k}: {v}\n" for k, v in {**base, **options}.items() if v is not None]
        self.path.write_text(f"spool: {{dir: {self.dir}/data}}\nlisten:\n  socket: {self.dir}/sock\n  {listen}\n"
                             "bots:\n  shop:\n" + "".join(lines))

    def __call__(self, *args, code=0):
        r = subprocess.run([TGSPOOL, "-c", str(self.path), *args], capture_output=True, text=True, timeout=60,
                           stdin=subprocess.DEVNULL)
        assert r.returncode == code, f"{args}: exit {r.returncode}\n{r.stdout}\n{r.stderr}"
        assert TOKEN not in r.stdout + r.stderr and SECRET not in r.stdout + r.stderr
        return r

    def info(self):
        return json.loads(self("--json", "webhook", "info", "shop").stdout)


@pytest.fixture
def command(tmp_path, api):
    c = Command(tmp_path, api)
    c.write(intake="webhook", webhook_url=URL, webhook_secret_file=f"{tmp_path}/secret",
            allowed_updates="[message, chat_member]")
    return c


def asked(api, method):
    return [q for q in api.log(method=None) if q["method"].lower() == method.lower()]


def test_set_tells_telegram_everything(command, api):
    api.generate(3)
    r = command("webhook", "set", "shop")
    assert URL in r.stdout and "3 updates wait" in r.stdout
    assert "no daemon runs" in r.stderr and f"next: tgspool run -c {command.path}" in r.stderr
    info = command.info()
    assert info["set"] and info["ours"] and info["url"] == URL and info["pending"] == 3
    assert sorted(info["allowed_updates"]) == ["chat_member", "message"]
    # nobody listens at that address, which the server may have noticed by now
    assert (info["result"], info["next"] is None) == (("warning", False) if info["last_error"] else ("ok", True))
    assert len(asked(api, "setWebhook")) == 1


def test_delete_keeps_what_waits(command, api):
    api.generate(2)
    command("webhook", "set", "shop")
    r = command("webhook", "delete", "shop")
    assert "removed" in r.stdout and "2 updates wait" in r.stdout
    info = command.info()
    assert not info["set"] and info["url"] is None and info["pending"] == 2
    assert info["result"] == "bad" and info["next"] == "tgspool webhook set shop"


def test_webhook_of_another_program(command, api):
    api.call("setWebhook", url="https://other.example.org/a-secret-path")
    r = command("webhook", "info", "shop")
    assert "other.example.org" in r.stdout and "a-secret-path" not in r.stdout + r.stderr
    assert "another program has set that" in r.stderr
    assert f"next: tgspool webhook set shop -c {command.path}" in r.stderr
    r = command("webhook", "set", "shop")
    assert "before, updates went to other.example.org" in r.stdout and "a-secret-path" not in r.stdout


def test_kinds_that_telegram_does_not_send(command, api):
    api.call("setWebhook", url=URL, allowed_updates=["message"])
    info = command.info()
    assert info["result"] == "warning" and "chat_member" in info["text"]
    command.write(intake="webhook", webhook_url=URL, webhook_secret_file=f"{command.dir}/secret")
    api.call("setWebhook", url=URL, allowed_updates=[])
    assert command.info()["result"] == "ok"


def test_polling_bot_with_a_webhook(command, api):
    api.call("setWebhook", url="https://other.example.org/x")
    command.write(intake="poll")
    info = command.info()
    assert info["result"] == "bad" and "polling is refused" in info["text"]
    command("check", code=EX_CONFIG)
    command("webhook", "delete", "shop")
    assert command.info()["result"] == "ok"
    assert "no webhook is set" in command("check").stdout


def test_check_tells_a_missing_webhook(command):
    r = command("check", code=EX_CONFIG)
    assert "no webhook is set, so no updates come" in r.stdout
    assert f"next: tgspool webhook set shop -c {command.path}" in r.stdout
    command("webhook", "set", "shop")
    assert "updates come by webhook" in command("check").stdout


@pytest.mark.parametrize("options,says", [
    ({"intake": "poll"}, "bots.shop.intake: intake is not webhook"),
    ({"intake": "webhook", "webhook_secret_file": "{dir}/secret"}, "bots.shop.webhook_url: it is not set"),
])
def test_set_needs_the_config(command, api, options, says):
    command.write(**{k: v.replace("{dir}", str(command.dir)) for k, v in options.items()})
    r = command("webhook", "set", "shop", code=EX_CONFIG)
    assert says in r.stderr and f"{command.path}:" in r.stderr
    assert not asked(api, "setWebhook")


def test_daemon_that_still_polls(spool, api, tmp_path):
    spool.configure(deliver="pull")
    spool.start()
    command = Command(tmp_path, api)
    command.write(intake="webhook", webhook_url=URL, webhook_secret_file=f"{tmp_path}/secret")
    os.symlink(spool.socket, tmp_path / "sock")
    r = command("webhook", "set", "shop", code=75)
    assert "still has intake: poll" in r.stderr and "reload" in r.stderr
    assert not asked(api, "setWebhook")


def test_mistakes(command, api):
    assert "accepted: set, info or delete" in command("webhook", "remove", "shop", code=EX_USAGE).stderr
    assert "no bot ship" in command("webhook", "info", "ship", code=EX_NOINPUT).stderr
    command("webhook", "set", code=EX_USAGE)
    api.stop()
    r = command("webhook", "info", "shop", code=EX_UNAVAILABLE)
    assert "look at the network and api_root" in r.stderr
