/* The API on the network (`listen.http`): HTTP or HTTPS, each request with `Authorization: Bearer TOKEN`. The token says
 * what its holder may do: the API's token all but what only the control socket may, a bot's pull token what belongs to
 * claims of this bot's events.
 *
 * The status page (serve/page.h) is the one thing that needs no token. A browser must not be made to talk here for a page
 * of somebody else's (serve/browser.h): that is refused with 403, and there is no CORS. The holder of a pull token is a
 * program, which may call this server by any name. */
#ifndef SERVE_NETWORK_H
#define SERVE_NETWORK_H

#include "base/bytes.h"
#include "serve/api.h"

struct http_exchange;
struct http_server_request;
struct network;

enum network_caller { CALLER_UNKNOWN, CALLER_API, CALLER_BOT };

struct network_hooks {
    /* Whose token this is; *bot is the bot's name, borrowed for the call. Compares in constant time. */
    enum network_caller (*caller)(void *arg, struct slice token, const char **bot);
    /* Further names of this server, as browser_head has them; borrowed for the call. */
    char *const *(*names)(void *arg);
    void *arg;
};

/* The api must outlive it. h is copied. */
struct network *network_new(struct api *api, const struct network_hooks *h);
/* The listener's functions (http_head_fn, http_request_fn); arg: the network. */
void network_head(void *arg, struct http_exchange *x, const struct http_server_request *r);
void network_request(void *arg, struct http_exchange *x, const struct http_server_request *r);
/* The tokens may be others now: calls that wait, and whose token is none any more or another bot's, get a 401. */
void network_check(struct network *n);
/* Before the server is freed: the calls that wait are cancelled. NULL is harmless. */
void network_free(struct network *n);

/* The token in "Bearer TOKEN"; empty if it is none. */
struct slice network_bearer(struct slice authorization);

#endif
