/* core/update: what is found in an update and in an answer to getUpdates, however hostile the bytes. */
#include "unit.h"

#include "core/kinds.h"
#include "core/update.h"

static struct update parsed(struct slice bytes)
{
    struct update u;

    memset(&u, 0xA5, sizeof(u));
    if (update_parse(bytes, &u) < 0)
        fail_msg("not parsed: %.*s", (int)(bytes.n < 200 ? bytes.n : 200), bytes.p);
    return u;
}

/* "chat:1 user:2 thread:3 poll:4" of what the update tells. */
static const char *place_text(const struct update_place *p)
{
    static char out[128];
    size_t n = 0;

    out[0] = '\0';
    if (p->has_chat)
        n += (size_t)snprintf(out + n, sizeof(out) - n, " chat:%lld", (long long)p->chat);
    if (p->has_user)
        n += (size_t)snprintf(out + n, sizeof(out) - n, " user:%lld", (long long)p->user);
    if (p->has_thread)
        n += (size_t)snprintf(out + n, sizeof(out) - n, " thread:%lld", (long long)p->thread);
    if (p->has_poll)
        n += (size_t)snprintf(out + n, sizeof(out) - n, " poll:%lld", (long long)p->poll);
    return out[0] ? out + 1 : out;
}

static void every_kind_tells_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *kind, *payload, *place;
    } rows[] = {
#define MESSAGE \
    "{\"message_id\":9,\"from\":{\"id\":42,\"is_bot\":false},\"chat\":{\"id\":-100123,\"type\":\"x\"}}"
        {"message", MESSAGE, "chat:-100123 user:42"},
        {"edited_message", MESSAGE, "chat:-100123 user:42"},
        {"channel_post", "{\"chat\":{\"id\":-100123},\"sender_chat\":{\"id\":5}}", "chat:-100123"},
        {"edited_channel_post", "{\"chat\":{\"id\":-100123}}", "chat:-100123"},
        {"business_message", MESSAGE, "chat:-100123 user:42"},
        {"edited_business_message", MESSAGE, "chat:-100123 user:42"},
        {"guest_message", MESSAGE, "chat:-100123 user:42"},
        {"deleted_business_messages", "{\"chat\":{\"id\":8},\"message_ids\":[1,2]}", "chat:8"},
        {"message_reaction", "{\"chat\":{\"id\":8},\"message_id\":1,\"user\":{\"id\":9}}", "chat:8 user:9"},
        {"message_reaction_count", "{\"chat\":{\"id\":8},\"message_id\":1}", "chat:8"},
        {"chat_boost", "{\"chat\":{\"id\":8},\"boost\":{\"source\":{\"user\":{\"id\":1}}}}", "chat:8"},
        {"removed_chat_boost", "{\"chat\":{\"id\":8}}", "chat:8"},
        {"my_chat_member", MESSAGE, "chat:-100123 user:42"},
        {"chat_member", MESSAGE, "chat:-100123 user:42"},
        {"chat_join_request", "{\"chat\":{\"id\":8},\"from\":{\"id\":9},\"user_chat_id\":7}",
         "chat:8 user:9"},
        {"callback_query",
         "{\"id\":\"77\",\"from\":{\"id\":42},\"message\":{\"chat\":{\"id\":3},\"from\":{\"id\":1}}}",
         "chat:3 user:42"},
        {"callback_query", "{\"id\":\"77\",\"from\":{\"id\":42},\"inline_message_id\":\"x\"}", "user:42"},
        {"inline_query", "{\"id\":\"1\",\"from\":{\"id\":42},\"query\":\"\"}", "user:42"},
        {"chosen_inline_result", "{\"result_id\":\"1\",\"from\":{\"id\":42}}", "user:42"},
        {"shipping_query", "{\"id\":\"1\",\"from\":{\"id\":42}}", "user:42"},
        {"pre_checkout_query", "{\"id\":\"1\",\"from\":{\"id\":42}}", "user:42"},
        {"purchased_paid_media", "{\"from\":{\"id\":42},\"paid_media_payload\":\"x\"}", "user:42"},
        {"business_connection", "{\"id\":\"z\",\"user\":{\"id\":9},\"user_chat_id\":8}", "chat:8 user:9"},
        {"poll", "{\"id\":\"5195099893612380160\",\"question\":\"?\"}", "poll:5195099893612380160"},
        {"poll_answer", "{\"poll_id\":\"17\",\"user\":{\"id\":9}}", "user:9 poll:17"},
        /* kinds to come: the usual names, in the order of the documentation */
        {"hologram",
         "{\"chat\":{\"id\":1},\"message\":{\"chat\":{\"id\":2}},\"from\":{\"id\":3},\"user\":{\"id\":4}}",
         "chat:1 user:3"},
        {"hologram", "{\"user\":{\"id\":4},\"message\":{\"chat\":{\"id\":2}}}", "chat:2 user:4"},
        {"hologram", "{\"id\":5,\"poll_id\":6,\"user_chat_id\":7}", ""},
        {"hologram", "[{\"chat\":{\"id\":1}}]", ""},
        {"hologram", "17", ""},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char *json = xasprintf("{\"update_id\":727334708,\n\"%s\":%s}", rows[i].kind, rows[i].payload);
        struct update u = parsed(slice_str(json));
        check_row(i, u.has_id && u.id == 727334708);
        assert_string_equal(u.kind, rows[i].kind);
        check_row(i, slice_eq(u.bytes, slice_str(json)) && u.bytes.p == json);
        assert_string_equal(place_text(&u.place), rows[i].place);
        free(json);
    }
}

