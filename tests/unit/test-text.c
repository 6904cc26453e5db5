/* base/text: strict numbers, times and sizes; text made fit to show; tokens taken out. */
#include "unit.h"

#include "base/text.h"

static void whole_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t min, max;
        int rc;
        int64_t v;
    } rows[] = {
        {"0", INT64_MIN, INT64_MAX, 0, 0},
        {"-0", INT64_MIN, INT64_MAX, 0, 0},
        {"007", INT64_MIN, INT64_MAX, 0, 7},
        {"9223372036854775807", INT64_MIN, INT64_MAX, 0, INT64_MAX},
        {"9223372036854775808", INT64_MIN, INT64_MAX, -1, 0},
        {"-9223372036854775808", INT64_MIN, INT64_MAX, 0, INT64_MIN},
        {"-9223372036854775809", INT64_MIN, INT64_MAX, -1, 0},
        {"1234567890123456789012345678901234567890", INT64_MIN, INT64_MAX, -1, 0},
        {"1", 1, 5, 0, 1},
        {"5", 1, 5, 0, 5},
        {"0", 1, 5, -1, 0},
        {"6", 1, 5, -1, 0},
        {"", 0, 9, -1, 0},
        {"-", -9, 9, -1, 0},
        {"+1", 0, 9, -1, 0},
        {" 1", 0, 9, -1, 0},
        {"1 ", 0, 9, -1, 0},
        {"1e3", 0, 9999, -1, 0},
        {"0x10", 0, 99, -1, 0},
        {"1.0", 0, 99, -1, 0},
        {"--1", -9, 9, -1, 0},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t v = -77;
        check_row(i, text_to_i64(slice_str(rows[i].text), rows[i].min, rows[i].max, &v) == rows[i].rc);
        check_row(i, v == (rows[i].rc ? -77 : rows[i].v)); /* a failure leaves the number alone */
    }
    int64_t v;
    assert_int_equal(text_to_i64(LIT("1\0"), 0, 9, &v), -1);
    assert_int_equal(text_to_i64(slice_make(NULL, 0), 0, 9, &v), -1);
}

static void lengths_of_time(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms; /* -1: refused */
        const char *back;
    } rows[] = {
        {"0", 0, "0s"},
        {"1", 1000, "1s"},
        {"90", 90000, "90s"},
        {"20ms", 20, "20ms"},
        {"1500ms", 1500, "1500ms"},
        {"60s", 60000, "1m"},
        {"5m", 300000, "5m"},
        {"90m", 5400000, "90m"},
        {"72h", 259200000, "3d"},
        {"3d", 259200000, "3d"},
        {"", -1, NULL},
        {"s", -1, NULL},
        {"-1s", -1, NULL},
        {"1 s", -1, NULL},
        {"1S", -1, NULL},
        {"1w", -1, NULL},
        {"1.5s", -1, NULL},
        {"1sm", -1, NULL},
        {"106751991168d", -1, NULL},
        {"9223372036854775807", -1, NULL},
        {"9223372036854775807ms", INT64_MAX, "9223372036854775807ms"},
    };
    char out[32];

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t ms;
        int rc = text_to_ms(slice_str(rows[i].text), &ms);
        check_row(i, rc == (rows[i].ms < 0 ? -1 : 0));
        if (rc == 0) {
            check_row(i, ms == rows[i].ms);
            assert_string_equal(text_from_ms(ms, out), rows[i].back);
        }
    }
}

static void sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes;
    } rows[] = {
        {"0", 0},    {"17", 17}, {"4K", 4096}, {"4M", 4 << 20}, {"2G", INT64_C(2) << 30}, {"4k", -1},
        {"4MB", -1}, {"", -1},   {"K", -1},    {"1T", -1},      {"8589934592G", -1},      {"-1K", -1},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t v;
        int rc = text_to_size(slice_str(rows[i].text), &v);
        check_row(i, rc == (rows[i].bytes < 0 ? -1 : 0));
        check_row(i, rc || v == rows[i].bytes);
    }
}

