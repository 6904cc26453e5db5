/* tgspool webhook: what Telegram is told of a bot's webhook. Pending updates are never dropped. */
#include "cli/webhook.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/ask.h"
#include "cli/show.h"
#include "core/kinds.h"
#include "core/options.h"
#include "daemon/configfile.h"
#include "wire/url.h"

#define ERROR_FRESH HOURS(1) /* an error longer ago than this is over, if nothing waits */

/* ---- how it stands ------------------------------------------------------------------------------ */

/* Only the host: people put secrets into a path. */
static void add_host(struct buf *out, const char *url)
{
    struct url u;

    if (url_parse(url, &u, NULL) < 0) {
        buf_add_str(out, "an address that cannot be read");
        return;
    }
    url_add_host(out, &u);
    url_free(&u);
}

static bool is_ours(const struct bot_config *bot, const struct webhook_info *i)
{
    return bot->webhook_url && strcmp(bot->webhook_url, i->url) == 0;
}

/* Whether Telegram was told of that kind; without a list of its own it goes by its default one. */
static bool sends(const struct webhook_info *i, const char *kind)
{
    const struct kind *k = kind_find(slice_str(kind));

    for (size_t n = 0; n < i->n_allowed; n++)
        if (strcmp(i->allowed_updates[n], kind) == 0)
            return true;
    return !i->allowed_updates && k && k->on_by_default;
}

/* The first kind that the config names and Telegram leaves out; NULL: none. One that this version does not know
 * may be unknown to the server too, which then leaves it out of its list. */
static const char *missing_kind(const struct bot_config *bot, const struct webhook_info *i)
{
    for (size_t n = 0; n < bot->n_allowed_updates; n++)
        if (kind_find(slice_str(bot->allowed_updates[n])) && !sends(i, bot->allowed_updates[n]))
            return bot->allowed_updates[n];
    return NULL;
}

static enum webhook_verdict judge_wanted(const struct bot_config *bot, const struct webhook_info *i,
                                         int64_t now, struct buf *text, struct buf *next)
{
    const char *kind = missing_kind(bot, i);
    long long pending = (long long)i->pending;
    char age[32];

    buf_printf(next, "tgspool webhook set %s", bot->name);
    if (!i->url[0]) {
        buf_printf(text, "no webhook is set, so no updates come; %lld wait at Telegram", pending);
        return WEBHOOK_BAD;
    }
    if (bot->webhook_url && !is_ours(bot, i)) {
        buf_add_str(text, "updates go to ");
        add_host(text, i->url);
        buf_printf(text, ", which is not webhook_url: another program has set that; %lld wait at Telegram",
                   pending);
        return WEBHOOK_BAD;
    }
    if (kind) {
        buf_printf(text, "Telegram does not send %s, which allowed_updates names", kind);
        return WEBHOOK_DOUBTFUL;
    }
    buf_clear(next);
    if (i->last_error_at && (pending || now - i->last_error_at * 1000 < ERROR_FRESH)) {
        buf_printf(text, "Telegram could not deliver %s ago: %s; %lld updates wait there",
                   text_age(now - i->last_error_at * 1000, age), i->last_error, pending);
        buf_add_str(next, "look at the way from Telegram to listen.webhook: DNS, port, certificate, proxy");
        return WEBHOOK_DOUBTFUL;
    }
    buf_add_str(text, "updates come by webhook to ");
    add_host(text, i->url);
    buf_printf(text, "; %lld wait at Telegram", pending);
    return WEBHOOK_GOOD;
}

enum webhook_verdict webhook_judge(const struct bot_config *bot, const struct webhook_info *i, int64_t now,
                                   struct buf *text, struct buf *next)
{
    if (bot->intake == INTAKE_WEBHOOK)
        return judge_wanted(bot, i, now, text, next);
    if (!i->url[0]) {
        buf_printf(text, "no webhook is set; %lld updates wait at Telegram", (long long)i->pending);
        return WEBHOOK_GOOD;
    }
    buf_add_str(text, "updates go to a webhook at ");
    add_host(text, i->url);
    buf_printf(text, "%s; %lld wait at Telegram%s%s",
               bot->intake == INTAKE_POLL ? ", so that polling is refused" : "", (long long)i->pending,
               i->last_error[0] ? "; its last error: " : "", i->last_error);
    buf_printf(next, "tgspool webhook delete %s (pending updates are kept)", bot->name);
    return bot->intake == INTAKE_POLL ? WEBHOOK_BAD : WEBHOOK_DOUBTFUL;
}

/* ---- showing it --------------------------------------------------------------------------------- */

