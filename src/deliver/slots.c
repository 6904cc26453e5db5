/* The pool of slots. Which events come, how many, and what an outcome means is the spool's business; how a
 * handler is talked to is the deliverer's. This file only keeps who is free. */
#include "deliver/slots.h"

#include <stdlib.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "deliver/children.h"
#include "deliver/config.h"
#include "deliver/slot.h"
#include "net/loop.h"
#include "proc/env.h"

struct slot {
    struct list link;
    struct slots *pool;
    struct deliver_config *config; /* a reference */
    const struct deliverer *ops;
    void *work;
    struct claim *claim; /* owned; NULL: free */
    bool discarded;      /* by a person, while something of the try runs */
    bool retiring;       /* of an old configuration, or one too many: freed when quiet */
    bool giving_up;      /* its idle child is being ended, because others wait for its place */
};

struct slots {
    struct loop *loop;
    struct spool_box *box;
    struct deliver_config *config; /* a reference */
    unsigned concurrency;
    int64_t shutdown_wait_ms;
    struct list all;
    unsigned expected; /* claims that the next commit hands over */
    struct places places;
    bool closing;
    struct timer closed; /* the end of shutdown_wait */
    bool ended_some;     /* since the last tick: there may be more to claim */
};

static const struct deliverer *const deliverers[] = {
    [DELIVER_EXEC] = &deliverer_exec, [DELIVER_WORKER] = &deliverer_worker,
    [DELIVER_HTTP] = &deliverer_http, [DELIVER_PULL] = NULL,
    [DELIVER_DROPIN] = NULL,
};

/* NULL: the events are not handed to anyone here. */
static const struct deliverer *deliverer_of(const struct deliver_config *config)
{
    return config->calls ? &deliverer_call : deliverers[config->mode];
}

/* ---- slots -------------------------------------------------------------------------------------- */

static struct slot *slot_new(struct slots *pool, struct deliver_config *config, struct err *e)
{
    struct slot *s = xcalloc(1, sizeof(*s));

    s->pool = pool;
    s->config = deliver_config_ref(config);
    s->ops = deliverer_of(config);
    list_init(&s->link);
    s->work = s->ops->new (s, e);
    if (s->work)
        return s;
    deliver_config_unref(s->config);
    free(s);
    return NULL;
}

static void slot_free(struct slot *s)
{
    list_del(&s->link);
    s->ops->free(s->work);
    if (s->claim)
        claim_free(s->claim);
    deliver_config_unref(s->config);
    free(s);
}

static void retire(struct slot *s)
{
    if (s->retiring)
        return;
    s->retiring = true;
    if (!s->claim)
        s->ops->stop(s->work);
}

static void free_retired(struct slots *pool)
{
    list_each(&pool->all, it) {
        struct slot *s = list_item(it, struct slot, link);
        if (s->retiring && !s->claim && s->ops->quiet(s->work))
            slot_free(s);
    }
}

/* Brings the slots in use to the number configured. */
static void adjust(struct slots *pool)
{
    unsigned n = 0, wanted = deliverer_of(pool->config) ? pool->concurrency : 0;
    struct err e = ERR_NONE;

    list_each(&pool->all, it) {
        struct slot *s = list_item(it, struct slot, link);
        if (!s->retiring && ++n > wanted)
            retire(s);
    }
    for (; n < wanted; n++) {
        struct slot *s = slot_new(pool, pool->config, &e);
        if (!s) { /* one could be made when the configuration was taken */
            log_error(pool->config->bot, "Only %u of %u handlers can be used: %s", n, wanted, e.text);
            return;
        }
        list_add_tail(&pool->all, &s->link);
    }
}

struct loop *slot_loop(const struct slot *s)
{
    return s->pool->loop;
}

const struct deliver_config *slot_config(const struct slot *s)
{
    return s->config;
}

const struct claim *slot_claim(const struct slot *s)
{
    return s->claim;
}

void slot_envelope(const struct slot *s, struct envelope *out)
{
    struct spool_box *box = s->pool->box;

    envelope_make(out, spool_box_bot(box), spool_box_bot_id(box), spool_box_which(box), &s->claim->ev,
                  s->claim->attempt, loop_now(s->pool->loop));
}

