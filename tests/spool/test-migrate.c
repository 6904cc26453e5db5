/* A spool of schema 1, as tgspool 0.1.0 wrote it, is brought to ours: in slices that a crash does not repeat or lose, after a
 * checkpoint; one of a later schema is refused by name. The old rows are made by taking out of new ones what is new. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "world.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/tree.h"
#include "store/commit.h"
#include "store/dir.h"
#include "wire/keys.h"
#include "wire/records.h"

#define EVENTS 300 /* with 2 calls each: three slices */

static void make_calls(struct world *w)
{
    const struct spool_call calls[2] = {
        {.method = "sendMessage", .content_type = "application/json", .body = slice_str("{}")},
        {.method = "sendPhoto", .content_type = "application/json", .body = slice_str("{}")}};
    const struct spool_extras x = {.calls = calls, .n_calls = 2};
    const struct outcome o = {.kind = OUTCOME_DONE, .after_ms = -1};

    for (int i = 1; i <= EVENTS; i++) {
        world_arrive(w, i, 1);
        struct claim *c = world_take(w, PUSH);
        assert_non_null(c);
        world_begin(w);
        assert_int_equal(spool_complete_with(w->box, c->ev.seq, c->token, &o, &x), COMPLETED);
        world_commit(w);
        world_drop(w, c);
    }
}

/* Each done event's calls; with forget they are taken out. */
static unsigned calls_of_events(struct db *db, bool forget)
{
    struct buf v = BUF_EMPTY;
    struct state_record r;
    struct err e = ERR_NONE;
    unsigned right = 0;

    for (uint64_t seq = 1; seq <= EVENTS; seq++) {
        struct key k = key_state(BOT_ID, BOX_IN, CLASS_DONE, seq);
        assert_int_equal(db_get(db, FAMILY_STATES, key_slice(&k), &v, &e), 1);
        assert_int_equal(record_state_decode(buf_slice(&v), &r), 0);
        right += r.n_calls == 2 && r.calls_from == 2 * seq - 1;
        if (forget) {
            r.n_calls = 0;
            buf_clear(&v);
            record_state(&v, &r);
            db_put(db, FAMILY_STATES, key_slice(&k), buf_slice(&v));
        }
    }
    buf_free(&v);
    return right;
}

static unsigned right_calls(const char *dir)
{
    struct db *db = world_db(dir, DB_LOOK);
    unsigned n = calls_of_events(db, false);

    db_close(db);
    return n;
}

static void turn_back(struct world *w)
{
    struct key identity = key_name("identity");
    struct err e = ERR_NONE;
    struct db *db = world_db(w->dir, DB_OPEN);

    assert_int_equal(calls_of_events(db, true), EVENTS);
    db_delete(db, FAMILY_META, key_slice(&identity));
    assert_int_equal(db_write(db, true, &e), DB_WRITTEN);
    db_close(db);
    assert_int_equal(store_dir_mark(w->dir, 1, &e), 0);
    assert_int_equal(right_calls(w->dir), 0);
}

static int schema_of(const char *dir)
{
    struct err e = ERR_NONE;
    int schema;

    assert_int_equal(store_dir_schema(dir, &schema, &e), 0);
    return schema;
}

/* What this program does when it is run with a directory. */
static int open_once(const char *dir)
{
    struct spool_options o = {.dir = dir, .cache_bytes = 1 << 20, .sync = SYNC_ALWAYS};
    struct err e = ERR_NONE;
    struct spool *sp = spool_open(&o, START, &e);

    if (sp)
        spool_close(sp);
    return sp ? 0 : 1;
}

