/* Every outcome through spool_complete: what becomes of the event, when it is due again to the millisecond, what the
 * breaker does, and that a restart changes nothing of it. */
#include "world.h"

#include "spool/internal.h"

static void every_row(void **state)
{
    struct world *w = *state;
    static const struct {
        enum outcome_kind kind;
        int64_t after;
        enum state state;
        enum reason reason;
        unsigned attempts, interrupted;
        int64_t due; /* from the outcome; -1: it ended */
    } rows[] = {
        {OUTCOME_DONE, -1, STATE_DONE, REASON_NONE, 1, 0, -1},
        {OUTCOME_RETRY, -1, STATE_PENDING, REASON_NONE, 1, 0, 2000},
        {OUTCOME_RETRY, 12345, STATE_PENDING, REASON_NONE, 1, 0, 12345},
        {OUTCOME_RETRY, 48 * HOURS(1), STATE_PENDING, REASON_NONE, 1, 0, HOURS(24)},
        {OUTCOME_REJECTED, -1, STATE_DEAD, REASON_REJECTED, 1, 0, -1},
        {OUTCOME_UNAVAILABLE, -1, STATE_PENDING, REASON_NONE, 0, 0, 2000},
        {OUTCOME_UNAVAILABLE, 7000, STATE_PENDING, REASON_NONE, 0, 0, 7000},
        {OUTCOME_LIMITED, 30000, STATE_PENDING, REASON_NONE, 0, 0, 30000},
        {OUTCOME_LIMITED, HOURS(48), STATE_PENDING, REASON_NONE, 0, 0, HOURS(24)},
        {OUTCOME_RELEASED, -1, STATE_PENDING, REASON_NONE, 0, 1, 0},
        {OUTCOME_RETURNED, -1, STATE_PENDING, REASON_NONE, 0, 0, 0},
        {OUTCOME_EXPIRED, -1, STATE_DEAD, REASON_EXPIRED, 0, 0, -1},
        {OUTCOME_DISCARDED, -1, STATE_DEAD, REASON_DISCARDED, 0, 0, -1},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (int restart = 0; restart < 2; restart++) {
            uint64_t seq = world_arrive(w, 100 + (int64_t)i * 2 + restart, 1);
            struct claim *c = world_take_seq(w, PUSH, seq);
            world_wait(w, 100);
            int64_t at = w->now;
            world_end(w, c, rows[i].kind, rows[i].after);
            if (restart)
                world_reopen(w, 0);
            world_expect(w, seq, rows[i].state, rows[i].reason, rows[i].attempts);
            struct event_state st = world_state(w, seq);
            check_row(i, st.interrupted == rows[i].interrupted);
            check_row(i, (st.state == STATE_PENDING) == (st.finished_at == 0));
            check_row(i, st.state == STATE_PENDING || st.finished_at == at);
            world_verify(w);
            if (rows[i].due < 0) {
                assert_null(world_take(w, PUSH));
                continue;
            }
            if (rows[i].due > 0 &&
                !(restart && rows[i].kind == OUTCOME_UNAVAILABLE)) { /* a restart may probe at once */
                w->now = at + rows[i].due - 1;
                check_row(i, world_take(w, PUSH) == NULL);
                world_wakes_by(w, at + rows[i].due);
            }
            w->now = at + rows[i].due;
            c = world_take_seq(w, PUSH, seq);
            check_row(i, c->attempt == rows[i].attempts + 1);
            world_end(w, c, OUTCOME_DONE, -1);
            check_row(i, !world_status(w).breaker.open);
        }
}

/* As a failure does that loses a claim which was written but not synced, while its handler runs. */
static void take_back(struct world *w, uint64_t seq)
{
    struct state_record r;

    world_begin(w);
    assert_int_equal(row_state(w->box, CLASS_UNFINISHED, seq, &r), 1);
    row_delete(w->box, FAMILY_DUE, key_due(w->box->bot_id, w->box->which, DUE_LEASE, TIME_NEVER, seq));
    r.st.state = STATE_PENDING;
    r.st.push = false;
    row_put_state(w->box, CLASS_UNFINISHED, seq, &r);
    row_put_due(w->box, DUE_READY, 0, seq);
    box_count(w->box, COUNT_PROCESSING, -1);
    w->box->ready_from = 0;
    w->box->maybe_ready = true;
    world_commit(w);
}

static void a_claim_that_a_failure_took_back(void **state)
{
    struct world *w = *state;
    static const enum outcome_kind kinds[] = {OUTCOME_DONE, OUTCOME_RETRY, OUTCOME_REJECTED,
                                              OUTCOME_RETURNED};

    for (size_t i = 0; i < ARRAY_LEN(kinds) * 2; i++) {
        uint64_t seq = world_arrive(w, 10 + (int64_t)i * 2, 1),
                 next = world_arrive(w, 11 + (int64_t)i * 2, 2);
        struct claim *c = world_take_seq(w, PUSH, seq);
        take_back(w, seq);
        world_expect(w, seq, STATE_PENDING, REASON_NONE, 0);
        w->box->breaker.open = i % 2; /* its probes look at other places */
        struct claim *other = world_take(w, PUSH);
        assert_true(i % 2 || (other && other->ev.seq ==
                                           next)); /* others go on, it is not claimed beside its handler */
        assert_true(!other || other->ev.seq == next);
        assert_null(world_take(w, PUSH));
        w->box->breaker.open = false;
        world_end(w, c, kinds[i / 2], -1);
        world_verify(w);
        assert_int_equal(world_state(w, seq).attempts, kinds[i / 2] != OUTCOME_RETURNED);
        world_wait(w, MINUTES(1));
        for (; other || (other = world_take(w, PUSH)) != NULL; other = NULL)
            world_end(w, other, OUTCOME_DONE, -1);
        assert_int_equal(world_status(w).counts.pending + world_status(w).counts.processing, 0);
        world_verify(w);
    }
}

static void retries_to_the_millisecond_until_dead(void **state)
{
    struct world *w = *state;
    static const int64_t waits[] = {2000, 5000, 15000, 60000, 60000, 60000, 60000};
    uint64_t seq = world_arrive(w, 1, 1), next = world_arrive(w, 2, 1);

    for (unsigned n = 0; n < 8; n++) {
        struct claim *c = world_take_seq(w, n % 2, seq);
        assert_int_equal(c->attempt, n + 1);
        world_wait(w, 17);
        world_end(w, c, OUTCOME_RETRY, -1);
        if (n == 7)
            break;
        assert_int_equal(world_state(w, seq).next_retry_at, w->now + waits[n]);
        world_wakes_by(w, w->now + waits[n]);
        world_wait(w, waits[n] - 1);
        assert_null(world_take(w, PUSH)); /* its lane waits with it */
        world_wait(w, 1);
    }
    world_expect(w, seq, STATE_DEAD, REASON_ATTEMPTS, 8);
    assert_int_equal(world_status(w).counts.dead_by_reason[REASON_ATTEMPTS], 1);
    world_end(w, world_take_seq(w, PUSH, next), OUTCOME_DONE, -1); /* a dead event never holds its lane */
    world_verify(w);
}

static void jitter_stays_in_its_bounds(void **state)
{
    struct world *w = *state;
    int64_t lowest = INT64_MAX, highest = 0;

    w->policy.outcome.retry.jitter_percent = 20;
    w->policy.concurrency = 100;
    world_policy(w);
    for (int i = 0; i < 100; i++) {
        uint64_t seq = world_arrive(w, i, i);
        world_end(w, world_take_seq(w, PUSH, seq), i % 5 == 4 ? OUTCOME_DONE : OUTCOME_RETRY, -1);
        if (i % 5 == 4)
            continue; /* a success now and then keeps the breaker closed */
        int64_t wait = world_state(w, seq).next_retry_at - w->now;
        assert_in_range(wait, 1600, 2400);
        lowest = wait < lowest ? wait : lowest;
        highest = wait > highest ? wait : highest;
    }
    assert_true(lowest < 1800 && highest > 2200);
}

static void a_reaped_lease(void **state)
{
    struct world *w = *state;
    uint64_t seq = world_arrive(w, 1, 1);
    struct claim *c = world_take_seq(w, PULL, seq);

    assert_int_equal(c->deadline, w->now + 60000);
    world_wakes_by(w, c->deadline);
    w->now = c->deadline - 1;
    world_step(w);
    world_expect(w, seq, STATE_PROCESSING, REASON_NONE, 0);
    world_wait(w, 1);
    world_step(w);
    world_expect(w, seq, STATE_PENDING, REASON_NONE, 1);
    assert_int_equal(world_status(w).counts.lease_expired, 1);
    world_begin(w);
    assert_int_equal(world_complete(w, c, OUTCOME_DONE, -1), COMPLETE_LOST);
    world_commit(w);
    for (unsigned n = 2; n <= 8; n++) { /* due at once, dead at the limit */
        c = world_take_seq(w, PULL, seq);
        world_wait(w, 60000);
        world_step(w);
        world_drop(w, c);
        world_expect(w, seq, n < 8 ? STATE_PENDING : STATE_DEAD, n < 8 ? REASON_NONE : REASON_ATTEMPTS, n);
    }
    world_verify(w);
}

static void push_claims_are_not_reaped(void **state)
{
    struct world *w = *state;
    uint64_t seq = world_arrive(w, 1, 1);
    struct claim *c = world_take_seq(w, PUSH, seq);

    world_wait(w, HOURS(5));
    world_step(w);
    world_expect(w, seq, STATE_PROCESSING, REASON_NONE, 0);
    world_end(w, c, OUTCOME_DONE, -1);
}

static void interruptions_have_a_limit(void **state)
{
    struct world *w = *state;
    uint64_t seq = world_arrive(w, 1, 1);

    for (unsigned n = 1; n <= 9; n++) {
        world_end(w, world_take_seq(w, PUSH, seq), OUTCOME_RELEASED, -1);
        assert_int_equal(world_state(w, seq).interrupted, n);
        world_expect(w, seq, n < 9 ? STATE_PENDING : STATE_DEAD, n < 9 ? REASON_NONE : REASON_ATTEMPTS, 0);
    }
}

static void tokens_are_checked(void **state)
{
    struct world *w = *state;
    uint64_t seq = world_arrive(w, 1, 1);
    struct claim *c = world_take_seq(w, PUSH, seq);
    struct outcome done = {.kind = OUTCOME_DONE, .after_ms = -1};
    unsigned char wrong[TOKEN_BYTES], zero[TOKEN_BYTES] = {0};
    int64_t deadline = -1;

    memcpy(wrong, c->token, TOKEN_BYTES);
    wrong[15] ^= 1;
    world_begin(w);
    assert_int_equal(spool_complete(w->box, seq, wrong, &done), COMPLETE_LOST);
    assert_int_equal(spool_extend(w->box, seq, wrong, 1000, &deadline), COMPLETE_LOST);
    assert_int_equal(spool_complete(w->box, seq + 1, c->token, &done), COMPLETE_UNKNOWN);
    assert_int_equal(spool_extend(w->box, seq + 1, c->token, 1000, &deadline), COMPLETE_UNKNOWN);
    assert_int_equal(spool_complete(w->box, 0, c->token, &done), COMPLETE_UNKNOWN);
    world_commit(w);
    memcpy(wrong, c->token, TOKEN_BYTES);
    world_expect(w, seq, STATE_PROCESSING, REASON_NONE, 0);
    world_end(w, c, OUTCOME_RETRY, -1);
    world_begin(w); /* pending now: held by nobody, not even by a token of zeros */
    assert_int_equal(spool_complete(w->box, seq, wrong, &done), COMPLETE_LOST);
    assert_int_equal(spool_complete(w->box, seq, zero, &done), COMPLETE_LOST);
    assert_int_equal(spool_extend(w->box, seq, zero, 1000, &deadline), COMPLETE_LOST);
    world_commit(w);
    world_expect(w, seq, STATE_PENDING, REASON_NONE, 1);
    world_wait(w, 2000);
    c = world_take_seq(w, PUSH, seq);
    assert_memory_not_equal(c->token, wrong, TOKEN_BYTES); /* every claim has a token of its own */
    world_end(w, c, OUTCOME_DONE, -1);
    world_begin(w);
    assert_int_equal(spool_complete(w->box, seq, wrong, &done), COMPLETE_LOST);
    world_commit(w);
}

static void extending(void **state)
{
    struct world *w = *state;
    uint64_t seq = world_arrive(w, 1, 1);
    struct claim *c = world_take_seq(w, PULL, seq);
    int64_t deadline = 0;

    world_wait(w, 59999);
    world_begin(w);
    assert_int_equal(spool_extend(w->box, seq, c->token, 5000, &deadline), COMPLETED);
    world_commit(w);
    assert_int_equal(deadline, w->now + 5000);
    world_wakes_by(w, deadline);
    w->now = deadline - 1;
    world_step(w);
    world_expect(w, seq, STATE_PROCESSING, REASON_NONE, 0);
    world_begin(w);
    assert_int_equal(spool_extend(w->box, seq, c->token, HOURS(100), &deadline), COMPLETED);
    world_commit(w);
    assert_int_equal(deadline, w->now + HOURS(12));
    world_verify(w);
    w->now = deadline;
    world_step(w);
    world_expect(w, seq, STATE_PENDING, REASON_NONE, 1);
}

static void error_texts_are_clean_and_scrubbed(void **state)
{
    struct world *w = *state;
    uint64_t seq = world_arrive(w, 1, 1);
    struct claim *c = world_take_seq(w, PUSH, seq);
    char *text = xasprintf("went\xFFwrong at bot123456789:ABCDEFGHIJabcdefghij012345678_x/getMe %0600d", 1);
    struct outcome o = {.kind = OUTCOME_RETRY, .after_ms = -1, .error = slice_str(text)};

    world_begin(w);
    assert_int_equal(spool_complete(w->box, seq, c->token, &o), COMPLETED);
    memset(text, 'X', strlen(text)); /* it was copied */
    world_commit(w);
    free(text);
    for (int i = 0; i < 2; i++, world_reopen(w, 0)) {
        struct event_state st = world_state(w, seq);
        assert_memory_equal(st.error, "went\xEF\xBF\xBDwrong at bot<token>/getMe 000", 36);
        assert_true(strlen(st.error) <= ERROR_MAX);
        assert_int_equal(st.n_history, 1);
        assert_int_equal(st.history[0].at, w->now);
        assert_int_equal(st.history[0].outcome, OUTCOME_RETRY);
        assert_null(strstr(st.history[0].error, "ABCDEFGH"));
    }
}

static void history_keeps_the_newest(void **state)
{
    struct world *w = *state;
    uint64_t seq = world_arrive(w, 1, 1);
    int64_t times[20];

    w->policy.outcome.max_attempts = 100;
    world_policy(w);
    for (int i = 0; i < 12; i++) {
        struct claim *c = world_take_seq(w, PUSH, seq);
        times[i] = w->now;
        world_end(w, c, OUTCOME_RETRY, 1000 + i);
        world_wait(w, 1000 + i);
    }
    struct event_state st = world_state(w, seq);
    assert_int_equal(st.n_history, HISTORY_MAX);
    for (int i = 0; i < HISTORY_MAX; i++)
        assert_int_equal(st.history[i].at, times[12 - HISTORY_MAX + i]);
}

static void unavailable_opens_and_probes_rotate(void **state)
{
    struct world *w = *state;
    uint64_t seq[4];
    static const int64_t waits[] = {2000, 5000, 15000, 60000, 60000};

    for (int i = 0; i < 4; i++)
        seq[i] = world_arrive(w, i, i);
    world_end(w, world_take_seq(w, PUSH, seq[0]), OUTCOME_UNAVAILABLE, -1);
    assert_true(world_status(w).breaker.open);
    assert_int_equal(world_status(w).breaker.cause, BREAKER_UNAVAILABLE);
    assert_int_equal(w->happened[HAPPENED_BREAKER_OPEN], 1);
    unsigned probed[4] = {0};
    for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
        world_wakes_by(w, w->now + waits[i]);
        world_wait(w, waits[i] - 1);
        assert_null(world_take(w, PUSH));
        world_wait(w, 1);
        world_begin(w);
        spool_work(w->sp);
        assert_int_equal(world_claim(w, 4, PUSH), 1); /* one at a time */
        assert_int_equal(world_claim(w, 4, PUSH), 0);
        world_commit(w);
        assert_null(world_take(w, PUSH));
        for (int k = 0; k < 4; k++)
            probed[k] += w->held[0]->ev.seq == seq[k];
        world_end(w, w->held[0], OUTCOME_UNAVAILABLE, -1);
    }
    for (int k = 0; k < 4; k++)
        assert_true(probed[k] >= 1);
    world_wait(w, 60000);
    struct claim *c = world_take(w, PUSH);
    assert_non_null(c);
    world_end(w, c, OUTCOME_DONE, -1);
    assert_false(world_status(w).breaker.open);
    assert_int_equal(w->happened[HAPPENED_BREAKER_CLOSED], 1);
    world_begin(w);
    spool_work(w->sp);
    assert_int_equal(world_claim(w, 9, PUSH), 3);
    world_commit(w);
    while (w->n_held) {
        world_expect(w, w->held[0]->ev.seq, STATE_PROCESSING, REASON_NONE, 0);
        world_end(w, w->held[0], OUTCOME_DONE, -1);
    }
    world_verify(w);
}

