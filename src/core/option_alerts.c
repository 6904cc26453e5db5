/* What must fit together in the section alerts. */
#include <ctype.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/text.h"
#include "core/option_value.h"

static struct config_mark alerts_at(const struct config *c, const char *name)
{
    return option_set_at(option_find(SECTION_ALERTS, slice_str(name)), c, NULL);
}

/* A number, or @ and a channel's name. */
static bool is_chat(const char *s)
{
    int64_t id;

    if (*s != '@')
        return text_to_i64(slice_str(s), INT64_MIN, INT64_MAX, &id) == 0 && id != 0;
    size_t n = 1;
    while (isalnum((unsigned char)s[n]) || s[n] == '_')
        n++;
    return n > 1 && !s[n];
}

/* "BOT CHAT_ID" in two; the first into name. Returns the second, or NULL. */
static const char *split(const char *text, char name[BOT_NAME_MAX + 1])
{
    size_t n = strcspn(text, " ");

    if (!text[n] || !text_is_bot_name(slice_make(text, n)))
        return NULL;
    snprintf(name, BOT_NAME_MAX + 1, "%.*s", (int)n, text);
    text += n + strspn(text + n, " ");
    return is_chat(text) ? text : NULL;
}

const struct bot_config *config_alert_bot(const struct config *c, const char **chat)
{
    char name[BOT_NAME_MAX + 1];
    const char *rest = c->alert_telegram ? split(c->alert_telegram, name) : NULL;

    if (chat)
        *chat = rest;
    return rest ? config_bot(c, name) : NULL;
}

static int check_telegram(const struct option_reader *r)
{
    const struct config *c = r->config;
    struct config_mark at = alerts_at(c, "telegram");
    char name[BOT_NAME_MAX + 1];

    if (!split(c->alert_telegram, name))
        return node_error(
            r->e, r->path, at,
            "alerts.telegram: this is not a bot and a chat; accepted: BOT CHAT_ID, with the name of a "
            "bot of this file and a chat's number or @NAME");
    const struct bot_config *bot = config_alert_bot(c, NULL);
    if (!bot)
        return node_error(
            r->e, r->path, at,
            "alerts.telegram: there is no bot \"%s\" in this file; name one of those under bots", name);
    if (!c->alert_command && !c->alert_url_file)
        option_warn(
            r, at,
            "alerts.telegram is the only destination: when Telegram cannot be reached, this alert cannot be "
            "sent either; add command or url_file");
    if (bot->proxy_file && !c->alert_proxy_file)
        option_warn(r, at,
                    "alerts.telegram goes out directly, while bots.%s reaches Telegram by a proxy; add "
                    "alerts.proxy_file, which may be the same file",
                    bot->name);
    return 0;
}

int option_check_alerts(const struct option_reader *r)
{
    const struct config *c = r->config;

    if (c->alert_proxy_file && !c->alert_url_file && !c->alert_telegram)
        return node_error(
            r->e, r->path, alerts_at(c, "proxy_file"),
            "alerts.proxy_file needs url_file or telegram beside it; remove it, or add one of them");
    return c->alert_telegram ? check_telegram(r) : 0;
}
