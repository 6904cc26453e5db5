/* Between retain.c and retain_archive.c. */
#ifndef SPOOL_RETAIN_H
#define SPOOL_RETAIN_H

#include "spool/internal.h"

#define RETAIN_PER_TICK 100        /* events of WORK_PER_TICK: each is read */
#define RETAIN_EVERY_MS SECONDS(1) /* after a look that removed something, unless more is due */

/* An ended event whose time since its end is up. */
struct retain_item {
    uint64_t seq;
    int64_t finished_at;
    uint64_t replayed_as;
    bool settled; /* see state_is_settled */
    uint64_t calls_from;
    uint32_t n_calls;
};

enum retained {
    RETAIN_GONE,
    RETAIN_STAYS, /* and all behind it */
    RETAIN_BROKEN
};
/* What is done with an event that may go instead of removing it. */
typedef enum retained retain_fn(void *arg, struct spool_box *b, const struct retain_item *it,
                                const struct event *ev);
/* Removes an event, or does fn with it, if it may go; if it stays, at gets when to look again. */
enum retained retain_one(struct spool_box *b, enum ended_class c, const struct retain_item *it, retain_fn *fn,
                         void *arg, int64_t *at);
/* Nothing of the class is below seq; it is looked at next at `at`. */
void retain_front_at(struct spool_box *b, enum ended_class c, uint64_t seq, int64_t at);

/* If the run of removed events is long enough: deletes its range, and ends it. */
void retain_run_end(struct spool_box *b, enum ended_class c);

/* Begins to archive those of the items that may go, as far as a slice takes them. */
void retain_slice_begin(struct spool_box *b, enum ended_class c, const struct retain_item *items, unsigned n);
/* Goes on with the slice that is under way, if one is. Returns whether another may begin. */
bool retain_slice_step(struct spool *sp);

#endif
