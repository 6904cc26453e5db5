/* The end of a try: the decision of core/outcome becomes rows. Every change of an event's state after its
 * arrival goes through finish_try. */
#include <stdlib.h>

#include "base/failpoint.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"
#include "spool/internal.h"

struct held *held_find(struct spool_box *b, uint64_t seq)
{
    list_each(&b->held, it) {
        struct held *h = list_item(it, struct held, link);
        if (h->seq == seq)
            return h;
    }
    return NULL;
}

void held_free(struct held *h)
{
    if (!h)
        return;
    list_del(&h->link);
    free(h);
}

int state_need_lane(struct spool_box *b, uint64_t seq, struct state_record *r)
{
    struct buf record = BUF_EMPTY;
    struct event ev;
    int rc = 1;

    if (!r->has_lane) {
        rc = row_event(b, seq, &ev, &record);
        if (rc > 0) {
            r->has_lane = true;
            r->epoch = ev.epoch;
            r->lane = ev.lane;
        }
    }
    buf_free(&record);
    return rc > 0 ? 0 : -1;
}

/* The handler's text, made fit to keep: no tokens, no control characters, at most ERROR_MAX bytes. */
static void set_error(struct event_state *st, struct slice error)
{
    struct buf scrubbed = BUF_EMPTY, clean = BUF_EMPTY;

    if (error.n == 0)
        return;
    buf_add(&scrubbed, error.p, error.n < 4096 ? error.n : 4096);
    text_scrub_tokens(&scrubbed);
    text_add_clean(&clean, buf_slice(&scrubbed), ERROR_MAX, false);
    memcpy(st->error, buf_str(&clean), clean.n);
    st->error[clean.n] = '\0';
    buf_free(&scrubbed);
    buf_free(&clean);
}

void history_add(struct event_state *st, const struct outcome *o, int64_t now)
{
    if (st->n_history == HISTORY_MAX) {
        memmove(st->history, st->history + 1, (HISTORY_MAX - 1) * sizeof(st->history[0]));
        st->n_history--;
    }
    struct try_record *t = &st->history[st->n_history++];
    *t = (struct try_record){.at = now, .outcome = (unsigned char)o->kind};
    if (o->error.n) {
        struct buf cut = BUF_EMPTY;
        text_add_clean(&cut, slice_str(st->error), sizeof(t->error) - 1, false);
        memcpy(t->error, buf_str(&cut), cut.n);
        buf_free(&cut);
    }
}

/* The due entry of a head goes; one that is no head has none. */
static void remove_due(struct spool_box *b, uint64_t seq, const struct state_record *r, enum due_place place)
{
    const struct event_state *st = &r->st;

    if (place == AT_LEASE)
        row_delete(b, FAMILY_DUE,
                   key_due(b->bot_id, b->which, DUE_LEASE, st->push ? TIME_NEVER : st->deadline, seq));
    if (place != AT_LEASE)
        row_delete(b, FAMILY_DUE, key_due(b->bot_id, b->which, DUE_READY, 0, seq));
    if (place == AT_ANY) {
        row_delete(b, FAMILY_DUE, key_due(b->bot_id, b->which, DUE_BARRIER, r->epoch, seq));
        if (st->next_retry_at)
            row_delete(b, FAMILY_DUE, key_due(b->bot_id, b->which, DUE_RETRY, st->next_retry_at, seq));
    }
}

static void count_outcome(struct spool_box *b, enum outcome_kind kind, const struct decision *d)
{
    static const enum box_counter dead[] = {
        [REASON_ATTEMPTS] = COUNT_DEAD_ATTEMPTS,
        [REASON_REJECTED] = COUNT_DEAD_REJECTED,
        [REASON_EXPIRED] = COUNT_DEAD_EXPIRED,
        [REASON_DISCARDED] = COUNT_DEAD_DISCARDED,
    };

    if (kind == OUTCOME_RETRY || kind == OUTCOME_REJECTED || kind == OUTCOME_UNAVAILABLE ||
        kind == OUTCOME_LEASE_EXPIRED)
        box_count(b, COUNT_FAILURES, 1);
    if (kind == OUTCOME_LEASE_EXPIRED)
        box_count(b, COUNT_LEASE_EXPIRED, 1);
    if (d->state == STATE_PENDING && d->add_attempts)
        box_count(b, COUNT_RETRIES, 1);
    if (d->state == STATE_DONE) {
        box_count(b, COUNT_DONE, 1);
        box_count(b, COUNT_DELIVERED, 1);
    }
    if (d->state == STATE_DEAD) {
        box_count(b, COUNT_DEAD, 1);
        box_count(b, dead[d->reason], 1);
        if (kind == OUTCOME_DISCARDED) /* the history says so too, see state_is_settled */
            box_count(b, COUNT_DEAD_SETTLED, 1);
    }
}

/* How long the handler took; only where it is the handler that ended the try, or that did not. */
static void time_handler(struct spool_box *b, const struct event_state *st, enum outcome_kind kind)
{
    int64_t took = b->sp->now - st->claimed_at;

    if (kind == OUTCOME_DONE || kind == OUTCOME_RETRY || kind == OUTCOME_REJECTED ||
        kind == OUTCOME_LEASE_EXPIRED)
        histogram_add(&b->handler_ms, took > 0 ? (uint64_t)took : 0);
}

/* Only the probe, or a success, moves an open breaker's next probe; answers of claims made before it opened
 * do not. */
