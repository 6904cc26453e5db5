/* An HTTP/1.1 client for one origin: one connection, kept alive, one request at a time. Connects by c-ares (a
 * fresh look-up on each attempt), IPv6 and IPv4 raced (RFC 8305), directly or through a proxy (HTTP CONNECT,
 * SOCKS5, SOCKS5h), in plain or by TLS with certificate and host name checked. */
#ifndef NET_HTTP_CLIENT_H
#define NET_HTTP_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/ip.h"

struct loop;
struct http_client;

struct http_client_options {
    const char *base_url; /* http://HOST[:PORT][/PATH] or https://...; the path is put before each request's
                              path.  unix:/PATH: the control socket */
    const char *ca_file;  /* NULL: the system's certificates */
    const char *also_ca_file; /* without ca_file: believed beside the system's; NULL: none */
    const char *proxy_url;    /* NULL: direct; may hold user:password: never shown */
    enum ip_mode ip;
    int64_t connect_timeout_ms; /* name look-up, connection, proxy and TLS together */
    size_t max_body;            /* a longer answer fails (HTTP_BAD_ANSWER) */
};

/* Returns NULL and e if an URL is wrong or the CA file cannot be read. All strings are copied. */
struct http_client *http_client_new(struct loop *l, const struct http_client_options *o, struct err *e);
/* Ends everything; no callback comes any more. May be called inside the callback. */
void http_client_free(struct http_client *c);

struct http_header {
    struct slice name, value;
};

struct http_request {
    const char *method;
    const char *path; /* after the base URL's path; starts with '/', or "" */
    const struct http_header
        *headers; /* beside Host, Content-Length, Connection, Accept-Encoding, User-Agent */
    size_t n_headers;
    struct slice body;   /* copied */
    bool secret_path;    /* the path holds a token: never in a log or error */
    int64_t deadline_ms; /* from now, for the whole request, the connection included */
};

enum http_fail {
    HTTP_OK,         /* a whole answer came, whatever its status */
    HTTP_RESOLVE,    /* the name has no address, or no name server answered */
    HTTP_REFUSED,    /* no connection to any address (refused, unreachable, timed out) */
    HTTP_PROXY,      /* the proxy refused or spoke nonsense; proxy_auth tells a wrong password */
    HTTP_TLS,        /* handshake failed: certificate, host name, ... */
    HTTP_RESET,      /* closed or reset before the first byte of the answer */
    HTTP_CUT,        /* closed or reset within the answer */
    HTTP_TIMEOUT,    /* the deadline passed */
    HTTP_BAD_ANSWER, /* not HTTP, or larger than max_body */
};

struct http_answer {
    enum http_fail fail;
    char error[256]; /* a sentence for people, without secrets */
    int status;
    struct buf body;         /* de-chunked; the callback may steal it */
    bool complete_by_length; /* Content-Length was there and is what came (or chunked, ended properly) */
    bool sent;               /* the whole request had been written to the peer's connection */
    bool proxy_auth;         /* with HTTP_PROXY: user name or password were refused, or are wanted */
    bool too_large; /* with HTTP_BAD_ANSWER: it was longer than max_body; content_type and status are there */
    bool reused;    /* the connection had served a request before */
    int64_t waited_ms;     /* between the request's last byte and the answer's first, or the failure */
    int64_t retry_after_s; /* of the header Retry-After in seconds; -1: none */
    char content_type[128];
};

/* Called exactly once, unless the client is freed or the request cancelled before. a is borrowed. */
typedef void http_answer_fn(void *arg, struct http_answer *a);

/* Starts a request; one must not be under way. A request on a reused idle connection that is reset before any
 * byte of the answer is sent again at once on a new one (design.md section 4). */
void http_client_request(struct http_client *c, const struct http_request *r, http_answer_fn *fn, void *arg);
bool http_client_busy(const struct http_client *c);
/* Ends the request under way (its connection is closed); its callback is not called. */
void http_client_cancel(struct http_client *c);
/* Closes the idle connection, if any: the next request makes a new one. */
void http_client_drop_connection(struct http_client *c);

#endif
