/* The webhook door against a scripted listener and spool: who is let in, what is answered, and that 200 comes after
 * the sync and never before. */
#include "../unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "core/update.h"
#include "intake/webhook.h"

#define SECRET "the-secret_1"

/* ---- the scripted listener ---------------------------------------------------------------------- */

struct http_exchange {
    int status; /* 0: not answered */
    int64_t retry_after_s;
    char body[256];
    bool whole; /* its body is wanted */
    size_t max;
    void (*gone)(void *arg);
    void *gone_arg;
};

static void answer(struct http_exchange *x, int status, int64_t retry_after_s, struct slice body)
{
    assert_int_equal(x->status, 0);
    assert_null(x->gone);
    x->status = status;
    x->retry_after_s = retry_after_s;
    snprintf(x->body, sizeof(x->body), "%.*s", (int)body.n, body.n ? body.p : "");
}

void http_reply(struct http_exchange *x, int status, const char *type, int64_t retry_after_s,
                struct slice body)
{
    assert_null(type);
    answer(x, status, retry_after_s, body);
}

void http_reply_error(struct http_exchange *x, int status, const char *code, const char *message)
{
    char body[256];

    int n = snprintf(body, sizeof(body), "%s: %s", code, message);
    answer(x, status, -1, slice_make(body, (size_t)n));
}

void http_on_gone(struct http_exchange *x, void (*gone)(void *arg), void *arg)
{
    x->gone = gone;
    x->gone_arg = arg;
}

void http_body_whole(struct http_exchange *x, size_t max)
{
    x->whole = true;
    x->max = max;
}

/* ---- the scripted spool ------------------------------------------------------------------------- */

struct spool_box {
    const char *name;
    bool paused;
};

static struct spool_box shop = {"shop", false}, other = {"other", false};

static struct {
    struct {
        const struct spool_box *box;
        int64_t id;
        bool has_id;
    } got[64];
    size_t n;
    enum accepted as;
    bool sick, full;
    const char *held;
    int64_t missing;
    spool_done_fn *fns[64];
    void *args[64];
    size_t n_fns;
} sp;

bool spool_healthy(const struct spool *s, char why[256])
{
    (void)s, (void)why;
    return !sp.sick;
}

const char *spool_held(const struct spool *s)
{
    (void)s;
    return sp.held;
}

void spool_box_status(struct spool_box *b, struct spool_box_status *out)
{
    *out = (struct spool_box_status){.paused_intake = b->paused};
}

bool spool_batch_full(const struct spool *s)
{
    (void)s;
    return sp.full;
}

enum accepted spool_accept(struct spool_box *b, const struct update *u, bool broken, uint64_t *seq)
{
    assert_false(broken);
    assert_null(seq);
    if (sp.as == ACCEPTED_FAILED)
        return sp.as;
    sp.got[sp.n].box = b;
    sp.got[sp.n].has_id = u->has_id;
    sp.got[sp.n++].id = u->id;
    return sp.as;
}

bool spool_count_gap(struct spool_box *b, int64_t missing)
{
    assert_ptr_equal(b, &shop);
    sp.missing += missing;
    return true;
}

void spool_newest_update(struct spool_box *b, int64_t *next, int64_t *at)
{
    *next = b == &shop ? 5 : 0; /* update 4 came before the start */
    *at = b == &shop ? clock_now() : 0;
}

void spool_on_durable(struct spool *s, spool_done_fn *fn, void *arg)
{
    (void)s;
    sp.fns[sp.n_fns] = fn;
    sp.args[sp.n_fns++] = arg;
}

void spool_forget(struct spool *s, void *arg)
{
    (void)s;
    for (size_t i = 0; i < sp.n_fns; i++)
        if (sp.args[i] == arg)
            sp.fns[i] = NULL;
}

static void finish(bool ok)
{
    for (size_t i = 0; i < sp.n_fns; i++)
        if (sp.fns[i])
            sp.fns[i](sp.args[i], ok);
    sp.n_fns = 0;
}

/* ---- driving it --------------------------------------------------------------------------------- */

static struct webhook *w;

static int set_up(void **state)
{
    const struct webhook_bot bots[] = {{"shop", SECRET, &shop}, {"other", NULL, &other}};

    (void)state;
    memset(&sp, 0, sizeof(sp));
    shop.paused = other.paused = false;
    w = webhook_new(NULL);
    webhook_set_bots(w, bots, 2);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    webhook_free(w);
    for (size_t i = 0; i < sp.n_fns; i++)
        assert_null(sp.fns[i]);
    return 0;
}

