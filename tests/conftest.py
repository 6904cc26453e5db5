"""Fixtures, a time limit for every test, and what is not run again with sanitizers."""
import os
import signal
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "e2e"))
import harness  # noqa: E402

LIMIT_S = 120


def pytest_configure(config):
    config.addinivalue_line("markers", "limit(seconds): how long this test may take")
    config.addinivalue_line("markers", "once: not run again with sanitizers, which would show little: a test of a test, "
                                       "of a page, a script, a bot, or of what others do, too")


def pytest_collection_modifyitems(config, items):
    if harness.is_sanitized():
        once = [i for i in items if i.get_closest_marker("once")]
        config.hook.pytest_deselected(items=once)
        items[:] = [i for i in items if i not in once]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    """Ends a test that hangs."""
    marker = item.get_closest_marker("limit")
    limit = marker.args[0] if marker else LIMIT_S

    def too_long(signum, frame):
        raise AssertionError(f"the test took longer than {limit} s")
    old = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(limit)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, old)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Shows the end of the daemons' logs with a failure."""
    outcome = yield
    report = outcome.get_result()
    if report.when == "call" and report.failed:
        for spool in getattr(item, "spools", []):
            report.sections.append(("log of " + spool.dir, spool.log()[-6000:]))


@pytest.fixture
def make_api():
    """Makes test servers; they end with the test."""
    apis = []

    def make(*args, **options):
        apis.append(harness.BotApi(*args, **options))
        return apis[-1]
    yield make
    for api in apis:
        api.stop()


@pytest.fixture
def api(make_api):
    return make_api()


@pytest.fixture
def make_spool(request):
    """Makes directories with a config and a daemon; they end with the test."""
    request.node.spools = []

    def make(api=None, **options):
        request.node.spools.append(harness.Spool(api, **options))
        return request.node.spools[-1]
    yield make
    for spool in request.node.spools:
        spool.close()


@pytest.fixture
def spool(make_spool, api):
    return make_spool(api)


def openssl(*args):
    subprocess.run(["openssl", *args], check=True, capture_output=True)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """Pairs of certificate and key, by what is right or wrong with them, and "ca", the file to trust."""
    d = tmp_path_factory.mktemp("certificates")
    ca, ca_key = str(d / "ca.pem"), str(d / "ca.key")
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", "/CN=Test CA", "-keyout", ca_key, "-out", ca)

    def issue(name, host, *validity):
        cert, key, request, ext = (str(d / f"{name}.{x}") for x in ("pem", "key", "csr", "ext"))
        with open(ext, "w") as f:
            f.write(f"subjectAltName=DNS:{host}\n")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={host}",
                "-keyout", key, "-out", request)
        database = d / f"{name}.db"
        database.write_text("")
        (d / f"{name}.cnf").write_text(f"[ca]\ndefault_ca=c\n[c]\ndatabase={database}\nrand_serial=yes\n"
                                       "policy=p\ndefault_md=sha256\nunique_subject=no\n"
                                       "[p]\ncommonName=supplied\n")
        openssl("ca", "-batch", "-config", str(d / f"{name}.cnf"), "-cert", ca, "-keyfile", ca_key, "-in", request,
                "-out", cert, "-notext", "-outdir", str(d), "-extfile", ext, *(validity or ("-days", "2")))
        return cert, key

    own, own_key = str(d / "own.pem"), str(d / "own.key")
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", own_key, "-out", own)
    return {
        "ca": ca,
        "good": issue("good", "localhost"),
        "wrong host": issue("wrong", "elsewhere.example"),
        "expired": issue("expired", "localhost", "-startdate", "20200101000000Z", "-enddate", "20200201000000Z"),
        "self-signed": (own, own_key),
    }
