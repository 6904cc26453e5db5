/* Holes in the manifest: what a power cut may leave is cut off, if the logs have it yet; all else is damage. RocksDB passes by
 * them, and by the records behind; then it removes the tables of which it did not read. */
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "logs.h"
#include "store/log_index.h"
#include "store/log_reader.h"

static unsigned records_of(const char *path)
{
    struct log_reader r;
    unsigned n = 0;

    assert_int_equal(log_reader_open(&r, path, 0), 0);
    while (log_reader_next(&r) > 0)
        n++;
    log_reader_close(&r);
    return n;
}

static void a_hole_in_the_manifest(void **state)
{
    struct err e;
    unsigned n = 3;

    logs_make(*state);
    for (unsigned i = 1; i + 1 < n; i++) {
        copy_make(*state);
        n = records_of(logs_manifest());
        logs_zero(logs_manifest(), copy_piece_at(logs_manifest(), i), copy_piece_at(logs_manifest(), i + 1));
        logs_expect(LOG_DAMAGED, "a hole in the manifest");
        assert_null(copy_open(&e));
        assert_int_equal(e.exit_code, EX_DATAERR);
    }
    assert_true(n > 3);
}

/* As of a flush: a record that is longer than a sector, and one more, with the same next file; then others, one for each
 * number of a next file. Of the first, what it has of its first sector is zeros. Returns where it begins. */
static int64_t tear_manifest(const uint64_t *next_files, size_t n)
{
    char text[SECTOR + 100] = "";
    int64_t at = copy_size_of(logs_manifest());
    struct buf record = BUF_EMPTY;

    for (size_t i = 0; i < n + 2; i++) {
        buf_clear(&record);
        logs_put_number(&record, 3);
        logs_put_number(&record, i < 2 ? 1000 : next_files[i - 2]);
        if (i == 0) {
            logs_put_number(&record, 8192 | 4000);
            logs_put_number(&record, sizeof(text));
            buf_add(&record, text, sizeof(text));
        }
        logs_add_record(buf_slice(&record));
    }
    buf_free(&record);
    logs_zero(logs_manifest(), at, (at / SECTOR + 1) * SECTOR);
    return at;
}

/* RocksDB writes several records before it syncs them: a power cut leaves any of them, but no later ones. */
static void a_torn_group_in_the_manifest(void **state)
{
    struct err e;

    logs_make(*state);
    copy_make(*state);
    (void)tear_manifest((uint64_t[]){1000, 1000}, 2);
    logs_expect(LOG_TORN, "of one group");
    struct spool *sp = copy_open(&e);
    if (!sp)
        fail_msg("%s", e.text);
    spool_close(sp);

    copy_make(*state);
    int64_t at = tear_manifest(NULL, 0);
    assert_int_equal(log_tail_cut(copy_db, &e), 1);
    assert_int_equal(copy_size_of(logs_manifest()), at);
    logs_expect(LOG_WHOLE, "what is left");

    copy_make(*state);
    (void)tear_manifest((uint64_t[]){1001}, 1);
    logs_expect(LOG_DAMAGED, "a later record follows");
    copy_make(*state);
    (void)tear_manifest((uint64_t[]){1000, 1001, 1001}, 3);
    logs_expect(LOG_DAMAGED, "two later records follow");
    copy_make(*state);
    (void)tear_manifest(NULL, 0);
    logs_add_record(slice_make("\111\0", 2));
    logs_expect(LOG_DAMAGED, "a record follows that tells no next file");
    copy_make(*state);
    (void)tear_manifest(NULL, 0);
    logs_add_record(slice_make("\3\350\7\311\1\1f", 7));
    logs_expect(LOG_DAMAGED, "a family follows, which is synced alone");
    copy_make(*state);
    (void)tear_manifest((uint64_t[]){1000}, 1);
    logs_write(logs_manifest(), copy_size_of(logs_manifest()) - 1, "\377", 1);
    logs_expect(LOG_DAMAGED, "a bit of what follows is flipped");
}

/* What the manifest has lost must be in the logs: what lost tables held, */
static void a_group_lost_that_held_more(void **state)
{
    struct buf record = BUF_EMPTY;

    logs_make(*state);
    for (int more = 0; more < 2; more++) {
        copy_make(*state);
        (void)tear_manifest(NULL, 0);
        buf_clear(&record);
        buf_add(&record, "\3\350\7\4", 4); /* next file 1000; last sequence: */
        logs_put_number(&record, more ? 1000000 : 10);
        logs_add_record(buf_slice(&record));
        logs_expect(more ? LOG_DAMAGED : LOG_TORN, "a record behind says what tables held");
    }
    buf_free(&record);
}

/* and all since the tables that are left. */
static void a_group_lost_whose_log_is_gone(void **state)
{
    struct buf log = BUF_EMPTY;
    struct err e = ERR_NONE;

    logs_make(*state);
    copy_make(*state);
    assert_int_equal(copy_files(copy_dir, ".log", logs_paths, ARRAY_LEN(logs_paths)), 1);
    (void)tear_manifest(NULL, 0);
    logs_expect(LOG_TORN, "with all of the log");
    int64_t from = copy_piece_at(logs_paths[0], 2);
    assert_int_equal(file_read(logs_paths[0], 1 << 20, &log, &e), 0);
    logs_write(logs_paths[0], 0, log.p + from, log.n - (size_t)from);
    assert_int_equal(truncate(logs_paths[0], copy_size_of(logs_paths[0]) - from), 0);
    buf_free(&log);
    logs_expect(LOG_DAMAGED, "without its first batches");
    assert_int_equal(log_tail_cut(copy_db, &e), 0);
    (void)logs_put_piece(logs_paths[0], copy_size_of(logs_paths[0]), 9, slice_make("\0", 1));
    logs_expect(LOG_TORN, "a log where the first batches may be in pieces of a kind that is not known");
}

