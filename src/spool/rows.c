/* Typed access to the rows of the database. */
#include "base/failpoint.h"
#include "base/mem.h"
#include "spool/internal.h"

bool spool_usable(const struct spool *sp)
{
    return !sp->broken && store_db(sp->store) != NULL;
}

void spool_break(struct spool *sp, const struct err *e)
{
    if (sp->broken)
        return;
    sp->broken = true;
    sp->broken_why = *e;
}

int row_undecodable(struct spool_box *b, enum family f, uint64_t seq)
{
    struct err e;

    err_set(&e, EX_DATAERR, "a record in family %s of bot %lld, seq %llu, cannot be decoded", family_name(f),
            (long long)b->bot_id, (unsigned long long)seq);
    spool_break(b->sp, &e);
    return -1;
}

int row_get(struct spool *sp, enum family f, struct key key, struct buf *val)
{
    struct err e = ERR_NONE;

    if (!spool_usable(sp))
        return -1;
    int rc = db_get(store_db(sp->store), f, key_slice(&key), val, &e);
    if (rc < 0)
        spool_break(sp, &e);
    return rc;
}

static void put(struct spool_box *b, enum family f, struct key key, struct slice value)
{
    if (spool_usable(b->sp) && !b->sp->look)
        db_put(store_db(b->sp->store), f, key_slice(&key), value);
}

void row_delete(struct spool_box *b, enum family f, struct key key)
{
    if (spool_usable(b->sp) && !b->sp->look)
        db_delete(store_db(b->sp->store), f, key_slice(&key));
}

int row_event(struct spool_box *b, uint64_t seq, struct event *ev, struct buf *record)
{
    int rc = row_get(b->sp, FAMILY_EVENTS, key_event(b->bot_id, b->which, seq), record);

    if (rc <= 0)
        return rc;
    memset(ev, 0, sizeof(*ev));
    ev->seq = seq;
    return record_event_decode(buf_slice(record), ev) < 0 ? row_undecodable(b, FAMILY_EVENTS, seq) : 1;
}

void row_put_event(struct spool_box *b, const struct event *ev)
{
    struct buf v = BUF_EMPTY;

    record_event(&v, ev);
    put(b, FAMILY_EVENTS, key_event(b->bot_id, b->which, ev->seq), buf_slice(&v));
    buf_free(&v);
}

enum ended_class class_of(enum state s)
{
    return s == STATE_DONE ? CLASS_DONE : s == STATE_DEAD ? CLASS_DEAD : CLASS_UNFINISHED;
}

int row_state(struct spool_box *b, enum ended_class c, uint64_t seq, struct state_record *out)
{
    struct buf v = BUF_EMPTY;
    int rc = row_get(b->sp, FAMILY_STATES, key_state(b->bot_id, b->which, c, seq), &v);

    if (rc > 0 && record_state_decode(buf_slice(&v), out) < 0)
        rc = row_undecodable(b, FAMILY_STATES, seq);
    buf_free(&v);
    return rc;
}

void row_put_state(struct spool_box *b, enum ended_class c, uint64_t seq, const struct state_record *r)
{
    struct buf v = BUF_EMPTY;

    record_state(&v, r);
    put(b, FAMILY_STATES, key_state(b->bot_id, b->which, c, seq), buf_slice(&v));
    buf_free(&v);
}

void row_put_fresh_state(struct spool_box *b, uint64_t seq)
{
    put(b, FAMILY_STATES, key_state(b->bot_id, b->which, CLASS_UNFINISHED, seq), slice_make("", 0));
}

int row_find_state(struct spool_box *b, uint64_t seq, enum ended_class *c, struct state_record *out)
{
    static const enum ended_class order[] = {CLASS_UNFINISHED, CLASS_DONE, CLASS_DEAD};

    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        int rc = row_state(b, order[i], seq, out);
        if (rc) {
            *c = order[i];
            return rc;
        }
    }
    return 0;
}

int rows_states(struct spool_box *b, enum ended_class c, uint64_t from, uint64_t until, state_row_fn *fn,
                void *arg)
{
    struct key lower = key_state(b->bot_id, b->which, c, from);
    struct key upper = key_state(b->bot_id, b->which, c, until);
    struct err e = ERR_NONE;
    struct state_key k;

    if (!spool_usable(b->sp))
        return -1;
    struct db_iter *it =
        db_iter_new(store_db(b->sp->store), FAMILY_STATES, key_slice(&lower), key_slice(&upper));
    while (db_iter_valid(it)) {
        if (key_state_decode(db_iter_key(it), &k) == 0 && !fn(arg, k.seq, db_iter_value(it)))
            break;
        db_iter_next(it);
    }
    if (db_iter_free(it, &e) < 0) {
        spool_break(b->sp, &e);
        return -1;
    }
    return 0;
}

