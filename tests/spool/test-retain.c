/* Retention: what ended goes when its time is up and not a moment sooner, whole, and nothing else does; archived first
 * where there is an archive. */
#include "verbs.h"

#include "spool/internal.h"

#define DONE_MS HOURS(3)
#define DEAD_MS HOURS(30)
#define DEDUPE_MS HOURS(2)

static int setup(void **state)
{
    if (world_setup(state))
        return -1;
    world_retain(*state, DONE_MS, DEAD_MS, DEDUPE_MS);
    return 0;
}

static bool is_there(struct world *w, struct spool_box *b, uint64_t seq)
{
    struct event_state st;
    struct event ev;
    struct buf record = BUF_EMPTY;
    bool there = spool_get(b, seq, &ev, &st, &record) == 0;

    buf_free(&record);
    (void)w;
    return there;
}

/* At the time `at`, after whatever ticks the spool asks for. */
static void go_to(struct world *w, int64_t at)
{
    w->now = at;
    for (int ticks = 0; ticks < 1000; ticks++) {
        world_step(w);
        if (spool_next_deadline(w->sp) > w->now)
            return;
    }
    fail_msg("the spool never rests");
}

static uint64_t arrive_and_end(struct world *w, int64_t update_id, enum outcome_kind kind)
{
    uint64_t seq = world_arrive(w, update_id, update_id);

    world_end(w, world_take_seq(w, PUSH, seq), kind, -1);
    return seq;
}

/* Nothing is left: not a row, and no count. */
static void expect_empty(struct world *w)
{
    static const enum family families[] = {FAMILY_EVENTS, FAMILY_STATES, FAMILY_IDS,
                                           FAMILY_DUE,    FAMILY_ORDER,  FAMILY_LANES};

    for (size_t i = 0; i < ARRAY_LEN(families); i++)
        if (verb_rows(w, families[i]))
            fail_msg("%u rows are left in %s", verb_rows(w, families[i]), family_name(families[i]));
    assert_int_equal(world_status(w).counts.done, 0);
    assert_int_equal(world_status(w).counts.dead, 0);
    assert_int_equal(world_status(w).counts.dead_settled, 0);
    world_verify(w);
}

/* ---- when --------------------------------------------------------------------------------------- */

static void to_the_millisecond(void **state)
{
    struct world *w = *state;
    uint64_t done = arrive_and_end(w, 1, OUTCOME_DONE), dead = arrive_and_end(w, 2, OUTCOME_REJECTED);
    int64_t end = w->now;

    go_to(w, end + DONE_MS - 1);
    assert_true(is_there(w, w->box, done));
    world_wakes_by(w, end + DONE_MS);
    go_to(w, end + DONE_MS);
    assert_false(is_there(w, w->box, done));
    assert_true(is_there(w, w->box, dead));
    assert_int_equal(world_status(w).counts.done, 0);
    world_verify(w);
    go_to(w, end + DEAD_MS - 1);
    assert_true(is_there(w, w->box, dead));
    world_wakes_by(w, end + DEAD_MS);
    go_to(w, end + DEAD_MS);
    assert_false(is_there(w, w->box, dead));
    expect_empty(w);
    assert_int_equal(world_status(w).counts.delivered, 1); /* what was, was */
}

static void counts_from_the_end_not_from_the_arrival(void **state)
{
    struct world *w = *state;
    uint64_t seq = world_arrive(w, 1, 1);

    w->now += HOURS(60); /* a long week-end */
    world_end(w, world_take_seq(w, PUSH, seq), OUTCOME_DONE, -1);
    int64_t end = w->now;
    go_to(w, end + DONE_MS - 1);
    assert_true(is_there(w, w->box, seq));
    go_to(w, end + DONE_MS);
    expect_empty(w);
}

static void dedupe_keeps_a_done_event(void **state)
{
    struct world *w = *state;

    world_retain(w, SECONDS(1), SECONDS(1), DEDUPE_MS);
    int64_t arrival = w->now;
    uint64_t seq = arrive_and_end(w, 1, OUTCOME_DONE);
    go_to(w, arrival + DEDUPE_MS - 1);
    assert_true(is_there(w, w->box, seq));
    world_wakes_by(w, arrival + DEDUPE_MS);
    char *json = world_message(1, 1, "");
    world_begin(w);
    assert_int_equal(world_accept_json(w, json, &seq), ACCEPTED_DUPLICATE);
    world_commit(w);
    go_to(w, arrival + DEDUPE_MS);
    expect_empty(w);
    world_begin(w);
    assert_int_equal(world_accept_json(w, json, &seq), ACCEPTED_NEW); /* nobody remembers */
    world_commit(w);
    free(json);
}

