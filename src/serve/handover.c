/* Handovers: a list of those under way, each moved on in every tick, and the calls that wait for them. Nothing of
 * it is stored but the pause of intake: after a restart, asking again does the rest again, which harms nothing. */
#include "serve/handover.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "core/backoff.h"

#define WAIT_MAX SECONDS(60)
#define RETRY_FIRST SECONDS(2)
#define RETRY_CAP SECONDS(60)

enum handover_state { DRAINING, TELLING, DONE };

struct handover {
    struct list link;
    struct handovers *of;
    struct spool_box *box;
    enum handover_state state;
    bool paused; /* durably */
    bool lost;   /* the pause was not written: once more */
    void *given; /* what tells Telegram; NULL: not now */
    int64_t retry_at;
    unsigned failures;
    char trouble[400]; /* why telling failed; "" if it did not */
    /* when DONE */
    bool had_webhook, kinds_known;
    struct buf kinds; /* as JSON */
};

struct waiter {
    struct list link;
    struct api_call *call;
    struct spool_box *box;
    int64_t deadline;
};

struct handovers {
    struct api *api;
    struct list all, waiters;
};

/* ---- life --------------------------------------------------------------------------------------- */

struct handovers *handovers_new(struct api *api)
{
    struct handovers *h = xcalloc(1, sizeof(*h));

    h->api = api;
    list_init(&h->all);
    list_init(&h->waiters);
    return h;
}

static void end(struct handover *h)
{
    spool_forget(h->of->api->sp, h);
    if (h->given)
        h->of->api->hooks.give_back_end(h->given);
    buf_free(&h->kinds);
    list_del(&h->link);
    free(h);
}

void handovers_free(struct handovers *h)
{
    list_each(&h->all, it)
        end(list_item(it, struct handover, link));
    free(h);
}

static struct handover *find(struct handovers *all, const struct spool_box *box)
{
    for (struct list *it = all->all.next; it != &all->all; it = it->next) {
        struct handover *h = list_item(it, struct handover, link);
        if (h->box == box)
            return h;
    }
    return NULL;
}

/* ---- going on ----------------------------------------------------------------------------------- */

static void pause_written(void *arg, bool ok)
{
    struct handover *h = arg;

    h->paused = ok;
    h->lost = !ok;
}

static void pause_intake(struct handover *h)
{
    h->lost = false;
    spool_pause(h->box, true, true);
    spool_on_durable(h->of->api->sp, pause_written, h);
}

static void keep_kinds(struct handover *h, const struct given_back *r)
{
    struct json_out j;

    buf_clear(&h->kinds);
    json_start(&j, &h->kinds);
    if (!r->kinds_known) {
        json_null(&j);
    } else if (!r->kinds) {
        json_cstr(&j, "default");
    } else {
        json_array(&j);
        for (size_t i = 0; i < r->n_kinds; i++)
            json_cstr(&j, r->kinds[i]);
        json_array_end(&j);
    }
    json_end(&j);
}

static void fail(struct handover *h, const char *sentence)
{
    int64_t wait =
        backoff_wait(RETRY_FIRST, RETRY_CAP, ++h->failures, (uint32_t)random_below(UINT64_C(1) << 32));

    snprintf(h->trouble, sizeof(h->trouble), "%s", sentence);
    h->retry_at = api_now(h->of->api) + wait;
}

/* Telegram was told, or could not be. */
static void told(void *arg, const struct given_back *r)
{
    struct handover *h = arg;

    if (r->ok) {
        h->state = DONE;
        h->trouble[0] = '\0';
        h->had_webhook = r->had_webhook;
        h->kinds_known = r->kinds_known;
        keep_kinds(h, r);
        log_info(spool_box_bot(h->box), "handed over: Telegram knows what was taken; the old bot can start");
    } else {
        fail(h, r->sentence);
    }
    h->of->api->hooks.give_back_end(h->given);
    h->given = NULL;
}

