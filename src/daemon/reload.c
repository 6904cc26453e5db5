/* A reload is prepared whole before anything changes: each bot of the new configuration gets a plan, with the
 * new parts that it needs. What can fail, fails there, and is undone. Then the plans are carried out, which
 * cannot fail. */
#include "daemon/reload.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "daemon/bots.h"
#include "daemon/configfile.h"
#include "daemon/watching.h"
#include "deliver/children.h"
#include "deliver/slots.h"
#include "intake/poll.h"
#include "intake/watch.h"
#include "intake/webhook.h"
#include "serve/dropin.h"
#include "spool/spool.h"

struct plan {
    const struct bot_config *config;
    const struct bot_secrets *secrets;
    const struct bot_config *old_config; /* NULL: a new bot */
    const struct bot_secrets *old_secrets;
    struct bot *bot;
    bool fresh;              /* bot is new, and not yet in the list */
    bool reconfigured;       /* its slots have the new configuration, */
    bool calls_reconfigured; /* and those of its box out */
    bool new_poll;           /* poll replaces what the bot has */
    struct poll *poll;
    bool new_watch; /* watch likewise */
    struct watch *watch;
};

/* ---- comparing ---------------------------------------------------------------------------------- */

/* Whether Telegram is reached in the same way, but for the token. */
static bool same_line(const struct plan *p)
{
    const struct bot_config *a = p->old_config, *b = p->config;

    return text_same(a->name, b->name) && text_same(a->api_root, b->api_root) &&
           text_same(a->ca_file, b->ca_file) && !strcmp(p->old_secrets->ca_stamp, p->secrets->ca_stamp) &&
           text_same(p->old_secrets->proxy_url, p->secrets->proxy_url) && a->ip == b->ip;
}

/* Whether a poll can go on as it is, but for the token. */
static bool same_poll(const struct plan *p)
{
    const struct bot_config *a = p->old_config, *b = p->config;

    if (!same_line(p) || a->poll_timeout_ms != b->poll_timeout_ms ||
        a->n_allowed_updates != b->n_allowed_updates)
        return false;
    for (size_t i = 0; i < a->n_allowed_updates; i++)
        if (!text_same(a->allowed_updates[i], b->allowed_updates[i]))
            return false;
    return true;
}

/* ---- preparing ---------------------------------------------------------------------------------- */

/* The poll's way to read a token anew: by the configuration of that moment. */
static int reread_token(void *arg, struct buf *out, struct err *e)
{
    struct bot *bot = arg;
    const struct config *c = bot->of->setup->config;
    const struct bot_config *config = config_bot(c, bot->name);
    char *token = NULL;
    int64_t id;

    if (!config)
        return err_set(e, EX_CONFIG, "its section is gone from the config");
    if (secrets_read_token(c, config, &token, &id, e))
        return -1;
    if (id == bot->bot_id) {
        buf_add_str(out, token);
        if (bot->watch)
            watch_set_token(bot->watch, token);
    }
    explicit_bzero(token, strlen(token));
    free(token);
    return id == bot->bot_id
               ? 0
               : err_set(e, EX_CONFIG, "the token is another bot's now (%" PRId64 ", not %" PRId64 ")", id,
                         bot->bot_id);
}

/* A section whose token is another bot's: only when nothing of the old bot is left to do. */
static int check_section(struct bots *b, const struct setup *s, size_t i, struct err *e)
{
    struct bot *old = bots_by_name(b, s->config->bots[i].name);
    struct spool_box_status st;

    if (!old || old->bot_id == s->secrets[i].bot_id)
        return 0;
    for (size_t k = 0; k < s->config->n_bots; k++)
        if (s->secrets[k].bot_id == old->bot_id)
            return 0; /* the old one goes on under another name */
    spool_box_status(old->box, &st);
    uint64_t left = st.counts.pending + st.counts.processing;
    spool_box_status(old->out, &st);
    left += st.counts.pending + st.counts.processing;
    if (left == 0)
        return 0;
    return err_set(e, EX_CONFIG,
                   "bots.%s: the token is now that of bot %" PRId64 ", but %" PRIu64 " events of bot %" PRId64
                   " are unfinished; let them end first, or keep that bot under another name",
                   old->name, s->secrets[i].bot_id, left, old->bot_id);
}

/* What the box out is served by. */
static struct slots_calls calls_of(struct bot *bot, const struct bot_config *config,
                                   const struct bot_secrets *secrets)
{
    return (struct slots_calls){.bot = config,
                                .token = secrets->token,
                                .proxy_url = secrets->proxy_url,
                                .reread_token = reread_token,
                                .reread_arg = bot};
}

