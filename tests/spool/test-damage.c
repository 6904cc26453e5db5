/* Damage on disk: it is noticed, never served as data, and left as it is for a person; what a crash leaves is none. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "copy.h"
#include "store/log_piece.h"
#include "wire/keys.h"

#define EVENTS 40
#define PLACES 6 /* in a table, where a bit is flipped */

/* EVENTS messages, in the log only; or, after one more opening, in tables. Closed. */
static void fill(struct world *w, bool tables)
{
    char text[32];

    for (int i = 1; i <= EVENTS; i++) {
        snprintf(text, sizeof(text), "text number %d.", i);
        world_begin(w);
        world_accept(w, i, i % 3, text);
        world_commit(w);
    }
    if (tables)
        world_reopen(w, 10);
    world_close(w);
}

static void flip(const char *path, int64_t at)
{
    unsigned char c;
    int fd = open(path, O_RDWR);

    assert_int_equal(pread(fd, &c, 1, at), 1);
    c ^= 0x10;
    assert_int_equal(pwrite(fd, &c, 1, at), 1);
    close(fd);
}

/* How many of the events can be read; each as it was. */
static unsigned readable(struct spool *sp)
{
    struct spool_box *box = spool_find_box(sp, "shop", BOX_IN);
    unsigned n = 0;

    for (uint64_t seq = 1; box && seq <= EVENTS; seq++) {
        struct event ev;
        struct event_state st;
        struct buf record = BUF_EMPTY;
        char text[32];
        if (spool_get(box, seq, &ev, &st, &record) == 0) {
            snprintf(text, sizeof(text), "text number %d.", (int)seq);
            char *want = world_message((int64_t)seq, (int64_t)seq % 3, text);
            assert_true(slice_eq_str(ev.payload, want));
            free(want);
            n++;
        }
        buf_free(&record);
    }
    return n;
}

static void no_fault(void *arg, const char *sentence)
{
    (void)arg;
    fail_msg("%s", sentence);
}

static void ignore(void *arg, const char *sentence)
{
    (void)arg, (void)sentence;
}

/* It is told, stays closed however long one waits, and the clients are not told stories. */
static void expect_corrupt(struct spool *sp)
{
    char why[256] = "";

    spool_commit(sp);
    assert_int_equal(spool_health(sp, why), SPOOL_CORRUPT);
    assert_true(strlen(why) > 10);
    assert_false(spool_healthy(sp, NULL));
    assert_int_equal(spool_next_deadline(sp), TIME_NEVER);
    spool_begin(sp, START + HOURS(24));
    spool_commit(sp);
    assert_int_equal(spool_health(sp, NULL), SPOOL_CORRUPT);
}

/* Opens the copy and reads all of it. Returns whether the damage was noticed; else all must be right. */
static bool notices(void)
{
    struct err e;
    struct spool *sp = copy_open(&e);

    if (!sp) {
        assert_int_equal(e.exit_code, EX_DATAERR);
        return true;
    }
    unsigned n = readable(sp);
    int faults = spool_verify(sp, ignore, NULL, NULL); /* reads the rest */
    spool_commit(sp);
    bool noticed = spool_health(sp, NULL) != SPOOL_OK;
    if (noticed) {
        expect_corrupt(sp);
    } else {
        assert_int_equal(n, EVENTS);
        assert_int_equal(faults, 0);
    }
    spool_close(sp);
    return noticed;
}

static void a_bit_in_a_table(void **state)
{
    static char paths[32][COPY_PATH_MAX];
    unsigned noticed = 0, flipped = 0;

    fill(*state, true);
    copy_make(*state);
    size_t n = copy_files(copy_dir, ".sst", paths, ARRAY_LEN(paths));
    assert_true(n >= 5); /* a family each */
    for (size_t i = 0; i < n; i++)
        for (int k = 1; k < PLACES; k++, flipped++) {
            copy_make(*state);
            flip(paths[i], copy_size_of(paths[i]) * k / PLACES);
            noticed += notices();
        }
    assert_true(noticed > flipped / 2); /* the rest is in what nobody needs */
}

/* Where a text stands in a file; -1: nowhere. */
static int64_t find_in(const char *path, const char *text)
{
    struct buf all = BUF_EMPTY;

    assert_int_equal(file_read(path, 16 << 20, &all, NULL), 0);
    const char *at = memmem(all.p, all.n, text, strlen(text));
    int64_t offset = at ? at - all.p : -1;
    buf_free(&all);
    return offset;
}

static void a_bit_in_the_log(void **state)
{
    static const int numbers[] = {1, EVENTS / 2, EVENTS - 1, EVENTS};
    static char paths[8][COPY_PATH_MAX];
    struct err e;
    char text[32];

    fill(*state, false);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        copy_make(*state);
        assert_int_equal(copy_files(copy_dir, ".log", paths, ARRAY_LEN(paths)), 1);
        snprintf(text, sizeof(text), "text number %d.", numbers[i]);
        int64_t at = find_in(paths[0], text), size = copy_size_of(paths[0]);
        assert_true(at > 0);
        flip(paths[0], at + 3);
        for (int again = 0; again < 2; again++) {
            assert_null(copy_open(&e));
            assert_int_equal(e.exit_code, EX_DATAERR);
        }
        assert_int_equal(copy_size_of(paths[0]), size); /* all that may be saved is still there */
        flip(paths[0], at + 3);
        struct spool *sp = copy_open(&e);
        assert_non_null(sp);
        assert_int_equal(readable(sp), EVENTS);
        spool_close(sp);
    }
}

