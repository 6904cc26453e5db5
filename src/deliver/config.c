/* Copies of a bot's configuration, counted. */
#include "deliver/config.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "deliver/slots.h"

static char *copy_or_null(const char *s)
{
    return s ? xstrdup(s) : NULL;
}

static char **copy_argv(char *const *argv)
{
    size_t n = 0;

    while (argv && argv[n])
        n++;
    char **copy = xcalloc(n + 1, sizeof(*copy));
    for (size_t i = 0; i < n; i++)
        copy[i] = xstrdup(argv[i]);
    return copy;
}

struct deliver_config *deliver_config_new(const struct bot_config *bot, const char *secret)
{
    struct deliver_config *c = xcalloc(1, sizeof(*c));

    c->refs = 1;
    strcpy(c->bot, bot->name);
    c->mode = bot->deliver;
    c->command = copy_argv(bot->command);
    c->url = copy_or_null(bot->url);
    c->secret = copy_or_null(secret);
    c->ca_file = copy_or_null(bot->ca_file);
    file_stamp(c->ca_file, c->ca_stamp);
    return c;
}

struct deliver_config *deliver_config_new_calls(const struct slots_calls *calls)
{
    struct deliver_config *c = xcalloc(1, sizeof(*c));

    c->refs = 1;
    strcpy(c->bot, calls->bot->name);
    c->command = copy_argv(NULL);
    c->calls = true;
    c->api_root = xstrdup(calls->bot->api_root);
    c->ca_file = copy_or_null(calls->bot->ca_file);
    file_stamp(c->ca_file, c->ca_stamp);
    c->ip = calls->bot->ip;
    c->token = xstrdup(calls->token);
    c->proxy_url = copy_or_null(calls->proxy_url);
    c->reread_token = calls->reread_token;
    c->reread_arg = calls->reread_arg;
    return c;
}

static void wipe(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

bool deliver_config_reread_token(struct deliver_config *c)
{
    struct buf text = BUF_EMPTY;
    struct err e = ERR_NONE;
    bool other = false;

    if (c->reread_token && c->reread_token(c->reread_arg, &text, &e) == 0) {
        char *token = buf_steal(&text);
        other = strcmp(token, c->token) != 0;
        wipe(c->token);
        c->token = token;
    }
    buf_free(&text);
    return other;
}

struct deliver_config *deliver_config_ref(struct deliver_config *c)
{
    c->refs++;
    return c;
}

void deliver_config_unref(struct deliver_config *c)
{
    if (--c->refs)
        return;
    for (char **arg = c->command; *arg; arg++)
        free(*arg);
    free(c->command);
    free(c->url);
    free(c->ca_file);
    free(c->api_root);
    wipe(c->proxy_url);
    wipe(c->secret);
    wipe(c->token);
    free(c);
}

bool deliver_config_same(const struct deliver_config *a, const struct deliver_config *b)
{
    size_t i = 0;

    while (a->command[i] && text_same(a->command[i], b->command[i]))
        i++;
    return a->mode == b->mode && !a->command[i] && !b->command[i] && text_same(a->url, b->url) &&
           text_same(a->secret, b->secret) && text_same(a->ca_file, b->ca_file) &&
           !strcmp(a->ca_stamp, b->ca_stamp) && !strcmp(a->bot, b->bot) && a->calls == b->calls &&
           text_same(a->api_root, b->api_root) && text_same(a->token, b->token) &&
           text_same(a->proxy_url, b->proxy_url) && a->ip == b->ip;
}
