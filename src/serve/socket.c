/* Exchanges of the control socket become api calls, and go when their client goes. */
#include "serve/socket.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/mem.h"
#include "net/http_server.h"

#define CONNECTIONS_MAX 256

struct socket_server {
    struct api *api;
    struct http_server *http;
    struct list waiting; /* exchanges whose answer is to come */
};

struct exchange {
    struct list link;
    struct http_exchange *http;
    struct api_call *call;
};

static void reply(void *arg, int status, struct slice body, int64_t retry_after_s)
{
    struct exchange *x = arg;

    http_on_gone(x->http, NULL, NULL);
    http_reply(x->http, status, NULL, retry_after_s, body);
    list_del(&x->link);
    free(x);
}

static void gone(void *arg)
{
    struct exchange *x = arg;

    api_cancel(x->call);
    list_del(&x->link);
    free(x);
}

static void on_request(void *arg, struct http_exchange *http, const struct http_server_request *r)
{
    struct socket_server *s = arg;
    struct exchange *x = xcalloc(1, sizeof(*x));
    char who[64];

    snprintf(who, sizeof(who), "uid %ld (socket)", r->peer_uid);
    struct api_request request = {.method = r->method,
                                  .path = r->path,
                                  .query = r->query,
                                  .body = r->body,
                                  .who = who,
                                  .on_socket = true};
    x->http = http;
    list_add_tail(&s->waiting, &x->link);
    struct api_call *call = api_handle(s->api, &request, reply, x);
    if (!call)
        return;
    x->call = call;
    http_on_gone(http, gone, x);
}

struct socket_server *socket_new(struct loop *l, struct api *api, const struct socket_options *o,
                                 struct err *e)
{
    struct socket_server *s = xcalloc(1, sizeof(*s));
    const struct http_server_options http = {.unix_path = o->path,
                                             .unix_mode = o->mode,
                                             .unix_group = o->group,
                                             .max_body = API_BODY_MAX,
                                             .max_connections = CONNECTIONS_MAX,
                                             .header_timeout_ms = SECONDS(10),
                                             .body_timeout_ms = SECONDS(60),
                                             .idle_timeout_ms = MINUTES(10)};

    s->api = api;
    list_init(&s->waiting);
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
    list_each(&s->waiting, it) {
        struct exchange *x = list_item(it, struct exchange, link);
        http_on_gone(x->http, NULL, NULL);
        api_cancel(x->call);
        list_del(&x->link);
        free(x);
    }
    http_server_free(s->http);
    free(s);
}
