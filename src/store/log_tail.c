#include "store/log_tail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/tree.h"
#include "store/log_index.h"
#include "store/log_mark.h"
#include "store/log_reader.h"

struct log_file {
    uint64_t number;
    uint64_t good; /* bytes that are whole; in the manifest, and up to the first gap of all logs */
    uint64_t size;
};

/* What is known so far, going through the logs in order. */
struct tail {
    struct log_file *logs;
    size_t n;
    size_t first;     /* of those that are needed */
    uint64_t begin;   /* sequence number of the first batch; 0: none was seen yet, or a gap is before it */
    uint64_t next;    /* sequence number of the next batch; 0: no batch was seen yet */
    enum log_gap gap; /* the first one */
    size_t gap_log;   /* which log it begins in */
    uint64_t synced;  /* of all marks behind it: up to this number */
    bool behind;      /* there are batches behind it */
    bool head_lost;   /* there is none before it */
    bool head_bad;    /* and the first one behind it says that some of that was synced */
    bool logs_torn;   /* to be cut; else, whatever the manifest is, they are not touched */
    bool foreign;     /* what the manifest or a log says is not all known here: RocksDB shall judge */
    struct log_index index;
};

/* ---- which files -------------------------------------------------------------------------------- */

static int add_log(void *arg, const char *name, struct err *e)
{
    struct tail *t = arg;
    const char *dot = strrchr(name, '.');
    int64_t number;

    (void)e;
    if (!dot || strcmp(dot, ".log") != 0 ||
        text_to_i64(slice_make(name, (size_t)(dot - name)), 0, INT64_MAX, &number) < 0)
        return 0;
    t->logs = xrealloc(t->logs, (t->n + 1) * sizeof(*t->logs));
    t->logs[t->n++] = (struct log_file){.number = (uint64_t)number};
    return 0;
}

