"""Rounds: a run that ends by a power cut at some operation, the disks that may be left, and what must hold on them. Each
kind of round has its own work, so that all that the daemon keeps on disk is met."""
import contextlib
import os
import shutil

from harness import free_port, wait_until
from stage import Died, Stage

START = 160  # about as many operations as a daemon takes to make a new spool; a later start needs fewer


@contextlib.contextmanager
def staged(seed, **options):
    s = Stage(seed, **options)
    try:
        yield s
    finally:
        s.close()


def some(s, most=1200):
    """At which operation: in the start, or at work; the early ones more often."""
    return s.rng.randint(1, START) if s.rng.random() < 0.25 else START + int(s.rng.random() ** 2 * most)


def after_a_cut(s, again):
    """Looks at the strict disk and two torn ones, then goes on on one of them: to another cut, or to the end."""
    s.power_off()
    d = s.disk_after()
    for _ in range(2):
        s.put(d.torn, s.rng)
        s.check()
    if s.rng.random() < 0.5:
        s.put(d.strict)
        s.check()
        s.put(d.strict)
    else:
        s.put(d.torn, s.rng)
    if again:
        s.begin()
        with contextlib.suppress(Died):
            s.start(cut=int(s.rng.random() * START * 2) + 1)
            again()
        after_a_cut(s, None)
    else:
        s.check_backup()
        s.goes_on()


def cut_at_work(s, env=None, **load):
    """Two cuts: of a new daemon, and of one that stands on what the first left."""
    s.begin()
    with contextlib.suppress(Died):
        s.start(cut=some(s), more=env)
        s.load(**load)
    after_a_cut(s, lambda: s.load(seconds=5, **load))


def poll(seed):
    with staged(seed) as s:
        cut_at_work(s)


def webhook(seed):
    port = free_port()
    with staged(seed, intake="webhook", poll_timeout=None, webhook_url=f"http://127.0.0.1:{port}/hook/shop") as s:
        secret = s.spool.write("hook", "Webhook_secret-0123456789\n")
        s.spool.configure(webhook_secret_file=secret, listen={"webhook": f"127.0.0.1:{port}"})
        cut_at_work(s, port=port)


def tables(seed):
    """Large updates: memory is written to tables, logs go, tables are merged."""
    with staged(seed) as s:
        s.spool.configure(spool={"reserve": "1M"})
        cut_at_work(s, size=60000, calls=False)


def grouped(seed):
    """Several batches share a sync, and wait for it."""
    with staged(seed) as s:
        s.spool.configure(spool={"sync": "5ms"})
        cut_at_work(s)


def unsynced(seed):
    """Nobody was promised anything, but what is left is whole, and nobody has to come for it."""
    with staged(seed) as s:
        s.spool.configure(spool={"sync": "off", "reserve": "1M", "retain_done": "1s"})
        s.durable = False
        cut_at_work(s, size=s.rng.choice((0, 5000, 60000)), calls=False, old=True)


def archive(seed):
    """What is removed was archived before."""
    with staged(seed) as s:
        s.spool.configure(spool={"archive_dir": s.archive, "retain_done": "1s", "retain_dead": "1s"})
        cut_at_work(s, old=True, calls=False)


def backup(seed):
    """A cut in the first backup, and in the next: there is none, or a whole one, and always what was told to be in it."""
    with staged(seed) as s:
        s.begin()
        with contextlib.suppress(Died):
            s.start()
            for _ in range(3):
                s.load(seconds=0.1, calls=False)
                have = s.promised_to_a_backup()
                s.run("backup", s.backup, cut=s.rng.randint(1, 120) if s.rng.random() < 0.7 else None)
                s.in_backup = have
        after_a_cut(s, None)


def restore(seed):
    """A cut in a restore: run again, it ends; and a daemon finds either no spool or all that the backup has."""
    with staged(seed) as s:
        s.start()
        s.load(seconds=0.2, calls=False)
        wait_until(lambda: not s.api.state()["queued"], "Telegram has nothing more")
        s.run("backup", s.backup)
        s.in_backup = s.promised_to_a_backup()
        s.power_off()
        shutil.rmtree(s.spool.data)
        s.begin()
        with contextlib.suppress(Died):
            s.run("restore", s.backup, cut=s.rng.randint(1, 400))
        d = s.disk_after()
        for make, args in ((d.strict, ()), (d.torn, (s.rng,))):
            s.put(make, *args)
            # whoever comes next takes the last step of one that was cut there: then the place is taken
            only_to_end = os.path.isdir(os.path.join(s.spool.data, "incoming"))
            if not s.spool_is_there():
                with contextlib.suppress(AssertionError) if only_to_end else contextlib.nullcontext():
                    s.run("restore", s.backup)
            s.check()
            s.check_backup()


def migrate(seed):
    """A cut while a spool of an older schema is brought to ours: it goes on, and its checkpoint is there when it is done."""
    with staged(seed) as s:
        s.start()
        s.load(seconds=0.3)
        s.power_off()
        s.believed()
        marker = os.path.join(s.spool.data, "SPOOL")
        with open(marker, "w", encoding="ascii") as f:
            f.write("tgspool spool; schema 1\n")
        s.begin()
        with contextlib.suppress(Died):
            s.start(cut=s.rng.randint(1, 150))
        s.power_off()
        d = s.disk_after()
        for make, args in ((d.strict, ()), (d.torn, (s.rng,)), (d.torn, (s.rng,))):
            s.put(make, *args)
            with open(marker, encoding="ascii") as f:
                if f.read().endswith(" 2\n"):
                    s.spool.cli("verify", os.path.join(s.spool.data, "before-schema-1"))
        s.goes_on()


KINDS = (poll, webhook, tables, archive, backup, restore, grouped, migrate, unsynced)


def run(seed):
    """The round of a seed: its kind, and all its chances."""
    kind = KINDS[seed % len(KINDS)]
    try:
        kind(seed)
    except Exception as e:
        raise AssertionError(f"round {seed} ({kind.__name__}): {e!r}") from e
