/* The api on a real spool: lists, single events, replay and discard, jobs, import, status, tail, and what is refused. */
#include "rig.h"

#include <unistd.h>

static struct rig *rig_of(void **state)
{
    return *state;
}

static void arrive_many(struct rig *r, int64_t first, unsigned n)
{
    for (unsigned i = 0; i < n;) {
        world_begin(&r->w);
        for (unsigned k = 0; k < 500 && i < n; k++, i++)
            world_accept(&r->w, first + i, 1000 + i % 7, "x");
        world_commit(&r->w);
    }
}

static void kill_one(struct rig *r)
{
    world_end(&r->w, world_take(&r->w, PUSH), OUTCOME_REJECTED, -1);
}

/* ---- refused ------------------------------------------------------------------------------------ */

static void test_unknown_things(void **state)
{
    struct rig *r = rig_of(state);
    struct reply p;

    rig_refused(r, 404, "not_found", "GET", "/", NULL);
    rig_refused(r, 404, "not_found", "GET", "/metrix", NULL);
    rig_refused(r, 404, "not_found", "POST", "/v1/keyes", "{}");
    rig_refused(r, 404, "not_found", "GET", "/v1/events/", NULL);
    rig_refused(r, 405, "method", "GET", "/v1/claim", NULL);
    rig_refused(r, 405, "method", "POST", "/v1/status", NULL);
    rig_refused(r, 400, "bad_request", "GET", "/v1/status?x=1", NULL);
    rig_refused(r, 400, "bad_request", "GET", "/v1/events?chat=1&chat=2", NULL);
    rig_refused(r, 400, "bad_request", "GET", "/v1/events?%zz=1", NULL);
    rig_refused(r, 422, "bad_value", "GET", "/v1/events?state=asleep", NULL);
    rig_refused(r, 422, "bad_value", "GET", "/v1/events?limit=0", NULL);
    rig_refused(r, 422, "bad_value", "GET", "/v1/events?after=%2F", NULL);
    rig_refused(r, 400, "bad_request", "GET", "/v1/events/shop", NULL);
    rig_refused(r, 404, "unknown_event", "GET", "/v1/events/shop/5", NULL);
    rig_ask(r, &p, "GET", "/v1/events?bto=shop", NULL);
    assert_non_null(strstr(buf_str(&p.body), "accepted: bot, box, state")); /* says what would do */
    reply_clear(&p);
    rig_expect(r, &p, 200, "GET", "/healthz", NULL);
    reply_clear(&p);
}

/* ---- looking ------------------------------------------------------------------------------------ */

static void test_list_filters(void **state)
{
    struct rig *r = rig_of(state);
    static const struct {
        const char *query;
        size_t n;
    } rows[] = {
        {"", 3},
        {"?state=dead", 1},
        {"?state=dead,pending", 3},
        {"?chat=1001", 1},
        {"?user=2001", 1},
        {"?kind=message", 3},
        {"?kind=poll", 0},
        {"?bot=shop&box=in", 3},
        {"?box=out", 0},
        {"?error=stock", 1},
        {"?since=1h", 3},
        {"?until=1h", 0},
        {"?since=2020-01-01&until=2026-11-29T17%3A00:00Z", 0},
        {"?limit=2", 2},
        {"?newest=1", 3},
        {"?newest=1&state=pending&limit=1", 1},
    };

    arrive_many(r, 5, 3);
    struct claim *c = world_take(&r->w, PUSH);
    world_begin(&r->w);
    const struct outcome o = {.kind = OUTCOME_REJECTED, .after_ms = -1, .error = LIT("no stock left")};
    assert_int_equal(spool_complete(r->w.box, c->ev.seq, c->token, &o), COMPLETED);
    world_drop(&r->w, c);
    world_commit(&r->w);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct reply p;
        char *path = xasprintf("/v1/events%s", rows[i].query);
        rig_expect(r, &p, 200, "GET", path, NULL);
        if (json_length(json_get(p.root, "events")) != rows[i].n)
            fail_msg("%s: %s", path, buf_str(&p.body));
        assert_null(strstr(buf_str(&p.body), "\"payload")); /* only when asked for */
        reply_clear(&p);
        free(path);
    }
}

