/* Claims over the api: waiting, taking turns, going away, and the answers to ack, nack, extend. */
#include "rig.h"

static struct rig *rig_of(void **state)
{
    return *state;
}

static char *word(const struct json *event, const char *more)
{
    return xasprintf("{\"id\":\"%s\",\"lease\":\"%s\"%s}", reply_text(event, "id"),
                     reply_text(event, "lease"), more);
}

/* An event arrives and is claimed; claim is to be cleared. */
static void arrive_and_claim(struct rig *r, struct reply *claim)
{
    rig_arrive(r, 5, 42);
    rig_expect(r, claim, 200, "POST", "/v1/claim", "{\"bot\":\"shop\"}");
}

static void test_claim_gives_envelope_and_update(void **state)
{
    struct rig *r = rig_of(state);
    struct reply p;

    rig_arrive(r, 5, 42);
    rig_expect(r, &p, 200, "POST", "/v1/claim",
               "{\"bot\":\"shop\",\"consumer\":\"worker 1\",\"lease\":\"30s\"}");
    const struct json *e = reply_event(&p, 0);
    assert_string_equal(reply_text(e, "id"), "shop/5");
    assert_string_equal(reply_text(e, "lane"), "chat:42");
    assert_int_equal(reply_number(e, "attempt"), 1);
    assert_int_equal(reply_number(json_get(e, "update"), "update_id"), 5);
    assert_int_equal(json_length(json_get(p.root, "events")), 1);
    struct event_state st = world_state(&r->w, 1);
    assert_int_equal(st.state, STATE_PROCESSING);
    assert_string_equal(st.claimed_by, "worker 1");
    assert_int_equal(st.deadline, r->w.now + 30000);
    assert_false(st.push);
    assert_null(memchr(p.body.p, '\n', p.body.n)); /* one line, whatever the update holds */
    reply_clear(&p);
}

static void test_claim_waits_for_an_arrival(void **state)
{
    struct rig *r = rig_of(state);
    struct reply p;

    rig_start(r, &p, "POST", "/v1/claim", "{\"bot\":\"shop\",\"wait\":30}");
    rig_step(r);
    assert_false(p.answered);
    assert_int_equal(api_next_deadline(r->api), r->w.now + 30000);
    world_wait(&r->w, 29999);
    rig_step(r);
    assert_false(p.answered);
    rig_arrive(r, 5, 42);
    rig_step(r);
    assert_true(p.answered);
    assert_int_equal(json_length(json_get(p.root, "events")), 1);
    assert_int_equal(api_next_deadline(r->api), TIME_NEVER);
    reply_clear(&p);
}

static void test_claim_answers_empty_when_its_time_is_up(void **state)
{
    struct rig *r = rig_of(state);
    struct reply p;

    rig_start(r, &p, "POST", "/v1/claim", "{\"bot\":\"shop\",\"wait\":\"2s\"}");
    world_wait(&r->w, 2000);
    rig_step(r);
    assert_true(p.answered);
    assert_int_equal(p.status, 200);
    assert_int_equal(json_length(json_get(p.root, "events")), 0);
    reply_clear(&p);
}

static void test_waiters_take_turns(void **state)
{
    struct rig *r = rig_of(state);
    struct reply a, b;

    rig_start(r, &a, "POST", "/v1/claim", "{\"bot\":\"shop\",\"wait\":30,\"max\":100}");
    rig_start(r, &b, "POST", "/v1/claim", "{\"bot\":\"shop\",\"wait\":30,\"max\":100}");
    world_begin(&r->w);
    for (int i = 0; i < 4; i++)
        world_accept(&r->w, 10 + i, 100 + i, "x");
    world_commit(&r->w);
    rig_step(r);
    assert_true(a.answered && b.answered);
    assert_int_equal(json_length(json_get(a.root, "events")), 2);
    assert_int_equal(json_length(json_get(b.root, "events")), 2);
    reply_clear(&a);
    reply_clear(&b);
}

static void test_gone_client_takes_nothing(void **state)
{
    struct rig *r = rig_of(state);
    struct reply p;

    rig_start(r, &p, "POST", "/v1/claim", "{\"bot\":\"shop\",\"wait\":30}");
    rig_step(r);
    api_cancel(p.call);
    rig_arrive(r, 5, 42);
    rig_step(r);
    assert_false(p.answered);
    world_expect(&r->w, 1, STATE_PENDING, REASON_NONE, 0);
    assert_int_equal(world_state(&r->w, 1).claimed_at, 0);
}

