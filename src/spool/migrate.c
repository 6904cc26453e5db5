/* Migration: rows of an older schema are brought to ours before anything else happens. A checkpoint is made first. Then the
 * marker tells the new schema, so that an older program refuses the spool, and the row `migrating` tells how far it is: it goes
 * with each slice, so that a kill costs at most one. */
#include <stdlib.h>

#include "base/failpoint.h"
#include "base/log.h"
#include "base/mem.h"
#include "spool/internal.h"
#include "store/checkpoint.h"
#include "store/dir.h"
#include "store/overlay.h"

#define SLICE 200
#define KEPT_MS HOURS(7 * 24) /* the checkpoint from before */

struct cursor {
    int from;        /* the schema that the rows are brought on from */
    struct key last; /* that was handled; empty: none */
};

/* Does one slice from behind cursor->last on, and moves that. Returns true when there is no more. */
typedef bool slice_fn(struct spool *sp, struct cursor *c);

static slice_fn note_calls;

/* By the schema that they start from. */
static const struct {
    slice_fn *slice;
    const char *text;
} migrations[STORE_SCHEMA] = {
    [1] = {note_calls, "events learn which calls they made"},
};

/* ---- 1 to 2: an event is kept while calls that it made are unfinished ---------------------------- */

struct made {
    uint64_t call, by;
};

static unsigned find_calls(struct spool_box *out, struct cursor *c, struct made *list)
{
    struct key first = key_event(out->bot_id, BOX_OUT, 0);
    struct key lower = key_compare(key_slice(&first), key_slice(&c->last)) > 0 ? first : c->last;
    struct key upper = key_after_prefix(key_event(out->bot_id, BOX_OUT, UINT64_MAX));
    struct err e = ERR_NONE;
    unsigned n = 0;

    struct db_iter *it =
        db_iter_new(store_db(out->sp->store), FAMILY_EVENTS, key_slice(&lower), key_slice(&upper));
    for (; n < SLICE && db_iter_valid(it); db_iter_next(it)) {
        struct event ev = {.seq = 0};
        struct state_key k;
        if (key_compare(db_iter_key(it), key_slice(&c->last)) == 0 ||
            key_event_decode(db_iter_key(it), &k) < 0 || record_event_decode(db_iter_value(it), &ev) < 0)
            continue;
        list[n++] = (struct made){k.seq, ev.made_by};
    }
    if (db_iter_free(it, &e) < 0)
        spool_break(out->sp, &e);
    return n;
}

/* Calls of one event stand behind each other. Once more changes nothing. */
static void note_call(struct spool_box *in, const struct made *m)
{
    struct state_record r;
    enum ended_class c;

    if (!in || !m->by || row_find_state(in, m->by, &c, &r) <= 0)
        return;
    if (!r.n_calls)
        r.calls_from = m->call;
    if (m->call >= r.calls_from)
        r.n_calls = (uint32_t)(m->call - r.calls_from + 1);
    row_put_state(in, c, m->by, &r);
}

static bool note_calls(struct spool *sp, struct cursor *c)
{
    struct made list[SLICE];

    list_each(&sp->boxes, it) {
        struct spool_box *out = list_item(it, struct spool_box, link);
        if (out->which != BOX_OUT)
            continue;
        unsigned n = find_calls(out, c, list);
        for (unsigned i = 0; i < n; i++)
            note_call(box_find(sp, out->bot_id, BOX_IN), &list[i]);
        if (n)
            c->last = key_event(out->bot_id, BOX_OUT, list[n - 1].call);
        if (n == SLICE || !spool_usable(sp))
            return false;
    }
    return true;
}

/* ---- the row `migrating` ------------------------------------------------------------------------ */

static void put_cursor(struct spool *sp, const struct cursor *c)
{
    struct key k = key_name("migrating");
    struct buf v = BUF_EMPTY;

    buf_add_char(&v, 1); /* its version */
    buf_add_char(&v, (char)c->from);
    buf_add(&v, c->last.b, c->last.n);
    if (spool_usable(sp))
        db_put(store_db(sp->store), FAMILY_META, key_slice(&k), buf_slice(&v));
    buf_free(&v);
}