/* Of a damaged manifest nobody knows what it said of the logs. */
static void a_hole_in_both(void **state)
{
    struct err e = ERR_NONE;

    logs_make(*state);
    const char *log = logs_torn(*state);
    int64_t size = copy_size_of(log);
    logs_write(logs_manifest(), copy_piece_at(logs_manifest(), 1) + 9, "\377", 1);
    logs_expect(LOG_DAMAGED, "the manifest");
    assert_int_equal(log_tail_cut(copy_db, &e), 0);
    assert_int_equal(copy_size_of(log), size);
}

/* ---- of what was synced --------------------------------------------------------------------------- */

/* Batches of a row in each of the families. */
static void put_rows(struct db *db, unsigned life, unsigned batches, int families, unsigned key_size)
{
    char key[64] = "";
    struct err e;

    for (unsigned i = 0; i < batches; i++) {
        snprintf(key, sizeof(key), "%u %u", life, i);
        for (int f = 0; f < families; f++)
            db_put(db, (enum family)f, slice_make(key, key_size), slice_make(key, sizeof(key)));
        assert_int_equal(db_write(db, true, &e), DB_WRITTEN);
    }
}

static void flush(struct db *db)
{
    struct err e;

    assert_int_equal(db_flush_begin(db, &e), 0);
    while (db_flushing(db))
        usleep(1000);
}

enum kind { NOTHING_SINCE, BATCHES_SINCE, A_FLUSH_SINCE, ONLY_A_FLUSH, KINDS };
static const char *const kinds[] = {"nothing since", "batches since", "a flush since",
                                    "a flush since, and nothing more"};

/* Two lives, so that the manifest begins with the tables of the first one, whose last batch is of one family; then what the
 * kind says. The size of keys moves all records by some bytes. */
static void make_lives(const char *dir, unsigned key_size, enum kind kind)
{
    char *path = xasprintf("%s/db", dir);

    copy_run("rm -rf", path, "");
    copy_run("mkdir", path, "");
    free(path);
    struct db *db = world_db(dir, DB_CREATE);
    put_rows(db, 1, 5, FAMILIES, key_size);
    put_rows(db, 2, 1, 1, key_size);
    db_close(db);
    db = world_db(dir, DB_OPEN);
    if (kind != NOTHING_SINCE)
        put_rows(db, 3, 5, kind == ONLY_A_FLUSH ? 1 : FAMILIES, key_size);
    if (kind == A_FLUSH_SINCE || kind == ONLY_A_FLUSH)
        flush(db);
    if (kind == A_FLUSH_SINCE)
        put_rows(db, 4, 1, 1, key_size);
    db_close(db);
}

/* Of the copy. Returns false if RocksDB finds it damaged. */
static bool count_rows(uint64_t *sum)
{
    struct err e = ERR_NONE;
    struct db *db = db_open(copy_db, DB_OPEN, 1 << 20, &e);
    uint64_t rows;

    *sum = 0;
    if (!db) {
        assert_int_equal(e.exit_code, EX_DATAERR);
        return false;
    }
    for (int f = 0; f < FAMILIES; f++) {
        assert_int_equal(db_scan(db, (enum family)f, &rows, &e), 0);
        *sum += rows;
    }
    db_close(db);
    return true;
}

struct lives {
    struct world *w;
    const char *what;
    uint64_t rows;
};

/* Makes zeros of a copy's manifest: what is left must be called damage, or open with all rows. */
static void lose(const struct lives *l, int64_t at, int64_t n)
{
    struct err e = ERR_NONE;
    uint64_t rows;

    copy_make(l->w);
    int64_t size = copy_size_of(logs_manifest());
    logs_zero(logs_manifest(), at, at + n < size ? at + n : size);
    if (log_tail_look(copy_db, &e) == LOG_DAMAGED)
        return;
    assert_true(log_tail_cut(copy_db, &e) >= 0);
    if (count_rows(&rows) && rows != l->rows)
        fail_msg("%s, manifest without %d bytes at %d: rows are lost", l->what, (int)n, (int)at);
}

static void lose_each_sector(const struct lives *l)
{
    copy_make(l->w);
    int64_t size = copy_size_of(logs_manifest());
    for (int64_t at = 0; at < size; at += SECTOR)
        lose(l, at, SECTOR);
}

static void lose_each_end(const struct lives *l)
{
    copy_make(l->w);
    unsigned n = records_of(logs_manifest());
    for (unsigned i = 0; i < n; i++) {
        copy_make(l->w);
        lose(l, copy_piece_at(logs_manifest(), i), LOG_BLOCK);
    }
}

/* The manifest tells of tables whose logs are gone: they must not be forgotten without a word. */
static void what_was_synced_is_lost(void **state)
{
    struct lives l = {.w = *state};

    world_close(l.w);
    for (int kind = 0; kind < KINDS; kind++)
        for (unsigned key_size = 8; key_size <= 8 * OFTEN(3); key_size += 8) {
            make_lives(l.w->dir, key_size, (enum kind)kind);
            copy_make(l.w);
            l.what = kinds[kind];
            assert_true(count_rows(&l.rows));
            lose_each_sector(&l);
            if (key_size == 8 && kind != ONLY_A_FLUSH) /* of its end, nothing would say that it was synced */
                lose_each_end(&l);
        }
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, world_setup, copy_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_hole_in_the_manifest),
        TEST(a_torn_group_in_the_manifest),
        TEST(a_group_lost_that_held_more),
        TEST(a_group_lost_whose_log_is_gone),
        TEST(a_hole_in_both),
        TEST(what_was_synced_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
