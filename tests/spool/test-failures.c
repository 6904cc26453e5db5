/* A store that fails: every write, sync, read and open in turn, by failpoints. Nothing is acknowledged that is not there,
 * nothing is lost, and no event is handed to a handler twice. A failpoint counts over a process, so each case is this program
 * run again with the environment set. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "world.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"

#define EVENTS 12
#define EXIT_NOT_HIT 33 /* the scenario ended before the failpoint's turn came */

static bool hit; /* the store was seen to fail */

struct job {
    struct world *w;
    enum { UNKNOWN, SENT, SAFE } intake;
    unsigned handed;
    struct claim *pulled; /* by a consumer that has not heard yet that its ack counts */
    bool acking, maybe_acked;
};

static struct job jobs[EVENTS];

static void intake_done(void *arg, bool ok)
{
    struct job *j = arg;

    j->intake = ok ? SAFE : UNKNOWN; /* not confirmed: Telegram sends it again */
}

static void ack_done(void *arg, bool ok)
{
    struct job *j = arg;

    j->acking = false;
    if (!ok)
        return;
    claim_free(j->pulled);
    j->pulled = NULL;
}

static void send_updates(struct world *w)
{
    for (int i = 0; i < EVENTS; i++) {
        struct job *j = &jobs[i];
        struct update u;
        if (j->intake != UNKNOWN || spool_batch_full(w->sp))
            continue;
        char *json = world_message(i, i % 4, "");
        assert_int_equal(update_parse(slice_str(json), &u), 0);
        if (spool_accept(w->box, &u, false, NULL) != ACCEPTED_FAILED) {
            j->intake = SENT;
            spool_on_durable(w->sp, intake_done, j);
        }
        free(json);
        if (i % 4 == 3)
            return; /* four a tick */
    }
}

static void on_push(void *arg, struct claim *c)
{
    struct world *w = arg;

    if (c) {
        jobs[c->ev.update_id].handed++;
        w->held[w->n_held++] = c;
    }
}

static void on_pull(void *arg, struct claim *c)
{
    (void)arg;
    if (c) {
        jobs[c->ev.update_id].handed++;
        jobs[c->ev.update_id].pulled = c;
    }
}

static const struct outcome success = {.kind = OUTCOME_DONE, .after_ms = -1};

/* Handlers say done once; a push outcome is the spool's to remember, a pull one is repeated until it counts. */
static void end_tries(struct world *w)
{
    while (w->n_held) {
        struct claim *c = w->held[--w->n_held];
        enum completed rc = spool_complete(w->box, c->ev.seq, c->token, &success);
        assert_true(rc == COMPLETED || rc == COMPLETE_FAILED);
        claim_free(c);
    }
    for (int i = 0; i < EVENTS; i++) {
        struct job *j = &jobs[i];
        if (!j->pulled || j->acking)
            continue;
        enum completed rc = spool_complete(w->box, j->pulled->ev.seq, j->pulled->token, &success);
        assert_true(rc == COMPLETED || rc == COMPLETE_FAILED || (rc == COMPLETE_LOST && j->maybe_acked));
        if (rc == COMPLETED) {
            j->acking = j->maybe_acked = true;
            spool_on_durable(w->sp, ack_done, j);
        } else if (rc == COMPLETE_LOST) {
            ack_done(j, true); /* it was written after all */
        }
    }
}

static bool all_settled(struct world *w)
{
    if (!spool_healthy(w->sp, NULL))
        return false;
    for (int i = 0; i < EVENTS; i++)
        if (jobs[i].intake != SAFE || jobs[i].pulled)
            return false;
    return world_status(w).counts.done == EVENTS;
}

static void tick(struct world *w, int n)
{
    struct claim_request push = {.by = "push", .push = true, .max = 1}, pull = {.by = "pull", .max = 1};

    world_begin(w);
    send_updates(w);
    end_tries(w);
    spool_work(w->sp);
    spool_claim(w->box, n % 2 ? &push : &pull, n % 2 ? on_push : on_pull, w);
    spool_commit(w->sp);
    char why[256] = "";
    if (!spool_healthy(w->sp, why)) {
        hit = true;
        assert_true(strlen(why) > 5); /* a person must be told */
        int64_t next = spool_next_deadline(w->sp);
        assert_true(next < w->now + MINUTES(2)); /* it tries again by itself */
        w->now = next > w->now ? next : w->now + 1;
    } else {
        w->now += 10;
    }
}

