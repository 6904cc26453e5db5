/* Checkpoints by the api: who may have them, how many, for how long, and what an earlier process left. */
#include "rig.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#define MANY 8

/* RocksDB writes in a thread of its own, in real time. */
static void make(struct rig *r, struct reply *p, int status)
{
    rig_start(r, p, "POST", "/v1/checkpoint", NULL);
    for (unsigned i = 0; i < 10000 && !p->answered; i++) {
        rig_step(r);
        world_wait(&r->w, 10);
        if (!p->answered)
            usleep(1000);
    }
    assert_true(p->answered);
    if (p->status != status)
        fail_msg("%d %s", p->status, buf_str(&p->body));
}

static char *make_path(struct rig *r)
{
    struct reply p;

    make(r, &p, 201);
    char *path = xstrdup(reply_text(p.root, "path"));
    reply_clear(&p);
    return path;
}

/* Some turns, each of which removes some files. */
static bool is_gone(struct rig *r, const char *path)
{
    for (int i = 0; i < 20; i++)
        rig_step(r);
    return access(path, F_OK) < 0;
}

static void one_can_be_looked_at_and_is_removed(void **state)
{
    struct rig *r = *state;
    struct reply p;

    rig_arrive(r, 1, 1);
    make(r, &p, 201);
    char *path = xstrdup(reply_text(p.root, "path"));
    char *url = xasprintf("/v1/checkpoint/%s", reply_text(p.root, "id"));
    reply_clear(&p);
    rig_arrive(r, 2, 2);
    struct spool_options o = {.dir = path, .cache_bytes = 1 << 20};
    struct err e = ERR_NONE;
    struct spool *sp = spool_look(&o, r->w.now, &e);
    assert_non_null(sp);
    struct spool_box_status st;
    spool_box_status(spool_find_box(sp, "shop", BOX_IN), &st);
    assert_int_equal(st.counts.pending, 1);
    spool_close(sp);
    rig_expect(r, &p, 200, "DELETE", url, NULL);
    reply_clear(&p);
    assert_true(is_gone(r, path));
    rig_refused(r, 404, "not_found", "DELETE", url, NULL);
    rig_refused(r, 404, "not_found", "DELETE", "/v1/checkpoint/..", NULL);
    free(url);
    free(path);
}

static void each_ends_after_an_hour(void **state)
{
    struct rig *r = *state;
    char *path = make_path(r);
    int64_t made = r->w.now;

    r->w.now = made + HOURS(1) - MINUTES(1);
    assert_false(is_gone(r, path));
    assert_true(api_next_deadline(r->api) <= made + HOURS(1));
    r->w.now = made + HOURS(1);
    assert_true(is_gone(r, path));
    assert_true(api_next_deadline(r->api) > r->w.now);
    free(path);
}

static void there_are_few(void **state)
{
    struct rig *r = *state;

    for (int i = 0; i < MANY; i++)
        free(make_path(r));
    rig_refused(r, 429, "too_many", "POST", "/v1/checkpoint", NULL);
    r->w.now += HOURS(2);
    rig_step(r);
    rig_step(r);
    free(make_path(r));
}

static void note(void *arg, int status, const char *type, struct slice body, int64_t retry_after_s)
{
    (void)type, (void)body, (void)retry_after_s;
    *(int *)arg = status;
}

static void only_on_the_socket(void **state)
{
    struct rig *r = *state;
    struct api_request q = {.method = slice_str("POST"),
                            .path = slice_str("/v1/checkpoint"),
                            .who = "a network",
                            .on_socket = false};
    char *path = make_path(r), *url = xasprintf("/v1/checkpoint/%s", strrchr(path, '/') + 1);
    int status = 0;

    assert_null(api_handle(r->api, &q, note, &status));
    assert_int_equal(status, 401);
    q.method = slice_str("DELETE");
    q.path = slice_str(url);
    assert_null(api_handle(r->api, &q, note, &status));
    assert_int_equal(status, 404);
    assert_false(is_gone(r, path));
    free(url);
    free(path);
}

/* A client that goes away while RocksDB writes leaves nothing. */
static void nobody_waits_for_it(void **state)
{
    struct rig *r = *state;
    struct reply p;

    rig_arrive(r, 1, 1);
    rig_start(r, &p, "POST", "/v1/checkpoint", NULL);
    if (!p.answered)
        api_cancel(p.call);
    for (int i = 0; i < 20; i++) {
        world_wait(&r->w, 10);
        rig_step(r);
    }
    char *dir = xasprintf("%s/checkpoints", r->w.dir);
    assert_true(p.answered || access(dir, F_OK) < 0);
    reply_clear(&p);
    free(dir);
}

/* What a migration left goes while the daemon runs, too. */
static void an_old_one_of_a_migration_goes(void **state)
{
    struct rig *r = *state;
    char *dir = xasprintf("%s/before-schema-1", r->w.dir), *marker = xasprintf("%s/SPOOL", dir);
    struct timespec times[2] = {{.tv_sec = r->w.now / 1000}, {.tv_sec = r->w.now / 1000}};
    struct err e = ERR_NONE;

    assert_int_equal(mkdir(dir, 0700), 0);
    assert_int_equal(file_create(marker, slice_str("x"), 0600, &e), 0);
    assert_int_equal(utimensat(AT_FDCWD, marker, times, 0), 0);
    rig_step(r);
    world_wait(&r->w, HOURS(7 * 24) - 1000);
    rig_step(r);
    assert_int_equal(access(marker, F_OK), 0);
    world_wait(&r->w, 1000);
    rig_step(r);
    rig_step(r);
    assert_true(access(dir, F_OK) < 0);
    free(marker);
    free(dir);
}

#define checkpoint_test(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        checkpoint_test(one_can_be_looked_at_and_is_removed),
        checkpoint_test(each_ends_after_an_hour),
        checkpoint_test(there_are_few),
        checkpoint_test(only_on_the_socket),
        checkpoint_test(nobody_waits_for_it),
        checkpoint_test(an_old_one_of_a_migration_goes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
