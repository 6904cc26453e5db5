/* One connection: requests in, answers out, in plain or by TLS; blocking, in a thread of its own. */
#ifndef BOTAPI_CONN_H
#define BOTAPI_CONN_H

#include <llhttp.h>
#include <openssl/ssl.h>
#include <stdbool.h>

#include "base/buf.h"

struct conn {
    int fd;
    unsigned number; /* from 1, in order of arrival */
    SSL *ssl;        /* NULL: plain */
    llhttp_t parser;
    struct buf in; /* received and not parsed yet */
    /* The request that was read last. */
    struct buf url, body, field, value;
    char content_type[256];
    bool complete, is_post, keep_alive;
};

struct reply {
    int status;
    const char *content_type; /* NULL: application/json */
    struct buf body;
    int retry_after; /* the header; 0: none */
    bool close;      /* close the connection after it */
};

/* Takes the descriptor. tls may be NULL. NULL if the handshake failed (then the descriptor is closed). */
struct conn *conn_open(int fd, unsigned number, SSL_CTX *tls);
void conn_close(struct conn *c);
/* Closes by a reset. */
void conn_reset(struct conn *c);

/* Reads one request into c. Returns 0, or -1: the peer is gone or sent something that is not HTTP. */
int conn_read(struct conn *c);
int conn_write(struct conn *c, struct slice s); /* 0, or -1 */
/* Appends status line and headers for a body of n bytes. */
void conn_head(const struct conn *c, const struct reply *r, size_t n, struct buf *out);
int conn_reply(struct conn *c, const struct reply *r);
/* Waits until the peer is gone, at most ms; wake_fd (-1: none) ends it too. Returns true if the peer is gone.
 */
bool conn_wait(const struct conn *c, int wake_fd, int64_t ms);

#endif
