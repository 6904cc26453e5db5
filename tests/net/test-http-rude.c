/* The HTTP server against clients that are slow, rude or gone: each is answered as far as it listens, and ended in time. */
#include "rig.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

/* One who sends a body that is refused gets to read why, although it sends all of it first. */
static void check_oversized(struct fixture *f, const char *head, size_t bytes)
{
    struct client c = client_connect(f);
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
        loop_run(f->loop, rig_tick, &(struct until){.fn = client_has, .arg = &c, .loop = f->loop});
    }
    if (bytes < 16 << 20) {
        assert_true(sent >= bytes);
        assert_true(client_expect(f, &c, "HTTP/1.1 413 "));
        assert_false(c.reset);
    } else {
        assert_true(sent < bytes); /* drained no further than its limit */
    }
    client_close(&c);
}

static void test_oversized(void **state)
{
    struct fixture *f = *state;

    rig_start_default(f);
    check_oversized(f, POST "Content-Length: 10000000\r\n\r\n", 10000000);
    check_oversized(f, POST "Transfer-Encoding: chunked\r\n\r\n1000000\r\n", 3000000);
    check_oversized(f, POST "Content-Length: 100000000\r\n\r\n", 100000000);
    assert_int_equal(f->requests, 0);
}

static void test_timeouts(void **state)
{
    struct fixture *f = *state;
    struct http_server_options o = rig_options(f);

    o.header_timeout_ms = 60;
    o.body_timeout_ms = 60;
    o.idle_timeout_ms = 200;
    rig_start(f, &o);
    struct client slow_head = client_connect(f), slow_body = client_connect(f), idle = client_connect(f);
    client_send(&slow_head, "GET / HTT");
    client_send(&slow_body, POST "Content-Length: 5\r\n\r\nhel");
    assert_true(client_expect(f, &slow_head, "HTTP/1.1 408 "));
    assert_true(client_expect(f, &slow_body, "\"code\":\"timeout\""));
    assert_true(client_expect(f, &slow_head, NULL));
    assert_true(client_expect(f, &idle, NULL) && idle.eof);
    assert_int_equal(idle.got.n, 0);
    client_close(&slow_head);
    client_close(&slow_body);
    client_close(&idle);
}

/* A client that trickles its head one byte before each time-out must not live for ever. */
static void test_trickled_head(void **state)
{
    struct fixture *f = *state;
    struct http_server_options o = rig_options(f);
    int64_t began = clock_now();

    o.header_timeout_ms = 200;
    rig_start(f, &o);
    struct client c = client_connect(f);
    client_send(&c, "GET / HTTP/1.1\r\nX: ");
    c.wanted = "408";
    while (!client_has(&c) && clock_now() < began + PATIENCE) {
        send(c.fd, "x", 1, MSG_NOSIGNAL);
        struct until a_while = {.fn = client_has, .arg = &c, .loop = f->loop, .give_up = clock_now() + 5};
        loop_run(f->loop, rig_tick, &a_while);
    }
    assert_true(client_has(&c));
    client_close(&c);
}

