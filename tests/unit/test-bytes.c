/* base/bytes and base/random: byte order, hex, comparisons. */
#include "unit.h"

#include "base/base64.h"
#include "base/random.h"

static void numbers_are_big_endian(void **state)
{
    (void)state;
    unsigned char p[10];

    memset(p, 0xEE, sizeof(p));
    put_be16(p, 0x0102);
    assert_memory_equal(p, "\x01\x02\xEE", 3);
    put_be32(p, 0x80000001);
    assert_memory_equal(p, "\x80\x00\x00\x01\xEE", 5);
    put_be64(p, UINT64_C(0x0102030405060708));
    assert_memory_equal(p, "\x01\x02\x03\x04\x05\x06\x07\x08\xEE", 9);
}

static void numbers_come_back(void **state)
{
    (void)state;
    static const uint64_t v[] = {0, 1, 0xFF, 0x100, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, UINT64_MAX};
    unsigned char p[8];

    for (size_t i = 0; i < ARRAY_LEN(v); i++) {
        put_be16(p, (uint16_t)v[i]);
        assert_int_equal(get_be16(p), (uint16_t)v[i]);
        put_be32(p, (uint32_t)v[i]);
        assert_int_equal(get_be32(p), (uint32_t)v[i]);
        put_be64(p, v[i]);
        assert_true(get_be64(p) == v[i]);
    }
}

static void signed_numbers_keep_their_order(void **state)
{
    (void)state;
    static const int64_t v[] = {INT64_MIN, -1001234567890, -2, -1, 0, 1, 2, 1001234567890, INT64_MAX};
    unsigned char a[8], b[8];

    for (size_t i = 0; i < ARRAY_LEN(v); i++)
        assert_true(unorder_i64(order_i64(v[i])) == v[i]);
    for (size_t i = 1; i < ARRAY_LEN(v); i++) {
        put_be64(a, order_i64(v[i - 1]));
        put_be64(b, order_i64(v[i]));
        assert_true(memcmp(a, b, 8) < 0);
    }
}

static void slices_compare(void **state)
{
    (void)state;
    assert_true(slice_eq(LIT("a\0b"), LIT("a\0b")));
    assert_false(slice_eq(LIT("a\0b"), LIT("a\0c")));
    assert_false(slice_eq(LIT("ab"), LIT("abc")));
    assert_true(slice_eq(slice_make(NULL, 0), LIT("")));
    assert_true(slice_eq_str(slice_str(NULL), ""));
    assert_true(slice_eq_str(LIT("x"), "x"));
    assert_true(slice_eq_nocase(LIT("Content-Length"), "content-lengtH"));
    assert_false(slice_eq_nocase(LIT("Content-Length"), "content-lengt"));
    assert_false(
        slice_eq_nocase(LIT("@"), "`")); /* 0x40 and 0x60 differ by the case bit, and are no letters */
    assert_true(slice_eq_nocase(slice_make(NULL, 0), ""));
}

static void secrets_compare(void **state)
{
    (void)state;
    assert_true(slice_eq_secret(LIT("secret\0x"), LIT("secret\0x")));
    assert_false(slice_eq_secret(LIT("secret\0x"), LIT("secret\0y")));
    assert_false(slice_eq_secret(LIT("Xecret"), LIT("secret")));
    assert_false(slice_eq_secret(LIT("secret"), LIT("secret1")));
    assert_true(slice_eq_secret(LIT(""), LIT("")));
}

static void hex_goes_both_ways(void **state)
{
    (void)state;
    char text[7];
    unsigned char back[3];

    hex_encode("\x00\xAB\xff", 3, text);
    assert_string_equal(text, "00abff");
    assert_int_equal(hex_decode(LIT("00aBfF"), back, 3), 0);
    assert_memory_equal(back, "\x00\xAB\xff", 3);
    hex_encode("", 0, text);
    assert_string_equal(text, "");
    assert_int_equal(hex_decode(LIT(""), back, 0), 0);
}

static void bad_hex_is_refused(void **state)
{
    (void)state;
    unsigned char out[2];

    assert_int_equal(hex_decode(LIT("abc"), out, 2), -1);
    assert_int_equal(hex_decode(LIT("abcde"), out, 2), -1);
    assert_int_equal(hex_decode(LIT("abcg"), out, 2), -1);
    assert_int_equal(hex_decode(LIT("ab d"), out, 2), -1);
    assert_int_equal(hex_decode(LIT("abcd00"), out, 2), -1);
    assert_int_equal(hex_decode(LIT("ab\0d"), out, 2), -1);
}

static void random_stays_below(void **state)
{
    (void)state;
    unsigned seen = 0;

    for (int i = 0; i < 1000; i++) {
        uint64_t v = random_below(3);
        assert_true(v < 3);
        seen |= 1u << v;
        assert_int_equal(random_below(1), 0);
    }
    assert_int_equal(seen, 7);
}

static void random_bytes_fill_all_and_no_more(void **state)
{
    (void)state;
    unsigned char p[17], any[16] = {0};

    p[16] = 0x5A;
    for (int i = 0; i < 64; i++) {
        random_bytes(p, 16);
        for (int k = 0; k < 16; k++)
            any[k] |= p[k];
    }
    for (int k = 0; k < 16; k++)
        assert_int_not_equal(any[k], 0);
    assert_int_equal(p[16], 0x5A);
}

static void base64_goes_both_ways(void **state)
{
    static const struct {
        struct slice bytes;
        const char *text;
    } rows[] = {
        {{"", 0}, ""},        {{"f", 1}, "Zg=="},        {{"fo", 2}, "Zm8="},
        {{"foo", 3}, "Zm9v"}, {{"foob", 4}, "Zm9vYg=="}, {{"\xfb\xff\0\x7f", 4}, "+/8Afw=="},
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf text = BUF_EMPTY, bytes = BUF_EMPTY;
        base64_add(&text, rows[i].bytes);
        assert_string_equal(buf_str(&text), rows[i].text);
        assert_int_equal(base64_add_decoded(&bytes, slice_str(rows[i].text)), 0);
        check_row(i, slice_eq(buf_slice(&bytes), rows[i].bytes));
        buf_free(&text);
        buf_free(&bytes);
    }
}

static void bad_base64_is_refused(void **state)
{
    static const char *const rows[] = {
        "A", "AA", "AAA", "=AAA", "A===", "====", "A=AA", "AA=A", "AAA-", "AA\nA"};
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf bytes = BUF_EMPTY;
        check_row(i, base64_add_decoded(&bytes, slice_str(rows[i])) < 0);
        buf_free(&bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_big_endian),
        cmocka_unit_test(numbers_come_back),
        cmocka_unit_test(signed_numbers_keep_their_order),
        cmocka_unit_test(slices_compare),
        cmocka_unit_test(secrets_compare),
        cmocka_unit_test(hex_goes_both_ways),
        cmocka_unit_test(bad_hex_is_refused),
        cmocka_unit_test(base64_goes_both_ways),
        cmocka_unit_test(bad_base64_is_refused),
        cmocka_unit_test(random_stays_below),
        cmocka_unit_test(random_bytes_fill_all_and_no_more),
    };
    return cmocka_run_group_tests_name("bytes", tests, NULL, NULL);
}
