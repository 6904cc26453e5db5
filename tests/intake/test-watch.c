/* The watch on a webhook, against the scripted Bot API client and spool of the poll's tests. */
#include "intake/watch.h"
#include "rig.h"
#include "wire/json.h"

#define OURS "https://bot.example/hook/shop"

static struct watch *w;
static char url[] = OURS;

static int begin_with(void **state, enum intake_mode intake)
{
    static char root[] = "http://127.0.0.1:1";
    struct err e = ERR_NONE;

    set_up(state);
    buf_free(&sp.note);
    bot = (struct bot_config){.name = "shop", .api_root = root, .intake = intake, .webhook_url = url};
    struct watch_options o = {.box = (struct spool_box *)&sp, .bot = &bot, .token = "1:first"};
    w = watch_new(&o, &e);
    assert_non_null(w);
    return 0;
}

static int begin(void **state)
{
    return begin_with(state, INTAKE_WEBHOOK);
}

static int begin_polls(void **state)
{
    return begin_with(state, INTAKE_POLL);
}

static int end(void **state)
{
    watch_free(w);
    return tear_down(state);
}

static int64_t turn(void)
{
    watch_tick(w, now);
    commit(true);
    return watch_tick(w, now);
}

/* The next question comes `wait` ms from now, and not before. */
static void expect_question(int64_t wait)
{
    unsigned before = api.infos;

    if (wait) {
        assert_int_equal(turn() - now, wait);
        now += wait - 1;
        turn();
        assert_int_equal(api.infos, before);
        now++;
    }
    turn();
    assert_int_equal(api.infos, before + 1);
    assert_true(api.busy);
}

static void say(const char *info)
{
    struct json *root = json_parse(slice_str(info), NULL);

    assert_non_null(root);
    reply((struct botapi_reply){.class = BOTAPI_OK, .retry_after_s = -1, .result = root});
    json_free(root);
    turn();
}

static struct watch_status status(void)
{
    struct watch_status st;

    watch_status(w, &st);
    return st;
}

static void test_ours(void **state)
{
    (void)state;
    assert_int_equal(status().found, WATCH_UNKNOWN);
    expect_question(0);
    say("{\"url\":\"" OURS "\",\"pending_update_count\":7,\"last_error_date\":1699999990,"
        "\"last_error_message\":\"Connection refused\"}");
    struct watch_status st = status();
    assert_int_equal(st.found, WATCH_OURS);
    assert_int_equal(st.pending, 7);
    assert_int_equal(st.asked_at, T0);
    assert_int_equal(st.last_error_at, INT64_C(1699999990000));
    assert_string_equal(st.last_error, "Connection refused");
    assert_string_equal(st.advice, "");
    assert_int_equal(sp.note.n, 0); /* nothing is known of before */
    expect_question(MINUTES(5));
}

static void test_taken_and_given_back(void **state)
{
    (void)state;
    expect_question(0);
    say("{\"url\":\"https://user:pw@other.example/very-secret\",\"allowed_updates\":[\"poll\"]}");
    struct watch_status st = status();
    assert_int_equal(st.found, WATCH_TAKEN);
    assert_non_null(strstr(st.advice, "other.example"));
    assert_non_null(strstr(st.advice, "tgspool webhook set shop"));
    assert_null(strstr(st.advice, "secret"));
    assert_null(strstr(st.advice, "pw"));
    assert_string_equal(buf_str(&sp.note), "{\"had_webhook\":true,\"allowed_updates\":[\"poll\"]}");
    expect_question(SECONDS(30)); /* a person may be at it */
    say("{\"url\":\"" OURS "\"}");
    assert_int_equal(status().found, WATCH_OURS);
    assert_string_equal(status().advice, "");
    assert_string_equal(buf_str(&sp.note), "{\"had_webhook\":true,\"allowed_updates\":[\"poll\"]}");
    assert_int_equal(api.calls, 0); /* it only asks */
}

static void test_unset_then_removed(void **state)
{
    (void)state;
    expect_question(0);
    say("{\"url\":\"\"}");
    assert_int_equal(status().found, WATCH_UNSET);
    assert_non_null(strstr(status().advice, "tgspool webhook set shop"));
    assert_string_equal(buf_str(&sp.note), "{\"had_webhook\":false,\"allowed_updates\":null}");
    expect_question(SECONDS(30));
    say("{\"url\":\"" OURS "\"}");
    expect_question(MINUTES(5));
    say("{\"url\":\"\"}");
    assert_int_equal(status().found, WATCH_REMOVED);
    assert_non_null(strstr(status().advice, "removed"));
    expect_question(SECONDS(30));
    say("{\"url\":\"\"}");
    assert_int_equal(status().found, WATCH_REMOVED);
}

