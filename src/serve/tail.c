/* The ring of happenings. Each has a number, from 1; a request asks for those after a number and waits if
 * there are none. */
#include "serve/tail.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "core/outcome.h"
#include "wire/event_json.h"

#define WAIT_MAX SECONDS(60)
#define LIMIT_DEFAULT 100

struct tail {
    struct api *api;
    struct list waiters;
    uint64_t last;                          /* number of the newest */
    struct spool_happening ring[TAIL_RING]; /* number n is at n % TAIL_RING */
};

struct waiter {
    struct list link;
    struct api_call *call;
    struct spool_box *box; /* NULL: all; else only this one's bot */
    uint64_t after;
    unsigned limit;
    int64_t deadline;
};

static void happened(void *arg, const struct spool_happening *h)
{
    struct tail *t = arg;

    t->ring[++t->last % TAIL_RING] = *h;
    if (t->api->hooks.happened)
        t->api->hooks.happened(t->api->hooks.happened_arg, h);
}

struct tail *tail_new(struct api *api)
{
    struct tail *t = xcalloc(1, sizeof(*t));

    t->api = api;
    list_init(&t->waiters);
    spool_watch(api->sp, happened, t);
    return t;
}

void tail_free(struct tail *t)
{
    spool_watch(t->api->sp, NULL, NULL);
    free(t);
}

static const char *happening_name(enum happening what)
{
    static const char *const names[] = {
        [HAPPENED_ACCEPTED] = "accepted",
        [HAPPENED_CLAIMED] = "claimed",
        [HAPPENED_DONE] = "done",
        [HAPPENED_RETRY] = "retry",
        [HAPPENED_DEAD] = "dead",
        [HAPPENED_RELEASED] = "released",
        [HAPPENED_BREAKER_OPEN] = "breaker open",
        [HAPPENED_BREAKER_CLOSED] = "breaker closed",
    };

    return names[what];
}

static bool concerns_event(enum happening what)
{
    return what != HAPPENED_BREAKER_OPEN && what != HAPPENED_BREAKER_CLOSED;
}

static void write_event(struct json_out *j, const struct spool_happening *h)
{
    struct event ev = {.seq = h->seq, .has_update_id = h->has_update_id, .update_id = h->update_id};
    struct buf id = BUF_EMPTY;
    char lane[LANE_TEXT_MAX];

    event_ref_text(&id, spool_box_bot(h->box), spool_box_which(h->box), &ev);
    json_kv_text(j, "id", buf_slice(&id));
    json_kv_uint(j, "seq", h->seq);
    json_kv_cstr(j, "kind", h->kind);
    struct lane copy = h->lane;
    json_kv_cstr(j, "lane", lane_text(copy, lane));
    if (h->what != HAPPENED_ACCEPTED)
        json_kv_uint(j, "attempt", h->attempt);
    if (h->what == HAPPENED_RETRY || h->what == HAPPENED_DEAD)
        json_kv_cstr(j, "outcome", outcome_name(h->outcome));
    if (h->what == HAPPENED_RETRY)
        event_write_time(j, "due", h->due);
    if (h->what == HAPPENED_DEAD)
        json_kv_cstr(j, "reason", reason_name(h->reason));
    buf_free(&id);
}

static void write_one(struct json_out *j, uint64_t number, const struct spool_happening *h)
{
    json_object(j);
    json_kv_uint(j, "number", number);
    event_write_time(j, "at", h->at);
    json_kv_cstr(j, "what", happening_name(h->what));
    json_kv_cstr(j, "bot", spool_box_bot(h->box));
    json_kv_cstr(j, "box", box_name(spool_box_which(h->box)));
    if (concerns_event(h->what))
        write_event(j, h);
    json_object_end(j);
}

static bool wanted(const struct waiter *w, const struct spool_happening *h)
{
    return !w->box || spool_box_bot_id(h->box) == spool_box_bot_id(w->box);
}

static uint64_t oldest_kept(const struct tail *t)
{
    return t->last > TAIL_RING ? t->last - TAIL_RING + 1 : 1;
}

/* Whether there is something for it; moves `after` over what is not. */
static bool has_news(const struct tail *t, struct waiter *w)
{
    if (w->after + 1 < oldest_kept(t))
        return true; /* that something was missed is news */
    while (w->after < t->last && !wanted(w, &t->ring[(w->after + 1) % TAIL_RING]))
        w->after++;
    return w->after < t->last;
}

static void answer(struct tail *t, struct waiter *w)
{
    struct buf out = BUF_EMPTY;
    struct json_out j;
    unsigned n = 0;
    uint64_t at = w->after, oldest = oldest_kept(t);
    uint64_t missed = at + 1 < oldest ? oldest - at - 1 : 0;

    at += missed;
    json_start(&j, &out);
    json_object(&j);
    json_key(&j, "events");
    json_array(&j);
    while (at < t->last && n < w->limit) {
        const struct spool_happening *h = &t->ring[++at % TAIL_RING];
        if (wanted(w, h)) {
            write_one(&j, at, h);
            n++;
        }
    }
    json_array_end(&j);
    json_kv_uint(&j, "missed", missed);
    json_kv_uint(&j, "next", at);
    json_object_end(&j);
    json_end(&j);
    api_answer(w->call, 200, buf_slice(&out)); /* frees w */
    buf_free(&out);
}

void tail_serve(struct tail *t)
{
    int64_t now = api_now(t->api);

    list_each(&t->waiters, it) {
        struct waiter *w = list_item(it, struct waiter, link);
        if (has_news(t, w) || w->deadline <= now)
            answer(t, w);
    }
}

int64_t tail_next_deadline(const struct tail *t)
{
    int64_t first = TIME_NEVER;

    list_each(&t->waiters, it) {
        struct waiter *w = list_item(it, struct waiter, link);
        if (has_news(t, w)) /* it happened in this tick's commit, after tail_serve */
            return 0;
        if (w->deadline < first)
            first = w->deadline;
    }
    return first;
}

static void drop_waiter(struct api_call *c)
{
    struct waiter *w = c->state;

    list_del(&w->link);
    free(w);
}

/* GET /v1/tail: without `after`, the newest ones at once. A number of an earlier run of the daemon starts
 * anew. */
void tail_get(struct api_call *c, const struct api_request *r, const struct params *p)
{
    struct tail *t = c->api->tail;
    struct waiter *w;
    struct param_error e;
    struct spool_box *box = NULL;
    int64_t after = -1, wait = 0, limit = LIMIT_DEFAULT;

    (void)r;
    if (params_get(p, "bot") && !(box = api_box_of(c, p, BOX_IN)))
        return;
    if (params_i64(p, "after", 0, INT64_MAX, &after, &e) < 0 ||
        params_ms(p, "wait", 0, WAIT_MAX, &wait, &e) < 0 ||
        params_i64(p, "limit", 1, TAIL_RING, &limit, &e) < 0) {
        api_fail_params(c, &e);
        return;
    }
    w = xcalloc(1, sizeof(*w));
    w->call = c;
    w->box = box;
    w->limit = (unsigned)limit;
    w->deadline = api_now(c->api) + (after < 0 ? 0 : wait);
    if (after < 0) {
        w->after = t->last > (uint64_t)limit ? t->last - (uint64_t)limit : 0;
        if (w->after + 1 < oldest_kept(t))
            w->after = oldest_kept(t) - 1;
    } else {
        w->after = (uint64_t)after > t->last ? 0 : (uint64_t)after;
    }
    list_add_tail(&t->waiters, &w->link);
    c->state = w;
    c->drop = drop_waiter;
}
