/* Verify: every invariant of the rows, by a full walk over each family with look-ups across. Memory does not
 * grow with the number of events. */
#include <stdarg.h>
#include <stdio.h>

#include "spool/internal.h"

struct tally {
    uint64_t unfinished, processing, done, dead, dead_settled, lanes, heads_due;
};

struct check {
    struct spool *sp;
    struct spool_box *box; /* NULL: of none */
    spool_fault_fn *report;
    void *arg;
    unsigned faults;
    struct tally seen;
};

static void fault(struct check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void fault(struct check *c, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    int n = 0;

    if (!spool_usable(c->sp)) /* what cannot be read is told once, by spool_verify */
        return;
    if (c->box)
        n = snprintf(text, sizeof(text), "bot %lld, box %s: ", (long long)c->box->bot_id,
                     box_name(c->box->which));

    va_start(ap, fmt);
    vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, ap);
    va_end(ap);
    c->faults++;
    if (c->report)
        c->report(c->arg, text);
}

#define U(v) ((unsigned long long)(v))

/* Where the due entry of a head must be. Whether it is there. */
static bool head_is_due(struct check *c, uint64_t seq, uint32_t epoch, const struct event_state *st)
{
    struct spool_box *b = c->box;
    struct key places[3];
    size_t n = 0;

    if (st->state == STATE_PROCESSING) {
        places[n++] = key_due(b->bot_id, b->which, DUE_LEASE, st->push ? TIME_NEVER : st->deadline, seq);
    } else {
        if (st->next_retry_at)
            places[n++] = key_due(b->bot_id, b->which, DUE_RETRY, st->next_retry_at, seq);
        places[n++] = key_due(b->bot_id, b->which, DUE_READY, 0, seq);
        places[n++] = key_due(b->bot_id, b->which, DUE_BARRIER, epoch, seq);
    }
    for (size_t i = 0; i < n; i++)
        if (row_get(c->sp, FAMILY_DUE, places[i], NULL) > 0)
            return true;
    return false;
}

static bool in_order(struct check *c, const struct event *ev)
{
    struct key k = key_order(c->box->bot_id, c->box->which, ev->epoch, ev->lane, ev->seq);

    return row_get(c->sp, FAMILY_ORDER, k, NULL) > 0;
}

static void check_unfinished(struct check *c, const struct event *ev, const struct event_state *st)
{
    struct lane_record lane;

    c->seen.unfinished++;
    c->seen.processing += st->state == STATE_PROCESSING;
    if (st->state == STATE_DONE || st->state == STATE_DEAD)
        fault(c, "event @%llu is %s but counted unfinished", U(ev->seq), state_name(st->state));
    if (row_lane(c->box, ev->epoch, ev->lane, &lane) <= 0) {
        fault(c, "unfinished event @%llu has no lane", U(ev->seq));
        return;
    }
    if (ev->seq < lane.head || ev->seq > lane.tail)
        fault(c, "event @%llu is outside its lane's %llu..%llu", U(ev->seq), U(lane.head), U(lane.tail));
    if (ev->seq == lane.head) {
        if (!head_is_due(c, ev->seq, ev->epoch, st))
            fault(c, "the head of a lane, event @%llu, is not due: it would wait for ever", U(ev->seq));
        if (in_order(c, ev))
            fault(c, "the head of a lane, event @%llu, is in its lane twice", U(ev->seq));
    } else {
        if (!in_order(c, ev))
            fault(c, "event @%llu is lost from its lane's order", U(ev->seq));
        if (st->state == STATE_PROCESSING && !st->served_id)
            fault(c, "event @%llu is handled out of order", U(ev->seq));
    }
}

/* Of an event and its replays the newest may be gone: then the id leads to another that is left, or is gone, too. */
static void check_id(struct check *c, const struct event *ev, bool replayed)
{
    uint64_t newest;
    int there = row_id(c->box, ev, &newest);

    if (replayed || ev->replay_of)
        return;
    if (there <= 0)
        fault(c, "event @%llu cannot be found by its id", U(ev->seq));
    else if (newest < ev->seq)
        fault(c, "the id of event @%llu leads to the older @%llu", U(ev->seq), U(newest));
}

