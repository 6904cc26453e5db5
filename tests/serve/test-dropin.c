/* The drop-in API's pure parts: paths, arguments, filters, answers, sessions of the consumer. */
#include "../unit/unit.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "serve/dropin_answer.h"
#include "serve/dropin_bot.h"
#include "serve/dropin_filter.h"
#include "serve/dropin_request.h"

/* ---- paths -------------------------------------------------------------------------------------- */

static void test_paths(void **state)
{
    static const struct {
        const char *path, *token, *method, *passed; /* passed: to the server behind, under the token T */
    } good[] = {
        {"/bot123:abc/getMe", "123:abc", "getMe", "/botT/getMe"},
        {"/bot123%3Aabc/GETME", "123:abc", "GETME", "/botT/GETME"},
        {"/bot123:abc/test/sendMessage", "123:abc", "sendMessage", "/botT/test/sendMessage"},
        {"/botalias/get%55pdates", "alias", "getUpdates", "/botT/getUpdates"},
        {"/file/bot123:abc/photos/file_1.jpg", "123:abc", "", "/file/botT/photos/file_1.jpg"},
        {"/file/bot123:abc/a%20b", "123:abc", "", "/file/botT/a%20b"},
        {"/file/bot123:abc/a..b/...", "123:abc", "", "/file/botT/a..b/..."},
    };
    static const char *const bad[] = {
        "",
        "/",
        "/bot",
        "/bot123:abc",
        "/bot123:abc/",
        "/bot123:abc//getUpdates",
        "/bot123:abc/getUpdates/",
        "/bot123:abc/test/",
        "/bot123:abc/test/test/getMe",
        "/bot123:abc/get%2FUpdates",
        "/bot123:abc/getUpdates%00",
        "/bot123:abc/%",
        "/bot%zz/getMe",
        "/file/bot123:abc/",
        "/file/bot123:abc/../../bot123:abc/getUpdates",
        "/file/bot123:abc/%2e%2e/x",
        "/file/bot123:abc/a%2F..%2Fb",
        "/file/bot123:abc/./x",
        "/files/bot123:abc/x",
        "/v1/status",
    };
    struct dropin_target t;
    struct buf out = BUF_EMPTY;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        assert_int_equal(dropin_target_parse(slice_str(good[i].path), &t), 0);
        assert_string_equal(buf_str(&t.token), good[i].token);
        assert_string_equal(t.method, good[i].method);
        buf_clear(&out);
        dropin_target_write(&t, "T", slice_str("a=1"), &out);
        assert_int_equal(strncmp(buf_str(&out), good[i].passed, strlen(good[i].passed)), 0);
        assert_string_equal(buf_str(&out) + strlen(good[i].passed), "?a=1");
        dropin_target_free(&t);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        if (dropin_target_parse(slice_str(bad[i]), &t) == 0)
            fail_msg("accepted: %s", bad[i]);
        dropin_target_free(&t);
    }
    char *name = xcalloc(1, 100), *path;
    memset(name, 'a', 65);
    path = xasprintf("/bot1:a/%s", name);
    assert_int_equal(dropin_target_parse(slice_str(path), &t), -1);
    dropin_target_free(&t);
    free(path);
    free(name);
    buf_free(&out);
}

/* ---- arguments ---------------------------------------------------------------------------------- */

static void expect_arg(const struct dropin_args *a, const char *name, const char *value)
{
    struct buf v = BUF_EMPTY;
    bool there = dropin_arg(a, name, &v);

    if (there != (value != NULL) || (value && strcmp(buf_str(&v), value)))
        fail_msg("%s is %s, not %s", name, there ? buf_str(&v) : "absent", value ? value : "absent");
    buf_free(&v);
}

