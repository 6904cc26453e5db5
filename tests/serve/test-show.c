/* What people are shown: payloads masked, tables that fit. */
#include "../unit/unit.h"

#include <locale.h>

#include "cli/command.h"
#include "cli/mask.h"

static void test_mask(void **state)
{
    static const struct {
        const char *in, *masked;
    } rows[] = {
        {"{\"text\":\"hello\"}", "{\"text\":\"<5 chars>\"}"},
        {"{\"text\":\"\"}", "{\"text\":\"<0 chars>\"}"},
        {"{\"text\":\"x\"}", "{\"text\":\"<1 char>\"}"},
        {"{\"text\":\"h\xC3\xA9\xE2\x82\xAC\"}", "{\"text\":\"<3 chars>\"}"},
        {"{\"update_id\":5,\"message\":{\"chat\":{\"id\":-100,\"type\":\"private\",\"title\":\"Family\"}}}",
         "{\"update_id\":5,\"message\":{\"chat\":{\"id\":-100,\"type\":\"private\",\"title\":\"<6 "
         "chars>\"}}}"},
        {"{\"callback_query\":{\"data\":\"buy:1\",\"ok\":true,\"x\":null}}",
         "{\"callback_query\":{\"data\":\"<5 chars>\",\"ok\":true,\"x\":null}}"},
        {"{\"options\":[\"yes\",{\"text\":\"no\"},3]}",
         "{\"options\":[\"<3 chars>\",{\"text\":\"<2 chars>\"},3]}"},
        /* a list under a harmless name is harmless, an object under it is not */
        {"{\"type\":[\"a\",{\"note\":\"b\"}]}", "{\"type\":[\"a\",{\"note\":\"<1 char>\"}]}"},
        {"{\"unheard_of\":\"words\"}", "{\"unheard_of\":\"<5 chars>\"}"},
        {"{\"location\":{\"latitude\":1.5,\"longitude\":-2}}",
         "{\"location\":{\"latitude\":\"<number>\",\"longitude\":\"<number>\"}}"},
        {"{\"phone_number\":\"4912345\",\"file_id\":\"AgAD\",\"username\":\"zoe\"}",
         "{\"phone_number\":\"<7 chars>\",\"file_id\":\"<4 chars>\",\"username\":\"<3 chars>\"}"},
        {"\"bare\"", "\"<4 chars>\""},
        {"{\"n\":123456789012345678901234567890}", "{\"n\":123456789012345678901234567890}"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (int reveal = 0; reveal < 2; reveal++) {
            struct json *v = json_parse(slice_str(rows[i].in), NULL);
            struct buf out = BUF_EMPTY;
            struct json_out j;
            check_row(i, v != NULL);
            json_start(&j, &out);
            mask_write(&j, v, reveal);
            json_end(&j);
            check_row(i, strcmp(buf_str(&out), reveal ? rows[i].in : rows[i].masked) == 0);
            buf_free(&out);
            json_free(v);
        }
}

static void test_table_lines_up(void **state)
{
    struct cli_table *t = cli_table_new("lr<", 80);
    struct buf out = BUF_EMPTY;

    (void)state;
    cli_table_cell(t, "NAME");
    cli_table_cell(t, "N");
    cli_table_cell(t, "NOTE");
    cli_table_cell(t, "a");
    cli_table_cell(t, "%d", 1234);
    cli_table_cell(t, "two\nlines\x1b[31m");
    cli_table_cell(t, "\xE4\xBD\xA0\xE5\xA5\xBD"); /* two characters of two columns */
    cli_table_cell(t, "5");
    cli_table_cell(t, "%s", "");
    cli_table_print(t, &out);
    assert_string_equal(buf_str(&out), "NAME     N  NOTE\n"
                                       "a     1234  two lines [31m\n"
                                       "\xE4\xBD\xA0\xE5\xA5\xBD     5\n");
    buf_free(&out);
}

static void test_table_fits(void **state)
{
    struct cli_table *t = cli_table_new("<l<", 30);
    struct buf out = BUF_EMPTY;

    (void)state;
    cli_table_cell(t, "%s", "a-name-of-a-good-length");
    cli_table_cell(t, "fixed");
    cli_table_cell(t, "an error that goes on for a while \xE4\xBD\xA0\xE5\xA5\xBD");
    cli_table_print(t, &out);
    assert_string_equal(buf_str(&out), "a-name-of~  fixed  an error t~\n");
    buf_free(&out);

    t = cli_table_new("<", 6);
    cli_table_cell(
        t, "\xE4\xBD\xA0\xE5\xA5\xBD\xE4\xBD\xA0\xE5\xA5\xBD"); /* the cut may not halve a character */
    cli_table_print(t, &out);
    assert_string_equal(buf_str(&out), "\xE4\xBD\xA0\xE5\xA5\xBD~\n");
    buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mask),
        cmocka_unit_test(test_table_lines_up),
        cmocka_unit_test(test_table_fits),
    };

    setlocale(LC_CTYPE, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
