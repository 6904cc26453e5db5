/* Power cuts: of the log's pages that were not synced any may be lost, and its size may be less. Whatever is left opens
 * without a person, with all that was synced and without gaps. What is lost although it was synced is damage. */
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "logs.h"
#include "store/log_index.h"
#include "store/log_piece.h"
#include "store/log_tail.h"

#define PAGE 4096
#define SECTOR 512
#define CUTS OFTEN(24)  /* of one way to sync */
#define LOG_MAX 1000000 /* a log of more might be one of two */

/* A spool at work, and what is known of it. */
struct work {
    struct world *w;
    uint64_t syncs;
    int64_t size;           /* of the log */
    int64_t synced, before; /* its size at the last sync, and at the one before */
    unsigned events, safe;  /* accepted; and of these, synced */
};

static const char *one_log(const char *dir)
{
    assert_int_equal(copy_files(dir, ".log", logs_paths, ARRAY_LEN(logs_paths)), 1);
    return logs_paths[0];
}

/* What the log and the syncs have become. */
static void look(struct work *k)
{
    struct spool_commit_stats stats;

    spool_commit_stats(k->w->sp, &stats);
    k->size = copy_size_of(one_log(k->w->dir));
    if (stats.syncs != k->syncs && k->size > k->synced) {
        k->before = k->synced;
        k->synced = k->size;
        k->safe = k->events;
    }
    k->syncs = stats.syncs;
}

static void ignore(void *arg, bool ok)
{
    (void)arg, (void)ok;
}

/* One tick: some events, of at most so many bytes. durable: somebody waits for the sync. */
static void tick(struct work *k, size_t size, bool durable)
{
    static char text[60001];

    k->w->now += 3;
    world_begin(k->w);
    for (long n = 1 + random() % 3; n > 0; n--) {
        size_t length = (size_t)random() % size;
        memset(text, 'x', length);
        text[length] = '\0';
        world_accept(k->w, ++k->events, random() % 5, text);
    }
    if (durable)
        spool_on_durable(k->w->sp, ignore, NULL);
    spool_commit(k->w->sp);
    look(k);
}

static struct work begin_work(struct world *w, enum sync_mode mode)
{
    struct work k = {.w = w};

    srandom(1);
    world_close(w);
    w->sync = mode;
    w->sync_ms = 10;
    world_open(w);
    tick(&k, 100, true);
    return k;
}

/* How many events the copy has; no more than a beginning of them. */
static unsigned count(struct spool *sp, unsigned events)
{
    unsigned n = 0;

    for (unsigned seq = 1; seq <= events; seq++) {
        struct event ev;
        struct event_state st;
        struct buf record = BUF_EMPTY;
        if (spool_get(spool_find_box(sp, "shop", BOX_IN), seq, &ev, &st, &record) == 0)
            assert_int_equal(++n, seq);
        buf_free(&record);
    }
    return n;
}

static void no_fault(void *arg, const char *sentence)
{
    (void)arg;
    fail_msg("%s", sentence);
}

/* The copy opens, twice, with so many events. */
static void expect_open(const char *what, unsigned at_least, unsigned at_most)
{
    struct err e;

    for (int again = 0; again < 2; again++) {
        struct spool *sp = copy_open(&e);
        if (!sp)
            fail_msg("%s: %s", what, e.text);
        unsigned n = count(sp, at_most);
        if (n < at_least)
            fail_msg("%s: %u events of %u that were synced", what, n, at_least);
        spool_verify(sp, no_fault, NULL, NULL);
        assert_int_equal(spool_health(sp, NULL), SPOOL_OK);
        spool_close(sp);
    }
}

/* It does not, and stays as it is. */
static void expect_damage(const char *what)
{
    static char now[4][COPY_PATH_MAX];
    size_t n = copy_files(copy_dir, ".log", logs_paths, ARRAY_LEN(logs_paths));
    int64_t size = copy_size_of(logs_paths[0]);
    struct err e;

    for (int again = 0; again < 2; again++) {
        struct spool *sp = copy_open(&e);
        if (sp)
            fail_msg("%s: opened with %u events", what, count(sp, 10000));
        assert_int_equal(e.exit_code, EX_DATAERR);
    }
    assert_int_equal(copy_files(copy_dir, ".log", now, ARRAY_LEN(now)), n);
    assert_int_equal(copy_size_of(logs_paths[0]), size);
}

/* ---- any power cut ------------------------------------------------------------------------------ */

/* Takes some of what was not synced. */
static void lose(const struct work *k)
{
    const char *path = one_log(copy_dir);
    int64_t end = random() % 2 ? k->size : k->synced + random() % (k->size - k->synced + 1);

    assert_int_equal(truncate(path, end), 0);
    for (int64_t page = k->synced / PAGE * PAGE; page < end; page += PAGE)
        if (random() % 3 == 0)
            logs_zero(path, page > k->synced ? page : k->synced, page + PAGE < end ? page + PAGE : end);
}

