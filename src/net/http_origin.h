/* What a client knows of the server it talks to: where it is, how to get there, and the head of every request
 * to it. For the kinds of client in this room. */
#ifndef NET_HTTP_ORIGIN_H
#define NET_HTTP_ORIGIN_H

#include "net/dial.h"
#include "wire/url.h"

struct http_origin {
    struct url base;
    struct buf shown; /* HOST[:PORT], for the Host header and for people */
    struct proxy *proxy;
    struct tls_config *tls;
    struct tls_session *session;
    struct dial_options dial; /* all of it: borrows from the above */
};

/* ca_file, also_ca_file (as in http_client_options) and proxy_url may be NULL. Returns 0, or -1 and e with nothing to
 * free. */
int http_origin_init(struct http_origin *o, const char *base_url, const char *ca_file,
                     const char *also_ca_file, const char *proxy_url, enum ip_mode ip,
                     int64_t connect_timeout_ms, struct err *e);
/* After every dial and stream that came of it was released. */
void http_origin_free(struct http_origin *o);

/* The base URL's path and the request's, with one slash between them; to be freed. */
char *http_origin_target(const struct http_origin *o, const char *path);
/* Request line, Host, and, if `login`, what the URL has of a user. Returns 0, or not 0 if that would not be one
 * request on the wire. */
int http_origin_add_head(const struct http_origin *o, struct buf *out, const char *method, const char *target,
                         bool login);
/* As http_add_field, for a name that is not terminated. */
int http_origin_add_field(struct buf *out, struct slice name, struct slice value);

#endif
