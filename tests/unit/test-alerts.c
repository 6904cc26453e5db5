/* core/alert and core/alerts: when alerts are raised, told again and taken back, to the millisecond. */
#include "unit.h"

#include "core/alerts.h"

#define T0 1000000000000

/* ---- conditions --------------------------------------------------------------------------------- */

static const struct alert_rule rule = {.hold_ms = 5000, .repeat_ms = 60000, .rest_ms = 10000};

static void a_condition_fires_when_it_held(void **state)
{
    (void)state;
    struct alert_watch w = {0};

    assert_int_equal(alert_look_at(&w, &rule), TIME_NEVER);
    assert_int_equal(alert_look(&w, &rule, T0, T0), ALERT_QUIET);
    assert_int_equal(alert_look_at(&w, &rule), T0 + 5000);
    assert_int_equal(alert_look(&w, &rule, T0, T0 + 4999), ALERT_QUIET);
    assert_int_equal(alert_look(&w, &rule, T0, T0 + 5000), ALERT_FIRES);
    assert_int_equal(w.since, T0);
    assert_int_equal(alert_look(&w, &rule, T0, T0 + 5001), ALERT_QUIET);
    assert_int_equal(alert_look_at(&w, &rule), T0 + 65000);
    assert_int_equal(alert_look(&w, &rule, T0, T0 + 64999), ALERT_QUIET);
    assert_int_equal(alert_look(&w, &rule, T0, T0 + 65000), ALERT_AGAIN);
    assert_int_equal(alert_look(&w, &rule, T0, T0 + 124999), ALERT_QUIET);
    assert_int_equal(alert_look(&w, &rule, T0, T0 + 125000), ALERT_AGAIN);
}

static void one_that_passes_in_time_is_not_told(void **state)
{
    (void)state;
    struct alert_watch w = {0};

    assert_int_equal(alert_look(&w, &rule, T0, T0 + 4999), ALERT_QUIET);
    assert_int_equal(alert_look(&w, &rule, 0, T0 + 5000), ALERT_QUIET);
    assert_int_equal(alert_look(&w, &rule, 0, T0 + 90000), ALERT_QUIET);
    assert_int_equal(alert_look_at(&w, &rule), TIME_NEVER);
    /* it begins anew: the time before does not count */
    assert_int_equal(alert_look(&w, &rule, T0 + 100000, T0 + 104999), ALERT_QUIET);
    assert_int_equal(alert_look(&w, &rule, T0 + 100000, T0 + 105000), ALERT_FIRES);
}

static void its_end_is_told_once_after_a_rest(void **state)
{
    (void)state;
    struct alert_watch w = {0};

    assert_int_equal(alert_look(&w, &rule, T0, T0 + 5000), ALERT_FIRES);
    assert_int_equal(alert_look(&w, &rule, 0, T0 + 20000), ALERT_QUIET);
    assert_int_equal(alert_look_at(&w, &rule), T0 + 30000);
    assert_int_equal(alert_look(&w, &rule, 0, T0 + 29999), ALERT_QUIET);
    assert_int_equal(alert_look(&w, &rule, T0 + 29999, T0 + 29999), ALERT_QUIET); /* back: the same alert */
    assert_int_equal(w.since, T0);
    assert_int_equal(alert_look(&w, &rule, 0, T0 + 30000), ALERT_QUIET);
    assert_int_equal(alert_look(&w, &rule, 0, T0 + 39999), ALERT_QUIET);
    assert_int_equal(alert_look(&w, &rule, 0, T0 + 40000), ALERT_ENDS);
    assert_int_equal(alert_look(&w, &rule, 0, T0 + 40001), ALERT_QUIET);
    assert_int_equal(alert_look_at(&w, &rule), TIME_NEVER);
}

