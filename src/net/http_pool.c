/* Calls over a pool of connections. A call waits in line, then has a connection to itself: an idle one, or a new
 * one that net/dial makes. What is written before there is a connection, and a small request on a reused one
 * until its answer begins, is kept, as it may have to be sent again. Idle connections stay watched. */
#include "net/http_pool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "net/http_origin.h"
#include "net/loop.h"
#include "net/stream.h"

#define READ_AHEAD (64 * 1024)
#define KEEP_BUFFERS (256 * 1024)
#define RESEND_MAX (64 * 1024) /* a request that is larger is not sent twice */
/* As in http_client.c: a later reset is not the crossing of request and close. */
#define RESEND_WITHIN_MS 5000

struct http_pool {
    struct loop *loop;
    struct http_origin origin;
    unsigned max_connections, max_idle, n_connections, n_idle;
    int64_t keep_idle_ms;
    struct list waiting; /* calls */
    struct list calls;   /* that have a connection */
    struct list idle;    /* connections, the longest idle first */
    struct timer prune;
    bool dead;
};

struct conn {
    struct list link; /* of idle ones */
    struct http_pool *pool;
    struct dial *dial;          /* while connecting */
    struct stream *stream;      /* then */
    struct http_parser *parser; /* while it has a call */
    struct http_call *call;     /* NULL: idle */
    bool served;                /* it has brought an answer */
    bool ended;                 /* the peer's end or a failure; then ... */
    int err_no;                 /* ... its errno, 0: a proper end */
    int64_t idle_since;
};

struct http_call {
    struct list link; /* of waiting or calls */
    struct http_pool *pool;
    struct conn *conn; /* NULL: waiting */
    const struct http_call_ops *ops;
    void *arg;
    char *label; /* method and path for the debug log */
    struct buf kept;
    bool keeping; /* kept is all that was written */
    bool large;   /* not to be sent again */
    bool head_only, chunked, body_ended;
    bool unsendable, short_body; /* to be told */
    bool tell_writable;
    int64_t left; /* bytes of the body to come; -1: not known */
    bool answering, head_told, read, paused, dead;
    int64_t idle_ms, active_at, sent_at;
    uint64_t written, taken_mark;
    struct timer timer, wake;
};

static void serve_waiting(struct http_pool *p);
static void connect_for(struct http_call *call);

/* ---- connections -------------------------------------------------------------------------------- */

static void conn_release(void *p)
{
    struct conn *c = p;

    http_parser_free(c->parser);
    free(c);
}

static void conn_close(struct conn *c)
{
    struct http_pool *p = c->pool;

    if (!list_empty(&c->link))
        p->n_idle--;
    list_del(&c->link);
    p->n_connections--;
    dial_free(c->dial);
    stream_close(c->stream);
    c->dial = NULL;
    c->stream = NULL;
    loop_free_later(p->loop, c, conn_release);
}

/* Sets the timer for the connection that is idle for the longest. */
static void set_prune(struct http_pool *p)
{
    const struct conn *first = list_item(p->idle.next, struct conn, link);

    timer_set(&p->prune, list_empty(&p->idle) ? TIME_NEVER : first->idle_since + p->keep_idle_ms);
}

static void on_prune(void *arg)
{
    struct http_pool *p = arg;

    list_each(&p->idle, it) {
        struct conn *c = list_item(it, struct conn, link);
        if (c->idle_since + p->keep_idle_ms > loop_now(p->loop))
            break;
        conn_close(c);
    }
    set_prune(p);
}

/* A connection whose call is over, with nothing left on it. */
static void keep_idle(struct conn *c)
{
    struct http_pool *p = c->pool;

    if (p->n_idle >= p->max_idle) {
        conn_close(c);
        return;
    }
    c->served = true;
    c->idle_since = loop_now(p->loop);
    list_add_tail(&p->idle, &c->link);
    p->n_idle++;
    stream_keep_buffers(c->stream, 0);
    stream_resume(c->stream);
    set_prune(p);
}

/* ---- the end of a call -------------------------------------------------------------------------- */

static void call_release(void *p)
{
    struct http_call *call = p;

    buf_free(&call->kept);
    free(call->label);
    free(call);
}