/* The claim is in the batch, its callback still to come, when the client goes. */
static void test_client_gone_before_the_commit_returns_it(void **state)
{
    struct rig *r = rig_of(state);
    struct reply p;

    rig_arrive(r, 5, 42);
    rig_start(r, &p, "POST", "/v1/claim", "{\"bot\":\"shop\",\"wait\":30}");
    spool_work(r->w.sp);
    api_tick(r->api);
    api_cancel(p.call);
    spool_commit(r->w.sp);
    rig_step(r);
    assert_false(p.answered);
    world_expect(&r->w, 1, STATE_PENDING, REASON_NONE, 0);
    assert_int_equal(world_state(&r->w, 1).interrupted, 0); /* nobody had it */
    assert_int_equal(world_state(&r->w, 1).n_history, 0);
    world_verify(&r->w);
}

static void test_ack_answers_only_when_durable(void **state)
{
    struct rig *r = rig_of(state);
    struct reply claim, p;

    arrive_and_claim(r, &claim);
    char *body = word(reply_event(&claim, 0), "");
    rig_start(r, &p, "POST", "/v1/ack", body);
    assert_false(p.answered);
    spool_commit(r->w.sp);
    assert_true(p.answered);
    assert_int_equal(p.status, 200);
    world_expect(&r->w, 1, STATE_DONE, REASON_NONE, 1);
    reply_clear(&p);
    rig_refused(r, 409, "lost", "POST", "/v1/ack", body);
    free(body);
    reply_clear(&claim);
}

static void test_ack_of_a_gone_client_still_counts(void **state)
{
    struct rig *r = rig_of(state);
    struct reply claim, p;

    arrive_and_claim(r, &claim);
    char *body = word(reply_event(&claim, 0), "");
    rig_start(r, &p, "POST", "/v1/ack", body);
    api_cancel(p.call);
    rig_step(r);
    assert_false(p.answered);
    world_expect(&r->w, 1, STATE_DONE, REASON_NONE, 1);
    free(body);
    reply_clear(&claim);
}

static void test_nack(void **state)
{
    struct rig *r = rig_of(state);
    struct reply claim, p;

    arrive_and_claim(r, &claim);
    char *body = word(reply_event(&claim, 0), ",\"error\":\"no stock\",\"retry_after\":90");
    rig_expect(r, &p, 200, "POST", "/v1/nack", body);
    struct event_state st = world_state(&r->w, 1);
    assert_int_equal(st.state, STATE_PENDING);
    assert_int_equal(st.next_retry_at, r->w.now + 90000);
    assert_string_equal(st.error, "no stock");
    free(body);
    reply_clear(&p);
    reply_clear(&claim);

    world_wait(&r->w, 90000);
    rig_expect(r, &claim, 200, "POST", "/v1/claim", "{\"bot\":\"shop\"}");
    assert_int_equal(reply_number(reply_event(&claim, 0), "attempt"), 2);
    body = word(reply_event(&claim, 0), ",\"dead\":true");
    rig_expect(r, &p, 200, "POST", "/v1/nack", body);
    world_expect(&r->w, 1, STATE_DEAD, REASON_REJECTED, 2);
    free(body);
    reply_clear(&p);
    reply_clear(&claim);
}

static void test_extend(void **state)
{
    struct rig *r = rig_of(state);
    struct reply claim, p;

    rig_arrive(r, 5, 42);
    rig_expect(r, &claim, 200, "POST", "/v1/claim", "{\"bot\":\"shop\",\"lease\":10}");
    char *body = word(reply_event(&claim, 0), ",\"by\":\"1h\"");
    rig_expect(r, &p, 200, "POST", "/v1/extend", body);
    assert_int_equal(world_state(&r->w, 1).deadline, r->w.now + 3600000);
    reply_clear(&p);
    free(body);
    body = word(reply_event(&claim, 0), ",\"by\":\"13h\"");
    rig_refused(r, 422, "bad_value", "POST", "/v1/extend", body);
    free(body);
    body = word(reply_event(&claim, 0), "");
    rig_refused(r, 400, "bad_request", "POST", "/v1/extend", body);
    free(body);
    reply_clear(&claim);
}