static void test_list_pages_over_everything_once(void **state)
{
    struct rig *r = rig_of(state);
    struct reply p;
    char path[160] = "/v1/events?limit=7";
    unsigned n = 0;

    arrive_many(r, 5, 100);
    for (;;) {
        rig_expect(r, &p, 200, "GET", path, NULL);
        for (size_t i = 0; i < json_length(json_get(p.root, "events")); i++)
            assert_int_equal(reply_number(reply_event(&p, i), "update_id"), 5 + n++);
        if (json_type(json_get(p.root, "next")) == JSON_NULL)
            break;
        snprintf(path, sizeof(path), "/v1/events?limit=7&after=%s", reply_text(p.root, "next"));
        reply_clear(&p);
    }
    reply_clear(&p);
    assert_int_equal(n, 100);
}

/* Slices of 5 ms: with a slow clock one page takes many ticks, and is cut short with a cursor after a while. */
static void test_list_runs_in_slices(void **state)
{
    struct rig *r = rig_of(state);
    struct reply p;
    unsigned ticks = 0;

    arrive_many(r, 5, 2000);
    r->us_a_look = 3000;
    rig_start(r, &p, "GET", "/v1/events?chat=5", NULL); /* finds none */
    for (; !p.answered; ticks++)
        rig_step(r);
    assert_in_range(ticks, 10, 100);
    reply_clear(&p);

    rig_start(r, &p, "GET", "/v1/events?chat=5", NULL);
    rig_step(r);
    assert_true(api_next_deadline(r->api) <= r->w.now);
    world_wait(&r->w, 2000);
    rig_step(r);
    assert_true(p.answered);
    assert_int_equal(json_length(json_get(p.root, "events")), 0);
    assert_int_equal(json_type(json_get(p.root, "next")), JSON_STRING);
    reply_clear(&p);

    rig_start(r, &p, "GET", "/v1/events?chat=5", NULL);
    rig_step(r);
    api_cancel(p.call);
    rig_step(r);
    assert_false(p.answered);
    assert_int_equal(api_next_deadline(r->api), TIME_NEVER);
}

static void test_event_by_every_name(void **state)
{
    struct rig *r = rig_of(state);
    static const char *const paths[] = {"/v1/events/shop/5", "/v1/events/shop/@1", "/v1/events/shop%2F%401",
                                        "/v1/events/%73hop/%35"};

    rig_arrive(r, 5, 42);
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct reply p;
        rig_expect(r, &p, 200, "GET", paths[i], NULL);
        assert_string_equal(reply_text(p.root, "id"), "shop/5");
        assert_int_equal(reply_number(json_get(p.root, "payload"), "update_id"), 5);
        reply_clear(&p);
    }
    rig_refused(r, 404, "unknown_event", "GET", "/v1/events/shop/out/@1", NULL);
}

/* It is done over some time: another asks, and joins; the first one does not wait so long. */
static void test_compact(void **state)
{
    struct rig *r = *state;
    struct reply started = {0}, joined = {0};

    rig_refused(r, 404, "not_found", "GET", "/v1/compact", NULL);
    rig_refused(r, 422, "bad_value", "POST", "/v1/compact?wait=2d", "{}");
    rig_start(r, &started, "POST", "/v1/compact?wait=0", "{}");
    rig_step(r);
    assert_true(started.answered);
    assert_int_equal(started.status, 202);
    assert_string_equal(reply_text(started.root, "state"), "running");
    assert_true(reply_number(started.root, "before") > 0);
    rig_start(r, &joined, "POST", "/v1/compact?wait=1h", "{}");
    for (int i = 0; i < 20000 && !joined.answered; i++) {
        r->w.now += 100;
        rig_step(r);
        usleep(1000);
    }
    assert_true(joined.answered);
    assert_int_equal(joined.status, 200);
    assert_string_equal(reply_text(joined.root, "state"), "finished");
    assert_true(reply_number(joined.root, "after") > 0);
    reply_clear(&started);
    reply_clear(&joined);
    rig_expect(r, &joined, 200, "GET", "/v1/compact?wait=0", NULL); /* the latest */
    reply_clear(&joined);
}

