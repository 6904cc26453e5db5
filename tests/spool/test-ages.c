/* How old an event or an idempotency key is, when the wall clock stepped: a clock that is wrong expires nothing that is young and
 * forgets no key, and one that is right lets nothing wait for long. */
#include "world.h"

#include "base/mem.h"
#include "wire/keys.h"

#define DAY HOURS(24)
#define YEARS(n) (DAY * 365 * (n))
#define LIMIT HOURS(1) /* of expire */
#define HOLD MINUTES(10)
#define TTL HOURS(3)

static int setup(void **state)
{
    if (world_setup(state))
        return -1;
    struct world *w = *state;
    w->policy.expire = EXPIRE_KINDS;
    w->policy.n_expire_rules = 1;
    w->policy.expire_rules[0] = (struct expire_rule){.kind = "message", .ms = LIMIT};
    world_policy(w);
    world_retain(w, HOURS(3), HOURS(30), HOURS(2));
    world_step(w);
    return 0;
}

static void none_is_handed_over(struct world *w)
{
    assert_null(world_take(w, PUSH));
    world_step(w);
}

static void handled(struct world *w, uint64_t seq)
{
    world_end(w, world_take_seq(w, PUSH, seq), OUTCOME_DONE, -1);
}

static void expired(struct world *w, uint64_t seq)
{
    world_expect(w, seq, STATE_DEAD, REASON_EXPIRED, 0);
}

/* ---- what waited while the spool was not used for long, as it seems ------------------------------------------------ */

static void held_back_with_its_lane_and_no_other(void **state)
{
    struct world *w = *state;
    uint64_t old = world_arrive(w, 1, 1);

    world_reopen(w, YEARS(10));
    int64_t open = w->now;
    uint64_t behind = world_arrive(w, 2, 1), other = world_arrive(w, 3, 2);
    handled(w, other);
    none_is_handed_over(w);
    world_expect(w, old, STATE_PENDING, REASON_NONE, 0);
    world_wakes_by(w, open + HOLD);
    world_verify(w);
    w->now = open + HOLD - 1;
    none_is_handed_over(w);
    w->now = open + HOLD; /* nobody said that the clock is wrong */
    handled(w, behind);
    expired(w, old);
    world_verify(w);
}

/* It does not begin anew at each restart: one that is often started again would wait for ever. */
static void held_back_for_ten_minutes_of_several_runs(void **state)
{
    struct world *w = *state;
    uint64_t old = world_arrive(w, 1, 1);

    world_reopen(w, YEARS(10));
    for (int i = 0; i < 3; i++) {
        world_wait(w, MINUTES(3));
        none_is_handed_over(w);
        world_expect(w, old, STATE_PENDING, REASON_NONE, 0);
        world_reopen(w, HOURS(1)); /* in which the network could not set the clock */
    }
    none_is_handed_over(w);
    world_expect(w, old, STATE_PENDING, REASON_NONE, 0);
    world_wait(w, MINUTES(1));
    none_is_handed_over(w);
    expired(w, old);
    world_verify(w);
}

static void expired_before_all_that(void **state)
{
    struct world *w = *state;
    uint64_t old = world_arrive(w, 1, 1);

    world_wait(w, LIMIT + MINUTES(1));
    world_step(w);
    world_reopen(w, YEARS(10));
    none_is_handed_over(w);
    expired(w, old);
}

static void a_short_gap_is_believed(void **state)
{
    struct world *w = *state;
    uint64_t old = world_arrive(w, 1, 1);

    world_reopen(w, DAY - MINUTES(1));
    none_is_handed_over(w);
    expired(w, old);
}

static void put_right_while_it_waits(void **state)
{
    struct world *w = *state;
    uint64_t seq = world_arrive(w, 1, 1);

    world_reopen(w, YEARS(10));
    none_is_handed_over(w);
    spool_clock_ahead(w->sp, YEARS(10));
    world_wait(w, HOLD);
    handled(w, seq);
    uint64_t new = world_arrive(w, 2, 2); /* all of this run is by one clock */
    world_wait(w, LIMIT + 1);
    none_is_handed_over(w);
    expired(w, new);
}

static void put_right_by_a_restart(void **state)
{
    struct world *w = *state;
    uint64_t seq = world_arrive(w, 1, 1);

    world_reopen(w, YEARS(10));
    none_is_handed_over(w);
    uint64_t late = world_arrive(w, 2, 2); /* in ten years */
    world_reopen(w, -YEARS(10));
    handled(w, late);
    world_wait(w, HOLD);
    handled(w, seq);
    world_verify(w);
}

static void what_came_in_the_future_expires_as_if_now(void **state)
{
    struct world *w = *state;

    world_reopen(w, YEARS(10));
    uint64_t seq = world_arrive(w, 1, 1);
    world_reopen(w, -YEARS(10));
    world_wait(w, LIMIT + 1);
    none_is_handed_over(w);
    expired(w, seq);
}

