/* Closing and opening again: every state, leases, clocks that were set, another order, directories that are not ours. */
#include "spool/internal.h"
#include "store/dir.h"
#include "world.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

static void every_state_survives(void **state)
{
    struct world *w = *state;
    uint64_t done = world_arrive(w, 1, 1), dead, waiting, pending, pull, push;

    world_end(w, world_take_seq(w, PUSH, done), OUTCOME_DONE, -1);
    dead = world_arrive(w, 2, 2);
    world_end(w, world_take_seq(w, PUSH, dead), OUTCOME_REJECTED, -1);
    waiting = world_arrive(w, 3, 3);
    world_end(w, world_take_seq(w, PUSH, waiting), OUTCOME_RETRY, -1);
    int64_t due = w->now + 2000;
    pull = world_arrive(w, 4, 4);
    struct claim *c = world_take_seq(w, PULL, pull);
    unsigned char token[TOKEN_BYTES];
    memcpy(token, c->token, TOKEN_BYTES);
    push = world_arrive(w, 5, 5);
    world_take_seq(w, PUSH, push);
    pending = world_arrive(w, 6, 6);
    struct spool_counts before = world_status(w).counts;
    for (int i = 0; i < 3; i++) {
        world_reopen(w, 10);
        world_expect(w, done, STATE_DONE, REASON_NONE, 1);
        world_expect(w, dead, STATE_DEAD, REASON_REJECTED, 1);
        world_expect(w, waiting, STATE_PENDING, REASON_NONE, 1);
        assert_int_equal(world_state(w, waiting).next_retry_at, due);
        world_expect(w, pull, STATE_PROCESSING, REASON_NONE, 0);
        world_expect(w, push, STATE_PENDING, REASON_NONE, 0);
        assert_int_equal(world_state(w, push).interrupted, 1);
        world_expect(w, pending, STATE_PENDING, REASON_NONE, 0);
        world_verify(w);
        struct spool_counts after = world_status(w).counts;
        assert_int_equal(after.pending, before.pending + 1);
        assert_int_equal(after.processing, before.processing - 1);
        assert_int_equal(after.done, before.done);
        assert_int_equal(after.dead, before.dead);
        assert_int_equal(after.received, 6);
        assert_int_equal(after.delivered, before.delivered);
    }
    struct outcome o = {.kind = OUTCOME_DONE, .after_ms = -1}; /* a consumer outside lives on */
    world_begin(w);
    assert_int_equal(spool_complete(w->box, pull, token, &o), COMPLETED);
    world_commit(w);
    assert_true(world_arrive(w, 7, 7) > pending);
    world_end(w, world_take_seq(w, PUSH, push), OUTCOME_DONE, -1);
    world_verify(w);
}

static void put_behind_its_back(struct world *w, struct key k, struct slice value)
{
    struct db *db = world_db(w->dir, DB_OPEN);
    struct err e = ERR_NONE;

    db_put(db, FAMILY_META, key_slice(&k), value);
    assert_int_equal(db_write(db, true, &e), DB_WRITTEN);
    db_close(db);
}

/* The store is opened again, and then its boxes cannot be read: nobody is told that there is nothing. */
static void boxes_that_cannot_be_read_stay_as_known(void **state)
{
    struct world *w = *state;
    struct err e;

    world_arrive(w, 1, 1);
    world_end(w, world_take(w, PUSH), OUTCOME_DONE, -1);
    world_arrive(w, 2, 2);
    int64_t oldest = world_status(w).oldest_unfinished_at;
    err_set(&e, EX_IOERR, "as a read that failed");
    spool_break(w->sp, &e);
    spool_commit(w->sp);
    assert_int_equal(spool_health(w->sp, NULL), SPOOL_FAILED);
    put_behind_its_back(w, key_box(BOT_ID, BOX_IN), slice_str("no record"));
    world_wait(w, SECONDS(2));
    spool_begin(w->sp, w->now);
    spool_commit(w->sp);
    assert_int_equal(spool_health(w->sp, NULL), SPOOL_CORRUPT);
    struct spool_box_status st = world_status(w);
    assert_int_equal(st.counts.pending, 1);
    assert_int_equal(st.counts.done, 1);
    assert_int_equal(st.oldest_unfinished_at, oldest);
}

