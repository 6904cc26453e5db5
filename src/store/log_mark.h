/* What every batch says in the log of those before it: which of them were synced. So a start after a power cut can tell what
 * was lost before its sync, and acknowledged to nobody, from damage. RocksDB keeps these bytes in its log only. */
#ifndef STORE_LOG_MARK_H
#define STORE_LOG_MARK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

#define LOG_MARK_SIZE 14

struct log_mark {
    uint64_t synced; /* all up to this of RocksDB's sequence numbers, of which each row has one */
    uint32_t
        unsynced; /* bytes of the batches behind it, each with one LOG_HEADER; at most UINT32_MAX is told */
};

void log_mark_make(uint64_t synced, uint64_t unsynced, char out[LOG_MARK_SIZE]);

/* What a record of the log is: a batch. */
struct log_batch {
    uint64_t first, next; /* its first sequence number, and that of the batch behind it */
    bool marked;          /* not: of a tgspool that made no marks */
    struct log_mark mark;
};
/* Reads the beginning of a record, LOG_BATCH_HEAD bytes of it if it has so many. Returns 0, or -1: it is no batch. */
#define LOG_BATCH_HEAD (12 + 2 + LOG_MARK_SIZE)
int log_batch_read(struct slice record, struct log_batch *out);

#endif