/* One that comes and goes: a minute on, a minute off. Without damping that would be 60 alerts in an hour. */
static void one_that_flaps_sends_few(void **state)
{
    (void)state;
    struct alert_watch w = {0};
    const struct alert_rule hourly = {.hold_ms = 0, .repeat_ms = HOURS(1), .rest_ms = 10000};
    unsigned told = 0;

    for (int64_t t = 0; t < HOURS(1); t += 1000) {
        bool on = t / 60000 % 2 == 0;
        told += alert_look(&w, &hourly, on ? T0 + t / 60000 * 60000 : 0, T0 + t) != ALERT_QUIET;
    }
    assert_in_range(told, 2, 8);
}

/* ---- what is counted ---------------------------------------------------------------------------- */

static const struct alert_count_rule three = {3, 60000, 3600000, 900000};

#define count(c, total, at, turn, expected)                                        \
    do {                                                                           \
        uint64_t value_;                                                           \
        assert_int_equal(alert_count(c, &three, total, T0 + (at), &value_), turn); \
        assert_int_equal(value_, expected);                                        \
    } while (0)

static void what_happens_is_gathered(void **state)
{
    (void)state;
    struct alert_counter c = {0};

    count(&c, 100, 0, ALERT_QUIET, 0); /* those of before are no news */
    count(&c, 101, 1000, ALERT_QUIET, 0);
    count(&c, 150, 2000, ALERT_QUIET, 0);
    assert_int_equal(alert_count_at(&c, &three), T0 + 61000);
    count(&c, 150, 60999, ALERT_QUIET, 0);
    count(&c, 150, 61000, ALERT_FIRES, 50);
    assert_int_equal(c.since, T0 + 1000);
    count(&c, 160, 62000, ALERT_QUIET, 0); /* told with the next repeat */
    count(&c, 161, 800000, ALERT_QUIET, 0);
    count(&c, 162, 1600000, ALERT_QUIET, 0);
    count(&c, 163, 2400000, ALERT_QUIET, 0);
    count(&c, 164, 3200000, ALERT_QUIET, 0);
    count(&c, 164, 3660999, ALERT_QUIET, 0);
    assert_int_equal(alert_count_at(&c, &three), T0 + 3661000);
    count(&c, 164, 3661000, ALERT_AGAIN, 14);
    assert_int_equal(alert_count_at(&c, &three), T0 + 4100000);
    count(&c, 164, 4099999, ALERT_QUIET, 0);
    count(&c, 164, 4100000, ALERT_ENDS, 64);
    assert_int_equal(alert_count_at(&c, &three), TIME_NEVER);
    count(&c, 164, 9000000, ALERT_QUIET, 0);
}

static void too_few_are_forgotten(void **state)
{
    (void)state;
    struct alert_counter c = {0};

    count(&c, 0, 0, ALERT_QUIET, 0);
    count(&c, 2, 1, ALERT_QUIET, 0);
    assert_int_equal(alert_count_at(&c, &three), T0 + 3600001);
    count(&c, 2, 3600001, ALERT_QUIET, 0);
    assert_int_equal(alert_count_at(&c, &three), TIME_NEVER);
    count(&c, 3, 3700000, ALERT_QUIET, 0);
    count(&c, 5, 4700000, ALERT_FIRES, 3); /* three within the hour */
}

/* The store was opened again and knows less than before. */
static void a_total_that_falls_counts_anew(void **state)
{
    (void)state;
    struct alert_counter c = {0};

    count(&c, 10, 0, ALERT_QUIET, 0);
    count(&c, 4, 1000, ALERT_QUIET, 0);
    count(&c, 7, 2000, ALERT_QUIET, 0);
    count(&c, 7, 62000, ALERT_FIRES, 3);
}

/* ---- alerts out of facts ------------------------------------------------------------------------ */

struct heard {
    struct alert list[32];
    size_t n;
};

static void hear(void *arg, const struct alert *a)
{
    struct heard *h = arg;

    assert_true(h->n < ARRAY_LEN(h->list));
    assert_true(a->message[0] && a->next[0]);
    h->list[h->n++] = *a;
}

static const struct alert_policy policy = {.oldest_ms = MINUTES(5), .dead = 1, .repeat_ms = HOURS(1)};
static const struct alert_spool well = {.disk_free = -1};

