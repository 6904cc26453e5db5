/* The loop: libev waits for descriptors and signals; the timers are a binary heap of our own, since their
 * time (clock_now(), which counts a suspended machine's sleep) is not libev's. A turn is one
 * ev_run(EVRUN_ONCE) and what follows it, so no event is ever fed from inside libev's own iteration. */
#include "net/loop.h"

#include <assert.h>
#include <errno.h>
#include <ev.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"

/* libev's clock stands still while the machine is suspended: after it wakes we look again within this time.
 */
#define LONGEST_SLEEP SECONDS(30)

struct later {
    void *p;
    void (*fn)(void *);
};

struct on_signal {
    struct list link;
    ev_signal watcher;
    signal_fn *fn;
    void *arg;
};

struct loop {
    struct ev_loop *ev;
    ev_check wake;           /* reads the clock before any callback of a turn */
    ev_timer sleep;          /* ends the wait at the next deadline */
    void (*woke)(void *arg); /* NULL: nobody cares */
    void *woke_arg;
    int64_t now;
    bool stopped;
    struct timer **heap; /* the earliest first; each timer knows its place */
    size_t n_heap, cap_heap;
    uint64_t timers_set;
    struct later *later;
    size_t n_later, cap_later;
    struct list signals;
};

struct io {
    ev_io watcher;
    struct ev_loop *ev;
    io_fn *fn;
    void *arg;
};

/* ---- the turn ----------------------------------------------------------------------------------- */

static void on_wake(struct ev_loop *ev, ev_check *w, int revents)
{
    (void)ev;
    (void)revents;
    struct loop *l = w->data;
    loop_update_now(l);
    if (l->woke)
        l->woke(l->woke_arg);
}

static void on_sleep_over(struct ev_loop *ev, ev_timer *w, int revents)
{
    (void)ev;
    (void)w;
    (void)revents;
}

/* libev cannot get what it needs from the system, and would abort. */
static void cannot_wait(const char *what)
{
    log_error(NULL, "%s: %s; stopped, what is on disk is unharmed", what, strerror(errno));
    _exit(EX_OSERR);
}

struct loop *loop_new(void)
{
    struct loop *l = xcalloc(1, sizeof(*l));

    ev_set_syserr_cb(cannot_wait);
    l->ev = ev_loop_new(EVFLAG_AUTO);
    if (!l->ev)
        cannot_wait("cannot make an event loop");
    ev_check_init(&l->wake, on_wake);
    ev_set_priority(&l->wake, EV_MAXPRI);
    l->wake.data = l;
    ev_check_start(l->ev, &l->wake);
    ev_timer_init(&l->sleep, on_sleep_over, 0., 0.);
    list_init(&l->signals);
    l->now = clock_now();
    return l;
}

void loop_on_wake(struct loop *l, void (*fn)(void *arg), void *arg)
{
    l->woke = fn;
    l->woke_arg = arg;
}

int64_t loop_now(const struct loop *l)
{
    return l->now;
}

void loop_update_now(struct loop *l)
{
    l->now = clock_now();
    ev_now_update(l->ev);
}

static void free_later(struct loop *l)
{
    /* Freeing one thing may hand in another. */
    for (size_t i = 0; i < l->n_later; i++)
        l->later[i].fn(l->later[i].p);
    l->n_later = 0;
}

/* Those set while we are at it wait for the next turn: see timer_set. */
static void run_timers(struct loop *l)
{
    uint64_t set_before = l->timers_set;

    while (l->n_heap && l->heap[0]->deadline <= l->now && l->heap[0]->number <= set_before) {
        struct timer *t = l->heap[0];
        timer_stop(t);
        t->fn(t->arg);
    }
}

/* Waits for I/O until the deadline and calls its callbacks. */
static void wait_for_io(struct loop *l, int64_t deadline)
{
    loop_update_now(l);
    if (l->n_heap && l->heap[0]->deadline < deadline)
        deadline = l->heap[0]->deadline;
    if (deadline > l->now + LONGEST_SLEEP)
        deadline = l->now + LONGEST_SLEEP;
    ev_timer_stop(l->ev, &l->sleep);
    ev_timer_set(&l->sleep, deadline > l->now ? (double)(deadline - l->now) / 1000. : 0., 0.);
    ev_timer_start(l->ev, &l->sleep);
    ev_run(l->ev, EVRUN_ONCE);
}

void loop_run(struct loop *l, loop_tick_fn *tick, void *arg)
{
    int64_t wish = l->now; /* the first turn does not wait */

    l->stopped = false;
    while (!l->stopped) {
        wait_for_io(l, wish);
        run_timers(l);
        wish = tick ? tick(arg) : TIME_NEVER;
        free_later(l);
    }
}

void loop_stop(struct loop *l)
{
    l->stopped = true;
}