static void move_breaker(struct spool_box *b, uint64_t seq, struct lane lane, const struct outcome *o,
                         const struct decision *d, uint32_t random)
{
    struct breaker *br = &b->breaker;
    bool was_probe = br->open && br->probing && br->last_probe_seq == seq;
    int64_t after = (d->effect == BREAK_OPEN || d->effect == BREAK_LIMIT_LANE) && o->after_ms >= 0
                        ? (o->after_ms < RETRY_AFTER_MAX_MS ? o->after_ms : RETRY_AFTER_MAX_MS)
                        : -1;
    bool late = br->open && br->probing && !was_probe && d->effect != BREAK_SUCCESS;

    if (!late &&
        breaker_apply(br, d->effect, d->cause, lane, after, &b->policy.outcome.retry, random, b->sp->now))
        happen(b, br->open ? HAPPENED_BREAKER_OPEN : HAPPENED_BREAKER_CLOSED, seq,
               &(struct spool_happening){.lane = lane, .outcome = o->kind});
    if (was_probe && d->effect == BREAK_NOTHING)
        breaker_probe_ended(br);
    b->dirty = true;
}

static void tell(struct spool_box *b, uint64_t seq, const struct state_record *r, const struct outcome *o,
                 int64_t due)
{
    struct held *h = held_find(b, seq);
    struct spool_happening more = {
        .lane = r->lane, .attempt = r->st.attempts, .reason = r->st.reason, .outcome = o->kind, .due = due};

    if (h) {
        more.has_update_id = h->has_update_id;
        more.update_id = h->update_id;
        memcpy(more.kind, h->kind, sizeof(more.kind));
        held_free(h);
    } else if (b->sp->watcher) { /* claimed before the last start, or never */
        struct buf record = BUF_EMPTY;
        struct event ev;
        if (row_event(b, seq, &ev, &record) > 0) {
            more.has_update_id = ev.has_update_id;
            more.update_id = ev.update_id;
            memcpy(more.kind, ev.kind, sizeof(more.kind));
        }
        buf_free(&record);
    }
    happen(b,
           r->st.state == STATE_DONE                                    ? HAPPENED_DONE
           : r->st.state == STATE_DEAD                                  ? HAPPENED_DEAD
           : o->kind == OUTCOME_RELEASED || o->kind == OUTCOME_RETURNED ? HAPPENED_RELEASED
                                                                        : HAPPENED_RETRY,
           seq, &more);
}

void finish_try(struct spool_box *b, uint64_t seq, struct state_record *r, const struct outcome *o,
                enum due_place place)
{
    static const struct outcome discarded = {.kind = OUTCOME_DISCARDED, .after_ms = -1};
    struct event_state *st = &r->st;
    uint32_t random = (uint32_t)random_below(UINT64_C(1) << 32);
    struct decision d;

    if (st->state == STATE_PROCESSING && st->reason == REASON_DISCARDED && o->kind != OUTCOME_DONE)
        o = &discarded; /* by spool_discard_later, however the try ended */
    (void)FAILPOINT_EACH("outcome.before_", outcome_name(o->kind));
    outcome_decide(o, st, r->lane, &b->policy.outcome, &b->breaker, random, b->sp->now, &d);
    remove_due(b, seq, r, place);
    if (st->state == STATE_PROCESSING) {
        box_count(b, COUNT_PROCESSING, -1);
        time_handler(b, st, o->kind);
    }
    set_error(st, o->error);
    if (o->kind != OUTCOME_EXPIRED && o->kind != OUTCOME_RETURNED)
        history_add(st, o, b->sp->now);
    st->state = d.state;
    st->reason = d.reason;
    st->attempts += d.add_attempts;
    st->interrupted += d.add_interrupted;
    st->push = false;
    st->served_id = 0;
    marks_settle(b, seq, st, d.state == STATE_DONE);
    st->next_retry_at = d.state == STATE_PENDING && d.due > b->sp->now ? d.due : 0;
    if (d.state == STATE_PENDING) {
        row_put_state(b, CLASS_UNFINISHED, seq, r);
        lane_schedule(b, r->epoch, d.due, seq);
    } else {
        st->finished_at = b->sp->now;
        row_delete(b, FAMILY_STATES, key_state(b->bot_id, b->which, CLASS_UNFINISHED, seq));
        row_put_state(b, class_of(d.state), seq, r);
        retain_note(b, seq, r);
        lane_leave(b, r->epoch, r->lane, seq);
        box_sub_unfinished(b, r->epoch);
        if (seq == b->oldest_from)
            b->oldest_known = false;
    }
    count_outcome(b, o->kind, &d);
    move_breaker(b, seq, r->lane, o, &d, random);
    tell(b, seq, r, o, d.due);
    b->sp->batch_events++;
}

/* Keeps a happening until the batch with it is written. */
void happen(struct spool_box *b, enum happening what, uint64_t seq, const struct spool_happening *more)
{
    struct spool *sp = b->sp;

    if (!sp->watcher)
        return;
    if (sp->n_happened == sp->cap_happened) {
        sp->cap_happened = sp->cap_happened ? sp->cap_happened * 2 : 64;
        sp->happened = xrealloc(sp->happened, sp->cap_happened * sizeof(*sp->happened));
    }
    struct spool_happening *h = &sp->happened[sp->n_happened++];
    *h = *more;
    h->what = what;
    h->box = b;
    h->seq = seq;
    h->at = sp->now;
}