static int64_t look(struct alerts *a, const struct alert_spool *s, const struct alert_bot *b, int64_t now)
{
    alerts_begin(a, now);
    alerts_see_spool(a, s);
    if (b)
        alerts_see_bot(a, b);
    return alerts_end(a, !s->store_why);
}

#define expect(h, i, wanted, is_over, wanted_value)         \
    do {                                                    \
        assert_int_equal((h)->n, (i) + 1);                  \
        assert_int_equal((h)->list[i].kind, wanted);        \
        assert_int_equal((h)->list[i].over, is_over);       \
        assert_int_equal((h)->list[i].value, wanted_value); \
    } while (0)

static void age_is_told_at_its_threshold(void **state)
{
    (void)state;
    struct heard h = {0};
    struct alerts *a = alerts_new(&policy, hear, &h);
    struct alert_bot b = {.bot = "shop", .oldest_at = T0, .unfinished = 12, .upstream_pending = -1};

    assert_int_equal(look(a, &well, &b, T0), T0 + 300000);
    look(a, &well, &b, T0 + 299999);
    assert_int_equal(h.n, 0);
    look(a, &well, &b, T0 + 300000);
    expect(&h, 0, ALERT_OLDEST, false, 300);
    assert_string_equal(h.list[0].bot, "shop");
    assert_int_equal(h.list[0].since, T0 + 300000);
    assert_string_equal(h.list[0].message, "the oldest unfinished update waits for 5m; 12 unfinished in all");
    assert_string_equal(h.list[0].next, "tgspool list --bot shop --state pending,processing");
    look(a, &well, &b, T0 + 300000 + 3599999);
    look(a, &well, &b, T0 + 300000 + 3600000);
    expect(&h, 1, ALERT_OLDEST, false, 3900);
    b.oldest_at = 0;
    assert_int_equal(look(a, &well, &b, T0 + 4000000), T0 + 4010000);
    look(a, &well, &b, T0 + 4009999);
    look(a, &well, &b, T0 + 4010000);
    expect(&h, 2, ALERT_OLDEST, true, 0);
    assert_string_equal(h.list[2].message, "no event waits for 5m any more");
    assert_int_equal(look(a, &well, &b, T0 + 4010001), TIME_NEVER);
    alerts_free(a);
}

/* A person paused it: no alert, but a reminder a day. */
static void a_pause_is_reminded_of_daily(void **state)
{
    (void)state;
    struct heard h = {0};
    struct alerts *a = alerts_new(&policy, hear, &h);
    struct alert_bot b = {.bot = "shop", .oldest_at = T0, .paused_deliver = true, .upstream_pending = -1};

    assert_int_equal(look(a, &well, &b, T0), T0 + 300000);
    look(a, &well, &b, T0 + 299999);
    assert_int_equal(h.n, 0);
    look(a, &well, &b, T0 + 300000);
    expect(&h, 0, ALERT_PAUSED, false, 300);
    assert_string_equal(h.list[0].next, "tgspool resume shop");
    for (int64_t t = 300000; t < 300000 + HOURS(24); t += MINUTES(10))
        look(a, &well, &b, T0 + t);
    assert_int_equal(h.n, 1);
    look(a, &well, &b, T0 + 300000 + HOURS(24));
    expect(&h, 1, ALERT_PAUSED, false, 86700);
    b.paused_deliver = false; /* what waited for a day is old at once */
    look(a, &well, &b, T0 + 300000 + HOURS(25));
    expect(&h, 2, ALERT_OLDEST, false, 90300);
    look(a, &well, &b, T0 + 310000 + HOURS(25));
    expect(&h, 3, ALERT_PAUSED, true, 0);
    alerts_free(a);
}

