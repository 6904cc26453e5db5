/* worker against a real child that answers rightly, wrongly, or not at all. */
#include "../unit/unit.h"

#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "deliver/slots.h"
#include "rig.h"

static void one_event(struct rig *r, const char *mode, const char *update)
{
    rig_init(r, DELIVER_WORKER);
    rig_handler(r, mode);
    fake_add(&r->box, slice_str(update));
}

static bool is_idle(struct rig *r)
{
    return slots_idle(r->slots);
}

static struct fake_outcome outcome_of(const char *mode, const char *update, int64_t lease_ms)
{
    struct rig r;

    one_event(&r, mode, update);
    r.box.lease_ms = lease_ms;
    rig_open(&r, NULL);
    rig_run(&r, 1);
    assert_int_equal(r.box.n_outcomes, 1);
    struct fake_outcome o = r.box.outcomes[0];
    rig_close(&r);
    return o;
}

static void answers_and_deaths(void **state)
{
    static const struct {
        const char *mode, *what;
        enum outcome_kind kind;
        int64_t after_ms;
        const char *error;
    } rows[] = {
        {"worker", "ok", OUTCOME_DONE, -1, ""},
        {"worker", "crlf", OUTCOME_DONE, -1, ""},
        {"worker", "calls", OUTCOME_DONE, -1, ""},
        {"worker", "twice", OUTCOME_DONE, -1, ""},
        {"worker", "ok-die", OUTCOME_DONE, -1, ""},
        {"worker", "chatter", OUTCOME_DONE, -1, ""},
        {"worker", "fail", OUTCOME_RETRY, 7000, "no luck"},
        {"worker", "fail-bare", OUTCOME_RETRY, -1, ""},
        {"worker", "fail-text", OUTCOME_RETRY, 300000, ""},
        {"worker", "fail-odd", OUTCOME_RETRY, -1, ""},
        {"worker", "dead", OUTCOME_REJECTED, -1, "never"},
        {"worker", "unknown", OUTCOME_RETRY, -1, ""},
        {"worker", "garbage", OUTCOME_RETRY, -1, ""},
        {"worker", "big", OUTCOME_RETRY, -1, "the worker wrote a line of more than 8 MiB"},
        {"worker", "close", OUTCOME_RETRY, -1, "the worker closed its standard output"},
        {"worker", "die", OUTCOME_RETRY, -1, "the worker died: exit status 3: boom"},
        {"worker", "die-late", OUTCOME_RETRY, -1, "the worker died: exit status 3"},
        {"quick", "ok", OUTCOME_RETRY, -1, "the worker died: exit status 4"},
        {"deaf", "ok", OUTCOME_UNAVAILABLE, -1, "the worker died: exit status 4"},
        {"half", "ok", OUTCOME_UNAVAILABLE, -1, "the worker died: exit status 4"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char update[128];
        snprintf(update, sizeof(update), "{\"update_id\":101,\"do\":\"%s\"}", rows[i].what);
        struct fake_outcome o = outcome_of(rows[i].mode, update, 20000);
        check_row(i, o.kind == rows[i].kind);
        check_row(i, o.after_ms == rows[i].after_ms);
        if (strcmp(o.error, rows[i].error))
            fail_msg("row %zu: error '%s'", i, o.error);
    }
}

/* What a success records: good calls, one that is none, keys, and what is no key. */
static void calls_and_keys(void **state)
{
    struct fake_outcome o = outcome_of("worker", "{\"update_id\":101,\"do\":\"calls\"}", 20000);

    (void)state;
    assert_int_equal(o.kind, OUTCOME_DONE);
    assert_string_equal(o.said, "key k1\nkey k2\n"
                                "sendMessage chat:5 {\"method\":\"sendMessage\",\"chat_id\":5}\n"
                                "refused: a call must be an object with \"method\"  event:0 7\n"
                                "once sendMessage event:0 {\"method\":\"sendMessage\",\"once\":true}\n"
                                "refused: this method is not taken from an answer logOut event:0 "
                                "{\"method\":\"logOut\"}\n");
    o = outcome_of("worker", "{\"update_id\":101,\"do\":\"fail-calls\"}", 20000);
    assert_int_equal(o.kind, OUTCOME_RETRY);
    assert_string_equal(o.said, ""); /* only a success records anything */
    o = outcome_of("worker", "{\"update_id\":101,\"do\":\"odd-calls\"}", 20000);
    assert_int_equal(o.kind, OUTCOME_DONE); /* whatever is wrong with them */
    assert_string_equal(o.said, "refused: a call must be an object with \"method\"  event:0 \"x\"\n");
}

static void the_line(void **state)
{
    struct fake_outcome o = outcome_of("worker", "{\"update_id\":101,\r\n\"do\":\"echo\"}", 20000);
    char want[512];
    const char *at = strstr(o.error, "'received_at':");

    (void)state;
    assert_non_null(at);
    snprintf(want, sizeof(want),
             "{'id':'shop/101','bot':'shop','update_id':101,'kind':'message','lane':'chat:7','attempt':2,"
             "'key':'4242:101:deadbeef','received_at':%ld,'age':3,'update':{'update_id':101,  'do':'echo'}}$",
             strtol(at + 14, NULL, 10));
    assert_string_equal(o.error, want);
}

static void what_cannot_be_started_is_unavailable(void **state)
{
    static const char *const programs[] = {"/no/such/program", "/etc/passwd"};
    struct rig r;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
        one_event(&r, "worker", "{}");
        r.argv[0] = (char *)(uintptr_t)programs[i];
        rig_open(&r, NULL);
        rig_run(&r, 1);
        check_row(i, r.box.outcomes[0].kind == OUTCOME_UNAVAILABLE);
        check_row(i, strstr(r.box.outcomes[0].error, " cannot be started: "));
        rig_close(&r);
    }
}

