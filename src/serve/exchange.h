/* Exchanges of an HTTP server become api calls, and go when their client goes: what the control socket and the network
 * listener share. */
#ifndef SERVE_EXCHANGE_H
#define SERVE_EXCHANGE_H

#include "base/list.h"
#include "net/http_server.h"
#include "serve/api.h"

struct exchanges {
    struct api *api;
    struct list waiting; /* those whose answer is to come */
};

void exchanges_init(struct exchanges *e, struct api *api);
/* Hands a request to the api: method, path, query and body of r; who, and what the caller may do, from from. */
void exchange_start(struct exchanges *e, struct http_exchange *x, const struct http_server_request *r,
                    const struct api_request *from);
/* Looks at each call that waits: those that fn does not allow any more are cancelled, and fn has answered them. */
typedef bool exchange_allowed_fn(void *arg, struct http_exchange *x, const struct http_server_request *r,
                                 const char *only_bot);
void exchanges_check(struct exchanges *e, exchange_allowed_fn *fn, void *arg);
/* Cancels the calls that wait; before the server is freed. */
void exchanges_end(struct exchanges *e);

#endif