/* The child's part. */
static void scenario(void **state)
{
    struct world *w = *state;
    int n = 0;

    w->policy.concurrency = 3;
    while (!w->box && n++ < 10) { /* the very first commit may be the one that fails */
        world_begin(w);
        w->box = spool_attach(w->sp, BOT_ID, BOX_IN, "shop", &w->policy);
        spool_commit(w->sp);
    }
    spool_attach(w->sp, BOT_ID, BOX_IN, "shop", &w->policy);
    for (n = 0; n < 500 && !all_settled(w); n++)
        tick(w, n);
    assert_true(all_settled(w));
    if (!hit)
        return; /* else the failpoint might be met while looking on */
    world_verify(w);
    for (int i = 0; i < EVENTS; i++)
        assert_int_equal(jobs[i].handed, 1);
    struct spool_counts c = world_status(w).counts;
    assert_int_equal(c.received, EVENTS);
    assert_int_equal(c.pending + c.processing + c.dead, 0);
    assert_int_equal(c.delivered, EVENTS);
    for (uint64_t seq = 1; seq <= EVENTS; seq++)
        world_expect(w, seq, STATE_DONE, REASON_NONE, 1);
}

static int open_bare(struct world *w)
{
    struct spool_options o = {.dir = w->dir, .cache_bytes = 1 << 20, .sync = SYNC_ALWAYS};
    struct err e = ERR_NONE;

    if (getenv("TGSPOOL_TEST_SYNC"))
        o.sync = SYNC_INTERVAL, o.sync_ms = 20;
    w->sp = spool_open(&o, w->now, &e);
    if (w->sp)
        return 0;
    fprintf(stderr, "%s\n", e.text);
    return -1;
}

/* An open that fails is told, does no harm, and works the next time. */
static int open_again(struct world *w)
{
    if (open_bare(w) == 0)
        return 0;
    hit = true;
    return open_bare(w);
}

/* As world_setup, but without the commits that would be counted. */
static int bare_setup(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));

    if (!strcpy(w->dir, "/tmp/tgspool-failures-XXXXXX") || !mkdtemp(w->dir))
        return -1;
    w->now = START;
    w->policy = (struct spool_policy){.outcome = {.retry = {.step_ms = {1000}, .n = 1}, .max_attempts = 8},
                                      .lease_ms = HOURS(1)};
    *state = w;
    return open_again(w);
}

/* A process dies that held claims; at the next one's start the store fails. */
static void restart(void **state)
{
    struct world *w = *state;
    struct spool_counts c = {.done = 0};

    w->policy.concurrency = EVENTS;
    spool_attach(w->sp, BOT_ID, BOX_IN, "shop", &w->policy);
    for (int n = 0; n < 100 && c.processing < 4; n++) {
        w->box = spool_attach(w->sp, BOT_ID, BOX_IN, "shop", &w->policy);
        world_begin(w);
        send_updates(w);
        spool_work(w->sp);
        spool_claim(w->box, &(struct claim_request){.by = "push", .push = true, .max = 4}, on_push, w);
        spool_commit(w->sp);
        if (!spool_healthy(w->sp, NULL))
            exit(0); /* this failure is the other scenario's */
        c = world_status(w).counts;
    }
    assert_true(c.processing >= 4);
    world_close(w);
    assert_int_equal(open_again(w), 0);
    w->box = spool_attach(w->sp, BOT_ID, BOX_IN, "shop", &w->policy);
    for (int n = 0; n < 500 && !all_settled(w); n++)
        tick(w, n);
    assert_true(all_settled(w));
    if (hit)
        world_verify(w);
}

static char self[4096];

#ifdef ENABLE_FAILPOINTS
/* Runs a scenario with one failure. Returns its exit status. */
static int run_with(const char *name, const char *failpoints, bool interval)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        setenv("TGSPOOL_FAILPOINTS", failpoints, 1);
        setenv("CMOCKA_MESSAGE_OUTPUT", "STDOUT", 1);
        if (interval)
            setenv("TGSPOOL_TEST_SYNC", "1", 1);
        dup2(STDERR_FILENO, STDOUT_FILENO);
        execl(self, self, name, (char *)NULL);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* Fails the n-th pass of a failpoint, for every step-th n until the scenario ends before it; at least so many failures must have
 * been met. With `more` failpoints in each run: just so many. */
