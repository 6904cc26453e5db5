/* The breaker: counts failures in a row, opens, lets one probe through at a time, closes on the first
 * success. */
#include "core/breaker.h"

static void note_success(struct breaker *b, struct lane lane, int64_t now)
{
    if (b->success_at && !lane_eq(b->success_lane, lane))
        b->other_success_at = b->success_at;
    b->success_lane = lane;
    b->success_at = now;
}

static void count_failure(struct breaker *b, struct lane lane)
{
    if (b->run < BREAKER_RUN)
        b->run++;
    for (unsigned i = 0; i < b->n_run_lanes; i++)
        if (lane_eq(b->run_lanes[i], lane))
            return;
    if (b->n_run_lanes < BREAKER_LANES)
        b->run_lanes[b->n_run_lanes++] = lane;
}

/* Waits for the next probe: the time given, else the schedule, capped. */
static void set_probe(struct breaker *b, int64_t after_ms, const struct retry_schedule *schedule,
                      uint32_t random, int64_t now)
{
    int64_t wait = after_ms;

    b->probes++;
    if (wait < 0) {
        wait = retry_wait(schedule, b->probes, random);
        if (wait > BREAKER_CAP_MS)
            wait = BREAKER_CAP_MS;
    }
    b->probe_at = now + wait;
}

/* A failure that arrives while the breaker is open sets the next probe only if it is later: answers of claims
 * made before it opened must not bring the probe forward, nor multiply the wait. */
static void fail_open(struct breaker *b, enum breaker_cause cause, int64_t after_ms,
                      const struct retry_schedule *schedule, uint32_t random, int64_t now)
{
    if (b->probing || now >= b->probe_at) {
        set_probe(b, after_ms, schedule, random, now);
        b->cause = cause;
    } else if (after_ms >= 0 && now + after_ms > b->probe_at) {
        b->probe_at = now + after_ms;
    }
    b->probing = false;
}

bool breaker_apply(struct breaker *b, enum breaker_effect effect, enum breaker_cause cause, struct lane lane,
                   int64_t after_ms, const struct retry_schedule *schedule, uint32_t random, int64_t now)
{
    bool was_open = b->open;

    switch (effect) {
    case BREAK_NOTHING:
        return false;
    case BREAK_SUCCESS:
        note_success(b, lane, now);
        b->open = b->probing = false;
        b->cause = BREAKER_NONE;
        b->run = b->n_run_lanes = b->probes = 0;
        return was_open;
    case BREAK_COUNT:
        count_failure(b, lane);
        if (!was_open && (b->run < BREAKER_RUN || b->n_run_lanes < BREAKER_LANES))
            return false;
        if (!was_open)
            cause = BREAKER_FAILURES;
        break;
    case BREAK_OPEN:
        break;
    case BREAK_LIMIT_LANE:
        b->limited_lane = lane;
        b->limited_until = now + (after_ms > 0 ? after_ms : 0);
        return false;
    }
    if (was_open) {
        fail_open(b, cause ? cause : b->cause, after_ms, schedule, random, now);
        return false;
    }
    b->open = true;
    b->cause = cause;
    b->since = now;
    b->probes = 0;
    b->probing = false;
    set_probe(b, after_ms, schedule, random, now);
    return true;
}

unsigned breaker_allows(const struct breaker *b, unsigned free, int64_t now)
{
    if (!b->open)
        return free;
    return free > 0 && !b->probing && now >= b->probe_at ? 1 : 0;
}

void breaker_probe_started(struct breaker *b, uint64_t seq)
{
    b->probing = true;
    b->last_probe_seq = seq;
}

void breaker_probe_ended(struct breaker *b)
{
    b->probing = false;
}

bool breaker_other_success(const struct breaker *b, struct lane lane, int64_t since)
{
    if (!b->success_at)
        return false;
    return (lane_eq(b->success_lane, lane) ? b->other_success_at : b->success_at) > since;
}
