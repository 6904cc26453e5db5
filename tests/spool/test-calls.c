/* Calls that go out: made in the batch that completes their event, or by a program; in order within a chat; held by a limit
 * of their chat only; kept without a sender; the same after export and import. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "verbs.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spool/internal.h"

#define NO_KEY slice_make("", 0)

/* The box out, with a sender. */
static struct spool_box *attach_out(struct world *w)
{
    struct spool_policy p = w->policy;

    p.outcome.limit_by_lane = true;
    world_begin(w);
    struct spool_box *out = spool_attach(w->sp, BOT_ID, BOX_OUT, "shop", &p);
    world_commit(w);
    return out;
}

static uint64_t append(struct world *w, struct spool_box *out, const struct spool_call *call)
{
    uint64_t seq = 0;

    world_begin(w);
    assert_int_equal(spool_append_call(out, call, NO_KEY, &seq), ACCEPTED_NEW);
    world_commit(w);
    assert_true(seq > 0);
    return seq;
}

static uint64_t append_to(struct world *w, struct spool_box *out, int64_t chat)
{
    struct spool_call call = verb_call(chat, "{}");

    return append(w, out, &call);
}

/* The next claim of the box must be of this seq. */
static struct claim *take(struct world *w, struct spool_box *out, uint64_t seq)
{
    assert_int_equal(verb_claim_from(w, out, 1), 1);
    struct claim *c = w->held[w->n_held - 1];
    assert_int_equal(c->ev.seq, seq);
    assert_ptr_equal(c->box, out);
    return c;
}

static void end_after(struct world *w, struct claim *c, enum outcome_kind kind, int64_t after_ms)
{
    struct outcome o = {.kind = kind, .after_ms = after_ms};

    world_begin(w);
    assert_int_equal(spool_complete(c->box, c->ev.seq, c->token, &o), COMPLETED);
    world_commit(w);
    world_drop(w, c);
}

static struct spool_box_status status_of(struct spool_box *b)
{
    struct spool_box_status s;

    spool_box_status(b, &s);
    return s;
}

static struct event_state state_of(struct spool_box *b, uint64_t seq, struct event *ev)
{
    struct event_state st;
    struct buf record = BUF_EMPTY;

    assert_int_equal(spool_get(b, seq, ev, &st, &record), 0);
    ev->payload = slice_make("", 0);
    buf_free(&record);
    return st;
}

/* Everything of a call comes out as it went in. */
static void kept_as_it_came(void **state)
{
    struct world *w = *state;
    struct spool_box *out = attach_out(w);
    struct spool_call call = {.method = "sendDocument",
                              .content_type = "multipart/form-data; boundary=b",
                              .body = LIT("\0\377bytes\r\n"),
                              .lane = {.type = LANE_THREAD, .a = -100, .b = 7},
                              .has_chat = true,
                              .chat = -100,
                              .once = true};
    uint64_t seq = append(w, out, &call);

    world_reopen(w, 10);
    out = attach_out(w);
    struct claim *c = take(w, out, seq);
    assert_true(c->ev.is_call && c->ev.once && !c->ev.has_update_id);
    assert_string_equal(c->ev.kind, call.method);
    assert_string_equal(c->ev.content_type, call.content_type);
    assert_int_equal(c->ev.payload.n, call.body.n);
    assert_memory_equal(c->ev.payload.p, call.body.p, call.body.n);
    assert_true(lane_eq(c->ev.lane, call.lane));
    assert_true(c->ev.place.has_chat && c->ev.place.chat == -100);
    assert_int_equal(c->ev.made_by, 0);
    assert_int_equal(c->ev.received_at, START);
    end_after(w, c, OUTCOME_DONE, -1);
    struct event ev;
    assert_int_equal(state_of(out, seq, &ev).state, STATE_DONE);
    world_verify(w);
}

