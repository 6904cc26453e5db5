/* What counts as missing. */
#include "core/gaps.h"

#include <string.h>

#define RESTARTS_AFTER (INT64_C(7) * 24 * 3600 * 1000) /* without updates ids may start anew */
#define LATE \
    100000 /* an id so far below the highest is late; one farther below has begun anew. Telegram's own queue
                       holds that many */

int64_t gaps_between(int64_t next, int64_t newest_at, int64_t id, int64_t now)
{
    if (!next || !newest_at || id <= next || id - next > GAPS_FARTHEST || now - newest_at >= RESTARTS_AFTER)
        return 0;
    return id - next;
}

static void remove_hole(struct gaps *g, size_t i)
{
    g->n--;
    memmove(g->holes + i, g->holes + i + 1, (g->n - i) * sizeof(g->holes[0]));
}

static void insert_hole(struct gaps *g, size_t i, struct gap_hole hole)
{
    if (g->n == GAPS_HOLES) { /* so much came since that the oldest will not be filled */
        g->crowded_out += g->holes[0].to - g->holes[0].from + 1;
        remove_hole(g, 0);
        i -= i > 0;
    }
    memmove(g->holes + i + 1, g->holes + i, (g->n - i) * sizeof(g->holes[0]));
    g->holes[i] = hole;
    g->n++;
}

/* A late one: its hole shrinks, ends, or becomes two. */
static void fill(struct gaps *g, int64_t id)
{
    size_t i = 0;

    while (i < g->n && (id < g->holes[i].from || id > g->holes[i].to))
        i++;
    if (i == g->n)
        return;
    struct gap_hole *h = &g->holes[i], rest = {.from = id + 1, .to = h->to, .at = h->at};
    h->to = id - 1;
    bool front = h->from <= h->to;
    if (!front)
        remove_hole(g, i);
    if (rest.from <= rest.to)
        insert_hole(g, i + front, rest);
}

void gaps_seen(struct gaps *g, int64_t id, bool fresh, int64_t now)
{
    int64_t missing = fresh ? gaps_between(g->next, g->newest_at, id, now) : 0;
    bool anew = g->next && fresh && (id - g->next > GAPS_FARTHEST || g->next - id > LATE);

    if (missing)
        insert_hole(g, g->n, (struct gap_hole){.from = g->next, .to = id - 1, .at = now});
    if (id >= g->next || anew)
        g->next = id + 1;
    else
        fill(g, id);
    g->newest_at = now;
}

int64_t gaps_ripe(struct gaps *g, int64_t wait_ms, int64_t now)
{
    int64_t missing = g->crowded_out;

    g->crowded_out = 0;
    while (g->n && now - g->holes[0].at >= wait_ms) {
        missing += g->holes[0].to - g->holes[0].from + 1;
        remove_hole(g, 0);
    }
    return missing;
}

void gaps_wait_anew(struct gaps *g, int64_t now)
{
    for (size_t i = 0; i < g->n; i++)
        g->holes[i].at = now;
}

int64_t gaps_oldest(const struct gaps *g)
{
    return g->n ? g->holes[0].at : 0;
}
