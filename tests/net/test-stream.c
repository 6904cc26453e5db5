/* Streams over a pair of sockets, the other end of which the test holds: which events come, when, and how often. */
#include "../unit/unit.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/loop.h"
#include "net/stream.h"

struct fixture {
    struct loop *loop;
    struct stream *s;
    int peer;
    char told[64]; /* a letter an event */
    bool inside;   /* one of the stream's functions is being called */
    bool keep_in;  /* data is left where it is */
    bool close_at_once;
    size_t got;
};

static void on_event(void *arg, struct stream *s, enum stream_event ev)
{
    struct fixture *f = arg;
    size_t n = strlen(f->told);

    assert_false(f->inside);
    assert_ptr_equal(s, f->s);
    assert_true(n + 1 < sizeof f->told);
    if (n == 0 || f->told[n - 1] != 'd' || ev != STREAM_DATA) /* data may come in any number of pieces */
        f->told[n] = "RdweF"[ev];
    if (ev == STREAM_DATA && !f->keep_in) {
        f->got += stream_in(s)->n;
        buf_clear(stream_in(s));
    }
    if (f->close_at_once)
        stream_close(s);
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) != 0)
        return -1;
    f->loop = loop_new();
    f->peer = fds[0];
    f->s = stream_new(f->loop, fds[1], on_event, f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    if (!f->close_at_once)
        stream_close(f->s);
    if (f->peer >= 0)
        close(f->peer);
    loop_free(f->loop);
    free(f);
    return 0;
}

struct turns {
    struct loop *loop;
    int left;
};

static int64_t tick(void *arg)
{
    struct turns *t = arg;

    if (--t->left == 0)
        loop_stop(t->loop);
    return loop_now(t->loop); /* no sleep between the turns */
}

/* Some turns of the loop: what can happen without the peer has happened after them. */
static void turn(struct fixture *f)
{
    struct turns t = {f->loop, 20};

    loop_run(f->loop, tick, &t);
}

static void write_inside(struct fixture *f, const void *p, size_t n)
{
    f->inside = true;
    stream_write(f->s, slice_make(p, n));
    f->inside = false;
}

static void assert_told(struct fixture *f, const char *events)
{
    assert_string_equal(f->told, events);
    memset(f->told, 0, sizeof f->told);
}

static size_t read_all(struct fixture *f)
{
    char part[65536];
    size_t n = 0;
    ssize_t r;

    while ((r = read(f->peer, part, sizeof part)) > 0)
        n += (size_t)r;
    return n;
}

static void test_writing(void **state)
{
    struct fixture *f = *state;
    size_t n = 3 << 20, got = 0;
    char *much = memset(xmalloc(n), 'm', n);

    write_inside(f, "abc", 3);
    assert_int_equal(stream_queued(f->s), 0); /* tried at once */
    turn(f);
    assert_told(f, "w");
    assert_int_equal(read_all(f), 3);

    write_inside(f, much, n);
    assert_true(stream_queued(f->s) > 0);
    turn(f);
    assert_told(f, "");
    while (stream_queued(f->s)) {
        got += read_all(f);
        turn(f);
    }
    assert_told(f, "w");
    assert_int_equal(got + read_all(f), n);
    free(much);
}

static void test_reading(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(write(f->peer, "hello", 5), 5);
    turn(f);
    assert_told(f, "d");
    assert_int_equal(f->got, 5);
    assert_int_equal(write(f->peer, "bye", 3), 3);
    shutdown(f->peer, SHUT_WR);
    turn(f);
    assert_told(f, "de");
    assert_int_equal(f->got, 8);

    write_inside(f, "still here", 10); /* the other direction goes on */
    turn(f);
    assert_told(f, "w");
    assert_int_equal(read_all(f), 10);
}

static void test_limit(void **state)
{
    struct fixture *f = *state;
    char piece[50000] = {0};
    size_t sent = 0;
    ssize_t r;

    f->keep_in = true;
    stream_set_in_max(f->s, 20000);
    for (int i = 0; i < 10; i++) {
        while ((r = write(f->peer, piece, sizeof piece)) > 0)
            sent += (size_t)r;
        turn(f);
    }
    assert_told(f, "d");
    size_t held = stream_in(f->s)->n;
    assert_true(held >= 20000 && held < 20000 + 16384 && held < sent);

    f->keep_in = false;
    f->got = held;
    buf_clear(stream_in(f->s));
    stream_resume(f->s);
    turn(f);
    assert_int_equal(f->got, sent);
}

static void test_pause(void **state)
{
    struct fixture *f = *state;

    f->inside = true;
    stream_pause(f->s);
    assert_int_equal(write(f->peer, "hello", 5), 5);
    close(f->peer);
    f->peer = -1;
    f->inside = false;
    turn(f);
    assert_told(f, "");
    stream_resume(f->s);
    turn(f);
    assert_told(f, "de");
}

static void test_half_close(void **state)
{
    struct fixture *f = *state;
    char c[8];

    write_inside(f, "last", 4);
    stream_end(f->s);
    write_inside(f, "ignored", 7);
    turn(f);
    assert_told(f, "w");
    assert_int_equal(read(f->peer, c, sizeof c), 4);
    assert_int_equal(read(f->peer, c, sizeof c), 0);
    assert_int_equal(write(f->peer, "answer", 6), 6);
    turn(f);
    assert_told(f, "d");
}

/* What the peer said before it went is told before the failure, which is told once; and no signal comes. */
static void test_broken(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(write(f->peer, "too large", 9), 9);
    close(f->peer);
    f->peer = -1;
    write_inside(f, "more", 4);
    turn(f);
    assert_told(f, "deF");
    assert_int_equal(f->got, 9);
    assert_int_equal(stream_errno(f->s), EPIPE);
    assert_string_equal(stream_error(f->s), strerror(EPIPE));
    write_inside(f, "more", 4);
    turn(f);
    assert_told(f, "");
}

/* Closed inside its callback, with more to tell: nothing more comes. */
static void test_closed_inside(void **state)
{
    struct fixture *f = *state;

    f->close_at_once = true;
    assert_int_equal(write(f->peer, "hello", 5), 5);
    shutdown(f->peer, SHUT_WR);
    write_inside(f, "bye", 3);
    turn(f);
    assert_int_equal(strlen(f->told), 1);
    assert_int_equal(read_all(f), 3);
    assert_int_equal(send(f->peer, "x", 1, MSG_NOSIGNAL), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_writing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_reading, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_pause, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_half_close, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_broken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_closed_inside, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
