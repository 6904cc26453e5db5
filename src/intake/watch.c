/* One question every five minutes, or every half minute while the webhook is not as it should be: a person may be
 * setting it right, and is told soon that it is. An update that came by it is a sign that it was, which is
 * looked into at once. Where polls fail there is a question every minute: who polls well knows without it that little
 * waits.
 * The reply's callback only notes what came; the rest is done in watch_tick. What the answer says
 * is told when it changes. */
#include "intake/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"
#include "core/backoff.h"
#include "intake/before.h"
#include "telegram/botapi.h"
#include "wire/url.h"

#define EVERY MINUTES(5)
#define EVERY_WRONG SECONDS(30)
#define WAKE_GAP MINUTES(1)
#define POLLS_FIRST MINUTES(1) /* where polls go well, they shall have begun */
#define RETRY_FIRST SECONDS(5)
#define DEADLINE SECONDS(30)
#define ERROR_LINE_GAP_S 600 /* Telegram's errors repeat while deliveries fail */

struct watch {
    struct spool_box *box;
    struct botapi *api;
    char bot[BOT_NAME_MAX + 1];
    char *url;                   /* of webhook_url; NULL: a person sets another */
    bool polls;                  /* updates come by polls: only what waits is of interest */
    bool begun, failing;         /* of polls */
    int64_t next_at;             /* 0: at once */
    uint64_t taken, taken_asked; /* updates that came by the webhook: by now, and when it was last asked */
    int64_t woken_at;            /* by them, or by polls that fail; 0: not yet */
    bool answered;               /* what follows waits for the tick */
    enum botapi_class class;
    int64_t retry_after_s;
    char sentence[400];
    bool has_news;
    struct webhook_info news;
    struct webhook_info info; /* of the latest good answer */
    enum watch_found found;
    char advice[512];
    int64_t wrong_since;
    int64_t asked_at;
    int64_t told_error_at; /* Unix seconds, of the latest failed delivery that was told */
    int64_t trouble_since; /* Telegram cannot be asked; 0: it can */
    unsigned tries;
    char trouble[400];
};

static const char *const found_names[] = {"unknown", "set", "not set", "removed", "taken"};

const char *watch_found_name(enum watch_found f)
{
    return found_names[f];
}

struct watch *watch_new(const struct watch_options *o, struct err *e)
{
    struct botapi_options ao = {
        .api_root = o->bot->api_root,
        .token = o->token,
        .ca_file = o->bot->ca_file,
        .proxy_url = o->proxy_url,
        .ip = o->bot->ip,
    };
    struct botapi *api = botapi_new(o->loop, &ao, e);

    if (!api)
        return NULL;
    struct watch *w = xcalloc(1, sizeof(*w));
    w->box = o->box;
    w->api = api;
    snprintf(w->bot, sizeof(w->bot), "%s", o->bot->name);
    w->url = o->bot->webhook_url ? xstrdup(o->bot->webhook_url) : NULL;
    w->polls = o->bot->intake == INTAKE_POLL;
    return w;
}

void watch_free(struct watch *w)
{
    if (!w)
        return;
    botapi_free(w->api);
    webhook_info_free(&w->news);
    webhook_info_free(&w->info);
    free(w->url);
    free(w);
}

void watch_set_token(struct watch *w, const char *token)
{
    if (botapi_set_token(w->api, token))
        w->next_at = 0;
}

/* ---- what the answer says ----------------------------------------------------------------------- */

/* The server's name in a URL; the rest of it may be a secret. */
static void url_host(const char *url, char out[256])
{
    struct err ignored = ERR_NONE;
    struct url u;

    snprintf(out, 256, "somewhere else");
    if (url_parse(url, &u, &ignored))
        return;
    snprintf(out, 256, "%s", u.host ? u.host : "somewhere else");
    url_free(&u);
}

static enum watch_found judge(const struct watch *w, const struct webhook_info *i)
{
    bool was_ours = w->found == WATCH_OURS || w->found == WATCH_REMOVED || w->found == WATCH_TAKEN;

    if (!i->url[0])
        return was_ours ? WATCH_REMOVED : WATCH_UNSET;
    return !w->url || !strcmp(w->url, i->url) ? WATCH_OURS : WATCH_TAKEN;
}

static void advise(struct watch *w, enum watch_found found, const struct webhook_info *i)
{
    char host[256];

    w->advice[0] = '\0';
    switch (found) {
    case WATCH_TAKEN:
        url_host(i->url, host);
        snprintf(
            w->advice, sizeof(w->advice),
            "the webhook leads to %.200s, not to webhook_url: another program has set it. To take it back, "
            "run: tgspool webhook set %s",
            host, w->bot);
        break;
    case WATCH_REMOVED:
        snprintf(w->advice, sizeof(w->advice),
                 "another program has removed the webhook, so Telegram sends nothing. To set it again, run: "
                 "tgspool webhook set %s",
                 w->bot);
        break;
    case WATCH_UNSET:
        snprintf(w->advice, sizeof(w->advice),
                 "no webhook is set, so Telegram sends nothing. To set it, run: tgspool webhook set %s",
                 w->bot);
        break;
    default:
        break;
    }
}

