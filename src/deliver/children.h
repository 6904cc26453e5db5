/* How many children (processes of exec and worker handlers) may live at once, over all bots: spool.max_children.
 * Each pool of slots holds places, one for every slot that has a child or is about to start one. When all are
 * taken, pools that want one wait, and whoever holds fewest gets the next. A worker that waits for
 * events keeps its place, unless somebody waits for one: then its pool is told to give it up. */
#ifndef DELIVER_CHILDREN_H
#define DELIVER_CHILDREN_H

#include <stdbool.h>

#include "base/list.h"

struct children;

struct children *children_new(unsigned max);
/* After all places of it were closed. */
void children_free(struct children *c);
/* Fewer than there are now: nothing is ended, no new one is started until enough have ended. */
void children_set_max(struct children *c, unsigned max);
unsigned children_max(const struct children *c);
/* Places taken: children that run, and those about to be started. */
unsigned children_used(const struct children *c);
/* Pools that wait for a place. */
unsigned children_waiting(const struct children *c);
/* Whether it is to be told that handlers wait: once for each max. */
bool children_complain(struct children *c);

/* What one pool holds; embedded in it. */
struct places {
    struct children *of; /* NULL: without a limit, and nothing is counted */
    struct list link;    /* in the queue of those who wait */
    bool waits;
    unsigned held;
    unsigned giving_up; /* of those held: their children are being ended for somebody else */
};

void places_init(struct places *p, struct children *of);
void places_close(struct places *p);

/* Takes up to so many places and returns how many it got. Got fewer: it waits in the queue, if it did not before,
 * and asks again when places_open says so. */
unsigned places_take(struct places *p, unsigned want);
/* It wants none at present. */
void places_leave(struct places *p);
/* How many are needed now, and of these given up; those beyond are free for others. */
void places_keep(struct places *p, unsigned needed, unsigned giving_up);
/* Whether places_take would give something. */
bool places_open(const struct places *p);
/* Whether one of the places is to be given up, because others wait. `useful`: the pool has work for all. */
bool places_wanted(const struct places *p, bool useful);

#endif