static void intake_waits_for_what_may_pass(void **state)
{
    (void)state;
    struct heard h = {0};
    struct alerts *a = alerts_new(&policy, hear, &h);
    struct alert_bot b = {.bot = "shop",
                          .intake_since = T0,
                          .intake_by_itself = true,
                          .intake_why = "the name cannot be resolved",
                          .upstream_pending = -1};

    assert_int_equal(look(a, &well, &b, T0 + 10000), T0 + 120000);
    look(a, &well, &b, T0 + 119999);
    assert_int_equal(h.n, 0);
    look(a, &well, &b, T0 + 120000);
    expect(&h, 0, ALERT_INTAKE, false, 120);
    assert_non_null(strstr(h.list[0].message, "the name cannot be resolved"));
    b.intake_since = 0;
    look(a, &well, &b, T0 + 200000);
    look(a, &well, &b, T0 + 210000);
    expect(&h, 1, ALERT_INTAKE, true, 0);
    b.intake_since = T0 + 300000;
    b.intake_by_itself = false; /* a revoked token does not pass */
    look(a, &well, &b, T0 + 309999);
    look(a, &well, &b, T0 + 310000);
    expect(&h, 2, ALERT_INTAKE, false, 10);
    alerts_free(a);
}

static void telegram_near_its_limits(void **state)
{
    (void)state;
    struct heard h = {0};
    struct alerts *a = alerts_new(&policy, hear, &h);
    struct alert_bot b = {.bot = "shop", .upstream_pending = 79999};

    look(a, &well, &b, T0);
    assert_int_equal(h.n, 0);
    b.upstream_pending = 80000;
    look(a, &well, &b, T0 + 1000);
    expect(&h, 0, ALERT_UPSTREAM, false, 80000);
    b.upstream_pending = 12;
    look(a, &well, &b, T0 + 2000);
    look(a, &well, &b, T0 + 62000);
    expect(&h, 1, ALERT_UPSTREAM, true, 12);
    /* a few that wait for long: 80 % of a day */
    b.paused_intake = true;
    look(a, &well, &b, T0 + 70000);
    h.n = 0;
    look(a, &well, &b, T0 + 70000 + HOURS(24) * 8 / 10 - 1);
    expect(&h, 0, ALERT_PAUSED, false, 69119);
    look(a, &well, &b, T0 + 70000 + HOURS(24) * 8 / 10);
    expect(&h, 1, ALERT_UPSTREAM, false, 12);
    alerts_free(a);
}

/* For want of room: that is told as `disk`, until updates are about to be dropped because of it. */
static void held_for_want_of_room(void **state)
{
    (void)state;
    struct heard h = {0};
    struct alerts *a = alerts_new(&policy, hear, &h);
    struct alert_bot b = {.bot = "shop", .held_since = T0, .upstream_pending = 3};
    const int64_t long_ago = T0 + HOURS(24) * 8 / 10;

    look(a, &well, &b, T0);
    look(a, &well, &b, long_ago - 1);
    assert_int_equal(h.n, 0);
    look(a, &well, &b, long_ago);
    expect(&h, 0, ALERT_UPSTREAM, false, 3);
    b.held_since = 0;
    look(a, &well, &b, long_ago + 1000);
    look(a, &well, &b, long_ago + 61000);
    expect(&h, 1, ALERT_UPSTREAM, true, 3);
    b.held_since = long_ago; /* nothing waits there */
    b.upstream_pending = 0;
    look(a, &well, &b, long_ago + HOURS(24));
    assert_int_equal(h.n, 2);
    alerts_free(a);
}

static void the_store_speaks_for_all(void **state)
{
    (void)state;
    struct heard h = {0};
    struct alerts *a = alerts_new(&policy, hear, &h);
    struct alert_bot b = {.bot = "shop", .oldest_at = T0 - HOURS(1), .upstream_pending = -1};
    struct alert_spool fails = {
        .store_why = "no space left", .disk_why = "4M are free", .disk_free = 4 << 20};

    look(a, &well, &b, T0);
    expect(&h, 0, ALERT_OLDEST, false, 3600);
    look(a, &fails, NULL, T0 + 1000); /* the bots cannot be seen: nothing of them is over */
    assert_int_equal(h.n, 3);
    assert_int_equal(h.list[1].kind, ALERT_STORE);
    assert_int_equal(h.list[2].kind, ALERT_DISK);
    assert_int_equal(h.list[2].value, 4 << 20);
    look(a, &well, &b, T0 + 2000);
    look(a, &well, &b, T0 + 12000);
    expect(&h, 3, ALERT_STORE, true, 1);
    alerts_begin(a, T0 + 13000); /* its section was removed */
    alerts_see_spool(a, &well);
    alerts_end(a, true);
    expect(&h, 4, ALERT_OLDEST, true, 0);
    assert_string_equal(h.list[4].bot, "shop");
    alerts_free(a);
}

