/* What people ask of the spool: replay, discard, pause, expiry, look-ups, walks with cursors, export and import. */
#include "world.h"

static void replay(void **state)
{
    struct world *w = *state;
    uint64_t seq = world_arrive(w, 5, 1), behind, copy = 0, again = 0;

    world_begin(w);
    assert_int_equal(spool_replay(w->box, seq, "test", &copy), ACT_NOT_ENDED);
    assert_int_equal(spool_replay(w->box, 999, "test", &copy), ACT_UNKNOWN);
    world_commit(w);
    struct claim *c = world_take_seq(w, PUSH, seq);
    char key[EVENT_KEY_MAX], key_of_copy[EVENT_KEY_MAX];
    event_key(BOT_ID, &c->ev, key);
    world_begin(w);
    assert_int_equal(spool_replay(w->box, seq, "test", &copy), ACT_NOT_ENDED);
    world_commit(w);
    world_end(w, c, OUTCOME_REJECTED, -1);
    behind = world_arrive(w, 6, 1);
    world_begin(w);
    assert_int_equal(spool_replay(w->box, seq, "test", &copy), ACTED);
    world_commit(w);
    assert_true(copy > behind);
    world_expect(w, seq, STATE_DEAD, REASON_REJECTED, 1); /* the old one keeps its state */
    assert_int_equal(world_state(w, seq).replayed_as, copy);
    assert_int_equal(world_status(w).counts.dead, 1);
    assert_int_equal(world_status(w).counts.dead_settled, 1);
    world_expect(w, copy, STATE_PENDING, REASON_NONE, 0);
    struct event_ref ref = {.bot = "shop", .update_id = 5};
    uint64_t found = 0;
    assert_ptr_equal(spool_resolve(w->sp, &ref, &found), w->box);
    assert_int_equal(found, copy); /* the newer is meant */
    char *json = world_message(5, 1, "");
    world_begin(w);
    assert_int_equal(world_accept_json(w, json, NULL), ACCEPTED_DUPLICATE);
    world_commit(w);
    free(json);
    world_reopen(w, 0);
    world_end(w, world_take_seq(w, PUSH, behind), OUTCOME_DONE, -1); /* its lane's tail */
    c = world_take_seq(w, PUSH, copy);
    assert_int_equal(c->ev.replay_of, seq);
    assert_int_equal(c->attempt, 1);
    assert_string_equal(event_key(BOT_ID, &c->ev, key_of_copy), key);
    world_end(w, c, OUTCOME_DONE, -1);
    world_begin(w); /* a done one, and a copy, may be replayed too */
    assert_int_equal(spool_replay(w->box, behind, "test", &again), ACTED);
    assert_int_equal(spool_replay(w->box, copy, "test", &again), ACTED);
    world_commit(w);
    assert_int_equal(world_status(w).counts.pending, 2);
    world_verify(w);
}

static void discard(void **state)
{
    struct world *w = *state;
    uint64_t a = world_arrive(w, 1, 1), b = world_arrive(w, 2, 1), c = world_arrive(w, 3, 1),
             d = world_arrive(w, 4, 1);

    world_begin(w);
    assert_int_equal(spool_discard(w->box, 999, true, "test"), ACT_UNKNOWN);
    assert_int_equal(spool_discard(w->box, b, false, "test"), ACTED); /* from the middle */
    assert_int_equal(spool_discard(w->box, b, false, "test"), ACT_ENDED);
    world_commit(w);
    world_expect(w, b, STATE_DEAD, REASON_DISCARDED, 0);
    struct claim *held = world_take_seq(w, PUSH, a);
    world_begin(w);
    assert_int_equal(spool_discard(w->box, a, false, "test"), ACT_BUSY);
    world_commit(w);
    world_expect(w, a, STATE_PROCESSING, REASON_NONE, 0);
    world_begin(w);
    assert_int_equal(spool_discard(w->box, a, true, "test"), ACTED);
    assert_int_equal(world_complete(w, held, OUTCOME_DONE, -1), COMPLETE_LOST); /* its token is void */
    world_commit(w);
    world_expect(w, a, STATE_DEAD, REASON_DISCARDED, 0);
    world_begin(w);
    assert_int_equal(spool_discard(w->box, d, true, "test"), ACTED); /* the tail */
    world_commit(w);
    world_end(w, world_take_seq(w, PUSH, c), OUTCOME_RETRY, -1);
    world_begin(w);
    assert_int_equal(spool_discard(w->box, c, false, "test"),
                     ACTED); /* one that waits, the last of its lane */
    world_commit(w);
    world_verify(w);
    world_wait(w, 2000);
    world_step(w);
    assert_int_equal(spool_next_deadline(w->sp), TIME_NEVER);
    uint64_t e = world_arrive(w, 5, 1);
    world_end(w, world_take_seq(w, PUSH, e), OUTCOME_DONE, -1);
    assert_int_equal(world_status(w).counts.dead_by_reason[REASON_DISCARDED], 4);
    world_verify(w);
}