/* What a webhook's intake goes on from: the highest id of those that came last, whatever their order. */
static void the_newest_update_is_found(void **state)
{
    struct world *w = *state;
    int64_t next, at;

    spool_newest_update(w->box, &next, &at);
    assert_int_equal(next | at, 0);
    world_arrive(w, 70, 1);
    world_arrive(w, 73, 2);
    world_arrive(w, 71, 3);
    world_begin(w);
    spool_count_gap(w->box, 5);
    spool_count_gap(w->box, 0);
    world_commit(w);
    int64_t came = w->now;
    world_wait(w, HOURS(1));
    uint64_t seq = world_arrive(w, 60, 4); /* late, and handled again by a person: a copy says nothing */
    world_end(w, world_take_seq(w, PUSH, 1), OUTCOME_DONE, -1);
    world_begin(w);
    assert_int_equal(spool_replay(w->box, 1, "uid 0", NULL), ACTED);
    world_commit(w);
    world_reopen(w, HOURS(2));
    spool_newest_update(w->box, &next, &at);
    assert_int_equal(next, 74);
    assert_int_equal(at, came + HOURS(1));
    assert_int_equal(seq, 4);
    assert_int_equal(world_status(w).counts.gaps, 5);
    world_begin(w);
    spool_count_gap(w->box, 1);
    world_commit(w);
    assert_int_equal(world_status(w).counts.gaps, 6);
    world_wait(w, HOURS(25));
    world_arrive(w, 40, 1); /* Telegram delivers nothing so late: another numbering */
    spool_newest_update(w->box, &next, &at);
    assert_int_equal(next, 41);
    for (uint64_t i = 0; i < 32;
         i++) { /* what was imported hides the newest: better nothing than a false gap */
        struct event old = {.has_update_id = true,
                            .update_id = 1 + (int64_t)i,
                            .received_at = came,
                            .kind = "message",
                            .payload = LIT("{}")};
        world_begin(w);
        assert_int_equal(spool_import(w->box, &old, &(struct event_state){.state = STATE_PENDING}),
                         IMPORT_NEW);
        world_commit(w);
    }
    spool_newest_update(w->box, &next, &at);
    assert_int_equal(next | at, 0);
}

/* Its child may take some seconds to end: a kill of the daemon in between must not bring the event back. */
static void a_forced_discard_outlives_a_kill(void **state)
{
    struct world *w = *state;
    uint64_t gone = world_arrive(w, 1, 1), ended = world_arrive(w, 2, 2), done = world_arrive(w, 3, 3);
    uint64_t waits = world_arrive(w, 4, 4);

    world_take_seq(w, PUSH, gone);
    struct claim *ends = world_take_seq(w, PUSH, ended), *succeeds = world_take_seq(w, PUSH, done);
    world_begin(w);
    assert_int_equal(spool_discard_later(w->box, gone, "test"), ACTED);
    assert_int_equal(spool_discard_later(w->box, ended, "test"), ACTED);
    assert_int_equal(spool_discard_later(w->box, done, "test"), ACTED);
    assert_int_equal(spool_discard_later(w->box, waits, "test"), ACT_BUSY);
    assert_int_equal(spool_discard_later(w->box, 99, "test"), ACT_UNKNOWN);
    world_commit(w);
    world_expect(w, gone, STATE_PROCESSING, REASON_DISCARDED, 0); /* until its handler is gone */
    world_end(w, ends, OUTCOME_RETRY, -1);
    world_expect(w, ended, STATE_DEAD, REASON_DISCARDED, 0);
    world_end(w, succeeds, OUTCOME_DONE, -1);
    world_expect(w, done, STATE_DONE, REASON_NONE, 1);
    world_reopen(w, 10);
    world_step(w);
    world_expect(w, gone, STATE_DEAD, REASON_DISCARDED, 0);
    assert_int_equal(world_status(w).counts.dead, 2);
    world_verify(w);
}

static void an_idle_store_opens_again(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 3; i++) {
        world_reopen(w, 1000);
        assert_int_equal(spool_next_deadline(w->sp), TIME_NEVER);
        assert_null(world_take(w, PUSH));
        assert_true(spool_healthy(w->sp, NULL));
        world_verify(w);
    }
}

static void pull_leases_have_a_grace_after_opening(void **state)
{
    struct world *w = *state;
    static const struct {
        int64_t lease, grace;
    } rows[] = {{60000, 30000}, {5000, 5000}};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        w->policy.lease_ms = rows[i].lease;
        world_policy(w);
        uint64_t seq = world_arrive(w, (int64_t)i, (int64_t)i);
        world_take_seq(w, PULL, seq);
        world_reopen(w, HOURS(1));
        int64_t open = w->now;
        world_step(w);
        world_expect(w, seq, STATE_PROCESSING, REASON_NONE, 0);
        w->now = open + rows[i].grace - 1;
        world_step(w);
        world_expect(w, seq, STATE_PROCESSING, REASON_NONE, 0);
        world_wakes_by(w, open + rows[i].grace);
        w->now = open + rows[i].grace;
        world_step(w);
        world_expect(w, seq, STATE_PENDING, REASON_NONE, 1);
        world_end(w, world_take_seq(w, PUSH, seq), OUTCOME_DONE, -1);
        world_verify(w);
    }
}