/* In the same batch as the completion, with where they came from; and not at all without a success. */
static void made_by_a_completion(void **state)
{
    struct world *w = *state;
    struct spool_call calls[3] = {verb_call(5, "{\"n\":1}"), verb_call(5, "{\"n\":1}"), verb_call(6, "")};
    struct spool_extras extras = {.calls = calls, .n_calls = 3};
    uint64_t a = world_arrive(w, 1, 1), b = world_arrive(w, 2, 2);
    struct spool_box *out = attach_out(w);

    calls[2].refused = "the answer is too long";
    assert_int_equal(verb_end_with(w, world_take_seq(w, PUSH, a), OUTCOME_RETRY, &extras), COMPLETED);
    assert_int_equal(verb_end_with(w, world_take_seq(w, PUSH, b), OUTCOME_REJECTED, &extras), COMPLETED);
    assert_int_equal(status_of(out).counts.received, 0);
    world_wait(w, 2000);
    struct claim *c = world_take_seq(w, PUSH, a), lost = *c;
    world_begin(w);
    struct outcome done = {.kind = OUTCOME_DONE, .after_ms = -1};
    assert_int_equal(spool_complete_with(w->box, a, c->token, &done, &extras), COMPLETED);
    struct claim_request r = {.by = "call", .push = true, .max = 0};
    assert_int_equal(spool_claim(out, &r, NULL, NULL), 0);
    assert_true(spool_claimable(out)); /* seen in the same batch */
    assert_int_equal(spool_complete_with(w->box, a, lost.token, &done, &extras), COMPLETE_LOST); /* once */
    world_commit(w);
    world_verify(w);
    assert_int_equal(status_of(out).counts.received, 3);
    assert_int_equal(status_of(out).counts.pending, 2); /* two equal calls are two */
    struct event ev;
    struct event_state st = state_of(out, 3, &ev);
    assert_true(st.state == STATE_DEAD && st.reason == REASON_REJECTED && st.attempts == 0);
    assert_string_equal(st.error, "the answer is too long");
    assert_int_equal(status_of(out).counts.dead_by_reason[REASON_REJECTED], 1);
    state_of(out, 1, &ev);
    assert_true(ev.is_call && ev.made_by == a);
    end_after(w, take(w, out, 1), OUTCOME_DONE, -1);
    struct claim *second = take(w, out, 2);
    assert_slice(second->ev.payload, "{\"n\":1}");
    assert_int_equal(second->ev.made_by, a);
    end_after(w, second, OUTCOME_DONE, -1);
    assert_int_equal(verb_claim_from(w, out, 9), 0);
    world_verify(w);
}

/* A call with a key is made once; the keys of handlers are others. */
static void keys_of_calls(void **state)
{
    struct world *w = *state;
    struct spool_box *out = attach_out(w);
    struct spool_call call = verb_call(1, "{}");
    uint64_t first = 0, seq = 0;

    world_begin(w);
    assert_int_equal(spool_append_call(out, &call, LIT("k"), &first), ACCEPTED_NEW);
    assert_int_equal(spool_append_call(out, &call, LIT("k"), &seq), ACCEPTED_DUPLICATE);
    assert_int_equal(spool_append_call(out, &call, LIT("l"), &seq), ACCEPTED_NEW);
    assert_int_equal(spool_append_call(out, &call, NO_KEY, NULL), ACCEPTED_NEW);
    assert_int_equal(spool_append_call(out, &call, NO_KEY, NULL), ACCEPTED_NEW);
    world_commit(w);
    assert_int_equal(seq, first + 1);
    world_reopen(w, 1000);
    out = attach_out(w);
    world_begin(w);
    assert_int_equal(spool_append_call(out, &call, LIT("k"), &seq), ACCEPTED_DUPLICATE);
    world_commit(w);
    assert_int_equal(status_of(out).counts.duplicates, 2);
    assert_int_equal(status_of(out).counts.received, 4);
    assert_int_equal(verb_key(w, "k", NULL), KEY_FIRST); /* a handler's */
    world_wait(w, SPOOL_KEY_TTL_MS);
    world_begin(w);
    assert_int_equal(spool_append_call(out, &call, LIT("k"), &seq), ACCEPTED_NEW);
    world_commit(w);
    world_verify(w);
}

