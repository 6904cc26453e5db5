/* core/outcome: the table of design, row by row, with its limits and the breaker's part. */
#include "unit.h"

#include "core/outcome.h"

#define NOW 1000000

static const struct outcome_policy policy = {
    .retry = {.step_ms = {2000, 5000, 15000, 60000}, .n = 4, .jitter_percent = 0},
    .max_attempts = 8,
};
static const struct lane lane = {LANE_CHAT, 1, 0}, other = {LANE_CHAT, 2, 0};

static struct decision decide(enum outcome_kind kind, int64_t after_ms, const struct event_state *st,
                              const struct breaker *b)
{
    struct outcome o = {.kind = kind, .after_ms = after_ms};
    struct decision d;

    memset(&d, 0xA5, sizeof(d)); /* everything must be set */
    outcome_decide(&o, st, lane, &policy, b, 0, NOW, &d);
    return d;
}

static void every_row(void **state)
{
    (void)state;
    static const struct {
        enum outcome_kind kind;
        int64_t after;
        enum state state;
        enum reason reason;
        unsigned attempts, interrupted;
        int64_t due; /* from now; -1: not pending */
        enum breaker_effect effect;
        enum breaker_cause cause;
    } rows[] = {
        {OUTCOME_DONE, -1, STATE_DONE, REASON_NONE, 1, 0, -1, BREAK_SUCCESS, BREAKER_NONE},
        {OUTCOME_RETRY, -1, STATE_PENDING, REASON_NONE, 1, 0, 2000, BREAK_COUNT, BREAKER_NONE},
        {OUTCOME_RETRY, 7, STATE_PENDING, REASON_NONE, 1, 0, 7, BREAK_COUNT, BREAKER_NONE},
        {OUTCOME_RETRY, 0, STATE_PENDING, REASON_NONE, 1, 0, 0, BREAK_COUNT, BREAKER_NONE},
        {OUTCOME_REJECTED, -1, STATE_DEAD, REASON_REJECTED, 1, 0, -1, BREAK_NOTHING, BREAKER_NONE},
        {OUTCOME_UNAVAILABLE, -1, STATE_PENDING, REASON_NONE, 0, 0, 0, BREAK_OPEN, BREAKER_UNAVAILABLE},
        {OUTCOME_UNAVAILABLE, 500, STATE_PENDING, REASON_NONE, 0, 0, 0, BREAK_OPEN, BREAKER_UNAVAILABLE},
        {OUTCOME_LIMITED, 30000, STATE_PENDING, REASON_NONE, 0, 0, 30000, BREAK_OPEN, BREAKER_LIMITED},
        {OUTCOME_LEASE_EXPIRED, -1, STATE_PENDING, REASON_NONE, 1, 0, 0, BREAK_COUNT, BREAKER_NONE},
        {OUTCOME_RELEASED, -1, STATE_PENDING, REASON_NONE, 0, 1, 0, BREAK_NOTHING, BREAKER_NONE},
        {OUTCOME_EXPIRED, -1, STATE_DEAD, REASON_EXPIRED, 0, 0, -1, BREAK_NOTHING, BREAKER_NONE},
        {OUTCOME_DISCARDED, -1, STATE_DEAD, REASON_DISCARDED, 0, 0, -1, BREAK_NOTHING, BREAKER_NONE},
    };
    struct event_state st = {.state = STATE_PROCESSING};
    struct breaker b = {0};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct decision d = decide(rows[i].kind, rows[i].after, &st, &b);
        check_row(i, d.state == rows[i].state && d.reason == rows[i].reason);
        check_row(i, d.add_attempts == rows[i].attempts && d.add_interrupted == rows[i].interrupted);
        check_row(i, rows[i].due < 0 || d.due == NOW + rows[i].due);
        check_row(i, d.effect == rows[i].effect);
        check_row(i, d.effect != BREAK_OPEN || d.cause == rows[i].cause);
    }
}

static void waits_follow_the_attempts(void **state)
{
    (void)state;
    static const int64_t want[] = {2000, 5000, 15000, 60000, 60000, 60000, 60000};
    struct breaker b = {0};

    for (uint32_t n = 0; n < ARRAY_LEN(want); n++) {
        struct event_state st = {.attempts = n};
        struct decision d = decide(OUTCOME_RETRY, -1, &st, &b);
        assert_int_equal(d.state, STATE_PENDING);
        assert_int_equal(d.due, NOW + want[n]);
    }
}

