/* Reads tgspool.yaml and its secrets into one setup. */
#include "daemon/configfile.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/options.h"

/* What is kept for when the spool is moved away or lost cannot lie in it. */
static int check_dirs(const struct config *c, struct err *e)
{
    if (!c->archive_dir || !file_is_in(c->archive_dir, c->dir))
        return 0;
    err_set(e, EX_CONFIG,
            "%s lies in the spool, %s, which may be moved away or lost; name a directory outside of it",
            c->archive_dir, c->dir);
    return option_err_prefix(e, c, NULL, "archive_dir");
}

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
    if (c && check_dirs(c, e) < 0) {
        config_free(c);
        return NULL;
    }
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

static bool equal(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

static int same_secret(const struct config *c, size_t i, const char *option, const char *other, struct err *e)
{
    err_set(e, EX_CONFIG, "this is the same secret as %s; make a new one, as it tells who is calling", other);
    return option_err_prefix(e, c, &c->bots[i], option);
}

/* Callers are told apart by their secrets alone. */
static int check_callers(const struct setup *s, struct err *e)
{
    const struct config *c = s->config;

    for (size_t i = 0; i < c->n_bots; i++) {
        const struct bot_secrets *a = &s->secrets[i];
        if (equal(a->pull_token, s->api_token))
            return same_secret(c, i, "pull_token_file", "the API's", e);
        for (size_t k = 0; k < c->n_bots; k++) {
            const struct bot_secrets *b = &s->secrets[k];
            char other[BOT_NAME_MAX + 24];
            snprintf(other, sizeof(other), "that of bots.%s", c->bots[k].name);
            if (k < i && equal(a->pull_token, b->pull_token))
                return same_secret(c, i, "pull_token_file", other, e);
            if ((k < i && equal(a->dropin_token, b->dropin_token)) || equal(a->dropin_token, b->token))
                return same_secret(c, i, "dropin_token_file", other, e);
        }
    }
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
    if (rc == 0)
        rc = secrets_read_api_token(c, &s->api_token, e);
    if (rc == 0)
        rc = secrets_read_alerts(c, &s->alerts, e);
    if (rc < 0 || check_bot_ids(s, e) < 0 || check_callers(s, e) < 0) {
        setup_free(s);
        return NULL;
    }
    return s;
}

void setup_log_warnings(const struct setup *s)
{
    for (size_t i = 0; i < s->config->n_warnings; i++)
        log_warn(NULL, "%s", s->config->warnings[i]);
}

void setup_free(struct setup *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->config->n_bots; i++)
        secrets_clear(&s->secrets[i]);
    free(s->secrets);
    free(s->api_token);
    secrets_clear_alerts(&s->alerts);
    config_free(s->config);
    free(s);
}