/* Answers of claims that were made before it opened: none of them ends the probe that is out. */
static void late_failures_do_not_end_the_probe(void **state)
{
    struct world *w = *state;
    uint64_t seq[5];

    for (int i = 0; i < 5; i++)
        seq[i] = world_arrive(w, i, i);
    world_begin(w);
    assert_int_equal(world_claim(w, 3, PUSH), 3);
    world_commit(w);
    world_end(w, world_held(w, seq[0]), OUTCOME_UNAVAILABLE, -1);
    world_wait(w, 2000);
    struct claim *probe = world_take_seq(w, PUSH, seq[0]);
    world_end(w, world_held(w, seq[1]), OUTCOME_RETRY, -1);
    world_end(w, world_held(w, seq[2]), OUTCOME_UNAVAILABLE, -1);
    world_wait(w, HOURS(1));
    assert_null(world_take(w, PUSH));
    world_expect(w, seq[1], STATE_PENDING, REASON_NONE, 0); /* open: it cost nothing */
    world_end(w, probe, OUTCOME_UNAVAILABLE, -1);
    world_wakes_by(w, w->now + 5000); /* the second wait: the late ones did not lengthen it */
    world_wait(w, 5000);
    world_end(w, world_take_seq(w, PUSH, seq[1]), OUTCOME_DONE, -1);
    assert_false(world_status(w).breaker.open);
    world_verify(w);
}

