/* When intake is held for want of room, and when it goes on; the reserve. The file system's numbers are the test's. */
#include "ops/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit/unit.h"
#include "base/clock.h"
#include "base/log.h"
#include "core/config.h"
#include "store/reserve.h"

#define MB (INT64_C(1) << 20)
#define START INT64_C(1800000000000)

static struct {
    int64_t free_bytes, total_bytes; /* without the reserve */
    int fail;
    unsigned looks;
} fs;

static char dir[64];
static struct disk *d;
static struct config c;
static int64_t now;
static uint64_t written;

static int look(const char *path, struct disk_space *out)
{
    fs.looks++;
    errno = fs.fail;
    *out = (struct disk_space){fs.free_bytes - reserve_size(path), fs.total_bytes};
    return fs.fail ? -1 : 0;
}

static int setup(void **state)
{
    (void)state;
    log_setup(LOG_ERROR, LOG_TEXT, false);
    strcpy(dir, "/tmp/tgspool-disk-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    char *db = xasprintf("%s/db", dir);
    mkdir(db, 0700);
    free(db);
    fs.free_bytes = 1000 * MB;
    fs.total_bytes = 4000 * MB;
    fs.fail = 0;
    c = (struct config){.min_free = 256 * MB, .max_db = 2000 * MB, .reserve = 0};
    now = START;
    d = disk_new(dir, look);
    disk_configure(d, &c);
    return 0;
}

static int teardown(void **state)
{
    char *command = xasprintf("rm -r %s", dir);

    (void)state;
    disk_free(d);
    int rc = system(command);
    free(command);
    return rc;
}

/* Turns until it has nothing more to do at once. */
static const char *turn(void)
{
    for (int i = 0; i < 100 && disk_tick(d, ++written, now) <= now; i++)
        ;
    now += SECONDS(1);
    return disk_state(d)->why;
}

static const char *with_free(int64_t bytes)
{
    fs.free_bytes = bytes;
    return turn();
}

/* A file of the database. */
static void grow_db(const char *name, int64_t bytes)
{
    char *path = xasprintf("%s/db/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);

    assert_true(fd >= 0);
    assert_int_equal(fallocate(fd, 0, 0, bytes), 0);
    close(fd);
    free(path);
}

static void shrink_db(const char *name)
{
    char *path = xasprintf("%s/db/%s", dir, name);

    assert_int_equal(unlink(path), 0);
    free(path);
}

static const char *turn_past_a_scan(void)
{
    for (int i = 0; i < 5; i++)
        turn();
    return disk_state(d)->why;
}

static void test_little_is_free(void **state)
{
    (void)state;
    assert_string_equal(with_free(257 * MB), "");
    assert_int_equal(disk_state(d)->low_since, 0);
    assert_string_equal(with_free(120 * MB), "the disk has 120 MB free, needs 282 MB");
    int64_t since = disk_state(d)->low_since;
    assert_int_equal(since, now - SECONDS(1));
    assert_string_equal(with_free(270 * MB), "the disk has 270 MB free, needs 282 MB");
    assert_int_equal(disk_state(d)->low_since, since); /* a margin: it does not flap */
    assert_string_equal(with_free(283 * MB), "");
    assert_int_equal(disk_state(d)->low_since, 0);
    assert_string_equal(with_free(257 * MB), "");
}

static void test_how_often_it_looks(void **state)
{
    (void)state;
    turn();
    assert_int_equal(disk_tick(d, written, now), now + SECONDS(10)); /* nothing was written */
    unsigned before = fs.looks;
    for (int i = 0; i < 10; i++)
        disk_tick(d, written, now + SECONDS(i));
    assert_int_equal(fs.looks, before);
    now += SECONDS(9);
    assert_int_equal(disk_tick(d, ++written, now),
                     now + SECONDS(1)); /* something is: at once, then each second */
    for (int i = 0; i < 10; i++)
        disk_tick(d, ++written, now + 100 * i);
    assert_int_equal(fs.looks, before + 1);
    now += SECONDS(1);
    assert_int_equal(disk_tick(d, written, now), now + SECONDS(1));
    assert_int_equal(fs.looks, before + 2);
    fs.free_bytes = MB;
    now += SECONDS(1);
    disk_tick(d, written, now);
    now += SECONDS(1);
    assert_int_equal(disk_tick(d, written, now), now + SECONDS(1)); /* held: it shall go on soon */
}

static void test_a_look_fails(void **state)
{
    (void)state;
    assert_true(*with_free(MB));
    fs.fail = EIO;
    assert_true(*with_free(1000 * MB)); /* what was known stands */
    fs.fail = 0;
    assert_string_equal(turn(), "");
}

static void test_the_database_is_large(void **state)
{
    (void)state;
    c.max_db = 20 * MB;
    disk_configure(d, &c);
    grow_db("1.sst", 10 * MB);
    assert_string_equal(turn_past_a_scan(), "");
    assert_int_equal(disk_state(d)->db_bytes, 10 * MB);
    assert_int_equal(disk_state(d)->filling_since, 0);
    grow_db("2.log", 8 * MB);
    assert_string_equal(turn_past_a_scan(), "");
    assert_int_not_equal(disk_state(d)->filling_since, 0); /* a warning before */
    grow_db("3.sst", 2 * MB);
    assert_string_equal(turn_past_a_scan(), "the database has 20 MB, spool.max_db is 20 MB");
    assert_int_not_equal(disk_state(d)->full_since, 0);
    shrink_db("3.sst");
    grow_db("4.sst", MB + MB / 2);
    assert_true(*turn_past_a_scan());
    shrink_db("4.sst");
    assert_string_equal(turn_past_a_scan(), "");
    assert_int_equal(disk_state(d)->full_since, 0);
    c.max_db = 0; /* a reload */
    disk_configure(d, &c);
    grow_db("5.sst", 30 * MB);
    assert_string_equal(turn_past_a_scan(), "");
}

static void reserve_is(int64_t bytes)
{
    assert_int_equal(reserve_size(dir), bytes);
    assert_int_equal(disk_state(d)->reserve_bytes, bytes);
}

static void with_reserve(int64_t bytes)
{
    c.reserve = bytes;
    disk_configure(d, &c);
    turn();
}

static void test_the_reserve(void **state)
{
    struct stat st;
    char path[128];

    (void)state;
    with_reserve(RESERVE_AUTO);
    reserve_is(64 * MB);
    snprintf(path, sizeof(path), "%s/" RESERVE_NAME, dir);
    assert_int_equal(stat(path, &st), 0);
    /* It takes the room, not only the size; and a little more where it is in many pieces. */
    assert_in_range(st.st_blocks * 512, 64 * MB, 65 * MB - 1);
    assert_int_equal(st.st_mode & 07777, 0600);
    fs.total_bytes = 400 * MB; /* a twentieth */
    turn();
    reserve_is(20 * MB);
    with_reserve(3 * MB);
    reserve_is(3 * MB);
    with_reserve(0);
    reserve_is(0);
    assert_int_equal(access(path, F_OK), -1);
}

/* It was given up, to open the store: intake waits until it is there again. */
static void test_the_reserve_is_used_up(void **state)
{
    (void)state;
    c.min_free = 0;
    with_reserve(20 * MB);
    assert_string_equal(with_free(20 * MB), "");
    assert_true(reserve_drop(dir));
    assert_false(reserve_drop(dir));
    assert_string_equal(with_free(25 * MB), "the disk has 25 MB free, needs 40 MB");
    reserve_is(0); /* the room that was given is not taken away at once */
    assert_string_equal(with_free(40 * MB), "");
    reserve_is(20 * MB);
}

/* There is room for intake or for the reserve, not for both. */
static void test_no_room_for_the_reserve(void **state)
{
    (void)state;
    fs.free_bytes = 300 * MB;
    with_reserve(64 * MB);
    reserve_is(0);
    assert_string_equal(disk_state(d)->why, "the disk has 300 MB free, needs 346 MB");
    assert_string_equal(with_free(346 * MB), "");
    reserve_is(64 * MB);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_little_is_free),          TEST(test_how_often_it_looks), TEST(test_a_look_fails),
        TEST(test_the_database_is_large),   TEST(test_the_reserve),        TEST(test_the_reserve_is_used_up),
        TEST(test_no_room_for_the_reserve),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
