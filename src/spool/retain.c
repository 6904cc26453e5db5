/* Retention: what ended is removed when its time is up. Each class of ended events is walked by seq from its front, and
 * the walk stops at the first that must stay; that one says when to look again. With an archiver, events are
 * archived first, a slice at a time (retain_archive.c).
 *
 * The rows of an event go in one batch, one by one: they are never half there. Beside that, a long run of events of which
 * nothing is left is covered by one deleted range, and then the files that hold nothing else are dropped: so payload
 * needs no compaction to give its room back. This alone asks for a sync: a file once dropped cannot come back, so that
 * the deletions must not either. */
#include <stdlib.h>

#include "base/mem.h"
#include "spool/retain.h"

#define BLOCKED_MS MINUTES(1)   /* an event whose calls are unfinished is looked at again so soon */
#define RUN_MANY 5000           /* events in a run: its range is deleted; */
#define RUN_SOME 1000           /* also one of so many, */
#define RUN_EVERY_MS MINUTES(1) /* but not sooner than this after the one before */
#define AUDIT_EVERY_MS HOURS(1) /* at least between two deletions of audit rows */

static const enum ended_class ended[] = {CLASS_DEAD, CLASS_DONE};

/* ---- when --------------------------------------------------------------------------------------- */

static int64_t keep_ms(const struct spool *sp, enum ended_class c)
{
    return c == CLASS_DONE ? sp->retention.done_ms : sp->retention.dead_ms;
}

static int64_t ended_at(const struct spool *sp, const struct state_record *r)
{
    return stepped_past(sp, r->imported_at > r->st.finished_at ? r->imported_at : r->st.finished_at);
}

void retain_note(struct spool_box *b, uint64_t seq, const struct state_record *r)
{
    enum ended_class c = class_of(r->st.state);
    struct retain_front *f = &b->retain[c];
    int64_t due = ended_at(b->sp, r) + keep_ms(b->sp, c);

    if (seq < f->from)
        f->from = seq;
    if (due < f->at)
        f->at = due;
}

void retain_reset(struct spool_box *b)
{
    for (size_t c = 0; c < ARRAY_LEN(b->retain); c++)
        b->retain[c] = (struct retain_front){.at = INT64_MIN};
}

void spool_set_retention(struct spool *sp, const struct spool_retention *r)
{
    sp->retention = *r;
    sp->retaining = true;
    sp->audit_at = INT64_MIN;
    list_each(&sp->boxes, it) {
        struct spool_box *b = list_item(it, struct spool_box, link);
        b->retain[CLASS_DONE].at = b->retain[CLASS_DEAD].at = INT64_MIN;
    }
}

/* ---- what may go -------------------------------------------------------------------------------- */

struct look {
    struct spool_box *box;
    enum ended_class class;
    struct retain_item *items;
    unsigned n, max;
    bool stopped; /* at `front`, which is due at `at`: the first that stays, or that is too much for now */
    uint64_t front;
    int64_t at;
};

static bool look_at(void *arg, uint64_t seq, struct slice value)
{
    struct look *l = arg;
    struct spool *sp = l->box->sp;
    struct state_record r;

    if (record_state_decode(value, &r) < 0) {
        row_undecodable(l->box, FAMILY_STATES, seq);
        return false;
    }
    int64_t due = ended_at(sp, &r) + keep_ms(sp, l->class);
    if (due > sp->now || l->n == l->max) {
        l->stopped = true;
        l->front = seq;
        l->at = due;
        return false;
    }
    l->items[l->n++] = (struct retain_item){.seq = seq,
                                            .finished_at = r.st.finished_at,
                                            .replayed_as = r.st.replayed_as,
                                            .settled = state_is_settled(&r.st),
                                            .calls_from = r.calls_from,
                                            .n_calls = r.n_calls};
    return true;
}

static bool is_there(void *arg, uint64_t seq, struct slice value)
{
    (void)seq;
    (void)value;
    *(bool *)arg = true;
    return false;
}

static bool calls_unfinished(const struct spool_box *b, const struct retain_item *it)
{
    struct spool_box *out = it->n_calls ? box_find(b->sp, b->bot_id, BOX_OUT) : NULL;
    bool found = false;

    if (out && box_unfinished(out))
        rows_states(out, CLASS_UNFINISHED, it->calls_from, it->calls_from + it->n_calls, is_there, &found);
    return found;
}

/* Whether the event itself lets go. Returns 1, 0 and when to look again, or -1. */
static int may_go(struct spool_box *b, const struct retain_item *it, struct event *ev, struct buf *record,
                  bool *has_event, int64_t *at)
{
    int there = row_event(b, it->seq, ev, record);

    if (there < 0)
        return -1;
    *has_event = there > 0; /* without one, the state is good for nothing: it goes */
    int64_t forget = there ? stepped_past(b->sp, ev->received_at) + b->sp->retention.dedupe_ms : 0;
    if (forget > b->sp->now) {
        *at = forget;
        return 0;
    }
    if (calls_unfinished(b, it)) {
        *at = b->sp->now + BLOCKED_MS;
        return 0;
    }
    return spool_usable(b->sp) ? 1 : -1;
}