static void many_claims_of_a_dead_process(void **state)
{
    struct world *w = *state;
    enum { N = 500 };

    w->policy.concurrency = N;
    world_policy(w);
    world_begin(w);
    for (int i = 0; i < N; i++)
        world_accept(w, i, i, "");
    world_commit(w);
    world_begin(w);
    assert_int_equal(world_claim(w, N, PUSH), N);
    world_commit(w);
    world_reopen(w, 0);
    for (int i = 0; i < 5; i++)
        world_step(w); /* some a tick */
    assert_int_equal(world_status(w).counts.pending, N);
    assert_int_equal(world_status(w).counts.processing, 0);
    for (uint64_t seq = 1; seq <= N; seq++)
        assert_int_equal(world_state(w, seq).interrupted, 1);
    world_begin(w);
    assert_int_equal(world_claim(w, N, PUSH), N);
    world_commit(w);
    world_verify(w);
}

/* The wall clock was set back by ten years between two runs: what waits does not wait ten years. */
static void a_clock_set_back(void **state)
{
    struct world *w = *state;
    uint64_t waiting = world_arrive(w, 1, 1), pull;

    world_end(w, world_take_seq(w, PUSH, waiting), OUTCOME_RETRY, HOURS(24));
    pull = world_arrive(w, 2, 2);
    world_take_seq(w, PULL, pull);
    world_reopen(w, -10 * 365 * HOURS(24));
    int64_t open = w->now;
    world_verify(w);
    assert_true(world_state(w, waiting).next_retry_at <= open + HOURS(24));
    assert_true(world_state(w, pull).deadline <= open + HOURS(12));
    w->now = open + HOURS(12);
    world_step(w);
    world_expect(w, pull, STATE_PENDING, REASON_NONE, 1);
    world_end(w, world_take_seq(w, PUSH, pull), OUTCOME_DONE, -1);
    w->now = open + HOURS(24);
    world_end(w, world_take_seq(w, PUSH, waiting), OUTCOME_DONE, -1);
    uint64_t later = world_arrive(w, 3, 1);
    assert_true(later > pull);
    world_end(w, world_take_seq(w, PUSH, later), OUTCOME_DONE, -1);
    world_verify(w);
}

static void a_clock_set_forward(void **state)
{
    struct world *w = *state;
    uint64_t waiting = world_arrive(w, 1, 1), pull;

    world_end(w, world_take_seq(w, PUSH, waiting), OUTCOME_RETRY, -1);
    pull = world_arrive(w, 2, 2);
    world_take_seq(w, PULL, pull);
    world_reopen(w, 10 * 365 * HOURS(24));
    world_step(w);
    world_expect(w, pull, STATE_PROCESSING, REASON_NONE, 0); /* its consumer may be well */
    world_end(w, world_take_seq(w, PUSH, waiting), OUTCOME_DONE, -1);
    world_wait(w, 30000);
    world_step(w);
    world_expect(w, pull, STATE_PENDING, REASON_NONE, 1);
    world_verify(w);
}

/* Events of the new order wait until all before them have ended. */
static void a_changed_order_is_a_barrier(void **state)
{
    struct world *w = *state;
    uint64_t a = world_arrive(w, 1, 1), b = world_arrive(w, 2, 2), c = world_arrive(w, 3, 2);

    assert_false(world_status(w).behind_barrier);
    w->policy.order = ORDER_BOT;
    world_reopen(w, 0);
    uint64_t d = world_arrive(w, 4, 1), e = world_arrive(w, 5, 9), held = 0;
    assert_true(world_status(w).behind_barrier);
    world_begin(w); /* the old ones still run side by side */
    assert_int_equal(world_claim(w, 9, PUSH), 2);
    world_commit(w);
    assert_int_equal(w->held[0]->ev.seq, a);
    assert_int_equal(w->held[1]->ev.seq, b);
    world_end(w, world_held(w, a), OUTCOME_RETRY, -1);
    world_end(w, world_held(w, b), OUTCOME_DONE, -1);
    world_end(w, world_take_seq(w, PUSH, c), OUTCOME_DONE, -1);
    assert_null(world_take(w, PUSH)); /* a waits for its retry, all new ones wait for a */
    world_reopen(w, 0);
    world_verify(w);
    assert_null(world_take(w, PUSH));
    world_wait(w, 2000);
    world_end(w, world_take_seq(w, PUSH, a), OUTCOME_DONE, -1);
    world_begin(w);
    spool_work(w->sp);
    assert_int_equal(world_claim(w, 9, PUSH), 1); /* one lane now */
    world_commit(w);
    held = w->held[0]->ev.seq;
    assert_int_equal(held, d);
    assert_false(world_status(w).behind_barrier);
    world_end(w, w->held[0], OUTCOME_DONE, -1);
    world_end(w, world_take_seq(w, PUSH, e), OUTCOME_DONE, -1);
    world_verify(w);
}

