/* Intake by long polling, one object a bot: asks for updates, puts them into the spool, and asks for the next
 * only when they are durable (design.md section 3; telegram.md, "update_id"). */
#ifndef INTAKE_POLL_H
#define INTAKE_POLL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/config.h"
#include "core/standing.h"
#include "spool/spool.h"

struct loop;
struct poll;

/* Reads the bot's token anew into out (empty). Returns -1 and e if it cannot be read or is another bot's. */
typedef int poll_token_fn(void *arg, struct buf *out, struct err *e);

struct poll_options {
    struct loop *loop;
    struct spool_box *box;        /* must outlive the poll */
    const struct bot_config *bot; /* copied as far as it is needed */
    const char *token;            /* copied */
    const char *proxy_url;        /* NULL: direct; copied */
    poll_token_fn *reread_token;
    void *reread_arg;
    const struct poll *before; /* of the same bot, which this one replaces: goes on where it stands. NULL: the
                                  spool's position */
};

/* Returns NULL and e if the URLs or the CA file are wrong. Nothing is sent before the first tick. */
struct poll *poll_new(const struct poll_options *o, struct err *e);
void poll_free(struct poll *p); /* ends what is under way, at once */

/* Does what is due. To be called in every tick, before spool_commit and once more right after it. Returns
 * when it wants to be called again at the latest (at or before now: at once). */
int64_t poll_tick(struct poll *p, int64_t now);

/* Ends intake: what came is stored, then one last request tells Telegram what was taken (at most 2 s).
 * poll_stopped says when that is over; keep calling poll_tick. */
void poll_stop(struct poll *p);
bool poll_stopped(const struct poll *p);
/* Whether it is held (paused, or the store fails), with nothing under way. */
bool poll_rests(const struct poll *p);

/* A reload: the token may be another one. Ends a slow retry's wait. */
void poll_set_token(struct poll *p, const char *token);

struct poll_status {
    const char *state;     /* "asking", "storing", "waiting", "held", "stopping", "stopped" */
    int64_t trouble_since; /* 0: none */
    unsigned tries;        /* failed, since then */
    char trouble[640];     /* why, and what to do; "" if none */
    char held[256];        /* why, while it is held; else "" */
    int64_t next_at;       /* of the next request, while waiting */
    int64_t answered_at;   /* of the latest good answer; 0: none yet */
    int64_t offset;        /* confirmed by the next request; 0: none */
};
void poll_status(const struct poll *p, struct poll_status *out);
/* Fills in what is the poll's to know: failures, reason, good_at and errors. */
void poll_standing(const struct poll *p, struct intake_standing *out);
/* Whether polls fail in a way that leaves Telegram fit to be asked something else. */
bool poll_fails_softly(const struct poll *p);

#endif