/* Says once what changed. */
static void tell(struct watch *w, enum watch_found found, const struct webhook_info *i)
{
    bool another_host = w->info.url && strcmp(w->info.url, i->url) != 0;

    if (found != w->found || (found == WATCH_TAKEN && another_host)) {
        if (w->advice[0])
            log_warn(w->bot, "%s", w->advice);
        else if (w->found != WATCH_UNKNOWN)
            log_info(w->bot, "the webhook is set and leads here");
    }
    if (i->last_error_at > w->told_error_at + ERROR_LINE_GAP_S &&
        i->last_error_at > w->asked_at / 1000 - ERROR_LINE_GAP_S) {
        log_warn(w->bot, "Telegram could not deliver to the webhook: %s", i->last_error);
        w->told_error_at = i->last_error_at;
    }
}

/* How the webhook stands by what came. */
static void look_at_webhook(struct watch *w, int64_t now)
{
    const struct webhook_info *i = &w->news;
    enum watch_found found = judge(w, i);

    if (found != WATCH_OURS || !w->url) /* what is ours already says nothing about the time before */
        before_keep(w->box, i);
    advise(w, found, i);
    tell(w, found, i);
    w->found = found;
    if (!w->advice[0])
        w->wrong_since = 0;
    else if (!w->wrong_since)
        w->wrong_since = now;
}

static void take_news(struct watch *w, int64_t now)
{
    w->asked_at = now;
    if (!w->polls)
        look_at_webhook(w, now);
    webhook_info_free(&w->info);
    w->info = w->news;
    w->news = (struct webhook_info){.url = NULL};
    w->has_news = false;
}

/* ---- asking ------------------------------------------------------------------------------------- */

static uint32_t dice(void)
{
    return (uint32_t)random_below(UINT64_C(1) << 32);
}

/* Nobody is to be woken by this: updates come all the same. */
static void note_trouble(struct watch *w, const char *sentence, int64_t now)
{
    if (!w->trouble_since) {
        w->trouble_since = now;
        if (!w->polls) /* else the poll tells */
            log_warn(w->bot, "Telegram cannot be asked about the webhook: %s", sentence);
    }
    w->tries++;
    snprintf(w->trouble, sizeof(w->trouble), "%s", sentence);
}

static void replied(void *arg, struct botapi_reply *r)
{
    struct watch *w = arg;

    w->answered = true;
    w->class = r->class;
    w->retry_after_s = r->retry_after_s;
    snprintf(w->sentence, sizeof(w->sentence), "%s", r->sentence);
    if (r->class == BOTAPI_OK) {
        webhook_info_free(&w->news);
        w->has_news = webhook_info_read(r->result, &w->news) == 0;
    }
}

static void take_answer(struct watch *w, int64_t now)
{
    int64_t wait = backoff_wait(EVERY, EVERY, 1, dice());

    w->answered = false;
    if (w->class == BOTAPI_OK) {
        if (w->trouble_since && !w->polls)
            log_info(w->bot, "Telegram can be asked about the webhook again");
        w->trouble_since = w->tries = 0;
        if (w->has_news)
            take_news(w, now);
        if (w->advice[0])
            wait = EVERY_WRONG;
    } else {
        note_trouble(w, w->sentence, now);
        if (w->class == BOTAPI_LIMITED && w->retry_after_s >= 0 && w->retry_after_s < HOURS(24) / 1000)
            wait = SECONDS(w->retry_after_s);
        else if (w->class == BOTAPI_TRANSIENT)
            wait = backoff_wait(RETRY_FIRST, EVERY, w->tries, dice());
    }
    w->next_at = now + wait;
}

void watch_taken(struct watch *w, uint64_t taken)
{
    w->taken = taken;
}

void watch_polls(struct watch *w, bool failing)
{
    w->failing = failing;
}

/* Whether updates come by a webhook that was not as it should be when last looked at, or polls fail. */
static bool has_reason(const struct watch *w)
{
    return !w->trouble_since && (w->polls ? w->failing : w->taken != w->taken_asked && w->advice[0]);
}

/* When that leads to a question. */
static int64_t wakes_at(const struct watch *w)
{
    if (!has_reason(w))
        return TIME_NEVER;
    return w->woken_at ? w->woken_at + WAKE_GAP : 0;
}

int64_t watch_tick(struct watch *w, int64_t now)
{
    if (w->answered)
        take_answer(w, now);
    if (botapi_busy(w->api))
        return TIME_NEVER;
    if (w->polls && !w->begun)
        w->next_at = now + POLLS_FIRST;
    w->begun = true;
    if (now < w->next_at) {
        if (now < wakes_at(w))
            return w->next_at < wakes_at(w) ? w->next_at : wakes_at(w);
        w->woken_at = now;
    }
    w->taken_asked = w->taken;
    botapi_get_webhook_info(w->api, DEADLINE, replied, w);
    return TIME_NEVER;
}

void watch_status(const struct watch *w, struct watch_status *out)
{
    *out = (struct watch_status){
        .found = w->found,
        .asked_at = w->asked_at,
        .wrong_since = w->wrong_since,
        .pending = w->info.pending,
        .last_error_at = w->info.last_error_at * 1000,
        .trouble_since = w->trouble_since,
        .refused = w->trouble_since && (w->class == BOTAPI_UNAUTHORIZED || w->class == BOTAPI_NOT_FOUND),
    };
    snprintf(out->advice, sizeof(out->advice), "%s", w->advice);
    snprintf(out->last_error, sizeof(out->last_error), "%s", w->info.last_error);
    snprintf(out->trouble, sizeof(out->trouble), "%s", w->trouble_since ? w->trouble : "");
}
