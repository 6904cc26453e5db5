/* RocksDB through its C API. The settings are those measured for small machines: small write buffers and
 * cache, a short log, no info log on the disk that may be full. */
#include "store/db.h"

#include <assert.h>
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/failpoint.h"
#include "base/mem.h"

/* What differs from family to family. */
static const struct family_setting {
    const char *name;
    size_t write_buffer;
    bool queue; /* emptied from its front: compact where many deletions stand */
    bool bloom; /* asked for keys that mostly are not there */
} settings[FAMILIES] = {
    [FAMILY_META] = {"default", 256 << 10, false, false}, [FAMILY_EVENTS] = {"events", 4 << 20, false, false},
    [FAMILY_STATES] = {"states", 1 << 20, true, false},   [FAMILY_LANES] = {"lanes", 512 << 10, true, true},
    [FAMILY_ORDER] = {"order", 512 << 10, true, false},   [FAMILY_DUE] = {"due", 512 << 10, true, false},
    [FAMILY_IDS] = {"ids", 512 << 10, true, false},       [FAMILY_AUDIT] = {"audit", 64 << 10, false, false},
    [FAMILY_MARKS] = {"marks", 512 << 10, true, false},
};

/* Options that have no setter in C. */
static const char extra_options[] = "track_and_verify_wals_in_manifest=true;avoid_flush_during_shutdown=true";

struct db {
    rocksdb_t *handle;
    rocksdb_column_family_handle_t *families[FAMILIES];
    rocksdb_options_t *options, *family_options[FAMILIES];
    rocksdb_cache_t *cache;
    rocksdb_readoptions_t *read;
    rocksdb_writeoptions_t *write, *write_sync;
    rocksdb_writebatch_wi_t *batch;
    size_t batch_bytes, batch_ops, family_ops[FAMILIES];
    unsigned iterators; /* alive */
};

struct db_iter {
    struct db *db;
    rocksdb_readoptions_t *read;
    rocksdb_iterator_t *it;
    struct buf lower, upper;
};

const char *family_name(enum family f)
{
    return settings[f].name;
}

/* Turns RocksDB's message into ours and frees it. Returns -1. */
static int take_error(char *message, struct err *e, const char *doing)
{
    bool corrupt = strncmp(message, "Corruption", 10) == 0;

    err_set(e, corrupt ? EX_DATAERR : EX_IOERR, "%s: %s", doing, message);
    rocksdb_free(message);
    return -1;
}

static rocksdb_block_based_table_options_t *table_options(rocksdb_cache_t *cache, bool bloom)
{
    rocksdb_block_based_table_options_t *t = rocksdb_block_based_options_create();

    rocksdb_block_based_options_set_block_cache(t, cache);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(t, 1);
    rocksdb_block_based_options_set_format_version(t, 5); /* what the oldest supported version reads */
    if (bloom)
        rocksdb_block_based_options_set_filter_policy(t, rocksdb_filterpolicy_create_bloom_full(10));
    return t;
}

static rocksdb_options_t *family_options_new(const struct db *db, const struct family_setting *s)
{
    rocksdb_options_t *o = rocksdb_options_create();
    rocksdb_block_based_table_options_t *t = table_options(db->cache, s->bloom);

    rocksdb_options_set_block_based_table_factory(o, t);
    rocksdb_block_based_options_destroy(t);
    rocksdb_options_set_write_buffer_size(o, s->write_buffer);
    rocksdb_options_set_max_write_buffer_number(o, 3);
    rocksdb_options_set_target_file_size_base(o, 8 << 20);
    rocksdb_options_set_max_bytes_for_level_base(o, 32 << 20);
    rocksdb_options_set_arena_block_size(o, s->write_buffer / 8);
    if (s->queue)
        rocksdb_options_add_compact_on_deletion_collector_factory(o, 1000, 500);
    return o;
}