/* ---- runs of which nothing is left -------------------------------------------------------------- */

/* Whether no event below seq is left, as far as the hints say. */
static bool none_below(const struct spool_box *b, uint64_t seq)
{
    for (size_t i = 0; i < ARRAY_LEN(ended); i++)
        if (b->retain[ended[i]].from < seq && b->retain[ended[i]].at != TIME_NEVER)
            return false;
    return box_unfinished(b) == 0 || b->oldest_from >= seq;
}

static void run_add(struct spool_box *b, enum ended_class c, uint64_t seq)
{
    struct retain_run *run = &b->retain[c].run;

    if (run->to != seq && (run->to > seq || !run->to || !none_below(b, seq)))
        *run = (struct retain_run){.before = seq, .from = seq, .at = b->sp->now};
    run->to = seq + 1;
    run->rows++;
}

struct drop {
    struct spool *sp;
    struct key lower, last;
};

static void drop_files(void *arg, bool ok)
{
    struct drop *d = arg;
    struct db *db = ok ? store_db(d->sp->store) : NULL;
    struct err e = ERR_NONE;

    if (db && db_drop_files(db, FAMILY_EVENTS, key_slice(&d->lower), key_slice(&d->last), &e) < 0)
        spool_break(d->sp, &e);
    free(d);
}

/* Deletes the run's range, from where the range before it began: a file over the seam of both is dropped then, too. */
void retain_run_end(struct spool_box *b, enum ended_class c)
{
    struct retain_run *run = &b->retain[c].run;

    if (run->rows < RUN_MANY && (run->rows < RUN_SOME || b->sp->now - run->at < RUN_EVERY_MS))
        return;
    struct drop *d = xmalloc(sizeof(*d));
    struct key upper = key_event(b->bot_id, b->which, run->to);
    *d = (struct drop){.sp = b->sp,
                       .lower = key_event(b->bot_id, b->which, run->before),
                       .last = key_event(b->bot_id, b->which, run->to - 1)};
    db_delete_range(store_db(b->sp->store), FAMILY_EVENTS, key_slice(&d->lower), key_slice(&upper));
    spool_on_durable(b->sp, drop_files, d);
    *run = (struct retain_run){.before = run->from, .from = run->to, .to = run->to, .at = b->sp->now};
}

/* ---- removing ----------------------------------------------------------------------------------- */

/* Whom an id leads to when the newest event with it goes: of replays, one that is still there. 0: nobody. */
static uint64_t heir(struct spool_box *b, const struct event *ev)
{
    struct state_record r, newer;
    enum ended_class c;

    if (!ev->replay_of || row_find_state(b, ev->replay_of, &c, &r) <= 0)
        return 0;
    uint64_t other = r.st.replayed_as; /* replayed twice, by its own id */
    return other != ev->seq && row_find_state(b, other, &c, &newer) > 0 ? other : ev->replay_of;
}

static void forget_id(struct spool_box *b, const struct event *ev, bool replayed)
{
    uint64_t newest;

    if (!ev->replay_of && !replayed) { /* nobody else has it: spares a read */
        row_delete_id(b, ev);
        return;
    }
    if (row_id(b, ev, &newest) <= 0 || newest != ev->seq)
        return;
    struct event left = {.has_update_id = ev->has_update_id,
                         .update_id = ev->update_id,
                         .is_call = ev->is_call,
                         .seq = heir(b, ev)};
    memcpy(left.hash, ev->hash, sizeof(left.hash));
    if (left.seq)
        row_put_id(b, &left);
    else
        row_delete_id(b, ev);
}

static void remove_event(struct spool_box *b, enum ended_class c, const struct retain_item *it,
                         const struct event *ev)
{
    row_delete(b, FAMILY_STATES, key_state(b->bot_id, b->which, c, it->seq));
    row_delete(b, FAMILY_EVENTS, key_event(b->bot_id, b->which, it->seq));
    if (ev)
        forget_id(b, ev, it->replayed_as);
    box_count(b, c == CLASS_DONE ? COUNT_DONE : COUNT_DEAD, -1);
    if (it->settled)
        box_count(b, COUNT_DEAD_SETTLED, -1);
    run_add(b, c, it->seq);
    b->sp->removed++;
}