static void end_try(struct slot *s, const struct outcome *o, const struct spool_extras *extras)
{
    static const struct outcome discarded = {OUTCOME_DISCARDED, -1, {NULL, 0}};
    struct claim *c = s->claim;

    /* The person was told so. It may have failed or been ended otherwise before, and must not be tried again. */
    if (s->discarded && o->kind != OUTCOME_DONE && o->kind != OUTCOME_REJECTED)
        o = &discarded;
    s->discarded = false;
    (void)FAILPOINT("deliver.before_complete");
    log_debug(s->config->bot, "A try ended: event=%llu attempt=%u outcome=%s", (unsigned long long)c->ev.seq,
              (unsigned)c->attempt, outcome_name(o->kind));
    if (spool_complete_with(s->pool->box, c->ev.seq, c->token, o, extras) == COMPLETE_LOST)
        log_info(s->config->bot, "A try ended whose event was taken away meanwhile: event=%llu",
                 (unsigned long long)c->ev.seq);
    (void)FAILPOINT("deliver.after_complete");
    s->claim = NULL;
    claim_free(c);
    s->pool->ended_some = true;
    if (s->retiring || s->pool->closing)
        s->ops->stop(s->work);
}

void slot_end(struct slot *s, enum outcome_kind kind, int64_t after_ms, struct slice error)
{
    end_try(s, &(struct outcome){kind, after_ms, error}, NULL);
}

void slot_end_done(struct slot *s, const struct spool_extras *extras)
{
    end_try(s, &(struct outcome){OUTCOME_DONE, -1, {NULL, 0}}, extras);
}

bool slot_reread_token(struct slot *s)
{
    return deliver_config_reread_token(s->config);
}

int64_t slot_extend(struct slot *s, int64_t by_ms)
{
    struct claim *c = s->claim;
    int64_t now = loop_now(s->pool->loop), deadline;

    if (by_ms > HOURS(12))
        by_ms = HOURS(12);
    /* Our own claims run by our own timer: with the store away it is extended all the same. */
    if (spool_extend(s->pool->box, c->ev.seq, c->token, by_ms, &deadline) != COMPLETED)
        deadline = now + by_ms;
    return c->deadline = deadline;
}

/* ---- claims ------------------------------------------------------------------------------------- */

static bool is_free(const struct slot *s)
{
    return !s->claim && !s->retiring && !s->giving_up;
}

/* One with a child first: it needs no other place. */
static struct slot *free_slot(struct slots *pool)
{
    struct slot *found = NULL;

    list_each(&pool->all, it) {
        struct slot *s = list_item(it, struct slot, link);
        if (is_free(s) && (!found || (s->ops->quiet(found->work) && !s->ops->quiet(s->work))))
            found = s;
    }
    return found;
}

/* Called inside spool_commit, once for each claim. */
static void on_claim(void *arg, struct claim *c)
{
    struct slots *pool = arg;
    struct slot *s = free_slot(pool);

    pool->expected--;
    if (!c) {
        pool->ended_some = true; /* the slot is free for another */
        return;
    }
    if (pool->closing || !s) { /* shut down between claim and commit */
        spool_complete(pool->box, c->ev.seq, c->token, &(struct outcome){OUTCOME_RETURNED, -1, {NULL, 0}});
        claim_free(c);
        return;
    }
    s->claim = c;
    s->ops->start(s->work);
}

unsigned slots_busy(const struct slots *pool)
{
    unsigned n = 0;

    list_each(&pool->all, it)
        n += list_item(it, struct slot, link)->claim != NULL;
    return n;
}

/* How many events the slots can take now; of these, with_child: by a slot whose child lives. */
static unsigned slots_free_now(const struct slots *pool, unsigned *with_child)
{
    unsigned free_slots = 0, busy = slots_busy(pool);

    *with_child = 0;
    if (pool->closing || pool->expected)
        return 0;
    for (const struct list *it = pool->all.next; it != &pool->all; it = it->next) {
        const struct slot *s = list_item(it, struct slot, link);
        free_slots += is_free(s);
        *with_child += is_free(s) && s->ops->children && !s->ops->quiet(s->work);
    }
    unsigned room = pool->concurrency > busy ? pool->concurrency - busy : 0;
    unsigned n = free_slots < room ? free_slots : room;
    if (*with_child > n)
        *with_child = n;
    return n;
}

