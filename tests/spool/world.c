/* The stage of the spool tests; see world.h. */
#include "world.h"

#include <unistd.h>

#include "base/log.h"
#include "base/tree.h"

static void on_happened(void *arg, const struct spool_happening *h)
{
    struct world *w = arg;

    w->happened[h->what]++;
}

static void forget_all(struct world *w)
{
    while (w->n_held)
        claim_free(w->held[--w->n_held]);
}

struct db *world_db(const char *dir, enum db_mode mode)
{
    char *path = xasprintf("%s/db", dir);
    struct err e = ERR_NONE;
    struct db *db = db_open(path, mode, 1 << 20, &e);

    if (!db)
        fail_msg("%s", e.text);
    free(path);
    return db;
}

void world_open(struct world *w)
{
    struct spool_options o = {.dir = w->dir, .cache_bytes = 1 << 20, .sync = w->sync, .sync_ms = w->sync_ms};
    struct err e = ERR_NONE;

    w->sp = spool_open(&o, w->now, &e);
    if (!w->sp)
        fail_msg("spool_open: %s", e.text);
    spool_watch(w->sp, on_happened, w);
    if (w->retention.done_ms)
        spool_set_retention(w->sp, &w->retention);
    world_policy(w);
}

void world_retain(struct world *w, int64_t done_ms, int64_t dead_ms, int64_t dedupe_ms)
{
    w->retention = (struct spool_retention){
        .done_ms = done_ms, .dead_ms = dead_ms, .dedupe_ms = dedupe_ms, .audit_ms = HOURS(1000)};
    spool_set_retention(w->sp, &w->retention);
}

void world_close(struct world *w)
{
    spool_close(w->sp);
    w->sp = NULL;
    w->box = NULL;
    forget_all(w);
}

void world_reopen(struct world *w, int64_t gap_ms)
{
    world_close(w);
    w->now += gap_ms;
    world_open(w);
    world_step(w); /* in which what a dead process held is released */
}

void world_policy(struct world *w)
{
    world_begin(w);
    w->box = spool_attach(w->sp, BOT_ID, BOX_IN, "shop", &w->policy);
    assert_non_null(w->box);
    world_commit(w);
}

int world_setup(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));

    log_setup(LOG_ERROR, LOG_TEXT, false);
    strcpy(w->dir, "/tmp/tgspool-spool-XXXXXX");
    if (!mkdtemp(w->dir))
        return -1;
    w->now = START;
    w->policy = (struct spool_policy){
        .order = ORDER_CHAT,
        .outcome = {.retry = {.step_ms = {2000, 5000, 15000, 60000}, .n = 4}, .max_attempts = 8},
        .lease_ms = 60000,
        .concurrency = 4,
        .expire = EXPIRE_OFF,
    };
    *state = w;
    world_open(w);
    return 0;
}

int world_teardown(void **state)
{
    struct world *w = *state;

    if (w->sp)
        world_close(w);
    tree_remove(w->dir, NULL);
    free(w);
    return 0;
}

void world_begin(struct world *w)
{
    spool_begin(w->sp, w->now);
}

static void note_ok(void *arg, bool ok)
{
    *(int *)arg = ok ? 1 : -1;
}

void world_commit(struct world *w)
{
    int written = 0, durable = 0;

    spool_on_written(w->sp, note_ok, &written);
    if (w->sync != SYNC_INTERVAL) /* else in a later one */
        spool_on_durable(w->sp, note_ok, &durable);
    spool_commit(w->sp);
    assert_int_equal(written, 1);
    assert_int_equal(durable, w->sync != SYNC_INTERVAL);
}

void world_step(struct world *w)
{
    world_begin(w);
    spool_work(w->sp);
    world_commit(w);
}

void world_wait(struct world *w, int64_t ms)
{
    w->now += ms;
}

char *world_message(int64_t update_id, int64_t chat, const char *text)
{
    return xasprintf(
        "{\"update_id\":%lld,\n\"message\":{\"chat\":{\"id\":%lld},\"from\":{\"id\":%lld},\"text\":\"%s\"}}",
        (long long)update_id, (long long)chat, (long long)chat + 1000, text);
}

enum accepted world_accept_json(struct world *w, const char *json, uint64_t *seq)
{
    struct update u;

    assert_int_equal(update_parse(slice_str(json), &u), 0);
    return spool_accept(w->box, &u, false, seq);
}

