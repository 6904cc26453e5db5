/* The wall clock steps between two runs: what waits keeps the rest of its wait, and retention neither removes by a time that
 * may be wrong, nor keeps for ever what seems to have ended in the future. */
#include "world.h"

#define DAY HOURS(24)
#define YEARS(n) (DAY * 365 * (n))
#define DONE_MS HOURS(3)

static uint64_t ended(struct world *w, int64_t id)
{
    uint64_t seq = world_arrive(w, id, id);

    world_end(w, world_take_seq(w, PUSH, seq), OUTCOME_DONE, -1);
    world_step(w);
    return seq;
}

static uint64_t done(struct world *w)
{
    return world_status(w).counts.done;
}

static void go_on(struct world *w, int64_t ms)
{
    w->now += ms;
    for (int i = 0; i < 5; i++)
        world_step(w);
}

static int setup(void **state)
{
    if (world_setup(state))
        return -1;
    world_retain(*state, DONE_MS, HOURS(30), HOURS(2));
    return 0;
}

static void waits_go_on_where_they_were(void **state)
{
    struct world *w = *state;
    static const int64_t back[] = {SECONDS(90), HOURS(3), YEARS(5)};

    for (size_t i = 0; i < 3; i++) {
        int64_t id = 10 * (int64_t)i;
        world_step(w);
        uint64_t retry = world_arrive(w, id, id);
        world_end(w, world_take_seq(w, PUSH, retry), OUTCOME_RETRY, MINUTES(2));
        uint64_t pull = world_arrive(w, id + 1, id + 1);
        world_take_seq(w, PULL, pull);
        int64_t lease = world_state(w, pull).deadline - w->now;
        world_reopen(w, -back[i]);
        world_step(w);
        int64_t open = w->now;
        assert_in_range(world_state(w, retry).next_retry_at, open + MINUTES(2),
                        open + MINUTES(2) + SECONDS(11));
        assert_in_range(world_state(w, pull).deadline, open + lease, open + lease + SECONDS(11));
        go_on(w, MINUTES(2) + SECONDS(11));
        world_end(w, world_take_seq(w, PUSH, retry), OUTCOME_DONE, -1);
        world_end(w, world_take_seq(w, PUSH, pull), OUTCOME_DONE, -1);
        world_verify(w);
    }
}

/* More than a tick's work, of which none is moved twice. */
static void many_waits(void **state)
{
    struct world *w = *state;
    enum { N = 450 };

    w->policy.concurrency = N;
    world_policy(w);
    for (int i = 0; i < N; i++) {
        bool ok = i % 5 == 4; /* else the breaker opens */
        world_end(w, world_take_seq(w, PUSH, world_arrive(w, i, i)), ok ? OUTCOME_DONE : OUTCOME_RETRY,
                  ok ? -1 : HOURS(6) + i);
    }
    world_reopen(w, -HOURS(4));
    for (int i = 0; i < 5; i++)
        world_step(w);
    for (uint64_t seq = 1; seq <= N; seq++)
        if (seq % 5)
            assert_in_range(world_state(w, seq).next_retry_at, w->now + HOURS(6),
                            w->now + HOURS(6) + SECONDS(12));
    world_verify(w);
}

static void far_ahead_nothing_goes_for_an_hour(void **state)
{
    struct world *w = *state;

    ended(w, 1);
    world_reopen(w, YEARS(10));
    go_on(w, MINUTES(30));
    assert_int_equal(done(w), 1);
    world_reopen(w, 0); /* the time is not believed because it was seen */
    go_on(w, MINUTES(29)); /* but an hour is one of several runs */
    assert_int_equal(done(w), 1);
    world_wakes_by(w, w->now + MINUTES(1));
    go_on(w, MINUTES(1));
    assert_int_equal(done(w), 0);
    ended(w, 2);
    world_reopen(w, DAY - MINUTES(1));
    go_on(w, 0);
    assert_int_equal(done(w), 0);
}

static void a_wrong_time_that_is_put_right(void **state)
{
    struct world *w = *state;

    ended(w, 1);
    world_reopen(w, YEARS(10));
    ended(w, 2); /* in ten years */
    world_reopen(w, -YEARS(10));
    go_on(w, DONE_MS - MINUTES(1));
    assert_int_equal(done(w), 2); /* nor does it count from the first open on */
    go_on(w, MINUTES(2));
    assert_int_equal(done(w), 0);
    world_verify(w);
}

static void what_ended_in_the_future_goes_in_the_end(void **state)
{
    struct world *w = *state;

    for (int64_t i = 1; i <= 3; i++) {
        ended(w, i);
        go_on(w, HOURS(1) / 2);
    }
    world_reopen(w, -YEARS(5));
    go_on(w, DONE_MS - 1);
    assert_int_equal(done(w), 3);
    world_reopen(w, 1); /* counts from where it was seen, not from each open */
    go_on(w, 0);
    assert_int_equal(done(w), 0);
    ended(w, 9);
    go_on(w, DONE_MS - 1);
    assert_int_equal(done(w), 1);
    go_on(w, 1);
    assert_int_equal(done(w), 0);
    world_verify(w);
}

static void nothing_goes_while_the_clock_is_ahead(void **state)
{
    struct world *w = *state;

    ended(w, 1);
    spool_clock_ahead(w->sp, YEARS(10));
    go_on(w, DONE_MS);
    assert_int_equal(done(w), 1);
    assert_true(spool_next_deadline(w->sp) > w->now);
    spool_clock_ahead(w->sp, 0);
    go_on(w, 0);
    assert_int_equal(done(w), 0);
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(waits_go_on_where_they_were),
        test(many_waits),
        test(far_ahead_nothing_goes_for_an_hour),
        test(a_wrong_time_that_is_put_right),
        test(what_ended_in_the_future_goes_in_the_end),
        test(nothing_goes_while_the_clock_is_ahead),
    };
    return cmocka_run_group_tests_name("spool stepped", tests, NULL, NULL);
}
