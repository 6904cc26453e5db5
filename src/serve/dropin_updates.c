/* getUpdates out of the spool. A request becomes an ask, which each tick looks after: first what it discards, then what
 * it is given, or it waits. What is given is shown when it is written; an ask whose client leaves is forgotten. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/kinds.h"
#include "net/loop.h"
#include "serve/dropin_answer.h"
#include "serve/dropin_bot.h"
#include "spool/spool.h"

#define LIMIT_MAX 100
#define TIMEOUT_MAX_S 50
#define ANSWER_BYTES (4u << 20) /* of payload in one answer, as Telegram's */
#define SMALL 4096
#define FUTURE 10 /* an offset so far above what was given is no confirmation */
#define WARNED_MAX 64
/* For room, while other answers are not read. */
#define ROOM_WAIT SECONDS(5)
#define ROOM_LOOK 100
#define RIVAL_EVERY MINUTES(10)

static const char conflict[] =
    "Conflict: terminated by other getUpdates request; make sure that only one bot "
    "instance is running";
static const char conflict_webhook[] = "Conflict: can't use getUpdates method while webhook is active; use "
                                       "deleteWebhook to delete the webhook first";
static const char store_fails[] = "Internal Server Error: tgspool's store does not write now";
static const char crowded[] = "Service Unavailable: too many programs do not read their updates; try again";
static const char stopping[] = "Bad Gateway: tgspool is stopping";

struct ask {
    struct list link; /* in bot->asks */
    struct dropin_bot *bot;
    struct http_exchange *x;
    unsigned limit;
    int64_t deadline;
    int64_t room_by; /* until when it waits for room for its answer; 0: it does not */
    bool dropping;   /* all but the last `keep` are still to be discarded */
    uint64_t keep;
    bool only_drop; /* then answer "true" with a description */
    const char *description;
    char who[DROPIN_WHO_MAX];
    char *token;  /* by which it came; NULL: it needs none any more */
    bool changed; /* something in the open batch must be durable before the answer */
    bool again;   /* what it does not want filled the batch: there may be more behind it */
    bool held;    /* the answer waits for the commit */
    int status;
    struct buf answer;
};

/* ---- the ask's life ----------------------------------------------------------------------------- */

static void ask_free(struct ask *a)
{
    spool_forget(a->bot->of->spool, a);
    if (a->bot->waiting == a)
        a->bot->waiting = NULL;
    list_del(&a->link);
    if (a->token)
        explicit_bzero(a->token, strlen(a->token));
    free(a->token);
    buf_free(&a->answer);
    free(a);
}

static void ask_fail(struct ask *a, int code, const char *description)
{
    http_on_gone(a->x, NULL, NULL);
    dropin_reply_error(a->x, code, description);
    ask_free(a);
}

static void ask_answer(struct ask *a)
{
    http_on_gone(a->x, NULL, NULL);
    (void)FAILPOINT("dropin.before_answer");
    http_reply(a->x, a->status, NULL, -1, buf_slice(&a->answer));
    (void)FAILPOINT("dropin.after_answer");
    ask_free(a);
}

static void on_written(void *arg, bool ok)
{
    struct ask *a = arg;

    if (ok)
        ask_answer(a);
    else
        ask_fail(a, 500, store_fails);
}

static void ask_hold(struct ask *a)
{
    a->held = true;
    if (a->bot->waiting == a)
        a->bot->waiting = NULL;
    if (a->changed)
        spool_on_durable(a->bot->of->spool, on_written, a);
    else
        spool_on_written(a->bot->of->spool, on_written, a);
}

/* The client went away: what was handed out for it is handed out to the next. */
static void on_gone(void *arg)
{
    struct ask *a = arg;

    if (!a->only_drop)
        consumer_starts(&a->bot->consumer);
    ask_free(a);
}

static struct ask *ask_new(struct dropin_bot *b, struct http_exchange *x, const char *who)
{
    struct ask *a = xcalloc(1, sizeof(*a));

    a->bot = b;
    a->x = x;
    a->status = 200;
    strncpy(a->who, who, sizeof(a->who) - 1);
    list_add_tail(&b->asks, &a->link);
    http_on_gone(x, on_gone, a);
    return a;
}

/* ---- giving ------------------------------------------------------------------------------------- */

static bool wanted(void *arg, const char *kind)
{
    return dropin_filter_wants(arg, kind);
}

