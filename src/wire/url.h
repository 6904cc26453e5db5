/* URLs and percent-encoding: addresses out of the configuration, query strings of requests. */
#ifndef WIRE_URL_H
#define WIRE_URL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"

enum url_scheme { URL_HTTP, URL_HTTPS, URL_SOCKS5, URL_SOCKS5H, URL_UNIX };

struct url {
    enum url_scheme scheme;
    char *user, *password; /* percent-decoded; NULL: none. Secrets: never shown */
    char *host;            /* lower case; an IPv6 address without its brackets; NULL for unix */
    bool ipv6;             /* host is an IPv6 address */
    uint16_t port;         /* the scheme's own if the URL has none; 0 for unix */
    char *path; /* as it stands, with the query, from '/'; "" if there is none. unix: the socket's path,
                   which may hold blanks and anything else */
};

/* Returns 0, or -1 and EX_CONFIG in e, with nothing to free. The error never shows the URL, as it may hold a
 * password. */
int url_parse(const char *text, struct url *u, struct err *e);
void url_free(struct url *u);
const char *url_scheme_name(enum url_scheme s);
/* For Host headers and messages: "host" or "host:port" or "[v6]:port"; the port left out if it is the
 * scheme's own. */
void url_add_host(struct buf *out, const struct url *u);

/* Appends s with %XX replaced; `plus`: '+' means a blank (query strings). Returns 0, or -1 if a '%' is not
 * followed by two hex digits, or a zero byte comes out. */
int percent_decode(struct buf *out, struct slice s, bool plus);
/* Appends s with everything but A-Za-z0-9-._~ written as %XX. */
void percent_encode(struct buf *out, struct slice s);

/* Walks over a query string: cuts the next "name=value" off the front of *rest and puts both, decoded, into
 * name and value (emptied first; no '=': an empty value). 1: there was one; 0: the end; -1: badly encoded. */
int query_next(struct slice *rest, struct buf *name, struct buf *value);
/* The first value of that name into value (emptied first). 1, 0 or -1 as above. */
int query_get(struct slice query, const char *name, struct buf *value);

#endif
