/* The drop-in Bot API's way to the events: the box as one line, in order of arrival, whatever the lanes. What is handed
 * out is in processing, under a served id that only grows, until an offset confirms it. Since events end in that same
 * order, each is its lane's head when it ends. */
#include "base/mem.h"
#include "base/random.h"
#include "spool/internal.h"

#define SERVED_OWN_MAX 2000000000 /* Telegram's ids are below it */
#define SCAN_SLICE 100            /* no run is longer, so that one look confirms or lets go all of it */

struct seqs {
    uint64_t *out;
    unsigned n, max;
};

static bool add_seq(void *arg, uint64_t seq, struct slice value)
{
    struct seqs *s = arg;

    (void)value;
    s->out[s->n++] = seq;
    return s->n < s->max;
}

/* The next unfinished events from a seq on. Returns how many, or -1. max is at least 1. */
static int unfinished_from(struct spool_box *b, uint64_t from, unsigned max, uint64_t *seqs)
{
    struct seqs s = {.out = seqs, .max = max};

    return rows_states(b, CLASS_UNFINISHED, from, UINT64_MAX, add_seq, &s) < 0 ? -1 : (int)s.n;
}

/* A head moves to the due entries of what is held; one behind its head has none. */
static void move_due(struct spool_box *b, uint64_t seq, const struct state_record *r, bool held)
{
    struct lane_record lane;

    if (row_lane(b, r->epoch, r->lane, &lane) <= 0 || lane.head != seq)
        return;
    if (!held) {
        row_delete(b, FAMILY_DUE, key_due(b->bot_id, b->which, DUE_LEASE, TIME_NEVER, seq));
        lane_schedule(b, r->epoch, b->sp->now, seq);
        return;
    }
    row_delete(b, FAMILY_DUE, key_due(b->bot_id, b->which, DUE_READY, 0, seq));
    row_delete(b, FAMILY_DUE, key_due(b->bot_id, b->which, DUE_BARRIER, r->epoch, seq));
    if (r->st.next_retry_at)
        row_delete(b, FAMILY_DUE, key_due(b->bot_id, b->which, DUE_RETRY, r->st.next_retry_at, seq));
    row_put_due(b, DUE_LEASE, TIME_NEVER, seq);
}

/* The id under which an event is served: its own, unless that would not grow, or is none of Telegram's: libraries read
 * 32 bits, and after a high one there would be no way back. */
static int64_t next_served_id(struct spool_box *b, const struct event *ev)
{
    bool own = ev->has_update_id && ev->update_id > b->rec.last_served_id && ev->update_id < SERVED_OWN_MAX;
    int64_t id = own ? ev->update_id : b->rec.last_served_id + 1;

    b->rec.last_served_id = id;
    return id;
}

static void hand_out(struct spool_box *b, struct served *s, struct state_record *r)
{
    struct event_state *st = &r->st;

    r->has_lane = true;
    r->epoch = s->ev.epoch;
    r->lane = s->ev.lane;
    move_due(b, s->seq, r, true);
    st->state = STATE_PROCESSING;
    st->push = true;
    st->claimed_at = b->sp->now;
    st->next_retry_at = 0;
    st->deadline = TIME_NEVER;
    st->served_id = next_served_id(b, &s->ev);
    random_bytes(st->token, sizeof(st->token)); /* nobody's: those given out before count for nothing */
    memset(st->claimed_by, 0, sizeof(st->claimed_by));
    strncpy(st->claimed_by, "dropin", sizeof(st->claimed_by) - 1);
    row_put_state(b, CLASS_UNFINISHED, s->seq, r);
    box_count(b, COUNT_PROCESSING, 1);
    b->rec.serving = true;
    struct spool_happening more = {.has_update_id = s->ev.has_update_id,
                                   .update_id = s->ev.update_id,
                                   .lane = s->ev.lane,
                                   .attempt = st->attempts + 1};
    memcpy(more.kind, s->ev.kind, sizeof(more.kind));
    happen(b, HAPPENED_CLAIMED, s->seq, &more);
}