static void one_child_for_many_events(void **state)
{
    struct rig r;

    (void)state;
    one_event(&r, "worker", "{\"do\":\"pid\"}");
    fake_add(&r.box, LIT("{\"do\":\"garbage\"}"));
    fake_add(&r.box, LIT("{\"do\":\"twice\"}"));
    fake_add(&r.box, LIT("{\"do\":\"pid\"}"));
    rig_open(&r, NULL);
    rig_run(&r, 4);
    assert_string_equal(fake_outcome(&r.box, 1)->error, fake_outcome(&r.box, 4)->error);
    assert_int_equal(fake_outcome(&r.box, 2)->kind, OUTCOME_RETRY);
    assert_int_equal(fake_outcome(&r.box, 3)->kind, OUTCOME_DONE);
    assert_false(slots_idle(r.slots)); /* the child is there */
    rig_close(&r);
}

static void many_children_at_once(void **state)
{
    struct rig r;

    (void)state;
    one_event(&r, "worker", "{\"do\":\"extend\"}");
    r.bot.concurrency = 3;
    fake_add(&r.box, LIT("{\"do\":\"extend\"}"));
    fake_add(&r.box, LIT("{\"do\":\"extend\"}"));
    int64_t from = clock_now();
    rig_open(&r, NULL);
    rig_run(&r, 3);
    assert_in_range(clock_now() - from, 1490, 4400); /* in turn: 4500 */
    rig_close(&r);
}

static void a_dead_child_is_replaced(void **state)
{
    static const struct {
        const char *update;
        enum outcome_kind kind;
        bool dies; /* by itself, after its answer */
    } rows[] = {
        {"{\"do\":\"ok-die\"}", OUTCOME_DONE, true},    {"{\"do\":\"ok-die\"}", OUTCOME_DONE, true},
        {"{\"do\":\"big\"}", OUTCOME_RETRY, false},     {"{\"do\":\"ok-close\"}", OUTCOME_DONE, false},
        {"{\"do\":\"ok-close\"}", OUTCOME_DONE, false}, {"{\"do\":\"die\"}", OUTCOME_RETRY, false},
        {"{\"do\":\"ok\"}", OUTCOME_DONE, false},
    };
    struct rig r;

    (void)state;
    rig_init(&r, DELIVER_WORKER);
    rig_handler(&r, "worker");
    rig_open(&r, NULL);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        fake_add(&r.box, slice_str(rows[i].update));
        rig_run(&r, i + 1);
        check_row(i, fake_outcome(&r.box, i + 1)->kind == rows[i].kind);
        if (rows[i].dies) /* an event given in the moment of its death would be unread: unavailable */
            rig_run_until(&r, is_idle);
        else if (strstr(rows[i].update, "close")) /* known, but not yet ended for it */
            rig_run_for(&r, 500);
    }
    rig_close(&r);
}

