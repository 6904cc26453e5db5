/* The HTTP parser: every message is fed whole and byte by byte, from memory of its exact size, and must come
 * out the same. */
#include "unit.h"

#include "wire/http.h"

struct outcome {
    enum http_progress end;
    size_t used;
    int status;   /* of http_parser_error, if BAD */
    char why[64]; /* likewise */
    struct http_parser *p;
};

/* Feeds text in pieces of `step` bytes until it is done or bad, or the text ends. */
static struct outcome feed(struct http_parser *p, const char *text, size_t n, size_t step)
{
    struct outcome o = {.end = HTTP_MORE, .p = p};

    while (o.end == HTTP_MORE && o.used < n) {
        size_t piece = n - o.used < step ? n - o.used : step, used;
        char *copy = xmemdup(text + o.used, piece); /* so that ASan sees a read beyond it */
        o.end = http_parser_feed(p, slice_make(copy, piece), &used);
        free(copy);
        o.used += used;
        assert_true(o.end != HTTP_MORE || used == piece);
    }
    if (o.end == HTTP_BAD)
        snprintf(o.why, sizeof(o.why), "%s", http_parser_error(p, &o.status));
    return o;
}

static struct outcome feed_new(enum http_side side, const char *text, size_t n, size_t step)
{
    return feed(http_parser_new(side, 100), text, n, step);
}

#define G "GET / HTTP/1.1\r\n"
#define H "Host: a\r\n"
#define P "POST /x HTTP/1.1\r\nHost: a\r\n"
#define CH P "Transfer-Encoding: chunked\r\n\r\n"

struct request_row {
    const char *text;
    int status; /* 0: whole, with rest bytes left over; -1: more is needed; else the error's status */
    size_t rest;
    const char *body;
    bool keep_alive;
};

