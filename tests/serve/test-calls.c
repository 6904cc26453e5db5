/* Idempotency keys and calls over the api: keys held and done, calls in ack and by themselves, what is shown of calls and
 * comes back of an export, and what the holder of a pull token may do. */
#include "rig.h"

static struct rig *rig_of(void **state)
{
    return *state;
}

static struct spool_box *out_box(struct rig *r)
{
    struct spool_box *b = spool_find_box(r->w.sp, "shop", BOX_OUT);

    assert_non_null(b);
    return b;
}

/* An event arrives and is claimed. Returns `"id":..,"lease":..`, to be freed. */
static char *claimed(struct rig *r, int64_t update_id)
{
    struct reply p;

    rig_arrive(r, update_id, update_id);
    rig_expect(r, &p, 200, "POST", "/v1/claim", "{\"bot\":\"shop\"}");
    char *word = xasprintf("\"id\":\"%s\",\"lease\":\"%s\"", reply_text(reply_event(&p, 0), "id"),
                           reply_text(reply_event(&p, 0), "lease"));
    reply_clear(&p);
    return word;
}

/* Asks for a key: "first", "held" or "done". word: of an event, or NULL. */
static void expect_key(struct rig *r, const char *key, const char *word, const char *state)
{
    char *body = xasprintf("{\"bot\":\"shop\",\"key\":\"%s\"%s%s}", key, word ? "," : "", word ? word : "");
    bool first = strcmp(state, "first") == 0;
    struct reply p;

    rig_expect(r, &p, first ? 201 : 200, "POST", "/v1/keys", body);
    assert_int_equal(json_true(json_get(p.root, "first")), first);
    if (!first)
        assert_string_equal(reply_text(p.root, "state"), state);
    reply_clear(&p);
    free(body);
}

static void verb(struct rig *r, int status, const char *path, const char *word, const char *more)
{
    char *body = xasprintf("{%s%s}", word, more);
    struct reply p;

    rig_expect(r, &p, status, "POST", path, body);
    reply_clear(&p);
    free(body);
}

static void test_key_is_held_then_done(void **state)
{
    struct rig *r = rig_of(state);
    char *a = claimed(r, 1), *b = claimed(r, 2);

    expect_key(r, "k", a, "first");
    expect_key(r, "k", a, "first"); /* the same event asks again */
    expect_key(r, "k", b, "held");
    expect_key(r, "k", NULL, "held");
    verb(r, 200, "/v1/nack", a, ",\"retry_after\":1");
    expect_key(r, "k", b, "first"); /* it was let go */
    verb(r, 200, "/v1/ack", b, "");
    expect_key(r, "k", NULL, "done");
    expect_key(r, "alone", NULL, "first");
    expect_key(r, "alone", NULL, "done");
    world_verify(&r->w);
    free(a);
    free(b);
}

static void test_keys_of_an_ack(void **state)
{
    struct rig *r = rig_of(state);
    char *a = claimed(r, 1);

    verb(r, 200, "/v1/ack", a, ",\"keys\":[\"x\",\"y\"]");
    expect_key(r, "x", NULL, "done");
    expect_key(r, "y", NULL, "done");
    world_wait(&r->w, SPOOL_KEY_TTL_MS + 1);
    rig_step(r);
    expect_key(r, "y", NULL, "first");
    free(a);
}

static void test_keys_that_are_refused(void **state)
{
    struct rig *r = rig_of(state);
    char *a = claimed(r, 1);
    char *long_key = xmalloc(300), *body;

    rig_refused(r, 400, "bad_request", "POST", "/v1/keys", "{\"key\":\"k\"}");
    rig_refused(r, 400, "bad_request", "POST", "/v1/keys", "{\"bot\":\"shop\"}");
    rig_refused(r, 404, "unknown_bot", "POST", "/v1/keys", "{\"bot\":\"nobody\",\"key\":\"k\"}");
    rig_refused(r, 422, "bad_value", "POST", "/v1/keys", "{\"bot\":\"shop\",\"key\":\"\"}");
    rig_refused(r, 422, "bad_value", "POST", "/v1/keys", "{\"bot\":\"shop\",\"key\":7}");
    rig_refused(r, 422, "bad_value", "POST", "/v1/keys", "{\"bot\":\"shop\",\"key\":\"k\",\"ttl\":\"100d\"}");
    rig_refused(r, 422, "bad_value", "POST", "/v1/keys",
                "{\"bot\":\"shop\",\"key\":\"k\",\"id\":\"shop/1\"}");
    memset(long_key, 'x', 299);
    long_key[299] = '\0';
    body = xasprintf("{\"bot\":\"shop\",\"key\":\"%s\"}", long_key);
    rig_refused(r, 422, "bad_value", "POST", "/v1/keys", body);
    free(body);
    verb(r, 200, "/v1/ack", a, "");
    body = xasprintf("{\"bot\":\"shop\",\"key\":\"k\",%s}", a);
    rig_refused(r, 409, "lost", "POST", "/v1/keys", body);
    rig_refused(r, 404, "unknown_event", "POST", "/v1/keys",
                "{\"bot\":\"shop\",\"key\":\"k\",\"id\":\"shop/"
                "77\",\"lease\":\"000102030405060708090a0b0c0d0e0f-9\"}");
    expect_key(r, "k", NULL, "first"); /* none of these took it */
    free(body);
    free(long_key);
    free(a);
}

