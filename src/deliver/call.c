/* call: the deliverer of a box out. A call is sent to the Bot API as it came, by its method, with body and content type.
 * Telegram has no idempotency: once a call was written whole and no answer came, nobody knows whether it was done. It is
 * then tried again, and the error says "maybe sent"; a call that says `once` is not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/mem.h"
#include "deliver/slot.h"
#include "net/loop.h"
#include "telegram/botapi.h"
#include "wire/call.h"

#define PAUSE_UNKNOWN_MS SECONDS(5) /* a 429 that names no time */

struct sender {
    struct slot *slot;
    struct botapi *api;
};

/* ---- what an answer means: design.md section 12 ------------------------------------------------- */

/* Nobody knows whether it was done. */
static enum outcome_kind maybe_sent(const struct event *ev, struct buf *error)
{
    buf_add_str(error, ev->once ? "; maybe sent, not repeated" : "; maybe sent");
    return ev->once ? OUTCOME_REJECTED : OUTCOME_RETRY;
}

/* Telegram does not know the token. The file may hold another one by now. */
static enum outcome_kind token_refused(struct sender *d, struct buf *error)
{
    if (slot_reread_token(d->slot))
        buf_add_str(error, "; its file holds another one by now, which is tried");
    return OUTCOME_UNAVAILABLE;
}

/* No answer of the Bot API's own came. */
static enum outcome_kind outcome_of_trouble(const struct botapi_reply *r, const struct event *ev,
                                            struct buf *error)
{
    switch (r->fail) {
    case HTTP_OK:
        break;
    case HTTP_RESOLVE:
    case HTTP_REFUSED:
    case HTTP_PROXY:
    case HTTP_TLS:
        return OUTCOME_UNAVAILABLE;
    default:
        return r->sent ? maybe_sent(ev, error) : OUTCOME_UNAVAILABLE;
    }
    if (r->status == 413) /* of a proxy on the way, and it will say so for ever */
        return OUTCOME_REJECTED;
    return ev->once ? maybe_sent(ev, error) : OUTCOME_UNAVAILABLE;
}

static enum outcome_kind outcome_of(struct sender *d, const struct botapi_reply *r, int64_t *after_ms,
                                    struct buf *error)
{
    const struct event *ev = &slot_claim(d->slot)->ev;

    buf_add_str(error, r->sentence);
    switch (r->class) {
    case BOTAPI_OK:
        return OUTCOME_DONE;
    case BOTAPI_LIMITED:
        *after_ms = r->retry_after_s >= 0 ? SECONDS(r->retry_after_s) : PAUSE_UNKNOWN_MS;
        return OUTCOME_LIMITED;
    case BOTAPI_UNAUTHORIZED:
        return token_refused(d, error);
    case BOTAPI_NOT_FOUND:
        if (!strstr(r->description, "method"))
            return token_refused(d, error);
        buf_clear(error);
        buf_printf(error, "the Bot API has no method %s", ev->kind);
        return OUTCOME_REJECTED;
    case BOTAPI_MIGRATED:
        buf_printf(error, "; the group has a new chat id now: %lld; use that one",
                   (long long)r->migrate_to_chat_id);
        return OUTCOME_REJECTED;
    case BOTAPI_CONFLICT:
    case BOTAPI_REJECTED:
        return OUTCOME_REJECTED;
    case BOTAPI_TRANSIENT:
        break;
    }
    return outcome_of_trouble(r, ev, error);
}

static void on_reply(void *arg, struct botapi_reply *r)
{
    struct sender *d = arg;
    struct buf error = BUF_EMPTY;
    int64_t after_ms = -1;
    enum outcome_kind kind = outcome_of(d, r, &after_ms, &error);

    slot_end(d->slot, kind, after_ms, buf_slice(&error));
    buf_free(&error);
}

/* ---- a try -------------------------------------------------------------------------------------- */

/* Why it cannot be sent at all; an import may have brought anything. NULL: it can. */
static const char *why_not(const struct claim *c)
{
    const struct event *ev = &c->ev;

    if (!call_is_method(slice_str(ev->kind)))
        return "this is no name of a method";
    if (call_is_forbidden(slice_str(ev->kind))) /* one that was replayed */
        return "this method is not sent";
    for (const char *p = ev->content_type; *p; p++)
        if (*p < 0x20 || *p == 0x7f)
            return "this is no content type";
    if (ev->once && c->interrupted)
        return "it was being sent when tgspool was stopped; maybe sent, not repeated";
    return NULL;
}

static void start_call(void *work)
{
    struct sender *d = work;
    const struct claim *claim = slot_claim(d->slot);
    const struct event *ev = &claim->ev;
    const char *why = why_not(claim);

    if (why) {
        slot_end(d->slot, OUTCOME_REJECTED, -1, slice_str(why));
        return;
    }
    botapi_set_token(d->api, slot_config(d->slot)->token);
    if (ev->once) /* on an idle connection that is being closed a request is sent twice */
        botapi_drop_connection(d->api);
    int64_t left = claim->deadline - loop_now(slot_loop(d->slot));
    (void)FAILPOINT("call.before_request");
    botapi_call(d->api, ev->kind, ev->content_type[0] ? ev->content_type : "application/json", ev->payload,
                left > 0 ? left : 1, on_reply, d);
    (void)FAILPOINT("call.after_request");
}

static void cancel_call(void *work, enum outcome_kind as)
{
    struct sender *d = work;

    botapi_cancel(d->api);
    slot_end(d->slot, as, -1, slice_str("the request was ended; maybe sent"));
}

static void stop_call(void *work)
{
    struct sender *d = work;

    botapi_drop_connection(d->api);
}

static bool quiet_call(void *work)
{
    const struct sender *d = work;

    return !botapi_busy(d->api);
}

static void free_call(void *work)
{
    struct sender *d = work;

    botapi_free(d->api);
    free(d);
}

static void *new_call(struct slot *s, struct err *e)
{
    const struct deliver_config *c = slot_config(s);
    const struct botapi_options o = {
        .api_root = c->api_root,
        .token = c->token,
        .ca_file = c->ca_file,
        .proxy_url = c->proxy_url,
        .ip = c->ip,
    };
    struct sender *d = xcalloc(1, sizeof(*d));

    d->slot = s;
    d->api = botapi_new(slot_loop(s), &o, e);
    if (d->api)
        return d;
    free(d);
    return NULL;
}

const struct deliverer deliverer_call = {"call",      false,     new_call,   start_call,
                                         cancel_call, stop_call, quiet_call, free_call};
