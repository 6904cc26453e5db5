/* Queues of alerts. A destination that fails is told in the log when it starts to, and when it works again. */
#include "ops/alert_sender.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"
#include "core/backoff.h"
#include "net/loop.h"

#define RETRY_FIRST SECONDS(5)
#define RETRY_CAP MINUTES(2)

struct queued {
    struct list link;
    struct alert alert;
    int64_t at; /* when it was added */
};

struct alert_sender {
    struct loop *loop;
    struct alert_channel *channel;
    bool once;
    struct list queue; /* the oldest first; it is the one that is tried */
    size_t n;
    bool sending;
    bool failing;     /* told */
    unsigned dropped; /* since the latest success: the first one is told at once, the others with that */
    unsigned failures;
    struct timer retry;
    struct alert_result result;
};

static struct queued *first(const struct alert_sender *s)
{
    return list_empty(&s->queue) ? NULL : list_item(s->queue.next, struct queued, link);
}

static void drop(struct alert_sender *s, struct queued *q)
{
    list_del(&q->link);
    s->n--;
    free(q);
}

/* Those that were tried for too long. */
static void drop_old(struct alert_sender *s)
{
    struct queued *q;

    while ((q = first(s)) && loop_now(s->loop) - q->at >= ALERT_KEPT_MS) {
        log_warn(q->alert.bot[0] ? q->alert.bot : NULL,
                 "an alert (%s) is given up for alerts.%s, which fails for too long; to try it, run: tgspool "
                 "alert-test",
                 alert_name(q->alert.kind), s->channel->name);
        drop(s, q);
    }
}

static void send_first(struct alert_sender *s)
{
    if (s->sending || s->retry.deadline != TIME_NEVER)
        return;
    drop_old(s);
    if (!first(s))
        return;
    s->sending = true;
    s->channel->send(s->channel, &first(s)->alert);
}

static void on_retry(void *arg)
{
    struct alert_sender *s = arg;

    timer_stop(&s->retry);
    send_first(s);
}

static void tell(struct alert_sender *s, bool ok, const char *sentence)
{
    if (s->once || ok != s->failing)
        return;
    s->failing = !ok;
    if (ok)
        log_info(NULL, "alerts.%s works again", s->channel->name);
    else
        log_warn(NULL, "alerts.%s fails: %s; it is tried again, to try it by hand, run: tgspool alert-test",
                 s->channel->name, sentence);
}

void alert_sender_tried(struct alert_sender *s, bool ok, int64_t after_ms, const char *sentence)
{
    s->sending = false;
    s->result.ended = true;
    s->result.delivered = ok;
    snprintf(s->result.why, sizeof(s->result.why), "%s", ok ? "" : sentence);
    tell(s, ok, sentence);
    if (ok && s->dropped) {
        log_warn(NULL, "%u alerts were dropped for alerts.%s; to look, run: tgspool status", s->dropped,
                 s->channel->name);
        s->dropped = 0;
    }
    if (ok || s->once) {
        s->failures = 0;
        if (first(s))
            drop(s, first(s));
    } else {
        int64_t wait =
            backoff_wait(RETRY_FIRST, RETRY_CAP, ++s->failures, (uint32_t)random_below(UINT64_C(1) << 32));
        if (after_ms > ALERT_KEPT_MS)
            after_ms = ALERT_KEPT_MS;
        timer_set(&s->retry, loop_now(s->loop) + (after_ms > wait ? after_ms : wait));
    }
    send_first(s);
}

/* One that waits to be told once more is told as it is now. The one under way stays. */
static void drop_older_telling(struct alert_sender *s, const struct alert *a)
{
    list_each(&s->queue, it) {
        struct queued *q = list_item(it, struct queued, link);
        bool under_way = s->sending && q == first(s);
        if (!under_way && !a->over && !q->alert.over && q->alert.kind == a->kind &&
            text_same(q->alert.bot, a->bot))
            drop(s, q);
    }
}

static void drop_oldest(struct alert_sender *s)
{
    struct list *it = s->queue.next;

    if (s->sending)
        it = it->next;
    if (s->dropped++ == 0)
        log_warn(
            NULL,
            "too many alerts wait for alerts.%s: the oldest is dropped; to try it, run: tgspool alert-test",
            s->channel->name);
    drop(s, list_item(it, struct queued, link));
}

static void enqueue(struct alert_sender *s, const struct alert *a, int64_t at)
{
    drop_older_telling(s, a);
    if (s->n >= ALERT_QUEUE_MAX)
        drop_oldest(s);
    struct queued *q = xcalloc(1, sizeof(*q));
    q->alert = *a;
    q->at = at;
    list_add_tail(&s->queue, &q->link);
    s->n++;
}

void alert_sender_add(struct alert_sender *s, const struct alert *a)
{
    enqueue(s, a, loop_now(s->loop));
    send_first(s);
}

void alert_sender_take(struct alert_sender *s, struct alert_sender *before)
{
    while (first(before)) {
        enqueue(s, &first(before)->alert, first(before)->at);
        drop(before, first(before));
    }
    send_first(s);
}

bool alert_sender_idle(const struct alert_sender *s)
{
    return s->n == 0;
}

void alert_sender_result(const struct alert_sender *s, struct alert_result *out)
{
    *out = s->result;
    out->name = s->channel->name;
}

struct alert_sender *alert_sender_new(struct loop *l, struct alert_channel *c, bool once)
{
    struct alert_sender *s = xcalloc(1, sizeof(*s));

    s->loop = l;
    s->channel = c;
    s->once = once;
    c->sender = s;
    list_init(&s->queue);
    timer_init(&s->retry, l, on_retry, s);
    return s;
}

void alert_sender_free(struct alert_sender *s)
{
    if (!s)
        return;
    s->channel->free(s->channel);
    timer_stop(&s->retry);
    while (first(s))
        drop(s, first(s));
    free(s);
}
