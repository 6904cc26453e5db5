/* A handover while the store fails: until it is known what is left, nobody is told that the bot may go elsewhere. */
#include "rig.h"

#include <signal.h>
#include <sys/resource.h>

#include "core/given_back.h"

static struct rig *rig;
static unsigned asked; /* times Telegram was told */

static int64_t now(void)
{
    return rig->w.now;
}

static int64_t us(void)
{
    return 0;
}

static bool rests(void *arg, const char *bot)
{
    (void)arg, (void)bot;
    return true;
}

static void *give_back(void *arg, const char *bot, given_back_fn *told, void *told_arg, char why[256])
{
    (void)bot, (void)told, (void)told_arg, (void)why;
    asked++;
    return arg;
}

static void give_back_end(void *given)
{
    (void)given;
}

static int setup(void **state)
{
    if (rig_setup(state) < 0)
        return -1;
    rig = *state;
    asked = 0;
    api_free(rig->api);
    rig->api = api_new(rig->w.sp, &(struct api_hooks){.version = "1.2.3",
                                                      .started_at = START,
                                                      .now = now,
                                                      .us = us,
                                                      .intake_rests = rests,
                                                      .give_back = give_back,
                                                      .give_back_end = give_back_end,
                                                      .arg = rig});
    return 0;
}

/* Lets every write of a file fail, or not. */
static void disk_full(bool full)
{
    struct rlimit l;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &l), 0);
    l.rlim_cur = full ? 1 : l.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &l), 0);
}

static void begin_handover(struct rig *r)
{
    struct reply p;

    rig_expect(r, &p, 200, "POST", "/v1/bots/shop/handover", NULL);
    assert_non_null(json_get(json_get(p.root, "breaker"), "open")); /* why it may take long */
    reply_clear(&p);
    rig_step(r);
    assert_int_equal(asked, 0);
}

static void end_the_last(struct rig *r, struct claim *c)
{
    const struct outcome done = {.kind = OUTCOME_DONE, .after_ms = -1};

    spool_begin(r->w.sp, r->w.now);
    assert_int_equal(spool_complete(r->w.box, c->ev.seq, c->token, &done), COMPLETED);
    spool_commit(r->w.sp);
}

static void when_all_is_handled(void **state)
{
    struct rig *r = *state;

    rig_arrive(r, 1, 1);
    struct claim *c = world_take(&r->w, true);
    begin_handover(r);
    end_the_last(r, c);
    rig_step(r);
    assert_int_equal(asked, 1);
}

static void not_while_the_store_fails(void **state)
{
    struct rig *r = *state;

    rig_arrive(r, 1, 1);
    struct claim *c = world_take(&r->w, true);
    begin_handover(r);
    disk_full(true);
    end_the_last(r, c); /* and that is lost */
    assert_false(spool_healthy(r->w.sp, NULL));
    for (int i = 0; i < 3; i++)
        rig_step(r);
    disk_full(false);
    assert_int_equal(asked, 0);
    assert_true(api_next_deadline(r->api) > r->w.now); /* no busy loop meanwhile */
    for (int i = 0; i < 100 && !asked; i++) {
        r->w.now += 1000;
        rig_step(r);
    }
    assert_int_equal(asked, 1);
    world_expect(&r->w, c->ev.seq, STATE_DONE, REASON_NONE, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(when_all_is_handled, setup, rig_teardown),
        cmocka_unit_test_setup_teardown(not_while_the_store_fails, setup, rig_teardown),
    };

    signal(SIGXFSZ, SIG_IGN);
    return cmocka_run_group_tests_name("handover", tests, NULL, NULL);
}
