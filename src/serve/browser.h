/* What a browser could be made to do here for a page of somebody else's, and how that is told from what people and
 * programs ask. Pure but for the machine's own name.
 *
 * DNS rebinding: a name of theirs is made to lead to this machine, so that the browser takes their page and this listener
 * for one origin. Such a request names their host in Host. A request across origins (a form, fetch) names their page in
 * Origin, and says so in Sec-Fetch-Site where the browser thinks the connection safe. */
#ifndef SERVE_BROWSER_H
#define SERVE_BROWSER_H

#include <stdbool.h>

#include "base/bytes.h"

/* Who is asked, and from where: the headers as they are, p NULL where there is none. */
struct browser_head {
    struct slice host, origin, fetch_site;
    bool tls;
    char *const *names; /* further names of this server (listen.http_hosts), NULL-terminated; NULL: none */
};

/* Whether the request may be served as far as a browser is concerned: 403 if not, with code and message. navigation:
 * what is asked may be linked to from anywhere, as the page itself. */
bool browser_may(const struct browser_head *h, bool navigation, const char **code, const char **message);
/* Whether a browser sent it, as far as its headers tell. */
bool browser_sent(const struct browser_head *h);

/* Whether Host may name this server: an address, localhost, the machine's own name, one of names, or, over TLS,
 * whatever the certificate was good for. */
bool browser_host_ok(const struct browser_head *h);
/* Whether Origin is the very host that the request names, or one of names. */
bool browser_origin_ok(const struct browser_head *h);

#endif