uint64_t world_accept(struct world *w, int64_t update_id, int64_t chat, const char *text)
{
    char *json = world_message(update_id, chat, text);
    uint64_t seq = 0;

    assert_int_equal(world_accept_json(w, json, &seq), ACCEPTED_NEW);
    assert_true(seq > 0);
    free(json);
    return seq;
}

uint64_t world_arrive(struct world *w, int64_t update_id, int64_t chat)
{
    world_begin(w);
    uint64_t seq = world_accept(w, update_id, chat, "");
    world_commit(w);
    return seq;
}

static void on_claim(void *arg, struct claim *c)
{
    struct world *w = arg;

    if (!c) {
        w->lost_claims++;
        return;
    }
    assert_true(w->n_held < HELD_MAX);
    w->held[w->n_held++] = c;
}

unsigned world_claim(struct world *w, unsigned max, bool push)
{
    struct claim_request r = {.by = push ? "push" : "pull", .push = push, .max = max};

    return spool_claim(w->box, &r, on_claim, w);
}

struct claim *world_take(struct world *w, bool push)
{
    size_t before = w->n_held;

    world_begin(w);
    spool_work(w->sp);
    unsigned n = world_claim(w, 1, push);
    assert_true(n <= 1);
    assert_int_equal(w->n_held, before); /* handed over by the commit, not sooner */
    world_commit(w);
    assert_int_equal(w->n_held, before + n);
    return n ? w->held[w->n_held - 1] : NULL;
}

struct claim *world_take_seq(struct world *w, bool push, uint64_t seq)
{
    struct claim *c = world_take(w, push);

    if (!c)
        fail_msg("nothing to claim, expected seq %llu", (unsigned long long)seq);
    assert_int_equal(c->ev.seq, seq);
    return c;
}

void world_drop(struct world *w, struct claim *c)
{
    for (size_t i = 0; i < w->n_held; i++)
        if (w->held[i] == c) {
            memmove(w->held + i, w->held + i + 1, (w->n_held - i - 1) * sizeof(*w->held));
            w->n_held--;
            claim_free(c);
            return;
        }
    fail_msg("not a held claim");
}

enum completed world_complete(struct world *w, struct claim *c, enum outcome_kind kind, int64_t after_ms)
{
    struct outcome o = {.kind = kind, .after_ms = after_ms};
    enum completed rc = spool_complete(w->box, c->ev.seq, c->token, &o);

    world_drop(w, c);
    return rc;
}

void world_end(struct world *w, struct claim *c, enum outcome_kind kind, int64_t after_ms)
{
    world_begin(w);
    assert_int_equal(world_complete(w, c, kind, after_ms), COMPLETED);
    world_commit(w);
}

struct claim *world_held(struct world *w, uint64_t seq)
{
    for (size_t i = 0; i < w->n_held; i++)
        if (w->held[i]->ev.seq == seq)
            return w->held[i];
    return NULL;
}

struct event_state world_state(struct world *w, uint64_t seq)
{
    struct event ev;
    struct event_state st;
    struct buf record = BUF_EMPTY;

    if (spool_get(w->box, seq, &ev, &st, &record) < 0)
        fail_msg("no event %llu", (unsigned long long)seq);
    assert_int_equal(ev.seq, seq);
    buf_free(&record);
    return st;
}

struct spool_box_status world_status(struct world *w)
{
    struct spool_box_status s;

    spool_box_status(w->box, &s);
    return s;
}

void world_expect(struct world *w, uint64_t seq, enum state state, enum reason reason, unsigned attempts)
{
    struct event_state st = world_state(w, seq);

    if (st.state != state || st.reason != reason || st.attempts != attempts)
        fail_msg("event %llu is %s %s with %u attempts, expected %s %s with %u", (unsigned long long)seq,
                 state_name(st.state), reason_name(st.reason), st.attempts, state_name(state),
                 reason_name(reason), attempts);
}

void world_wakes_by(struct world *w, int64_t time)
{
    int64_t next = spool_next_deadline(w->sp);

    if (next <= w->now || next > time)
        fail_msg("wakes in %lld ms, expected at most %lld", (long long)(next - w->now),
                 (long long)(time - w->now));
}

static void print_fault(void *arg, const char *sentence)
{
    (void)arg;
    print_error("verify: %s\n", sentence);
}

void world_verify(struct world *w)
{
    assert_int_equal(spool_verify(w->sp, print_fault, NULL, NULL), 0);
}