static void unfinished_events_stay(void **state)
{
    struct world *w = *state;
    uint64_t a = world_arrive(w, 1, 1), b = world_arrive(w, 2, 1);

    struct claim *c = world_take_seq(w, PUSH, a);
    go_to(w, w->now + HOURS(1000));
    assert_true(is_there(w, w->box, a));
    assert_true(is_there(w, w->box, b));
    world_end(w, c, OUTCOME_DONE, -1);
    go_to(w, w->now + DONE_MS);
    assert_false(is_there(w, w->box, a));
    assert_true(is_there(w, w->box, b));
    world_verify(w);
}

/* By seq from the front: one that must stay keeps those behind it. */
static void stops_at_the_first_that_stays(void **state)
{
    struct world *w = *state;
    uint64_t slow = world_arrive(w, 1, 1);
    struct claim *c = world_take_seq(w, PUSH, slow);
    uint64_t quick = arrive_and_end(w, 2, OUTCOME_DONE);
    int64_t quick_end = w->now;

    w->now += HOURS(1);
    world_end(w, c, OUTCOME_DONE, -1);
    go_to(w, quick_end + DONE_MS);
    assert_true(is_there(w, w->box, quick));
    go_to(w, quick_end + HOURS(1) + DONE_MS - 1);
    assert_true(is_there(w, w->box, quick));
    go_to(w, quick_end + HOURS(1) + DONE_MS);
    expect_empty(w);
}

/* One that ends in front of what is looked at next is not passed by. */
static void ends_behind_the_front(void **state)
{
    struct world *w = *state;
    uint64_t slow = world_arrive(w, 1, 1);
    struct claim *c = world_take_seq(w, PUSH, slow);

    arrive_and_end(w, 2, OUTCOME_DONE);
    w->now += MINUTES(30);
    uint64_t third = arrive_and_end(w, 3, OUTCOME_DONE);
    go_to(w, w->now - MINUTES(30) + DONE_MS); /* the second goes; the front is at the third */
    assert_true(is_there(w, w->box, third));
    world_end(w, c, OUTCOME_DONE, -1);
    int64_t end = w->now;
    go_to(w, end + DONE_MS - 1);
    assert_true(is_there(w, w->box, slow));
    go_to(w, end + DONE_MS);
    expect_empty(w);
}

static void idle_costs_nothing(void **state)
{
    struct world *w = *state;
    struct spool_commit_stats before, after;

    arrive_and_end(w, 1, OUTCOME_DONE);
    world_step(w);
    spool_commit_stats(w->sp, &before);
    for (int i = 0; i < 100; i++) {
        w->now += SECONDS(1);
        world_begin(w);
        spool_work(w->sp);
        spool_commit(w->sp);
        assert_true(spool_next_deadline(w->sp) >= w->now + HOURS(2));
    }
    spool_commit_stats(w->sp, &after);
    assert_int_equal(after.commits, before.commits);
    go_to(w, w->now + DONE_MS);
    spool_commit_stats(w->sp, &before);
    arrive_and_end(w, 2, OUTCOME_DONE);
    w->now += DONE_MS;
    spool_commit_stats(w->sp, &before);
    world_begin(w);
    spool_work(w->sp);
    spool_commit(w->sp);
    spool_commit_stats(w->sp, &after);
    assert_int_equal(after.commits, before.commits + 1);
    assert_int_equal(after.syncs, before.syncs); /* it forces none */
    expect_empty(w);
}

static void new_times_count_at_once(void **state)
{
    struct world *w = *state;

    arrive_and_end(w, 1, OUTCOME_DONE);
    int64_t end = w->now;
    go_to(w, end + MINUTES(10));
    assert_true(is_there(w, w->box, 1));
    world_retain(w, MINUTES(1), MINUTES(1), MINUTES(1));
    assert_true(spool_next_deadline(w->sp) <= w->now);
    go_to(w, w->now);
    expect_empty(w);
}

/* ---- what --------------------------------------------------------------------------------------- */

