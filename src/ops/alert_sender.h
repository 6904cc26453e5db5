/* One destination of alerts: its queue, and trying again. How an alert gets there is its channel's business
 * (alert_command, alert_url, alert_telegram). No destination knows of another, and none needs the store. */
#ifndef OPS_ALERT_SENDER_H
#define OPS_ALERT_SENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/alert.h"

struct loop;
struct alert_sender;

/* A way to send, the first member of what each file makes of it. */
struct alert_channel {
    const char *name; /* of its option: "command", "url", "telegram" */
    /* Begins to send; one is under way at a time. Ends with alert_sender_tried, later or at once. */
    void (*send)(struct alert_channel *c, const struct alert *a);
    void (*free)(struct alert_channel *c); /* ends what is under way */
    struct alert_sender *sender;           /* set by alert_sender_new */
};

#define ALERT_QUEUE_MAX 64     /* beyond it the oldest is dropped */
#define ALERT_KEPT_MS HOURS(1) /* tried that long */

/* Takes the channel. once: each alert is tried once, and what came of it is kept for alert_sender_result. */
struct alert_sender *alert_sender_new(struct loop *l, struct alert_channel *c, bool once);
void alert_sender_free(struct alert_sender *s);
void alert_sender_add(struct alert_sender *s, const struct alert *a);
/* Gets what `before` has not sent, which is to be freed. */
void alert_sender_take(struct alert_sender *s, struct alert_sender *before);
bool alert_sender_idle(const struct alert_sender *s);

/* For channels: how a try ended. after_ms: asked to wait so long; -1: as usual. sentence: why it failed, without
 * secrets; not used if ok. */
void alert_sender_tried(struct alert_sender *s, bool ok, int64_t after_ms, const char *sentence);

struct alert_result {
    const char *name; /* of the channel */
    bool ended;       /* the try is over */
    bool delivered;
    char why[400]; /* it was not */
};
void alert_sender_result(const struct alert_sender *s, struct alert_result *out);

#endif
