/* Alerts: what they are called, and when one is raised, told again and taken back. Pure: facts and time are given,
 * so that all of it is tested to the millisecond. What makes alerts out of the state of the bots is core/alerts.
 *
 * Two kinds of matter: a condition, which holds or does not (struct alert_watch), and things that happen, which are
 * counted (struct alert_counter). */
#ifndef CORE_ALERT_H
#define CORE_ALERT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "core/config.h"

enum alert_kind {
    ALERT_OLDEST,     /* an update waits for too long */
    ALERT_DEAD,       /* updates or calls died */
    ALERT_LEASE,      /* consumers or handlers did not answer in time */
    ALERT_INTAKE,     /* no updates are taken */
    ALERT_DISK,       /* too little space, max_db is near, or the archive fails */
    ALERT_STORE,      /* the store fails, or cannot be opened */
    ALERT_CORRUPTION, /* the store is damaged */
    ALERT_UPSTREAM,   /* Telegram is near to dropping updates that we have not fetched */
    ALERT_BREAKER,    /* a handler is down */
    ALERT_PAUSED,     /* a reminder: a person paused this */
    ALERT_TEST,       /* of `tgspool alert-test` */
    ALERT_KINDS
};
const char *alert_name(enum alert_kind kind);

/* One alert, ready to be sent. Its texts hold no payload, no handler's text and no secret. */
struct alert {
    enum alert_kind kind;
    char bot[BOT_NAME_MAX + 1]; /* "": all */
    bool over;
    int64_t value; /* what is measured: seconds, events or bytes; see doc/operations.md */
    int64_t since; /* when it began, milliseconds since 1970 */
    char message[512];
    char next[128]; /* the command to run */
};

enum alert_turn {
    ALERT_QUIET, /* nothing to say */
    ALERT_FIRES,
    ALERT_AGAIN, /* it still holds, and is told once more */
    ALERT_ENDS
};

/* ---- conditions --------------------------------------------------------------------------------- */

struct alert_rule {
    int64_t hold_ms;   /* it must hold that long before it is told */
    int64_t repeat_ms; /* from one telling to the next */
    int64_t rest_ms;   /* it must be gone that long before that is told */
};

/* One that comes back within this time of its end must be gone twice as long as before, up to the cap, before its
 * end is told: a condition that comes and goes sends few alerts. */
#define ALERT_FLAP_MS MINUTES(15)
#define ALERT_REST_CAP_MS MINUTES(10)

/* Zeroed at first. */
struct alert_watch {
    bool on, firing;
    int64_t since;     /* when it began, while it is on or firing */
    int64_t off_since; /* while it is firing and not on */
    int64_t told_at, over_at;
    unsigned flaps;
};

/* began: when the condition began to hold, 0: it does not. */
enum alert_turn alert_look(struct alert_watch *w, const struct alert_rule *r, int64_t began, int64_t now);
/* When to look again if nothing changes; TIME_NEVER: no need. */
int64_t alert_look_at(const struct alert_watch *w, const struct alert_rule *r);

/* ---- what is counted ---------------------------------------------------------------------------- */

struct alert_count_rule {
    uint64_t at_least; /* so many within repeat_ms make an alert */
    int64_t gather_ms; /* from the first one on, more are waited for */
    int64_t repeat_ms; /* from one telling to the next, if more came */
    int64_t quiet_ms;  /* none for that long: it is over */
};

/* Zeroed at first. */
struct alert_counter {
    bool started, firing;
    uint64_t seen;             /* the total, as of the last look */
    uint64_t fresh;            /* of these, not yet told */
    uint64_t told;             /* since it fired */
    int64_t first_at, last_at; /* of the fresh ones */
    int64_t since, told_at;
};

/* total: how many there were, ever; what was there before the first look does not count, and where the total falls,
 * counting starts anew. *value: for FIRES and AGAIN those not told before, for ENDS all of them. */
enum alert_turn alert_count(struct alert_counter *c, const struct alert_count_rule *r, uint64_t total,
                            int64_t now, uint64_t *value);
int64_t alert_count_at(const struct alert_counter *c, const struct alert_count_rule *r);

#endif
