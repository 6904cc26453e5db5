/* What happens within one tick: every pair of operations on one lane, in every state its head can be in; duplicates inside
 * and across ticks; ids that restart; callbacks. */
#include "model.h"

enum op { ACCEPT, DONE, RETRY, CLAIM, REPLAY, DISCARD, DISCARD_FORCED, REAP, OPS };
static const char *const op_names[] = {"accept", "complete", "retry", "claim",
                                       "replay", "discard",  "force", "reap"};

enum head { ABSENT, READY, HELD_BY_PUSH, HELD_BY_PULL, LEASE_OVER, WAITING, WAIT_OVER, HEADS };

/* A lane with one done and one dead event, a head in the given state, and one behind it (but where it is absent). */
static void set_scene(struct model *m, enum head head, int64_t chat)
{
    struct world *w = m->w;
    bool pull = head == HELD_BY_PULL || head == LEASE_OVER;

    model_begin(m);
    model_accept(m, chat * 10, chat, 0);
    model_claim(m, 1, PUSH);
    model_commit(m);
    model_begin(m);
    model_complete(m, w->held[0], OUTCOME_DONE, -1);
    model_accept(m, chat * 10 + 1, chat, 0);
    model_discard(m, m->events[1].seq, false);
    if (head != ABSENT) {
        model_accept(m, chat * 10 + 2, chat, 0);
        model_accept(m, chat * 10 + 3, chat, 0);
    }
    if (head > READY)
        model_claim(m, 1, pull ? PULL : PUSH);
    model_commit(m);
    if (head == LEASE_OVER)
        world_wait(w, w->policy.lease_ms);
    if (head == WAITING || head == WAIT_OVER) {
        model_begin(m);
        model_complete(m, w->held[0], OUTCOME_RETRY, 1000);
        model_commit(m);
        world_wait(w, head == WAITING ? 999 : 1000);
    }
}

static void act(struct model *m, enum op op, int64_t chat)
{
    struct world *w = m->w;
    uint64_t head = m->n > 2 ? m->events[2].seq : m->events[1].seq;

    switch (op) {
    case ACCEPT:
        model_accept(m, chat * 10 + 4 + (int64_t)m->n, chat, 0);
        break;
    case DONE:
    case RETRY:
        if (w->n_held)
            model_complete(m, w->held[0], op == DONE ? OUTCOME_DONE : OUTCOME_RETRY, -1);
        break;
    case CLAIM:
        model_claim(m, 9, PULL);
        break;
    case REPLAY:
        model_replay(m, m->events[0].seq);
        break;
    case DISCARD:
    case DISCARD_FORCED:
        model_discard(m, head, op == DISCARD_FORCED);
        break;
    case REAP:
        model_work(m);
        break;
    case OPS:
        break;
    }
}

static void every_pair_on_one_lane(void **state)
{
    static struct model m;
    struct world *w = *state;
    int64_t chat = 0;

    model_init(&m, w);
    for (int head = 0; head < HEADS; head++)
        for (int a = 0; a < OPS; a++)
            for (int b = 0; b < OPS; b++) {
                if ((head + a + b) % ONE_IN != 0) /* each pair with some heads */
                    continue;
                print_message("\rhead %d, %s then %s       ", head, op_names[a], op_names[b]);
                set_scene(&m, (enum head)head, ++chat);
                model_begin(&m);
                act(&m, (enum op)a, chat);
                act(&m, (enum op)b, chat);
                model_commit(&m);
                world_verify(w);
                model_drain(&m);
                model_fold(&m);
            }
    print_message("\n");
}

/* Four of them in one tick, in all orders that matter, without looking at the store between scenes. */
static void many_on_one_lane(void **state)
{
    static struct model m;
    struct world *w = *state;
    int64_t chat = 0;

    model_init(&m, w);
    for (int i = 0; i < OPS * OPS * OPS; i++) {
        set_scene(&m, i % 2 ? LEASE_OVER : HELD_BY_PUSH, ++chat);
        model_begin(&m);
        act(&m, (enum op)(i % OPS), chat);
        act(&m, (enum op)(i / OPS % OPS), chat);
        act(&m, CLAIM, chat);
        act(&m, (enum op)(i / OPS / OPS), chat);
        model_commit(&m);
        model_drain(&m);
        model_fold(&m);
    }
}

