/* Logs and manifests that are not as this tgspool leaves them: of another RocksDB, or damaged where the manifest tells of the
 * logs. What is not understood is cut nowhere. */
#include <unistd.h>

#include "logs.h"
#include "store/log_index.h"
#include "store/log_reader.h"

/* ---- logs --------------------------------------------------------------------------------------- */

static void a_piece_of_an_unknown_kind(void **state)
{
    static const unsigned kinds[] = {9, 10, 127};
    struct slice data = {"\0\0\0\0", 4};

    logs_make(*state);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        const char *log = logs_torn(*state);
        (void)logs_put_piece(log, copy_size_of(log), kinds[i], data);
        logs_expect(LOG_WHOLE, "a kind that changes the meaning of others");
    }
    const char *log = logs_torn(*state);
    (void)logs_put_piece(log, copy_size_of(log), 130, data);
    logs_expect(LOG_TORN, "a kind that may be ignored");
}

/* Of a log that is written over an older one: such heads are longer, and hold one more thing to be summed. */
static void a_recycled_log(void **state)
{
    char piece[2000] = "\1\2\3\4\xc0\7\5\0\0\0\0";

    logs_make(*state);
    copy_make(*state);
    assert_int_equal(copy_files(copy_dir, ".log", logs_paths, ARRAY_LEN(logs_paths)), 1);
    logs_write(logs_paths[0], copy_piece_at(logs_paths[0], 3), piece,
               sizeof(piece)); /* has a sector of zeros */
    logs_expect(LOG_DAMAGED, "a piece of a recycled log");
}

static void a_record_of_nothing(void **state)
{
    logs_make(*state);
    const char *log = logs_torn(*state);
    (void)logs_put_piece(log, copy_size_of(log), PIECE_FULL, slice_make(NULL, 0));
    logs_expect(LOG_TORN, "an empty record behind a hole");
}

/* ---- the manifest ------------------------------------------------------------------------------- */

static void a_tag_that_is_unknown(void **state)
{
    logs_make(*state);
    (void)logs_torn(*state);
    logs_tell(4000, NULL, 0);
    logs_expect(LOG_TORN, "a tag that may be ignored");
    logs_add_record(slice_make("\115\1\1", 3));
    logs_expect(LOG_WHOLE, "a tag that may not");
}

/* Logs that are not tracked any more are needed yet. */
static void logs_gone_from_the_tracked(void **state)
{
    logs_make(*state);
    (void)logs_torn(*state);
    logs_tell(8, &(uint64_t){1000}, 1);
    logs_expect(LOG_TORN, "a log that is not tracked");
}

/* A long life's worth of logs. */
static void many_logs_were_there(void **state)
{
    struct err e = ERR_NONE;
    struct log_index x;

    logs_make(*state);
    copy_make(*state);
    for (uint64_t n = 1000; n < 1100; n++) {
        logs_tell(7, (uint64_t[]){n, 2, 5000, 1}, 4);
        logs_tell(8, &(uint64_t){n}, 1);
    }
    assert_int_equal(log_index_read(copy_db, &x, &e), 0);
    assert_int_equal(x.gap, LOG_GAP_NONE);
    assert_int_equal(x.n, 1);
    assert_int_equal(x.synced[0].number, 1099);
    log_index_free(&x);
}

/* ---- logs that RocksDB synced ------------------------------------------------------------------- */

static struct log_synced synced_log(void)
{
    struct err e = ERR_NONE;
    struct log_index x;

    assert_int_equal(log_index_read(copy_db, &x, &e), 0);
    assert_int_equal(x.n, 1);
    struct log_synced s = x.synced[0];
    log_index_free(&x);
    assert_int_equal(s.size, copy_size_of(logs_paths[0]));
    return s;
}

static void a_synced_log_gone(void **state)
{
    struct err e = ERR_NONE;

    logs_two(*state);
    (void)synced_log();
    copy_run("rm", logs_paths[0], "");
    int64_t size = copy_size_of(logs_paths[1]);
    logs_zero(logs_paths[1], 0, SECTOR);
    logs_expect(LOG_DAMAGED, "a synced log that is gone");
    assert_int_equal(log_tail_cut(copy_db, &e), 0);
    assert_int_equal(copy_size_of(logs_paths[1]), size);
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
    logs_two(*state);
    int64_t size = copy_size_of(logs_paths[0]);
    assert_int_equal(truncate(logs_paths[1], 0), 0);
    logs_expect(LOG_WHOLE, "a last log of nothing");
    assert_int_equal(truncate(logs_paths[0], place_of_last_record(logs_paths[0])), 0);
    assert_int_equal(truncate(logs_paths[0], size), 0);
    logs_expect(LOG_DAMAGED, "zeros at the end of a synced log");
}

static void a_size_told_twice(void **state)
{

    logs_two(*state);
    struct log_synced s = synced_log();
    logs_tell(7, (uint64_t[]){s.number, 2, 10, 1}, 4);
    assert_int_equal(synced_log().size, s.size);
    logs_zero(logs_paths[0], 0, SECTOR);
    logs_expect(LOG_DAMAGED, "a log that was synced");
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, world_setup, copy_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_piece_of_an_unknown_kind), TEST(a_recycled_log),
        TEST(a_record_of_nothing),        TEST(a_tag_that_is_unknown),
        TEST(logs_gone_from_the_tracked), TEST(many_logs_were_there),
        TEST(a_synced_log_gone),          TEST(the_end_of_a_synced_log_lost),
        TEST(a_size_told_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
