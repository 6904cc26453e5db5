/* Inside the api: a call in the making, its parameters, and how it is answered. For the files of serve/ only.
 */
#ifndef SERVE_API_CALL_H
#define SERVE_API_CALL_H

#include "base/buf.h"
#include "base/list.h"
#include "core/breaker.h"
#include "serve/api.h"
#include "serve/api_params.h"

/* Work that is done in slices, in turn with other such work. */
struct api_work {
    struct list link; /* in api->work while there is something to do */
    /* Goes on until the clock passes until_us, the batch is full, or it is finished: then it has taken itself
     * out. */
    void (*slice)(struct api_work *w, int64_t until_us);
    /* Who waits for its answer, NULL: nobody. If the store fails, for nobody knows how long, it is a 503. */
    struct api_call *call;
};

struct api {
    struct spool *sp;
    struct api_hooks hooks;
    struct list calls;
    struct list work;
    bool work_failed; /* while the store is failed: that was told to what is in `work` */
    struct list jobs; /* api_bulk.c: those that outlived their request */
    unsigned n_jobs;
    unsigned n_pages; /* of lists, being made */
    int64_t last_job;
    struct leases *leases;
    struct tail *tail;
    struct handovers *handovers;
    struct checkpoints *checkpoints;
    struct compaction *compaction;
};

struct api_call {
    struct list link; /* in api->calls */
    struct api *api;
    api_reply_fn *fn;
    void *arg;
    bool *answered; /* set for api_handle while it runs */
    char who[64];
    bool on_socket;
    char only_bot[BOT_NAME_MAX + 1]; /* "": all */
    /* what a handler that answers later keeps; drop is called once, before the call is freed: it ends what
     * was begun (the answer was given, the client went away, or the api ends) */
    void *state;
    void (*drop)(struct api_call *c);
    int held_status; /* an answer that waits for its commit: see api_answer_durable */
    struct buf held;
};

/* A route's function: answers, or sets state and drop. Parameters are freed after it. */
typedef void api_route_fn(struct api_call *c, const struct api_request *r, const struct params *p);

/* Each answers and frees the call. body is the caller's. */
void api_answer(struct api_call *c, int status, struct slice body);
/* The same with content that is no JSON. */
void api_answer_as(struct api_call *c, int status, const char *type, struct slice body);
void api_fail(struct api_call *c, int status, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void api_fail_params(struct api_call *c, const struct param_error *e);
void api_fail_store(struct api_call *c); /* 503: the store does not write */
/* Whether there is room for what adds to the spool; answers 503 if there is none. */
bool api_has_room(struct api_call *c);
/* Answers 200 with body (taken) when all that is in the batch so far is durable; 503 if it was lost. */
void api_answer_durable(struct api_call *c, int status, struct buf *body);
/* Appends {"code","message"} as the value of "error" to an object that is being written. */
void api_error_member(struct json_out *j, const char *code, const char *message);

int64_t api_now(const struct api *api);
void api_work_add(struct api *api, struct api_work *w);

/* The box that a parameter `bot` names; answers and returns NULL if there is none. */
struct spool_box *api_box_of(struct api_call *c, const struct params *p, enum box box);
/* The same for a path that starts with "/v1/bots/BOT". */
struct spool_box *api_path_box(struct api_call *c, const struct api_request *r, enum box box);

/* Whether the bot that a filter names is there; answers if it is not. */
bool api_knows_bot(struct api_call *c, const struct spool_filter *f);

/* Routes, by file. */
api_route_fn api_keys, api_post_call;          /* api_calls.c */
api_route_fn api_events, api_event;            /* api_list.c */
api_route_fn api_replay, api_discard, api_job; /* api_bulk.c */
void api_jobs_free(struct api *api);
api_route_fn api_alert_test;                                         /* api_alert.c */
api_route_fn api_import;                                             /* api_import.c */
api_route_fn api_pause, api_resume, api_status;                      /* api_admin.c */
api_route_fn api_metrics;                                            /* metrics.c */
api_route_fn api_healthz, api_readyz;                                /* ready.c */
void api_write_breaker(struct json_out *j, const struct breaker *b); /* as a member of an open object */

#endif