static struct slice header(const struct http_server_request *r, const char *name)
{
    for (size_t i = 0; i < r->n_fields; i++)
        if (slice_eq_nocase(r->fields[i].name, name))
            return r->fields[i].value;
    return slice_make(NULL, 0);
}

struct ask {
    const char *method, *path, *secret, *body, *peer;
    const char *forwarded[2];
};

/* As the listener does it: the head; then, if it is wanted, the whole. */
static void ask(struct http_exchange *x, const struct ask *a)
{
    struct http_field fields[4];
    struct http_server_request r = {
        .method = slice_str(a->method ? a->method : "POST"),
        .path = slice_str(a->path ? a->path : "/hook/shop"),
        .header = header,
        .fields = fields,
        .peer_text = "",
    };

    if (a->secret)
        fields[r.n_fields++] =
            (struct http_field){slice_str("x-telegram-bot-api-SECRET-token"), slice_str(a->secret)};
    for (size_t i = 0; i < 2 && a->forwarded[i]; i++)
        fields[r.n_fields++] = (struct http_field){slice_str("X-Forwarded-For"), slice_str(a->forwarded[i])};
    assert_true(ip_parse(slice_str(a->peer ? a->peer : "127.0.0.1"), &r.peer_ip));
    *x = (struct http_exchange){.status = 0};
    webhook_head(w, x, &r);
    if (!x->whole) {
        assert_int_not_equal(x->status, 0);
        return;
    }
    assert_int_equal(x->max, 1 << 20);
    r.body = slice_str(a->body ? a->body : "{\"update_id\":5,\"message\":{}}");
    webhook_request(w, x, &r);
}

/* One that is to be answered later outlives this call. */
static void expect(const struct ask *a, int status)
{
    static struct http_exchange exchanges[64];
    static size_t n;
    struct http_exchange *x = &exchanges[n++ % ARRAY_LEN(exchanges)];

    ask(x, a);
    assert_int_equal(x->status, status);
}

/* ---- tests -------------------------------------------------------------------------------------- */

/* They come out of order: what is missing is a gap when it has not come for long. */
static void test_gaps(void **state)
{
    int64_t now = clock_now();

    (void)state;
    expect(&(struct ask){.secret = SECRET, .body = "{\"update_id\":9}"}, 0);
    expect(&(struct ask){.secret = SECRET, .body = "{\"update_id\":6}"}, 0);
    assert_in_range(webhook_tick(w, now), now + MINUTES(10), now + MINUTES(11));
    webhook_tick(w, now + MINUTES(9));
    assert_int_equal(sp.missing, 0);
    shop.paused = true; /* nothing can come: the waiting begins anew */
    webhook_tick(w, now + MINUTES(15));
    shop.paused = false;
    webhook_tick(w, now + MINUTES(24));
    assert_int_equal(sp.missing, 0);
    expect(&(struct ask){.secret = SECRET, .body = "{\"update_id\":7}"}, 0);
    assert_int_equal(webhook_tick(w, now + MINUTES(25)), TIME_NEVER);
    assert_int_equal(sp.missing, 2); /* 5, 8 */
    webhook_tick(w, now + HOURS(1));
    assert_int_equal(sp.missing, 2);
    finish(true);
}

static void test_answered_after_the_sync(void **state)
{
    struct http_exchange x, y;

    (void)state;
    ask(&x, &(struct ask){.secret = SECRET});
    sp.as = ACCEPTED_DUPLICATE;
    ask(&y, &(struct ask){.secret = SECRET});
    assert_int_equal(x.status | y.status, 0);
    assert_false(webhook_idle(w));
    assert_false(webhook_rests(w, &shop));
    assert_true(webhook_rests(w, &other));
    finish(true);
    assert_int_equal(x.status, 200);
    assert_int_equal(y.status, 200);
    assert_string_equal(x.body, ""); /* nothing that could be taken for a call */
    assert_true(webhook_idle(w));
    assert_int_equal(sp.n, 2);
}

static void test_a_lost_batch_is_not_confirmed(void **state)
{
    struct http_exchange x;

    (void)state;
    ask(&x, &(struct ask){.secret = SECRET});
    finish(false);
    assert_int_equal(x.status, 503);
    assert_int_equal(x.retry_after_s, 10);
    struct webhook_status st;
    assert_true(webhook_status(w, "shop", &st));
    assert_int_equal(st.answers[HOOK_200], 0);
}