/* Takes the call out of the pool. Its memory stays until the end of the turn. */
static struct conn *detach(struct http_call *call)
{
    struct conn *c = call->conn;

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

static void fail(struct http_call *call, enum http_fail f, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void fail(struct http_call *call, enum http_fail f, const char *fmt, ...)
{
    struct http_pool *p = call->pool;
    char error[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(error, sizeof error, fmt, ap);
    va_end(ap);
    log_debug(NULL, "%s to %s failed: %s", call->label, buf_str(&p->origin.shown), error);
    struct conn *c = detach(call);
    if (c)
        conn_close(c);
    serve_waiting(p);
    call->ops->fail(call->arg, f, error);
}

/* The answer is whole. */
static void succeed(struct http_call *call)
{
    struct http_pool *p = call->pool;
    struct conn *c = call->conn;
    const struct http_message *m = http_parser_message(c->parser);
    bool keep = m->keep_alive && !m->by_close && call->body_ended && stream_queued(c->stream) == 0 &&
                stream_in(c->stream)->n == 0 && !c->ended;

    log_debug(NULL, "%s to %s: %d", call->label, buf_str(&p->origin.shown), m->status);
    detach(call);
    if (keep)
        keep_idle(c);
    else
        conn_close(c);
    serve_waiting(p);
    call->ops->end(call->arg);
}

void http_call_cancel(struct http_call *call)
{
    if (!call || call->dead)
        return;
    struct conn *c = detach(call);
    if (c)
        conn_close(c);
    serve_waiting(call->pool);
}

/* ---- the answer --------------------------------------------------------------------------------- */

/* The connection ended before the answer did. */
static void on_broken(struct http_call *call)
{
    struct conn *c = call->conn;
    const char *shown = buf_str(&call->pool->origin.shown);
    bool reset = c->err_no == 0 || c->err_no == ECONNRESET || c->err_no == EPIPE;
    int64_t now = loop_now(call->pool->loop);

    if (call->answering) {
        fail(call, HTTP_CUT, "%s closed the connection within its answer", shown);
    } else if (c->served && reset && call->keeping &&
               (call->sent_at < 0 || now - call->sent_at < RESEND_WITHIN_MS)) {
        log_debug(NULL, "%s had closed the idle connection, sending again on a new one", shown);
        c->call = NULL;
        conn_close(c);
        connect_for(call);
    } else if (c->err_no == 0) {
        fail(call, HTTP_RESET, "%s closed the connection without an answer", shown);
    } else {
        fail(call, HTTP_RESET, "the connection to %s broke before an answer came: %s", shown,
             stream_error(c->stream));
    }
}

static void tell_head(struct http_call *call)
{
    struct http_parser *parser = call->conn->parser;
    const struct http_message *m = http_parser_message(parser);
    size_t used;
    const struct http_call_head h = {
        .status = m->status,
        .fields = m->fields,
        .n_fields = m->n_fields,
        .length = m->has_length ? (int64_t)m->length : -1,
        .no_body = call->head_only || m->status == 204 || m->status == 304,
    };

    call->read = http_parser_feed(parser, slice_make("", 0), &used) == HTTP_DONE;
    call->head_told = true;
    call->ops->head(call->arg, &h);
}

/* Gives what the parser has of the body. The callback may end it all, so the bytes are held here. */
static void give_piece(struct http_call *call)
{
    struct conn *c = call->conn;
    struct http_parser *parser = c->parser;
    struct buf piece;

    if (http_parser_message(parser)->body.n == 0)
        return;
    piece = http_parser_lend_body(parser);
    call->ops->body(call->arg, buf_slice(&piece));
    if (c->parser == parser)
        http_parser_return_body(parser, &piece);
    else
        buf_free(&piece);
}

/* Reads on. Returns false if more bytes must come first. */
static bool step(struct http_call *call)
{
    struct conn *c = call->conn;
    struct buf *in = stream_in(c->stream);
    enum http_progress progress;
    size_t used;
    int status;

    if (call->read) {
        succeed(call);
        return false;
    }
    if (in->n) {
        progress = http_parser_feed(c->parser, buf_slice(in), &used);
        buf_drop(in, used);
    } else if (!c->ended) {
        return false;
    } else if (!call->answering || c->err_no || http_parser_eof(c->parser) != HTTP_DONE) {
        on_broken(call);
        return false;
    } else {
        progress = HTTP_DONE;
    }
    call->read = progress == HTTP_DONE;
    if (progress == HTTP_BAD)
        fail(call, HTTP_BAD_ANSWER, "the answer of %s cannot be used: %s", buf_str(&call->pool->origin.shown),
             http_parser_error(c->parser, &status));
    else if (progress == HTTP_HEAD_DONE)
        tell_head(call);
    else
        give_piece(call);
    return true;
}

static void advance(struct http_call *call)
{
    struct stream *s = call->conn->stream;
    size_t before = stream_in(s)->n;

    while (!call->dead && !call->paused && call->conn && call->conn->stream == s && step(call))
        ;
    if (!call->dead && call->conn && call->conn->stream == s && stream_in(s)->n < before)
        stream_resume(s); /* it may have stopped for want of room */
}

/* ---- the request -------------------------------------------------------------------------------- */

/* Queues bytes, or keeps them until there is a connection. last: no more come in this call. */
static void put(struct http_call *call, struct slice bytes, bool last)
{
    struct conn *c = call->conn;
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

static void on_stream(void *arg, struct stream *s, enum stream_event ev)
{
    struct conn *c = arg;
    struct http_call *call = c->call;
    struct http_pool *p = c->pool;

    if (!call) {
        /* Idle: its end, or bytes nobody asked for. Written leftovers mean nothing. */
        if (ev != STREAM_DRAINED) {
            conn_close(c);
            set_prune(p);
            serve_waiting(p);
        }
        return;
    }
    note_sent(call); /* with any event: an answer may be told before STREAM_DRAINED */
    if (ev == STREAM_DRAINED) {
        tell_writable(call);
        return;
    }
    if (ev == STREAM_DATA) {
        call->answering = true;
        call->keeping = false;
        buf_free(&call->kept);
        call->active_at = loop_now(p->loop);
    } else {
        c->ended = true;
        if (ev == STREAM_FAILED)
            c->err_no = stream_errno(s) ? stream_errno(s) : EPROTO;
    }
    advance(call);
}

/* The call has a connection: sends what there is. */
static void start(struct http_call *call)
{
    struct conn *c = call->conn;

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

static void on_dialled(void *arg, enum http_fail f, struct stream *s, const char *error)
{
    struct conn *c = arg;
    struct http_call *call = c->call;

    if (f) {
        fail(call, f, "%s", error);
        return;
    }
    dial_free(c->dial);
    c->dial = NULL;
    c->stream = s;
    stream_set_owner(s, on_stream, c);
    stream_set_in_max(s, READ_AHEAD);
    start(call);
}

/* Makes a connection for a call that has none. */
static void connect_for(struct http_call *call)
{
    struct http_pool *p = call->pool;
    struct conn *c = xcalloc(1, sizeof *c);

    list_init(&c->link);
    c->pool = p;
    c->call = call;
    call->conn = c;
    p->n_connections++;
    c->dial = dial_new(p->loop, &p->origin.dial, on_dialled, c);
}

/* Gives connections to those who wait, as far as there are any. */
static void serve_waiting(struct http_pool *p)
{
    while (!p->dead && !list_empty(&p->waiting)) {
        struct http_call *call = list_item(p->waiting.next, struct http_call, link);
        struct conn *idle = list_empty(&p->idle) ? NULL : list_item(p->idle.prev, struct conn, link);
        bool full = p->n_connections >= p->max_connections;
        if (full && !idle)
            return;
        list_del(&call->link);
        list_add_tail(&p->calls, &call->link);
        if (idle && !call->large) {
            list_del(&idle->link);
            p->n_idle--;
            set_prune(p);
            call->conn = idle;
            start(call);
            continue;
        }
        if (full) {
            conn_close(list_item(p->idle.next, struct conn, link));
            set_prune(p);
        }
        connect_for(call);
    }
}

/* What was found inside a call of the owner's, who must not be called back there. */
static void on_wake(void *arg)
{
    struct http_call *call = arg;
    const char *shown = buf_str(&call->pool->origin.shown);

    if (call->unsendable) {
        fail(call, HTTP_BAD_ANSWER,
             "the request to %s was not sent: its path or a header has characters that may not be there",
             shown);
        return;
    }
    if (call->short_body) {
        fail(call, HTTP_CUT, "the request to %s ended before its body was whole", shown);
        return;
    }
    if (call->tell_writable)
        tell_writable(call);
    if (!call->dead && call->conn && call->conn->stream)
        advance(call);
}

/* ---- time-outs ---------------------------------------------------------------------------------- */

static const char *stuck(const struct http_call *call)
{
    const struct conn *c = call->conn;

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
    const struct conn *c = call->conn;
    const char *where = stuck(call);
    int64_t now = loop_now(call->pool->loop), at = call->active_at + call->idle_ms;
    char time[32];

    if (where) {
        fail(call, HTTP_TIMEOUT, "nothing moved to or from %s for %s (%s)",
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
        serve_waiting(p);
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

/* ---- the pool ----------------------------------------------------------------------------------- */

struct http_pool *http_pool_new(struct loop *l, const struct http_pool_options *o, struct err *e)
{
    struct http_pool *p = xcalloc(1, sizeof *p);

    if (http_origin_init(&p->origin, o->base_url, o->ca_file, NULL, o->proxy_url, o->ip,
                         o->connect_timeout_ms, e) != 0) {
        free(p);
        return NULL;
    }
    p->loop = l;
    p->max_connections = o->max_connections;
    p->max_idle = o->max_idle;
    p->keep_idle_ms = o->keep_idle_ms;
    list_init(&p->waiting);
    list_init(&p->calls);
    list_init(&p->idle);
    timer_init(&p->prune, l, on_prune, p);
    return p;
}

unsigned http_pool_connections(const struct http_pool *p)
{
    return p->n_connections;
}

/* What a dial or stream still borrows goes with the pool itself, after both are released. */
static void pool_release(void *arg)
{
    struct http_pool *p = arg;

    http_origin_free(&p->origin);
    free(p);
}

void http_pool_free(struct http_pool *p)
{
    if (!p || p->dead)
        return;
    p->dead = true;
    timer_stop(&p->prune);
    list_each(&p->waiting, it)
        http_call_cancel(list_item(it, struct http_call, link));
    list_each(&p->calls, it)
        http_call_cancel(list_item(it, struct http_call, link));
    list_each(&p->idle, it)
        conn_close(list_item(it, struct conn, link));
    loop_free_later(p->loop, p, pool_release);
}
