/* The drop-in API's way to the events: runs from the oldest, whatever the lanes, handed out again until an offset confirms
 * them, under ids that only grow; and the way back to other deliverers. */
#include "verbs.h"

#include "spool/internal.h"

#define MAX 100 /* of one run, as Telegram has it */

static struct seen seen[MAX];

static void serve_policy(struct world *w, bool serve)
{
    w->policy.serve = serve;
    world_policy(w);
}

static int serving_setup(void **state)
{
    int rc = world_setup(state);
    struct world *w = *state;

    w->policy.serve = true;
    world_policy(w);
    return rc;
}

/* Update ids first.. in chats 1..3 by turns; seqs grow with them. Returns the first seq. */
static uint64_t arrive_many(struct world *w, int64_t first, unsigned n)
{
    uint64_t seq = 0;

    world_begin(w);
    for (unsigned i = 0; i < n; i++) {
        uint64_t s = world_accept(w, first + i, 1 + i % 3, "");
        seq = seq ? seq : s;
    }
    world_commit(w);
    return seq;
}

/* A run of n from this seq on under ids from this one on. */
static void expect_run(struct world *w, unsigned max, unsigned n, uint64_t seq, int64_t id)
{
    assert_int_equal(verb_serve(w, max, seen), n);
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(seen[i].seq, seq + i);
        assert_int_equal(seen[i].id, id + i);
    }
    world_verify(w);
}

static void runs_are_confirmed_by_an_offset(void **state)
{
    struct world *w = *state;
    uint64_t first = arrive_many(w, 1000, 10);

    assert_false(spool_claimable(w->box));
    assert_null(world_take(w, PUSH)); /* nothing for others */
    expect_run(w, 4, 4, first, 1000);
    expect_run(w, 4, 4, first, 1000); /* not confirmed: again */
    assert_int_equal(world_status(w).counts.processing, 4);
    expect_run(w, 6, 6, first, 1000);           /* those and more */
    assert_int_equal(verb_confirm(w, 1000), 0); /* below it, not at it */
    assert_int_equal(verb_confirm(w, 1003), 3);
    assert_int_equal(verb_confirm(w, 1003), 0);
    world_verify(w);
    for (unsigned i = 0; i < 3; i++)
        world_expect(w, first + i, STATE_DONE, REASON_NONE, 1);
    expect_run(w, 100, 7, first + 3, 1003);
    assert_int_equal(spool_last_served(w->box), 1009);
    uint64_t late = arrive_many(w, 1010, 1);
    assert_int_equal(verb_confirm(w, INT64_MAX), 7); /* only what was handed out */
    world_expect(w, late, STATE_PENDING, REASON_NONE, 0);
    expect_run(w, 100, 1, late, 1010);
    assert_int_equal(verb_confirm(w, 1011), 1);
    assert_int_equal(verb_serve(w, 100, seen), 0);
    struct spool_counts c = world_status(w).counts;
    assert_int_equal(c.pending + c.processing, 0);
    assert_int_equal(c.delivered, 11);
    world_verify(w);
}

/* All in one batch: what was accepted in it, and an answer that confirms and serves. */
static void within_one_batch(void **state)
{
    struct world *w = *state;
    struct served out[3];

    world_begin(w);
    uint64_t a = world_accept(w, 1, 1, "");
    world_accept(w, 2, 1, "");
    assert_int_equal(spool_serve(w->box, 3, SIZE_MAX, NULL, NULL, out), 2);
    buf_free(&out[0].record);
    buf_free(&out[1].record);
    assert_int_equal(spool_serve_confirm(w->box, 2), 1);
    uint64_t c = world_accept(w, 3, 1, "");
    assert_int_equal(spool_serve(w->box, 3, SIZE_MAX, NULL, NULL, out), 2);
    assert_int_equal(out[0].seq, a + 1);
    assert_int_equal(out[1].seq, c);
    char *json = world_message(3, 1, "");
    assert_slice(out[1].ev.payload, json);
    free(json);
    buf_free(&out[0].record);
    buf_free(&out[1].record);
    world_commit(w);
    world_verify(w);
    assert_int_equal(verb_confirm(w, 4), 2);
    world_verify(w);
}