static void test_order_of_arrival(void **state)
{
    struct http_exchange x[3];

    (void)state;
    ask(&x[0], &(struct ask){.secret = SECRET, .body = "{\"update_id\":9}"});
    ask(&x[1], &(struct ask){.path = "/hook/other", .body = "{\"update_id\":4}"});
    ask(&x[2], &(struct ask){.secret = SECRET, .body = "{\"message\":{}}"});
    assert_ptr_equal(sp.got[0].box, &shop);
    assert_int_equal(sp.got[0].id, 9);
    assert_ptr_equal(sp.got[1].box, &other);
    assert_false(sp.got[2].has_id);
    finish(true);
    for (int i = 0; i < 3; i++)
        assert_int_equal(x[i].status, 200);
}

/* An unknown bot and a wrong secret give the same answer. */
static void test_secrets(void **state)
{
    static const struct ask rows[] = {
        {.secret = "the-secret_2"},
        {.secret = ""},
        {.secret = NULL},
        {.secret = SECRET "x"},
        {.secret = "the-secret_"},
        {.path = "/hook/nobody", .secret = SECRET},
        {.path = "/hook/nobody"},
        {.path = "/hook/nobody", .secret = ""},
        {.path = "/hook/shop/", .secret = SECRET},
        {.path = "/hook/shopx", .secret = SECRET},
        {.path = "/hook/sho", .secret = SECRET},
    };
    struct http_exchange x, first;

    (void)state;
    ask(&first, &rows[0]);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        ask(&x, &rows[i]);
        check_row(i, x.status == 401 && !strcmp(x.body, first.body) && x.retry_after_s == -1);
    }
    assert_int_equal(sp.n, 0);
    struct webhook_status st;
    assert_true(webhook_status(w, "shop", &st));
    assert_int_equal(st.answers[HOOK_400] + st.answers[HOOK_401], 6);
    assert_false(webhook_status(w, "nobody", &st));
}

/* Secrets that differ only beyond what is compared, or by zeros. */
static void test_long_secrets(void **state)
{
    char longest[WEBHOOK_SECRET_MAX + 1], longer[WEBHOOK_SECRET_MAX + 2];

    (void)state;
    memset(longest, 'a', sizeof(longest) - 1);
    memset(longer, 'a', sizeof(longer) - 1);
    longest[sizeof(longest) - 1] = longer[sizeof(longer) - 1] = '\0';
    webhook_set_bots(w, &(struct webhook_bot){"shop", longest, &shop}, 1);
    expect(&(struct ask){.secret = longer}, 401);
    expect(&(struct ask){.secret = longest}, 0);
    finish(true);
    expect(&(struct ask){.path = "/hook/other"}, 401);
}

static void test_what_is_no_webhook(void **state)
{
    (void)state;
    expect(&(struct ask){.method = "GET", .secret = SECRET}, 405);
    expect(&(struct ask){.method = "GET", .path = "/hook/nobody"}, 405);
    expect(&(struct ask){.path = "/"}, 404);
    expect(&(struct ask){.path = "/hook/", .secret = SECRET}, 404);
    expect(&(struct ask){.path = "/hookshop", .secret = SECRET}, 404);
    expect(&(struct ask){.secret = SECRET, .body = ""}, 400);
    expect(&(struct ask){.secret = SECRET, .body = "[]"}, 400);
    expect(&(struct ask){.secret = SECRET, .body = "{\"update_id\":1"}, 400);
    assert_int_equal(sp.n, 0);
}

static void expect_later(int after_s)
{
    struct http_exchange x;

    ask(&x, &(struct ask){.secret = SECRET});
    assert_int_equal(x.status, 503);
    assert_int_equal(x.retry_after_s, after_s);
    assert_false(x.whole);
}

static void test_held(void **state)
{
    struct http_exchange x;

    (void)state;
    sp.full = true;
    expect_later(1);
    shop.paused = true;
    expect_later(30);
    expect(&(struct ask){.secret = "wrong"}, 401); /* that we are held is not for everyone */
    sp.held = "the disk has 120 MB free, needs 256 MB";
    expect_later(30);
    sp.held = NULL;
    sp.sick = true;
    expect_later(10);
    sp.sick = sp.full = shop.paused = false;
    sp.as = ACCEPTED_FAILED;
    ask(&x, &(struct ask){.secret = SECRET});
    assert_int_equal(x.status, 503);
    sp.as = ACCEPTED_NEW;
    ask(&x, &(struct ask){.secret = SECRET});
    webhook_stop(w);
    expect_later(5);
    finish(true);
    assert_int_equal(x.status, 200); /* what was under way is answered */
}