/* Takes one event into the answer. Returns 1, 0 if it is not for this client, or -1. */
static int serve_one(struct spool_box *b, uint64_t seq, spool_wanted_fn *wanted, void *arg, struct served *s)
{
    static const struct outcome expired = {.kind = OUTCOME_EXPIRED, .after_ms = -1};
    static const struct outcome unwanted = {
        .kind = OUTCOME_DONE, .after_ms = -1, .error = {"not in the client's allowed_updates", 35}};
    struct state_record r;

    *s = (struct served){.seq = seq};
    int rc = row_event(b, seq, &s->ev, &s->record);
    if (rc > 0)
        rc = row_state(b, CLASS_UNFINISHED, seq, &r);
    if (rc <= 0)
        return rc;
    if (r.st.state == STATE_PROCESSING && !r.st.served_id)
        return -1; /* held by another deliverer still: its turn comes */
    enum expired too_old = r.st.state == STATE_PENDING ? has_expired(b, &s->ev) : EXPIRED_NOT;
    bool old = too_old == EXPIRED;
    if (too_old == EXPIRED_MAYBE)
        return -1; /* nor what is behind it: it waits until the clock is more certain */
    if (old || (r.st.state == STATE_PENDING && wanted && !wanted(arg, s->ev.kind))) {
        r.has_lane = true;
        r.epoch = s->ev.epoch;
        r.lane = s->ev.lane;
        finish_try(b, seq, &r, old ? &expired : &unwanted, AT_ANY);
        return 0;
    }
    if (r.st.state == STATE_PENDING)
        hand_out(b, s, &r);
    s->served_id = r.st.served_id;
    return 1;
}

unsigned spool_serve(struct spool_box *b, unsigned max, size_t max_bytes, spool_wanted_fn *wanted, void *arg,
                     struct served *out)
{
    uint64_t seqs[SCAN_SLICE], from = b->oldest_from;
    unsigned n = 0;
    size_t bytes = 0;

    max = max < SCAN_SLICE ? max : SCAN_SLICE;
    while (n < max && b->policy.serve && !b->rec.paused_deliver && !b->releasing &&
           !spool_batch_full(b->sp)) {
        int found = unfinished_from(b, from, max - n < SCAN_SLICE ? max - n : SCAN_SLICE, seqs);
        for (int i = 0; i < found; i++) {
            int rc = serve_one(b, seqs[i], wanted, arg, &out[n]);
            if (rc <= 0)
                buf_free(&out[n].record);
            if (rc < 0)
                return n;
            if (rc == 0)
                continue;
            bytes += out[n++].ev.payload.n;
            if (bytes >= max_bytes)
                return n;
        }
        if (found <= 0)
            break;
        from = seqs[found - 1] + 1;
    }
    return n;
}

unsigned spool_serve_confirm(struct spool_box *b, int64_t offset)
{
    static const struct outcome done = {.kind = OUTCOME_DONE, .after_ms = -1};
    uint64_t seqs[SCAN_SLICE];
    unsigned confirmed = 0;
    int n = unfinished_from(b, b->oldest_from, SCAN_SLICE, seqs);

    for (int i = 0; i < n; i++) {
        struct state_record r;
        if (row_state(b, CLASS_UNFINISHED, seqs[i], &r) <= 0 || r.st.state != STATE_PROCESSING ||
            !r.st.served_id || r.st.served_id >= offset || state_need_lane(b, seqs[i], &r) < 0)
            break;
        finish_try(b, seqs[i], &r, &done, AT_LEASE);
        confirmed++;
    }
    return confirmed;
}

int64_t spool_last_served(const struct spool_box *b)
{
    return b->rec.last_served_id;
}

bool spool_serve_drop(struct spool_box *b, uint64_t keep, const char *who)
{
    uint64_t seqs[SCAN_SLICE];

    for (unsigned left = 2; left > 0 && box_unfinished(b) > keep; left--) {
        uint64_t excess = box_unfinished(b) - keep;
        int n = unfinished_from(b, b->oldest_from, excess < SCAN_SLICE ? (unsigned)excess : SCAN_SLICE, seqs);
        if (n <= 0)
            return true;
        for (int i = 0; i < n; i++)
            if (spool_discard(b, seqs[i], true, who) != ACTED)
                return true;
    }
    return box_unfinished(b) <= keep;
}

void unserve(struct spool_box *b)
{
    uint64_t seqs[SCAN_SLICE];
    int n = unfinished_from(b, b->unserve_from, SCAN_SLICE, seqs);
    bool more = n == SCAN_SLICE;

    if (n < 0)
        return;
    for (int i = 0; i < n; i++) {
        struct state_record r;
        if (row_state(b, CLASS_UNFINISHED, seqs[i], &r) <= 0)
            continue;
        if (r.st.state != STATE_PROCESSING || !r.st.served_id) { /* a run is all in front */
            more = false;
            break;
        }
        if (state_need_lane(b, seqs[i], &r) < 0)
            return;
        r.st.state = STATE_PENDING;
        r.st.push = false;
        r.st.served_id = 0;
        row_put_state(b, CLASS_UNFINISHED, seqs[i], &r);
        move_due(b, seqs[i], &r, false);
        box_count(b, COUNT_PROCESSING, -1);
        b->unserve_from = seqs[i] + 1;
    }
    if (!more) {
        b->unserving = b->rec.serving = false;
        b->dirty = true;
    }
}
