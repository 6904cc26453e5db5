/* RocksDB cannot keep up for a while, or for ever: the open batch waits and does not grow, nobody is told that anything is
 * written, nothing turns in a circle, and a stall that does not end is ended. A failpoint counts over a process, so each
 * case is this program run again. */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spool/internal.h"

#define EVENTS 50
#define PREPARED (1 + 3 * EVENTS) /* writes until prepare() is done */
#define STALLS 6                  /* writes that stall, of a stall that ends */

static size_t open_rows(struct world *w)
{
    return db_batch_ops(store_db(w->sp->store));
}

/* Ended events whose time is up, and some that wait, with an open batch that is not written yet. */
static void prepare(struct world *w)
{
    world_retain(w, HOURS(3), HOURS(3), HOURS(1));
    for (int i = 0; i < EVENTS; i++) {
        uint64_t seq = world_arrive(w, i + 1, i);
        world_end(w, world_take_seq(w, PUSH, seq), OUTCOME_DONE, -1);
    }
    world_wait(w, HOURS(4));
    world_begin(w);
    world_accept(w, 1000, 1, "waits");
}

static void note(void *arg, bool ok)
{
    *(int *)arg = ok ? 1 : -1;
}

/* Meanwhile: nothing is added, whoever may take events is told that there are none, and the next turn is later. */
static void expect_rest(struct world *w, size_t rows)
{
    assert_int_equal(spool_health(w->sp, NULL), SPOOL_STALLED);
    assert_true(spool_batch_full(w->sp));
    assert_false(spool_claimable(w->box));
    assert_int_equal(open_rows(w), rows);
    world_wakes_by(w, w->now + 10);
}

static void turn(struct world *w)
{
    world_begin(w);
    spool_work(w->sp);
    spool_commit(w->sp);
}

static void one_that_ends(void **state)
{
    struct world *w = *state;
    int durable = 0;

    prepare(w);
    spool_on_durable(w->sp, note, &durable);
    spool_commit(w->sp);
    size_t rows = open_rows(w);
    for (int i = 1; i <= STALLS; i++) {
        expect_rest(w, rows);
        assert_int_equal(durable, 0);
        w->now = spool_next_deadline(w->sp);
        turn(w);
    }
    assert_int_equal(durable, 1);
    assert_int_equal(spool_health(w->sp, NULL), SPOOL_OK);
    assert_true(spool_claimable(w->box));
    for (int i = 0; i < 5; i++)
        world_step(w);
    assert_int_equal(world_status(w).counts.done, 0); /* retention goes on */
    assert_int_equal(world_status(w).counts.pending, 1);
    world_verify(w);
}

/* The handle is given up as after any failed write; what was not durable is told so. */
static void one_that_does_not(void **state)
{
    struct world *w = *state;
    int durable = 0, turns = 0;

    prepare(w);
    spool_on_durable(w->sp, note, &durable);
    int64_t start = w->now;
    spool_commit(w->sp);
    while (spool_health(w->sp, NULL) == SPOOL_STALLED && turns++ < 100000) {
        assert_int_equal(durable, 0);
        w->now = spool_next_deadline(w->sp);
        turn(w);
    }
    assert_int_equal(spool_health(w->sp, NULL), SPOOL_FAILED);
    assert_int_equal(durable, -1);
    assert_in_range(w->now - start, SECONDS(60), SECONDS(61));
    w->now = spool_next_deadline(w->sp);
    turn(w); /* opened anew */
    assert_int_equal(spool_health(w->sp, NULL), SPOOL_OK);
    assert_int_equal(world_status(w).counts.pending, 0); /* it was not acknowledged */
    assert_int_equal(world_status(w).counts.done, EVENTS);
}

/* Commands without a loop wait for it: what they did is all there. */
static void one_in_a_restore(void **state)
{
    struct world *w = *state;
    struct err e = ERR_NONE;

    world_arrive(w, 1, 1);
    assert_int_equal(spool_restore(w->sp, w->now - HOURS(1), "test", &e), 0);
    world_close(w);
    world_open(w);
    assert_true(world_status(w).paused_deliver);
    assert_true(spool_box_next_seq(w->box) > 1000000);
    assert_int_equal(world_status(w).counts.pending, 1);
    world_verify(w);
}

/* ---- the cases ---------------------------------------------------------------------------------- */

#ifdef ENABLE_FAILPOINTS
/* The write with number `at` stalls, `times` times. */
static void run_apart(const char *name, unsigned at, unsigned times, const char *more)
{
    struct buf spec = BUF_EMPTY;
    int status;

    for (unsigned i = 0; i < times; i++)
        buf_printf(&spec, "%sstore.stall=errno:11@%u%s", i ? ";" : "", at, more);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("TGSPOOL_FAILPOINTS", buf_str(&spec), 1);
        dup2(STDERR_FILENO, STDOUT_FILENO);
        execl("/proc/self/exe", "test-stall", name, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    buf_free(&spec);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}
#else
static void run_apart(const char *name, unsigned at, unsigned times, const char *more)
{
    (void)name, (void)at, (void)times, (void)more;
    skip(); /* built without --enable-failpoints */
}
#endif

static void a_stall_that_ends(void **state)
{
    (void)state;
    run_apart("ends", PREPARED + 1, STALLS, "");
}

static void a_stall_that_does_not_end(void **state)
{
    (void)state;
    run_apart("stays", PREPARED + 1, 1, "+");
}

static void a_stall_in_a_restore(void **state)
{
    (void)state;
    for (unsigned at = 3; at <= 6; at++)
        run_apart("restore", at, STALLS, "");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stall_that_ends),
        cmocka_unit_test(a_stall_that_does_not_end),
        cmocka_unit_test(a_stall_in_a_restore),
    };
    static const struct {
        const char *name;
        CMUnitTestFunction fn;
    } cases[] = {{"ends", one_that_ends}, {"stays", one_that_does_not}, {"restore", one_in_a_restore}};

    for (size_t i = 0; argc == 2 && i < ARRAY_LEN(cases); i++) {
        const struct CMUnitTest one[] = {
            cmocka_unit_test_setup_teardown(cases[i].fn, world_setup, world_teardown)};
        if (!strcmp(argv[1], cases[i].name))
            return cmocka_run_group_tests(one, NULL, NULL);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