static void every_row_of_the_table_is_tested(void **state)
{
    (void)state;
    for (size_t i = 0; kind_at(i); i++) {
        char *json =
            xasprintf("{\"update_id\":1,\"%s\":{\"chat\":{\"id\":1},\"from\":{\"id\":2},\"user\":{\"id\":3},"
                      "\"user_chat_id\":4,\"message\":{\"chat\":{\"id\":5}},\"id\":\"6\",\"poll_id\":\"7\"}}",
                      kind_at(i)->name);
        struct update u = parsed(slice_str(json));
        check_row(i, u.place.has_chat || u.place.has_user || u.place.has_poll);
        free(json);
    }
}

static void other_chats_are_not_the_chat(void **state)
{
    (void)state;
    struct update u = parsed(
        LIT("{\"update_id\":1,\"message\":{"
            "\"reply_to_message\":{\"chat\":{\"id\":-1},\"from\":{\"id\":-2},\"message_thread_id\":-3},"
            "\"forward_origin\":{\"chat\":{\"id\":-4}},\"pinned_message\":{\"chat\":{\"id\":-5}},"
            "\"entities\":[{\"user\":{\"id\":-6}},{\"chat\":{\"id\":-7}}],"
            "\"chat\":{\"id\":10,\"pinned_message\":{\"chat\":{\"id\":-8},\"id\":-9},\"x\":{\"id\":-10}},"
            "\"from\":{\"id\":11,\"friend\":{\"id\":-11}},\"message_thread_id\":12,"
            "\"external_reply\":{\"chat\":{\"id\":-12}}}}"));

    assert_string_equal(place_text(&u.place), "chat:10 user:11 thread:12");
    u = parsed(LIT(
        "{\"update_id\":1,\"message\":{\"reply_to_message\":{\"chat\":{\"id\":-1}}},\"chat\":{\"id\":2}}"));
    assert_string_equal(place_text(&u.place), "");
}

static void threads(void **state)
{
    (void)state;
    struct update u =
        parsed(LIT("{\"update_id\":1,\"callback_query\":{\"message_thread_id\":1,\"from\":{\"id\":4},"
                   "\"message\":{\"message_thread_id\":7,\"chat\":{\"id\":5}}}}"));
    assert_string_equal(place_text(&u.place), "chat:5 user:4 thread:7");
}

static void names_may_be_escaped(void **state)
{
    (void)state;
    struct update u =
        parsed(LIT("{\"\\u0075pdate_id\":5,\"m\\u0065ssage\":{\"ch\\u0061t\":{\"\\u0069d\":6}}}"));

    assert_true(u.has_id && u.id == 5);
    assert_string_equal(u.kind, "message");
    assert_string_equal(place_text(&u.place), "chat:6");
}

static void ids(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        bool has;
        int64_t id;
    } rows[] = {
        {"{\"update_id\":0}", true, 0},
        {"{\"update_id\":9223372036854775807}", true, INT64_MAX},
        {"{\"update_id\":9223372036854775808}", false, 0},
        {"{\"update_id\":1234567890123456789012345678901234567890}", false, 0},
        {"{\"update_id\":-1}", false, 0},
        {"{\"update_id\":\"5\"}", false, 0},
        {"{\"update_id\":null}", false, 0},
        {"{\"update_id\":true}", false, 0},
        {"{\"update_id\":5.0}", false, 0},
        {"{\"update_id\":5e3}", false, 0},
        {"{\"update_id\":[5]}", false, 0},
        {"{\"update_id\":{\"update_id\":5}}", false, 0},
        {"{\"message\":{\"update_id\":5}}", false, 0},
        {"{\"message\":{},\"update_id\":5}", true, 5},
        {"{}", false, 0},
        {" \r\n\t{\"update_id\" : 7 } \n", true, 7},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct update u = parsed(slice_str(rows[i].json));
        check_row(i, u.has_id == rows[i].has && (!u.has_id || u.id == rows[i].id));
    }
}

