#include "store/log_tail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/tree.h"
#include "store/log_piece.h"

#define FILE_MAX (1u << 30)
#define SECTOR 512 /* what a disk writes at once, at least */

struct tail {
    size_t whole;      /* records */
    size_t good;       /* where the last of them ends */
    size_t zeros_at;   /* where zeros begin instead of a piece; SIZE_MAX: none, as for the next */
    size_t bad_at;     /* where the first piece that is not whole begins, or the zeros, if more follows */
    size_t bad_end;    /* where that ends: the next whole piece, or the end */
    bool whole_behind; /* a record after that one */
    size_t begun;      /* where the record that is looked at begins */
    size_t last_at;    /* where the last whole record begins */
};

static bool all_zero(const unsigned char *p, size_t n)
{
    return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

/* Whether a sector that begins before `to`, or what the file has of it from `from` on, is zeros. */
static bool has_unwritten_sector(struct slice file, size_t from, size_t to)
{
    for (size_t at = from; at < to;) {
        size_t end = (at / SECTOR + 1) * SECTOR;
        if (end > file.n)
            end = file.n;
        if (all_zero((const unsigned char *)file.p + at, end - at))
            return true;
        at = end;
    }
    return false;
}

/* Where behind a piece that is not whole, of whose length nothing is known, the next whole one begins; else end. */
static size_t next_whole(const unsigned char *file, size_t at, size_t end)
{
    struct log_piece piece;

    for (at++; end - at >= LOG_HEADER; at++)
        if (file[at + 6] >= PIECE_FULL && file[at + 6] <= PIECE_LAST &&
            log_piece_read(file + at, end - at, &piece) == LOG_PIECE_WHOLE)
            return at;
    return end;
}

/* Takes one block. inside: within a record whose beginning was whole. */
static void take_block(struct tail *t, const unsigned char *file, size_t at, size_t end, bool *inside)
{
    struct log_piece piece;

    for (; end - at >= LOG_HEADER; at += piece.size) {
        enum log_piece_state state = log_piece_read(file + at, end - at, &piece);
        if (state == LOG_PIECE_NOTHING && all_zero(file + at, end - at)) {
            t->zeros_at = t->zeros_at == SIZE_MAX ? at : t->zeros_at;
            if (*inside && t->bad_at == SIZE_MAX) { /* the rest of a record */
                t->bad_at = at;
                t->bad_end = end;
            }
            *inside = false;
            return;
        }
        size_t next = state == LOG_PIECE_WHOLE ? at + piece.size : next_whole(file, at, end);
        if (t->bad_at == SIZE_MAX && (t->zeros_at != SIZE_MAX || state != LOG_PIECE_WHOLE)) {
            t->bad_at = t->zeros_at != SIZE_MAX ? t->zeros_at : at;
            t->bad_end = t->zeros_at != SIZE_MAX ? at : next;
        }
        if (state != LOG_PIECE_WHOLE) {
            *inside = false;
            piece.size = next - at;
            continue;
        }
        if (piece.type == PIECE_FIRST || piece.type == PIECE_FULL)
            t->begun = at;
        if (piece.type == PIECE_FIRST)
            *inside = true;
        bool ends =
            piece.type == PIECE_LAST ? *inside : piece.type != PIECE_FIRST && piece.type != PIECE_MIDDLE;
        if (!ends)
            continue;
        *inside = false;
        t->whole++;
        t->last_at = t->begun;
        if (t->bad_at == SIZE_MAX)
            t->good = at + piece.size;
        else
            t->whole_behind = true;
    }
}

/* unsynced: so far behind it there may be whole records. */
static bool is_torn(const struct tail *t, struct slice file, size_t unsynced)
{
    return t->bad_at != SIZE_MAX && has_unwritten_sector(file, t->bad_at, t->bad_end) &&
           (!t->whole_behind || t->last_at - t->bad_at <= unsynced);
}

static struct tail look(struct slice file)
{
    struct tail t = {.zeros_at = SIZE_MAX, .bad_at = SIZE_MAX};
    bool inside = false;

    for (size_t at = 0; at < file.n; at += LOG_BLOCK)
        take_block(&t, (const unsigned char *)file.p, at, file.n - at < LOG_BLOCK ? file.n : at + LOG_BLOCK,
                   &inside);
    return t;
}

static int cut_off(const char *path, size_t size, struct err *e)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    int rc = fd < 0 || ftruncate(fd, (off_t)size) < 0 || fsync(fd) < 0 ? -1 : 0;

    if (rc < 0)
        err_set(e, EX_IOERR, "cannot cut %s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return rc;
}

/* One file. *whole: its records. Returns 1 if it is torn, 0, or -1 and e. */
static int look_at_file(const char *db_path, const char *name, size_t unsynced, bool cut, size_t *whole,
                        struct err *e)
{
    char *path = xasprintf("%s/%s", db_path, name);
    struct buf file = BUF_EMPTY;
    int rc = file_read(path, FILE_MAX, &file, e);

    if (rc == 0) {
        struct tail t = look(buf_slice(&file));
        *whole = t.whole;
        rc = is_torn(&t, buf_slice(&file), unsynced);
        if (rc && cut && cut_off(path, t.good, e) < 0)
            rc = -1;
        if (rc > 0 && cut)
            log_warn(
                NULL,
                "the end of %s is torn, as a power cut leaves it: %zu bytes are gone, which were not synced",
                name, file.n - t.good);
    }
    buf_free(&file);
    free(path);
    return rc;
}

/* ---- which files -------------------------------------------------------------------------------- */

struct newest {
    int64_t below, found; /* numbers */
};

static int newest_log(void *arg, const char *name, struct err *e)
{
    struct newest *n = arg;
    const char *dot = strrchr(name, '.');
    int64_t number;

    (void)e;
    if (dot && !strcmp(dot, ".log") &&
        text_to_i64(slice_make(name, (size_t)(dot - name)), 0, INT64_MAX, &number) == 0 &&
        number < n->below && number > n->found)
        n->found = number;
    return 0;
}

/* From the newest on: one that is older can be torn only where nothing that is newer is whole. */
static int look_at_logs(const char *db_path, bool cut, struct err *e)
{
    struct newest n = {.below = INT64_MAX};
    int torn = 0;

    for (;; n.below = n.found) {
        char name[32];
        size_t whole = 0;
        n.found = -1;
        if (dir_each(db_path, newest_log, &n, e) < 0)
            return -1;
        if (n.found < 0)
            return torn;
        snprintf(name, sizeof(name), "%06lld.log", (long long)n.found);
        int rc = look_at_file(db_path, name, LOG_UNSYNCED_MAX, cut, &whole, e);
        if (rc < 0)
            return -1;
        torn += rc;
        if (whole)
            return torn;
    }
}

int log_tail_torn(const char *db_path, bool cut, struct err *e)
{
    char *path = xasprintf("%s/CURRENT", db_path);
    struct buf name = BUF_EMPTY;
    size_t whole;
    int torn = file_read(path, 256, &name, e);

    if (torn == 0) {
        char *manifest = xasprintf("%.*s", (int)strcspn(buf_str(&name), "\n/"), buf_str(&name));
        torn = look_at_file(db_path, manifest, 0, cut, &whole, e);
        free(manifest);
    }
    if (torn >= 0) {
        int logs = look_at_logs(db_path, cut, e);
        torn = logs < 0 ? -1 : torn + logs;
    }
    buf_free(&name);
    free(path);
    return torn;
}

/* ---- holes -------------------------------------------------------------------------------------- */

/* Where in a block zeros stand instead of a piece; n: nowhere. */
static size_t find_nothing(const unsigned char *p, size_t n)
{
    for (size_t at = 0; n - at >= LOG_HEADER;) {
        if (p[at + 4] == 0 && p[at + 5] == 0 && p[at + 6] == PIECE_NONE)
            return at;
        size_t size = LOG_HEADER + (p[at + 4] | (size_t)p[at + 5] << 8);
        if (size > n - at)
            break; /* RocksDB finds that */
        at += size;
    }
    return n;
}

/* A block at a time: the log may be as large as all the memory that a start should take. Returns 1, 0 or -1 and errno. */
static int has_hole(int fd)
{
    unsigned char block[LOG_BLOCK];
    bool nothing = false; /* from some place on */
    ssize_t n;

    while ((n = file_read_block(fd, block, sizeof(block))) > 0) {
        size_t at = nothing ? 0 : find_nothing(block, (size_t)n);
        nothing = at < (size_t)n;
        if (!all_zero(block + at, (size_t)n - at))
            return 1;
    }
    return n < 0 ? -1 : 0;
}

/* 1 ends the walk. */
static int look_for_hole(void *arg, const char *name, struct err *e)
{
    const char *dot = strrchr(name, '.');

    if (!dot || strcmp(dot, ".log"))
        return 0;
    char *path = xasprintf("%s/%s", (const char *)arg, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int hole = fd >= 0 ? has_hole(fd) : errno == ENOENT ? 0 : -1; /* one that is gone is RocksDB's to tell */
    if (hole < 0)
        err_set(e, EX_IOERR, "cannot read %s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    free(path);
    return hole;
}

int log_has_hole(const char *db_path, struct err *e)
{
    char *path = xstrdup(db_path);
    int hole = access(db_path, F_OK) < 0 && errno == ENOENT ? 0 : dir_each(path, look_for_hole, path, e);

    free(path);
    return hole;
}