static int options_new(struct db *db, bool create, struct err *e)
{
    rocksdb_options_t *base = rocksdb_options_create();
    char *error = NULL;

    rocksdb_options_set_create_if_missing(base, create);
    rocksdb_options_set_create_missing_column_families(base, 1);
    rocksdb_options_set_paranoid_checks(base, 1);
    rocksdb_options_set_wal_recovery_mode(base,
                                          0); /* a torn tail is a crash; damage in the middle is refused */
    rocksdb_options_set_max_open_files(base, 64);
    rocksdb_options_set_max_total_wal_size(base, 16 << 20);
    rocksdb_options_set_max_background_jobs(base, 2);
    rocksdb_options_set_info_log_level(base, 4); /* FATAL: an ENOSPC while logging would abort the process */
    rocksdb_options_set_keep_log_file_num(base, 2);
    rocksdb_options_set_max_log_file_size(base, 1 << 20);
    rocksdb_options_set_write_buffer_size(base, settings[FAMILY_META].write_buffer);
    db->options = rocksdb_options_create();
    rocksdb_get_options_from_string(base, extra_options, db->options, &error);
    rocksdb_options_destroy(base);
    return error ? take_error(error, e, "cannot set the database's options") : 0;
}

static void free_options(struct db *db)
{
    if (db->options)
        rocksdb_options_destroy(db->options);
    for (int f = 0; f < FAMILIES; f++)
        if (db->family_options[f])
            rocksdb_options_destroy(db->family_options[f]);
    if (db->cache)
        rocksdb_cache_destroy(db->cache);
    if (db->read)
        rocksdb_readoptions_destroy(db->read);
    if (db->write)
        rocksdb_writeoptions_destroy(db->write);
    if (db->write_sync)
        rocksdb_writeoptions_destroy(db->write_sync);
}

struct db *db_open(const char *path, bool create, int64_t cache_bytes, struct err *e)
{
    struct db *db = xcalloc(1, sizeof(*db));
    const char *names[FAMILIES];
    char *error = NULL;

    if (FAILPOINT("store.open")) {
        err_set(e, EX_IOERR, "cannot open the database: failpoint");
        free(db);
        return NULL;
    }
    db->cache = rocksdb_cache_create_lru((size_t)cache_bytes);
    if (options_new(db, create, e) < 0) {
        free_options(db);
        free(db);
        return NULL;
    }
    for (int f = 0; f < FAMILIES; f++) {
        names[f] = settings[f].name;
        db->family_options[f] = family_options_new(db, &settings[f]);
    }
    db->handle = rocksdb_open_column_families(db->options, path, FAMILIES, names,
                                              (const rocksdb_options_t *const *)db->family_options,
                                              db->families, &error);
    if (error) {
        take_error(error, e, "cannot open the database");
        free_options(db);
        free(db);
        return NULL;
    }
    db->read = rocksdb_readoptions_create();
    db->write = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_no_slowdown(db->write, 1);
    db->write_sync = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_no_slowdown(db->write_sync, 1);
    rocksdb_writeoptions_set_sync(db->write_sync, 1);
    db->batch = rocksdb_writebatch_wi_create(0, 1);
    return db;
}

void db_close(struct db *db)
{
    assert(db->iterators == 0);
    rocksdb_writebatch_wi_destroy(db->batch);
    for (int f = 0; f < FAMILIES; f++)
        rocksdb_column_family_handle_destroy(db->families[f]);
    rocksdb_close(db->handle);
    free_options(db);
    free(db);
}

int db_get(struct db *db, enum family f, struct slice key, struct buf *val, struct err *e)
{
    char *error = NULL, *p;
    size_t n;

    if (FAILPOINT("store.get"))
        return err_set(e, EX_IOERR, "cannot read the database: failpoint");
    if (db->family_ops[f])
        p = rocksdb_writebatch_wi_get_from_batch_and_db_cf(db->batch, db->handle, db->read, db->families[f],
                                                           key.p, key.n, &n, &error);
    else
        p = rocksdb_get_cf(db->handle, db->read, db->families[f], key.p, key.n, &n, &error);
    if (error)
        return take_error(error, e, "cannot read the database");
    if (!p)
        return 0;
    if (val) {
        buf_clear(val);
        buf_add(val, p, n);
    }
    rocksdb_free(p);
    return 1;
}

/* Accounts for an operation as RocksDB stores it: a dozen bytes beside key and value. */
static void note_op(struct db *db, enum family f, size_t bytes)
{
    assert(db->iterators == 0);
    db->batch_bytes += bytes + 12;
    db->batch_ops++;
    db->family_ops[f]++;
}

void db_put(struct db *db, enum family f, struct slice key, struct slice value)
{
    note_op(db, f, key.n + value.n);
    rocksdb_writebatch_wi_put_cf(db->batch, db->families[f], key.p, key.n, value.p, value.n);
}

