/* The scripted client and spool of rig.h, and the driving of the poll between them. */
#include "rig.h"

#include "base/random.h"

/* ---- randomness: the middle, so that a jittered wait is the plain one --------------------------- */

void random_bytes(void *out, size_t n)
{
    memset(out, 0x80, n);
}

uint64_t random_below(uint64_t below)
{
    return below / 2;
}

/* ---- the scripted Bot API client ---------------------------------------------------------------- */

struct botapi api;

struct botapi *botapi_new(struct loop *l, const struct botapi_options *o, struct err *e)
{
    (void)l, (void)e;
    api = (struct botapi){.busy = false};
    snprintf(api.token, sizeof(api.token), "%s", o->token);
    return &api;
}

void botapi_free(struct botapi *a)
{
    a->busy = false;
}

bool botapi_set_token(struct botapi *a, const char *token)
{
    bool other = strcmp(a->token, token) != 0;

    snprintf(a->token, sizeof(a->token), "%s", token);
    return other;
}

void botapi_get_updates(struct botapi *a, const struct botapi_poll *asked, botapi_fn *fn, void *arg)
{
    assert_false(a->busy);
    assert_true(asked->offset >= 0);
    a->busy = true;
    a->asked = *asked;
    a->fn = fn;
    a->arg = arg;
    a->calls++;
}

void botapi_get_webhook_info(struct botapi *a, int64_t deadline_ms, botapi_fn *fn, void *arg)
{
    assert_false(a->busy);
    assert_true(deadline_ms > 0);
    a->busy = true;
    a->fn = fn;
    a->arg = arg;
    a->infos++;
}

bool botapi_busy(const struct botapi *a)
{
    return a->busy;
}

void botapi_cancel(struct botapi *a)
{
    if (a->busy)
        a->cancels++;
    a->busy = false;
}

void botapi_drop_connection(struct botapi *a)
{
    a->drops++;
}

void botapi_reply_moved(struct botapi_reply *r)
{
    r->updates = (struct update_answer){.updates = NULL};
    r->body = BUF_EMPTY;
}

void botapi_reply_free(struct botapi_reply *r)
{
    free(r->updates.updates);
    buf_free(&r->body);
    botapi_reply_moved(r);
}

/* ---- the scripted spool ------------------------------------------------------------------------- */

struct fake_spool sp;

struct spool *spool_of(struct spool_box *b)
{
    return (struct spool *)b;
}

bool spool_healthy(const struct spool *s, char why[256])
{
    (void)s;
    if (sp.sick && why)
        snprintf(why, 256, "the disk is gone");
    return !sp.sick;
}

const char *spool_held(const struct spool *s)
{
    (void)s;
    return sp.held;
}

void spool_box_status(struct spool_box *b, struct spool_box_status *out)
{
    (void)b;
    memset(out, 0, sizeof(*out));
    out->paused_intake = sp.paused;
}

bool spool_batch_full(const struct spool *s)
{
    (void)s;
    return sp.batch >= sp.batch_max;
}

enum accepted spool_accept(struct spool_box *b, const struct update *u, bool broken, uint64_t *seq)
{
    (void)b, (void)seq;
    if (sp.fail_accept)
        return ACCEPTED_FAILED;
    for (size_t i = 0; u->has_id && i < sp.n_known; i++)
        if (sp.known[i] == u->id)
            return ACCEPTED_DUPLICATE;
    assert_true(sp.n_got < ARRAY_LEN(sp.got));
    sp.got[sp.n_got++] = (struct accepted_update){u->has_id, broken, u->id};
    if (u->has_id)
        sp.known[sp.n_known++] = u->id;
    sp.batch++;
    return ACCEPTED_NEW;
}

void spool_set_position(struct spool_box *b, const struct poll_position *position)
{
    (void)b;
    sp.open = *position;
    sp.open_set = true;
}

void spool_get_position(struct spool_box *b, struct poll_position *out)
{
    (void)b;
    *out = sp.stored;
}

bool spool_count_gap(struct spool_box *b, int64_t missing)
{
    (void)b;
    sp.open_missing += missing;
    return true;
}

void spool_newest_update(struct spool_box *b, int64_t *next, int64_t *at)
{
    (void)b;
    *next = *at = 0;
}

void spool_set_note(struct spool_box *b, const char *name, struct slice text)
{
    (void)b;
    assert_string_equal(name, "before");
    buf_clear(&sp.open_note);
    buf_add_slice(&sp.open_note, text);
}

bool spool_get_note(struct spool_box *b, const char *name, struct buf *out)
{
    (void)b, (void)name;
    buf_add_slice(out, buf_slice(&sp.note));
    return sp.note.n > 0;
}

void spool_on_durable(struct spool *s, spool_done_fn *fn, void *arg)
{
    (void)s;
    assert_true(sp.n_fns < ARRAY_LEN(sp.fns));
    sp.fns[sp.n_fns] = fn;
    sp.args[sp.n_fns++] = arg;
}

