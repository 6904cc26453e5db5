/* Keeps the bots' parts together and gives each its turn. How they come and go is daemon/reload's. */
#include "daemon/bots.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/configfile.h"
#include "deliver/children.h"
#include "deliver/slots.h"
#include "intake/giveback.h"
#include "intake/poll.h"
#include "intake/watch.h"
#include "intake/webhook.h"
#include "serve/dropin.h"
#include "spool/spool.h"
#include "wire/event_json.h"
#include "wire/json.h"

#define each_bot(b, it) list_each(&(b)->all, it)

static struct bot *bot_at(struct list *link)
{
    return list_item(link, struct bot, link);
}

void bots_init(struct bots *b, struct loop *loop)
{
    *b = (struct bots){.loop = loop};
    b->children = children_new(1);
    list_init(&b->all);
}

void bots_open(struct bots *b, struct spool *spool)
{
    b->spool = spool;
    b->webhook = webhook_new(spool);
    b->dropin = dropin_new(b->loop, spool);
}

static void bot_free(struct bot *bot)
{
    spool_forget(bot->of->spool, bot);
    poll_free(bot->poll);
    watch_free(bot->watch);
    slots_free(bot->slots);
    slots_free(bot->calls);
    list_del(&bot->link);
    free(bot);
}

void bots_clear(struct bots *b)
{
    each_bot(b, it)
        bot_free(bot_at(it));
    webhook_free(b->webhook);
    b->webhook = NULL;
    dropin_free(b->dropin);
    b->dropin = NULL;
    children_free(b->children);
    b->children = NULL;
    setup_free(b->setup);
    b->setup = NULL;
}

/* Whether Telegram is to be asked how the bot stands there. */
static bool asks(const struct bot *bot)
{
    return bot->watch && !bot->leaving && !bot->of->stopping;
}

/* The watch's turn, if it has one. */
static int64_t watch_turn(struct bots *b, struct bot *bot, int64_t now)
{
    if (!asks(bot))
        return TIME_NEVER;
    if (bot->poll)
        watch_polls(bot->watch, poll_fails_softly(bot->poll));
    else
        watch_taken(bot->watch, webhook_taken(b->webhook, bot->box));
    return watch_tick(bot->watch, now);
}

static void on_offset_dropped(void *arg, bool ok)
{
    struct bot *bot = arg;

    bot->dropping = false;
    bot->drops_offset &= !ok;
}

/* Telegram confirms by itself what a webhook took: the offset of an earlier poll means nothing any more. If the store
 * is away, it is done when that is back. */
static void drop_offset(struct bot *bot)
{
    struct poll_position p;

    if (!bot->drops_offset || bot->dropping || bot->poll || !spool_healthy(bot->of->spool, NULL))
        return;
    spool_get_position(bot->box, &p);
    p.offset = 0;
    spool_set_position(bot->box, &p);
    bot->dropping = true;
    spool_on_durable(bot->of->spool, on_offset_dropped, bot);
}

void bots_tick(struct bots *b, int64_t now)
{
    each_bot(b, it) {
        struct bot *bot = bot_at(it);
        if (bot->poll)
            poll_tick(bot->poll, now);
        drop_offset(bot);
        watch_turn(b, bot, now);
        slots_tick(bot->slots);
        slots_tick(bot->calls);
    }
    webhook_tick(b->webhook, now);
    dropin_tick(b->dropin);
}

static bool bot_ended(const struct bot *bot)
{
    return (!bot->poll || poll_stopped(bot->poll)) && slots_idle(bot->slots) && slots_idle(bot->calls);
}

int64_t bots_after_commit(struct bots *b, int64_t now)
{
    int64_t deadline = dropin_next_deadline(b->dropin), hooks = webhook_tick(b->webhook, now);

    if (hooks < deadline)
        deadline = hooks;

    each_bot(b, it) {
        struct bot *bot = bot_at(it);
        if (bot->leaving && bot_ended(bot)) {
            log_info(bot->name, "has ended; its events are kept");
            spool_detach(bot->box);
            spool_detach(bot->out);
            bot_free(bot);
            continue;
        }
        int64_t at = slots_next_deadline(bot->slots);
        if (at < deadline)
            deadline = at;
        at = slots_next_deadline(bot->calls);
        if (at < deadline)
            deadline = at;
        at = bot->poll ? poll_tick(bot->poll, now) : TIME_NEVER;
        if (at < deadline)
            deadline = at;
        at = watch_turn(b, bot, now);
        if (at < deadline)
            deadline = at;
    }
    return deadline;
}