static void test_a_key_is_durable_before_its_answer(void **state)
{
    struct rig *r = rig_of(state);
    struct reply p;

    rig_start(r, &p, "POST", "/v1/keys", "{\"bot\":\"shop\",\"key\":\"k\"}");
    assert_false(p.answered);
    rig_step(r);
    assert_true(p.answered);
    assert_int_equal(p.status, 201);
    reply_clear(&p);
}

/* One event of the box out, as the api shows it. */
static void show_call(struct rig *r, struct reply *p, unsigned seq)
{
    char path[64];

    snprintf(path, sizeof(path), "/v1/events/shop/out/@%u", seq);
    rig_expect(r, p, 200, "GET", path, NULL);
    assert_string_equal(reply_text(p->root, "box"), "out");
}

static void test_calls_of_an_ack(void **state)
{
    struct rig *r = rig_of(state);
    char *a = claimed(r, 1);
    struct reply p;

    verb(r, 200, "/v1/ack", a,
         ",\"calls\":[{\"method\":\"sendMessage\",\"chat_id\":7,\"text\":\"x\"},{\"method\":\"getMe\"},5]");
    world_expect(&r->w, 1, STATE_DONE, REASON_NONE, 1);
    show_call(r, &p, 1);
    assert_string_equal(reply_text(p.root, "method"), "sendMessage");
    assert_string_equal(reply_text(p.root, "kind"), "sendMessage");
    assert_string_equal(reply_text(p.root, "content_type"), "application/json");
    assert_string_equal(reply_text(p.root, "made_by"), "shop/@1");
    assert_string_equal(reply_text(p.root, "state"), "pending");
    assert_string_equal(reply_text(p.root, "lane"), "chat:7");
    assert_int_equal(reply_number(p.root, "chat"), 7);
    assert_slice(json_string(json_get(json_get(p.root, "payload"), "text")), "x");
    reply_clear(&p);
    show_call(r, &p, 2);
    assert_string_equal(reply_text(p.root, "state"), "dead");
    assert_string_equal(reply_text(p.root, "reason"), "rejected");
    reply_clear(&p);
    show_call(r, &p, 3);
    assert_string_equal(reply_text(p.root, "state"), "dead");
    reply_clear(&p);
    world_verify(&r->w);
    free(a);
}

static void test_extras_that_are_refused(void **state)
{
    static const char *const rows[] = {",\"keys\":\"k\"", ",\"keys\":[\"\"]", ",\"keys\":[1]", ",\"calls\":7",
                                       ",\"calls\":{\"a\":1}"};
    struct rig *r = rig_of(state);
    char *a = claimed(r, 1);

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char *one = xasprintf("{%s%s}", a, rows[i]), *many = xasprintf("{\"events\":[{%s%s}]}", a, rows[i]);
        rig_refused(r, 422, "bad_value", "POST", "/v1/ack", one);
        rig_refused(r, 422, "bad_value", "POST", "/v1/ack", many);
        free(one);
        free(many);
    }
    char *body = xasprintf("{%s,\"keys\":[\"k\"]}", a);
    rig_refused(r, 400, "bad_request", "POST", "/v1/nack", body); /* a failure records nothing */
    world_expect(&r->w, 1, STATE_PROCESSING, REASON_NONE, 0);
    free(body);
    free(a);
}

