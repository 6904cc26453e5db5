/* The loop: timers in order, moved and stopped; the tick; freeing at the end of the turn; descriptors and signals. */
#include <signal.h>
#include <unistd.h>

#include "../unit/unit.h"

#include "base/random.h"
#include "net/loop.h"

#define MANY 500

struct item {
    struct timer timer;
    int64_t wanted;
    int number;
};

static struct loop *loop;
static struct item items[MANY];
static int fired[MANY], n_fired, turns, stop_at;

static void reset(void)
{
    n_fired = turns = 0;
    stop_at = INT32_MAX;
}

static int setup(void **state)
{
    (void)state;
    loop = loop_new();
    reset();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    loop_free(loop);
    return 0;
}

static void on_timer(void *arg)
{
    struct item *it = arg;

    assert_true(it->timer.deadline == TIME_NEVER);
    assert_true(loop_now(loop) >= it->wanted);
    fired[n_fired++] = it->number;
}

/* Stops once stop_at timers fired. */
static int64_t tick(void *arg)
{
    (void)arg;
    turns++;
    if (n_fired >= stop_at)
        loop_stop(loop);
    return TIME_NEVER;
}

static void set(int i, int64_t deadline)
{
    items[i].wanted = deadline;
    timer_set(&items[i].timer, deadline);
}

/* Random deadlines, each moved a few times, every third stopped: what fires, fires in order. */
static void test_order(void **state)
{
    int64_t now = loop_now(loop), last = 0;
    int left = 0;

    (void)state;
    for (int i = 0; i < MANY; i++) {
        items[i].number = i;
        timer_init(&items[i].timer, loop, on_timer, &items[i]);
    }
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < MANY; i++)
            set(i, now + (int64_t)random_below(40));
    for (int i = 0; i < MANY; i++)
        if (i % 3 == 0)
            timer_stop(&items[i].timer);
        else
            left++;
    timer_stop(&items[0].timer);
    stop_at = left;
    loop_run(loop, tick, NULL);
    assert_int_equal(n_fired, left);
    for (int i = 0; i < n_fired; i++) {
        struct item *it = &items[fired[i]];
        assert_true(it->number % 3 != 0);
        assert_true(it->wanted >= last);
        /* of one deadline: in the order in which they were set */
        assert_true(i == 0 || it->wanted > last || it->number > fired[i - 1]);
        last = it->wanted;
    }
    assert_true(loop_now(loop) >= last);
}

static void again(void *arg)
{
    struct item *it = arg;

    fired[n_fired++] = it->number;
    timer_set(&it->timer, loop_now(loop) - 5);
}

/* One that sets itself to the past fires once a turn, and holds up neither the tick nor another timer. */
static void test_timer_in_the_past(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        items[i].number = i;
        timer_init(&items[i].timer, loop, again, &items[i]);
        timer_set(&items[i].timer, loop_now(loop));
    }
    stop_at = 6;
    loop_run(loop, tick, NULL);
    assert_int_equal(n_fired, 6);
    assert_int_equal(turns, 3);
}

static int64_t ten_at_once(void *arg)
{
    int64_t *began = arg;

    if (++turns == 10)
        loop_stop(loop);
    return turns < 10 ? *began - 1000 : *began;
}

static int64_t in_30_ms(void *arg)
{
    int64_t *began = arg;

    if (clock_now() >= *began + 30)
        loop_stop(loop);
    turns++;
    return *began + 30;
}

static void test_tick_wishes(void **state)
{
    int64_t began = clock_now();

    (void)state;
    loop_run(loop, ten_at_once, &began);
    assert_int_equal(turns, 10);
    turns = 0;
    began = clock_now();
    loop_run(loop, in_30_ms, &began);
    assert_true(clock_now() - began >= 30);
    assert_true(turns <= 4); /* it slept meanwhile */
}

static void free_other(void *p)
{
    fired[n_fired++] = 2;
    free(p);
}

static void free_one(void *p)
{
    fired[n_fired++] = 1;
    loop_free_later(loop, xmalloc(1), free_other);
    free(p);
}

static int64_t frees(void *arg)
{
    (void)arg;
    if (turns++ == 0)
        loop_free_later(loop, xmalloc(1), free_one);
    assert_int_equal(n_fired, turns == 1 ? 0 : 2);
    if (turns == 2)
        loop_stop(loop);
    return 0;
}

static void test_free_later(void **state)
{
    (void)state;
    loop_run(loop, frees, NULL);
    assert_int_equal(n_fired, 2);
    loop_free_later(loop, xmalloc(1), free_one); /* and at loop_free */
}

struct pipe_end {
    struct io *io;
    int fd, events;
};

static void on_readable(void *arg, int events)
{
    struct pipe_end *e = arg;
    char c;

    e->events |= events;
    fired[n_fired++] = read(e->fd, &c, 1) == 1 ? c : -1;
    if (c == 'z') {
        io_free(e->io); /* allowed here */
        e->io = NULL;
        loop_stop(loop);
    }
}

static void test_io(void **state)
{
    struct pipe_end e = {0};
    int p[2];

    (void)state;
    assert_int_equal(pipe(p), 0);
    e.fd = p[0];
    e.io = io_new(loop, p[0], on_readable, &e);
    assert_int_equal(write(p[1], "az", 2), 2);
    stop_at = 0;
    loop_run(loop, tick, NULL);
    assert_int_equal(n_fired, 0); /* nothing was wanted yet */
    io_want(e.io, IO_READ);
    loop_run(loop, NULL, NULL);
    assert_int_equal(n_fired, 2);
    assert_int_equal(e.events, IO_READ);
    assert_null(e.io);
    close(p[0]);
    close(p[1]);
}

static void on_signal(void *arg, int signo)
{
    int *got = arg;

    *got = signo;
    loop_stop(loop);
}

static void test_signal(void **state)
{
    int got = 0;

    (void)state;
    loop_on_signal(loop, SIGUSR1, on_signal, &got);
    raise(SIGUSR1);
    assert_int_equal(got, 0);
    loop_run(loop, NULL, NULL);
    assert_int_equal(got, SIGUSR1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_timer_in_the_past, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tick_wishes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_free_later, setup, teardown),
        cmocka_unit_test_setup_teardown(test_io, setup, teardown),
        cmocka_unit_test_setup_teardown(test_signal, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
