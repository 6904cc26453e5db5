/* Calls found in answers, in the forms that the libraries give them. */
#include "unit.h"

#include "wire/call.h"
#include "wire/json.h"

#define JSON "application/json"
#define FORM "application/x-www-form-urlencoded"
#define MULTIPART "multipart/form-data; boundary=b"
#define PART(name, value) "--b\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n" value "\r\n"

enum verdict { NO_CALL, CALL, REFUSED };

static const struct row {
    const char *type, *body;
    enum verdict verdict;
    const char *method;
    enum lane_type lane;
    int64_t chat; /* where it is a number */
} rows[] = {
    /* grammY, telegraf, aiogram's JSON */
    {JSON, "{\"chat_id\":42,\"text\":\"x\",\"method\":\"sendMessage\"}", CALL, "sendMessage", LANE_CHAT, 42},
    {JSON "; charset=utf-8", "{\"method\":\"SENDMESSAGE\",\"chat_id\":\"-100123\"}", CALL, "SENDMESSAGE",
     LANE_CHAT, -100123},
    {JSON, "{\"method\":\"sendMessage\",\"chat_id\":\"@shop\"}", CALL, "sendMessage", LANE_NAME, 0},
    {JSON, "{\"method\":\"answerCallbackQuery\",\"callback_query_id\":\"1\"}", CALL, "answerCallbackQuery",
     LANE_EVENT, 0},
    {JSON, "{\"method\":\"sendMessage\",\"reply\":{\"chat_id\":1}}", CALL, "sendMessage", LANE_EVENT, 0},
    {JSON, "{\"method\":\"sendMessage\",\"chat_id\":9223372036854775807}", CALL, "sendMessage", LANE_CHAT,
     INT64_MAX},
    {JSON, "{\"method\":\"sendMessage\",\"chat_id\":1e3}", CALL, "sendMessage", LANE_NAME, 0},
    {JSON, "{\"method\":\"sendMessage\",\"text\":\"\xff\"}", CALL, "sendMessage", LANE_EVENT, 0},
    /* go-telegram-bot-api */
    {FORM, "chat_id=42&method=sendMessage&text=a+b%26", CALL, "sendMessage", LANE_CHAT, 42},
    {FORM, "method=sendMessage&chat_id=%40shop", CALL, "sendMessage", LANE_NAME, 0},
    {FORM, "method=sendMessage&method=deleteWebhook&chat_id=1&chat_id=2", CALL, "sendMessage", LANE_CHAT, 1},
    /* telegraf, and aiogram with files */
    {MULTIPART,
     PART("method", "sendPhoto")
         PART("chat_id", "42") "--b\r\nContent-Disposition: form-data; name=\"photo\"; "
                               "filename=\"a\"\r\n\r\n\r\n--b-\r\n--b--\r\n",
     REFUSED, "", LANE_EVENT, 0}, /* its delimiter stands in the content */
    {MULTIPART,
     PART("method", "sendPhoto")
         PART("chat_id", "42") "--b\r\nContent-Disposition: form-data; name=\"photo\"; "
                               "filename=\"a\"\r\n\r\nbytes\r\n--b--\r\n",
     CALL, "sendPhoto", LANE_CHAT, 42},
    {MULTIPART,
     "--b\r\nContent-Disposition: form-data; name=\"method\"; filename=\"a\"\r\n\r\nsendPhoto\r\n--b--\r\n",
     NO_CALL, "", LANE_EVENT, 0},                         /* a file is no parameter */
    {MULTIPART, "--b--\r\n", NO_CALL, "", LANE_EVENT, 0}, /* aiogram: nothing to say */
    /* no calls */
    {JSON, "", NO_CALL, "", LANE_EVENT, 0},
    {JSON, "{\"ok\":true}", NO_CALL, "", LANE_EVENT, 0},
    {JSON, "{}", NO_CALL, "", LANE_EVENT, 0},
    {JSON, "[{\"method\":\"sendMessage\"}]", NO_CALL, "", LANE_EVENT, 0},
    {JSON, "\"sendMessage\"", NO_CALL, "", LANE_EVENT, 0},
    {FORM, "text=method", NO_CALL, "", LANE_EVENT, 0},
    {"text/plain", "{\"method\":\"sendMessage\"}", NO_CALL, "", LANE_EVENT, 0},
    {"", "{\"method\":\"sendMessage\"}", NO_CALL, "", LANE_EVENT, 0},
    {"text/html", "<html>", NO_CALL, "", LANE_EVENT, 0},
    /* calls that must not go out, or cannot be read */
    {JSON, "ok", REFUSED, "", LANE_EVENT, 0},
    {JSON, "{\"method\":\"sendMessage\"", REFUSED, "", LANE_EVENT, 0},
    {JSON, "{\"method\":\"sendMessage\",\"method\":\"logOut\"}", REFUSED, "", LANE_EVENT, 0},
    {JSON, "{\"method\":7}", REFUSED, "", LANE_EVENT, 0},
    {JSON, "{\"method\":\"\"}", REFUSED, "", LANE_EVENT, 0},
    {JSON, "{\"method\":\"../close\"}", REFUSED, "", LANE_EVENT, 0},
    {JSON, "{\"method\":\"send Message\"}", REFUSED, "", LANE_EVENT, 0},
    {JSON, "{\"method\":\"sendMessage?x=1\"}", REFUSED, "", LANE_EVENT, 0},
    {JSON, "{\"method\":\"getMe\",\"chat_id\":1}", REFUSED, "getMe", LANE_CHAT, 1},
    {JSON, "{\"method\":\"DELETEWEBHOOK\"}", REFUSED, "DELETEWEBHOOK", LANE_EVENT, 0},
    {FORM, "method=setWebhook&url=https%3A%2F%2Fx", REFUSED, "setWebhook", LANE_EVENT, 0},
    {FORM, "method=sendMessage&text=%zz", REFUSED, "", LANE_EVENT, 0},
    {MULTIPART, PART("method", "logOut") "--b--", REFUSED, "logOut", LANE_EVENT, 0},
    {MULTIPART, PART("method", "sendMessage"), REFUSED, "", LANE_EVENT, 0}, /* cut short */
    {"multipart/form-data", PART("method", "sendMessage") "--b--", REFUSED, "", LANE_EVENT, 0},
};