static void the_last_attempt(void **state)
{
    (void)state;
    static const enum outcome_kind counting[] = {OUTCOME_RETRY, OUTCOME_LEASE_EXPIRED};
    struct breaker b = {0};

    for (size_t i = 0; i < ARRAY_LEN(counting); i++) {
        struct event_state st = {.attempts = 6};
        assert_int_equal(decide(counting[i], -1, &st, &b).state, STATE_PENDING);
        st.attempts = 7;
        struct decision d = decide(counting[i], 5, &st, &b);
        assert_int_equal(d.state, STATE_DEAD);
        assert_int_equal(d.reason, REASON_ATTEMPTS);
        assert_int_equal(d.add_attempts, 1);
        assert_int_equal(d.effect, BREAK_COUNT);
        st.attempts = 100; /* max_attempts was lowered meanwhile */
        assert_int_equal(decide(counting[i], -1, &st, &b).state, STATE_DEAD);
    }
    struct event_state st = {.attempts = 7};
    assert_int_equal(decide(OUTCOME_UNAVAILABLE, -1, &st, &b).state, STATE_PENDING);
    assert_int_equal(decide(OUTCOME_LIMITED, 1, &st, &b).state, STATE_PENDING);
    assert_int_equal(decide(OUTCOME_RELEASED, -1, &st, &b).state, STATE_PENDING);
    assert_int_equal(decide(OUTCOME_DONE, -1, &st, &b).state, STATE_DONE);
}

static void interruptions_have_a_limit(void **state)
{
    (void)state;
    struct breaker b = {0};
    struct event_state st = {.interrupted = 7};
    struct decision d = decide(OUTCOME_RELEASED, -1, &st, &b);

    assert_int_equal(d.state, STATE_PENDING); /* the eighth is at the limit, not past it */
    st.interrupted = 8;
    d = decide(OUTCOME_RELEASED, -1, &st, &b);
    assert_int_equal(d.state, STATE_DEAD);
    assert_int_equal(d.reason, REASON_ATTEMPTS);
    assert_int_equal(d.add_interrupted, 1);
    assert_int_equal(d.add_attempts, 0);
    b.open = true; /* whatever the breaker */
    assert_int_equal(decide(OUTCOME_RELEASED, -1, &st, &b).state, STATE_DEAD);
}

static void a_given_time_is_capped_at_a_day_and_never_shortened(void **state)
{
    (void)state;
    struct event_state st = {0};
    struct breaker b = {0};
    static const enum outcome_kind timed[] = {OUTCOME_RETRY, OUTCOME_LIMITED};

    for (size_t i = 0; i < ARRAY_LEN(timed); i++) {
        assert_int_equal(decide(timed[i], RETRY_AFTER_MAX_MS - 1, &st, &b).due, NOW + RETRY_AFTER_MAX_MS - 1);
        assert_int_equal(decide(timed[i], RETRY_AFTER_MAX_MS + 1, &st, &b).due, NOW + RETRY_AFTER_MAX_MS);
        assert_int_equal(decide(timed[i], INT64_MAX, &st, &b).due, NOW + RETRY_AFTER_MAX_MS);
    }
    struct outcome o = {.kind = OUTCOME_RETRY, .after_ms = 10000};
    struct outcome_policy jittery = policy;
    struct decision d;
    jittery.retry.jitter_percent = 100;
    outcome_decide(&o, &st, lane, &jittery, &b, 0, NOW, &d);
    assert_int_equal(d.due, NOW + 10000); /* jitter does not touch it */
}

static void jitter_moves_the_schedule(void **state)
{
    (void)state;
    struct event_state st = {0};
    struct breaker b = {0};
    struct outcome o = {.kind = OUTCOME_RETRY, .after_ms = -1};
    struct outcome_policy jittery = policy;
    struct decision d;

    jittery.retry.jitter_percent = 20;
    outcome_decide(&o, &st, lane, &jittery, &b, 0, NOW, &d);
    assert_int_equal(d.due, NOW + 1600);
    outcome_decide(&o, &st, lane, &jittery, &b, UINT32_MAX, NOW, &d);
    assert_int_equal(d.due, NOW + 2400);
}

