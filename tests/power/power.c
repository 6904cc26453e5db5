/* Loaded before the C library (LD_PRELOAD), it sees what a process does to the files below one directory, and writes it
 * down (journal.h): so that afterwards disk.py knows what a disk would hold had the power been cut. Nothing is really
 * synced. What it has no model of ends the process, so that nothing goes unseen. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "journal.h"

#define FDS 4096
/* The function that this one stands before. */
#define NEXT(name)                 \
    static __typeof__(&name) next; \
    if (!next)                     \
    *(void **)&next = dlsym(RTLD_NEXT, #name)

/* What is open below the directory. A closed descriptor is told by the file that it has become. */
static struct {
    dev_t dev;
    ino_t ino;
    char path[PATH_MAX];
} * fds[FDS];

/* ---- whose file it is ----------------------------------------------------------------------------------------------- */

static bool is_below(const char *path)
{
    const char *root = journal_root();
    size_t n = strlen(root);

    return !strncmp(path, root, n) && (path[n] == '/' || !path[n]);
}

/* Where a descriptor was opened; "" if that cannot be said. */
static void path_of_fd(int fd, char out[PATH_MAX])
{
    char link[64];

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, out, PATH_MAX - 1);
    out[n < 0 ? 0 : n] = '\0';
}

/* The whole path of a name. Returns whether it is below the directory. */
static bool watched_at(int dir, const char *name, char out[PATH_MAX])
{
    char base[PATH_MAX] = "";
    size_t n = 0;

    if (!journal_root() || !name)
        return false;
    if (name[0] != '/' && dir == AT_FDCWD && !getcwd(base, sizeof(base)))
        return false;
    if (name[0] != '/' && dir != AT_FDCWD)
        path_of_fd(dir, base);
    for (int part = 0; part < 2; part++) /* without repeated slashes */
        for (const char *p = part ? name : base; *p && n < PATH_MAX - 2; p++) {
            if (part && p == name && n && out[n - 1] != '/' && *p != '/')
                out[n++] = '/';
            if (*p != '/' || !n || out[n - 1] != '/')
                out[n++] = *p;
        }
    while (n > 1 && out[n - 1] == '/')
        n--;
    out[n] = '\0';
    if (!is_below(out))
        return false;
    if (strstr(out, "/../") || strstr(out, "/./"))
        journal_unknown("a path with dots", out);
    return true;
}

/* The path of a descriptor that is watched, else NULL; with what it is now. */
static const char *watched(int fd, struct stat *st)
{
    char path[PATH_MAX];

    if (!journal_root() || fd < 0 || fd >= FDS || fstat(fd, st) < 0 ||
        (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode)))
        return NULL;
    if (fds[fd] && fds[fd]->ino == st->st_ino && fds[fd]->dev == st->st_dev)
        return fds[fd]->path;
    path_of_fd(fd, path);
    if (is_below(path))
        journal_unknown("a descriptor that was not opened here", path);
    return NULL;
}

static void remember(int fd, const char *path, const struct stat *st)
{
    if (fd >= FDS)
        journal_unknown("too many open files", path);
    if (!fds[fd])
        fds[fd] = malloc(sizeof(*fds[fd]));
    fds[fd]->dev = st->st_dev;
    fds[fd]->ino = st->st_ino;
    snprintf(fds[fd]->path, sizeof(fds[fd]->path), "%s", path);
}

static int failed(int error)
{
    journal_end();
    errno = error;
    return -1;
}

/* ---- files ---------------------------------------------------------------------------------------------------------- */

int openat(int dir, const char *name, int flags, ...)
{
    NEXT(openat);
    char path[PATH_MAX];
    struct stat st;
    mode_t mode = 0;

    if (flags & (O_CREAT | __O_TMPFILE)) {
        va_list ap;
        va_start(ap, flags);
        mode = (mode_t)va_arg(ap, int);
        va_end(ap);
    }
    if (!watched_at(dir, name, path))
        return next(dir, name, flags, mode);
    if ((flags & O_TMPFILE) == O_TMPFILE)
        journal_unknown("O_TMPFILE", path);
    int error = 0;
    if (flags & (O_CREAT | O_TRUNC))
        error = journal_begin(OP_OPEN, path);
    else
        journal_begin_quietly();
    if (error)
        return failed(error);
    int fd = next(dir, name, flags, mode);
    if (fd >= 0 && fstat(fd, &st) == 0) {
        unsigned how = (flags & O_CREAT ? 1u : 0u) | (flags & O_TRUNC ? 2u : 0u);
        journal_add(&(struct entry){.op = OP_OPEN, .path = path, .ino = st.st_ino, .a = how});
        remember(fd, path, &st);
    }
    journal_end();
    return fd;
}

