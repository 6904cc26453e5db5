/* Inside deliver/: what slots.c and the deliverers know of each other. A deliverer handles one event at a
 * time in each slot; it is an ops table here and one file of its own. */
#ifndef DELIVER_SLOT_H
#define DELIVER_SLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/envelope.h"
#include "core/outcome.h"
#include "deliver/config.h"
#include "spool/spool.h"

struct loop;
struct slots;
struct slot;

struct deliverer {
    const char *name;
    bool children; /* a try needs a child; one that is not quiet has one */
    /* Makes what a slot needs, or returns NULL and e. Starts nothing. */
    void *(*new)(struct slot *s, struct err *e);
    /* Handles slot_claim(s); ends in one slot_end(), which may come at once. */
    void (*start)(void *work);
    /* Ends the try under way: slot_end() with this outcome as soon as nothing of it runs. How the handler
     * ended by itself, if it did, comes first. */
    void (*cancel)(void *work, enum outcome_kind as);
    /* No event is under way and none will come: ends what runs. */
    void (*stop)(void *work);
    bool (*quiet)(void *work); /* nothing runs */
    void (*free)(void *work);  /* whatever runs is killed */
};

extern const struct deliverer deliverer_exec, deliverer_worker, deliverer_http, deliverer_call;

struct loop *slot_loop(const struct slot *s);
const struct deliver_config *slot_config(const struct slot *s);
const struct claim *slot_claim(const struct slot *s); /* NULL: free */
void slot_envelope(const struct slot *s, struct envelope *out);

/* The try is over. after_ms: the time given with it, -1: none. error is copied. */
void slot_end(struct slot *s, enum outcome_kind kind, int64_t after_ms, struct slice error);
/* The handler asks for more time; returns the new deadline. */
int64_t slot_extend(struct slot *s, int64_t by_ms);
/* The same for a success, with what it records. */
void slot_end_done(struct slot *s, const struct spool_extras *extras);
/* Reads the token of a box out anew. Returns whether it is another one now. */
bool slot_reread_token(struct slot *s);

#endif