static void points_in_time(void **state)
{
    (void)state;
    char out[32];

    assert_string_equal(text_time(0, out), "1970-01-01T00:00:00.000Z");
    assert_string_equal(text_time(INT64_C(1795974368123), out), "2026-11-29T17:46:08.123Z");
    assert_string_equal(text_time(INT64_C(951782400007), out), "2000-02-29T00:00:00.007Z");
    assert_string_equal(text_time(-1, out), "-");
    assert_string_equal(text_time(INT64_MAX, out), "-");
}

static void ages(void **state)
{
    (void)state;
    static const struct {
        int64_t ms;
        const char *text;
    } rows[] = {
        {-5, "0ms"},           {0, "0ms"},          {999, "999ms"},
        {1000, "1s"},          {119999, "119s"},    {120000, "2m"},
        {7199999, "119m"},     {7200000, "2h0m"},   {12000000, "3h20m"},
        {172799999, "47h59m"}, {172800000, "2d0h"}, {360000000, "4d4h"},
    };
    char out[32];

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_string_equal(text_age(rows[i].ms, out), rows[i].text);
}

static void sizes_for_people(void **state)
{
    (void)state;
    static const struct {
        int64_t bytes;
        const char *text;
    } rows[] = {
        {0, "0 KB"},
        {511, "0 KB"},
        {512 << 10, "512 KB"},
        {1023 << 10, "1.0 MB"},
        {120 << 20, "120 MB"},
        {2040109466, "1.9 GB"},
        {INT64_C(4) << 40, "4.0 TB"},
        {INT64_C(3000) << 40, "3000 TB"},
    };
    char out[32];

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_string_equal(text_bytes(rows[i].bytes, out), rows[i].text);
}

static void clean(struct slice in, size_t max, bool lines, const char *want)
{
    struct buf b = BUF_EMPTY;

    text_add_clean(&b, in, max, lines);
    assert_string_equal(buf_str(&b), want);
    assert_int_equal(b.n, strlen(want));
    buf_free(&b);
}

#define BAD "\xEF\xBF\xBD"

static void utf8_is_kept_and_the_rest_replaced(void **state)
{
    (void)state;
    clean(LIT("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z"), 100, false,
          "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z");
    clean(LIT("\xFF\xFE"), 100, false, BAD BAD);
    clean(LIT("\xC0\x80"), 100, false, BAD BAD);                 /* an overlong zero */
    clean(LIT("\xE0\x80\x80"), 100, false, BAD BAD BAD);         /* overlong */
    clean(LIT("\xED\xA0\x80"), 100, false, BAD BAD BAD);         /* a surrogate */
    clean(LIT("\xF4\x90\x80\x80"), 100, false, BAD BAD BAD BAD); /* above U+10FFFF */
    clean(LIT("\xE2\x82"), 100, false, BAD BAD);                 /* cut short */
    clean(LIT("\xE2\x82z"), 100, false, BAD BAD "z");
    clean(LIT(""), 100, false, "");
    clean(slice_make(NULL, 0), 100, false, "");
}

static void control_characters_become_blanks(void **state)
{
    (void)state;
    clean(LIT("a\0b\r\n\t\x1B[31m\x7F"), 100, false, "a b    [31m ");
    clean(LIT("a\0b\r\n\t\x1B\x7F"), 100, true, "a b \n\t  ");
}

static void cut_between_characters(void **state)
{
    (void)state;
    clean(LIT("abc"), 2, false, "ab");
    clean(LIT("a\xE2\x82\xAC"), 3, false, "a");
    clean(LIT("a\xE2\x82\xAC"), 4, false, "a\xE2\x82\xAC");
    clean(LIT("\xFF"), 2, false, "");
    clean(LIT("abc"), 0, false, "");
}

