"""Checkpoints, verify and export on them, backup, restore and repair, with damage of every kind."""
import json
import os
import shutil
import subprocess

import pytest

from harness import EX_TEMPFAIL, TGSPOOL, wait_until

EX_DATAERR = 65


@pytest.fixture
def pulled(spool, api):
    """A running daemon with 300 waiting updates of 10 chats."""
    spool.configure(deliver="pull", concurrency=50)
    api.generate(300, chats=10)
    spool.start()
    spool.wait_counts(pending=300)
    return spool


def finish(spool, n):
    """Claims and acknowledges n events."""
    while n:
        status, answer = spool.api("POST", "/v1/claim", {"bot": "shop", "max": min(n, 10), "wait": "5s"})
        assert status == 200 and answer["events"], answer
        events = [{"id": e["id"], "lease": e["lease"]} for e in answer["events"]]
        status, answer = spool.api("POST", "/v1/ack", {"events": events})
        assert status == 200 and all(e["ok"] for e in answer["events"]), answer
        n -= len(events)


def checkpoints(spool):
    try:
        return os.listdir(os.path.join(spool.data, "checkpoints"))
    except FileNotFoundError:
        return []


def test_checkpoints(pulled):
    status, made = pulled.api("POST", "/v1/checkpoint")
    assert status == 201 and checkpoints(pulled) == [made["id"]]
    state = pulled.api("GET", "/v1/status")[1]
    assert (state["instance"], state["generation"]) == (made["instance"], made["generation"])
    finish(pulled, 20)
    assert pulled.cli_json("verify", made["path"])["unfinished"] == 300, "it stands still"
    found = pulled.cli_json("verify")
    assert (found["unfinished"], found["ended"], found["faults"]) == (280, 20, 0)
    wait_until(lambda: checkpoints(pulled) == [made["id"]], "the command's own is gone")
    pulled.stop()
    os.mkdir(os.path.join(pulled.data, "checkpoints", "torn.new"))
    pulled.start()
    assert checkpoints(pulled) == [made["id"]], "a whole one outlives the daemon, until its hour is over"
    assert pulled.api("DELETE", "/v1/checkpoint/" + made["id"])[0] == 200
    wait_until(lambda: not checkpoints(pulled), "the checkpoint is gone")
    assert pulled.api("DELETE", "/v1/checkpoint/" + made["id"])[0] == 404
    assert pulled.api("GET", "/v1/status")[1]["generation"] == made["generation"], "the same spool"


def test_export_reads_a_checkpoint(pulled):
    finish(pulled, 10)
    lines = pulled.cli("export").splitlines()
    assert len(lines) == 300 and len(pulled.cli("export", "--state", "done").splitlines()) == 10
    wait_until(lambda: not checkpoints(pulled), "the checkpoint is gone")
    pulled.stop()
    assert sorted(pulled.cli("export").splitlines()) == sorted(lines)


def test_verify_finds_a_lost_row(spool, api):
    spool.configure(deliver="pull")
    spool.start(env={"TGSPOOL_FAILPOINTS": "rows.lose_order=errno:5@3"})
    api.generate(10, chats=1)
    spool.wait_counts(pending=10)
    r = spool.cli("verify", code=None)
    assert r.returncode == EX_DATAERR and "is lost from its lane's order" in r.stderr, r.stderr
    assert spool.cli("--json", "verify", code=None).stdout.count("faults") == 1
    spool.stop()
    assert spool.cli("verify", code=None).returncode == EX_DATAERR
