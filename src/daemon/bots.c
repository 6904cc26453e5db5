/* Keeps the bots' parts together and gives each its turn. How they come and go is daemon/reload's. */
#include "daemon/bots.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/configfile.h"
#include "deliver/slots.h"
#include "intake/poll.h"
#include "serve/api_event.h"
#include "spool/spool.h"
#include "wire/json.h"

#define each_bot(b, it) list_each(&(b)->all, it)

static struct bot *bot_at(struct list *link)
{
    return list_item(link, struct bot, link);
}

void bots_init(struct bots *b, struct loop *loop, struct spool *spool)
{
    *b = (struct bots){.loop = loop, .spool = spool};
    list_init(&b->all);
}

static void bot_free(struct bot *bot)
{
    poll_free(bot->poll);
    slots_free(bot->slots);
    list_del(&bot->link);
    free(bot);
}

void bots_clear(struct bots *b)
{
    each_bot(b, it) bot_free(bot_at(it));
    setup_free(b->setup);
    b->setup = NULL;
}

void bots_tick(struct bots *b, int64_t now)
{
    each_bot(b, it)
    {
        struct bot *bot = bot_at(it);
        if (bot->poll)
            poll_tick(bot->poll, now);
        slots_tick(bot->slots);
    }
}

static bool bot_ended(const struct bot *bot)
{
    return (!bot->poll || poll_stopped(bot->poll)) && slots_idle(bot->slots);
}

int64_t bots_after_commit(struct bots *b, int64_t now)
{
    int64_t deadline = TIME_NEVER;

    each_bot(b, it)
    {
        struct bot *bot = bot_at(it);
        if (bot->leaving && bot_ended(bot)) {
            log_info(bot->name, "has ended; its events are kept");
            spool_detach(bot->box);
            bot_free(bot);
            continue;
        }
        int64_t at = slots_next_deadline(bot->slots);
        if (at < deadline)
            deadline = at;
        at = bot->poll ? poll_tick(bot->poll, now) : TIME_NEVER;
        if (at < deadline)
            deadline = at;
    }
    return deadline;
}

void bots_stop(struct bots *b)
{
    b->stopping = true;
    each_bot(b, it)
    {
        struct bot *bot = bot_at(it);
        if (bot->poll)
            poll_stop(bot->poll);
        if (!bot->leaving)
            slots_shutdown(bot->slots);
    }
}

bool bots_stopped(const struct bots *b)
{
    if (!b->stopping)
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
    each_bot(b, it) if (bot_at(it)->bot_id == bot_id) return bot_at(it);
    return NULL;
}

struct bot *bots_by_name(struct bots *b, const char *name)
{
    each_bot(b, it) if (!bot_at(it)->leaving && !strcmp(bot_at(it)->name, name)) return bot_at(it);
    return NULL;
}

size_t bots_count(const struct bots *b)
{
    return b->setup ? b->setup->config->n_bots : 0;
}

/* ---- for the API
 * --------------------------------------------------------------------------------------------------- */

void bots_intake_status(void *arg, const char *name, struct json_out *j)
{
    struct bot *bot = bots_by_name(arg, name);
    struct poll_status st;

    json_object(j);
    if (!bot || !bot->poll) {
        json_kv_cstr(j, "mode", "none");
        json_object_end(j);
        return;
    }
    poll_status(bot->poll, &st);
    json_kv_cstr(j, "mode", "poll");
    json_kv_cstr(j, "state", st.state);
    json_kv_int(j, "offset", st.offset);
    event_write_time(j, "answered_at", st.answered_at);
    if (st.next_at)
        event_write_time(j, "next_at", st.next_at);
    if (st.trouble_since) {
        event_write_time(j, "trouble_since", st.trouble_since);
        json_kv_uint(j, "tries", st.tries);
        json_kv_cstr(j, "trouble", st.trouble);
    }
    json_object_end(j);
}

void bots_kill_event(void *arg, const char *name, enum box box, uint64_t seq)
{
    struct bot *bot = bots_by_name(arg, name);

    if (bot && box == BOX_IN)
        slots_kill_event(bot->slots, seq);
}

bool bots_pulled(void *arg, const char *name)
{
    struct bots *b = arg;
    const struct bot_config *bot = config_bot(b->setup->config, name);

    return bot && bot->deliver == DELIVER_PULL;
}