static void two_hundred_a_tick_over_restarts(void **state)
{
    struct world *w = *state;
    enum { EVENTS = 1000 };

    w->policy.concurrency = EVENTS;
    world_policy(w);
    world_begin(w);
    for (int i = 0; i < EVENTS; i++)
        world_accept(w, 1 + i, i, "");
    world_commit(w);
    world_begin(w);
    spool_work(w->sp);
    assert_int_equal(world_claim(w, EVENTS, PUSH), EVENTS);
    world_commit(w);
    world_begin(w);
    while (w->n_held) /* every third is dead */
        world_complete(w, w->held[0], w->held[0]->ev.seq % 3 ? OUTCOME_DONE : OUTCOME_REJECTED, -1);
    world_commit(w);
    int64_t end = w->now;
    w->now = end + DEAD_MS;
    for (uint64_t left = EVENTS, ticks = 0; left; ticks++) {
        if (ticks == 3)
            world_close(w), world_open(w);
        else
            world_step(w);
        uint64_t now_left = world_status(w).counts.done + world_status(w).counts.dead;
        if (ticks != 3) {
            assert_true(left - now_left <= 200);
            assert_true(now_left < left);
        }
        if (now_left)
            assert_true(spool_next_deadline(w->sp) <= w->now);
        left = now_left;
        world_verify(w);
        assert_true(ticks < 20);
    }
    expect_empty(w);
}

static struct spool_box *out_box(struct world *w)
{
    world_begin(w);
    struct spool_box *out = spool_attach(w->sp, BOT_ID, BOX_OUT, "shop", &w->policy);
    world_commit(w);
    return out;
}

static void unfinished_calls_keep_their_event(void **state)
{
    struct world *w = *state;
    uint64_t seq = world_arrive(w, 1, 1);
    struct spool_call calls[] = {verb_call(5, "{\"text\":\"a\"}"), verb_call(6, "{\"text\":\"b\"}")};
    const struct spool_extras extras = {.calls = calls, .n_calls = 2};

    assert_int_equal(verb_end_with(w, world_take_seq(w, PUSH, seq), OUTCOME_DONE, &extras), COMPLETED);
    struct spool_box *out = out_box(w);
    go_to(w, w->now + HOURS(100));
    assert_true(is_there(w, w->box, seq));
    assert_int_equal(verb_claim_from(w, out, 1), 1);
    world_begin(w);
    struct outcome done = {.kind = OUTCOME_DONE, .after_ms = -1};
    assert_int_equal(spool_complete(out, w->held[0]->ev.seq, w->held[0]->token, &done), COMPLETED);
    world_commit(w);
    world_drop(w, w->held[0]);
    go_to(w, w->now + MINUTES(2));
    assert_true(is_there(w, w->box, seq)); /* the other one */
    world_reopen(w, 0);
    out = out_box(w);
    go_to(w, w->now + MINUTES(2));
    assert_true(is_there(w, w->box, seq));
    world_begin(w);
    assert_int_equal(spool_discard(out, 2, true, "test"), ACTED);
    world_commit(w);
    go_to(w, w->now + MINUTES(2));
    assert_false(is_there(w, w->box, seq));
    assert_true(is_there(w, out, 2)); /* their own time runs from their own end */
    go_to(w, w->now + DEAD_MS);
    expect_empty(w);
}

static uint64_t replayed(struct world *w, uint64_t seq)
{
    uint64_t copy = 0;

    world_begin(w);
    assert_int_equal(spool_replay(w->box, seq, "test", &copy), ACTED);
    world_commit(w);
    return copy;
}

static uint64_t resolved(struct world *w, int64_t update_id)
{
    struct event_ref ref = {.bot = "shop", .box = BOX_IN, .update_id = update_id};
    uint64_t seq = 0;

    return spool_resolve(w->sp, &ref, &seq) ? seq : 0;
}

/* The id leads to the newest that is left. */
static void replays_and_their_id(void **state)
{
    struct world *w = *state;
    uint64_t first = arrive_and_end(w, 1, OUTCOME_REJECTED);
    uint64_t copy = replayed(w, first);

    world_end(w, world_take_seq(w, PUSH, copy), OUTCOME_DONE, -1);
    int64_t end = w->now;
    assert_int_equal(resolved(w, 1), copy);
    go_to(w, end + DONE_MS);
    assert_false(is_there(w, w->box, copy));
    assert_int_equal(resolved(w, 1), first);
    world_verify(w);
    char *json = world_message(1, 1, "");
    world_begin(w);
    assert_int_equal(world_accept_json(w, json, &copy), ACCEPTED_DUPLICATE);
    world_commit(w);
    free(json);
    /* twice more, of the first: the second copy goes before the third */
    uint64_t second = replayed(w, first);
    world_end(w, world_take_seq(w, PUSH, second), OUTCOME_DONE, -1);
    w->now += MINUTES(5);
    uint64_t third = replayed(w, first);
    world_end(w, world_take_seq(w, PUSH, third), OUTCOME_DONE, -1);
    go_to(w, w->now - MINUTES(5) + DONE_MS);
    assert_false(is_there(w, w->box, second));
    assert_int_equal(resolved(w, 1), third);
    world_verify(w);
    go_to(w, w->now + DONE_MS);
    assert_int_equal(resolved(w, 1), first);
    go_to(w, end + DEAD_MS);
    expect_empty(w);
}

