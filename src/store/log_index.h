/* What RocksDB's manifest says about its logs. */
#ifndef STORE_LOG_INDEX_H
#define STORE_LOG_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/db.h"
#include "store/log_reader.h"

struct log_synced {
    uint64_t number; /* of the log */
    uint64_t size;   /* that was synced when the log was complete */
};

struct log_index {
    uint64_t oldest;                  /* logs with lower numbers are not needed any more */
    uint64_t family_oldest[FAMILIES]; /* the same of one family, by RocksDB's number of it */
    uint64_t next_file;               /* higher than the number of any file that it tells of */
    uint64_t last_sequence;           /* of what is in tables */
    uint64_t last_sequence_behind;    /* the same, as records behind the gap say */
    struct log_synced *synced;        /* of those that were synced whole and may still be there */
    size_t n;
    bool foreign;        /* it says something that is not known here: nothing of the above is sure */
    char *path;          /* of the manifest, */
    uint64_t good, size; /* bytes of it that are whole, and all */
    enum log_gap
        gap; /* what stands behind the whole ones; LOG_GAP_BAD also if records behind that were synced after it */
};

/* Reads the manifest that CURRENT names, as far as it is whole. Returns 0, or -1 and e: EX_IOERR of one that is there and
 * cannot be read. To be freed in either case. */
int log_index_read(const char *db_path, struct log_index *out, struct err *e);
void log_index_free(struct log_index *x);
/* The path of the manifest that CURRENT names, to be freed; or NULL and e. */
char *log_index_path(const char *db_path, struct err *e);

#endif