static void huge_numbers_and_wrong_types_are_passed_over(void **state)
{
    (void)state;
    struct update u =
        parsed(LIT("{\"update_id\":3,\"message\":{\"date\":1234567890123456789012345678901234567890,"
                   "\"f\":1e999,\"chat\":{\"id\":\"12\"},\"from\":{\"id\":99999999999999999999}}}"));

    assert_true(u.has_id);
    assert_string_equal(place_text(&u.place), "");
    u = parsed(LIT("{\"update_id\":3,\"message\":{\"chat\":{\"id\":9007199254740993},\"from\":{\"id\":-"
                   "9223372036854775808}}}"));
    assert_string_equal(place_text(&u.place), "chat:9007199254740993 user:-9223372036854775808");
}

static void invalid_utf8_does_not_stop_it(void **state)
{
    (void)state;
    struct update u = parsed(
        LIT("{\"update_id\":3,\"m\xFF\xC0x\":{\"invoice_payload\":\"\xFF\xFE\x80\",\"chat\":{\"id\":4}}}"));

    assert_true(u.has_id && u.id == 3);
    assert_string_equal(place_text(&u.place), "chat:4");
    assert_non_null(strchr(u.kind, 'm')); /* what is shown of such a name is clean */
    for (const char *p = u.kind; *p; p++)
        assert_int_not_equal((unsigned char)*p, 0xFF);
}

static void long_names_are_cut(void **state)
{
    (void)state;
    char *json = xasprintf("{\"update_id\":3,\"%0200d\":{\"chat\":{\"id\":4}}}", 7);
    struct update u = parsed(slice_str(json));

    assert_int_equal(strlen(u.kind), UPDATE_KIND_MAX - 1);
    assert_string_equal(place_text(&u.place), "chat:4");
    free(json);
}

static struct slice nested(struct buf *b, unsigned depth, const char *open, const char *close)
{
    buf_add_str(b, "{\"update_id\":8,\"message\":{\"deep\":");
    for (unsigned i = 0; i < depth; i++)
        buf_add_str(b, open);
    buf_add_str(b, "1");
    for (unsigned i = 0; i < depth; i++)
        buf_add_str(b, close);
    buf_add_str(b, ",\"chat\":{\"id\":4}}}");
    return buf_slice(b);
}

static void deep_nesting(void **state)
{
    (void)state;
    struct buf arrays = BUF_EMPTY, maps = BUF_EMPTY;
    struct update u = parsed(nested(&arrays, 10000, "[", "]"));

    assert_true(u.has_id && u.id == 8);
    assert_string_equal(place_text(&u.place), "chat:4");
    u = parsed(nested(&maps, 10000, "{\"chat\":", "}"));
    assert_string_equal(place_text(&u.place), "chat:4");
    struct update_answer a;
    struct buf answer = BUF_EMPTY;
    buf_printf(&answer, "{\"ok\":true,\"result\":[%s,%s]}", buf_str(&arrays), buf_str(&maps));
    assert_int_equal(update_answer_parse(buf_slice(&answer), &a), 0);
    assert_int_equal(a.n, 2);
    assert_true(slice_eq(a.updates[1].bytes, buf_slice(&maps)));
    update_answer_free(&a);
    buf_free(&answer);
    buf_free(&arrays);
    buf_free(&maps);
}

static void blanks_around_are_left_out(void **state)
{
    (void)state;
    static const char *const rows[] = {"{\"update_id\": 1 }", " {\"update_id\": 1 }",
                                       "{\"update_id\": 1 }\r\n", "\t\r\n {\"update_id\": 1 } \n\t"};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct update u = parsed(slice_str(rows[i]));
        check_row(i, slice_eq_str(u.bytes, rows[0]) && u.bytes.p == strchr(rows[i], '{'));
    }
}

static void what_is_no_object(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",
        " ",
        "null",
        "5",
        "\"x\"",
        "[]",
        "[{}]",
        "{",
        "{\"update_id\":1",
        "{} x",
        "{}{}",
        "{}]",
        "{\"a\":}",
        "{\"a\" 1}",
        "{a:1}",
        "{\"a\":\"x}",
        "{\"a\":01x}",
        "x{}",
        "{/*c*/}",
        "{\"a\":nul}",
        "<html>502</html>",
        "{\"update_id\":1}}",
    };
    struct update u;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check_row(i, update_parse(slice_str(rows[i]), &u) == -1);
    assert_int_equal(update_parse(slice_make(NULL, 0), &u), -1);
    assert_int_equal(update_parse(LIT("{}\0"), &u), -1);
    assert_int_equal(update_parse(LIT("\0{}"), &u), -1);
}

