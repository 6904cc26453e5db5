/* The HTTP server over real sockets: a handler that answers by the path, clients that are as slow, wrong or
 * rude as the row says. Client and server share one loop; its turns are run until what was expected has come.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../unit/unit.h"

#include "net/http_server.h"
#include "net/listen.h"
#include "net/loop.h"

#define G "GET / HTTP/1.1\r\nHost: a\r\n"
#define POST "POST /echo HTTP/1.1\r\nHost: a\r\n"
#define PATIENCE SECONDS(20) /* a failure, not a measure */

struct fixture {
    struct loop *loop;
    struct http_server *server;
    char *dir, *path;
    struct http_exchange *held[8]; /* of /hold */
    size_t n_held;
    int gone, requests;
    long uid, pid;
};

/* ---- the handler -------------------------------------------------------------------------------------- */

static void on_gone(void *arg)
{
    struct fixture *f = arg;

    f->gone++;
}

static void on_request(void *arg, struct http_exchange *x, const struct http_server_request *r)
{
    struct fixture *f = arg;
    struct buf big = BUF_EMPTY;

    f->requests++;
    f->uid = r->peer_uid;
    f->pid = r->peer_pid;
    if (slice_eq_str(r->path, "/echo")) {
        http_reply(x, 200, "text/plain", -1, r->body);
    } else if (slice_eq_str(r->path, "/query")) {
        http_reply(x, 200, "text/plain", 7, r->query);
    } else if (slice_eq_str(r->path, "/header")) {
        http_reply(x, 401, "text/plain", -1, r->header(r, "x-test"));
    } else if (slice_eq_str(r->path, "/big")) {
        memset(buf_reserve(&big, 4000000), 'b', 4000000);
        buf_added(&big, 4000000);
        http_reply(x, 200, "text/plain", -1, buf_slice(&big));
        buf_free(&big);
    } else if (slice_eq_str(r->path, "/hold") || slice_eq_str(r->path, "/hold-deaf")) {
        if (r->path.n == 5)
            http_on_gone(x, on_gone, f);
        f->held[f->n_held++] = x;
    } else if (slice_eq_str(r->path, "/204")) {
        http_reply(x, 204, NULL, -1, LIT("nobody sees this"));
    } else {
        http_reply_error(x, 404, "not_found", "there is no such \"path\"");
    }
}

/* ---- running the loop --------------------------------------------------------------------------------- */

struct until {
    bool (*fn)(void *arg);
    void *arg;
    struct loop *loop;
    int64_t give_up;
    bool ok;
};

static int64_t tick(void *arg)
{
    struct until *u = arg;

    u->ok = u->fn(u->arg);
    if (u->ok || clock_now() >= u->give_up)
        loop_stop(u->loop);
    return clock_now() + 2;
}

static bool run_until(struct fixture *f, bool (*fn)(void *arg), void *arg)
{
    struct until u = {.fn = fn, .arg = arg, .loop = f->loop, .give_up = clock_now() + PATIENCE};

    loop_run(f->loop, tick, &u);
    return u.ok;
}

/* ---- a client ----------------------------------------------------------------------------------------- */

struct client {
    int fd;
    struct buf got;
    const char *wanted; /* text that must come; NULL: the end of file */
    bool eof, reset;
};

static void client_read(struct client *c)
{
    for (;;) {
        ssize_t n = recv(c->fd, buf_reserve(&c->got, 65536), 65536, MSG_DONTWAIT);
        if (n <= 0) {
            c->eof |= n == 0;
            c->reset |= n < 0 && errno != EAGAIN;
            return;
        }
        buf_added(&c->got, (size_t)n);
    }
}

static bool client_has(void *arg)
{
    struct client *c = arg;

    client_read(c);
    return c->wanted ? strstr(buf_str(&c->got), c->wanted) != NULL : c->eof || c->reset;
}

