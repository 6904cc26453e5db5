/* The pure parts of delivery: the envelope, a worker's answers, the last line of standard error. */
#include "../unit/unit.h"

#include "core/envelope.h"
#include "deliver/answer.h"
#include "deliver/errline.h"
#include "wire/envelope_json.h"

static void answers(void **state)
{
    static const struct {
        const char *line;
        enum answer_kind kind;
        const char *error;
        int64_t after_ms, extend_ms;
        bool dead, calls;
    } rows[] = {
        {"{\"id\":\"b/1\",\"ok\":true}", ANSWER_DONE, "", -1, 0, false, false},
        {" {\"ok\":true,\"id\":\"b/1\",\"more\":{\"x\":[1]}} ", ANSWER_DONE, "", -1, 0, false, false},
        {"{\"id\":\"b/1\",\"ok\":true,\"keys\":[]}", ANSWER_DONE, "", -1, 0, false, true},
        {"{\"id\":\"b/1\",\"ok\":true,\"extend\":\"5s\"}", ANSWER_DONE, "", -1, 0, false, false},
        {"{\"id\":\"b/1\",\"ok\":false}", ANSWER_FAILED, "", -1, 0, false, false},
        {"{\"id\":\"b/1\",\"ok\":false,\"error\":\"e\",\"retry_after\":3}", ANSWER_FAILED, "e", 3000, 0,
         false, false},
        {"{\"id\":\"b/1\",\"ok\":false,\"retry_after\":\"2m\"}", ANSWER_FAILED, "", 120000, 0, false, false},
        {"{\"id\":\"b/1\",\"ok\":false,\"retry_after\":-3}", ANSWER_FAILED, "", -1, 0, false, false},
        {"{\"id\":\"b/1\",\"ok\":false,\"retry_after\":1.5}", ANSWER_FAILED, "", -1, 0, false, false},
        {"{\"id\":\"b/1\",\"ok\":false,\"retry_after\":99999999999999999999}", ANSWER_FAILED, "", -1, 0,
         false, false},
        {"{\"id\":\"b/1\",\"ok\":false,\"retry_after\":null,\"error\":null}", ANSWER_FAILED, "", -1, 0, false,
         false},
        {"{\"id\":\"b/1\",\"ok\":false,\"dead\":true,\"calls\":[]}", ANSWER_FAILED, "", -1, 0, true, false},
        {"{\"id\":\"b/1\",\"ok\":true,\"dead\":true,\"error\":\"e\",\"calls\":[]}", ANSWER_DONE, "", -1, 0,
         false, true},
        {"{\"id\":\"b/1\",\"ok\":false,\"dead\":1}", ANSWER_FAILED, "", -1, 0, false, false},
        {"{\"id\":\"b/1\",\"extend\":\"60s\"}", ANSWER_EXTEND, "", -1, 60000, false, false},
        {"{\"id\":\"b/1\",\"extend\":60}", ANSWER_EXTEND, "", -1, 60000, false, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct answer a;
        check_row(i, !answer_parse(slice_str(rows[i].line), &a));
        check_row(i, a.kind == rows[i].kind && slice_eq_str(a.id, "b/1") &&
                         slice_eq_str(a.error, rows[i].error));
        check_row(i, a.after_ms == rows[i].after_ms && a.extend_ms == rows[i].extend_ms);
        check_row(i, a.dead == rows[i].dead && (a.calls || a.keys) == rows[i].calls);
        answer_free(&a);
    }
}

static void no_answers(void **state)
{
    static const char *const lines[] = {
        "",
        "hello",
        "{",
        "[]",
        "null",
        "true",
        "{}",
        "{\"ok\":true}",
        "{\"id\":1,\"ok\":true}",
        "{\"id\":\"b/1\"}",
        "{\"id\":\"b/1\",\"ok\":1}",
        "{\"id\":\"b/1\",\"ok\":\"true\"}",
        "{\"id\":\"b/1\",\"ok\":null}",
        "{\"id\":\"b/1\",\"extend\":0}",
        "{\"id\":\"b/1\",\"extend\":-1}",
        "{\"id\":\"b/1\",\"extend\":\"long\"}",
        "{\"id\":\"b/1\",\"extend\":true}",
        "{\"id\":\"b/1\",\"ok\":true}{\"id\":\"b/1\",\"ok\":true}",
        "{\"id\":\"b/1\",\"id\":\"b/2\",\"ok\":true}",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct answer a;
        check_row(i, answer_parse(slice_str(lines[i]), &a) == -1);
    }
}

static void last_lines(void **state)
{
    static const struct {
        const char *text, *last;
        int64_t after_ms;
    } rows[] = {
        {"", "", -1},
        {"\n\n", "", -1},
        {"one", "one", -1},
        {"one\ntwo\n", "two", -1},
        {"one\r\n \t\r\n", "one", -1},
        {"  padded  \n", "padded", -1},
        {"retry-after: 5\n", "", 5000},
        {"RETRY-AFTER:5", "", 5000},
        {"why\nretry-after: 0\n", "why", 0},
        {"retry-after: 5\nretry-after: 6\nwhy\n", "why", 6000},
        {"retry-after: -5\n", "retry-after: -5", -1},
        {"retry-after: 5s\n", "retry-after: 5s", -1},
        {"retry-after:\n", "retry-after:", -1},
        {"retry-after: 9223372036854775807\n", "retry-after: 9223372036854775807", -1},
        {"x retry-after: 5\n", "x retry-after: 5", -1},
    };

    (void)state;
    for (size_t step = 1; step < 8; step++) {
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
            struct errline e;
            errline_init(&e);
            for (size_t at = 0, n = strlen(rows[i].text); at < n; at += step)
                errline_add(&e, slice_make(rows[i].text + at, n - at < step ? n - at : step));
            check_row(i, slice_eq_str(errline_end(&e), rows[i].last));
            check_row(i, e.after_ms == rows[i].after_ms);
        }
    }
}

