"""Retention with a daemon: what ended goes, archived first; a disk that fails and kills in between lose nothing."""
import gzip
import json
import os
import signal
import time

import pytest

from harness import wait_until
from test_crash import has_failpoints, wait_crash

EVENTS = 300


def exported(n):
    """Lines of an export, of updates that came and ended four days ago."""
    at = time.time() - 4 * 86400
    lines = []
    for i in range(1, n + 1):
        dead = i % 10 == 0
        update = {"update_id": i, "message": {"chat": {"id": i % 7}, "text": f"text {i} \u00e9" * 20}}
        lines.append(json.dumps({"bot": "shop", "bot_id": 123456, "box": "in", "update_id": i, "kind": "message",
                                 "received_at": at, "finished_at": at + 1, "attempts": 1,
                                 "state": "dead" if dead else "done", "reason": "rejected" if dead else None,
                                 "payload": update}, ensure_ascii=False))
    return "".join(line + "\n" for line in lines).encode()


def archive_dir(spool):
    return os.path.join(spool.dir, "archive")


def archived(spool):
    """All lines of the archive, in order."""
    lines = []
    for name in sorted(os.listdir(archive_dir(spool))):
        assert name.endswith(".jsonl.gz")
        assert os.stat(os.path.join(archive_dir(spool), name)).st_mode & 0o777 == 0o600
        with gzip.open(os.path.join(archive_dir(spool), name), "rb") as f:
            lines += f.read().splitlines(keepends=True)
    return lines


def update_ids(lines):
    return [json.loads(line)["update_id"] for line in lines]


def payloads(spool):
    return {e["update_id"]: json.dumps(e["payload"]) for e in map(json.loads, spool.cli("export").splitlines())}


@pytest.fixture
def keeping(spool):
    """Keeps nothing for long, but for the archive. No updates come."""
    spool.configure(deliver="pull", intake="none",
                    spool={"retain_done": "1s", "retain_dead": "1s", "archive_dir": archive_dir(spool)})
    return spool


def test_archived_removed_and_put_back(keeping, make_spool, api):
    keeping.configure(spool={"retain_done": "3d", "retain_dead": "30d"})
    keeping.start()
    keeping.cli("import", text=False, input=exported(EVENTS))
    before = payloads(keeping)
    assert len(before) == EVENTS
    keeping.configure(spool={"retain_done": "1s", "retain_dead": "1s"})
    keeping.process.send_signal(signal.SIGHUP)
    keeping.wait_counts(done=0, dead=0)
    assert keeping.events() == []
    assert keeping.cli_json("status")["retention"]["archived"] == EVENTS
    lines = archived(keeping)
    assert sorted(update_ids(lines)) == list(range(1, EVENTS + 1))
    assert all(json.loads(line)["seq"] > 0 for line in lines)
    keeping.stop()
    other = make_spool(api)
    other.configure(deliver="pull", intake="none")
    other.cli("import", text=False, input=b"".join(lines))
    assert payloads(other) == before
    # and here again, for as long as ended events are kept
    keeping.configure(spool={"retain_done": "3d", "retain_dead": "30d"})
    keeping.start()
    keeping.cli("import", text=False, input=b"".join(lines))
    assert payloads(keeping) == before
    keeping.cli("verify")


def test_failures_and_kills(keeping):
    if not has_failpoints():
        pytest.skip("needs a build with --enable-failpoints")
    keeping.start(env={"TGSPOOL_FAILPOINTS": "archive.write=errno:28"})  # no room
    keeping.cli("import", text=False, input=exported(EVENTS))
    wait_until(lambda: keeping.cli_json("status")["retention"]["failing_since"], "the archive fails")
    assert "the archive fails" in keeping.cli("status", code=None).stderr
    keeping.wait_log("No space left on device")
    keeping.wait_log("alert disk: the archive cannot be written")
    dead = EVENTS // 10
    keeping.wait_counts(done=EVENTS - dead, dead=dead)
    assert archived(keeping) == []
    keeping.kill()
    for point in ("archive.after_sync=crash@1", "commit.before_write=crash@2", "archive.after_sync=crash@2"):
        keeping.start(env={"TGSPOOL_FAILPOINTS": point}, wait=False)
        wait_crash(keeping)
    keeping.start()
    keeping.wait_counts(done=0, dead=0)
    ids = update_ids(archived(keeping))
    assert set(ids) == set(range(1, EVENTS + 1)), "nothing is lost"
    assert len(ids) > EVENTS, "what was archived before a kill is archived again"
    assert not keeping.cli_json("status")["retention"]["failing_since"]
    keeping.stop()


def test_a_directory_that_cannot_be_made(keeping):
    keeping.configure(spool={"archive_dir": "/dev/null/archive"})
    keeping.start(expect_exit=73)
    assert "archive_dir" in keeping.log()
