/* Inside the drop-in API: its bots, and what its files do for each other. For dropin*.c only. */
#ifndef SERVE_DROPIN_BOT_H
#define SERVE_DROPIN_BOT_H

#include "base/list.h"
#include "core/config.h"
#include "net/http_pool.h"
#include "net/http_server.h"
#include "serve/dropin.h"
#include "serve/dropin_filter.h"
#include "serve/dropin_request.h"

struct upstream;

/* Of the bot that takes updates from here: since when, and what it confirmed, since some libraries confirm before their
 * handlers have ended. */
struct consumer {
    int64_t seen_at;      /* the last getUpdates; 0: never */
    int64_t since;        /* of the session; 0: none yet */
    bool fresh;           /* what comes next is a new session's */
    uint64_t confirmed;   /* in this session */
    uint64_t before;      /* in the last one that confirmed anything */
    int64_t before_until; /* when that ended; 0: there was none */
};

struct dropin_bot {
    struct list link;
    struct dropin *of;
    int64_t bot_id;
    char name[BOT_NAME_MAX + 1];
    const struct bot_config *config;
    struct spool_box *box;
    char *token, *alias;
    char *set_url; /* what the last setWebhook asked for; NULL: nothing */
    struct upstream *upstream;
    struct dropin_filter filter;
    char **warned; /* kinds that the log has named as not asked for */
    size_t n_warned;
    bool warned_poll;
    int64_t rival_told_at; /* 0: never */
    struct list asks;      /* getUpdates and drops under way */
    struct ask *waiting;
    struct consumer consumer;
};

struct dropin {
    struct loop *loop;
    struct spool *spool;
    struct list bots;
    struct list relays; /* calls that are passed on, also of bots and for servers that a reload took away */
    int64_t relays_at;  /* when they are to be looked at */
    bool stopping;
};

/* Who asks, for the audit log. */
#define DROPIN_WHO_MAX 96

/* Each answers. */
void dropin_reply(struct http_exchange *x, int status, struct buf *body); /* body is freed */
void dropin_reply_error(struct http_exchange *x, int code, const char *description);

/* ---- dropin_updates.c: getUpdates, and dropping what is pending */

/* Whether this is the bot's token, or its alias. */
bool dropin_is_name(const struct dropin_bot *b, struct slice token);
/* They may be others now: polls that wait, and came by what is none any more, get a 401. */
void updates_check_tokens(struct dropin_bot *b);
void updates_get(struct dropin_bot *b, struct http_exchange *x, const struct dropin_args *a, const char *who);
/* Answers with result "true" and the description when everything unfinished is discarded. */
void updates_drop(struct dropin_bot *b, struct http_exchange *x, const char *description, const char *who);
/* Takes the client's allowed_updates, if it gave any. */
void updates_remember_kinds(struct dropin_bot *b, const struct dropin_args *a);
void updates_tick(struct dropin_bot *b);
int64_t updates_next_deadline(const struct dropin_bot *b);
/* Ends what is under way: with an answer of this error, or, at 0, in silence. held_too: also what only waits for the
 * commit of its answer. */
void updates_end(struct dropin_bot *b, bool held_too, int code, const char *description);

/* ---- dropin_consumer.c: the consumer's sessions */

void consumer_starts(struct consumer *c); /* it seems to be new: it asked getMe, or its connection broke */
void consumer_polls(struct consumer *c, int64_t offset, int64_t now);
void consumer_confirmed(struct consumer *c, unsigned n);

/* ---- dropin_local.c: the methods that are answered here */

bool dropin_is_local(const char *method);
/* method: one that is local. */
void dropin_answer_local(struct dropin_bot *b, struct http_exchange *x, const char *method,
                         const struct dropin_args *a, const char *who);

/* ---- dropin_proxy.c: passing on */

/* The server behind, for this configuration; `old` is taken if it is the same. Never NULL. */
struct upstream *upstream_get(struct loop *l, const struct dropin_bot_options *o, struct upstream *old);
void upstream_release(struct upstream *u); /* calls under way go on, and keep it */
/* Takes the exchange over, in http_head_fn, as one of these relays. path is copied. */
void upstream_relay(struct upstream *u, struct list *relays, struct http_exchange *x,
                    const struct http_server_request *r, const char *path);
void relays_cut(struct list *relays); /* all end in silence */
/* Where calls wait for a connection, clients that do not read what they asked for lose theirs. Returns when to look
 * again. */
int64_t relays_tick(struct list *relays, int64_t now);

#endif
