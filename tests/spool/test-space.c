/* What retention removes gives its room on disk back, without a restart, and a spool that runs on does not grow.
 * TGSPOOL_EVENTS=1000000 makes a measurement of the first (doc/format.md, "Retention"). */
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "store/db.h"
#include "world.h"

#define EVENTS OFTEN(100000)
#define BATCH 1000
#define PAYLOAD 1000
#define DEAD_IN 9973
#define MIB (1 << 20)
#define EMPTY (40 * MIB) /* logs of up to 16 MiB are kept, and what waits for its compaction */

static char text[PAYLOAD];

static int setup(void **state)
{
    if (world_setup(state))
        return -1;
    struct world *w = *state;
    w->policy.concurrency = BATCH;
    w->policy.order = ORDER_NONE;
    world_policy(w);
    memset(text, 'x', sizeof(text) - 1);
    return 0;
}

static int64_t directory_bytes(const struct world *w)
{
    char *path = xasprintf("%s/db", w->dir);
    DIR *dir = opendir(path);
    struct dirent *entry;
    struct stat st;
    int64_t n = 0;

    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL)
        if (fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 && S_ISREG(st.st_mode))
            n += st.st_size;
    closedir(dir);
    free(path);
    return n;
}

/* RocksDB works in threads of its own, in real time. */
static int64_t bytes_at_last(const struct world *w, int64_t below)
{
    int64_t n = directory_bytes(w);

    for (int i = 0; i < 600 && n >= below; i++) {
        usleep(100000);
        n = directory_bytes(w);
    }
    return n;
}