/* An update cut anywhere is none. */
static void every_cut_is_refused(void **state)
{
    (void)state;
    static const char json[] =
        "{\"update_id\":1,\"message\":{\"chat\":{\"id\":-5},\"x\":[1,null,true,\"\\u0041\"]}}";
    struct update u;

    for (size_t n = 0; n < sizeof(json) - 1; n++) {
        char *exact = xmemdup(json, n); /* so that a read past the end is seen by a sanitizer */
        check_row(n, update_parse(slice_make(exact, n), &u) == -1);
        free(exact);
    }
}

static void an_answer_with_good_and_poison_entries(void **state)
{
    (void)state;
    static const char json[] =
        "{\"ok\":true,\"result\":[{\"update_id\":1,\n\"message\":{\"chat\":{\"id\":7}}}, \n"
        "{\"message\":{}},17 , \"x,y\",null,[1,{\"update_id\":9}],-1.5e3,\n"
        "{\"update_id\":1234567890123456789012345678901234567890,\"poll\":{\"id\":\"3\"}},"
        "{\"update_id\":2,\"inline_query\":{\"from\":{\"id\":8},\"query\":\"\xFF\"}}]}";
    static const struct {
        const char *bytes;
        bool has;
        int64_t id;
        const char *place;
    } rows[] = {
        {"{\"update_id\":1,\n\"message\":{\"chat\":{\"id\":7}}}", true, 1, "chat:7"},
        {"{\"message\":{}}", false, 0, ""},
        {"17", false, 0, ""},
        {"\"x,y\"", false, 0, ""},
        {"null", false, 0, ""},
        {"[1,{\"update_id\":9}]", false, 0, ""},
        {"-1.5e3", false, 0, ""},
        {"{\"update_id\":1234567890123456789012345678901234567890,\"poll\":{\"id\":\"3\"}}", false, 0,
         "poll:3"},
        {"{\"update_id\":2,\"inline_query\":{\"from\":{\"id\":8},\"query\":\"\xFF\"}}", true, 2, "user:8"},
    };
    struct update_answer a;

    assert_int_equal(update_answer_parse(LIT(json), &a), 0);
    assert_true(a.ok);
    assert_int_equal(a.n, ARRAY_LEN(rows));
    for (size_t i = 0; i < a.n; i++) {
        assert_slice(a.updates[i].bytes, rows[i].bytes);
        check_row(i, a.updates[i].has_id == rows[i].has && (!rows[i].has || a.updates[i].id == rows[i].id));
        assert_string_equal(place_text(&a.updates[i].place), rows[i].place);
    }
    update_answer_free(&a);
    update_answer_free(&a); /* twice is harmless */
}

static void a_hundred_updates(void **state)
{
    (void)state;
    struct buf b = BUF_EMPTY;
    struct update_answer a;

    buf_add_str(&b, "{\"result\":[");
    for (int i = 0; i < 100; i++)
        buf_printf(&b, "%s{\"update_id\":%d,\"message\":{\"chat\":{\"id\":%d}}}", i ? "," : "", 5000 + i,
                   i % 7);
    buf_add_str(&b, "],\"ok\":true}");
    assert_int_equal(update_answer_parse(buf_slice(&b), &a), 0);
    assert_int_equal(a.n, 100);
    for (int i = 0; i < 100; i++)
        check_row(i, a.updates[i].has_id && a.updates[i].id == 5000 + i && a.updates[i].place.chat == i % 7);
    update_answer_free(&a);
    buf_free(&b);
}

