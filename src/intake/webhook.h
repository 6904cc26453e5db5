/* Intake by webhook, one object for all bots: requests at /hook/BOT are checked, put into the spool, and answered
 * 200 only when they are durable (design.md section 3; telegram.md, "Webhook"). The listener is the daemon's. */
#ifndef INTAKE_WEBHOOK_H
#define INTAKE_WEBHOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ip.h"
#include "core/config.h"
#include "core/standing.h"
#include "net/http_server.h"
#include "spool/spool.h"

#define WEBHOOK_SECRET_MAX 256      /* bytes */
#define WEBHOOK_BODY_MAX (1u << 20) /* likewise; Telegram's updates have half of it at most */

struct webhook;

struct webhook *webhook_new(struct spool *sp);
void webhook_free(struct webhook *w);
/* The listener is about to be freed: answers that wait are not given. */
void webhook_cut(struct webhook *w);

struct webhook_bot {
    const char *name;
    const char *secret; /* NULL: none is asked for */
    struct spool_box *box;
};
/* The bots whose webhooks are taken from now on. All is copied but the boxes. */
void webhook_set_bots(struct webhook *w, const struct webhook_bot *bots, size_t n);
/* Who may send: telegram_only: Telegram's networks. trusted: proxies whose X-Forwarded-For is believed. */
void webhook_set_senders(struct webhook *w, bool telegram_only, const struct ip_nets *trusted);

/* What the listener hands over (http_head_fn and http_request_fn; arg: the struct webhook). */
void webhook_head(void *arg, struct http_exchange *x, const struct http_server_request *r);
void webhook_request(void *arg, struct http_exchange *x, const struct http_server_request *r);

/* Counts updates that should have come by now (core/gaps.h). To be called in every tick, before spool_commit.
 * Returns when it wants to be called again at the latest. */
int64_t webhook_tick(struct webhook *w, int64_t now);

/* Intake ends: what comes now gets a 503. Those under way are still answered. */
void webhook_stop(struct webhook *w);
bool webhook_idle(const struct webhook *w);
/* Whether no update of this box waits to be durable. */
bool webhook_rests(const struct webhook *w, const struct spool_box *box);

/* The updates of this box that were answered 200 since the start. */
uint64_t webhook_taken(struct webhook *w, const struct spool_box *box);

struct webhook_status {
    uint64_t answers[HOOK_ANSWERS]; /* by status, since the start */
    int64_t answered_at;            /* when the latest was taken; 0: none yet */
    const char *held;               /* why nothing is taken now, as a sentence; NULL: it is */
};
/* Returns false if this bot's webhooks are not taken here. */
bool webhook_status(struct webhook *w, const char *bot, struct webhook_status *out);

#endif
