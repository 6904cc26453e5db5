/* Idempotency keys: first for one event, held while its handler works, done with it, let go with any other end of its try,
 * forgotten when their time is up. */
#include "verbs.h"

#include "spool/internal.h"

static struct claim *take_new(struct world *w, int64_t update_id, bool push)
{
    uint64_t seq = world_arrive(w, update_id, update_id);

    return world_take_seq(w, push, seq);
}

static void first_for_one_event(void **state)
{
    struct world *w = *state;
    struct claim *a = take_new(w, 1, PUSH), *b = take_new(w, 2, PULL);

    world_begin(w); /* all within one batch */
    assert_int_equal(verb_ask(w, "k", 0, a), KEY_FIRST);
    assert_int_equal(verb_ask(w, "k", 0, b), KEY_IS_HELD);
    assert_int_equal(verb_ask(w, "k", 0, a), KEY_FIRST); /* its own */
    assert_int_equal(verb_ask(w, "other", 0, b), KEY_FIRST);
    world_commit(w);
    world_verify(w);
    assert_int_equal(verb_key(w, "k", a), KEY_FIRST);
    assert_int_equal(verb_key(w, "k", b), KEY_IS_HELD);
    assert_int_equal(verb_key(w, "k", NULL), KEY_IS_HELD);
    assert_int_equal(verb_key(w, "other", a), KEY_IS_HELD);
    assert_int_equal(world_state(w, a->ev.seq).n_marks, 1); /* asking again takes no more room */
    world_verify(w);
}

/* Done with the event, in the batch that completes it; also for its replay. */
static void done_with_the_event(void **state)
{
    struct world *w = *state;
    struct claim *a = take_new(w, 1, PUSH), *b = take_new(w, 2, PUSH);
    uint64_t seq = a->ev.seq, copy;

    assert_int_equal(verb_key(w, "k", a), KEY_FIRST);
    world_begin(w);
    assert_int_equal(world_complete(w, a, OUTCOME_DONE, -1), COMPLETED);
    assert_int_equal(verb_ask(w, "k", 0, b), KEY_IS_DONE);
    assert_int_equal(spool_replay(w->box, seq, "test", &copy), ACTED);
    world_commit(w);
    assert_int_equal(world_state(w, seq).n_marks, 0);
    assert_int_equal(verb_key(w, "k", b), KEY_IS_DONE);
    assert_int_equal(verb_key(w, "k", NULL), KEY_IS_DONE);
    struct claim *again = world_take_seq(w, PUSH, copy);
    assert_int_equal(verb_key(w, "k", again), KEY_IS_DONE);
    assert_int_equal(verb_key(w, "k2", again), KEY_FIRST);
    world_end(w, again, OUTCOME_RETRY, -1);
    assert_int_equal(verb_key(w, "k", b), KEY_IS_DONE); /* what was done stays so */
    world_verify(w);
}

static void without_an_event(void **state)
{
    struct world *w = *state;
    struct claim *a = take_new(w, 1, PUSH);

    world_begin(w);
    assert_int_equal(verb_ask(w, "k", 0, NULL), KEY_FIRST);
    assert_int_equal(verb_ask(w, "k", 0, NULL), KEY_IS_DONE);
    world_commit(w);
    assert_int_equal(verb_key(w, "k", a), KEY_IS_DONE);
    assert_int_equal(world_state(w, a->ev.seq).n_marks, 0);
    world_reopen(w, 1000);
    assert_int_equal(verb_key(w, "k", NULL), KEY_IS_DONE);
    world_verify(w);
}

/* How a try can end without success, with what it takes besides the outcome. */
static const struct end {
    const char *name;
    enum outcome_kind kind;
    enum { BY_OUTCOME, BY_LEASE, BY_DISCARD, BY_RESTART, BY_ATTEMPTS } by;
} ends[] = {
    {"retry", OUTCOME_RETRY, BY_OUTCOME},
    {"rejected", OUTCOME_REJECTED, BY_OUTCOME},
    {"unavailable", OUTCOME_UNAVAILABLE, BY_OUTCOME},
    {"limited", OUTCOME_LIMITED, BY_OUTCOME},
    {"released", OUTCOME_RELEASED, BY_OUTCOME},
    {"dead by attempts", OUTCOME_RETRY, BY_ATTEMPTS},
    {"lease expired", OUTCOME_LEASE_EXPIRED, BY_LEASE},
    {"discarded", OUTCOME_DISCARDED, BY_DISCARD},
    {"its process died", OUTCOME_RELEASED, BY_RESTART},
};

