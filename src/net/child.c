/* proc/ on the loop. */
#include "net/child.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/loop.h"
#include "proc/proc.h"

#define READ_BYTES (16 * 1024)
#define READS_A_TURN 8   /* a flood must not hold the loop */
#define READS_AT_END 128 /* what a dead child left: at most a pipe's capacity (1 MiB at most) */

struct child {
    struct loop *loop;
    struct proc proc;
    const struct child_events *events;
    void *arg;
    struct io *in, *out, *err, *exit; /* NULL: not watched any more */
    struct buf input;                 /* not yet in the pipe */
    bool input_broken;                /* it closed its end */
    bool input_ends;                  /* close ours when input is empty */
    struct timer step;                /* of ending the group */
    bool told;                        /* after_exit has run */
    bool finished;                    /* `ended` was called */
    int64_t started_at, exited_at;
};

static void unwatch(struct io **io)
{
    if (*io)
        io_free(*io);
    *io = NULL;
}

/* ---- its standard input ------------------------------------------------------------------------- */

static void close_input(struct child *c)
{
    unwatch(&c->in);
    buf_free(&c->input);
    proc_close_fd(&c->proc.in);
}

/* Writes what the pipe takes. A broken pipe is kept open, so that child_unread still knows what was not read.
 */
static void write_input(struct child *c)
{
    while (c->input.n && !c->input_broken) {
        ssize_t n = write(c->proc.in, c->input.p, c->input.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0)
            c->input_broken = true;
        else
            buf_drop(&c->input, (size_t)n);
    }
    buf_trim(&c->input, 0);
    if (c->input_ends && (!c->input.n || c->input_broken))
        close_input(c);
    else
        io_want(c->in, c->input.n && !c->input_broken ? IO_WRITE : 0);
}

static void on_writable(void *arg, int events)
{
    (void)events;
    write_input(arg);
}

void child_write(struct child *c, struct slice bytes)
{
    if (c->proc.in < 0)
        return;
    buf_add_slice(&c->input, bytes);
    write_input(c);
}

void child_close_input(struct child *c)
{
    c->input_ends = true;
    if (c->proc.in >= 0)
        write_input(c);
}

size_t child_unread(const struct child *c)
{
    return c->input.n + proc_unread(&c->proc);
}

/* ---- its output --------------------------------------------------------------------------------- */

static void read_output(struct child *c, int *fd, struct io **io, void (*event)(void *, struct slice),
                        int times)
{
    char bytes[READ_BYTES];

    while (*fd >= 0 && times-- > 0) {
        ssize_t n = read(*fd, bytes, sizeof(bytes));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            unwatch(io);
            proc_close_fd(fd);
            n = 0;
        }
        event(c->arg, slice_make(bytes, (size_t)n));
    }
}

static void on_out(void *arg, int events)
{
    struct child *c = arg;

    (void)events;
    read_output(c, &c->proc.out, &c->out, c->events->out, READS_A_TURN);
}

static void on_err(void *arg, int events)
{
    struct child *c = arg;

    (void)events;
    read_output(c, &c->proc.err, &c->err, c->events->err, READS_A_TURN);
}

/* ---- its end ------------------------------------------------------------------------------------ */

/* The last call: nothing of the group is ours to end any more. */
static void finish(struct child *c)
{
    timer_stop(&c->step);
    c->finished = true;
    c->events->ended(c->arg);
}

/* The child is reaped: takes what it left in its pipes, and sees to its group. */
static void after_exit(struct child *c)
{
    unwatch(&c->exit);
    c->told = true;
    c->exited_at = loop_now(c->loop);
    read_output(c, &c->proc.out, &c->out, c->events->out, READS_AT_END);
    read_output(c, &c->proc.err, &c->err, c->events->err, READS_AT_END);
    if (!c->proc.ending && c->events->over && c->events->over(c->arg, c->proc.status))
        finish(c);
    else
        child_end(c, CHILD_GRACE_MS);
}

static void on_exit_news(void *arg, int events)
{
    struct child *c = arg;

    (void)events;
    if (!c->told && proc_reap(&c->proc))
        after_exit(c);
}

/* Runs while the group is being ended. */
static void on_step(void *arg)
{
    struct child *c = arg;
    int64_t next = TIME_NEVER;

    if (c->proc.ending)
        next = proc_end_step(&c->proc, loop_now(c->loop));
    if (next != TIME_NEVER)
        timer_set(&c->step, next);
    if (!c->told && c->proc.reaped)
        after_exit(c); /* sets the timer once more */
    else if (next == TIME_NEVER)
        finish(c);
}

void child_end(struct child *c, int64_t grace_ms)
{
    if (c->finished)
        return;
    proc_end(&c->proc, grace_ms, loop_now(c->loop));
    timer_set(&c->step, loop_now(c->loop));
}

void child_kill(struct child *c)
{
    if (!c->proc.reaped)
        kill(c->proc.pid, SIGKILL);
}

bool child_ending(struct child *c)
{
    if (!c->told && proc_reap(&c->proc)) {
        unwatch(&c->exit);
        timer_set(&c->step, loop_now(c->loop));
    }
    return c->proc.ending || c->proc.reaped;
}

bool child_exited(const struct child *c)
{
    return c->proc.reaped;
}

int child_status(const struct child *c)
{
    return c->proc.status;
}

int child_exec_errno(const struct child *c)
{
    return c->proc.exec_errno;
}

int64_t child_lived_ms(const struct child *c)
{
    return (c->exited_at ? c->exited_at : loop_now(c->loop)) - c->started_at;
}

void child_add_how(const struct child *c, struct buf *out)
{
    int status = c->proc.status;

    if (c->proc.exec_errno)
        buf_printf(out, "cannot be started: %s", strerror(c->proc.exec_errno));
    else if (WIFSIGNALED(status))
        buf_printf(out, "killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        buf_printf(out, "exit status %d", WEXITSTATUS(status));
}

/* ---- its life ----------------------------------------------------------------------------------- */

struct child *child_start(struct loop *l, char *const *argv, const struct proc_env *env,
                          const struct child_events *events, void *arg)
{
    struct proc proc;

    if (proc_start(&proc, argv, env->vars))
        return NULL;
    struct child *c = xcalloc(1, sizeof(*c));
    c->loop = l;
    c->proc = proc;
    c->events = events;
    c->arg = arg;
    c->started_at = loop_now(l);
    c->in = io_new(l, proc.in, on_writable, c);
    c->out = io_new(l, proc.out, on_out, c);
    c->err = io_new(l, proc.err, on_err, c);
    c->exit = io_new(l, proc.exit.fd, on_exit_news, c);
    io_want(c->out, IO_READ);
    io_want(c->err, IO_READ);
    io_want(c->exit, IO_READ);
    timer_init(&c->step, l, on_step, c);
    return c;
}

void child_free(struct child *c)
{
    if (!c)
        return;
    timer_stop(&c->step);
    unwatch(&c->in);
    unwatch(&c->out);
    unwatch(&c->err);
    unwatch(&c->exit);
    if (c->finished)
        proc_close(&c->proc);
    else
        proc_drop(&c->proc);
    buf_free(&c->input);
    /* It may be one of its own callbacks that called. */
    loop_free_later(c->loop, c, free);
}
