/* The places, and the queue of those who wait for one. */
#include "deliver/children.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"

struct children {
    unsigned max, used;
    unsigned coming; /* sum of giving_up: free soon */
    unsigned n_waiting;
    bool complained;
    struct list waiting; /* struct places, who came first in front */
};

struct children *children_new(unsigned max)
{
    struct children *c = xcalloc(1, sizeof(*c));

    c->max = max;
    list_init(&c->waiting);
    return c;
}

void children_free(struct children *c)
{
    free(c);
}

void children_set_max(struct children *c, unsigned max)
{
    c->complained = c->complained && c->max == max;
    c->max = max;
}

unsigned children_max(const struct children *c)
{
    return c->max;
}

unsigned children_used(const struct children *c)
{
    return c->used;
}

unsigned children_waiting(const struct children *c)
{
    return c->n_waiting;
}

bool children_complain(struct children *c)
{
    bool first = !c->complained;

    c->complained = true;
    return first;
}

static unsigned free_places(const struct children *c)
{
    return c->max > c->used ? c->max - c->used : 0;
}

/* Whose turn it is: who holds fewest, and of those who came first. NULL: nobody waits. */
static const struct places *next_waiting(const struct children *c)
{
    const struct places *next = NULL;

    for (const struct list *it = c->waiting.next; it != &c->waiting; it = it->next) {
        const struct places *p = list_item((struct list *)(uintptr_t)it, struct places, link);
        if (!next || p->held < next->held)
            next = p;
    }
    return next;
}

/* ---- of one pool -------------------------------------------------------------------------------- */

void places_init(struct places *p, struct children *of)
{
    *p = (struct places){.of = of};
    list_init(&p->link);
}

void places_close(struct places *p)
{
    places_leave(p);
    places_keep(p, 0, 0);
    p->of = NULL;
}

void places_leave(struct places *p)
{
    if (!p->waits)
        return;
    list_del(&p->link);
    list_init(&p->link);
    p->waits = false;
    p->of->n_waiting--;
}

static void wait_in_queue(struct places *p)
{
    if (p->waits)
        return;
    list_add_tail(&p->of->waiting, &p->link);
    p->waits = true;
    p->of->n_waiting++;
}

bool places_open(const struct places *p)
{
    if (!p->of)
        return true;
    const struct places *next = next_waiting(p->of);
    return free_places(p->of) && (!next || next == p);
}

unsigned places_take(struct places *p, unsigned want)
{
    if (!p->of || !want)
        return want;
    if (!places_open(p)) {
        wait_in_queue(p);
        return 0;
    }
    places_leave(p);
    unsigned got = free_places(p->of);
    if (p->of->n_waiting)
        got = 1; /* and to the end of the queue */
    if (got > want)
        got = want;
    p->held += got;
    p->of->used += got;
    if (got < want)
        wait_in_queue(p);
    return got;
}

void places_keep(struct places *p, unsigned needed, unsigned giving_up)
{
    if (!p->of)
        return;
    p->of->used += needed - p->held;
    p->of->coming += giving_up - p->giving_up;
    p->held = needed;
    p->giving_up = giving_up;
}

/* Those who have nothing to do give way; others so that everyone gets a turn, but not back and forth between
 * pools that have about the same. */
bool places_wanted(const struct places *p, bool useful)
{
    const struct children *c = p->of;
    const struct places *next = c ? next_waiting(c) : NULL;

    if (!next || next == p || free_places(c) + c->coming >= c->n_waiting - p->waits)
        return false;
    return !useful || !next->held || p->held - p->giving_up > next->held + 1;
}
