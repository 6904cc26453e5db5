/* Environment: TGSPOOL_POWER_DIR, the watched directory; TGSPOOL_POWER_JOURNAL, a file to append to, of which several
 * processes may have a share; TGSPOOL_POWER_CUT=N, the operation (from 1) of this process that never happens;
 * TGSPOOL_POWER_FAULT=OPERATION:PATTERN:ERRNO:N:COUNT, an operation (* is any) that fails on paths like PATTERN (of fnmatch, below the
 * directory), from its N-th on, COUNT times (0: for ever); a sync with ERRNO -1 says that it succeeded, and did nothing. The operation
 * read is none of those that * is: what changes nothing goes on where nothing can be written. TGSPOOL_POWER_WHEN=FILE: it
 * fails, and is counted, only while that is there. */
#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static const char *const names[] = {
    [OP_OPEN] = "open",   [OP_WRITE] = "write",   [OP_TRUNCATE] = "truncate", [OP_ALLOCATE] = "allocate",
    [OP_SYNC] = "sync",   [OP_RENAME] = "rename", [OP_LINK] = "link",         [OP_UNLINK] = "unlink",
    [OP_MKDIR] = "mkdir", [OP_RMDIR] = "rmdir",   [OP_READ] = "read"};

/* How an entry stands in the journal; path and then second path or bytes follow. */
struct head {
    uint32_t op, n_path;
    uint64_t ino, a, n_second;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static const char *root;
static int journal = -1;
static long cut_at, operations;
static struct {
    char *operation, *pattern;
    int error;
    const char *when; /* NULL: always */
    long from, count, seen;
    bool half;  /* the next one finds no room at all */
    bool reads; /* its operation is read */
} fault;

static void parse_fault(const char *text)
{
    char *copy = strdup(text), *save = NULL;

    fault.operation = strtok_r(copy, ":", &save);
    fault.pattern = strtok_r(NULL, ":", &save);
    char *error = strtok_r(NULL, ":", &save), *from = strtok_r(NULL, ":", &save),
         *count = strtok_r(NULL, ":", &save);
    if (!count)
        journal_unknown("TGSPOOL_POWER_FAULT", text);
    fault.error = atoi(error);
    fault.from = atol(from);
    fault.count = atol(count);
    fault.when = getenv("TGSPOOL_POWER_WHEN");
    fault.reads = !strcmp(fault.operation, names[OP_READ]);
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("TGSPOOL_POWER_JOURNAL"), *cut = getenv("TGSPOOL_POWER_CUT"),
               *spec = getenv("TGSPOOL_POWER_FAULT");

    unsetenv("LD_PRELOAD"); /* its children are no part of this */
    if (!path)
        return;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    journal = fcntl(fd, F_DUPFD_CLOEXEC, 200); /* out of the way of who counts its descriptors */
    if (journal < 0)
        journal = fd;
    else
        close(fd);
    if (journal < 0)
        journal_unknown("no journal", path);
    cut_at = cut ? atol(cut) : 0;
    if (spec && *spec)
        parse_fault(spec);
    root = getenv("TGSPOOL_POWER_DIR");
}

const char *journal_root(void)
{
    return root;
}

static int fails(enum operation op, const char *path)
{
    bool any = fault.operation && !strcmp(fault.operation, "*") && op != OP_READ;

    if (!fault.operation || (!any && strcmp(fault.operation, names[op]) != 0) ||
        fnmatch(fault.pattern, path + strlen(root) + 1, 0) ||
        (fault.when && syscall(SYS_access, fault.when, F_OK) < 0))
        return 0;
    long n = ++fault.seen - fault.from;
    if (n < 0 || (fault.count && n >= fault.count))
        return 0;
    journal_add(&(struct entry){.op = OP_FAULT, .path = path});
    return fault.error;
}

void journal_begin_quietly(void)
{
    pthread_mutex_lock(&mutex);
    while (flock(journal, LOCK_EX) < 0 && errno == EINTR)
        ;
}

int journal_begin(enum operation op, const char *path)
{
    journal_begin_quietly();
    if (++operations == cut_at)
        _exit(POWER_CUT);
    return fails(op, path);
}

bool journal_reads_fail(void)
{
    return fault.reads;
}

int journal_read(const char *path)
{
    if (fnmatch(fault.pattern, path + strlen(root) + 1, 0))
        return 0;
    journal_begin_quietly();
    int error = fails(OP_READ, path);
    journal_end();
    return error;
}

size_t journal_room(size_t n)
{
    fault.half = !fault.half && fault.error == ENOSPC && n > 1;
    fault.seen -= fault.half; /* the same one fails at its second part */
    return fault.half ? n / 2 : 0;
}

void journal_add(const struct entry *e)
{
    size_t n_path = e->path ? strlen(e->path) : 0, n = e->second ? strlen(e->second) : e->n;
    struct head h = {(uint32_t)e->op, (uint32_t)n_path, e->ino, e->a, n};
    struct iovec v[] = {
        {&h, sizeof(h)}, {(void *)e->path, n_path}, {(void *)(e->second ? e->second : e->bytes), n}};

    if (syscall(SYS_writev, journal, v, 3) != (long)(sizeof(h) + n_path + n))
        journal_unknown("the journal cannot be written", "");
}

void journal_end(void)
{
    int error = errno;

    flock(journal, LOCK_UN);
    pthread_mutex_unlock(&mutex);
    errno = error;
}

_Noreturn void journal_unknown(const char *what, const char *path)
{
    dprintf(2, "power: no model of this: %s %s\n", what, path);
    _exit(POWER_UNKNOWN);
}