static void cut_often(struct world *w, enum sync_mode mode)
{
    struct work k = begin_work(w, mode);
    char what[80];

    for (int i = 0; i < CUTS && k.size < LOG_MAX; i++) {
        for (long n = random() % 12; n >= 0; n--)
            tick(&k, random() % 16 ? 700 : 60000, random() % 4 > 0);
        snprintf(what, sizeof(what), "cut %d, synced %lld of %lld", i, (long long)k.synced,
                 (long long)k.size);
        copy_make(w);
        lose(&k);
        expect_open(what, k.safe, k.events);
        if (k.before < SECTOR)
            continue;
        copy_make(w); /* and the other way round: a sector of what was synced */
        int64_t sector = random() % (k.before / SECTOR) * SECTOR;
        logs_zero(one_log(copy_dir), sector, sector + SECTOR);
        expect_damage(what);
    }
}

static void with_sync_always(void **state)
{
    cut_often(*state, SYNC_ALWAYS);
}

static void with_sync_at_times(void **state)
{
    cut_often(*state, SYNC_INTERVAL);
}

static void without_sync(void **state)
{
    cut_often(*state, SYNC_OFF);
}

/* A hole with far more behind it than the writes of a moment. */
static void a_hole_far_from_the_end(void **state)
{
    struct work k = begin_work(*state, SYNC_OFF);

    while (k.size < LOG_MAX)
        tick(&k, 3000, true);
    for (int64_t at = 0; at <= 8 * PAGE; at += 4 * PAGE) {
        copy_make(*state);
        logs_zero(one_log(copy_dir), at, at + PAGE);
        expect_open("a hole", at > 0, k.events);
    }
}

/* What was written without a sync is no less torn when the next run of the same spool syncs, and the other way round. */
static void after_a_change_of_the_option(void **state)
{
    static const enum sync_mode modes[] = {SYNC_OFF, SYNC_ALWAYS, SYNC_OFF};
    struct world *w = *state;
    struct work k = {.w = w};

    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        unsigned earlier = k.events;
        world_close(w);
        w->sync = modes[i];
        world_open(w);
        for (int n = 0; n < 20; n++)
            tick(&k, 700, true);
        copy_make(w);
        logs_zero(one_log(copy_dir), PAGE, 2 * PAGE);
        if (modes[i] == SYNC_OFF)
            expect_open("off", earlier, k.events);
        else
            expect_damage("always");
    }
}

static struct work little_work(struct world *w, enum sync_mode mode)
{
    struct work k = begin_work(w, mode);

    for (int i = 0; i < 12; i++)
        tick(&k, 300, i < 4);
    return k;
}

/* The beginning of all logs is gone, so nobody knows what it was; but what was not synced was less than that, or not. */
static void lose_heads(struct work *k, bool synced)
{
    for (unsigned n = 2; n < 10; n++) {
        copy_make(k->w);
        logs_zero(one_log(copy_dir), 0, copy_piece_at(one_log(copy_dir), n));
        if (synced)
            expect_damage("synced records at the head");
        else
            expect_open("records at the head", 0, k->events);
    }
}

static void a_synced_head_lost(void **state)
{
    struct work k = little_work(*state, SYNC_ALWAYS);

    lose_heads(&k, true);
}

static void an_unsynced_head_lost(void **state)
{
    struct work k = little_work(*state, SYNC_OFF);

    lose_heads(&k, false);
}

/* ---- several logs ------------------------------------------------------------------------------- */

/* Parts the copy's log in two as if it had grown too large behind the record with number `last`, and loses of the first log
 * the records from `keep` on. */
static void part(unsigned keep, unsigned last)
{
    const char *path = one_log(copy_dir);
    char *second = xasprintf("%s/db/000900.log", copy_dir);
    struct buf log = BUF_EMPTY;
    struct err e = ERR_NONE;
    size_t at = (size_t)copy_piece_at(path, last);

    assert_int_equal(file_read(path, LOG_MAX, &log, &e), 0);
    assert_int_equal(file_create(second, slice_make(log.p + at, log.n - at), 0600, &e), 0);
    assert_int_equal(truncate(path, copy_piece_at(path, keep)), 0);
    buf_free(&log);
    free(second);
}

static void two_logs(void **state)
{
    struct work k = little_work(*state, SYNC_ALWAYS);

    copy_make(*state);
    part(8, 8);
    expect_open("two logs", k.events, k.events);
}

static void the_end_of_the_older_log_lost(void **state)
{
    struct work k = little_work(*state, SYNC_OFF);

    copy_make(*state);
    part(6, 8);
    expect_open("an older log without its end", 1, k.events - 1);
    copy_make(*state);
    part(0, 8);
    expect_open("nothing of an older log", 0, k.events - 1);
}

static void the_end_of_the_older_log_lost_though_synced(void **state)
{
    (void)little_work(*state, SYNC_ALWAYS);
    copy_make(*state);
    part(3, 4);
    expect_damage("an older log without its end");
    copy_make(*state);
    part(0, 4);
    expect_damage("nothing of an older log");
}