void bots_stop(struct bots *b)
{
    b->stopping = true;
    webhook_stop(b->webhook);
    dropin_stop(b->dropin);
    each_bot(b, it) {
        struct bot *bot = bot_at(it);
        if (bot->poll)
            poll_stop(bot->poll);
        if (bot->leaving)
            continue;
        slots_shutdown(bot->slots);
        slots_shutdown(bot->calls);
    }
}

bool bots_stopped(const struct bots *b)
{
    if (!b->stopping || !webhook_idle(b->webhook))
        return false;
    for (const struct list *it = b->all.next; it != &b->all; it = it->next)
        if (!bot_ended(bot_at((struct list *)it)))
            return false;
    return true;
}

int64_t bots_shutdown_wait(const struct bots *b)
{
    int64_t longest = 0;

    for (size_t i = 0; i < b->setup->config->n_bots; i++)
        if (b->setup->config->bots[i].shutdown_wait_ms > longest)
            longest = b->setup->config->bots[i].shutdown_wait_ms;
    return longest;
}

struct bot *bots_by_id(struct bots *b, int64_t bot_id)
{
    each_bot(b, it)
        if (bot_at(it)->bot_id == bot_id)
            return bot_at(it);
    return NULL;
}

struct bot *bots_by_name(struct bots *b, const char *name)
{
    each_bot(b, it)
        if (!bot_at(it)->leaving && !strcmp(bot_at(it)->name, name))
            return bot_at(it);
    return NULL;
}

size_t bots_count(const struct bots *b)
{
    return b->setup ? b->setup->config->n_bots : 0;
}

/* ---- how intake stands -------------------------------------------------------------------------- */

/* By webhook it fails if the webhook is not as it should be, if Telegram does not know the token, or if its latest try
 * did not reach us while updates wait there. */
static void hook_standing(struct webhook *w, const struct bot *bot, const struct watch_status *at,
                          struct intake_standing *out)
{
    struct webhook_status st = {.answered_at = 0};
    bool known = webhook_status(w, bot->name, &st);

    out->good_at = st.answered_at;
    memcpy(out->answers, st.answers, sizeof(out->answers));
    if (!known || st.held)
        return;
    if (at->wrong_since) {
        out->failing_since = at->wrong_since;
        out->for_a_person = true;
        snprintf(out->reason, sizeof(out->reason), "%.*s", (int)sizeof(out->reason) - 1, at->advice);
    } else if (at->refused) {
        out->failing_since = at->trouble_since;
        out->for_a_person = true;
        snprintf(out->reason, sizeof(out->reason), "%.*s", (int)sizeof(out->reason) - 1, at->trouble);
    } else if (at->pending && at->last_error_at > st.answered_at) {
        out->failing_since = at->last_error_at;
        snprintf(out->reason, sizeof(out->reason), "Telegram cannot deliver to the webhook: %.200s",
                 at->last_error);
    }
}

int64_t bots_oldest_limit(void *arg)
{
    const struct bots *b = arg;
    return b->setup->config->alert_oldest_ms;
}

bool bots_standing(void *arg, const char *name, struct intake_standing *out)
{
    struct bots *b = arg;
    const struct bot *bot = bots_by_name(b, name);
    struct watch_status at;

    *out = (struct intake_standing){.mode = INTAKE_NONE, .pending = -1};
    if (!bot)
        return false;
    if (!bot->watch)
        return true;
    watch_status(bot->watch, &at);
    out->asked_at = at.asked_at;
    out->pending = at.asked_at ? at.pending : -1;
    out->mode = bot->poll ? INTAKE_POLL : INTAKE_WEBHOOK;
    if (bot->poll)
        poll_standing(bot->poll, out);
    else
        hook_standing(b->webhook, bot, &at, out);
    return true;
}

/* ---- for the API -------------------------------------------------------------------------------- */

/* What waits at Telegram, as far as it is known. */
static void write_upstream(const struct watch_status *at, struct json_out *j)
{
    event_write_time(j, "asked_at", at->asked_at);
    json_key(j, "upstream_pending");
    if (at->asked_at)
        json_int(j, at->pending);
    else
        json_null(j);
}

/* Polls that failed since the start, by kind. */
static void write_poll_errors(const struct poll *p, struct json_out *j)
{
    struct intake_standing in = {.mode = INTAKE_POLL};

    poll_standing(p, &in);
    json_key(j, "errors");
    json_object(j);
    for (enum poll_error e = 0; e < POLL_ERRORS; e++)
        json_kv_uint(j, poll_error_name(e), in.errors[e]);
    json_object_end(j);
}

