/* What the log says of events: dead letters and the breaker, in lines that do not flood it. */
#ifndef DAEMON_HAPPENED_H
#define DAEMON_HAPPENED_H

#include "spool/spool.h"

struct happened {
    int64_t minute;    /* in which lines about dead events are counted */
    unsigned told;     /* in this minute */
    unsigned withheld; /* since the last line that said so */
};

/* A watcher of the spool (struct spool_happened_fn). arg: a struct happened, zeroed at first. */
void happened_log(void *arg, const struct spool_happening *h);

#endif