/* A power cut in the middle of a sync: the file has its size, but some sectors of its last record were never written. */
static void a_tail_with_unwritten_sectors(void **state)
{
    static const char zeros[512];
    static char paths[8][COPY_PATH_MAX];
    struct err e;

    fill(*state, false);
    for (int64_t from = 0; from <= 512; from += 512) {
        copy_make(*state);
        assert_int_equal(copy_files(copy_dir, ".log", paths, ARRAY_LEN(paths)), 1);
        int64_t size = copy_size_of(paths[0]), sector = (size - 1) / 512 * 512 - from;
        int fd = open(paths[0], O_WRONLY);
        assert_true(pwrite(fd, zeros, (size_t)(from ? 512 : size - sector), sector) > 0);
        close(fd);
        struct spool *sp = copy_open(&e);
        if (!sp)
            fail_msg("a sector %d before the last: %s", (int)from, e.text);
        unsigned n = readable(sp);
        assert_true(n < EVENTS && n >= EVENTS - 2);
        spool_verify(sp, no_fault, NULL, NULL);
        assert_int_equal(spool_health(sp, NULL), SPOOL_OK);
        spool_close(sp);
    }
}

/* A log of more than a few blocks. */
static void fill_blocks(struct world *w)
{
    char text[2001];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    for (int i = 1; i <= 300; i++) {
        world_begin(w);
        world_accept(w, i, 1, text);
        world_commit(w);
    }
    world_close(w);
}

/* Of the last record only what is in one block was written; the file has its length all the same. */
static void half_a_record(void **state)
{
    static char paths[8][COPY_PATH_MAX];
    struct err e;

    fill_blocks(*state);
    copy_make(*state);
    assert_int_equal(copy_files(copy_dir, ".log", paths, ARRAY_LEN(paths)), 1);
    assert_int_equal(truncate(paths[0], 3 * LOG_BLOCK), 0);
    assert_int_equal(truncate(paths[0], 3 * LOG_BLOCK + 1500), 0);
    struct spool *sp = copy_open(&e);
    if (!sp)
        fail_msg("%s", e.text);
    spool_verify(sp, no_fault, NULL, NULL);
    spool_close(sp);
}

/* A kill in the middle of a write: what was not whole was not acknowledged. */
static void a_torn_tail(void **state)
{
    static char paths[8][COPY_PATH_MAX];
    struct err e;

    fill(*state, false);
    for (int64_t cut = 1; cut < 2000; cut = cut * 3 + 1) {
        copy_make(*state);
        assert_int_equal(copy_files(copy_dir, ".log", paths, ARRAY_LEN(paths)), 1);
        assert_int_equal(truncate(paths[0], copy_size_of(paths[0]) - cut), 0);
        struct spool *sp = copy_open(&e);
        if (!sp)
            fail_msg("%d bytes cut: %s", (int)cut, e.text);
        unsigned n = readable(sp);
        assert_true(n < EVENTS && n > EVENTS / 3);
        spool_verify(sp, no_fault, NULL, NULL);
        assert_int_equal(spool_health(sp, NULL), SPOOL_OK);
        spool_close(sp);
    }
    copy_make(*state); /* or room that was taken and not written */
    assert_int_equal(copy_files(copy_dir, ".log", paths, ARRAY_LEN(paths)), 1);
    assert_int_equal(truncate(paths[0], copy_size_of(paths[0]) + 5000), 0);
    struct spool *sp = copy_open(&e);
    assert_non_null(sp);
    assert_int_equal(readable(sp), EVENTS);
    spool_close(sp);
}

/* Refused, and not made anew. */
static void a_file_is_gone(void **state)
{
    static const char *const names[] = {"CURRENT", "MANIFEST-*", ".sst"};
    static char paths[32][COPY_PATH_MAX];
    struct err e;

    fill(*state, true);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        copy_make(*state);
        char *away = xasprintf("%s-away", copy_dir);
        assert_true(copy_files(copy_dir, ".sst", paths, ARRAY_LEN(paths)) > 0);
        char *gone = names[i][0] == '.' ? xstrdup(paths[0]) : xasprintf("%s/db/%s", copy_dir, names[i]);
        copy_run("mv", gone, away);
        free(gone);
        for (int again = 0; again < 2; again++) {
            if (copy_open(&e))
                fail_msg("opened without its %s", names[i]);
            if (e.exit_code != EX_DATAERR)
                fail_msg("%s is gone: exit %d, %s", names[i], e.exit_code, e.text);
        }
        unlink(away);
        free(away);
    }
}

/* Its checksum is right, and it makes no sense. */
static void a_record_that_cannot_be_decoded(void **state)
{
    struct world *w = *state;
    struct err e = ERR_NONE;

    fill(w, false);
    struct db *db = world_db(w->dir, DB_OPEN);
    struct key key = key_event(BOT_ID, BOX_IN, 7);
    db_put(db, FAMILY_EVENTS, key_slice(&key), slice_str("\1nonsense"));
    assert_int_equal(db_write(db, true, &e), DB_WRITTEN);
    db_close(db);
    world_open(w);
    assert_true(readable(w->sp) < EVENTS);
    expect_corrupt(w->sp);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, world_setup, copy_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_bit_in_a_table),
        TEST(a_bit_in_the_log),
        TEST(a_tail_with_unwritten_sectors),
        TEST(half_a_record),
        TEST(a_torn_tail),
        TEST(a_file_is_gone),
        TEST(a_record_that_cannot_be_decoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
