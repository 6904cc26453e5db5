/* When the poll asks and when it does not: its waits after each kind of failure, the token read anew, pause and stop. */
#include "rig.h"

static void test_pace(void **state)
{
    (void)state;
    tick();
    now += 300;
    REPLY_IDS(); /* empty at once */
    expect_wait(1000);
    now += 30000;
    REPLY_IDS(); /* empty after a long poll */
    expect_asked(0, 100);
    REPLY_IDS(1, 2);
    expect_asked(3, 100);
    now += 30000;
    REPLY_IDS(1, 2); /* only duplicates */
    expect_wait(1000);
    assert_int_equal(api.asked.offset, 3);
}

static void test_network_backoff(void **state)
{
    static const int64_t waits[] = {1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000};

    (void)state;
    tick();
    for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
        reply_network(HTTP_REFUSED, false, 0);
        expect_wait(waits[i]);
    }
    assert_string_equal(trouble(), "broken");
    REPLY_IDS(1);
    tick();
    assert_string_equal(trouble(), "");
    reply_network(HTTP_CUT, true, 20000);
    expect_wait(1000);
}

static void test_idle_end(void **state)
{
    (void)state;
    tick();
    now += 10000;
    reply_network(HTTP_RESET, true, 10000);
    expect_asked(0, 100);
    assert_string_equal(trouble(), "");
    now += 9999;
    reply_network(HTTP_RESET, true, 9999);
    expect_wait(1000);
    assert_string_equal(trouble(), "broken");
}

static void test_limited(void **state)
{
    (void)state;
    tick();
    reply((struct botapi_reply){.class = BOTAPI_LIMITED, .retry_after_s = 17});
    expect_wait(17000);
    reply((struct botapi_reply){.class = BOTAPI_LIMITED, .retry_after_s = INT64_MAX});
    expect_wait(HOURS(24));
}

static void test_another_kind_starts_anew(void **state)
{
    (void)state;
    tick();
    for (int i = 0; i < 4; i++) {
        reply_network(HTTP_RESET, true, 0);
        expect_wait(1000 << i);
    }
    reply_error(BOTAPI_REJECTED);
    expect_wait(1000);
    reply_garbled("{\"ok\":true,\"result\":[{]}");
    expect_wait(1000);
    REPLY_IDS(1);
    tick();
}

/* What others go by: since when it fails and why, and how often by kind. */
static void test_standing(void **state)
{
    struct intake_standing st = {.good_at = -1};

    (void)state;
    tick();
    REPLY_IDS(1);
    tick();
    poll_standing(p, &st);
    assert_int_equal(st.good_at, now);
    assert_int_equal(st.failing_since, 0);
    assert_string_equal(st.reason, "");
    assert_false(poll_fails_softly(p));
    int64_t since = now;
    reply_network(HTTP_RESET, true, 0);
    expect_wait(1000);
    reply((struct botapi_reply){.class = BOTAPI_TRANSIENT, .status = 502, .retry_after_s = -1});
    expect_wait(2000);
    assert_true(poll_fails_softly(p));
    reply((struct botapi_reply){.class = BOTAPI_LIMITED, .retry_after_s = 3});
    expect_wait(3000);
    assert_false(poll_fails_softly(p)); /* it asked us to be silent */
    reply_garbled("{\"ok\":true,\"result\":[{]}");
    tick();
    poll_standing(p, &st);
    assert_int_equal(st.failing_since, since);
    assert_string_equal(st.reason, "unreadable");
    for (int e = 0; e < POLL_ERRORS; e++)
        assert_int_equal(st.errors[e], e == POLL_ERROR_NETWORK || e == POLL_ERROR_5XX ||
                                           e == POLL_ERROR_429 || e == POLL_ERROR_UNREADABLE);
    sp.paused = true; /* a person's pause is no failure */
    tick();
    poll_standing(p, &st);
    assert_int_equal(st.failing_since, 0);
}

static void test_conflict(void **state)
{
    (void)state;
    tick();
    reply((struct botapi_reply){
        .class = BOTAPI_CONFLICT, .conflict = CONFLICT_OTHER_POLL, .retry_after_s = -1});
    expect_wait(3000);
    assert_int_equal(api.drops, 1);
    assert_non_null(strstr(trouble(), "tgspool pause shop intake"));
    reply((struct botapi_reply){.class = BOTAPI_CONFLICT, .conflict = CONFLICT_WEBHOOK, .retry_after_s = -1});
    expect_wait(6000);
    assert_int_equal(api.drops, 2);
    assert_non_null(strstr(trouble(), "a webhook is set"));
    assert_non_null(strstr(trouble(), "tgspool webhook delete shop"));
    reply((struct botapi_reply){
        .class = BOTAPI_CONFLICT, .conflict = CONFLICT_SET_WEBHOOK, .retry_after_s = -1});
    expect_wait(12000);
    assert_non_null(strstr(trouble(), "a webhook was just set"));
}

