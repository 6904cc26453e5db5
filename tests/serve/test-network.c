/* The API on the network: whom it listens to, real connections to the api on a real spool. */
#include "rig.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/http_client.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "serve/browser.h"
#include "serve/network.h"

static char *const *names_of(void *arg)
{
    static char one[] = "other.example", two[] = "spool.example";
    static char *const names[] = {one, two, NULL};

    (void)arg;
    return names;
}

static void test_hosts(void **state)
{
    static const struct {
        const char *host;
        bool plain, tls;
    } rows[] = {
        {"127.0.0.1", true, true},
        {"127.0.0.1:8080", true, true},
        {"10.1.2.3:80", true, true},
        {"[::1]:8080", true, true},
        {"[::1]", true, true},
        {"localhost", true, true},
        {"LocalHost:8080", true, true},
        {"evil.example", false, true},
        {"evil.example:80", false, true},
        {"localhost.evil.example", false, true},
        {"127.0.0.1.evil.example", false, true},
        {"", false, false},
        {":80", false, false},
        {"localhost:x", false, false},
        {"localhost:99999", false, false},
        {"[::1", false, false},
        {"[::1]x", false, false},
        {"[]", false, false},
        {"localhost@evil", false, true},
        {"spool.example", true, true},
        {"SPOOL.example:443", true, true},
        {"x.spool.example", false, true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct browser_head h = {.host = slice_str(rows[i].host), .names = names_of(NULL)};
        check_row(i, browser_host_ok(&h) == rows[i].plain);
        h.tls = true;
        check_row(i, browser_host_ok(&h) == rows[i].tls);
    }
}

static void test_origins(void **state)
{
    static const struct {
        const char *origin, *host;
        bool tls, ok, names;
    } rows[] = {
        {"http://127.0.0.1:80", "127.0.0.1:80", false, true, false},
        {"HTTPS://Spool.example", "spool.example", true, true, false},
        {"http://spool.example", "spool.example", true, false, false},
        {"https://spool.example", "spool.example", false, false, false},
        {"http://127.0.0.1:81", "127.0.0.1:80", false, false, false},
        {"http://evil.example", "127.0.0.1:80", false, false, false},
        {"null", "127.0.0.1", false, false, false},
        {"", "", false, false, false},
        {"http://127.0.0.1:80.evil.example", "127.0.0.1:80", false, false, false},
        {"https://spool.example", "127.0.0.1:80", false, true, true}, /* a proxy that ends TLS */
        {"https://spool.example:8443", "spool.example", false, true, true},
        {"https://spool.example.evil", "spool.example.evil", false, false, true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check_row(i, browser_origin_ok(&(struct browser_head){.origin = slice_str(rows[i].origin),
                                                              .host = slice_str(rows[i].host),
                                                              .tls = rows[i].tls,
                                                              .names = rows[i].names ? names_of(NULL)
                                                                                     : NULL}) == rows[i].ok);
}

static void test_sites(void **state)
{
    static const struct {
        const char *host, *origin, *site;
        bool api, page;
    } rows[] = {
        {"127.0.0.1:80", NULL, NULL, true, true},
        {"127.0.0.1:80", NULL, "none", true, true},
        {"127.0.0.1:80", NULL, "same-origin", true, true},
        {"127.0.0.1:80", "http://127.0.0.1:80", "same-origin", true, true},
        {"127.0.0.1:80", NULL, "cross-site", false, true}, /* a link to the page */
        {"127.0.0.1:80", NULL, "same-site", false, true},
        {"127.0.0.1:80", "null", "cross-site", false, false},
        {"127.0.0.1:80", "http://evil.example", NULL, false, false},
        {"evil.example", "http://evil.example", "same-origin", false, false},
        {"evil.example", NULL, NULL, false, false},
    };
    const char *code, *message;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct browser_head h = {
            .host = slice_str(rows[i].host),
            .origin = rows[i].origin ? slice_str(rows[i].origin) : slice_make(NULL, 0),
            .fetch_site = rows[i].site ? slice_str(rows[i].site) : slice_make(NULL, 0)};
        check_row(i, browser_may(&h, false, &code, &message) == rows[i].api);
        check_row(i, browser_may(&h, true, &code, &message) == rows[i].page);
        check_row(i, browser_sent(&h) == (rows[i].origin || rows[i].site));
    }
}

static void test_bearer(void **state)
{
    (void)state;
    assert_slice(network_bearer(LIT("Bearer abc")), "abc");
    assert_slice(network_bearer(LIT("bEARER   a b ")), "a b");
    assert_slice(network_bearer(LIT("Basic abc")), "");
    assert_slice(network_bearer(LIT("Bearer")), "");
    assert_slice(network_bearer(LIT("Bearer ")), "");
    assert_slice(network_bearer(slice_make(NULL, 0)), "");
}

/* ---- with connections --------------------------------------------------------------------------- */

static struct loop *l;
static struct rig *r;
static bool answered;
static struct http_answer last; /* without its body */
static char last_body[4096];
static int64_t until;

static enum network_caller caller(void *arg, struct slice token, const char **bot)
{
    (void)arg;
    if (slice_eq_str(token, "api"))
        return CALLER_API;
    if (!slice_eq_str(token, "pull"))
        return CALLER_UNKNOWN;
    *bot = "shop";
    return CALLER_BOT;
}

static void on_answer(void *arg, struct http_answer *a)
{
    (void)arg;
    answered = true;
    last = *a;
    snprintf(last_body, sizeof(last_body), "%s", buf_str(&a->body));
}

static int64_t tick(void *arg)
{
    (void)arg;
    rig_step(r);
    if (answered || loop_now(l) >= until)
        loop_stop(l);
    return loop_now(l) + 5;
}

static void run(int64_t ms)
{
    loop_update_now(l);
    until = loop_now(l) + ms;
    loop_run(l, tick, NULL);
}

struct asking {
    const char *method, *path, *body, *token, *origin;
};

static void begin(struct http_client *c, const struct asking *a)
{
    char token[64];
    struct http_header h[2];
    struct http_request q = {
        .method = a->method, .path = a->path, .headers = h, .body = slice_str(a->body), .deadline_ms = 20000};

    snprintf(token, sizeof(token), "Bearer %s", a->token ? a->token : "");
    if (a->token)
        h[q.n_headers++] = (struct http_header){slice_str("Authorization"), slice_str(token)};
    if (a->origin)
        h[q.n_headers++] = (struct http_header){slice_str("Origin"), slice_str(a->origin)};
    answered = false;
    http_client_request(c, &q, on_answer, NULL);
}

static void expect(struct http_client *c, int status, const struct asking *a)
{
    begin(c, a);
    run(20000);
    assert_true(answered);
    if (last.fail != HTTP_OK || last.status != status)
        fail_msg("%s %s: %d %s%s", a->method, a->path, last.status, last.error, last_body);
}

/* A browser that was told that evil.example is this machine. */
static void expect_rebound(uint16_t port, const char *request, int status, const char *code)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_port = htons(port)};
    char text[1024] = "", front[32];
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(send(fd, request, strlen(request), 0), strlen(request));
    answered = false;
    for (int i = 0; i < 100 && !text[0]; i++) {
        run(20);
        (void)!recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);
    }
    snprintf(front, sizeof(front), "HTTP/1.1 %d ", status);
    assert_int_equal(strncmp(text, front, strlen(front)), 0);
    assert_non_null(strstr(text, code));
    close(fd);
}

