"""Checkpoints, verify and export on them, backup, restore and repair, with damage of every kind."""
import glob
import json
import os
import shutil
import subprocess

import pytest

from harness import EX_TEMPFAIL, EX_USAGE, TGSPOOL, BotApi, Spool, wait_until

EX_DATAERR, EX_CANTCREAT = 65, 73


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
    spool.start(env={"TGSPOOL_FAILPOINTS": "break.lost_order=errno:5@3"})
    api.generate(10, chats=1)
    spool.wait_counts(pending=10)
    r = spool.cli("verify", code=None)
    assert r.returncode == EX_DATAERR and "is lost from its lane's order" in r.stderr, r.stderr
    assert spool.cli("--json", "verify", code=None).stdout.count("faults") == 1
    spool.stop()
    assert spool.cli("verify", code=None).returncode == EX_DATAERR


# ---- backup and restore


def files_of(where):
    return sorted(os.path.join(d, n) for d, _, names in os.walk(where) for n in names)


def flip(path, at=None):
    """Changes one bit, in the middle if not told where."""
    with open(path, "r+b") as f:
        size = f.seek(0, os.SEEK_END)
        f.seek(size // 2 if at is None else at)
        byte = f.read(1)[0]
        f.seek(-1, os.SEEK_CUR)
        f.write(bytes([byte ^ 4]))


def largest(where, ending):
    return max((f for f in files_of(where) if f.endswith(ending)), key=os.path.getsize)


def elsewhere(make_spool, api, spool):
    """Another directory with the same bot, where no daemon runs yet."""
    other = make_spool(api)
    other.configure(**spool.bots["shop"])
    return other


def test_backup_under_load(make_spool, spool, api):
    spool.configure(deliver="worker", concurrency=4, command=spool.python_handler(
        "for e in requests():\n    record('end', e)\n    answer(e, ok=True)\n"))
    spool.start()
    backup = os.path.join(spool.dir, "backup")
    answers = []
    for _ in range(3):
        api.generate(400, chats=50)
        known = {e["id"]: e["state"] for e in spool.events()}
        answers.append(spool.cli_json("backup", backup))
    assert len(known) >= 300 and answers[-1]["unfinished"] + answers[-1]["ended"] >= len(known)
    other = elsewhere(make_spool, api, spool)
    before = spool.api("GET", "/v1/status")[1]
    spool.kill()
    r = other.cli("restore", backup, code=None)
    assert r.returncode == 0 and f"tgspool resume shop deliver -c {other.config}" in r.stdout, r.stderr
    other.start()
    restored = {e["id"]: e["state"] for e in other.events()}
    assert not set(known) - set(restored), "what was stored before the backup is in it"
    assert all(restored[i] == "done" for i, state in known.items() if state == "done")
    counts = other.counts()
    assert counts["paused"] == {"intake": False, "deliver": True} and counts["processing"] == 0
    after = other.api("GET", "/v1/status")[1]
    assert after["instance"] == before["instance"] and after["generation"] > before["generation"]
    assert other.cli_json("verify")["faults"] == 0
    other.cli("resume", "shop", "deliver")
    other.wait_counts(pending=0, processing=0)
    api.generate(1)
    wait_until(lambda: other.events()[-1]["seq"] > 1000000, "a seq that was never given out")
    assert other.cli("restore", backup, code=None).returncode == EX_TEMPFAIL, "the daemon has it"
    other.stop()
    r = other.cli("restore", backup, code=None)
    assert r.returncode == 73 and "not empty" in r.stderr and "mv " in r.stderr


def test_what_would_be_lost_or_half(pulled):
    """No backup in the spool itself; an export that could not be written whole is not left."""
    os.symlink(pulled.data, pulled.dir + "/link")
    for where in (pulled.data + "/backup", pulled.dir + "/link/backup"):
        r = pulled.cli("backup", where, code=None)
        assert r.returncode == EX_USAGE and "lies in the spool" in r.stderr, r.stderr
    assert not os.path.exists(pulled.data + "/backup")
    out = os.path.join(pulled.dir, "all.jsonl")
    small = f"trap '' XFSZ; ulimit -f 8; exec {TGSPOOL} -c {pulled.config} export {out}"
    r = subprocess.run(["sh", "-c", small], capture_output=True, text=True)
    assert r.returncode == 74 and "cannot write" in r.stderr, r
    assert not os.path.exists(out)
    r = subprocess.run([TGSPOOL, "-c", pulled.config, "list", "--limit", "5"], stdout=open("/dev/full", "w"),
                       stderr=subprocess.PIPE, text=True)
    assert r.returncode == 74 and r.stderr.count("cannot write the output: No space left on device") == 1, r.stderr
    pulled.cli("pause", "shop", "deliver")
    r = subprocess.run([TGSPOOL, "-c", pulled.config, "status"], stdout=open("/dev/full", "w"),
                       stderr=subprocess.PIPE, text=True)
    assert r.returncode == 74 and r.stderr.count("cannot write the output: No space left on device") == 1, r.stderr
    pulled.cli("export", out)
    lines = [json.dumps(json.loads(line), separators=(",", ":")) for line in open(out)]
    r = pulled.cli("import", code=None, input="\n".join(lines) + "\n")
    assert r.returncode == EX_DATAERR and "whole lines, as grep does" in r.stderr, r.stderr
    assert pulled.cli_json("import", out)["known"] == 300
    pulled.stop()
    os.chmod(pulled.dir, 0o700)
    os.rename(pulled.data, pulled.data + ".old")
    open(pulled.data, "w").close()
    r = pulled.cli("run", code=None)
    assert r.returncode and "next: tgspool check -c" in r.stderr, r.stderr


def test_only_new_files_are_copied(pulled):
    backup = os.path.join(pulled.dir, "backup")
    first = pulled.cli_json("backup", backup)
    assert first["kept_files"] == 0 and first["unfinished"] == 300
    finish(pulled, 1)
    second = pulled.cli_json("backup", backup)
    assert second["kept_files"] > 0 and second["ended"] == 1
    assert [n for n in os.listdir(backup) if n.startswith("state-")] == ["state-2"]
    pulled.stop()
    for stranger in ("notes.txt", "state-of-things", "state-1.old"):
        with open(os.path.join(backup, stranger), "w") as f:
            f.write("not ours")
    os.mkdir(os.path.join(backup, "state-77.new"))
    third = pulled.cli_json("backup", backup)
    assert third["kept_files"] > 0 and (third["unfinished"], third["ended"]) == (299, 1)
    assert sorted(os.listdir(backup)) == ["BACKUP", "lock", "notes.txt", "state-1.old", "state-3", "state-of-things"]
    for stranger in ("notes.txt", "state-of-things", "state-1.old"):
        os.unlink(os.path.join(backup, stranger))
    assert pulled.cli_json("verify", backup)["faults"] == 0
    assert all(os.stat(f).st_mode & 0o077 == 0 for f in files_of(backup))
    r = pulled.cli("backup", pulled.dir, code=None)
    assert r.returncode == 73 and "no backup and not empty" in r.stderr


@pytest.mark.once
def test_a_backup_that_is_cut_short(pulled):
    backup = os.path.join(pulled.dir, "backup")
    pulled.cli("backup", backup)
    for n, point in enumerate(("backup.copied=crash@4", "backup.before_publish=crash", "backup.copied=errno:28@5",
                               "backup.before_publish=errno:5")):
        finish(pulled, 10)
        r = pulled.cli("backup", backup, code=None, env={"TGSPOOL_FAILPOINTS": point})
        assert r.returncode != 0
        assert pulled.cli_json("verify", backup)["ended"] == 10 * n, "the earlier one is there"
        assert pulled.cli_json("backup", backup)["ended"] == 10 * n + 10
        assert sorted(os.listdir(backup)) == ["BACKUP", "lock", f"state-{n + 2}"]


def test_a_backup_that_is_killed(pulled):
    backup = os.path.join(pulled.dir, "backup")
    pulled.cli("backup", backup)
    p = subprocess.Popen([TGSPOOL, "-c", pulled.config, "backup", backup],
                         env={**os.environ, "TGSPOOL_FAILPOINTS": "backup.copied=sleep:100000@3"})
    wait_until(lambda: len(files_of(os.path.join(backup, "state-2.new"))) > 2, "the copy goes on")
    r = pulled.cli("backup", backup, code=None)
    assert r.returncode == EX_TEMPFAIL and "in use by process" in r.stderr
    p.kill()
    p.wait()
    assert pulled.cli_json("verify", backup)["unfinished"] == 300
    pulled.cli("backup", backup)
    assert sorted(os.listdir(backup)) == ["BACKUP", "lock", "state-2"]


def test_a_damaged_backup(pulled, make_spool, api):
    backup = os.path.join(pulled.dir, "backup")
    pulled.cli("backup", backup)
    flip(largest(backup, ".sst"))
    r = pulled.cli("verify", backup, code=None)
    assert r.returncode == EX_DATAERR and "Corruption" in r.stderr
    other = elsewhere(make_spool, api, pulled)
    r = other.cli("restore", backup, code=None)
    assert r.returncode == EX_DATAERR and "Corruption" in r.stderr and "tgspool repair" in r.stderr
    assert os.listdir(other.data) == ["lock"], "nothing is left of it"
    r = pulled.cli("backup", backup, code=None)
    assert r.returncode == 0 and "once more without" in r.stderr
    assert pulled.cli_json("verify", backup)["faults"] == 0
    os.truncate(largest(backup, ".sst"), 100)
    r = other.cli("restore", backup, code=None)
    assert r.returncode == EX_DATAERR and "instead of" in r.stderr
    assert os.listdir(other.data) == ["lock"], "nothing is left of it"
    with open(os.path.join(backup, "BACKUP"), "w") as f:
        f.write('{"format":1')
    r = other.cli("restore", backup, code=None)
    assert r.returncode == EX_DATAERR and f"tgspool verify {backup}/state-N" in r.stderr, r.stderr
    r = pulled.cli("backup", backup, code=None)
    assert r.returncode == EX_CANTCREAT and f"mv {backup} {backup}.old" in r.stderr and "next:" not in r.stderr, r.stderr
    assert other.cli("restore", other.dir, code=None).returncode == 66


def test_a_disk_that_is_not_mounted(pulled, tmp_path):
    run = pulled.cli("backup", tmp_path / "disk" / "spool", code=None)
    assert run.returncode == EX_CANTCREAT and "mount it or make it first" in run.stderr
    assert os.listdir(tmp_path) == []


def test_no_backup_of_a_damaged_spool(pulled):
    backup = os.path.join(pulled.dir, "backup")
    pulled.cli("backup", backup)
    finish(pulled, 10)
    pulled.stop()
    flip(largest(pulled.data, ".sst"))
    r = pulled.cli("backup", backup, code=None)
    assert r.returncode == EX_DATAERR and "no backup was made" in r.stderr + r.stdout or "Corruption" in r.stderr
    assert pulled.cli_json("verify", backup)["ended"] == 0


@pytest.mark.once
def test_a_restore_that_is_cut_short(pulled):
    """Before its commit it is run again; later it is ended by whoever comes next, and restore itself says so."""
    backup = os.path.join(pulled.dir, "backup")
    pulled.cli("backup", backup)
    pulled.stop()
    for point, next_comes in (("swap.before_commit", "restore"), ("swap.moved_aside", "restore"),
                              ("swap.moved_aside", "status"), ("swap.before_marker", "restore"),
                              ("swap.before_marker", "status")):
        shutil.rmtree(pulled.data)
        cut = pulled.cli("restore", backup, code=None, env={"TGSPOOL_FAILPOINTS": point + "=crash"})
        assert cut.returncode == 42
        if point == "swap.before_commit":
            pulled.start(expect_exit=78)
            assert "did not end: run it again" in pulled.log()
        if next_comes == "restore":
            told = pulled.cli("restore", backup)
            assert "300 unfinished ones" in told and "tgspool resume shop deliver" in told
            assert ("was completed" in told) == (point != "swap.before_commit")
            assert pulled.cli("restore", backup, code=None).returncode == EX_CANTCREAT, "nothing was cut short now"
        box = next(b for b in pulled.cli_json("status")["boxes"] if b["box"] == "in")
        assert box["pending"] == 300 and box["paused"]["deliver"]
        assert pulled.cli_json("verify")["faults"] == 0
    pulled.start()
    assert pulled.counts()["pending"] == 300


def test_another_restore_that_was_cut_short_is_not_this_one(pulled):
    """It is completed, as always, and what is in its place is not taken for the backup that was asked for."""
    first, second = os.path.join(pulled.dir, "first"), os.path.join(pulled.dir, "second")
    pulled.cli("backup", first)
    finish(pulled, 10)
    pulled.cli("backup", second)
    pulled.stop()
    shutil.rmtree(pulled.data)
    cut = pulled.cli("restore", first, code=None, env={"TGSPOOL_FAILPOINTS": "swap.before_marker=crash"})
    assert cut.returncode == 42
    r = pulled.cli("restore", second, code=None)
    assert r.returncode == EX_CANTCREAT and "is not empty" in r.stderr and r.stdout == "", r.stdout
    assert next(b for b in pulled.cli_json("status")["boxes"] if b["box"] == "in")["pending"] == 300


@pytest.mark.once
def test_an_old_backup_tells_what_is_missing(spool, api):
    backup = os.path.join(spool.dir, "backup")
    handler = spool.shell_handler()
    spool.configure(deliver="exec", command=handler)
    api.generate(20, chats=4)
    spool.start()
    spool.wait_counts(done=20)
    spool.cli("pause", "shop", "deliver")
    api.generate(5, chats=5)
    spool.wait_counts(pending=5)
    assert spool.cli_json("backup", backup)["unfinished"] == 5
    spool.cli("resume", "shop")
    api.generate(30, chats=3)
    spool.wait_counts(done=55)
    spool.stop()
    assert api.state()["queued"] == 0, "Telegram has forgotten them"
    handled = set(spool.record.ids())
    shutil.rmtree(spool.data)
    r = spool.cli("restore", backup, code=None)
    assert r.returncode == 0 and "5 unfinished ones" in r.stdout, r.stderr
    spool.start()
    assert spool.counts()["restored"]["missing"] is None
    api.generate(7, chats=7)
    spool.wait_counts(pending=12)
    assert spool.counts()["restored"]["missing"] == 30
    assert "30 updates" in spool.log() and "30 later updates are lost" in spool.cli("status", code=None).stderr
    assert set(spool.record.ids()) == handled, "nothing was handed over before a person said so"
    spool.cli("resume", "shop", "deliver")
    spool.wait_counts(done=32)
    ids = spool.record.ids()
    assert len(ids) == 67 and len(set(ids)) == 62, "5 were handled again, as was told; nothing else"
    spool.stop()
    spool.start()
    assert spool.counts()["restored"]["missing"] == 30


# ---- repair


def newest(where, pattern):
    return max(glob.glob(os.path.join(where, "db", pattern)), key=os.path.getsize)


DAMAGE = {
    "lost CURRENT": lambda data: os.unlink(os.path.join(data, "db/CURRENT")),
    "truncated MANIFEST": lambda data: os.truncate(newest(data, "MANIFEST-*"),
                                                   os.path.getsize(newest(data, "MANIFEST-*")) // 2),
    "lost MANIFEST": lambda data: os.unlink(newest(data, "MANIFEST-*")),
    "flipped bit in a table": lambda data: flip(newest(data, "*.sst")),
    "lost table": lambda data: os.unlink(newest(data, "*.sst")),
    "flipped bit in the log": lambda data: flip(newest(data, "*.log")),
}
WHOLE = ("lost CURRENT", "truncated MANIFEST", "lost MANIFEST")


@pytest.fixture(scope="module")
def broken_soon(request):
    """A directory as a kill left it, 1,500 updates in tables and log, 60 of them done, to be copied and damaged."""
    api, spool = BotApi(), Spool()
    request.addfinalizer(lambda: (spool.close(), api.stop()))
    spool.add_bot("shop", api_root=api.url)
    spool.configure(deliver="pull", concurrency=50)
    api.generate(1000, chats=40, size=700)
    spool.start()
    spool.wait_counts(pending=1000)
    finish(spool, 40)
    status, made = spool.api("POST", "/v1/checkpoint")  # what was in memory is in tables now
    assert status == 201 and spool.api("DELETE", "/v1/checkpoint/" + made["id"])[0] == 200
    wait_until(lambda: not checkpoints(spool), "the checkpoint is gone")
    api.generate(500, chats=40, size=700)
    spool.wait_counts(pending=1460)
    finish(spool, 20)
    spool.kill()
    shutil.copytree(spool.data, spool.data + ".good")
    return spool


@pytest.mark.once
@pytest.mark.parametrize("damage", DAMAGE)
def test_repair(broken_soon, damage):
    spool = broken_soon
    shutil.rmtree(spool.data)
    shutil.copytree(spool.data + ".good", spool.data)
    DAMAGE[damage](spool.data)
    before = {f: open(f, "rb").read() for f in files_of(os.path.join(spool.data, "db"))}
    r = spool.cli("verify", code=None)
    assert r.returncode == EX_DATAERR and "next: tgspool repair" in r.stderr, r.stderr
    r = spool.cli("--json", "repair", code=None)
    assert {f: open(f, "rb").read() for f in files_of(os.path.join(spool.data, "db"))} == before, "only copies"
    assert not [n for n in os.listdir(spool.data) if n.startswith(("repair", "preparing", "incoming", "damaged"))]
    if damage in WHOLE:
        account = json.loads(r.stdout)
        assert not account["before"] and account["log_lost"] == 0
        assert account["after"]["events"] == {"rows": 1500, "whole": True}
        account = spool.cli_json("repair", "--apply")
    else:
        assert r.returncode == EX_DATAERR and "tgspool repair --fresh" in r.stderr, r.stderr
        account = spool.cli_json("repair", "--fresh")
        box = next(b for b in account["boxes"] if b["box"] == "in")
        saved = box["waiting"] + box["ended"]
        assert box["counted"] == 1500 and (500 if damage == "lost table" else 1290) <= saved < 1500, account
        assert account["log_lost"] == (damage == "flipped bit in the log")
    kept = {f[len(account["aside"]):]: open(f, "rb").read() for f in files_of(account["aside"]) if "/db/" in f}
    assert kept == {f[len(spool.data):]: b for f, b in before.items()}, "the damaged one, untouched"
    found = spool.cli_json("verify")
    assert found["faults"] == 0 and spool.cli_json("status")["generation"] == found["generation"]
    status = next(b for b in spool.cli_json("status")["boxes"] if b["box"] == "in")
    assert status["paused"] == {"intake": False, "deliver": True} and status["processing"] == 0
    if damage in WHOLE:
        assert (status["pending"], status["done"]) == (1440, 60)
    assert "all well" in spool.cli("repair")
    shutil.rmtree(account["aside"])


def test_repair_keeps_away_from_a_daemon(pulled):
    r = pulled.cli("repair", "--fresh", code=None)
    assert r.returncode == EX_TEMPFAIL and "in use by process" in r.stderr
    pulled.stop()
    assert "all well" in pulled.cli("repair")
    os.unlink(os.path.join(pulled.data, "SPOOL"))
    os.unlink(os.path.join(pulled.data, "db/CURRENT"))
    pulled.cli("repair", "--fresh")
    pulled.start()
    assert pulled.counts()["pending"] == 300 and pulled.counts()["paused"]["deliver"]


@pytest.mark.once
def test_repairs_within_one_second(pulled):
    """Each keeps the one before in a directory of its own."""
    pulled.stop()
    asides = {pulled.cli_json("repair", "--fresh")["aside"] for _ in range(4)}
    assert len(asides) == 4
    for aside in asides:
        assert pulled.cli_json("verify", aside)["unfinished"] == 300
    assert pulled.cli_json("verify")["unfinished"] == 300
    r = pulled.cli("repair", "--apply", "--fresh", code=None)
    assert r.returncode == EX_USAGE and "--apply" in r.stderr, r.stderr


def test_fresh_mends_what_does_not_fit(spool, api):
    spool.configure(deliver="pull")
    spool.start(env={"TGSPOOL_FAILPOINTS": "break.lost_order=errno:5@3"})
    api.generate(10, chats=1)
    spool.wait_counts(pending=10)
    spool.stop()
    r = spool.cli("repair", code=None)
    assert r.returncode == EX_DATAERR and "--fresh" in r.stderr
    spool.cli("repair", "--fresh")
    assert spool.cli_json("verify") == {**spool.cli_json("verify"), "faults": 0, "unfinished": 10}
    spool.start()
    spool.cli("resume", "shop")
    finish(spool, 10)
    spool.wait_counts(done=10)