static void test_args(void **state)
{
    static const char json[] =
        "{\"offset\":-5,\"limit\":\"7\",\"timeout\":null,\"drop_pending_updates\":true,"
        "\"allowed_updates\":[\"message\", \"poll\"],\"url\":\"\"}";
    static const char multipart[] =
        "--B\r\nContent-Disposition: form-data; name=\"offset\"\r\n\r\n12\r\n"
        "--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x\"\r\n\r\nyy\r\n"
        "--B--\r\n";
    static const char form[] = "offset=3&timeout=99&offset=4&allowed_updates=%5B%22poll%22%5D";
    struct dropin_args a;

    (void)state;
    assert_int_equal(dropin_args_read(slice_str("limit=3"), slice_str("Application/JSON; charset=utf-8"),
                                      slice_str(json), &a),
                     0);
    expect_arg(&a, "limit", "3"); /* the query comes first */
    expect_arg(&a, "offset", "-5");
    expect_arg(&a, "timeout", NULL);
    expect_arg(&a, "url", "");
    expect_arg(&a, "allowed_updates", "[\"message\", \"poll\"]");
    expect_arg(&a, "nothing", NULL);
    assert_true(dropin_arg_true(&a, "drop_pending_updates"));
    assert_false(dropin_arg_true(&a, "limit"));
    assert_int_equal(dropin_arg_int(&a, "offset", 0, -100, 100), -5);
    assert_int_equal(dropin_arg_int(&a, "timeout", 9, 0, 50), 9);
    dropin_args_free(&a);

    assert_int_equal(
        dropin_args_read(slice_str(""), slice_str("application/x-www-form-urlencoded"), slice_str(form), &a),
        0);
    expect_arg(&a, "offset", "3");
    expect_arg(&a, "allowed_updates", "[\"poll\"]");
    assert_int_equal(dropin_arg_int(&a, "timeout", 0, 0, 50), 50);
    assert_int_equal(dropin_arg_int(&a, "limit", 100, 1, 100), 100);
    dropin_args_free(&a);

    assert_int_equal(dropin_args_read(slice_str(""), slice_str("multipart/form-data; boundary=B"),
                                      slice_str(multipart), &a),
                     0);
    expect_arg(&a, "offset", "12");
    expect_arg(&a, "f", NULL);
    dropin_args_free(&a);

    assert_int_equal(dropin_args_read(slice_str("offset=12.5&limit=x&timeout=99999999999999999999"),
                                      slice_str(""), slice_str(""), &a),
                     0);
    assert_int_equal(dropin_arg_int(&a, "offset", 0, -100, 100), 12);
    assert_int_equal(dropin_arg_int(&a, "limit", 100, 1, 100), 1);
    assert_int_equal(dropin_arg_int(&a, "timeout", 0, 0, 50), 50);
    dropin_args_free(&a);

    static const char *const broken[] = {"[1]", "{", "nonsense"};
    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        assert_int_equal(
            dropin_args_read(slice_str(""), slice_str("application/json"), slice_str(broken[i]), &a), -1);
        dropin_args_free(&a);
    }
}

/* ---- filters ------------------------------------------------------------------------------------ */

static void test_filter(void **state)
{
    struct dropin_filter f = {.mode = FILTER_ALL};

    (void)state;
    assert_true(dropin_filter_wants(&f, "chat_member"));
    assert_false(dropin_filter_set(&f, slice_str("null")));
    assert_false(dropin_filter_set(&f, slice_str("")));
    assert_false(dropin_filter_set(&f, slice_str("[\"message\"")));
    assert_true(dropin_filter_wants(&f, "chat_member")); /* none of these was a list */

    assert_true(dropin_filter_set(&f, slice_str("[\"Message\",\"chat_member\",\"of_tomorrow\"]")));
    assert_true(dropin_filter_wants(&f, "message"));
    assert_true(dropin_filter_wants(&f, "chat_member"));
    assert_true(dropin_filter_wants(&f, "of_tomorrow"));
    assert_false(dropin_filter_wants(&f, "poll"));
    assert_false(dropin_filter_set(&f, slice_str("{}")));
    assert_false(dropin_filter_wants(&f, "poll")); /* the list is remembered */

    static const char *const empty[] = {"[]", "[\"unheard_of\"]", "[1]"};
    for (size_t i = 0; i < ARRAY_LEN(empty); i++) {
        assert_true(dropin_filter_set(&f, slice_str(empty[i])));
        assert_true(dropin_filter_wants(&f, "poll"));
        assert_true(dropin_filter_wants(&f, "kind_of_next_year"));
        assert_false(dropin_filter_wants(&f, "chat_member"));
        assert_false(dropin_filter_wants(&f, "message_reaction"));
        assert_false(dropin_filter_wants(&f, "message_reaction_count"));
    }
    dropin_filter_clear(&f);
    assert_true(dropin_filter_wants(&f, "chat_member"));
}