/* Three deaths within a second of the start: then it is the worker, not the event. A success starts the count
 * anew. */
static void three_quick_deaths(void **state)
{
    struct rig r;

    (void)state;
    one_event(&r, "worker", "{\"do\":\"die\"}");
    static const char *const what[] = {"die", "ok", "die", "die", "die", "die"};
    char updates[6][32];
    for (size_t i = 0; i < 6; i++) {
        snprintf(updates[i], sizeof(updates[i]), "{\"do\":\"%s\"}", what[i]);
        fake_add(&r.box, slice_str(updates[i]));
    }
    rig_open(&r, NULL);
    rig_run(&r, 7);
    static const enum outcome_kind kinds[] = {OUTCOME_RETRY,      OUTCOME_RETRY, OUTCOME_DONE,
                                              OUTCOME_RETRY,      OUTCOME_RETRY, OUTCOME_UNAVAILABLE,
                                              OUTCOME_UNAVAILABLE};
    for (size_t i = 0; i < 7; i++)
        check_row(i, fake_outcome(&r.box, i + 1)->kind == kinds[i]);
    rig_close(&r);
}

/* ---- the lease ---------------------------------------------------------------------------------- */

static void lease_over(void **state)
{
    struct rig r;

    (void)state;
    one_event(&r, "worker", "{\"do\":\"pid\"}");
    fake_add(&r.box, LIT("{\"do\":\"hang\"}"));
    fake_add(&r.box, LIT("{\"do\":\"pid\"}"));
    r.box.lease_ms = 1500;
    rig_open(&r, NULL);
    rig_run(&r, 3);
    assert_int_equal(fake_outcome(&r.box, 2)->kind, OUTCOME_LEASE_EXPIRED);
    assert_string_equal(fake_outcome(&r.box, 2)->error, "the worker did not answer within the lease");
    assert_string_not_equal(fake_outcome(&r.box, 1)->error, fake_outcome(&r.box, 3)->error);
    rig_close(&r);
}

/* An interpreter that takes longer than the lease to start costs no try: the lease begins when the event is read. */
static void slow_to_start(void **state)
{
    struct rig r;

    (void)state;
    one_event(&r, "worker", "{\"do\":\"ok\"}");
    char *script = xasprintf("sleep 2; exec '%s' worker", handler_path());
    rig_script(&r, script);
    r.box.lease_ms = 1000;
    rig_open(&r, NULL);
    rig_run(&r, 1);
    assert_int_equal(r.box.n_outcomes, 1);
    assert_int_equal(r.box.outcomes[0].kind, OUTCOME_DONE);
    rig_close(&r);
    free(script);

    one_event(&r, "worker", "{\"do\":\"hang\"}"); /* and is a lease like any other then */
    script = xasprintf("sleep 2; exec '%s' worker", handler_path());
    rig_script(&r, script);
    r.box.lease_ms = 1000;
    rig_open(&r, NULL);
    rig_run(&r, 1);
    assert_int_equal(r.box.outcomes[0].kind, OUTCOME_LEASE_EXPIRED);
    rig_close(&r);
    free(script);
}

static void lease_over_stubborn(void **state)
{
    int64_t from = clock_now();
    struct fake_outcome o =
        outcome_of("stubborn", "{\"do\":\"hang\"}", 2000); /* by then it ignores SIGTERM */

    (void)state;
    assert_int_equal(o.kind, OUTCOME_LEASE_EXPIRED);
    assert_in_range(o.at - from, 6995, 60000);
}

static void more_time(void **state)
{
    struct rig r;

    (void)state;
    one_event(&r, "worker", "{\"do\":\"extend\"}");
    r.box.lease_ms = 1000;
    rig_open(&r, NULL);
    rig_run(&r, 1);
    assert_int_equal(r.box.outcomes[0].kind, OUTCOME_DONE);
    assert_int_equal(r.box.extended, 1);
    r.box.unhealthy = true; /* the store is away: more time all the same */
    fake_add(&r.box, LIT("{\"do\":\"extend\"}"));
    rig_run(&r, 2);
    assert_int_equal(r.box.outcomes[1].kind, OUTCOME_DONE);
    rig_close(&r);
    assert_int_equal(outcome_of("worker", "{\"do\":\"extend-number\"}", 400).kind, OUTCOME_LEASE_EXPIRED);
}

