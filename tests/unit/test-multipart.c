/* multipart/form-data: what libraries send, and what must not pass for it. */
#include "unit.h"

#include "wire/multipart.h"

#define TYPE(boundary) LIT("multipart/form-data; boundary=" boundary)

struct row {
    struct slice type, body;
    int parts; /* -1: malformed at the end; -2: at the start */
    const char *last_name;
    struct slice last_content;
    bool last_is_file;
};

/* A literal as a slice in a table, zeros inside included. */
#define S(text)                \
    {                          \
        text, sizeof(text) - 1 \
    }
#define NONE S("")

static const struct row rows[] = {
    /* aiohttp, as aiogram has it: no call */
    {S("multipart/form-data; boundary=webhookBoundaryAb-_1"), S("--webhookBoundaryAb-_1--\r\n"), 0, "", NONE,
     false},
    /* telegraf: no blank behind the colon, no CRLF at the end */
    {S("multipart/form-data; boundary=ab"),
     S("--ab\r\ncontent-disposition:form-data; name=\"chat_id\"\r\n\r\n42\r\n--ab--"), 1, "chat_id", S("42"),
     false},
    /* a file, its content with what looks like a delimiter of another */
    {S("Multipart/Form-Data; charset=x; Boundary=\"a b\""),
     S("--a b\r\nContent-Type: image/png\r\nContent-Disposition: form-data; name=\"photo\"; "
       "filename=\"a;b.png\"\r\n\r\n\0\r\n--a "
       "c\r\n--a b--"),
     1, "photo", S("\0\r\n--a c"), true},
    {S("multipart/form-data; boundary=x"),
     S("--x\r\nContent-Disposition: form-data; name=d; filename*=utf-8''%C3%A9\r\n\r\n\r\n--x--"), 1, "d",
     S(""), true},
    /* an escaped quote in the file's name does not hide that it is one */
    {S("multipart/form-data; boundary=x"),
     S("--x\r\nContent-Disposition: form-data; name=\"d\"; filename=\"a\\\"; name=\\\"e\"\r\n\r\n1\r\n--x--"),
     1, "d", S("1"), true},
    /* a CRLF in front, an empty part, an epilogue */
    {S("multipart/form-data; boundary=x"),
     S("\r\n--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\r\n--x--\r\nmore"), 1, "a", S(""),
     false},
    /* what is none */
    {S("multipart/form-data"), S("--x--"), -2, "", NONE, false},
    {S("multipart/form-data; boundary="), S("----"), -2, "", NONE, false},
    {S("multipart/mixed; boundary=x"), S("--x--"), -2, "", NONE, false},
    {S("multipart/form-data; boundary=x"), S(""), -2, "", NONE, false},
    {S("multipart/form-data; boundary=x"), S("preamble\r\n--x--"), -2, "", NONE, false},
    {S("multipart/form-data; boundary=x"), S("--x"), -1, "", NONE, false},
    {S("multipart/form-data; boundary=x"), S("--x\n"), -1, "", NONE, false},
    {S("multipart/form-data; boundary=x"), S("--x\r\n\r\n1\r\n--x--"), -1, "", NONE, false}, /* no name */
    {S("multipart/form-data; boundary=x"),
     S("--x\r\nContent-Disposition: attachment; name=\"a\"\r\n\r\n1\r\n--x--"), -1, "", NONE, false},
    {S("multipart/form-data; boundary=x"),
     S("--x\r\nContent-Disposition: form-data; name=\"a\"\r\nContent-Disposition: form-data; "
       "name=\"b\"\r\n\r\n1\r\n--x--"),
     -1, "", NONE, false},
    {S("multipart/form-data; boundary=x"),
     S("--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n"), -1, "", NONE, false},
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct row *r = &rows[i];
        struct multipart m;
        struct multipart_part part = {{"", 0}, {"", 0}, false};
        int n = 0, rc = multipart_start(&m, r->type, r->body);
        if (rc < 0) {
            check_row(i, r->parts == -2);
            continue;
        }
        while ((rc = multipart_next(&m, &part)) > 0)
            n++;
        check_row(i, r->parts == (rc < 0 ? -1 : n));
        if (r->parts <= 0)
            continue;
        check_row(i, slice_eq_str(part.name, r->last_name));
        check_row(i, slice_eq(part.content, r->last_content));
        check_row(i, part.is_file == r->last_is_file);
        check_row(i, multipart_next(&m, &part) == 0); /* and stays there */
    }
}

static void test_many_parts_in_order(void **state)
{
    struct buf body = BUF_EMPTY;
    struct multipart m;
    struct multipart_part part;
    char want[16];

    (void)state;
    for (int i = 0; i < 1000; i++)
        buf_printf(&body, "--b\r\nContent-Disposition: form-data; name=\"n%d\"\r\n\r\nv%d\r\n", i, i);
    buf_add_str(&body, "--b--\r\n");
    assert_int_equal(multipart_start(&m, TYPE("b"), buf_slice(&body)), 0);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(multipart_next(&m, &part), 1);
        snprintf(want, sizeof(want), "n%d", i);
        assert_slice(part.name, want);
        snprintf(want, sizeof(want), "v%d", i);
        assert_slice(part.content, want);
    }
    assert_int_equal(multipart_next(&m, &part), 0);
    buf_free(&body);
}

/* Heads are bounded, whatever comes. */
static void test_long_head(void **state)
{
    struct buf body = BUF_EMPTY;
    struct multipart m;
    struct multipart_part part;

    (void)state;
    buf_add_str(&body, "--b\r\nContent-Disposition: form-data; name=\"n\"\r\n");
    for (int i = 0; i < 1000; i++)
        buf_add_str(&body, "X-More: and more\r\n");
    buf_add_str(&body, "\r\nv\r\n--b--");
    assert_int_equal(multipart_start(&m, TYPE("b"), buf_slice(&body)), 0);
    assert_int_equal(multipart_next(&m, &part), -1);
    buf_free(&body);
}

static void test_parameters(void **state)
{
    (void)state;
    assert_slice(header_parameter(LIT("a/b; x=1; Y=\"2;3\" ; z"), "y"), "2;3");
    assert_slice(header_parameter(LIT("a/b; x=1; Y=\"2;3\" ; z"), "X"), "1");
    assert_slice(header_parameter(LIT("a/b; x=1"), "b"), "");
    assert_slice(header_parameter(LIT("x=1"), "x"), ""); /* the value itself is no parameter */
    assert_slice(header_parameter(LIT("a; x=\"1"), "x"), "");
    assert_slice(header_parameter(LIT(""), "x"), "");
    assert_true(content_type_is(LIT(" Application/JSON ; charset=utf-8"), "application/json"));
    assert_false(content_type_is(LIT("application/json2"), "application/json"));
    assert_false(content_type_is(LIT(""), "application/json"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_many_parts_in_order),
        cmocka_unit_test(test_long_head),
        cmocka_unit_test(test_parameters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
