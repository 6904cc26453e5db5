/* The database: RocksDB behind a few verbs. Only db.c and its parts (db_*.c) include rocksdb/c.h, so that
 * differences of RocksDB versions live there.
 *
 * Writes go to one open batch; reads see the batch and the database together. An error of any call but
 * db_open makes the handle useful for nothing but db_close: RocksDB 7.8.3 aborts the process on some calls
 * after a failed write. */
#ifndef STORE_DB_H
#define STORE_DB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum family {
    FAMILY_META, /* "default" of RocksDB */
    FAMILY_EVENTS,
    FAMILY_STATES,
    FAMILY_LANES,
    FAMILY_ORDER,
    FAMILY_DUE,
    FAMILY_IDS,
    FAMILY_AUDIT,
    FAMILY_MARKS,
    FAMILIES
};

const char *family_name(enum family f);

struct db;
struct db_iter;

enum db_mode {
    DB_OPEN,
    DB_CREATE, /* only for a directory that is empty or half-made */
    DB_LOOK,   /* changes nothing on disk; nothing may be put or written */
    DB_POINT,  /* of a copy that is repaired: the log up to the first damage, the rest is dropped */
    DB_SKIP    /* the same: all of the log but the records that are damaged */
};

/* Opens the database in the directory path. Returns NULL and e: EX_DATAERR if it is damaged or a part of it is gone,
 * EX_IOERR for the rest. Later errors are of the same two kinds. */
struct db *db_open(const char *path, enum db_mode mode, int64_t cache_bytes, struct err *e);
/* Drops the open batch and closes. No iterator may be alive. */
void db_close(struct db *db);

/* Whether an error is one of a full disk (or quota): room helps. */
bool db_is_full(const struct err *e);

/* Returns 1 and the value (replacing what val held), 0 if there is no such key, -1 and e on failure. val may
 * be NULL. */
int db_get(struct db *db, enum family f, struct slice key, struct buf *val, struct err *e);
void db_put(struct db *db, enum family f, struct slice key, struct slice value);
void db_delete(struct db *db, enum family f, struct slice key);
/* All keys lower <= key < upper, which must not be put in the same batch. Reads of the open batch still see them. For
 * many keys, and rarely: each range slows reads of the family until it is compacted away. Nothing if lower >= upper. */
void db_delete_range(struct db *db, enum family f, struct slice lower, struct slice upper);
size_t db_batch_bytes(const struct db *db);
size_t db_batch_ops(const struct db *db);

enum db_write { DB_WRITTEN, DB_STALLED /* nothing was written; the batch is kept: try again */, DB_FAILED };
/* Writes the batch (and syncs the log) and starts a new one. An empty batch is no write. */
enum db_write db_write(struct db *db, bool sync, struct err *e);
/* Whether nothing that was written waits for a sync. */
bool db_is_synced(const struct db *db);
/* Syncs what earlier writes left unsynced. Returns 0, or -1 and e. */
int db_sync(struct db *db, struct err *e);
/* Whether a flush or a compaction failed in such a way that nothing can be written any more: who writes nothing would not
 * notice. Cheap. The open batch must be empty. */
bool db_failed_behind(struct db *db, struct err *e);

/* A checkpoint: hard links of the database's files, and a copy of its log, in a new directory whose parent is there.
 * db_flush_begin lets RocksDB write what is in memory to files, in the background; once db_flushing is false, the log
 * is short and db_checkpoint quick. What is not written yet (the open batch) is not in it. Return 0, or -1 and e. */
int db_flush_begin(struct db *db, struct err *e);
bool db_flushing(struct db *db);
int db_checkpoint(struct db *db, const char *path, struct err *e);

/* Merges all files into what is not deleted, in the background. To be called now and then, with *round 0 at first and then
 * as it was left, until it returns 0; 1: it is at work; -1 and e: failed. */
int db_compact(struct db *db, unsigned *round, struct err *e);

/* Names ("000012.sst") of the table files that are in use, one by one. */
void db_table_files(struct db *db, void (*each)(void *arg, const char *name, uint64_t bytes), void *arg);

/* Makes an index of the table files in a directory, whatever there was (RocksDB's repair). What is in no table, and tables
 * that cannot be read whole, are lost: only for copies. Returns 0, or -1 and e. */
int db_rebuild(const char *path, struct err *e);

/* Reads every row of a family that is on disk, which checks every checksum, without filling the cache. Returns 0 and how
 * many there are; or -1 and e, and how many came before the fault. */
int db_scan(struct db *db, enum family f, uint64_t *rows, struct err *e);

/* Removes those files of a family that hold nothing but keys lower <= key <= last, at once. Only for keys that
 * db_delete_range covers, by a batch that is written. Syncs that, if it is not: else some keys would come back after a power
 * cut, or rows that lead to them. Returns 0, or -1 and e. */
int db_drop_files(struct db *db, enum family f, struct slice lower, struct slice last, struct err *e);

/* Walks keys lower <= key < upper in order, as they are now; nothing may be put or deleted while it lives. */
struct db_iter *db_iter_new(struct db *db, enum family f, struct slice lower, struct slice upper);
/* The same from the last key down. */
struct db_iter *db_iter_new_down(struct db *db, enum family f, struct slice lower, struct slice upper);
bool db_iter_valid(const struct db_iter *it); /* false also after an error: see db_iter_free */
void db_iter_next(struct db_iter *it);
struct slice db_iter_key(const struct db_iter *it); /* borrowed until the next step */
struct slice db_iter_value(const struct db_iter *it);
/* Returns 0, or -1 and e if the walk ended by an error. */
int db_iter_free(struct db_iter *it, struct err *e);

#endif
