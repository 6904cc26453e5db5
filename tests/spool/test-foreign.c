/* Logs and manifests that are not as this tgspool leaves them: of another RocksDB, or damaged where the manifest tells of the
 * logs. What is not understood is cut nowhere. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "copy.h"
#include "store/db.h"
#include "store/log_index.h"
#include "store/log_piece.h"
#include "store/log_reader.h"
#include "store/log_tail.h"

#define SECTOR 512

static char db_path[100]; /* of the copy */
static char log_paths[4][COPY_PATH_MAX];

static void write_at(const char *path, int64_t at, const void *p, size_t n)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    assert_int_equal(pwrite(fd, p, n, at), n);
    close(fd);
}

/* Writes a piece into a file's first block. Returns where it ends. */
static int64_t put_piece(const char *path, int64_t at, unsigned type, struct slice data)
{
    struct buf piece = BUF_EMPTY;

    assert_in_range(data.n, 0, 1000);
    log_piece_put(&piece, type, data.p, data.n);
    assert_in_range(at, 0, LOG_BLOCK - piece.n);
    write_at(path, at, piece.p, piece.n);
    at += (int64_t)piece.n;
    buf_free(&piece);
    return at;
}

static const char *manifest(void)
{
    static char path[COPY_PATH_MAX];
    struct err e = ERR_NONE;
    char *found = log_index_path(db_path, &e);

    assert_non_null(found);
    snprintf(path, sizeof(path), "%s", found);
    free(found);
    return path;
}

static void add_to_manifest(struct slice record)
{
    (void)put_piece(manifest(), copy_size_of(manifest()), PIECE_FULL, record);
}

static void put_number(struct buf *b, uint64_t v)
{
    for (; v > 127; v >>= 7)
        buf_add(b, &(char){(char)(v | 128)}, 1);
    buf_add(b, &(char){(char)v}, 1);
}

/* A tag with bytes of numbers. */
static void put_told(struct buf *b, unsigned tag, const uint64_t *numbers, size_t n)
{
    struct buf value = BUF_EMPTY;

    for (size_t i = 0; i < n; i++)
        put_number(&value, numbers[i]);
    put_number(b, 8192 | tag);
    put_number(b, value.n);
    buf_add_slice(b, buf_slice(&value));
    buf_free(&value);
}

static void tell_in_manifest(unsigned tag, const uint64_t *numbers, size_t n)
{
    struct buf record = BUF_EMPTY;

    put_told(&record, tag, numbers, n);
    add_to_manifest(buf_slice(&record));
    buf_free(&record);
}

static void expect(enum log_state state, const char *what)
{
    struct err e = ERR_NONE;
    enum log_state found = log_tail_look(db_path, &e);

    if (found != state)
        fail_msg("%s: %d, not %d: %s", what, (int)found, (int)state, e.text);
}

/* Some batches of one log, none of them synced. */
static void work(struct world *w)
{
    world_close(w);
    w->sync = SYNC_OFF;
    world_open(w);
    for (unsigned i = 1; i < 10; i++) {
        world_begin(w);
        world_accept(w, i, 1, "some text, so that it is of more than a few bytes");
        spool_commit(w->sp);
    }
    snprintf(db_path, sizeof(db_path), "%s-copy/db", w->dir);
}

/* A copy whose log has a hole that would be cut off. */
static const char *torn_copy(struct world *w)
{
    static const char zeros[LOG_BLOCK];

    copy_make(w);
    assert_int_equal(copy_files(copy_dir, ".log", log_paths, ARRAY_LEN(log_paths)), 1);
    int64_t from = copy_piece_at(log_paths[0], 3);
    write_at(log_paths[0], from, zeros, (size_t)(copy_piece_at(log_paths[0], 5) - from));
    expect(LOG_TORN, "a hole");
    return log_paths[0];
}

/* ---- logs --------------------------------------------------------------------------------------- */