/* What would add to the spool is refused while there is no room; what ends it is not. */
static void test_no_room(void **state)
{
    struct rig *r = *state;
    struct reply p;

    rig_arrive(r, 1, 1);
    spool_hold(r->w.sp, "the disk has 120 MB free, needs 256 MB");
    rig_refused(r, 503, "no_room", "POST", "/v1/import", "{}");
    rig_refused(r, 503, "no_room", "POST", "/v1/bots/shop/calls", "{\"method\":\"sendMessage\"}");
    rig_refused(r, 503, "no_room", "POST", "/v1/replay", "{\"all\":true}");
    rig_expect(r, &p, 200, "POST", "/v1/discard", "{\"id\":\"shop/1\"}");
    reply_clear(&p);
    rig_expect(r, &p, 200, "POST", "/v1/replay", "{\"id\":\"shop/1\"}");
    reply_clear(&p);
    spool_hold(r->w.sp, NULL);
    rig_expect(r, &p, 200, "POST", "/v1/replay", "{\"all\":true}");
    reply_clear(&p);
}

/* A replay of many ends where the room does, and says so. */
static void test_no_room_in_the_middle(void **state)
{
    struct rig *r = *state;
    struct reply p = {0};

    for (int i = 1; i <= 100; i++)
        rig_arrive(r, i, i);
    rig_expect(r, &p, 200, "POST", "/v1/discard", "{\"all\":true}");
    reply_clear(&p);
    r->us_a_look = 3000; /* a slice is a few events */
    rig_start(r, &p, "POST", "/v1/replay", "{\"all\":true}");
    rig_step(r);
    assert_false(p.answered);
    spool_hold(r->w.sp, "the disk has 120 MB free, needs 256 MB");
    for (int i = 0; i < 10 && !p.answered; i++)
        rig_step(r);
    assert_true(p.answered);
    assert_int_equal(p.status, 503);
    uint64_t pending = world_status(&r->w).counts.pending;
    assert_true(pending > 0 && pending < 100);
    char *says = xasprintf("\"%llu were replayed, then it was stopped: the disk has 120 MB",
                           (unsigned long long)pending);
    assert_non_null(strstr(buf_str(&p.body), says));
    free(says);
    reply_clear(&p);
    spool_hold(r->w.sp, NULL); /* again: those that were replayed are passed by */
    rig_expect(r, &p, 200, "POST", "/v1/replay", "{\"all\":true}");
    assert_int_equal(reply_number(p.root, "replayed"), 100 - pending);
    reply_clear(&p);
}

static void test_status(void **state)
{
    struct rig *r = rig_of(state);
    struct reply p;

    rig_arrive(r, 5, 42);
    world_wait(&r->w, 7000);
    rig_expect(r, &p, 200, "GET", "/v1/status", NULL);
    assert_string_equal(reply_text(p.root, "version"), "1.2.3");
    assert_true(json_true(json_get(p.root, "healthy")));
    const struct json *b = json_item(json_get(p.root, "boxes"), 0);
    assert_string_equal(reply_text(b, "bot"), "shop");
    assert_int_equal(reply_number(b, "pending"), 1);
    assert_int_equal(reply_number(b, "oldest_unfinished_age"), 7);
    assert_false(json_true(json_get(json_get(b, "breaker"), "open")));
    assert_string_equal(reply_text(json_get(b, "intake"), "mode"), "shop");
    reply_clear(&p);
}

static void test_status_has_the_histograms(void **state)
{
    struct rig *r = rig_of(state);
    struct reply p;

    uint64_t seq = rig_arrive(r, 5, 42);
    struct claim *c = world_take_seq(&r->w, PUSH, seq);
    world_wait(&r->w, 30);
    world_end(&r->w, c, OUTCOME_DONE, -1);
    rig_expect(r, &p, 200, "GET", "/v1/status", NULL);
    const struct json *took = json_get(json_item(json_get(p.root, "boxes"), 0), "handler_ms");
    assert_int_equal(reply_number(took, "count"), 1);
    assert_int_equal(reply_number(took, "sum"), 30);
    assert_int_equal(reply_number(json_get(took, "up_to"), "50"), 1);
    assert_null(json_get(json_get(took, "up_to"), "25"));
    const struct json *commits = json_get(p.root, "commits"), *us = json_get(commits, "us");
    assert_int_equal(reply_number(us, "count"), reply_number(commits, "commits"));
    assert_int_equal(reply_number(us, "sum"), reply_number(commits, "total_us"));
    const struct json *batches = json_get(commits, "batch_events");
    assert_int_equal(reply_number(batches, "sum"), reply_number(commits, "events"));
    assert_true(reply_number(json_get(batches, "up_to"), "1") >= 3);
    reply_clear(&p);
}

