/* The Bot API client against a scripted HTTP client: what it sends, and the class and sentence of every kind
 * of answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "telegram/botapi.h"
#include "wire/json.h"

#define TOKEN "123456:abcdefghijklmnopqrstuvwxyzABCDEFGHI"

/* ---- the scripted HTTP client ------------------------------------------------------------------- */

static struct {
    char base_url[64], path[128];
    struct buf body;
    bool secret_path, busy;
    int64_t deadline_ms;
    http_answer_fn *fn;
    void *arg;
} http;

struct http_client *http_client_new(struct loop *l, const struct http_client_options *o, struct err *e)
{
    (void)l, (void)e;
    snprintf(http.base_url, sizeof(http.base_url), "%s", o->base_url);
    return (struct http_client *)&http;
}

void http_client_free(struct http_client *c)
{
    (void)c;
}

void http_client_request(struct http_client *c, const struct http_request *r, http_answer_fn *fn, void *arg)
{
    (void)c;
    snprintf(http.path, sizeof(http.path), "%s", r->path);
    buf_clear(&http.body);
    buf_add_slice(&http.body, r->body);
    http.secret_path = r->secret_path;
    http.deadline_ms = r->deadline_ms;
    http.fn = fn;
    http.arg = arg;
    http.busy = true;
}

bool http_client_busy(const struct http_client *c)
{
    (void)c;
    return http.busy;
}

void http_client_cancel(struct http_client *c)
{
    (void)c;
    assert_true(http.busy);
    http.busy = false;
}

void http_client_drop_connection(struct http_client *c)
{
    (void)c;
}

/* ---- driving it --------------------------------------------------------------------------------- */

static struct botapi *api;
static struct botapi_reply got;
static unsigned n_got;
static char got_name[32];

static void take(void *arg, struct botapi_reply *r)
{
    (void)arg;
    botapi_reply_free(&got);
    got = *r;
    snprintf(got_name, sizeof(got_name), "%.*s", (int)json_string(json_get(r->result, "username")).n,
             json_string(json_get(r->result, "username")).p ? json_string(json_get(r->result, "username")).p
                                                            : "");
    got.result = NULL;
    botapi_reply_moved(r);
    n_got++;
}

static void answer_with(int status, const char *body, bool complete, int64_t retry_after_s)
{
    struct http_answer a = {.status = status, .complete_by_length = complete, .retry_after_s = retry_after_s};
    unsigned before = n_got;

    buf_add_str(&a.body, body);
    http.busy = false;
    http.fn(http.arg, &a);
    buf_free(&a.body);
    assert_int_equal(n_got, before + 1);
}

static void poll_once(void)
{
    char kind[] = "message", other[] = "poll";
    char *allowed[] = {kind, other};
    struct botapi_poll q = {.offset = 7,
                            .limit = 100,
                            .timeout_s = 30,
                            .allowed_updates = allowed,
                            .n_allowed = 2,
                            .deadline_ms = 40000};

    botapi_get_updates(api, &q, take, NULL);
}

static void poll_answered(int status, const char *body)
{
    poll_once();
    answer_with(status, body, true, -1);
}

static int set_up(void **state)
{
    struct botapi_options o = {.api_root = "http://127.0.0.1:1/", .token = TOKEN};
    struct err e = ERR_NONE;

    (void)state;
    api = botapi_new(NULL, &o, &e);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_null(strstr(got.sentence, "abcdefghij"));
    botapi_reply_free(&got);
    botapi_free(api);
    buf_free(&http.body);
    return 0;
}

/* ---- tests -------------------------------------------------------------------------------------- */

static void test_request(void **state)
{
    (void)state;
    poll_once();
    assert_string_equal(http.base_url, "http://127.0.0.1:1");
    assert_string_equal(http.path, "/bot" TOKEN "/getUpdates");
    assert_true(http.secret_path);
    assert_int_equal(http.deadline_ms, 40000);
    assert_string_equal(
        buf_str(&http.body),
        "{\"offset\":7,\"limit\":100,\"timeout\":30,\"allowed_updates\":[\"message\",\"poll\"]}");
}

static void test_no_offset_and_all_kinds(void **state)
{
    struct botapi_poll q = {.limit = 1};

    (void)state;
    botapi_get_updates(api, &q, take, NULL);
    assert_null(strstr(buf_str(&http.body), "offset"));
    assert_non_null(strstr(buf_str(&http.body), "\"message\""));
    assert_non_null(strstr(buf_str(&http.body), "\"message_reaction_count\""));
    assert_non_null(strstr(buf_str(&http.body), "\"chat_member\""));
}

static void test_updates(void **state)
{
    (void)state;
    poll_answered(200, "{\"ok\":true,\"result\":[{\"update_id\":5,\n\"message\":{}},{\"update_id\":6}]}");
    assert_int_equal(got.class, BOTAPI_OK);
    assert_int_equal(got.updates.n, 2);
    assert_int_equal(got.updates.updates[1].id, 6);
    assert_string_equal(got.sentence, "");
}

