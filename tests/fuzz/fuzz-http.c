/* The HTTP parser, and what a proxy passes on of a head. The first byte chooses the side, how the rest is cut into pieces,
 * and whether the parser stops behind each head; whatever the pieces, the outcome must be the same. */
#include "fuzz.h"

#include "wire/http.h"
#include "wire/http_hop.h"

#define MAX_BODY 1000
#define MESSAGES 4 /* pipelined */

struct outcome {
    enum http_progress end, at_eof;
    size_t used, n_fields;
    uint64_t body_bytes;
    int status, minor, error;
    bool keep_alive;
};

/* Whether a line end is in s; reads all of it. */
static bool has_line_end(struct slice s)
{
    return s.n && (memchr(s.p, '\r', s.n) || memchr(s.p, '\n', s.n));
}

/* What is passed on is some of what there is, in its order, and none of what frames a message. */
static void check_end_to_end(const struct http_message *m)
{
    struct http_field out[HTTP_MAX_FIELDS];
    size_t n = http_end_to_end(m->fields, m->n_fields, out), at = 0;

    for (size_t i = 0; i < n; i++, at++) {
        while (at < m->n_fields && m->fields[at].name.p != out[i].name.p)
            at++;
        CHECK(at < m->n_fields);
        CHECK(!slice_eq_nocase(out[i].name, "Transfer-Encoding") &&
              !slice_eq_nocase(out[i].name, "Connection"));
        CHECK(!slice_eq_nocase(out[i].name, "Content-Length") && !slice_eq_nocase(out[i].name, "Host"));
    }
}

static void check_message(const struct http_message *m)
{
    for (size_t i = 0; i < m->n_fields && m->head_done; i++) {
        CHECK(m->fields[i].name.n > 0);
        CHECK(!has_line_end(m->fields[i].name) && !has_line_end(m->fields[i].value));
    }
    CHECK(m->body.n <= MAX_BODY);
    CHECK(!m->head_done || !(m->chunked && m->has_length));
}

/* Feeds one piece; where the parser stopped behind a head, goes on as if it had not. */
static enum http_progress feed(struct http_parser *parser, struct slice piece, size_t *used)
{
    enum http_progress progress = http_parser_feed(parser, piece, used);
    size_t more = 0;

    if (progress == HTTP_HEAD_DONE) {
        const struct http_message *m = http_parser_message(parser);
        CHECK(m->head_done && m->body_bytes == 0);
        check_end_to_end(m);
        progress = http_parser_feed(parser, (struct slice){piece.p + *used, 0}, &more);
        CHECK(progress != HTTP_HEAD_DONE && progress != HTTP_BAD && more == 0);
        if (progress == HTTP_MORE && *used < piece.n)
            progress = http_parser_feed(parser, (struct slice){piece.p + *used, piece.n - *used}, &more);
        *used += more;
    }
    return progress;
}

static size_t run(enum http_side side, bool no_body, bool stop, const char *p, size_t n, size_t step,
                  struct outcome *o)
{
    struct http_parser *parser = http_parser_new(side, MAX_BODY);
    const struct http_message *m = http_parser_message(parser);
    size_t at = 0, i = 0;

    if (stop)
        http_parser_stop_at_head(parser);
    do {
        o[i] = (struct outcome){.end = HTTP_MORE};
        if (no_body)
            http_parser_no_body(parser);
        while (o[i].end == HTTP_MORE && at < n) {
            size_t piece = n - at < step ? n - at : step, used;
            char *copy = malloc(piece);
            memcpy(copy, p + at, piece);
            o[i].end = feed(parser, (struct slice){copy, piece}, &used);
            free(copy);
            CHECK(used <= piece && (o[i].end != HTTP_MORE || used == piece));
            CHECK(used > 0 || o[i].end != HTTP_DONE);
            at += used;
            check_message(m);
        }
        o[i].n_fields = m->head_done ? m->n_fields : 0;
        o[i].body_bytes = o[i].end == HTTP_DONE ? m->body_bytes : 0;
        o[i].keep_alive = m->keep_alive;
        o[i].status = m->head_done ? m->status : 0;
        o[i].minor = m->head_done ? m->minor : 0;
        if (o[i].end == HTTP_BAD)
            CHECK(http_parser_error(parser, &o[i].error)[0] && o[i].error >= 400);
        if (o[i].end == HTTP_DONE)
            o[i].used = at;
        else
            o[i].at_eof = http_parser_eof(parser);
        if (o[i].end == HTTP_DONE)
            http_parser_next(parser);
    } while (o[i++].end == HTTP_DONE && i < MESSAGES);
    http_parser_free(parser);
    return i;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct outcome whole[MESSAGES], cut[MESSAGES];

    if (n < 1)
        return 0;
    enum http_side side = data[0] & 1 ? HTTP_PARSE_RESPONSES : HTTP_PARSE_REQUESTS;
    bool no_body = data[0] & 2;
    const char *p = (const char *)data + 1;
    size_t n_whole = run(side, no_body, false, p, n - 1, n, whole);
    size_t n_cut = run(side, no_body, data[0] & 0x80, p, n - 1, (size_t)(data[0] >> 2 & 0x1F) + 1, cut);
    CHECK(n_whole == n_cut);
    for (size_t i = 0; i < n_whole; i++) {
        CHECK(whole[i].end == cut[i].end && whole[i].at_eof == cut[i].at_eof);
        CHECK(whole[i].used == cut[i].used && whole[i].error == cut[i].error);
        CHECK(whole[i].body_bytes == cut[i].body_bytes && whole[i].keep_alive == cut[i].keep_alive);
        CHECK(whole[i].status == cut[i].status && whole[i].minor == cut[i].minor);
        CHECK(whole[i].n_fields == cut[i].n_fields);
    }
    return 0;
}
