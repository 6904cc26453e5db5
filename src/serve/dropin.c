/* Requests: whose token a path holds, and who answers. */
#include "serve/dropin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/loop.h"
#include "serve/dropin_answer.h"
#include "serve/dropin_bot.h"
#include "wire/event_json.h"
#include "wire/json.h"

#define each_bot(d, it) list_each(&(d)->bots, it)

static struct dropin_bot *bot_at(const struct list *link)
{
    return list_item(link, struct dropin_bot, link);
}

void dropin_reply(struct http_exchange *x, int status, struct buf *body)
{
    http_reply(x, status, NULL, -1, buf_slice(body));
    buf_free(body);
}

void dropin_reply_error(struct http_exchange *x, int code, const char *description)
{
    struct buf out = BUF_EMPTY;

    dropin_error(&out, code, description);
    http_reply(x, code, NULL, code == 503 ? 1 : -1, buf_slice(&out));
    buf_free(&out);
}

/* ---- requests ----------------------------------------------------------------------------------- */

bool dropin_is_name(const struct dropin_bot *b, struct slice token)
{
    bool own = slice_eq_secret(slice_str(b->token), token);
    bool alias = b->alias && slice_eq_secret(slice_str(b->alias), token);

    return own || alias;
}

/* All tokens are compared, each in constant time. */
static struct dropin_bot *find_bot(const struct dropin *d, struct slice token)
{
    struct dropin_bot *found = NULL;

    each_bot(d, it) {
        struct dropin_bot *b = bot_at(it);
        if (dropin_is_name(b, token))
            found = b;
    }
    return found;
}

/* The bot that a path is about, or NULL after an answer. dropin_target_free in both cases. */
static struct dropin_bot *bot_of(struct dropin *d, struct http_exchange *x,
                                 const struct http_server_request *r, struct dropin_target *t)
{
    if (dropin_target_parse(r->path, t) < 0) {
        dropin_reply_error(x, 404, "Not Found");
        return NULL;
    }
    struct dropin_bot *b = find_bot(d, buf_slice(&t->token));
    if (!b)
        dropin_reply_error(x, 401, "Unauthorized");
    return b;
}

static void pass_on(struct dropin_bot *b, struct http_exchange *x, const struct http_server_request *r,
                    const struct dropin_target *t)
{
    struct buf path = BUF_EMPTY;

    if (!strcasecmp(t->method, "getMe"))
        consumer_starts(&b->consumer);
    dropin_target_write(t, b->token, r->query, &path);
    upstream_relay(b->upstream, &b->of->relays, x, r, buf_str(&path));
    explicit_bzero(path.p, path.n);
    buf_free(&path);
}

void dropin_head(void *arg, struct http_exchange *x, const struct http_server_request *r)
{
    struct dropin_target t;
    struct dropin_bot *b = bot_of(arg, x, r, &t);

    if (b && !t.file && dropin_is_local(t.method))
        http_body_whole(x, DROPIN_BODY_MAX);
    else if (b)
        pass_on(b, x, r, &t);
    dropin_target_free(&t);
}

/* The body of a method that is answered here came. */
void dropin_request(void *arg, struct http_exchange *x, const struct http_server_request *r)
{
    struct dropin_target t;
    struct dropin_args a;
    struct dropin_bot *b = bot_of(arg, x, r, &t);
    char who[DROPIN_WHO_MAX];

    if (b && dropin_args_read(r->query, r->content_type, r->body, &a) < 0) {
        dropin_reply_error(x, 400, "Bad Request: the body is no JSON object");
        dropin_args_free(&a);
    } else if (b) {
        a.token = buf_slice(&t.token);
        snprintf(who, sizeof(who), "%s (dropin)", r->peer_text ? r->peer_text : "");
        dropin_answer_local(b, x, t.method, &a, who);
        dropin_args_free(&a);
    }
    dropin_target_free(&t);
}

/* ---- bots --------------------------------------------------------------------------------------- */

static void set_text(char **to, const char *text)
{
    free(*to);
    *to = text ? xstrdup(text) : NULL;
}

