/* Random operations against the model: hundreds of sequences, each with ticks, commits and restarts between. The seed is
 * printed when one fails; TGSPOOL_SEED=N runs that one alone, TGSPOOL_SEQUENCES=N so many. */
#include "model.h"

#define OPS 200
#define SEQUENCES 100

static uint64_t rng;
static uint64_t all_removed; /* by retention */

/* SplitMix64: the same numbers from the same seed, everywhere. */
static uint64_t next_random(void)
{
    uint64_t z = rng += UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static int64_t any(int64_t below)
{
    return (int64_t)(next_random() % (uint64_t)below);
}

static uint64_t any_seq(const struct model *m)
{
    return m->n ? m->events[any((int64_t)m->n)].seq : 99;
}

static void random_complete(struct model *m)
{
    static const enum outcome_kind kinds[] = {
        OUTCOME_DONE,     OUTCOME_DONE,    OUTCOME_DONE,        OUTCOME_RETRY,       OUTCOME_RETRY,
        OUTCOME_REJECTED, OUTCOME_LIMITED, OUTCOME_UNAVAILABLE, OUTCOME_UNAVAILABLE, OUTCOME_RELEASED};
    if (!m->w->n_held)
        return;
    struct claim *c = m->w->held[any((int64_t)m->w->n_held)];
    enum outcome_kind kind = kinds[any(ARRAY_LEN(kinds))];
    int64_t after = kind == OUTCOME_LIMITED || any(3) == 0 ? any(20000) : -1;
    unsigned calls = any(4) ? 0 : (unsigned)any(4);
    model_complete_with(m, c, kind, after, calls, any(4) ? -1 : (int)any(MODEL_KEYS));
}

static void random_key(struct model *m)
{
    struct claim *c = m->w->n_held && any(5) ? m->w->held[any((int64_t)m->w->n_held)] : NULL;

    model_ask_key(m, (int)any(MODEL_KEYS), c);
}

/* What a client of the drop-in API does: an offset, and the next run; rarely it starts anew. */
static void random_client(struct model *m)
{
    if (any(6) == 0)
        model_set_serve(m, !m->w->policy.serve);
    if (any(2))
        model_confirm(m, any(10) ? m->last_served + 1 - any(3) : any(2000));
    if (any(3))
        model_serve(m, 1 + (unsigned)any(8));
    if (any(20) == 0)
        model_drop(m, (uint64_t)any(6));
}

static void random_wait(struct model *m)
{
    static const int64_t spans[] = {1, 100, 3000, 3000, 20000, 70000};

    m->w->now += any(spans[any(ARRAY_LEN(spans))] + 1);
}

static void end_tick(struct model *m)
{
    model_work(m);
    if (any(4))
        model_claim(m, 1 + (unsigned)any(5), any(2) ? PUSH : PULL);
    model_commit(m);
    random_wait(m);
}

static void random_op(struct model *m)
{
    switch (any(19)) {
    case 0:
    case 1:
    case 2:
        model_accept(m, 1000 + any(40), any(6), (int)any(2));
        break;
    case 3:
    case 4:
    case 5:
    case 6:
        random_complete(m);
        break;
    case 7:
        if (m->w->n_held)
            model_extend(m, m->w->held[any((int64_t)m->w->n_held)], 1 + any(100000));
        break;
    case 8:
        model_replay(m, any_seq(m));
        break;
    case 9:
        model_discard(m, any_seq(m), any(2));
        break;
    case 10:
        if (any(6) == 0)
            model_pause(m, !m->paused);
        break;
    case 11:
        if (any(6) == 0) {
            static const enum order orders[] = {ORDER_CHAT, ORDER_CHAT, ORDER_CHAT,
                                                ORDER_NONE, ORDER_BOT,  ORDER_THREAD};
            end_tick(m);
            model_reopen(m, any(50000), orders[any(ARRAY_LEN(orders))]);
            model_begin(m);
        }
        break;
    case 12:
        random_key(m);
        break;
    case 13:
        if (m->calls)
            model_end_call(m, 1 + (uint64_t)any((int64_t)m->calls));
        break;
    case 14:
    case 15:
        random_client(m);
        break;
    default:
        end_tick(m);
        model_begin(m);
        break;
    }
}

static void run_sequence(struct world *w)
{
    static struct model m;

    w->policy.concurrency = 1 + (unsigned)any(6);
    w->policy.outcome.max_attempts = 2 + (unsigned)any(7);
    w->policy.lease_ms = any(2) ? 60000 : 5000;
    world_policy(w);
    if (any(4))
        world_retain(w, SECONDS(1 + any(60)), SECONDS(1 + any(200)), SECONDS(1 + any(100)));
    model_init(&m, w);
    model_begin(&m);
    for (int i = 0; i < OPS; i++)
        random_op(&m);
    end_tick(&m);
    world_verify(w);
    model_drain(&m);
    all_removed += m.removed;
}

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *s = getenv(name);

    return s ? strtoull(s, NULL, 10) : otherwise;
}

static void random_sequences(void **state)
{
    (void)state;
    uint64_t first = number_from("TGSPOOL_SEED", 1), n = number_from("TGSPOOL_SEQUENCES", OFTEN(SEQUENCES));

    if (getenv("TGSPOOL_SEED"))
        n = 1;
    for (uint64_t seed = first; seed < first + n; seed++) {
        void *w = NULL;
        fprintf(stderr, "\rseed %llu ",
                (unsigned long long)seed); /* the last one shown is the one that failed */
        rng = seed;
        assert_int_equal(world_setup(&w), 0);
        run_sequence(w);
        world_teardown(&w);
    }
    fprintf(stderr, "\n");
    if (n > 20)
        assert_true(all_removed > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_sequences)};

    return cmocka_run_group_tests_name("spool model", tests, NULL, NULL);
}
