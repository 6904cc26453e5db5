/* What must fit together between the listeners, and between them and the bots: nothing is open to the network
 * without TLS and a secret, and nothing is configured that could never be reached. */
#include <stdio.h>

#include "base/mem.h"
#include "base/text.h"
#include "core/option_value.h"

#define CLOUD "api.telegram.org"

static struct config_mark listen_at(const struct config *c, const char *name)
{
    return option_set_at(option_find(SECTION_LISTEN, slice_str(name)), c, NULL);
}

/* Where a bot sets an option; its section if it does not. */
static struct config_mark bot_at(const struct bot_config *b, const char *name)
{
    struct config_mark at = option_set_at(option_find(SECTION_BOTS, slice_str(name)), NULL, b);
    return at.line ? at : (struct config_mark){b->line, b->column};
}

/* ---- the listeners ------------------------------------------------------------------------------ */

static int check_ports(const struct option_reader *r)
{
    const struct config *c = r->config;
    const struct {
        const char *name, *text;
    } all[] = {{"http", c->listen_http}, {"webhook", c->listen_webhook}, {"dropin", c->listen_dropin}};
    struct ip_port ports[ARRAY_LEN(all)];

    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (!all[i].text)
            continue;
        ip_port_parse(slice_str(all[i].text), &ports[i]); /* was checked when it was read */
        if (!ip_is_loopback(&ports[i].addr) && !c->tls_cert)
            return node_error(r->e, r->path, listen_at(c, all[i].name),
                              "listen.%s: %s is off loopback and would be without encryption; add tls_cert "
                              "and tls_key, or listen on 127.0.0.1 behind a proxy that has them",
                              all[i].name, all[i].text);
        for (size_t k = 0; k < i; k++)
            if (all[k].text && ip_port_clash(&ports[i], &ports[k]))
                return node_error(r->e, r->path, listen_at(c, all[i].name),
                                  "listen.%s: %s is taken by listen.%s already; give each a port of its own",
                                  all[i].name, all[i].text, all[k].name);
    }
    return 0;
}

/* Two options that go together: `has` is set and `lacks` is not. */
static int lacks(const struct option_reader *r, const char *has, const char *missing, const char *why)
{
    return node_error(r->e, r->path, listen_at(r->config, has), "listen.%s needs %s %s", has, missing, why);
}

static int check_pairs(const struct option_reader *r)
{
    const struct config *c = r->config;

    if (c->listen_http && !c->api_token_file)
        return lacks(r, "http", "api_token_file", "beside it: the API is for those who have its token");
    if (c->api_token_file && !c->listen_http)
        return lacks(
            r, "api_token_file", "http",
            "beside it: the token is not asked for on the socket; remove it, or add http: 127.0.0.1:PORT");
    if (c->http_hosts && !c->listen_http)
        return lacks(r, "http_hosts", "http", "beside it: these are names of that listener");
    if (c->tls_cert && !c->tls_key)
        return lacks(r, "tls_cert", "tls_key", "beside it, the file with the certificate's private key");
    if (c->tls_key && !c->tls_cert)
        return lacks(r, "tls_key", "tls_cert", "beside it, the file with the key's certificate");
    if (c->tls_cert && !c->listen_http && !c->listen_webhook && !c->listen_dropin)
        return lacks(r, "tls_cert", "http, webhook or dropin",
                     "beside it: there is no listener to use it; remove it, or add one");
    if (c->telegram_only && !c->listen_webhook)
        return lacks(r, "telegram_only", "webhook", "beside it: it is about who may send webhooks");
    if (c->trusted_proxy.n && !c->listen_webhook)
        return lacks(r, "trusted_proxy", "webhook", "beside it: it is about who sends webhooks");
    return 0;
}

/* On loopback all webhooks come from a proxy: without its word for the peer every one would be refused. */
static int check_telegram_only(const struct option_reader *r)
{
    const struct config *c = r->config;
    struct ip_port port;

    if (!c->telegram_only || c->trusted_proxy.n)
        return 0;
    ip_port_parse(slice_str(c->listen_webhook), &port);
    if (ip_is_loopback(&port.addr))
        return lacks(r, "telegram_only", "trusted_proxy",
                     "beside it: the webhook listener is on loopback, so a proxy stands in front of it, and "
                     "every webhook would be refused");
    return 0;
}

/* ---- bots --------------------------------------------------------------------------------------- */