/* After a quiet week Telegram's ids start anew, maybe lower; those served never go back. */
static void served_ids_only_grow(void **state)
{
    struct world *w = *state;
    uint64_t a = world_arrive(w, 727334708, 1);

    expect_run(w, 9, 1, a, 727334708);
    uint64_t b = world_arrive(w, 117314199, 1);
    world_arrive(w, 117314200, 2);
    uint64_t d = world_arrive(w, 727334711, 2); /* as it is the last served one by then */
    expect_run(w, 3, 3, a, 727334708);
    assert_int_equal(verb_confirm(w, 727334709), 1);
    world_reopen(w, 1000);
    expect_run(w, 9, 3, b, 727334709);
    assert_int_equal(seen[2].seq, d);
    uint64_t e = world_arrive(w, 727334710, 3), f = world_arrive(w, 900000000, 3);
    assert_int_equal(verb_confirm(w, 727334712), 3);
    assert_int_equal(verb_serve(w, 9, seen), 2);
    assert_true(seen[0].seq == e && seen[0].id == 727334712);
    assert_true(seen[1].seq == f && seen[1].id == 900000000); /* its own again */
    assert_int_equal(verb_confirm(w, 900000001), 2);
    world_reopen(w, 1000);
    world_arrive(w, 5, 3);
    assert_int_equal(verb_serve(w, 9, seen), 1);
    assert_int_equal(seen[0].id, 900000001); /* known over a restart with nothing unfinished */
    world_verify(w);
}

/* An id that no library can read is not taken over, or all behind it would be as high. */
static void ids_beyond_telegrams(void **state)
{
    struct world *w = *state;

    world_arrive(w, INT64_MAX, 1);
    world_arrive(w, 2000000000, 1);
    world_arrive(w, 1999999999, 1);
    world_arrive(w, INT64_MAX - 1, 1);
    assert_int_equal(verb_serve(w, 9, seen), 4);
    assert_int_equal(seen[0].id, 1);
    assert_int_equal(seen[1].id, 2);
    assert_int_equal(seen[2].id, 1999999999);
    assert_int_equal(seen[3].id, 2000000000);
    assert_int_equal(verb_confirm(w, 2000000001), 4);
    world_verify(w);
}

/* A restart lets nothing go: the client gets the same again, under the same ids, and its offset still counts. */
static void the_same_after_a_restart(void **state)
{
    struct world *w = *state;
    uint64_t first = arrive_many(w, 50, 8);

    expect_run(w, 5, 5, first, 50);
    world_reopen(w, 3600000);
    assert_int_equal(world_status(w).counts.processing, 5);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(world_state(w, first + i).interrupted, 0);
    world_verify(w);
    expect_run(w, 5, 5, first, 50);
    world_reopen(w, 3600000);
    assert_int_equal(verb_confirm(w, 53), 3);
    expect_run(w, 9, 5, first + 3, 53);
    world_wait(w, 100000000); /* nor does time */
    world_step(w);
    expect_run(w, 9, 5, first + 3, 53);
    assert_int_equal(spool_next_deadline(w->sp), TIME_NEVER);
}

static bool only_messages(void *arg, const char *kind)
{
    ++*(int *)arg;
    return !strcmp(kind, "message");
}

static unsigned serve_wanted(struct world *w, int *asked)
{
    struct served out[MAX];

    *asked = 0;
    world_begin(w);
    unsigned n = spool_serve(w->box, MAX, SIZE_MAX, only_messages, asked, out);
    world_commit(w);
    for (unsigned i = 0; i < n; i++) {
        assert_string_equal(out[i].ev.kind, "message");
        seen[i] = (struct seen){out[i].seq, out[i].served_id};
        buf_free(&out[i].record);
    }
    return n;
}