static void end_by(struct world *w, const struct end *e, struct claim *c)
{
    uint64_t seq = c->ev.seq;

    switch (e->by) {
    case BY_ATTEMPTS:
    case BY_OUTCOME:
        world_end(w, c, e->kind, -1);
        break;
    case BY_LEASE:
        world_wait(w, 60000);
        world_step(w);
        break;
    case BY_DISCARD:
        world_begin(w);
        assert_int_equal(spool_discard(w->box, seq, true, "test"), ACTED);
        world_commit(w);
        break;
    case BY_RESTART:
        world_reopen(w, 10);
        break;
    }
    assert_true(world_state(w, seq).state != STATE_PROCESSING);
    assert_true((world_state(w, seq).state == STATE_DEAD) ==
                (e->by == BY_DISCARD || e->by == BY_ATTEMPTS || e->kind == OUTCOME_REJECTED));
}

static void let_go_with_any_other_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        const struct end *e = &ends[i];
        void *fresh = NULL;
        assert_int_equal(world_setup(&fresh), 0);
        struct world *w = fresh;
        if (e->by == BY_ATTEMPTS) {
            w->policy.outcome.max_attempts = 1;
            world_policy(w);
        }
        uint64_t seq = world_arrive(w, 1, 1);
        struct claim *c = world_take_seq(w, e->by == BY_LEASE ? PULL : PUSH, seq);
        assert_int_equal(verb_key(w, "one", c), KEY_FIRST);
        assert_int_equal(verb_key(w, "two", c), KEY_FIRST);
        end_by(w, e, c);
        assert_int_equal(world_state(w, seq).n_marks, 0);
        check_row(i, verb_rows(w, FAMILY_MARKS) == 0);
        world_verify(w);
        check_row(i, verb_key(w, "one", NULL) == KEY_FIRST);
        world_teardown(&fresh);
    }
}

/* The next try of the same event is the first again. */
static void first_again_in_the_next_try(void **state)
{
    struct world *w = *state;
    struct claim *a = take_new(w, 1, PUSH);
    uint64_t seq = a->ev.seq;

    assert_int_equal(verb_key(w, "k", a), KEY_FIRST);
    world_end(w, a, OUTCOME_RETRY, -1);
    world_wait(w, 2000);
    a = world_take_seq(w, PUSH, seq);
    assert_int_equal(verb_key(w, "k", a), KEY_FIRST);
    world_end(w, a, OUTCOME_DONE, -1);
    assert_int_equal(verb_key(w, "k", NULL), KEY_IS_DONE);
    world_verify(w);
}

static void forgotten_when_their_time_is_up(void **state)
{
    struct world *w = *state;
    struct claim *a = take_new(w, 1, PUSH);

    world_begin(w);
    assert_int_equal(verb_ask(w, "short", 5000, NULL), KEY_FIRST);
    assert_int_equal(verb_ask(w, "default", 0, NULL), KEY_FIRST);
    assert_int_equal(verb_ask(w, "long", INT64_MAX, NULL), KEY_FIRST);
    assert_int_equal(verb_ask(w, "held", 5000, a), KEY_FIRST);
    world_commit(w);
    world_step(w);
    world_wakes_by(w, w->now + 5000);
    world_wait(w, 4999);
    assert_int_equal(verb_key(w, "short", NULL), KEY_IS_DONE);
    world_wait(w, 1);
    assert_int_equal(verb_key(w, "held", NULL), KEY_IS_HELD); /* by whoever works, however long */
    assert_int_equal(verb_key(w, "short", NULL),
                     KEY_FIRST); /* before any work was done; now for three days */
    world_step(w);
    assert_int_equal(verb_key(w, "short", NULL), KEY_IS_DONE); /* the old time did not end the new mark */
    world_end(w, a, OUTCOME_DONE, -1);
    world_wait(w, 4999); /* its time runs from when it was done */
    assert_int_equal(verb_key(w, "held", NULL), KEY_IS_DONE);
    world_wait(w, 1);
    world_step(w);
    assert_int_equal(verb_rows(w, FAMILY_MARKS), 6); /* mark and time of: short, default, long */
    world_wait(w, SPOOL_KEY_TTL_MS - 10000);
    assert_int_equal(verb_key(w, "default", NULL), KEY_FIRST);
    world_reopen(w, SPOOL_KEY_TTL_MAX_MS);
    world_wait(w, HOURS(1)); /* after a gap so long, the clock might be wrong */
    world_step(w);
    assert_int_equal(verb_rows(w, FAMILY_MARKS), 0);
    assert_int_equal(spool_next_deadline(w->sp), TIME_NEVER);
    world_verify(w);
}