/* One who does not read its answer is cut off, and not before it had its time. */
static void test_reader_that_stops(void **state)
{
    struct fixture *f = *state;
    struct http_server_options o = rig_options(f);

    o.body_timeout_ms = 100;
    rig_start(f, &o);
    struct client c = client_connect(f);
    client_send(&c, "GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
    int64_t began = clock_now();
    bool (*never)(void *) = rig_holds_two;
    struct until u = {.fn = never, .arg = f, .loop = f->loop, .give_up = began + 400};
    loop_run(f->loop, rig_tick, &u);
    assert_true(client_expect(f, &c, NULL));
    assert_true(c.got.n > 0 && c.got.n < 4000000);
    client_close(&c);

    c = client_connect(f);
    client_send(&c, "GET /big HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_true(client_expect(f, &c, NULL) && c.eof);
    assert_true(c.got.n > 4000000);
    client_close(&c);
}

static bool is_asked(void *arg)
{
    const struct fixture *f = arg;

    return f->requests > 0;
}

/* One more request, on a connection of its own: whether it was served. If not it is told when to come again. */
static bool is_served(struct fixture *f)
{
    struct client c = client_connect(f);

    client_send(&c, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_true(client_expect(f, &c, NULL));
    bool served = strstr(buf_str(&c.got), "404 Not Found") != NULL;
    assert_true(served || (strstr(buf_str(&c.got), "HTTP/1.1 503 ") &&
                           strstr(buf_str(&c.got), "\r\nRetry-After: 1\r\n")));
    client_close(&c);
    return served;
}

/* An answer that nobody reads fills the room: others are told so, until it has had its time and has to go. */
static void test_unread(void **state)
{
    struct fixture *f = *state;
    struct http_server_options o = rig_options(f);
    struct buf large = BUF_EMPTY;

    o.max_unread = 1 << 20;
    rig_start(f, &o);
    struct client waits = client_connect(f), deaf = client_connect(f);
    client_send(&waits, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_true(rig_run_until(f, rig_holds_one, f));
    f->requests = 0;
    client_send(&deaf, "GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_true(rig_run_until(f, is_asked, f));
    int64_t began = clock_now();
    memset(buf_reserve(&large, 100000), 'x', 100000);
    buf_added(&large, 100000);
    bool in_time = clock_now() - began < 900;
    http_reply(f->held[0], 200, NULL, -1, buf_slice(&large));
    assert_true(client_expect(f, &waits, in_time ? "HTTP/1.1 503 " : "HTTP/1.1 "));
    bool refused = !is_served(f);
    while (!is_served(f) && clock_now() < began + PATIENCE)
        ;
    assert_true(refused || clock_now() - began >= 900);
    assert_true(client_expect(f, &deaf, NULL));
    assert_true(deaf.got.n > 0 && deaf.got.n < 4000000);
    client_close(&deaf);
    client_close(&waits);
    buf_free(&large);
}

static void test_half_close(void **state)
{
    struct fixture *f = *state;
    struct client c = client_connect((rig_start_default(f), f));

    client_send(&c, POST "Content-Length: 3\r\n\r\none" POST "Content-Length: 3\r\n\r\ntwo");
    shutdown(c.fd, SHUT_WR);
    assert_true(client_expect(f, &c, "\r\n\r\ntwo"));
    assert_true(client_expect(f, &c, NULL) && c.eof);
    client_close(&c);

    c = client_connect(f);
    client_send(&c, "GET / HT");
    shutdown(c.fd, SHUT_WR);
    assert_true(client_expect(f, &c, "400 Bad Request"));
    assert_true(client_expect(f, &c, NULL) && c.eof);
    client_close(&c);

    c = client_connect(f);
    shutdown(c.fd, SHUT_WR);
    assert_true(client_expect(f, &c, NULL) && c.eof);
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
    struct client c = client_connect(f);

    client_send(&c, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_true(rig_run_until(f, rig_holds_one, f));
    assert_int_equal(f->gone, 0);
    client_close(&c);
    assert_true(rig_run_until(f, is_gone, f));
    assert_int_equal(f->gone, 1);

    /* One that nobody listens for: its answer goes nowhere, and harms nothing. */
    f->n_held = 0;
    c = client_connect(f);
    client_send(&c, "GET /hold-deaf HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_true(rig_run_until(f, rig_holds_one, f));
    struct linger hard = {1, 0};
    setsockopt(c.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    client_close(&c);
    struct client next = client_connect(f);
    client_send(&next, POST "Content-Length: 2\r\n\r\nhi");
    assert_true(client_expect(f, &next, "\r\n\r\nhi"));
    http_reply(f->held[0], 200, NULL, -1, LIT("late"));
    client_close(&next);
    assert_int_equal(f->gone, 1);
}

static void test_client_leaves(void **state)
{
    rig_start_default(*state);
    check_leaves(*state);
}

/* On a unix socket a client may end its sending side and wait; when it then leaves, that is noticed. */
static void test_half_closed_waits(void **state)
{
    struct fixture *f = *state;
    struct client c = client_connect((rig_start_default(f), f));

    client_send(&c, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    shutdown(c.fd, SHUT_WR);
    assert_true(rig_run_until(f, rig_holds_one, f));
    c.wanted = "";
    for (int i = 0; i < 20; i++)
        rig_run_until(f, client_has, &c);
    assert_int_equal(f->gone, 0);
    client_close(&c);
    assert_true(rig_run_until(f, is_gone, f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER_UNIX(test_oversized),    OVER_TCP(test_oversized),          OVER_UNIX(test_timeouts),
        OVER_TCP(test_timeouts),      OVER_UNIX(test_trickled_head),     OVER_UNIX(test_reader_that_stops),
        OVER_UNIX(test_half_close),   OVER_TCP(test_half_close),         OVER_UNIX(test_client_leaves),
        OVER_TCP(test_client_leaves), OVER_UNIX(test_half_closed_waits), OVER_UNIX(test_unread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
