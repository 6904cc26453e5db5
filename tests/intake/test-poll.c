/* The poll against a scripted Bot API client and a scripted spool: the offset rules, and what is confirmed and when. */
#include "rig.h"

#include "wire/json.h"

static void test_first_poll(void **state)
{
    (void)state;
    expect_asked(0, 100);
    assert_int_equal(api.asked.timeout_s, 30);
    assert_int_equal(api.asked.deadline_ms, 40000);
}

static void test_next_only_when_durable(void **state)
{
    (void)state;
    tick();
    REPLY_IDS(10, 11, 12);
    poll_tick(p, now);
    assert_int_equal(sp.n_got, 3);
    poll_tick(p, now);
    assert_false(api.busy); /* not yet written */
    commit(true);
    poll_tick(p, now);
    assert_true(api.busy);
    assert_int_equal(api.asked.offset, 13);
    assert_int_equal(sp.stored.offset, 13);
    assert_string_equal(sp.stored.api_root, "http://127.0.0.1:1");
}

/* What Telegram dropped before it was asked is counted, once, when the batch is sure. */
static void test_gaps(void **state)
{
    (void)state;
    tick();
    REPLY_IDS(10, 11, 15); /* the first of all: 12..14 */
    tick();
    assert_int_equal(sp.missing, 3);
    REPLY_IDS(16, 17);
    tick();
    assert_int_equal(sp.missing, 3);
    REPLY_IDS(20, 22); /* 18, 19, 21; but the write fails */
    tick_with(false);
    assert_int_equal(sp.missing, 3);
    sp.n_known = 0; /* the spool lost them */
    expect_wait(1000);
    REPLY_IDS(20, 22);
    tick();
    assert_int_equal(sp.missing, 6);
    sp.known[sp.n_known++] = 30; /* known already: what is before it was counted with it */
    REPLY_IDS(16, 30, 31, 33);
    tick();
    assert_int_equal(sp.missing, 7);
    REPLY_IDS(7, 8, 10); /* ids began anew, lower */
    tick();
    assert_int_equal(sp.missing, 8);
}

/* tgspool was off over a week-end; and for so long that ids may have begun anew. */
static void test_gaps_after_silence(void **state)
{
    (void)state;
    tick();
    REPLY_IDS(10);
    tick();
    REPLY_IDS();
    tick();
    now += HOURS(60);
    expect_asked(0, 100);
    REPLY_IDS(500);
    tick();
    assert_int_equal(sp.missing, 489);
    REPLY_IDS();
    now += HOURS(24 * 7);
    tick();
    REPLY_IDS(900);
    tick();
    assert_int_equal(sp.missing, 489);
}

static void test_lost_batch_is_not_confirmed(void **state)
{
    (void)state;
    tick();
    REPLY_IDS(10);
    tick();
    assert_int_equal(api.asked.offset, 11);
    REPLY_IDS(11, 12);
    tick_with(false);
    expect_wait(1000);
    assert_int_equal(api.asked.offset, 11);
}

static void test_one_lost_part_is_enough(void **state)
{
    (void)state;
    tick();
    sp.batch_max = 2;
    REPLY_IDS(10, 11, 12);
    poll_tick(p, now); /* full: goes on after the commit */
    assert_int_equal(sp.n_got, 2);
    commit(false);
    poll_tick(p, now);
    commit(true);
    expect_wait(1000);
    assert_int_equal(api.asked.offset, 0);
}

static void test_parts(void **state)
{
    (void)state;
    tick();
    sp.batch_max = 2;
    REPLY_IDS(10, 11, 12, 13, 14);
    for (int i = 0; i < 3; i++) {
        assert_false(api.busy);
        poll_tick(p, now);
        commit(true);
    }
    expect_asked(15, 100);
    assert_int_equal(sp.n_got, 5);
}

/* The store can be full for long: a part is waited for once. */
static void test_part_of_a_stall(void **state)
{
    (void)state;
    tick();
    sp.batch_max = 2;
    REPLY_IDS(10, 11, 12);
    for (int i = 0; i < 100; i++)
        poll_tick(p, now);
    assert_int_equal(sp.n_fns, 1);
    assert_int_equal(sp.n_got, 2);
    sp.sick = true; /* and may fail then: that is noticed */
    poll_tick(p, now);
    sp.sick = false;
    commit(false);
    poll_tick(p, now);
    expect_wait(1000);
    assert_int_equal(api.asked.offset, 0);
}

static void test_store_refuses(void **state)
{
    (void)state;
    tick();
    sp.fail_accept = true;
    REPLY_IDS(10);
    tick();
    sp.fail_accept = false;
    expect_wait(1000);
    assert_int_equal(api.asked.offset, 0);
    assert_int_equal(sp.stored.offset, 0);
}

static void test_id_reset(void **state)
{
    (void)state;
    tick();
    REPLY_IDS(727334708);
    expect_asked(727334709, 100);
    REPLY_IDS(117314199);
    expect_asked(117314200, 100);
    REPLY_IDS(117314200, 117314201);
    expect_asked(117314202, 100);
}

static void test_last_of_the_batch_not_highest(void **state)
{
    (void)state;
    tick();
    REPLY_IDS(900, 5);
    expect_asked(6, 100);
}

static void test_no_offset_after_a_day(void **state)
{
    (void)state;
    tick();
    REPLY_IDS(50);
    tick();
    now += HOURS(24) - 1;
    REPLY_IDS();
    expect_asked(51, 100);
    now += 30000;
    REPLY_IDS();
    expect_asked(0, 100);
    now += 30000;
    REPLY_IDS(7); /* the ids started anew */
    expect_asked(8, 100);
}