static void what_the_client_did_not_ask_for_is_done(void **state)
{
    struct world *w = *state;
    uint64_t a = world_arrive(w, 1, 7), unwanted[150];
    int asked;

    world_begin(w);
    for (int i = 0; i < 150; i++) {
        char *json =
            xasprintf("{\"update_id\":%d,\"edited_message\":{\"chat\":{\"id\":7},\"text\":\"\"}}", 2 + i);
        assert_int_equal(world_accept_json(w, json, &unwanted[i]), ACCEPTED_NEW);
        free(json);
    }
    uint64_t z = world_accept(w, 1000, 7, "");
    world_commit(w);
    assert_int_equal(serve_wanted(w, &asked), 2);
    assert_int_equal(asked, 152);
    assert_true(seen[0].seq == a && seen[0].id == 1);
    assert_true(seen[1].seq == z && seen[1].id == 1000);
    for (int i = 0; i < 150; i++)
        world_expect(w, unwanted[i], STATE_DONE, REASON_NONE, 1);
    world_verify(w);
    assert_int_equal(serve_wanted(w, &asked), 2);
    assert_int_equal(asked, 0); /* what was handed out is not judged again */
    assert_int_equal(verb_confirm(w, 1001), 2);
    world_verify(w);
}

/* What is too old is not handed out; what was handed out before stays so. */
static void expired(void **state)
{
    struct world *w = *state;

    w->policy.expire = EXPIRE_AUTO;
    world_policy(w);
    world_arrive(w, 1, 10);
    expect_run(w, 100, 1, 1, 1);
    world_arrive(w, 2, 10);
    world_wait(w, HOURS(24) + 1);
    world_arrive(w, 3, 10);
    assert_int_equal(verb_serve(w, 100, seen), 2);
    assert_int_equal(seen[0].seq, 1);
    assert_int_equal(seen[1].seq, 3);
    world_expect(w, 2, STATE_DEAD, REASON_EXPIRED, 0);
    world_verify(w);
}

static void paused(void **state)
{
    struct world *w = *state;
    uint64_t first = arrive_many(w, 1, 4);

    expect_run(w, 2, 2, first, 1);
    world_begin(w);
    spool_pause(w->box, false, true);
    world_commit(w);
    assert_int_equal(verb_serve(w, 9, seen), 0);
    assert_int_equal(verb_confirm(w, 2), 1); /* running work ends */
    world_begin(w);
    spool_pause(w->box, false, false);
    world_commit(w);
    expect_run(w, 9, 3, first + 1, 2);
}

static void not_of_a_box_that_does_not_serve(void **state)
{
    struct world *w = *state;

    world_arrive(w, 1, 1);
    assert_int_equal(verb_serve(w, 9, seen), 0);
    assert_int_equal(verb_confirm(w, 99), 0);
    world_expect(w, 1, STATE_PENDING, REASON_NONE, 0);
}

static void about_so_many_bytes(void **state)
{
    struct world *w = *state;
    struct served out[MAX];
    uint64_t first = arrive_many(w, 1000, 9);
    char *json = world_message(1000, 1, "");
    size_t one = strlen(json);

    free(json);
    world_begin(w);
    unsigned n = spool_serve(w->box, MAX, one * 3, NULL, NULL, out);
    world_commit(w);
    assert_int_equal(n, 3);
    for (unsigned i = 0; i < n; i++)
        buf_free(&out[i].record);
    assert_int_equal(world_status(w).counts.processing, 3);
    world_begin(w);
    assert_int_equal(spool_serve(w->box, MAX, 1, NULL, NULL, out), 1); /* one at least */
    world_commit(w);
    assert_int_equal(out[0].seq, first);
    buf_free(&out[0].record);
    world_verify(w);
}

/* In order of arrival over lanes of any order the bot had before, whatever barriers stand between. */
static void over_lanes_and_barriers(void **state)
{
    struct world *w = *state;
    static const enum order orders[] = {ORDER_BOT, ORDER_NONE, ORDER_CHAT};
    uint64_t first = arrive_many(w, 1, 5);

    for (size_t i = 0; i < ARRAY_LEN(orders); i++) {
        w->policy.order = orders[i];
        world_policy(w);
        arrive_many(w, 6 + 5 * (int64_t)i, 5);
    }
    assert_true(world_status(w).behind_barrier);
    expect_run(w, 12, 12, first, 1);
    world_reopen(w, 10);
    expect_run(w, 100, 20, first, 1);
    assert_int_equal(verb_confirm(w, 8), 7);
    expect_run(w, 100, 13, first + 7, 8);
    serve_policy(w, false); /* and out of the middle of it to another deliverer */
    world_step(w);
    world_verify(w);
    assert_int_equal(world_status(w).counts.processing, 0);
    for (unsigned i = 7; i < 10; i++) /* order bot: one at a time */
        world_end(w, world_take_seq(w, PUSH, first + i), OUTCOME_DONE, -1);
    for (unsigned i = 10; i < 14; i++) /* each its own, four slots */
        world_take_seq(w, PUSH, first + i);
    world_verify(w);
}