static void test_listener(void **state)
{
    struct err e = ERR_NONE;

    r = *state;
    l = loop_new();
    struct network *n = network_new(r->api, &(struct network_hooks){caller, names_of, NULL});
    const struct http_server_options so = {.address = "127.0.0.1:0",
                                           .on_head = network_head,
                                           .max_body = API_BODY_MAX,
                                           .max_connections = 16,
                                           .header_timeout_ms = 5000,
                                           .body_timeout_ms = 5000,
                                           .idle_timeout_ms = 5000};
    struct http_server *s = http_server_new(l, &so, network_request, n, &e);
    assert_non_null(s);
    char *url = xasprintf("http://127.0.0.1:%u", (unsigned)http_server_port(s));
    const struct http_client_options co = {.base_url = url, .connect_timeout_ms = 5000, .max_body = 1 << 20};
    struct http_client *a = http_client_new(l, &co, &e), *b = http_client_new(l, &co, &e);
    assert_true(a && b);

    expect(a, 401, &(struct asking){"GET", "/v1/status", NULL, NULL, NULL});
    assert_non_null(strstr(last_body, "\"unauthorized\""));
    expect(a, 401, &(struct asking){"GET", "/v1/status", NULL, "wrong", NULL});
    expect(a, 401,
           &(struct asking){"GET", "/v1/nothing", NULL, NULL, NULL}); /* nothing is told to strangers */
    expect(a, 401, &(struct asking){"POST", "/v1/claim", "{\"bot\":\"shop\"}", "wrong", NULL});
    expect(a, 200, &(struct asking){"GET", "/v1/status", NULL, "api", NULL});
    expect(a, 200, &(struct asking){"GET", "/v1/status", NULL, "api", url});
    expect(a, 403, &(struct asking){"GET", "/v1/status", NULL, "api", "http://evil.example"});
    expect(a, 401, &(struct asking){"GET", "/v1/status", NULL, "pull", NULL});
    expect(a, 404, &(struct asking){"GET", "/v1/nothing", NULL, "api", NULL});
    expect(a, 404, &(struct asking){"POST", "/v1/claim", "{\"bot\":\"other\"}", "pull", NULL});
    uint16_t port = http_server_port(s);
    expect_rebound(port, "GET /v1/status HTTP/1.1\r\nHost: evil.example\r\nAuthorization: Bearer api\r\n\r\n",
                   403, "\"bad_host\"");
    expect_rebound(port, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403, "\"bad_host\"");
    expect_rebound(port,
                   "GET /v1/jobs/1 HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example\r\n"
                   "Authorization: Bearer pull\r\n\r\n",
                   403, "\"bad_host\"");
    /* a consumer by whatever name it has for this machine */
    expect_rebound(port,
                   "GET /v1/claim HTTP/1.1\r\nHost: tgspool.internal\r\nAuthorization: Bearer pull\r\n\r\n",
                   405, "\"method\"");
    expect_rebound(port, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, "default-src 'none'");

    /* one waits and goes away; what arrives then is for the one that stayed */
    begin(a, &(struct asking){"POST", "/v1/claim", "{\"bot\":\"shop\",\"wait\":60}", "pull", NULL});
    run(50);
    assert_false(answered);
    http_client_free(a);
    begin(b, &(struct asking){"POST", "/v1/claim", "{\"bot\":\"shop\",\"wait\":60}", "pull", NULL});
    run(50);
    rig_arrive(r, 5, 42);
    run(20000);
    assert_int_equal(last.status, 200);
    assert_non_null(strstr(last_body, "shop/5"));
    struct event_state es = world_state(&r->w, 1);
    assert_int_equal(es.interrupted, 0);
    assert_string_equal(es.claimed_by, "pull token, 127.0.0.1");

    /* a waiting call is cut with the listener */
    begin(b, &(struct asking){"POST", "/v1/claim", "{\"bot\":\"shop\",\"wait\":60}", "api", NULL});
    run(50);
    http_client_free(b);
    network_free(n);
    http_server_free(s);
    loop_free(l);
    free(url);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_origins),
        cmocka_unit_test(test_sites),
        cmocka_unit_test(test_bearer),
        cmocka_unit_test_setup_teardown(test_listener, rig_setup, rig_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