static bool expect(struct fixture *f, struct client *c, const char *wanted)
{
    c->wanted = wanted;
    if (run_until(f, client_has, c))
        return true;
    print_error("wanted: %s\ngot: %.300s\n", wanted ? wanted : "the end", buf_str(&c->got));
    return false;
}

static struct client connect_to(struct fixture *f)
{
    struct client c = {.fd = -1};

    if (f->path) {
        struct sockaddr_un a = {.sun_family = AF_UNIX};
        snprintf(a.sun_path, sizeof(a.sun_path), "%s", f->path);
        c.fd = socket(AF_UNIX, SOCK_STREAM, 0);
        assert_int_equal(connect(c.fd, (struct sockaddr *)&a, sizeof(a)), 0);
    } else {
        struct sockaddr_in a = {.sin_family = AF_INET,
                                .sin_port = htons(http_server_port(f->server)),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        c.fd = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(connect(c.fd, (struct sockaddr *)&a, sizeof(a)), 0);
    }
    return c;
}

static void client_send(struct client *c, const char *text)
{
    assert_int_equal(send(c->fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void client_close(struct client *c)
{
    close(c->fd);
    buf_free(&c->got);
}

/* ---- set-up ------------------------------------------------------------------------------------------- */

static struct http_server_options options(const struct fixture *f)
{
    return (struct http_server_options){
        .unix_path = f->path,
        .unix_mode = 0660,
        .address = "127.0.0.1:0",
        .max_body = 100000,
        .max_connections = 4,
        .header_timeout_ms = SECONDS(30),
        .body_timeout_ms = SECONDS(30),
        .idle_timeout_ms = SECONDS(30),
    };
}

static void start(struct fixture *f, const struct http_server_options *o)
{
    struct err e = ERR_NONE;

    f->server = http_server_new(f->loop, o, on_request, f, &e);
    if (!f->server)
        fail_msg("%s", e.text);
}

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    const char *tmp = getenv("TMPDIR");

    f->dir = xasprintf("%s/tgspool-http.XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(f->dir))
        return -1;
    f->path = xasprintf("%s/s", f->dir);
    f->loop = loop_new();
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    http_server_free(f->server);
    loop_free(f->loop);
    if (f->path) {
        char *lock = xasprintf("%s.lock", f->path);
        unlink(f->path);
        unlink(lock);
        free(lock);
    }
    rmdir(f->dir);
    free(f->dir);
    free(f->path);
    free(f);
    return 0;
}

/* As setup, over TCP. */
static int setup_tcp(void **state)
{
    int r = setup(state);
    struct fixture *f = *state;

    free(f->path);
    f->path = NULL;
    return r;
}

static void start_default(struct fixture *f)
{
    struct http_server_options o = options(f);

    start(f, &o);
}

/* ---- requests and answers ----------------------------------------------------------------------------- */

struct row {
    const char *send;
    const char *wanted[4]; /* each must be in what comes */
    const char *absent;    /* and this must not */
    bool stays;            /* the connection can be used again */
};

static const struct row rows[] = {
    {G "\r\n",
     {"HTTP/1.1 404 Not Found\r\n", "\r\nContent-Type: application/json\r\n",
      "{\"error\":{\"code\":\"not_found\",\"message\":\"there is no such \\\"path\\\"\"}}"},
     "Connection:",
     true},
    {POST "Content-Length: 5\r\n\r\nhello",
     {"200 OK", "\r\nContent-Length: 5\r\n", "\r\n\r\nhello"},
     NULL,
     true},
    {POST "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
     {"200 OK", "\r\n\r\nhello"},
     NULL,
     true},
    {"GET /query?a=1&b=%32?x HTTP/1.1\r\nHost: a\r\n\r\n",
     {"\r\n\r\na=1&b=%32?x", "\r\nRetry-After: 7\r\n"},
     NULL,
     true},
    {"GET http://some.host/query?a HTTP/1.1\r\nHost: a\r\n\r\n", {"200 OK", "\r\n\r\na"}, NULL, true},
    {"GET /header HTTP/1.1\r\nHost: a\r\nX-TEST: v\r\n\r\n",
     {"401 ", "WWW-Authenticate: Bearer", "\r\n\r\nv"},
     NULL,
     true},
    {"HEAD /query?abc HTTP/1.1\r\nHost: a\r\n\r\n", {"200 OK", "\r\nContent-Length: 3\r\n"}, "abc", true},
    {"GET /204 HTTP/1.1\r\nHost: a\r\n\r\n", {"204 No Content"}, "nobody", true},
    {"GET / HTTP/1.0\r\n\r\n", {"404 ", "\r\nConnection: close\r\n"}, NULL, false},
    {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
     {"404 ", "\r\nConnection: keep-alive\r\n"},
     NULL,
     true},
    {G "Connection: close\r\n\r\n", {"404 ", "\r\nConnection: close\r\n"}, NULL, false},
    {"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", {"400 ", "\"code\":\"bad_request\""}, NULL, true},
    {POST "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
     {"400 ", "\"code\":\"bad_request\""},
     NULL,
     false},
    {POST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
     {"400 ", "\"bad_request\""},
     NULL,
     false},
    {POST "Transfer-Encoding: chunked\r\n\r\nzz\r\n", {"400 ", "\"bad_request\""}, NULL, false},
    {POST "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n", {"400 ", "\"bad_request\""}, NULL, false},
    {"GET / HTTP/1.1\r\n\r\n", {"400 ", "no Host header"}, NULL, false},
    {"NONSENSE\r\n\r\n", {"400 ", "\"bad_request\""}, NULL, false},
    {"BREW / HTTP/1.1\r\nHost: a\r\n\r\n", {"501 ", "\"not_implemented\""}, NULL, false},
    {"GET / HTTP/3.0\r\nHost: a\r\n\r\n", {"505 ", "\"version\""}, NULL, false},
    {POST "Content-Length: 100001\r\n\r\n", {"413 ", "\"too_large\""}, NULL, false},
};

static void check_rows(struct fixture *f)
{
    start_default(f);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct row *r = &rows[i];
        struct client c = connect_to(f);
        client_send(&c, r->send);
        for (size_t k = 0; k < 4 && r->wanted[k]; k++)
            check_row(i, expect(f, &c, r->wanted[k]));
        check_row(i, !r->absent || !strstr(buf_str(&c.got), r->absent));
        check_row(i, (strstr(buf_str(&c.got), "Connection: close") == NULL) == r->stays);
        buf_clear(&c.got);
        if (r->stays) {
            client_send(&c, "GET /query?again HTTP/1.1\r\nHost: a\r\n\r\n");
            check_row(i, expect(f, &c, "again"));
        } else {
            check_row(i, expect(f, &c, NULL) && c.eof);
        }
        client_close(&c);
    }
}

static void test_rows(void **state)
{
    check_rows(*state);
}

static void test_peer(void **state)
{
    struct fixture *f = *state;
    struct client c = connect_to((start_default(f), f));

    client_send(&c, G "\r\n");
    assert_true(expect(f, &c, "404"));
    assert_int_equal(f->uid, f->path ? (long)getuid() : -1);
    assert_int_equal(f->pid, f->path ? (long)getpid() : -1);
    client_close(&c);
}

static void test_byte_by_byte(void **state)
{
    static const char text[] = POST "Content-Length: 5\r\n\r\nhello";
    struct fixture *f = *state;
    struct client c = connect_to((start_default(f), f));

    for (size_t i = 0; i < sizeof(text) - 1; i++) {
        char one[2] = {text[i], '\0'};
        client_send(&c, one);
        c.wanted = "";
        run_until(f, client_has, &c);
    }
    assert_true(expect(f, &c, "\r\n\r\nhello"));
    assert_int_equal(f->requests, 1);
    client_close(&c);
}

static bool holds_two(void *arg)
{
    const struct fixture *f = arg;

    return f->n_held == 2;
}

static bool holds_one(void *arg)
{
    const struct fixture *f = arg;

    return f->n_held == 1;
}

/* Three requests in one piece: the second waits for the first's answer although it could be answered at once.
 */
static void test_pipelining(void **state)
{
    struct fixture *f = *state;
    struct client c = connect_to((start_default(f), f));

    client_send(&c, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n" POST "Content-Length: 3\r\n\r\ntwo"
                    "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_true(run_until(f, holds_one, f));
    assert_int_equal(f->requests, 1);
    http_reply(f->held[0], 200, NULL, -1, LIT("one."));
    assert_int_equal(f->requests, 1); /* never from inside the call */
    assert_true(run_until(f, holds_two, f));
    assert_int_equal(f->requests, 3);
    http_reply(f->held[1], 200, NULL, -1, LIT("three."));
    assert_true(expect(f, &c, "three."));
    const char *one = strstr(c.got.p, "one."), *two = strstr(c.got.p, "two");
    assert_true(one && two && one < two);
    assert_int_equal(f->gone, 0);
    client_close(&c);
}

static void test_continue(void **state)
{
    struct fixture *f = *state;
    struct client c = connect_to((start_default(f), f));

    client_send(&c, POST "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    assert_true(expect(f, &c, "HTTP/1.1 100 Continue\r\n\r\n"));
    assert_int_equal(f->requests, 0);
    client_send(&c, "hello");
    assert_true(expect(f, &c, "\r\n\r\nhello"));
    assert_string_equal(strstr(c.got.p + 10, "HTTP/1.1 "), strstr(c.got.p, "HTTP/1.1 200"));
    client_close(&c);

    c = connect_to(f);
    client_send(&c, POST "Content-Length: 500000\r\nExpect: 100-continue\r\n\r\n");
    assert_true(expect(f, &c, "HTTP/1.1 413 "));
    assert_null(strstr(c.got.p, "100 Continue"));
    client_close(&c);
}

/* ---- rude clients ------------------------------------------------------------------------------------- */

/* One who sends a body that is refused gets to read why, although it sends all of it first. */
static void check_oversized(struct fixture *f, const char *head, size_t bytes)
{
    struct client c = connect_to(f);
    char piece[65536];
    size_t sent = 0;

    memset(piece, '1', sizeof(piece));
    client_send(&c, head);
    c.wanted = "";
    while (sent < bytes && !c.reset) {
        ssize_t n = send(c.fd, piece, sizeof(piece), MSG_DONTWAIT | MSG_NOSIGNAL);
        assert_true(n > 0 || errno == EAGAIN || errno == EPIPE || errno == ECONNRESET);
        if (n < 0 && errno != EAGAIN)
            break;
        sent += n > 0 ? (size_t)n : 0;
        loop_run(f->loop, tick, &(struct until){.fn = client_has, .arg = &c, .loop = f->loop});
    }
    if (bytes < 16 << 20) {
        assert_true(sent >= bytes);
        assert_true(expect(f, &c, "HTTP/1.1 413 "));
        assert_false(c.reset);
    } else {
        assert_true(sent < bytes); /* drained no further than its limit */
    }
    client_close(&c);
}

static void test_oversized(void **state)
{
    struct fixture *f = *state;

    start_default(f);
    check_oversized(f, POST "Content-Length: 10000000\r\n\r\n", 10000000);
    check_oversized(f, POST "Transfer-Encoding: chunked\r\n\r\n1000000\r\n", 3000000);
    check_oversized(f, POST "Content-Length: 100000000\r\n\r\n", 100000000);
    assert_int_equal(f->requests, 0);
}

static void test_timeouts(void **state)
{
    struct fixture *f = *state;
    struct http_server_options o = options(f);

    o.header_timeout_ms = 60;
    o.body_timeout_ms = 60;
    o.idle_timeout_ms = 200;
    start(f, &o);
    struct client slow_head = connect_to(f), slow_body = connect_to(f), idle = connect_to(f);
    client_send(&slow_head, "GET / HTT");
    client_send(&slow_body, POST "Content-Length: 5\r\n\r\nhel");
    assert_true(expect(f, &slow_head, "HTTP/1.1 408 "));
    assert_true(expect(f, &slow_body, "\"code\":\"timeout\""));
    assert_true(expect(f, &slow_head, NULL));
    assert_true(expect(f, &idle, NULL) && idle.eof);
    assert_int_equal(idle.got.n, 0);
    client_close(&slow_head);
    client_close(&slow_body);
    client_close(&idle);
}

/* A client that trickles its head one byte before each time-out must not live for ever. */
static void test_trickled_head(void **state)
{
    struct fixture *f = *state;
    struct http_server_options o = options(f);
    int64_t began = clock_now();

    o.header_timeout_ms = 200;
    start(f, &o);
    struct client c = connect_to(f);
    client_send(&c, "GET / HTTP/1.1\r\nX: ");
    c.wanted = "408";
    while (!client_has(&c) && clock_now() < began + PATIENCE) {
        send(c.fd, "x", 1, MSG_NOSIGNAL);
        loop_run(f->loop, tick, &(struct until){.fn = client_has, .arg = &c, .loop = f->loop});
    }
    assert_true(client_has(&c));
    client_close(&c);
}

/* One who does not read its answer is cut off, and not before it had its time. */
static void test_reader_that_stops(void **state)
{
    struct fixture *f = *state;
    struct http_server_options o = options(f);

    o.body_timeout_ms = 100;
    start(f, &o);
    struct client c = connect_to(f);
    client_send(&c, "GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
    int64_t began = clock_now();
    bool (*never)(void *) = holds_two;
    struct until u = {.fn = never, .arg = f, .loop = f->loop, .give_up = began + 400};
    loop_run(f->loop, tick, &u);
    assert_true(expect(f, &c, NULL));
    assert_true(c.got.n > 0 && c.got.n < 4000000);
    client_close(&c);

    c = connect_to(f);
    client_send(&c, "GET /big HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_true(expect(f, &c, NULL) && c.eof);
    assert_true(c.got.n > 4000000);
    client_close(&c);
}

static void test_half_close(void **state)
{
    struct fixture *f = *state;
    struct client c = connect_to((start_default(f), f));

    client_send(&c, POST "Content-Length: 3\r\n\r\none" POST "Content-Length: 3\r\n\r\ntwo");
    shutdown(c.fd, SHUT_WR);
    assert_true(expect(f, &c, "\r\n\r\ntwo"));
    assert_true(expect(f, &c, NULL) && c.eof);
    client_close(&c);

    c = connect_to(f);
    client_send(&c, "GET / HT");
    shutdown(c.fd, SHUT_WR);
    assert_true(expect(f, &c, "400 Bad Request"));
    assert_true(expect(f, &c, NULL) && c.eof);
    client_close(&c);

    c = connect_to(f);
    shutdown(c.fd, SHUT_WR);
    assert_true(expect(f, &c, NULL) && c.eof);
    assert_int_equal(c.got.n, 0);
    client_close(&c);
}

static bool is_gone(void *arg)
{
    const struct fixture *f = arg;

    return f->gone > 0;
}

static void check_leaves(struct fixture *f)
{
    struct client c = connect_to(f);

    client_send(&c, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_true(run_until(f, holds_one, f));
    assert_int_equal(f->gone, 0);
    client_close(&c);
    assert_true(run_until(f, is_gone, f));
    assert_int_equal(f->gone, 1);

    /* One that nobody listens for: its answer goes nowhere, and harms nothing. */
    f->n_held = 0;
    c = connect_to(f);
    client_send(&c, "GET /hold-deaf HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_true(run_until(f, holds_one, f));
    struct linger hard = {1, 0};
    setsockopt(c.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    client_close(&c);
    struct client next = connect_to(f);
    client_send(&next, POST "Content-Length: 2\r\n\r\nhi");
    assert_true(expect(f, &next, "\r\n\r\nhi"));
    http_reply(f->held[0], 200, NULL, -1, LIT("late"));
    client_close(&next);
    assert_int_equal(f->gone, 1);
}

static void test_client_leaves(void **state)
{
    start_default(*state);
    check_leaves(*state);
}

/* On a unix socket a client may end its sending side and wait; when it then leaves, that is noticed. */
static void test_half_closed_waits(void **state)
{
    struct fixture *f = *state;
    struct client c = connect_to((start_default(f), f));

    client_send(&c, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    shutdown(c.fd, SHUT_WR);
    assert_true(run_until(f, holds_one, f));
    c.wanted = "";
    for (int i = 0; i < 20; i++)
        run_until(f, client_has, &c);
    assert_int_equal(f->gone, 0);
    client_close(&c);
    assert_true(run_until(f, is_gone, f));
}

/* ---- the cap, stopping, freeing ----------------------------------------------------------------------- */

static void test_cap(void **state)
{
    struct fixture *f = *state;
    struct client c[4];

    start_default(f);
    for (size_t i = 0; i < 4; i++) {
        c[i] = connect_to(f);
        client_send(&c[i], "GET /query?in HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_true(expect(f, &c[i], "\r\n\r\nin"));
    }
    struct client more = connect_to(f);
    client_send(&more, G "\r\n");
    assert_true(expect(f, &more, "HTTP/1.1 503 Service Unavailable\r\n"));
    assert_true(expect(f, &more, "\"code\":\"busy\""));
    assert_true(expect(f, &more, "Retry-After: 1\r\n"));
    assert_true(expect(f, &more, NULL) && more.eof);
    client_close(&more);
    client_close(&c[0]);
    c[1].wanted = "";
    run_until(f, client_has, &c[1]); /* the server notices */
    more = connect_to(f);
    client_send(&more, G "\r\n");
    assert_true(expect(f, &more, " 404 "));
    client_close(&more);
    for (size_t i = 1; i < 4; i++)
        client_close(&c[i]);
}

static void test_stop_accepting(void **state)
{
    struct fixture *f = *state;

    start_default(f);
    struct client idle = connect_to(f), busy = connect_to(f);
    client_send(&idle, "GET /query?x HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_true(expect(f, &idle, "\r\n\r\nx"));
    client_send(&busy, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_true(run_until(f, holds_one, f));
    http_server_stop_accepting(f->server);
    assert_true(expect(f, &idle, NULL) && idle.eof);
    http_reply(f->held[0], 200, NULL, -1, LIT("bye"));
    assert_true(expect(f, &busy, "bye"));
    assert_true(expect(f, &busy, "Connection: close"));
    assert_true(expect(f, &busy, NULL) && busy.eof);
    client_close(&idle);
    client_close(&busy);
}

static void test_free_with_open_exchanges(void **state)
{
    struct fixture *f = *state;

    start_default(f);
    struct client a = connect_to(f), b = connect_to(f);
    client_send(&a, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    client_send(&b, "GET /hold-deaf HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_true(run_until(f, holds_two, f));
    http_server_free(f->server);
    f->server = NULL;
    assert_true(expect(f, &a, NULL));
    assert_true(expect(f, &b, NULL));
    assert_int_equal(f->gone, 0);
    client_close(&a);
    client_close(&b);
}

/* ---- the unix socket ---------------------------------------------------------------------------------- */

static void test_socket_modes(void **state)
{
    struct fixture *f = *state;
    struct http_server_options o = options(f);
    struct stat st;
    mode_t old = umask(0022);
    char gid[24];

    snprintf(gid, sizeof(gid), "%lu", (unsigned long)getgid());
    o.unix_group = gid;
    o.unix_mode = 0620;
    start(f, &o);
    assert_int_equal(umask(old), 0022);
    assert_int_equal(lstat(f->path, &st), 0);
    assert_true(S_ISSOCK(st.st_mode));
    assert_int_equal(st.st_mode & 07777, 0620);
    http_server_free(f->server);
    f->server = NULL;
    assert_int_equal(lstat(f->path, &st), -1);
}

static void refused(struct fixture *f, const char *part)
{
    struct http_server_options o = options(f);
    struct err e = ERR_NONE;

    assert_null(http_server_new(f->loop, &o, on_request, f, &e));
    assert_true(e.exit_code != 0);
    if (!strstr(e.text, part))
        fail_msg("wanted \"%s\" in: %s", part, e.text);
}

static void test_socket_in_the_way(void **state)
{
    struct fixture *f = *state;
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct stat st;

    snprintf(a.sun_path, sizeof(a.sun_path), "%s", f->path);
    /* a file: never touched */
    int fd = open(f->path, O_CREAT | O_WRONLY, 0600);
    close(fd);
    refused(f, "not a socket");
    assert_int_equal(lstat(f->path, &st), 0);
    unlink(f->path);
    /* a symbolic link, even to a socket of nobody */
    assert_int_equal(symlink("elsewhere", f->path), 0);
    refused(f, "not a socket");
    unlink(f->path);
    /* somebody else's, who answers */
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(fd, 0), 0);
    refused(f, "answers on");
    /* and whose queue our first question filled */
    refused(f, "answers on");
    /* left behind */
    close(fd);
    start_default(f);
    struct client works = connect_to(f);
    client_send(&works, G "\r\n");
    assert_true(expect(f, &works, "404"));
    client_close(&works);
    /* a second one on the same path */
    refused(f, "another process holds");
}

/* The socket is removed only while it is ours. */
static void test_socket_replaced_by_another(void **state)
{
    struct fixture *f = *state;
    struct stat st;

    start_default(f);
    unlink(f->path);
    int fd = open(f->path, O_CREAT | O_WRONLY, 0600);
    close(fd);
    http_server_free(f->server);
    f->server = NULL;
    assert_int_equal(lstat(f->path, &st), 0);
}

static void test_bad_addresses(void **state)
{
    static const char *const bad[] = {"", "127.0.0.1", "example.org:80", "127.0.0.1:99999", "300.1.1.1:1"};
    struct fixture *f = *state;
    struct http_server_options o = options(f);
    struct err e;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        o.address = bad[i];
        e = ERR_NONE;
        check_row(i, http_server_new(f->loop, &o, on_request, f, &e) == NULL && e.exit_code == EX_CONFIG);
    }
    start_default(f);
    char taken[32];
    snprintf(taken, sizeof(taken), "localhost:%u", (unsigned)http_server_port(f->server));
    o.address = taken;
    assert_null(http_server_new(f->loop, &o, on_request, f, &e));
    assert_int_equal(e.exit_code, EX_UNAVAILABLE);
}

#define OVER_UNIX(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
#define OVER_TCP(fn)                                \
    {                                               \
#fn " (tcp)", fn, setup_tcp, teardown, NULL \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER_UNIX(test_rows),
        OVER_TCP(test_rows),
        OVER_UNIX(test_peer),
        OVER_TCP(test_peer),
        OVER_UNIX(test_byte_by_byte),
        OVER_UNIX(test_pipelining),
        OVER_TCP(test_pipelining),
        OVER_UNIX(test_continue),
        OVER_UNIX(test_oversized),
        OVER_TCP(test_oversized),
        OVER_UNIX(test_timeouts),
        OVER_TCP(test_timeouts),
        OVER_UNIX(test_trickled_head),
        OVER_UNIX(test_reader_that_stops),
        OVER_UNIX(test_half_close),
        OVER_TCP(test_half_close),
        OVER_UNIX(test_client_leaves),
        OVER_TCP(test_client_leaves),
        OVER_UNIX(test_half_closed_waits),
        OVER_UNIX(test_cap),
        OVER_TCP(test_cap),
        OVER_UNIX(test_stop_accepting),
        OVER_UNIX(test_free_with_open_exchanges),
        OVER_UNIX(test_socket_modes),
        OVER_UNIX(test_socket_in_the_way),
        OVER_UNIX(test_socket_replaced_by_another),
        OVER_TCP(test_bad_addresses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
