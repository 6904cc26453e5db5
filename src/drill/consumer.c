/* Handlers within this process: what they do with an update, and the one that updates are POSTed to. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "drill/inside.h"
#include "wire/json.h"

void consumer_forget(struct drill *d)
{
    for (size_t i = 0; i < d->n_keys; i++)
        free(d->keys[i]);
    free(d->keys);
    d->keys = NULL;
    d->n_keys = 0;
}

/* Returns whether the key is new. */
static bool add_key(struct drill *d, struct slice key)
{
    for (size_t i = 0; i < d->n_keys; i++)
        if (slice_eq_str(key, d->keys[i]))
            return false;
    d->keys = xrealloc(d->keys, (d->n_keys + 1) * sizeof(*d->keys));
    d->keys[d->n_keys++] = xstrndup(key.p, key.n);
    return true;
}

bool consumer_act(struct drill *d, int64_t update_id, int64_t attempt, struct slice key)
{
    record_add(&d->record, DEED_START, update_id, attempt, 0);
    if (d->hold == HOLD_FIRST && attempt == 1)
        return false;
    if (add_key(d, key))
        record_add(&d->record, DEED_EFFECT, update_id, attempt, 0);
    record_add(&d->record, DEED_ACTED, update_id, attempt, 0);
    return d->hold != HOLD_END;
}

/* ---- deliver: http ------------------------------------------------------------------------------ */

/* One that is left unanswered ends with its connection: the daemon's lease is over, or the daemon. */
static void left(void *arg)
{
    (void)arg;
}

void consumer_post(void *arg, struct http_exchange *x, const struct http_server_request *r)
{
    struct drill *d = arg;
    struct json *update = json_parse(r->body, NULL);
    int64_t id = 0, attempt = 0, chat = 0;
    struct buf call = BUF_EMPTY;

    (void)json_to_i64(json_get(update, "update_id"), &id);
    (void)json_to_i64(json_get(json_get(json_get(update, "message"), "chat"), "id"), &chat);
    (void)text_to_i64(r->header(r, "X-Tgspool-Attempt"), 1, INT64_MAX, &attempt);
    json_free(update);
    if (!consumer_act(d, id, attempt, r->header(r, "Idempotency-Key"))) {
        http_on_gone(x, left, NULL);
        return;
    }
    record_add(&d->record, DEED_END, id, attempt, 0);
    if (d->calls)
        drill_add_call(&call, id, chat);
    http_reply(x, 200, NULL, -1, buf_slice(&call));
    buf_free(&call);
}

/* ---- who talks to the daemon in the check under way --------------------------------------------- */

void consumer_start(struct drill *d)
{
    if (d->o->bot->deliver == DELIVER_PULL && !d->pull)
        d->pull = pull_new(d);
    if (d->o->bot->deliver == DELIVER_DROPIN && !d->dropin)
        d->dropin = dropin_bot_new(d);
    if (drill_by_webhook(d) && !d->sender)
        d->sender = sender_new(d);
}

void consumer_stop(struct drill *d)
{
    pull_free(d->pull);
    dropin_bot_free(d->dropin);
    sender_free(d->sender);
    d->pull = NULL;
    d->dropin = NULL;
    d->sender = NULL;
}
