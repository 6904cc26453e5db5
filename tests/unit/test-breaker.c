/* core/breaker: when it opens and when it does not, probes, the cap, and who succeeded since when. */
#include "unit.h"

#include "core/breaker.h"

static const struct retry_schedule schedule = {.step_ms = {2000, 5000, 15000, 600000}, .n = 4};

static struct lane chat(int64_t id)
{
    return (struct lane){LANE_CHAT, id, 0};
}

static bool failure(struct breaker *b, int64_t lane, int64_t now)
{
    return breaker_apply(b, BREAK_COUNT, BREAKER_NONE, chat(lane), -1, &schedule, 0, now);
}

static bool success(struct breaker *b, int64_t lane, int64_t now)
{
    return breaker_apply(b, BREAK_SUCCESS, BREAKER_NONE, chat(lane), -1, &schedule, 0, now);
}

static bool unavailable(struct breaker *b, int64_t now)
{
    return breaker_apply(b, BREAK_OPEN, BREAKER_UNAVAILABLE, chat(1), -1, &schedule, 0, now);
}

static void opens_at_the_tenth_failure_of_three_lanes(void **state)
{
    (void)state;
    struct breaker b = {0};

    for (int i = 0; i < 9; i++)
        assert_false(failure(&b, i % 3, 100));
    assert_false(b.open);
    assert_int_equal(breaker_allows(&b, 4, 100), 4);
    assert_true(failure(&b, 0, 100));
    assert_true(b.open);
    assert_int_equal(b.cause, BREAKER_FAILURES);
    assert_true(b.since == 100 && b.probe_at == 2100);
    assert_int_equal(breaker_allows(&b, 4, 2099), 0);
    assert_int_equal(breaker_allows(&b, 4, 2100), 1);
}

static void two_lanes_are_not_enough(void **state)
{
    (void)state;
    struct breaker b = {0};

    for (int i = 0; i < 50; i++)
        assert_false(failure(&b, i % 2, 100));
    assert_true(failure(&b, 2, 100)); /* the third lane makes it so */
}

static void a_success_between_starts_anew(void **state)
{
    (void)state;
    struct breaker b = {0};

    for (int i = 0; i < 9; i++)
        failure(&b, i, 100);
    assert_false(success(&b, 5, 101));
    for (int i = 0; i < 9; i++)
        assert_false(failure(&b, i, 102));
    assert_true(failure(&b, 9, 103));
}

static void nothing_does_nothing(void **state)
{
    (void)state;
    struct breaker b = {0}, before;

    unavailable(&b, 100);
    before = b;
    assert_false(breaker_apply(&b, BREAK_NOTHING, BREAKER_NONE, chat(1), 5, &schedule, 0, 999));
    assert_memory_equal(&b, &before, sizeof(b));
}

static void unavailable_opens_at_once(void **state)
{
    (void)state;
    struct breaker b = {0};

    assert_true(unavailable(&b, 1000));
    assert_true(b.open);
    assert_int_equal(b.cause, BREAKER_UNAVAILABLE);
    assert_true(b.probe_at == 3000);
}

static void a_given_time_is_kept(void **state)
{
    (void)state;
    struct breaker b = {0};

    assert_true(breaker_apply(&b, BREAK_OPEN, BREAKER_LIMITED, chat(1), 3600000, &schedule, 0, 1000));
    assert_int_equal(b.cause, BREAKER_LIMITED);
    assert_true(b.probe_at == 3601000); /* not cut to the schedule's cap */
    assert_int_equal(breaker_allows(&b, 9, 3600999), 0);
    assert_int_equal(breaker_allows(&b, 9, 3601000), 1);
}

static void one_probe_at_a_time(void **state)
{
    (void)state;
    struct breaker b = {0};

    unavailable(&b, 0);
    assert_int_equal(breaker_allows(&b, 0, 2000), 0); /* no slot, no probe */
    assert_int_equal(breaker_allows(&b, 8, 2000), 1);
    breaker_probe_started(&b, 77);
    assert_true(b.last_probe_seq == 77);
    assert_int_equal(breaker_allows(&b, 8, 99999), 0);
    breaker_probe_ended(&b); /* no outcome that counts: another may go at once */
    assert_int_equal(breaker_allows(&b, 8, 99999), 1);
}