static void test_batch_has_a_verdict_each(void **state)
{
    struct rig *r = rig_of(state);
    struct reply claim, p;

    rig_arrive(r, 5, 42);
    rig_arrive(r, 6, 43);
    rig_expect(r, &claim, 200, "POST", "/v1/claim", "{\"bot\":\"shop\",\"max\":2}");
    char *one = word(reply_event(&claim, 0), ""), *two = word(reply_event(&claim, 1), "");
    char *body = xasprintf("{\"events\":[%s,{\"id\":\"shop/5\",\"lease\":\"zz\"},%s,%s]}", one, two, one);
    rig_expect(r, &p, 200, "POST", "/v1/ack", body);
    assert_true(json_true(json_get(reply_event(&p, 0), "ok")));
    assert_string_equal(reply_text(json_get(reply_event(&p, 1), "error"), "code"), "bad_value");
    assert_true(json_true(json_get(reply_event(&p, 2), "ok")));
    assert_string_equal(reply_text(json_get(reply_event(&p, 3), "error"), "code"), "lost");
    world_expect(&r->w, 1, STATE_DONE, REASON_NONE, 1);
    world_expect(&r->w, 2, STATE_DONE, REASON_NONE, 1);
    free(one);
    free(two);
    free(body);
    reply_clear(&p);
    reply_clear(&claim);
}

/* A mistake anywhere in a batch: nothing of it is done. */
static void test_batch_with_a_mistake_does_nothing(void **state)
{
    struct rig *r = rig_of(state);
    struct reply claim;

    arrive_and_claim(r, &claim);
    char *one = word(reply_event(&claim, 0), "");
    char *body = xasprintf("{\"events\":[%s,{\"id\":\"shop/5\",\"lese\":\"zz\"}]}", one);
    rig_refused(r, 400, "bad_request", "POST", "/v1/ack", body);
    assert_int_equal(world_state(&r->w, 1).state, STATE_PROCESSING);
    free(one);
    free(body);
    reply_clear(&claim);
}

/* A newer event bears the same update_id (other bytes): the lease still finds the one that was claimed. */
static void test_ack_finds_the_claimed_one_of_two(void **state)
{
    struct rig *r = rig_of(state);
    struct reply claim, p;

    arrive_and_claim(r, &claim);
    world_begin(&r->w);
    world_accept(&r->w, 5, 42, "edited");
    world_commit(&r->w);
    char *body = word(reply_event(&claim, 0), "");
    rig_expect(r, &p, 200, "POST", "/v1/ack", body);
    world_expect(&r->w, 1, STATE_DONE, REASON_NONE, 1);
    world_expect(&r->w, 2, STATE_PENDING, REASON_NONE, 0);
    reply_clear(&p);
    free(body);
    /* but not under another event's id */
    body = xasprintf("{\"id\":\"shop/77\",\"lease\":\"%s\"}", reply_text(reply_event(&claim, 0), "lease"));
    rig_refused(r, 404, "unknown_event", "POST", "/v1/ack", body);
    free(body);
    reply_clear(&claim);
}

static void test_claims_that_are_refused(void **state)
{
    struct rig *r = rig_of(state);

    rig_refused(r, 404, "unknown_bot", "POST", "/v1/claim", "{\"bot\":\"nobody\"}");
    rig_refused(r, 404, "unknown_bot", "POST", "/v1/claim", "{\"bot\":\"a/../b\"}");
    rig_refused(r, 400, "bad_request", "POST", "/v1/claim", "{}");
    rig_refused(r, 400, "bad_request", "POST", "/v1/claim", "[]");
    rig_refused(r, 400, "bad_request", "POST", "/v1/claim", "{\"bot\"");
    rig_refused(r, 400, "bad_request", "POST", "/v1/claim", "{\"bot\":\"shop\",\"count\":1}");
    rig_refused(r, 422, "bad_value", "POST", "/v1/claim", "{\"bot\":\"shop\",\"max\":0}");
    rig_refused(r, 422, "bad_value", "POST", "/v1/claim", "{\"bot\":\"shop\",\"max\":101}");
    rig_refused(r, 422, "bad_value", "POST", "/v1/claim", "{\"bot\":\"shop\",\"wait\":\"1 fortnight\"}");
    rig_refused(r, 422, "bad_value", "POST", "/v1/claim", "{\"bot\":\"shop\",\"consumer\":\"\"}");
    r->pulled = false;
    rig_refused(r, 409, "not_pulled", "POST", "/v1/claim", "{\"bot\":\"shop\"}");
}

