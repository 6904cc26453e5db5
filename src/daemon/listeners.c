/* One function a listener; a row of `all` puts it to work. */
#include "daemon/listeners.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/config.h"
#include "daemon/bots.h"
#include "daemon/configfile.h"
#include "intake/webhook.h"
#include "net/http_server.h"
#include "net/tls.h"
#include "serve/dropin.h"
#include "serve/network.h"

/* Telegram keeps up to 100 connections a bot, and closes idle ones after 60 s: we must not be the first to. */
#define WEBHOOK_CONNECTIONS 512
#define WEBHOOK_IDLE SECONDS(90)

static int open_webhook(struct listeners *l, const struct config *c, struct err *e)
{
    const struct http_server_options o = {
        .address = c->listen_webhook,
        .tls = l->tls,
        .on_head = webhook_head,
        .max_body = WEBHOOK_BODY_MAX,
        .max_connections = WEBHOOK_CONNECTIONS,
        .header_timeout_ms = SECONDS(10),
        .body_timeout_ms = SECONDS(30),
        .idle_timeout_ms = WEBHOOK_IDLE,
    };

    webhook_set_senders(l->bots->webhook, c->telegram_only, &c->trusted_proxy);
    l->webhook = http_server_new(l->loop, &o, webhook_request, l->bots->webhook, e);
    return l->webhook ? 0 : -1;
}

/* Libraries keep one connection for polls and some for calls, and close what is idle as they like. */
#define DROPIN_CONNECTIONS 512
#define DROPIN_IDLE SECONDS(120)

static int open_dropin(struct listeners *l, const struct config *c, struct err *e)
{
    const struct http_server_options o = {
        .address = c->listen_dropin,
        .tls = l->tls,
        .on_head = dropin_head,
        .max_body = DROPIN_BODY_MAX,
        .max_connections = DROPIN_CONNECTIONS,
        .header_timeout_ms = SECONDS(10),
        .body_timeout_ms = SECONDS(60),
        .idle_timeout_ms = DROPIN_IDLE,
    };

    l->dropin = http_server_new(l->loop, &o, dropin_request, l->bots->dropin, e);
    return l->dropin ? 0 : -1;
}

#define HTTP_CONNECTIONS 256
#define HTTP_IDLE SECONDS(90)

/* The API knows its callers by their tokens alone. Each is compared, so that time tells nothing. */
static enum network_caller caller_of(void *arg, struct slice token, const char **bot)
{
    const struct setup *s = ((const struct bots *)arg)->setup;
    enum network_caller who = CALLER_UNKNOWN;

    if (s->api_token && slice_eq_secret(token, slice_str(s->api_token)))
        who = CALLER_API;
    for (size_t i = 0; i < s->config->n_bots; i++) {
        const char *pull_token = s->secrets[i].pull_token;
        if (!pull_token || !slice_eq_secret(token, slice_str(pull_token)))
            continue;
        who = CALLER_BOT;
        *bot = s->config->bots[i].name;
    }
    return who;
}

static char *const *names_of(void *arg)
{
    return ((const struct bots *)arg)->setup->config->http_hosts;
}

static int open_http(struct listeners *l, const struct config *c, struct err *e)
{
    const struct http_server_options o = {
        .address = c->listen_http,
        .tls = l->tls,
        .on_head = network_head,
        .max_body = API_BODY_MAX,
        .max_connections = HTTP_CONNECTIONS,
        .header_timeout_ms = SECONDS(10),
        .body_timeout_ms = SECONDS(60),
        .idle_timeout_ms = HTTP_IDLE,
    };

    l->network = network_new(l->api, &(struct network_hooks){caller_of, names_of, l->bots});
    l->http = http_server_new(l->loop, &o, network_request, l->network, e);
    return l->http ? 0 : -1;
}

/* ---- all of them -------------------------------------------------------------------------------- */

static const struct row {
    const char *name;
    size_t address; /* of its option in struct config */
    size_t server;  /* in struct listeners */
    int (*open)(struct listeners *l, const struct config *c, struct err *e);
} all[] = {
    {"webhook", offsetof(struct config, listen_webhook), offsetof(struct listeners, webhook), open_webhook},
    {"dropin", offsetof(struct config, listen_dropin), offsetof(struct listeners, dropin), open_dropin},
    {"http", offsetof(struct config, listen_http), offsetof(struct listeners, http), open_http},
};

static const char *address_of(const struct row *r, const struct config *c)
{
    return *(char *const *)(const void *)((const char *)c + r->address);
}

static struct http_server **server_of(const struct row *r, struct listeners *l)
{
    return (struct http_server **)(void *)((char *)l + r->server);
}

int listeners_open(struct listeners *l, struct loop *loop, struct bots *bots, struct api *api, struct err *e)
{
    const struct config *c = bots->setup->config;

    *l = (struct listeners){.loop = loop, .bots = bots, .api = api};
    if (c->tls_cert && !(l->tls = tls_server_new(c->tls_cert, c->tls_key, e)))
        return err_prefix(e, "listen.tls_cert");
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        const char *address = address_of(&all[i], c);
        if (!address)
            continue;
        if (all[i].open(l, c, e) < 0) {
            listeners_close(l);
            return err_prefix(e, "listen.%s", all[i].name);
        }
        log_info(NULL, "listens for %s on %s%s", all[i].name, address, l->tls ? ", with TLS" : "");
    }
    return 0;
}

int listeners_reload(struct listeners *l, struct err *e)
{
    return l->tls && tls_server_reload(l->tls, e) < 0 ? err_prefix(e, "listen.tls_cert") : 0;
}

void listeners_check_callers(struct listeners *l)
{
    if (l->network)
        network_check(l->network);
}

void listeners_stop(struct listeners *l)
{
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (*server_of(&all[i], l))
            http_server_stop_accepting(*server_of(&all[i], l));
}

void listeners_close(struct listeners *l)
{
    if (l->dropin)
        dropin_cut(l->bots->dropin);
    if (l->webhook)
        webhook_cut(l->bots->webhook);
    network_free(l->network);
    l->network = NULL;
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        http_server_free(*server_of(&all[i], l));
        *server_of(&all[i], l) = NULL;
    }
    tls_server_free(l->tls);
    l->tls = NULL;
}