/* ---- acting ------------------------------------------------------------------------------------- */

static void test_replay_by_id(void **state)
{
    struct rig *r = rig_of(state);
    struct reply p;

    rig_arrive(r, 5, 42);
    rig_arrive(r, 6, 42);
    rig_refused(r, 409, "not_ended", "POST", "/v1/replay", "{\"id\":\"shop/5\"}");
    kill_one(r);
    rig_expect(r, &p, 200, "POST", "/v1/replay", "{\"id\":\"shop/@1\"}");
    assert_string_equal(reply_text(p.root, "as"), "shop/@3");
    reply_clear(&p);
    world_expect(&r->w, 3, STATE_PENDING, REASON_NONE, 0);
    rig_expect(r, &p, 200, "POST", "/v1/replay", "{\"ids\":[\"shop/@1\",\"shop/6\",\"shop/9\",7]}");
    assert_int_equal(reply_number(p.root, "replayed"), 1);
    assert_string_equal(reply_text(json_get(reply_event(&p, 1), "error"), "code"), "not_ended");
    assert_string_equal(reply_text(json_get(reply_event(&p, 2), "error"), "code"), "unknown_event");
    reply_clear(&p);
    world_verify(&r->w);
}

static void test_replay_by_filter(void **state)
{
    struct rig *r = rig_of(state);
    struct reply p;

    arrive_many(r, 5, 20);
    for (int i = 0; i < 9; i++)
        kill_one(r);
    rig_refused(r, 400, "bad_request", "POST", "/v1/replay", "{}");
    rig_refused(r, 404, "unknown_bot", "POST", "/v1/replay", "{\"bot\":\"other\",\"state\":\"done\"}");
    rig_refused(r, 404, "unknown_bot", "POST", "/v1/discard", "{\"bot\":\"other\"}");
    rig_refused(r, 404, "unknown_bot", "GET", "/v1/events?bot=other", NULL);
    rig_refused(r, 400, "bad_request", "POST", "/v1/replay", "{\"dry_run\":true}");
    rig_refused(r, 400, "bad_request", "POST", "/v1/replay", "{\"ids\":[\"shop/5\"],\"bot\":\"shop\"}");
    rig_expect(r, &p, 200, "POST", "/v1/replay", "{\"all\":true,\"dry_run\":true}");
    assert_int_equal(reply_number(p.root, "replayed"), 9);
    reply_clear(&p);
    assert_int_equal(world_status(&r->w).counts.pending, 11);
    rig_expect(r, &p, 200, "POST", "/v1/replay", "{\"bot\":\"shop\"}");
    assert_int_equal(reply_number(p.root, "replayed"), 9);
    reply_clear(&p);
    assert_int_equal(world_status(&r->w).counts.pending, 20);
    /* again: nothing is replayed twice */
    rig_expect(r, &p, 200, "POST", "/v1/replay", "{\"all\":true}");
    assert_int_equal(reply_number(p.root, "replayed"), 0);
    assert_int_equal(reply_number(p.root, "skipped"), 9);
    reply_clear(&p);
    world_verify(&r->w);
}