static void info_json(const struct bot_config *bot, const struct webhook_info *i, enum webhook_verdict v,
                      const struct buf *text, const struct buf *next, struct buf *out)
{
    static const char *const words[] = {"ok", "warning", "bad"};
    struct buf host = BUF_EMPTY;
    struct json_out j;

    json_start(&j, out);
    json_object(&j);
    json_kv_cstr(&j, "bot", bot->name);
    json_kv_bool(&j, "set", i->url[0] != '\0');
    json_kv_bool(&j, "ours", is_ours(bot, i));
    if (i->url[0])
        add_host(&host, i->url);
    json_kv_cstr(&j, "host", i->url[0] ? buf_str(&host) : NULL);
    json_kv_cstr(&j, "url", is_ours(bot, i) ? i->url : NULL);
    json_kv_int(&j, "pending", i->pending);
    json_kv_cstr(&j, "ip_address", i->ip_address[0] ? i->ip_address : NULL);
    json_kv_int(&j, "max_connections", i->max_connections);
    json_kv_bool(&j, "has_custom_certificate", i->has_custom_certificate);
    json_key(&j, "last_error_at");
    if (i->last_error_at)
        json_int(&j, i->last_error_at);
    else
        json_null(&j);
    json_kv_cstr(&j, "last_error", i->last_error_at ? i->last_error : NULL);
    json_key(&j, "allowed_updates");
    if (i->allowed_updates) {
        json_array(&j);
        for (size_t n = 0; n < i->n_allowed; n++)
            json_cstr(&j, i->allowed_updates[n]);
        json_array_end(&j);
    } else {
        json_null(&j);
    }
    json_kv_cstr(&j, "result", words[v]);
    json_kv_text(&j, "text", buf_slice(text));
    json_kv_cstr(&j, "next", next->n ? next->p : NULL);
    json_object_end(&j);
    json_end(&j);
    buf_add_char(out, '\n');
    buf_free(&host);
}

static void info_text(const struct bot_config *bot, const struct webhook_info *i, struct buf *out)
{
    char when[32], age[32];

    buf_add_str(out, "webhook      ");
    if (is_ours(bot, i))
        buf_add_str(out, i->url);
    else if (i->url[0])
        add_host(out, i->url);
    else
        buf_add_str(out, "none");
    buf_printf(out, "\npending      %lld updates wait at Telegram\n", (long long)i->pending);
    if (i->ip_address[0])
        buf_printf(out, "address      %s\n", i->ip_address);
    if (i->max_connections)
        buf_printf(out, "connections  at most %lld\n", (long long)i->max_connections);
    if (i->has_custom_certificate)
        buf_add_str(out, "certificate  one that was uploaded\n");
    buf_add_str(out, "updates      ");
    for (size_t n = 0; n < i->n_allowed; n++)
        buf_printf(out, "%s%s", n ? ", " : "", i->allowed_updates[n]);
    buf_add_str(out, i->allowed_updates ? "\n" : "Telegram's default list\n");
    if (i->last_error_at)
        buf_printf(out, "last error   %s (%s ago): %s\n", text_time(i->last_error_at * 1000, when),
                   text_age(clock_now() - i->last_error_at * 1000, age), i->last_error);
}

/* ---- the three words ---------------------------------------------------------------------------- */

/* One bot, its secrets, and a line to Telegram. */
struct target {
    struct config *config;
    const struct bot_config *bot;
    struct bot_secrets secrets;
    struct ask *ask;
};

static int target_open(struct target *t, const struct cli *cli, const char *name, struct err *e)
{
    t->config = configfile_read(cli->config_path, e);
    if (!t->config)
        return -1;
    t->bot = config_bot(t->config, name);
    if (!t->bot)
        return err_set(e, EX_NOINPUT, "there is no bot %s in %s; tgspool config shows those that there are",
                       name, cli->config_path);
    if (secrets_read(t->config, t->bot, &t->secrets, e) < 0)
        return -1;
    t->ask = ask_open(t->bot, &t->secrets, e);
    return t->ask ? 0 : -1;
}

static void target_close(struct target *t)
{
    ask_close(t->ask);
    secrets_clear(&t->secrets);
    config_free(t->config);
}

/* Asks and shows how it stands now; `done` is put in front for people. */
static int show_info(const struct cli *cli, struct target *t, const char *done, struct err *e)
{
    struct buf out = BUF_EMPTY, text = BUF_EMPTY, next = BUF_EMPTY;
    struct webhook_info i;
    int rc = ask_webhook_info(t->ask, &i, e);

    if (rc == 0) {
        enum webhook_verdict v = webhook_judge(t->bot, &i, clock_now(), &text, &next);
        if (cli->json) {
            info_json(t->bot, &i, v, &text, &next, &out);
        } else {
            buf_add_str(&out, done);
            info_text(t->bot, &i, &out);
        }
        cli_put(buf_slice(&out));
        if (v != WEBHOOK_GOOD && !cli->json)
            cli_warn(buf_str(&next), "%s: %s", t->bot->name, buf_str(&text));
    }
    webhook_info_free(&i);
    buf_free(&out);
    buf_free(&text);
    buf_free(&next);
    return rc;
}

/* What the running daemon does with this bot, if it is not what the config now says: its word for it, to be
 * freed; else NULL. */
