/* A call. It waits in line, then has a connection to itself. What is written before there is a connection, and a small
 * request on a reused one until its answer begins, is kept, as it may have to be sent again. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "net/http_pool_in.h"

#define KEEP_BUFFERS (256 * 1024)

/* ---- the end of a call -------------------------------------------------------------------------- */

static void call_release(void *p)
{
    struct http_call *call = p;

    buf_free(&call->kept);
    free(call->label);
    free(call);
}

/* Takes the call out of the pool. Its memory stays until the end of the turn. */
static struct pool_conn *detach(struct http_call *call)
{
    struct pool_conn *c = call->conn;

    call->dead = true;
    call->conn = NULL;
    list_del(&call->link);
    timer_stop(&call->timer);
    timer_stop(&call->wake);
    loop_free_later(call->pool->loop, call, call_release);
    if (c) {
        c->call = NULL;
        http_parser_free(c->parser);
        c->parser = NULL;
    }
    return c;
}

void call_fail(struct http_call *call, enum http_fail f, const char *fmt, ...)
{
    struct http_pool *p = call->pool;
    char error[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(error, sizeof error, fmt, ap);
    va_end(ap);
    log_debug(NULL, "%s to %s failed: %s", call->label, buf_str(&p->origin.shown), error);
    struct pool_conn *c = detach(call);
    if (c)
        pool_close(c);
    pool_serve(p);
    call->ops->fail(call->arg, f, error);
}

void call_succeed(struct http_call *call)
{
    struct http_pool *p = call->pool;
    struct pool_conn *c = call->conn;
    const struct http_message *m = http_parser_message(c->parser);
    bool keep = m->keep_alive && !m->by_close && call->body_ended && stream_queued(c->stream) == 0 &&
                stream_in(c->stream)->n == 0 && !c->ended;

    log_debug(NULL, "%s to %s: %d", call->label, buf_str(&p->origin.shown), m->status);
    detach(call);
    if (keep)
        pool_keep(c);
    else
        pool_close(c);
    pool_serve(p);
    call->ops->end(call->arg);
}

void http_call_cancel(struct http_call *call)
{
    if (!call || call->dead)
        return;
    struct pool_conn *c = detach(call);
    if (c)
        pool_close(c);
    pool_serve(call->pool);
}

/* ---- the request -------------------------------------------------------------------------------- */

/* Queues bytes, or keeps them until there is a connection. last: no more come in this call. */
static void put(struct http_call *call, struct slice bytes, bool last)
{
    struct pool_conn *c = call->conn;
    bool connected = c && c->stream;

    if (call->keeping)
        buf_add_slice(&call->kept, bytes);
    if (connected && call->keeping && call->kept.n > RESEND_MAX) {
        call->keeping = false;
        buf_free(&call->kept);
    }
    if (connected) {
        call->written += bytes.n;
        (last ? stream_write : stream_prepare)(c->stream, bytes);
    }
}

static void note_sent(struct http_call *call)
{
    if (call->sent_at < 0 && call->body_ended && stream_queued(call->conn->stream) == 0)
        call->sent_at = call->active_at = loop_now(call->pool->loop);
}

static void tell_writable(struct http_call *call)
{
    call->tell_writable = false;
    if (!call->body_ended && call->ops->writable)
        call->ops->writable(call->arg);
}

void call_event(struct http_call *call, struct stream *s, enum stream_event ev)
{
    struct pool_conn *c = call->conn;

    note_sent(call); /* with any event: an answer may be told before STREAM_DRAINED */
    if (ev == STREAM_DRAINED) {
        tell_writable(call);
        return;
    }
    if (ev == STREAM_DATA) {
        call->answering = true;
        call->keeping = false;
        buf_free(&call->kept);
        call->active_at = loop_now(call->pool->loop);
    } else {
        c->ended = true;
        if (ev == STREAM_FAILED)
            c->err_no = stream_errno(s) ? stream_errno(s) : EPROTO;
    }
    call_read(call);
}

void call_start(struct http_call *call)
{
    struct pool_conn *c = call->conn;

    c->call = call;
    c->parser = http_parser_new(HTTP_PARSE_RESPONSES, SIZE_MAX);
    http_parser_stop_at_head(c->parser);
    if (call->head_only)
        http_parser_no_body(c->parser);
    call->written = call->kept.n;
    call->taken_mark = 0;
    call->sent_at = -1;
    call->active_at = loop_now(call->pool->loop);
    stream_keep_buffers(c->stream, KEEP_BUFFERS);
    stream_write(c->stream, buf_slice(&call->kept));
    call->keeping = c->served && !call->large && call->kept.n <= RESEND_MAX;
    if (!call->keeping)
        buf_free(&call->kept);
    note_sent(call);
    call->tell_writable = true;
    timer_set(&call->wake, loop_now(call->pool->loop));
}

/* What was found inside a call of the owner's, who must not be called back there. */
static void on_wake(void *arg)
{
    struct http_call *call = arg;
    const char *shown = buf_str(&call->pool->origin.shown);

    if (call->unsendable) {
        call_fail(call, HTTP_BAD_ANSWER,
                  "the request to %s was not sent: its path or a header has characters that may not be there",
                  shown);
        return;
    }
    if (call->short_body) {
        call_fail(call, HTTP_CUT, "the request to %s ended before its body was whole", shown);
        return;
    }
    if (call->tell_writable)
        tell_writable(call);
    if (!call->dead && call->conn && call->conn->stream)
        call_read(call);
}

/* ---- time-outs ---------------------------------------------------------------------------------- */

static const char *stuck(const struct http_call *call)
{
    const struct pool_conn *c = call->conn;

    if (!c)
        return "no connection was free";
    if (c->dial)
        return NULL; /* it has a time-out of its own */
    if (stream_queued(c->stream))
        return call->written - stream_queued(c->stream) == call->taken_mark ? "the request was being sent"
                                                                            : NULL;
    if (!call->body_ended || call->paused || loop_now(call->pool->loop) < call->active_at + call->idle_ms)
        return NULL;
    return call->answering ? "within the answer" : "the request was sent";
}

static void on_timer(void *arg)
{
    struct http_call *call = arg;
    const struct pool_conn *c = call->conn;
    const char *where = stuck(call);
    int64_t now = loop_now(call->pool->loop), at = call->active_at + call->idle_ms;
    char time[32];

    if (where) {
        call_fail(call, HTTP_TIMEOUT, "nothing moved to or from %s for %s (%s)",
                  buf_str(&call->pool->origin.shown), text_from_ms(call->idle_ms, time), where);
        return;
    }
    if (c->stream)
        call->taken_mark = call->written - stream_queued(c->stream);
    timer_set(&call->timer, at > now ? at : now + call->idle_ms);
}

/* ---- calls -------------------------------------------------------------------------------------- */

static int add_head(struct http_call *call, const struct http_call_request *r, const char *target)
{
    struct buf *out = &call->kept;
    bool login = true;

    for (size_t i = 0; i < r->n_fields; i++)
        login &= !slice_eq_nocase(r->fields[i].name, "Authorization");
    int bad = http_origin_add_head(&call->pool->origin, out, r->method, target, login);
    for (size_t i = 0; i < r->n_fields; i++)
        bad |= http_origin_add_field(out, r->fields[i].name, r->fields[i].value);
    if (r->length < 0)
        buf_add_str(out, "Transfer-Encoding: chunked\r\n");
    else if (r->length || strcmp(r->method, "POST") == 0 || strcmp(r->method, "PUT") == 0)
        buf_printf(out, "Content-Length: %lld\r\n", (long long)r->length);
    buf_add_str(out, "Connection: keep-alive\r\n\r\n");
    return bad;
}

struct http_call *http_call_new(struct http_pool *p, const struct http_call_request *r,
                                const struct http_call_ops *ops, void *arg)
{
    struct http_call *call = xcalloc(1, sizeof *call);
    char *target = http_origin_target(&p->origin, r->path);

    call->pool = p;
    call->ops = ops;
    call->arg = arg;
    call->keeping = true;
    call->large = r->length < 0 || r->length > RESEND_MAX;
    call->head_only = strcmp(r->method, "HEAD") == 0;
    call->chunked = r->length < 0;
    call->left = r->length;
    call->body_ended = r->length == 0;
    call->idle_ms = r->idle_timeout_ms;
    call->active_at = loop_now(p->loop);
    call->sent_at = -1;
    call->label = xasprintf("%s %s", r->method, r->secret_path ? "(secret path)" : target);
    timer_init(&call->timer, p->loop, on_timer, call);
    timer_init(&call->wake, p->loop, on_wake, call);
    timer_set(&call->timer, call->active_at + call->idle_ms);
    call->unsendable = add_head(call, r, target) != 0;
    free(target);
    if (call->unsendable) {
        list_add_tail(&p->calls, &call->link);
        timer_set(&call->wake, call->active_at);
    } else {
        list_add_tail(&p->waiting, &call->link);
        pool_serve(p);
    }
    return call;
}

void http_call_write(struct http_call *call, struct slice bytes)
{
    if (call->dead || call->body_ended)
        return;
    if (call->left >= 0 && bytes.n > (uint64_t)call->left)
        bytes.n = (size_t)call->left;
    if (bytes.n == 0)
        return;
    if (call->left >= 0)
        call->left -= (int64_t)bytes.n;
    if (!call->chunked) {
        put(call, bytes, true);
        return;
    }
    char size[24];
    int n = snprintf(size, sizeof size, "%zx\r\n", bytes.n);
    put(call, slice_make(size, (size_t)n), false);
    put(call, bytes, false);
    put(call, slice_str("\r\n"), true);
}

void http_call_write_end(struct http_call *call)
{
    if (call->dead || call->body_ended)
        return;
    call->body_ended = true;
    if (call->left > 0) {
        call->short_body = true;
        timer_set(&call->wake, loop_now(call->pool->loop));
        return;
    }
    if (call->chunked)
        put(call, slice_str("0\r\n\r\n"), true);
    call->active_at = loop_now(call->pool->loop);
    if (call->conn && call->conn->stream)
        note_sent(call);
}

size_t http_call_queued(const struct http_call *call)
{
    if (call->dead)
        return 0;
    return call->conn && call->conn->stream ? stream_queued(call->conn->stream) : call->kept.n;
}

bool http_call_waits(const struct http_call *call)
{
    return !call->dead && !call->conn;
}

void http_call_pause(struct http_call *call)
{
    call->paused = true;
}

void http_call_resume(struct http_call *call)
{
    if (call->dead || !call->paused)
        return;
    call->paused = false;
    call->active_at = loop_now(call->pool->loop);
    timer_set(&call->wake, call->active_at);
}