static void a_line_without_end_is_cut(void **state)
{
    struct errline e;

    (void)state;
    errline_init(&e);
    for (int i = 0; i < 100000; i++)
        errline_add(&e, LIT("0123456789"));
    struct slice last = errline_end(&e);
    assert_int_equal(last.n, 512);
    assert_memory_equal(last.p, "0123456789", 10);
    errline_add(&e, LIT("next"));
    assert_slice(errline_end(&e), "next");
}

static void envelope_fields(void **state)
{
    struct event ev = {
        .seq = 9, .received_at = 1700000000999, .lane = {LANE_USER, 42, 0}, .hash = {1, 2, 3, 4}};
    struct envelope e;
    struct json_out j;
    struct buf out = BUF_EMPTY;
    char value[ENVELOPE_VALUE_MAX];

    (void)state;
    strcpy(ev.kind, "a\"b\n\xff");
    envelope_make(&e, "shop", 77, BOX_IN, &ev, 1, 1700000000000); /* before its arrival: age 0 */
    json_start(&j, &out);
    json_object(&j);
    envelope_json(&j, &e);
    json_object_end(&j);
    json_end(&j);
    assert_slice(
        buf_slice(&out),
        "{\"id\":\"shop/@9\",\"bot\":\"shop\",\"kind\":\"a\\\"b\\n\xef\xbf\xbd\",\"lane\":\"user:42\","
        "\"attempt\":1,\"key\":\"77:-:01020304\",\"received_at\":1700000000,\"age\":0}");
    assert_string_equal(envelope_header_value(&e, ENVELOPE_KIND, value), "a\"b??");
    buf_free(&out);
    ev.has_update_id = true;
    ev.update_id = 5;
    envelope_make(&e, "shop", 77, BOX_OUT, &ev, 2, 1700000010998);
    assert_string_equal(e.value[ENVELOPE_ID], "shop/out/@9");
    assert_string_equal(e.value[ENVELOPE_UPDATE_ID], "5");
    assert_string_equal(e.value[ENVELOPE_AGE], "9");
}

/* The longest values fit. */
static void envelope_limits(void **state)
{
    struct event ev = {.seq = UINT64_MAX,
                       .has_update_id = true,
                       .update_id = INT64_MIN,
                       .lane = {LANE_THREAD, INT64_MIN, INT64_MIN}};
    struct envelope e;

    (void)state;
    memset(ev.kind, 'k', sizeof(ev.kind) - 1);
    envelope_make(&e, "abcdefghijklmnopqrstuvwxyz012345", INT64_MIN, BOX_OUT, &ev, UINT32_MAX, INT64_MAX);
    assert_string_equal(e.value[ENVELOPE_ID], "abcdefghijklmnopqrstuvwxyz012345/out/@18446744073709551615");
    assert_string_equal(e.value[ENVELOPE_KEY], "-9223372036854775808:-9223372036854775808:00000000");
    assert_string_equal(e.value[ENVELOPE_LANE], "thread:-9223372036854775808:-9223372036854775808");
    assert_int_equal(strlen(e.value[ENVELOPE_KIND]), sizeof(ev.kind) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers),         cmocka_unit_test(no_answers),
        cmocka_unit_test(last_lines),      cmocka_unit_test(a_line_without_end_is_cut),
        cmocka_unit_test(envelope_fields), cmocka_unit_test(envelope_limits),
    };

    return cmocka_run_group_tests_name("answer", tests, NULL, NULL);
}