static void test_calls_by_a_program(void **state)
{
    struct rig *r = rig_of(state);
    struct reply p;

    rig_expect(r, &p, 201, "POST", "/v1/bots/shop/calls",
               "{\"method\":\"sendMessage\",\"body\":{\"chat_id\":-7,  "
               "\"text\":\"x\"},\"once\":true,\"key\":\"k\"}");
    assert_string_equal(reply_text(p.root, "id"), "shop/out/@1");
    assert_true(json_true(json_get(p.root, "first")));
    reply_clear(&p);
    rig_expect(r, &p, 200, "POST", "/v1/bots/shop/calls",
               "{\"method\":\"sendMessage\",\"body\":{\"chat_id\":-7},\"key\":\"k\"}");
    assert_false(json_true(json_get(p.root, "first")));
    reply_clear(&p);
    expect_key(r, "k", NULL, "first"); /* keys of calls are not those of events */
    rig_expect(r, &p, 201, "POST", "/v1/bots/shop/calls", "{\"method\":\"sendChatAction\"}");
    reply_clear(&p);
    show_call(r, &p, 1);
    assert_true(json_true(json_get(p.root, "once")));
    assert_int_equal(json_type(json_get(p.root, "made_by")), JSON_NULL);
    assert_string_equal(reply_text(p.root, "lane"), "chat:-7");
    assert_non_null(strstr(buf_str(&p.body), "{\"chat_id\":-7,  \"text\":\"x\"}")); /* as it came */
    reply_clear(&p);
    struct spool_box_status st;
    spool_box_status(out_box(r), &st);
    assert_int_equal(st.counts.pending, 2);
    assert_int_equal(st.counts.duplicates, 1);
}

static void test_calls_that_are_refused(void **state)
{
    struct rig *r = rig_of(state);

    rig_refused(r, 404, "unknown_bot", "POST", "/v1/bots/nobody/calls", "{\"method\":\"sendMessage\"}");
    rig_refused(r, 404, "not_found", "POST", "/v1/bots//calls", "{\"method\":\"sendMessage\"}");
    rig_refused(r, 404, "not_found", "POST", "/v1/bots/shop/calls/x", "{\"method\":\"sendMessage\"}");
    rig_refused(r, 405, "method", "GET", "/v1/bots/shop/calls", NULL);
    rig_refused(r, 400, "bad_request", "POST", "/v1/bots/shop/calls", "{\"body\":{}}");
    rig_refused(r, 422, "bad_value", "POST", "/v1/bots/shop/calls", "{\"method\":\"deleteWebhook\"}");
    rig_refused(r, 422, "bad_value", "POST", "/v1/bots/shop/calls", "{\"method\":\"a/b\"}");
    rig_refused(r, 422, "bad_value", "POST", "/v1/bots/shop/calls", "{\"method\":\"a\",\"body\":[]}");
    rig_refused(r, 422, "bad_value", "POST", "/v1/bots/shop/calls", "{\"method\":\"a\",\"once\":\"maybe\"}");
    rig_refused(r, 422, "bad_value", "POST", "/v1/bots/shop/calls", "{\"method\":\"a\",\"key\":\"\"}");
}

/* A dead call is replayed and discarded like any event. */
static void test_dead_calls_live_again(void **state)
{
    struct rig *r = rig_of(state);
    char *a = claimed(r, 1);
    struct reply p;

    verb(r, 200, "/v1/ack", a, ",\"calls\":[{\"method\":\"sendMessage\",\"chat_id\":7}]");
    rig_expect(r, &p, 200, "POST", "/v1/discard", "{\"id\":\"shop/out/@1\"}");
    reply_clear(&p);
    rig_expect(r, &p, 200, "GET", "/v1/events?box=out&state=dead", NULL);
    assert_int_equal(json_length(json_get(p.root, "events")), 1);
    reply_clear(&p);
    rig_expect(r, &p, 200, "POST", "/v1/replay", "{\"box\":\"out\",\"state\":\"dead\"}");
    assert_int_equal(reply_number(p.root, "replayed"), 1);
    reply_clear(&p);
    show_call(r, &p, 2);
    assert_string_equal(reply_text(p.root, "state"), "pending");
    assert_string_equal(reply_text(p.root, "lane"), "chat:7");
    assert_int_equal(reply_number(p.root, "replay_of"), 1);
    reply_clear(&p);
    rig_expect(r, &p, 200, "GET", "/v1/status", NULL);
    const struct json *boxes = json_get(p.root, "boxes");
    assert_int_equal(json_length(boxes), 2);
    assert_int_equal(reply_number(json_item(boxes, 1), "dead"), 1);
    assert_int_equal(reply_number(json_item(boxes, 1), "dead_replayed"), 1);
    reply_clear(&p);
    world_verify(&r->w);
    free(a);
}