static void a_piece_of_an_unknown_kind(void **state)
{
    static const unsigned kinds[] = {9, 10, 127};
    struct slice data = {"\0\0\0\0", 4};

    work(*state);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        const char *log = torn_copy(*state);
        (void)put_piece(log, copy_size_of(log), kinds[i], data);
        expect(LOG_WHOLE, "a kind that changes the meaning of others");
    }
    const char *log = torn_copy(*state);
    (void)put_piece(log, copy_size_of(log), 130, data);
    expect(LOG_TORN, "a kind that may be ignored");
}

/* Of a log that is written over an older one: such heads are longer, and hold one more thing to be summed. */
static void a_recycled_log(void **state)
{
    char piece[2000] = "\1\2\3\4\xc0\7\5\0\0\0\0";

    work(*state);
    copy_make(*state);
    assert_int_equal(copy_files(copy_dir, ".log", log_paths, ARRAY_LEN(log_paths)), 1);
    write_at(log_paths[0], copy_piece_at(log_paths[0], 3), piece, sizeof(piece)); /* has a sector of zeros */
    expect(LOG_DAMAGED, "a piece of a recycled log");
}

static void a_record_of_nothing(void **state)
{
    work(*state);
    const char *log = torn_copy(*state);
    (void)put_piece(log, copy_size_of(log), PIECE_FULL, slice_make(NULL, 0));
    expect(LOG_TORN, "an empty record behind a hole");
}

/* ---- the manifest ------------------------------------------------------------------------------- */

static void a_tag_that_is_unknown(void **state)
{
    work(*state);
    (void)torn_copy(*state);
    tell_in_manifest(4000, NULL, 0);
    expect(LOG_TORN, "a tag that may be ignored");
    add_to_manifest(slice_make("\115\1\1", 3));
    expect(LOG_WHOLE, "a tag that may not");
}

/* Logs that are not tracked any more are needed yet. */
static void logs_gone_from_the_tracked(void **state)
{
    work(*state);
    (void)torn_copy(*state);
    tell_in_manifest(8, &(uint64_t){1000}, 1);
    expect(LOG_TORN, "a log that is not tracked");
}

/* A long life's worth of logs. */
static void many_logs_were_there(void **state)
{
    struct err e = ERR_NONE;
    struct log_index x;

    work(*state);
    copy_make(*state);
    for (uint64_t n = 1000; n < 1100; n++) {
        tell_in_manifest(7, (uint64_t[]){n, 2, 5000, 1}, 4);
        tell_in_manifest(8, &(uint64_t){n}, 1);
    }
    assert_int_equal(log_index_read(db_path, &x, &e), 0);
    assert_int_equal(x.gap, LOG_GAP_NONE);
    assert_int_equal(x.n, 1);
    assert_int_equal(x.synced[0].number, 1099);
    log_index_free(&x);
}

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

/* RocksDB passes by zeros, and by the records behind them; then it removes the tables of which it did not read. */
static void a_hole_in_the_manifest(void **state)
{
    static const char zeros[LOG_BLOCK];
    struct err e;
    unsigned n = 3;

    work(*state);
    for (unsigned i = 1; i + 1 < n; i++) {
        copy_make(*state);
        n = records_of(manifest());
        int64_t from = copy_piece_at(manifest(), i);
        write_at(manifest(), from, zeros, (size_t)(copy_piece_at(manifest(), i + 1) - from));
        expect(LOG_DAMAGED, "a hole in the manifest");
        assert_null(copy_open(&e));
        assert_int_equal(e.exit_code, EX_DATAERR);
    }
    assert_true(n > 3);
}

/* As of a flush: a record that is longer than a sector, and one more, with the same next file; then others, one for each
 * number of a next file. The first sectors of the first are zeros. Returns where it begins. */
