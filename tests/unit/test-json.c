/* The JSON writer and the tree. */
#include "unit.h"

#include "wire/json.h"

static struct json *parse(const char *text)
{
    char why[128];
    struct json *v = json_parse(slice_str(text), why);

    if (!v)
        fail_msg("%s: %s", text, why);
    return v;
}

static void test_writing(void **state)
{
    struct buf b = BUF_EMPTY;
    struct json_out j;

    (void)state;
    buf_add_str(&b, "in front:");
    json_start(&j, &b);
    json_object(&j);
    json_kv_cstr(&j, "text", "a\"\\\n\x01/");
    json_kv_cstr(&j, "none", NULL);
    json_kv_int(&j, "least", INT64_MIN);
    json_kv_uint(&j, "most", UINT64_MAX);
    json_kv_bool(&j, "yes", true);
    json_kv_text(&j, "empty", slice_make(NULL, 0));
    json_key(&j, "list");
    json_array(&j);
    json_null(&j);
    json_raw(&j, LIT("{\"as\":\n1}"));
    json_raw_line(&j, LIT("{\"on\":\r\n2}"));
    json_array(&j);
    json_array_end(&j);
    json_array_end(&j);
    json_object_end(&j);
    json_end(&j);
    assert_string_equal(b.p, "in front:{\"text\":\"a\\\"\\\\\\n\\u0001/\",\"none\":null,"
                             "\"least\":-9223372036854775808,\"most\":18446744073709551615,\"yes\":true,"
                             "\"empty\":\"\",\"list\":[null,{\"as\":\n1},{\"on\":  2},[]]}");
    buf_free(&b);
}

static void test_writing_bytes(void **state)
{
    static const struct {
        struct slice in;
        const char *out;
    } rows[] = {
        {{"\xD0\x9F\xF0\x9F\x98\x80", 6}, "\"\xD0\x9F\xF0\x9F\x98\x80\""},
        {{"\xFF", 1}, "\"\xEF\xBF\xBD\""},
        {{"a\xC3", 2}, "\"a\xEF\xBF\xBD\""},
        {{"\xED\xA0\x80z", 4}, "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDz\""},
        {{"a\0b", 3}, "\"a\\u0000b\""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf b = BUF_EMPTY;
        struct json_out j;
        json_start(&j, &b);
        json_text(&j, rows[i].in);
        json_end(&j);
        check_row(i, strcmp(b.p, rows[i].out) == 0);
        buf_free(&b);
    }
}

static void test_reading(void **state)
{
    struct json *v =
        parse(" {\"s\":\"a\\u00e9\\ud83d\\ude00\\u0000b\",\"n\":-12,\"big\":123456789012345678901234567890,"
              "\"d\":1.5,\"t\":true,\"f\":false,\"z\":null,\"a\":[1,[],{}],\"\":\"\"} ");
    const struct json *item;
    int64_t n = 0;

    (void)state;
    assert_int_equal(json_type(v), JSON_OBJECT);
    assert_int_equal(json_length(v), 9);
    assert_true(slice_eq(json_string(json_get(v, "s")), LIT("a\xC3\xA9\xF0\x9F\x98\x80\0b")));
    assert_int_equal(json_to_i64(json_get(v, "n"), &n), 0);
    assert_int_equal(n, -12);
    assert_int_equal(json_to_i64(json_get(v, "big"), &n), -1);
    assert_slice(json_number(json_get(v, "big")), "123456789012345678901234567890");
    assert_int_equal(json_to_i64(json_get(v, "d"), &n), -1);
    assert_int_equal(json_to_i64(json_get(v, "s"), &n), -1);
    assert_true(json_true(json_get(v, "t")));
    assert_false(json_true(json_get(v, "f")));
    assert_int_equal(json_type(json_get(v, "z")), JSON_NULL);
    assert_non_null(json_get(v, "z"));
    assert_null(json_get(v, "absent"));
    assert_non_null(json_string(json_get(v, "")).p);
    item = json_get(v, "a");
    assert_int_equal(json_length(item), 3);
    assert_int_equal(json_type(json_item(item, 1)), JSON_ARRAY);
    assert_int_equal(json_length(json_item(item, 2)), 0);
    assert_null(json_item(item, 3));
    assert_slice(json_name(v, 1, &item), "n");
    assert_slice(json_number(item), "-12");
    assert_null(json_name(v, 9, &item).p);
    assert_null(item);
    /* what is not there answers too */
    assert_null(json_get(NULL, "x"));
    assert_null(json_get(json_get(v, "a"), "x"));
    assert_null(json_item(v, 0));
    assert_null(json_string(json_get(v, "n")).p);
    assert_int_equal(json_length(json_get(v, "s")), 0);
    assert_false(json_true(NULL));
    json_free(v);
    json_free(NULL);
}

static void test_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "byte 0"},
        {" ", "byte 1"},
        {"{\"a\":1,\"b\":2,\"a\":3}", "repeated"},
        {"{\"x\":[{\"a\":1,\"\\u0061\":2}]}", "repeated"},
        {"{\"a\":1", "byte"},
        {"{\"a\" 1}", "byte"},
        {"{a:1}", "byte"},
        {"[1,]", "byte"},
        {"[01]", "byte"},
        {"\"a", "byte"},
        {"\"\n\"", "byte"},
        {"{} {}", "byte"},
        {"{}x", "byte"},
        {"nul", "byte"},
        {"/**/1", "byte"},
        {"NaN", "byte"},
    };
    char why[128];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        why[0] = '\0';
        check_row(i, json_parse(slice_str(rows[i].text), why) == NULL);
        check_row(i, strstr(why, rows[i].why) != NULL);
        check_row(i, json_parse(slice_str(rows[i].text), NULL) == NULL);
    }
    /* the text itself is never shown: it may be private */
    assert_null(json_parse(LIT("{\"sekret\": sekret}"), why));
    assert_null(strstr(why, "sek"));
}

