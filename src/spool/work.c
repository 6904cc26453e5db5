/* Due work of a tick: leases that ran out, retries whose time came, what a start or a fallen barrier leaves
 * to do, and then retention. At most WORK_PER_TICK events a tick, whatever the slots, pause or breaker. */
#include "spool/internal.h"

static const struct outcome lease_expired = {.kind = OUTCOME_LEASE_EXPIRED, .after_ms = -1};
static const struct outcome released = {.kind = OUTCOME_RELEASED, .after_ms = -1};

/* Takes up to the tick's rest of one class of due entries. Returns how many. */
static int take_due(struct spool_box *b, enum due_class c, int64_t from, int64_t until,
                    struct due_item *items, int64_t *next)
{
    int n = rows_due(b, c, from, 0, until, b->sp->work_left, items, next);

    if (n > 0)
        b->sp->work_left -= (unsigned)n;
    return n;
}

/* Ends the try of an event that is held. What the drop-in API handed out is not: it is handed out again as it was. */
static void end_held(struct spool_box *b, uint64_t seq, const struct outcome *o)
{
    struct state_record r;
    int there = row_state(b, CLASS_UNFINISHED, seq, &r);

    if (there > 0 && r.st.state == STATE_PROCESSING && !r.st.served_id && state_need_lane(b, seq, &r) == 0)
        finish_try(b, seq, &r, o, AT_LEASE);
}

/* What push deliverers of a dead process held: their entries have no time. Those of this one, which are met after a
 * reopen, stay. */
static void release_dead(struct spool_box *b)
{
    struct due_item items[WORK_PER_TICK];
    unsigned max = b->sp->work_left;
    int n = rows_due(b, DUE_LEASE, TIME_NEVER, b->release_from, TIME_NEVER, max, items, NULL);

    for (int i = 0; i < n; i++)
        if (!held_find(b, items[i].seq))
            end_held(b, items[i].seq, &released);
    if (n > 0) {
        b->release_from = items[n - 1].seq + 1;
        b->sp->work_left -= (unsigned)n;
    }
    b->releasing = n < 0 || (unsigned)n == max;
}

bool release_any(struct spool_box *b)
{
    struct due_item items[WORK_PER_TICK];
    int n = rows_due(b, DUE_LEASE, INT64_MIN, 0, TIME_NEVER, WORK_PER_TICK, items, NULL);

    for (int i = 0; i < n; i++)
        end_held(b, items[i].seq, &released);
    return n > 0;
}

/* The longest wait that this bot's settings can give. */
static int64_t longest_wait(const struct spool_box *b)
{
    const struct retry_schedule *s = &b->policy.outcome.retry;
    int64_t longest = RETRY_AFTER_MAX_MS;

    for (size_t i = 0; i < s->n; i++) {
        int64_t step = s->step_ms[i] + s->step_ms[i] / 100 * s->jitter_percent + s->jitter_percent;
        if (step > longest)
            longest = step;
    }
    return longest;
}

/* After a step of the wall clock between two runs. If it was set back, and that is known, what waits goes on for the rest
 * of its wait; else what lies further ahead than it could is cut to what it could. Entries move towards now, so that a walk
 * away from it meets none twice. */
static void cut_deadlines(struct spool_box *b, enum due_class c, int64_t max_ahead)
{
    struct due_item items[WORK_PER_TICK];
    int64_t now = b->sp->now, back = b->sp->set_back_ms;
    int64_t from = back ? now + 1 : now + max_ahead + 1;
    bool on = b->cut_time[c] >= from;
    struct state_record r;

    int n = rows_due(b, c, on ? b->cut_time[c] : from, on ? b->cut_seq[c] : 0, TIME_NEVER - 1,
                     b->sp->work_left, items, NULL);
    for (int i = 0; i < n; i++) {
        int64_t at = back ? items[i].time - back : now + max_ahead;
        at = at < now ? now : at > now + max_ahead ? now + max_ahead : at;
        b->cut_time[c] = items[i].time;
        b->cut_seq[c] = items[i].seq + 1;
        row_delete(b, FAMILY_DUE, key_due(b->bot_id, b->which, c, items[i].time, items[i].seq));
        if (row_state(b, CLASS_UNFINISHED, items[i].seq, &r) <= 0)
            continue;
        *(c == DUE_LEASE ? &r.st.deadline : &r.st.next_retry_at) = at;
        row_put_state(b, CLASS_UNFINISHED, items[i].seq, &r);
        row_put_due(b, c, at, items[i].seq);
    }
    if (n > 0)
        b->sp->work_left -= (unsigned)n;
    b->cutting |= n != 0;
}

