/* Events as JSON and back: every byte of a payload survives, and hostile lines are refused. */
#include "../unit/unit.h"

#include "core/outcome.h"
#include "wire/event_json.h"

static struct buf write_event(struct slice payload)
{
    struct event ev = {.seq = 9,
                       .has_update_id = true,
                       .update_id = 5,
                       .received_at = INT64_C(1795974368007),
                       .kind = "message", /* of a payload that is none, it does not come back */
                       .place = {.has_chat = true, .chat = -100, .has_user = true, .user = 42},
                       .lane = {LANE_CHAT, -100, 0},
                       .payload = payload};
    struct event_state st = {.state = STATE_DEAD,
                             .reason = REASON_ATTEMPTS,
                             .attempts = 8,
                             .interrupted = 1,
                             .claimed_at = INT64_C(1795974369000),
                             .claimed_by = "worker 1",
                             .finished_at = INT64_C(1795974370001),
                             .error = "said \"no\"\\",
                             .n_history = 1};
    struct buf out = BUF_EMPTY;
    struct json_out j;

    st.history[0].at = INT64_C(1795974369999);
    st.history[0].outcome = OUTCOME_LEASE_EXPIRED;
    json_start(&j, &out);
    event_write(&j, "shop", 123, BOX_IN, &ev, &st, true);
    json_end(&j);
    return out;
}