/* What the cloud takes, and what a server of one's own does. */
static int check_webhook_url(const struct option_reader *r, const struct bot_config *b)
{
    struct config_mark at = bot_at(b, "webhook_url");
    int64_t port, ignored;
    struct slice host = option_url_host(b->webhook_url, &port);
    bool cloud = slice_eq_nocase(option_url_host(b->api_root, &ignored), CLOUD);
    bool loopback = option_host_is_loopback(host);
    bool usual = port == 443 || port == 80 || port == 88 || port == 8443;
    char path[BOT_NAME_MAX + 8];

    if (strncmp(b->webhook_url, "https://", 8) != 0 && (cloud || !loopback))
        return node_error(
            r->e, r->path, at,
            "bots.%s: webhook_url is not https, so Telegram refuses it and others could read the "
            "updates; accepted: https://HOST/hook/%s",
            b->name, b->name);
    if (cloud && loopback)
        return node_error(r->e, r->path, at,
                          "bots.%s: webhook_url leads to this machine's loopback, where " CLOUD
                          " cannot reach it; accepted: https://HOST/hook/%s",
                          b->name, b->name);
    if (cloud && !usual)
        return node_error(r->e, r->path, at,
                          "bots.%s: webhook_url has port %lld, which " CLOUD
                          " does not go to; accepted: 443, "
                          "80, 88 or 8443",
                          b->name, (long long)port);
    if (!usual && !loopback)
        option_warn(
            r, at,
            "bots.%s: webhook_url has port %lld: only a Bot API server in local mode goes there, the others "
            "take 443, 80, 88 and 8443",
            b->name, (long long)port);
    int n = snprintf(path, sizeof(path), "/hook/%s", b->name);
    size_t whole = strlen(b->webhook_url);
    if (whole < (size_t)n || strcmp(b->webhook_url + whole - n, path) != 0)
        option_warn(r, at,
                    "bots.%s: webhook_url does not end in %s, the path at which its webhooks are taken; that "
                    "works only with a proxy that rewrites it",
                    b->name, path);
    return 0;
}

static int check_webhook(const struct option_reader *r, const struct bot_config *b)
{
    const struct config *c = r->config;
    struct ip_port port;

    if (!c->listen_webhook)
        return node_error(
            r->e, r->path, bot_at(b, "intake"),
            "bots.%s takes webhooks, but nothing listens for them; add webhook: HOST:PORT to the "
            "section listen",
            b->name);
    ip_port_parse(slice_str(c->listen_webhook), &port);
    if (!b->webhook_secret_file && !ip_is_loopback(&port.addr))
        return node_error(
            r->e, r->path, bot_at(b, "intake"),
            "bots.%s has no webhook_secret_file, and listen.webhook is off loopback: anyone could "
            "send it updates; add webhook_secret_file: /PATH",
            b->name);
    if (!b->webhook_secret_file)
        option_warn(r, bot_at(b, "intake"),
                    "bots.%s has no webhook_secret_file: whoever reaches listen.webhook, by a proxy too, can "
                    "send it updates",
                    b->name);
    return b->webhook_url ? check_webhook_url(r, b) : 0;
}

static int check_bot(const struct option_reader *r, const struct bot_config *b)
{
    const struct config *c = r->config;

    if (b->deliver == DELIVER_DROPIN && !c->listen_dropin)
        return node_error(
            r->e, r->path, bot_at(b, "deliver"),
            "bots.%s delivers over the drop-in Bot API, but nothing listens for it; add dropin: "
            "HOST:PORT to the section listen",
            b->name);
    if (b->dropin_token_file && !c->listen_dropin)
        return node_error(
            r->e, r->path, bot_at(b, "dropin_token_file"),
            "bots.%s: dropin_token_file is of no use without a listener; add dropin: HOST:PORT to "
            "the section listen, or remove it",
            b->name);
    if (b->pull_token_file && !c->listen_http)
        return node_error(
            r->e, r->path, bot_at(b, "pull_token_file"),
            "bots.%s: pull_token_file is of no use without a listener, as the socket asks for no "
            "token; add http: HOST:PORT to the section listen, or remove it",
            b->name);
    return b->intake == INTAKE_WEBHOOK ? check_webhook(r, b) : 0;
}

/* A listener that no bot has a use for: most likely the bot's option was forgotten. */
static void warn_unused(const struct option_reader *r)
{
    const struct config *c = r->config;
    bool webhook = false, dropin = false;

    for (size_t i = 0; i < c->n_bots; i++) {
        webhook |= c->bots[i].intake == INTAKE_WEBHOOK;
        dropin |= c->bots[i].deliver == DELIVER_DROPIN || c->bots[i].dropin_token_file;
    }
    if (c->listen_webhook && !webhook)
        option_warn(r, listen_at(c, "webhook"),
                    "listen.webhook: no bot takes webhooks; set intake: webhook for one, or remove it");
    if (c->listen_dropin && !dropin)
        option_warn(
            r, listen_at(c, "dropin"),
            "listen.dropin: no bot uses it; set deliver: dropin for one, or dropin_token_file for one "
            "that only makes calls there, or remove it");
}

int option_check_listeners(const struct option_reader *r)
{
    const struct config *c = r->config;

    if (check_ports(r) < 0 || check_pairs(r) < 0 || check_telegram_only(r) < 0)
        return -1;
    for (size_t i = 0; i < c->n_bots; i++)
        if (check_bot(r, &c->bots[i]) < 0)
            return -1;
    warn_unused(r);
    return 0;
}
