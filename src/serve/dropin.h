/* The drop-in Bot API: a listener that stands in for api.telegram.org, so that a bot of any library works behind the
 * spool by a change of its API root alone. Updates come out of the spool; webhook methods are answered here; all else is
 * passed on to the bot's own API root. */
#ifndef SERVE_DROPIN_H
#define SERVE_DROPIN_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct bot_config;
struct dropin;
struct json_out;
struct loop;
struct spool;
struct spool_box;
struct tls_server;

struct dropin_options {
    const char *address;    /* HOST:PORT */
    struct tls_server *tls; /* NULL: plain. Borrowed */
};

/* Listens. NULL and e if it cannot. The spool must outlive it. */
struct dropin *dropin_new(struct loop *l, struct spool *sp, const struct dropin_options *o, struct err *e);
/* Cuts what is open. NULL is harmless. */
void dropin_free(struct dropin *d);
uint16_t dropin_port(const struct dropin *d);

struct dropin_bot_options {
    int64_t bot_id;
    struct spool_box *box;
    const struct bot_config *config; /* borrowed until the next dropin_set_bots */
    const char *token, *alias;       /* alias NULL: none; both copied */
    const char *proxy_url;           /* NULL: direct; copied */
};
/* Whom it serves from now on, at the start and after each reload. Bots are told apart by bot_id: one that was known
 * goes on as it was, and so do calls under way. */
void dropin_set_bots(struct dropin *d, const struct dropin_bot_options *bots, size_t n);

/* In each tick, between spool_work and spool_commit. */
void dropin_tick(struct dropin *d);
int64_t dropin_next_deadline(const struct dropin *d); /* TIME_NEVER: none; at or before now: at once */

/* Stops to accept. Polls are told to come again, and later ones confirm but get nothing; other calls go on. */
void dropin_stop(struct dropin *d);

/* Writes one JSON value: how this bot's consumer stands; null if it is not a bot that is served. */
void dropin_status(const struct dropin *d, const char *bot, struct json_out *j);

#endif