/* ---- answers ------------------------------------------------------------------------------------ */

static void test_answers(void **state)
{
    struct buf b = BUF_EMPTY;

    (void)state;
    dropin_error(&b, 409, "Conflict: x");
    assert_string_equal(buf_str(&b), "{\"ok\":false,\"error_code\":409,\"description\":\"Conflict: x\"}");
    buf_clear(&b);
    dropin_result(&b, "true", "Webhook is already deleted");
    assert_string_equal(buf_str(&b),
                        "{\"ok\":true,\"result\":true,\"description\":\"Webhook is already deleted\"}");
    buf_clear(&b);
    dropin_result(&b, "{\"url\":\"\"}", NULL);
    assert_string_equal(buf_str(&b), "{\"ok\":true,\"result\":{\"url\":\"\"}}");
    buf_free(&b);
}

/* Only the id's digits change, and only at the top. */
static void test_updates(void **state)
{
    static const struct {
        const char *in, *out;
    } rows[] = {
        {"{\"update_id\":5,\n\"message\":{\"text\":\"\xff\\u0000\"}}",
         "{\"update_id\":77,\n\"message\":{\"text\":\"\xff\\u0000\"}}"},
        {"{\"message\":{\"update_id\":5}, \"update_id\" : 123456 }",
         "{\"message\":{\"update_id\":5}, \"update_id\" : 77 }"},
        {" {\"poll\":{}}", "{\"update_id\":77,\"poll\":{}}"},
        {"{ }", "{\"update_id\":77 }"},
        {"{broken", "{\"update_id\":77}"},
        {"", "{\"update_id\":77}"},
        {"[1]", "{\"update_id\":77}"},
    };
    struct buf b = BUF_EMPTY;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        buf_clear(&b);
        dropin_update(&b, slice_str(rows[i].in), 77);
        assert_string_equal(buf_str(&b), rows[i].out);
    }
    buf_free(&b);
}

/* ---- the consumer's sessions -------------------------------------------------------------------- */

static void test_consumer(void **state)
{
    struct consumer c = {0};
    int64_t now = 1000000;

    (void)state;
    consumer_polls(&c, 0, now);
    assert_int_equal(c.since, now);
    consumer_confirmed(&c, 0);
    consumer_polls(&c, 0, now += 10); /* nothing came yet: still the same */
    assert_int_equal(c.since, 1000000);
    consumer_polls(&c, 8, now += 10);
    consumer_confirmed(&c, 3);
    assert_int_equal(c.confirmed, 3);
    assert_int_equal(c.before_until, 0);

    consumer_polls(&c, 0, now += 10); /* knows of no offset: new */
    assert_int_equal(c.confirmed, 0);
    assert_int_equal(c.before, 3);
    assert_int_equal(c.before_until, now - 10);
    assert_int_equal(c.since, now);

    consumer_starts(&c); /* one that dies before it confirms anything hides nothing */
    consumer_polls(&c, 0, now += 10);
    assert_int_equal(c.before, 3);
    assert_int_equal(c.since, now);

    consumer_polls(&c, 10, now += 10);
    consumer_confirmed(&c, 2);
    consumer_polls(&c, 12, now += SECONDS(300)); /* after a gap */
    assert_int_equal(c.before, 2);
    assert_int_equal(c.confirmed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),   cmocka_unit_test(test_args),    cmocka_unit_test(test_filter),
        cmocka_unit_test(test_answers), cmocka_unit_test(test_updates), cmocka_unit_test(test_consumer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