static void failed_probes_walk_the_schedule_up_to_the_cap(void **state)
{
    (void)state;
    static const int64_t waits[] = {2000, 5000, 15000, 60000, 60000, 60000};
    struct breaker b = {0};
    int64_t now = 0;

    unavailable(&b, now);
    for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
        assert_true(b.probe_at == now + waits[i]);
        now = b.probe_at;
        breaker_probe_started(&b, i);
        assert_false(unavailable(&b, now));
    }
    assert_true(b.open && b.since == 0);
}

static void the_cap_holds_with_jitter(void **state)
{
    (void)state;
    struct retry_schedule s = {.step_ms = {60000}, .n = 1, .jitter_percent = 50};
    struct breaker b = {0};

    breaker_apply(&b, BREAK_OPEN, BREAKER_UNAVAILABLE, chat(1), -1, &s, UINT32_MAX, 0);
    assert_true(b.probe_at == BREAKER_CAP_MS);
}

/* Answers of claims made before it opened neither bring the probe forward nor multiply the wait. */
static void late_failures_leave_the_probe_where_it_is(void **state)
{
    (void)state;
    struct breaker b = {0};

    unavailable(&b, 0);
    for (int i = 1; i < 20; i++)
        assert_false(failure(&b, i, 100 * i));
    assert_true(b.probe_at == 2000);
    assert_false(breaker_apply(&b, BREAK_OPEN, BREAKER_LIMITED, chat(1), 10000, &schedule, 0, 500));
    assert_true(b.probe_at == 10500); /* a longer time given is obeyed */
    assert_false(breaker_apply(&b, BREAK_OPEN, BREAKER_LIMITED, chat(1), 100, &schedule, 0, 600));
    assert_true(b.probe_at == 10500);
}

static void the_first_success_closes(void **state)
{
    (void)state;
    struct breaker b = {0};

    for (int i = 0; i < 10; i++)
        failure(&b, i, 0);
    breaker_probe_started(&b, 5);
    assert_true(success(&b, 5, 2000));
    assert_false(b.open);
    assert_int_equal(b.cause, BREAKER_NONE);
    assert_int_equal(breaker_allows(&b, 7, 2000), 7);
    assert_false(success(&b, 5, 2001));
    for (int i = 0; i < 9; i++) /* and the run starts at 0 */
        assert_false(failure(&b, i, 2002));
    assert_true(failure(&b, 9, 2003));
    assert_true(b.probe_at == 4003); /* the schedule, too */
}

static void who_succeeded_since(void **state)
{
    (void)state;
    struct breaker b = {0};

    assert_false(breaker_other_success(&b, chat(1), 0));
    success(&b, 1, 100);
    assert_false(breaker_other_success(&b, chat(1), 0)); /* only itself */
    assert_true(breaker_other_success(&b, chat(2), 99));
    assert_false(breaker_other_success(&b, chat(2), 101));
    success(&b, 2, 200);
    assert_true(breaker_other_success(&b, chat(1), 199));
    assert_true(breaker_other_success(&b, chat(2), 99));
    assert_false(breaker_other_success(&b, chat(2), 101));
    success(&b, 2, 300); /* again the same: the other's time stays */
    assert_true(breaker_other_success(&b, chat(2), 99));
    assert_false(breaker_other_success(&b, chat(2), 101));
    assert_true(breaker_other_success(&b, chat(3), 299));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_at_the_tenth_failure_of_three_lanes),
        cmocka_unit_test(two_lanes_are_not_enough),
        cmocka_unit_test(a_success_between_starts_anew),
        cmocka_unit_test(nothing_does_nothing),
        cmocka_unit_test(unavailable_opens_at_once),
        cmocka_unit_test(a_given_time_is_kept),
        cmocka_unit_test(one_probe_at_a_time),
        cmocka_unit_test(failed_probes_walk_the_schedule_up_to_the_cap),
        cmocka_unit_test(the_cap_holds_with_jitter),
        cmocka_unit_test(late_failures_leave_the_probe_where_it_is),
        cmocka_unit_test(the_first_success_closes),
        cmocka_unit_test(who_succeeded_since),
    };
    return cmocka_run_group_tests_name("breaker", tests, NULL, NULL);
}
