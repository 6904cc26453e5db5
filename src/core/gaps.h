/* Gaps in update_id: updates that Telegram made, and dropped before tgspool got them. Telegram numbers the updates of a
 * bot one after the other, and only those that it was asked for; after a week without updates it may start anew at
 * random (https://core.telegram.org/bots/api#update), and another server numbers on its own: that is no gap. Pure: time
 * is given. */
#ifndef CORE_GAPS_H
#define CORE_GAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GAPS_FARTHEST 1000000 /* who jumps farther has begun to number anew */
#define GAPS_HOLES 64

/* How many are missing before `id`, where `next` was to come (0: not known) and the newest update came at newest_at. */
int64_t gaps_between(int64_t next, int64_t newest_at, int64_t id, int64_t now);

/* Where updates come out of order (by webhook, the lanes side by side) a hole is a gap only if it was not filled in
 * time. */
struct gaps {
    int64_t next; /* one above the highest seen; 0: none yet */
    int64_t newest_at;
    size_t n;
    struct gap_hole {
        int64_t from, to, at; /* ids, inclusive; at: when it was noticed. In the order of at */
    } holes[GAPS_HOLES];
    int64_t crowded_out; /* updates of holes that had to make room for later ones: missing for good */
};

/* An update came that the spool did not know (fresh), or knew. */
void gaps_seen(struct gaps *g, int64_t id, bool fresh, int64_t now);
/* Takes out the holes that are `wait_ms` old or more, and returns how many updates are missing with them. */
int64_t gaps_ripe(struct gaps *g, int64_t wait_ms, int64_t now);
/* The waiting for all holes begins anew: nothing could come meanwhile. */
void gaps_wait_anew(struct gaps *g, int64_t now);
/* When the first hole was noticed; 0: there is none. */
int64_t gaps_oldest(const struct gaps *g);

#endif
