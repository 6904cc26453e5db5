/* The database as a set of files: checkpoints, which files are in use, and reading every byte of them. */
#include <stdlib.h>
#include <string.h>

#include "base/failpoint.h"
#include "store/db_handle.h"

static uint64_t waiting_tables(const struct db *db, int f)
{
    uint64_t n = 0;

    rocksdb_property_int_cf(db->handle, db->families[f], "rocksdb.num-immutable-mem-table", &n);
    return n;
}

int db_flush_begin(struct db *db, struct err *e)
{
    rocksdb_flushoptions_t *o;
    char *error = NULL;

    if (FAILPOINT("store.flush"))
        return err_set(e, EX_IOERR, "cannot write the database's memory to files: failpoint");
    o = rocksdb_flushoptions_create();
    rocksdb_flushoptions_set_wait(o, 0);
    for (int f = 0; f < FAMILIES && !error; f++)
        if (!waiting_tables(db, f)) /* with more of them it would wait until there is room */
            rocksdb_flush_cf(db->handle, o, db->families[f], &error);
    rocksdb_flushoptions_destroy(o);
    (void)FAILPOINT("store.flushed");
    return error ? db_take_error(error, e, "cannot write the database's memory to files") : 0;
}

bool db_flushing(struct db *db)
{
    for (int f = 0; f < FAMILIES; f++)
        if (waiting_tables(db, f))
            return true;
    return false;
}

int db_checkpoint(struct db *db, const char *path, struct err *e)
{
    char *error = NULL;

    if (FAILPOINT("store.checkpoint"))
        return err_set(e, EX_IOERR, "cannot make a checkpoint: failpoint");
    rocksdb_checkpoint_t *c = rocksdb_checkpoint_object_create(db->handle, &error);
    if (!error) { /* the log is copied as it is: a flush here would keep the loop waiting */
        rocksdb_checkpoint_create(c, path, UINT64_MAX, &error);
        rocksdb_checkpoint_object_destroy(c);
    }
    if (!error && FAILPOINT("store.checkpointed"))
        return err_set(e, EX_IOERR, "cannot make a checkpoint: failpoint");
    return error ? db_take_error(error, e, "cannot make a checkpoint") : 0;
}

void db_table_files(struct db *db, void (*each)(void *arg, const char *name, uint64_t bytes), void *arg)
{
    const rocksdb_livefiles_t *l = rocksdb_livefiles(db->handle);

    for (int i = 0; i < rocksdb_livefiles_count(l); i++) {
        const char *name = rocksdb_livefiles_name(l, i); /* "/000012.sst" */
        each(arg, name + (name[0] == '/'), rocksdb_livefiles_size(l, i));
    }
    rocksdb_livefiles_destroy(l);
}

int db_scan(struct db *db, enum family f, uint64_t *rows, struct err *e)
{
    rocksdb_readoptions_t *o = rocksdb_readoptions_create();
    char *error = NULL;

    rocksdb_readoptions_set_fill_cache(o, 0);
    int failed = FAILPOINT("store.scan");
    rocksdb_iterator_t *it = rocksdb_create_iterator_cf(db->handle, o, db->families[f]);
    *rows = 0;
    for (rocksdb_iter_seek_to_first(it); rocksdb_iter_valid(it); rocksdb_iter_next(it))
        (*rows)++;
    rocksdb_iter_get_error(it, &error);
    rocksdb_iter_destroy(it);
    rocksdb_readoptions_destroy(o);
    (void)FAILPOINT("store.scanned");
    if (failed && !error)
        return err_set(e, EX_IOERR, "cannot read the database: failpoint");
    return error ? db_take_error(error, e, "cannot read the database") : 0;
}

int db_drop_files(struct db *db, enum family f, struct slice lower, struct slice last, struct err *e)
{
    char *error = NULL;

    if (key_compare(lower, last) > 0)
        return 0;
    if (FAILPOINT("store.drop"))
        return err_set(e, EX_IOERR, "cannot remove files of the database: failpoint");
    if (!db_is_synced(db) && db_sync(db, e) < 0)
        return -1;
    rocksdb_delete_file_in_range_cf(db->handle, db->families[f], lower.p, lower.n, last.p, last.n, &error);
    (void)FAILPOINT("store.dropped");
    return error ? db_take_error(error, e, "cannot remove files of the database") : 0;
}

int db_rebuild(const char *path, struct err *e)
{
    rocksdb_options_t *o = rocksdb_options_create();
    rocksdb_block_based_table_options_t *t = rocksdb_block_based_options_create();
    char *error = NULL;

    (void)FAILPOINT("store.rebuild");
    rocksdb_block_based_options_set_format_version(t, 5);
    rocksdb_options_set_block_based_table_factory(o, t);
    rocksdb_block_based_options_destroy(t);
    rocksdb_options_set_info_log_level(o, 4);
    rocksdb_repair_db(o, path, &error);
    (void)FAILPOINT("store.rebuilt");
    rocksdb_options_destroy(o);
    return error ? db_take_error(error, e, "cannot rebuild the database") : 0;
}