/* A probe is due, but there is nobody to take it (paused, or no consumer asks): the loop must sleep, not spin. */
static void a_probe_nobody_takes(void **state)
{
    struct world *w = *state;
    uint64_t seq = world_arrive(w, 1, 1);

    world_end(w, world_take_seq(w, PUSH, seq), OUTCOME_UNAVAILABLE, -1);
    world_wakes_by(w, w->now + 2000);
    for (int i = 0; i < 3; i++) {
        world_wait(w, 2000);
        world_step(w);
        assert_true(spool_next_deadline(w->sp) > w->now);
    }
    assert_true(spool_claimable(w->box));
    world_end(w, world_take_seq(w, PULL, seq), OUTCOME_DONE, -1);
}

static void an_open_breaker_survives_a_restart(void **state)
{
    struct world *w = *state;
    uint64_t seq = world_arrive(w, 1, 1);

    world_end(w, world_take_seq(w, PUSH, seq), OUTCOME_LIMITED, 3600000);
    int64_t due = w->now + 3600000;
    world_reopen(w, 1000);
    world_expect(w, seq, STATE_PENDING, REASON_NONE, 0);
    w->now = due - 1;
    assert_null(world_take(w, PUSH));
    w->now = due;
    world_end(w, world_take_seq(w, PUSH, seq), OUTCOME_DONE, -1);
    assert_false(world_status(w).breaker.open);
}