static void test_discard(void **state)
{
    struct rig *r = rig_of(state);
    struct reply p;

    arrive_many(r, 5, 3);
    struct claim *c = world_take(&r->w, PUSH);
    rig_refused(r, 409, "busy", "POST", "/v1/discard", "{\"id\":\"shop/5\"}");
    assert_int_equal(r->killed, 0);
    rig_expect(r, &p, 200, "POST", "/v1/discard", "{\"id\":\"shop/6\"}");
    reply_clear(&p);
    world_expect(&r->w, 2, STATE_DEAD, REASON_DISCARDED, 0);
    rig_refused(r, 409, "ended", "POST", "/v1/discard", "{\"id\":\"shop/6\"}");
    rig_expect(r, &p, 200, "POST", "/v1/discard", "{\"bot\":\"shop\"}");
    assert_int_equal(reply_number(p.root, "discarded"), 1);
    assert_int_equal(reply_number(p.root, "busy"), 1);
    reply_clear(&p);
    rig_expect(r, &p, 200, "POST", "/v1/discard", "{\"bot\":\"shop\",\"force\":true}");
    assert_int_equal(reply_number(p.root, "discarded"), 1);
    reply_clear(&p);
    assert_int_equal(r->killed, 1);
    assert_int_equal(r->killed_seq, c->ev.seq);
    world_expect(&r->w, 1, STATE_DEAD, REASON_DISCARDED, 0);
    world_begin(&r->w); /* the handler's own end comes too late */
    const struct outcome o = {.kind = OUTCOME_DONE, .after_ms = -1};
    assert_int_equal(spool_complete(r->w.box, c->ev.seq, c->token, &o), COMPLETE_LOST);
    world_commit(&r->w);
    world_verify(&r->w);
}

/* Dead letters are discarded where they are asked for by their state; the dry run counts what the true one will do. */
static void test_discard_the_dead(void **state)
{
    struct rig *r = rig_of(state);
    struct reply p;

    arrive_many(r, 5, 4);
    for (int i = 0; i < 3; i++)
        world_end(&r->w, world_take(&r->w, PUSH), i ? OUTCOME_REJECTED : OUTCOME_DONE, -1);
    rig_expect(r, &p, 200, "POST", "/v1/discard",
               "{\"bot\":\"shop\",\"state\":\"dead,done\",\"dry_run\":true}");
    assert_int_equal(reply_number(p.root, "discarded"), 2);
    assert_int_equal(reply_number(p.root, "skipped"), 1);
    reply_clear(&p);
    rig_expect(r, &p, 200, "POST", "/v1/discard", "{\"bot\":\"shop\",\"state\":\"dead,done\"}");
    assert_int_equal(reply_number(p.root, "discarded"), 2);
    reply_clear(&p);
    rig_expect(r, &p, 200, "POST", "/v1/discard", "{\"bot\":\"shop\",\"state\":\"dead\"}");
    assert_int_equal(reply_number(p.root, "discarded"), 0);
    assert_int_equal(reply_number(p.root, "skipped"), 2);
    reply_clear(&p);
    rig_refused(r, 409, "ended", "POST", "/v1/discard", "{\"id\":\"shop/5\"}");
    rig_expect(r, &p, 200, "GET", "/v1/events/shop/@2?payload=0", NULL);
    assert_null(json_get(p.root, "payload"));
    assert_non_null(json_get(p.root, "history"));
    reply_clear(&p);
    rig_refused(r, 422, "bad_value", "GET", "/v1/events/shop/@2?payload=maybe", NULL);
    world_verify(&r->w);
}

/* What a deliverer of the daemon works on ends when nothing of it runs any more, and its lane waits until then. */
static void test_discard_waits_for_the_child(void **state)
{
    struct rig *r = rig_of(state);
    struct reply p;

    arrive_many(r, 5, 1);
    struct claim *c = world_take(&r->w, PUSH);
    r->holds = true;
    rig_expect(r, &p, 200, "POST", "/v1/discard", "{\"id\":\"shop/5\",\"force\":true}");
    reply_clear(&p);
    assert_int_equal(r->killed_seq, c->ev.seq);
    world_expect(&r->w, 1, STATE_PROCESSING, REASON_DISCARDED, 0);
    world_begin(&r->w);
    const struct outcome o = {.kind = OUTCOME_DISCARDED, .after_ms = -1};
    assert_int_equal(spool_complete(r->w.box, c->ev.seq, c->token, &o), COMPLETED);
    world_commit(&r->w);
    world_expect(&r->w, 1, STATE_DEAD, REASON_DISCARDED, 0);
    world_verify(&r->w);
}