/* The old one goes first: the newer keeps the id. */
static void an_id_of_a_newer_event_stays(void **state)
{
    struct world *w = *state;
    uint64_t first = arrive_and_end(w, 1, OUTCOME_DONE);
    int64_t end = w->now;

    uint64_t copy = replayed(w, first);
    go_to(w, end + DONE_MS);
    assert_false(is_there(w, w->box, first));
    assert_int_equal(resolved(w, 1), copy);
    world_verify(w);
    world_end(w, world_take_seq(w, PUSH, copy), OUTCOME_DONE, -1);
    go_to(w, w->now + DONE_MS);
    expect_empty(w);
}

static void orphans_by_the_same_rules(void **state)
{
    struct world *w = *state;
    uint64_t seq = arrive_and_end(w, 1, OUTCOME_DONE);

    spool_detach(w->box);
    go_to(w, w->now + DONE_MS);
    assert_false(is_there(w, w->box, seq));
    expect_empty(w);
}

static void served_events(void **state)
{
    struct world *w = *state;
    struct seen seen[3];

    w->policy.serve = true;
    world_policy(w);
    for (int i = 1; i <= 3; i++)
        world_arrive(w, i, i);
    assert_int_equal(verb_serve(w, 3, seen), 3);
    go_to(w, w->now + HOURS(100));
    assert_int_equal(world_status(w).counts.processing, 3);
    assert_int_equal(verb_confirm(w, seen[1].id + 1), 2);
    go_to(w, w->now + DONE_MS);
    assert_false(is_there(w, w->box, seen[1].seq));
    assert_true(is_there(w, w->box, seen[2].seq));
    assert_int_equal(verb_confirm(w, seen[2].id + 1), 1);
    go_to(w, w->now + DONE_MS);
    expect_empty(w);
}

static void imported_events_stay_a_while(void **state)
{
    struct world *w = *state;
    struct event ev = {.has_update_id = true,
                       .update_id = 7,
                       .received_at = w->now - HOURS(2400),
                       .kind = "message",
                       .payload = LIT("{\"update_id\":7}")};
    struct event_state st = {.state = STATE_DONE, .finished_at = w->now - HOURS(2400)};

    world_begin(w);
    assert_int_equal(spool_import(w->box, &ev, &st), IMPORT_NEW);
    world_commit(w);
    int64_t import = w->now;
    go_to(w, import + DONE_MS - 1);
    assert_int_equal(world_state(w, 1).finished_at, st.finished_at);
    world_reopen(w, 0);
    assert_true(is_there(w, w->box, 1));
    go_to(w, import + DONE_MS);
    expect_empty(w);
}

static void the_audit_log(void **state)
{
    struct world *w = *state;

    w->retention.audit_ms = HOURS(10);
    spool_set_retention(w->sp, &w->retention);
    world_begin(w);
    spool_audit(w->box, "test", "me", 1);
    world_commit(w);
    int64_t first = w->now;
    go_to(w, first + HOURS(5));
    world_begin(w);
    spool_audit(w->box, "test", "me", 2);
    world_commit(w);
    go_to(w, first + HOURS(10) - 1);
    assert_int_equal(verb_rows(w, FAMILY_AUDIT), 2);
    world_wakes_by(w, first + HOURS(10));
    go_to(w, first + HOURS(10));
    assert_int_equal(verb_rows(w, FAMILY_AUDIT), 1);
    go_to(w, first + HOURS(15));
    assert_int_equal(verb_rows(w, FAMILY_AUDIT), 0);
}

/* ---- the archive -------------------------------------------------------------------------------- */

static struct {
    struct buf kept;
    struct err why;
    unsigned calls, busy; /* so many calls answer BUSY first */
    bool fails;
} archive;