/* A dead letter: it stays dead, is counted as settled, once, and can still be replayed. */
static void discard_the_dead(void **state)
{
    struct world *w = *state;
    uint64_t a = world_arrive(w, 1, 1), b = world_arrive(w, 2, 2), c = world_arrive(w, 3, 3), copy;

    world_end(w, world_take_seq(w, PUSH, a), OUTCOME_REJECTED, -1);
    world_end(w, world_take_seq(w, PUSH, b), OUTCOME_REJECTED, -1);
    world_end(w, world_take_seq(w, PUSH, c), OUTCOME_DONE, -1);
    world_begin(w);
    assert_int_equal(spool_discard(w->box, c, true, "test"), ACT_ENDED); /* done */
    assert_int_equal(spool_replay(w->box, b, "test", &copy), ACTED);
    assert_int_equal(spool_discard(w->box, b, true, "test"), ACT_ENDED); /* replayed */
    assert_int_equal(spool_discard(w->box, a, false, "test"), ACTED);
    assert_int_equal(spool_discard(w->box, a, false, "test"), ACT_ENDED);
    world_commit(w);
    world_expect(w, a, STATE_DEAD, REASON_DISCARDED, 1);
    struct event_state st = world_state(w, a);
    assert_int_equal(st.n_history, 2);
    assert_int_equal(st.history[1].outcome, OUTCOME_DISCARDED);
    assert_int_equal(world_status(w).counts.dead, 2);
    assert_int_equal(world_status(w).counts.dead_settled, 2);
    assert_int_equal(world_status(w).counts.dead_by_reason[REASON_DISCARDED],
                     0); /* it died of something else */
    world_verify(w);
    world_begin(w);
    assert_int_equal(spool_replay(w->box, a, "test", &copy), ACTED);
    world_commit(w);
    assert_int_equal(world_status(w).counts.dead_settled, 2);
    world_verify(w);
}

/* Forced away in the tick in which it was claimed: nobody gets the claim, since a handler of it would run beside that of
 * the next in its lane. */
static void discard_what_was_claimed_in_this_tick(void **state)
{
    struct world *w = *state;
    uint64_t a = world_arrive(w, 1, 1), b = world_arrive(w, 2, 1);

    world_begin(w);
    assert_int_equal(world_claim(w, 1, PUSH), 1);
    assert_int_equal(spool_discard(w->box, a, false, "test"), ACT_BUSY);
    assert_int_equal(spool_discard(w->box, a, true, "test"), ACTED);
    assert_int_equal(world_claim(w, 1, PUSH), 1);
    world_commit(w);
    world_expect(w, a, STATE_DEAD, REASON_DISCARDED, 0);
    assert_null(world_held(w, a));
    assert_int_equal(w->lost_claims, 1);
    world_end(w, world_held(w, b), OUTCOME_DONE, -1);
    world_verify(w);
}

