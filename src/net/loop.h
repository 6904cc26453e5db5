/* The one loop, around libev. A turn: I/O callbacks, timers, then the tick function (which does due work,
 * commits and runs callbacks), then what was given to loop_free_later is freed, then sleep until the next
 * deadline. */
#ifndef NET_LOOP_H
#define NET_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

struct loop;

struct loop *loop_new(void);
/* Timers still set are forgotten (not called); descriptors watched must have been released by io_free. */
void loop_free(struct loop *l);

/* Called once after the I/O of each turn and before sleeping. Returns when it wants to be called again at the
 * latest (in clock_now() milliseconds; TIME_NEVER: no wish; at or before now: at once). */
typedef int64_t loop_tick_fn(void *arg);
/* Runs until loop_stop; the turn under way is finished, its tick included. tick may be NULL. */
void loop_run(struct loop *l, loop_tick_fn *tick, void *arg);
void loop_stop(struct loop *l);
/* Called in each turn when the clock was read, before any other callback. */
void loop_on_wake(struct loop *l, void (*fn)(void *arg), void *arg);
int64_t loop_now(const struct loop *l); /* clock_now() as read at the start of this turn */
void loop_update_now(struct loop *l);   /* after something long, such as a sync */

/* A timer, embedded in its owner, who reads nothing of it but `deadline`. Deadlines in clock_now()
 * milliseconds; a past one becomes now. Timers of one deadline are called in the order in which they were
 * set, and one set by a timer's callback is called in the next turn at the earliest. */
typedef void timer_fn(void *arg);
struct timer {
    timer_fn *fn;
    void *arg;
    int64_t deadline; /* TIME_NEVER: not set */
    struct loop *loop;
    size_t place;    /* in the loop's heap */
    uint64_t number; /* of the call that set it */
};
void timer_init(struct timer *t, struct loop *l, timer_fn *fn, void *arg);
void timer_set(struct timer *t, int64_t deadline); /* again: moves it; TIME_NEVER: stops it */
void timer_stop(struct timer *t);                  /* harmless if not set */

/* Watches a descriptor. */
enum { IO_READ = 1, IO_WRITE = 2 };
typedef void io_fn(void *arg, int events);
struct io; /* owned by the caller through io_free */
struct io *io_new(struct loop *l, int fd, io_fn *fn, void *arg);
void io_want(struct io *io, int events); /* 0: nothing */
void io_free(
    struct io *io); /* does not close the descriptor, but comes before that; allowed in its own callback */

/* A signal, delivered inside the loop. */
typedef void signal_fn(void *arg, int signo);
void loop_on_signal(struct loop *l, int signo, signal_fn *fn, void *arg);

/* Frees p by fn at the end of this turn, so that an object may close itself inside its own callback. */
void loop_free_later(struct loop *l, void *p, void (*fn)(void *));

#endif
