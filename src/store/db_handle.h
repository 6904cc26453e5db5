/* What the files of the database share: the open handle. Only for them, the one place that knows RocksDB. */
#ifndef STORE_DB_HANDLE_H
#define STORE_DB_HANDLE_H

#include <rocksdb/c.h>

#include "store/db.h"
#include "store/overlay.h"

struct db_range; /* one that the open batch deletes */

struct db {
    rocksdb_t *handle;
    rocksdb_column_family_handle_t *families[FAMILIES];
    rocksdb_options_t *options, *family_options[FAMILIES];
    rocksdb_cache_t *cache;
    rocksdb_readoptions_t *read;
    rocksdb_writeoptions_t *write, *write_sync;
    uint64_t synced;                 /* of RocksDB's sequence numbers: those up to this one are */
    uint64_t unsynced;               /* bytes of the log behind it (store/log_mark.h) */
    struct overlay *batch[FAMILIES]; /* the open batch, */
    struct db_range *ranges;         /* and the ranges that it deletes */
    size_t n_ranges;
    unsigned iterators;        /* alive */
    uint64_t background_seen;  /* errors of RocksDB's threads that were looked into */
    uint64_t compaction_began; /* how many there were then */
};

/* How many errors RocksDB's threads have met since the opening. Some it gets over by itself. */
uint64_t db_background_errors(const struct db *db);

/* Turns RocksDB's message into ours and frees it. Returns -1. */
int db_take_error(char *message, struct err *e, const char *doing);

#endif
