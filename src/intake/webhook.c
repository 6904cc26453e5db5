/* A request is judged in one order: sender, path, method, secret, then whether intake is open, then the body. So
 * nobody learns anything about bots, or about us, without the secret, nor makes us keep a body.
 *
 * The listener hands requests over in the order in which they were whole; each goes into the batch at once, so
 * their order in the spool is that order, whatever the connection. Telegram sends the updates of one chat one
 * after the other. */
#include "intake/webhook.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/gaps.h"
#include "core/update.h"
#include "wire/forwarded.h"

#define SECRET_HEADER "X-Telegram-Bot-Api-Secret-Token"
/* Retry-After of a 503, in seconds. */
#define AFTER_BATCH 1
#define AFTER_STORE 10
#define AFTER_STOP 5
#define AFTER_PAUSE 30
#define REFUSALS_LINE_GAP MINUTES(5)
/* Telegram's longest wait between two tries is 120 s: what has not come by then was dropped. */
#define GAP_WAIT MINUTES(10)

/* A text of bounded length in a field of fixed width, so that comparing takes the same time for all. */
struct padded {
    unsigned char b[WEBHOOK_SECRET_MAX + 2];
};

/* Refusals of one kind, told in few lines. */
struct refusals {
    uint64_t untold;
    int64_t next_line_at;
};

/* A bot whose webhooks are taken. */
struct hook {
    char name[BOT_NAME_MAX + 1];
    struct padded padded_name, secret;
    bool has_secret;
    struct spool_box *box;
    uint64_t answers[HOOK_ANSWERS];
    int64_t answered_at;
    struct gaps gaps;
    struct refusals by_secret;
};

/* An update in the batch; its answer waits for the sync. */
struct waiting {
    struct list link;
    struct webhook *webhook;
    struct http_exchange *http; /* NULL: the client went away */
    struct spool_box *box;
};

struct webhook {
    struct spool *spool;
    struct hook *hooks;
    size_t n_hooks;
    struct hook decoy; /* what is compared where the bot is unknown */
    bool telegram_only;
    struct ip_nets trusted;
    struct list waiting;
    bool stopping;
    struct refusals by_sender, by_body;
};

/* ---- life --------------------------------------------------------------------------------------- */

static struct padded pad(struct slice s)
{
    struct padded p = {{0}};
    size_t n = s.n < WEBHOOK_SECRET_MAX ? s.n : WEBHOOK_SECRET_MAX;

    if (n)
        memcpy(p.b, s.p, n);
    put_be16(p.b + WEBHOOK_SECRET_MAX, (uint16_t)(s.n < UINT16_MAX ? s.n : UINT16_MAX));
    return p;
}

static bool padded_eq(const struct padded *a, const struct padded *b)
{
    return slice_eq_secret(slice_make(a->b, sizeof(a->b)), slice_make(b->b, sizeof(b->b)));
}

struct webhook *webhook_new(struct spool *sp)
{
    struct webhook *w = xcalloc(1, sizeof(*w));

    w->spool = sp;
    w->decoy.has_secret = true;
    w->decoy.secret = pad(slice_str("")); /* an empty header is no secret: see is_allowed */
    list_init(&w->waiting);
    return w;
}

static void waiting_free(struct waiting *q)
{
    if (q->http)
        http_on_gone(q->http, NULL, NULL);
    spool_forget(q->webhook->spool, q);
    list_del(&q->link);
    free(q);
}

void webhook_cut(struct webhook *w)
{
    list_each(&w->waiting, it)
        waiting_free(list_item(it, struct waiting, link));
}

static void hooks_free(struct hook *hooks, size_t n)
{
    if (hooks)
        explicit_bzero(hooks, n * sizeof(*hooks));
    free(hooks);
}

void webhook_free(struct webhook *w)
{
    if (!w)
        return;
    webhook_cut(w);
    hooks_free(w->hooks, w->n_hooks);
    free(w);
}

static struct hook *hook_of_box(struct webhook *w, const struct spool_box *box)
{
    for (size_t i = 0; i < w->n_hooks; i++)
        if (w->hooks[i].box == box)
            return &w->hooks[i];
    return NULL;
}

