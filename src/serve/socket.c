/* The control socket: whoever may open it may do everything. */
#include "serve/socket.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "serve/exchange.h"

#define CONNECTIONS_MAX 256

struct socket_server {
    struct http_server *http;
    struct exchanges exchanges;
};

static void on_request(void *arg, struct http_exchange *x, const struct http_server_request *r)
{
    struct socket_server *s = arg;
    char who[64];

    snprintf(who, sizeof(who), "uid %ld (socket)", r->peer_uid);
    exchange_start(&s->exchanges, x, r, &(struct api_request){.who = who, .on_socket = true});
}

struct socket_server *socket_new(struct loop *l, struct api *api, const struct socket_options *o,
                                 struct err *e)
{
    struct socket_server *s = xcalloc(1, sizeof(*s));
    const struct http_server_options http = {.unix_path = o->path,
                                             .unix_mode = o->mode,
                                             .unix_group = o->group,
                                             .max_body = API_IMPORT_MAX,
                                             .max_connections = CONNECTIONS_MAX,
                                             .header_timeout_ms = SECONDS(10),
                                             .body_timeout_ms = SECONDS(60),
                                             .idle_timeout_ms = MINUTES(10)};

    exchanges_init(&s->exchanges, api);
    s->http = http_server_new(l, &http, on_request, s, e);
    if (!s->http) {
        free(s);
        return NULL;
    }
    return s;
}

void socket_stop(struct socket_server *s)
{
    http_server_stop_accepting(s->http);
}

void socket_free(struct socket_server *s)
{
    if (!s)
        return;
    exchanges_end(&s->exchanges);
    http_server_free(s->http);
    free(s);
}