static void check_event(struct check *c, const struct event *ev)
{
    struct state_record r, other;
    unsigned classes = 0;

    for (int k = 0; k < CLASSES; k++) {
        if (row_state(c->box, (enum ended_class)k, ev->seq, &other) <= 0)
            continue;
        classes++;
        r = other;
        if (k == CLASS_UNFINISHED)
            check_unfinished(c, ev, &r.st);
        else if (class_of(r.st.state) != (enum ended_class)k)
            fault(c, "event @%llu is %s in the wrong class", U(ev->seq), state_name(r.st.state));
        c->seen.done += k == CLASS_DONE;
        c->seen.dead += k == CLASS_DEAD;
        c->seen.dead_settled += state_is_settled(&other.st);
    }
    if (classes != 1)
        fault(c, "event @%llu is in %u classes instead of one", U(ev->seq), classes);
    unsigned char hash[8];
    payload_hash(ev->payload, hash);
    if (!ev->is_call && memcmp(hash, ev->hash, sizeof(hash)))
        fault(c, "the payload of event @%llu is not the one that came", U(ev->seq));
    check_id(c, ev, classes == 1 && r.st.replayed_as);
    if (ev->seq >= c->box->rec.next_seq)
        fault(c, "event @%llu is beyond the next seq %llu", U(ev->seq), U(c->box->rec.next_seq));
}

/* Calls each for every row of a family within the box. */
typedef void row_fn(struct check *c, struct slice key, struct slice value);

static void walk(struct check *c, enum family f, struct key lower, row_fn *each)
{
    struct key upper = key_after_prefix(lower);
    struct err e = ERR_NONE;
    struct db_iter *it = db_iter_new(store_db(c->sp->store), f, key_slice(&lower), key_slice(&upper));

    for (; db_iter_valid(it) && spool_usable(c->sp); db_iter_next(it))
        each(c, db_iter_key(it), db_iter_value(it));
    if (db_iter_free(it, &e) < 0) {
        err_prefix(&e, "family %s", family_name(f));
        spool_break(c->sp, &e);
    }
}

static void each_event(struct check *c, struct slice key, struct slice value)
{
    struct state_key k;
    struct event ev = {.seq = 0};

    if (key_event_decode(key, &k) < 0 || record_event_decode(value, &ev) < 0) {
        fault(c, "a record of an event cannot be decoded");
        return;
    }
    ev.seq = k.seq;
    check_event(c, &ev);
}

static void each_state(struct check *c, struct slice key, struct slice value)
{
    struct buf record = BUF_EMPTY;
    struct state_record r;
    struct state_key k;
    struct event ev;

    if (key_state_decode(key, &k) < 0 || record_state_decode(value, &r) < 0)
        fault(c, "a record of a state cannot be decoded");
    else if (row_event(c->box, k.seq, &ev, &record) == 0)
        fault(c, "there is a state of event @%llu, but no such event", U(k.seq));
    buf_free(&record);
}

static void each_lane(struct check *c, struct slice key, struct slice value)
{
    struct lane_record lane;
    struct state_record r;
    struct order_key k;

    c->seen.lanes++;
    if (key_lane_decode(key, &k) < 0 || record_lane_decode(value, &lane) < 0)
        fault(c, "a record of a lane cannot be decoded");
    else if (row_state(c->box, CLASS_UNFINISHED, lane.head, &r) <= 0)
        fault(c, "the head of a lane, @%llu, is no unfinished event", U(lane.head));
}

static void each_order(struct check *c, struct slice key, struct slice value)
{
    struct state_record r;
    struct order_key k;

    (void)value;
    if (key_order_decode(key, &k) < 0)
        fault(c, "a key of family order cannot be decoded");
    else if (row_state(c->box, CLASS_UNFINISHED, k.seq, &r) <= 0)
        fault(c, "a lane's order holds @%llu, which is no unfinished event", U(k.seq));
}

static void each_due(struct check *c, struct slice key, struct slice value)
{
    struct state_record r;
    struct due_key k;

    (void)value;
    c->seen.heads_due++;
    if (key_due_decode(key, &k) < 0)
        fault(c, "a key of family due cannot be decoded");
    else if (row_state(c->box, CLASS_UNFINISHED, k.seq, &r) <= 0)
        fault(c, "@%llu is due, but no unfinished event", U(k.seq));
    else if ((k.class == DUE_LEASE) != (r.st.state == STATE_PROCESSING))
        fault(c, "@%llu is %s, but due in class %d", U(k.seq), state_name(r.st.state), (int)k.class);
}

static void compare(struct check *c, const char *what, uint64_t counted, uint64_t seen)
{
    if (counted != seen)
        fault(c, "the counter of %s says %llu, there are %llu", what, U(counted), U(seen));
}

/* ---- idempotency keys --------------------------------------------------------------------------- */

static bool is_held(struct check *c, int64_t bot, const unsigned char hash[MARK_BYTES],
                    const struct mark_record *m)
{
    struct spool_box *b = box_find(c->sp, bot, m->box);
    struct state_record r;

    if (!b || row_state(b, CLASS_UNFINISHED, m->seq, &r) <= 0 || r.st.state != STATE_PROCESSING)
        return false;
    for (size_t i = 0; i < r.st.n_marks; i++)
        if (!memcmp(r.st.marks[i], hash, MARK_BYTES))
            return true;
    return false;
}

