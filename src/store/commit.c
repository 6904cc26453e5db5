/* The committer. Callbacks wait in one of two lists: for the write of the open batch, or, written already,
 * for the sync that follows at its time (spool.sync set to a time). */
#include "store/commit.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/backoff.h"
#include "store/dir.h"
#include "store/log_tail.h"
#include "store/reserve.h"

#define STALL_RETRY_MS 10
#define STALL_MAX_MS SECONDS(60) /* longer: RocksDB hangs, which opening it anew ends */
#define LOOK_BEHIND_MS 1000
#define REOPEN_FIRST_MS 1000
#define REOPEN_CAP_MS 60000
#define OPEN_ROOM (INT64_C(4) << 20) /* what must be free on the disk to open the database */

struct waiter {
    struct list link;
    store_done_fn *fn;
    void *arg;
    bool durable;
};

struct store {
    struct store_dir dir;
    struct db *db; /* NULL while failed */
    bool look;     /* opened only to be looked at */
    int64_t cache_bytes;
    enum sync_mode sync;
    int64_t sync_ms;
    struct list open;     /* waiters of the open batch */
    struct list unsynced; /* durable waiters of batches that are written but not synced */
    struct list running;  /* being called */
    bool need_sync;       /* the open batch has durable waiters */
    bool stalled;
    int64_t stalled_since, stalled_until;
    int64_t sync_at; /* when unsynced is to be synced */
    int64_t reopen_at;
    int64_t look_behind_at; /* at RocksDB's threads, when nothing is to be written */
    unsigned failures;
    bool corrupt; /* while failed: it is not opened again */
    char why[256];
    struct store_stats stats;
};

/* ---- waiters ------------------------------------------------------------------------------------ */

void store_on_done(struct store *st, bool durable, store_done_fn *fn, void *arg)
{
    struct waiter *w = xmalloc(sizeof(*w));

    *w = (struct waiter){.fn = fn, .arg = arg, .durable = durable};
    list_add_tail(&st->open, &w->link);
    st->need_sync |= durable;
}

static void forget_in(struct list *l, const void *arg)
{
    list_each(l, it) {
        struct waiter *w = list_item(it, struct waiter, link);
        if (w->arg == arg) {
            list_del(it);
            free(w);
        }
    }
}

void store_forget(struct store *st, const void *arg)
{
    forget_in(&st->open, arg);
    forget_in(&st->unsynced, arg);
    forget_in(&st->running, arg);
}

static void move_all(struct list *from, struct list *to)
{
    while (!list_empty(from)) {
        struct list *l = from->next;
        list_del(l);
        list_add_tail(to, l);
    }
}

/* Calls what is in `running`. A callback may add waiters (to `open`) and forget others. */
static void run_waiters(struct store *st, bool ok)
{
    while (!list_empty(&st->running)) {
        struct waiter *w = list_item(st->running.next, struct waiter, link);
        list_del(&w->link);
        w->fn(w->arg, ok);
        free(w);
    }
}

/* ---- failure and reopening ---------------------------------------------------------------------- */

/* Gives the reserve up, if there is one, to an open that failed or would fail. */
static bool give_up_reserve(const struct store *st)
{
    if (!reserve_drop(st->dir.path))
        return false;
    log_warn(NULL,
             "the disk is full: the reserve was given up to open the store; make room, to see what takes it, "
             "run: df -h %s",
             st->dir.path);
    return true;
}

/* "No space left on device" also where there is room, but not for one more file. */
static void tell_no_inodes(const struct store *st, struct err *e)
{
    if (db_is_full(e) && reserve_no_inodes(st->dir.path))
        err_prefix(e, "no inodes are left (df -i)");
}

/* The only way to the database. Not even tried on a full disk: RocksDB's assertions end the process when its own log,
 * of which an open writes 100 KB, cannot be written. */
static struct db *open_db(const struct store *st, enum db_mode mode, struct err *e)
{
    if (mode == DB_LOOK) /* writes nothing */
        return db_open(st->dir.db_path, mode, st->cache_bytes, e);
    if (reserve_free(st->dir.path) < OPEN_ROOM)
        give_up_reserve(st);
    if (reserve_free(st->dir.path) < OPEN_ROOM) {
        err_set(
            e, EX_IOERR,
            "cannot open the database: No space left on device: it takes 4 MB; to see what takes them, run: "
            "df -h %s",
            st->dir.path);
        return NULL;
    }
    struct db *db = db_open(st->dir.db_path, mode, st->cache_bytes, e);
    if (!db && db_is_full(e) && give_up_reserve(st)) /* its recovery writes tables */
        db = db_open(st->dir.db_path, mode, st->cache_bytes, e);
    if (!db && e->exit_code == EX_DATAERR && log_tail_cut(st->dir.db_path, e) > 0)
        db = db_open(st->dir.db_path, mode, st->cache_bytes, e);
    if (!db)
        tell_no_inodes(st, e);
    return db;
}

