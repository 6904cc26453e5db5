/* Exchanges and their calls. */
#include "serve/exchange.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

struct exchange {
    struct list link;
    struct http_exchange *http;
    const struct http_server_request *request; /* valid while http is */
    char only_bot[BOT_NAME_MAX + 1];
    struct api_call *call;
};

static void exchange_free(struct exchange *x)
{
    list_del(&x->link);
    free(x);
}

static void reply(void *arg, int status, const char *type, struct slice body, int64_t retry_after_s)
{
    struct exchange *x = arg;

    http_on_gone(x->http, NULL, NULL);
    http_reply(x->http, status, type, retry_after_s, body);
    exchange_free(x);
}

static void gone(void *arg)
{
    struct exchange *x = arg;

    api_cancel(x->call);
    exchange_free(x);
}

void exchanges_init(struct exchanges *e, struct api *api)
{
    e->api = api;
    list_init(&e->waiting);
}

void exchange_start(struct exchanges *e, struct http_exchange *http, const struct http_server_request *r,
                    const struct api_request *from)
{
    struct exchange *x = xcalloc(1, sizeof(*x));
    struct api_request request = *from;

    request.method = r->method;
    request.path = r->path;
    request.query = r->query;
    request.body = r->body;
    x->http = http;
    x->request = r;
    snprintf(x->only_bot, sizeof(x->only_bot), "%s", from->only_bot ? from->only_bot : "");
    list_add_tail(&e->waiting, &x->link);
    struct api_call *call = api_handle(e->api, &request, reply, x);
    if (!call)
        return;
    x->call = call;
    http_on_gone(http, gone, x);
}

void exchanges_check(struct exchanges *e, exchange_allowed_fn *fn, void *arg)
{
    list_each(&e->waiting, it) {
        struct exchange *x = list_item(it, struct exchange, link);
        struct api_call *call = x->call;
        http_on_gone(x->http, NULL, NULL);
        if (fn(arg, x->http, x->request, x->only_bot)) {
            http_on_gone(x->http, gone, x);
            continue;
        }
        exchange_free(x);
        api_cancel(call);
    }
}

void exchanges_end(struct exchanges *e)
{
    list_each(&e->waiting, it) {
        struct exchange *x = list_item(it, struct exchange, link);
        http_on_gone(x->http, NULL, NULL);
        api_cancel(x->call);
        exchange_free(x);
    }
}