static const struct request_row requests[] = {
    {G H "\r\n", 0, 0, "", true},
    {G H "\r\nGET", 0, 3, "", true},
    {"\r\n" G H "\r\n", 0, 0, "", true},
    {"\r\n\r\n" G H "\r\n", 400, 0, NULL, false},
    {"\n" G H "\r\n", 400, 0, NULL, false},
    {G H "Connection: close\r\n\r\n", 0, 0, "", false},
    {"GET / HTTP/1.0\r\n\r\n", 0, 0, "", false},
    {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 0, 0, "", true},
    {P "Content-Length: 3\r\n\r\nabcX", 0, 1, "abc", true},
    {P "Content-Length: 3\r\n\r\nab", -1, 0, NULL, false},
    {P "Content-Length: 0\r\n\r\n", 0, 0, "", true},
    {CH "3\r\nabc\r\n0\r\n\r\nGE", 0, 2, "abc", true},
    {CH "1\r\na\r\n2;x=y\r\nbc\r\n0\r\nTrailer: t\r\n\r\n", 0, 0, "abc", true},
    {CH "0\r\n\r\n", 0, 0, "", true},
    {CH "3\r\nabc\r\n", -1, 0, NULL, false},
    {P "Upgrade: h2c\r\nConnection: upgrade\r\n\r\nmore", 0, 4, "", true},
    {P "Upgrade: x\r\nConnection: upgrade\r\nContent-Length: 2\r\n\r\nabmore", 0, 4, "ab", true},
    /* two readers could differ */
    {P "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400, 0, NULL, false},
    {P "Content-Length: 3, 3\r\n\r\nabc", 400, 0, NULL, false},
    {P "Content-Length: +3\r\n\r\nabc", 400, 0, NULL, false},
    {P "Content-Length: 0x3\r\n\r\nabc", 400, 0, NULL, false},
    {P "Content-Length: -1\r\n\r\nabc", 400, 0, NULL, false},
    {P "Content-Length:\r\n\r\nabc", 400, 0, NULL, false},
    {P "Content-Length: 99999999999999999999999\r\n\r\n", 400, 0, NULL, false},
    {P "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, 0, NULL, false},
    {P "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 400, 0, NULL, false},
    {P "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, 0, NULL, false},
    {P "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501, 0, NULL, false},
    {P "Transfer-Encoding: identity\r\n\r\n", 501, 0, NULL, false},
    {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, 0, NULL, false},
    {"GET / HTTP/1.1\n" H "\r\n", 400, 0, NULL, false},
    {G "Host: a\n\r\n", 400, 0, NULL, false},
    {G H "\n", 400, 0, NULL, false},
    {G "Host: a\rX: b\r\n\r\n", 400, 0, NULL, false},
    {G H "X: a\r\n b\r\n\r\n", 400, 0, NULL, false},
    {G H "X : a\r\n\r\n", 400, 0, NULL, false},
    {G H "X\r\n\r\n", 400, 0, NULL, false},
    {G H ": a\r\n\r\n", 400, 0, NULL, false},
    {G "\r\n", 400, 0, NULL, false},
    {G H H "\r\n", 400, 0, NULL, false},
    {CH "3\r\nabcd\r\n0\r\n\r\n", 400, 0, NULL, false},
    {CH "3\r\nabcXX0\r\n\r\n", 400, 0, NULL, false},
    {CH "3\r\nabc\n0\r\n\r\n", 400, 0, NULL, false},
    {CH "3\nabc\r\n0\r\n\r\n", 400, 0, NULL, false},
    {CH "3\rXabc\r\n0\r\n\r\n", 400, 0, NULL, false},
    {CH "-3\r\nabc\r\n0\r\n\r\n", 400, 0, NULL, false},
    {CH " 3\r\nabc\r\n0\r\n\r\n", 400, 0, NULL, false},
    {CH "g\r\n", 400, 0, NULL, false},
    {CH "\r\n", 400, 0, NULL, false},
    {CH "fffffffffffffffff\r\n", 400, 0, NULL, false},
    {CH "0\r\nT: a\nb\r\n\r\n", 400, 0, NULL, false},
    /* other protocols, and what we do not serve */
    {"GET / HTTP/2.0\r\n" H "\r\n", 505, 0, NULL, false},
    {"GET / HTTP/0.9\r\n" H "\r\n", 505, 0, NULL, false},
    {"GET / HTTP/1.2\r\n" H "\r\n", 505, 0, NULL, false},
    {"GET / RTSP/1.0\r\n" H "\r\n", 400, 0, NULL, false},
    {"GET /\r\n\r\n", 400, 0, NULL, false},
    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, 0, NULL, false},
    {"BREW / HTTP/1.1\r\n" H "\r\n", 501, 0, NULL, false},
    {"CONNECT a:443 HTTP/1.1\r\n" H "\r\nmore", 501, 0, NULL, false},
    {"HTTP/1.1 200 OK\r\n\r\n", 400, 0, NULL, false},
    {"\x16\x03\x01\x02", -1, 0, NULL, false},
    /* limits: the parser of these rows holds 100 bytes of body */
    {P "Content-Length: 101\r\n\r\n", 413, 0, NULL, false},
    {CH "64\r\n"
        "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
        "\r\n"
        "1\r\nx\r\n",
     413, 0, NULL, false},
};

static void test_requests(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        const struct request_row *r = &requests[i];
        size_t n = strlen(r->text);
        for (size_t step = 1; step <= n; step = step < 8 ? step + 1 : step == 8 && n > 8 ? n : n + 1) {
            struct outcome o = feed_new(HTTP_PARSE_REQUESTS, r->text, n, step);
            const struct http_message *m = http_parser_message(o.p);
            check_row(i, o.end == (r->status == 0 ? HTTP_DONE : r->status < 0 ? HTTP_MORE : HTTP_BAD));
            if (r->status > 0) {
                check_row(i, o.status == r->status);
                check_row(i, o.why[0] != '\0');
            } else if (r->status == 0) {
                check_row(i, n - o.used == r->rest);
                check_row(i, slice_eq_str(buf_slice(&m->body), r->body));
                check_row(i, m->body_bytes == strlen(r->body));
                check_row(i, m->keep_alive == r->keep_alive);
                check_row(i, http_parser_eof(o.p) == HTTP_DONE);
            } else {
                check_row(i, http_parser_eof(o.p) == HTTP_BAD);
            }
            http_parser_free(o.p);
        }
    }
}

static void test_request_parts(void **state)
{
    static const char text[] = "POST /v1/ack?x=1 HTTP/1.1\r\nHost: a\r\nX-One:   two words \t\r\nEmpty:\r\n"
                               "expect: 100-Continue\r\nx-one: again\r\nContent-Length: 1\r\n\r\nb";

    (void)state;
    for (size_t step = 1; step < sizeof(text); step += 3) {
        struct outcome o = feed_new(HTTP_PARSE_REQUESTS, text, sizeof(text) - 2, step);
        const struct http_message *m = http_parser_message(o.p);
        assert_int_equal(o.end, HTTP_MORE);
        assert_true(m->head_done && m->expect_continue && m->has_length && m->length == 1);
        assert_int_equal(feed(o.p, "b", 1, 1).end, HTTP_DONE);
        assert_slice(m->method, "POST");
        assert_slice(m->target, "/v1/ack?x=1");
        assert_int_equal(m->minor, 1);
        assert_int_equal(m->n_fields, 6);
        assert_slice(http_message_field(m, "X-ONE"), "two words");
        assert_slice(http_message_field(m, "empty"), "");
        assert_non_null(http_message_field(m, "empty").p);
        assert_null(http_message_field(m, "absent").p);
        http_parser_free(o.p);
    }
}

/* Several requests in one piece come out one after the other. */
static void test_pipelining(void **state)
{
    static const char text[] = G H "\r\n" P "Content-Length: 2\r\n\r\nhi" CH "1\r\nx\r\n0\r\n\r\n" G H "\r\n";
    static const char *const bodies[] = {"", "hi", "x", ""};
    struct http_parser *p = http_parser_new(HTTP_PARSE_REQUESTS, 10);
    size_t at = 0;

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        assert_false(http_parser_begun(p));
        struct outcome o = feed(p, text + at, sizeof(text) - 1 - at, sizeof(text));
        assert_int_equal(o.end, HTTP_DONE);
        assert_true(http_parser_begun(p));
        assert_slice(buf_slice(&http_parser_message(p)->body), bodies[i]);
        at += o.used;
        size_t used;
        assert_int_equal(http_parser_feed(p, LIT("more"), &used), HTTP_DONE);
        assert_int_equal(used, 0);
        http_parser_next(p);
    }
    assert_int_equal(at, sizeof(text) - 1);
    assert_int_equal(http_parser_eof(p), HTTP_MORE);
    http_parser_free(p);
}

static void test_limits(void **state)
{
    struct buf b = BUF_EMPTY;
    struct outcome o;

    (void)state;
    buf_add_str(&b, G H "X: ");
    while (b.n < HTTP_MAX_HEAD - 4)
        buf_add_char(&b, 'x');
    buf_add_str(&b, "\r\n\r\n");
    o = feed_new(HTTP_PARSE_REQUESTS, b.p, b.n, 1000);
    assert_int_equal(o.end, HTTP_DONE);
    http_parser_free(o.p);
    b.n -= 4;
    buf_add_str(&b, "x\r\n\r\n");
    o = feed_new(HTTP_PARSE_REQUESTS, b.p, b.n, 1000);
    assert_int_equal(o.status, 431);
    http_parser_free(o.p);

    buf_clear(&b);
    buf_add_str(&b, G H);
    for (size_t i = 1; i < HTTP_MAX_FIELDS; i++)
        buf_add_str(&b, "x:y\r\n");
    struct buf more = BUF_EMPTY;
    buf_add_slice(&more, buf_slice(&b));
    buf_add_str(&b, "\r\n");
    buf_add_str(&more, "x:y\r\n\r\n");
    o = feed_new(HTTP_PARSE_REQUESTS, b.p, b.n, b.n);
    assert_int_equal(o.end, HTTP_DONE);
    http_parser_free(o.p);
    o = feed_new(HTTP_PARSE_REQUESTS, more.p, more.n, more.n);
    assert_int_equal(o.status, 431);
    http_parser_free(o.p);

    /* chunk extensions and trailers cost the reader no more than a head does */
    static const char *const endless[] = {CH "1;", CH "0\r\nx: "};
    for (size_t i = 0; i < 2; i++) {
        buf_clear(&b);
        buf_add_str(&b, endless[i]);
        while (b.n < 3 * HTTP_MAX_HEAD)
            buf_add_char(&b, 'e');
        o = feed_new(HTTP_PARSE_REQUESTS, b.p, b.n, 100);
        assert_int_equal(o.status, 431);
        http_parser_free(o.p);
    }
    buf_free(&b);
    buf_free(&more);
}

/* One who takes the body out as it comes has no limit. */
static void test_body_taken_out(void **state)
{
    struct http_parser *p = http_parser_new(HTTP_PARSE_RESPONSES, 10);
    struct http_message *m = http_parser_message(p);
    size_t used;

    (void)state;
    assert_int_equal(http_parser_feed(p, LIT("HTTP/1.1 200 OK\r\n\r\n"), &used), HTTP_MORE);
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(http_parser_feed(p, LIT("0123456789"), &used), HTTP_MORE);
        buf_clear(&m->body);
    }
    assert_int_equal(m->body_bytes, 1000);
    assert_int_equal(http_parser_eof(p), HTTP_DONE);
    http_parser_free(p);
}

struct response_row {
    const char *text;
    enum http_progress end, at_eof;
    int status;
    const char *body;
    bool no_body, keep_alive;
    int64_t retry_after_s;
};

#define R(s) "HTTP/1.1 " s "\r\n"

static const struct response_row responses[] = {
    {R("200 OK") "Content-Length: 2\r\n\r\nab", HTTP_DONE, HTTP_DONE, 200, "ab", false, true, -1},
    {R("200") "Content-Length: 0\r\n\r\n", HTTP_DONE, HTTP_DONE, 200, "", false, true, -1},
    {R("200 OK") "Content-Length: 2\r\n\r\na", HTTP_MORE, HTTP_BAD, 200, "a", false, false, -1},
    {R("200 OK") "Content-Length: 2\r\nConnection: close\r\n\r\nab", HTTP_DONE, HTTP_DONE, 200, "ab", false,
     false, -1},
    {R("200 OK") "\r\nto the end", HTTP_MORE, HTTP_DONE, 200, "to the end", false, false, -1},
    {R("200 OK") "Transfer-Encoding: Chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", HTTP_DONE, HTTP_DONE, 200, "ab",
     false, true, -1},
    {R("200 OK") "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", HTTP_MORE, HTTP_BAD, 200, "ab", false,
     false, -1},
    {R("200 OK") "Content-Length: 2\r\n\r\n", HTTP_DONE, HTTP_DONE, 200, "", true, true, -1},
    {R("200 OK") "\r\n", HTTP_DONE, HTTP_DONE, 200, "", true, true, -1},
    {R("204 No Content") "\r\n", HTTP_DONE, HTTP_DONE, 204, "", false, true, -1},
    {R("304 Not Modified") "Content-Length: 9\r\n\r\n", HTTP_DONE, HTTP_DONE, 304, "", false, true, -1},
    {R("100 Continue") "\r\n" R("200 OK") "Content-Length: 1\r\n\r\nx", HTTP_DONE, HTTP_DONE, 200, "x", false,
     true, -1},
    {R("103 Early Hints") "Link: x\r\n\r\n" R("102 x") "\r\n" R("204 x") "\r\n", HTTP_DONE, HTTP_DONE, 204,
     "", false, true, -1},
    {R("100 Continue") "\r\n", HTTP_MORE, HTTP_BAD, 0, "", false, false, -1},
    {R("429 Too Many") "Retry-After: 17\r\nContent-Length: 0\r\n\r\n", HTTP_DONE, HTTP_DONE, 429, "", false,
     true, 17},
    {R("429 x") "Retry-After: Wed, 21 Oct 2026 07:28:00 GMT\r\nContent-Length: 0\r\n\r\n", HTTP_DONE,
     HTTP_DONE, 429, "", false, true, -1},
    {R("503 x") "Retry-After: -5\r\nContent-Length: 0\r\n\r\n", HTTP_DONE, HTTP_DONE, 503, "", false, true,
     -1},
    {R("503 x") "Retry-After: 9999999999\r\nContent-Length: 0\r\n\r\n", HTTP_DONE, HTTP_DONE, 503, "", false,
     true, 31536000},
    {"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", HTTP_DONE, HTTP_DONE, 200, "x", false, false, -1},
    {R("101 Switching Protocols") "Upgrade: x\r\nConnection: upgrade\r\n\r\n", HTTP_BAD, HTTP_BAD, 101, NULL,
     false, false, -1},
    {R("200 OK") "Content-Length: 2\r\nContent-Length: 3\r\n\r\nab", HTTP_BAD, HTTP_BAD, 200, NULL, false,
     false, -1},
    {R("200 OK") "Transfer-Encoding: gzip\r\n\r\nab", HTTP_BAD, HTTP_BAD, 200, NULL, false, false, -1},
    {R("200 OK") "Content-Length: 101\r\n\r\n", HTTP_BAD, HTTP_BAD, 200, NULL, false, false, -1},
    {R("20 OK") "\r\n", HTTP_BAD, HTTP_BAD, 0, NULL, false, false, -1},
    {"SSH-2.0-OpenSSH_9.2\r\n\r\n", HTTP_BAD, HTTP_BAD, 0, NULL, false, false, -1},
    {"", HTTP_MORE, HTTP_MORE, 0, "", false, false, -1},
};

static void test_responses(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(responses); i++) {
        const struct response_row *r = &responses[i];
        size_t n = strlen(r->text);
        for (size_t step = 1; step <= n + 1; step += step < 5 ? 1 : n) {
            struct http_parser *p = http_parser_new(HTTP_PARSE_RESPONSES, 100);
            const struct http_message *m = http_parser_message(p);
            if (r->no_body)
                http_parser_no_body(p);
            check_row(i, feed(p, r->text, n, step).end == r->end);
            if (r->body) {
                check_row(i, m->status == r->status);
                check_row(i, slice_eq_str(buf_slice(&m->body), r->body));
                check_row(i, m->keep_alive == r->keep_alive);
                check_row(i, m->retry_after_s == r->retry_after_s);
            }
            check_row(i, http_parser_eof(p) == r->at_eof);
            http_parser_free(p);
        }
    }
}

