"""What a disk holds after a power cut, told from the journal of power.c.

The strict disk holds of each file what it had at its last fsync, and of each directory the names that it had at its own last
fsync: that of a new file does not save its name. POSIX leaves two things open, in which this disk is as those that are in
use: a rename within a directory is one change, and a rename from one directory into another is one, too, which lasts from
the sync of the directory that the name went to (there is never a file of no name).

What was not synced may nevertheless be there, in part: a torn disk has the changes of names up to some moment, and of each
file the unsynced writes up to some byte; or its full size, but some sectors of what was not synced as they were before:
those from one on, or a few in the middle, or any pages of it.
"""
import os
import stat
import struct

HEAD = struct.Struct("=IIQQQ")
OPEN, WRITE, TRUNCATE, ALLOCATE, SYNC, RENAME, LINK, UNLINK, MKDIR, RMDIR, FAULT = range(1, 12)
MAY_CREATE, EMPTIES = 1, 2
TEARS = ("none", "all", "cut", "zeros", "holes", "pages")
SECTOR, PAGE = 512, 4096


class File:
    """Synced bytes, and what was done since: (WRITE, offset, bytes) and (TRUNCATE or ALLOCATE, size)."""

    def __init__(self, synced=b"", mtime=None):
        self.synced, self.mtime, self.since = synced, mtime, []

    def content(self, changes):
        out = bytearray(self.synced)
        for change in changes:
            if change[0] == WRITE:
                _, at, new = change
                out.extend(bytes(max(0, at - len(out))))
                out[at:at + len(new)] = new
            elif change[0] == TRUNCATE:
                out = out[:change[1]].ljust(change[1], b"\0")
            else:
                out = out.ljust(change[1], b"\0")
        return bytes(out)

    def sync(self, mtime):
        self.synced, self.mtime, self.since = self.content(self.since), mtime, []

    def torn(self, rng):
        """Synced, and some of what was done since."""
        how = rng.choice(TEARS)
        if how in ("none", "all") or not self.since:
            return self.synced if how == "none" else self.content(self.since)
        whole = self.content(self.since)
        if how == "cut":
            return self.cut(rng)
        if how == "pages":
            return self.pages(whole, rng)
        begin = rng.randrange(len(self.synced) // SECTOR * SECTOR, max(len(whole), len(self.synced)) + 1, SECTOR)
        end = len(whole) if how == "zeros" else begin + SECTOR * rng.randint(1, 8)
        unwritten = self.synced[begin:end].ljust(len(whole[begin:end]), b"\0")
        return whole[:begin] + unwritten[:len(whole[begin:end])] + whole[end:]

    def pages(self, whole, rng):
        """Any of the pages that were changed are as they were at the sync."""
        out = bytearray(whole)
        for page in range(0, len(whole), PAGE):
            old = self.synced[page:page + PAGE].ljust(len(whole[page:page + PAGE]), b"\0")
            if whole[page:page + PAGE] != old and rng.random() < 0.3:
                out[page:page + PAGE] = old
        return bytes(out)

    def cut(self, rng):
        """Up to some byte of some write."""
        last = rng.randrange(len(self.since))
        some = self.since[:last + 1]
        if some[-1][0] == WRITE:
            _, at, new = some[-1]
            some[-1] = (WRITE, at, new[:rng.randrange(len(new) + 1)])
        return self.content(some)


class Dir:
    """The names that it has, and those that are synced."""

    def __init__(self):
        self.now, self.synced = {}, {}


class Change:
    """Names that come and go at once: (directory, name, what it names)."""

    def __init__(self, gone=(), come=()):
        self.gone, self.come = gone, come

    def lasts_from(self, d):
        return any(x[0] is d for x in self.come or self.gone)

    def apply(self, names):
        """names: of a directory, its names to change."""
        for d, name, node in self.gone:
            if names(d).get(name) is node:
                del names(d)[name]
        for d, name, node in self.come:
            names(d)[name] = node


def entries(journal):
    """What a journal holds: operation, path, inode, number, second path or bytes."""
    with open(journal, "rb") as f:
        data = f.read()
    at = 0
    while at < len(data):
        op, n_path, ino, a, n = HEAD.unpack_from(data, at)
        at += HEAD.size
        yield op, data[at:at + n_path].decode(), ino, a, data[at + n_path:at + n_path + n]
        at += n_path + n


def faults(journal):
    """The paths of the operations that were made to fail."""
    return [entry[1] for entry in entries(journal) if entry[0] == FAULT]


class Disk:
    """The watched directory: as it was when read, all synced, and what a journal then says."""

    def __init__(self, root):
        self.root, self.unsynced, self.counts = root, [], {}
        self.by_ino = {}  # those that are open
        self.top = self.load(root, {})

    def load(self, path, files):
        st = os.lstat(path)
        if stat.S_ISDIR(st.st_mode):
            d = Dir()
            for name in os.listdir(path):
                d.now[name] = d.synced[name] = self.load(os.path.join(path, name), files)
            return d
        if st.st_ino not in files:
            with open(path, "rb") as f:
                files[st.st_ino] = File(f.read(), st.st_mtime_ns)
        return files[st.st_ino]

    # ---- reading a journal

    def find(self, path):
        """The directory that a path's last name stands in, that name, and what it names."""
        parts = [p for p in path[len(self.root):].split("/") if p]
        d = self.top
        for part in parts[:-1]:
            d = d.now[part]
        return (d, parts[-1], d.now.get(parts[-1])) if parts else (None, "", self.top)

    def change(self, gone=(), come=()):
        c = Change(gone, come)
        c.apply(lambda d: d.now)
        self.unsynced.append(c)

    def read(self, journal):
        for entry in entries(journal):
            self.counts[entry[0]] = self.counts.get(entry[0], 0) + 1
            self.take(*entry)
        return self

    def take(self, op, path, ino, a, second):
        if op == OPEN:
            self.open(path, ino, a)
        elif op == WRITE:
            self.by_ino[ino].since.append((WRITE, a, second))
        elif op in (TRUNCATE, ALLOCATE):
            self.by_ino[ino].since.append((op, a))
        elif op == SYNC:
            self.sync(self.by_ino[ino], a)
        elif op == RENAME:
            to = self.find(second.decode())
            self.change([self.find(path)], [to[:2] + (self.find(path)[2],)])
        elif op == LINK:
            self.change(come=[self.find(second.decode())[:2] + (self.find(path)[2],)])
        elif op in (UNLINK, RMDIR):
            self.change([self.find(path)])
        elif op == MKDIR:
            self.change(come=[self.find(path)[:2] + (Dir(),)])

    def open(self, path, ino, how):
        d, name, node = self.find(path)
        if node is None:
            assert how & MAY_CREATE, f"{path} was opened and is not known"
            node = File()
            self.change(come=[(d, name, node)])
        if how & EMPTIES:
            node.since.append((TRUNCATE, 0))
        self.by_ino[ino] = node

    def sync(self, node, mtime):
        if isinstance(node, File):
            node.sync(mtime)
            return
        for c in [c for c in self.unsynced if c.lasts_from(node)]:
            c.apply(lambda d: d.synced)
            self.unsynced.remove(c)

    # ---- what is left

    def write(self, to, names, content):
        """Makes the directory `to` of what names(directory) and content(file) tell."""
        made = {}

        def make(node, path):
            if isinstance(node, Dir):
                os.mkdir(path, 0o700)
                for name, child in names(node).items():
                    make(child, os.path.join(path, name))
            elif id(node) in made:
                os.link(made[id(node)], path)
            else:
                made[id(node)] = path
                with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as f:
                    f.write(content(node))
                if node.mtime is not None:
                    os.utime(path, ns=(node.mtime, node.mtime))
        make(self.top, to)
        return to

    def strict(self, to):
        return self.write(to, lambda d: d.synced, lambda f: f.synced)

    def torn(self, to, rng):
        names = {}

        def names_of(d):
            return names.setdefault(id(d), dict(d.synced))
        for c in self.unsynced[:rng.randrange(len(self.unsynced) + 1)]:
            c.apply(names_of)
        return self.write(to, names_of, lambda f: f.torn(rng))

    def whole(self, to):
        """All of it, as after kill -9: to prove that the journal says everything."""
        return self.write(to, lambda d: d.now, lambda f: f.content(f.since))