/* A bulk that outlasts its client's patience: 202 and a number, progress, and the counts at the end. */
static void test_long_bulk_becomes_a_job(void **state)
{
    struct rig *r = rig_of(state);
    struct reply p, q;

    arrive_many(r, 5, 3000);
    r->us_a_look = 3000;
    rig_start(r, &p, "POST", "/v1/discard", "{\"all\":true}");
    rig_step(r);
    assert_false(p.answered);
    world_wait(&r->w, 5000);
    rig_step(r);
    assert_true(p.answered);
    assert_int_equal(p.status, 202);
    assert_string_equal(reply_text(p.root, "state"), "running");
    char *path = xasprintf("/v1/jobs/%lld", (long long)reply_number(p.root, "job"));
    rig_ask(r, &q, "GET", path, NULL);
    assert_string_equal(reply_text(q.root, "state"), "running");
    assert_in_range(reply_number(q.root, "discarded"), 1, 2999);
    reply_clear(&q);
    for (unsigned i = 0; i < 1000 && api_next_deadline(r->api) <= r->w.now; i++)
        rig_step(r);
    rig_ask(r, &q, "GET", path, NULL);
    assert_string_equal(reply_text(q.root, "state"), "finished");
    assert_int_equal(reply_number(q.root, "discarded"), 3000);
    reply_clear(&q);
    reply_clear(&p);
    free(path);
    rig_refused(r, 404, "unknown_job", "GET", "/v1/jobs/99", NULL);
    rig_refused(r, 404, "unknown_job", "GET", "/v1/jobs/x", NULL);
    assert_int_equal(world_status(&r->w).counts.dead, 3000);
}

/* Without a number nobody could ask about it: it ends with its client. */
static void test_bulk_ends_with_its_client(void **state)
{
    struct rig *r = rig_of(state);
    struct reply p;

    arrive_many(r, 5, 1000);
    r->us_a_look = 3000;
    rig_start(r, &p, "POST", "/v1/discard", "{\"all\":true}");
    rig_step(r);
    api_cancel(p.call);
    for (int i = 0; i < 50; i++)
        rig_step(r);
    assert_false(p.answered);
    assert_in_range(world_status(&r->w).counts.dead, 1, 999);
    world_verify(&r->w);
}

static void test_jobs_share_the_time(void **state)
{
    struct rig *r = rig_of(state);
    struct reply slow, quick;
    unsigned ticks = 0;

    arrive_many(r, 5, 3000);
    r->us_a_look = 3000;
    rig_start(r, &slow, "POST", "/v1/replay", "{\"state\":\"pending\"}");
    rig_start(r, &quick, "GET", "/v1/events?limit=1", NULL);
    for (; !quick.answered; ticks++)
        rig_step(r);
    assert_false(slow.answered);
    assert_true(ticks <= 3);
    for (unsigned i = 0; i < 1000 && !slow.answered; i++)
        rig_step(r);
    assert_true(slow.answered);
    assert_int_equal(reply_number(slow.root, "skipped"), 3000);
    reply_clear(&slow);
    reply_clear(&quick);
}

static void test_pause(void **state)
{
    struct rig *r = rig_of(state);
    struct reply p;

    rig_start(r, &p, "POST", "/v1/pause", "{\"bot\":\"shop\"}");
    assert_false(p.answered); /* not before it is durable */
    rig_step(r);
    assert_true(p.answered);
    reply_clear(&p);
    assert_true(world_status(&r->w).paused_intake && world_status(&r->w).paused_deliver);
    rig_expect(r, &p, 200, "POST", "/v1/resume", "{\"bot\":\"shop\",\"what\":\"intake\"}");
    reply_clear(&p);
    assert_false(world_status(&r->w).paused_intake);
    assert_true(world_status(&r->w).paused_deliver);
    rig_refused(r, 422, "bad_value", "POST", "/v1/pause", "{\"bot\":\"shop\",\"what\":\"lunch\"}");
    rig_refused(r, 404, "unknown_bot", "POST", "/v1/pause", "{\"bot\":\"shp\"}");
}

/* ---- export and import -------------------------------------------------------------------------- */