static void check_token_is_read_anew(enum botapi_class class)
{
    tick();
    reply_error(class);
    expect_wait(60000);
    assert_int_equal(token_reads, 1);
    assert_string_equal(api.token, "1:first");
    snprintf(token_in_file, sizeof(token_in_file), "1:second");
    reply_error(class);
    expect_wait(60000);
    assert_string_equal(api.token, "1:second");
    token_unreadable = true;
    reply_error(class);
    tick();
    now += 60000;
    tick();
    assert_false(api.busy);
    assert_string_equal(trouble(), "the token file is gone");
    token_unreadable = false;
    expect_wait(60000);
    assert_int_equal(token_reads, 4);
    REPLY_IDS(1);
    tick();
    assert_int_equal(token_reads, 4);
}

static void test_unauthorized(void **state)
{
    (void)state;
    check_token_is_read_anew(BOTAPI_UNAUTHORIZED);
}

static void test_not_found(void **state)
{
    (void)state;
    check_token_is_read_anew(BOTAPI_NOT_FOUND);
}

static void test_reload_ends_the_wait(void **state)
{
    (void)state;
    tick();
    reply_error(BOTAPI_UNAUTHORIZED);
    tick();
    poll_set_token(p, "1:first"); /* the same: goes on waiting */
    tick();
    assert_false(api.busy);
    poll_set_token(p, "1:third");
    expect_asked(0, 100);
    assert_string_equal(api.token, "1:third");
    assert_int_equal(token_reads, 0);
}

static void test_pause(void **state)
{
    (void)state;
    tick();
    sp.paused = true;
    assert_int_equal(tick(), TIME_NEVER);
    assert_int_equal(api.cancels, 1);
    now += HOURS(1);
    tick();
    assert_false(api.busy);
    sp.paused = false;
    expect_asked(0, 100);
}

static void test_no_room(void **state)
{
    struct poll_status st;

    (void)state;
    tick();
    sp.held = "the disk has 120 MB free, needs 256 MB";
    assert_int_equal(tick(), TIME_NEVER);
    assert_int_equal(api.cancels, 1);
    poll_status(p, &st);
    assert_string_equal(st.state, "held");
    assert_string_equal(st.held, sp.held);
    sp.held = NULL;
    expect_asked(0, 100);
    poll_status(p, &st);
    assert_string_equal(st.held, "");
}

static void test_sick_store(void **state)
{
    (void)state;
    sp.sick = true;
    tick();
    assert_int_equal(api.calls, 0);
    sp.sick = false;
    expect_asked(0, 100);
}

static void test_stop(void **state)
{
    (void)state;
    tick();
    REPLY_IDS(10);
    tick();
    poll_stop(p);
    tick();
    assert_int_equal(api.cancels, 1);
    assert_true(api.busy);
    assert_int_equal(api.asked.offset, 11);
    assert_int_equal(api.asked.limit, 1);
    assert_int_equal(api.asked.timeout_s, 0);
    assert_int_equal(api.asked.deadline_ms, 2000);
    assert_false(poll_stopped(p));
    REPLY_IDS(11); /* thrown away */
    tick();
    assert_true(poll_stopped(p));
    assert_int_equal(sp.n_got, 1);
}

static void test_stop_while_saving(void **state)
{
    (void)state;
    tick();
    REPLY_IDS(10);
    poll_tick(p, now);
    poll_stop(p);
    poll_tick(p, now);
    assert_false(api.busy);
    commit(true);
    tick();
    assert_int_equal(api.asked.offset, 11);
    assert_int_equal(api.asked.limit, 1);
    reply_network(HTTP_TIMEOUT, true, 2000);
    assert_true(poll_stopped(p));
}

static void test_stop_with_nothing_to_say(void **state)
{
    (void)state;
    tick();
    poll_stop(p);
    tick();
    assert_true(poll_stopped(p));
    assert_int_equal(api.calls, 1);
}

static void test_stop_while_paused(void **state)
{
    (void)state;
    tick();
    REPLY_IDS(10);
    tick();
    sp.paused = true;
    tick();
    unsigned calls = api.calls;
    poll_stop(p);
    tick();
    assert_true(poll_stopped(p));
    assert_int_equal(api.calls, calls);
}

static void test_rests_only_when_nothing_is_under_way(void **state)
{
    (void)state;
    tick();
    REPLY_IDS(10);
    poll_tick(p, now);
    sp.paused = true;
    poll_tick(p, now);
    assert_false(poll_rests(p));
    commit(true);
    poll_tick(p, now);
    assert_true(poll_rests(p));
    assert_int_equal(sp.stored.offset, 11);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_pace),
        TEST(test_network_backoff),
        TEST(test_idle_end),
        TEST(test_limited),
        TEST(test_another_kind_starts_anew),
        TEST(test_standing),
        TEST(test_conflict),
        TEST(test_unauthorized),
        TEST(test_not_found),
        TEST(test_reload_ends_the_wait),
        TEST(test_pause),
        TEST(test_no_room),
        TEST(test_rests_only_when_nothing_is_under_way),
        TEST(test_sick_store),
        TEST(test_stop),
        TEST(test_stop_while_saving),
        TEST(test_stop_with_nothing_to_say),
        TEST(test_stop_while_paused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
