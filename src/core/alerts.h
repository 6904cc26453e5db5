/* Facts about the bots and the store in, alerts out. Pure: whoever gathers the facts also gives the time, and sends
 * what comes out. The texts of the alerts are made here, and nowhere else. */
#ifndef CORE_ALERTS_H
#define CORE_ALERTS_H

#include "core/alert.h"
#include "core/breaker.h"

/* What the section `alerts` of the config says. */
struct alert_policy {
    int64_t oldest_ms; /* an unfinished event of this age is told */
    uint64_t dead;     /* so many dead ones make an alert */
    int64_t repeat_ms;
};

/* How one bot stands, both of its boxes together. All times are milliseconds since 1970, 0: not so. Texts borrowed. */
struct alert_bot {
    const char *bot;
    int64_t oldest_at; /* arrival of the oldest unfinished event */
    bool oldest_is_call;
    uint64_t unfinished;
    uint64_t dead;          /* ever, but those that a person discarded */
    uint64_t lease_expired; /* ever */
    int64_t breaker_since;
    enum breaker_cause breaker_cause;
    bool breaker_of_calls;
    bool paused_intake, paused_deliver;
    int64_t intake_since;     /* no updates can be taken since then */
    bool intake_by_itself;    /* that may pass by itself: what does not is told sooner */
    int64_t held_since;       /* nothing new is taken for want of room */
    const char *intake_why;   /* a sentence, maybe with a command; NULL: none */
    int64_t upstream_pending; /* updates that wait at Telegram; -1: unknown */
};

/* How the spool as a whole stands. */
struct alert_spool {
    const char *store_why;      /* the store fails, or cannot be opened; NULL: it works */
    const char *corruption_why; /* it is damaged; NULL: not known to be */
    const char *disk_why;       /* too little space, max_db near, or no archive to be written; NULL: fine */
    int64_t disk_free;          /* bytes; -1: unknown */
};

/* Borrowed for the call. */
typedef void alert_fn(void *arg, const struct alert *a);

struct alerts;
struct alerts *alerts_new(const struct alert_policy *p, alert_fn *fn, void *arg);
void alerts_free(struct alerts *a);
void alerts_set_policy(struct alerts *a, const struct alert_policy *p);

/* One look at all: alerts_begin, alerts_see_spool, alerts_see_bot for each bot unless the store fails (it can say
 * nothing about them then), and alerts_end, which forgets bots that were not seen. fn is called inside. */
void alerts_begin(struct alerts *a, int64_t now);
void alerts_see_spool(struct alerts *a, const struct alert_spool *s);
void alerts_see_bot(struct alerts *a, const struct alert_bot *b);
/* bots_seen: all bots there are were shown. Returns when to look again if nothing changes; TIME_NEVER: no need. */
int64_t alerts_end(struct alerts *a, bool bots_seen);

/* The alerts that are made outside of a look: that the store cannot be opened (corrupt: because it is damaged), or,
 * with why NULL, that it can be again; and the one of alert-test. */
void alert_make_unstarted(struct alert *out, bool corrupt, const char *why, int64_t now);
void alert_make_test(struct alert *out, int64_t now);

#endif
