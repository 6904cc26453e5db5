/* The outcome table: the only place where an outcome becomes a state. */
#include "core/outcome.h"

#include <assert.h>

static const char *const names[] = {"done",          "retry",    "rejected", "unavailable", "limited",
                                    "lease expired", "released", "expired",  "discarded",
                                    "returned"};

const char *outcome_name(enum outcome_kind k)
{
    assert(k < OUTCOME_KINDS);
    return names[k];
}

static void end(struct decision *d, enum state state, enum reason reason)
{
    d->state = state;
    d->reason = reason;
}

/* The time given is never shortened but by the cap of a day. */
static int64_t given(int64_t after_ms)
{
    return after_ms < RETRY_AFTER_MAX_MS ? after_ms : RETRY_AFTER_MAX_MS;
}

/* An attempt that counts: dead at the limit, else due after `wait`. */
static void failed_attempt(struct decision *d, const struct event_state *st, unsigned max_attempts,
                           int64_t due)
{
    d->add_attempts = 1;
    d->effect = BREAK_COUNT;
    if (st->attempts + 1 >= max_attempts)
        end(d, STATE_DEAD, REASON_ATTEMPTS);
    else
        d->due = due;
}

static void retry(struct decision *d, const struct outcome *o, const struct event_state *st,
                  const struct outcome_policy *policy, const struct breaker *b, uint32_t random, int64_t now)
{
    if (b->open) { /* failures cost nothing; the breaker sets the pace, unless a time was given */
        d->effect = BREAK_COUNT;
        d->due = o->after_ms >= 0 ? now + given(o->after_ms) : now;
        return;
    }
    int64_t wait =
        o->after_ms >= 0 ? given(o->after_ms) : retry_wait(&policy->retry, st->attempts + 1, random);
    failed_attempt(d, st, policy->max_attempts, now + wait);
}

void outcome_decide(const struct outcome *o, const struct event_state *st, struct lane lane,
                    const struct outcome_policy *policy, const struct breaker *b, uint32_t random,
                    int64_t now, struct decision *out)
{
    /* when the try before this one was made: "since an event's previous try" */
    int64_t previous = st->n_history ? st->history[st->n_history - 1].at : INT64_MAX;

    *out = (struct decision){.state = STATE_PENDING, .due = now};
    switch (o->kind) {
    case OUTCOME_DONE:
        out->add_attempts = 1;
        out->effect = BREAK_SUCCESS;
        end(out, STATE_DONE, REASON_NONE);
        break;
    case OUTCOME_UNAVAILABLE:
        if (!breaker_other_success(b, lane, previous)) {
            out->effect = BREAK_OPEN;
            out->cause = BREAKER_UNAVAILABLE;
            break;
        }
        retry(out, o, st, policy, b, random, now); /* the handler is there: this event is what fails */
        break;
    case OUTCOME_RETRY:
        retry(out, o, st, policy, b, random, now);
        break;
    case OUTCOME_REJECTED:
        out->add_attempts = 1;
        end(out, STATE_DEAD, REASON_REJECTED);
        break;
    case OUTCOME_LIMITED:
        out->effect = BREAK_OPEN;
        out->cause = BREAKER_LIMITED;
        if (policy->limit_by_lane && !b->open && (now >= b->limited_until || lane_eq(lane, b->limited_lane)))
            out->effect = BREAK_LIMIT_LANE;
        out->due = now + (o->after_ms >= 0 ? given(o->after_ms) : 0);
        break;
    case OUTCOME_LEASE_EXPIRED:
        if (b->open)
            out->effect = BREAK_COUNT;
        else
            failed_attempt(out, st, policy->max_attempts, now);
        break;
    case OUTCOME_RELEASED:
        out->add_interrupted = 1;
        if (st->interrupted + 1 > policy->max_attempts)
            end(out, STATE_DEAD, REASON_ATTEMPTS);
        break;
    case OUTCOME_EXPIRED:
        end(out, STATE_DEAD, REASON_EXPIRED);
        break;
    case OUTCOME_DISCARDED:
        end(out, STATE_DEAD, REASON_DISCARDED);
        break;
    case OUTCOME_RETURNED:
        break;
    case OUTCOME_KINDS:
        assert(!"an outcome");
    }
}
