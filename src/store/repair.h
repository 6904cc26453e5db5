/* Ways to make a damaged database open again. Each is tried on a copy; the original is never touched. Table files never
 * change, so a copy shares them by hard links. */
#ifndef STORE_REPAIR_H
#define STORE_REPAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "store/db.h"

enum repair_way {
    REPAIR_AS_IT_IS,  /* with CURRENT written anew if it is gone */
    REPAIR_SKIPPING,  /* without the damaged records of the log */
    REPAIR_TO_DAMAGE, /* the log up to its first damage */
    REPAIR_REBUILT,   /* a new index of the tables, and then the log, without damaged records */
    REPAIR_WAYS
};
const char *repair_way_text(enum repair_way w);

/* Makes `to`, a new directory, a copy of the spool in dir that opens this way. lost: in how many places something of the log
 * was left out, as far as is known. Returns 0, or -1 and e: this way leads nowhere (`to` may hold something). */
int repair_try(const char *dir, enum repair_way way, const char *to, unsigned *lost, struct err *e);

struct repair_rows {
    bool opens;
    uint64_t n[FAMILIES];
    bool whole[FAMILIES]; /* no fault was met */
};
/* How many rows of each family of a spool can be read, up to the first fault. */
void repair_count(const char *dir, struct repair_rows *out);

#endif
