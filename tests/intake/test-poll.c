/* The poll's state machine, driven by a fake clock against a scripted Bot API client and a scripted spool:
 * the waits, the offset rules, what is confirmed and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "intake/poll.h"
#include "telegram/botapi.h"
#include "wire/json.h"

#define T0 INT64_C(1700000000000)

/* ---- randomness: the middle, so that a jittered wait is the plain one
 * ---------------------------------------- */

void random_bytes(void *out, size_t n)
{
    memset(out, 0x80, n);
}

uint64_t random_below(uint64_t below)
{
    return below / 2;
}

/* ---- the scripted Bot API client
 * ------------------------------------------------------------------------------ */

struct botapi {
    bool busy;
    struct botapi_poll asked;
    botapi_fn *fn;
    void *arg;
    unsigned calls, cancels, drops, infos;
    char token[64];
};

static struct botapi api;

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

void botapi_get_updates(struct botapi *a, const struct botapi_poll *p, botapi_fn *fn, void *arg)
{
    assert_false(a->busy);
    assert_true(p->offset >= 0);
    a->busy = true;
    a->asked = *p;
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

/* ---- the scripted spool
 * ------------------------------------------------------------------------------------------ */

struct accepted_update {
    bool has_id, broken;
    int64_t id;
};

static struct {
    struct accepted_update got[256];
    size_t n_got;
    int64_t known[256]; /* ids that are duplicates */
    size_t n_known;
    size_t batch, batch_max;
    struct poll_position stored, open;
    bool open_set;
    spool_done_fn *fns[16];
    void *args[16];
    size_t n_fns;
    bool sick, paused, fail_accept;
    struct buf note, open_note; /* what is kept of before */
    unsigned forgotten;
} sp;

struct spool *spool_of(struct spool_box *b)
{
    return (struct spool *)b;
}

bool spool_healthy(const struct spool *s, char why[256])
{
    (void)s;
    if (sp.sick)
        snprintf(why, 256, "the disk is gone");
    return !sp.sick;
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

void spool_set_position(struct spool_box *b, const struct poll_position *p)
{
    (void)b;
    sp.open = *p;
    sp.open_set = true;
}

void spool_get_position(struct spool_box *b, struct poll_position *out)
{
    (void)b;
    *out = sp.stored;
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

static void commit(bool ok)
{
    size_t n = sp.n_fns;

    if (ok && sp.open_set)
        sp.stored = sp.open;
    if (ok && sp.open_note.n) {
        buf_free(&sp.note);
        sp.note = sp.open_note;
        sp.open_note = BUF_EMPTY;
    }
    sp.open_set = false;
    sp.batch = 0;
    sp.n_fns = 0;
    for (size_t i = 0; i < n; i++)
        sp.fns[i](sp.args[i], ok);
}

/* ---- driving it
 * --------------------------------------------------------------------------------------------------- */

static struct poll *p;
static int64_t now;
static char token_in_file[64];
static bool token_unreadable;
static unsigned token_reads;
static struct bot_config bot;

static int reread(void *arg, struct buf *out, struct err *e)
{
    (void)arg;
    token_reads++;
    if (token_unreadable)
        return err_set(e, EX_NOINPUT, "the token file is gone");
    buf_add_str(out, token_in_file);
    return 0;
}

static void start_poll(void)
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

static int set_up(void **state)
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

static int tear_down(void **state)
{
    (void)state;
    poll_free(p);
    buf_free(&sp.note);
    buf_free(&sp.open_note);
    assert_true(sp.forgotten > 0);
    return 0;
}

/* As the daemon's tick does it. Returns the poll's deadline. */
static int64_t tick_with(bool ok)
{
    poll_tick(p, now);
    commit(ok);
    return poll_tick(p, now);
}

static int64_t tick(void)
{
    return tick_with(true);
}

static void reply(struct botapi_reply r)
{
    assert_true(api.busy);
    api.busy = false;
    api.fn(api.arg, &r);
    botapi_reply_free(&r);
}

/* A good answer with these ids; -1: an update without one. */
static void reply_ids(size_t n, const int64_t *ids)
{
    struct botapi_reply r = {.class = BOTAPI_OK, .retry_after_s = -1};

    r.updates.ok = true;
    r.updates.n = n;
    r.updates.updates = xcalloc(n + 1, sizeof(struct update));
    for (size_t i = 0; i < n; i++)
        r.updates.updates[i] = (struct update){.has_id = ids[i] >= 0, .id = ids[i] >= 0 ? ids[i] : 0};
    reply(r);
}

#define REPLY_IDS(...) reply_ids(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

static void reply_error(enum botapi_class class)
{
    reply((struct botapi_reply){.class = class, .retry_after_s = -1, .sentence = "so it is"});
}

static void reply_network(enum http_fail fail, bool sent, int64_t waited)
{
    reply((struct botapi_reply){.class = BOTAPI_TRANSIENT,
                                .fail = fail,
                                .sent = sent,
                                .waited_ms = waited,
                                .retry_after_s = -1,
                                .sentence = "broken"});
}

static void reply_garbled(const char *body)
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
static void expect_wait(int64_t wait)
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

static void expect_asked(int64_t offset, int limit)
{
    tick();
    assert_true(api.busy);
    assert_int_equal(api.asked.offset, offset);
    assert_int_equal(api.asked.limit, limit);
}

static const char *trouble(void)
{
    static struct poll_status st;

    poll_status(p, &st);
    return st.trouble;
}

/* ---- tests
 * ----------------------------------------------------------------------------------------------------------
 */

static void test_first_poll(void **state)
{
    (void)state;
    expect_asked(0, 100);
    assert_int_equal(api.asked.timeout_s, 30);
    assert_int_equal(api.asked.deadline_ms, 40000);
}

static void test_next_only_when_durable(void **state)
{
    (void)state;
    tick();
    REPLY_IDS(10, 11, 12);
    poll_tick(p, now);
    assert_int_equal(sp.n_got, 3);
    poll_tick(p, now);
    assert_false(api.busy); /* not yet written */
    commit(true);
    poll_tick(p, now);
    assert_true(api.busy);
    assert_int_equal(api.asked.offset, 13);
    assert_int_equal(sp.stored.offset, 13);
    assert_string_equal(sp.stored.api_root, "http://127.0.0.1:1");
}

static void test_lost_batch_is_not_confirmed(void **state)
{
    (void)state;
    tick();
    REPLY_IDS(10);
    tick();
    assert_int_equal(api.asked.offset, 11);
    REPLY_IDS(11, 12);
    tick_with(false);
    expect_wait(1000);
    assert_int_equal(api.asked.offset, 11);
}

static void test_one_lost_part_is_enough(void **state)
{
    (void)state;
    tick();
    sp.batch_max = 2;
    REPLY_IDS(10, 11, 12);
    poll_tick(p, now); /* full: goes on after the commit */
    assert_int_equal(sp.n_got, 2);
    commit(false);
    poll_tick(p, now);
    commit(true);
    expect_wait(1000);
    assert_int_equal(api.asked.offset, 0);
}

static void test_parts(void **state)
{
    (void)state;
    tick();
    sp.batch_max = 2;
    REPLY_IDS(10, 11, 12, 13, 14);
    for (int i = 0; i < 3; i++) {
        assert_false(api.busy);
        poll_tick(p, now);
        commit(true);
    }
    expect_asked(15, 100);
    assert_int_equal(sp.n_got, 5);
}

static void test_store_refuses(void **state)
{
    (void)state;
    tick();
    sp.fail_accept = true;
    REPLY_IDS(10);
    tick();
    sp.fail_accept = false;
    expect_wait(1000);
    assert_int_equal(api.asked.offset, 0);
    assert_int_equal(sp.stored.offset, 0);
}

static void test_id_reset(void **state)
{
    (void)state;
    tick();
    REPLY_IDS(727334708);
    expect_asked(727334709, 100);
    REPLY_IDS(117314199);
    expect_asked(117314200, 100);
    REPLY_IDS(117314200, 117314201);
    expect_asked(117314202, 100);
}

static void test_last_of_the_batch_not_highest(void **state)
{
    (void)state;
    tick();
    REPLY_IDS(900, 5);
    expect_asked(6, 100);
}

static void test_no_offset_after_a_day(void **state)
{
    (void)state;
    tick();
    REPLY_IDS(50);
    tick();
    now += HOURS(24) - 1;
    REPLY_IDS();
    expect_asked(51, 100);
    now += 30000;
    REPLY_IDS();
    expect_asked(0, 100);
    now += 30000;
    REPLY_IDS(7); /* the ids started anew */
    expect_asked(8, 100);
}

static void test_other_api_root(void **state)
{
    (void)state;
    poll_free(p);
    snprintf(sp.stored.api_root, sizeof(sp.stored.api_root), "https://api.telegram.org");
    sp.stored.offset = 70;
    sp.stored.newest_update_at = now;
    start_poll();
    expect_asked(0, 100);
}

static void test_restart_goes_on(void **state)
{
    (void)state;
    tick();
    REPLY_IDS(70);
    tick();
    poll_free(p);
    start_poll();
    expect_asked(71, 100);
}

static void test_pace(void **state)
{
    (void)state;
    tick();
    now += 300;
    REPLY_IDS(); /* empty at once */
    expect_wait(1000);
    now += 30000;
    REPLY_IDS(); /* empty after a long poll */
    expect_asked(0, 100);
    REPLY_IDS(1, 2);
    expect_asked(3, 100);
    now += 30000;
    REPLY_IDS(1, 2); /* only duplicates */
    expect_wait(1000);
    assert_int_equal(api.asked.offset, 3);
}

static void test_network_backoff(void **state)
{
    static const int64_t waits[] = {1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000};

    (void)state;
    tick();
    for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
        reply_network(HTTP_REFUSED, false, 0);
        expect_wait(waits[i]);
    }
    assert_string_equal(trouble(), "broken");
    REPLY_IDS(1);
    tick();
    assert_string_equal(trouble(), "");
    reply_network(HTTP_CUT, true, 20000);
    expect_wait(1000);
}

static void test_idle_end(void **state)
{
    (void)state;
    tick();
    now += 10000;
    reply_network(HTTP_RESET, true, 10000);
    expect_asked(0, 100);
    assert_string_equal(trouble(), "");
    now += 9999;
    reply_network(HTTP_RESET, true, 9999);
    expect_wait(1000);
    assert_string_equal(trouble(), "broken");
}

static void test_limited(void **state)
{
    (void)state;
    tick();
    reply((struct botapi_reply){.class = BOTAPI_LIMITED, .retry_after_s = 17});
    expect_wait(17000);
    reply((struct botapi_reply){.class = BOTAPI_LIMITED, .retry_after_s = INT64_MAX});
    expect_wait(HOURS(24));
}

static void test_another_kind_starts_anew(void **state)
{
    (void)state;
    tick();
    for (int i = 0; i < 4; i++) {
        reply_network(HTTP_RESET, true, 0);
        expect_wait(1000 << i);
    }
    reply_error(BOTAPI_REJECTED);
    expect_wait(1000);
    reply_garbled("{\"ok\":true,\"result\":[{]}");
    expect_wait(1000);
    REPLY_IDS(1);
    tick();
}

static void test_conflict(void **state)
{
    (void)state;
    tick();
    reply((struct botapi_reply){
        .class = BOTAPI_CONFLICT, .conflict = CONFLICT_OTHER_POLL, .retry_after_s = -1});
    expect_wait(3000);
    assert_int_equal(api.drops, 1);
    assert_non_null(strstr(trouble(), "tgspool pause"));
    reply((struct botapi_reply){.class = BOTAPI_CONFLICT, .conflict = CONFLICT_WEBHOOK, .retry_after_s = -1});
    expect_wait(6000);
    assert_int_equal(api.drops, 2);
    assert_non_null(strstr(trouble(), "a webhook is set"));
    assert_non_null(strstr(trouble(), "tgspool webhook delete shop"));
    reply((struct botapi_reply){
        .class = BOTAPI_CONFLICT, .conflict = CONFLICT_SET_WEBHOOK, .retry_after_s = -1});
    expect_wait(12000);
    assert_non_null(strstr(trouble(), "a webhook was just set"));
}

static void check_token_is_read_anew(enum botapi_class class)
{
    tick();
    reply_error(class);
    expect_wait(60000);
    assert_int_equal(token_reads, 1);
    assert_string_equal(api.token, "1:first");
    snprintf(token_in_file, sizeof(token_in_file), "1:second");
    reply_error(class);
    expect_wait(60000);
    assert_string_equal(api.token, "1:second");
    token_unreadable = true;
    reply_error(class);
    tick();
    now += 60000;
    tick();
    assert_false(api.busy);
    assert_string_equal(trouble(), "the token file is gone");
    token_unreadable = false;
    expect_wait(60000);
    assert_int_equal(token_reads, 4);
    REPLY_IDS(1);
    tick();
    assert_int_equal(token_reads, 4);
}

static void test_unauthorized(void **state)
{
    (void)state;
    check_token_is_read_anew(BOTAPI_UNAUTHORIZED);
}

static void test_not_found(void **state)
{
    (void)state;
    check_token_is_read_anew(BOTAPI_NOT_FOUND);
}

static void test_reload_ends_the_wait(void **state)
{
    (void)state;
    tick();
    reply_error(BOTAPI_UNAUTHORIZED);
    tick();
    poll_set_token(p, "1:first"); /* the same: goes on waiting */
    tick();
    assert_false(api.busy);
    poll_set_token(p, "1:third");
    expect_asked(0, 100);
    assert_string_equal(api.token, "1:third");
    assert_int_equal(token_reads, 0);
}

static void test_poison_with_id(void **state)
{
    (void)state;
    tick();
    REPLY_IDS(10);
    tick();
    reply_garbled("{\"ok\":true,\"result\":[{\"update_id\":11},{\"update_id\":12,,}]}");
    expect_wait(1000);
    assert_int_equal(api.asked.limit, 100);
    reply_garbled("{\"ok\":true,\"result\":[{\"update_id\":11},{\"update_id\":12,,}]}");
    expect_asked(11, 1);
    REPLY_IDS(11);
    expect_asked(12, 1);
    reply_garbled("{\"ok\":true,\"result\":[{\"update_id\":12,,}]}");
    expect_asked(13, 100);
    assert_int_equal(sp.n_got, 3);
    assert_true(sp.got[2].broken);
    assert_true(sp.got[2].has_id);
    assert_int_equal(sp.got[2].id, 12);
    assert_int_equal(sp.stored.offset, 13);
}

static void test_poison_without_id(void **state)
{
    (void)state;
    tick();
    REPLY_IDS(10);
    tick();
    for (int i = 0; i < 2; i++) {
        reply_garbled("{\"ok\":true,\"result\":[{]}");
        if (i == 0)
            expect_wait(1000);
    }
    expect_asked(11, 1);
    reply_garbled("{\"ok\":true,\"result\":[{]}");
    expect_asked(12, 100);
    assert_true(sp.got[1].broken);
    assert_false(sp.got[1].has_id);
}

static void test_garbled_once(void **state)
{
    (void)state;
    tick();
    reply_garbled("{\"ok\":true,\"result\":[{]}");
    expect_wait(1000);
    REPLY_IDS(10);
    expect_asked(11, 100);
    reply_garbled("{\"ok\":true,\"result\":[{]}");
    expect_wait(1000);
    assert_int_equal(api.asked.limit, 100);
}

static void test_html_is_no_poison(void **state)
{
    (void)state;
    tick();
    for (int i = 0; i < 5; i++) {
        reply_error(BOTAPI_TRANSIENT);
        tick();
        now += 60000;
        expect_asked(0, 100);
    }
    assert_int_equal(sp.n_got, 0);
}

static void test_updates_without_id(void **state)
{
    (void)state;
    tick();
    REPLY_IDS(10, -1, 12);
    expect_asked(13, 100);
    REPLY_IDS(13, -1);
    expect_asked(14, 100);
    REPLY_IDS(-1);
    expect_asked(15, 100);
    assert_int_equal(sp.n_got, 6);
    assert_false(sp.got[5].broken);
}

static void test_pause(void **state)
{
    (void)state;
    tick();
    sp.paused = true;
    assert_int_equal(tick(), TIME_NEVER);
    assert_int_equal(api.cancels, 1);
    now += HOURS(1);
    tick();
    assert_false(api.busy);
    sp.paused = false;
    expect_asked(0, 100);
}

static void test_sick_store(void **state)
{
    (void)state;
    sp.sick = true;
    tick();
    assert_int_equal(api.calls, 0);
    sp.sick = false;
    expect_asked(0, 100);
}

static void test_stop(void **state)
{
    (void)state;
    tick();
    REPLY_IDS(10);
    tick();
    poll_stop(p);
    tick();
    assert_int_equal(api.cancels, 1);
    assert_true(api.busy);
    assert_int_equal(api.asked.offset, 11);
    assert_int_equal(api.asked.limit, 1);
    assert_int_equal(api.asked.timeout_s, 0);
    assert_int_equal(api.asked.deadline_ms, 2000);
    assert_false(poll_stopped(p));
    REPLY_IDS(11); /* thrown away */
    tick();
    assert_true(poll_stopped(p));
    assert_int_equal(sp.n_got, 1);
}

static void test_stop_while_saving(void **state)
{
    (void)state;
    tick();
    REPLY_IDS(10);
    poll_tick(p, now);
    poll_stop(p);
    poll_tick(p, now);
    assert_false(api.busy);
    commit(true);
    tick();
    assert_int_equal(api.asked.offset, 11);
    assert_int_equal(api.asked.limit, 1);
    reply_network(HTTP_TIMEOUT, true, 2000);
    assert_true(poll_stopped(p));
}

static void test_stop_with_nothing_to_say(void **state)
{
    (void)state;
    tick();
    poll_stop(p);
    tick();
    assert_true(poll_stopped(p));
    assert_int_equal(api.calls, 1);
}

static void test_stop_while_paused(void **state)
{
    (void)state;
    tick();
    REPLY_IDS(10);
    tick();
    sp.paused = true;
    tick();
    unsigned calls = api.calls;
    poll_stop(p);
    tick();
    assert_true(poll_stopped(p));
    assert_int_equal(api.calls, calls);
}

/* Without a note, the first request asks how things were; getUpdates comes only when that is durable. */
static void test_notes_what_was_before(void **state)
{
    struct json *root = json_parse(slice_str("{\"url\":\"https://old.example/x?secret\","
                                             "\"allowed_updates\":[\"message\",\"poll\"]}"),
                                   NULL);

    (void)state;
    poll_free(p);
    buf_free(&sp.note);
    start_poll();
    tick();
    assert_int_equal(api.infos, 1);
    reply_error(BOTAPI_TRANSIENT);
    tick();
    now += 1000;
    tick();
    assert_int_equal(api.infos, 2);
    reply((struct botapi_reply){.class = BOTAPI_OK, .retry_after_s = -1, .result = root});
    poll_tick(p, now);
    assert_int_equal(api.calls, 0);
    commit(false);
    poll_tick(p, now);
    now += 1000;
    tick();
    assert_int_equal(api.infos, 3); /* that was lost: once more */
    reply((struct botapi_reply){.class = BOTAPI_OK, .retry_after_s = -1, .result = root});
    tick();
    assert_int_equal(api.calls, 1);
    assert_string_equal(buf_str(&sp.note),
                        "{\"had_webhook\":true,\"allowed_updates\":[\"message\",\"poll\"]}");
    json_free(root);
    REPLY_IDS(1);
    tick();
    assert_int_equal(api.infos, 3);
}

static void test_rests_only_when_nothing_is_under_way(void **state)
{
    (void)state;
    tick();
    REPLY_IDS(10);
    poll_tick(p, now);
    sp.paused = true;
    poll_tick(p, now);
    assert_false(poll_rests(p));
    commit(true);
    poll_tick(p, now);
    assert_true(poll_rests(p));
    assert_int_equal(sp.stored.offset, 11);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_first_poll),
        TEST(test_notes_what_was_before),
        TEST(test_next_only_when_durable),
        TEST(test_lost_batch_is_not_confirmed),
        TEST(test_one_lost_part_is_enough),
        TEST(test_parts),
        TEST(test_store_refuses),
        TEST(test_id_reset),
        TEST(test_last_of_the_batch_not_highest),
        TEST(test_no_offset_after_a_day),
        TEST(test_other_api_root),
        TEST(test_restart_goes_on),
        TEST(test_pace),
        TEST(test_network_backoff),
        TEST(test_idle_end),
        TEST(test_limited),
        TEST(test_another_kind_starts_anew),
        TEST(test_conflict),
        TEST(test_unauthorized),
        TEST(test_not_found),
        TEST(test_reload_ends_the_wait),
        TEST(test_poison_with_id),
        TEST(test_poison_without_id),
        TEST(test_garbled_once),
        TEST(test_html_is_no_poison),
        TEST(test_updates_without_id),
        TEST(test_pause),
        TEST(test_rests_only_when_nothing_is_under_way),
        TEST(test_sick_store),
        TEST(test_stop),
        TEST(test_stop_while_saving),
        TEST(test_stop_with_nothing_to_say),
        TEST(test_stop_while_paused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