static void tell(struct handover *h)
{
    const struct api_hooks *hooks = &h->of->api->hooks;
    char why[256] = "";

    if (h->given || api_now(h->of->api) < h->retry_at)
        return;
    if (!spool_healthy(h->of->api->sp, NULL)) { /* the offset to tell cannot be read */
        fail(h, "the store does not write");
        return;
    }
    h->given = hooks->give_back(hooks->arg, spool_box_bot(h->box), told, h, why);
    if (!h->given)
        fail(h, why);
}

/* Whether nothing is left to wait for but Telegram. While the store fails, nobody knows what is left. */
static bool is_drained(const struct handover *h, const struct spool_box_status *st)
{
    const struct api_hooks *hooks = &h->of->api->hooks;

    return h->paused && spool_healthy(h->of->api->sp, NULL) && !st->counts.pending &&
           !st->counts.processing && hooks->intake_rests(hooks->arg, spool_box_bot(h->box));
}

static void go_on(struct handover *h)
{
    struct spool_box_status st;

    if (!h->paused) {
        if (h->lost && spool_healthy(h->of->api->sp, NULL))
            pause_intake(h);
        return;
    }
    spool_box_status(h->box, &st);
    if (!st.paused_intake || st.orphan) {
        log_info(spool_box_bot(h->box), st.orphan ? "the handover ends: the bot left the config"
                                                  : "the handover ends: intake was resumed");
        end(h);
        return;
    }
    if (h->state == DRAINING && is_drained(h, &st))
        h->state = TELLING;
    if (h->state == TELLING)
        tell(h);
}

/* Whether a tick's commit, after handovers_serve, let it go on. */
static bool can_go_on(const struct handover *h)
{
    struct spool_box_status st;

    if (!h->paused)
        return h->lost && spool_healthy(h->of->api->sp, NULL);
    spool_box_status(h->box, &st);
    return !st.paused_intake || (h->state == DRAINING && is_drained(h, &st));
}

/* ---- answering ---------------------------------------------------------------------------------- */

static void write_message(struct json_out *j, const struct handover *h, const struct spool_box_status *st,
                          const char *bot)
{
    char text[640] = "";
    uint64_t left = st->counts.pending + st->counts.processing;

    if (!h)
        snprintf(text, sizeof(text), "no handover is under way; to begin one, run: tgspool handover %s", bot);
    else if (h->state == DONE)
        snprintf(text, sizeof(text), "the old bot can start%s",
                 h->had_webhook ? "; it had a webhook, which it must set again" : "");
    else if (h->state == TELLING)
        snprintf(text, sizeof(text), "all is handled; Telegram is being told%s",
                 h->trouble[0] ? ", which failed and is tried again" : "");
    else if (left && st->paused_deliver)
        snprintf(text, sizeof(text),
                 "%" PRIu64 " updates are unfinished, and deliveries are paused; to let them go on, run: "
                 "tgspool resume %s deliver",
                 left, bot);
    else
        snprintf(text, sizeof(text), "intake has stopped; %" PRIu64 " updates are unfinished", left);
    json_kv_cstr(j, "message", text);
}

static void write_handover(struct json_out *j, struct handovers *all, struct spool_box *box)
{
    static const char *const names[] = {"draining", "telling", "done"};
    const struct handover *h = find(all, box);
    const char *bot = spool_box_bot(box);
    struct spool_box *out = spool_find_box(all->api->sp, bot, BOX_OUT);
    struct spool_box_status st, calls = {.orphan = false};

    spool_box_status(box, &st);
    if (out)
        spool_box_status(out, &calls);
    json_object(j);
    json_kv_cstr(j, "bot", bot);
    json_kv_cstr(j, "state", h ? names[h->state] : "none");
    json_kv_uint(j, "pending", st.counts.pending);
    json_kv_uint(j, "processing", st.counts.processing);
    json_kv_uint(j, "calls", calls.counts.pending + calls.counts.processing);
    json_kv_cstr(j, "deliver", st.paused_deliver ? "paused" : "running");
    api_write_breaker(j, &st.breaker);
    json_kv_cstr(j, "trouble", h && h->trouble[0] ? h->trouble : NULL);
    json_key(j, "had_webhook");
    if (h && h->state == DONE && h->kinds_known)
        json_bool(j, h->had_webhook);
    else
        json_null(j);
    json_key(j, "allowed_updates");
    if (h && h->state == DONE)
        json_raw(j, buf_slice(&h->kinds));
    else
        json_null(j);
    write_message(j, h, &st, bot);
    json_object_end(j);
}

