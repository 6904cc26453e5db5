/* RocksDB through its C API. The settings are those measured for small machines: small write buffers and
 * cache, a short log, no info log on the disk that may be full. */
#include "store/db.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/failpoint.h"
#include "base/mem.h"
#include "store/db_handle.h"
#include "store/log_mark.h"
#include "store/log_piece.h"
#include "store/log_tail.h"

/* What differs from family to family. */
static const struct family_setting {
    const char *name;
    size_t write_buffer;
    bool queue; /* emptied from its front: compact where many deletions stand */
    bool bloom; /* asked for keys that mostly are not there */
} settings[FAMILIES] = {
    [FAMILY_META] = {"default", 256 << 10, false, false}, [FAMILY_EVENTS] = {"events", 2 << 20, true, false},
    [FAMILY_STATES] = {"states", 1 << 20, true, false},   [FAMILY_LANES] = {"lanes", 1024 << 10, true, true},
    [FAMILY_ORDER] = {"order", 1024 << 10, true, false},  [FAMILY_DUE] = {"due", 1024 << 10, true, false},
    [FAMILY_IDS] = {"ids", 1024 << 10, true, true},       [FAMILY_AUDIT] = {"audit", 64 << 10, false, false},
    [FAMILY_MARKS] = {"marks", 512 << 10, true, false},
};

/* Options that have no setter in C: of the database, and of each family. What was deleted gives its room back within
 * days also where nothing is written any more. */
static const char extra_options[] = "track_and_verify_wals_in_manifest=true;avoid_flush_during_shutdown=true";
static const char salvage_options[] = "track_and_verify_wals_in_manifest=false;avoid_flush_during_shutdown="
                                      "true"; /* the log may have been cut */
static const char extra_family_options[] = "periodic_compaction_seconds=172800";

struct db_range {
    struct db_range *next;
    enum family family;
    struct buf lower, upper;
};

struct db_iter {
    struct db *db;
    rocksdb_readoptions_t *read;
    rocksdb_iterator_t *it; /* what is on disk */
    const struct overlay *batch;
    const struct overlay_entry *pending; /* what the batch has; the walk merges both */
    bool down;
    struct buf lower, upper;
    bool from_batch, valid; /* of the current row */
    bool failed;            /* by a failpoint */
};

const char *family_name(enum family f)
{
    return settings[f].name;
}

int db_take_error(char *message, struct err *e, const char *doing)
{
    bool corrupt = strncmp(message, "Corruption", 10) == 0;

    err_set(e, corrupt ? EX_DATAERR : EX_IOERR, "%s: %s", doing, message);
    rocksdb_free(message);
    return -1;
}

bool db_is_full(const struct err *e)
{
    return strstr(e->text, "No space left on device") || strstr(e->text, "Disk quota exceeded");
}