/* What another deliverer left behind: tries, a retry that is waited for, an open breaker, a lease that still runs. */
static void after_another_deliverer(void **state)
{
    struct world *w = *state;
    uint64_t first = arrive_many(w, 1, 6); /* chats 1 2 3 1 2 3 */

    world_end(w, world_take_seq(w, PUSH, first), OUTCOME_RETRY, 600000);
    struct claim *b = world_take_seq(w, PULL, first + 1);
    struct claim *c = world_take_seq(w, PUSH, first + 2);
    serve_policy(w, true);
    expect_run(w, 100, 1, first, 1); /* the one that waited; then one that is held still */
    world_expect(w, first, STATE_PROCESSING, REASON_NONE, 1);
    world_end(w, b, OUTCOME_UNAVAILABLE, -1);
    assert_true(world_status(w).breaker.open);
    expect_run(w, 100, 2, first, 1);
    assert_int_equal(verb_confirm(w, INT64_MAX), 2); /* not what another one holds */
    world_expect(w, first + 2, STATE_PROCESSING, REASON_NONE, 0);
    world_end(w, c, OUTCOME_DONE, -1);
    assert_int_equal(verb_serve(w, 100, seen), 3);
    assert_int_equal(seen[0].seq, first + 3);
    world_verify(w);
    assert_int_equal(verb_confirm(w, 7), 3);
    assert_false(world_status(w).breaker.open);
    world_expect(w, first, STATE_DONE, REASON_NONE, 2);
    world_verify(w);
    world_step(w);
    assert_true(spool_next_deadline(w->sp) > w->now);
}

/* A lease that was lost stays lost when the event is served: its old token counts for nothing. */
static void old_tokens_count_for_nothing(void **state)
{
    struct world *w = *state;
    static const unsigned char nobody[TOKEN_BYTES];
    uint64_t a = world_arrive(w, 1, 1), b = world_arrive(w, 2, 2);
    struct claim *old = world_take_seq(w, PULL, a);
    struct outcome done = {.kind = OUTCOME_DONE, .after_ms = -1};
    int64_t deadline;

    world_wait(w, 60000);
    world_step(w);
    serve_policy(w, true);
    expect_run(w, 9, 2, a, 1);
    world_begin(w);
    assert_int_equal(spool_complete(w->box, a, old->token, &done), COMPLETE_LOST);
    assert_int_equal(spool_extend(w->box, a, old->token, 1000, &deadline), COMPLETE_LOST);
    assert_int_equal(verb_ask(w, "k", 0, old), KEY_LOST);
    assert_int_equal(spool_complete(w->box, b, nobody, &done), COMPLETE_LOST);
    world_commit(w);
    expect_run(w, 9, 2, a, 1);
}

/* Killed while children held events, and started again with the drop-in API: what the dead held is let go and served. */
static void after_a_deliverer_that_was_killed(void **state)
{
    struct world *w = *state;
    enum { HELD = 450 };

    w->policy.concurrency = HELD;
    w->policy.order = ORDER_NONE;
    world_policy(w);
    uint64_t first = arrive_many(w, 1, HELD);
    world_begin(w);
    assert_int_equal(world_claim(w, HELD, PUSH), HELD);
    world_commit(w);
    w->policy.serve = true;
    world_reopen(w, 1000);
    for (int ticks = 0; world_status(w).counts.processing && ticks < 10; ticks++)
        world_step(w);
    world_expect(w, first, STATE_PENDING, REASON_NONE, 0);
    assert_int_equal(world_state(w, first).interrupted, 1);
    assert_int_equal(world_status(w).counts.pending, HELD);
    expect_run(w, MAX, MAX, first, 1);
    world_reopen(w, 1000); /* what was served is not let go with it */
    expect_run(w, MAX, MAX, first, 1);
}

