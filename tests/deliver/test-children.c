/* spool.max_children: two bots share few places, take turns, and idle workers give way. */
#include "../unit/unit.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "deliver/children.h"
#include "deliver/slots.h"
#include "net/loop.h"
#include "rig.h"

#define UPDATE LIT("{\"do\":\"ok\"}")

/* Bots on one loop. Their handlers write a + when they begin and a - when they end. */
struct house {
    struct loop *loop;
    struct children *children;
    struct rig bots[2];
    size_t wanted; /* outcomes, of both */
    int64_t give_up;
    char dir[64], journal[80], script[256];
};

static void house_open(struct house *h, unsigned max, enum deliver_mode first, enum deliver_mode second)
{
    struct err e = ERR_NONE;
    const enum deliver_mode modes[] = {first, second};

    memset(h, 0, sizeof(*h));
    strcpy(h->dir, "/tmp/tgspool-children-XXXXXX");
    assert_non_null(mkdtemp(h->dir));
    snprintf(h->journal, sizeof(h->journal), "%s/journal", h->dir);
    snprintf(h->script, sizeof(h->script), "printf + >>%s; sleep 0.05; printf - >>%s", h->journal,
             h->journal);
    h->loop = loop_new();
    h->children = children_new(max);
    for (size_t i = 0; i < 2; i++) {
        struct rig *r = &h->bots[i];
        rig_init(r, modes[i]);
        r->bot.concurrency = 3;
        r->box.lease_ms = 60000;
        if (modes[i] == DELIVER_EXEC)
            rig_script(r, h->script);
        else
            rig_handler(r, "worker");
        snprintf(r->bot.name, sizeof(r->bot.name), "bot%zu", i);
        r->slots = slots_new(h->loop, &r->box, &r->bot, NULL, &e);
        assert_non_null(r->slots);
        slots_limit_children(r->slots, h->children);
    }
}

static size_t outcomes(const struct house *h)
{
    return h->bots[0].box.n_outcomes + h->bots[1].box.n_outcomes;
}

static int64_t tick(void *arg)
{
    struct house *h = arg;
    int64_t next = h->give_up;

    for (size_t i = 0; i < 2; i++)
        slots_tick(h->bots[i].slots);
    for (size_t i = 0; i < 2; i++)
        fake_commit(&h->bots[i].box, true);
    for (size_t i = 0; i < 2; i++) {
        int64_t at = slots_next_deadline(h->bots[i].slots);
        next = at < next ? at : next;
    }
    if (outcomes(h) >= h->wanted || clock_now() >= h->give_up)
        loop_stop(h->loop);
    return next;
}

static void house_run(struct house *h, size_t wanted)
{
    h->wanted = wanted;
    h->give_up = clock_now() + SECONDS(30);
    loop_run(h->loop, tick, h);
    assert_true(outcomes(h) >= wanted);
}

static void add(struct house *h, size_t bot, unsigned n)
{
    while (n-- > 0)
        fake_add(&h->bots[bot].box, UPDATE);
}

/* The most handlers that ran at once, by their own word. */
static int most_at_once(const struct house *h)
{
    char text[4096];
    int now = 0, most = 0, fd = open(h->journal, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text));

    if (fd >= 0)
        close(fd);
    for (ssize_t i = 0; i < n; i++) {
        now += text[i] == '+' ? 1 : -1;
        most = now > most ? now : most;
    }
    return most;
}

static void house_close(struct house *h)
{
    for (size_t i = 0; i < 2; i++)
        slots_free(h->bots[i].slots);
    assert_int_equal(children_used(h->children), 0);
    assert_int_equal(children_waiting(h->children), 0);
    children_free(h->children);
    loop_free(h->loop);
    unlink(h->journal);
    rmdir(h->dir);
}

