/* Great numbers: ten thousand lanes behind consumers that died, and a week-end's backlog behind a handler that was down. */
#include "world.h"

/* Accepts n events over so many lanes, as full batches. */
static void fill(struct world *w, int n, int lanes, int64_t first_id)
{
    world_begin(w);
    for (int i = 0; i < n; i++) {
        world_accept(w, first_id + i, i % lanes, "some text that a person wrote");
        if (spool_batch_full(w->sp)) {
            world_commit(w);
            world_begin(w);
        }
    }
    world_commit(w);
}

/* All slots are held by consumers that died, ten thousand lanes are ready: leases are reaped whatever the slots. */
static void dead_consumers_before_ten_thousand_lanes(void **state)
{
    struct world *w = *state;
    enum { LANES = 10000, SLOTS = 300 };

    w->policy.concurrency = SLOTS;
    world_policy(w);
    fill(w, LANES, LANES, 1);
    world_begin(w);
    spool_work(w->sp);
    assert_int_equal(world_claim(w, SLOTS + 100, PULL), SLOTS);
    world_commit(w);
    assert_null(world_take(w, PULL));
    world_wakes_by(w, w->now + 60000);
    while (w->n_held)
        world_drop(w, w->held[0]);
    world_wait(w, 59999);
    assert_null(world_take(w, PULL));
    world_wait(w, 1);
    world_step(w);
    unsigned reaped = (unsigned)world_status(w).counts.lease_expired;
    assert_true(reaped >= 100 && reaped <= 200);       /* some a tick ... */
    assert_true(spool_next_deadline(w->sp) <= w->now); /* ... and the rest at once after it */
    world_step(w);
    assert_int_equal(world_status(w).counts.lease_expired, SLOTS);
    assert_int_equal(world_status(w).counts.processing, 0);
    assert_true(world_status(w).breaker.open); /* that many expired leases are a handler that is down */
    world_wait(w, 60000);
    struct claim *c = world_take(w, PULL);
    assert_non_null(c);
    world_end(w, c, OUTCOME_DONE, -1);
    world_begin(w);
    spool_work(w->sp);
    assert_int_equal(world_claim(w, SLOTS, PULL), SLOTS);
    world_commit(w);
    world_verify(w);
}

static uint64_t last_of_lane[1000];

/* Ends everything that is held with success; order in each lane is checked. */
static void end_all(struct world *w)
{
    while (w->n_held) {
        struct claim *c = w->held[w->n_held - 1]; /* any order will do */
        uint64_t *last = &last_of_lane[c->ev.place.chat];
        assert_true(c->ev.seq > *last);
        *last = c->ev.seq;
        assert_int_equal(world_complete(w, c, OUTCOME_DONE, -1), COMPLETED);
    }
}

static void a_handler_down_for_72_hours(void **state)
{
    struct world *w = *state;
    enum { EVENTS = OFTEN(100000), LANES = 1000 };
    int64_t start = w->now;
    int arrived = 0;
    unsigned probes = 0;

    memset(last_of_lane, 0, sizeof(last_of_lane));
    w->policy.concurrency = 500;
    world_policy(w);
    for (int64_t step = 1; step <= 100; w->now = start + step++ * (HOURS(72) / 100)) {
        fill(w, EVENTS / 100, LANES, 1 + arrived);
        arrived += EVENTS / 100;
        /* a probe at each deadline within this step would be 4,320 of them; ten a step show the same */
        for (int i = 0; i < 10; i++) {
            struct claim *c = world_take(w, PUSH);
            if (c) {
                probes++;
                world_end(w, c, OUTCOME_UNAVAILABLE, -1);
            }
            int64_t next = spool_next_deadline(w->sp);
            assert_true(next > w->now && next <= w->now + 60000);
            w->now = next;
        }
    }
    assert_int_equal(arrived, EVENTS);
    assert_true(probes >= 900);
    world_reopen(w, 0);
    assert_int_equal(world_status(w).counts.pending, EVENTS);
    w->now += 60000;
    for (int ticks = 0; world_status(w).counts.pending + world_status(w).counts.processing; ticks++) {
        assert_true(ticks < 1000);
        world_begin(w);
        end_all(w);
        spool_work(w->sp);
        world_claim(w, 500, PUSH);
        world_commit(w);
    }
    assert_int_equal(world_status(w).counts.done, EVENTS);
    assert_int_equal(world_status(w).counts.dead, 0);
    assert_int_equal(world_status(w).oldest_unfinished_at, 0);
    for (uint64_t seq = 1; seq <= EVENTS; seq += 997)
        world_expect(w, seq, STATE_DONE, REASON_NONE, 1); /* the outage cost no attempts */
    world_verify(w);
}

#define backlog_test(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        backlog_test(dead_consumers_before_ten_thousand_lanes),
        backlog_test(a_handler_down_for_72_hours),
    };
    return cmocka_run_group_tests_name("spool backlog", tests, NULL, NULL);
}