static void write_poll(const struct bot *bot, struct json_out *j)
{
    struct poll_status st;
    struct watch_status at;

    poll_status(bot->poll, &st);
    watch_status(bot->watch, &at);
    json_kv_cstr(j, "mode", "poll");
    json_kv_cstr(j, "state", st.state);
    if (st.held[0])
        json_kv_cstr(j, "held", st.held);
    json_kv_int(j, "offset", st.offset);
    event_write_time(j, "answered_at", st.answered_at);
    write_upstream(&at, j);
    write_poll_errors(bot->poll, j);
    if (st.next_at)
        event_write_time(j, "next_at", st.next_at);
    if (st.trouble_since) {
        event_write_time(j, "trouble_since", st.trouble_since);
        json_kv_uint(j, "tries", st.tries);
        json_kv_cstr(j, "trouble", st.trouble);
    }
}

static void write_webhook(struct webhook *w, const struct bot *bot, struct json_out *j)
{
    struct webhook_status st = {.held = "it begins"};
    struct watch_status at;

    webhook_status(w, bot->name, &st);
    watch_status(bot->watch, &at);
    json_kv_cstr(j, "mode", "webhook");
    json_kv_cstr(j, "state", st.held ? "held" : "taking");
    if (st.held)
        json_kv_cstr(j, "held", st.held);
    json_kv_uint(j, "taken", st.answers[HOOK_200]);
    json_kv_uint(j, "refused", st.answers[HOOK_400] + st.answers[HOOK_401]);
    json_kv_uint(j, "put_off", st.answers[HOOK_503]);
    event_write_time(j, "answered_at", st.answered_at);
    json_kv_cstr(j, "webhook", watch_found_name(at.found));
    write_upstream(&at, j);
    event_write_time(j, "last_error_at", at.last_error_at);
    json_kv_cstr(j, "last_error", at.last_error_at ? at.last_error : NULL);
    if (at.trouble_since)
        event_write_time(j, "trouble_since", at.trouble_since);
    if (at.advice[0] || at.trouble_since)
        json_kv_cstr(j, "trouble", at.advice[0] ? at.advice : at.trouble);
}

void bots_intake_status(void *arg, const char *name, struct json_out *j)
{
    struct bots *b = arg;
    const struct bot *bot = bots_by_name(b, name);

    json_object(j);
    if (bot && bot->poll)
        write_poll(bot, j);
    else if (bot && bot->watch)
        write_webhook(b->webhook, bot, j);
    else
        json_kv_cstr(j, "mode", "none");
    json_object_end(j);
}

bool bots_kill_event(void *arg, const char *name, enum box box, uint64_t seq)
{
    struct bot *bot = bots_by_name(arg, name);

    return bot && slots_kill_event(box == BOX_IN ? bot->slots : bot->calls, seq);
}

bool bots_pulled(void *arg, const char *name)
{
    struct bots *b = arg;
    const struct bot_config *bot = config_bot(b->setup->config, name);

    return bot && bot->deliver == DELIVER_PULL;
}

bool bots_intake_rests(void *arg, const char *name)
{
    struct bots *b = arg;
    const struct bot *bot = bots_by_name(b, name);

    if (!bot)
        return true;
    return bot->poll ? poll_rests(bot->poll) : webhook_rests(b->webhook, bot->box);
}

void *bots_give_back(void *arg, const char *name, given_back_fn *told, void *told_arg, char why[256])
{
    struct bots *b = arg;
    struct bot *bot = bots_by_name(b, name);
    struct err e = ERR_NONE;

    for (size_t i = 0; bot && i < b->setup->config->n_bots; i++) {
        const struct bot_secrets *s = &b->setup->secrets[i];
        if (s->bot_id != bot->bot_id)
            continue;
        struct giveback_options o = {
            .loop = b->loop,
            .box = bot->box,
            .bot = &b->setup->config->bots[i],
            .token = s->token,
            .proxy_url = s->proxy_url,
            .now = clock_now(),
        };
        struct giveback *g = giveback_new(&o, told, told_arg, &e);
        if (!g)
            snprintf(why, 256, "%.255s", e.text);
        return g;
    }
    snprintf(why, 256, "the bot is in no section of the config");
    return NULL;
}

void bots_give_back_end(void *given)
{
    giveback_free(given);
}

void bots_children_status(void *arg, struct json_out *j)
{
    const struct bots *b = arg;

    json_object(j);
    json_kv_uint(j, "running", children_used(b->children));
    json_kv_uint(j, "max", children_max(b->children));
    json_kv_uint(j, "bots_waiting", children_waiting(b->children));
    json_object_end(j);
}

void bots_consumer_status(void *arg, const char *name, struct json_out *j)
{
    const struct bots *b = arg;

    dropin_status(b->dropin, name, j);
}