int open(const char *name, int flags, ...)
{
    mode_t mode = 0;

    if (flags & (O_CREAT | __O_TMPFILE)) {
        va_list ap;
        va_start(ap, flags);
        mode = (mode_t)va_arg(ap, int);
        va_end(ap);
    }
    return openat(AT_FDCWD, name, flags, mode);
}

int creat(const char *name, mode_t mode)
{
    return openat(AT_FDCWD, name, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

/* at: the offset, -1 for where the descriptor stands. */
static ssize_t write_to(int fd, const char *path, const struct stat *st, const void *bytes, size_t n,
                        off_t at)
{
    static ssize_t (*next)(int, const void *, size_t), (*next_at)(int, const void *, size_t, off_t);

    if (!next) {
        *(void **)&next = dlsym(RTLD_NEXT, "write");
        *(void **)&next_at = dlsym(RTLD_NEXT, "pwrite");
    }
    if (!path)
        return at < 0 ? next(fd, bytes, n) : next_at(fd, bytes, n, at);
    int error = journal_begin(OP_WRITE, path);
    if (error && !(n = journal_room(n)))
        return failed(error);
    ssize_t done = at < 0 ? next(fd, bytes, n) : next_at(fd, bytes, n, at);
    if (done > 0) {
        off_t from = at < 0 ? lseek(fd, 0, SEEK_CUR) - done : at;
        journal_add(&(struct entry){
            .op = OP_WRITE, .ino = st->st_ino, .a = (uint64_t)from, .bytes = bytes, .n = (size_t)done});
    }
    journal_end();
    return done;
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    struct stat st;
    const char *path = watched(fd, &st);

    return write_to(fd, path, &st, bytes, n, -1);
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    struct stat st;
    const char *path = watched(fd, &st);

    return write_to(fd, path, &st, bytes, n, at);
}

int ftruncate(int fd, off_t size)
{
    NEXT(ftruncate);
    struct stat st;
    const char *path = watched(fd, &st);

    if (!path)
        return next(fd, size);
    int error = journal_begin(OP_TRUNCATE, path);
    if (error)
        return failed(error);
    int rc = next(fd, size);
    if (rc == 0)
        journal_add(&(struct entry){.op = OP_TRUNCATE, .ino = st.st_ino, .a = (uint64_t)size});
    journal_end();
    return rc;
}

int fallocate(int fd, int mode, off_t from, off_t n)
{
    NEXT(fallocate);
    struct stat st;
    const char *path = watched(fd, &st);

    if (!path)
        return next(fd, mode, from, n);
    if (mode & ~FALLOC_FL_KEEP_SIZE && mode != (FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE))
        journal_unknown("fallocate", path);
    int error = journal_begin(OP_ALLOCATE, path);
    if (error)
        return failed(error);
    int rc = next(fd, mode, from, n);
    if (rc == 0 && !mode)
        journal_add(&(struct entry){.op = OP_ALLOCATE, .ino = st.st_ino, .a = (uint64_t)(from + n)});
    journal_end();
    return rc;
}

/* Does nothing but to write it down. */
static int sync_file(int fd, int (*next)(int))
{
    struct stat st;
    const char *path = watched(fd, &st);

    if (!path)
        return next(fd);
    int error = journal_begin(OP_SYNC, path);
    if (error > 0)
        return failed(error);
    uint64_t changed = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
    if (!error) /* else it is as if the program had left it out */
        journal_add(&(struct entry){.op = OP_SYNC, .ino = st.st_ino, .a = changed});
    journal_end();
    return 0;
}

int fsync(int fd)
{
    NEXT(fsync);
    return sync_file(fd, next);
}

int fdatasync(int fd)
{
    NEXT(fdatasync);
    return sync_file(fd, next);
}

/* It promises nothing for a power cut. */
int sync_file_range(int fd, off_t from, off_t n, unsigned flags)
{
    NEXT(sync_file_range);
    struct stat st;

    return watched(fd, &st) ? 0 : next(fd, from, n, flags);
}

/* ---- reads ---------------------------------------------------------------------------------------------------------- */

/* Whether a read of what has this path (NULL: nothing of ours) fails: errno says why. */
static bool fails_to_read(const char *path)
{
    int error = path ? journal_read(path) : 0;

    if (error)
        errno = error;
    return error != 0;
}

/* The same of a descriptor; looked at only where reads are to fail. */
static bool read_fails(int fd)
{
    struct stat st;

    return journal_reads_fail() && fails_to_read(watched(fd, &st));
}

ssize_t read(int fd, void *bytes, size_t n)
{
    NEXT(read);
    return read_fails(fd) ? -1 : next(fd, bytes, n);
}

ssize_t pread(int fd, void *bytes, size_t n, off_t at)
{
    NEXT(pread);
    return read_fails(fd) ? -1 : next(fd, bytes, n, at);
}

/* RocksDB reads its log and index so. What is in the stream's buffer does not come again from the disk, and may fail all the same. */
#undef fread_unlocked /* glibc's macro of it */
size_t fread_unlocked(void *bytes, size_t size, size_t n, FILE *f)
{
    NEXT(fread_unlocked);
    return read_fails(fileno_unlocked(f)) ? 0 : next(bytes, size, n, f);
}

struct dirent *readdir(DIR *dir)
{
    NEXT(readdir);
    char path[PATH_MAX];

    if (journal_reads_fail() && journal_root()) {
        path_of_fd(dirfd(dir), path); /* opendir opens it by no name that could be stood before */
        if (is_below(path) && fails_to_read(path))
            return NULL;
    }
    return next(dir);
}

/* ---- names ---------------------------------------------------------------------------------------------------------- */

/* What changes one name. */
static int change(enum operation op, int dir, const char *name, int (*next)(int, const char *, unsigned),
                  unsigned arg)
{
    char path[PATH_MAX];

    if (!watched_at(dir, name, path))
        return next(dir, name, arg);
    int error = journal_begin(op, path);
    if (error)
        return failed(error);
    int rc = next(dir, name, arg);
    if (rc == 0)
        journal_add(&(struct entry){.op = op, .path = path});
    journal_end();
    return rc;
}

static int do_mkdir(int dir, const char *name, unsigned mode)
{
    NEXT(mkdirat);
    return next(dir, name, mode);
}

static int do_unlink(int dir, const char *name, unsigned flags)
{
    NEXT(unlinkat);
    return next(dir, name, (int)flags);
}

int mkdirat(int dir, const char *name, mode_t mode)
{
    return change(OP_MKDIR, dir, name, do_mkdir, mode);
}

int mkdir(const char *name, mode_t mode)
{
    return mkdirat(AT_FDCWD, name, mode);
}

int unlinkat(int dir, const char *name, int flags)
{
    return change(flags & AT_REMOVEDIR ? OP_RMDIR : OP_UNLINK, dir, name, do_unlink, (unsigned)flags);
}

int unlink(const char *name)
{
    return unlinkat(AT_FDCWD, name, 0);
}

int rmdir(const char *name)
{
    return unlinkat(AT_FDCWD, name, AT_REMOVEDIR);
}

int remove(const char *name)
{
    struct stat st;

    if (lstat(name, &st) < 0)
        return -1;
    return unlinkat(AT_FDCWD, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0);
}

/* What has two names, both below the directory or both not. */
static int change_two(enum operation op, const char *from, const char *to,
                      int (*next)(const char *, const char *))
{
    char a[PATH_MAX], b[PATH_MAX];
    bool one = watched_at(AT_FDCWD, from, a), two = watched_at(AT_FDCWD, to, b);

    if (!one && !two)
        return next(from, to);
    if (one != two)
        journal_unknown("a name that leaves or enters", one ? a : b);
    int error = journal_begin(op, b);
    if (error)
        return failed(error);
    int rc = next(from, to);
    if (rc == 0)
        journal_add(&(struct entry){.op = op, .path = a, .second = b});
    journal_end();
    return rc;
}

int rename(const char *from, const char *to)
{
    NEXT(rename);
    return change_two(OP_RENAME, from, to, next);
}

int link(const char *from, const char *to)
{
    NEXT(link);
    return change_two(OP_LINK, from, to, next);
}

/* ---- what is not modelled ------------------------------------------------------------------------------------------- */

static void refuse_fd(const char *what, int fd)
{
    struct stat st;
    const char *path = watched(fd, &st);

    if (path)
        journal_unknown(what, path);
}

static void refuse_name(const char *what, const char *name)
{
    char path[PATH_MAX];

    if (watched_at(AT_FDCWD, name, path))
        journal_unknown(what, path);
}

FILE *fopen(const char *name, const char *mode)
{
    NEXT(fopen);
    if (strpbrk(mode, "wa+") || journal_reads_fail())
        refuse_name("fopen", name);
    return next(name, mode);
}

FILE *fdopen(int fd, const char *mode)
{
    NEXT(fdopen);
    if (strpbrk(mode, "wa+"))
        refuse_fd("fdopen", fd);
    return next(fd, mode);
}

void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    NEXT(mmap);
    if ((flags & MAP_SHARED && protection & PROT_WRITE) || journal_reads_fail())
        refuse_fd("mmap", fd);
    return next(at, n, protection, flags, fd, offset);
}

ssize_t readv(int fd, const struct iovec *v, int n)
{
    NEXT(readv);
    refuse_fd("readv", fd);
    return next(fd, v, n);
}

ssize_t preadv(int fd, const struct iovec *v, int n, off_t at)
{
    NEXT(preadv);
    refuse_fd("preadv", fd);
    return next(fd, v, n, at);
}

size_t fread(void *bytes, size_t size, size_t n, FILE *f)
{
    NEXT(fread);
    refuse_fd("fread", fileno(f));
    return next(bytes, size, n, f);
}

ssize_t writev(int fd, const struct iovec *v, int n)
{
    NEXT(writev);
    refuse_fd("writev", fd);
    return next(fd, v, n);
}

ssize_t pwritev(int fd, const struct iovec *v, int n, off_t at)
{
    NEXT(pwritev);
    refuse_fd("pwritev", fd);
    return next(fd, v, n, at);
}

int posix_fallocate(int fd, off_t from, off_t n)
{
    NEXT(posix_fallocate);
    refuse_fd("posix_fallocate", fd);
    return next(fd, from, n);
}

ssize_t copy_file_range(int in, off_t *from, int out, off_t *to, size_t n, unsigned flags)
{
    NEXT(copy_file_range);
    refuse_fd("copy_file_range", out);
    return next(in, from, out, to, n, flags);
}

int truncate(const char *name, off_t size)
{
    NEXT(truncate);
    refuse_name("truncate", name);
    return next(name, size);
}

int symlink(const char *target, const char *name)
{
    NEXT(symlink);
    refuse_name("symlink", name);
    return next(target, name);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    NEXT(renameat);
    refuse_name("renameat", to);
    return next(from_dir, from, to_dir, to);
}

int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
    NEXT(linkat);
    refuse_name("linkat", to);
    return next(from_dir, from, to_dir, to, flags);
}

int syncfs(int fd)
{
    NEXT(syncfs);
    refuse_fd("syncfs", fd);
    return next(fd);
}

void sync(void)
{
    journal_unknown("sync", "");
}

/* Names of the same functions where a program was built for large files. */
int open64(const char *name, int flags, ...) __attribute__((alias("open")));
int openat64(int dir, const char *name, int flags, ...) __attribute__((alias("openat")));
int creat64(const char *name, mode_t mode) __attribute__((alias("creat")));
ssize_t pread64(int fd, void *bytes, size_t n, off_t at) __attribute__((alias("pread")));
ssize_t pwrite64(int fd, const void *bytes, size_t n, off_t at) __attribute__((alias("pwrite")));
int ftruncate64(int fd, off_t size) __attribute__((alias("ftruncate")));
int fallocate64(int fd, int mode, off_t from, off_t n) __attribute__((alias("fallocate")));
FILE *fopen64(const char *name, const char *mode) __attribute__((alias("fopen")));
void *mmap64(void *at, size_t n, int p, int flags, int fd, off_t offset) __attribute__((alias("mmap")));
