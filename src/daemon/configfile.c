/* Reads tgspool.yaml and its secrets into one setup. */
#include "daemon/configfile.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/mem.h"

struct config *configfile_read(const char *path, struct err *e)
{
    struct buf text = BUF_EMPTY;
    struct config *c = NULL;
    struct err why = ERR_NONE;

    if (file_read(path, CONFIG_FILE_MAX, &text, &why) == 0)
        c = config_parse(path, buf_slice(&text), e);
    else
        err_set(e, EX_CONFIG,
                "the config file: %s; name another one with -c FILE, or make one: tgspool init DIR",
                why.text);
    buf_free(&text);
    return c;
}

/* One bot id is one bot to Telegram: two polls of it would fight, and their events would share keys. */
static int check_bot_ids(const struct setup *s, struct err *e)
{
    const struct config *c = s->config;

    for (size_t i = 0; i < c->n_bots; i++)
        for (size_t k = 0; k < i; k++)
            if (s->secrets[i].bot_id == s->secrets[k].bot_id)
                return err_set(
                    e, EX_CONFIG,
                    "%s:%u:%u: bots.%s (line %u) and bots.%s (line %u) are the same bot, id %lld; keep one "
                    "section for each bot",
                    c->path, c->bots[i].line, c->bots[i].column, c->bots[k].name, c->bots[k].line,
                    c->bots[i].name, c->bots[i].line, (long long)s->secrets[i].bot_id);
    return 0;
}

struct setup *setup_load(const char *path, struct err *e)
{
    struct config *c = configfile_read(path, e);
    int rc = 0;

    if (!c)
        return NULL;
    struct setup *s = xcalloc(1, sizeof(*s));
    s->config = c;
    s->secrets = xcalloc(c->n_bots, sizeof(*s->secrets));
    for (size_t i = 0; i < c->n_bots && rc == 0; i++)
        rc = secrets_read(c, &c->bots[i], &s->secrets[i], e);
    if (rc < 0 || check_bot_ids(s, e) < 0) {
        setup_free(s);
        return NULL;
    }
    return s;
}

void setup_free(struct setup *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->config->n_bots; i++)
        secrets_clear(&s->secrets[i]);
    free(s->secrets);
    config_free(s->config);
    free(s);
}
