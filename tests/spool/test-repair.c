/* Repair: a log without its damage, and what salvage brings from a spool with faults into a new one. */
#include "store/repair.h"
#include "world.h"

#include <dirent.h>
#include <unistd.h>

#include "base/file.h"
#include "base/tree.h"
#include "store/log_filter.h"

#define EVENTS 60
#define FLIPS 20
#define KEYS 3000
#define KEYS_A_BLOCK 300 /* at most */
#define BAD_BLOCKS 6

static char *path_of(struct world *w, const char *name)
{
    return xasprintf("%s/%s", w->dir, name);
}

/* Some of everything: 20 done, 5 dead, one of them replayed, 1 with a key, 3 held, the rest waiting; in the log only. */
static void fill(struct world *w)
{
    struct slice key = slice_str("mail-1");
    uint64_t copy;

    for (int i = 1; i <= EVENTS; i++)
        world_arrive(w, i, i % 7);
    for (int i = 0; i < 25; i++)
        world_end(w, world_take(w, PUSH), i < 20 ? OUTCOME_DONE : OUTCOME_REJECTED, -1);
    world_begin(w);
    for (uint64_t seq = 1; seq <= EVENTS; seq++)
        if (world_state(w, seq).state == STATE_DEAD) {
            assert_int_equal(spool_replay(w->box, seq, "test", &copy), ACTED);
            break;
        }
    assert_int_equal(spool_key(w->box, key, 0, 0, NULL), KEY_FIRST);
    world_commit(w);
    for (int i = 0; i < 3; i++)
        world_take(w, PUSH);
}

static char *log_of(struct world *w)
{
    char *db = path_of(w, "db"), *found = NULL;
    DIR *d = opendir(db);
    struct dirent *entry;

    assert_non_null(d);
    while ((entry = readdir(d)) != NULL)
        if (strstr(entry->d_name, ".log"))
            found = xasprintf("%s/%s", db, entry->d_name);
    closedir(d);
    free(db);
    assert_non_null(found);
    return found;
}

static void rewrite(const char *path, struct slice content)
{
    struct err e = ERR_NONE;

    assert_int_equal(file_replace(path, content, &e), 0);
}

static unsigned filter(const char *path)
{
    struct err e = ERR_NONE;
    unsigned lost = 0;

    assert_int_equal(log_filter(path, &lost, &e), 0);
    return lost;
}

static struct buf content(const char *path)
{
    struct buf b = BUF_EMPTY;
    struct err e = ERR_NONE;

    assert_int_equal(file_read(path, 1 << 24, &b, &e), 0);
    return b;
}

static void a_whole_log_stays(void **state)
{
    struct world *w = *state;
    char text[60000];

    memset(text, 'x', sizeof(text)); /* in several pieces */
    text[sizeof(text) - 1] = '\0';
    world_begin(w);
    world_accept(w, 1, 1, text);
    world_commit(w);
    fill(w);
    world_close(w);
    char *log = log_of(w);
    struct buf before = content(log);
    assert_int_equal(filter(log), 0);
    struct buf after = content(log);
    assert_int_equal(after.n, before.n);
    assert_memory_equal(after.p, before.p, before.n);
    rewrite(log, slice_make(before.p, before.n - 5)); /* torn by a crash */
    assert_int_equal(filter(log), 0);
    buf_free(&before);
    buf_free(&after);
    free(log);
}

/* The copy's events, by this way; fails if it does not open. */
static uint64_t try_way(struct world *w, enum repair_way way, unsigned *lost)
{
    char *to = path_of(w, "try");
    struct err e = ERR_NONE;
    uint64_t n;

    assert_int_equal(tree_remove(to, &e), 0);
    assert_int_equal(file_make_dir(to, 0700, &e), 0);
    if (repair_try(w->dir, way, to, lost, &e) < 0 || spool_salvageable(to, &n, &e) < 0)
        fail_msg("%s: %s", repair_way_text(way), e.text);
    free(to);
    return n;
}

static void any_flipped_bit_costs_one_batch(void **state)
{
    struct world *w = *state;
    unsigned lost;

    for (int i = 1; i <= EVENTS; i++)
        world_arrive(w, i, i % 7); /* a batch each */
    world_close(w);
    char *log = log_of(w);
    struct buf good = content(log);
    for (size_t i = 0; i < FLIPS; i++) {
        size_t at = good.n * i / FLIPS;
        good.p[at] ^= 16;
        rewrite(log, buf_slice(&good));
        uint64_t n = try_way(w, REPAIR_SKIPPING, &lost);
        assert_true(n <= EVENTS && lost <= 1);
        /* all in this one block behind it goes, where the log is smaller than a block; else one batch */
        assert_true(n < EVENTS || lost == 0 || at < 2000);
        if (i % 5 == 0)
            assert_true(try_way(w, REPAIR_TO_DAMAGE, &lost) <= n);
        good.p[at] ^= 16;
    }
    rewrite(log, buf_slice(&good));
    assert_int_equal(try_way(w, REPAIR_REBUILT, &lost), EVENTS); /* without any table */
    assert_int_equal(lost, 0);
    buf_free(&good);
    free(log);
}

struct saved {
    struct spool_salvaged in;
    struct spool_salvaged_rest rest;
};

static void note(void *arg, const struct spool_salvaged *s)
{
    if (s->box == BOX_IN)
        ((struct saved *)arg)->in = *s;
}