/* Opens in a process of its own, since failpoints count over a process. Returns its exit status. */
static int open_apart(struct world *w, const char *failpoints)
{
    pid_t pid = fork();

    if (pid == 0) {
        setenv("TGSPOOL_FAILPOINTS", failpoints, 1);
        execl("/proc/self/exe", "test-migrate", w->dir, (char *)NULL);
        _exit(127);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void an_older_spool_is_brought_on(void **state)
{
    struct world *w = *state;
    char *before = xasprintf("%s/before-schema-1", w->dir);

    make_calls(w);
    world_close(w);
    turn_back(w);
#ifdef ENABLE_FAILPOINTS
    assert_int_equal(open_apart(w, "migrate.slice=crash@1"), 42);
    assert_int_equal(right_calls(w->dir), 0);
    assert_int_equal(schema_of(w->dir), 2); /* an older program refuses it from here on */
    assert_int_equal(open_apart(w, "migrate.slice=crash@3"), 42);
    unsigned half = right_calls(w->dir);
    assert_true(half > 0 && half < EVENTS);
    assert_int_equal(open_apart(w, "migrate.slice=errno:5@1"), 1);
    assert_int_equal(right_calls(w->dir), half);
#else
    (void)open_apart;
#endif
    world_open(w);
    world_step(w);
    world_verify(w);
    world_close(w);
    assert_int_equal(right_calls(w->dir), EVENTS);
    assert_int_equal(schema_of(w->dir), 2);
    assert_int_equal(schema_of(before), 1);
    assert_int_equal(right_calls(before), 0); /* as it was */
    world_open(w);
    free(before);
}

static void a_newer_one_is_refused_by_name(void **state)
{
    struct world *w = *state;
    struct spool_options o = {.dir = w->dir, .cache_bytes = 1 << 20};
    struct err e = ERR_NONE;

    world_close(w);
    assert_int_equal(store_dir_mark(w->dir, STORE_SCHEMA + 1, &e), 0);
    assert_null(spool_open(&o, w->now, &e));
    assert_int_equal(e.exit_code, EX_CONFIG);
    assert_non_null(strstr(e.text, "newer tgspool (schema 3"));
    e = ERR_NONE;
    assert_null(spool_look(&o, w->now, &e));
    assert_int_equal(e.exit_code, EX_CONFIG);
    assert_int_equal(store_dir_mark(w->dir, STORE_SCHEMA, &e), 0);
    world_open(w);
}

/* Where syncs are gathered (spool.sync is a time), a slice waits for one. */
static void syncs_that_are_gathered(void **state)
{
    struct world *w = *state;
    struct spool_options o = {.dir = w->dir, .cache_bytes = 1 << 20, .sync = SYNC_INTERVAL, .sync_ms = 20};
    struct err e = ERR_NONE;

    make_calls(w);
    world_close(w);
    turn_back(w);
    struct spool *sp = spool_open(&o, START, &e);
    assert_non_null(sp);
    spool_close(sp);
    assert_int_equal(right_calls(w->dir), EVENTS);
    world_open(w);
}

/* After a week it goes, in slices. */
static void the_checkpoint_from_before_goes(void **state)
{
    struct world *w = *state;
    char *before = xasprintf("%s/before-schema-1", w->dir), *marker = xasprintf("%s/SPOOL", before);
    const int64_t week = HOURS(7 * 24);
    struct stat st;

    assert_int_equal(spool_remove_old(w->sp, w->now), TIME_NEVER);
    make_calls(w);
    world_close(w);
    turn_back(w);
    world_open(w);
    assert_int_equal(stat(marker, &st), 0);
    int64_t made = (int64_t)st.st_mtim.tv_sec * 1000, next;
    assert_int_equal(spool_remove_old(w->sp, made + week - 1), made + week);
    assert_int_equal(access(marker, F_OK), 0);
    while ((next = spool_remove_old(w->sp, made + week)) != TIME_NEVER) {
        assert_int_equal(next, made + week); /* at once */
        assert_true(access(before, F_OK) == 0 && access(marker, F_OK) < 0);
    }
    assert_int_equal(access(before, F_OK), -1);
    world_verify(w);
    free(marker);
    free(before);
}

/* The paths of files in db/, by ls and a pattern; the last one stays in path. Returns how many. */
static unsigned files(struct world *w, const char *pattern, char path[512],
                      void (*each)(const char *path, struct buf *content))
{
    char *list = xasprintf("ls %s/db/%s", w->dir, pattern);
    FILE *p = popen(list, "r");
    unsigned n = 0;

    for (; p && fgets(path, 512, p); n++) {
        struct buf content = BUF_EMPTY;
        struct err e = ERR_NONE;
        path[strcspn(path, "\n")] = '\0';
        assert_int_equal(file_read(path, 1 << 24, &content, &e), 0);
        each(path, &content);
        buf_free(&content);
    }
    assert_int_equal(pclose(p), 0);
    free(list);
    return n;
}

/* Each family of the newest OPTIONS file; it is written at each open. */
static void options_say_5(const char *path, struct buf *content)
{
    unsigned n = 0;

    (void)path;
    for (const char *at = buf_str(content); (at = strstr(at, "  format_version=")) != NULL; n++) {
        at += strlen("  format_version=");
        assert_int_equal(*at, '5');
    }
    assert_int_equal(n, FAMILIES);
}

/* The end of a table: its version in four bytes, and a magic number. */
static void table_is_5(const char *path, struct buf *content)
{
    static const unsigned char end[] = {5, 0, 0, 0, 0xf7, 0xcf, 0xf4, 0x85, 0xb7, 0x41, 0xe2, 0x88};

    (void)path;
    assert_true(content->n > sizeof(end));
    assert_memory_equal(content->p + content->n - sizeof(end), end, sizeof(end));
}

/* Tables that the oldest supported RocksDB reads, whatever this program was built with. */
static void tables_have_format_5(void **state)
{
    struct world *w = *state;
    char path[512];

    world_arrive(w, 1, 1);
    world_reopen(w, 1000); /* the log becomes tables */
    assert_true(files(w, "OPTIONS-*", path, options_say_5) > 0);
    assert_true(files(w, "*.sst", path, table_is_5) > 0);
}

#define migrate_test(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(int argc, char **argv)
{
    if (argc == 2)
        return open_once(argv[1]);
    const struct CMUnitTest tests[] = {
        migrate_test(an_older_spool_is_brought_on),
        migrate_test(syncs_that_are_gathered),
        migrate_test(the_checkpoint_from_before_goes),
        migrate_test(a_newer_one_is_refused_by_name),
        migrate_test(tables_have_format_5),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