static void barriers_behind_barriers(void **state)
{
    struct world *w = *state;
    static const enum order orders[] = {ORDER_CHAT, ORDER_NONE, ORDER_THREAD, ORDER_BOT, ORDER_CHAT};
    uint64_t seq[ARRAY_LEN(orders)];

    for (size_t i = 0; i < ARRAY_LEN(orders); i++) {
        w->policy.order = orders[i];
        world_policy(w); /* without a restart: a reload */
        world_policy(w); /* the same again is no change */
        seq[i] = world_arrive(w, (int64_t)i, (int64_t)i);
    }
    world_begin(w); /* one in the middle goes away */
    assert_int_equal(spool_discard(w->box, seq[2], false, "test"), ACTED);
    world_commit(w);
    world_verify(w);
    for (size_t i = 0; i < ARRAY_LEN(orders); i++) {
        if (i == 2)
            continue;
        struct claim *c = world_take_seq(w, PUSH, seq[i]);
        assert_null(world_take(w, PUSH));
        world_end(w, c, OUTCOME_DONE, -1);
    }
    assert_false(world_status(w).behind_barrier);
    world_verify(w);
}

static void an_orphan_is_kept(void **state)
{
    struct world *w = *state;
    uint64_t seq = world_arrive(w, 1, 1);

    world_begin(w);
    spool_detach(w->box);
    world_commit(w);
    assert_true(world_status(w).orphan);
    assert_null(world_take(w, PUSH));
    world_close(w);
    struct spool_options o = {.dir = w->dir, .cache_bytes = 1 << 20};
    struct err e = ERR_NONE;
    w->sp = spool_open(&o, w->now, &e);
    assert_non_null(w->sp);
    w->box = spool_find_box(w->sp, "shop", BOX_IN); /* known though nobody attached it */
    assert_non_null(w->box);
    assert_true(world_status(w).orphan);
    world_expect(w, seq, STATE_PENDING, REASON_NONE, 0);
    assert_null(world_take(w, PUSH));
    world_begin(w);
    assert_ptr_equal(spool_attach(w->sp, BOT_ID, BOX_IN, "renamed", &w->policy), w->box);
    world_commit(w);
    assert_false(world_status(w).orphan);
    assert_string_equal(spool_box_bot(w->box), "renamed");
    world_end(w, world_take_seq(w, PUSH, seq), OUTCOME_DONE, -1);
    world_verify(w);
}

static int open_code(const char *dir)
{
    struct spool_options o = {.dir = dir, .cache_bytes = 1 << 20};
    struct err e = ERR_NONE;
    struct spool *sp = spool_open(&o, START, &e);

    if (sp)
        spool_close(sp);
    else if (strlen(e.text) < 10)
        return -1; /* a person must be told */
    return e.exit_code;
}

static void who_holds_the_directory(void **state)
{
    struct world *w = *state;

    assert_int_equal(open_code(w->dir), EX_TEMPFAIL); /* this process holds it */
    world_close(w);
    int go[2], up[2], status;
    char c;
    assert_int_equal(pipe(go) | pipe(up), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct spool_options o = {.dir = w->dir, .cache_bytes = 1 << 20};
        struct err e = ERR_NONE;
        struct spool *sp = spool_open(&o, START, &e);
        close(go[1]);
        ssize_t n = write(up[1], sp ? "y" : "n", 1);
        n = read(go[0], &c, 1);
        (void)n;
        _exit(0); /* as a kill would */
    }
    close(go[0]);
    assert_int_equal(read(up[0], &c, 1), 1);
    assert_int_equal(c, 'y');
    struct spool_options o = {.dir = w->dir, .cache_bytes = 1 << 20};
    struct err e = ERR_NONE;
    assert_null(spool_open(&o, START, &e));
    assert_int_equal(e.exit_code, EX_TEMPFAIL);
    char *name = xasprintf("%d", (int)pid);
    assert_non_null(strstr(e.text, name));
    free(name);
    close(go[1]);
    waitpid(pid, &status, 0);
    close(up[0]);
    close(up[1]);
    world_open(w); /* the lock went with the process */
    world_verify(w);
}

