/* The committer: the one place where the database is written. What a tick adds goes into one batch;
 * store_commit writes it, syncs if anything in it must be durable, and then runs the callbacks. After a
 * failure nothing is acknowledged, the handle is closed and reopened with backoff: on a full disk with the room of the
 * reserve, which is given up; after damage (EX_DATAERR) not at all, since only a person can say what to do then. */
#ifndef STORE_COMMIT_H
#define STORE_COMMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "core/config.h"
#include "core/histogram.h"
#include "store/db.h"

struct store;

struct store_stats {
    uint64_t commits, syncs;
    uint64_t last_us, max_us, total_us; /* of writes */
    struct histogram us;                /* of writes */
};

struct store *store_open(const char *dir, int64_t cache_bytes, enum sync_mode sync, int64_t sync_ms,
                         struct err *e);
/* Opens a spool only to look at it: nothing is made, locked or written, and store_commit writes nothing (there must be
 * nothing to write). For a checkpoint, a backup, or a directory that the caller has locked. */
struct store *store_look(const char *dir, int64_t cache_bytes, struct err *e);
const char *store_path(const struct store *st); /* the spool's directory */
int store_schema(const struct store *st);       /* that its rows are of, as the marker tells */
int store_set_schema(struct store *st, int schema, struct err *e);
/* Commits what is open, then closes. Callbacks that never ran are run with ok = false. */
void store_close(struct store *st, int64_t now);

/* The database, or NULL while it is failed. */
struct db *store_db(struct store *st);

/* fn(arg, ok) runs inside a later store_commit: when the batch now open is written, or (durable) synced. */
typedef void store_done_fn(void *arg, bool ok);
void store_on_done(struct store *st, bool durable, store_done_fn *fn, void *arg);
void store_forget(struct store *st, const void *arg);

enum store_result {
    STORE_COMMITTED,
    STORE_STALLED, /* nothing was written; everything is kept for the next call */
    STORE_FAILED,  /* it is failed, by this or an earlier call */
    STORE_REOPENED /* it was failed and is not any more: read everything anew */
};
enum store_result store_commit(struct store *st, int64_t now);
/* A read failed: treats the store as failed from now on (the open batch is lost). */
void store_fail(struct store *st, const struct err *why, int64_t now);

enum store_health {
    STORE_OK,
    STORE_IS_STALLED, /* it cannot keep up: nothing is lost, it goes on by itself, or fails after a minute */
    STORE_IS_FAILED,  /* it will be opened again */
    STORE_IS_CORRUPT  /* it stays closed, and everything on disk as it is */
};
enum store_health store_health(const struct store *st, char why[256]);
bool store_stalled(const struct store *st);
int64_t store_next_deadline(const struct store *st);
const struct store_stats *store_stats(const struct store *st);

#endif