/* It is closed, for this reason: decides when to open it. */
static void wait_to_reopen(struct store *st, const struct err *why, int64_t now)
{
    snprintf(st->why, sizeof(st->why), "%.*s", (int)sizeof(st->why) - 1, why->text);
    st->corrupt = why->exit_code == EX_DATAERR;
    st->failures++;
    if (st->corrupt)
        st->reopen_at = TIME_NEVER;
    else if (db_is_full(why) && give_up_reserve(st))
        st->reopen_at = now;
    else
        st->reopen_at = now + backoff_wait(REOPEN_FIRST_MS, REOPEN_CAP_MS, st->failures, UINT32_MAX / 2);
}

void store_fail(struct store *st, const struct err *why, int64_t now)
{
    struct err e = *why;

    if (st->db) {
        db_close(st->db);
        st->db = NULL;
    }
    st->stalled = st->need_sync = false;
    st->sync_at = TIME_NEVER;
    tell_no_inodes(st, &e);
    wait_to_reopen(st, &e, now);
    log_error(NULL, "the store failed, nothing was acknowledged, %s: %s",
              st->corrupt ? "it is damaged and stays closed" : "will reopen", st->why);
    move_all(&st->unsynced, &st->running);
    move_all(&st->open, &st->running);
    run_waiters(st, false);
}

static enum store_result reopen(struct store *st, int64_t now)
{
    struct err e = ERR_NONE;

    if (!list_empty(&st->open)) { /* asked while failed */
        move_all(&st->open, &st->running);
        run_waiters(st, false);
    }
    if (now < st->reopen_at)
        return STORE_FAILED;
    st->db = open_db(st, st->look ? DB_LOOK : DB_OPEN, &e);
    if (!st->db) {
        wait_to_reopen(st, &e, now);
        log_error(NULL, "the store cannot be opened%s: %s",
                  st->corrupt ? ", it is damaged and stays closed" : "", st->why);
        return STORE_FAILED;
    }
    st->why[0] = '\0';
    log_warn(NULL, "the store is open again");
    return STORE_REOPENED;
}

/* ---- opening and closing ------------------------------------------------------------------------ */

static struct db *first_open(struct store *st, struct err *e)
{
    struct db *db = open_db(st, st->dir.fresh ? DB_CREATE : DB_OPEN, e);

    if (!db) {
        err_prefix(e, "%s", st->dir.path);
        return NULL;
    }
    if (st->dir.fresh && store_dir_ready(&st->dir, e) < 0) {
        db_close(db);
        return NULL;
    }
    return db;
}

static struct store *store_new(int64_t cache_bytes, enum sync_mode sync, int64_t sync_ms)
{
    struct store *st = xcalloc(1, sizeof(*st));

    list_init(&st->open);
    list_init(&st->unsynced);
    list_init(&st->running);
    st->cache_bytes = cache_bytes;
    st->sync = sync;
    st->sync_ms = sync_ms;
    st->sync_at = TIME_NEVER;
    st->stats.us = HISTOGRAM(histogram_us);
    return st;
}

struct store *store_look(const char *dir, int64_t cache_bytes, struct err *e)
{
    struct store *st = store_new(cache_bytes, SYNC_OFF, 0);

    st->look = true;
    if (store_dir_borrow(dir, &st->dir, e) == 0)
        st->db = db_open(st->dir.db_path, DB_LOOK, cache_bytes, e);
    if (st->db)
        return st;
    err_prefix(e, "%s", dir);
    store_dir_close(&st->dir);
    free(st);
    return NULL;
}

int store_schema(const struct store *st)
{
    return st->dir.schema;
}

int store_set_schema(struct store *st, int schema, struct err *e)
{
    if (store_dir_mark(st->dir.path, schema, e) < 0)
        return -1;
    st->dir.schema = schema;
    return 0;
}

const char *store_path(const struct store *st)
{
    return st->dir.path;
}

struct store *store_open(const char *dir, int64_t cache_bytes, enum sync_mode sync, int64_t sync_ms,
                         struct err *e)
{
    struct store *st = store_new(cache_bytes, sync, sync_ms);

    if (store_dir_open(dir, &st->dir, e) < 0) {
        free(st);
        return NULL;
    }
    st->db = first_open(st, e);
    if (!st->db) {
        store_dir_close(&st->dir);
        free(st);
        return NULL;
    }
    return st;
}

void store_close(struct store *st, int64_t now)
{
    struct err e = ERR_NONE;

    if (st->db)
        store_commit(st, now);
    bool synced = st->db && st->sync != SYNC_OFF && db_sync(st->db, &e) == 0;
    move_all(&st->unsynced, &st->running);
    run_waiters(st, synced);
    move_all(&st->open, &st->running);
    run_waiters(st, false);
    if (st->db)
        db_close(st->db);
    store_dir_close(&st->dir);
    free(st);
}

struct db *store_db(struct store *st)
{
    return st->db;
}