static int64_t tear_manifest(const uint64_t *next_files, size_t n)
{
    static const char zeros[SECTOR];
    char text[SECTOR + 100] = "";
    int64_t at = copy_size_of(manifest()), in_sector = at % SECTOR;
    struct buf record = BUF_EMPTY;

    for (size_t i = 0; i < n + 2; i++) {
        buf_clear(&record);
        put_number(&record, 3);
        put_number(&record, i < 2 ? 1000 : next_files[i - 2]);
        if (i == 0) {
            put_number(&record, 8192 | 4000);
            put_number(&record, sizeof(text));
            buf_add(&record, text, sizeof(text));
        }
        add_to_manifest(buf_slice(&record));
    }
    buf_free(&record);
    write_at(manifest(), at, zeros, (size_t)(SECTOR - in_sector));
    return at;
}

/* RocksDB writes several records before it syncs them: a power cut leaves any of them, but no later ones. */
static void a_torn_group_in_the_manifest(void **state)
{
    struct err e;

    work(*state);
    copy_make(*state);
    int64_t at = tear_manifest((uint64_t[]){1000, 1000}, 2);
    expect(LOG_TORN, "of one group");
    struct spool *sp = copy_open(&e);
    if (!sp)
        fail_msg("%s", e.text);
    spool_close(sp);

    copy_make(*state);
    at = tear_manifest(NULL, 0);
    assert_int_equal(log_tail_cut(db_path, &e), 1);
    assert_int_equal(copy_size_of(manifest()), at);
    expect(LOG_WHOLE, "what is left");

    copy_make(*state);
    (void)tear_manifest((uint64_t[]){1001}, 1);
    expect(LOG_DAMAGED, "a later record follows");
    copy_make(*state);
    (void)tear_manifest((uint64_t[]){1000, 1001, 1001}, 3);
    expect(LOG_DAMAGED, "two later records follow");
    copy_make(*state);
    (void)tear_manifest(NULL, 0);
    add_to_manifest(slice_make("\111\0", 2));
    expect(LOG_DAMAGED, "a record follows that tells no next file");
    copy_make(*state);
    (void)tear_manifest((uint64_t[]){1000}, 1);
    write_at(manifest(), copy_size_of(manifest()) - 1, "\377", 1);
    expect(LOG_DAMAGED, "a bit of what follows is flipped");
}

/* What the manifest has lost must be in the logs. */
static void a_group_lost_whose_log_is_gone(void **state)
{
    struct buf log = BUF_EMPTY;
    struct err e = ERR_NONE;

    work(*state);
    copy_make(*state);
    assert_int_equal(copy_files(copy_dir, ".log", log_paths, ARRAY_LEN(log_paths)), 1);
    (void)tear_manifest(NULL, 0);
    expect(LOG_TORN, "with all of the log");
    int64_t from = copy_piece_at(log_paths[0], 2);
    assert_int_equal(file_read(log_paths[0], 1 << 20, &log, &e), 0);
    write_at(log_paths[0], 0, log.p + from, log.n - (size_t)from);
    assert_int_equal(truncate(log_paths[0], copy_size_of(log_paths[0]) - from), 0);
    buf_free(&log);
    expect(LOG_DAMAGED, "without its first batches");
    assert_int_equal(log_tail_cut(db_path, &e), 0);
}

/* Of a damaged manifest nobody knows what it said of the logs. */
static void a_hole_in_both(void **state)
{
    struct err e = ERR_NONE;

    work(*state);
    const char *log = torn_copy(*state);
    int64_t size = copy_size_of(log);
    write_at(manifest(), copy_piece_at(manifest(), 1) + 9, "\377", 1);
    expect(LOG_DAMAGED, "the manifest");
    assert_int_equal(log_tail_cut(db_path, &e), 0);
    assert_int_equal(copy_size_of(log), size);
}

/* ---- logs that RocksDB synced ------------------------------------------------------------------- */