static void fail_each_of(const char *name, const char *point, const char *more, unsigned step, bool interval,
                         unsigned least)
{
    unsigned met = 0, missed = 0, n = 1;
    char spec[256];

    least = OFTEN(least);
    for (; n < 2000 && missed < 2 && !(more[0] && met == least); n += step * ONE_IN) {
        snprintf(spec, sizeof(spec), "%s=errno:5@%u%s", point, n, more);
        int rc = run_with(name, spec, interval);
        if (rc != 0 && rc != EXIT_NOT_HIT)
            fail_msg("TGSPOOL_FAILPOINTS='%s': exit status %d", spec, rc);
        met += rc == 0;
        missed = rc == 0 ? 0 : missed + 1; /* one is met in a close, where nobody looks */
    }
    assert_true(missed == 2 || more[0]);
    assert_true(met >= least);
}
#else
static void fail_each_of(const char *name, const char *point, const char *more, unsigned step, bool interval,
                         unsigned least)
{
    (void)name, (void)point, (void)more, (void)step, (void)interval, (void)least;
    skip(); /* built without --enable-failpoints */
}
#endif

static void fail_each(const char *point, const char *more, unsigned step, bool interval, unsigned least)
{
    fail_each_of("scenario", point, more, step, interval, least);
}

static void before_a_write(void **state)
{
    (void)state;
    fail_each("commit.before_write", "", 3, false, 3);
}

static void in_a_write(void **state)
{
    (void)state;
    fail_each("store.write", "", 1, false, 8);
}

/* The batch is on disk, but the caller was told that it failed: whatever repeats must do no harm. */
static void after_a_write(void **state)
{
    (void)state;
    fail_each("store.written", "", 1, false, 8);
}

static void in_a_read(void **state)
{
    (void)state;
    fail_each("store.get", "", 37, false, 3);
}

/* Also in the open, and at the next start. */
static void in_a_walk(void **state)
{
    (void)state;
    fail_each("store.walk", "", 3, false, 8);
    fail_each_of("restart", "store.walk", "", 3, false, 8);
}

static void in_a_sync(void **state)
{
    (void)state;
    fail_each("store.sync", "", 2, true, 2);
}

static void in_a_write_between_syncs(void **state)
{
    (void)state;
    fail_each("store.written", "", 4, true, 2);
}

/* The reopen fails too, and is tried again. */
static void in_a_reopen(void **state)
{
    (void)state;
    fail_each("store.write", ";store.open=errno:5@2", 5, false, 3);
}

/* Two failures, one right after the other. */
static void in_two_writes(void **state)
{
    (void)state;
    fail_each("store.write", ";store.written=errno:5@9", 2, false, 4);
}

/* The store is open again, and fails once more before what was not durable is applied again. */
static void right_after_a_reopen(void **state)
{
    (void)state;
    fail_each("store.write", ";spool.recover=errno:5@1", 1, false, 8);
}

static void where_the_claims_of_a_dead_process_are_released(void **state)
{
    (void)state;
    fail_each_of("restart", "store.write", "", 1, false, 4);
    fail_each_of("restart", "store.written", "", 1, false, 4);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest first[] = {cmocka_unit_test_setup_teardown(scenario, bare_setup, world_teardown)},
                            second[] = {cmocka_unit_test_setup_teardown(restart, bare_setup, world_teardown)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_a_write),
        cmocka_unit_test(in_a_write),
        cmocka_unit_test(after_a_write),
        cmocka_unit_test(in_a_read),
        cmocka_unit_test(in_a_walk),
        cmocka_unit_test(in_a_sync),
        cmocka_unit_test(in_a_write_between_syncs),
        cmocka_unit_test(in_a_reopen),
        cmocka_unit_test(in_two_writes),
        cmocka_unit_test(right_after_a_reopen),
        cmocka_unit_test(where_the_claims_of_a_dead_process_are_released),
    };

    if (argc > 1) {
        log_setup(LOG_ERROR, LOG_TEXT, false);
        int failed = strcmp(argv[1], "restart") == 0
                         ? cmocka_run_group_tests_name("restart", second, NULL, NULL)
                         : cmocka_run_group_tests_name("scenario", first, NULL, NULL);
        return failed ? failed : hit ? 0 : EXIT_NOT_HIT;
    }
    if (!realpath("/proc/self/exe", self))
        snprintf(self, sizeof(self), "%s", argv[0]);
    return cmocka_run_group_tests_name("spool failures", tests, NULL, NULL);
}
