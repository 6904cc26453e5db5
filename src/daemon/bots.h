/* The bots that run: each with its boxes, their slots and, if it polls, its poll. */
#ifndef DAEMON_BOTS_H
#define DAEMON_BOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "core/config.h"
#include "core/event.h"
#include "core/given_back.h"
#include "core/standing.h"

struct bots;
struct children;
struct dropin;
struct json_out;
struct loop;
struct poll;
struct setup;
struct slots;
struct spool;
struct spool_box;
struct watch;
struct webhook;

struct bot {
    struct list link;
    struct bots *of;
    char name[BOT_NAME_MAX + 1]; /* of its section */
    int64_t bot_id;
    struct spool_box *box, *out;
    struct slots *slots;
    struct slots *calls; /* of the box out */
    struct poll *poll;   /* NULL: intake is not poll */
    struct watch *watch; /* NULL: intake is none */
    bool drops_offset;   /* of earlier polling; until that is durable */
    bool dropping;       /* it is in the open batch */
    bool leaving;        /* its section is gone: freed when its handlers have ended */
};

struct bots {
    struct loop *loop;
    struct spool *spool;
    struct list all;
    struct webhook *webhook;   /* for those with intake: webhook; owned */
    struct dropin *dropin;     /* what the listener of that name serves; owned */
    struct children *children; /* of exec and worker handlers; owned */
    struct setup *setup;       /* what they run by; owned. NULL before the first reload_apply */
    bool stopping;
};

void bots_init(struct bots *b, struct loop *loop);
/* Before the first reload_apply. */
void bots_open(struct bots *b, struct spool *spool);
/* Ends everything at once. */
void bots_clear(struct bots *b);

/* In each tick, between spool_work and spool_commit. */
void bots_tick(struct bots *b, int64_t now);
/* Right after spool_commit: what was written may be confirmed. Returns when bots_tick wants to be called. */
int64_t bots_after_commit(struct bots *b, int64_t now);

/* Ends intake and deliveries, within the bots' shutdown_wait. */
void bots_stop(struct bots *b);
bool bots_stopped(const struct bots *b);
/* The longest shutdown_wait of them. */
int64_t bots_shutdown_wait(const struct bots *b);

struct bot *bots_by_id(struct bots *b, int64_t bot_id);
struct bot *bots_by_name(struct bots *b, const char *name); /* not one that is leaving */
size_t bots_count(const struct bots *b);
/* How a bot's intake stands (arg: the struct bots); cheap, asks nobody. Returns false if there is no such bot (or it is leaving). */
bool bots_standing(void *arg, const char *name, struct intake_standing *out);
/* How old the oldest unfinished event may be, in milliseconds. */
int64_t bots_oldest_limit(void *arg);

/* For the API (serve/api.h, struct api_hooks; arg: the struct bots). */
void bots_intake_status(void *arg, const char *name, struct json_out *j);
bool bots_kill_event(void *arg, const char *name, enum box box, uint64_t seq);
bool bots_pulled(void *arg, const char *name);
bool bots_intake_rests(void *arg, const char *name);
void *bots_give_back(void *arg, const char *name, given_back_fn *told, void *told_arg, char why[256]);
void bots_give_back_end(void *given);
void bots_children_status(void *arg, struct json_out *j);
void bots_consumer_status(void *arg, const char *name, struct json_out *j);

#endif