static void no_more_than_allowed_and_in_turn(void **state)
{
    struct house h;

    (void)state;
    house_open(&h, 2, DELIVER_EXEC, DELIVER_EXEC);
    add(&h, 0, 8);
    add(&h, 1, 8);
    house_run(&h, 8);
    /* half-way neither has been left behind */
    assert_in_range(h.bots[0].box.n_outcomes, 2, 6);
    assert_in_range(h.bots[1].box.n_outcomes, 2, 6);
    house_run(&h, 16);
    assert_int_equal(most_at_once(&h), 2);
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < h.bots[i].box.n_outcomes; k++)
            assert_int_equal(h.bots[i].box.outcomes[k].kind, OUTCOME_DONE);
    house_close(&h);
}

static void a_raised_limit_is_used(void **state)
{
    struct house h;

    (void)state;
    house_open(&h, 1, DELIVER_EXEC, DELIVER_EXEC);
    add(&h, 0, 2);
    house_run(&h, 2);
    assert_int_equal(most_at_once(&h), 1);
    children_set_max(h.children, 6);
    assert_int_equal(children_max(h.children), 6);
    snprintf(h.script, sizeof(h.script), "printf + >>%s; sleep 0.5; printf - >>%s", h.journal, h.journal);
    add(&h, 0, 3);
    add(&h, 1, 3);
    house_run(&h, 8);
    assert_in_range(most_at_once(&h), 2, 6);
    house_close(&h);
}

static void an_idle_worker_gives_way(void **state)
{
    struct house h;

    (void)state;
    house_open(&h, 1, DELIVER_WORKER, DELIVER_EXEC);
    add(&h, 0, 2);
    house_run(&h, 2);
    assert_int_equal(children_used(h.children), 1); /* the worker stays */
    add(&h, 1, 2);
    house_run(&h, 4);
    add(&h, 0, 1); /* and comes back */
    house_run(&h, 5);
    house_close(&h);
}

static void a_busy_worker_bot_shares_too(void **state)
{
    struct house h;

    (void)state;
    house_open(&h, 1, DELIVER_WORKER, DELIVER_WORKER);
    add(&h, 0, 10);
    add(&h, 1, 10);
    house_run(&h, 10);
    assert_true(h.bots[0].box.n_outcomes > 0);
    assert_true(h.bots[1].box.n_outcomes > 0);
    house_run(&h, 20);
    house_close(&h);
}

static void who_ends_lets_others_pass(void **state)
{
    struct house h;

    (void)state;
    house_open(&h, 1, DELIVER_WORKER, DELIVER_EXEC);
    add(&h, 0, 1);
    house_run(&h, 1);
    slots_shutdown(h.bots[0].slots); /* its idle worker ends */
    add(&h, 1, 2);
    house_run(&h, 3);
    house_close(&h);
}

/* A bot that waits, and needs no children any more after a reload, is in nobody's way. */
static void who_needs_none_any_more_lets_others_pass(void **state)
{
    static char url[] = "http://127.0.0.1:1/";
    struct house h;
    struct err e = ERR_NONE;

    (void)state;
    house_open(&h, 1, DELIVER_EXEC, DELIVER_EXEC);
    add(&h, 0, 1);
    add(&h, 1, 2);
    house_run(&h, 1);
    assert_int_equal(children_waiting(h.children), 1);
    h.bots[1].bot.deliver = DELIVER_HTTP;
    h.bots[1].bot.url = url;
    assert_int_equal(slots_reconfigure(h.bots[1].slots, &h.bots[1].bot, NULL, &e), 0);
    add(&h, 0, 2);
    house_run(&h, 5);
    bool refused = false; /* by the url; one of the two may have been given to a process before */
    for (size_t i = 0; i < h.bots[1].box.n_outcomes; i++)
        refused |= h.bots[1].box.outcomes[i].kind == OUTCOME_UNAVAILABLE;
    assert_true(refused);
    assert_int_equal(children_waiting(h.children), 0);
    house_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_more_than_allowed_and_in_turn),
        cmocka_unit_test(a_raised_limit_is_used),
        cmocka_unit_test(an_idle_worker_gives_way),
        cmocka_unit_test(a_busy_worker_bot_shares_too),
        cmocka_unit_test(who_ends_lets_others_pass),
        cmocka_unit_test(who_needs_none_any_more_lets_others_pass),
    };

    return cmocka_run_group_tests_name("children", tests, NULL, NULL);
}
