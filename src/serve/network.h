/* The API on the network (`listen.http`): HTTP or HTTPS, each request with `Authorization: Bearer TOKEN`. The token says
 * what its holder may do: the API's token all but what only the control socket may, a bot's pull token what belongs to
 * claims of this bot's events.
 *
 * A browser must not be made to talk here for a page of somebody else's: a request that names another host as its own
 * (DNS rebinding), or that comes from a page of another host (Origin), is refused; there is no CORS. */
#ifndef SERVE_NETWORK_H
#define SERVE_NETWORK_H

#include "base/bytes.h"
#include "serve/api.h"

struct http_exchange;
struct http_server_request;
struct network;

enum network_caller { CALLER_UNKNOWN, CALLER_API, CALLER_BOT };

/* Whose token this is; *bot is the bot's name, borrowed for the call. Compares in constant time. */
typedef enum network_caller network_caller_fn(void *arg, struct slice token, const char **bot);

/* The api must outlive it. */
struct network *network_new(struct api *api, network_caller_fn *caller, void *arg);
/* The listener's functions (http_head_fn, http_request_fn); arg: the network. */
void network_head(void *arg, struct http_exchange *x, const struct http_server_request *r);
void network_request(void *arg, struct http_exchange *x, const struct http_server_request *r);
/* The tokens may be others now: calls that wait, and whose token is none any more or another bot's, get a 401. */
void network_check(struct network *n);
/* Before the server is freed: the calls that wait are cancelled. NULL is harmless. */
void network_free(struct network *n);

/* Whether a Host header may name this server: an address, localhost, the machine's own name, or, over TLS, whatever
 * the certificate was good for. */
bool network_host_ok(struct slice host, bool tls);
/* Whether an Origin is the very host that the request names. */
bool network_origin_ok(struct slice origin, struct slice host, bool tls);
/* The token in "Bearer TOKEN"; empty if it is none. */
struct slice network_bearer(struct slice authorization);

#endif
