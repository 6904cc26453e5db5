"""Proxies: the real ones, with passwords, and killed meanwhile."""
import shutil
import socket
import subprocess

import pytest

from harness import EX_UNAVAILABLE, end_process, free_port, wait_until

USER, PASSWORD = "bird", "secret-proxy-word"


class Proxy:
    """tinyproxy (HTTP CONNECT) or microsocks (SOCKS5), asking for a password."""

    def __init__(self, kind, directory):
        self.port = free_port()
        self.log_path = directory / f"{kind}.log"
        if kind == "http":
            config = directory / "tinyproxy.conf"
            config.write_text(f"Port {self.port}\nListen 127.0.0.1\nTimeout 600\nMaxClients 20\n"
                              f'LogFile "{self.log_path}"\nLogLevel Connect\nBasicAuth {USER} {PASSWORD}\n')
            self.command = ["tinyproxy", "-d", "-c", str(config)]
        else:
            self.command = ["microsocks", "-i", "127.0.0.1", "-p", str(self.port), "-u", USER, "-P", PASSWORD]
        self.start()

    def start(self):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log)

        def listens():
            with socket.socket() as s:
                return s.connect_ex(("127.0.0.1", self.port)) == 0
        wait_until(listens, "the proxy listens")

    def log(self):
        return self.log_path.read_text(errors="replace")

    def stop(self):
        end_process(self.process, 9)


@pytest.fixture(params=["http", "socks5", "socks5h"])
def proxied(request, tmp_path, make_api, make_spool, certificates):
    """Scheme, proxy, server by TLS, and a spool that is to go through the proxy."""
    program = "tinyproxy" if request.param == "http" else "microsocks"
    if not shutil.which(program):
        pytest.skip(f"no {program}")
    proxy = Proxy("http" if request.param == "http" else "socks", tmp_path)
    api = make_api(tls=certificates["good"])
    spool = make_spool(api)

    def use(password=PASSWORD, **options):
        path = spool.write("proxy", f"{request.param}://{USER}:{password}@127.0.0.1:{proxy.port}\n")
        spool.configure(deliver="pull", proxy_file=path, ca_file=certificates["ca"], **options)
    use()
    yield request.param, proxy, api, spool, use
    proxy.stop()


def test_updates_come_through(proxied):
    scheme, proxy, api, spool, _ = proxied
    api.generate(150)
    spool.start()
    spool.wait_counts(pending=150)
    wait_until(lambda: api.state()["queued"] == 0, "confirmed")
    assert str(api.port) in proxy.log() or scheme != "http"


def test_a_proxy_killed_meanwhile(proxied):
    _, proxy, api, spool, _ = proxied
    api.generate(10)
    spool.start()
    spool.wait_counts(pending=10)
    wait_until(lambda: api.state()["waiting"], "a poll waits")
    proxy.stop()
    api.generate(10)
    spool.wait_log("intake fails")
    assert spool.counts()["pending"] == 10, "nothing goes around the proxy"
    proxy.start()
    spool.wait_counts(pending=20, timeout=60)


def test_a_wrong_password_is_named_and_not_shown(proxied):
    _, _, api, spool, use = proxied
    use(password="a-wrong-word")
    api.generate(1)
    spool.start()
    spool.wait_log("intake fails")
    assert "proxy" in spool.log()
    assert "a-wrong-word" not in spool.log()
    assert spool.counts()["pending"] == 0 and api.log() == []


def test_names_are_resolved_where_the_scheme_says(proxied):
    """A name that nobody can resolve fails here with socks5, and at the proxy otherwise."""
    scheme, proxy, _, spool, use = proxied
    use(api_root="https://no-such-host.invalid")
    spool.start()
    spool.wait_log("intake fails")
    text = next(line for line in spool.log().splitlines() if "intake fails" in line)
    assert ("proxy" in text) == (scheme != "socks5"), text


def test_alerts_go_through(proxied):
    """By alerts.proxy_file and, for Telegram, with the bot's ca_file."""
    _, proxy, api, spool, _ = proxied
    url = spool.write("alert.url", f"https://localhost:{api.port}/\n")  # there, but of no certificate that is believed
    spool.configure(alerts={"telegram": "shop 42", "url_file": url, "proxy_file": spool.bots["shop"]["proxy_file"]})
    said = spool.cli("alert-test", code=EX_UNAVAILABLE).splitlines()
    assert said[1] == "telegram  delivered" and said[0].startswith("url       FAILED: ") and "certificate" in said[0]
    assert len(api.log(method="sendMessage")) == 1
    proxy.stop()
    said = spool.cli("alert-test", code=EX_UNAVAILABLE).splitlines()
    assert all("FAILED" in line and PASSWORD not in line for line in said), said
    assert len(api.log(method="sendMessage")) == 1, "nothing goes around the proxy"
    proxy.start()