static enum archived fake_archive(void *arg, struct slice lines, int64_t now, struct err *e)
{
    assert_ptr_equal(arg, &archive);
    assert_true(now > 0);
    archive.calls++;
    if (archive.busy) {
        archive.busy--;
        return ARCHIVE_BUSY;
    }
    if (archive.fails) {
        err_set(e, EX_IOERR, "cannot write /a/b: No space left on device");
        return ARCHIVE_FAILED;
    }
    assert_true(lines.n > 0 && lines.p[lines.n - 1] == '\n');
    buf_add_slice(&archive.kept, lines);
    return ARCHIVE_DONE;
}

static int setup_archive(void **state)
{
    memset(&archive, 0, sizeof(archive));
    if (setup(state))
        return -1;
    spool_set_archiver(((struct world *)*state)->sp, fake_archive, &archive);
    return 0;
}

static int teardown_archive(void **state)
{
    buf_free(&archive.kept);
    return world_teardown(state);
}

static unsigned count_text(const char *text)
{
    unsigned n = 0;

    for (const char *p = buf_str(&archive.kept); (p = strstr(p, text)); p++)
        n++;
    return n;
}

static void archived_before_it_goes(void **state)
{
    struct world *w = *state;
    uint64_t seq = arrive_and_end(w, 12345, OUTCOME_DONE);

    archive.busy = 2;
    w->now += DONE_MS;
    for (int i = 0; i < 2; i++) {
        world_step(w);
        assert_true(is_there(w, w->box, seq));
        assert_true(spool_next_deadline(w->sp) <= w->now); /* it goes on at once */
    }
    world_step(w);
    assert_int_equal(count_text("\n"), 1);
    assert_int_equal(count_text("\"id\":\"shop/12345\""), 1);
    assert_int_equal(count_text("\"seq\":1,"), 1);
    go_to(w, w->now);
    expect_empty(w);
    assert_int_equal(archive.calls, 3);
    struct spool_retention_status s;
    spool_retention_status(w->sp, &s);
    assert_int_equal(s.archived, 1);
}

static void replayed_between_archive_and_removal(void **state)
{
    struct world *w = *state;
    uint64_t a = arrive_and_end(w, 1, OUTCOME_DONE), b = arrive_and_end(w, 2, OUTCOME_DONE),
             c = arrive_and_end(w, 3, OUTCOME_DONE);

    archive.busy = 1;
    w->now += DONE_MS;
    world_step(w);
    uint64_t copy = replayed(w, b);
    world_step(w);
    assert_false(is_there(w, w->box, a));
    assert_true(is_there(w, w->box, b));
    assert_false(is_there(w, w->box, c));
    world_verify(w);
    go_to(w, w->now); /* the next slice tells of its replay */
    assert_false(is_there(w, w->box, b));
    assert_int_equal(count_text("\n"), 4);
    assert_int_equal(count_text("\"replayed_as\":4"), 1);
    assert_int_equal(resolved(w, 2), copy);
    world_verify(w);
    world_end(w, world_take_seq(w, PUSH, copy), OUTCOME_DONE, -1);
    go_to(w, w->now + DONE_MS);
    expect_empty(w);
}

/* One that ends while a slice is under way, in front of it. */
static void ended_between_archive_and_removal(void **state)
{
    struct world *w = *state;
    uint64_t slow = world_arrive(w, 1, 1);
    struct claim *c = world_take_seq(w, PUSH, slow);

    arrive_and_end(w, 2, OUTCOME_DONE);
    archive.busy = 1;
    w->now += DONE_MS;
    world_step(w);
    world_end(w, c, OUTCOME_DONE, -1);
    int64_t end = w->now;
    go_to(w, end + DONE_MS - 1);
    assert_true(is_there(w, w->box, slow));
    go_to(w, end + DONE_MS);
    expect_empty(w);
    assert_int_equal(count_text("\n"), 2);
}