static void directories_that_are_not_ours(void **state)
{
    struct world *w = *state;
    char *foreign = xasprintf("%s/foreign", w->dir), *file = xasprintf("%s/foreign/letter", w->dir);
    char *fresh = xasprintf("%s/a/b", w->dir), *plain = xasprintf("%s/plain", w->dir);
    struct stat st;

    assert_int_equal(mkdir(foreign, 0700), 0);
    fclose(fopen(file, "w"));
    fclose(fopen(plain, "w"));
    assert_int_equal(open_code(foreign), EX_CONFIG);
    assert_int_equal(stat(file, &st), 0); /* nothing touched */
    assert_int_not_equal(open_code(plain), 0);
    assert_int_equal(open_code(fresh), 0); /* made, with its parents */
    assert_int_equal(stat(fresh, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(open_code(fresh), 0);
    free(foreign);
    free(file);
    free(fresh);
    free(plain);
}

/* Somebody else's files under the name of the database are neither used nor removed. */
static void a_database_of_someone_else(void **state)
{
    struct world *w = *state;
    char *dir = xasprintf("%s/other", w->dir), *db = xasprintf("%s/db", dir);
    char *file = xasprintf("%s/customers.sqlite", db);
    struct spool_options o = {.dir = dir, .cache_bytes = 1 << 20};
    struct err e = ERR_NONE;
    struct buf text = BUF_EMPTY;
    int schema;

    assert_int_equal(file_make_dir(db, 0700, &e), 0);
    assert_int_equal(file_create(file, slice_str("precious"), 0600, &e), 0);
    assert_int_equal(store_dir_look(dir, &schema, &e), -1);
    assert_non_null(strstr(e.text, "customers.sqlite"));
    assert_null(spool_open(&o, w->now, &e));
    assert_int_equal(e.exit_code, EX_CONFIG);
    assert_int_equal(file_read(file, 100, &text, &e), 0);
    assert_slice(buf_slice(&text), "precious");
    buf_free(&text);
    free(file);
    free(db);
    free(dir);
}

/* The marker says that a database was finished; without it one is made anew, but not over rows. */
static void a_marker_that_is_gone(void **state)
{
    struct world *w = *state;
    char *marker = xasprintf("%s/SPOOL", w->dir);
    char *fresh = xasprintf("%s/db/fresh", w->dir), *half = xasprintf("%s/SPOOL", fresh);
    struct buf text = BUF_EMPTY;
    struct err e = ERR_NONE;

    assert_int_equal(open_code(fresh), 0);
    assert_int_equal(remove(half), 0); /* as if the process had died before it */
    assert_int_equal(open_code(fresh), 0);
    uint64_t seq = world_arrive(w, 1, 1);
    world_close(w);
    assert_int_equal(file_read(marker, 100, &text, &e), 0);
    assert_int_equal(remove(marker), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(open_code(w->dir), EX_DATAERR);
    assert_int_equal(file_create(marker, buf_slice(&text), 0600, &e), 0);
    world_open(w);
    world_expect(w, seq, STATE_PENDING, REASON_NONE, 0);
    buf_free(&text);
    free(marker);
    free(fresh);
    free(half);
}

#define restart_test(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        restart_test(every_state_survives),
        restart_test(the_newest_update_is_found),
        restart_test(boxes_that_cannot_be_read_stay_as_known),
        restart_test(a_forced_discard_outlives_a_kill),
        restart_test(an_idle_store_opens_again),
        restart_test(pull_leases_have_a_grace_after_opening),
        restart_test(many_claims_of_a_dead_process),
        restart_test(a_clock_set_back),
        restart_test(a_clock_set_forward),
        restart_test(a_changed_order_is_a_barrier),
        restart_test(barriers_behind_barriers),
        restart_test(an_orphan_is_kept),
        restart_test(who_holds_the_directory),
        restart_test(directories_that_are_not_ours),
        restart_test(a_database_of_someone_else),
        restart_test(a_marker_that_is_gone),
    };
    return cmocka_run_group_tests_name("spool restart", tests, NULL, NULL);
}
