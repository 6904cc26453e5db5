/* The HTTP pool's inside: what the pool and its connections (http_pool.c), a call (http_call.c) and its answer
 * (http_call_read.c) share; for those only. */
#ifndef NET_HTTP_POOL_IN_H
#define NET_HTTP_POOL_IN_H

#include "base/list.h"
#include "net/http_origin.h"
#include "net/http_pool.h"
#include "net/loop.h"
#include "net/stream.h"

#define RESEND_MAX (64 * 1024) /* a request that is larger is not sent twice */

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

struct pool_conn {
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
    struct pool_conn *conn; /* NULL: waiting */
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

/* ---- http_pool.c -------------------------------------------------------------------------------- */

/* Closes it at once. Its call, if it has one, must know. */
void pool_close(struct pool_conn *c);
/* Keeps a connection whose call is over, with nothing left on it, for the next, or closes it. */
void pool_keep(struct pool_conn *c);
/* Makes a connection for a call that has none. */
void pool_connect(struct http_call *call);
/* Gives connections to those who wait, as far as there are any. */
void pool_serve(struct http_pool *p);

/* ---- http_call.c -------------------------------------------------------------------------------- */

/* The call has a connection: sends what there is. */
void call_start(struct http_call *call);
/* What its connection tells. */
void call_event(struct http_call *call, struct stream *s, enum stream_event ev);
/* Ends it, and tells its owner. */
void call_fail(struct http_call *call, enum http_fail f, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The answer is whole. */
void call_succeed(struct http_call *call);

/* ---- http_call_read.c --------------------------------------------------------------------------- */

/* Reads as much of the answer as is there. */
void call_read(struct http_call *call);

#endif
