/* Copies of a spool: one that is only looked at, one that was put back and goes on; and who a spool is. */
#include "world.h"

#include "store/commit.h"

static uint64_t generation_of(struct world *w, char instance[33])
{
    uint64_t g;

    spool_identity(w->sp, instance, &g);
    return g;
}

static void a_spool_is_who_it_is(void **state)
{
    struct world *w = *state;
    char first[33], later[33];
    uint64_t g = generation_of(w, first);
    struct err e = ERR_NONE;

    assert_int_equal(g, START);
    assert_int_equal(strlen(first), 32);
    world_reopen(w, 1000);
    assert_int_equal(generation_of(w, later), g);
    assert_string_equal(later, first);
    for (uint64_t i = 1; i <= 3; i++) { /* within one millisecond: it grows nevertheless */
        world_begin(w);
        assert_int_equal(spool_restore(w->sp, w->now, "test", &e), 0);
        assert_int_equal(generation_of(w, later), g + 1000 + i - 1);
        assert_string_equal(later, first);
    }
    world_reopen(w, 1000);
    assert_int_equal(generation_of(w, later), g + 1000 + 2);
}

static void what_is_looked_at_does_not_change(void **state)
{
    struct world *w = *state;
    struct spool_options o = {.dir = w->dir, .cache_bytes = 1 << 20};
    uint64_t seq = world_arrive(w, 1, 1);
    struct err e = ERR_NONE;

    world_take_seq(w, PUSH, seq);
    world_close(w);
    struct spool *sp = spool_look(&o, w->now + HOURS(1), &e);
    assert_non_null(sp);
    struct spool_box *b = spool_find_box(sp, "shop", BOX_IN);
    spool_begin(sp, w->now + HOURS(1));
    spool_work(sp); /* would release it */
    spool_commit(sp);
    struct spool_box_status st;
    spool_box_status(b, &st);
    assert_int_equal(st.counts.processing, 1);
    assert_int_equal(spool_next_deadline(sp), TIME_NEVER);
    assert_int_equal(spool_verify(sp, NULL, NULL, NULL), 0);
    spool_close(sp);
    assert_null(
        spool_look(&(struct spool_options){.dir = "/nonexistent", .cache_bytes = 1 << 20}, w->now, &e));
    assert_int_equal(e.exit_code, EX_NOINPUT);
    world_open(w);
    world_step(w);
    world_expect(w, seq, STATE_PENDING, REASON_NONE, 0);
}

static void put_back(struct world *w)
{
    struct err e = ERR_NONE;

    world_close(w);
    w->now += HOURS(48);
    world_open(w);
    world_begin(w);
    assert_int_equal(spool_restore(w->sp, w->now - HOURS(48), "test", &e), 0);
    world_verify(w);
}

static void all_that_is_held_is_released(void **state)
{
    struct world *w = *state;
    enum { N = 450 }; /* more than one tick releases */
    uint64_t next;

    w->policy.concurrency = N;
    world_policy(w);
    world_begin(w);
    for (int i = 0; i < N; i++)
        world_accept(w, i, i, "");
    world_commit(w);
    world_begin(w);
    assert_int_equal(world_claim(w, N / 2, PUSH), N / 2);
    assert_int_equal(world_claim(w, N, PULL), N - N / 2);
    world_commit(w);
    next = spool_box_next_seq(w->box);
    put_back(w);
    struct spool_box_status st = world_status(w);
    assert_int_equal(st.counts.processing, 0);
    assert_int_equal(st.counts.pending, N);
    assert_true(st.paused_deliver && !st.paused_intake);
    assert_int_equal(spool_box_next_seq(w->box), next + 1000000);
    assert_null(world_take(w, PUSH));
    world_begin(w);
    spool_pause(w->box, false, false);
    world_commit(w);
    assert_non_null(world_take(w, PUSH));
    world_verify(w);
}

static void served_ids_go_on_far_beyond(void **state)
{
    struct world *w = *state;
    struct served out[5];

    w->policy.serve = true;
    world_policy(w);
    for (int i = 0; i < 5; i++)
        world_arrive(w, 700 + i, i);
    world_begin(w);
    assert_int_equal(spool_serve(w->box, 3, 1 << 20, NULL, NULL, out), 3);
    for (int i = 0; i < 3; i++)
        buf_free(&out[i].record);
    world_commit(w);
    put_back(w);
    assert_int_equal(world_status(w).counts.pending, 5);
    world_step(w);
    assert_true(spool_last_served(w->box) >= 704 + 1000000); /* 704 may have been served since */
    world_begin(w);
    spool_pause(w->box, false, false);
    assert_int_equal(spool_serve(w->box, 5, 1 << 20, NULL, NULL, out), 5);
    assert_true(out[0].served_id > 704 + 1000000);
    for (int i = 0; i < 5; i++)
        buf_free(&out[i].record);
    world_commit(w);
    world_verify(w);
}

/* What came between the copy and its return is told by the first new id, once. */
static void the_gap_is_told(void **state)
{
    struct world *w = *state;
    static const struct {
        int64_t offset, first, missing;
    } rows[] = {
        {101, 101, 0},
        {101, 131, 30},
        {101, 50, RESTORED_NEVER},
        {0, 106, 5},
        {101, 1900000000, RESTORED_NEVER},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct poll_position p = {.api_root = "x", .offset = rows[i].offset, .newest_update_at = w->now};
        struct spool_restored r;
        spool_restored(w->box, &r);
        char *text = xasprintf("%zu", i);
        world_begin(w);
        world_accept(w, 100, 1, text);
        spool_set_position(w->box, &p);
        world_commit(w);
        put_back(w);
        spool_restored(w->box, &r);
        assert_int_equal(r.missing, RESTORED_UNKNOWN);
        assert_int_equal(r.newest, 100);
        world_begin(w);
        char *again = world_message(100, 1, text);
        assert_int_equal(world_accept_json(w, again, NULL), ACCEPTED_DUPLICATE); /* says nothing of a gap */
        world_accept(w, rows[i].first, 1, text);
        assert_false(spool_count_gap(w->box, 30));     /* told here, and not Telegram's doing */
        world_accept(w, rows[i].first + 100, 1, text); /* Telegram's own affair */
        assert_true(spool_count_gap(w->box, 99));
        world_commit(w);
        world_reopen(w, 0);
        spool_restored(w->box, &r);
        assert_int_equal(r.missing, rows[i].missing);
        world_verify(w);
        free(again);
        free(text);
    }
}

#define restored_test(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        restored_test(a_spool_is_who_it_is),
        restored_test(what_is_looked_at_does_not_change),
        restored_test(all_that_is_held_is_released),
        restored_test(served_ids_go_on_far_beyond),
        restored_test(the_gap_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