static void scrub(const char *in, const char *want)
{
    struct buf b = BUF_EMPTY;

    buf_add_str(&b, in);
    text_scrub_tokens(&b);
    assert_string_equal(buf_str(&b), want);
    assert_int_equal(b.n, strlen(want));
    buf_free(&b);
}

#define A30 "ABCDEFGHIJabcdefghij012345678_"

static void tokens_are_taken_out(void **state)
{
    (void)state;
    scrub("", "");
    scrub("nothing here: 12:34", "nothing here: 12:34");
    scrub("1:" A30, "<token>");
    scrub("get /bot123456789:" A30 "-5/getMe twice 123456789:" A30, "get /bot<token>/getMe twice <token>");
    scrub("1:ABCDEFGHIJabcdefghij012345678", "1:ABCDEFGHIJabcdefghij012345678"); /* 29 characters: none */
    scrub(":" A30, ":" A30);
    scrub("1::" A30, "1::" A30);
    scrub("x1:2:" A30 "!", "x1:<token>!");
    scrub("99:" A30 ":" A30, "<token>:" A30);
    struct buf none = BUF_EMPTY;
    text_scrub_tokens(&none);
    assert_int_equal(none.n, 0);
}

static void bot_names(void **state)
{
    (void)state;
    assert_true(text_is_bot_name(LIT("a")));
    assert_true(text_is_bot_name(LIT("Shop_bot-2")));
    assert_true(text_is_bot_name(LIT("12345678901234567890123456789012")));
    assert_false(text_is_bot_name(LIT("123456789012345678901234567890123")));
    assert_false(text_is_bot_name(LIT("")));
    assert_false(text_is_bot_name(LIT("a/b")));
    assert_false(text_is_bot_name(LIT("a b")));
    assert_false(text_is_bot_name(LIT("a\0b")));
    assert_false(text_is_bot_name(LIT("\xC3\xA9")));
}

static void slips_between_names(void **state)
{
    static const char digits[] = "123456789012345678901234567890123456789012345678901234567890";
    static const struct {
        const char *a, *b;
        unsigned distance;
    } rows[] = {
        {"", "", 0},          {"lease", "lease", 0},  {"", "abc", 3},         {"lease", "leese", 1},
        {"lease", "lase", 1}, {"lease", "leasse", 1}, {"lease", "laese", 1},  {"inof", "info", 1},
        {"ab", "ba", 1},      {"abc", "cab", 2},      {"ca", "abc", 3},       {"kitten", "sitting", 3},
        {"aaaa", "bbbb", 4},  {"Lease", "lease", 1},  {"status", "start", 3},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        check_row(i, text_distance(slice_str(rows[i].a), slice_str(rows[i].b)) == rows[i].distance);
        check_row(i, text_distance(slice_str(rows[i].b), slice_str(rows[i].a)) == rows[i].distance);
    }
    assert_int_equal(text_distance(slice_make(digits, 40), slice_make(digits, 40)), 0);
    assert_int_equal(text_distance(slice_make(digits, 41), slice_make(digits, 41)), 40);
    assert_int_equal(text_distance(slice_make(digits, 41), slice_str("1")), 40);
}

static void both_the_same(void **state)
{
    char shop[] = "shop";

    (void)state;
    assert_true(text_same(shop, "shop"));
    assert_true(text_same(NULL, NULL));
    assert_false(text_same(shop, "shops"));
    assert_false(text_same(shop, NULL));
    assert_false(text_same(NULL, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(lengths_of_time),
        cmocka_unit_test(sizes),
        cmocka_unit_test(points_in_time),
        cmocka_unit_test(ages),
        cmocka_unit_test(sizes_for_people),
        cmocka_unit_test(utf8_is_kept_and_the_rest_replaced),
        cmocka_unit_test(control_characters_become_blanks),
        cmocka_unit_test(cut_between_characters),
        cmocka_unit_test(tokens_are_taken_out),
        cmocka_unit_test(bot_names),
        cmocka_unit_test(slips_between_names),
        cmocka_unit_test(both_the_same),
    };
    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