/* One at a time and in order within a lane of any kind; those that belong nowhere are each their own. */
static void lanes_of_calls(void **state)
{
    struct world *w = *state;
    struct spool_call by_name = verb_call(0, "{}"), own = verb_call(0, "{}");
    struct spool_box *out;

    w->policy.concurrency = 20;
    out = attach_out(w);
    by_name.lane = (struct lane){.type = LANE_NAME, .a = 3, .b = 4};
    own.lane = (struct lane){.type = LANE_EVENT};
    by_name.has_chat = own.has_chat = false;
    uint64_t chat = append_to(w, out, 3);
    append_to(w, out, 3);
    uint64_t name = append(w, out, &by_name);
    append(w, out, &by_name);
    uint64_t own1 = append(w, out, &own), own2 = append(w, out, &own), other = append_to(w, out, 4);
    assert_int_equal(verb_claim_from(w, out, 20), 5);
    const uint64_t want[] = {chat, name, own1, own2, other};
    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        assert_int_equal(w->held[i]->ev.seq, want[i]);
    struct event ev;
    state_of(out, own1, &ev);
    assert_true(ev.lane.type == LANE_EVENT && ev.lane.a == (int64_t)own1);
    world_verify(w);
    end_after(w, w->held[0], OUTCOME_DONE, -1);
    take(w, out, chat + 1);
    end_after(w, world_held(w, name), OUTCOME_REJECTED, -1); /* a dead one holds nothing */
    take(w, out, name + 1);
    world_verify(w);
}

/* A limit holds the chat it is of; one of a second chat meanwhile holds the bot. */
static void a_limit_holds_its_chat(void **state)
{
    struct world *w = *state;
    struct spool_box *out = attach_out(w);
    uint64_t a1 = append_to(w, out, 1), a2 = append_to(w, out, 1), b1 = append_to(w, out, 2),
             b2 = append_to(w, out, 2), c1 = append_to(w, out, 3);
    struct event ev;

    end_after(w, take(w, out, a1), OUTCOME_LIMITED, 30000);
    assert_false(status_of(out).breaker.open);
    struct event_state st = state_of(out, a1, &ev);
    assert_int_equal(st.attempts, 0);
    assert_int_equal(st.next_retry_at, w->now + 30000);
    end_after(w, take(w, out, b1), OUTCOME_DONE, -1); /* others go on */
    world_wait(w, 29999);
    struct claim *c = take(w, out, b2);
    assert_int_equal(verb_claim_from(w, out, 1), 1);
    struct claim *third = w->held[w->n_held - 1];
    assert_int_equal(third->ev.seq, c1);
    assert_int_equal(verb_claim_from(w, out, 9), 0);
    end_after(w, c, OUTCOME_LIMITED, 10000); /* a second one while the first is held */
    assert_true(status_of(out).breaker.open);
    assert_int_equal(status_of(out).breaker.cause, BREAKER_LIMITED);
    world_wait(w, 1);
    assert_int_equal(verb_claim_from(w, out, 9), 0); /* a1's time has come, but the bot is held */
    end_after(w, third, OUTCOME_RETRY, -1);
    world_wait(w, 9998);
    assert_int_equal(verb_claim_from(w, out, 9), 0);
    world_wait(w, 1);
    assert_int_equal(verb_claim_from(w, out, 9), 1); /* a probe */
    end_after(w, w->held[0], OUTCOME_DONE, -1);
    assert_false(status_of(out).breaker.open);
    world_wait(w, 60000);
    while (verb_claim_from(w, out, 1))
        end_after(w, w->held[0], OUTCOME_DONE, -1);
    assert_int_equal(status_of(out).counts.done, 5);
    assert_int_equal(state_of(out, a2, &ev).state, STATE_DONE);
    world_verify(w);
}

/* The same chat again, or another when the first is no longer held, opens nothing. */
static void one_limit_after_the_other(void **state)
{
    struct world *w = *state;
    struct spool_box *out = attach_out(w);
    uint64_t a = append_to(w, out, 1), b = append_to(w, out, 2);

    end_after(w, take(w, out, a), OUTCOME_LIMITED, 5000);
    world_wait(w, 5000);
    end_after(w, take(w, out, a), OUTCOME_LIMITED, 5000);
    assert_false(status_of(out).breaker.open);
    world_wait(w, 5000);
    end_after(w, take(w, out, a), OUTCOME_DONE, -1);
    end_after(w, take(w, out, b), OUTCOME_LIMITED, 5000);
    assert_false(status_of(out).breaker.open);
    world_wait(w, 4999);
    assert_int_equal(verb_claim_from(w, out, 1), 0);
    world_wait(w, 1);
    end_after(w, take(w, out, b), OUTCOME_DONE, -1);
    world_verify(w);
}