/* The same of an open, which also meets files that are gone. */
static void take_open_error(char *message, struct err *e)
{
    /* "Invalid argument: ... IO error: ... Too many open files": a file could not be looked at, and may be well */
    bool could_not_look = strstr(message, "IO error") != NULL;
    bool incomplete = (strncmp(message, "Invalid argument", 16) == 0 && !could_not_look) ||
                      strncmp(message, "NotFound", 8) == 0 ||
                      strstr(message, "No such file or directory") != NULL;

    db_take_error(message, e, "cannot open the database");
    if (incomplete)
        e->exit_code = EX_DATAERR;
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

/* Adds options given as text. Frees base. Returns NULL and e on failure. */
static rocksdb_options_t *options_add(rocksdb_options_t *base, const char *text, struct err *e)
{
    rocksdb_options_t *o = rocksdb_options_create();
    char *error = NULL;

    rocksdb_get_options_from_string(base, text, o, &error);
    rocksdb_options_destroy(base);
    if (!error)
        return o;
    rocksdb_options_destroy(o);
    db_take_error(error, e, "cannot set the database's options");
    return NULL;
}

static rocksdb_options_t *family_options_new(const struct db *db, const struct family_setting *s,
                                             struct err *e)
{
    rocksdb_options_t *o = rocksdb_options_create();
    rocksdb_block_based_table_options_t *t = table_options(db->cache, s->bloom);

    rocksdb_options_set_block_based_table_factory(o, t);
    rocksdb_block_based_options_destroy(t);
    rocksdb_options_set_write_buffer_size(o, s->write_buffer);
    rocksdb_options_set_max_write_buffer_number(o, 3);
    rocksdb_options_set_level0_file_num_compaction_trigger(o, 6);
    rocksdb_options_set_level0_slowdown_writes_trigger(o, 40);
    rocksdb_options_set_level0_stop_writes_trigger(o, 60);
    rocksdb_options_set_target_file_size_base(o, 8 << 20);
    rocksdb_options_set_max_bytes_for_level_base(o, 32 << 20);
    rocksdb_options_set_arena_block_size(o, s->write_buffer / 8);
    if (s->bloom) {
        rocksdb_options_set_memtable_prefix_bloom_size_ratio(o, 0.1);
        rocksdb_options_set_memtable_whole_key_filtering(o, 1);
    }
    if (s->queue)
        rocksdb_options_add_compact_on_deletion_collector_factory(o, 1000, 500);
    return options_add(o, extra_family_options, e);
}

static int options_new(struct db *db, enum db_mode mode, struct err *e)
{
    bool salvage = mode == DB_POINT || mode == DB_SKIP;
    rocksdb_options_t *base = rocksdb_options_create();

    rocksdb_options_set_create_if_missing(base, mode == DB_CREATE);
    rocksdb_options_set_create_missing_column_families(base, 1);
    rocksdb_options_set_paranoid_checks(base, mode != DB_SKIP); /* 0 goes on behind a damaged record */
    /* a torn tail is a crash; damage in the middle is refused, unless a person said what to do with it */
    rocksdb_options_set_wal_recovery_mode(base, mode == DB_POINT ? 2 : mode == DB_SKIP ? 3 : 0);
    rocksdb_options_set_max_open_files(base, 64);
    rocksdb_options_set_max_total_wal_size(base, 16 << 20);
    rocksdb_options_set_manifest_preallocation_size(base, 64 << 10); /* of 4 MB: nearly all would be wasted */
    rocksdb_options_set_max_background_jobs(base, 2);
    rocksdb_options_set_info_log_level(base, 4); /* FATAL: an ENOSPC while logging would abort the process */
    rocksdb_options_set_keep_log_file_num(base, 2);
    rocksdb_options_set_max_log_file_size(base, 1 << 20);
    rocksdb_options_set_write_buffer_size(base, settings[FAMILY_META].write_buffer);
    db->options = options_add(base, salvage ? salvage_options : extra_options, e);
    return db->options ? 0 : -1;
}

static int family_options(struct db *db, const char *names[FAMILIES], struct err *e)
{
    for (int f = 0; f < FAMILIES; f++) {
        names[f] = settings[f].name;
        db->family_options[f] = family_options_new(db, &settings[f], e);
        if (!db->family_options[f])
            return -1;
    }
    return 0;
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

struct db *db_open(const char *path, enum db_mode mode, int64_t cache_bytes, struct err *e)
{
    struct db *db = xcalloc(1, sizeof(*db));
    const char *names[FAMILIES];
    char *error = NULL;

    if (FAILPOINT("store.open")) {
        err_set(e, EX_IOERR, "cannot open the database: failpoint");
        free(db);
        return NULL;
    }
    if ((mode == DB_OPEN || mode == DB_LOOK) && log_tail_look(path, e) != LOG_WHOLE) {
        free(db);
        return NULL;
    }
    db->cache = rocksdb_cache_create_lru((size_t)cache_bytes);
    if (options_new(db, mode, e) < 0 || family_options(db, names, e) < 0) {
        free_options(db);
        free(db);
        return NULL;
    }
    const rocksdb_options_t *const *options = (const rocksdb_options_t *const *)db->family_options;
    if (mode == DB_LOOK)
        db->handle = rocksdb_open_for_read_only_column_families(db->options, path, FAMILIES, names, options,
                                                                db->families, 0, &error);
    else
        db->handle =
            rocksdb_open_column_families(db->options, path, FAMILIES, names, options, db->families, &error);
    if (error) {
        take_open_error(error, e);
        free_options(db);
        free(db);
        return NULL;
    }
    db->synced = rocksdb_get_latest_sequence_number(db->handle); /* what the log held is in tables now */
    db->read = rocksdb_readoptions_create();
    db->write = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_no_slowdown(db->write, 1);
    db->write_sync = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_no_slowdown(db->write_sync, 1);
    rocksdb_writeoptions_set_sync(db->write_sync, 1);
    for (int f = 0; f < FAMILIES; f++)
        db->batch[f] = overlay_new();
    (void)FAILPOINT("store.opened");
    return db;
}

static void free_ranges(struct db *db)
{
    while (db->ranges) {
        struct db_range *r = db->ranges;
        db->ranges = r->next;
        buf_free(&r->lower);
        buf_free(&r->upper);
        free(r);
    }
    db->n_ranges = 0;
}

void db_close(struct db *db)
{
    assert(db->iterators == 0);
    (void)FAILPOINT("store.close");
    free_ranges(db);
    for (int f = 0; f < FAMILIES; f++) {
        overlay_free(db->batch[f]);
        rocksdb_column_family_handle_destroy(db->families[f]);
    }
    rocksdb_close(db->handle);
    (void)FAILPOINT("store.closed");
    free_options(db);
    free(db);
}

/* Copies a value out. */
static void give(struct buf *val, struct slice value)
{
    if (!val)
        return;
    buf_clear(val);
    buf_add_slice(val, value);
}

int db_get(struct db *db, enum family f, struct slice key, struct buf *val, struct err *e)
{
    const struct overlay_entry *pending = overlay_find(db->batch[f], key);
    char *error = NULL;
    size_t n;

    if (FAILPOINT("store.get"))
        return err_set(e, EX_IOERR, "cannot read the database: failpoint");
    if (pending) {
        if (!overlay_deleted(pending))
            give(val, overlay_value(pending));
        return !overlay_deleted(pending);
    }
    rocksdb_pinnableslice_t *p =
        rocksdb_get_pinned_cf(db->handle, db->read, db->families[f], key.p, key.n, &error);
    (void)FAILPOINT("store.got");
    if (error)
        return db_take_error(error, e, "cannot read the database");
    if (!p)
        return 0;
    const char *bytes = rocksdb_pinnableslice_value(p, &n);
    give(val, slice_make(bytes, n));
    rocksdb_pinnableslice_destroy(p);
    return 1;
}

void db_put(struct db *db, enum family f, struct slice key, struct slice value)
{
    assert(db->iterators == 0);
    overlay_put(db->batch[f], key, value);
}

void db_delete(struct db *db, enum family f, struct slice key)
{
    assert(db->iterators == 0);
    overlay_delete(db->batch[f], key);
}

void db_delete_range(struct db *db, enum family f, struct slice lower, struct slice upper)
{
    if (key_compare(lower, upper) >= 0) /* would poison the database for good */
        return;
    (void)FAILPOINT("store.delete_range");
    struct db_range *r = xcalloc(1, sizeof(*r));
    r->family = f;
    buf_add_slice(&r->lower, lower);
    buf_add_slice(&r->upper, upper);
    r->next = db->ranges;
    db->ranges = r;
    db->n_ranges++;
    (void)FAILPOINT("store.range_deleted");
}

size_t db_batch_bytes(const struct db *db)
{
    size_t n = 0;

    for (int f = 0; f < FAMILIES; f++)
        n += overlay_bytes(db->batch[f]) + 12 * overlay_count(db->batch[f]); /* as RocksDB will store it */
    return n;
}

size_t db_batch_ops(const struct db *db)
{
    size_t n = db->n_ranges;

    for (int f = 0; f < FAMILIES; f++)
        n += overlay_count(db->batch[f]);
    return n;
}

/* The open batch as RocksDB wants it. */
static rocksdb_writebatch_t *batch_build(const struct db *db)
{
    rocksdb_writebatch_t *b = rocksdb_writebatch_create();
    char mark[LOG_MARK_SIZE];

    log_mark_make(db->synced, db->unsynced, mark);
    rocksdb_writebatch_put_log_data(b, mark, sizeof(mark));
    for (const struct db_range *r = db->ranges; r; r = r->next)
        rocksdb_writebatch_delete_range_cf(b, db->families[r->family], r->lower.p, r->lower.n, r->upper.p,
                                           r->upper.n);
    for (int f = 0; f < FAMILIES; f++)
        for (const struct overlay_entry *e = overlay_first(db->batch[f]); e; e = overlay_next(e)) {
            struct slice k = overlay_key(e), v = overlay_value(e);
            if (overlay_deleted(e))
                rocksdb_writebatch_delete_cf(b, db->families[f], k.p, k.n);
            else
                rocksdb_writebatch_put_cf(b, db->families[f], k.p, k.n, v.p, v.n);
        }
    return b;
}

/* Of all logs. */
static void note_synced(struct db *db)
{
    db->synced = rocksdb_get_latest_sequence_number(db->handle);
    db->unsynced = 0;
}

/* Writes without asking whether it may fail. Returns RocksDB's message, or NULL. */
static char *write_batch(struct db *db, bool sync)
{
    char *error = NULL;
    rocksdb_writebatch_t *b = batch_build(db);
    size_t size;

    (void)rocksdb_writebatch_data(b, &size);
    rocksdb_write(db->handle, sync ? db->write_sync : db->write, b, &error);
    rocksdb_writebatch_destroy(b);
    if (!error && sync)
        note_synced(db);
    else if (!error)
        db->unsynced += LOG_HEADER + size;
    return error;
}

enum db_write db_write(struct db *db, bool sync, struct err *e)
{
    if (db_batch_ops(db) == 0)
        return DB_WRITTEN;
    if (FAILPOINT("store.write")) {
        err_set(e, EX_IOERR, "cannot write the database: failpoint");
        return DB_FAILED;
    }
    if (FAILPOINT("store.stall"))
        return DB_STALLED;
    char *error = write_batch(db, sync);
    if (error && strstr(error, "Write stall")) {
        rocksdb_free(error);
        return DB_STALLED;
    }
    if (!error && FAILPOINT("store.written")) { /* on disk, and nobody knows */
        err_set(e, EX_IOERR, "cannot write the database: failpoint");
        return DB_FAILED;
    }
    if (error) {
        db_take_error(error, e, "cannot write the database");
        return DB_FAILED;
    }
    for (int f = 0; f < FAMILIES; f++)
        overlay_clear(db->batch[f]);
    free_ranges(db);
    return DB_WRITTEN;
}

uint64_t db_background_errors(const struct db *db)
{
    uint64_t n = 0;

    rocksdb_property_int_cf(db->handle, db->families[FAMILY_META], "rocksdb.background-errors", &n);
    return n;
}

bool db_failed_behind(struct db *db, struct err *e)
{
    uint64_t n = db_background_errors(db);

    if (n == db->background_seen)
        return false;
    db->background_seen = n;
    char *error = write_batch(db, false); /* an empty one: fails where any would */
    if (error && strstr(error, "Write stall")) {
        rocksdb_free(error);
        error = NULL;
    }
    return error && db_take_error(error, e, "cannot write the database") < 0;
}

bool db_is_synced(const struct db *db)
{
    return !db->unsynced;
}

int db_sync(struct db *db, struct err *e)
{
    char *error = NULL;

    if (FAILPOINT("store.sync"))
        return err_set(e, EX_IOERR, "cannot sync the database: failpoint");
    rocksdb_flush_wal(db->handle, 1, &error);
    if (!error)
        note_synced(db);
    if (!error && FAILPOINT("store.synced"))
        return err_set(e, EX_IOERR, "cannot sync the database: failpoint");
    return error ? db_take_error(error, e, "cannot sync the database") : 0;
}

static struct slice disk_key(const struct db_iter *it)
{
    size_t n;
    const char *p = rocksdb_iter_key(it->it, &n);
    return slice_make(p, n);
}

static void step_disk(struct db_iter *it)
{
    if (it->down)
        rocksdb_iter_prev(it->it);
    else
        rocksdb_iter_next(it->it);
}

static void step_pending(struct db_iter *it)
{
    it->pending = it->down ? overlay_before(it->batch, overlay_key(it->pending)) : overlay_next(it->pending);
}

/* Whether what the batch has next is within the bound that the walk goes to. */
static bool pending_within(const struct db_iter *it)
{
    if (!it->pending)
        return false;
    return it->down ? key_compare(overlay_key(it->pending), buf_slice(&it->lower)) >= 0
                    : key_compare(overlay_key(it->pending), buf_slice(&it->upper)) < 0;
}

/* Finds the row that the walk stands on: of both keys the one that comes first on its way; the batch's where they are
 * equal, and none where that is a deletion. */
static void settle(struct db_iter *it)
{
    for (;;) {
        bool on_disk = rocksdb_iter_valid(it->it);
        bool in_batch = pending_within(it);
        it->valid = on_disk || in_batch;
        if (!in_batch) {
            it->from_batch = false;
            return;
        }
        int order = on_disk ? key_compare(overlay_key(it->pending), disk_key(it)) : 0;
        if (it->down)
            order = -order;
        it->from_batch = !on_disk || order <= 0;
        if (!it->from_batch)
            return;
        if (on_disk && order == 0)
            step_disk(it);
        if (!overlay_deleted(it->pending))
            return;
        step_pending(it);
    }
}

static struct db_iter *iter_new(struct db *db, enum family f, struct slice lower, struct slice upper,
                                bool down)
{
    struct db_iter *it = xcalloc(1, sizeof(*it));

    it->db = db;
    it->down = down;
    it->batch = db->batch[f];
    buf_add_slice(&it->lower, lower); /* RocksDB borrows the bounds */
    buf_add_slice(&it->upper, upper);
    it->read = rocksdb_readoptions_create();
    rocksdb_readoptions_set_iterate_lower_bound(it->read, it->lower.p, it->lower.n);
    rocksdb_readoptions_set_iterate_upper_bound(it->read, it->upper.p, it->upper.n);
    it->failed = FAILPOINT("store.walk");
    it->it = rocksdb_create_iterator_cf(db->handle, it->read, db->families[f]);
    if (down)
        rocksdb_iter_seek_to_last(it->it);
    else
        rocksdb_iter_seek(it->it, lower.p, lower.n);
    (void)FAILPOINT("store.walked");
    it->pending = down ? overlay_before(it->batch, upper) : overlay_seek(it->batch, lower);
    db->iterators++;
    settle(it);
    it->valid &= !it->failed;
    return it;
}

struct db_iter *db_iter_new(struct db *db, enum family f, struct slice lower, struct slice upper)
{
    return iter_new(db, f, lower, upper, false);
}

struct db_iter *db_iter_new_down(struct db *db, enum family f, struct slice lower, struct slice upper)
{
    return iter_new(db, f, lower, upper, true);
}

bool db_iter_valid(const struct db_iter *it)
{
    return it->valid;
}

void db_iter_next(struct db_iter *it)
{
    if (it->from_batch)
        step_pending(it);
    else
        step_disk(it);
    settle(it);
}

struct slice db_iter_key(const struct db_iter *it)
{
    return it->from_batch ? overlay_key(it->pending) : disk_key(it);
}

struct slice db_iter_value(const struct db_iter *it)
{
    size_t n;

    if (it->from_batch)
        return overlay_value(it->pending);
    const char *p = rocksdb_iter_value(it->it, &n);
    return slice_make(p, n);
}

int db_iter_free(struct db_iter *it, struct err *e)
{
    bool failed = it->failed;
    char *error = NULL;

    rocksdb_iter_get_error(it->it, &error);
    rocksdb_iter_destroy(it->it);
    rocksdb_readoptions_destroy(it->read);
    it->db->iterators--;
    buf_free(&it->lower);
    buf_free(&it->upper);
    free(it);
    if (failed && !error)
        return err_set(e, EX_IOERR, "cannot read the database: failpoint");
    return error ? db_take_error(error, e, "cannot read the database") : 0;
}