void webhook_set_bots(struct webhook *w, const struct webhook_bot *bots, size_t n)
{
    struct hook *hooks = xcalloc(n ? n : 1, sizeof(*hooks));

    for (size_t i = 0; i < n; i++) {
        struct hook *h = &hooks[i];
        const struct hook *before = hook_of_box(w, bots[i].box);
        if (before)
            *h = *before;
        else
            spool_newest_update(bots[i].box, &h->gaps.next, &h->gaps.newest_at);
        snprintf(h->name, sizeof(h->name), "%s", bots[i].name);
        h->padded_name = pad(slice_str(h->name));
        h->has_secret = bots[i].secret != NULL;
        h->secret = pad(slice_str(bots[i].secret));
        h->box = bots[i].box;
    }
    hooks_free(w->hooks, w->n_hooks);
    w->hooks = hooks;
    w->n_hooks = n;
}

void webhook_set_senders(struct webhook *w, bool telegram_only, const struct ip_nets *trusted)
{
    w->telegram_only = telegram_only;
    w->trusted = *trusted;
}

void webhook_stop(struct webhook *w)
{
    w->stopping = true;
}

bool webhook_idle(const struct webhook *w)
{
    return list_empty(&w->waiting);
}

bool webhook_rests(const struct webhook *w, const struct spool_box *box)
{
    for (const struct list *it = w->waiting.next; it != &w->waiting; it = it->next)
        if (list_item(it, const struct waiting, link)->box == box)
            return false;
    return true;
}

/* ---- who may send ------------------------------------------------------------------------------- */

/* The networks of api.telegram.org (https://core.telegram.org/bots/webhooks). */
static bool is_telegram(const struct ip_addr *a)
{
    static const char *const texts[] = {"149.154.160.0/20", "91.108.4.0/22"};
    struct ip_net net;

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (ip_net_parse(slice_str(texts[i]), &net) && ip_net_has(&net, a))
            return true;
    return false;
}

/* One line for the first refusal of a kind, then one in a while with their number. */
static void tell_refusal(struct refusals *r, const char *bot, const char *what)
{
    int64_t now = clock_boot_ms();

    r->untold++;
    if (now < r->next_line_at)
        return;
    if (r->untold == 1)
        log_warn(bot, "%s", what);
    else
        log_warn(bot, "%llu times since the last such line: %s", (unsigned long long)r->untold, what);
    r->untold = 0;
    r->next_line_at = now + REFUSALS_LINE_GAP;
}

/* Who sent it, through whatever proxies are trusted. */
static bool client_of(const struct webhook *w, const struct http_server_request *r, struct ip_addr *client)
{
    struct buf hops = BUF_EMPTY;

    for (size_t i = 0; i < r->n_fields; i++) {
        if (!slice_eq_nocase(r->fields[i].name, "X-Forwarded-For"))
            continue;
        if (hops.n)
            buf_add_char(&hops, ',');
        buf_add_slice(&hops, r->fields[i].value);
    }
    bool ok = forwarded_client(&r->peer_ip, buf_slice(&hops), &w->trusted, client);
    buf_free(&hops);
    return ok;
}

static bool may_send(struct webhook *w, const struct http_server_request *r)
{
    struct ip_addr client;
    struct ip_net shown = {.prefix = 128};
    char what[400], address[IP_TEXT_MAX] = "an address that cannot be read";

    if (!w->telegram_only)
        return true;
    bool read = client_of(w, r, &client);
    if (read && is_telegram(&client))
        return true;
    shown.addr = client;
    if (read)
        ip_net_text(&shown, address);
    snprintf(what, sizeof(what),
             "refused a webhook from %s, which is not Telegram's: behind a proxy, name it in "
             "listen.trusted_proxy; else set listen.telegram_only: false",
             address);
    tell_refusal(&w->by_sender, NULL, what);
    return false;
}

/* ---- whose it is -------------------------------------------------------------------------------- */

/* The bot of that name, or the decoy; every bot is looked at, so that the time tells nothing. */
static struct hook *find_hook(struct webhook *w, struct slice name)
{
    struct padded wanted = pad(name);
    struct hook *found = &w->decoy;

    for (size_t i = 0; i < w->n_hooks; i++)
        if (padded_eq(&w->hooks[i].padded_name, &wanted))
            found = &w->hooks[i];
    return found;
}