/* A box out that a completion made has no sender: it is an orphan, kept until one comes. */
static void without_a_sender(void **state)
{
    struct world *w = *state;
    struct spool_call calls[2] = {verb_call(5, "{}"), verb_call(5, "{}")};
    struct spool_extras extras = {.calls = calls, .n_calls = 2};
    uint64_t a = world_arrive(w, 1, 1);

    assert_null(spool_find_box(w->sp, "shop", BOX_OUT));
    assert_int_equal(verb_end_with(w, world_take_seq(w, PUSH, a), OUTCOME_DONE, &extras), COMPLETED);
    for (int i = 0; i < 2; i++) {
        struct spool_box *out = spool_find_box(w->sp, "shop", BOX_OUT);
        assert_non_null(out);
        assert_true(status_of(out).orphan);
        assert_int_equal(status_of(out).counts.pending, 2);
        assert_int_equal(status_of(out).oldest_unfinished_at, START);
        assert_false(spool_claimable(out));
        assert_int_equal(verb_claim_from(w, out, 9), 0);
        world_verify(w);
        world_reopen(w, 1000);
    }
    struct spool_box *out = attach_out(w);
    assert_ptr_equal(out, spool_find_box(w->sp, "shop", BOX_OUT));
    assert_false(status_of(out).orphan);
    struct claim *c = take(w, out, 1);
    world_begin(w);
    spool_detach(out); /* its bot leaves the config while it is sent */
    world_commit(w);
    assert_true(status_of(out).orphan);
    end_after(w, c, OUTCOME_DONE, -1);
    assert_int_equal(verb_claim_from(w, out, 9), 0);
    world_verify(w);
}

/* Replay of a call is the same call once more, at the tail of its lane. */
static void replayed(void **state)
{
    struct world *w = *state;
    struct spool_box *out = attach_out(w);
    struct spool_call own = verb_call(0, "{}");
    uint64_t copy, other;

    own.lane = (struct lane){.type = LANE_EVENT};
    own.once = true;
    uint64_t a = append_to(w, out, 1), b = append(w, out, &own);
    end_after(w, take(w, out, a), OUTCOME_REJECTED, -1);
    end_after(w, take(w, out, b), OUTCOME_DONE, -1);
    uint64_t behind = append_to(w, out, 1);
    world_begin(w);
    assert_int_equal(spool_replay(out, a, "test", &copy), ACTED);
    assert_int_equal(spool_replay(out, b, "test", &other), ACTED);
    world_commit(w);
    world_verify(w);
    take(w, out, behind);
    struct claim *c = take(w, out, other);
    assert_true(c->ev.is_call && c->ev.once && c->ev.lane.a == (int64_t)other);
    end_after(w, world_held(w, behind), OUTCOME_DONE, -1);
    c = take(w, out, copy);
    assert_string_equal(c->ev.kind, "sendMessage");
    assert_string_equal(c->ev.content_type, "application/json");
    assert_int_equal(c->ev.replay_of, a);
    end_after(w, c, OUTCOME_DONE, -1);
    world_verify(w);
}

/* Exported events, with payloads of their own. */
struct exported {
    struct event ev[8];
    struct event_state st[8];
    struct buf payload[8];
    size_t n;
};

static bool export_one(void *arg, struct spool_box *b, const struct event *ev, const struct event_state *st)
{
    struct exported *x = arg;

    (void)b;
    x->ev[x->n] = *ev;
    x->st[x->n] = *st;
    x->payload[x->n] = BUF_EMPTY;
    buf_add_slice(&x->payload[x->n], ev->payload);
    x->ev[x->n].payload = buf_slice(&x->payload[x->n]);
    x->n++;
    return true;
}

