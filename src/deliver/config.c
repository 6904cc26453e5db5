/* Copies of a bot's configuration, counted. */
#include "deliver/config.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

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
    return c;
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
    if (c->secret)
        explicit_bzero(c->secret, strlen(c->secret));
    free(c->secret);
    free(c);
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

bool deliver_config_same(const struct deliver_config *a, const struct deliver_config *b)
{
    size_t i = 0;

    while (a->command[i] && same_text(a->command[i], b->command[i]))
        i++;
    return a->mode == b->mode && !a->command[i] && !b->command[i] && same_text(a->url, b->url) &&
           same_text(a->secret, b->secret) && !strcmp(a->bot, b->bot);
}