static void test_depth(void **state)
{
    char text[2 * 65 + 1] = "";

    (void)state;
    for (size_t depth = 64; depth <= 65; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        struct json *v = json_parse(slice_make(text, 2 * depth), NULL);
        assert_true((v != NULL) == (depth == 64));
        json_free(v);
    }
    char *endless = xmalloc(1000000);
    memset(endless, '[', 1000000);
    char why[128];
    assert_null(json_parse(slice_make(endless, 1000000), why));
    assert_non_null(strstr(why, "deep"));
    free(endless);
}

static void test_invalid_utf8(void **state)
{
    struct json *v = json_parse(LIT("[\"\xFF\xC3\"]"), NULL);

    (void)state;
    assert_non_null(v);
    assert_slice(json_string(json_item(v, 0)), "\xFF\xC3");
    json_free(v);
    char why[128];
    assert_null(json_parse(LIT("{\"a\xFF\":1,\"a\xFE\":2}"), why)); /* written again, they would be one */
    assert_non_null(strstr(why, "a name is not UTF-8"));
}

/* Many values: found, compared and freed without recursion, and no more of them than the limit. */
static void test_many(void **state)
{
    struct buf b = BUF_EMPTY;
    char why[128];

    (void)state;
    buf_add_char(&b, '{');
    for (int i = 0; i < 100000; i++)
        buf_printf(&b, "%s\"k%d\":%d", i ? "," : "", i, i);
    buf_add_char(&b, '}');
    struct json *v = json_parse(buf_slice(&b), why);
    assert_non_null(v);
    assert_int_equal(json_length(v), 100000);
    assert_slice(json_number(json_get(v, "k99999")), "99999");
    json_free(v);
    buf_clear(&b);
    buf_add_str(&b, "[0");
    for (int i = 0; i < 600000; i++)
        buf_add_str(&b, ",0");
    buf_add_char(&b, ']');
    assert_null(json_parse(buf_slice(&b), why));
    assert_non_null(strstr(why, "too many"));
    buf_free(&b);
}

/* What is written again reads the same; only invalid UTF-8 changes. */
static void test_written_again(void **state)
{
    static const struct {
        const char *text, *again;
    } rows[] = {
        {" { \"a\" : [ 1 , -2.50e+10 , true , false , null , \"x\\n\\u00e9\" , {} , [] ] } ",
         "{\"a\":[1,-2.50e+10,true,false,null,\"x\\n\xC3\xA9\",{},[]]}"},
        {"123456789012345678901234567890", "123456789012345678901234567890"},
        {"\"\xff\"", "\"\xEF\xBF\xBD\""},
        {"\"\\u0000\"", "\"\\u0000\""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct json *v = json_parse(slice_str(rows[i].text), NULL);
        struct buf out = BUF_EMPTY;
        struct json_out j;
        check_row(i, v != NULL);
        json_start(&j, &out);
        json_write(&j, v);
        json_end(&j);
        check_row(i, slice_eq_str(buf_slice(&out), rows[i].again));
        buf_free(&out);
        json_free(v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written_again), cmocka_unit_test(test_writing),
        cmocka_unit_test(test_writing_bytes), cmocka_unit_test(test_reading),
        cmocka_unit_test(test_refused),       cmocka_unit_test(test_depth),
        cmocka_unit_test(test_invalid_utf8),  cmocka_unit_test(test_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
