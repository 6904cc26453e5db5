/* Trouble that lasts, told in few lines: one when it starts, then at growing intervals, one when it is over.
 */
#ifndef INTAKE_TROUBLE_H
#define INTAKE_TROUBLE_H

#include <stdbool.h>
#include <stdint.h>

struct trouble {
    int64_t since;  /* 0: none */
    unsigned tries; /* failures since then */
    int kind;       /* of the latest; another kind is told at once */
    int64_t next_line_at, told_at;
    unsigned run; /* failures of this kind in a row */
    unsigned lines;
    char text[640];
};

/* Counts a failure and tells it if it is time. wait_ms: until the next try. */
void trouble_met(struct trouble *t, const char *bot, int kind, const char *sentence, int64_t wait_ms,
                 int64_t now);
/* How many failures of this kind in a row it will be with the next. */
unsigned trouble_run(const struct trouble *t, int kind);
/* All is well again. */
void trouble_over(struct trouble *t, const char *bot, int64_t now);

#endif
