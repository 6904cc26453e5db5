/* What people do to events: replay and discard, both into the audit log. */
#include "spool/internal.h"

/* Replay appends a copy; the old event keeps its state and learns of the copy. */
static void append_copy(struct spool_box *b, struct event *ev, struct state_record *old, enum ended_class c)
{
    uint64_t original = ev->seq;
    bool others = b->copies.first && box_unfinished(b) && b->oldest_from <= b->copies.last;

    ev->replay_of = original;
    append_event(b, ev);
    if (!others) {
        b->copies.first = ev->seq;
        b->copies.at = b->sp->now;
    }
    b->copies.last = ev->seq;
    if (c == CLASS_DEAD && !state_is_settled(&old->st))
        box_count(b, COUNT_DEAD_SETTLED, 1);
    old->st.replayed_as = ev->seq;
    row_put_state(b, c, original, old);
}

enum acted spool_replay(struct spool_box *b, uint64_t seq, const char *who, uint64_t *copy)
{
    struct buf record = BUF_EMPTY;
    struct state_record r;
    enum ended_class c;
    struct event ev;
    enum acted rc = ACT_FAILED;

    int there = spool_usable(b->sp) ? row_event(b, seq, &ev, &record) : -1;
    if (there > 0)
        there = row_find_state(b, seq, &c, &r);
    if (there == 0) {
        rc = ACT_UNKNOWN;
    } else if (there > 0 && c == CLASS_UNFINISHED) {
        rc = ACT_NOT_ENDED;
    } else if (there > 0) {
        append_copy(b, &ev, &r, c);
        row_put_audit(b, "replay", who, seq, ev.seq);
        if (copy)
            *copy = ev.seq;
        struct spool_happening more = {
            .has_update_id = ev.has_update_id, .update_id = ev.update_id, .lane = ev.lane};
        memcpy(more.kind, ev.kind, sizeof(more.kind));
        happen(b, HAPPENED_ACCEPTED, ev.seq, &more);
        rc = spool_usable(b->sp) ? ACTED : ACT_FAILED;
    }
    buf_free(&record);
    return rc;
}

/* ACTED: it is there, and class and state are filled. */
static enum acted find(struct spool_box *b, uint64_t seq, enum ended_class *c, struct state_record *r)
{
    int there = spool_usable(b->sp) ? row_find_state(b, seq, c, r) : -1;

    return there < 0 ? ACT_FAILED : there ? ACTED : ACT_UNKNOWN;
}

enum acted spool_discard_later(struct spool_box *b, uint64_t seq, const char *who)
{
    struct state_record r;
    enum ended_class c;

    enum acted found = find(b, seq, &c, &r);
    if (found != ACTED)
        return found;
    if (c != CLASS_UNFINISHED || r.st.state != STATE_PROCESSING)
        return ACT_BUSY;
    r.st.reason = REASON_DISCARDED;
    row_put_state(b, CLASS_UNFINISHED, seq, &r);
    row_put_audit(b, "discard", who, seq, 0);
    return spool_usable(b->sp) ? ACTED : ACT_FAILED;
}

void spool_audit(struct spool_box *b, const char *act, const char *who, uint64_t seq)
{
    row_put_audit(b, act, who, seq, 0);
}

/* A dead letter that a person gives up: it stays dead, and asks for nothing any more. */
static enum acted discard_dead(struct spool_box *b, uint64_t seq, struct state_record *r,
                               const struct outcome *o, const char *who)
{
    if (!state_may_discard(&r->st))
        return ACT_ENDED;
    r->st.reason = REASON_DISCARDED;
    history_add(&r->st, o, b->sp->now);
    row_put_state(b, CLASS_DEAD, seq, r);
    box_count(b, COUNT_DEAD_SETTLED, 1);
    row_put_audit(b, "discard", who, seq, 0);
    return spool_usable(b->sp) ? ACTED : ACT_FAILED;
}

enum acted spool_discard(struct spool_box *b, uint64_t seq, bool force, const char *who)
{
    static const struct outcome discarded = {.kind = OUTCOME_DISCARDED, .after_ms = -1};
    struct state_record r;
    enum ended_class c;

    enum acted found = find(b, seq, &c, &r);
    if (found != ACTED)
        return found;
    if (c == CLASS_DONE)
        return ACT_ENDED;
    if (c == CLASS_DEAD)
        return discard_dead(b, seq, &r, &discarded, who);
    if (r.st.state == STATE_PROCESSING && !force)
        return ACT_BUSY;
    if (state_need_lane(b, seq, &r) < 0)
        return ACT_FAILED;
    finish_try(b, seq, &r, &discarded, r.st.state == STATE_PROCESSING ? AT_LEASE : AT_ANY);
    claim_stop(b, seq);
    row_put_audit(b, "discard", who, seq, 0);
    return spool_usable(b->sp) ? ACTED : ACT_FAILED;
}
