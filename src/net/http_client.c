/* One connection, one request at a time. net/dial makes the connection; here a request is written, its answer
 * parsed, and the connection kept if nothing is left on it. An idle connection stays watched, so that a
 * peer's close is noticed before the next request; where both cross, the request is sent again on a new
 * connection. */
#include "net/http_client.h"

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "net/http_origin.h"
#include "net/loop.h"
#include "net/stream.h"
#include "wire/http.h"

/* A reset that comes later than this after the request's last byte is not the crossing of request and close:
 * the peer had the request, so sending it again is the caller's decision. */
#define RESEND_WITHIN_MS 5000

struct http_client {
    struct loop *loop;
    struct http_origin origin;

    struct dial *dial;     /* while connecting */
    struct stream *stream; /* while connected, idle or not */
    struct http_parser *parser;
    bool served; /* the connection has brought an answer */

    bool busy, dead;
    struct buf request; /* all its bytes, while it may have to be sent (again) */
    bool unsendable;    /* it would not be one request on the wire */
    bool sent;
    int64_t started_at, sent_at, first_byte_at;
    int64_t deadline_ms;
    struct timer deadline;
    char *label; /* method and path for the debug log */
    http_answer_fn *fn;
    void *arg;
};

static void connect_for_request(struct http_client *c);

/* ---- the end of a request ----------------------------------------------------------------------- */

static void close_connection(struct http_client *c)
{
    dial_free(c->dial);
    c->dial = NULL;
    stream_close(c->stream);
    c->stream = NULL;
    c->served = false;
}

static void forget_request(struct http_client *c)
{
    timer_stop(&c->deadline);
    buf_free(&c->request);
    free(c->label);
    c->label = NULL;
    c->busy = false;
}

/* The callback may start the next request, or free c: nothing of c is looked at after it. */
static void tell(struct http_client *c, struct http_answer *a)
{
    a->sent = c->sent;
    if (c->sent) {
        int64_t end = c->first_byte_at >= 0 ? c->first_byte_at : loop_now(c->loop);
        a->waited_ms = end > c->sent_at ? end - c->sent_at : 0;
    }
    if (a->fail)
        log_debug(NULL, "%s to %s failed after %lld ms: %s", c->label, buf_str(&c->origin.shown),
                  (long long)(loop_now(c->loop) - c->started_at), a->error);
    else
        log_debug(NULL, "%s to %s: %d, %zu bytes, %lld ms", c->label, buf_str(&c->origin.shown), a->status,
                  a->body.n, (long long)(loop_now(c->loop) - c->started_at));
    forget_request(c);
    c->fn(c->arg, a);
    buf_free(&a->body);
}

static void set_content_type(struct http_answer *a, const struct http_message *m)
{
    struct slice type = http_message_field(m, "Content-Type");

    if (type.n)
        snprintf(a->content_type, sizeof a->content_type, "%.*s", (int)type.n, type.p);
}

/* What is known of an answer that did not come whole. */
static void add_head_seen(struct http_client *c, struct http_answer *a)
{
    const struct http_message *m = http_parser_message(c->parser);
    int why = 0;

    a->status = m->status;
    if (a->fail != HTTP_BAD_ANSWER || c->unsendable)
        return;
    http_parser_error(c->parser, &why);
    a->too_large = why == 413;
    if (a->too_large)
        set_content_type(a, m);
}

