/* What the tests of the api stand on: a real spool (tests/spool/world.h) with the api on it, driven tick by tick. */
#ifndef TESTS_SERVE_RIG_H
#define TESTS_SERVE_RIG_H

#include "../spool/world.h"

#include "serve/api.h"
#include "wire/json.h"

struct reply {
    bool answered;
    int status;
    int64_t retry_after_s;
    struct buf body;
    char type[64];         /* of its content; "": JSON */
    struct json *root;     /* NULL where it is no JSON */
    struct api_call *call; /* while it waits */
};

struct rig {
    struct world w; /* first: the world's helpers take it */
    struct api *api;
    int64_t us_a_look; /* how far the microsecond clock goes with each look at it */
    bool pulled;
    const char *only_bot; /* of the requests; NULL: all */
    unsigned killed, happened;
    bool holds; /* the deliverer works on what is to be killed, and will end it */
    uint64_t killed_seq;
    bool has_standing; /* the bot's intake is as standing says */
    struct intake_standing standing;
    int64_t oldest_limit;
};

int rig_setup(void **state);
int rig_teardown(void **state);

/* Starts a request within a tick that is open or that this opens. body may be NULL. */
void rig_start(struct rig *r, struct reply *p, const char *method, const char *path, const char *body);
/* One tick: due work, the api's part, commit. */
void rig_step(struct rig *r);
/* Starts and steps until the answer is there (it must be within a thousand ticks of the same time). */
void rig_ask(struct rig *r, struct reply *p, const char *method, const char *path, const char *body);
/* The same, asserting the status; for errors the code. The reply is to be cleared. */
void rig_expect(struct rig *r, struct reply *p, int status, const char *method, const char *path,
                const char *body);
void rig_refused(struct rig *r, int status, const char *code, const char *method, const char *path,
                 const char *body);
void reply_clear(struct reply *p);

/* Members of an answer; fail the test if they are not there. */
int64_t reply_number(const struct json *o, const char *key);
const char *reply_text(const struct json *o, const char *key); /* valid until the next call but three */
const struct json *reply_event(const struct reply *p, size_t i);

/* A tick that accepts one message. */
uint64_t rig_arrive(struct rig *r, int64_t update_id, int64_t chat);

#endif