static void write_updates(struct ask *a, struct served *served, unsigned n)
{
    struct buf *out = &a->answer;

    buf_add_str(out, "{\"ok\":true,\"result\":[");
    for (unsigned i = 0; i < n; i++) {
        const struct event *ev = &served[i].ev;
        if (i)
            buf_add_str(out, ",\n");
        if (ev->kind[0] && ev->has_update_id && ev->update_id == served[i].served_id)
            buf_add_slice(out, ev->payload);
        else
            dropin_update(out, ev->payload, served[i].served_id);
        buf_free(&served[i].record);
    }
    buf_add_str(out, "]}");
}

/* An answer is large, so that there is one at a time for a bot between here and its connection, and none where no room
 * is for it there. */
static bool has_room(const struct ask *a)
{
    list_each(&a->bot->asks, it) {
        const struct ask *other = list_item(it, struct ask, link);
        if (other->held && other->answer.n > SMALL)
            return false;
    }
    return http_has_room(a->x);
}

static bool is_anything_there(const struct ask *a)
{
    struct spool_box_status st;

    spool_box_status(a->bot->box, &st);
    return st.counts.pending + st.counts.processing > 0;
}

static void wait_for_room(struct ask *a)
{
    int64_t now = loop_now(a->bot->of->loop);

    if (!a->room_by)
        a->room_by = now + ROOM_WAIT;
    else if (now >= a->room_by)
        ask_fail(a, 503, crowded);
}

/* Returns whether there was something. */
static bool give(struct ask *a)
{
    struct dropin_bot *b = a->bot;

    struct served *served = xcalloc(a->limit, sizeof(*served));
    unsigned n = spool_serve(b->box, a->limit, ANSWER_BYTES, wanted, &b->filter, served);
    if (n)
        write_updates(a, served, n);
    a->again = !n && spool_batch_full(b->of->spool);
    free(served);
    return n > 0;
}

/* Two instances can go on telling each other off for days; the log hears of it now and then. */
static void warn_of_rival(struct dropin_bot *b)
{
    int64_t now = loop_now(b->of->loop);

    if (b->rival_told_at && now - b->rival_told_at < RIVAL_EVERY)
        return;
    b->rival_told_at = now;
    log_warn(b->name, "a second program asks for its updates, one poll ends with 409; stop one of them");
}

/* Of two who wait, the older one is told off, as by Telegram. */
static void ask_wait(struct ask *a)
{
    struct ask *older = a->bot->waiting;

    if (older && older != a) {
        warn_of_rival(a->bot);
        ask_fail(older, 409, conflict);
    }
    a->bot->waiting = a;
}

static void ask_step(struct ask *a)
{
    struct dropin *d = a->bot->of;

    a->again = false;
    if (!spool_healthy(d->spool, NULL)) {
        ask_fail(a, 500, store_fails);
        return;
    }
    if (a->dropping) {
        a->changed = true;
        if (spool_batch_full(d->spool))
            return;
        a->dropping = !spool_serve_drop(a->bot->box, a->keep, a->who);
        if (a->dropping)
            return;
    }
    bool there = !d->stopping && !a->only_drop && is_anything_there(a), room = !there || has_room(a);
    if (room)
        a->room_by = 0;
    if (a->only_drop) {
        dropin_result(&a->answer, "true", a->description);
        ask_hold(a);
    } else if (!room) {
        wait_for_room(a);
    } else if (there && give(a)) {
        ask_hold(a);
    } else if (a->again) {
        a->changed = true;
    } else if (a->deadline > loop_now(d->loop)) {
        ask_wait(a);
    } else {
        write_updates(a, NULL, 0);
        ask_hold(a);
    }
}

void updates_tick(struct dropin_bot *b)
{
    struct list now;

    /* An ask may end another, so the list is not walked but emptied into itself. */
    list_init(&now);
    while (!list_empty(&b->asks)) {
        struct list *it = b->asks.next;
        list_del(it);
        list_add_tail(&now, it);
    }
    while (!list_empty(&now)) {
        struct ask *a = list_item(now.next, struct ask, link);
        list_del(&a->link);
        list_add_tail(&b->asks, &a->link);
        if (!a->held)
            ask_step(a);
    }
}

int64_t updates_next_deadline(const struct dropin_bot *b)
{
    int64_t first = TIME_NEVER;
    int64_t go_on =
        spool_batch_full(b->of->spool) ? TIME_NEVER : 0; /* else the spool's own deadline comes first */

    list_each(&b->asks, it) {
        const struct ask *a = list_item(it, struct ask, link);
        int64_t at = a->held ? TIME_NEVER : a->dropping || a->again ? go_on : a->deadline;
        if (!a->held && a->room_by)
            at = loop_now(b->of->loop) + ROOM_LOOK;
        if (at < first)
            first = at;
    }
    return first;
}