static void duplicates_inside_and_across_ticks(void **state)
{
    struct world *w = *state;
    char *json = world_message(5, 1, "x"), *other = world_message(5, 1, "y");
    uint64_t first = 0, second = 0, seq = 0;

    world_begin(w);
    assert_int_equal(world_accept_json(w, json, &first), ACCEPTED_NEW);
    assert_int_equal(world_accept_json(w, json, &seq), ACCEPTED_DUPLICATE);
    assert_int_equal(world_accept_json(w, json, NULL), ACCEPTED_DUPLICATE);
    assert_int_equal(world_accept_json(w, other, &second), ACCEPTED_NEW); /* same id, other bytes */
    world_commit(w);
    assert_int_equal(w->happened[HAPPENED_ACCEPTED], 2);
    for (int i = 0; i < 2; i++, world_reopen(w, 1000)) {
        world_begin(w);
        assert_int_equal(world_accept_json(w, json, &seq), ACCEPTED_DUPLICATE);
        assert_int_equal(world_accept_json(w, other, &seq), ACCEPTED_DUPLICATE);
        world_commit(w);
    }
    world_end(w, world_take_seq(w, PUSH, first), OUTCOME_DONE, -1);
    world_begin(w); /* also when it has ended */
    assert_int_equal(world_accept_json(w, json, &seq), ACCEPTED_DUPLICATE);
    world_commit(w);
    struct event_ref ref = {.bot = "shop", .box = BOX_IN, .update_id = 5};
    assert_ptr_equal(spool_resolve(w->sp, &ref, &seq), w->box);
    assert_int_equal(seq, second); /* the newer one is meant */
    struct spool_counts c = world_status(w).counts;
    assert_int_equal(c.received, 2);
    assert_int_equal(c.duplicates, 7);
    assert_int_equal(c.pending, 1);
    world_verify(w);
    free(json);
    free(other);
}

static void two_bots_may_have_the_same_update(void **state)
{
    struct world *w = *state;
    char *json = world_message(5, 1, "x");
    uint64_t seq;

    world_begin(w);
    struct spool_box *mine = w->box, *theirs = spool_attach(w->sp, BOT_ID + 1, BOX_IN, "second", &w->policy);
    assert_int_equal(world_accept_json(w, json, &seq), ACCEPTED_NEW);
    w->box = theirs;
    assert_int_equal(world_accept_json(w, json, &seq), ACCEPTED_NEW);
    w->box = mine;
    world_commit(w);
    assert_ptr_equal(spool_find_box(w->sp, "second", BOX_IN), theirs);
    assert_null(spool_find_box(w->sp, "second", BOX_OUT));
    assert_null(spool_find_box(w->sp, "third", BOX_IN));
    assert_string_equal(spool_box_bot(theirs), "second");
    assert_int_equal(spool_box_bot_id(theirs), BOT_ID + 1);
    assert_int_equal(spool_box_which(theirs), BOX_IN);
    assert_ptr_equal(spool_of(theirs), w->sp);
    unsigned n = 0;
    for (struct spool_box *b = NULL; (b = spool_next_box(w->sp, b)) != NULL;)
        n++;
    assert_int_equal(n, 2);
    world_verify(w);
    free(json);
}

/* Telegram restarts update_id at a random number, maybe a lower one; seq is the order. */
static void ids_that_restart(void **state)
{
    struct world *w = *state;
    uint64_t a = world_arrive(w, 727334708, 1), b = world_arrive(w, 117314199, 1),
             c = world_arrive(w, 117314200, 1);

    assert_true(a < b && b < c);
    world_end(w, world_take_seq(w, PUSH, a), OUTCOME_DONE, -1);
    world_end(w, world_take_seq(w, PUSH, b), OUTCOME_DONE, -1);
    world_end(w, world_take_seq(w, PUSH, c), OUTCOME_DONE, -1);
}

static void what_has_no_id_is_kept_dead(void **state)
{
    struct world *w = *state;
    uint64_t seq = 0, broken = 0;
    struct update u;

    world_begin(w);
    assert_int_equal(world_accept_json(w, "{\"message\":{\"chat\":{\"id\":1}}}", &seq), ACCEPTED_NEW);
    assert_int_equal(world_accept_json(w, "{\"message\":{\"chat\":{\"id\":1}}}", NULL), ACCEPTED_DUPLICATE);
    memset(&u, 0, sizeof(u));
    u.bytes = LIT("{\"update_id\":9,\"message\":{\xFF\0");
    u.has_id = true;
    u.id = 9;
    assert_int_equal(spool_accept(w->box, &u, true, &broken), ACCEPTED_NEW);
    assert_int_equal(spool_accept(w->box, &u, true, NULL), ACCEPTED_DUPLICATE);
    world_commit(w);
    world_expect(w, seq, STATE_DEAD, REASON_REJECTED, 0);
    world_expect(w, broken, STATE_DEAD, REASON_REJECTED, 0);
    struct event ev;
    struct event_state st;
    struct buf record = BUF_EMPTY;
    assert_int_equal(spool_get(w->box, broken, &ev, &st, &record), 0);
    assert_true(slice_eq(ev.payload, u.bytes));
    assert_true(ev.has_update_id && ev.update_id == 9);
    buf_free(&record);
    assert_null(world_take(w, PUSH));
    uint64_t good = world_arrive(w, 10, 1);
    world_end(w, world_take_seq(w, PUSH, good), OUTCOME_DONE, -1);
    assert_int_equal(world_status(w).counts.dead_by_reason[REASON_REJECTED], 2);
    world_verify(w);
}

