/* An HTTP/1.1 server: the control socket, later the network listeners. Whole requests are handed over, one at
 * a time on each connection and in the order they came; an answer may come at once or later. Limits: headers
 * 16 KiB, a body limit each listener sets, idle, header and body time-outs, a cap on connections; an early
 * refusal drains so that the client can read it. */
#ifndef NET_HTTP_SERVER_H
#define NET_HTTP_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct loop;
struct http_server;
struct http_exchange; /* a request that waits for its answer; owned by the server */

struct http_server_options {
    const char *unix_path; /* either this, with mode and group, ... */
    unsigned unix_mode;
    const char *unix_group; /* NULL: the process's */
    const char *address;    /* ... or HOST:PORT */
    size_t max_body;
    unsigned max_connections; /* one more gets a 503 */
    /* A head that came in part, a body (as a whole; and of an answer, between any two bytes taken), and a
     * connection without a request may take that long. */
    int64_t header_timeout_ms, body_timeout_ms, idle_timeout_ms;
};

struct http_server_request {
    struct slice method, path; /* path without the query, percent-decoding not done */
    struct slice query;        /* without '?' ; empty: none */
    struct slice body;
    struct slice authorization, content_type;
    /* any header, by name without regard to case; an empty slice with p NULL if absent */
    struct slice (*header)(const struct http_server_request *r, const char *name);
    const void *private;
    /* the peer: of the unix socket, else -1 */
    long peer_uid, peer_pid;
};

/* r is borrowed until http_reply or until `gone`. Comes from the loop, never from inside a call of this
 * module. */
typedef void http_request_fn(void *arg, struct http_exchange *x, const struct http_server_request *r);

/* Starts to listen. A stale unix socket (nobody answers on it) is replaced. Returns NULL and e. */
struct http_server *http_server_new(struct loop *l, const struct http_server_options *o, http_request_fn *fn,
                                    void *arg, struct err *e);
/* Stops to listen; open exchanges are cut without a word (`gone` is not called) and are no more. Removes the
 * unix socket. NULL is harmless. */
void http_server_free(struct http_server *s);
/* The port that a HOST:PORT listener has; 0 of a unix socket. */
uint16_t http_server_port(const struct http_server *s);
/* Stops to accept; idle connections are closed; exchanges under way go on. */
void http_server_stop_accepting(struct http_server *s);

/* Tells that the client went away while its exchange waited: x is no more, do not answer it. NULL to forget.
 * Without it the exchange must be answered all the same; the answer then goes nowhere. Over TCP a client that
 * ended its sending side counts as gone here, since one that left looks the same; on a unix socket it may do
 * so and wait for its answer. */
void http_on_gone(struct http_exchange *x, void (*gone)(void *arg), void *arg);

/* Answers; x is no more. body is copied. content_type NULL: application/json. retry_after_s < 0: no such
 * header. HEAD, 204 and 304 are sent without the body. */
void http_reply(struct http_exchange *x, int status, const char *content_type, int64_t retry_after_s,
                struct slice body);
/* Answers {"error":{"code","message"}}. */
void http_reply_error(struct http_exchange *x, int status, const char *code, const char *message);

#endif
