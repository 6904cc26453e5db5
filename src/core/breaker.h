/* The breaker of one bot and box: a handler that is down is not an event that failed (design.md section 4). Pure:
 * time and randomness are given. */
#ifndef CORE_BREAKER_H
#define CORE_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/backoff.h"
#include "core/lane.h"

#define BREAKER_RUN 10  /* failures in a row ... */
#define BREAKER_LANES 3 /* ... of at least so many lanes open it */
#define BREAKER_CAP_MS 60000

enum breaker_cause { BREAKER_NONE, BREAKER_UNAVAILABLE, BREAKER_LIMITED, BREAKER_FAILURES };

struct breaker {
    bool open;
    enum breaker_cause cause;
    int64_t since;    /* when it opened */
    int64_t probe_at; /* while open: no claim before this */
    unsigned probes;  /* failed so far */
    bool probing;     /* one is out */
    uint64_t last_probe_seq; /* rotation: the next probe is the first ready event behind it */
    unsigned run;     /* failures since the last success, up to BREAKER_RUN */
    struct lane run_lanes[BREAKER_LANES];
    unsigned n_run_lanes;
    /* the latest success, and the latest one of another lane: who succeeded since a given time? */
    struct lane success_lane;
    int64_t success_at, other_success_at;
    struct lane limited_lane; /* by BREAK_LIMIT_LANE, until limited_until */
    int64_t limited_until;
};

/* What to do to the breaker after an outcome; produced by outcome_decide. */
enum breaker_effect {
    BREAK_NOTHING,
    BREAK_SUCCESS,
    BREAK_COUNT,
    BREAK_OPEN,
    BREAK_LIMIT_LANE /* remembers that this lane is limited; opens nothing */
};

/* Applies an effect. `after_ms`: for BREAK_OPEN, the time given by the handler, or -1. Returns whether it opened or
 * closed by this. */
bool breaker_apply(struct breaker *b, enum breaker_effect effect, enum breaker_cause cause, struct lane lane,
                   int64_t after_ms, const struct retry_schedule *schedule, uint32_t random, int64_t now);

/* How many events may be claimed now out of `free` slots: all while closed, one or none while open. */
unsigned breaker_allows(const struct breaker *b, unsigned free, int64_t now);
/* A probe was claimed (seq), or came back without an outcome that counts. */
void breaker_probe_started(struct breaker *b, uint64_t seq);
void breaker_probe_ended(struct breaker *b);

/* Whether a lane other than this one succeeded after `since`. */
bool breaker_other_success(const struct breaker *b, struct lane lane, int64_t since);

#endif