/* Both at once: served ones in front, and behind them one of a child that the kill ended. */
static void killed_in_between(void **state)
{
    struct world *w = *state;
    uint64_t first = arrive_many(w, 1, 3);

    world_take_seq(w, PUSH, first);
    struct claim *behind = world_take_seq(w, PUSH, first + 1);
    world_end(w, world_held(w, first), OUTCOME_RETRY, -1);
    serve_policy(w, true);
    expect_run(w, 9, 1, first, 1);
    assert_int_equal(behind->ev.seq, first + 1);
    world_reopen(w, 1000);
    world_step(w);
    expect_run(w, 9, 3, first, 1);
    assert_int_equal(world_state(w, first).interrupted, 0);
    assert_int_equal(world_state(w, first + 1).interrupted, 1);
}

/* Another deliverer takes over: what was served and not confirmed is let go, and comes to it in order. */
static void back_to_another_deliverer(void **state)
{
    struct world *w = *state;
    uint64_t first = arrive_many(w, 1, 150);

    expect_run(w, MAX, MAX, first, 1);
    world_arrive(w, 151, 9); /* of a lane of its own: ready, and there is room for it */
    w->policy.concurrency = 1000;
    w->policy.serve = false;
    world_begin(w);
    spool_attach(w->sp, BOT_ID, BOX_IN, "shop", &w->policy);
    assert_int_equal(world_claim(w, 1, PUSH), 0); /* not before all is let go */
    world_commit(w);
    for (int ticks = 0; world_status(w).counts.processing; ticks++) {
        assert_true(ticks < 10);
        assert_false(spool_claimable(w->box));
        assert_true(spool_next_deadline(w->sp) <= w->now);
        world_step(w);
        world_verify(w);
    }
    world_step(w);
    assert_int_equal(verb_serve(w, 9, seen), 0);
    assert_int_equal(verb_confirm(w, 1000), 0);
    assert_int_equal(world_state(w, first).served_id, 0);
    w->policy.concurrency = 1;
    world_policy(w);
    for (unsigned i = 0; i < 151; i++) {
        struct claim *c = world_take_seq(w, PUSH, first + i);
        assert_int_equal(c->attempt, 1);
        world_end(w, c, OUTCOME_DONE, -1);
    }
    assert_int_equal(world_status(w).counts.done, 151);
    world_verify(w);
}

/* No run is longer than Telegram's, whatever is asked for. */
static void no_longer_than_a_hundred(void **state)
{
    struct world *w = *state;
    static struct seen many[250];
    uint64_t first = arrive_many(w, 1, 250);

    assert_int_equal(verb_serve(w, 250, many), MAX);
    assert_int_equal(verb_confirm(w, 1000), MAX);
    assert_int_equal(verb_serve(w, 250, many), MAX);
    assert_true(many[0].seq == first + MAX && many[0].id == 1 + MAX);
    assert_int_equal(world_status(w).counts.processing, MAX);
}

/* Off and on again before it was all let go: no id comes back, none is confirmed by an offset of before. */
static void on_again(void **state)
{
    struct world *w = *state;
    uint64_t first = arrive_many(w, 1, 120);

    expect_run(w, MAX, MAX, first, 1);
    serve_policy(w, false);
    serve_policy(w, true); /* within no tick of work: nothing happened */
    expect_run(w, MAX, MAX, first, 1);
    serve_policy(w, false);
    world_step(w);
    serve_policy(w, true);
    expect_run(w, MAX, MAX, first, 101); /* under new ids */
    assert_int_equal(verb_confirm(w, 101), 0);
    assert_int_equal(verb_confirm(w, 201), MAX);
    expect_run(w, MAX, 20, first + 100, 201);
    serve_policy(w, false);
    world_reopen(w, 1000); /* a restart in between */
    world_step(w);
    assert_int_equal(world_status(w).counts.processing, 0);
    assert_int_equal(world_state(w, first + 100).interrupted, 0);
    world_end(w, world_take_seq(w, PUSH, first + 100), OUTCOME_DONE, -1);
    world_verify(w);
}