/* Every event fails until the deploy is put right: only the failures before the breaker opened cost attempts. */
static void a_broken_deploy(void **state)
{
    struct world *w = *state;
    enum { LANES = 30, EACH = 4 };
    uint64_t seq[LANES][EACH];
    unsigned attempts = 0, tries = 0;

    world_begin(w);
    for (int k = 0; k < EACH; k++)
        for (int l = 0; l < LANES; l++)
            seq[l][k] = world_accept(w, k * LANES + l, l, "");
    world_commit(w);
    for (int64_t end = w->now + HOURS(6); w->now < end;) {
        struct claim *c = world_take(w, PUSH);
        if (!c) {
            int64_t next = spool_next_deadline(w->sp);
            assert_true(next > w->now && next <= w->now + 60000);
            w->now = next;
            continue;
        }
        tries++;
        world_end(w, c, OUTCOME_RETRY, -1);
    }
    assert_true(world_status(w).breaker.open);
    assert_int_equal(world_status(w).breaker.cause, BREAKER_FAILURES);
    for (int l = 0; l < LANES; l++)
        for (int k = 0; k < EACH; k++)
            attempts += world_state(w, seq[l][k]).attempts;
    assert_int_equal(attempts, BREAKER_RUN);
    assert_in_range(tries, 300, 400); /* one a minute over six hours */
    assert_int_equal(world_status(w).counts.dead, 0);

    unsigned done = 0; /* repaired */
    uint64_t last[LANES] = {0};
    while (done < LANES * EACH) {
        struct claim *c = world_take(w, PUSH);
        if (!c) {
            w->now = spool_next_deadline(w->sp);
            continue;
        }
        assert_true(c->ev.seq > last[c->ev.place.chat]); /* in order in each lane */
        last[c->ev.place.chat] = c->ev.seq;
        world_end(w, c, OUTCOME_DONE, -1);
        done++;
    }
    assert_int_equal(world_status(w).counts.done, LANES * EACH);
    world_verify(w);
}