/* Many at once take many ticks. */
static void forgotten_in_slices(void **state)
{
    struct world *w = *state;
    enum { MANY = 500 };
    unsigned left = 2 * MANY, ticks = 0;

    world_begin(w);
    for (int i = 0; i < MANY; i++) {
        char key[16];
        snprintf(key, sizeof(key), "%d", i);
        assert_int_equal(verb_ask(w, key, 1000 + i % 3, NULL), KEY_FIRST);
    }
    world_commit(w);
    world_wait(w, 1003);
    assert_int_equal(verb_rows(w, FAMILY_MARKS), left);
    while (left) {
        world_step(w);
        unsigned now = verb_rows(w, FAMILY_MARKS);
        assert_true(now < left && left - now <= 2 * WORK_PER_TICK);
        left = now;
        ticks++;
        if (left)
            assert_true(spool_next_deadline(w->sp) <= w->now); /* it goes on at once */
    }
    assert_in_range(ticks, 3, 6);
    world_step(w);
    assert_int_equal(spool_next_deadline(w->sp), TIME_NEVER);
}

static void too_many(void **state)
{
    struct world *w = *state;
    struct claim *a = take_new(w, 1, PUSH), *b = take_new(w, 2, PUSH);
    char key[16];

    world_begin(w);
    for (int i = 0; i < MARKS_MAX; i++) {
        snprintf(key, sizeof(key), "%d", i);
        assert_int_equal(verb_ask(w, key, 0, a), KEY_FIRST);
    }
    assert_int_equal(verb_ask(w, "one more", 0, a), KEY_TOO_MANY);
    assert_int_equal(verb_ask(w, "0", 0, a), KEY_FIRST);
    assert_int_equal(verb_ask(w, "one more", 0, b), KEY_FIRST); /* it was not taken */
    world_commit(w);
    world_end(w, a, OUTCOME_DONE, -1);
    for (int i = 0; i < MARKS_MAX; i++) {
        snprintf(key, sizeof(key), "%d", i);
        assert_int_equal(verb_key(w, key, NULL), KEY_IS_DONE);
    }
    assert_int_equal(verb_key(w, "one more", NULL), KEY_IS_HELD);
    world_verify(w);
}

static void only_for_who_holds_the_event(void **state)
{
    struct world *w = *state;
    struct claim *a = take_new(w, 1, PULL);
    uint64_t seq = a->ev.seq;
    struct claim other = *a, unknown = *a;

    other.token[0] ^= 1;
    unknown.ev.seq = 999;
    assert_int_equal(verb_key(w, "k", &other), KEY_LOST);
    assert_int_equal(verb_key(w, "k", &unknown), KEY_UNKNOWN);
    world_wait(w, 60000);
    world_step(w);
    assert_int_equal(verb_key(w, "k", a), KEY_LOST); /* its lease ran out */
    struct claim *next = world_take_seq(w, PULL, seq);
    assert_int_equal(verb_key(w, "k", a), KEY_LOST);
    world_end(w, next, OUTCOME_DONE, -1);
    assert_int_equal(verb_key(w, "k", a), KEY_LOST);
    assert_int_equal(verb_rows(w, FAMILY_MARKS), 0);
    assert_int_equal(verb_key(w, "k", NULL), KEY_FIRST);
}

/* The keys that a completion names. */
static void named_by_a_completion(void **state)
{
    struct world *w = *state;
    struct claim *a = take_new(w, 1, PUSH), *b = take_new(w, 2, PUSH), *c = take_new(w, 3, PUSH);
    struct slice keys[] = {LIT("x"), LIT("held by b"), LIT("zero\0inside")};
    struct spool_extras extras = {.keys = keys, .n_keys = 3, .keys_ttl_ms = 5000};

    assert_int_equal(verb_key(w, "held by b", b), KEY_FIRST);
    assert_int_equal(verb_key(w, "x", a), KEY_FIRST); /* asked for and named */
    assert_int_equal(verb_end_with(w, c, OUTCOME_RETRY, &extras), COMPLETED);
    assert_int_equal(verb_key(w, "zero", NULL), KEY_FIRST); /* another text */
    world_begin(w);
    assert_int_equal(spool_key(w->box, keys[2], 5000, b->ev.seq, b->token),
                     KEY_FIRST); /* no success, no keys */
    world_commit(w);
    assert_int_equal(verb_end_with(w, a, OUTCOME_DONE, &extras), COMPLETED);
    assert_int_equal(verb_key(w, "held by b", b), KEY_IS_DONE); /* it learns that it was too late */
    world_end(w, b, OUTCOME_REJECTED, -1);
    assert_int_equal(verb_key(w, "held by b", NULL), KEY_IS_DONE); /* not undone by b's end */
    assert_int_equal(verb_key(w, "x", NULL), KEY_IS_DONE);
    world_begin(w);
    assert_int_equal(spool_key(w->box, keys[2], 0, 0, NULL), KEY_IS_DONE);
    world_commit(w);
    world_verify(w);
    world_wait(w, 5000);
    assert_int_equal(verb_key(w, "held by b", NULL), KEY_FIRST); /* the time that was given */
    assert_int_equal(verb_key(w, "x", NULL), KEY_IS_DONE);       /* the one it was asked for with */
}

