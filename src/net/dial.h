/* The way to a server: look-up, connection, proxy and TLS, in one call with one time-out. */
#ifndef NET_DIAL_H
#define NET_DIAL_H

#include "net/http_client.h"

struct dial;
struct proxy;
struct stream;
struct tls_config;
struct tls_session;

struct dial_options {
    const char *unix_path; /* either this ... */
    const char *host;      /* ... or these */
    uint16_t port;
    enum ip_mode ip;           /* of what is looked up here */
    const struct proxy *proxy; /* NULL: direct */
    struct tls_config *tls;    /* NULL: plain */
    struct tls_session *session;
    int64_t timeout_ms;
};

/* Called once, from the loop. HTTP_OK: the stream is ready, idle, and the callee's, who names itself its
 * owner at once. Else `error` is a sentence for people. */
typedef void dial_fn(void *arg, enum http_fail fail, struct stream *s, const char *error);

/* Everything that o points to is borrowed until dial_free. */
struct dial *dial_new(struct loop *l, const struct dial_options *o, dial_fn *fn, void *arg);
/* Also gives up; to be called also after the callback, or inside it. NULL is harmless. */
void dial_free(struct dial *d);
bool dial_login_refused(const struct dial *d); /* by the proxy */
const char *dial_stage(const struct dial *d);  /* what it is at, as in "while resolving the name" */

#endif
