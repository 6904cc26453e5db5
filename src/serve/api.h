/* The one request path (design.md sections 7 and 10): what the control socket, later the network listener,
 * and commands without a daemon ask of the spool. It knows requests and JSON answers, no HTTP connection.
 *
 * A request is answered at once, or after a commit, or when something happens (a waiting claim, a tail), or
 * after a long walk over the events, which runs in slices. Whoever owns the spool's tick calls api_tick
 * between spool_work and spool_commit, and wakes up at api_next_deadline.
 */
#ifndef SERVE_API_H
#define SERVE_API_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "core/given_back.h"
#include "core/standing.h"
#include "spool/spool.h"
#include "wire/json.h"

struct api;
struct api_call; /* a request that waits for its answer */

#define API_BODY_MAX (8u << 20)    /* of a request */
#define API_IMPORT_MAX (12u << 20) /* of an import, as one line may hold a call of 8 MiB in base64 */
#define API_SLICE_US 5000          /* longest stretch of work a tick gives to walks */

/* What the api is told by its surroundings. Functions but the clocks may be NULL. */
struct api_hooks {
    const char *version;
    int64_t started_at;
    int64_t (*now)(void); /* milliseconds since 1970, as spool_begin is given */
    int64_t (*us)(void);  /* microseconds of any clock that only grows */
    /* Writes one JSON value: how intake of this bot stands. */
    void (*intake_status)(void *arg, const char *bot, struct json_out *j);
    /* The same as numbers; false: there is no such bot. */
    bool (*intake_standing)(void *arg, const char *bot, struct intake_standing *out);
    /* How old the oldest unfinished event may be (alerts.oldest), in milliseconds. */
    int64_t (*oldest_limit)(void *arg);
    /* The same of the program that takes its updates over the drop-in API; null if none does. */
    void (*consumer_status)(void *arg, const char *bot, struct json_out *j);
    /* The same of the children that handlers run in, of all bots; NULL where no daemon runs. */
    void (*children_status)(void *arg, struct json_out *j);
    /* Ends whoever of this process works on an event, because a person discards it: the event ends as discarded when
     * that has ended. Returns false if nobody of this process does. */
    bool (*kill_event)(void *arg, const char *bot, enum box box, uint64_t seq);
    /* Whether this bot's events are taken by claims (deliver: pull). NULL: every bot's. */
    bool (*pulled)(void *arg, const char *bot);
    /* For handovers (serve/handover.h); NULL where no daemon runs. Whether a paused intake has come to rest, so
     * that nothing of it is under way. */
    bool (*intake_rests)(void *arg, const char *bot);
    /* Tells Telegram that the bot goes elsewhere; told is called once, later. Returns what give_back_end frees,
     * before or inside told; or NULL and a sentence in why. */
    void *(*give_back)(void *arg, const char *bot, given_back_fn *told, void *told_arg, char why[256]);
    void (*give_back_end)(void *given);
    void *arg;
    /* Writes one JSON value: how the disk stands (with disk_arg). */
    void (*disk_status)(void *arg, struct json_out *j);
    /* The same as numbers; false: not known. Bytes. */
    bool (*disk_numbers)(void *arg, int64_t *free_bytes, int64_t *db_bytes);
    void *disk_arg;
    /* Sends a test alert to every destination; told is called once, later, with the answer, after at most wait_ms.
     * Returns what alert_test_end frees, before or inside told; or NULL and a sentence in why. */
    void *(*alert_test)(void *arg, int64_t wait_ms, void (*told)(void *arg, struct slice json),
                        void *told_arg, char why[256]);
    void (*alert_test_end)(void *trial);
    void *alert_arg;
    /* Is told all that happens in the spool as well, since that has one watcher. */
    spool_happened_fn *happened;
    void *happened_arg;
};

/* Watches the spool (spool_watch) for tail. hooks is copied; its version borrowed. */
struct api *api_new(struct spool *sp, const struct api_hooks *hooks);
/* Ends every call without an answer. Claims on their way are released. */
void api_free(struct api *api);

struct api_request {
    struct slice method, path; /* percent-decoding not done */
    struct slice query;        /* without '?' */
    struct slice body;
    const char *who; /* for the audit log: "uid 0 (socket)" */
    bool on_socket;  /* by the control socket or in-process: allowed to do everything */
    const char
        *only_bot; /* by the holder of this bot's pull token: claims of its events, and what belongs to them,
                             nothing else. NULL: all bots */
};

/* The answer, borrowed for the call. type: of its content; NULL: JSON. retry_after_s -1: none. */
typedef void api_reply_fn(void *arg, int status, const char *type, struct slice body, int64_t retry_after_s);

/* Starts a request. r's strings are borrowed until the reply or api_cancel. Returns NULL if fn was called
 * already, else a handle that is valid until fn is called. */
struct api_call *api_handle(struct api *api, const struct api_request *r, api_reply_fn *fn, void *arg);
/* The client went away: fn is not called, a waiting claim takes nothing, a walk ends where it is. */
void api_cancel(struct api_call *call);

void api_tick(struct api *api);
/* TIME_NEVER: nothing to wait for; at or before now: at once. */
int64_t api_next_deadline(const struct api *api);

#endif