void spool_forget(struct spool *s, void *arg)
{
    (void)s, (void)arg;
    sp.forgotten++;
}

void commit(bool ok)
{
    size_t n = sp.n_fns;

    if (ok && sp.open_set)
        sp.stored = sp.open;
    if (ok && sp.open_note.n) {
        buf_free(&sp.note);
        sp.note = sp.open_note;
        sp.open_note = BUF_EMPTY;
    }
    if (ok)
        sp.missing += sp.open_missing;
    sp.open_missing = 0;
    sp.open_set = false;
    sp.batch = 0;
    sp.n_fns = 0;
    for (size_t i = 0; i < n; i++)
        sp.fns[i](sp.args[i], ok);
}

/* ---- driving it --------------------------------------------------------------------------------- */

struct poll *p;
int64_t now;
char token_in_file[64];
bool token_unreadable;
unsigned token_reads;
struct bot_config bot;

static int reread(void *arg, struct buf *out, struct err *e)
{
    (void)arg;
    token_reads++;
    if (token_unreadable)
        return err_set(e, EX_NOINPUT, "the token file is gone");
    buf_add_str(out, token_in_file);
    return 0;
}

void start_poll(void)
{
    static char root[] = "http://127.0.0.1:1", token_file[] = "/etc/shop.token";
    struct err e = ERR_NONE;

    bot = (struct bot_config){
        .name = "shop", .api_root = root, .token_file = token_file, .poll_timeout_ms = 30000};
    struct poll_options o = {
        .box = (struct spool_box *)&sp, .bot = &bot, .token = "1:first", .reread_token = reread};
    p = poll_new(&o, &e);
    assert_non_null(p);
}

int set_up(void **state)
{
    (void)state;
    memset(&sp, 0, sizeof(sp));
    buf_add_str(&sp.note, "{}");
    sp.batch_max = 1000;
    now = T0;
    token_unreadable = false;
    token_reads = 0;
    snprintf(token_in_file, sizeof(token_in_file), "1:first");
    start_poll();
    return 0;
}

int tear_down(void **state)
{
    (void)state;
    poll_free(p);
    buf_free(&sp.note);
    buf_free(&sp.open_note);
    assert_true(sp.forgotten > 0);
    return 0;
}

/* As the daemon's tick does it. Returns the poll's deadline. */
int64_t tick_with(bool ok)
{
    poll_tick(p, now);
    commit(ok);
    return poll_tick(p, now);
}

int64_t tick(void)
{
    return tick_with(true);
}

void reply(struct botapi_reply r)
{
    assert_true(api.busy);
    api.busy = false;
    api.fn(api.arg, &r);
    botapi_reply_free(&r);
}

/* A good answer with these ids; -1: an update without one. */
void reply_ids(size_t n, const int64_t *ids)
{
    struct botapi_reply r = {.class = BOTAPI_OK, .retry_after_s = -1};

    r.updates.ok = true;
    r.updates.n = n;
    r.updates.updates = xcalloc(n + 1, sizeof(struct update));
    for (size_t i = 0; i < n; i++)
        r.updates.updates[i] = (struct update){.has_id = ids[i] >= 0, .id = ids[i] >= 0 ? ids[i] : 0};
    reply(r);
}

void reply_error(enum botapi_class class)
{
    reply((struct botapi_reply){.class = class, .retry_after_s = -1, .sentence = "so it is"});
}

void reply_network(enum http_fail fail, bool sent, int64_t waited)
{
    reply((struct botapi_reply){.class = BOTAPI_TRANSIENT,
                                .fail = fail,
                                .sent = sent,
                                .waited_ms = waited,
                                .retry_after_s = -1,
                                .sentence = "broken"});
}

void reply_garbled(const char *body)
{
    struct botapi_reply r = {.class = BOTAPI_TRANSIENT,
                             .garbled = true,
                             .status = 200,
                             .retry_after_s = -1,
                             .sentence = "unreadable"};

    buf_add_str(&r.body, body);
    reply(r);
}

/* No request goes out before `wait` ms have passed, and one does then. */
void expect_wait(int64_t wait)
{
    unsigned calls = api.calls;
    int64_t at = tick();

    assert_false(api.busy);
    assert_int_equal(at - now, wait);
    now += wait - 1;
    tick();
    assert_int_equal(api.calls, calls);
    now += 1;
    tick();
    assert_int_equal(api.calls, calls + 1);
    assert_true(api.busy);
}

void expect_asked(int64_t offset, int limit)
{
    tick();
    assert_true(api.busy);
    assert_int_equal(api.asked.offset, offset);
    assert_int_equal(api.asked.limit, limit);
}

const char *trouble(void)
{
    static struct poll_status st;

    poll_status(p, &st);
    return st.trouble;
}