/* From the copy in "try" into "new", which the world opens afterwards. */
static void salvage(struct world *w, struct saved *saved)
{
    char *from = path_of(w, "try"), *to = path_of(w, "new");
    struct spool_options o = {.dir = to, .cache_bytes = 1 << 20, .sync = SYNC_OFF};
    struct err e = ERR_NONE;
    struct spool *sp = spool_open(&o, w->now, &e);

    assert_non_null(sp);
    spool_begin(sp, w->now);
    assert_int_equal(spool_salvage(sp, from, note, saved, &saved->rest, &e), 0);
    spool_close(sp);
    snprintf(w->dir, sizeof(w->dir), "%s", to); /* the old one lies above */
    world_open(w);
    world_step(w);
    free(from);
    free(to);
}

static void back(struct world *w)
{
    w->dir[strlen(w->dir) - strlen("/new")] = '\0';
}

static void salvage_keeps_what_there_is(void **state)
{
    struct world *w = *state;
    struct slice key = slice_str("mail-1");
    struct poll_position p = {.api_root = "x", .offset = 77, .newest_update_at = w->now}, read;
    struct saved saved;
    unsigned lost;

    fill(w);
    world_begin(w);
    spool_set_position(w->box, &p);
    world_commit(w);
    struct spool_counts before = world_status(w).counts;
    struct event_state states[EVENTS + 2];
    for (uint64_t seq = 1; seq <= EVENTS + 1; seq++)
        states[seq] = world_state(w, seq);
    world_close(w);
    assert_int_equal(try_way(w, REPAIR_AS_IT_IS, &lost), EVENTS + 1);
    salvage(w, &saved);
    assert_int_equal(saved.rest.key_faults + saved.rest.position_faults + saved.rest.note_faults +
                         saved.rest.audit_faults,
                     0);
    assert_true(saved.in.record_known);
    assert_int_equal(saved.in.counted, EVENTS + 1);
    assert_int_equal(saved.in.ended, 25);
    assert_int_equal(saved.in.waiting, EVENTS + 1 - 25);
    assert_int_equal(saved.in.unknown, 0);

    struct spool_counts after = world_status(w).counts;
    assert_int_equal(after.done, before.done);
    assert_int_equal(after.dead, before.dead);
    assert_int_equal(after.dead_settled, 1);
    assert_int_equal(after.pending, before.pending + before.processing);
    for (uint64_t seq = 1; seq <= EVENTS + 1; seq++) {
        struct event_state st = world_state(w, seq);
        enum state was = states[seq].state == STATE_PROCESSING ? STATE_PENDING : states[seq].state;
        assert_int_equal(st.state, was);
        assert_int_equal(st.replayed_as, states[seq].replayed_as);
    }
    spool_get_position(w->box, &read);
    assert_int_equal(read.offset, 77);
    world_begin(w);
    assert_int_equal(spool_key(w->box, key, 0, 0, NULL), KEY_IS_DONE);
    char *known = world_message(5, 5, "");
    assert_int_equal(world_accept_json(w, known, NULL), ACCEPTED_DUPLICATE);
    world_commit(w);
    world_verify(w);
    back(w);
    free(known);
}

static char *largest_table(struct world *w)
{
    char *db = path_of(w, "try/db"), *largest = NULL;
    size_t size = 0;
    DIR *d = opendir(db);
    struct dirent *entry;

    assert_non_null(d);
    while ((entry = readdir(d)) != NULL) {
        char *path = xasprintf("%s/%s", db, entry->d_name);
        struct buf b = BUF_EMPTY;
        if (strstr(entry->d_name, ".sst"))
            b = content(path);
        if (b.n > size) {
            size = b.n;
            free(largest);
            largest = path;
            path = NULL;
        }
        buf_free(&b);
        free(path);
    }
    closedir(d);
    free(db);
    assert_non_null(largest);
    return largest;
}

/* Of the keys' table, wherever it is. */
static void a_bad_block_costs_the_keys_in_it(void **state)
{
    struct world *w = *state;
    uint64_t seen = 0;
    char text[24];
    unsigned lost;

    world_begin(w);
    for (int i = 0; i < KEYS; i++) {
        snprintf(text, sizeof(text), "mail-%d", i);
        assert_int_equal(spool_key(w->box, slice_str(text), 0, 0, NULL), KEY_FIRST);
    }
    world_commit(w);
    world_close(w);
    for (size_t i = 0; i < BAD_BLOCKS; i++) {
        struct saved saved;
        int known = 0;

        (void)try_way(w, REPAIR_REBUILT, &lost); /* from the log into tables */
        char *table = largest_table(w);
        struct buf b = content(table);
        b.p[b.n * i / (BAD_BLOCKS + 2)] ^= 16; /* the end is index and properties */
        rewrite(table, buf_slice(&b));
        salvage(w, &saved);
        world_begin(w);
        for (int k = 0; k < KEYS; k++) {
            snprintf(text, sizeof(text), "mail-%d", k);
            known += spool_key(w->box, slice_str(text), 0, 0, NULL) == KEY_IS_DONE;
        }
        world_commit(w);
        assert_in_range(known, KEYS - KEYS_A_BLOCK, KEYS - (int)saved.rest.key_faults);
        seen += saved.rest.key_faults;
        world_verify(w);
        world_close(w);
        struct err e = ERR_NONE;
        assert_int_equal(tree_remove(w->dir, &e), 0);
        back(w);
        buf_free(&b);
        free(table);
    }
    assert_in_range(seen, 2, BAD_BLOCKS); /* others met the rows of expiry, which are made anew */
    world_open(w);
}

#define repair_test(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        repair_test(a_whole_log_stays),
        repair_test(any_flipped_bit_costs_one_batch),
        repair_test(salvage_keeps_what_there_is),
        repair_test(a_bad_block_costs_the_keys_in_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