static void bot_free(struct dropin_bot *b)
{
    list_del(&b->link);
    dropin_filter_clear(&b->filter);
    for (size_t i = 0; i < b->n_warned; i++)
        free(b->warned[i]);
    free(b->warned);
    if (b->upstream)
        upstream_release(b->upstream);
    free(b->token);
    free(b->alias);
    free(b->set_url);
    free(b);
}

static struct dropin_bot *bot_by_id(const struct list *bots, int64_t bot_id)
{
    for (const struct list *it = bots->next; it != bots; it = it->next)
        if (bot_at(it)->bot_id == bot_id)
            return bot_at(it);
    return NULL;
}

static struct dropin_bot *bot_new(struct dropin *d, int64_t bot_id)
{
    struct dropin_bot *b = xcalloc(1, sizeof(*b));

    list_init(&b->link);
    list_init(&b->asks);
    b->of = d;
    b->bot_id = bot_id;
    return b;
}

static void bot_set(struct dropin_bot *b, const struct dropin_bot_options *o)
{
    snprintf(b->name, sizeof(b->name), "%s", o->config->name);
    b->config = o->config;
    b->box = o->box;
    set_text(&b->token, o->token);
    set_text(&b->alias, o->alias);
    b->upstream = upstream_get(b->of->loop, o, b->upstream);
    b->warned_poll = false;
    if (o->config->deliver != DELIVER_DROPIN)
        updates_end(b, false, 409, "Conflict: terminated by setWebhook request");
    updates_check_tokens(b);
}

void dropin_set_bots(struct dropin *d, const struct dropin_bot_options *bots, size_t n)
{
    struct list old;

    list_init(&old);
    each_bot(d, it) {
        list_del(it);
        list_add_tail(&old, it);
    }
    for (size_t i = 0; i < n; i++) {
        struct dropin_bot *b = bot_by_id(&old, bots[i].bot_id);
        if (!b)
            b = bot_new(d, bots[i].bot_id);
        list_del(&b->link);
        list_add_tail(&d->bots, &b->link);
        bot_set(b, &bots[i]);
    }
    list_each(&old, it) {
        updates_end(bot_at(it), true, 401, "Unauthorized");
        bot_free(bot_at(it));
    }
}

/* ---- as a whole --------------------------------------------------------------------------------- */

struct dropin *dropin_new(struct loop *l, struct spool *sp)
{
    struct dropin *d = xcalloc(1, sizeof(*d));

    d->loop = l;
    d->spool = sp;
    list_init(&d->bots);
    list_init(&d->relays);
    d->relays_at = TIME_NEVER;
    return d;
}

void dropin_cut(struct dropin *d)
{
    each_bot(d, it)
        updates_end(bot_at(it), true, 0, NULL);
    relays_cut(&d->relays);
}

void dropin_free(struct dropin *d)
{
    if (!d)
        return;
    each_bot(d, it)
        bot_free(bot_at(it));
    free(d);
}

void dropin_stop(struct dropin *d)
{
    d->stopping = true;
    each_bot(d, it)
        updates_end(bot_at(it), false, 502, "Bad Gateway: tgspool is stopping");
}

void dropin_tick(struct dropin *d)
{
    each_bot(d, it)
        updates_tick(bot_at(it));
    d->relays_at = relays_tick(&d->relays, loop_now(d->loop));
}

int64_t dropin_next_deadline(const struct dropin *d)
{
    int64_t first = d->relays_at;

    each_bot(d, it) {
        int64_t at = updates_next_deadline(bot_at(it));
        if (at < first)
            first = at;
    }
    return first;
}

void dropin_status(const struct dropin *d, const char *bot, struct json_out *j)
{
    const struct dropin_bot *b = NULL;

    each_bot(d, it)
        if (!strcmp(bot_at(it)->name, bot))
            b = bot_at(it);
    if (!b || b->config->deliver != DELIVER_DROPIN) {
        json_null(j);
        return;
    }
    json_object(j);
    json_kv_bool(j, "waiting", b->waiting != NULL);
    event_write_time(j, "seen_at", b->consumer.seen_at);
    event_write_time(j, "since", b->consumer.since);
    json_kv_uint(j, "confirmed", b->consumer.confirmed);
    event_write_time(j, "before_until", b->consumer.before_until);
    json_kv_uint(j, "confirmed_before", b->consumer.before);
    json_object_end(j);
}