static void test_bodies(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct row *r = &rows[i];
        struct call c;
        int rc = call_in_body(slice_str(r->type), slice_str(r->body), &c);
        check_row(i, rc == (r->verdict != NO_CALL));
        if (r->verdict == NO_CALL)
            continue;
        check_row(i, (c.refused != NULL) == (r->verdict == REFUSED));
        check_row(i, strcmp(c.method, r->method) == 0);
        check_row(i, c.lane.type == r->lane);
        check_row(i, c.has_chat == (r->lane == LANE_CHAT) &&
                         (!c.has_chat || (c.chat == r->chat && c.lane.a == r->chat)));
    }
}

/* "@Shop" and "@shop" are one chat; "@shop2" is another. */
static void test_names_are_lanes(void **state)
{
    struct call a, b, c;

    (void)state;
    call_in_body(slice_str(JSON), LIT("{\"method\":\"sendMessage\",\"chat_id\":\"@Shop\"}"), &a);
    call_in_body(slice_str(FORM), LIT("method=sendMessage&chat_id=@shop"), &b);
    call_in_body(slice_str(FORM), LIT("method=sendMessage&chat_id=@shop2"), &c);
    assert_true(lane_eq(a.lane, b.lane));
    assert_false(lane_eq(a.lane, c.lane));
}

static void test_size(void **state)
{
    struct buf body = BUF_EMPTY;
    struct call c;

    (void)state;
    buf_add_str(&body, "{\"method\":\"sendMessage\",\"text\":\"");
    size_t n = CALL_MAX_BYTES - body.n - 2;
    memset(buf_reserve(&body, n), 'x', n);
    buf_added(&body, n);
    buf_add_str(&body, "\"}");
    assert_int_equal(body.n, CALL_MAX_BYTES);
    assert_int_equal(call_in_body(slice_str(JSON), buf_slice(&body), &c), 1);
    assert_null(c.refused);
    buf_add_char(&body, ' ');
    assert_int_equal(call_in_body(slice_str(JSON), buf_slice(&body), &c), 1);
    assert_non_null(c.refused);
    call_of_method(LIT("sendMessage"), slice_str(JSON), buf_slice(&body), &c);
    assert_non_null(c.refused);
    assert_int_equal(call_in_body(LIT("text/plain"), buf_slice(&body), &c), 0);
    buf_free(&body);
}

static void test_of_method(void **state)
{
    struct call c;

    (void)state;
    call_of_method(LIT("sendMessage"), slice_str(JSON), LIT("{\"chat_id\":-7}"), &c);
    assert_null(c.refused);
    assert_string_equal(c.method, "sendMessage");
    assert_int_equal(c.lane.type, LANE_CHAT);
    assert_int_equal(c.chat, -7);
    call_of_method(LIT("sendMessage"), slice_str(JSON), LIT("{\"method\":\"logOut\",\"chat_id\":8}"), &c);
    assert_string_equal(c.method, "sendMessage"); /* the path decides */
    assert_int_equal(c.chat, 8);
    assert_null(c.refused);
    call_of_method(LIT("sendMessage"), slice_str(JSON), LIT("{"), &c);
    assert_null(c.refused); /* Telegram will say what is wrong with it */
    assert_int_equal(c.lane.type, LANE_EVENT);
    call_of_method(LIT("a/b"), slice_str(""), LIT(""), &c);
    assert_non_null(c.refused);
}

static void test_method_names(void **state)
{
    char longest[CALL_METHOD_MAX + 2];

    (void)state;
    memset(longest, 'a', sizeof(longest));
    assert_true(call_is_method(slice_make(longest, CALL_METHOD_MAX)));
    assert_false(call_is_method(slice_make(longest, CALL_METHOD_MAX + 1)));
    assert_false(call_is_method(LIT("")));
    assert_false(call_is_method(LIT("a\0b")));
    assert_true(call_is_forbidden(LIT("get")));
    assert_true(call_is_forbidden(LIT("GETupdates")));
    assert_true(call_is_forbidden(LIT("Close")));
    assert_false(call_is_forbidden(LIT("closeForumTopic")));
    assert_false(call_is_forbidden(LIT("ge")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bodies),    cmocka_unit_test(test_names_are_lanes), cmocka_unit_test(test_size),
        cmocka_unit_test(test_of_method), cmocka_unit_test(test_method_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