/* The lines of a page, as `export` cuts them out. */
static char *lines_of(const struct reply *p)
{
    struct buf out = BUF_EMPTY;
    const char *at = strchr(buf_str(&p->body), '\n');

    while (at && at[1] != ']') {
        size_t n = strcspn(at + 1, "\n");
        bool comma = at[n] == ',';
        buf_add(&out, at + 1, n - comma);
        buf_add_char(&out, '\n');
        at += n + 1;
    }
    return buf_steal(&out);
}

static void test_export_import_round_trip(void **state)
{
    struct rig *r = rig_of(state);
    struct reply p;
    struct event a, b;
    struct event_state sa, sb;
    struct buf ra = BUF_EMPTY, rb = BUF_EMPTY;
    struct update u = {.bytes = LIT("\xff\xfe {"), .has_id = false};

    arrive_many(r, 5, 3);
    kill_one(r);
    world_begin(&r->w);
    assert_int_equal(spool_accept(r->w.box, &u, true, NULL), ACCEPTED_NEW);
    world_commit(&r->w);
    assert_int_equal(spool_get(r->w.box, 1, &a, &sa, &ra), 0);
    rig_expect(r, &p, 200, "GET", "/v1/events?payload=1", NULL);
    char *lines = lines_of(&p);
    reply_clear(&p);
    rig_expect(r, &p, 200, "POST", "/v1/import", lines);
    assert_int_equal(reply_number(p.root, "known"), 4);
    assert_int_equal(reply_number(p.root, "new"), 0);
    reply_clear(&p);

    void *other = NULL; /* into an empty spool, of which the bot is no part yet */
    assert_int_equal(rig_setup(&other), 0);
    struct rig *o = other;
    o->w.now += 1000;
    rig_expect(o, &p, 200, "POST", "/v1/import", lines);
    if (reply_number(p.root, "new") != 4)
        fail_msg("%s", buf_str(&p.body));
    reply_clear(&p);
    assert_int_equal(spool_get(o->w.box, 1, &b, &sb, &rb), 0);
    assert_slice(b.payload, "{\"update_id\":5,\n\"message\":{\"chat\":{\"id\":1000},\"from\":{\"id\":2000},"
                            "\"text\":\"x\"}}"); /* to the byte */
    assert_memory_equal(a.hash, b.hash, sizeof(a.hash));
    assert_int_equal(a.received_at, b.received_at);
    assert_int_equal(sb.state, STATE_DEAD);
    assert_int_equal(sb.reason, REASON_REJECTED);
    assert_int_equal(sb.finished_at, sa.finished_at);
    assert_int_equal(sb.n_history, 1);
    assert_int_equal(spool_get(o->w.box, 4, &b, &sb, &rb), 0);
    assert_slice(b.payload, "\xff\xfe {");
    world_verify(&o->w);
    rig_teardown(&other);
    buf_free(&ra);
    buf_free(&rb);
    free(lines);
}

static void test_import_tells_bad_lines(void **state)
{
    struct rig *r = rig_of(state);
    struct reply p;

    rig_expect(r, &p, 200, "POST", "/v1/import",
               "{\"bot\":\"shop\",\"bot_id\":123456789,\"box\":\"in\",\"update_id\":1,\"received_at\":1,"
               "\"state\":\"pending\",\"payload\":{\"update_id\":1}}\n"
               "\nnonsense\n"
               "{\"bot\":\"shop\",\"bot_id\":7,\"box\":\"in\",\"update_id\":1,\"received_at\":1,"
               "\"state\":\"pending\",\"payload\":{\"update_id\":1}}");
    assert_int_equal(reply_number(p.root, "lines"), 4);
    assert_int_equal(reply_number(p.root, "new"), 1);
    assert_int_equal(reply_number(p.root, "bad"), 2);
    const struct json *errors = json_get(p.root, "errors");
    assert_int_equal(reply_number(json_item(errors, 0), "line"), 3);
    assert_int_equal(reply_number(json_item(errors, 1), "line"), 4);
    assert_non_null(strstr(reply_text(json_item(errors, 1), "message"), "another Telegram bot"));
    reply_clear(&p);
}