static void failures_cost_nothing_while_open(void **state)
{
    (void)state;
    struct breaker b = {.open = true, .cause = BREAKER_FAILURES};
    static const enum outcome_kind failing[] = {OUTCOME_RETRY, OUTCOME_LEASE_EXPIRED, OUTCOME_UNAVAILABLE};

    for (size_t i = 0; i < ARRAY_LEN(failing); i++)
        for (uint32_t n = 0; n < 20; n += 7) {
            struct event_state st = {.attempts = n};
            struct decision d = decide(failing[i], -1, &st, &b);
            check_row(i, d.state == STATE_PENDING && d.add_attempts == 0);
            check_row(i, d.due <= NOW); /* the breaker sets the pace */
            check_row(i, d.effect != BREAK_NOTHING);
        }
    struct event_state st = {0};
    assert_int_equal(decide(OUTCOME_RETRY, 4000, &st, &b).due, NOW + 4000);
    assert_int_equal(decide(OUTCOME_REJECTED, -1, &st, &b).state, STATE_DEAD); /* a verdict is one */
    assert_int_equal(decide(OUTCOME_DONE, -1, &st, &b).effect, BREAK_SUCCESS);
}

/* One poison event that takes the handler down each time must not stop the bot for ever. */
static void unavailable_counts_once_another_lane_succeeded(void **state)
{
    (void)state;
    struct breaker b = {.success_lane = other, .success_at = 500};
    struct event_state st = {.attempts = 1, .n_history = 2, .history = {{.at = 100}, {.at = 400}}};
    struct decision d = decide(OUTCOME_UNAVAILABLE, -1, &st, &b);

    assert_int_equal(d.add_attempts, 1);
    assert_int_equal(d.due, NOW + 5000);
    assert_int_equal(d.effect, BREAK_COUNT);
    st.attempts = 7;
    d = decide(OUTCOME_UNAVAILABLE, -1, &st, &b);
    assert_int_equal(d.state, STATE_DEAD);
    assert_int_equal(d.reason, REASON_ATTEMPTS);

    st.attempts = 1;
    st.history[1].at = 600; /* it succeeded before this event's previous try: tells nothing */
    assert_int_equal(decide(OUTCOME_UNAVAILABLE, -1, &st, &b).effect, BREAK_OPEN);
    st.n_history = 0; /* a first try has no "since" */
    assert_int_equal(decide(OUTCOME_UNAVAILABLE, -1, &st, &b).effect, BREAK_OPEN);
    st.n_history = 1;
    b.success_lane = lane; /* its own lane's success does not count */
    assert_int_equal(decide(OUTCOME_UNAVAILABLE, -1, &st, &b).effect, BREAK_OPEN);
}

static void limited_without_a_time(void **state)
{
    (void)state;
    struct event_state st = {0};
    struct breaker b = {0};
    struct decision d = decide(OUTCOME_LIMITED, -1, &st, &b);

    assert_int_equal(d.effect, BREAK_OPEN);
    assert_int_equal(d.state, STATE_PENDING);
    assert_int_equal(d.due, NOW); /* when it is probed is the breaker's to say */
}

static void outcomes_have_names(void **state)
{
    (void)state;
    assert_string_equal(outcome_name(OUTCOME_DONE), "done");
    assert_string_equal(outcome_name(OUTCOME_LEASE_EXPIRED), "lease expired");
    for (int i = 0; i < OUTCOME_KINDS; i++)
        for (int k = 0; k < i; k++)
            assert_string_not_equal(outcome_name((enum outcome_kind)i), outcome_name((enum outcome_kind)k));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row),
        cmocka_unit_test(waits_follow_the_attempts),
        cmocka_unit_test(the_last_attempt),
        cmocka_unit_test(interruptions_have_a_limit),
        cmocka_unit_test(a_given_time_is_capped_at_a_day_and_never_shortened),
        cmocka_unit_test(jitter_moves_the_schedule),
        cmocka_unit_test(failures_cost_nothing_while_open),
        cmocka_unit_test(unavailable_counts_once_another_lane_succeeded),
        cmocka_unit_test(limited_without_a_time),
        cmocka_unit_test(outcomes_have_names),
    };
    return cmocka_run_group_tests_name("outcome", tests, NULL, NULL);
}
