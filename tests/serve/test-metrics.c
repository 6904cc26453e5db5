/* GET /metrics and /readyz, on a real spool: what happened is in the numbers, and every counter is there before. */
#include "rig.h"

static struct rig *rig_of(void **state)
{
    return *state;
}

static void scrape(struct rig *r, struct reply *p)
{
    rig_expect(r, p, 200, "GET", "/metrics", NULL);
    assert_string_equal(p->type, "text/plain; version=0.0.4; charset=utf-8");
}

/* Fails unless the line is there. */
static void has(const struct reply *p, const char *line)
{
    char *wanted = xasprintf("\n%s\n", line);

    if (!strstr(buf_str(&p->body), wanted))
        fail_msg("no %s in:\n%s", line, buf_str(&p->body));
    free(wanted);
}

static void expect_lines(struct rig *r, const char *const *lines, size_t n)
{
    struct reply p;

    scrape(r, &p);
    for (size_t i = 0; i < n; i++)
        has(&p, lines[i]);
    reply_clear(&p);
}
#define EXPECT(r, ...) \
    expect_lines(r, (const char *const[]){__VA_ARGS__}, ARRAY_LEN(((const char *const[]){__VA_ARGS__})))

static void test_all_is_there_from_the_start(void **state)
{
    struct rig *r = rig_of(state);

    r->has_standing = true;
    r->standing = (struct intake_standing){.mode = INTAKE_POLL, .pending = -1};
    r->w.now += SECONDS(90);
    EXPECT(r, "tgspool_build_info{version=\"1.2.3\"} 1", "process_start_time_seconds 1795974368",
           "tgspool_store_healthy 1", "tgspool_intake_held 0",
           "tgspool_events{bot=\"shop\",box=\"in\",state=\"pending\"} 0",
           "tgspool_events{bot=\"shop\",box=\"in\",state=\"dead\"} 0",
           "tgspool_oldest_unfinished_age_seconds{bot=\"shop\",box=\"in\"} 0",
           "tgspool_received_total{bot=\"shop\",box=\"in\"} 0",
           "tgspool_duplicates_total{bot=\"shop\",box=\"in\"} 0",
           "tgspool_delivered_total{bot=\"shop\",box=\"in\"} 0",
           "tgspool_failures_total{bot=\"shop\",box=\"in\"} 0",
           "tgspool_retries_total{bot=\"shop\",box=\"in\"} 0",
           "tgspool_lease_expired_total{bot=\"shop\",box=\"in\"} 0",
           "tgspool_dead_total{bot=\"shop\",box=\"in\",reason=\"attempts\"} 0",
           "tgspool_dead_total{bot=\"shop\",box=\"in\",reason=\"rejected\"} 0",
           "tgspool_dead_total{bot=\"shop\",box=\"in\",reason=\"expired\"} 0",
           "tgspool_dead_total{bot=\"shop\",box=\"in\",reason=\"discarded\"} 0",
           "tgspool_upstream_gaps_total{bot=\"shop\"} 0",
           "tgspool_poll_errors_total{bot=\"shop\",code=\"409\"} 0",
           "tgspool_poll_errors_total{bot=\"shop\",code=\"network\"} 0",
           "tgspool_breaker_open{bot=\"shop\",box=\"in\"} 0",
           "tgspool_paused{bot=\"shop\",box=\"in\",what=\"intake\"} 0",
           "tgspool_last_good_poll_age_seconds{bot=\"shop\"} 90",
           "tgspool_handler_seconds_count{bot=\"shop\",box=\"in\"} 0", "tgspool_disk_free_bytes 123456789",
           "tgspool_db_bytes 4321");
    struct reply p;
    scrape(r, &p);
    assert_null(strstr(buf_str(&p.body), "tgspool_upstream_pending{")); /* nobody has asked yet */
    assert_null(strstr(buf_str(&p.body), "tgspool_webhooks_total{"));
    assert_non_null(strstr(buf_str(&p.body), "process_resident_memory_bytes "));
    reply_clear(&p);
}