static void served_in_order_all_the_same(void **state)
{
    struct world *w = *state;
    struct served out[3];

    w->policy.serve = true;
    world_policy(w);
    uint64_t old = world_arrive(w, 1, 1);
    world_reopen(w, YEARS(10));
    uint64_t new = world_arrive(w, 2, 2);
    for (int i = 0; i < 2; i++) {
        world_begin(w);
        unsigned n = spool_serve(w->box, 3, SIZE_MAX, NULL, NULL, out);
        assert_int_equal(n, i);
        world_commit(w);
        if (n)
            buf_free(&out[0].record);
        world_wait(w, HOLD);
    }
    assert_int_equal(out[0].seq, new);
    expired(w, old);
}

/* ---- a run whose time was behind ----------------------------------------------------------------------------------- */

/* A machine starts with a time of three days ago, gets the right one, and the daemon is started again. */
static void young_after_a_run_that_was_behind(void **state)
{
    struct world *w = *state;

    world_reopen(w, MINUTES(1));
    uint64_t old = world_arrive(w, 3, 3);
    world_end(w, world_take(w, PUSH), OUTCOME_RETRY, LIMIT + MINUTES(2));
    world_wait(w, LIMIT);
    uint64_t waits = world_arrive(w, 1, 1), ended = world_arrive(w, 2, 2);
    world_end(w, world_take(w, PUSH), OUTCOME_RETRY, MINUTES(1));
    handled(w, ended);
    world_begin(w);
    assert_int_equal(spool_key(w->box, LIT("k"), TTL, 0, NULL), KEY_FIRST);
    world_commit(w);
    spool_clock_ahead(w->sp, -3 * DAY);
    world_step(w);
    world_reopen(w, 3 * DAY + MINUTES(2));
    handled(w, waits);
    none_is_handed_over(w);
    world_expect(w, old, STATE_DEAD, REASON_EXPIRED,
                 1); /* at once: it is known how long the spool was not used */
    int64_t open = w->now;
    while (w->now < open + TTL - MINUTES(5)) {
        world_wait(w, MINUTES(5));
        world_step(w);
    }
    assert_int_equal(world_status(w).counts.done, 2);
    world_begin(w);
    assert_int_equal(spool_key(w->box, LIT("k"), TTL, 0, NULL), KEY_IS_DONE);
    world_commit(w);
    world_wait(w, MINUTES(10));
    world_step(w);
    world_begin(w);
    assert_int_equal(spool_key(w->box, LIT("k"), TTL, 0, NULL), KEY_FIRST);
    world_commit(w);
    assert_int_equal(world_status(w).counts.done, 0); /* kept as long as the key, and no hour longer */
    world_verify(w);
}

/* As before; but then somebody sees that the right time was the old one. */
static void young_after_a_run_in_which_the_clock_was_set_wrong(void **state)
{
    struct world *w = *state;

    world_wait(w, HOURS(5));
    world_reopen(w, 0);
    uint64_t waits = world_arrive(w, 1, 1), ended = world_arrive(w, 2, 2);
    world_end(w, world_take_seq(w, PUSH, waits), OUTCOME_RETRY, MINUTES(1));
    handled(w, ended);
    world_begin(w);
    assert_int_equal(spool_key(w->box, LIT("k"), TTL, 0, NULL), KEY_FIRST);
    spool_clock_ahead(w->sp, -2 * DAY);
    world_commit(w);
    world_reopen(w, MINUTES(2));
    handled(w, waits);
    world_begin(w);
    assert_int_equal(spool_key(w->box, LIT("k"), TTL, 0, NULL), KEY_IS_DONE);
    world_commit(w);
    assert_int_equal(world_status(w).counts.done, 2);
    world_wait(w, TTL);
    world_step(w);
    world_begin(w);
    assert_int_equal(spool_key(w->box, LIT("k"), TTL, 0, NULL), KEY_FIRST);
    world_commit(w);
    assert_int_equal(world_status(w).counts.done, 0);
    world_verify(w);
}

/* The step of the clock is known to some seconds only. */
static void young_after_a_step_that_was_a_little_less(void **state)
{
    struct world *w = *state;

    world_wait(w, HOURS(5));
    world_reopen(w, 0);
    uint64_t seq = world_arrive(w, 1, 1);
    world_end(w, world_take_seq(w, PUSH, seq), OUTCOME_RETRY, SECONDS(1));
    spool_clock_ahead(w->sp, -2 * DAY);
    world_reopen(w, 2 * DAY - SECONDS(20));
    handled(w, seq);
    world_verify(w);
}

/* ---- a row `clock` of before --------------------------------------------------------------------------------------- */

