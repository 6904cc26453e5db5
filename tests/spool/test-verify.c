/* The test of the test: spool_verify must find whatever one breaks, else "verify is clean" says nothing. Rows of the database
 * are changed behind the spool's back, one fault a store. */
#include "world.h"

#include "wire/keys.h"
#include "wire/records.h"

static const struct lane lane1 = {LANE_CHAT, 1, 0};

/* One key is held by @7, another done. Lane 1: @1 done, @2 dead, @3 the head, @4 and @5 behind it; @6 waits for a retry; @7 is held by a consumer. */
static void set_scene(struct world *w)
{
    uint64_t a = world_arrive(w, 1, 1), b, d, e;

    world_end(w, world_take_seq(w, PUSH, a), OUTCOME_DONE, -1);
    b = world_arrive(w, 2, 1);
    world_end(w, world_take_seq(w, PUSH, b), OUTCOME_REJECTED, -1);
    world_arrive(w, 3, 1);
    world_arrive(w, 4, 1);
    world_arrive(w, 5, 1);
    world_begin(w);
    spool_pause(w->box, false, true);
    world_commit(w);
    d = world_arrive(w, 6, 2);
    e = world_arrive(w, 7, 3);
    assert_int_equal(e, 7);
    world_begin(w);
    spool_pause(w->box, false, false);
    assert_int_equal(world_claim(w, 3, PULL), 3);
    world_commit(w);
    world_end(w, world_held(w, d), OUTCOME_RETRY, 12345);
    world_end(w, world_held(w, 3), OUTCOME_RELEASED, -1);
    world_begin(w);
    assert_int_equal(spool_key(w->box, LIT("held"), 0, 7, world_held(w, 7)->token), KEY_FIRST);
    assert_int_equal(spool_key(w->box, LIT("done"), 0, 0, NULL), KEY_FIRST);
    world_commit(w);
    world_verify(w);
}

struct hand {
    struct db *db;
    struct world *w;
};

static struct hand open_behind_its_back(struct world *w)
{
    world_close(w);
    return (struct hand){.w = w, .db = world_db(w->dir, DB_OPEN)};
}

static void del(struct hand *h, enum family f, struct key k)
{
    struct err e = ERR_NONE;

    assert_int_equal(db_get(h->db, f, key_slice(&k), NULL, &e), 1); /* else the fault would be no fault */
    db_delete(h->db, f, key_slice(&k));
}

static void put(struct hand *h, enum family f, struct key k, struct slice v)
{
    db_put(h->db, f, key_slice(&k), v);
}

static void get(struct hand *h, enum family f, struct key k, struct buf *v)
{
    struct err e = ERR_NONE;

    assert_int_equal(db_get(h->db, f, key_slice(&k), v, &e), 1);
}

#define EVENT(seq) key_event(BOT_ID, BOX_IN, seq)
#define STATE(class, seq) key_state(BOT_ID, BOX_IN, class, seq)
#define DUE(class, time, seq) key_due(BOT_ID, BOX_IN, class, time, seq)
#define ORDER(seq) key_order(BOT_ID, BOX_IN, 0, lane1, seq)

static void order_entry_gone(struct hand *h)
{
    del(h, FAMILY_ORDER, ORDER(4));
}

static void order_entry_too_many(struct hand *h)
{
    put(h, FAMILY_ORDER, ORDER(99), LIT(""));
}

static void order_entry_of_the_head(struct hand *h)
{
    put(h, FAMILY_ORDER, ORDER(3), LIT(""));
}

static void ready_entry_gone(struct hand *h)
{
    del(h, FAMILY_DUE, DUE(DUE_READY, 0, 3));
}

static void ready_entry_too_many(struct hand *h)
{
    put(h, FAMILY_DUE, DUE(DUE_READY, 0, 4), LIT(""));
}

static void ready_entry_of_nothing(struct hand *h)
{
    put(h, FAMILY_DUE, DUE(DUE_READY, 0, 99), LIT(""));
}

static void retry_entry_gone(struct hand *h)
{
    del(h, FAMILY_DUE, DUE(DUE_RETRY, h->w->now + 12345, 6));
}

