/* The spool as a few lines of plain C: events in an array, lanes found by looking through it. Every op is done to the spool
 * and to the model, and the two are compared. What becomes of an outcome is asked of core/outcome (tested by itself) with the
 * spool's own breaker as its input; everything else is the model's. */
#ifndef TESTS_SPOOL_MODEL_H
#define TESTS_SPOOL_MODEL_H

#include "world.h"

#define MODEL_EVENTS 1000
#define MODEL_KEYS 6
#define MODEL_TTL 30000 /* of every key */

struct model_event {
    uint64_t seq;
    int64_t update_id, chat;
    int text; /* with the two: what makes its bytes */
    uint32_t epoch;
    struct lane lane;
    enum state state;
    enum reason reason;
    unsigned attempts, interrupted;
    int64_t due;      /* while pending: not before; 0: at once */
    bool waiting;     /* for its time to come, which spool_work looks after */
    int64_t deadline; /* while processing */
    bool push;
    uint64_t replay_of, replayed_as;
    int64_t served_id; /* while handed out by the drop-in API */
    int64_t received_at, finished_at;
    uint64_t calls_from; /* the calls that it made */
    unsigned n_calls;
    int64_t free_since; /* seen free to go, but there */
};

/* Held by an event, or done until its time is up, or neither. */
struct model_key {
    uint64_t holder;
    int64_t done_until;
};

/* Where an update's id and bytes lead. */
struct model_id {
    int64_t update_id, chat;
    int text;
    uint64_t seq;
};

struct model {
    struct world *w;
    struct model_event events[MODEL_EVENTS];
    size_t n;
    uint32_t epoch;
    uint64_t last_seq;
    int64_t opened_at; /* no lease is reaped in the grace after it */
    bool paused;
    bool unserving; /* since the next work lets go what was served */
    int64_t last_served;
    struct model_key keys[MODEL_KEYS];
    uint64_t calls;
    bool call_ended[MODEL_EVENTS * 4]; /* by seq */
    uint64_t calls_ended;
    struct model_id ids[MODEL_EVENTS];
    size_t n_ids;
    unsigned removed; /* by retention */
    uint64_t duplicates;
    uint64_t done_before, dead_before; /* events that ended and were forgotten by model_fold */
    uint64_t expected[HELD_MAX];       /* seqs claimed in the open tick, in order */
    size_t n_expected, n_held_before;
};

void model_init(struct model *m, struct world *w);

/* Ops of an open tick. */
void model_begin(struct model *m);
void model_accept(struct model *m, int64_t update_id, int64_t chat, int text);
void model_complete(struct model *m, struct claim *c, enum outcome_kind kind, int64_t after_ms);
/* The same, with n_calls calls and, unless it is negative, a key. */
void model_complete_with(struct model *m, struct claim *c, enum outcome_kind kind, int64_t after_ms,
                         unsigned n_calls, int key);
void model_ask_key(struct model *m, int key, struct claim *c);
void model_extend(struct model *m, struct claim *c, int64_t by_ms);
void model_replay(struct model *m, uint64_t seq);
void model_discard(struct model *m, uint64_t seq, bool force);
void model_pause(struct model *m, bool paused);
void model_end_call(struct model *m, uint64_t seq);
void model_work(struct model *m);
/* Another deliverer: the drop-in API, or not. */
void model_set_serve(struct model *m, bool serve);
void model_serve(struct model *m, unsigned max);
void model_confirm(struct model *m, int64_t offset);
void model_drop(struct model *m, uint64_t keep);
void model_claim(struct model *m, unsigned max, bool push);
/* Commits, takes the claims, and compares everything. */
void model_commit(struct model *m);
/* Closes and opens again; the order may be another. */
void model_reopen(struct model *m, int64_t gap_ms, enum order order);

struct model_event *model_find(struct model *m, uint64_t seq);
/* Compares every event, and the counts, with the spool's. */
void model_compare(struct model *m);
/* Ends everything with success; fails if it cannot be done. */
void model_drain(struct model *m);
/* Forgets the events, which must all have ended: the next scenario starts with an empty model on the same store. */
void model_fold(struct model *m);

#endif