static void pause_is_durable_and_reaping_goes_on(void **state)
{
    struct world *w = *state;
    uint64_t a = world_arrive(w, 1, 1), b = world_arrive(w, 2, 2);
    struct claim *c = world_take_seq(w, PULL, a);

    world_begin(w);
    spool_pause(w->box, false, true);
    spool_pause(w->box, true, true);
    assert_int_equal(world_claim(w, 9, PUSH), 0);
    world_commit(w);
    assert_false(spool_claimable(w->box));
    world_wait(w, 60000);
    world_step(w);
    world_expect(w, a, STATE_PENDING, REASON_NONE, 1);
    world_drop(w, c);
    assert_null(world_take(w, PUSH));
    world_reopen(w, 1000);
    assert_true(world_status(w).paused_deliver && world_status(w).paused_intake);
    assert_null(world_take(w, PUSH));
    assert_int_equal(spool_next_deadline(w->sp), TIME_NEVER); /* no busy loop while paused */
    world_begin(w);
    spool_pause(w->box, false, false);
    assert_int_equal(world_claim(w, 9, PUSH), 2);
    world_commit(w);
    assert_true(world_status(w).paused_intake && !world_status(w).paused_deliver);
    world_end(w, world_held(w, a), OUTCOME_DONE, -1);
    world_end(w, world_held(w, b), OUTCOME_DONE, -1);
    world_verify(w);
}

static uint64_t arrive_callback(struct world *w, int64_t id, int64_t chat)
{
    char *json = xasprintf(
        "{\"update_id\":%d,\"callback_query\":{\"id\":\"1\",\"from\":{\"id\":1},\"message\":{\"chat\":{"
        "\"id\":%d}}}}",
        (int)id, (int)chat);
    uint64_t seq = 0;

    world_begin(w);
    assert_int_equal(world_accept_json(w, json, &seq), ACCEPTED_NEW);
    world_commit(w);
    free(json);
    return seq;
}

/* Ticks until nothing changes; what is handed over is ended with success. */
static void run_down(struct world *w)
{
    for (int i = 0; i < 20; i++) {
        struct claim *c = world_take(w, PUSH);
        if (c)
            world_end(w, c, OUTCOME_DONE, -1);
    }
}

static void expiry(void **state)
{
    struct world *w = *state;
    static const struct {
        enum expire_mode mode;
        int64_t rule_ms, wait_ms;
        enum state query, message;
    } rows[] = {
        {EXPIRE_OFF, 0, HOURS(1000), STATE_DONE, STATE_DONE},
        {EXPIRE_AUTO, 0, 150000, STATE_DONE, STATE_DONE},
        {EXPIRE_AUTO, 0, 150001, STATE_DEAD, STATE_DONE},
        {EXPIRE_AUTO, 0, HOURS(24) + 1, STATE_DEAD, STATE_DEAD},
        {EXPIRE_KINDS, 5000, 5000, STATE_DONE, STATE_DONE},
        {EXPIRE_KINDS, 5000, 5001, STATE_DEAD, STATE_DONE},
        {EXPIRE_KINDS, 5000, HOURS(1000), STATE_DEAD, STATE_DONE},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        w->policy.expire = rows[i].mode;
        w->policy.n_expire_rules = 1;
        strcpy(w->policy.expire_rules[0].kind, "callback_query");
        w->policy.expire_rules[0].ms = rows[i].rule_ms;
        world_policy(w);
        uint64_t query = arrive_callback(w, 10 + (int64_t)i * 10, 5),
                 message = world_arrive(w, 11 + (int64_t)i * 10, 5);
        uint64_t alone = world_arrive(w, 12 + (int64_t)i * 10, 6);
        world_wait(w, rows[i].wait_ms);
        run_down(w);
        check_row(i, world_state(w, query).state == rows[i].query);
        check_row(i, world_state(w, query).state == STATE_DONE ||
                         world_state(w, query).reason == REASON_EXPIRED);
        check_row(i, world_state(w, message).state == rows[i].message);
        check_row(i, world_state(w, alone).state == rows[i].message);
        check_row(i, world_state(w, query).attempts == (rows[i].query == STATE_DONE));
        world_verify(w);
    }
}