/* ---- committing --------------------------------------------------------------------------------- */

static enum store_result write_batch(struct store *st, int64_t now)
{
    struct err e = ERR_NONE;
    bool sync = st->need_sync && st->sync == SYNC_ALWAYS;
    int64_t start = clock_boot_us();
    bool empty = db_batch_ops(st->db) == 0;

    if (FAILPOINT("break.callback_before_sync"))
        sync = false;
    if (FAILPOINT("commit.before_write"))
        err_set(&e, EX_IOERR, "cannot write: failpoint");
    enum db_write w = e.exit_code ? DB_FAILED : db_write(st->db, sync, &e);
    /* who waits with an empty batch waits for what an earlier one wrote */
    if (w == DB_WRITTEN && empty && sync && !db_is_synced(st->db)) {
        w = db_sync(st->db, &e) < 0 ? DB_FAILED : DB_WRITTEN;
        st->stats.syncs += w == DB_WRITTEN;
    }
    if (w == DB_STALLED) {
        if (!st->stalled) {
            log_warn(NULL, "the database cannot keep up (write stall); intake waits");
            st->stalled_since = now;
        }
        st->stalled = true;
        st->stalled_until = now + STALL_RETRY_MS;
        if (now - st->stalled_since < STALL_MAX_MS)
            return STORE_STALLED;
        err_set(&e, EX_IOERR, "the database took no write for %lld s (write stall)",
                (long long)(STALL_MAX_MS / 1000));
        w = DB_FAILED;
    }
    if (w == DB_WRITTEN && FAILPOINT("commit.after_write")) {
        err_set(&e, EX_IOERR, "failpoint after the write");
        w = DB_FAILED;
    }
    if (w == DB_FAILED) {
        store_fail(st, &e, now);
        return STORE_FAILED;
    }
    st->stalled = st->need_sync = false;
    if (!empty) {
        st->failures =
            0; /* not at the reopen: what cannot be read may fail again at once, and shall wait longer */
        st->stats.commits++;
        st->stats.syncs += sync;
        st->stats.last_us = (uint64_t)(clock_boot_us() - start);
        st->stats.total_us += st->stats.last_us;
        histogram_add(&st->stats.us, st->stats.last_us);
        if (st->stats.last_us > st->stats.max_us)
            st->stats.max_us = st->stats.last_us;
    }
    return STORE_COMMITTED;
}

/* Written: the waiters run now, but those that wait for a sync at its time. */
static void settle(struct store *st, int64_t now)
{
    list_each(&st->open, it) {
        struct waiter *w = list_item(it, struct waiter, link);
        list_del(it);
        if (w->durable && st->sync == SYNC_INTERVAL) {
            list_add_tail(&st->unsynced, it);
            if (st->sync_at == TIME_NEVER)
                st->sync_at = now + st->sync_ms;
        } else {
            list_add_tail(&st->running, it);
        }
    }
}

enum store_result store_commit(struct store *st, int64_t now)
{
    struct err e = ERR_NONE;

    if (!st->db)
        return reopen(st, now);
    if (now >= st->look_behind_at && db_batch_ops(st->db) == 0) {
        st->look_behind_at = now + LOOK_BEHIND_MS;
        if (db_failed_behind(st->db, &e)) {
            store_fail(st, &e, now);
            return STORE_FAILED;
        }
    }
    if (FAILPOINT("break.callback_before_write")) {
        settle(st, now);
        run_waiters(st, true);
    }
    enum store_result r = write_batch(st, now);
    if (r != STORE_COMMITTED)
        return r;
    settle(st, now);
    if (now >= st->sync_at) {
        if (db_sync(st->db, &e) < 0) {
            move_all(&st->running,
                     &st->open); /* store_fail fails them all: what is not known durable is not ok */
            store_fail(st, &e, now);
            return STORE_FAILED;
        }
        st->stats.syncs++;
        st->sync_at = TIME_NEVER;
        move_all(&st->unsynced, &st->running);
    }
    run_waiters(st, true);
    (void)FAILPOINT("commit.after_callbacks");
    return STORE_COMMITTED;
}

enum store_health store_health(const struct store *st, char why[256])
{
    static const char stall[] = "the database cannot keep up with what is written";

    if (why)
        snprintf(why, 256, "%s", st->stalled ? stall : st->why);
    if (st->db)
        return st->stalled ? STORE_IS_STALLED : STORE_OK;
    return st->corrupt ? STORE_IS_CORRUPT : STORE_IS_FAILED;
}

bool store_stalled(const struct store *st)
{
    return st->stalled;
}

int64_t store_next_deadline(const struct store *st)
{
    if (!st->db)
        return st->reopen_at;
    if (st->stalled)
        return st->stalled_until;
    if (db_batch_ops(st->db) > 0 || !list_empty(&st->open))
        return 0; /* callbacks of the last commit began the next batch */
    return st->sync_at;
}

const struct store_stats *store_stats(const struct store *st)
{
    return &st->stats;
}