static void each_mark(struct check *c, struct slice key, struct slice value)
{
    unsigned char hash[MARK_BYTES];
    struct mark_record m;
    int64_t bot;

    if (key_mark_decode(key, &bot, hash) < 0 || record_mark_decode(value, &m) < 0) {
        fault(c, "a record of an idempotency key cannot be decoded");
        return;
    }
    struct key x = key_mark_expiry(m.expiry, bot, hash);
    if (m.done && row_get(c->sp, FAMILY_MARKS, x, NULL) <= 0)
        fault(c, "an idempotency key of bot %lld would never be forgotten", (long long)bot);
    if (!m.done && !is_held(c, bot, hash, &m))
        fault(c, "an idempotency key of bot %lld is held by @%llu, which does not have it", (long long)bot,
              U(m.seq));
}

/* What is past its time may be left over: it goes with the next look. */
static void each_mark_expiry(struct check *c, struct slice key, struct slice value)
{
    unsigned char hash[MARK_BYTES];
    struct mark_record m;
    struct buf v = BUF_EMPTY;
    int64_t bot, expiry;

    (void)value;
    if (key_mark_expiry_decode(key, &expiry, &bot, hash) < 0) {
        fault(c, "a key of family marks cannot be decoded");
        return;
    }
    struct key k = key_mark(bot, hash);
    if (expiry > c->sp->now && (row_get(c->sp, FAMILY_MARKS, k, &v) <= 0 ||
                                record_mark_decode(buf_slice(&v), &m) < 0 || m.expiry != expiry))
        fault(c, "the expiry of an idempotency key of bot %lld leads to no such key", (long long)bot);
    buf_free(&v);
}

static void check_marks(struct check *c)
{
    const unsigned char by_key = 0, by_expiry = 1; /* doc/format.md */
    struct key prefix = {.n = 1};

    c->box = NULL;
    prefix.b[0] = by_key;
    walk(c, FAMILY_MARKS, prefix, each_mark);
    prefix.b[0] = by_expiry;
    walk(c, FAMILY_MARKS, prefix, each_mark_expiry);
}

/* ---- all ---------------------------------------------------------------------------------------- */

static void check_box(struct check *c)
{
    struct spool_box *b = c->box;
    struct key prefix = key_event(b->bot_id, b->which, 0);

    prefix.n -= 8;
    c->seen = (struct tally){0};
    walk(c, FAMILY_EVENTS, prefix, each_event);
    walk(c, FAMILY_STATES, prefix, each_state);
    walk(c, FAMILY_LANES, prefix, each_lane);
    walk(c, FAMILY_ORDER, prefix, each_order);
    walk(c, FAMILY_DUE, prefix, each_due);
    compare(c, "unfinished events", box_unfinished(b), c->seen.unfinished);
    compare(c, "events in processing", b->rec.counters[COUNT_PROCESSING], c->seen.processing);
    compare(c, "done events", b->rec.counters[COUNT_DONE], c->seen.done);
    compare(c, "dead events", b->rec.counters[COUNT_DEAD], c->seen.dead);
    compare(c, "dead events that were replayed or discarded", b->rec.counters[COUNT_DEAD_SETTLED],
            c->seen.dead_settled);
    if (c->seen.lanes != c->seen.heads_due)
        fault(c, "%llu lanes have %llu due entries; each should have one", U(c->seen.lanes),
              U(c->seen.heads_due));
}

/* Every checksum, also of the rows that no invariant speaks of. */
static void read_all(struct check *c)
{
    struct err e = ERR_NONE;
    uint64_t rows;

    for (int f = 0; f < FAMILIES; f++)
        if (db_scan(store_db(c->sp->store), (enum family)f, &rows, &e) < 0) {
            err_prefix(&e, "family %s", family_name((enum family)f));
            spool_break(c->sp, &e);
            return;
        }
}

int spool_verify(struct spool *sp, spool_fault_fn *report, void *arg, struct err *e)
{
    struct check c = {.sp = sp, .report = report, .arg = arg};

    if (spool_usable(sp))
        read_all(&c);
    list_each(&sp->boxes, it) {
        if (!spool_usable(sp))
            break;
        c.box = list_item(it, struct spool_box, link);
        check_box(&c);
    }
    if (spool_usable(sp))
        check_marks(&c);
    if (spool_usable(sp))
        return (int)c.faults;
    if (!sp->broken)
        return err_set(e, EX_IOERR, "the store cannot be read");
    if (sp->broken_why.exit_code !=
        EX_DATAERR) /* the disk's, not the spool's: what could not be read may be well */
        return err_set(e, sp->broken_why.exit_code, "%s", sp->broken_why.text);
    if (report)
        report(arg, sp->broken_why.text);
    return (int)c.faults + 1;
}
