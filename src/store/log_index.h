/* What RocksDB's manifest says about its logs. */
#ifndef STORE_LOG_INDEX_H
#define STORE_LOG_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/db.h"

struct log_synced {
    uint64_t number; /* of the log */
    uint64_t size;   /* that was synced when the log was complete */
};

struct log_index {
    uint64_t oldest;                  /* logs with lower numbers are not needed any more */
    uint64_t family_oldest[FAMILIES]; /* the same of one family, by RocksDB's number of it */
    struct log_synced *synced;
    size_t n;
};

/* Reads the manifest that CURRENT names, as far as it is whole. Returns 0, or -1 and e: EX_IOERR of one that is there and
 * cannot be read. To be freed in either case. */
int log_index_read(const char *db_path, struct log_index *out, struct err *e);
void log_index_free(struct log_index *x);
/* How much of a log is known to have been synced, 0 if nothing. */
uint64_t log_index_synced(const struct log_index *x, uint64_t number);

/* The path of the manifest that CURRENT names, to be freed; or NULL and e. */
char *log_index_path(const char *db_path, struct err *e);

#endif
