#include "daemon/watching.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/alerts.h"
#include "core/standing.h"
#include "daemon/alerting.h"
#include "daemon/bots.h"
#include "net/loop.h"
#include "ops/alert_post.h"
#include "ops/disk.h"
#include "spool/spool.h"

#define LOOK_EVERY SECONDS(1)

struct watching {
    struct loop *loop;
    struct bots *bots;
    const struct disk *disk;
    struct alerts *alerts;
    struct alert_post *post, *prepared;
    int64_t began, looked_at;
    bool healthy; /* the store, at the latest look: one that fails for a moment only is told all the same */
};

/* ---- what comes out ----------------------------------------------------------------------------- */

static void send(void *arg, const struct alert *a)
{
    struct watching *w = arg;
    const char *bot = a->bot[0] ? a->bot : NULL;

    if (a->over)
        log_info(bot, "alert %s is over: %s", alert_name(a->kind), a->message);
    else
        log_warn(bot, "alert %s: %s; to look, run: %s", alert_name(a->kind), a->message, a->next);
    alert_post_add(w->post, a);
}

void watching_tell_started(struct watching *w)
{
    struct alert a;

    alert_make_unstarted(&a, false, NULL, loop_now(w->loop));
    send(w, &a);
}

/* ---- what is looked at -------------------------------------------------------------------------- */

/* Adds what one of a bot's boxes says. */
static void add_box(struct alert_bot *out, struct spool_box *box)
{
    struct spool_box_status st;

    spool_box_status(box, &st);
    bool calls = spool_box_which(box) == BOX_OUT;
    const struct spool_counts *c = &st.counts;
    if (st.oldest_unfinished_at && (!out->oldest_at || st.oldest_unfinished_at < out->oldest_at)) {
        out->oldest_at = st.oldest_unfinished_at;
        out->oldest_is_call = calls;
    }
    out->unfinished += c->pending + c->processing;
    for (enum reason r = REASON_NONE; r <= REASON_DISCARDED; r++)
        out->dead += r == REASON_DISCARDED ? 0 : c->dead_by_reason[r];
    out->lease_expired += c->lease_expired;
    if (st.breaker.open && (!out->breaker_since || st.breaker.since < out->breaker_since)) {
        out->breaker_since = st.breaker.since;
        out->breaker_cause = st.breaker.cause;
        out->breaker_of_calls = calls;
    }
    out->paused_intake |= st.paused_intake;
    out->paused_deliver |= st.paused_deliver;
}

/* Since when there is no room for more; 0: there is. */
static int64_t held_since(const struct watching *w)
{
    const struct disk_state *disk = disk_state(w->disk);
    int64_t low = disk->low_since, full = disk->full_since;

    return !low || (full && full < low) ? full : low;
}

static void see_bot(struct watching *w, const struct bot *bot)
{
    struct intake_standing in;
    struct alert_bot b = {.bot = bot->name};

    add_box(&b, bot->box);
    add_box(&b, bot->out);
    bots_standing(w->bots, bot->name, &in);
    b.intake_since = in.failing_since;
    b.intake_by_itself = !in.for_a_person;
    b.intake_why = in.reason;
    b.held_since = in.mode == INTAKE_NONE ? 0 : held_since(w);
    b.upstream_pending = in.pending;
    alerts_see_bot(w->alerts, &b);
}

/* What the disk asks for; in room if the sentence has to be made. NULL: nothing. */
static const char *disk_trouble(struct watching *w, char room[400])
{
    const struct disk_state *disk = disk_state(w->disk);
    struct spool_retention_status kept;

    if (disk->why[0])
        return disk->why;
    if (disk->filling_since)
        return "the database is above 90 % of spool.max_db, at which intake stops";
    spool_retention_status(w->bots->spool, &kept);
    if (!kept.failing_since)
        return NULL;
    snprintf(room, 400, "the archive cannot be written, so nothing is removed from the spool: %s",
             kept.trouble);
    return room;
}

/* why: of a store that is not healthy. */
static void see_spool(struct watching *w, enum spool_health health, const char *why)
{
    const struct disk_state *disk = disk_state(w->disk);
    struct alert_spool s = {.disk_free = disk->known ? disk->free_bytes : -1};
    char room[400];

    if (health == SPOOL_CORRUPT)
        s.corruption_why = why;
    else if (health == SPOOL_FAILED)
        s.store_why = why;
    s.disk_why = disk_trouble(w, room);
    alerts_see_spool(w->alerts, &s);
}

static int64_t look(struct watching *w, int64_t now)
{
    char why[256];
    enum spool_health health = spool_health(w->bots->spool, why);
    bool healthy = health == SPOOL_OK || health == SPOOL_STALLED; /* the bots can be seen */

    alerts_begin(w->alerts, now);
    see_spool(w, health, why);
    if (healthy)
        list_each(&w->bots->all, it) {
            const struct bot *bot = list_item(it, struct bot, link);
            if (!bot->leaving)
                see_bot(w, bot);
        }
    return alerts_end(w->alerts, healthy);
}

/* The time of alerts, which goes faster for a test that cannot wait for an hour. */
static int64_t alert_time(const struct watching *w, int64_t now)
{
    int times = FAILPOINT("alert.hurry");
    return times ? w->began + (now - w->began) * times : now;
}

int64_t watching_tick(struct watching *w, int64_t now)
{
    if (!w->post)
        return TIME_NEVER;
    bool healthy = spool_healthy(w->bots->spool, NULL);
    if (now - w->looked_at < LOOK_EVERY &&
        healthy == w->healthy) /* what changed since is seen a second later */
        return w->looked_at + LOOK_EVERY;
    w->looked_at = now;
    w->healthy = healthy;
    int64_t next = look(w, alert_time(w, now));
    return next < now + LOOK_EVERY ? now + LOOK_EVERY : next;
}

/* ---- destinations ------------------------------------------------------------------------------- */

int watching_prepare(struct watching *w, const struct setup *s, struct err *e)
{
    w->prepared = alerting_post(w->loop, s, &w->bots->setup, false, e);
    return w->prepared ? 0 : -1;
}

void watching_abandon(struct watching *w)
{
    alert_post_free(w->prepared);
    w->prepared = NULL;
}

void watching_switch(struct watching *w, const struct setup *s)
{
    struct alert_policy policy;

    alerting_policy(s, &policy);
    if (w->alerts)
        alerts_set_policy(w->alerts, &policy);
    else
        w->alerts = alerts_new(&policy, send, w);
    alert_post_take(w->prepared, w->post);
    w->post = w->prepared;
    w->prepared = NULL;
}

void *watching_test(void *arg, int64_t wait_ms, alert_told_fn *told, void *told_arg, char why[256])
{
    struct watching *w = arg;
    struct err e = ERR_NONE;
    struct alert_trial *t = alert_trial_new(w->loop, &w->bots->setup, wait_ms, told, told_arg, &e);

    if (!t)
        snprintf(why, 256, "%.255s", e.text);
    return t;
}

void watching_test_end(void *trial)
{
    alert_trial_free(trial);
}

/* ---- life --------------------------------------------------------------------------------------- */

struct watching *watching_new(struct loop *l, struct bots *bots)
{
    struct watching *w = xcalloc(1, sizeof(*w));

    w->loop = l;
    w->bots = bots;
    w->began = loop_now(l);
    w->healthy = true;
    return w;
}

void watching_look_at(struct watching *w, const struct disk *disk)
{
    w->disk = disk;
}

void watching_free(struct watching *w)
{
    if (!w)
        return;
    watching_abandon(w);
    alert_post_free(w->post);
    alerts_free(w->alerts);
    free(w);
}