void loop_free(struct loop *l)
{
    if (!l)
        return;
    free_later(l);
    list_each(&l->signals, it) {
        struct on_signal *s = list_item(it, struct on_signal, link);
        ev_signal_stop(l->ev, &s->watcher);
        free(s);
    }
    for (size_t i = 0; i < l->n_heap; i++)
        l->heap[i]->deadline = TIME_NEVER;
    ev_timer_stop(l->ev, &l->sleep);
    ev_check_stop(l->ev, &l->wake);
    ev_loop_destroy(l->ev);
    free(l->heap);
    free(l->later);
    free(l);
}

void loop_free_later(struct loop *l, void *p, void (*fn)(void *))
{
    if (l->n_later == l->cap_later) {
        l->cap_later = l->cap_later ? 2 * l->cap_later : 16;
        l->later = xrealloc(l->later, l->cap_later * sizeof(l->later[0]));
    }
    l->later[l->n_later++] = (struct later){p, fn};
}

/* ---- timers ------------------------------------------------------------------------------------- */

static bool before(const struct timer *a, const struct timer *b)
{
    return a->deadline < b->deadline || (a->deadline == b->deadline && a->number < b->number);
}

static void put(struct loop *l, size_t place, struct timer *t)
{
    l->heap[place] = t;
    t->place = place;
}

/* Finds t's place, from the one given up or down. */
static void settle(struct loop *l, size_t place, struct timer *t)
{
    while (place > 0 && before(t, l->heap[(place - 1) / 2])) {
        put(l, place, l->heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    for (;;) {
        size_t child = 2 * place + 1;
        if (child + 1 < l->n_heap && before(l->heap[child + 1], l->heap[child]))
            child++;
        if (child >= l->n_heap || before(t, l->heap[child]))
            break;
        put(l, place, l->heap[child]);
        place = child;
    }
    put(l, place, t);
}

void timer_init(struct timer *t, struct loop *l, timer_fn *fn, void *arg)
{
    *t = (struct timer){.fn = fn, .arg = arg, .deadline = TIME_NEVER, .loop = l};
}

void timer_set(struct timer *t, int64_t deadline)
{
    struct loop *l = t->loop;

    timer_stop(t);
    if (deadline == TIME_NEVER)
        return;
    if (l->n_heap == l->cap_heap) {
        l->cap_heap = l->cap_heap ? 2 * l->cap_heap : 64;
        l->heap = xrealloc(l->heap, l->cap_heap * sizeof(struct timer *));
    }
    /* Not before now: else one that keeps setting itself to the past would keep others from their turn. */
    t->deadline = deadline > l->now ? deadline : l->now;
    t->number = ++l->timers_set;
    settle(l, l->n_heap++, t);
}

void timer_stop(struct timer *t)
{
    if (t->deadline == TIME_NEVER)
        return;
    struct loop *l = t->loop;
    struct timer *last = l->heap[--l->n_heap];

    assert(l->heap[t->place] == t || last == t);
    t->deadline = TIME_NEVER;
    if (last != t)
        settle(l, t->place, last);
}

/* ---- descriptors and signals -------------------------------------------------------------------- */

static void on_io(struct ev_loop *ev, ev_io *w, int revents)
{
    struct io *io = w->data;
    int events = (revents & EV_READ ? IO_READ : 0) | (revents & EV_WRITE ? IO_WRITE : 0);

    /* A descriptor that libev cannot watch: reading or writing it will tell the owner why. */
    if (revents & EV_ERROR)
        events = IO_READ | IO_WRITE;
    (void)ev;
    io->fn(io->arg, events);
}

struct io *io_new(struct loop *l, int fd, io_fn *fn, void *arg)
{
    struct io *io = xcalloc(1, sizeof(*io));

    ev_io_init(&io->watcher, on_io, fd, 0);
    io->watcher.data = io;
    io->ev = l->ev;
    io->fn = fn;
    io->arg = arg;
    return io;
}

void io_want(struct io *io, int events)
{
    int wanted = (events & IO_READ ? EV_READ : 0) | (events & IO_WRITE ? EV_WRITE : 0);

    if (ev_is_active(&io->watcher) ? wanted == (io->watcher.events & (EV_READ | EV_WRITE)) : !wanted)
        return;
    ev_io_stop(io->ev, &io->watcher);
    ev_io_set(&io->watcher, io->watcher.fd, wanted);
    if (wanted)
        ev_io_start(io->ev, &io->watcher);
}

void io_free(struct io *io)
{
    if (!io)
        return;
    ev_io_stop(io->ev, &io->watcher);
    free(io);
}

static void on_signal(struct ev_loop *ev, ev_signal *w, int revents)
{
    struct on_signal *s = w->data;

    (void)ev;
    (void)revents;
    s->fn(s->arg, w->signum);
}

void loop_on_signal(struct loop *l, int signo, signal_fn *fn, void *arg)
{
    struct on_signal *s = xcalloc(1, sizeof(*s));

    ev_signal_init(&s->watcher, on_signal, signo);
    s->watcher.data = s;
    s->fn = fn;
    s->arg = arg;
    list_add_tail(&l->signals, &s->link);
    ev_signal_start(l->ev, &s->watcher);
}