static void test_other_api_root(void **state)
{
    (void)state;
    poll_free(p);
    snprintf(sp.stored.api_root, sizeof(sp.stored.api_root), "https://api.telegram.org");
    sp.stored.offset = 70;
    sp.stored.newest_update_at = now;
    start_poll();
    expect_asked(0, 100);
}

static void test_restart_goes_on(void **state)
{
    (void)state;
    tick();
    REPLY_IDS(70);
    tick();
    poll_free(p);
    start_poll();
    expect_asked(71, 100);
}

static void test_poison_with_id(void **state)
{
    (void)state;
    tick();
    REPLY_IDS(10);
    tick();
    reply_garbled("{\"ok\":true,\"result\":[{\"update_id\":11},{\"update_id\":12,,}]}");
    expect_wait(1000);
    assert_int_equal(api.asked.limit, 100);
    reply_garbled("{\"ok\":true,\"result\":[{\"update_id\":11},{\"update_id\":12,,}]}");
    expect_asked(11, 1);
    REPLY_IDS(11);
    expect_asked(12, 1);
    reply_garbled("{\"ok\":true,\"result\":[{\"update_id\":12,,}]}");
    expect_asked(13, 100);
    assert_int_equal(sp.n_got, 3);
    assert_true(sp.got[2].broken);
    assert_true(sp.got[2].has_id);
    assert_int_equal(sp.got[2].id, 12);
    assert_int_equal(sp.stored.offset, 13);
}

static void test_poison_without_id(void **state)
{
    (void)state;
    tick();
    REPLY_IDS(10);
    tick();
    for (int i = 0; i < 2; i++) {
        reply_garbled("{\"ok\":true,\"result\":[{]}");
        if (i == 0)
            expect_wait(1000);
    }
    expect_asked(11, 1);
    reply_garbled("{\"ok\":true,\"result\":[{]}");
    expect_asked(12, 100);
    assert_true(sp.got[1].broken);
    assert_false(sp.got[1].has_id);
}

static void test_garbled_once(void **state)
{
    (void)state;
    tick();
    reply_garbled("{\"ok\":true,\"result\":[{]}");
    expect_wait(1000);
    REPLY_IDS(10);
    expect_asked(11, 100);
    reply_garbled("{\"ok\":true,\"result\":[{]}");
    expect_wait(1000);
    assert_int_equal(api.asked.limit, 100);
}

static void test_html_is_no_poison(void **state)
{
    (void)state;
    tick();
    for (int i = 0; i < 5; i++) {
        reply_error(BOTAPI_TRANSIENT);
        tick();
        now += 60000;
        expect_asked(0, 100);
    }
    assert_int_equal(sp.n_got, 0);
}

static void test_updates_without_id(void **state)
{
    (void)state;
    tick();
    REPLY_IDS(10, -1, 12);
    expect_asked(13, 100);
    REPLY_IDS(13, -1);
    expect_asked(14, 100);
    REPLY_IDS(-1);
    expect_asked(15, 100);
    assert_int_equal(sp.n_got, 6);
    assert_false(sp.got[5].broken);
}

/* Without a note, the first request asks how things were; getUpdates comes only when that is durable. */
static void test_notes_what_was_before(void **state)
{
    struct json *root = json_parse(slice_str("{\"url\":\"https://old.example/x?secret\","
                                             "\"allowed_updates\":[\"message\",\"poll\"]}"),
                                   NULL);

    (void)state;
    poll_free(p);
    buf_free(&sp.note);
    start_poll();
    tick();
    assert_int_equal(api.infos, 1);
    reply_error(BOTAPI_TRANSIENT);
    tick();
    now += 1000;
    tick();
    assert_int_equal(api.infos, 2);
    reply((struct botapi_reply){.class = BOTAPI_OK, .retry_after_s = -1, .result = root});
    poll_tick(p, now);
    assert_int_equal(api.calls, 0);
    commit(false);
    poll_tick(p, now);
    now += 1000;
    tick();
    assert_int_equal(api.infos, 3); /* that was lost: once more */
    reply((struct botapi_reply){.class = BOTAPI_OK, .retry_after_s = -1, .result = root});
    tick();
    assert_int_equal(api.calls, 1);
    assert_string_equal(buf_str(&sp.note),
                        "{\"had_webhook\":true,\"allowed_updates\":[\"message\",\"poll\"]}");
    json_free(root);
    REPLY_IDS(1);
    tick();
    assert_int_equal(api.infos, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_first_poll),
        TEST(test_notes_what_was_before),
        TEST(test_next_only_when_durable),
        TEST(test_lost_batch_is_not_confirmed),
        TEST(test_gaps),
        TEST(test_gaps_after_silence),
        TEST(test_one_lost_part_is_enough),
        TEST(test_parts),
        TEST(test_part_of_a_stall),
        TEST(test_store_refuses),
        TEST(test_id_reset),
        TEST(test_last_of_the_batch_not_highest),
        TEST(test_no_offset_after_a_day),
        TEST(test_other_api_root),
        TEST(test_restart_goes_on),
        TEST(test_poison_with_id),
        TEST(test_poison_without_id),
        TEST(test_garbled_once),
        TEST(test_html_is_no_poison),
        TEST(test_updates_without_id),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