static void answers_that_say_no(void **state)
{
    (void)state;
    struct update_answer a;

    assert_int_equal(update_answer_parse(
                         LIT("{\"ok\":false,\"error_code\":429,\"description\":\"Too Many\\u0020Requests\","
                             "\"parameters\":{\"retry_after\":17}}"),
                         &a),
                     0);
    assert_false(a.ok);
    assert_int_equal(a.error_code, 429);
    assert_string_equal(a.description, "Too Many Requests");
    assert_int_equal(a.retry_after, 17);
    assert_int_equal(a.n, 0);
    update_answer_free(&a);

    assert_int_equal(
        update_answer_parse(LIT("{\"parameters\":{\"migrate_to_chat_id\":-1001234567890},\"error_code\":400,"
                                "\"ok\":false}"),
                            &a),
        0);
    assert_int_equal(a.error_code, 400);
    assert_true(a.migrate_to_chat_id == -1001234567890);
    assert_int_equal(a.retry_after, -1);
    assert_string_equal(a.description, "");
    update_answer_free(&a);

    char *json = xasprintf(
        "{\"ok\":false,\"error_code\":\"429\",\"parameters\":{\"retry_after\":-5},\"retry_after\":9,"
        "\"description\":\"a\\nb\xFF%0500d\"}",
        1);
    assert_int_equal(update_answer_parse(slice_str(json), &a), 0);
    assert_int_equal(a.error_code, 0);
    assert_int_equal(a.retry_after, -1);
    assert_true(strlen(a.description) < sizeof(a.description));
    assert_memory_equal(a.description,
                        "a b\xEF\xBF\xBD"
                        "00",
                        8);
    update_answer_free(&a);
    free(json);
}

static void an_empty_answer(void **state)
{
    (void)state;
    struct update_answer a;

    assert_int_equal(update_answer_parse(LIT("{\"ok\":true,\"result\":[]}"), &a), 0);
    assert_true(a.ok);
    assert_int_equal(a.n, 0);
    update_answer_free(&a);
}

static void what_is_no_answer(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",
        "null",
        "[]",
        "{}",
        "{\"result\":[]}",
        "{\"ok\":true}",
        "{\"ok\":true,\"result\":{}}",
        "{\"ok\":true,\"result\":{\"result\":[{\"update_id\":1}]}}",
        "{\"ok\":true,\"result\":true}",
        "{\"ok\":true,\"result\":[{\"update_id\":1}",
        "{\"ok\":true,\"result\":[{\"update_id\":1}]",
        "{\"ok\":true,\"result\":[{\"update_id\":1},]}",
        "{\"ok\":true,\"result\":[{\"update_id\":1}]}x",
        "{\"ok\":true,\"result\":[{\"update_id\":1}]}{}",
        "{\"x\":{\"ok\":true,\"result\":[]}}",
        "<html><body>502 Bad Gateway</body></html>",
    };
    struct update_answer a;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check_row(i, update_answer_parse(slice_str(rows[i]), &a) == -1);
}

static void guessing_an_id(void **state)
{
    (void)state;
    int64_t id = -7;

    assert_int_equal(update_guess_id(LIT("{\"update_id\":55,\"message\":{\"te"), &id), 0);
    assert_int_equal(id, 55);
    assert_int_equal(update_guess_id(LIT("[[[{ x \"update_id\" \n:\t56 }"), &id), 0);
    assert_int_equal(id, 56);
    assert_int_equal(update_guess_id(LIT("{\"update_id\":57"), &id), 0);
    assert_int_equal(id, 57);
    assert_int_equal(update_guess_id(LIT("{\"update_id\":"), &id), -1);
    assert_int_equal(update_guess_id(LIT("{\"update_id\""), &id), -1);
    assert_int_equal(update_guess_id(LIT("{\"update_id\":\"5\""), &id), -1);
    assert_int_equal(update_guess_id(LIT("{\"update_id\":-5"), &id), -1);
    assert_int_equal(update_guess_id(LIT("{\"update_id\":99999999999999999999"), &id), -1);
    assert_int_equal(update_guess_id(LIT("update_id:5"), &id), -1);
    assert_int_equal(update_guess_id(slice_make(NULL, 0), &id), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_tells_its_place),
        cmocka_unit_test(every_row_of_the_table_is_tested),
        cmocka_unit_test(other_chats_are_not_the_chat),
        cmocka_unit_test(threads),
        cmocka_unit_test(names_may_be_escaped),
        cmocka_unit_test(ids),
        cmocka_unit_test(huge_numbers_and_wrong_types_are_passed_over),
        cmocka_unit_test(invalid_utf8_does_not_stop_it),
        cmocka_unit_test(long_names_are_cut),
        cmocka_unit_test(deep_nesting),
        cmocka_unit_test(blanks_around_are_left_out),
        cmocka_unit_test(what_is_no_object),
        cmocka_unit_test(every_cut_is_refused),
        cmocka_unit_test(an_answer_with_good_and_poison_entries),
        cmocka_unit_test(a_hundred_updates),
        cmocka_unit_test(answers_that_say_no),
        cmocka_unit_test(an_empty_answer),
        cmocka_unit_test(what_is_no_answer),
        cmocka_unit_test(guessing_an_id),
    };
    return cmocka_run_group_tests_name("update", tests, NULL, NULL);
}