/* Whether a request has the bot's secret. Of an unknown bot it never has. */
static bool is_allowed(const struct hook *h, const struct http_server_request *r)
{
    struct padded given = pad(r->header(r, SECRET_HEADER));
    bool same = padded_eq(&given, &h->secret);

    return h->box && (same || !h->has_secret);
}

/* ---- answers ------------------------------------------------------------------------------------ */

/* h may be NULL: the bot is gone meanwhile. */
static void reply_later(struct hook *h, struct http_exchange *x, int after_s, const char *message)
{
    char body[400];

    int n =
        snprintf(body, sizeof(body), "{\"error\":{\"code\":\"unavailable\",\"message\":\"%s\"}}", message);
    if (h)
        h->answers[HOOK_503]++;
    http_reply(x, 503, NULL, after_s, slice_make(body, (size_t)n));
}

/* Why nothing is taken for a bot now; NULL if it is. after_s: when to come again. */
static const char *held_by(struct webhook *w, const struct hook *h, int *after_s)
{
    struct spool_box_status st;

    if (w->stopping) {
        *after_s = AFTER_STOP;
        return "tgspool is ending";
    }
    if (!spool_healthy(w->spool, NULL)) {
        *after_s = AFTER_STORE;
        return "the store does not write";
    }
    if (spool_held(w->spool)) {
        *after_s = AFTER_PAUSE;
        return "there is no room for more on the disk";
    }
    spool_box_status(h->box, &st);
    if (st.paused_intake) {
        *after_s = AFTER_PAUSE;
        return "intake is paused";
    }
    if (spool_batch_full(w->spool)) {
        *after_s = AFTER_BATCH;
        return "too much comes at once";
    }
    return NULL;
}

static void gone(void *arg)
{
    struct waiting *q = arg;

    q->http = NULL; /* stays until the sync: the update is in the batch all the same */
}

/* The batch with the update is durable, or lost: then Telegram sends it again. */
static void synced(void *arg, bool ok)
{
    struct waiting *q = arg;
    struct http_exchange *x = q->http;
    struct hook *h = hook_of_box(q->webhook, q->box);

    if (ok)
        (void)FAILPOINT("webhook.before_answer");
    if (h && ok) {
        h->answers[HOOK_200]++;
        h->answered_at = clock_now();
    }
    q->http = NULL;
    if (x)
        http_on_gone(x, NULL, NULL);
    list_del(&q->link);
    free(q);
    if (!x)
        return;
    if (!ok) {
        reply_later(h, x, AFTER_STORE, "the store did not write");
        return;
    }
    http_reply(x, 200, NULL, -1, slice_make(NULL, 0));
    (void)FAILPOINT("webhook.after_answer");
}

static void take(struct webhook *w, struct hook *h, struct http_exchange *x, const struct update *u)
{
    (void)FAILPOINT("webhook.before_accept");
    enum accepted got = spool_accept(h->box, u, false, NULL);
    (void)FAILPOINT("webhook.after_accept");

    if (got == ACCEPTED_FAILED) {
        reply_later(h, x, AFTER_STORE, "the store does not write");
        return;
    }
    if (u->has_id)
        gaps_seen(&h->gaps, u->id, got == ACCEPTED_NEW, clock_now());
    if (got == ACCEPTED_NEW && !u->has_id)
        log_warn(h->name, "an update without update_id is dead: bytes=%zu; next: tgspool list --state dead",
                 u->bytes.n);
    /* also for a duplicate: the first of it may stand in this very batch */
    struct waiting *q = xcalloc(1, sizeof(*q));
    q->webhook = w;
    q->http = x;
    q->box = h->box;
    list_add_tail(&w->waiting, &q->link);
    http_on_gone(x, gone, q);
    spool_on_durable(w->spool, synced, q);
}

/* ---- a request ---------------------------------------------------------------------------------- */