/* ---- input -------------------------------------------------------------------------------------- */

static char *big_update(const char *what)
{
    size_t n = 1000000;
    char *big = xmalloc(n + 64);
    int head = snprintf(big, 64, "{\"do\":\"%s\",\"x\":\"", what);

    memset(big + head, 'x', n);
    strcpy(big + head + n, "\"}");
    return big;
}

static void large_updates(void **state)
{
    char *big = big_update("ok");
    struct fake_outcome o = outcome_of("worker", big, 20000);

    (void)state;
    assert_int_equal(o.kind, OUTCOME_DONE);
    o = outcome_of("deaf", big, 20000);
    assert_int_equal(o.kind, OUTCOME_UNAVAILABLE);
    o = outcome_of("quick", big, 20000); /* it read a part of the line only */
    assert_int_equal(o.kind, OUTCOME_UNAVAILABLE);
    free(big);
}

/* ---- shutdown and reload ------------------------------------------------------------------------ */

static void shutdown(void **state)
{
    struct rig r;

    (void)state;
    one_event(&r, "worker", "{\"do\":\"hang\"}");
    fake_add(&r.box, LIT("{\"do\":\"ok\"}"));
    fake_add(&r.box, LIT("{\"do\":\"extend\"}"));
    r.bot.concurrency = 3;
    r.bot.shutdown_wait_ms = 4000;
    rig_open(&r, NULL);
    rig_run(&r, 1);
    slots_shutdown(r.slots); /* one hangs, one is idle, one is busy for 1.5 s */
    slots_shutdown(r.slots);
    rig_run_until(&r, is_idle);
    assert_int_equal(fake_outcome(&r.box, 1)->kind, OUTCOME_RELEASED);
    assert_int_equal(fake_outcome(&r.box, 2)->kind, OUTCOME_DONE);
    assert_int_equal(fake_outcome(&r.box, 3)->kind, OUTCOME_DONE);
    rig_close(&r);
}

static void fewer_and_more_slots(void **state)
{
    struct rig r;
    struct err e = ERR_NONE;

    (void)state;
    one_event(&r, "worker", "{\"do\":\"pid\"}");
    rig_open(&r, NULL);
    rig_run(&r, 1);
    r.bot.concurrency = 2; /* the same program: the child stays */
    assert_int_equal(slots_reconfigure(r.slots, &r.bot, NULL, &e), 0);
    fake_add(&r.box, LIT("{\"do\":\"pid\"}"));
    rig_run(&r, 2);
    assert_string_equal(fake_outcome(&r.box, 1)->error, fake_outcome(&r.box, 2)->error);
    r.bot.concurrency = 0;
    assert_int_equal(slots_reconfigure(r.slots, &r.bot, NULL, &e), 0);
    rig_run_until(&r, is_idle);
    rig_handler(&r, "stubborn"); /* another program, by a reload while an event is held */
    r.bot.concurrency = 1;
    assert_int_equal(slots_reconfigure(r.slots, &r.bot, NULL, &e), 0);
    fake_add(&r.box, LIT("{\"do\":\"extend\"}"));
    rig_run_for(&r, 100);
    rig_handler(&r, "worker");
    assert_int_equal(slots_reconfigure(r.slots, &r.bot, NULL, &e), 0);
    fake_add(&r.box, LIT("{\"do\":\"ok\"}"));
    rig_run(&r, 4);
    assert_int_equal(fake_outcome(&r.box, 3)->kind, OUTCOME_DONE);
    assert_int_equal(fake_outcome(&r.box, 4)->kind, OUTCOME_DONE);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_and_deaths),
        cmocka_unit_test(calls_and_keys),
        cmocka_unit_test(the_line),
        cmocka_unit_test(what_cannot_be_started_is_unavailable),
        cmocka_unit_test(one_child_for_many_events),
        cmocka_unit_test(many_children_at_once),
        cmocka_unit_test(a_dead_child_is_replaced),
        cmocka_unit_test(three_quick_deaths),
        cmocka_unit_test(lease_over),
        cmocka_unit_test(slow_to_start),
        cmocka_unit_test(lease_over_stubborn),
        cmocka_unit_test(more_time),
        cmocka_unit_test(large_updates),
        cmocka_unit_test(shutdown),
        cmocka_unit_test(fewer_and_more_slots),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests_name("worker", tests, NULL, NULL);
}
