/* What the layer writes down: each change of the watched directory, in order, into a journal that disk.py reads; and
 * where it interferes: the end of the process at a given operation, or an operation that fails. */
#ifndef POWER_JOURNAL_H
#define POWER_JOURNAL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POWER_CUT 77     /* the exit status of a process whose power was cut */
#define POWER_UNKNOWN 86 /* of one that did what the layer has no model of */

enum operation {
    OP_OPEN = 1, /* path, ino, a: 1 may create, 2 empties it */
    OP_WRITE,    /* ino, a: offset; bytes */
    OP_TRUNCATE, /* ino, a: size */
    OP_ALLOCATE, /* ino, a: the least size from now on */
    OP_SYNC,     /* ino, a: the time of its last change, ns */
    OP_RENAME,   /* path, second path */
    OP_LINK,     /* path, second path */
    OP_UNLINK,   /* path */
    OP_MKDIR,    /* path */
    OP_RMDIR,    /* path */
    OP_FAULT,    /* path: an operation on it was made to fail */
    OP_READ      /* never written down: it only fails */
};

struct entry {
    enum operation op;
    uint64_t ino, a;
    const char *path, *second; /* either may be NULL */
    const void *bytes;         /* instead of a second path */
    size_t n;
};

/* The watched directory, NULL: nothing is watched. */
const char *journal_root(void);
/* Begins an operation on a path that counts: all others wait until its end. Ends the process if it is the one at which
 * the power is cut. Returns 0, or the errno that it shall fail with. */
int journal_begin(enum operation op, const char *path);
/* The same for what does not count: it can neither fail nor be the last. */
void journal_begin_quietly(void);
/* Whether the n-th read of a path, or of a directory's names, is to fail: returns 0, or the errno. Does not count as an operation, and
 * costs nothing where no read is to fail. */
bool journal_reads_fail(void);
int journal_read(const char *path);
/* A write that is to fail for want of room writes this many of n bytes first. */
size_t journal_room(size_t n);
void journal_add(const struct entry *e);
/* Ends it; errno stays. */
void journal_end(void);
/* Ends the process: what it does to the path is not modelled. */
_Noreturn void journal_unknown(const char *what, const char *path);

#endif