static void dead_ones_and_leases(void **state)
{
    (void)state;
    struct heard h = {0};
    struct alerts *a = alerts_new(&policy, hear, &h);
    struct alert_bot b = {.bot = "shop", .dead = 7, .lease_expired = 2, .upstream_pending = -1};

    look(a, &well, &b, T0);
    b.dead = 1007;
    b.lease_expired = 3;
    assert_int_equal(look(a, &well, &b, T0 + 1000), T0 + 61000);
    look(a, &well, &b, T0 + 60999);
    assert_int_equal(h.n, 0);
    look(a, &well, &b, T0 + 61000);
    assert_int_equal(h.n, 2);
    assert_int_equal(h.list[0].kind, ALERT_DEAD);
    assert_int_equal(h.list[0].value, 1000);
    assert_string_equal(h.list[0].next, "tgspool list --bot shop --state dead");
    assert_int_equal(h.list[1].kind, ALERT_LEASE);
    assert_int_equal(h.list[1].value, 1);
    look(a, &well, &b, T0 + 1000 + MINUTES(15));
    assert_int_equal(h.n, 4);
    assert_true(h.list[2].over && h.list[3].over);
    assert_int_equal(h.list[2].value, 1000);
    alerts_free(a);
}

static void a_breaker_must_stay_open(void **state)
{
    (void)state;
    struct heard h = {0};
    struct alerts *a = alerts_new(&policy, hear, &h);
    struct alert_bot b = {.bot = "shop",
                          .breaker_since = T0,
                          .breaker_cause = BREAKER_UNAVAILABLE,
                          .unfinished = 3,
                          .upstream_pending = -1};

    look(a, &well, &b, T0 + 59999);
    assert_int_equal(h.n, 0);
    look(a, &well, &b, T0 + 60000);
    expect(&h, 0, ALERT_BREAKER, false, 60);
    assert_string_equal(
        h.list[0].message,
        "the handler cannot be reached or started, for 60s now; 3 events wait, and cost no tries");
    alerts_free(a);
}

static void those_that_are_made_outside(void **state)
{
    (void)state;
    struct alert a;

    alert_make_unstarted(&a, false, "cannot lock the directory", T0);
    assert_string_equal(alert_name(a.kind), "store");
    assert_non_null(strstr(a.message, "cannot lock the directory"));
    alert_make_unstarted(&a, true, "checksum mismatch", T0);
    assert_string_equal(alert_name(a.kind), "corruption");
    alert_make_test(&a, T0);
    assert_string_equal(alert_name(a.kind), "test");
    assert_string_equal(a.next, "tgspool status");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_condition_fires_when_it_held),
        cmocka_unit_test(one_that_passes_in_time_is_not_told),
        cmocka_unit_test(its_end_is_told_once_after_a_rest),
        cmocka_unit_test(one_that_flaps_sends_few),
        cmocka_unit_test(what_happens_is_gathered),
        cmocka_unit_test(too_few_are_forgotten),
        cmocka_unit_test(a_total_that_falls_counts_anew),
        cmocka_unit_test(age_is_told_at_its_threshold),
        cmocka_unit_test(a_pause_is_reminded_of_daily),
        cmocka_unit_test(intake_waits_for_what_may_pass),
        cmocka_unit_test(telegram_near_its_limits),
        cmocka_unit_test(held_for_want_of_room),
        cmocka_unit_test(the_store_speaks_for_all),
        cmocka_unit_test(dead_ones_and_leases),
        cmocka_unit_test(a_breaker_must_stay_open),
        cmocka_unit_test(those_that_are_made_outside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