static void what_fails_is_tried_again(void **state)
{
    struct world *w = *state;
    struct spool_retention_status s;

    log_setup(LOG_ERROR, LOG_TEXT, false);
    uint64_t seq = arrive_and_end(w, 1, OUTCOME_REJECTED);
    archive.fails = true;
    go_to(w, w->now + DEAD_MS);
    int64_t start = w->now;
    assert_int_equal(archive.calls, 1);
    while (w->now < start + HOURS(24)) {
        int64_t next = spool_next_deadline(w->sp);
        assert_true(next > w->now && next <= w->now + MINUTES(5));
        w->now = next;
        world_step(w);
        assert_true(is_there(w, w->box, seq));
    }
    assert_true(archive.calls < 350);
    spool_retention_status(w->sp, &s);
    assert_int_equal(s.failing_since, start);
    assert_string_equal(s.trouble, "cannot write /a/b: No space left on device");
    world_verify(w);
    archive.fails = false;
    w->now = spool_next_deadline(w->sp);
    go_to(w, w->now);
    spool_retention_status(w->sp, &s);
    assert_int_equal(s.failing_since, 0);
    assert_int_equal(count_text("\n"), 1);
    expect_empty(w);
}

/* The store fails while a slice is under way, and one of its events is replayed then. */
static void over_a_store_that_fails(void **state)
{
    struct world *w = *state;
    struct err e = ERR_NONE;

    arrive_and_end(w, 1, OUTCOME_DONE);
    arrive_and_end(w, 2, OUTCOME_DONE);
    archive.busy = 2;
    w->now += DONE_MS;
    world_step(w);
    world_begin(w);
    err_set(&e, EX_IOERR, "as the test says");
    spool_break(w->sp, &e);
    spool_commit(w->sp);
    assert_false(spool_healthy(w->sp, NULL));
    for (int i = 0; !spool_healthy(w->sp, NULL); i++) {
        assert_true(i < 100);
        w->now += SECONDS(1);
        world_begin(w);
        spool_work(w->sp);
        spool_commit(w->sp);
    }
    uint64_t copy = replayed(w, 2);
    go_to(w, w->now);
    assert_true(count_text("\n") >= 2);
    assert_false(is_there(w, w->box, 1));
    assert_true(is_there(w, w->box, copy));
    world_verify(w);
    world_end(w, world_take_seq(w, PUSH, copy), OUTCOME_DONE, -1);
    go_to(w, w->now + DONE_MS);
    expect_empty(w);
}

static void another_archive_begins_anew(void **state)
{
    struct world *w = *state;

    arrive_and_end(w, 1, OUTCOME_DONE);
    archive.busy = 100;
    w->now += DONE_MS;
    world_step(w);
    world_step(w);
    spool_set_archiver(w->sp, NULL, NULL);
    go_to(w, w->now);
    assert_int_equal(archive.calls, 2);
    expect_empty(w);
}

static void slices_are_small(void **state)
{
    struct world *w = *state;
    char text[10001];

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    for (int i = 1; i <= 30; i++) {
        world_begin(w);
        uint64_t seq = world_accept(w, i, i, text);
        world_commit(w);
        world_end(w, world_take_seq(w, PUSH, seq), OUTCOME_DONE, -1);
    }
    go_to(w, w->now + DONE_MS);
    assert_int_equal(count_text("\n"), 30);
    assert_int_equal(archive.calls, 5); /* 64 KiB each, and the line that passes them */
    expect_empty(w);
}

#define retain_test(f) cmocka_unit_test_setup_teardown(f, setup, world_teardown)
#define archive_test(f) cmocka_unit_test_setup_teardown(f, setup_archive, teardown_archive)

int main(void)
{
    const struct CMUnitTest tests[] = {
        retain_test(to_the_millisecond),
        retain_test(counts_from_the_end_not_from_the_arrival),
        retain_test(dedupe_keeps_a_done_event),
        retain_test(unfinished_events_stay),
        retain_test(stops_at_the_first_that_stays),
        retain_test(ends_behind_the_front),
        retain_test(idle_costs_nothing),
        retain_test(new_times_count_at_once),
        retain_test(two_hundred_a_tick_over_restarts),
        retain_test(unfinished_calls_keep_their_event),
        retain_test(replays_and_their_id),
        retain_test(an_id_of_a_newer_event_stays),
        retain_test(orphans_by_the_same_rules),
        retain_test(served_events),
        retain_test(imported_events_stay_a_while),
        retain_test(the_audit_log),
        archive_test(archived_before_it_goes),
        archive_test(replayed_between_archive_and_removal),
        archive_test(ended_between_archive_and_removal),
        archive_test(what_fails_is_tried_again),
        archive_test(over_a_store_that_fails),
        archive_test(another_archive_begins_anew),
        archive_test(slices_are_small),
    };
    return cmocka_run_group_tests_name("spool retain", tests, NULL, NULL);
}