/* A person who replays what had expired wants it handled. */
static void what_is_replayed_does_not_expire(void **state)
{
    struct world *w = *state;
    uint64_t copy;

    w->policy.expire = EXPIRE_AUTO;
    world_policy(w);
    uint64_t seq = world_arrive(w, 1, 10);
    world_wait(w, HOURS(25));
    assert_null(world_take(w, true));
    world_expect(w, seq, STATE_DEAD, REASON_EXPIRED, 0);
    world_begin(w);
    assert_int_equal(spool_replay(w->box, seq, "me", &copy), ACTED);
    world_commit(w);
    struct claim *c = world_take(w, true);
    assert_non_null(c);
    assert_int_equal(c->ev.seq, copy);
    world_end(w, c, OUTCOME_DONE, -1);
    world_verify(w);
}

/* Nobody is to be told that last night's dead letters wait since last night. */
static void what_is_replayed_waits_since_then(void **state)
{
    struct world *w = *state;
    uint64_t first = world_arrive(w, 1, 1), second = world_arrive(w, 2, 2), copy;

    world_end(w, world_take_seq(w, PUSH, first), OUTCOME_REJECTED, -1);
    world_end(w, world_take_seq(w, PUSH, second), OUTCOME_REJECTED, -1);
    assert_int_equal(world_status(w).oldest_unfinished_at, 0);
    w->now += HOURS(8);
    int64_t replayed = w->now;
    world_begin(w);
    assert_int_equal(spool_replay(w->box, first, "test", &copy), ACTED);
    world_commit(w);
    w->now += HOURS(1);
    world_begin(w);
    assert_int_equal(spool_replay(w->box, second, "test", &second), ACTED);
    world_commit(w);
    assert_int_equal(world_status(w).oldest_unfinished_at, replayed);
    int64_t arrived = w->now;
    uint64_t third = world_arrive(w, 3, 3);
    world_end(w, world_take_seq(w, PUSH, copy), OUTCOME_REJECTED, -1);
    world_end(w, world_take_seq(w, PUSH, second), OUTCOME_DONE, -1);
    assert_in_range(world_status(w).oldest_unfinished_at, arrived, w->now);
    world_end(w, world_take_seq(w, PUSH, third), OUTCOME_DONE, -1);
    w->now += HOURS(1);
    replayed = w->now;
    world_begin(w);
    assert_int_equal(spool_replay(w->box, copy, "test", &copy), ACTED);
    world_commit(w);
    assert_int_equal(world_status(w).oldest_unfinished_at, replayed);
    world_reopen(w, HOURS(1)); /* another process does not know when */
    assert_int_equal(world_status(w).oldest_unfinished_at, replayed + HOURS(1));
    world_verify(w);
}

static void what_is_being_handled_does_not_expire(void **state)
{
    struct world *w = *state;

    w->policy.expire = EXPIRE_AUTO;
    world_policy(w);
    uint64_t seq = arrive_callback(w, 1, 1);
    struct claim *c = world_take_seq(w, PUSH, seq);
    world_wait(w, HOURS(1));
    world_step(w);
    world_end(w, c, OUTCOME_DONE, -1);
    world_expect(w, seq, STATE_DONE, REASON_NONE, 1);
}