static void refuse_secret(struct hook *h, struct http_exchange *x)
{
    char what[200];

    if (h->box) {
        h->answers[HOOK_401]++;
        snprintf(what, sizeof(what),
                 "refused a webhook with a wrong secret; if Telegram sent it, its secret is an old one: run "
                 "tgspool webhook set %s",
                 h->name);
        tell_refusal(&h->by_secret, h->name, what);
    } else {
        tell_refusal(&h->by_secret, NULL, "refused a webhook for a bot that takes none");
    }
    http_reply_error(x, 401, "unauthorized", "no such bot, or a wrong secret");
}

static void refuse_body(struct webhook *w, struct hook *h, struct http_exchange *x)
{
    h->answers[HOOK_400]++;
    tell_refusal(&w->by_body, h->name, "refused a webhook whose body is not a JSON object");
    http_reply_error(x, 400, "bad_request", "the body is not an update: one JSON object");
}

/* Judges a request by its head. Returns the bot it is for; NULL: it was refused, and is answered. */
static struct hook *judge(struct webhook *w, struct http_exchange *x, const struct http_server_request *r)
{
    static const char prefix[] = "/hook/";
    const size_t n = sizeof(prefix) - 1;
    int after_s = 0;

    if (!may_send(w, r)) {
        http_reply_error(x, 403, "forbidden", "webhooks are taken from Telegram only");
        return NULL;
    }
    if (r->path.n <= n || memcmp(r->path.p, prefix, n) != 0) {
        http_reply_error(x, 404, "not_found", "there is nothing at this path");
        return NULL;
    }
    if (!slice_eq_str(r->method, "POST")) {
        http_reply_error(x, 405, "method", "this path is asked by POST");
        return NULL;
    }
    struct hook *h = find_hook(w, slice_make(r->path.p + n, r->path.n - n));
    if (!is_allowed(h, r)) {
        refuse_secret(h, x);
        return NULL;
    }
    const char *held = held_by(w, h, &after_s);
    if (held)
        reply_later(h, x, after_s, held);
    return held ? NULL : h;
}

void webhook_head(void *arg, struct http_exchange *x, const struct http_server_request *r)
{
    if (judge(arg, x, r))
        http_body_whole(x, WEBHOOK_BODY_MAX);
}

void webhook_request(void *arg, struct http_exchange *x, const struct http_server_request *r)
{
    struct webhook *w = arg;
    struct hook *h = judge(w, x, r); /* once more: a body may take its time, and things change */
    struct update u;

    if (!h)
        return;
    if (update_parse(r->body, &u) < 0)
        refuse_body(w, h, x);
    else
        take(w, h, x, &u);
}

/* ---- gaps --------------------------------------------------------------------------------------- */

/* Updates of one bot that should have come by now. */
static void count_gaps(struct webhook *w, struct hook *h, int64_t now)
{
    int after_s;

    if (held_by(w, h, &after_s)) {
        gaps_wait_anew(&h->gaps, now); /* nothing can come */
        return;
    }
    int64_t missing = gaps_ripe(&h->gaps, GAP_WAIT, now);
    if (!missing || !spool_count_gap(h->box, missing))
        return;
    log_warn(
        h->name,
        "updates missing: %lld; Telegram dropped them, as it keeps most for 24 hours; next: tgspool status",
        (long long)missing);
}

int64_t webhook_tick(struct webhook *w, int64_t now)
{
    int64_t deadline = TIME_NEVER;

    for (size_t i = 0; i < w->n_hooks; i++) {
        struct hook *h = &w->hooks[i];
        if (!gaps_oldest(&h->gaps) && !h->gaps.crowded_out)
            continue;
        count_gaps(w, h, now);
        int64_t oldest = gaps_oldest(&h->gaps);
        if (oldest && oldest + GAP_WAIT < deadline)
            deadline = oldest + GAP_WAIT;
    }
    return deadline;
}

uint64_t webhook_taken(struct webhook *w, const struct spool_box *box)
{
    const struct hook *h = hook_of_box(w, box);
    return h ? h->answers[HOOK_200] : 0;
}

bool webhook_status(struct webhook *w, const char *bot, struct webhook_status *out)
{
    int after_s;
    struct hook *h = find_hook(w, slice_str(bot));

    if (!h->box)
        return false;
    *out = (struct webhook_status){
        .answered_at = h->answered_at,
        .held = held_by(w, h, &after_s),
    };
    memcpy(out->answers, h->answers, sizeof(out->answers));
    return true;
}
