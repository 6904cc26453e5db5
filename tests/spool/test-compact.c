/* Compaction of everything in the background: what was deleted gives its room back, what was not stays. */
#include <unistd.h>

#include "store/dir.h"
#include "world.h"

#define ROWS 30000u
#define ROWS_OF FAMILY_EVENTS /* which is not compacted for its deletions alone */
#define KEPT(i) ((i) % 20 == 0)

/* Rows come in no order, so that every file has some of everywhere. */
static struct slice key_of(uint32_t i, char key[8])
{
    put_be32(key, i * 2654435761u);
    put_be32(key + 4, i);
    return slice_make(key, 8);
}

static void write_batch(struct db *db)
{
    struct err e = ERR_NONE;
    enum db_write w;

    while ((w = db_write(db, false, &e)) == DB_STALLED)
        usleep(1000);
    assert_int_equal(w, DB_WRITTEN);
}

static void change_rows(struct db *db, bool put)
{
    char key[8], value[400];

    for (uint32_t i = 0; i < ROWS; i++) {
        for (size_t k = 0; k < sizeof(value); k += 4)
            put_be32(value + k, (uint32_t)(i * 40503u + k * 2246822519u) ^ (i << 7));
        if (put)
            db_put(db, ROWS_OF, key_of(i, key), slice_make(value, sizeof(value)));
        else if (!KEPT(i))
            db_delete(db, ROWS_OF, key_of(i, key));
        if (i % 500 == 499)
            write_batch(db);
    }
    write_batch(db);
}

/* Calls it as the daemon does, between other things, until it is done. */
static void compact(struct db *db)
{
    struct err e = ERR_NONE;
    unsigned round = 0;
    int rc = 1;

    for (int i = 0; i < 60000 && rc > 0; i++) {
        rc = db_compact(db, &round, &e);
        usleep(1000);
    }
    if (rc)
        fail_msg("%d in round %u: %s", rc, round, e.text);
}

static void room_comes_back(void **state)
{
    struct world *w = *state;
    char *path = xasprintf("%s/db", w->dir), key[8];
    struct err e = ERR_NONE;

    world_close(w);
    struct db *db = world_db(w->dir, DB_OPEN);
    change_rows(db, true);
    compact(db);
    int64_t full = store_dir_bytes(path);
    assert_true(full > ROWS * 400 / 2);
    change_rows(db, false);
    compact(db);
    db_close(db);
    db = world_db(w->dir, DB_OPEN); /* files that are not needed are gone at the latest now */
    assert_true(store_dir_bytes(path) < full / 4);
    for (uint32_t i = 0; i < ROWS; i++)
        assert_int_equal(db_get(db, ROWS_OF, key_of(i, key), NULL, &e), KEPT(i));
    db_close(db);
    free(path);
}

static void an_empty_one(void **state)
{
    struct world *w = *state;
    struct err e = ERR_NONE;
    unsigned round = 0;
    int rc = 1;

    for (int i = 0; i < 10000 && rc > 0; i++) {
        world_step(w);
        rc = spool_compact(w->sp, &round, &e);
        usleep(1000);
    }
    assert_int_equal(rc, 0);
    assert_true(spool_database_bytes(w->sp) > 0);
    world_verify(w);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_teardown)
    const struct CMUnitTest tests[] = {TEST(room_comes_back), TEST(an_empty_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