void db_delete(struct db *db, enum family f, struct slice key)
{
    note_op(db, f, key.n);
    rocksdb_writebatch_wi_delete_cf(db->batch, db->families[f], key.p, key.n);
}

size_t db_batch_bytes(const struct db *db)
{
    return db->batch_bytes;
}

size_t db_batch_ops(const struct db *db)
{
    return db->batch_ops;
}

/* A batch keeps its memory when cleared: one that was large is made anew. */
static void batch_reset(struct db *db)
{
    if (db->batch_bytes > (64 << 10)) {
        rocksdb_writebatch_wi_destroy(db->batch);
        db->batch = rocksdb_writebatch_wi_create(0, 1);
    } else {
        rocksdb_writebatch_wi_clear(db->batch);
    }
    db->batch_bytes = db->batch_ops = 0;
    memset(db->family_ops, 0, sizeof(db->family_ops));
}

enum db_write db_write(struct db *db, bool sync, struct err *e)
{
    char *error = NULL;

    if (db->batch_ops == 0)
        return DB_WRITTEN;
    if (FAILPOINT("store.write")) {
        err_set(e, EX_IOERR, "cannot write the database: failpoint");
        return DB_FAILED;
    }
    rocksdb_write_writebatch_wi(db->handle, sync ? db->write_sync : db->write, db->batch, &error);
    if (error && strstr(error, "Write stall")) {
        rocksdb_free(error);
        return DB_STALLED;
    }
    if (!error && FAILPOINT("store.written")) { /* on disk, and nobody knows */
        err_set(e, EX_IOERR, "cannot write the database: failpoint");
        return DB_FAILED;
    }
    if (error) {
        take_error(error, e, "cannot write the database");
        return DB_FAILED;
    }
    batch_reset(db);
    return DB_WRITTEN;
}

int db_sync(struct db *db, struct err *e)
{
    char *error = NULL;

    if (FAILPOINT("store.sync"))
        return err_set(e, EX_IOERR, "cannot sync the database: failpoint");
    rocksdb_flush_wal(db->handle, 1, &error);
    return error ? take_error(error, e, "cannot sync the database") : 0;
}

struct db_iter *db_iter_new(struct db *db, enum family f, struct slice lower, struct slice upper)
{
    struct db_iter *it = xcalloc(1, sizeof(*it));

    it->db = db;
    buf_add_slice(&it->lower, lower); /* RocksDB borrows the bounds */
    buf_add_slice(&it->upper, upper);
    it->read = rocksdb_readoptions_create();
    rocksdb_readoptions_set_iterate_lower_bound(it->read, it->lower.p, it->lower.n);
    rocksdb_readoptions_set_iterate_upper_bound(it->read, it->upper.p, it->upper.n);
    it->it = rocksdb_create_iterator_cf(db->handle, it->read, db->families[f]);
    if (db->family_ops[f])
        it->it = rocksdb_writebatch_wi_create_iterator_with_base_cf(db->batch, it->it, db->families[f]);
    rocksdb_iter_seek(it->it, lower.p, lower.n);
    db->iterators++;
    return it;
}

/* The batch's part of the walk does not know the upper bound: it is checked here. */
bool db_iter_valid(const struct db_iter *it)
{
    if (!rocksdb_iter_valid(it->it))
        return false;
    struct slice k = db_iter_key(it);
    size_t n = k.n < it->upper.n ? k.n : it->upper.n;
    int order = memcmp(k.p, it->upper.p, n);
    return order < 0 || (order == 0 && k.n < it->upper.n);
}

void db_iter_next(struct db_iter *it)
{
    rocksdb_iter_next(it->it);
}

struct slice db_iter_key(const struct db_iter *it)
{
    size_t n;
    const char *p = rocksdb_iter_key(it->it, &n);
    return slice_make(p, n);
}

struct slice db_iter_value(const struct db_iter *it)
{
    size_t n;
    const char *p = rocksdb_iter_value(it->it, &n);
    return slice_make(p, n);
}

int db_iter_free(struct db_iter *it, struct err *e)
{
    char *error = NULL;

    rocksdb_iter_get_error(it->it, &error);
    rocksdb_iter_destroy(it->it);
    rocksdb_readoptions_destroy(it->read);
    it->db->iterators--;
    buf_free(&it->lower);
    buf_free(&it->upper);
    free(it);
    return error ? take_error(error, e, "cannot read the database") : 0;
}