static void attach_boxes(struct bots *b, struct bot *bot, const struct bot_config *config)
{
    struct spool_policy policy;

    spool_policy_from(config, &policy);
    bot->box = spool_attach(b->spool, bot->bot_id, BOX_IN, bot->name, &policy);
    spool_policy_calls(config, &policy);
    bot->out = spool_attach(b->spool, bot->bot_id, BOX_OUT, bot->name, &policy);
}

/* Of one that never ran. */
static void bot_drop(struct bot *bot)
{
    slots_free(bot->slots);
    slots_free(bot->calls);
    spool_unprepare(bot->box);
    spool_unprepare(bot->out);
    free(bot);
}

static struct bot *bot_new(struct bots *b, const struct plan *p, struct err *e)
{
    struct bot *bot = xcalloc(1, sizeof(*bot));

    list_init(&bot->link);
    bot->of = b;
    snprintf(bot->name, sizeof(bot->name), "%s", p->config->name);
    bot->bot_id = p->secrets->bot_id;
    bot->box = spool_prepare(b->spool, bot->bot_id, BOX_IN);
    bot->out = spool_prepare(b->spool, bot->bot_id, BOX_OUT);
    bot->slots = slots_new(b->loop, bot->box, p->config, p->secrets->url_secret, e);
    struct slots_calls calls = calls_of(bot, p->config, p->secrets);
    if (bot->slots)
        slots_limit_children(bot->slots, b->children);
    if (bot->slots)
        bot->calls = slots_new_calls(b->loop, bot->out, &calls, e);
    if (bot->calls)
        return bot;
    bot_drop(bot);
    return NULL;
}

static void find_old(struct bots *b, struct plan *p)
{
    const struct setup *s = b->setup;

    p->bot = bots_by_id(b, p->secrets->bot_id);
    for (size_t i = 0; s && i < s->config->n_bots; i++)
        if (s->secrets[i].bot_id == p->secrets->bot_id) {
            p->old_config = &s->config->bots[i];
            p->old_secrets = &s->secrets[i];
        }
}

/* Its poll, or its watch, if the old one cannot go on. */
static int prepare_intake(struct bots *b, struct plan *p, struct err *e)
{
    bool polls = p->config->intake == INTAKE_POLL, watched = p->config->intake != INTAKE_NONE;

    p->new_poll = polls ? !p->bot->poll || !same_poll(p) : p->bot->poll != NULL;
    p->new_watch = watched ? !p->bot->watch || !same_line(p) || p->old_config->intake != p->config->intake ||
                                 !text_same(p->old_config->webhook_url, p->config->webhook_url)
                           : p->bot->watch != NULL;
    if (polls && p->new_poll) {
        struct poll_options o = {
            .loop = b->loop,
            .box = p->bot->box,
            .bot = p->config,
            .token = p->secrets->token,
            .proxy_url = p->secrets->proxy_url,
            .reread_token = reread_token,
            .reread_arg = p->bot,
            .before = p->bot->poll,
        };
        p->poll = poll_new(&o, e);
        if (!p->poll)
            return err_prefix(e, "bots.%s", p->config->name);
    }
    if (watched && p->new_watch) {
        struct watch_options o = {
            .loop = b->loop,
            .box = p->bot->box,
            .bot = p->config,
            .token = p->secrets->token,
            .proxy_url = p->secrets->proxy_url,
        };
        p->watch = watch_new(&o, e);
        return p->watch ? 0 : err_prefix(e, "bots.%s", p->config->name);
    }
    return 0;
}

static int prepare(struct bots *b, struct plan *p, struct err *e)
{
    find_old(b, p);
    if (p->bot && p->bot->leaving)
        return err_set(e, EX_TEMPFAIL,
                       "bots.%s: what ran of it when its section was removed has not ended yet; "
                       "reload again in a moment",
                       p->config->name);
    if (!p->bot) {
        p->bot = bot_new(b, p, e);
        if (!p->bot)
            return -1;
        p->fresh = true;
    } else {
        if (slots_reconfigure(p->bot->slots, p->config, p->secrets->url_secret, e))
            return -1;
        p->reconfigured = true;
        struct slots_calls calls = calls_of(p->bot, p->config, p->secrets);
        if (slots_reconfigure_calls(p->bot->calls, &calls, e))
            return -1;
        p->calls_reconfigured = true;
    }
    return prepare_intake(b, p, e);
}

static void undo(struct plan *p)
{
    struct err ignored = ERR_NONE;

    poll_free(p->poll);
    watch_free(p->watch);
    if (p->fresh) {
        bot_drop(p->bot);
        return;
    }
    if (p->reconfigured)
        slots_reconfigure(p->bot->slots, p->old_config, p->old_secrets->url_secret, &ignored);
    if (p->calls_reconfigured) {
        struct slots_calls calls = calls_of(p->bot, p->old_config, p->old_secrets);
        slots_reconfigure_calls(p->bot->calls, &calls, &ignored);
    }
}

