/* What the client's and the server's side of TLS share; for those two only. */
#ifndef NET_TLS_STREAM_H
#define NET_TLS_STREAM_H

#include <openssl/ssl.h>
#include <stdbool.h>

#include "base/bytes.h"

struct stream;

struct tls {
    struct stream *stream;
    SSL *ssl;
    char *peer; /* as errors name it */
    bool handshaking;
    /* What one side adds: a better reason for a failed handshake (false: it knows none), and what it holds. */
    bool (*explain)(struct tls *t);
    void (*release)(struct tls *t);
    void *side;
};

/* A context with what both sides want. */
SSL_CTX *tls_context(const SSL_METHOD *method);
/* Puts TLS on the stream; the caller then sets up t->ssl, before anything moves. */
struct tls *tls_start(struct stream *s, SSL_CTX *ctx, struct slice peer);

#endif