/* Two logs in a copy, of which the manifest says that the first one was synced. */
static void two_logs(struct world *w)
{
    static const struct slice key = {"key", 3};
    char *from = xasprintf("%s/db", w->dir), text[60000] = "";
    struct err e = ERR_NONE;

    if (w->sp)
        world_close(w);
    struct db *db = db_open(from, DB_OPEN, 1 << 20, &e);
    assert_non_null(db);
    while (copy_files(w->dir, ".log", log_paths, ARRAY_LEN(log_paths)) < 2) {
        db_put(db, FAMILY_META, key, slice_make(text, sizeof(text))); /* more than its share of memory */
        db_put(db, FAMILY_EVENTS, key, key);
        assert_int_equal(db_write(db, false, &e), DB_WRITTEN);
    }
    for (int i = 0; i < 3; i++) {
        db_put(db, FAMILY_EVENTS, key, slice_make(text, 2000));
        assert_int_equal(db_write(db, false, &e), DB_WRITTEN);
    }
    while (db_flushing(db))
        usleep(1000);
    db_close(db);
    copy_make(w);
    assert_int_equal(copy_files(copy_dir, ".log", log_paths, ARRAY_LEN(log_paths)), 2);
    snprintf(db_path, sizeof(db_path), "%s/db", copy_dir);
    free(from);
}

static struct log_synced synced_log(void)
{
    struct err e = ERR_NONE;
    struct log_index x;

    assert_int_equal(log_index_read(db_path, &x, &e), 0);
    assert_int_equal(x.n, 1);
    struct log_synced s = x.synced[0];
    log_index_free(&x);
    assert_int_equal(s.size, copy_size_of(log_paths[0]));
    return s;
}

static void a_synced_log_gone(void **state)
{
    static const char zeros[SECTOR];
    struct err e = ERR_NONE;

    two_logs(*state);
    (void)synced_log();
    copy_run("rm", log_paths[0], "");
    int64_t size = copy_size_of(log_paths[1]);
    write_at(log_paths[1], 0, zeros, SECTOR);
    expect(LOG_DAMAGED, "a synced log that is gone");
    assert_int_equal(log_tail_cut(db_path, &e), 0);
    assert_int_equal(copy_size_of(log_paths[1]), size);
}

static int64_t place_of_last_record(const char *path)
{
    struct log_reader r;
    uint64_t last = 0;

    assert_int_equal(log_reader_open(&r, path, 0), 0);
    while (log_reader_next(&r) > 0)
        last = r.begin;
    log_reader_close(&r);
    return (int64_t)last;
}

/* Where nothing follows, RocksDB looks only at its size. */
static void the_end_of_a_synced_log_lost(void **state)
{
    two_logs(*state);
    int64_t size = copy_size_of(log_paths[0]);
    assert_int_equal(truncate(log_paths[1], 0), 0);
    expect(LOG_WHOLE, "a last log of nothing");
    assert_int_equal(truncate(log_paths[0], place_of_last_record(log_paths[0])), 0);
    assert_int_equal(truncate(log_paths[0], size), 0);
    expect(LOG_DAMAGED, "zeros at the end of a synced log");
}

static void a_size_told_twice(void **state)
{
    static const char zeros[SECTOR];

    two_logs(*state);
    struct log_synced s = synced_log();
    tell_in_manifest(7, (uint64_t[]){s.number, 2, 10, 1}, 4);
    assert_int_equal(synced_log().size, s.size);
    write_at(log_paths[0], 0, zeros, SECTOR);
    expect(LOG_DAMAGED, "a log that was synced");
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, world_setup, copy_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_piece_of_an_unknown_kind),
        TEST(a_recycled_log),
        TEST(a_record_of_nothing),
        TEST(a_tag_that_is_unknown),
        TEST(logs_gone_from_the_tracked),
        TEST(many_logs_were_there),
        TEST(a_hole_in_the_manifest),
        TEST(a_torn_group_in_the_manifest),
        TEST(a_group_lost_whose_log_is_gone),
        TEST(a_hole_in_both),
        TEST(a_synced_log_gone),
        TEST(the_end_of_a_synced_log_lost),
        TEST(a_size_told_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