/* ---- carrying out ------------------------------------------------------------------------------- */

static void carry_out(struct bots *b, struct plan *p)
{
    struct bot *bot = p->bot;

    if (p->fresh) {
        list_add_tail(&b->all, &bot->link);
    } else {
        snprintf(bot->name, sizeof(bot->name), "%s", p->config->name);
    }
    attach_boxes(b, bot, p->config);
    if (p->new_poll) {
        poll_free(bot->poll);
        bot->poll = p->poll;
    } else if (bot->poll) {
        poll_set_token(bot->poll, p->secrets->token);
    }
    if (p->new_watch) {
        watch_free(bot->watch);
        bot->watch = p->watch;
    } else if (bot->watch) {
        watch_set_token(bot->watch, p->secrets->token);
    }
    bot->drops_offset = p->config->intake == INTAKE_WEBHOOK;
}

/* The webhook listener gets to know who takes webhooks now, and by what secret. */
static void set_hooks(struct bots *b)
{
    const struct setup *s = b->setup;
    struct webhook_bot *hooks = xcalloc(s->config->n_bots, sizeof(*hooks));
    size_t n = 0;

    for (size_t i = 0; i < s->config->n_bots; i++)
        if (s->config->bots[i].intake == INTAKE_WEBHOOK)
            hooks[n++] = (struct webhook_bot){
                .name = s->config->bots[i].name,
                .secret = s->secrets[i].webhook_secret,
                .box = bots_by_id(b, s->secrets[i].bot_id)->box,
            };
    webhook_set_bots(b->webhook, hooks, n);
    free(hooks);
}

/* And the drop-in listener, whom it stands in for. */
static void set_dropin(struct bots *b)
{
    const struct setup *s = b->setup;
    size_t n = s->config->listen_dropin ? s->config->n_bots : 0;
    struct dropin_bot_options *bots = xcalloc(n + 1, sizeof(*bots));

    for (size_t i = 0; i < n; i++)
        bots[i] = (struct dropin_bot_options){
            .bot_id = s->secrets[i].bot_id,
            .box = bots_by_id(b, s->secrets[i].bot_id)->box,
            .config = &s->config->bots[i],
            .token = s->secrets[i].token,
            .alias = s->secrets[i].dropin_token,
            .proxy_url = s->secrets[i].proxy_url,
        };
    dropin_set_bots(b->dropin, bots, n);
    free(bots);
}

static bool in_setup(const struct setup *s, int64_t bot_id)
{
    for (size_t i = 0; i < s->config->n_bots; i++)
        if (s->secrets[i].bot_id == bot_id)
            return true;
    return false;
}

static void leave(struct bot *bot)
{
    if (bot->leaving)
        return;
    log_info(bot->name, "is in no section any more: its intake ends, its handlers may finish");
    bot->leaving = true;
    if (bot->poll)
        poll_stop(bot->poll);
    slots_shutdown(bot->slots);
    slots_shutdown(bot->calls);
}

int reload_apply(struct bots *b, struct setup *s, struct err *e)
{
    size_t n = s->config->n_bots, ready = 0;
    struct plan *plans = xcalloc(n, sizeof(*plans));
    int rc = 0;

    for (size_t i = 0; i < n && !rc; i++)
        rc = check_section(b, s, i, e);
    while (ready < n && !rc) {
        struct plan *p = &plans[ready++];
        p->config = &s->config->bots[ready - 1];
        p->secrets = &s->secrets[ready - 1];
        rc = prepare(b, p, e);
    }
    if (rc) {
        while (ready > 0)
            undo(&plans[--ready]);
        free(plans);
        return -1;
    }
    list_each(&b->all, it) {
        struct bot *bot = list_item(it, struct bot, link);
        if (!in_setup(s, bot->bot_id))
            leave(bot);
    }
    for (size_t i = 0; i < n; i++)
        carry_out(b, &plans[i]);
    setup_free(b->setup);
    b->setup = s;
    children_set_max(b->children, s->config->max_children);
    set_hooks(b);
    set_dropin(b);
    free(plans);
    return 0;
}

bool reload_from_file(struct bots *b, struct watching *w, const char *path)
{
    struct err e = ERR_NONE;
    struct setup *s = setup_load(path, &e);

    if (s && !config_check_reload(b->setup->config, s->config, &e) && !watching_prepare(w, s, &e) &&
        !reload_apply(b, s, &e)) {
        watching_switch(w, s);
        log_info(NULL, "reloaded %s: %zu %s", path, bots_count(b), bots_count(b) == 1 ? "bot" : "bots");
        setup_log_warnings(b->setup);
        return true;
    }
    watching_abandon(w);
    if (s)
        setup_free(s);
    log_error(NULL, "reload refused, the old configuration stays: %s", e.text);
    return false;
}
