/* The drop-in Bot API: what stands in for api.telegram.org, so that a bot of any library works behind the
 * spool by a change of its API root alone. Updates come out of the spool; webhook methods are answered here; all else is
 * passed on to the bot's own API root. */
#ifndef SERVE_DROPIN_H
#define SERVE_DROPIN_H

#include <stddef.h>
#include <stdint.h>

struct bot_config;
struct dropin;
struct http_exchange;
struct http_server_request;
struct json_out;
struct loop;
struct spool;
struct spool_box;

#define DROPIN_BODY_MAX (1u << 20) /* of what is answered here; what is passed on has no limit */

/* The spool must outlive it. */
struct dropin *dropin_new(struct loop *l, struct spool *sp);
/* After dropin_cut, if there was a listener. NULL is harmless. */
void dropin_free(struct dropin *d);

/* Of the listener's http_server; arg: the struct dropin. */
void dropin_head(void *arg, struct http_exchange *x, const struct http_server_request *r);
void dropin_request(void *arg, struct http_exchange *x, const struct http_server_request *r);
/* Forgets all exchanges, before their server is freed. */
void dropin_cut(struct dropin *d);

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

/* Polls are told to come again, and later ones confirm but get nothing; other calls go on. */
void dropin_stop(struct dropin *d);

/* Writes one JSON value: how this bot's consumer stands; null if it is not a bot that is served. */
void dropin_status(const struct dropin *d, const char *bot, struct json_out *j);

#endif