static void test_get_me(void **state)
{
    (void)state;
    botapi_get_me(api, 10000, take, NULL);
    assert_string_equal(http.path, "/bot" TOKEN "/getMe");
    answer_with(200, "{\"ok\":true,\"result\":{\"id\":123456,\"username\":\"shop_bot\"}}", true, -1);
    assert_int_equal(got.class, BOTAPI_OK);
    assert_string_equal(got_name, "shop_bot");
    botapi_get_webhook_info(api, 10000, take, NULL);
    assert_string_equal(http.path, "/bot" TOKEN "/getWebhookInfo");
    answer_with(401, "{\"ok\":false,\"error_code\":401,\"description\":\"Unauthorized\"}", true, -1);
    assert_int_equal(got.class, BOTAPI_UNAUTHORIZED);
    botapi_get_me(api, 10000, take, NULL);
    answer_with(200, "<html>", true, -1);
    assert_int_equal(got.class, BOTAPI_TRANSIENT);
}

static void test_error_classes(void **state)
{
    static const struct {
        int code;
        const char *more;
        enum botapi_class class;
    } rows[] = {
        {400, "", BOTAPI_REJECTED},
        {401, "", BOTAPI_UNAUTHORIZED},
        {403, "", BOTAPI_REJECTED},
        {404, "", BOTAPI_NOT_FOUND},
        {409, "", BOTAPI_CONFLICT},
        {429, ",\"parameters\":{\"retry_after\":17}", BOTAPI_LIMITED},
        {500, "", BOTAPI_TRANSIENT},
        {502, "", BOTAPI_TRANSIENT},
        {400, ",\"parameters\":{\"migrate_to_chat_id\":-1001}", BOTAPI_MIGRATED},
    };
    char body[256];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(body, sizeof(body), "{\"ok\":false,\"error_code\":%d,\"description\":\"Because\"%s}",
                 rows[i].code, rows[i].more);
        poll_answered(rows[i].code, body);
        assert_int_equal(got.class, rows[i].class);
        assert_false(got.garbled);
        assert_true(got.sentence[0]);
        if (rows[i].class == BOTAPI_LIMITED)
            assert_int_equal(got.retry_after_s, 17);
        if (rows[i].class == BOTAPI_MIGRATED)
            assert_int_equal(got.migrate_to_chat_id, -1001);
    }
}

static void test_conflicts(void **state)
{
    static const struct {
        const char *text;
        enum botapi_conflict conflict;
    } rows[] = {
        {"Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
         CONFLICT_OTHER_POLL},
        {"Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the "
         "webhook first",
         CONFLICT_WEBHOOK},
        {"Conflict: terminated by setWebhook request", CONFLICT_SET_WEBHOOK},
        {"Conflict: something new", CONFLICT_UNKNOWN},
    };
    char body[256];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(body, sizeof(body), "{\"ok\":false,\"error_code\":409,\"description\":\"%s\"}",
                 rows[i].text);
        poll_answered(409, body);
        assert_int_equal(got.class, BOTAPI_CONFLICT);
        assert_int_equal(got.conflict, rows[i].conflict);
    }
}

static void test_retry_after_header(void **state)
{
    (void)state;
    poll_once();
    answer_with(429, "slow down", true, 5);
    assert_int_equal(got.class, BOTAPI_LIMITED);
    assert_int_equal(got.retry_after_s, 5);
}

static void test_html(void **state)
{
    (void)state;
    poll_answered(502, "<html>Bad Gateway</html>");
    assert_int_equal(got.class, BOTAPI_TRANSIENT);
    assert_false(got.garbled);
    poll_answered(200, "<html>Please log in</html>");
    assert_int_equal(got.class, BOTAPI_TRANSIENT);
    assert_false(got.garbled); /* a captive portal spoils no update */
    poll_answered(404, "<html>Not Found</html>");
    assert_int_equal(got.class, BOTAPI_TRANSIENT);
    poll_answered(301, "");
    assert_int_equal(got.class, BOTAPI_TRANSIENT);
}

static void test_garbled(void **state)
{
    static const char broken[] = "{\"ok\":true,\"result\":[{\"update_id\":12,,}]}";

    (void)state;
    poll_answered(200, broken);
    assert_int_equal(got.class, BOTAPI_TRANSIENT);
    assert_true(got.garbled);
    assert_string_equal(buf_str(&got.body), broken);
    poll_once();
    answer_with(200, broken, false, -1); /* maybe cut short: no proof of a bad update */
    assert_false(got.garbled);
}

static void test_network(void **state)
{
    struct http_answer a = {.fail = HTTP_RESET,
                            .error = "the connection was reset",
                            .sent = true,
                            .waited_ms = 12000,
                            .retry_after_s = -1};

    (void)state;
    poll_once();
    http.busy = false;
    http.fn(http.arg, &a);
    assert_int_equal(got.class, BOTAPI_TRANSIENT);
    assert_int_equal(got.fail, HTTP_RESET);
    assert_int_equal(got.waited_ms, 12000);
    assert_true(got.sent);
    assert_string_equal(got.sentence, "the connection was reset");
}