static void test_payload_survives(void **state)
{
    static const struct {
        struct slice payload;
        bool embedded;
    } rows[] = {
        {{"{\"update_id\":5}", 15}, true},
        {{"{\"update_id\":5,\n\"message\":{\"text\":\"h\xC3\xA9\\n\"}}", 43}, true},
        {{"\n{ }\n", 5}, false},
        {{"{\"a\":\r\n1}", 9}, false},      /* carriage returns */
        {{"{\"a\":\"\xff\"}", 9}, false},   /* no UTF-8 */
        {{"{\"a\":\"\x7f\"}", 9}, false},   /* control */
        {{"{\"a\":1,\"a\":2}", 13}, false}, /* a name twice: readers differ */
        {{"{\"a\":1", 6}, false},           /* cut */
        {{"1],[2", 5}, false},              /* would change the document around it */
        {{"{}},{\"x\":1", 11}, false},      /* likewise */
        {{"{},{}", 5}, false},              /* two values */
        {{"", 0}, false},
        {{"\0\0", 2}, false},
        {{"{\"a\":123456789012345678901234567890123456789012}", 48}, true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf line = write_event(rows[i].payload);
        struct event_line l;
        struct json *doc = json_parse(buf_slice(&line), NULL);
        char why[256] = "";
        check_row(i, doc != NULL);
        check_row(i, (json_get(doc, "payload") != NULL) == rows[i].embedded);
        check_row(i, !memchr(line.p, '\n', line.n));
        if (rows[i].payload.n == 0) { /* nothing ever stores an empty one */
            event_line_read(buf_slice(&line), &l, why);
        } else {
            check_row(i, event_line_read(buf_slice(&line), &l, why) == 0);
            check_row(i, slice_eq(l.ev.payload, rows[i].payload));
        }
        event_line_free(&l);
        json_free(doc);
        buf_free(&line);
    }
}

static void test_deep_payload_is_not_embedded(void **state)
{
    struct buf deep = BUF_EMPTY;
    struct event_line l;
    char why[256];

    (void)state;
    for (int i = 0; i < 63; i++)
        buf_add_char(&deep, '[');
    for (int i = 0; i < 63; i++)
        buf_add_char(&deep, ']');
    struct buf line = write_event(buf_slice(&deep));
    struct json *doc = json_parse(buf_slice(&line), NULL);
    assert_non_null(json_get(doc, "payload_base64"));
    assert_int_equal(event_line_read(buf_slice(&line), &l, why), 0);
    assert_true(slice_eq(l.ev.payload, buf_slice(&deep)));
    event_line_free(&l);
    json_free(doc);
    buf_free(&line);
    buf_free(&deep);
}

static void test_every_field_survives(void **state)
{
    struct buf line =
        write_event(LIT("{\"update_id\":5,\"message\":{\"chat\":{\"id\":-100},\"from\":{\"id\":42}}}"));
    struct event_line l;
    char why[256];

    (void)state;
    assert_int_equal(event_line_read(buf_slice(&line), &l, why), 0);
    assert_string_equal(l.bot, "shop");
    assert_int_equal(l.bot_id, 123);
    assert_int_equal(l.box, BOX_IN);
    assert_true(l.ev.has_update_id);
    assert_int_equal(l.ev.update_id, 5);
    assert_int_equal(l.ev.received_at, INT64_C(1795974368007));
    assert_string_equal(l.ev.kind, "message");
    assert_int_equal(l.ev.place.chat, -100);
    assert_int_equal(l.ev.place.user, 42);
    assert_int_equal(l.st.state, STATE_DEAD);
    assert_int_equal(l.st.reason, REASON_ATTEMPTS);
    assert_int_equal(l.st.attempts, 8);
    assert_int_equal(l.st.interrupted, 1);
    assert_int_equal(l.st.claimed_at, INT64_C(1795974369000));
    assert_string_equal(l.st.claimed_by, "worker 1");
    assert_int_equal(l.st.finished_at, INT64_C(1795974370001));
    assert_string_equal(l.st.error, "said \"no\"\\");
    assert_int_equal(l.st.n_history, 1);
    assert_int_equal(l.st.history[0].at, INT64_C(1795974369999));
    assert_int_equal(l.st.history[0].outcome, OUTCOME_LEASE_EXPIRED);
    event_line_free(&l);
    buf_free(&line);
}

/* A call keeps what an update does not have, and its lane is found anew. */
static void test_calls_survive(void **state)
{
    struct event ev = {.seq = 3,
                       .received_at = INT64_C(1795974368007),
                       .kind = "sendPhoto",
                       .place = {.has_chat = true, .chat = 42},
                       .lane = {LANE_CHAT, 42, 0},
                       .hash = {1, 2, 3, 4, 5, 6, 7, 255},
                       .is_call = true,
                       .once = true,
                       .made_by = 7,
                       .content_type = "multipart/form-data; boundary=\"b\"",
                       .payload =
                           LIT("--b\r\nContent-Disposition: form-data; name=\"chat_id\"\r\n\r\n42\r\n--b--")};
    struct event_state st = {.state = STATE_PENDING};
    struct buf out = BUF_EMPTY;
    struct event_line l;
    struct json_out j;
    char why[256];

    (void)state;
    json_start(&j, &out);
    event_write(&j, "shop", 123, BOX_OUT, &ev, &st, true);
    json_end(&j);
    assert_int_equal(event_line_read(buf_slice(&out), &l, why), 0);
    assert_true(l.ev.is_call && l.ev.once && !l.ev.has_update_id);
    assert_string_equal(l.ev.kind, "sendPhoto");
    assert_string_equal(l.ev.content_type, ev.content_type);
    assert_memory_equal(l.ev.hash, ev.hash, sizeof(ev.hash));
    assert_true(lane_eq(l.ev.lane, ev.lane) && l.ev.place.has_chat && l.ev.place.chat == 42);
    assert_true(slice_eq(l.ev.payload, ev.payload));
    event_line_free(&l);
    struct slice hash = LIT("\"hash\":\"01020304050607ff\"");
    char *at = memmem(out.p, out.n, hash.p, hash.n);
    assert_non_null(at);
    at[1] = 'H'; /* without it a call would be another one each time */
    assert_int_equal(event_line_read(buf_slice(&out), &l, why), -1);
    event_line_free(&l);
    buf_free(&out);
}

static void test_lines_that_are_refused(void **state)
{
#define HEAD "{\"bot\":\"s\",\"bot_id\":1,\"box\":\"in\",\"received_at\":1,"
    static const char *const rows[] = {
        "",
        "null",
        "[]",
        "{",
        "{}",
        "{\"payload\":{}}",
        HEAD "\"state\":\"pending\"}",
        HEAD "\"state\":\"asleep\",\"payload\":{}}",
        HEAD "\"state\":\"dead\",\"payload\":{}}",
        HEAD "\"state\":\"done\",\"reason\":\"rejected\",\"payload\":{}}",
        HEAD "\"state\":\"dead\",\"reason\":\"boredom\",\"payload\":{}}",
        HEAD "\"state\":\"pending\",\"payload\":{},\"newlines\":[2]}",
        HEAD "\"state\":\"pending\",\"payload\":{},\"newlines\":[0]}",
        HEAD "\"state\":\"pending\",\"payload\":{},\"newlines\":[-1]}",
        HEAD "\"state\":\"pending\",\"payload\":{\"a\":1,\"b\":2},\"newlines\":[7]}",
        HEAD "\"state\":\"pending\",\"payload_base64\":\"AAA\"}",
        HEAD "\"state\":\"pending\",\"payload_base64\":\"A===\"}",
        HEAD "\"state\":\"pending\",\"payload_base64\":\"####\"}",
        HEAD "\"state\":\"pending\",\"attempts\":-1,\"payload\":{}}",
        HEAD "\"state\":\"pending\",\"attempts\":4294967296,\"payload\":{}}",
        HEAD "\"state\":\"pending\",\"update_id\":\"5\",\"payload\":{}}",
        HEAD "\"state\":\"pending\",\"history\":[{\"at\":1,\"outcome\":\"magic\"}],\"payload\":{}}",
        HEAD "\"state\":\"pending\",\"claimed_at\":\"1\",\"payload\":{}}",
        HEAD "\"state\":\"pending\",\"payload\":{}} trailing",
        "{\"bot\":\"../"
        "s\",\"bot_id\":1,\"box\":\"in\",\"received_at\":1,\"state\":\"pending\",\"payload\":{}}",
        "{\"bot\":\"s\",\"bot_id\":0,\"box\":\"in\",\"received_at\":1,\"state\":\"pending\",\"payload\":{}}",
        "{\"bot\":\"s\",\"box\":\"in\",\"received_at\":1,\"state\":\"pending\",\"payload\":{}}",
        "{\"bot\":\"s\",\"bot_id\":1,\"box\":\"up\",\"received_at\":1,\"state\":\"pending\",\"payload\":{}}",
        "{\"bot\":\"s\",\"bot_id\":1,\"box\":\"in\",\"state\":\"pending\",\"payload\":{}}",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct event_line l;
        char why[256] = "";
        check_row(i, event_line_read(slice_str(rows[i]), &l, why) < 0);
        check_row(i, strlen(why) > 10);
        event_line_free(&l);
    }
}

static void test_member_bytes(void **state)
{
    static const struct {
        const char *object, *value; /* NULL: -1; "": -2 */
    } rows[] = {
        {"{\"p\":1}", "1"},
        {" {\"a\":{\"p\":2}, \"p\" : [ 1 , {\"p\":3}] ,\"q\":0}", "[ 1 , {\"p\":3}]"},
        {"{\"p\":\"a:b\"}", "\"a:b\""},
        {"{\"p\": -1.5e3 }", "-1.5e3"},
        {"{\"p\":true}", "true"},
        {"{\"p\":null,\"p\":2}", "null"},
        {"{\"\\u0070\":5}", "5"},
        {"{\"a\":{\"p\":2}}", NULL},
        {"{}", NULL},
        {"[{\"p\":1}]", ""},
        {"{\"p\":1", ""},
        {"", ""},
        {"\"p\"", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct slice v = {NULL, 0};
        int rc = json_member_bytes(slice_str(rows[i].object), "p", &v);
        int want = !rows[i].value ? -1 : rows[i].value[0] ? 0 : -2;
        check_row(i, rc == want);
        check_row(i, rc != 0 || slice_eq_str(v, rows[i].value));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_payload_survives),       cmocka_unit_test(test_deep_payload_is_not_embedded),
        cmocka_unit_test(test_every_field_survives),   cmocka_unit_test(test_calls_survive),
        cmocka_unit_test(test_lines_that_are_refused), cmocka_unit_test(test_member_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