static void test_a_reload_ends_claims_that_wait(void **state)
{
    struct rig *r = *state;
    struct reply p = {0};

    rig_start(r, &p, "POST", "/v1/claim", "{\"bot\":\"shop\",\"wait\":30}");
    rig_step(r);
    assert_false(p.answered);
    r->pulled = false;
    rig_arrive(r, 1, 5);
    rig_step(r);
    assert_true(p.answered);
    assert_int_equal(p.status, 200);
    assert_int_equal(json_length(json_get(p.root, "events")), 0);
    assert_int_equal(world_status(&r->w).counts.pending, 1);
    reply_clear(&p);
}

/* The one it was about to get is discarded in the same tick, behind it. */
static void test_a_claim_that_comes_to_nothing_asks_again(void **state)
{
    struct rig *r = *state;
    struct reply p = {0};
    uint64_t first = rig_arrive(r, 1, 5);

    rig_arrive(r, 2, 5);
    rig_start(r, &p, "POST", "/v1/claim", "{\"bot\":\"shop\",\"wait\":30}");
    api_tick(r->api);
    assert_int_equal(spool_discard(r->w.box, first, true, "test"), ACTED);
    spool_commit(r->w.sp);
    assert_false(p.answered);
    assert_true(api_next_deadline(r->api) <= r->w.now);
    rig_step(r);
    assert_true(p.answered);
    assert_int_equal(reply_number(reply_event(&p, 0), "update_id"), 2);
    reply_clear(&p);
}

static void test_paused_claims_answer_empty(void **state)
{
    struct rig *r = rig_of(state);
    struct reply p;

    rig_arrive(r, 5, 42);
    rig_expect(r, &p, 200, "POST", "/v1/pause", "{\"bot\":\"shop\",\"what\":\"deliver\"}");
    reply_clear(&p);
    rig_expect(r, &p, 200, "POST", "/v1/claim", "{\"bot\":\"shop\"}");
    assert_int_equal(json_length(json_get(p.root, "events")), 0);
    reply_clear(&p);
    rig_expect(r, &p, 200, "POST", "/v1/resume", "{\"bot\":\"shop\"}");
    reply_clear(&p);
    rig_expect(r, &p, 200, "POST", "/v1/claim", "{\"bot\":\"shop\"}");
    assert_int_equal(json_length(json_get(p.root, "events")), 1);
    reply_clear(&p);
}

static void test_api_free_with_waiters(void **state)
{
    struct rig *r = rig_of(state);
    struct reply a, b;

    rig_start(r, &a, "POST", "/v1/claim", "{\"bot\":\"shop\",\"wait\":30}");
    rig_start(r, &b, "GET", "/v1/tail?after=0&wait=30", NULL);
    rig_step(r);
    assert_false(a.answered || b.answered); /* teardown frees the api: the sanitizers watch */
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_claim_gives_envelope_and_update),
        TEST(test_claim_waits_for_an_arrival),
        TEST(test_claim_answers_empty_when_its_time_is_up),
        TEST(test_waiters_take_turns),
        TEST(test_gone_client_takes_nothing),
        TEST(test_client_gone_before_the_commit_returns_it),
        TEST(test_ack_answers_only_when_durable),
        TEST(test_ack_of_a_gone_client_still_counts),
        TEST(test_nack),
        TEST(test_extend),
        TEST(test_batch_has_a_verdict_each),
        TEST(test_batch_with_a_mistake_does_nothing),
        TEST(test_ack_finds_the_claimed_one_of_two),
        TEST(test_claims_that_are_refused),
        TEST(test_a_reload_ends_claims_that_wait),
        TEST(test_a_claim_that_comes_to_nothing_asks_again),
        TEST(test_paused_claims_answer_empty),
        TEST(test_api_free_with_waiters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