static char *other_intake(const struct cli *cli, const struct bot_config *bot, bool *running)
{
    struct err e = ERR_NONE;
    struct answer a;
    struct request *q = request_open(cli, NEED_DAEMON, &e);
    char *mode = NULL;

    *running = false;
    if (q && request_send(q, "GET", "/v1/status", slice_make(NULL, 0), &a, &e) == 0) {
        const struct json *boxes = json_get(a.root, "boxes");
        *running = true;
        for (size_t i = 0; i < json_length(boxes) && !mode; i++) {
            const struct json *box = json_item(boxes, i), *intake = json_get(box, "intake");
            if (intake && slice_eq_str(json_string(json_get(box, "bot")), bot->name))
                mode = show_text(intake, "mode");
        }
        answer_clear(&a);
    }
    request_close(q);
    if (*running && mode && strcmp(mode, "webhook") != 0)
        return mode;
    free(mode);
    return NULL;
}

/* Whether the config and the daemon are ready for webhooks. */
static int check_ready(const struct cli *cli, const struct target *t, struct err *e)
{
    const struct bot_config *bot = t->bot;
    bool running;

    if (bot->intake != INTAKE_WEBHOOK) {
        err_set(e, EX_CONFIG,
                "intake is not webhook, so webhooks would be refused; set it, then: tgspool webhook set %s",
                bot->name);
        return option_err_prefix(e, t->config, bot, "intake");
    }
    if (!bot->webhook_url) {
        err_set(e, EX_CONFIG,
                "it is not set, and Telegram is to be told it; add webhook_url: https://HOST/hook/%s",
                bot->name);
        return option_err_prefix(e, t->config, bot, "webhook_url");
    }
    char *mode = other_intake(cli, bot, &running);
    if (mode)
        err_set(e, EX_TEMPFAIL,
                "%s: the running daemon still has intake: %s for it; let it read the config first (systemctl "
                "reload "
                "tgspool, or SIGHUP), then the same command",
                bot->name, mode);
    else if (!running)
        cli_warn("tgspool run",
                 "no daemon runs: until one does, Telegram's webhooks fail and are tried again");
    int rc = mode ? -1 : 0;
    free(mode);
    return rc;
}

static int set(const struct cli *cli, struct target *t, struct err *e)
{
    const struct bot_config *bot = t->bot;
    const struct botapi_webhook w = {.url = bot->webhook_url,
                                     .secret = t->secrets.webhook_secret,
                                     .allowed_updates = bot->allowed_updates,
                                     .n_allowed = bot->n_allowed_updates};
    struct webhook_info before;
    struct buf done = BUF_EMPTY;

    if (check_ready(cli, t, e) < 0)
        return -1;
    int rc = ask_webhook_info(t->ask, &before, e);
    if (rc == 0)
        rc = ask_set_webhook(t->ask, &w, e);
    if (rc == 0) {
        buf_printf(&done, "%s: the webhook is set", bot->name);
        if (before.url[0] && !is_ours(bot, &before)) {
            buf_add_str(&done, "; before, updates went to ");
            add_host(&done, before.url);
        }
        buf_add_char(&done, '\n');
        rc = show_info(cli, t, buf_str(&done), e);
    }
    buf_free(&done);
    webhook_info_free(&before);
    return rc;
}

static int info(const struct cli *cli, struct target *t, struct err *e)
{
    return show_info(cli, t, "", e);
}

static int delete (const struct cli *cli, struct target *t, struct err *e)
{
    return ask_delete_webhook(t->ask, e) < 0
               ? -1
               : show_info(cli, t, "the webhook is removed; what waits is kept\n", e);
}

static int run_webhook(struct cli *cli, int argc, char **argv)
{
    static const struct {
        const char *word;
        int (*run)(const struct cli *cli, struct target *t, struct err *e);
    } words[] = {{"set", set}, {"info", info}, {"delete", delete}};
    struct err e = ERR_NONE;
    struct target t = {0};
    size_t i = 0;

    (void)argc;
    while (i < ARRAY_LEN(words) && strcmp(argv[0], words[i].word) != 0)
        i++;
    if (i == ARRAY_LEN(words))
        return cli_fail(EX_USAGE, "webhook %s? accepted: set, info or delete, then the bot's name", argv[0]);
    int rc = target_open(&t, cli, argv[1], &e);
    if (rc == 0) {
        rc = words[i].run(cli, &t, &e);
        if (rc < 0 && ask_failed(t.ask))
            cli_warn(ask_advice(t.ask), "%s: Telegram: %s", argv[1], e.text);
        else if (rc < 0)
            cli_fail_err(&e);
    } else {
        cli_fail_err(&e);
    }
    target_close(&t);
    return cli_finish(rc == 0 ? EX_OK : e.exit_code);
}

const struct command command_webhook = {
    .name = "webhook",
    .arguments = "set|info|delete BOT",
    .summary = "tell Telegram where to send a bot's updates, or no more",
    .usage = "set: gives Telegram the bot's webhook_url, its secret and allowed_updates. The\n"
             "bot must have intake: webhook, and the daemon must have read that.\n"
             "info: what Telegram says of the webhook: where it leads, how many updates wait,\n"
             "the last error.\n"
             "delete: removes the webhook, so that the bot can poll.\n"
             "\n"
             "None of them drops updates that wait at Telegram. They read the bot's token, so\n"
             "run them as the daemon's user.\n",
    .min_arguments = 2,
    .max_arguments = 2,
    .run = run_webhook,
};
