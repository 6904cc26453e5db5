/* Answers of the HTTP server: in one piece, or in many with the lengths and endings that the client's version
 * allows. */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "net/http_conn.h"
#include "wire/http_hop.h"
#include "wire/json.h"

#define SMALL_ANSWER 4096

const char http_unread_busy[] =
    "clients do not read their answers, which fill the memory for them; try again";

/* ---- heads -------------------------------------------------------------------------------------- */

static void add_date(struct buf *out)
{
    time_t now = (time_t)(clock_wall_ms() / 1000);
    struct tm tm;
    char date[40];

    if (gmtime_r(&now, &tm) && strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &tm))
        http_add_field(out, "Date", slice_str(date));
}

static void add_fields(struct buf *out, const struct http_answer_head *h)
{
    struct http_field kept[HTTP_MAX_FIELDS];
    bool dated = false;

    assert(h->n_fields <= HTTP_MAX_FIELDS);
    size_t n = http_end_to_end(h->fields, h->n_fields, kept);
    for (size_t i = 0; i < n; i++) {
        char name[256];
        if (kept[i].name.n >= sizeof name)
            continue;
        memcpy(name, kept[i].name.p, kept[i].name.n);
        name[kept[i].name.n] = '\0';
        if (http_add_field(out, name, kept[i].value) == 0)
            dated |= slice_eq_nocase(kept[i].name, "Date");
    }
    if (!dated)
        add_date(out);
}

/* What of the connection's future and the body's end the head says. */
struct framing {
    bool bare, http_1_0, chunked, by_close, keep;
};

static void add_framing(struct buf *out, const struct http_answer_head *h, const struct framing *f)
{
    bool no_body = h->status == 204 || h->status == 304;

    if (h->length >= 0 && !no_body)
        buf_printf(out, "Content-Length: %lld\r\n", (long long)h->length);
    else if (f->chunked)
        http_add_field(out, "Transfer-Encoding", slice_str("chunked"));
    if (!f->keep)
        http_add_field(out, "Connection", slice_str("close"));
    else if (f->http_1_0)
        http_add_field(out, "Connection", slice_str("keep-alive"));
}

static void add_head(struct buf *out, const struct http_answer_head *h, const struct framing *f)
{
    http_add_status_line(out, h->status);
    add_fields(out, h);
    add_framing(out, h, f);
    buf_add_str(out, "\r\n");
}

/* Settles how the answer ends and writes its head to out. */
static void begin(struct http_exchange *x, const struct http_answer_head *h, struct buf *out)
{
    struct http_conn *c = x->conn;

    assert(!x->begun);
    x->begun = true;
    x->bare = x->head_only || h->status == 204 || h->status == 304;
    x->left = x->bare ? 0 : h->length;
    x->chunked = h->length < 0 && !x->http_1_0 && h->status != 204 && h->status != 304;
    x->by_close = h->length < 0 && x->http_1_0 && !x->bare;
    if (!c)
        return;
    x->keep = x->read && !x->by_close && c->server->fd >= 0 && http_parser_message(c->parser)->keep_alive;
    const struct framing f = {x->bare, x->http_1_0, x->chunked, x->by_close, x->keep};
    add_head(out, h, &f);
}

/* ---- in one piece ------------------------------------------------------------------------------- */

#define OWN_FIELDS 5

/* Headers that every answer of our own has. A browser takes it for what it is and nothing else. */
static size_t own_fields(struct http_field f[OWN_FIELDS], char after[24], int status,
                         const char *content_type, int64_t retry_after_s)
{
    size_t n = 0;

    if (status != 204 && status != 304)
        f[n++] = (struct http_field){slice_str("Content-Type"),
                                     slice_str(content_type ? content_type : "application/json")};
    f[n++] = (struct http_field){slice_str("Cache-Control"), slice_str("no-store")};
    f[n++] = (struct http_field){slice_str("X-Content-Type-Options"), slice_str("nosniff")};
    if (status == 401)
        f[n++] = (struct http_field){slice_str("WWW-Authenticate"), slice_str("Bearer")};
    if (retry_after_s >= 0) {
        snprintf(after, 24, "%lld", (long long)retry_after_s);
        f[n++] = (struct http_field){slice_str("Retry-After"), slice_str(after)};
    }
    return n;
}