static void lease_entry_gone(struct hand *h)
{
    del(h, FAMILY_DUE, DUE(DUE_LEASE, h->w->now + 60000, 7));
}

static void lane_gone(struct hand *h)
{
    del(h, FAMILY_LANES, key_lane(BOT_ID, BOX_IN, 0, lane1));
}

static void put_lane(struct hand *h, uint64_t head, uint64_t tail)
{
    struct buf v = BUF_EMPTY;

    record_lane(&v, &(struct lane_record){head, tail});
    put(h, FAMILY_LANES, key_lane(BOT_ID, BOX_IN, 0, lane1), buf_slice(&v));
    buf_free(&v);
}

static void lane_with_another_head(struct hand *h)
{
    put_lane(h, 4, 5);
}

static void lane_with_another_tail(struct hand *h)
{
    put_lane(h, 3, 4);
}

static void lane_of_nothing(struct hand *h)
{
    struct buf v = BUF_EMPTY;

    record_lane(&v, &(struct lane_record){1, 1});
    put(h, FAMILY_LANES, key_lane(BOT_ID, BOX_IN, 0, (struct lane){LANE_CHAT, 9, 0}), buf_slice(&v));
    buf_free(&v);
}

static void state_gone(struct hand *h)
{
    del(h, FAMILY_STATES, STATE(CLASS_UNFINISHED, 4));
}

static void ended_state_gone(struct hand *h)
{
    del(h, FAMILY_STATES, STATE(CLASS_DONE, 1));
}

static void two_states(struct hand *h)
{
    struct buf v = BUF_EMPTY;

    get(h, FAMILY_STATES, STATE(CLASS_DONE, 1), &v);
    put(h, FAMILY_STATES, STATE(CLASS_DEAD, 1), buf_slice(&v));
    buf_free(&v);
}

static void state_that_is_none(struct hand *h)
{
    put(h, FAMILY_STATES, STATE(CLASS_DEAD, 2), LIT("\xFF\xFF"));
}

static void event_gone(struct hand *h)
{
    del(h, FAMILY_EVENTS, EVENT(1));
}

static void event_that_is_none(struct hand *h)
{
    put(h, FAMILY_EVENTS, EVENT(1), LIT("\xFF"));
}

static void payload_changed(struct hand *h)
{
    struct buf v = BUF_EMPTY;

    get(h, FAMILY_EVENTS, EVENT(5), &v);
    v.p[v.n - 3] ^= 1;
    put(h, FAMILY_EVENTS, EVENT(5), buf_slice(&v));
    buf_free(&v);
}

static void id_gone(struct hand *h)
{
    struct buf v = BUF_EMPTY;
    struct event ev;

    get(h, FAMILY_EVENTS, EVENT(2), &v);
    assert_int_equal(record_event_decode(buf_slice(&v), &ev), 0);
    del(h, FAMILY_IDS, key_id(BOT_ID, 2, ev.hash));
    buf_free(&v);
}

/* The key of family marks, by its hash or by its expiry, of the one that is done or held. */
static struct key find_mark(struct hand *h, bool done, bool by_expiry)
{
    struct key lower = {.b = {0}, .n = 1}, upper = {.b = {1}, .n = 1}, found = {.n = 0};
    struct err e = ERR_NONE;
    struct mark_record m;
    unsigned char hash[MARK_BYTES];
    int64_t bot;

    struct db_iter *it = db_iter_new(h->db, FAMILY_MARKS, key_slice(&lower), key_slice(&upper));
    for (; db_iter_valid(it); db_iter_next(it)) {
        assert_int_equal(record_mark_decode(db_iter_value(it), &m), 0);
        assert_int_equal(key_mark_decode(db_iter_key(it), &bot, hash), 0);
        if (m.done == done)
            found = by_expiry ? key_mark_expiry(m.expiry, bot, hash) : key_mark(bot, hash);
    }
    assert_int_equal(db_iter_free(it, &e), 0);
    assert_true(found.n > 0);
    return found;
}

static void mark_without_expiry(struct hand *h)
{
    del(h, FAMILY_MARKS, find_mark(h, true, true));
}