/* An event that takes the handler down each time it is tried must not stop the others for ever. While others come and succeed,
 * its tries count; alone it could not be told from a handler that is down. */
static void one_poison_event(void **state)
{
    struct world *w = *state;
    uint64_t poison = 0, behind = 0;
    int64_t start = w->now, id = 0;

    world_begin(w);
    for (; id < 60; id++) {
        uint64_t s = world_accept(w, id, id % 20, "");
        if (id == 0)
            poison = s;
        if (id == 20)
            behind = s;
    }
    world_commit(w);
    for (int i = 0; i < 1000 && world_state(w, behind).state != STATE_DONE; i++) {
        struct claim *c = world_take(w, PUSH);
        if (c) {
            world_end(w, c, c->ev.seq == poison ? OUTCOME_UNAVAILABLE : OUTCOME_DONE, -1);
            continue;
        }
        assert_true(spool_next_deadline(w->sp) > w->now);
        w->now = spool_next_deadline(w->sp);
        world_arrive(w, id, 1 + id % 19);
        id++;
    }
    world_expect(w, poison, STATE_DEAD, REASON_ATTEMPTS, 8);
    world_expect(w, behind, STATE_DONE, REASON_NONE, 1);
    assert_true(w->now - start < HOURS(1));
    world_verify(w);
}