/* An update that comes although no webhook was seen: it was set meanwhile. */
static void test_woken_by_an_update(void **state)
{
    (void)state;
    expect_question(0);
    watch_taken(w, 1);
    say("{\"url\":\"\"}");
    now += SECONDS(1);
    turn();
    assert_int_equal(api.infos, 2); /* it came while the first was under way */
    watch_taken(w, 2);
    say("{\"url\":\"\"}");
    expect_question(SECONDS(30)); /* not by every one of them */
    watch_taken(w, 3);
    now += SECONDS(40);
    say("{\"url\":\"\"}");
    assert_int_equal(api.infos, 4); /* a minute later it may */
    say("{\"url\":\"" OURS "\"}");
    assert_int_equal(status().found, WATCH_OURS);
    watch_taken(w, 4);
    expect_question(MINUTES(5)); /* and what comes now is as it should be */
}

static void test_trouble(void **state)
{
    (void)state;
    expect_question(0);
    for (int i = 0; i < 6; i++) {
        reply_network(HTTP_RESET, true, 0);
        assert_int_equal(turn() - now, 5000 << i);
        assert_string_equal(status().trouble, "broken");
        expect_question(5000 << i);
    }
    assert_int_equal(status().trouble_since, T0);
    reply_network(HTTP_RESET, true, 0);
    expect_question(MINUTES(5)); /* not longer than without trouble */
    reply((struct botapi_reply){.class = BOTAPI_LIMITED, .retry_after_s = 700, .sentence = "slowly"});
    expect_question(SECONDS(700));
    assert_false(status().refused);
    reply_error(BOTAPI_UNAUTHORIZED);
    turn();
    assert_true(status().refused);
    watch_set_token(w, "1:first");
    assert_int_equal(turn() - now, MINUTES(5)); /* the same: nothing new */
    watch_set_token(w, "1:second");
    expect_question(0);
    say("{\"url\":\"" OURS "\"}");
    assert_int_equal(status().trouble_since, 0);
    assert_false(status().refused);
    assert_string_equal(status().trouble, "");
}

static void test_an_answer_that_is_none(void **state)
{
    (void)state;
    expect_question(0);
    say("[]");
    assert_int_equal(status().found, WATCH_UNKNOWN);
    expect_question(MINUTES(5));
    say("{\"url\":7}");
    assert_int_equal(status().found, WATCH_UNKNOWN);
    assert_int_equal(sp.note.n, 0);
}

/* A bot that polls: how much waits, now and then, and oftener while polls fail; nothing else is of interest. */
static void test_polls(void **state)
{
    (void)state;
    expect_question(MINUTES(1)); /* not into the first polls */
    say("{\"url\":\"https://other.example/\",\"pending_update_count\":41}");
    struct watch_status st = status();
    assert_int_equal(st.pending, 41);
    assert_int_equal(st.asked_at, now);
    assert_string_equal(st.advice, "");
    assert_int_equal(st.wrong_since, 0);
    assert_int_equal(sp.note.n, 0); /* the poll itself keeps what was before */
    expect_question(MINUTES(5));
    say("{\"url\":\"\"}");
    watch_polls(w, true);
    expect_question(0);
    say("{\"url\":\"\",\"pending_update_count\":7}");
    expect_question(MINUTES(1));
    reply_network(HTTP_RESET, true, 0);
    expect_question(SECONDS(5)); /* Telegram is not there at all */
    say("{\"url\":\"\",\"pending_update_count\":8}");
    watch_polls(w, false);
    expect_question(MINUTES(5));
    say("{\"url\":\"\"}");
    assert_int_equal(status().pending, 0);
}

#define WATCH_TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WATCH_TEST(test_ours),
        WATCH_TEST(test_taken_and_given_back),
        WATCH_TEST(test_unset_then_removed),
        WATCH_TEST(test_woken_by_an_update),
        WATCH_TEST(test_trouble),
        WATCH_TEST(test_an_answer_that_is_none),
        cmocka_unit_test_setup_teardown(test_polls, begin_polls, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
