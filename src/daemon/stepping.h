/* Steps of the wall clock while the daemon runs. Its own time does not step (base/clock.h): nothing waits longer or shorter.
 * But what it records and shows then differs from the machine's clock until the next start, which a person shall know; and the
 * spool goes by it: if the machine's clock is behind, the time at the start was wrong, and nothing is removed by it. */
#ifndef DAEMON_STEPPING_H
#define DAEMON_STEPPING_H

#include <stdint.h>

struct spool;

struct stepping {
    int64_t at;   /* when to look next */
    int64_t told; /* how far the wall clock was ahead when it was told last, ms */
};

/* Looks if it is time. Returns when to be called again. */
int64_t stepping_tick(struct stepping *s, struct spool *sp, int64_t now);

#endif