/* ---- places for children ------------------------------------------------------------------------ */

/* Holds places for the children there are, and `more`. */
static void keep_places(struct slots *pool, unsigned more)
{
    unsigned giving_up = 0;

    list_each(&pool->all, it) {
        struct slot *s = list_item(it, struct slot, link);
        if (!s->ops->children)
            continue;
        bool has = s->claim || !s->ops->quiet(s->work);
        s->giving_up = s->giving_up && has;
        giving_up += s->giving_up;
        more += has;
    }
    places_keep(&pool->places, more, giving_up);
}

/* One whose child has nothing to do, or NULL. */
static struct slot *idle_child(const struct slots *pool)
{
    for (const struct list *it = pool->all.next; it != &pool->all; it = it->next) {
        struct slot *s = list_item(it, struct slot, link);
        if (is_free(s) && s->ops->children && !s->ops->quiet(s->work))
            return s;
    }
    return NULL;
}

/* Ends an idle child if somebody else waits for its place. */
static void give_up_place(struct slots *pool, bool useful)
{
    struct slot *s = places_wanted(&pool->places, useful) ? idle_child(pool) : NULL;

    if (!s)
        return;
    s->giving_up = true;
    s->ops->stop(s->work);
    keep_places(pool, 0);
}

/* Of n events that could be taken, how many may be: with_child of them need no further place. */
static unsigned take_places(struct slots *pool, unsigned n, unsigned with_child)
{
    if (!deliverer_of(pool->config)->children) {
        places_leave(&pool->places); /* it may have had others before a reload */
        return n;
    }
    unsigned got = with_child + places_take(&pool->places, n - with_child);
    if (got < n && children_complain(pool->places.of))
        log_warn(pool->config->bot,
                 "Handlers wait, as many run as may: max_children=%u; next: tgspool status",
                 children_max(pool->places.of));
    return got;
}

void slots_tick(struct slots *pool)
{
    unsigned with_child;

    pool->ended_some = false;
    free_retired(pool);
    if (pool->expected)
        return;
    keep_places(pool, 0);
    if (!pool->closing)
        adjust(pool);
    bool useful = !pool->closing && spool_claimable(pool->box);
    give_up_place(pool, useful);
    unsigned n = useful ? slots_free_now(pool, &with_child) : 0;
    if (!n) {
        places_leave(&pool->places);
        return;
    }
    n = take_places(pool, n, with_child);
    if (!n)
        return;
    struct claim_request r = {deliverer_of(pool->config)->name, true, n, 0};
    pool->expected += spool_claim(pool->box, &r, on_claim, pool);
    keep_places(pool, pool->expected > with_child ? pool->expected - with_child : 0);
}

int64_t slots_next_deadline(const struct slots *pool)
{
    int64_t now = loop_now(pool->loop);
    unsigned with_child;

    if (pool->ended_some)
        return now;
    if (pool->expected)
        return TIME_NEVER;
    /* what became ready since the last look (by a person's replay, say) finds its slot at once */
    bool useful = spool_claimable(pool->box);
    unsigned n = useful ? slots_free_now(pool, &with_child) : 0;
    if (places_wanted(&pool->places, useful) && idle_child(pool))
        return now;
    if (!n) /* and who waits for a place that it does not need any more lets the others pass */
        return pool->places.waits ? now : TIME_NEVER;
    bool can = !deliverer_of(pool->config)->children || with_child || places_open(&pool->places);
    return can ? now : TIME_NEVER;
}

/* ---- the pool's life ---------------------------------------------------------------------------- */

/* Whether slots of this configuration can be made. */
static int try_config(struct slots *pool, struct deliver_config *config, struct err *e)
{
    if (!deliverer_of(config))
        return 0;
    struct slot *s = slot_new(pool, config, e);
    if (!s)
        return -1;
    slot_free(s);
    return 0;
}

static void take_numbers(struct slots *pool, const struct bot_config *bot, unsigned concurrency)
{
    pool->concurrency = concurrency;
    pool->shutdown_wait_ms = bot->shutdown_wait_ms;
    proc_env_hide(bot->token_env);
}

