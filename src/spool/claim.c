/* Claims: heads that are due are taken, with a lease, and handed over once that is written. */
#include "spool/internal.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/random.h"
#include "core/kinds.h"

#define SCAN_MAX 64 /* ready heads looked at in one go */

void claim_free(struct claim *c)
{
    if (!c)
        return;
    buf_free(&c->record);
    free(c);
}

bool spool_claimable(const struct spool_box *b)
{
    return b->maybe_ready && b->attached && !b->policy.serve && !b->rec.paused_deliver && !b->releasing &&
           !b->unserving && spool_usable(b->sp) && !store_stalled(b->sp->store) &&
           b->rec.counters[COUNT_PROCESSING] < b->policy.concurrency &&
           breaker_allows(&b->breaker, 1, b->sp->now) > 0;
}

/* How old an event of this kind may become. */
static int64_t may_wait_ms(const struct spool_policy *p, const char *kind)
{
    const struct kind *k = kind_find(slice_str(kind));

    if (p->expire == EXPIRE_AUTO)
        return k ? k->telegram_keeps_ms : HOURS(24);
    for (size_t i = 0; p->expire == EXPIRE_KINDS && i < p->n_expire_rules; i++)
        if (!strcmp(p->expire_rules[i].kind, kind))
            return p->expire_rules[i].ms;
    return TIME_NEVER;
}

enum expired has_expired(const struct spool_box *b, const struct event *ev)
{
    const struct spool *sp = b->sp;
    int64_t limit = may_wait_ms(&b->policy, ev->kind);

    if (ev->replay_of) /* a person wants it handled, however old it is */
        return EXPIRED_NOT;
    if (stepped_age(sp, ev->received_at) <= limit)
        return EXPIRED_NOT;
    return sp->now < sp->expire_from && stepped_age_least(sp, ev->received_at) <= limit ? EXPIRED_MAYBE
                                                                                        : EXPIRED;
}

/* The claim is written: its owner gets it. If the owner went away meanwhile it is given back at once; if the
 * write failed it may be there all the same, and is given back after the reopen. */
static void claim_written(void *arg, bool ok)
{
    struct claiming *cl = arg;
    struct claim *c = cl->claim;
    static const struct outcome returned = {.kind = OUTCOME_RETURNED, .after_ms = -1};

    list_del(&cl->link);
    if (!ok) {
        remember(c->box, c->ev.seq, c->token, &returned, NULL, false);
    } else if (cl->discarded) {
        ok = false; /* else its handler would run beside that of the next in its lane */
    } else if (!cl->fn) {
        spool_complete(c->box, c->ev.seq, c->token, &returned);
    } else {
        cl->fn(cl->arg, c);
        c = NULL;
    }
    if (!ok && cl->fn)
        cl->fn(cl->arg, NULL);
    claim_free(c);
    free(cl);
}

void claim_stop(struct spool_box *b, uint64_t seq)
{
    list_each(&b->sp->claiming, it) {
        struct claiming *cl = list_item(it, struct claiming, link);
        if (cl->claim->box == b && cl->claim->ev.seq == seq)
            cl->discarded = true;
    }
}

static void hold(struct spool_box *b, const struct event *ev, bool push,
                 const unsigned char token[TOKEN_BYTES])
{
    struct held *h = xcalloc(1, sizeof(*h));

    h->seq = ev->seq;
    h->push = push;
    memcpy(h->token, token, TOKEN_BYTES);
    h->has_update_id = ev->has_update_id;
    h->update_id = ev->update_id;
    memcpy(h->kind, ev->kind, sizeof(h->kind));
    list_add_tail(&b->held, &h->link);
}

/* Writes the lease. */
static void lease(struct spool_box *b, struct claim *c, struct state_record *r, const struct claim_request *q)
{
    struct event_state *st = &r->st;

    random_bytes(c->token, sizeof(c->token));
    c->deadline = b->sp->now + (q->lease_ms ? q->lease_ms : b->policy.lease_ms);
    c->attempt = st->attempts + 1;
    c->interrupted = st->interrupted;
    r->has_lane = true;
    r->epoch = c->ev.epoch;
    r->lane = c->ev.lane;
    st->state = STATE_PROCESSING;
    st->push = q->push;
    st->claimed_at = b->sp->now;
    st->next_retry_at = 0;
    st->deadline = c->deadline;
    memcpy(st->token, c->token, sizeof(st->token));
    memset(st->claimed_by, 0, sizeof(st->claimed_by));
    strncpy(st->claimed_by, q->by, sizeof(st->claimed_by) - 1);
    row_put_state(b, CLASS_UNFINISHED, c->ev.seq, r);
    row_delete(b, FAMILY_DUE, key_due(b->bot_id, b->which, DUE_READY, 0, c->ev.seq));
    row_put_due(b, DUE_LEASE, q->push ? TIME_NEVER : c->deadline, c->ev.seq);
}

/* Whether a handler of ours has it, although the store says that it is ready: the claim was written but not synced, and
 * a failure took it back. The handler's outcome ends it (remember.c). */