/* Served, then stopped, then started with another deliverer. */
static void another_one_after_a_restart(void **state)
{
    struct world *w = *state;
    uint64_t first = arrive_many(w, 1, 30);

    expect_run(w, 20, 20, first, 1);
    w->policy.serve = false;
    world_reopen(w, 1000);
    world_step(w);
    assert_int_equal(world_status(w).counts.processing, 0);
    world_verify(w);
    struct claim *c = world_take_seq(w, PUSH, first);
    assert_int_equal(world_state(w, first).interrupted, 0); /* nobody was interrupted */
    world_end(w, c, OUTCOME_DONE, -1);
    world_verify(w);
}

static unsigned drop(struct world *w, uint64_t keep)
{
    unsigned calls = 0;

    for (bool over = false; !over; calls++) {
        uint64_t before = world_status(w).counts.dead;
        world_begin(w);
        over = spool_serve_drop(w->box, keep, "test");
        world_commit(w);
        assert_true(world_status(w).counts.dead - before <= 200);
        world_verify(w);
    }
    return calls;
}

static void drop_keeps_the_last(void **state)
{
    struct world *w = *state;
    uint64_t first = arrive_many(w, 1, 450);

    expect_run(w, 10, 10, first, 1);
    assert_int_equal(drop(w, 450), 1);
    assert_int_equal(world_status(w).counts.dead, 0);
    assert_int_equal(drop(w, 20), 3);
    assert_int_equal(world_status(w).counts.dead_by_reason[REASON_DISCARDED], 430);
    assert_int_equal(world_status(w).counts.pending, 20);
    assert_int_equal(verb_rows(w, FAMILY_AUDIT), 430);
    world_expect(w, first, STATE_DEAD, REASON_DISCARDED, 0); /* handed out or not */
    world_expect(w, first + 429, STATE_DEAD, REASON_DISCARDED, 0);
    expect_run(w, 100, 20, first + 430, 431);
    assert_int_equal(drop(w, 0), 1);
    assert_int_equal(verb_serve(w, 9, seen), 0);
    assert_int_equal(verb_confirm(w, 1000), 0);
    assert_int_equal(drop(w, 0), 1);
    world_verify(w);
}

/* From the middle of what was handed out, by a person. */
static void discarded_while_served(void **state)
{
    struct world *w = *state;
    uint64_t first = arrive_many(w, 1, 9);

    expect_run(w, 9, 9, first, 1);
    world_begin(w);
    assert_int_equal(spool_discard(w->box, first, false, "test"), ACT_BUSY);
    assert_int_equal(spool_discard(w->box, first, true, "test"), ACTED);     /* a head */
    assert_int_equal(spool_discard(w->box, first + 4, true, "test"), ACTED); /* a middle */
    assert_int_equal(spool_discard(w->box, first + 8, true, "test"), ACTED); /* a tail */
    world_commit(w);
    world_verify(w);
    assert_int_equal(verb_serve(w, 9, seen), 6);
    assert_true(seen[0].seq == first + 1 && seen[0].id == 2);
    assert_int_equal(verb_confirm(w, 10), 6);
    world_verify(w);
    assert_int_equal(world_status(w).counts.processing, 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, serving_setup, world_teardown)
#define BEFORE(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(runs_are_confirmed_by_an_offset),
        TEST(within_one_batch),
        TEST(served_ids_only_grow),
        TEST(ids_beyond_telegrams),
        TEST(the_same_after_a_restart),
        TEST(what_the_client_did_not_ask_for_is_done),
        TEST(expired),
        TEST(paused),
        BEFORE(not_of_a_box_that_does_not_serve),
        TEST(about_so_many_bytes),
        TEST(over_lanes_and_barriers),
        BEFORE(after_another_deliverer),
        BEFORE(old_tokens_count_for_nothing),
        BEFORE(after_a_deliverer_that_was_killed),
        BEFORE(killed_in_between),
        TEST(back_to_another_deliverer),
        TEST(no_longer_than_a_hundred),
        TEST(on_again),
        TEST(another_one_after_a_restart),
        TEST(drop_keeps_the_last),
        TEST(discarded_while_served),
    };

    return cmocka_run_group_tests_name("spool serve", tests, NULL, NULL);
}
