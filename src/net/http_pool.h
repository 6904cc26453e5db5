/* An HTTP/1.1 client for one origin that streams: several connections, each with one call at a time, bodies in
 * pieces both ways with back-pressure, so a call of any size needs little memory. Connects as
 * net/http_client does. */
#ifndef NET_HTTP_POOL_H
#define NET_HTTP_POOL_H

#include "net/http_client.h"
#include "wire/http.h"

struct http_pool;
struct http_call;

struct http_pool_options {
    /* as in http_client_options */
    const char *base_url, *ca_file, *proxy_url;
    enum ip_mode ip;
    int64_t connect_timeout_ms;
    unsigned max_connections; /* a call beyond them waits for its turn */
    unsigned max_idle;        /* connections kept while no call needs them */
    int64_t keep_idle_ms;     /* and for how long */
};

/* Returns NULL and e if an URL is wrong or the CA file cannot be read. All strings are copied. */
struct http_pool *http_pool_new(struct loop *l, const struct http_pool_options *o, struct err *e);
/* Ends every call without a word. May be called inside a callback. NULL is harmless. */
void http_pool_free(struct http_pool *p);
unsigned http_pool_connections(const struct http_pool *p); /* open or being made */

struct http_call_request {
    const char *method;
    const char *path; /* as in http_request */
    /* Beside Host, Connection, Content-Length and Transfer-Encoding: http_end_to_end drops those. What the
     * base URL has of a user goes as Authorization if there is none. */
    const struct http_field *fields;
    size_t n_fields;
    int64_t length;   /* of the body that http_call_write gives; 0: none; -1: not known, sent in chunks */
    bool secret_path; /* the path holds a token: never in a log or error */
    /* The call fails with HTTP_TIMEOUT if the peer moves nothing for so long: takes no byte of what waits for
     * it, or, when it has the whole request, sends none (unless paused). Waiting for a connection counts. */
    int64_t idle_timeout_ms;
};

struct http_call_head {
    int status;
    const struct http_field *fields; /* all; http_end_to_end picks those to be passed on */
    size_t n_fields;
    int64_t length; /* of the body; of an answer to HEAD: what it would be; -1: not known */
    bool no_body;   /* of HEAD, 204, 304 */
};

/* Comes from the loop, never from inside a call of this module. h, pieces and error are valid within the
 * call; every function here, http_pool_free too, may be called inside. */
struct http_call_ops {
    void (*writable)(void *arg); /* a connection is there, or all that was written went to the kernel, and the
                                    body has not ended: more is welcome. May be NULL */
    void (*head)(void *arg, const struct http_call_head *h); /* once */
    void (*body)(void *arg, struct slice piece);
    void (*end)(void *arg); /* the answer is whole; the call is no more */
    /* It failed, before or after `head`; the call is no more. error: a sentence without secrets. */
    void (*fail)(void *arg, enum http_fail fail, const char *error);
};

/* A request whose body is small and that meets a connection which the peer closed just then is sent again on
 * a new one, as by http_client_request; a large one is given a new connection at once. The answer may come
 * before the body was written; if it ends before, the connection is closed. */
struct http_call *http_call_new(struct http_pool *p, const struct http_call_request *r,
                                const struct http_call_ops *ops, void *arg);
/* Copied, also before there is a connection. More than `length` is ignored. */
void http_call_write(struct http_call *c, struct slice bytes);
void http_call_write_end(struct http_call *c); /* shorter than `length`: the call is cancelled with `fail` */
size_t http_call_queued(const struct http_call *c); /* bytes that the kernel did not take yet */
/* No head, piece or end comes between the two (but perhaps a failure). */
bool http_call_waits(const struct http_call *call); /* for a connection that others have */
void http_call_pause(struct http_call *c);
void http_call_resume(struct http_call *c);
/* No callback comes any more; the connection is closed. NULL is harmless. */
void http_call_cancel(struct http_call *c);

#endif
