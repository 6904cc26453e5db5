/* Of a bot with a webhook: deleteWebhook, which keeps what is pending. Then, of both, one getUpdates: its offset
 * confirms what polling took, and its allowed_updates are those from before us. What it returns is thrown away:
 * only a later offset confirms that. */
#include "intake/giveback.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/mem.h"
#include "intake/before.h"
#include "spool/spool.h"
#include "telegram/botapi.h"

#define DEADLINE SECONDS(30)
#define OFFSET_KEEPS HOURS(24) /* as poll.c: older ones may be above ids that started anew */

struct giveback {
    struct botapi *api;
    given_back_fn *fn;
    void *arg;
    struct before before;
    bool known;
    char **kinds; /* of the config: asked for if nothing is known */
    size_t n_kinds;
    int64_t offset; /* 0: none */
};

static void end(struct giveback *g, const char *sentence)
{
    struct given_back r = {
        .ok = sentence == NULL,
        .had_webhook = g->before.had_webhook,
        .kinds_known = g->known,
        .kinds = g->before.allowed_updates,
        .n_kinds = g->before.n_allowed,
        .sentence = sentence,
    };
    g->fn(g->arg, &r);
}

static void confirmed(void *arg, struct botapi_reply *r)
{
    (void)FAILPOINT("giveback.after_confirm");
    end(arg, r->class == BOTAPI_OK ? NULL : r->sentence);
}

static void confirm(struct giveback *g)
{
    bool restored = g->known && g->before.allowed_updates;
    struct botapi_poll q = {
        .offset = g->offset,
        .limit = 1,
        .timeout_s = 0,
        .allowed_updates = restored ? g->before.allowed_updates : g->kinds,
        .n_allowed = restored ? g->before.n_allowed : g->n_kinds,
        .default_updates = g->known && !restored,
        .deadline_ms = DEADLINE,
    };
    (void)FAILPOINT("giveback.before_confirm");
    botapi_get_updates(g->api, &q, confirmed, g);
}

static void deleted(void *arg, struct botapi_reply *r)
{
    struct giveback *g = arg;

    if (r->class == BOTAPI_OK)
        confirm(g);
    else
        end(g, r->sentence);
}

struct giveback *giveback_new(const struct giveback_options *o, given_back_fn *fn, void *arg, struct err *e)
{
    struct botapi_options ao = {
        .api_root = o->bot->api_root,
        .token = o->token,
        .ca_file = o->bot->ca_file,
        .proxy_url = o->proxy_url,
        .ip = o->bot->ip,
    };
    struct poll_position p;
    char why[256];
    struct botapi *api = botapi_new(o->loop, &ao, e);

    if (!api)
        return NULL;
    struct giveback *g = xcalloc(1, sizeof(*g));
    g->api = api;
    g->fn = fn;
    g->arg = arg;
    g->known = before_read(o->box, &g->before);
    g->n_kinds = o->bot->n_allowed_updates;
    g->kinds = xcalloc(g->n_kinds + 1, sizeof(char *));
    for (size_t i = 0; i < g->n_kinds; i++)
        g->kinds[i] = xstrdup(o->bot->allowed_updates[i]);
    spool_get_position(o->box, &p);
    if (!spool_healthy(spool_of(o->box),
                       why)) { /* without the offset, Telegram would hand out once more what is done */
        err_set(e, EX_IOERR, "%s", why);
        giveback_free(g);
        return NULL;
    }
    bool polled = o->bot->intake == INTAKE_POLL && !strcmp(p.api_root, o->bot->api_root);
    if (polled && o->now - p.newest_update_at < OFFSET_KEEPS)
        g->offset = p.offset;
    if (o->bot->intake == INTAKE_WEBHOOK)
        botapi_delete_webhook(api, DEADLINE, deleted, g);
    else
        confirm(g);
    return g;
}

void giveback_free(struct giveback *g)
{
    if (!g)
        return;
    botapi_free(g->api);
    before_free(&g->before);
    for (size_t i = 0; i < g->n_kinds; i++)
        free(g->kinds[i]);
    free(g->kinds);
    free(g);
}