static void test_a_client_that_left(void **state)
{
    struct http_exchange x;

    (void)state;
    ask(&x, &(struct ask){.secret = SECRET});
    x.gone(x.gone_arg);
    assert_false(webhook_idle(w)); /* the update is in the batch */
    finish(true);
    assert_int_equal(x.status, 0);
    assert_true(webhook_idle(w));
    ask(&x, &(struct ask){.secret = SECRET});
    webhook_cut(w);
    assert_null(x.gone);
    finish(true);
    assert_int_equal(x.status, 0);
}

static void test_a_reload(void **state)
{
    struct http_exchange x;
    struct webhook_status st;

    (void)state;
    ask(&x, &(struct ask){.secret = SECRET});
    webhook_set_bots(w, &(struct webhook_bot){"store", "another", &shop}, 1);
    finish(true);
    assert_int_equal(x.status, 200);
    expect(&(struct ask){.secret = SECRET}, 401);
    expect(&(struct ask){.path = "/hook/store", .secret = SECRET}, 401);
    expect(&(struct ask){.path = "/hook/other"}, 401);
    expect(&(struct ask){.path = "/hook/store", .secret = "another"}, 0);
    finish(true);
    assert_true(webhook_status(w, "store", &st));
    assert_int_equal(st.answers[HOOK_200], 2); /* counted on, whatever its name */
    webhook_set_bots(w, NULL, 0);
    expect(&(struct ask){.path = "/hook/store", .secret = "another"}, 401);
}

static void test_senders(void **state)
{
    static const struct {
        const char *peer, *forwarded[2];
        bool taken;
    } rows[] = {
        {"149.154.160.0", {NULL}, true},
        {"149.154.175.255", {NULL}, true},
        {"149.154.159.255", {NULL}, false},
        {"149.154.176.0", {NULL}, false},
        {"91.108.4.0", {NULL}, true},
        {"91.108.7.255", {NULL}, true},
        {"91.108.3.255", {NULL}, false},
        {"91.108.8.0", {NULL}, false},
        {"::ffff:91.108.5.5", {NULL}, true},
        {"::ffff:91.108.8.5", {NULL}, false},
        {"2001:67c:4e8::1", {NULL}, false},
        {"8.8.8.8", {"149.154.167.1"}, false},
        {"10.0.0.1", {"149.154.167.1"}, true},
        {"10.0.0.1", {"149.154.167.1", "8.8.8.8"}, false},
        {"10.0.0.1", {"8.8.8.8", "149.154.167.1"}, true},
        {"10.0.0.1", {"nonsense"}, false},
        {"10.0.0.1", {NULL}, false},
    };
    struct ip_nets trusted = {.n = 1};
    struct http_exchange x;

    (void)state;
    assert_true(ip_net_parse(slice_str("10.0.0.0/8"), &trusted.net[0]));
    webhook_set_senders(w, true, &trusted);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct ask a = {.secret = SECRET, .peer = rows[i].peer};
        memcpy(a.forwarded, rows[i].forwarded, sizeof(a.forwarded));
        ask(&x, &a);
        check_row(i, x.status == (rows[i].taken ? 0 : 403));
        finish(true);
    }
    webhook_set_senders(w, false, &trusted);
    expect(&(struct ask){.secret = SECRET, .peer = "8.8.8.8"}, 0);
}

/* What is logged is for a person: it names the bot. */
static void test_what_is_told_of_a_wrong_secret(void **state)
{
    char text[4096];
    FILE *told = tmpfile();
    int log = dup(STDERR_FILENO);

    (void)state;
    assert_non_null(told);
    dup2(fileno(told), STDERR_FILENO);
    for (int i = 0; i < 3; i++)
        expect(&(struct ask){.secret = "wrong"}, 401);
    expect(&(struct ask){.path = "/hook/nobody"}, 401); /* counted apart, so told at once */
    dup2(log, STDERR_FILENO);
    close(log);
    rewind(told);
    text[fread(text, 1, sizeof(text) - 1, told)] = '\0';
    fclose(told);
    const char *first = strstr(text, "run tgspool webhook set shop\n");
    assert_non_null(first);
    assert_null(strstr(first + 1, "wrong secret"));
    assert_non_null(strstr(first, "a bot that takes none\n"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_gaps),
        TEST(test_answered_after_the_sync),
        TEST(test_a_lost_batch_is_not_confirmed),
        TEST(test_order_of_arrival),
        TEST(test_secrets),
        TEST(test_long_secrets),
        TEST(test_what_is_no_webhook),
        TEST(test_held),
        TEST(test_a_client_that_left),
        TEST(test_a_reload),
        TEST(test_senders),
        TEST(test_what_is_told_of_a_wrong_secret),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