/* An export of calls is known where it came from, and new elsewhere. */
static void test_export_and_import(void **state)
{
    struct rig *r = rig_of(state);
    struct reply p;

    rig_expect(r, &p, 201, "POST", "/v1/bots/shop/calls",
               "{\"method\":\"sendMessage\",\"body\":{\"chat_id\":5}}");
    reply_clear(&p);
    rig_expect(r, &p, 200, "GET", "/v1/events/shop/out/@1", NULL);
    char *line = xstrndup(p.body.p, p.body.n);
    reply_clear(&p);
    rig_expect(r, &p, 200, "POST", "/v1/import", line);
    assert_int_equal(reply_number(p.root, "known"), 1);
    reply_clear(&p);
    char *bot = strstr(line, "\"bot\":\"shop\",\"bot_id\":123456789");
    assert_non_null(bot);
    memcpy(bot, "\"bot\":\"four\",\"bot_id\":123456780", 31);
    rig_expect(r, &p, 200, "POST", "/v1/import", line);
    assert_int_equal(reply_number(p.root, "new"), 1);
    reply_clear(&p);
    rig_expect(r, &p, 200, "POST", "/v1/import", line);
    assert_int_equal(reply_number(p.root, "known"), 1);
    reply_clear(&p);
    rig_expect(r, &p, 200, "GET", "/v1/events/four/out/@1", NULL);
    assert_string_equal(reply_text(p.root, "lane"), "chat:5");
    assert_string_equal(reply_text(p.root, "method"), "sendMessage");
    reply_clear(&p);
    free(line);
    world_verify(&r->w);
}

/* Claims and what belongs to them, of its own bot. */
static void test_pull_token(void **state)
{
    static const struct {
        const char *method, *path, *body;
    } closed[] = {
        {"GET", "/v1/status", NULL},
        {"GET", "/v1/events", NULL},
        {"GET", "/v1/events/shop/1", NULL},
        {"GET", "/v1/tail", NULL},
        {"GET", "/healthz", NULL},
        {"POST", "/v1/replay", "{\"id\":\"shop/1\"}"},
        {"POST", "/v1/discard", "{\"id\":\"shop/1\"}"},
        {"POST", "/v1/import", ""},
        {"POST", "/v1/pause", "{\"bot\":\"shop\"}"},
        {"POST", "/v1/bots/shop/calls", "{\"method\":\"sendMessage\"}"},
    };
    struct rig *r = rig_of(state);
    struct reply p;

    r->only_bot = "shop";
    char *a = claimed(r, 1), *b = claimed(r, 2);
    expect_key(r, "k", a, "first");
    verb(r, 200, "/v1/extend", a, ",\"by\":60");
    for (size_t i = 0; i < ARRAY_LEN(closed); i++)
        rig_refused(r, 401, "unauthorized", closed[i].method, closed[i].path, closed[i].body);
    r->only_bot = "other";
    char *body = xasprintf("{%s}", a);
    rig_refused(r, 404, "unknown_bot", "POST", "/v1/claim", "{\"bot\":\"shop\"}");
    rig_refused(r, 404, "unknown_event", "POST", "/v1/ack", body);
    rig_refused(r, 404, "unknown_event", "POST", "/v1/nack", body);
    rig_refused(r, 404, "unknown_bot", "POST", "/v1/keys", "{\"bot\":\"shop\",\"key\":\"z\"}");
    r->only_bot = "shop";
    verb(r, 200, "/v1/ack", a, ",\"calls\":[{\"method\":\"sendMessage\"}]");
    verb(r, 200, "/v1/nack", b, "");
    /* its calls are not its own to claim */
    rig_expect(r, &p, 200, "POST", "/v1/claim", "{\"bot\":\"shop\"}");
    reply_clear(&p);
    free(body);
    free(a);
    free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_key_is_held_then_done, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_keys_of_an_ack, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_keys_that_are_refused, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_a_key_is_durable_before_its_answer, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_calls_of_an_ack, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_extras_that_are_refused, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_calls_by_a_program, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_calls_that_are_refused, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_dead_calls_live_again, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_export_and_import, rig_setup, rig_teardown),
        cmocka_unit_test_setup_teardown(test_pull_token, rig_setup, rig_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
