/* The spool as a whole: opening, the tick, and what follows a failed store. */
#include "spool/spool.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/failpoint.h"
#include "base/mem.h"
#include "spool/internal.h"
#include "store/checkpoint.h"
#include "store/dir.h"

#define STEP_MS 10

static void spool_free(struct spool *sp)
{
    while (!list_empty(&sp->boxes))
        box_free(list_item(sp->boxes.next, struct spool_box, link));
    remembered_free(sp);
    retain_free(sp);
    free(sp->happened);
    free(sp);
}

static struct spool *spool_new(int64_t now)
{
    struct spool *sp = xcalloc(1, sizeof(*sp));

    sp->now = sp->opened_at = sp->began = now;
    sp->work_left = sp->expire_left = WORK_PER_TICK;
    sp->marks_from = sp->marks_due = INT64_MIN;
    sp->commit_events = HISTOGRAM(histogram_events);
    list_init(&sp->boxes);
    list_init(&sp->claiming);
    list_init(&sp->remembered);
    list_init(&sp->again);
    return sp;
}

/* Reads what is kept in memory; ends sp if it cannot. */
static struct spool *loaded(struct spool *sp, struct err *e)
{
    if (sp->store && identity_load(sp) == 0 && stepped_load(sp) == 0 && boxes_load(sp) == 0 &&
        (sp->look || migrate(sp) == 0))
        return sp;
    if (sp->store) {
        *e = sp->broken_why;
        store_close(sp->store, sp->now);
    }
    spool_free(sp);
    return NULL;
}

struct spool *spool_open(const struct spool_options *options, int64_t now, struct err *e)
{
    struct spool *sp = spool_new(now);

    sp->store = store_open(options->dir, options->cache_bytes, options->sync, options->sync_ms, e);
    return loaded(sp, e);
}

struct spool *spool_look(const struct spool_options *options, int64_t now, struct err *e)
{
    struct spool *sp = spool_new(now);

    sp->look = true;
    sp->store = store_look(options->dir, options->cache_bytes, e);
    return loaded(sp, e);
}

void spool_close(struct spool *sp)
{
    boxes_save(sp);
    stepped_close(sp);
    store_close(sp->store, sp->now);
    assert(list_empty(&sp->claiming)); /* their callbacks have run */
    spool_free(sp);
}

/* ---- the tick ----------------------------------------------------------------------------------- */

void spool_begin(struct spool *sp, int64_t now)
{
    if (now > sp->now)
        sp->now = now;
    sp->work_left = sp->expire_left = WORK_PER_TICK;
}

/* The store is open again: everything is read anew, and what was not durable is applied again. */
static void recover(struct spool *sp)
{
    sp->was_failed = true; /* the breakers in memory know more than the store */
    sp->opened_at = sp->now;
    sp->set_back_ms = 0; /* was seen to */
    sp->marks_from = sp->marks_due = sp->audit_at = INT64_MIN;
    if (identity_load(sp) < 0 || boxes_load(sp) < 0)
        return;
    list_each(&sp->boxes, it) {
        struct spool_box *b = list_item(it, struct spool_box, link);
        if (b->attached)
            spool_attach(sp, b->bot_id, b->which, b->name, &b->policy);
    }
    if (FAILPOINT("spool.recover")) {
        struct err e;
        err_set(&e, EX_IOERR, "cannot read the database: failpoint");
        spool_break(sp, &e);
    }
    remembered_apply(sp);
}

/* Tells the watcher what the batch that is now written did. */
static void tell_watcher(struct spool *sp, struct spool_happening *h, size_t n)
{
    for (size_t i = 0; i < n && sp->watcher; i++) {
        if (h[i].what >= HAPPENED_DONE && h[i].what <= HAPPENED_RELEASED)
            (void)FAILPOINT_EACH("outcome.after_", outcome_name(h[i].outcome));
        sp->watcher(sp->watcher_arg, &h[i]);
    }
}

void spool_commit(struct spool *sp)
{
    struct spool_happening *happened = sp->happened;
    size_t n_happened = sp->n_happened;
    uint64_t events = sp->batch_events;

    boxes_save(sp);
    if (sp->broken) {
        sp->broken = false;
        sp->batch_events = 0;
        sp->n_happened = 0;
        store_fail(sp->store, &sp->broken_why, sp->now);
        return;
    }
    /* callbacks begin the next batch: it gets lists of its own */
    sp->happened = NULL;
    sp->n_happened = sp->cap_happened = 0;
    sp->batch_events = 0;
    switch (store_commit(sp->store, sp->now)) {
    case STORE_COMMITTED:
        sp->events_committed += events;
        if (events)
            histogram_add(&sp->commit_events, events);
        tell_watcher(sp, happened, n_happened);
        break;
    case STORE_STALLED: /* all is kept; no callback ran */
        sp->happened = happened;
        sp->n_happened = sp->cap_happened = n_happened;
        sp->batch_events = events;
        return;
    case STORE_FAILED:
        break;
    case STORE_REOPENED:
        recover(sp);
        break;
    }
    free(happened);
}