static void test_interim_flood(void **state)
{
    struct http_parser *p = http_parser_new(HTTP_PARSE_RESPONSES, 10);
    enum http_progress end = HTTP_MORE;
    int n = 0;

    (void)state;
    for (size_t used; end == HTTP_MORE; n++)
        end = http_parser_feed(p, LIT(R("100 Continue") "\r\n"), &used);
    assert_int_equal(end, HTTP_BAD);
    assert_true(n > 5 && n < 50);
    http_parser_free(p);
}

static void test_writing(void **state)
{
    struct buf b = BUF_EMPTY;

    (void)state;
    http_add_status_line(&b, 404);
    assert_int_equal(http_add_field(&b, "X-A", LIT("b c")), 0);
    assert_slice(buf_slice(&b), "HTTP/1.1 404 Not Found\r\nX-A: b c\r\n");
    size_t n = b.n;
    assert_int_equal(http_add_field(&b, "X-A", LIT("b\r\nc: d")), -1);
    assert_int_equal(http_add_field(&b, "X-A", LIT("b\0")), -1);
    assert_int_equal(http_add_field(&b, "X A", LIT("b")), -1);
    assert_int_equal(http_add_field(&b, "", LIT("b")), -1);
    assert_int_equal(http_add_request_line(&b, "GET", "/a b"), -1);
    assert_int_equal(http_add_request_line(&b, "GET", "/a\r\n"), -1);
    assert_int_equal(http_add_request_line(&b, "G T", "/a"), -1);
    assert_int_equal(http_add_request_line(&b, "GET", ""), -1);
    assert_int_equal(b.n, n);
    buf_clear(&b);
    assert_int_equal(http_add_request_line(&b, "GET", "/a?b"), 0);
    assert_slice(buf_slice(&b), "GET /a?b HTTP/1.1\r\n");
    assert_string_equal(http_status_text(418), "Client Error");
    assert_string_equal(http_status_text(999), "Unknown");
    buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),       cmocka_unit_test(test_request_parts),
        cmocka_unit_test(test_pipelining),     cmocka_unit_test(test_limits),
        cmocka_unit_test(test_body_taken_out), cmocka_unit_test(test_responses),
        cmocka_unit_test(test_interim_flood),  cmocka_unit_test(test_writing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