static int by_number(const void *a, const void *b)
{
    const struct log_file *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

static char *log_path(const char *db_path, const struct log_file *l)
{
    return xasprintf("%s/%06llu.log", db_path, (unsigned long long)l->number);
}

/* ---- the logs ----------------------------------------------------------------------------------- */

static void begin_gap(struct tail *t, enum log_gap gap, size_t log)
{
    t->gap = gap;
    t->gap_log = log;
    t->head_lost = t->next == 0;
}

/* Whether the bytes in front of a batch are more than those that it says were not synced. In each block, up to
 * LOG_HEADER - 1 at the end and the head of one more piece come to them. */
static bool has_synced_before(const struct log_batch *b, uint64_t begin)
{
    uint64_t blocks = begin / LOG_BLOCK + 1;

    return b->mark.unsynced + blocks * (2 * LOG_HEADER - 1) < begin;
}

static void take_batch(struct tail *t, const struct log_batch *b, size_t log, const struct log_reader *r)
{
    uint64_t synced =
        b->marked ? b->mark.synced : b->first - 1; /* without a mark: all, to be on the safe side */

    if (t->gap == LOG_GAP_NONE && r->before != LOG_GAP_NONE)
        begin_gap(t, r->before, log);
    else if (t->gap == LOG_GAP_NONE && (t->next ? b->first > t->next : log > t->first))
        begin_gap(t, LOG_GAP_UNWRITTEN,
                  log > t->first ? log - 1 : log); /* that one ends early, or is empty */
    if (t->gap == LOG_GAP_NONE) {
        if (t->next == 0)
            t->begin = b->first;
        t->next = b->next;
        t->logs[log].good = r->end;
        return;
    }
    if (t->head_lost && !t->behind) { /* where it begins is not known, but where it ends */
        t->next = b->first - 1;
        t->head_bad = b->marked && log == t->gap_log && has_synced_before(b, r->begin);
    }
    t->behind = true;
    if (synced > t->synced)
        t->synced = synced;
}

/* Returns 0, or -1 and why. */
static int read_log(struct tail *t, size_t log, const char *db_path, struct err *why)
{
    char *path = log_path(db_path, &t->logs[log]);
    struct log_reader r;
    struct log_batch b;
    int rc = log_reader_open(&r, path, LOG_BATCH_HEAD);

    if (rc == 0)
        while ((rc = log_reader_next(&r)) > 0)
            if (log_batch_read(buf_slice(&r.head), &b) == 0)
                take_batch(t, &b, log, &r);
    if (rc < 0)
        err_set(why, EX_IOERR, "cannot read %s: %s", path, strerror(errno));
    if (rc == 0) {
        t->logs[log].size = r.end;
        t->foreign |= r.foreign;
        if (t->gap == LOG_GAP_NONE && r.before != LOG_GAP_NONE)
            begin_gap(t, r.before, log);
    }
    log_reader_close(&r);
    free(path);
    return rc;
}

static const char missing[] = "records that were synced are missing";

static enum log_state damaged(struct err *why, const char *what, const char *path, uint64_t at)
{
    err_set(why, EX_DATAERR, "cannot open the database: Corruption: %s in %s, at byte %llu", what,
            strrchr(path, '/') + 1, (unsigned long long)at);
    return LOG_DAMAGED;
}

static enum log_state damaged_log(struct err *why, const char *what, const char *db_path,
                                  const struct log_file *l)
{
    char *path = log_path(db_path, l);
    enum log_state state = damaged(why, what, path, l->good);

    free(path);
    return state;
}

/* How much of a log is whole: nothing of one that is gone. */
static uint64_t whole_of(const struct tail *t, uint64_t number)
{
    for (size_t i = t->first; i < t->n; i++)
        if (t->logs[i].number == number)
            return t->logs[i].good;
    return 0;
}

/* Whether less of a log is whole than RocksDB synced, and of which one. */
static bool less_than_synced(const struct tail *t, struct log_file *out)
{
    for (size_t i = 0; i < t->index.n; i++) {
        const struct log_synced *s = &t->index.synced[i];
        *out = (struct log_file){.number = s->number, .good = whole_of(t, s->number)};
        if (s->number >= t->index.oldest && out->good < s->size)
            return true;
    }
    return false;
}

static enum log_state judge(const struct tail *t, const char *db_path, struct err *why)
{
    const struct log_file *l = t->logs + t->gap_log;
    struct log_file less;

    if (t->foreign)
        return LOG_WHOLE;
    if (t->gap == LOG_GAP_BAD)
        return damaged_log(why, "a record is damaged", db_path, l);
    if (less_than_synced(t, &less))
        return damaged_log(why, missing, db_path, &less);
    if (t->gap == LOG_GAP_NONE || (t->gap == LOG_GAP_SHORT && !t->behind))
        return LOG_WHOLE;
    if (t->head_bad || (t->behind && t->synced >= t->next))
        return damaged_log(why, missing, db_path, l);
    err_set(why, EX_DATAERR, "cannot open the database: the end of %06llu.log is torn",
            (unsigned long long)l->number);
    return LOG_TORN;
}

static enum log_state look_at_logs(struct tail *t, const char *db_path, struct err *why)
{
    struct err e = ERR_NONE;
    int rc = dir_each(db_path, add_log, t, &e);

    if (rc == 0 && t->n)
        qsort(t->logs, t->n, sizeof(*t->logs), by_number);
    while (t->first < t->n && t->logs[t->first].number < t->index.oldest)
        t->first++;
    for (size_t i = t->first; rc == 0 && i < t->n; i++)
        rc = read_log(t, i, db_path, &e);
    if (rc == 0)
        return judge(t, db_path, why);
    err_set(why, EX_IOERR, "cannot open the database: %s", e.text);
    return LOG_UNREADABLE;
}

/* ---- both --------------------------------------------------------------------------------------- */

static void free_tail(struct tail *t)
{
    free(t->logs);
    log_index_free(&t->index);
}

/* Whether the logs go on where the manifest's tables end, and hold what the tables held that it has lost: a log is removed only
 * once the manifest is synced that makes it needless. */
static bool goes_on(const struct tail *t)
{
    const struct log_index *x = &t->index;
    uint64_t known = t->next > x->last_sequence + 1 ? t->next - 1 : x->last_sequence; /* all up to there */

    return t->begin <= x->last_sequence + 1 && x->last_sequence_behind <= known;
}

/* What log_tail_look tells. t: empty; to be freed. */
static enum log_state look(struct tail *t, const char *db_path, struct err *why)
{
    struct err e = ERR_NONE;
    int rc = log_index_read(db_path, &t->index, &e);

    if (rc < 0 && e.exit_code == EX_IOERR) {
        err_set(why, EX_IOERR, "cannot open the database: %s", e.text);
        return LOG_UNREADABLE;
    }
    if (rc == 0 && t->index.gap == LOG_GAP_BAD) /* of the logs nothing is sure, then */
        return damaged(why, "a record is damaged", t->index.path, t->index.good);
    t->foreign = t->index.foreign;
    if (rc < 0 || t->foreign)
        return LOG_WHOLE;
    enum log_state state = look_at_logs(t, db_path, why);
    bool torn = t->index.gap == LOG_GAP_UNWRITTEN;
    if ((state == LOG_WHOLE || state == LOG_TORN) && !t->foreign && !goes_on(t))
        return damaged(why, missing, t->index.path, t->index.good);
    t->logs_torn = state == LOG_TORN;
    if (state == LOG_WHOLE && torn) {
        err_set(why, EX_DATAERR, "cannot open the database: the end of its manifest is torn");
        return LOG_TORN;
    }
    return state;
}

enum log_state log_tail_look(const char *db_path, struct err *why)
{
    struct tail t = {.logs = NULL};
    enum log_state state = look(&t, db_path, why);

    free_tail(&t);
    return state;
}

static int cut_off(const char *path, uint64_t good, uint64_t size, struct err *e)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    int rc = fd < 0 || ftruncate(fd, (off_t)good) < 0 || fsync(fd) < 0 ? -1 : 0;

    if (rc < 0)
        err_set(e, EX_IOERR, "cannot cut %s: %s", path, strerror(errno));
    else
        log_warn(NULL,
                 "the end of %s is torn, as a power cut leaves what was not synced: %llu bytes are cut off",
                 strrchr(path, '/') + 1, (unsigned long long)(size - good));
    if (fd >= 0)
        close(fd);
    return rc;
}

/* The newest first, so that a crash between two cuts leaves what is torn as well. */
static int cut_logs(const char *db_path, const struct tail *t, struct err *e)
{
    int rc = 0;

    for (size_t i = t->n; i-- > t->gap_log && rc == 0;) {
        char *path = log_path(db_path, &t->logs[i]);
        if (t->logs[i].size > t->logs[i].good)
            rc = cut_off(path, t->logs[i].good, t->logs[i].size, e);
        free(path);
    }
    return rc;
}

int log_tail_cut(const char *db_path, struct err *e)
{
    struct err why = ERR_NONE;
    struct tail t = {.logs = NULL};
    bool torn = look(&t, db_path, &why) == LOG_TORN;
    int rc = 0;

    if (t.logs_torn)
        rc = cut_logs(db_path, &t, e);
    if (torn && rc == 0 && t.index.gap == LOG_GAP_UNWRITTEN)
        rc = cut_off(t.index.path, t.index.good, t.index.size, e);
    free_tail(&t);
    return rc < 0 ? -1 : torn;
}