/* Into another spool: the same calls, each once, however often they come. */
static void exported_and_imported(void **state)
{
    struct world *w = *state;
    static struct exported x, y;
    struct spool_filter f = {.box = BOX_OUT};
    struct spool_cursor start = {.bot_id = 0};
    struct spool_box *out = attach_out(w);
    struct spool_call own = verb_call(0, "{}"), refused = verb_call(2, "\xff");
    void *other = NULL;

    own.lane = (struct lane){.type = LANE_EVENT};
    own.once = true;
    refused.refused = "no method";
    end_after(w, take(w, out, append_to(w, out, 1)), OUTCOME_DONE, -1);
    append_to(w, out, 1); /* equal to the one before */
    append_to(w, out, 1);
    append(w, out, &own);
    append(w, out, &refused);
    x.n = y.n = 0;
    assert_true(spool_each(w->sp, &f, &start, 100, true, export_one, &x));
    assert_int_equal(x.n, 5);
    assert_int_equal(world_setup(&other), 0);
    struct world *v = other;
    struct spool_box *into = attach_out(v);
    append_to(v, into, 9); /* seqs are others there */
    for (int round = 0; round < 2; round++) {
        v->now += 1000;
        world_begin(v);
        for (size_t i = 0; i < x.n; i++)
            assert_int_equal(spool_import(into, &x.ev[i], &x.st[i]), round ? IMPORT_KNOWN : IMPORT_NEW);
        world_commit(v);
        world_verify(v);
        world_reopen(v, 1000);
        into = attach_out(v);
    }
    start = (struct spool_cursor){.bot_id = BOT_ID, .box = BOX_OUT, .seq = 1, .started = true};
    assert_true(spool_each(v->sp, &f, &start, 100, true, export_one, &y));
    assert_int_equal(y.n, x.n);
    for (size_t i = 0; i < x.n; i++) {
        const struct event *a = &x.ev[i], *b = &y.ev[i];
        assert_true(b->is_call && b->once == a->once && b->received_at == a->received_at);
        assert_memory_equal(b->hash, a->hash, sizeof(a->hash));
        assert_string_equal(b->kind, a->kind);
        assert_string_equal(b->content_type, a->content_type);
        assert_true(slice_eq(b->payload, a->payload));
        assert_int_equal(b->lane.type, a->lane.type);
        assert_int_equal(b->lane.a, a->lane.type == LANE_EVENT ? (int64_t)b->seq : a->lane.a);
        assert_int_equal(y.st[i].state, x.st[i].state);
        assert_string_equal(y.st[i].error, x.st[i].error);
        buf_free(&x.payload[i]);
        buf_free(&y.payload[i]);
    }
    world_teardown(&other);
}

/* ---- a store that fails ------------------------------------------------------------------------- */

#define JOBS 4
#define EXIT_NOT_HIT 33

static bool hit; /* the store was seen to fail */

static void on_push(void *arg, struct claim *c)
{
    struct world *w = arg;

    if (c)
        w->held[w->n_held++] = c;
}

static void on_durable(void *arg, bool ok)
{
    *(bool *)arg |= ok;
}

/* Until it is durable: Telegram sends them again. */
static void send_updates(struct world *w, bool *safe)
{
    if (*safe)
        return;
    for (int i = 0; i < JOBS; i++) {
        char *json = world_message(i, i, "");
        world_accept_json(w, json, NULL);
        free(json);
    }
    spool_on_durable(w->sp, on_durable, safe);
}

/* A handler says that it is done, with a key and two calls. */
static void say_done(struct world *w, struct claim *c)
{
    struct outcome done = {.kind = OUTCOME_DONE, .after_ms = -1};
    char name[16], body[16], content_type[] = "application/json", why[] = "a reason";

    snprintf(name, sizeof(name), "key %d", (int)c->ev.update_id);
    snprintf(body, sizeof(body), "%d", (int)c->ev.update_id);
    struct slice key = slice_str(name);
    struct spool_call calls[2] = {verb_call(c->ev.update_id, body), verb_call(c->ev.update_id, body)};
    calls[0].content_type = content_type;
    calls[1].refused = why;
    struct spool_extras e = {.keys = &key, .n_keys = 1, .calls = calls, .n_calls = 2};
    enum completed rc = spool_complete_with(w->box, c->ev.seq, c->token, &done, &e);
    assert_true(rc == COMPLETED || rc == COMPLETE_FAILED);
    memset(name, 'x', sizeof(name)); /* all was copied */
    memset(body, 'x', sizeof(body));
    memset(content_type, 'x', sizeof(content_type));
    memset(why, 'x', sizeof(why));
    world_drop(w, c);
}

static void expect_what_was_said(struct world *w, struct spool_box *out)
{
    struct event ev, maker;
    struct event_state st;
    struct buf record = BUF_EMPTY;
    char name[32];

    for (int i = 0; i < JOBS; i++) {
        snprintf(name, sizeof(name), "key %d", i);
        assert_int_equal(verb_key(w, name, NULL), KEY_IS_DONE);
    }
    for (uint64_t seq = 1; seq <= 2 * JOBS; seq++) {
        assert_int_equal(spool_get(out, seq, &ev, &st, &record), 0);
        snprintf(name, sizeof(name), "%lld", (long long)ev.place.chat);
        assert_slice(ev.payload, name);
        assert_string_equal(ev.content_type, "application/json");
        assert_string_equal(st.error, st.state == STATE_DEAD ? "a reason" : "");
        state_of(w->box, ev.made_by, &maker);
        assert_int_equal(maker.update_id, ev.place.chat);
        buf_free(&record);
    }
    world_verify(w);
}

