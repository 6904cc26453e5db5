/* Facts to alerts: which condition is which alert, and how long each must hold. */
#include "core/alerts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/mem.h"
#include "core/alert_text.h"

/* A handler that is restarted, or a line that is cut for a moment, is nobody's trouble. */
#define HOLD_BREAKER SECONDS(60)
#define HOLD_INTAKE MINUTES(2)
#define HOLD_INTAKE_PERSON \
    SECONDS(10) /* what does not pass by itself: a revoked token, another poll, a webhook */
#define REST SECONDS(10)
#define REST_SLOW SECONDS(60) /* of what is measured now and then */
#define GATHER SECONDS(60)
#define QUIET MINUTES(15)
#define REMIND HOURS(24)
/* Telegram keeps 100,000 updates, and each for 24 h (telegram.md): told at 80 %. */
#define UPSTREAM_PENDING 80000
#define UPSTREAM_MS (HOURS(24) * 8 / 10)

struct subject {
    struct list link;
    char bot[BOT_NAME_MAX + 1]; /* "": the spool as a whole */
    struct alert_watch watch[ALERT_KINDS];
    struct alert_counter dead, lease;
    int64_t paused_at; /* 0: not paused */
    bool seen;         /* in this look */
};

struct alerts {
    struct alert_policy policy;
    alert_fn *fn;
    void *arg;
    struct list bots;
    struct subject spool;
    int64_t now, next;
};

struct alerts *alerts_new(const struct alert_policy *p, alert_fn *fn, void *arg)
{
    struct alerts *a = xcalloc(1, sizeof(*a));

    a->policy = *p;
    a->fn = fn;
    a->arg = arg;
    list_init(&a->bots);
    return a;
}

static struct subject *subject_at(struct list *link)
{
    return list_item(link, struct subject, link);
}

void alerts_free(struct alerts *a)
{
    if (!a)
        return;
    list_each(&a->bots, it)
        free(subject_at(it));
    free(a);
}

void alerts_set_policy(struct alerts *a, const struct alert_policy *p)
{
    a->policy = *p;
}

/* ---- saying it ---------------------------------------------------------------------------------- */

static struct alert make(const struct subject *s, enum alert_kind kind, enum alert_turn turn)
{
    struct alert out = {.kind = kind, .over = turn == ALERT_ENDS};

    snprintf(out.bot, sizeof(out.bot), "%s", s->bot);
    return out;
}

static void look_again(struct alerts *a, int64_t at)
{
    if (at < a->next)
        a->next = at;
}

/* What a condition leads to. value: while it holds; text: says it (core/alert_text). */
struct condition {
    enum alert_kind kind;
    struct alert_rule rule;
    int64_t began;
    int64_t value;
};

static void see(struct alerts *a, struct subject *s, const struct condition *c, const struct alert_text *t)
{
    struct alert_watch *w = &s->watch[c->kind];
    enum alert_turn turn = alert_look(w, &c->rule, c->began, a->now);

    look_again(a, alert_look_at(w, &c->rule));
    if (turn == ALERT_QUIET)
        return;
    struct alert out = make(s, c->kind, turn);
    out.since = w->since;
    out.value = c->value;
    alert_write_text(&out, t, a->now);
    a->fn(a->arg, &out);
}

static void see_count(struct alerts *a, struct subject *s, enum alert_kind kind, struct alert_counter *c,
                      uint64_t at_least, uint64_t total, const struct alert_text *t)
{
    const struct alert_count_rule rule = {at_least, GATHER, a->policy.repeat_ms, QUIET};
    uint64_t value;
    enum alert_turn turn = alert_count(c, &rule, total, a->now, &value);

    look_again(a, alert_count_at(c, &rule));
    if (turn == ALERT_QUIET)
        return;
    struct alert out = make(s, kind, turn);
    out.since = c->since;
    out.value = value > INT64_MAX ? INT64_MAX : (int64_t)value;
    alert_write_text(&out, t, a->now);
    a->fn(a->arg, &out);
}

/* ---- a look ------------------------------------------------------------------------------------- */

void alerts_begin(struct alerts *a, int64_t now)
{
    a->now = now;
    a->next = TIME_NEVER;
    list_each(&a->bots, it)
        subject_at(it)->seen = false;
}

/* A fact without a time of its own began when it was first seen. */
static int64_t began(const struct alerts *a, const struct subject *s, enum alert_kind kind, bool on)
{
    return !on ? 0 : s->watch[kind].on ? s->watch[kind].since : a->now;
}

void alerts_see_spool(struct alerts *a, const struct alert_spool *f)
{
    struct subject *s = &a->spool;
    const struct alert_text t = {
        .store_why = f->store_why, .corruption_why = f->corruption_why, .disk_why = f->disk_why};
    const struct condition all[] = {
        {ALERT_STORE, {0, a->policy.repeat_ms, REST}, began(a, s, ALERT_STORE, f->store_why), 1},
        {ALERT_CORRUPTION,
         {0, a->policy.repeat_ms, REST},
         began(a, s, ALERT_CORRUPTION, f->corruption_why),
         1},
        {ALERT_DISK, {0, a->policy.repeat_ms, REST_SLOW}, began(a, s, ALERT_DISK, f->disk_why), f->disk_free},
    };

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        see(a, s, &all[i], &t);
}