void updates_end(struct dropin_bot *b, bool held_too, int code, const char *description)
{
    list_each(&b->asks, it) {
        struct ask *a = list_item(it, struct ask, link);
        if (a->held && !held_too)
            continue;
        if (code) {
            ask_fail(a, code, description);
        } else {
            http_on_gone(a->x, NULL, NULL);
            ask_free(a);
        }
    }
}

void updates_check_tokens(struct dropin_bot *b)
{
    list_each(&b->asks, it) {
        struct ask *a = list_item(it, struct ask, link);
        if (!a->held && a->token && !dropin_is_name(b, slice_str(a->token)))
            ask_fail(a, 401, "Unauthorized");
    }
}

/* ---- asking ------------------------------------------------------------------------------------- */

static bool is_asked_for(const struct bot_config *c, const char *kind)
{
    for (size_t i = 0; i < c->n_allowed_updates; i++)
        if (!strcmp(c->allowed_updates[i], kind))
            return true;
    return false;
}

/* A kind that never comes is told once. */
static void warn_of(struct dropin_bot *b, const char *kind)
{
    for (size_t i = 0; i < b->n_warned; i++)
        if (!strcmp(b->warned[i], kind))
            return;
    if (b->n_warned == WARNED_MAX)
        return;
    b->warned = xrealloc(b->warned, (b->n_warned + 1) * sizeof(*b->warned));
    b->warned[b->n_warned++] = xstrdup(kind);
    log_warn(b->name, "its program wants %s, which intake does not ask for; add it to allowed_updates", kind);
}

void updates_remember_kinds(struct dropin_bot *b, const struct dropin_args *a)
{
    struct buf text = BUF_EMPTY;

    if (dropin_arg(a, "allowed_updates", &text) && dropin_filter_set(&b->filter, buf_slice(&text)) &&
        b->config->intake != INTAKE_NONE)
        for (size_t i = 0; i < b->filter.n; i++)
            if (kind_find(slice_str(b->filter.kinds[i])) && !is_asked_for(b->config, b->filter.kinds[i]))
                warn_of(b, b->filter.kinds[i]);
    buf_free(&text);
}

static void refuse_poll(struct dropin_bot *b, struct http_exchange *x)
{
    if (!b->warned_poll)
        log_warn(b->name,
                 "its program polls, but updates are delivered otherwise; set deliver: dropin for it");
    b->warned_poll = true;
    dropin_reply_error(x, 409, conflict_webhook);
}

/* What an offset confirms. Returns whether it was something. */
static bool confirm(struct dropin_bot *b, int64_t offset)
{
    if (offset <= 0 || offset > spool_last_served(b->box) + FUTURE)
        return false;
    (void)FAILPOINT("dropin.before_confirm");
    unsigned n = spool_serve_confirm(b->box, offset);
    (void)FAILPOINT("dropin.after_confirm");
    consumer_confirmed(&b->consumer, n);
    return n > 0;
}

void updates_get(struct dropin_bot *b, struct http_exchange *x, const struct dropin_args *args,
                 const char *who)
{
    if (b->config->deliver != DELIVER_DROPIN) {
        refuse_poll(b, x);
        return;
    }
    int64_t now = loop_now(b->of->loop);
    int64_t offset = dropin_arg_int(args, "offset", 0, INT32_MIN, INT64_MAX);
    int64_t timeout_s = dropin_arg_int(args, "timeout", 0, 0, TIMEOUT_MAX_S);
    if (!spool_healthy(b->of->spool, NULL)) {
        dropin_reply_error(x, 500, store_fails);
        return;
    }
    consumer_polls(&b->consumer, offset, now);
    updates_remember_kinds(b, args);
    struct ask *a = ask_new(b, x, who);
    a->token = xstrndup(args->token.p, args->token.n);
    a->changed = confirm(b, offset);
    a->limit = (unsigned)dropin_arg_int(args, "limit", LIMIT_MAX, 1, LIMIT_MAX);
    a->deadline = now + SECONDS(timeout_s);
    a->dropping = offset < 0;
    a->keep = offset < 0 ? (uint64_t)-offset : 0;
    if (b->of->stopping) { /* it confirms, but takes no more; not at once again, as after an empty answer */
        a->status = 502;
        dropin_error(&a->answer, a->status, stopping);
        ask_hold(a);
    }
}

void updates_drop(struct dropin_bot *b, struct http_exchange *x, const char *description, const char *who)
{
    struct ask *a = ask_new(b, x, who);

    a->only_drop = true;
    a->dropping = true;
    a->description = description;
}