static void concurrency_bounds_push_and_pull_together(void **state)
{
    struct world *w = *state;

    world_begin(w);
    for (int i = 0; i < 10; i++)
        world_accept(w, i, i, "");
    world_commit(w);
    world_begin(w);
    assert_int_equal(world_claim(w, 2, PUSH), 2);
    assert_int_equal(world_claim(w, 10, PULL), 2);
    assert_int_equal(world_claim(w, 10, PULL), 0);
    assert_false(spool_claimable(w->box));
    world_commit(w);
    assert_int_equal(world_status(w).counts.processing, 4);
    assert_null(world_take(w, PUSH));
    world_end(w, w->held[0], OUTCOME_DONE, -1);
    assert_true(spool_claimable(w->box));
    world_begin(w);
    assert_int_equal(world_claim(w, 10, PUSH), 1);
    world_commit(w);
    w->policy.concurrency = 6;
    world_policy(w);
    world_begin(w);
    assert_int_equal(world_claim(w, 10, PUSH), 2);
    world_commit(w);
    for (size_t i = 1; i < w->n_held; i++) /* the oldest first */
        assert_true(w->held[i]->ev.seq > w->held[i - 1]->ev.seq);
    w->policy.concurrency = 1; /* lowered below what is held: nothing new, nothing taken away */
    world_policy(w);
    assert_null(world_take(w, PUSH));
    while (w->n_held > 1)
        world_end(w, w->held[0], OUTCOME_DONE, -1);
    assert_null(world_take(w, PUSH));
    world_end(w, w->held[0], OUTCOME_DONE, -1);
    assert_non_null(world_take(w, PUSH));
    world_verify(w);
}

#define outcome_test(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        outcome_test(every_row),
        outcome_test(a_claim_that_a_failure_took_back),
        outcome_test(retries_to_the_millisecond_until_dead),
        outcome_test(jitter_stays_in_its_bounds),
        outcome_test(a_reaped_lease),
        outcome_test(push_claims_are_not_reaped),
        outcome_test(interruptions_have_a_limit),
        outcome_test(tokens_are_checked),
        outcome_test(extending),
        outcome_test(error_texts_are_clean_and_scrubbed),
        outcome_test(history_keeps_the_newest),
        outcome_test(unavailable_opens_and_probes_rotate),
        outcome_test(late_failures_do_not_end_the_probe),
        outcome_test(a_probe_nobody_takes),
        outcome_test(an_open_breaker_survives_a_restart),
        outcome_test(a_broken_deploy),
        outcome_test(one_poison_event),
        outcome_test(concurrency_bounds_push_and_pull_together),
    };
    return cmocka_run_group_tests_name("spool outcomes", tests, NULL, NULL);
}