static void test_token(void **state)
{
    (void)state;
    assert_false(botapi_set_token(api, TOKEN));
    assert_true(botapi_set_token(api, "123456:other"));
    poll_once();
    assert_string_equal(http.path, "/bot123456:other/getUpdates");
}

/* What is pending is never dropped. */
static void test_webhook_calls(void **state)
{
    char kind[] = "message";
    char *allowed[] = {kind};
    struct botapi_webhook h = {.url = "https://a.example/hook/shop",
                               .secret = "s3cret",
                               .max_connections = 7,
                               .allowed_updates = allowed,
                               .n_allowed = 1,
                               .deadline_ms = 30000};

    (void)state;
    botapi_set_webhook(api, &h, take, NULL);
    assert_string_equal(http.path, "/bot" TOKEN "/setWebhook");
    assert_string_equal(buf_str(&http.body),
                        "{\"url\":\"https://a.example/hook/shop\",\"secret_token\":\"s3cret\","
                        "\"max_connections\":7,\"allowed_updates\":[\"message\"]}");
    answer_with(400, "{\"ok\":false,\"error_code\":400,\"description\":\"Bad Request: bad webhook\"}", true,
                -1);
    assert_int_equal(got.class, BOTAPI_REJECTED);
    botapi_delete_webhook(api, 30000, take, NULL);
    assert_string_equal(http.path, "/bot" TOKEN "/deleteWebhook");
    assert_string_equal(buf_str(&http.body), "{}");
    answer_with(200, "{\"ok\":true,\"result\":true}", true, -1);
    assert_int_equal(got.class, BOTAPI_OK);
    botapi_log_out(api, 30000, take, NULL);
    assert_string_equal(http.path, "/bot" TOKEN "/logOut");
    answer_with(200, "{\"ok\":true,\"result\":true}", true, -1);
    botapi_close(api, 30000, take, NULL);
    assert_string_equal(http.path, "/bot" TOKEN "/close");
    answer_with(429, "{\"ok\":false,\"error_code\":429,\"parameters\":{\"retry_after\":600}}", true, -1);
    assert_int_equal(got.class, BOTAPI_LIMITED);
    assert_int_equal(got.retry_after_s, 600);
}

static void test_the_default_list(void **state)
{
    struct botapi_poll q = {.limit = 1, .default_updates = true, .deadline_ms = 30000};

    (void)state;
    botapi_get_updates(api, &q, take, NULL);
    assert_string_equal(buf_str(&http.body), "{\"limit\":1,\"timeout\":0,\"allowed_updates\":[]}");
    answer_with(200, "{\"ok\":true,\"result\":[]}", true, -1);
}

static int read_info(const char *text, struct webhook_info *i)
{
    struct json *root = json_parse(slice_str(text), NULL);
    int rc = webhook_info_read(root, i);

    json_free(root);
    return rc;
}

static void test_webhook_info(void **state)
{
    struct webhook_info i;

    (void)state;
    assert_int_equal(
        read_info("{\"url\":\"https://a.example/x\",\"has_custom_certificate\":true,"
                  "\"pending_update_count\":12,\"ip_address\":\"1.2.3.4\",\"last_error_date\":1700000000,"
                  "\"last_error_message\":\"Wrong\\u0007 response\","
                  "\"last_synchronization_error_date\":5,\"max_connections\":40,"
                  "\"allowed_updates\":[\"message\",7,\"poll\"]}",
                  &i),
        0);
    assert_string_equal(i.url, "https://a.example/x");
    assert_true(i.has_custom_certificate);
    assert_int_equal(i.pending, 12);
    assert_string_equal(i.ip_address, "1.2.3.4");
    assert_int_equal(i.last_error_at, 1700000000);
    assert_string_equal(i.last_error, "Wrong  response");
    assert_int_equal(i.last_sync_error_at, 5);
    assert_int_equal(i.max_connections, 40);
    assert_int_equal(i.n_allowed, 2);
    assert_string_equal(i.allowed_updates[1], "poll");
    webhook_info_free(&i);
    assert_int_equal(read_info("{\"url\":\"\",\"pending_update_count\":-4,\"allowed_updates\":[]}", &i), 0);
    assert_string_equal(i.url, "");
    assert_int_equal(i.pending, 0);
    assert_null(i.allowed_updates);
    webhook_info_free(&i);
    assert_int_equal(read_info("{\"url\":7}", &i), -1);
    webhook_info_free(&i);
    assert_int_equal(read_info("[]", &i), -1);
    webhook_info_free(&i);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_request),
        TEST(test_no_offset_and_all_kinds),
        TEST(test_updates),
        TEST(test_get_me),
        TEST(test_error_classes),
        TEST(test_conflicts),
        TEST(test_retry_after_header),
        TEST(test_html),
        TEST(test_garbled),
        TEST(test_network),
        TEST(test_token),
        TEST(test_webhook_calls),
        TEST(test_the_default_list),
        TEST(test_webhook_info),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