static unsigned called;
static bool called_ok;

static void count_call(void *arg, bool ok)
{
    (void)arg;
    called++;
    called_ok = ok;
}

static void accept_from_callback(void *arg, bool ok)
{
    struct world *w = arg;

    assert_true(ok);
    world_accept(w, 77, 7, "from a callback");
    spool_on_durable(w->sp, count_call, w);
}

static void callbacks(void **state)
{
    struct world *w = *state;
    int a, b;

    called = 0;
    world_begin(w);
    spool_on_written(w->sp, count_call, &a);
    spool_on_durable(w->sp, count_call, &b);
    spool_on_durable(w->sp, count_call, &a);
    spool_forget(w->sp, &a);
    assert_int_equal(called, 0);
    spool_commit(w->sp);
    assert_int_equal(called, 1);
    assert_true(called_ok);
    called = 0;
    world_begin(w);
    spool_on_durable(w->sp, accept_from_callback, w);
    spool_commit(w->sp);
    assert_int_equal(called, 0); /* it belongs to the next batch */
    world_step(w);
    assert_int_equal(called, 1);
    assert_int_equal(world_status(w).counts.pending, 1);
    called = 0;
    world_begin(w);
    spool_on_durable(w->sp, count_call, &b);
    world_close(w); /* commits what is open */
    assert_int_equal(called, 1);
    world_open(w);
}

static uint64_t syncs(struct world *w)
{
    struct spool_commit_stats st;

    spool_commit_stats(w->sp, &st);
    return st.syncs;
}

/* A client may be told later of what an earlier batch wrote without a sync: then that is synced first. */
static void durable_without_a_batch(void **state)
{
    struct world *w = *state;

    called = 0;
    world_commit(w);
    uint64_t before = syncs(w);
    for (int i = 0; i < 3; i++) {
        world_begin(w);
        spool_pause(w->box, true, i % 2);
        spool_commit(w->sp);
        assert_int_equal(syncs(w), before);
    }
    spool_on_written(w->sp, count_call, w);
    spool_commit(w->sp);
    assert_int_equal(syncs(w), before);
    spool_on_durable(w->sp, count_call, w);
    spool_commit(w->sp);
    assert_int_equal(syncs(w), before + 1);
    spool_on_durable(w->sp, count_call, w);
    spool_commit(w->sp);
    assert_int_equal(syncs(w), before + 1); /* nothing is left to sync */
    assert_int_equal(called, 3);
}

static void a_batch_has_its_limits(void **state)
{
    struct world *w = *state;
    char *big = xmalloc(300001);

    world_begin(w);
    for (int i = 0; i < 999; i++)
        world_accept(w, i, i, "");
    assert_false(spool_batch_full(w->sp));
    world_accept(w, 999, 999, "");
    assert_true(spool_batch_full(w->sp));
    world_commit(w);
    world_begin(w);
    assert_false(spool_batch_full(w->sp));
    memset(big, 'x', 300000);
    big[300000] = '\0';
    for (int i = 0; i < 14; i++) {
        assert_false(spool_batch_full(w->sp) && i < 12);
        world_accept(w, 5000 + i, 1, big);
    }
    assert_true(spool_batch_full(w->sp));
    world_commit(w);
    world_verify(w);
    free(big);
}

static void positions(void **state)
{
    struct world *w = *state;
    struct poll_position p = {.api_root = "https://api.telegram.org",
                              .offset = 727334709,
                              .newest_update_at = START},
                         q;

    memset(&q, 0xA5, sizeof(q));
    spool_get_position(w->box, &q);
    assert_true(q.api_root[0] == '\0' && q.offset == 0 && q.newest_update_at == 0);
    world_begin(w);
    spool_set_position(w->box, &p);
    spool_get_position(w->box, &q);
    assert_int_equal(q.offset, 727334709); /* seen at once */
    world_commit(w);
    world_reopen(w, 0);
    spool_get_position(w->box, &q);
    assert_string_equal(q.api_root, p.api_root);
    assert_int_equal(q.offset, 727334709);
    assert_int_equal(q.newest_update_at, START);
    world_verify(w);
}

#define tick_test(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        tick_test(every_pair_on_one_lane),
        tick_test(many_on_one_lane),
        tick_test(duplicates_inside_and_across_ticks),
        tick_test(two_bots_may_have_the_same_update),
        tick_test(ids_that_restart),
        tick_test(what_has_no_id_is_kept_dead),
        tick_test(callbacks),
        tick_test(durable_without_a_batch),
        tick_test(a_batch_has_its_limits),
        tick_test(positions),
    };
    return cmocka_run_group_tests_name("spool ticks", tests, NULL, NULL);
}