static void get_and_resolve(void **state)
{
    struct world *w = *state;
    uint64_t seq = world_arrive(w, 5, -100123), found = 0;
    struct event ev;
    struct event_state st;
    struct buf record = BUF_EMPTY;

    assert_int_equal(spool_get(w->box, seq, &ev, &st, &record), 0);
    assert_int_equal(ev.seq, seq);
    assert_true(ev.has_update_id && ev.update_id == 5);
    assert_int_equal(ev.received_at, START);
    assert_string_equal(ev.kind, "message");
    assert_true(ev.place.has_chat && ev.place.chat == -100123 && ev.place.has_user &&
                ev.place.user == -100123 + 1000);
    assert_true(lane_eq(ev.lane, (struct lane){LANE_CHAT, -100123, 0}));
    char *json = world_message(5, -100123, "");
    assert_true(slice_eq_str(ev.payload, json)); /* as it came */
    assert_int_equal(st.claimed_at, 0);
    assert_int_equal(spool_get(w->box, seq + 1, &ev, &st, &record), -1);
    assert_int_equal(spool_get(w->box, 0, &ev, &st, &record), -1);
    free(json);
    buf_free(&record);
    static const struct {
        const char *text;
        bool found;
    } rows[] = {{"shop/5", true},   {"shop/@1", true},      {"shop/6", false},
                {"shop/@2", false}, {"shop/out/@1", false}, {"other/5", false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct event_ref ref;
        assert_int_equal(event_ref_parse(slice_str(rows[i].text), &ref), 0);
        check_row(i, (spool_resolve(w->sp, &ref, &found) != NULL) == rows[i].found);
        check_row(i, !rows[i].found || found == seq);
    }
    world_wait(w, 50);
    struct claim *c = world_take(w, PULL);
    st = world_state(w, seq);
    assert_string_equal(st.claimed_by, "pull");
    assert_int_equal(st.claimed_at, START + 50);
    assert_int_equal(st.deadline, c->deadline);
    assert_memory_equal(st.token, c->token, TOKEN_BYTES);
}

struct seen {
    uint64_t seq[200];
    size_t n, stop_after, payload_bytes;
};

static bool see(void *arg, struct spool_box *b, const struct event *ev, const struct event_state *st)
{
    struct seen *s = arg;

    (void)b;
    (void)st;
    s->seq[s->n++] = ev->seq;
    s->payload_bytes += ev->payload.n;
    return s->n != s->stop_after;
}

/* How many pass the filter, walking `scan` records at a time over cursors that went through text. */
static size_t walk(struct world *w, const struct spool_filter *f, unsigned scan, struct seen *s)
{
    struct spool_cursor c = {0};
    char text[64];

    memset(s, 0, sizeof(*s));
    for (int i = 0; !spool_each(w->sp, f, &c, scan, false, see, s); i++) {
        assert_true(i < 1000);
        spool_cursor_text(&c, text);
        assert_int_equal(strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz.-"), strlen(text));
        memset(&c, 0xA5, sizeof(c));
        assert_int_equal(spool_cursor_parse(slice_str(text), &c), 0);
    }
    for (size_t i = 1; i < s->n; i++)
        assert_true(f->newest ? s->seq[i] < s->seq[i - 1] : s->seq[i] > s->seq[i - 1]); /* each once */
    return s->n;
}

/* 66 events over 31 chats, in every state. */
static void fill_for_walks(struct world *w)
{
    w->policy.concurrency = 100;
    world_policy(w);
    for (int i = 0; i < 60; i++) {
        world_arrive(w, 1000 + i, i % 30);
        world_wait(w, 1000);
        if (i % 10 == 9)
            arrive_callback(w, 5000 + i, 77);
    }
    for (int i = 0; i < 24; i++) {
        struct claim *c = world_take(w, PUSH);
        assert_non_null(c);
        struct outcome o = {.kind = OUTCOME_REJECTED, .after_ms = -1, .error = LIT("no such item")};
        if (i % 4 == 1) {
            world_begin(w);
            spool_complete(w->box, c->ev.seq, c->token, &o);
            world_commit(w);
        } else if (i % 4 == 2) {
            world_end(w, c, OUTCOME_DONE, -1);
        } else if (i % 4 == 3) {
            world_end(w, c, OUTCOME_RETRY, HOURS(1));
        }
    }
}

/* The newest first is the oldest first, backwards; also over what is still in the open batch, and over deletions in it. */
static void walks_down(void **state)
{
    struct world *w = *state;
    struct seen up, down;
    size_t all = 0;

    for (int i = 1; i <= 20; i++)
        world_arrive(w, i, i);
    world_begin(w);
    for (uint64_t seq = 2; seq <= 18; seq += 3)
        assert_int_equal(spool_discard(w->box, seq, false, "test"), ACTED);
    for (int tick = 0; tick < 2; tick++) { /* within the tick, and after it */
        for (int states = 0; states < 16; states++) {
            struct spool_filter f = {.box = -1};
            for (int i = 0; i < 4; i++)
                f.states[i] = states & 1 << i;
            all += walk(w, &f, 3, &up);
            f.newest = true;
            assert_int_equal(walk(w, &f, 3, &down), up.n);
            for (size_t i = 0; i < up.n; i++)
                assert_int_equal(up.seq[i], down.seq[up.n - 1 - i]);
        }
        if (tick == 0)
            world_commit(w);
    }
    assert_int_equal(all, 2 * (20 + 8 * 20)); /* all without a filter, and each in half of the others */
}

static void walks_and_filters(void **state)
{
    struct world *w = *state;
    struct seen s;

    fill_for_walks(w);
    struct spool_counts c = world_status(w).counts;
    struct {
        struct spool_filter f;
        uint64_t n;
    } rows[] = {
        {{.box = -1}, 66},
        {{.box = BOX_IN}, 66},
        {{.box = BOX_OUT}, 0},
        {{.box = -1, .bot = "shop"}, 66},
        {{.box = -1, .bot = "other"}, 0},
        {{.box = -1, .states = {[STATE_PENDING] = true}}, c.pending},
        {{.box = -1, .states = {[STATE_PROCESSING] = true}}, c.processing},
        {{.box = -1, .states = {[STATE_DONE] = true}}, c.done},
        {{.box = -1, .states = {[STATE_DEAD] = true}}, c.dead},
        {{.box = -1, .states = {[STATE_DEAD] = true, [STATE_DONE] = true}}, c.dead + c.done},
        {{.box = -1, .has_chat = true, .chat = 3}, 2},
        {{.box = -1, .has_user = true, .user = 1003}, 2},
        {{.box = -1, .has_chat = true, .chat = 3, .has_user = true, .user = 1004}, 0},
        {{.box = -1, .kind = "callback_query"}, 6},
        {{.box = -1, .kind = "callback"}, 0},
        {{.box = -1, .since = START + 10000}, 56},
        {{.box = -1, .until = START + 9000}, 10},
        {{.box = -1, .since = START + 9000, .until = START + 10000}, 3},
        {{.box = -1, .error = "such"}, c.dead},
        {{.box = -1, .error = "nonsense"}, 0},
    };

    assert_true(c.pending && c.processing && c.done && c.dead);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        check_row(i, walk(w, &rows[i].f, 1000, &s) == rows[i].n);
        check_row(i, walk(w, &rows[i].f, 7, &s) == rows[i].n);
        check_row(i, walk(w, &rows[i].f, 1, &s) == rows[i].n);
    }
}

static void a_walk_may_stop_and_go_on(void **state)
{
    struct world *w = *state;
    struct spool_filter f = {.box = -1};
    struct spool_cursor c = {0};
    struct seen s = {.stop_after = 5};

    for (int i = 0; i < 12; i++)
        world_arrive(w, i, i);
    assert_false(spool_each(w->sp, &f, &c, 1000, true, see, &s));
    assert_int_equal(s.n, 5);
    assert_true(s.payload_bytes > 0);
    world_arrive(w, 100, 100);
    world_reopen(w, 0); /* a cursor stays valid for ever */
    s.stop_after = 0;
    s.payload_bytes = 0;
    assert_true(spool_each(w->sp, &f, &c, 1000, false, see, &s));
    assert_int_equal(s.n, 13);
    assert_int_equal(s.payload_bytes, 0);
    for (size_t i = 0; i < s.n; i++)
        assert_int_equal(s.seq[i], i + 1);
}

static void bad_cursors_are_refused(void **state)
{
    static const char *const rows[] = {"",       "x",    "1", "1.2", "..", "1.0.1.1", "-", "zz.zz.zz.zz.zz",
                                       "1.9.5 ", "1.7.5"};
    struct spool_cursor c;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check_row(i, spool_cursor_parse(slice_str(rows[i]), &c) == -1);
}

struct copying {
    struct world *to;
    unsigned new, known;
};

static bool copy_one(void *arg, struct spool_box *b, const struct event *ev, const struct event_state *st)
{
    struct copying *c = arg;

    (void)b;
    enum imported rc = spool_import(c->to->box, ev, st);
    assert_int_not_equal(rc, IMPORT_FAILED);
    c->new += rc == IMPORT_NEW;
    c->known += rc == IMPORT_KNOWN;
    return true;
}

static struct copying copy_all(struct world *from, struct world *to)
{
    struct copying c = {.to = to};
    struct spool_filter f = {.box = -1};
    struct spool_cursor cursor = {0};

    world_begin(to);
    while (!spool_each(from->sp, &f, &cursor, 10, true, copy_one, &c))
        ;
    world_commit(to);
    return c;
}

static void export_and_import(void **state)
{
    struct world *w = *state, *other;
    void *made = NULL;

    fill_for_walks(w);
    assert_int_equal(world_setup(&made), 0);
    other = made;
    struct copying c = copy_all(w, other);
    assert_int_equal(c.new, 66);
    assert_int_equal(c.known, 0);
    c = copy_all(w, other);
    assert_int_equal(c.new, 0);
    assert_int_equal(c.known, 66);
    world_verify(other);
    struct spool_counts a = world_status(w).counts, b = world_status(other).counts;
    assert_int_equal(b.done, a.done);
    assert_int_equal(b.dead, a.dead);
    assert_int_equal(b.processing, 0);
    assert_int_equal(b.pending, a.pending + a.processing);
    for (uint64_t seq = 1; seq <= 66; seq++) {
        struct event e1, e2;
        struct event_state s1, s2;
        struct buf r1 = BUF_EMPTY, r2 = BUF_EMPTY;
        assert_int_equal(spool_get(w->box, seq, &e1, &s1, &r1), 0);
        assert_int_equal(spool_get(other->box, seq, &e2, &s2, &r2), 0);
        assert_true(slice_eq(e1.payload, e2.payload));
        assert_memory_equal(e1.hash, e2.hash, sizeof(e1.hash));
        assert_int_equal(e1.update_id, e2.update_id);
        assert_int_equal(e1.received_at, e2.received_at);
        if (s1.state == STATE_DONE || s1.state == STATE_DEAD) {
            assert_int_equal(s2.state, s1.state);
            assert_int_equal(s2.reason, s1.reason);
            assert_int_equal(s2.attempts, s1.attempts);
            assert_int_equal(s2.finished_at, s1.finished_at);
            assert_int_equal(s2.n_history, s1.n_history);
            assert_string_equal(s2.error, s1.error);
        } else {
            assert_int_equal(s2.state, STATE_PENDING);
        }
        buf_free(&r1);
        buf_free(&r2);
    }
    struct poll_position p;
    spool_get_position(other->box, &p);
    assert_int_equal(p.offset, 0); /* never touches the offset */
    other->now = w->now;
    world_reopen(other, 0);
    run_down(other);
    assert_true(world_status(other).counts.done > b.done);
    world_verify(other);
    world_teardown(&made);
}

#define people_test(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        people_test(replay),
        people_test(discard),
        people_test(discard_the_dead),
        people_test(walks_down),
        people_test(discard_what_was_claimed_in_this_tick),
        people_test(pause_is_durable_and_reaping_goes_on),
        people_test(expiry),
        people_test(what_is_replayed_does_not_expire),
        people_test(what_is_replayed_waits_since_then),
        people_test(what_is_being_handled_does_not_expire),
        people_test(get_and_resolve),
        people_test(walks_and_filters),
        people_test(a_walk_may_stop_and_go_on),
        people_test(bad_cursors_are_refused),
        people_test(export_and_import),
    };
    return cmocka_run_group_tests_name("spool people", tests, NULL, NULL);
}
