/* A watch on a bot at Telegram: asks now and then how many updates wait there, by a connection of its own. Where
 * updates come by webhook, it also sees how that stands, and says when another program has taken or removed it. It
 * changes nothing: that is a person's business (tgspool webhook set). */
#ifndef INTAKE_WATCH_H
#define INTAKE_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "core/config.h"

struct loop;
struct spool_box;
struct watch;

struct watch_options {
    struct loop *loop;
    struct spool_box *box;        /* must outlive the watch */
    const struct bot_config *bot; /* copied as far as it is needed */
    const char *token;            /* copied */
    const char *proxy_url;        /* NULL: direct; copied */
};

/* Returns NULL and e if the URLs or the CA file are wrong. Nothing is sent before the first tick. */
struct watch *watch_new(const struct watch_options *o, struct err *e);
void watch_free(struct watch *w);

/* Asks if it is time. To be called in every tick, before spool_commit. Returns when it wants to be called again
 * at the latest. */
int64_t watch_tick(struct watch *w, int64_t now);
/* How many updates came by the webhook so far. If it is believed not to be set, they are a reason to ask soon. */
void watch_taken(struct watch *w, uint64_t taken);
/* Of a bot that polls: whether its polls fail. Then it is asked at once, and more often. */
void watch_polls(struct watch *w, bool failing);
/* The token may be another one; asks soon. */
void watch_set_token(struct watch *w, const char *token);

enum watch_found {
    WATCH_UNKNOWN, /* nobody could be asked yet */
    WATCH_OURS,
    WATCH_UNSET, /* no webhook is set, and none of ours was seen */
    WATCH_REMOVED,
    WATCH_TAKEN /* it leads elsewhere */
};

struct watch_status {
    enum watch_found found;
    char advice[512];      /* what is wrong and what to do; "" if nothing is */
    int64_t wrong_since;   /* what advice tells of; 0: nothing */
    int64_t asked_at;      /* of the latest good answer; 0: none */
    int64_t pending;       /* updates that wait at Telegram, at asked_at */
    int64_t last_error_at; /* milliseconds; 0: none */
    char last_error[256];  /* of Telegram's latest delivery that failed */
    int64_t trouble_since; /* Telegram cannot be asked; 0: it can */
    char trouble[400];
    bool refused; /* because it does not know the token */
};
void watch_status(const struct watch *w, struct watch_status *out);
const char *watch_found_name(enum watch_found f);

#endif