static bool is_being_handled(struct spool_box *b, uint64_t seq)
{
    const struct held *h = held_find(b, seq);

    return h && h->push;
}

/* A ready head that has expired, if the clock is right, waits until that is more certain. */
static void put_off(struct spool_box *b, uint64_t seq, struct state_record *r)
{
    row_delete(b, FAMILY_DUE, key_due(b->bot_id, b->which, DUE_READY, 0, seq));
    r->st.next_retry_at = b->sp->expire_from;
    row_put_state(b, CLASS_UNFINISHED, seq, r);
    row_put_due(b, DUE_RETRY, r->st.next_retry_at, seq);
}

/* Claims one ready head. Returns 1, 0 (it had expired, waits, or was not there) or -1. */
static int claim_one(struct spool_box *b, uint64_t seq, const struct claim_request *q, spool_claim_fn *fn,
                     void *arg)
{
    struct claim *c = xcalloc(1, sizeof(*c));
    struct state_record r;
    int rc = row_event(b, seq, &c->ev, &c->record);

    if (rc > 0)
        rc = row_state(b, CLASS_UNFINISHED, seq, &r);
    if (rc <= 0) {
        claim_free(c);
        if (rc == 0) /* an index entry without its event: verify tells; it must not block the others */
            row_delete(b, FAMILY_DUE, key_due(b->bot_id, b->which, DUE_READY, 0, seq));
        return rc;
    }
    enum expired expired = has_expired(b, &c->ev);
    if (expired != EXPIRED_NOT) {
        r.has_lane = true;
        r.epoch = c->ev.epoch;
        r.lane = c->ev.lane;
        if (expired == EXPIRED_MAYBE)
            put_off(b, seq, &r);
        else
            finish_try(b, seq, &r, &(struct outcome){.kind = OUTCOME_EXPIRED, .after_ms = -1}, AT_READY);
        b->sp->expire_left--;
        claim_free(c);
        return 0;
    }
    c->box = b;
    lease(b, c, &r, q);
    hold(b, &c->ev, q->push, c->token);
    box_count(b, COUNT_PROCESSING, 1);
    if (b->breaker.open)
        breaker_probe_started(&b->breaker, seq);
    struct spool_happening more = {.has_update_id = c->ev.has_update_id,
                                   .update_id = c->ev.update_id,
                                   .lane = c->ev.lane,
                                   .attempt = c->attempt};
    memcpy(more.kind, c->ev.kind, sizeof(more.kind));
    happen(b, HAPPENED_CLAIMED, seq, &more);

    struct claiming *cl = xmalloc(sizeof(*cl));
    *cl = (struct claiming){.claim = c, .fn = fn, .arg = arg};
    list_add_tail(&b->sp->claiming, &cl->link);
    store_on_done(b->sp->store, false, claim_written, cl);
    b->sp->batch_events++;
    return 1;
}

/* The next ready heads: from the front, or, while the breaker is open, those behind the last probe. */
static int find_ready(struct spool_box *b, unsigned max, struct due_item *items)
{
    int n;

    if (!b->breaker.open) {
        n = rows_due(b, DUE_READY, 0, b->ready_from, INT64_MAX, max, items, NULL);
        if (n == 0)
            b->maybe_ready = false;
        else if (n > 0)
            b->ready_from = items[n - 1].seq + 1; /* all of these leave the class now */
        return n;
    }
    n = rows_due(b, DUE_READY, 0, b->breaker.last_probe_seq + 1, INT64_MAX, max, items, NULL);
    if (n == 0)
        n = rows_due(b, DUE_READY, 0, b->ready_from, INT64_MAX, max, items, NULL);
    if (n == 0)
        b->maybe_ready = false;
    return n;
}

unsigned spool_claim(struct spool_box *b, const struct claim_request *q, spool_claim_fn *fn, void *arg)
{
    struct due_item items[SCAN_MAX];
    unsigned claimed = 0;
    bool stuck = false;

    while (!(stuck && b->breaker.open) && spool_claimable(b) && claimed < q->max && b->sp->expire_left > 0 &&
           !spool_batch_full(b->sp)) {
        uint64_t room = b->policy.concurrency - b->rec.counters[COUNT_PROCESSING];
        unsigned want = q->max - claimed < room ? q->max - claimed : (unsigned)room;
        want = want < b->sp->expire_left ? want : b->sp->expire_left;
        want = breaker_allows(&b->breaker, want < SCAN_MAX ? want : SCAN_MAX, b->sp->now);
        int n = find_ready(b, want, items);
        if (n <= 0)
            break;
        for (int i = 0; i < n; i++) {
            if (is_being_handled(b, items[i].seq)) {
                stuck = true;
                continue;
            }
            int rc = claim_one(b, items[i].seq, q, fn, arg);
            if (rc < 0)
                return claimed;
            claimed += (unsigned)rc;
        }
    }
    if (stuck && b->breaker.open) /* it would be found again and again; its end makes something ready */
        b->maybe_ready = false;
    return claimed;
}