/* RocksDB itself syncs a log before it puts what is in there into a table, and its manifest says so. */
static void a_log_that_rocksdb_synced(void **state)
{
    struct err e = ERR_NONE;

    logs_two(*state);
    for (size_t i = 0; i < 2; i++) {
        copy_make(*state);
        logs_zero(logs_paths[i], 0, PAGE);
        if (log_tail_look(copy_db, &e) != (i ? LOG_TORN : LOG_DAMAGED))
            fail_msg("log %zu: %s", i, e.text);
    }
}

/* The removal of an empty log that nobody needs was not synced. */
static void an_old_empty_log(void **state)
{
    static const struct slice key = {"key", 3};
    struct world *w = *state;
    char *db_path = xasprintf("%s/db", w->dir), *pattern = xasprintf("%s/*.log", db_path);
    struct err e = ERR_NONE;
    glob_t empty;

    world_close(w);
    for (int i = 0; i < 3; i++) {
        struct db *db = world_db(w->dir, DB_OPEN);
        if (i == 1) /* the first one found the world's rows, this one nothing */
            assert_int_equal(glob(pattern, 0, NULL, &empty), 0);
        if (i == 2)
            db_put(db, FAMILY_EVENTS, key, key);
        assert_int_equal(db_write(db, true, &e), DB_WRITTEN);
        db_close(db);
    }
    const char *newest = empty.gl_pathv[empty.gl_pathc - 1];
    copy_run("touch", newest, "");
    assert_int_equal(copy_size_of(newest), 0);
    if (log_tail_look(db_path, &e) != LOG_WHOLE)
        fail_msg("%s", e.text);
    globfree(&empty);
    free(pattern);
    free(db_path);
}

/* What a range hides may only be removed once no power cut can take the range away. */
static void files_dropped_without_sync(void **state)
{
    static const struct slice key = {"key", 3}, upper = {"kez", 3};
    struct world *w = *state;
    struct err e = ERR_NONE;

    world_close(w);
    for (int i = 0; i < 2; i++) { /* the second opening finds it in a table */
        struct db *db = world_db(w->dir, DB_OPEN);
        if (i)
            db_delete_range(db, FAMILY_EVENTS, key, upper);
        else
            db_put(db, FAMILY_EVENTS, key, key);
        assert_int_equal(db_write(db, false, &e), DB_WRITTEN);
        assert_false(db_is_synced(db));
        if (i)
            assert_int_equal(db_drop_files(db, FAMILY_EVENTS, key, key, &e), 0);
        assert_int_equal(db_is_synced(db), i);
        db_close(db);
    }
}

/* ---- the manifest ------------------------------------------------------------------------------- */

/* Each of its records is synced before the next, so torn can only be the last one. */
static void the_end_of_the_manifest(void **state)
{
    struct work k = little_work(*state, SYNC_ALWAYS);
    struct err e = ERR_NONE;

    for (int last = 0; last < 2; last++) {
        copy_make(*state);
        char *path = log_index_path(copy_db, &e);
        int64_t size = copy_size_of(path);
        if (last) { /* one more, of a head, and nothing of its rest */
            assert_int_equal(truncate(path, size + 600), 0);
            int fd = open(path, O_WRONLY);
            assert_int_equal(pwrite(fd, "\1\2\3\4\0\2\1", 7, size), 7);
            close(fd);
            expect_open("the last record of the manifest", k.events, k.events);
        } else {
            logs_zero(path, 0, 40);
            expect_damage("the manifest's first record");
        }
        free(path);
    }
}

/* What cannot be read is no damage, and nothing is cut for it. */
static void a_file_that_cannot_be_read(void **state)
{
    struct err e = ERR_NONE;

    (void)little_work(*state, SYNC_OFF);
    for (int log = 0; log < 2; log++) {
        copy_make(*state);
        char *path = log ? xstrdup(one_log(copy_dir)) : log_index_path(copy_db, &e);
        copy_run("rm", path, "");
        copy_run("mkdir", path, ""); /* can be opened, not read */
        assert_int_equal(log_tail_look(copy_db, &e), LOG_UNREADABLE);
        assert_int_equal(e.exit_code, EX_IOERR);
        free(path);
    }
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, world_setup, copy_teardown)
    const struct CMUnitTest tests[] = {
        TEST(with_sync_always),
        TEST(with_sync_at_times),
        TEST(without_sync),
        TEST(a_hole_far_from_the_end),
        TEST(a_synced_head_lost),
        TEST(an_unsynced_head_lost),
        TEST(after_a_change_of_the_option),
        TEST(two_logs),
        TEST(the_end_of_the_older_log_lost),
        TEST(the_end_of_the_older_log_lost_though_synced),
        TEST(a_log_that_rocksdb_synced),
        TEST(an_old_empty_log),
        TEST(files_dropped_without_sync),
        TEST(the_end_of_the_manifest),
        TEST(a_file_that_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