static void nothing_named_by_a_lost_one(void **state)
{
    struct world *w = *state;
    struct claim *a = take_new(w, 1, PULL);
    struct slice key = LIT("k");
    struct spool_extras extras = {.keys = &key, .n_keys = 1};

    world_wait(w, 60000);
    world_step(w);
    assert_int_equal(verb_end_with(w, a, OUTCOME_DONE, &extras), COMPLETE_LOST);
    assert_int_equal(verb_key(w, "k", NULL), KEY_FIRST);
}

/* A consumer outside goes on over our restart, and so do its keys; one of ours does not. */
static void over_a_restart(void **state)
{
    struct world *w = *state;
    struct claim *pull = take_new(w, 1, PULL), *push = take_new(w, 2, PUSH);
    struct claim kept = *pull;

    assert_int_equal(verb_key(w, "pull", pull), KEY_FIRST);
    assert_int_equal(verb_key(w, "push", push), KEY_FIRST);
    world_reopen(w, 1000);
    assert_int_equal(verb_key(w, "pull", NULL), KEY_IS_HELD);
    assert_int_equal(verb_key(w, "pull", &kept), KEY_FIRST);
    assert_int_equal(verb_key(w, "push", &kept), KEY_FIRST);
    world_begin(w);
    struct outcome done = {.kind = OUTCOME_DONE, .after_ms = -1};
    assert_int_equal(spool_complete(w->box, kept.ev.seq, kept.token, &done), COMPLETED);
    world_commit(w);
    world_reopen(w, 1000);
    assert_int_equal(verb_key(w, "pull", NULL), KEY_IS_DONE);
    assert_int_equal(verb_key(w, "push", NULL), KEY_IS_DONE);
    world_reopen(w, SPOOL_KEY_TTL_MS);
    world_wait(w, HOURS(1)); /* after a gap so long, the clock might be wrong */
    world_step(w);
    assert_int_equal(verb_rows(w, FAMILY_MARKS), 0);
    world_verify(w);
}

/* Keys are a bot's own; an event of the same number in its box out does not hold what one of box in holds. */
static void of_one_bot(void **state)
{
    struct world *w = *state;
    struct spool_call call = verb_call(1, "{}");
    uint64_t seq;

    world_begin(w);
    struct spool_box *other = spool_attach(w->sp, BOT_ID + 1, BOX_IN, "other", &w->policy);
    struct spool_box *out = spool_attach(w->sp, BOT_ID, BOX_OUT, "shop", &w->policy);
    assert_int_equal(spool_append_call(out, &call, slice_make("", 0), &seq), ACCEPTED_NEW);
    world_commit(w);
    struct claim *a = take_new(w, 1, PUSH);
    assert_int_equal(verb_claim_from(w, out, 1), 1);
    struct claim *sending = w->held[w->n_held - 1];
    assert_int_equal(sending->ev.seq, a->ev.seq);
    assert_int_equal(verb_key(w, "k", a), KEY_FIRST);
    world_begin(w);
    assert_int_equal(spool_key(out, LIT("k"), 0, sending->ev.seq, sending->token), KEY_IS_HELD);
    assert_int_equal(spool_key(out, LIT("o"), 0, sending->ev.seq, sending->token), KEY_FIRST);
    assert_int_equal(spool_key(other, LIT("k"), 0, 0, NULL), KEY_FIRST);
    world_commit(w);
    assert_int_equal(verb_key(w, "o", a), KEY_IS_HELD);
    assert_int_equal(verb_end_with(w, sending, OUTCOME_RETRY, NULL), COMPLETED);
    assert_int_equal(verb_key(w, "k", NULL), KEY_IS_HELD);
    assert_int_equal(verb_key(w, "o", a), KEY_FIRST);
    world_verify(w);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(first_for_one_event),
        TEST(done_with_the_event),
        TEST(without_an_event),
        cmocka_unit_test(let_go_with_any_other_end),
        TEST(first_again_in_the_next_try),
        TEST(forgotten_when_their_time_is_up),
        TEST(forgotten_in_slices),
        TEST(too_many),
        TEST(only_for_who_holds_the_event),
        TEST(named_by_a_completion),
        TEST(nothing_named_by_a_lost_one),
        TEST(over_a_restart),
        TEST(of_one_bot),
    };

    return cmocka_run_group_tests_name("spool keys", tests, NULL, NULL);
}