static void fail(struct http_client *c, enum http_fail f, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void fail(struct http_client *c, enum http_fail f, const char *fmt, ...)
{
    struct http_answer a = {.fail = f, .retry_after_s = -1, .reused = c->served};
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(a.error, sizeof a.error, fmt, ap);
    va_end(ap);
    a.proxy_auth = c->dial && dial_login_refused(c->dial);
    if (f == HTTP_CUT || f == HTTP_BAD_ANSWER)
        add_head_seen(c, &a);
    close_connection(c);
    tell(c, &a);
}

/* A whole answer. The connection is kept if both sides agree and nothing is left on it. */
static void succeed(struct http_client *c)
{
    struct http_message *m = http_parser_message(c->parser);
    struct http_answer a = {.fail = HTTP_OK,
                            .status = m->status,
                            .body = m->body,
                            .complete_by_length = !m->by_close,
                            .reused = c->served,
                            .retry_after_s = m->retry_after_s};

    m->body = BUF_EMPTY;
    set_content_type(&a, m);
    if (m->keep_alive && !m->by_close && c->sent && stream_in(c->stream)->n == 0) {
        c->served = true;
        http_parser_next(c->parser);
    } else {
        close_connection(c);
    }
    tell(c, &a);
}

/* ---- the answer --------------------------------------------------------------------------------- */

static void on_data(struct http_client *c)
{
    struct buf *in = stream_in(c->stream);
    size_t used;
    int status;

    if (c->first_byte_at < 0)
        c->first_byte_at = loop_now(c->loop);
    enum http_progress progress = http_parser_feed(c->parser, buf_slice(in), &used);
    buf_drop(in, used);
    if (progress == HTTP_DONE)
        succeed(c);
    else if (progress == HTTP_BAD)
        fail(c, HTTP_BAD_ANSWER, "the answer of %s cannot be used: %s", buf_str(&c->origin.shown),
             http_parser_error(c->parser, &status));
}

/* The connection ended, with err_no or properly (0), before the answer did. */
static void on_broken(struct http_client *c, int err_no, const char *error)
{
    bool reset = err_no == 0 || err_no == ECONNRESET || err_no == EPIPE;

    if (c->first_byte_at >= 0) {
        fail(c, HTTP_CUT, "%s %s within its answer", buf_str(&c->origin.shown),
             reset ? "closed the connection" : error);
        return;
    }
    if (c->served && reset && (!c->sent || loop_now(c->loop) - c->sent_at < RESEND_WITHIN_MS)) {
        log_debug(NULL, "%s had closed the idle connection, sending again on a new one",
                  buf_str(&c->origin.shown));
        close_connection(c);
        connect_for_request(c);
        return;
    }
    if (err_no == 0)
        fail(c, HTTP_RESET, "%s closed the connection without an answer", buf_str(&c->origin.shown));
    else
        fail(c, HTTP_RESET, "the connection to %s broke before an answer came: %s", buf_str(&c->origin.shown),
             error);
}

static void on_end_of_file(struct http_client *c)
{
    if (c->first_byte_at >= 0 && http_parser_eof(c->parser) == HTTP_DONE)
        succeed(c);
    else
        on_broken(c, 0, "");
}

static void note_sent(struct http_client *c)
{
    if (c->busy && !c->sent && stream_queued(c->stream) == 0) {
        c->sent = true;
        c->sent_at = loop_now(c->loop);
    }
}

static void on_stream(void *arg, struct stream *s, enum stream_event ev)
{
    struct http_client *c = arg;

    if (!c->busy) {
        /* Idle: its end, or bytes nobody asked for. Written leftovers mean nothing. */
        if (ev != STREAM_DRAINED)
            close_connection(c);
        return;
    }
    note_sent(c); /* with any event: an answer may be told before STREAM_DRAINED */
    switch (ev) {
    case STREAM_DATA:
        on_data(c);
        break;
    case STREAM_EOF:
        on_end_of_file(c);
        break;
    case STREAM_FAILED:
        on_broken(c, stream_errno(s) ? stream_errno(s) : EPROTO, stream_error(s));
        break;
    case STREAM_READY:
    case STREAM_DRAINED:
        break;
    }
}

/* ---- the request -------------------------------------------------------------------------------- */

static void send_request(struct http_client *c)
{
    http_parser_next(c->parser);
    c->sent = false;
    c->first_byte_at = -1;
    stream_write(c->stream, buf_slice(&c->request));
    if (!c->served)
        buf_free(&c->request); /* only on a reused connection may it be needed once more */
    note_sent(c);
}

static void on_dialled(void *arg, enum http_fail f, struct stream *s, const char *error)
{
    struct http_client *c = arg;

    if (f) {
        fail(c, f, "%s", error);
        return;
    }
    dial_free(c->dial);
    c->dial = NULL;
    c->stream = s;
    stream_set_owner(s, on_stream, c);
    send_request(c);
}

static void connect_for_request(struct http_client *c)
{
    c->sent = false;
    c->first_byte_at = -1;
    c->dial = dial_new(c->loop, &c->origin.dial, on_dialled, c);
}

static void on_deadline(void *arg)
{
    struct http_client *c = arg;
    char time[32];

    if (c->unsendable) {
        fail(c, HTTP_BAD_ANSWER,
             "the request to %s was not sent: its path or a header has characters that may not "
             "be there",
             buf_str(&c->origin.shown));
        return;
    }
    text_from_ms(c->deadline_ms, time);
    fail(c, HTTP_TIMEOUT, "no answer from %s within %s (%s)", buf_str(&c->origin.shown), time,
         c->dial                 ? dial_stage(c->dial)
         : !c->sent              ? "while the request was being sent"
         : c->first_byte_at >= 0 ? "within the answer"
                                 : "the request was sent");
}

static int add_head(struct http_client *c, const struct http_request *r, const char *target)
{
    struct buf *out = &c->request;
    int bad = http_origin_add_head(&c->origin, out, r->method, target, true);

    bad |= http_add_field(out, "User-Agent", slice_str("tgspool/" PACKAGE_VERSION));
    bad |= http_add_field(out, "Connection", slice_str("keep-alive"));
    /* A compressed answer may grow without limit when it is unpacked, and what is stored must be the bytes
     * that came; an update is small beside the round trip. */
    bad |= http_add_field(out, "Accept-Encoding", slice_str("identity"));
    for (size_t i = 0; i < r->n_headers; i++)
        bad |= http_origin_add_field(out, r->headers[i].name, r->headers[i].value);
    if (r->body.n || strcmp(r->method, "POST") == 0 || strcmp(r->method, "PUT") == 0)
        buf_printf(out, "Content-Length: %zu\r\n", r->body.n);
    buf_add_str(out, "\r\n");
    return bad;
}

void http_client_request(struct http_client *c, const struct http_request *r, http_answer_fn *fn, void *arg)
{
    char *target = http_origin_target(&c->origin, r->path);

    c->busy = true;
    c->fn = fn;
    c->arg = arg;
    c->sent = false;
    c->first_byte_at = -1;
    c->started_at = loop_now(c->loop);
    c->deadline_ms = r->deadline_ms;
    c->label = xasprintf("%s %s", r->method, r->secret_path ? "(secret path)" : target);
    c->unsendable = add_head(c, r, target) != 0;
    free(target);
    if (c->unsendable) {
        timer_set(&c->deadline, c->started_at);
        return;
    }
    buf_add_slice(&c->request, r->body);
    timer_set(&c->deadline, c->started_at + r->deadline_ms);
    if (c->stream)
        send_request(c);
    else
        connect_for_request(c);
}

bool http_client_busy(const struct http_client *c)
{
    return c->busy;
}

void http_client_cancel(struct http_client *c)
{
    if (!c->busy)
        return;
    close_connection(c);
    forget_request(c);
}

void http_client_drop_connection(struct http_client *c)
{
    if (!c->busy)
        close_connection(c);
}

/* ---- the client --------------------------------------------------------------------------------- */

struct http_client *http_client_new(struct loop *l, const struct http_client_options *o, struct err *e)
{
    struct http_client *c = xcalloc(1, sizeof *c);

    c->loop = l;
    c->first_byte_at = -1;
    timer_init(&c->deadline, l, on_deadline, c);
    if (http_origin_init(&c->origin, o->base_url, o->ca_file, o->also_ca_file, o->proxy_url, o->ip,
                         o->connect_timeout_ms, e) != 0) {
        free(c);
        return NULL;
    }
    c->parser = http_parser_new(HTTP_PARSE_RESPONSES, o->max_body);
    return c;
}

/* What a dial or stream still borrows goes with c itself, after both are released. */
static void release(void *p)
{
    struct http_client *c = p;

    http_parser_free(c->parser);
    http_origin_free(&c->origin);
    free(c);
}

void http_client_free(struct http_client *c)
{
    if (!c || c->dead)
        return;
    c->dead = true;
    close_connection(c);
    forget_request(c);
    loop_free_later(c->loop, c, release);
}