/* More than a batch holds: the rest goes into later ticks. */
static void test_import_of_many(void **state)
{
    struct rig *r = rig_of(state);
    struct reply p;
    struct buf lines = BUF_EMPTY;

    for (int i = 1; i <= 2500; i++)
        buf_printf(&lines,
                   "{\"bot\":\"shop\",\"bot_id\":123456789,\"box\":\"in\",\"update_id\":%d,\"received_at\":1,"
                   "\"state\":\"pending\",\"payload\":{\"update_id\":%d}}\n",
                   i, i);
    rig_expect(r, &p, 200, "POST", "/v1/import", buf_str(&lines));
    assert_int_equal(reply_number(p.root, "new"), 2500);
    assert_int_equal(world_status(&r->w).counts.pending, 2500);
    reply_clear(&p);
    buf_free(&lines);
    world_verify(&r->w);
}

/* ---- tail --------------------------------------------------------------------------------------- */

static void test_tail(void **state)
{
    struct rig *r = rig_of(state);
    struct reply p;

    rig_arrive(r, 5, 42);
    rig_expect(r, &p, 200, "GET", "/v1/tail", NULL);
    assert_string_equal(reply_text(reply_event(&p, 0), "what"), "accepted");
    assert_string_equal(reply_text(reply_event(&p, 0), "id"), "shop/5");
    int64_t next = reply_number(p.root, "next");
    reply_clear(&p);
    char *path = xasprintf("/v1/tail?after=%lld&wait=30", (long long)next);
    rig_start(r, &p, "GET", path, NULL);
    rig_step(r);
    assert_false(p.answered);
    kill_one(r);
    assert_true(api_next_deadline(r->api) <= r->w.now); /* there is news: do not sleep */
    rig_step(r);
    assert_true(p.answered);
    assert_string_equal(reply_text(reply_event(&p, 0), "what"), "claimed");
    assert_string_equal(reply_text(reply_event(&p, 1), "reason"), "rejected");
    reply_clear(&p);
    free(path);
    rig_start(r, &p, "GET", "/v1/tail?after=3&wait=5", NULL);
    world_wait(&r->w, 5000);
    rig_step(r);
    assert_true(p.answered);
    assert_int_equal(json_length(json_get(p.root, "events")), 0);
    reply_clear(&p);
    assert_int_equal(r->happened, 3); /* passed on */
}

static void test_tail_says_what_it_missed(void **state)
{
    struct rig *r = rig_of(state);
    struct reply p;

    arrive_many(r, 5, 1500);
    rig_expect(r, &p, 200, "GET", "/v1/tail?after=100&limit=10", NULL);
    assert_int_equal(reply_number(p.root, "missed"), 400);
    assert_int_equal(reply_number(reply_event(&p, 0), "number"), 501);
    assert_int_equal(reply_number(p.root, "next"), 510);
    reply_clear(&p);
    rig_expect(r, &p, 200, "GET", "/v1/tail?limit=1000", NULL);
    assert_int_equal(reply_number(p.root, "missed"), 0);
    assert_int_equal(json_length(json_get(p.root, "events")), 1000);
    reply_clear(&p);
    rig_expect(r, &p, 200, "GET", "/v1/tail?after=99999999", NULL); /* of an earlier daemon */
    assert_int_equal(json_length(json_get(p.root, "events")), 100);
    reply_clear(&p);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_unknown_things),
        TEST(test_list_filters),
        TEST(test_list_pages_over_everything_once),
        TEST(test_list_runs_in_slices),
        TEST(test_event_by_every_name),
        TEST(test_status),
        TEST(test_status_has_the_histograms),
        TEST(test_compact),
        TEST(test_no_room),
        TEST(test_no_room_in_the_middle),
        TEST(test_replay_by_id),
        TEST(test_replay_by_filter),
        TEST(test_discard),
        TEST(test_discard_the_dead),
        TEST(test_discard_waits_for_the_child),
        TEST(test_long_bulk_becomes_a_job),
        TEST(test_bulk_ends_with_its_client),
        TEST(test_jobs_share_the_time),
        TEST(test_pause),
        TEST(test_export_import_round_trip),
        TEST(test_import_tells_bad_lines),
        TEST(test_import_of_many),
        TEST(test_tail),
        TEST(test_tail_says_what_it_missed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
