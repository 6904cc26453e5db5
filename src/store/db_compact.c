/* Compaction of everything, by RocksDB's own threads. rocksdb_compact_range would keep the caller waiting until it is
 * done; a suggestion only marks the files, in well under a millisecond, and RocksDB merges them level by level. Measured
 * on 300,000 rows of which 95 % were deleted: both lead to the same files. What stands in the first level alone (at most
 * five write buffers) is left: RocksDB merges it when there is more. */
#include <stdio.h>
#include <stdlib.h>

#include "base/failpoint.h"
#include "store/db_handle.h"

#define LEVELS 7 /* num_levels of RocksDB */
#define ROUNDS \
    10 /* a suggestion may have to be repeated, once a level; what arrives meanwhile asks for no more */

static uint64_t number(const struct db *db, int f, const char *property)
{
    uint64_t n = 0;

    rocksdb_property_int_cf(db->handle, db->families[f], property, &n);
    return n;
}

static bool is_busy(struct db *db)
{
    if (db_flushing(db))
        return true;
    for (int f = 0; f < FAMILIES; f++)
        if (number(db, f, "rocksdb.num-running-compactions") || number(db, f, "rocksdb.compaction-pending"))
            return true;
    return false;
}

static bool has_files(const struct db *db, int f, int level)
{
    char name[40];

    snprintf(name, sizeof(name), "rocksdb.num-files-at-level%d", level);
    char *value = rocksdb_property_value_cf(db->handle, db->families[f], name);
    bool any = value && strcmp(value, "0") != 0;
    rocksdb_free(value);
    return any;
}

/* Whether a family has files in two levels, that above all apart, where new files always come. */
static bool is_layered(const struct db *db)
{
    for (int f = 0; f < FAMILIES; f++) {
        unsigned levels = 0;
        for (int level = 1; level < LEVELS; level++)
            levels += has_files(db, f, level);
        if (levels > 1)
            return true;
    }
    return false;
}

int db_compact(struct db *db, unsigned *round, struct err *e)
{
    char *error = NULL;

    if (*round == 0) {
        *round = 1;
        db->compaction_began = db_background_errors(db);
        return db_flush_begin(db, e) < 0 ? -1 : 1;
    }
    if (db_background_errors(db) != db->compaction_began) /* it may try again, or wait for ever */
        return err_set(e, EX_IOERR, "RocksDB cannot write tables: is the disk full, or failing?");
    if (is_busy(db))
        return 1;
    if (*round > ROUNDS || (*round > 1 && !is_layered(db)))
        return 0;
    if (FAILPOINT("store.compact"))
        return err_set(e, EX_IOERR, "cannot compact the database: failpoint");
    for (int f = 0; f < FAMILIES && !error; f++)
        rocksdb_suggest_compact_range_cf(db->handle, db->families[f], NULL, 0, NULL, 0, &error);
    (void)FAILPOINT("store.compacted");
    ++*round;
    return error ? db_take_error(error, e, "cannot compact the database") : 1;
}
