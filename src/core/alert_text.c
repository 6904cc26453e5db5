/* One function for each alert that holds, and a table of sentences for those that are over. */
#include "core/alert_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"

static void say(struct alert *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct alert *a, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(a->message, sizeof(a->message), fmt, ap);
    va_end(ap);
}

static void next(struct alert *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void next(struct alert *a, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(a->next, sizeof(a->next), fmt, ap);
    va_end(ap);
}

/* "1 update", "3 updates" */
#define COUNTED(n, word) (n), (n) == 1 ? word : word "s"

static void oldest(struct alert *a, const struct alert_text *t, int64_t now)
{
    const struct alert_bot *b = t->bot;
    char age[32];

    text_age(now - b->oldest_at, age);
    if (b->oldest_is_call)
        say(a, "the oldest unfinished call to Telegram waits for %s; %" PRIu64 " unfinished in all", age,
            b->unfinished);
    else
        say(a, "the oldest unfinished update waits for %s; %" PRIu64 " unfinished in all", age,
            b->unfinished);
    next(a, "tgspool list --bot %s --state pending,processing", a->bot);
}

static void dead(struct alert *a, const struct alert_text *t, int64_t now)
{
    (void)t;
    (void)now;
    say(a, "%" PRId64 " %s died: given up after all tries, or refused; %s kept for you to look at and replay",
        COUNTED(a->value, "event"), a->value == 1 ? "it is" : "they are");
    next(a, "tgspool list --bot %s --state dead", a->bot);
}

static void lease(struct alert *a, const struct alert_text *t, int64_t now)
{
    (void)t;
    (void)now;
    say(a, "%" PRId64 " %s ran out: whoever took the update was too slow or has died; it is handed out again",
        COUNTED(a->value, "lease"));
    next(a, "tgspool status");
}

static void intake(struct alert *a, const struct alert_text *t, int64_t now)
{
    const struct alert_bot *b = t->bot;
    char age[32];

    say(a, "no updates are taken for %s: %s", text_age(now - b->intake_since, age),
        b->intake_why && *b->intake_why ? b->intake_why : "Telegram cannot be reached");
    next(a, "tgspool status");
}

static void upstream(struct alert *a, const struct alert_text *t, int64_t now)
{
    int64_t n = t->bot->upstream_pending;

    (void)now;
    if (n >= 0)
        say(a,
            "%" PRId64
            " updates wait at Telegram, which keeps 100000, and each for 24 hours: beyond that it drops "
            "them",
            n);
    else
        say(a, "updates wait at Telegram, which drops them when they are 24 hours old");
    next(a, "tgspool status");
}

static void breaker(struct alert *a, const struct alert_text *t, int64_t now)
{
    static const char *const causes[] = {
        [BREAKER_NONE] = "fails",
        [BREAKER_UNAVAILABLE] = "cannot be reached or started",
        [BREAKER_LIMITED] = "asks for a pause",
        [BREAKER_FAILURES] = "fails on everything",
    };
    const struct alert_bot *b = t->bot;
    char age[32];

    say(a, "%s %s, for %s now; %" PRIu64 " %s, and cost no tries",
        b->breaker_of_calls ? "Telegram's API" : "the handler", causes[b->breaker_cause],
        text_age(now - b->breaker_since, age), b->unfinished,
        b->unfinished == 1 ? "event waits" : "events wait");
    next(a, "tgspool status");
}

static void paused(struct alert *a, const struct alert_text *t, int64_t now)
{
    const struct alert_bot *b = t->bot;
    const char *what = b->paused_intake && b->paused_deliver ? "intake and delivery are"
                       : b->paused_intake                    ? "intake is"
                                                             : "delivery is";
    char age[32];

    text_age(now - a->since, age);
    if (b->paused_intake)
        say(a, "%s paused for at least %s, by a person; Telegram drops what waits there for 24 hours", what,
            age);
    else
        say(a, "%s paused for at least %s, by a person; %" PRIu64 " unfinished", what, age, b->unfinished);
    next(a, "tgspool resume %s", a->bot);
}

static void disk(struct alert *a, const struct alert_text *t, int64_t now)
{
    (void)now;
    say(a, "%s", t->disk_why);
    next(a, "tgspool status");
}

static void store(struct alert *a, const struct alert_text *t, int64_t now)
{
    (void)now;
    if (t->at_start)
        say(a, "tgspool does not start, the store cannot be opened: %s", t->store_why);
    else
        say(a, "the store fails, intake and deliveries stand still: %s", t->store_why);
    next(a, t->at_start ? "tgspool check" : "tgspool status");
}

static void corruption(struct alert *a, const struct alert_text *t, int64_t now)
{
    (void)now;
    say(a, "%sthe store is damaged: %s", t->at_start ? "tgspool does not start, " : "", t->corruption_why);
    next(a, "tgspool verify");
}

static void test(struct alert *a, const struct alert_text *t, int64_t now)
{
    (void)t;
    (void)now;
    say(a, "this is a test: alerts of tgspool arrive here");
    next(a, "tgspool status");
}

/* ---- what is over ------------------------------------------------------------------------------- */

static void over(struct alert *a, const struct alert_text *t)
{
    static const char *const sentences[ALERT_KINDS] = {
        [ALERT_INTAKE] = "updates are taken again",
        [ALERT_DISK] = "there is enough space again, and all is written",
        [ALERT_STORE] = "the store works again",
        [ALERT_CORRUPTION] = "the store is sound again",
        [ALERT_UPSTREAM] = "what waits at Telegram is far from its limits again",
        [ALERT_BREAKER] = "the handler works again",
        [ALERT_PAUSED] = "nothing is paused any more",
    };
    char time[32];

    next(a, "tgspool status");
    if (t->gone)
        say(a, "the bot is in no section of the config any more");
    else if (a->kind == ALERT_OLDEST)
        say(a, "no event waits for %s any more%s", text_age(t->oldest_ms, time),
            t->bot->paused_deliver ? " that is not paused" : "");
    else if (a->kind == ALERT_DEAD)
        say(a, "none died for %s; there were %" PRId64 " in all, and they are still to be looked at",
            text_age(t->quiet_ms, time), a->value);
    else if (a->kind == ALERT_LEASE)
        say(a, "no lease ran out for %s; there were %" PRId64 " in all", text_age(t->quiet_ms, time),
            a->value);
    else
        say(a, "%s", sentences[a->kind]);
    if (a->kind == ALERT_DEAD && !t->gone)
        next(a, "tgspool list --bot %s --state dead", a->bot);
}

void alert_write_text(struct alert *a, const struct alert_text *t, int64_t now)
{
    static void (*const writers[ALERT_KINDS])(struct alert *, const struct alert_text *, int64_t) = {
        [ALERT_OLDEST] = oldest,         [ALERT_DEAD] = dead,         [ALERT_LEASE] = lease,
        [ALERT_INTAKE] = intake,         [ALERT_DISK] = disk,         [ALERT_STORE] = store,
        [ALERT_CORRUPTION] = corruption, [ALERT_UPSTREAM] = upstream, [ALERT_BREAKER] = breaker,
        [ALERT_PAUSED] = paused,         [ALERT_TEST] = test,
    };

    if (a->over)
        over(a, t);
    else
        writers[a->kind](a, t, now);
}
