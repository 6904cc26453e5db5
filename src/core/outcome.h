/* Outcomes: how a try ended, and the one table that says what follows. Deliverers and APIs only produce outcomes. */
#ifndef CORE_OUTCOME_H
#define CORE_OUTCOME_H

#include "core/backoff.h"
#include "core/breaker.h"
#include "core/event.h"

enum outcome_kind {
    OUTCOME_DONE,
    OUTCOME_RETRY,
    OUTCOME_REJECTED,
    OUTCOME_UNAVAILABLE,
    OUTCOME_LIMITED,
    OUTCOME_LEASE_EXPIRED,
    OUTCOME_RELEASED,
    OUTCOME_EXPIRED,
    OUTCOME_DISCARDED, /* by a person; not a try */
    OUTCOME_RETURNED,  /* claimed, and given back before anyone had it: as if it had not been claimed */
    OUTCOME_KINDS
};

#define RETRY_AFTER_MAX_MS (24LL * 3600 * 1000)

struct outcome {
    enum outcome_kind kind;
    int64_t after_ms; /* the time given with it; -1: none */
    struct slice error; /* borrowed; may be empty. Cleaned, scrubbed and cut by spool_complete */
};

struct outcome_policy {
    struct retry_schedule retry;
    unsigned max_attempts; /* 1.. */
    bool limit_by_lane;    /* calls: one limited chat holds only itself (design.md section 12) */
};

struct decision {
    enum state state; /* STATE_PENDING, STATE_DONE or STATE_DEAD */
    enum reason reason;
    unsigned add_attempts, add_interrupted;
    int64_t due; /* for pending: when it may be claimed again; <= now: at once */
    enum breaker_effect effect;
    enum breaker_cause cause;
};

/* The table of design.md section 4. */
void outcome_decide(const struct outcome *o, const struct event_state *st, struct lane lane,
                    const struct outcome_policy *policy, const struct breaker *b, uint32_t random, int64_t now,
                    struct decision *out);

const char *outcome_name(enum outcome_kind k); /* "done", "lease expired", ... */

#endif