/* Returns whether there is one. */
static bool get_cursor(struct spool *sp, struct cursor *c)
{
    struct key k = key_name("migrating"), upper = key_after_prefix(k);
    struct err e = ERR_NONE;
    struct slice v;
    bool there = false;

    struct db_iter *it = db_iter_new(store_db(sp->store), FAMILY_META, key_slice(&k), key_slice(&upper));
    if (db_iter_valid(it)) {
        v = db_iter_value(it);
        if (v.n < 2 || v.n > 2 + KEY_MAX || v.p[0] != 1 || v.p[1] < 1 || v.p[1] >= STORE_SCHEMA)
            err_set(&e, EX_DATAERR, "the record of a migration cannot be decoded");
        else {
            *c = (struct cursor){.from = v.p[1], .last = {.n = v.n - 2}};
            memcpy(c->last.b, v.p + 2, v.n - 2);
            there = true;
        }
    }
    struct err e_iter = ERR_NONE;
    if (db_iter_free(it, &e_iter) < 0)
        e = e_iter;
    if (e.exit_code)
        spool_break(sp, &e);
    return there;
}

static void drop_cursor(struct spool *sp)
{
    struct key k = key_name("migrating");

    if (spool_usable(sp))
        db_delete(store_db(sp->store), FAMILY_META, key_slice(&k));
}

/* ---- the whole ---------------------------------------------------------------------------------- */

static void done(void *arg, bool ok)
{
    *(int *)arg = ok ? 1 : -1;
}

/* Commits and syncs what a slice did. Returns 0, or -1: the store failed. */
static int end_slice(struct spool *sp)
{
    int durable = 0;

    spool_on_durable(sp, done, &durable);
    commit_and_wait(sp);
    if (durable > 0)
        return 0;
    if (!sp->broken_why.exit_code)
        err_set(&sp->broken_why, EX_IOERR, "a write failed while the rows were brought to the new schema");
    return -1;
}

static char *before_name(int schema)
{
    return xasprintf("before-schema-%d", schema);
}

static int begin(struct spool *sp, struct cursor *c)
{
    char *name = before_name(store_schema(sp->store));
    struct err e = ERR_NONE;

    log_warn(NULL, "the spool is of schema %d and goes on as %d; a checkpoint of it stays in %s",
             store_schema(sp->store), STORE_SCHEMA, name);
    *c = (struct cursor){.from = store_schema(sp->store)};
    int rc = checkpoint_make_at(sp->store, name, &e);
    free(name);
    if (rc < 0) {
        sp->broken_why = e;
        return -1;
    }
    put_cursor(sp, c);
    if (end_slice(sp) < 0)
        return -1;
    if (store_set_schema(sp->store, STORE_SCHEMA, &e) < 0) {
        sp->broken_why = e;
        return -1;
    }
    return 0;
}

static int bring_on(struct spool *sp, struct cursor *c)
{
    for (; c->from < STORE_SCHEMA; c->from++, c->last.n = 0) {
        log_info(NULL, "from schema %d to %d: %s", c->from, c->from + 1, migrations[c->from].text);
        bool end = false;
        while (!end) {
            if (FAILPOINT("migrate.slice")) {
                err_set(&sp->broken_why, EX_IOERR, "failpoint in a migration");
                return -1;
            }
            end = migrations[c->from].slice(sp, c);
            put_cursor(sp, c);
            if (!spool_usable(sp) || end_slice(sp) < 0)
                return -1;
        }
    }
    drop_cursor(sp);
    return end_slice(sp);
}

/* What an upgrade left is of no use for ever, and holds room. */
int64_t spool_remove_old(struct spool *sp, int64_t now)
{
    int64_t next = TIME_NEVER;

    for (int schema = 1; schema < STORE_SCHEMA; schema++) {
        char *name = before_name(schema);
        int64_t at = checkpoint_remove_old(sp->store, name, KEPT_MS, now);
        next = at < next ? at : next;
        free(name);
    }
    return next;
}

int migrate(struct spool *sp)
{
    struct cursor c;

    if (store_schema(sp->store) < STORE_SCHEMA) {
        if (begin(sp, &c) < 0)
            return -1;
    } else if (!get_cursor(sp, &c)) {
        return sp->broken ? -1 : 0;
    }
    if (bring_on(sp, &c) < 0)
        return -1;
    log_info(NULL, "the spool is of schema %d now", STORE_SCHEMA);
    return 0;
}
