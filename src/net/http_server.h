/* An HTTP/1.1 server: the control socket and the network listeners, in plain or by TLS. Requests are handed
 * over one at a time on each connection and in the order they came: whole, or, where the listener wants it, as
 * soon as the head is there, its body gathered or streamed as the handler says. An answer may come at once or
 * later, in one piece or in many. Limits: headers 16 KiB, a body limit each listener sets, idle, header and
 * body time-outs, a cap on connections and on what unfinished requests may hold; an early refusal drains so
 * that the client can read it. */
#ifndef NET_HTTP_SERVER_H
#define NET_HTTP_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/ip.h"
#include "wire/http.h"

struct loop;
struct tls_server;
struct http_server;
struct http_exchange; /* a request that waits for its answer; owned by the server */

struct http_server_request {
    struct slice method, path; /* path without the query, percent-decoding not done */
    struct slice query;        /* without '?' ; empty: none */
    struct slice body;         /* empty in http_head_fn */
    struct slice authorization, content_type;
    /* any header, by name without regard to case; an empty slice with p NULL if absent */
    struct slice (*header)(const struct http_server_request *r, const char *name);
    const void *private;
    const struct http_field *fields; /* all headers */
    size_t n_fields;
    int64_t content_length; /* 0: no body; -1: known only at its end (chunked) */
    /* the peer: of the unix socket, else -1 */
    long peer_uid, peer_pid;
    /* the peer: over TCP, else all zero and "" */
    struct ip_addr peer_ip;
    uint16_t peer_port;
    const char *peer_text; /* the address without the port */
    bool tls;
};

/* A whole request. r is borrowed until http_reply (http_end) or until `gone`. Comes from the loop, never from
 * inside a call of this module. */
typedef void http_request_fn(void *arg, struct http_exchange *x, const struct http_server_request *r);

/* The head of a request, body or not. The handler does one of these, inside this call, or, once http_on_gone is set, later; reading waits
 * for it, and a client that expects "100 Continue" gets that with the second and third only:
 *     http_reply, or http_begin ...   the body is not wanted; the connection ends after the answer if there is
 *                                     one
 *     http_body_whole                 gathered, then given to the listener's http_request_fn
 *     http_body_stream                given in pieces
 * r is borrowed as above. The pointer r is the same in http_request_fn. */
typedef void http_head_fn(void *arg, struct http_exchange *x, const struct http_server_request *r);

struct http_server_options {
    const char *unix_path; /* either this, with mode and group, ... */
    unsigned unix_mode;
    const char *unix_group; /* NULL: the process's */
    const char *address;    /* ... or HOST:PORT */
    struct tls_server *tls; /* NULL: plain. Borrowed until the server is freed */
    http_head_fn *on_head;  /* NULL: every body is gathered */
    size_t max_body;
    unsigned max_connections; /* one more takes the place of the longest idle one, or gets a 503 */
    size_t
        max_held; /* bytes of requests that are not whole, but for the largest of them; beyond it the next largest
                        gets a 503. 0: 1 MiB */
    size_t
        max_unread; /* memory of answers that clients do not take; beyond it those who take nothing are closed, and
                          requests get a 503 until there is room. One answer may go over it. 0: 8 MiB */
    /* A TLS handshake; a head that came in part; a body (as a whole; of a streamed one, and of an answer,
     * between any two pieces of 1 KiB); a connection without a request: may take that long. */
    int64_t header_timeout_ms, body_timeout_ms, idle_timeout_ms;
};

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

/* Whether one more large answer may be queued, see max_unread. The answer to a GET is replaced by a 503 if there is
 * no room; handlers that do something for another method's answer ask before they do it. */
bool http_has_room(struct http_exchange *x);

/* ---- bodies ------------------------------------------------------------------------------------- */

/* Gathers the body, up to max bytes (a longer one gets a 413); then the listener's http_request_fn is called.
 * If the client leaves or is refused before that, x is no more, which only http_on_gone tells. */
void http_body_whole(struct http_exchange *x, size_t max);

/* What happens to a streamed exchange. None is called from inside a call of this module. */
struct http_stream_ops {
    void (*body)(void *arg, struct slice piece); /* the next bytes, never none; valid within the call */
    void (*body_end)(void *arg);                 /* that was all; comes too if there is no body */
    void (*drained)(void *arg); /* everything given to http_write went to the kernel. May be NULL */
    /* The client went away, or broke the rules, or was too slow: x is no more. */
    void (*gone)(void *arg);
};
void http_body_stream(struct http_exchange *x, const struct http_stream_ops *ops, void *arg);
/* No piece comes between the two; the client is then stopped by TCP. */
void http_body_pause(struct http_exchange *x);
void http_body_resume(struct http_exchange *x);

/* ---- answers in pieces: for any exchange -------------------------------------------------------- */

struct http_answer_head {
    int status;
    /* Beside Content-Length, Transfer-Encoding and Connection, which are the server's; Date is added if it is
     * not there. A field that could not be written is left out. */
    const struct http_field *fields;
    size_t n_fields;
    int64_t length; /* of the body; -1: not known: sent in chunks, or to HTTP/1.0 until the connection ends */
};
void http_begin(struct http_exchange *x, const struct http_answer_head *h);
/* Bytes are copied. HEAD, 204 and 304 get none, nor does anyone get more than `length`. */
void http_write(struct http_exchange *x, struct slice bytes);
size_t http_queued(const struct http_exchange *x); /* bytes that the kernel did not take yet */
/* The answer is whole; x is no more. One that is shorter than its `length` is cut, as by http_abort. */
void http_end(struct http_exchange *x);
/* Gives up: the connection is closed, so that the client sees that its answer was cut. x is no more. */
void http_abort(struct http_exchange *x);

#endif