static void finish(struct http_exchange *x)
{
    struct http_conn *c = x->conn;
    bool keep = x->keep && c && c->server->fd >= 0;

    http_exchange_free(x);
    if (c)
        http_conn_finish(c, keep);
}

/* Whether the answer can be had again, and there is no room for it now. */
static bool must_wait(struct http_exchange *x, size_t n)
{
    return n > SMALL_ANSWER && slice_eq_str(x->request.method, "GET") && !http_has_room(x);
}

void http_reply(struct http_exchange *x, int status, const char *content_type, int64_t retry_after_s,
                struct slice body)
{
    if (must_wait(x, body.n)) {
        http_reply_error(x, 503, "busy", http_unread_busy);
        return;
    }
    struct buf out = BUF_EMPTY;
    struct http_field fields[OWN_FIELDS];
    char after[24];
    const struct http_answer_head h = {
        status, fields, own_fields(fields, after, status, content_type, retry_after_s), (int64_t)body.n};

    begin(x, &h, &out);
    if (x->conn && (x->bare || body.n == 0))
        http_conn_write(x->conn, buf_slice(&out));
    else if (x->conn)
        http_conn_write_between(x->conn, buf_slice(&out), body, slice_make("", 0));
    buf_free(&out);
    finish(x);
}

static void error_body(struct buf *out, const char *code, const char *message)
{
    struct json_out j;

    json_start(&j, out);
    json_object(&j);
    json_key(&j, "error");
    json_object(&j);
    json_kv_cstr(&j, "code", code);
    json_kv_cstr(&j, "message", message);
    json_object_end(&j);
    json_object_end(&j);
    json_end(&j);
}

void http_reply_error(struct http_exchange *x, int status, const char *code, const char *message)
{
    struct buf body = BUF_EMPTY;

    error_body(&body, code, message);
    http_reply(x, status, NULL, status == 503 ? 1 : -1, buf_slice(&body));
    buf_free(&body);
}

void http_refuse(struct http_conn *c, int status, const char *code, const char *message)
{
    struct buf body = BUF_EMPTY, out = BUF_EMPTY;
    struct http_field fields[OWN_FIELDS];
    char after[24];

    error_body(&body, code, message);
    const struct http_answer_head h = {
        status, fields, own_fields(fields, after, status, NULL, status == 503 ? 1 : -1), (int64_t)body.n};
    const struct framing f = {.keep = false};
    add_head(&out, &h, &f);
    buf_add_slice(&out, buf_slice(&body));
    http_conn_write(c, buf_slice(&out));
    buf_free(&out);
    buf_free(&body);
    http_conn_finish(c, false);
}

/* ---- in pieces ---------------------------------------------------------------------------------- */

void http_begin(struct http_exchange *x, const struct http_answer_head *h)
{
    struct buf out = BUF_EMPTY;

    begin(x, h, &out);
    if (x->conn)
        http_conn_write(x->conn, buf_slice(&out));
    buf_free(&out);
}

void http_write(struct http_exchange *x, struct slice bytes)
{
    assert(x->begun);
    if (x->bare || !x->conn)
        return;
    if (x->left >= 0 && bytes.n > (uint64_t)x->left)
        bytes.n = (size_t)x->left;
    if (bytes.n == 0)
        return; /* in chunks it would be the end */
    if (x->left >= 0)
        x->left -= (int64_t)bytes.n;
    if (!x->chunked) {
        http_conn_write(x->conn, bytes);
        return;
    }
    char size[24];
    int n = snprintf(size, sizeof size, "%zx\r\n", bytes.n);
    http_conn_write_between(x->conn, slice_make(size, (size_t)n), bytes, slice_str("\r\n"));
}

size_t http_queued(const struct http_exchange *x)
{
    return x->conn ? stream_queued(x->conn->stream) : 0;
}

void http_end(struct http_exchange *x)
{
    assert(x->begun);
    if (x->left > 0) {
        http_abort(x);
        return;
    }
    if (x->chunked && !x->bare && x->conn)
        http_conn_write(x->conn, slice_str("0\r\n\r\n"));
    finish(x);
}

void http_abort(struct http_exchange *x)
{
    struct http_conn *c = x->conn;

    if (c) {
        c->exchange = NULL;
        if (x->by_close) /* nothing else tells a cut answer from a whole one */
            stream_abort(c->stream);
        http_conn_close(c);
    }
    http_exchange_free(x);
}