static void answer(struct handovers *all, struct api_call *c, struct spool_box *box)
{
    struct buf out = BUF_EMPTY;
    struct json_out j;

    json_start(&j, &out);
    write_handover(&j, all, box);
    json_end(&j);
    api_answer(c, 200, buf_slice(&out));
    buf_free(&out);
}

/* Whether there is nothing more to wait for. */
static bool is_over(struct handovers *all, struct spool_box *box)
{
    const struct handover *h = find(all, box);
    return !h || h->state == DONE;
}

void handovers_serve(struct handovers *all)
{
    int64_t now = api_now(all->api);

    list_each(&all->all, it)
        go_on(list_item(it, struct handover, link));
    list_each(&all->waiters, it) {
        struct waiter *w = list_item(it, struct waiter, link);
        if (is_over(all, w->box) || w->deadline <= now)
            answer(all, w->call, w->box); /* frees w */
    }
}

int64_t handovers_next_deadline(const struct handovers *all)
{
    int64_t first = TIME_NEVER;

    for (struct list *it = all->all.next; it != &all->all; it = it->next) {
        const struct handover *h = list_item(it, struct handover, link);
        if (can_go_on(h))
            return 0;
        if (h->state == TELLING && !h->given && h->retry_at < first)
            first = h->retry_at;
    }
    for (struct list *it = all->waiters.next; it != &all->waiters; it = it->next) {
        const struct waiter *w = list_item(it, struct waiter, link);
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

/* Answers now, or when it is over or the time is up. */
static void answer_later(struct api_call *c, struct spool_box *box, int64_t wait)
{
    struct handovers *all = c->api->handovers;

    if (is_over(all, box) || wait == 0) {
        answer(all, c, box);
        return;
    }
    struct waiter *w = xcalloc(1, sizeof(*w));
    w->call = c;
    w->box = box;
    w->deadline = api_now(c->api) + wait;
    list_add_tail(&all->waiters, &w->link);
    c->state = w;
    c->drop = drop_waiter;
}

static int read_wait(struct api_call *c, const struct params *p, int64_t *wait)
{
    struct param_error e;

    *wait = 0;
    if (params_ms(p, "wait", 0, WAIT_MAX, wait, &e) == 0)
        return 0;
    api_fail_params(c, &e);
    return -1;
}

void handover_get(struct api_call *c, const struct api_request *r, const struct params *p)
{
    struct spool_box *box = api_path_box(c, r, BOX_IN);
    int64_t wait;

    if (box && read_wait(c, p, &wait) == 0)
        answer_later(c, box, wait);
}

void handover_post(struct api_call *c, const struct api_request *r, const struct params *p)
{
    struct handovers *all = c->api->handovers;
    struct spool_box *box = api_path_box(c, r, BOX_IN);
    struct spool_box_status st;
    int64_t wait;

    if (!box || read_wait(c, p, &wait) < 0)
        return;
    spool_box_status(box, &st);
    if (!all->api->hooks.give_back || st.orphan) {
        api_fail(c, 409, "not_running",
                 st.orphan ? "the bot is in no section of the config"
                           : "a handover needs the daemon: start it, then ask again");
        return;
    }
    if (!spool_healthy(all->api->sp, NULL)) {
        api_fail_store(c);
        return;
    }
    if (!find(all, box)) {
        struct handover *h = xcalloc(1, sizeof(*h));
        h->of = all;
        h->box = box;
        list_add_tail(&all->all, &h->link);
        log_info(spool_box_bot(box), "a handover begins (%s): intake stops, handlers may finish", c->who);
        pause_intake(h);
    }
    answer_later(c, box, wait);
}