static void reap(struct spool_box *b)
{
    struct due_item items[WORK_PER_TICK];
    int64_t grace = b->policy.lease_ms < REAP_GRACE_MS ? b->policy.lease_ms : REAP_GRACE_MS;
    int64_t now = b->sp->now, next;

    if (now < b->next_due[DUE_LEASE])
        return;
    if (now < b->sp->opened_at + grace) { /* consumers may come back after a restart */
        if (rows_due(b, DUE_LEASE, b->due_from[DUE_LEASE], 0, now, 0, items, &next) == 0)
            b->next_due[DUE_LEASE] = next > b->sp->opened_at + grace ? next : b->sp->opened_at + grace;
        return;
    }
    int n = take_due(b, DUE_LEASE, b->due_from[DUE_LEASE], now, items, &next);
    if (n < 0)
        return;
    b->due_from[DUE_LEASE] = n > 0 ? items[n - 1].time : b->due_from[DUE_LEASE];
    b->next_due[DUE_LEASE] = next;
    for (int i = 0; i < n; i++)
        end_held(b, items[i].seq, &lease_expired);
}

static void wake(struct spool_box *b)
{
    struct due_item items[WORK_PER_TICK];
    int64_t next;

    if (b->sp->now < b->next_due[DUE_RETRY])
        return;
    int n = take_due(b, DUE_RETRY, b->due_from[DUE_RETRY], b->sp->now, items, &next);
    if (n < 0)
        return;
    b->due_from[DUE_RETRY] = n > 0 ? items[n - 1].time : b->due_from[DUE_RETRY];
    b->next_due[DUE_RETRY] = next;
    for (int i = 0; i < n; i++) {
        row_delete(b, FAMILY_DUE, key_due(b->bot_id, b->which, DUE_RETRY, items[i].time, items[i].seq));
        row_put_due(b, DUE_READY, 0, items[i].seq);
    }
}

/* The heads of the epoch whose turn it is. */
static void lift_barrier(struct spool_box *b)
{
    struct due_item items[WORK_PER_TICK];
    uint32_t epoch = box_open_epoch(b);
    int n = take_due(b, DUE_BARRIER, INT64_MIN, epoch, items, NULL);

    for (int i = 0; i < n; i++) {
        row_delete(b, FAMILY_DUE, key_due(b->bot_id, b->which, DUE_BARRIER, items[i].time, items[i].seq));
        row_put_due(b, DUE_READY, 0, items[i].seq);
    }
    b->lifting = n != 0;
}

static void work_box(struct spool_box *b)
{
    if (b->unserving)
        unserve(b);
    if (b->releasing && !b->unserving)
        release_dead(b);
    if (b->cutting && b->sp->work_left > 0) {
        b->cutting = false;
        cut_deadlines(b, DUE_LEASE, LEASE_MAX_MS);
        cut_deadlines(b, DUE_RETRY, longest_wait(b));
    }
    reap(b);
    wake(b);
    if (b->lifting && b->sp->work_left > 0)
        lift_barrier(b);
}

void spool_work(struct spool *sp)
{
    if (sp->look || (spool_usable(sp) && store_stalled(sp->store))) /* the open batch shall not grow */
        return;
    sp->clock_worked = true;
    marks_expire(sp);
    list_each(&sp->boxes, it) {
        if (!spool_usable(sp) || sp->work_left == 0)
            return;
        work_box(list_item(it, struct spool_box, link));
    }
    if (sp->work_left > 0)
        retain_work(sp);
}

static int64_t box_deadline(const struct spool_box *b)
{
    int64_t next = b->next_due[DUE_LEASE];

    if (b->releasing || b->cutting || b->lifting || b->unserving)
        return b->sp->now;
    if (b->next_due[DUE_RETRY] < next)
        next = b->next_due[DUE_RETRY];
    /* A probe whose time has come and that nobody took (paused, no consumer) is no reason to wake again. */
    if (b->breaker.open && !b->breaker.probing && b->maybe_ready && b->breaker.probe_at > b->sp->now &&
        b->breaker.probe_at < next)
        next = b->breaker.probe_at;
    return next;
}

int64_t spool_next_deadline(const struct spool *sp)
{
    int64_t next = store_next_deadline(sp->store), retain = retain_deadline(sp);

    if (!spool_usable(sp))
        return sp->broken ? sp->now : next;
    if (sp->look)
        return TIME_NEVER;
    if (store_stalled(sp->store)) /* nothing else is done until that is over */
        return next;
    int64_t marks = stepped_rests(sp) ? stepped_rests_until(sp) : sp->marks_due;
    if (marks < next)
        next = marks;
    if (retain < next)
        next = retain;
    list_each(&sp->boxes, it) {
        int64_t d = box_deadline(list_item(it, struct spool_box, link));
        if (d < next)
            next = d;
    }
    return next;
}