static void on_closed(void *arg)
{
    struct slots *pool = arg;

    list_each(&pool->all, it) {
        struct slot *s = list_item(it, struct slot, link);
        if (s->claim)
            s->ops->cancel(s->work, OUTCOME_RELEASED);
    }
}

/* Takes config. */
static struct slots *pool_new(struct loop *l, struct spool_box *box, struct deliver_config *config,
                              struct err *e)
{
    struct slots *pool = xcalloc(1, sizeof(*pool));

    pool->loop = l;
    pool->box = box;
    list_init(&pool->all);
    places_init(&pool->places, NULL);
    timer_init(&pool->closed, l, on_closed, pool);
    pool->config = config;
    if (!try_config(pool, config, e))
        return pool;
    slots_free(pool);
    return NULL;
}

struct slots *slots_new(struct loop *l, struct spool_box *box, const struct bot_config *bot,
                        const char *url_secret, struct err *e)
{
    struct slots *pool = pool_new(l, box, deliver_config_new(bot, url_secret), e);

    if (pool)
        take_numbers(pool, bot, bot->concurrency);
    return pool;
}

struct slots *slots_new_calls(struct loop *l, struct spool_box *out, const struct slots_calls *c,
                              struct err *e)
{
    struct slots *pool = pool_new(l, out, deliver_config_new_calls(c), e);

    if (pool)
        take_numbers(pool, c->bot, SPOOL_CALL_CONCURRENCY);
    return pool;
}

void slots_limit_children(struct slots *pool, struct children *children)
{
    places_close(&pool->places);
    places_init(&pool->places, children);
}

/* Takes config. */
static int reconfigure(struct slots *pool, struct deliver_config *config, const struct bot_config *bot,
                       unsigned concurrency, struct err *e)
{
    if (try_config(pool, config, e)) {
        deliver_config_unref(config);
        return -1;
    }
    take_numbers(pool, bot, concurrency);
    if (deliver_config_same(pool->config, config)) {
        deliver_config_unref(config);
        return 0;
    }
    deliver_config_unref(pool->config);
    pool->config = config;
    list_each(&pool->all, it)
        retire(list_item(it, struct slot, link));
    pool->ended_some = true;
    spool_probe_now(pool->box); /* it was changed to be tried */
    return 0;
}

int slots_reconfigure(struct slots *pool, const struct bot_config *bot, const char *url_secret, struct err *e)
{
    return reconfigure(pool, deliver_config_new(bot, url_secret), bot, bot->concurrency, e);
}

int slots_reconfigure_calls(struct slots *pool, const struct slots_calls *c, struct err *e)
{
    return reconfigure(pool, deliver_config_new_calls(c), c->bot, SPOOL_CALL_CONCURRENCY, e);
}

void slots_shutdown(struct slots *pool)
{
    if (pool->closing)
        return;
    pool->closing = true;
    timer_set(&pool->closed, loop_now(pool->loop) + pool->shutdown_wait_ms);
    list_each(&pool->all, it) {
        struct slot *s = list_item(it, struct slot, link);
        if (!s->claim)
            s->ops->stop(s->work);
    }
}

bool slots_idle(const struct slots *pool)
{
    if (pool->expected)
        return false;
    list_each(&pool->all, it) {
        struct slot *s = list_item(it, struct slot, link);
        if (s->claim || !s->ops->quiet(s->work))
            return false;
    }
    return true;
}

bool slots_kill_event(struct slots *pool, uint64_t seq)
{
    list_each(&pool->all, it) {
        struct slot *s = list_item(it, struct slot, link);
        if (s->claim && s->claim->ev.seq == seq) {
            s->discarded = true;
            s->ops->cancel(s->work, OUTCOME_DISCARDED);
            return true;
        }
    }
    return false;
}

void slots_free(struct slots *pool)
{
    if (!pool)
        return;
    if (pool->expected)
        spool_forget(spool_of(pool->box), pool);
    timer_stop(&pool->closed);
    places_close(&pool->places);
    list_each(&pool->all, it)
        slot_free(list_item(it, struct slot, link));
    deliver_config_unref(pool->config);
    free(pool);
}
