/* Words of the tests of keys, calls and serving; see verbs.h. */
#include "verbs.h"

#include <unistd.h>

#include "base/log.h"
#include "spool/internal.h"

enum keyed verb_ask(struct world *w, const char *key, int64_t ttl_ms, const struct claim *c)
{
    return spool_key(w->box, slice_str(key), ttl_ms, c ? c->ev.seq : 0, c ? c->token : NULL);
}

enum keyed verb_key(struct world *w, const char *key, const struct claim *c)
{
    world_begin(w);
    enum keyed k = verb_ask(w, key, 0, c);
    world_commit(w);
    return k;
}

enum completed verb_end_with(struct world *w, struct claim *c, enum outcome_kind kind,
                             const struct spool_extras *extras)
{
    struct outcome o = {.kind = kind, .after_ms = -1};

    world_begin(w);
    enum completed rc = spool_complete_with(c->box, c->ev.seq, c->token, &o, extras);
    world_commit(w);
    world_drop(w, c);
    return rc;
}

struct spool_call verb_call(int64_t chat, const char *body)
{
    return (struct spool_call){.method = "sendMessage",
                               .content_type = "application/json",
                               .body = slice_str(body),
                               .lane = {.type = LANE_CHAT, .a = chat},
                               .has_chat = true,
                               .chat = chat};
}

unsigned verb_rows(struct world *w, enum family f)
{
    struct key lower = {.n = 0}, upper = {.n = 0};
    struct err e = ERR_NONE;
    unsigned n = 0;

    lower.b[lower.n++] = 0;
    memset(upper.b, 255, upper.n = 30);
    struct db_iter *it = db_iter_new(store_db(w->sp->store), f, key_slice(&lower), key_slice(&upper));
    for (; db_iter_valid(it); db_iter_next(it))
        n++;
    assert_int_equal(db_iter_free(it, &e), 0);
    return n;
}

int verb_bare_setup(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));
    struct spool_options o = {.dir = w->dir, .cache_bytes = 1 << 20, .sync = SYNC_ALWAYS};
    struct err e = ERR_NONE;

    log_setup(LOG_ERROR, LOG_TEXT, false);
    strcpy(w->dir, "/tmp/tgspool-verbs-XXXXXX");
    if (!mkdtemp(w->dir))
        return -1;
    w->now = START;
    w->policy = (struct spool_policy){.outcome = {.retry = {.step_ms = {1000}, .n = 1}, .max_attempts = 8},
                                      .lease_ms = HOURS(1),
                                      .concurrency = 4};
    w->sp = spool_open(&o, w->now, &e);
    *state = w;
    return w->sp ? 0 : -1;
}

static void on_claim(void *arg, struct claim *c)
{
    struct world *w = arg;

    assert_non_null(c);
    assert_true(w->n_held < HELD_MAX);
    w->held[w->n_held++] = c;
}

unsigned verb_claim_from(struct world *w, struct spool_box *b, unsigned max)
{
    struct claim_request r = {.by = "call", .push = true, .max = max};

    world_begin(w);
    spool_work(w->sp);
    unsigned n = spool_claim(b, &r, on_claim, w);
    world_commit(w);
    return n;
}

unsigned verb_serve(struct world *w, unsigned max, struct seen *seen)
{
    struct served *out = xcalloc(max, sizeof(*out));

    world_begin(w);
    spool_work(w->sp);
    unsigned n = spool_serve(w->box, max, SIZE_MAX, NULL, NULL, out);
    assert_true(n <= max);
    world_commit(w);
    for (unsigned i = 0; i < n; i++) {
        seen[i] = (struct seen){out[i].seq, out[i].served_id};
        assert_int_equal(out[i].ev.seq, out[i].seq);
        buf_free(&out[i].record);
    }
    free(out);
    return n;
}

unsigned verb_confirm(struct world *w, int64_t offset)
{
    world_begin(w);
    unsigned n = spool_serve_confirm(w->box, offset);
    world_commit(w);
    return n;
}