/* Leaves of the row its first bytes. */
static void cut_the_row(struct world *w, size_t n)
{
    struct key k = key_name("clock");
    struct buf v = BUF_EMPTY;
    struct err e = ERR_NONE;
    struct db *db = world_db(w->dir, DB_OPEN);

    assert_int_equal(db_get(db, FAMILY_META, key_slice(&k), &v, &e), 1);
    assert_true(v.n > n);
    db_put(db, FAMILY_META, key_slice(&k), slice_make(v.p, n));
    assert_int_equal(db_write(db, true, &e), DB_WRITTEN);
    db_close(db);
    buf_free(&v);
}

static void a_shorter_row_is_read_as_far_as_it_goes(void **state)
{
    struct world *w = *state;
    static const size_t lengths[] = {1 + 3 * 8, 1 + 6 * 8};

    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        uint64_t seq = world_arrive(w, (int64_t)i, 1);
        world_close(w);
        cut_the_row(w, lengths[i]);
        w->now += YEARS(10); /* which is seen by it */
        world_open(w);
        none_is_handed_over(w);
        world_expect(w, seq, STATE_PENDING, REASON_NONE, 0);
        world_wait(w, HOURS(1));
        none_is_handed_over(w);
        expired(w, seq);
    }
    world_verify(w);
}

/* ---- keys ---------------------------------------------------------------------------------------------------------- */

static enum keyed ask(struct world *w)
{
    world_step(w);
    world_begin(w);
    enum keyed k = spool_key(w->box, LIT("k"), TTL, 0, NULL);
    world_commit(w);
    return k;
}

static void a_key_outlives_a_wrong_clock(void **state)
{
    struct world *w = *state;

    assert_int_equal(ask(w), KEY_FIRST);
    world_reopen(w, YEARS(10));
    int64_t open = w->now;
    assert_int_equal(ask(w), KEY_IS_DONE);
    assert_true(spool_next_deadline(w->sp) > w->now);
    spool_clock_ahead(w->sp, YEARS(10));
    w->now = open + HOURS(2);
    assert_int_equal(ask(w), KEY_IS_DONE);
    assert_true(spool_next_deadline(w->sp) > w->now);
    world_reopen(w, -YEARS(10));
    assert_int_equal(ask(w), KEY_IS_DONE);
    world_wait(w, TTL);
    assert_int_equal(ask(w), KEY_FIRST);
}

/* Put right once, by less than the run lasted; not again and again. */
static void a_key_of_a_run_that_was_behind_is_forgotten_in_time(void **state)
{
    struct world *w = *state;
    int64_t at = w->now;

    assert_int_equal(ask(w), KEY_FIRST);
    w->now = at + HOURS(2);
    spool_clock_ahead(w->sp, -HOURS(1));
    world_arrive(w, 1, 1);
    world_reopen(w, HOURS(1) + MINUTES(2));
    assert_int_equal(ask(w), KEY_IS_DONE);
    w->now = at + HOURS(1) + TTL - MINUTES(1);
    assert_int_equal(ask(w), KEY_IS_DONE);
    world_wait(w, MINUTES(1));
    assert_int_equal(ask(w), KEY_FIRST);
    world_verify(w);
}

static void a_key_is_forgotten_where_the_clock_was_right(void **state)
{
    struct world *w = *state;

    assert_int_equal(ask(w), KEY_FIRST);
    world_reopen(w, YEARS(10));
    w->now += HOURS(1);
    assert_int_equal(ask(w), KEY_FIRST);
    world_verify(w);
}

static void a_key_of_the_future_is_forgotten(void **state)
{
    struct world *w = *state;

    world_reopen(w, YEARS(10));
    assert_int_equal(ask(w), KEY_FIRST);
    world_reopen(w, -YEARS(10));
    assert_int_equal(ask(w), KEY_IS_DONE);
    world_wait(w, TTL);
    assert_int_equal(ask(w), KEY_FIRST);
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(held_back_with_its_lane_and_no_other),
        test(held_back_for_ten_minutes_of_several_runs),
        test(expired_before_all_that),
        test(a_short_gap_is_believed),
        test(put_right_while_it_waits),
        test(put_right_by_a_restart),
        test(what_came_in_the_future_expires_as_if_now),
        test(served_in_order_all_the_same),
        test(young_after_a_run_that_was_behind),
        test(young_after_a_run_in_which_the_clock_was_set_wrong),
        test(young_after_a_step_that_was_a_little_less),
        test(a_shorter_row_is_read_as_far_as_it_goes),
        test(a_key_outlives_a_wrong_clock),
        test(a_key_of_a_run_that_was_behind_is_forgotten_in_time),
        test(a_key_is_forgotten_where_the_clock_was_right),
        test(a_key_of_the_future_is_forgotten),
    };
    return cmocka_run_group_tests_name("spool ages", tests, NULL, NULL);
}
