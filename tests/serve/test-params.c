/* Parameters of requests and filters; links nothing but the pure rooms below serve/. */
#include "../unit/unit.h"

#include "serve/api_params.h"

#define NOW INT64_C(1795974368000) /* 2026-11-29T17:46:08Z */

static const char *const accepts[] = {FILTER_NAMES, "limit", "dry_run", "wait", NULL};

static void test_times(void **state)
{
    static const struct {
        const char *text;
        int64_t ms; /* -1: refused */
    } rows[] = {
        {"1795974368", NOW},
        {"1795974368.5", NOW + 500},
        {"1795974368.1239", NOW + 123},
        {"2026-11-29T17:46:08Z", NOW},
        {"2026-11-29T17:46:08.250Z", NOW + 250},
        {"2026-11-29", NOW - (17 * 3600 + 46 * 60 + 8) * 1000},
        {"2h", NOW - 7200000},
        {"90m", NOW - 5400000},
        {"100000d", 1}, /* before the epoch: all of time */
        {"", -1},
        {".", -1},
        {"1.", -1},
        {"-5", -1},
        {"1.2.3", -1},
        {"2026-13-01", -1},
        {"2026-11-29T17:46:08", -1},
        {"2026-11-29T17:46:08Zx", -1},
        {"2026-11-29T17:46:08+01:00", -1},
        {"1960-01-01", -1},
        {"soon", -1},
        {"99999999999999999999", -1},
        {"2h 3m", -1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t ms = -1;
        int rc = param_time(slice_str(rows[i].text), NOW, &ms);
        check_row(i, rows[i].ms < 0 ? rc < 0 : rc == 0 && ms == rows[i].ms);
    }
}

static void test_filter_from_query_and_body_alike(void **state)
{
    static const char query[] =
        "bot=shop&state=dead%2Cdone&chat=-100123&kind=message&since=2h&error=no+stock";
    static const char body[] =
        "{\"bot\":\"shop\",\"state\":[\"dead\",\"done\"],\"chat\":-100123,\"kind\":\"message\","
        "\"since\":\"2h\",\"error\":\"no stock\",\"user\":null}";

    (void)state;
    for (int form = 0; form < 2; form++) {
        struct params p;
        struct param_error e;
        struct spool_filter f;
        struct filter_bot bot;
        bool any = false;
        assert_int_equal(params_read(form ? slice_str(NULL) : LIT(query), form ? LIT(body) : slice_str(NULL),
                                     accepts, &p, &e),
                         0);
        assert_int_equal(filter_read(&p, NOW, &f, &bot, &any, &e), 0);
        assert_string_equal(f.bot, "shop");
        assert_true(f.states[STATE_DEAD] && f.states[STATE_DONE] && !f.states[STATE_PENDING]);
        assert_true(f.has_chat && !f.has_user && any);
        assert_int_equal(f.chat, -100123);
        assert_int_equal(f.box, -1);
        assert_int_equal(f.since, NOW - 7200000);
        assert_int_equal(f.until, 0);
        assert_string_equal(f.error, "no stock");
        params_free(&p);
    }
}

static void test_mistakes(void **state)
{
    static const struct {
        const char *query, *body;
        int status;
        const char *says;
    } rows[] = {
        {"chats=1", NULL, 400, "unknown parameter \"chats\"; accepted: bot, box"},
        {"", "{\"chats\":1}", 400, "unknown member \"chats\""},
        {"", "{\"chats\":null}", 400, "unknown member \"chats\""},
        {"chat=1", "{\"chat\":1}", 400, "twice"},
        {"chat=%4", NULL, 400, "escape"},
        {"chat=%00", NULL, 400, "escape"},
        {"", "[1]", 400, "object"},
        {"", "{", 400, "not JSON"},
        {"chat=x", NULL, 422, "whole number"},
        {"chat=99999999999999999999", NULL, 422, "whole number"},
        {"box=up", NULL, 422, "in or out"},
        {"state=", NULL, 422, "pending, processing, done, dead"},
        {"state=dead,", NULL, 422, "pending, processing, done, dead"},
        {"", "{\"state\":[\"dead\",7]}", 422, "pending, processing, done, dead"},
        {"since=yesterday", NULL, 422, "2h"},
        {"bot=123456789012345678901234567890123", NULL, 422, "1 to 32"},
        {"bot=", NULL, 422, "1 to 32"},
        {"", "{\"bot\":\"a\\u0000b\"}", 422, "1 to 32"},
        {"", "{\"kind\":[]}", 422, "1 to 63"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct params p;
        struct param_error e = {0};
        struct spool_filter f;
        struct filter_bot bot;
        int rc = params_read(slice_str(rows[i].query), slice_str(rows[i].body), accepts, &p, &e);
        if (rc == 0)
            rc = filter_read(&p, NOW, &f, &bot, NULL, &e);
        check_row(i, rc < 0 && e.status == rows[i].status && strstr(e.text, rows[i].says));
        params_free(&p);
    }
}

static void test_numbers_times_booleans(void **state)
{
    struct params p;
    struct param_error e;
    int64_t limit = 7, wait = 9;
    bool dry = true;

    (void)state;
    assert_int_equal(params_read(LIT("dry_run=0"), LIT("{\"wait\":\"1m\"}"), accepts, &p, &e), 0);
    assert_int_equal(params_i64(&p, "limit", 1, 100, &limit, &e), 0);
    assert_int_equal(limit, 7); /* absent: as it was */
    assert_int_equal(params_ms(&p, "wait", 0, 60000, &wait, &e), 0);
    assert_int_equal(wait, 60000);
    assert_int_equal(params_ms(&p, "wait", 0, 59999, &wait, &e), -1);
    assert_int_equal(e.status, 422);
    assert_int_equal(params_bool(&p, "dry_run", &dry, &e), 0);
    assert_false(dry);
    params_free(&p);
    assert_int_equal(params_read(LIT("dry_run=maybe&wait=0.25"), LIT(""), accepts, &p, &e), 0);
    assert_int_equal(params_bool(&p, "dry_run", &dry, &e), -1);
    assert_int_equal(params_ms(&p, "wait", 0, 60000, &wait, &e), 0);
    assert_int_equal(wait, 250);
    params_free(&p);
}

static void test_too_many(void **state)
{
    struct buf query = BUF_EMPTY;
    const char *names[41] = {0};
    struct params p;
    struct param_error e;

    (void)state;
    for (int i = 0; i < 40; i++) {
        buf_printf(&query, "a%d=1&", i);
        names[i] = xasprintf("a%d", i);
    }
    assert_int_equal(params_read(buf_slice(&query), LIT(""), names, &p, &e), -1);
    assert_int_equal(e.status, 400);
    params_free(&p);
    for (int i = 0; i < 40; i++)
        free((void *)(uintptr_t)names[i]);
    buf_free(&query);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),    cmocka_unit_test(test_filter_from_query_and_body_alike),
        cmocka_unit_test(test_mistakes), cmocka_unit_test(test_numbers_times_booleans),
        cmocka_unit_test(test_too_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
