/* The control socket: real connections to the api on a real spool, all in one loop. */
#include "rig.h"

#include <sys/stat.h>
#include <unistd.h>

#include "net/http_client.h"
#include "net/loop.h"
#include "serve/socket.h"

static struct loop *l;
static struct rig *r;
static int answers, last_status;
static char last_body[4096];

static void on_answer(void *arg, struct http_answer *a)
{
    (void)arg;
    if (a->fail != HTTP_OK)
        fail_msg("%s", a->error);
    answers++;
    last_status = a->status;
    snprintf(last_body, sizeof(last_body), "%s", buf_str(&a->body));
}

static int (*until)(void);

/* The loop's tick is the spool's; it stops when the test has what it waits for. */
static int64_t tick(void *arg)
{
    (void)arg;
    rig_step(r);
    if (until())
        loop_stop(l);
    return loop_now(l) + 5;
}

static void run_until(int (*fn)(void))
{
    until = fn;
    loop_run(l, tick, NULL);
}

static int answered(void)
{
    return answers;
}

static int64_t wait_end;

static int waited(void)
{
    return loop_now(l) >= wait_end;
}

static void ask(struct http_client *c, const char *path, const char *body)
{
    const struct http_request q = {
        .method = body ? "POST" : "GET", .path = path, .body = slice_str(body), .deadline_ms = 20000};

    answers = 0;
    http_client_request(c, &q, on_answer, NULL);
}

static void test_socket(void **state)
{
    struct err e = ERR_NONE;
    struct stat st;

    r = *state;
    l = loop_new();
    char *path = xasprintf("%s-sock", r->w.dir), *url = xasprintf("unix:%s", path);
    const struct socket_options o = {.path = path, .mode = 0600};
    const struct http_client_options co = {.base_url = url, .connect_timeout_ms = 5000, .max_body = 1 << 20};
    struct socket_server *s = socket_new(l, r->api, &o, &e);
    assert_non_null(s);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    struct http_client *a = http_client_new(l, &co, &e), *b = http_client_new(l, &co, &e);
    assert_true(a && b);

    ask(a, "/healthz", NULL);
    run_until(answered);
    assert_int_equal(last_status, 200);
    ask(a, "/v1/nothing", NULL);
    run_until(answered);
    assert_int_equal(last_status, 404);

    /* one waits and goes away; what arrives then is for the one that stayed */
    ask(a, "/v1/claim", "{\"bot\":\"shop\",\"wait\":60}");
    wait_end = clock_now() + 50;
    run_until(waited);
    assert_int_equal(answers, 0);
    http_client_free(a);
    ask(b, "/v1/claim", "{\"bot\":\"shop\",\"wait\":60}");
    wait_end = clock_now() + 50;
    run_until(waited);
    rig_arrive(r, 5, 42);
    run_until(answered);
    assert_int_equal(last_status, 200);
    assert_non_null(strstr(last_body, "shop/5"));
    struct event_state es = world_state(&r->w, 1);
    assert_int_equal(es.interrupted, 0);
    char who[64];
    snprintf(who, sizeof(who), "uid %ld (socket)", (long)getuid());
    assert_string_equal(es.claimed_by, who);

    /* a waiting call is cut with the server */
    ask(b, "/v1/claim", "{\"bot\":\"shop\",\"wait\":60}");
    wait_end = clock_now() + 50;
    run_until(waited);
    http_client_free(b);
    socket_stop(s);
    socket_free(s);
    assert_int_equal(stat(path, &st), -1);
    loop_free(l);
    free(path);
    free(url);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_socket, rig_setup, rig_teardown)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
