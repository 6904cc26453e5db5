/* RocksDB cannot keep up for a while, or for ever: the open batch waits and does not grow, nobody is told that anything is
 * written, nothing turns in a circle, and a stall that does not end is ended. */
#include "world.h"

#include "base/failpoint.h"
#include "spool/internal.h"

#define EVENTS 50
#define STALLS 6 /* writes that stall, of a stall that ends */

/* From now on: the write with number `at` stalls, and the next ones, `times` in all; 0: all from there on. */
static void stall(unsigned at, unsigned times)
{
#ifdef ENABLE_FAILPOINTS
    struct buf items = BUF_EMPTY;

    buf_printf(&items, times ? "" : "store.stall=errno:11@%u+", at);
    for (unsigned i = 0; i < times; i++)
        buf_printf(&items, "store.stall=errno:11@%u;", at + i);
    failpoints_set(buf_str(&items));
    buf_free(&items);
#else
    (void)at, (void)times;
    skip(); /* built without --enable-failpoints */
#endif
}

static int no_more_stalls(void **state)
{
#ifdef ENABLE_FAILPOINTS
    failpoints_set("");
#endif
    return world_teardown(state);
}

static size_t open_rows(struct world *w)
{
    return db_batch_ops(store_db(w->sp->store));
}

/* Ended events whose time is up, and some that wait, with an open batch that is not written yet. */
static void prepare(struct world *w)
{
    world_retain(w, HOURS(3), HOURS(3), HOURS(1));
    for (int i = 0; i < EVENTS; i++) {
        uint64_t seq = world_arrive(w, i + 1, i);
        world_end(w, world_take_seq(w, PUSH, seq), OUTCOME_DONE, -1);
    }
    world_wait(w, HOURS(4));
    world_begin(w);
    world_accept(w, 1000, 1, "waits");
}

static void note(void *arg, bool ok)
{
    *(int *)arg = ok ? 1 : -1;
}

/* Meanwhile: nothing is added, whoever may take events is told that there are none, and the next turn is later. */
static void expect_rest(struct world *w, size_t rows)
{
    assert_int_equal(spool_health(w->sp, NULL), SPOOL_STALLED);
    assert_true(spool_batch_full(w->sp));
    assert_false(spool_claimable(w->box));
    assert_int_equal(open_rows(w), rows);
    world_wakes_by(w, w->now + 10);
}

static void turn(struct world *w)
{
    world_begin(w);
    spool_work(w->sp);
    spool_commit(w->sp);
}

static void a_stall_that_ends(void **state)
{
    struct world *w = *state;
    int durable = 0;

    prepare(w);
    stall(1, STALLS);
    spool_on_durable(w->sp, note, &durable);
    spool_commit(w->sp);
    size_t rows = open_rows(w);
    for (int i = 1; i <= STALLS; i++) {
        expect_rest(w, rows);
        assert_int_equal(durable, 0);
        w->now = spool_next_deadline(w->sp);
        turn(w);
    }
    assert_int_equal(durable, 1);
    assert_int_equal(spool_health(w->sp, NULL), SPOOL_OK);
    assert_true(spool_claimable(w->box));
    for (int i = 0; i < 5; i++)
        world_step(w);
    assert_int_equal(world_status(w).counts.done, 0); /* retention goes on */
    assert_int_equal(world_status(w).counts.pending, 1);
    world_verify(w);
}

/* The handle is given up as after any failed write; what was not durable is told so. */
static void a_stall_that_does_not_end(void **state)
{
    struct world *w = *state;
    int durable = 0, turns = 0;

    prepare(w);
    stall(1, 0);
    spool_on_durable(w->sp, note, &durable);
    int64_t start = w->now;
    spool_commit(w->sp);
    while (spool_health(w->sp, NULL) == SPOOL_STALLED && turns++ < 100000) {
        assert_int_equal(durable, 0);
        w->now = spool_next_deadline(w->sp);
        turn(w);
    }
    assert_int_equal(spool_health(w->sp, NULL), SPOOL_FAILED);
    assert_int_equal(durable, -1);
    assert_in_range(w->now - start, SECONDS(60), SECONDS(61));
    w->now = spool_next_deadline(w->sp);
    turn(w); /* opened anew */
    assert_int_equal(spool_health(w->sp, NULL), SPOOL_OK);
    assert_int_equal(world_status(w).counts.pending, 0); /* it was not acknowledged */
    assert_int_equal(world_status(w).counts.done, EVENTS);
}

/* Commands without a loop wait for it: what they did is all there. */
static void a_stall_in_a_restore(void **state)
{
    for (unsigned at = 1; at <= 4; at++) {
        struct world *w = *state;
        struct err e = ERR_NONE;

        world_arrive(w, 1, 1);
        stall(at, STALLS);
        assert_int_equal(spool_restore(w->sp, w->now - HOURS(1), "test", &e), 0);
        world_close(w);
        world_open(w);
        assert_true(world_status(w).paused_deliver);
        assert_true(spool_box_next_seq(w->box) > 1000000);
        assert_int_equal(world_status(w).counts.pending, 1);
        world_verify(w);
        no_more_stalls(state);
        world_setup(state);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_stall_that_ends, world_setup, no_more_stalls),
        cmocka_unit_test_setup_teardown(a_stall_that_does_not_end, world_setup, no_more_stalls),
        cmocka_unit_test_setup_teardown(a_stall_in_a_restore, world_setup, no_more_stalls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