static void test_what_happened(void **state)
{
    struct rig *r = rig_of(state);

    for (int64_t id = 1; id <= 3; id++)
        rig_arrive(r, id, 100 + id);
    struct claim *c = world_take(&r->w, PUSH);
    r->w.now += 1500;
    world_end(&r->w, c, OUTCOME_DONE, -1);
    c = world_take(&r->w, PUSH);
    world_end(&r->w, c, OUTCOME_REJECTED, -1);
    c = world_take(&r->w, PUSH);
    r->w.now += SECONDS(6);
    world_end(&r->w, c, OUTCOME_RELEASED, -1); /* a shutdown says nothing about the handler's time */
    world_begin(&r->w);
    spool_count_gap(r->w.box, 7);
    spool_pause(r->w.box, false, true);
    world_commit(&r->w);
    EXPECT(r, "tgspool_events{bot=\"shop\",box=\"in\",state=\"done\"} 1",
           "tgspool_events{bot=\"shop\",box=\"in\",state=\"pending\"} 1",
           "tgspool_oldest_unfinished_age_seconds{bot=\"shop\",box=\"in\"} 7.5",
           "tgspool_received_total{bot=\"shop\",box=\"in\"} 3",
           "tgspool_delivered_total{bot=\"shop\",box=\"in\"} 1",
           "tgspool_dead_total{bot=\"shop\",box=\"in\",reason=\"rejected\"} 1",
           "tgspool_dead_left{bot=\"shop\",box=\"in\"} 1", "tgspool_upstream_gaps_total{bot=\"shop\"} 7",
           "tgspool_paused{bot=\"shop\",box=\"in\",what=\"deliver\"} 1",
           "tgspool_handler_seconds_bucket{bot=\"shop\",box=\"in\",le=\"0.005\"} 1",
           "tgspool_handler_seconds_bucket{bot=\"shop\",box=\"in\",le=\"1\"} 1",
           "tgspool_handler_seconds_bucket{bot=\"shop\",box=\"in\",le=\"2.5\"} 2",
           "tgspool_handler_seconds_bucket{bot=\"shop\",box=\"in\",le=\"+Inf\"} 2",
           "tgspool_handler_seconds_sum{bot=\"shop\",box=\"in\"} 1.5",
           "tgspool_handler_seconds_count{bot=\"shop\",box=\"in\"} 2",
           "tgspool_commit_events_bucket{le=\"1\"} 9");
}

/* Counters of gaps are for good; a box of a bot that left keeps a label of its own. */
static void test_orphans(void **state)
{
    struct rig *r = rig_of(state);

    world_begin(&r->w);
    spool_attach(r->w.sp, 77, BOX_IN, "shop", NULL); /* the name has gone on to another bot */
    spool_detach(r->w.box);
    world_commit(&r->w);
    r->has_standing = true;
    r->standing = (struct intake_standing){
        .mode = INTAKE_WEBHOOK, .pending = 12, .asked_at = r->w.now - 1000, .answers = {[HOOK_401] = 3}};
    EXPECT(r, "tgspool_received_total{bot=\"shop\",box=\"in\"} 0",
           "tgspool_received_total{bot=\"shop@123456789\",box=\"in\"} 0",
           "tgspool_upstream_pending{bot=\"shop\"} 12", "tgspool_upstream_asked_age_seconds{bot=\"shop\"} 1",
           "tgspool_webhooks_total{bot=\"shop\",code=\"200\"} 0",
           "tgspool_webhooks_total{bot=\"shop\",code=\"401\"} 3");
}

/* ---- readiness ---------------------------------------------------------------------------------- */

static void expect_ready(struct rig *r, const char *what)
{
    struct reply p;

    rig_expect(r, &p, what ? 503 : 200, "GET", "/readyz", NULL);
    const struct json *reasons = json_get(p.root, "reasons");
    assert_int_equal(json_true(json_get(p.root, "ready")), !what);
    assert_int_equal(json_length(reasons), what ? 1 : 0);
    if (what) {
        assert_string_equal(reply_text(json_item(reasons, 0), "what"), what);
        assert_true(*reply_text(json_item(reasons, 0), "message"));
        assert_memory_equal(reply_text(json_item(reasons, 0), "next"), "tgspool ", 8);
    }
    reply_clear(&p);
}

static void test_ready(void **state)
{
    struct rig *r = rig_of(state);

    r->has_standing = true;
    expect_ready(r, NULL);
    r->standing.failing_since = r->w.now;
    snprintf(r->standing.reason, sizeof(r->standing.reason), "no route to host");
    expect_ready(r, "intake");
    world_begin(&r->w);
    spool_pause(r->w.box, true, true);
    world_commit(&r->w);
    expect_ready(r, NULL); /* a person wanted it */
    rig_arrive(r, 1, 100);
    r->w.now += MINUTES(5);
    expect_ready(r, NULL);
    r->w.now += 1;
    expect_ready(r, "oldest");
    r->oldest_limit = HOURS(1);
    expect_ready(r, NULL);
    r->w.now += HOURS(1);
    expect_ready(r, "oldest");
    world_begin(&r->w);
    spool_pause(r->w.box, false, true);
    world_commit(&r->w);
    expect_ready(r, NULL);
    spool_hold(r->w.sp, "the disk is nearly full");
    expect_ready(r, "disk");
    spool_hold(r->w.sp, NULL);
    expect_ready(r, NULL);
}

#define RIG_TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(test_all_is_there_from_the_start),
        RIG_TEST(test_what_happened),
        RIG_TEST(test_orphans),
        RIG_TEST(test_ready),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