static struct subject *find(struct alerts *a, const char *bot)
{
    list_each(&a->bots, it)
        if (!strcmp(subject_at(it)->bot, bot))
            return subject_at(it);
    struct subject *s = xcalloc(1, sizeof(*s));
    snprintf(s->bot, sizeof(s->bot), "%s", bot);
    list_add_tail(&a->bots, &s->link);
    return s;
}

static int64_t seconds_since(const struct alerts *a, int64_t since)
{
    return since && a->now > since ? (a->now - since) / 1000 : 0;
}

/* Telegram is near to dropping updates: too many wait there, or they wait for too long. */
static int64_t upstream_began(struct alerts *a, const struct subject *s, const struct alert_bot *b)
{
    int64_t stopped = b->intake_since ? b->intake_since : b->paused_intake ? s->paused_at : b->held_since;
    bool old = stopped && a->now - stopped >= UPSTREAM_MS && b->upstream_pending != 0;
    if (stopped && a->now - stopped < UPSTREAM_MS)
        look_again(a, stopped + UPSTREAM_MS);

    return began(a, s, ALERT_UPSTREAM, old || b->upstream_pending >= UPSTREAM_PENDING);
}

void alerts_see_bot(struct alerts *a, const struct alert_bot *b)
{
    struct subject *s = find(a, b->bot);
    const int64_t repeat = a->policy.repeat_ms;
    const struct alert_text t = {.bot = b, .oldest_ms = a->policy.oldest_ms, .quiet_ms = QUIET};
    bool paused = b->paused_intake || b->paused_deliver;

    s->seen = true;
    s->paused_at = !paused ? 0 : s->paused_at ? s->paused_at : a->now;
    /* what waits because a person paused it is no alert but a reminder */
    int64_t oldest = b->oldest_at && !b->paused_deliver ? b->oldest_at : 0;
    bool old = oldest && a->now - oldest >= a->policy.oldest_ms;
    int64_t intake = b->paused_intake ? 0 : b->intake_since;
    int64_t hold = b->intake_by_itself ? HOLD_INTAKE : HOLD_INTAKE_PERSON;
    int64_t upstream = upstream_began(a, s, b);
    const struct condition all[] = {
        {ALERT_OLDEST, {0, repeat, REST}, old ? oldest + a->policy.oldest_ms : 0, seconds_since(a, oldest)},
        {ALERT_BREAKER, {HOLD_BREAKER, repeat, REST}, b->breaker_since, seconds_since(a, b->breaker_since)},
        {ALERT_INTAKE, {hold, repeat, REST}, intake, seconds_since(a, intake)},
        {ALERT_UPSTREAM, {0, repeat, REST_SLOW}, upstream, b->upstream_pending},
        {ALERT_PAUSED, {a->policy.oldest_ms, REMIND, REST}, s->paused_at, seconds_since(a, s->paused_at)},
    };

    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        see(a, s, &all[i], &t);
    if (oldest && !old)
        look_again(a, oldest + a->policy.oldest_ms);
    see_count(a, s, ALERT_DEAD, &s->dead, a->policy.dead, b->dead, &t);
    see_count(a, s, ALERT_LEASE, &s->lease, 1, b->lease_expired, &t);
}

/* Its bot is in no section any more: what was told of it is taken back. */
static void forget(struct alerts *a, struct subject *s)
{
    const struct alert_text t = {.gone = true};

    for (enum alert_kind k = 0; k < ALERT_KINDS; k++) {
        const struct alert_counter *c = k == ALERT_DEAD ? &s->dead : k == ALERT_LEASE ? &s->lease : NULL;
        if (!s->watch[k].firing && !(c && c->firing))
            continue;
        struct alert out = make(s, k, ALERT_ENDS);
        out.since = c ? c->since : s->watch[k].since;
        alert_write_text(&out, &t, a->now);
        a->fn(a->arg, &out);
    }
    list_del(&s->link);
    free(s);
}

int64_t alerts_end(struct alerts *a, bool bots_seen)
{
    list_each(&a->bots, it)
        if (bots_seen && !subject_at(it)->seen)
            forget(a, subject_at(it));
    return a->next;
}

/* ---- outside of a look -------------------------------------------------------------------------- */

void alert_make_unstarted(struct alert *out, bool corrupt, const char *why, int64_t now)
{
    const struct alert_text t = {.store_why = why, .corruption_why = why, .at_start = true};

    *out = (struct alert){
        .kind = corrupt ? ALERT_CORRUPTION : ALERT_STORE, .over = !why, .value = 1, .since = now};
    alert_write_text(out, &t, now);
}

void alert_make_test(struct alert *out, int64_t now)
{
    const struct alert_text t = {.bot = NULL};

    *out = (struct alert){.kind = ALERT_TEST, .value = 1, .since = now};
    alert_write_text(out, &t, now);
}