/* The child's part: each handler says once that it is done while the store fails somewhere. What it said must be there
 * exactly once. */
static void scenario(void **state)
{
    struct world *w = *state;
    struct claim_request r = {.by = "push", .push = true, .max = 1};
    unsigned said = 0;
    bool safe = false, over = false;

    for (int n = 0; n < 200 && !over; n++) {
        world_begin(w);
        w->box = spool_attach(w->sp, BOT_ID, BOX_IN, "shop", &w->policy);
        send_updates(w, &safe);
        for (; w->n_held && n % 3 == 0; said++) /* held for some ticks: also while the store is away */
            say_done(w, w->held[0]);
        spool_work(w->sp);
        if (safe)
            spool_claim(w->box, &r, on_push, w);
        spool_commit(w->sp);
        bool healthy = spool_healthy(w->sp, NULL);
        int64_t next = spool_next_deadline(w->sp);
        hit |= !healthy;
        over = healthy && said == JOBS && next > w->now && world_status(w).counts.done == JOBS;
        w->now = healthy || next <= w->now ? w->now + 10 : next;
    }
    struct spool_box *out = spool_find_box(w->sp, "shop", BOX_OUT);
    assert_non_null(out);
    assert_int_equal(said, JOBS);
    assert_int_equal(world_status(w).counts.delivered, JOBS);
    assert_int_equal(status_of(out).counts.received, 2 * JOBS);
    assert_int_equal(status_of(out).counts.pending, JOBS);
    assert_int_equal(status_of(out).counts.dead, JOBS);
    if (hit) /* else the failpoint might be met while looking on */
        expect_what_was_said(w, out);
}

static char self[4096];

/* Runs the scenario with one failure. Returns its exit status. */
static int run_with(const char *failpoints)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        setenv("TGSPOOL_FAILPOINTS", failpoints, 1);
        setenv("CMOCKA_MESSAGE_OUTPUT", "STDOUT", 1);
        dup2(STDERR_FILENO, STDOUT_FILENO);
        execl(self, self, "scenario", (char *)NULL);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* Fails each step-th pass of a failpoint until the scenario ends before it; at least so many must have been met. */
static void fail_each(const char *point, unsigned step, unsigned least)
{
    unsigned met = 0;
    char spec[128];
    int rc = 0;

#ifndef ENABLE_FAILPOINTS
    skip(); /* built without --enable-failpoints */
#endif
    for (unsigned n = 1; rc == 0; n += step) {
        snprintf(spec, sizeof(spec), "%s=errno:5@%u", point, n);
        rc = run_with(spec);
        if (rc != 0 && rc != EXIT_NOT_HIT)
            fail_msg("TGSPOOL_FAILPOINTS='%s': exit status %d", spec, rc);
        met += rc == 0;
    }
    assert_true(met >= least);
}

static void said_over_a_failed_write(void **state)
{
    (void)state;
    fail_each("store.write", 1, JOBS);
}

/* On disk, but the spool was told that it is not. */
static void said_over_a_write_that_was_one(void **state)
{
    (void)state;
    fail_each("store.written", 1, JOBS);
}

static void said_over_a_failed_read(void **state)
{
    (void)state;
    fail_each("store.get", 9, 4);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest child[] = {
        cmocka_unit_test_setup_teardown(scenario, verb_bare_setup, world_teardown)};
    const struct CMUnitTest tests[] = {
        TEST(kept_as_it_came),
        TEST(made_by_a_completion),
        TEST(keys_of_calls),
        TEST(lanes_of_calls),
        TEST(a_limit_holds_its_chat),
        TEST(one_limit_after_the_other),
        TEST(without_a_sender),
        TEST(replayed),
        TEST(exported_and_imported),
        cmocka_unit_test(said_over_a_failed_write),
        cmocka_unit_test(said_over_a_write_that_was_one),
        cmocka_unit_test(said_over_a_failed_read),
    };

    if (argc > 1) {
        int failed = cmocka_run_group_tests_name("scenario", child, NULL, NULL);
        return failed ? failed : hit ? 0 : EXIT_NOT_HIT;
    }
    if (!realpath("/proc/self/exe", self))
        snprintf(self, sizeof(self), "%s", argv[0]);
    return cmocka_run_group_tests_name("spool calls", tests, NULL, NULL);
}
