/* core/backoff: steps, jitter at its bounds, caps. */
#include "unit.h"

#include "core/backoff.h"

#define MIDDLE 0x80000000u

static void steps_and_the_last_repeats(void **state)
{
    (void)state;
    struct retry_schedule s = {.step_ms = {2000, 5000, 15000, 60000}, .n = 4, .jitter_percent = 0};
    static const int64_t want[] = {2000, 5000, 15000, 60000, 60000, 60000};

    for (unsigned n = 1; n <= ARRAY_LEN(want); n++) {
        assert_int_equal(retry_wait(&s, n, 0), want[n - 1]);
        assert_int_equal(retry_wait(&s, n, UINT32_MAX), want[n - 1]);
    }
    assert_int_equal(retry_wait(&s, UINT32_MAX, MIDDLE), 60000);
}

static void jitter_is_even_and_bounded(void **state)
{
    (void)state;
    struct retry_schedule s = {.step_ms = {2000}, .n = 1, .jitter_percent = 20};

    assert_int_equal(retry_wait(&s, 1, 0), 1600);
    assert_int_equal(retry_wait(&s, 1, UINT32_MAX), 2400);
    assert_in_range(retry_wait(&s, 1, MIDDLE), 1999, 2001);
    assert_in_range(retry_wait(&s, 1, 0x40000000u), 1799, 1801);
    for (uint32_t r = 0; r < UINT32_MAX - 9999999; r += 9999999)
        assert_in_range(retry_wait(&s, 1, r), 1600, 2400);
}

static void extremes(void **state)
{
    (void)state;
    struct retry_schedule s = {.step_ms = {0, 1, 99, INT64_C(86400000) * 365}, .n = 4, .jitter_percent = 100};

    assert_int_equal(retry_wait(&s, 1, UINT32_MAX), 0);
    assert_int_equal(retry_wait(&s, 2, 0), 0);
    assert_int_equal(retry_wait(&s, 2, UINT32_MAX), 2);
    assert_int_equal(retry_wait(&s, 3, UINT32_MAX), 198);
    assert_int_equal(retry_wait(&s, 4, 0), 0);
    assert_true(retry_wait(&s, 4, UINT32_MAX) == INT64_C(86400000) * 730);
}

static void doubling_up_to_the_cap(void **state)
{
    (void)state;
    static const int64_t base[] = {1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000};

    for (unsigned n = 1; n <= ARRAY_LEN(base); n++) {
        assert_int_equal(backoff_wait(1000, 60000, n, 0), base[n - 1] * 8 / 10);
        assert_int_equal(backoff_wait(1000, 60000, n, UINT32_MAX), base[n - 1] * 12 / 10);
    }
    assert_in_range(backoff_wait(1000, 60000, UINT32_MAX, MIDDLE), 59999, 60001);
    assert_in_range(backoff_wait(90000, 60000, 1, MIDDLE), 59999, 60001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_and_the_last_repeats),
        cmocka_unit_test(jitter_is_even_and_bounded),
        cmocka_unit_test(extremes),
        cmocka_unit_test(doubling_up_to_the_cap),
    };
    return cmocka_run_group_tests_name("backoff", tests, NULL, NULL);
}
