/* The pool: connections that calls have to themselves one after the other, and calls that wait for one. A new connection is
 * net/dial's. Idle connections stay watched. */
#include "net/http_pool_in.h"

#include <stdlib.h>

#include "base/mem.h"

#define READ_AHEAD (64 * 1024)

/* ---- connections -------------------------------------------------------------------------------- */

static void conn_release(void *p)
{
    struct pool_conn *c = p;

    http_parser_free(c->parser);
    free(c);
}

void pool_close(struct pool_conn *c)
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
    const struct pool_conn *first = list_item(p->idle.next, struct pool_conn, link);

    timer_set(&p->prune, list_empty(&p->idle) ? TIME_NEVER : first->idle_since + p->keep_idle_ms);
}

static void on_prune(void *arg)
{
    struct http_pool *p = arg;

    list_each(&p->idle, it) {
        struct pool_conn *c = list_item(it, struct pool_conn, link);
        if (c->idle_since + p->keep_idle_ms > loop_now(p->loop))
            break;
        pool_close(c);
    }
    set_prune(p);
}

void pool_keep(struct pool_conn *c)
{
    struct http_pool *p = c->pool;

    if (p->n_idle >= p->max_idle) {
        pool_close(c);
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

static void on_stream(void *arg, struct stream *s, enum stream_event ev)
{
    struct pool_conn *c = arg;
    struct http_call *call = c->call;
    struct http_pool *p = c->pool;

    if (!call) {
        /* Idle: its end, or bytes nobody asked for. Written leftovers mean nothing. */
        if (ev != STREAM_DRAINED) {
            pool_close(c);
            set_prune(p);
            pool_serve(p);
        }
        return;
    }
    call_event(call, s, ev);
}

static void on_dialled(void *arg, enum http_fail f, struct stream *s, const char *error)
{
    struct pool_conn *c = arg;
    struct http_call *call = c->call;

    if (f) {
        call_fail(call, f, "%s", error);
        return;
    }
    dial_free(c->dial);
    c->dial = NULL;
    c->stream = s;
    stream_set_owner(s, on_stream, c);
    stream_set_in_max(s, READ_AHEAD);
    call_start(call);
}

void pool_connect(struct http_call *call)
{
    struct http_pool *p = call->pool;
    struct pool_conn *c = xcalloc(1, sizeof *c);

    list_init(&c->link);
    c->pool = p;
    c->call = call;
    call->conn = c;
    p->n_connections++;
    c->dial = dial_new(p->loop, &p->origin.dial, on_dialled, c);
}

void pool_serve(struct http_pool *p)
{
    while (!p->dead && !list_empty(&p->waiting)) {
        struct http_call *call = list_item(p->waiting.next, struct http_call, link);
        struct pool_conn *idle =
            list_empty(&p->idle) ? NULL : list_item(p->idle.prev, struct pool_conn, link);
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
            call_start(call);
            continue;
        }
        if (full) {
            pool_close(list_item(p->idle.next, struct pool_conn, link));
            set_prune(p);
        }
        pool_connect(call);
    }
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
        pool_close(list_item(it, struct pool_conn, link));
    loop_free_later(p->loop, p, pool_release);
}
