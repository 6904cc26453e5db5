"""contrib/examples as they stand: the business change is made once, however often its update comes and wherever a try
was killed. PostgreSQL is a server of its own, in a directory of its own."""
import glob
import os
import pwd
import shlex
import shutil
import sqlite3
import subprocess
import tempfile

import pytest

from harness import free_port, wait_until

pytestmark = pytest.mark.once
EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../contrib/examples")


class Sqlite:
    program = "order-sqlite.py"

    def __init__(self, path):
        self.argument = path

    def rows(self, sql):
        db = sqlite3.connect(self.argument)
        try:
            return db.execute(sql).fetchall()
        finally:
            db.close()


class Postgresql:
    program = "order-postgresql.sh"

    def __init__(self, port, user):
        self.argument = f"host=127.0.0.1 port={port} dbname=postgres user={user}"

    def rows(self, sql):
        out = subprocess.run(["psql", "-X", "-q", "-t", "-A", "-F", "\t", self.argument, "-c", sql], check=True,
                             capture_output=True, text=True).stdout
        return [tuple(int(f) if f.isdigit() else f for f in line.split("\t")) for line in out.splitlines()]


def postgresql_programs():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    return os.path.dirname(found[-1]) if found else None


@pytest.fixture(scope="module")
def postgresql():
    programs = postgresql_programs()
    if not programs or not shutil.which("psql"):
        pytest.skip("no PostgreSQL: install postgresql")
    # it refuses to run as root
    account = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    who = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []} if os.geteuid() == 0 else {}
    base = tempfile.mkdtemp(prefix="tgspool-pg-")
    os.chmod(base, 0o755)
    data = os.path.join(base, "data")
    os.mkdir(data, 0o700)
    os.chown(data, account.pw_uid, account.pw_gid)
    env = {"PATH": os.environ["PATH"], "HOME": "/", "LC_ALL": "C.UTF-8"}
    subprocess.run([f"{programs}/initdb", "-D", data, "-A", "trust", "-U", "shop", "--no-sync"], check=True,
                   capture_output=True, cwd="/", env=env, **who)
    port = free_port()
    with open(os.path.join(base, "log"), "wb") as log:
        server = subprocess.Popen([f"{programs}/postgres", "-D", data, "-h", "127.0.0.1", "-p", str(port), "-k", "",
                                   "-F"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", env=env, **who)
    database = Postgresql(port, "shop")

    def answers():
        assert server.poll() is None, open(os.path.join(base, "log")).read()
        return subprocess.run(["psql", "-X", "-c", "SELECT 1", database.argument], capture_output=True).returncode == 0
    try:
        wait_until(answers, "PostgreSQL starts", 60)
        yield database
    finally:
        server.terminate()
        server.wait(60)
        shutil.rmtree(base)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request, spool):
    if request.param == "sqlite":
        return Sqlite(os.path.join(spool.dir, "shop.db"))
    database = request.getfixturevalue("postgresql")
    database.rows("DROP TABLE IF EXISTS handled; DROP TABLE IF EXISTS orders")
    return database


def example(database):
    return f"{shlex.quote(os.path.abspath(os.path.join(EXAMPLES, database.program)))} {shlex.quote(database.argument)}"


def inject(api, *texts):
    for chat, text in enumerate(texts, 1):
        api.inject_message(chat, text)


def test_an_order_is_taken_once(spool, api, database):
    """Each first try does its work and is then lost: the second must find it done."""
    spool.write("lost", f"#!/bin/sh\n{example(database)} || exit\n"
                        "[ $TGSPOOL_ATTEMPT = 1 ] && kill -9 $$\nexit 0\n", 0o700)
    spool.configure(command=os.path.join(spool.dir, "lost"), retry="[100ms]")
    inject(api, "/order cups 3", "hello", "/order a'b\"; 2")
    spool.start()
    spool.wait_counts(done=3)
    assert sorted(database.rows("SELECT item, count FROM orders")) == [("a'b\";", 2), ("cups", 3)]
    assert database.rows("SELECT count(*) FROM handled") == [(2,)]
    assert all(e["attempts"] == 2 for e in spool.events(state="done"))
    # the same by hand, days later
    spool.cli("replay", "--state", "done", "--bot", "shop")
    spool.wait_counts(done=6)
    assert database.rows("SELECT count(*) FROM orders") == [(2,)]


def test_what_is_no_order_leaves_no_mark(spool, api, database):
    """The mark goes with the change: where that is refused, neither is there."""
    spool.configure(command=example(database))
    inject(api, "/order cups 0", "/order cups many")
    spool.start()
    spool.wait_counts(dead=2)
    assert database.rows("SELECT count(*) FROM orders") == [(0,)]
    assert database.rows("SELECT count(*) FROM handled") == [(0,)]
    assert {e["reason"] for e in spool.events(state="dead")} == {"rejected"}


def test_two_tries_at_once(spool, database):
    """Whatever comes of a try that was taken for dead and lives on."""
    env = {**os.environ, "TGSPOOL_KEY": "1:2:00000000"}
    update = '{"update_id":2,"message":{"text":"/order cups 3"}}'
    first = subprocess.run(shlex.split(example(database)), input=update, text=True, env=env)  # makes the tables
    assert first.returncode == 0
    env["TGSPOOL_KEY"] = "1:3:00000000"
    tries = [subprocess.Popen(shlex.split(example(database)), stdin=subprocess.PIPE, text=True, env=env)
             for _ in range(4)]
    for t in tries:
        t.communicate(update)
    assert [t.returncode for t in tries] == [0] * 4
    assert database.rows("SELECT count(*) FROM orders") == [(2,)]


def test_a_database_that_is_away(spool, api):
    """Not the update's fault: nothing is dead, and the handler's word for it is unavailable."""
    if not shutil.which("psql"):
        pytest.skip("no psql: install postgresql")
    away = Postgresql(free_port(), "shop")
    done = subprocess.run(shlex.split(example(away)), input='{"update_id":1}', text=True, capture_output=True,
                          env={**os.environ, "TGSPOOL_KEY": "1:1:00000000"})
    assert done.returncode == 69, done.stderr