/* Text that no compression makes small: the payload's size on disk is its size. */
static void fill_text(uint64_t seed)
{
    for (size_t i = 0; i < sizeof(text) - 1; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        text[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[seed >> 59];
    }
}

/* n updates arrive and end, of which one in `dead_in` is dead. */
static void arrive_and_end(struct world *w, int64_t first, int n, int dead_in)
{
    world_begin(w);
    for (int i = 0; i < n; i++) {
        fill_text((uint64_t)(first + i));
        world_accept(w, first + i, first + i, text);
    }
    world_commit(w);
    world_begin(w);
    spool_work(w->sp);
    assert_int_equal(world_claim(w, (unsigned)n, PUSH), n);
    world_commit(w);
    world_begin(w);
    while (w->n_held) {
        struct claim *c = w->held[w->n_held - 1];
        bool dead = c->ev.seq % (uint64_t)dead_in == 0;
        world_complete(w, c, dead ? OUTCOME_REJECTED : OUTCOME_DONE, -1);
    }
    world_commit(w);
}

/* Some are dead and stay, with the ranges of the others all around them. */
static void a_million_expire(void **state)
{
    struct world *w = *state;
    const char *env = getenv("TGSPOOL_EVENTS");
    int events = env ? atoi(env) : EVENTS;
    int64_t longest = 0;
    unsigned ticks = 0;

    for (int i = 0; i < events; i += BATCH)
        arrive_and_end(w, 1 + i, BATCH, DEAD_IN);
    int64_t full = directory_bytes(w), start = clock_boot_us();
    world_retain(w, HOURS(72), HOURS(720), HOURS(72));
    w->now += HOURS(72);
    do {
        int64_t began = clock_boot_us();
        world_step(w);
        int64_t took = clock_boot_us() - began;
        longest = took > longest ? took : longest;
        ticks++;
    } while (spool_next_deadline(w->sp) <= w->now);
    int64_t took = clock_boot_us() - start, at_end = directory_bytes(w);
    assert_int_equal(world_status(w).counts.done, 0);
    assert_int_equal(world_status(w).counts.dead, events / DEAD_IN);
    int64_t rest = bytes_at_last(w, EMPTY);
    print_message(
        "%d events: %lld MiB; removed in %lld ms, %u ticks, the longest %lld us; then %lld MiB, at last %lld "
        "MiB\n",
        events, (long long)(full / MIB), (long long)(took / 1000), ticks, (long long)longest,
        (long long)(at_end / MIB), (long long)(rest / MIB));
    assert_true(rest < EMPTY);
    if (events >= 100000)
        assert_true(full > 3 * EMPTY); /* else this says nothing */
    world_verify(w);
}

/* Two days of a bot with 2,400 updates an hour, of which one in 97 is dead. One update is never handled. */
static void two_days_of_traffic(void **state)
{
    struct world *w = *state;
    enum { HOURS_OF_IT = 48, AN_HOUR = 12, UPDATES = OFTEN(200) };
    const int64_t limit = 64 * MIB; /* of 140 MiB that pass through; 6 hours of them are 18 MiB */
    int64_t id = 1, most = 0;

    world_retain(w, HOURS(6), HOURS(24), HOURS(6));
    world_begin(w);
    world_accept(w, id++, 0, "stays");
    world_commit(w);
    struct claim *stays = world_take(w, PULL);
    assert_non_null(stays);
    w->policy.lease_ms = HOURS(12);
    for (int hour = 0; hour < HOURS_OF_IT; hour++) {
        for (int i = 0; i < AN_HOUR; i++) {
            arrive_and_end(w, id, UPDATES, 97);
            id += UPDATES;
            w->now += HOURS(1) / AN_HOUR;
            for (int ticks = 0; spool_next_deadline(w->sp) <= w->now; ticks++) {
                assert_true(ticks < 100);
                world_step(w);
            }
        }
        int64_t bytes = bytes_at_last(w, limit);
        most = bytes > most ? bytes : most;
        assert_true(bytes < limit);
    }
    struct spool_counts n = world_status(w).counts;
    print_message("48 hours, %lld updates: never more than %lld MiB; at the end %llu done, %llu dead\n",
                  (long long)id, (long long)(most / MIB), (unsigned long long)n.done,
                  (unsigned long long)n.dead);
    assert_true(n.done <= 6 * AN_HOUR * UPDATES + UPDATES);
    assert_true(n.dead <= 24 * AN_HOUR * UPDATES / 90);
    world_verify(w);
}

/* RocksDB's parser takes much without doing anything about it; what it took is in its OPTIONS file. */
static void the_options_that_give_room_back(void **state)
{
    struct world *w = *state;
    char *path = xasprintf("%s/db", w->dir);
    DIR *dir = opendir(path);
    struct dirent *entry;
    unsigned files = 0;

    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        struct buf content = BUF_EMPTY;
        struct err e = ERR_NONE;
        unsigned families = 0, periodic = 0, collectors = 0;
        if (strncmp(entry->d_name, "OPTIONS-", 8))
            continue;
        char *file = xasprintf("%s/%s", path, entry->d_name);
        assert_int_equal(file_read(file, 1 << 20, &content, &e), 0);
        for (const char *p = buf_str(&content); (p = strchr(p, '\n')); p++) {
            families += !strncmp(p, "\n[CFOptions ", 12);
            periodic += !strncmp(p, "\n  periodic_compaction_seconds=172800", 37);
            collectors += !strncmp(p, "\n  table_properties_collectors={{id=CompactOnDeletion", 53);
        }
        if (families == FAMILIES) { /* else of the moment in which they were made */
            assert_int_equal(periodic, FAMILIES);
            assert_int_equal(collectors, 7); /* all but meta and audit */
            files++;
        }
        free(file);
        buf_free(&content);
    }
    assert_true(files > 0);
    closedir(dir);
    free(path);
}

#define space_test(f) cmocka_unit_test_setup_teardown(f, setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        space_test(a_million_expire),
        space_test(two_days_of_traffic),
        space_test(the_options_that_give_room_back),
    };
    return cmocka_run_group_tests_name("spool space", tests, NULL, NULL);
}