enum retained retain_one(struct spool_box *b, enum ended_class c, const struct retain_item *it, retain_fn *fn,
                         void *arg, int64_t *at)
{
    struct buf record = BUF_EMPTY;
    bool has_event = false;
    struct event ev;
    enum retained rc = RETAIN_BROKEN;

    int may = may_go(b, it, &ev, &record, &has_event, at);
    if (may == 0)
        rc = RETAIN_STAYS;
    else if (may > 0 && fn && has_event)
        rc = fn(arg, b, it, &ev);
    else if (may > 0) {
        remove_event(b, c, it, has_event ? &ev : NULL);
        rc = RETAIN_GONE;
    }
    buf_free(&record);
    return rc;
}

void retain_front_at(struct spool_box *b, enum ended_class c, uint64_t seq, int64_t at)
{
    struct retain_front *f = &b->retain[c];

    f->from = seq;
    f->at = at;
}

/* Removes what is due at the front of a class; with an archiver, begins a slice of it. */
static void retain_class(struct spool_box *b, enum ended_class c)
{
    struct spool *sp = b->sp;
    struct retain_item items[WORK_PER_TICK];
    struct look l = {.box = b,
                     .class = c,
                     .items = items,
                     .max = sp->work_left < RETAIN_PER_TICK ? sp->work_left : RETAIN_PER_TICK,
                     .front = b->rec.next_seq};
    int64_t at = TIME_NEVER;
    bool gone = false;

    if (rows_states(b, c, b->retain[c].from, UINT64_MAX, look_at, &l) < 0)
        return;
    if (l.stopped)
        at = l.at;
    if (sp->archive_fn && l.n) {
        retain_front_at(b, c, items[0].seq, sp->now);
        retain_slice_begin(b, c, items, l.n);
        return;
    }
    sp->work_left -= l.n;
    for (unsigned i = 0; i < l.n; i++) {
        retain_front_at(b, c, items[i].seq, sp->now);
        enum retained rc = retain_one(b, c, &items[i], NULL, NULL, &at);
        if (rc == RETAIN_BROKEN)
            return;
        if (rc == RETAIN_STAYS) {
            l.front = items[i].seq;
            break;
        }
        gone = true;
    }
    /* else each event of a stream would be a reason to wake up */
    bool soon = gone && at > sp->now && at < sp->now + RETAIN_EVERY_MS;
    retain_front_at(b, c, l.front, soon ? sp->now + RETAIN_EVERY_MS : at);
    retain_run_end(b, c);
}

/* ---- the audit log ------------------------------------------------------------------------------ */

static void retain_audit(struct spool *sp)
{
    int64_t until = sp->now - sp->retention.audit_ms; /* rows of this time and before go */
    struct key lower = key_audit(0, 0), upper = key_audit(INT64_MAX, UINT32_MAX);
    struct key end = key_audit(until + 1, 0);
    struct err e = ERR_NONE;
    int64_t first = TIME_NEVER;

    if (sp->now < sp->audit_at)
        return;
    struct db_iter *it = db_iter_new(store_db(sp->store), FAMILY_AUDIT, key_slice(&lower), key_slice(&upper));
    if (db_iter_valid(it))
        key_audit_decode(db_iter_key(it), &first);
    if (db_iter_free(it, &e) < 0) {
        spool_break(sp, &e);
        return;
    }
    if (first > until) {
        sp->audit_at = (first == TIME_NEVER ? sp->now : first) + sp->retention.audit_ms;
        return;
    }
    db_delete_range(store_db(sp->store), FAMILY_AUDIT, key_slice(&lower), key_slice(&end));
    sp->audit_at = sp->now + AUDIT_EVERY_MS;
}

/* ---- the tick ----------------------------------------------------------------------------------- */

void retain_work(struct spool *sp)
{
    if (!sp->retaining || !spool_usable(sp) || stepped_rests(sp))
        return;
    retain_audit(sp);
    if (!retain_slice_step(sp)) /* one is under way, or the archive rests after a failure */
        return;
    list_each(&sp->boxes, it) {
        struct spool_box *b = list_item(it, struct spool_box, link);
        for (size_t i = 0; i < ARRAY_LEN(ended); i++) {
            if (!spool_usable(sp) || sp->work_left == 0 || sp->slice)
                return;
            if (sp->now >= b->retain[ended[i]].at)
                retain_class(b, ended[i]);
        }
    }
}

int64_t retain_deadline(const struct spool *sp)
{
    int64_t next = TIME_NEVER;

    if (!sp->retaining)
        return TIME_NEVER;
    if (stepped_rests(sp))
        return stepped_rests_until(sp);
    list_each(&sp->boxes, it) {
        const struct spool_box *b = list_item(it, struct spool_box, link);
        for (size_t i = 0; i < ARRAY_LEN(ended); i++)
            if (b->retain[ended[i]].at < next)
                next = b->retain[ended[i]].at;
    }
    if (next < sp->archive_retry_at)
        next = sp->archive_retry_at;
    if (sp->slice)
        next = sp->now;
    return sp->audit_at < next ? sp->audit_at : next;
}