/* Something is not written, or not synced. */
static bool is_behind(const struct spool *sp)
{
    return spool_usable(sp) && store_next_deadline(sp->store) != TIME_NEVER;
}

void commit_and_wait(struct spool *sp)
{
    const struct timespec pause = {.tv_nsec = STEP_MS * 1000000};

    for (spool_commit(sp); is_behind(sp); spool_commit(sp)) {
        nanosleep(&pause, NULL);
        spool_begin(sp, sp->now + STEP_MS); /* so that a stall that does not end is seen to */
    }
    spool_begin(sp, sp->now);
}

bool spool_batch_full(const struct spool *sp)
{
    return !spool_usable(sp) || store_stalled(sp->store) || sp->batch_events >= BATCH_EVENTS ||
           db_batch_bytes(store_db(sp->store)) >= BATCH_BYTES;
}

enum spool_health spool_health(const struct spool *sp, char why[256])
{
    static const enum spool_health of_store[] = {[STORE_OK] = SPOOL_OK,
                                                 [STORE_IS_STALLED] = SPOOL_STALLED,
                                                 [STORE_IS_FAILED] = SPOOL_FAILED,
                                                 [STORE_IS_CORRUPT] = SPOOL_CORRUPT};

    if (!sp->broken)
        return of_store[store_health(sp->store, why)];
    if (why)
        snprintf(why, 256, "%.255s", sp->broken_why.text);
    return sp->broken_why.exit_code == EX_DATAERR ? SPOOL_CORRUPT : SPOOL_FAILED;
}

const char *spool_health_name(enum spool_health h)
{
    static const char *const names[] = {"ok", "stalled", "failed", "corrupt"};
    return names[h];
}

bool spool_healthy(const struct spool *sp, char why[256])
{
    return spool_health(sp, why) <= SPOOL_STALLED;
}

void spool_hold(struct spool *sp, const char *why)
{
    snprintf(sp->held_why, sizeof(sp->held_why), "%s", why ? why : "");
}

const char *spool_held(const struct spool *sp)
{
    return sp->held_why[0] ? sp->held_why : NULL;
}

void spool_on_written(struct spool *sp, spool_done_fn *fn, void *arg)
{
    store_on_done(sp->store, false, fn, arg);
}

void spool_on_durable(struct spool *sp, spool_done_fn *fn, void *arg)
{
    store_on_done(sp->store, true, fn, arg);
}

void spool_forget(struct spool *sp, void *arg)
{
    store_forget(sp->store, arg);
    list_each(&sp->claiming, it) {
        struct claiming *cl = list_item(it, struct claiming, link);
        if (cl->arg == arg)
            cl->fn = NULL; /* the claim is let go once it is written */
    }
}

void spool_watch(struct spool *sp, spool_happened_fn *fn, void *arg)
{
    sp->watcher = fn;
    sp->watcher_arg = arg;
}

void spool_commit_stats(const struct spool *sp, struct spool_commit_stats *out)
{
    const struct store_stats *s = store_stats(sp->store);

    *out = (struct spool_commit_stats){.commits = s->commits,
                                       .syncs = s->syncs,
                                       .events = sp->events_committed,
                                       .last_us = s->last_us,
                                       .max_us = s->max_us,
                                       .total_us = s->total_us,
                                       .us = &s->us,
                                       .batch_events = &sp->commit_events};
}

/* ---- compaction --------------------------------------------------------------------------------- */

int spool_compact(struct spool *sp, unsigned *round, struct err *e)
{
    if (!spool_usable(sp))
        return err_set(e, EX_TEMPFAIL, "the store is closed");
    return db_compact(store_db(sp->store), round, e);
}

int64_t spool_database_bytes(const struct spool *sp)
{
    char *path = xasprintf("%s/db", store_path(sp->store));
    int64_t bytes = store_dir_bytes(path);

    free(path);
    return bytes;
}

/* ---- checkpoints -------------------------------------------------------------------------------- */

int spool_checkpoint_begin(struct spool *sp, struct err *e)
{
    return checkpoint_begin(sp->store, e);
}

bool spool_checkpoint_ready(struct spool *sp)
{
    return checkpoint_ready(sp->store);
}

int spool_checkpoint_make(struct spool *sp, char id[SPOOL_CHECKPOINT_ID], struct err *e)
{
    return checkpoint_make(sp->store, id, e);
}

char *spool_checkpoint_path(struct spool *sp, const char *id)
{
    return checkpoint_path(sp->store, id);
}

bool spool_checkpoint_remove_some(struct spool *sp, const char *id)
{
    return checkpoint_remove_some(sp->store, id);
}

void spool_checkpoints_each(struct spool *sp, void (*each)(void *arg, const char *id, int64_t made_at),
                            void *arg)
{
    checkpoints_each(sp->store, each, arg);
}