int row_lane(struct spool_box *b, uint32_t epoch, struct lane lane, struct lane_record *out)
{
    struct buf v = BUF_EMPTY;
    int rc = row_get(b->sp, FAMILY_LANES, key_lane(b->bot_id, b->which, epoch, lane), &v);

    if (rc > 0 && record_lane_decode(buf_slice(&v), out) < 0)
        rc = row_undecodable(b, FAMILY_LANES, 0);
    buf_free(&v);
    return rc;
}

void row_put_lane(struct spool_box *b, uint32_t epoch, struct lane lane, const struct lane_record *r)
{
    struct buf v = BUF_EMPTY;

    record_lane(&v, r);
    put(b, FAMILY_LANES, key_lane(b->bot_id, b->which, epoch, lane), buf_slice(&v));
    buf_free(&v);
}

/* Calls have no update_id, and their hash is random: it only tells one call from another. */
static struct key id_key(const struct spool_box *b, const struct event *ev)
{
    return key_id(b->bot_id, ev->is_call ? -2 : ev->has_update_id ? ev->update_id : -1, ev->hash);
}

int row_id(struct spool_box *b, const struct event *ev, uint64_t *seq)
{
    struct buf v = BUF_EMPTY;
    int rc = row_get(b->sp, FAMILY_IDS, id_key(b, ev), &v);

    if (rc > 0 && record_u64_decode(buf_slice(&v), seq) < 0)
        rc = row_undecodable(b, FAMILY_IDS, 0);
    buf_free(&v);
    return rc;
}

void row_put_id(struct spool_box *b, const struct event *ev)
{
    struct buf v = BUF_EMPTY;

    record_u64(&v, ev->seq);
    put(b, FAMILY_IDS, id_key(b, ev), buf_slice(&v));
    buf_free(&v);
}

void row_delete_id(struct spool_box *b, const struct event *ev)
{
    row_delete(b, FAMILY_IDS, id_key(b, ev));
}

/* Also keeps the hints: an entry in front of where the next scan would start moves that start. */
void row_put_due(struct spool_box *b, enum due_class c, int64_t time, uint64_t seq)
{
    put(b, FAMILY_DUE, key_due(b->bot_id, b->which, c, time, seq), slice_make("", 0));
    if (c == DUE_READY) {
        b->maybe_ready = true;
        if (seq < b->ready_from)
            b->ready_from = seq;
    } else if (c != DUE_BARRIER) {
        if (time < b->due_from[c])
            b->due_from[c] = time;
        if (time < b->next_due[c])
            b->next_due[c] = time;
    }
}

void row_put_order(struct spool_box *b, uint32_t epoch, struct lane lane, uint64_t seq)
{
    if (FAILPOINT("break.lost_order"))
        return;
    put(b, FAMILY_ORDER, key_order(b->bot_id, b->which, epoch, lane, seq), slice_make("", 0));
}

void row_put_audit(struct spool_box *b, const char *act, const char *who, uint64_t seq, uint64_t copy)
{
    struct audit_record r = {.bot = b->bot_id, .box = b->which, .seq = seq, .copy = copy};
    struct buf v = BUF_EMPTY;

    strncpy(r.who, who, sizeof(r.who) - 1);
    strncpy(r.act, act, sizeof(r.act) - 1);
    record_audit(&v, &r);
    put(b, FAMILY_AUDIT, key_audit(b->sp->now, b->sp->audit_number++), buf_slice(&v));
    buf_free(&v);
}

int rows_due(struct spool_box *b, enum due_class c, int64_t from_time, uint64_t from_seq, int64_t until,
             unsigned max, struct due_item *out, int64_t *next)
{
    struct err e = ERR_NONE;
    struct due_key k;
    int n = 0;

    if (next)
        *next = TIME_NEVER;
    if (!spool_usable(b->sp))
        return -1;
    struct key lower = key_due(b->bot_id, b->which, c, from_time, from_seq);
    struct key upper = key_after_prefix(key_due(b->bot_id, b->which, c, INT64_MAX, UINT64_MAX));
    struct db_iter *it =
        db_iter_new(store_db(b->sp->store), FAMILY_DUE, key_slice(&lower), key_slice(&upper));
    for (; db_iter_valid(it); db_iter_next(it)) {
        if (key_due_decode(db_iter_key(it), &k) < 0)
            break;
        if (k.time > until || n == (int)max) {
            if (next)
                *next = k.time;
            break;
        }
        out[n++] = (struct due_item){k.time, k.seq};
    }
    if (db_iter_free(it, &e) < 0) {
        spool_break(b->sp, &e);
        return -1;
    }
    return n;
}