static void expiry_without_mark(struct hand *h)
{
    del(h, FAMILY_MARKS, find_mark(h, true, false));
}

static void mark_held_by_another(struct hand *h)
{
    struct buf v = BUF_EMPTY;

    record_mark(&v, &(struct mark_record){.ttl = 1, .box = BOX_IN, .seq = 6});
    put(h, FAMILY_MARKS, find_mark(h, false, false), buf_slice(&v));
    buf_free(&v);
}

static void mark_that_is_none(struct hand *h)
{
    put(h, FAMILY_MARKS, find_mark(h, false, false), LIT("\xFF"));
}

static void change_box(struct hand *h, void (*change)(struct box_record *r))
{
    struct buf v = BUF_EMPTY;
    struct box_record r;

    get(h, FAMILY_META, key_box(BOT_ID, BOX_IN), &v);
    assert_int_equal(record_box_decode(buf_slice(&v), &r), 0);
    change(&r);
    buf_clear(&v);
    record_box(&v, &r);
    put(h, FAMILY_META, key_box(BOT_ID, BOX_IN), buf_slice(&v));
    free(r.epochs);
    buf_free(&v);
}

static void one_done_more(struct box_record *r)
{
    r->counters[COUNT_DONE]++;
}

static void one_held_less(struct box_record *r)
{
    r->counters[COUNT_PROCESSING]--;
}

static void one_unfinished_more(struct box_record *r)
{
    r->epochs[0].unfinished++;
}

static void an_old_seq(struct box_record *r)
{
    r->next_seq = 5;
}

static void done_counter(struct hand *h)
{
    change_box(h, one_done_more);
}

static void processing_counter(struct hand *h)
{
    change_box(h, one_held_less);
}

static void unfinished_counter(struct hand *h)
{
    change_box(h, one_unfinished_more);
}

static void next_seq(struct hand *h)
{
    change_box(h, an_old_seq);
}

static void nothing(struct hand *h)
{
    (void)h;
}

static void note(void *arg, const char *sentence)
{
    assert_true(strlen(sentence) > 20);
    assert_null(strstr(sentence, "text")); /* nothing of a payload */
    ++*(unsigned *)arg;
}

static void every_fault_is_found(void **state)
{
    static const struct {
        const char *name;
        void (*break_it)(struct hand *h);
    } rows[] = {
#define ROW(f) {#f, f}
        ROW(nothing),
        ROW(order_entry_gone),
        ROW(order_entry_too_many),
        ROW(order_entry_of_the_head),
        ROW(ready_entry_gone),
        ROW(ready_entry_too_many),
        ROW(ready_entry_of_nothing),
        ROW(retry_entry_gone),
        ROW(lease_entry_gone),
        ROW(lane_gone),
        ROW(lane_with_another_head),
        ROW(lane_with_another_tail),
        ROW(lane_of_nothing),
        ROW(state_gone),
        ROW(ended_state_gone),
        ROW(two_states),
        ROW(state_that_is_none),
        ROW(event_gone),
        ROW(event_that_is_none),
        ROW(payload_changed),
        ROW(id_gone),
        ROW(done_counter),
        ROW(processing_counter),
        ROW(unfinished_counter),
        ROW(next_seq),
        ROW(mark_without_expiry),
        ROW(expiry_without_mark),
        ROW(mark_held_by_another),
        ROW(mark_that_is_none),
    };
    (void)state;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        void *made = NULL;
        assert_int_equal(world_setup(&made), 0);
        struct world *w = made;
        set_scene(w);
        struct hand h = open_behind_its_back(w);
        rows[i].break_it(&h);
        struct err e = ERR_NONE;
        assert_int_equal(db_write(h.db, true, &e), DB_WRITTEN);
        db_close(h.db);
        world_open(w);
        unsigned told = 0;
        int faults = spool_verify(w->sp, note, &told, NULL);
        assert_int_equal(told, faults);
        if ((faults > 0) != (i > 0))
            fail_msg("%s: %d faults", rows[i].name, faults);
        world_teardown(&made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_fault_is_found)};

    return cmocka_run_group_tests_name("spool verify", tests, NULL, NULL);
}
