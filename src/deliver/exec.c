/* exec: one process an event. The update comes on its standard input, the envelope in its environment; its
 * exit status is the answer (design.md sections 4 and 9). What a handler that has answered (status 0 or 65)
 * left running lives on; in every other case the whole process group is gone before the event is given back,
 * so that two tries never overlap. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/failpoint.h"
#include "base/mem.h"
#include "deliver/errline.h"
#include "deliver/slot.h"
#include "net/child.h"
#include "net/loop.h"
#include "spool/gather.h"
#include "wire/call.h"

/* Of sysexits.h, and what a shell says when it cannot find (127) or run (126) the program. */
#define EXIT_REJECTED 65
#define EXIT_UNAVAILABLE 69
#define EXIT_CANNOT_RUN 126
#define EXIT_NOT_FOUND 127

#define OUTPUT_MAX CALL_MAX_BYTES
#define OUTPUT_HEAD 4096 /* what is kept of one that is larger */

struct exec {
    struct slot *slot;
    struct child *child; /* NULL: free */
    struct timer lease;
    struct errline err;
    struct buf out;  /* of its standard output, as long as it may be calls */
    bool no_calls;   /* it is something else, and not kept */
    bool overflowed; /* it would have been more than OUTPUT_MAX */
    bool cancelled;
    enum outcome_kind cancelled_as;
};

static void cancel_exec(void *work, enum outcome_kind as)
{
    struct exec *x = work;

    if (x->child && !x->cancelled && !child_exited(x->child)) {
        x->cancelled = true;
        x->cancelled_as = as;
    }
    if (x->child)
        child_end(x->child, CHILD_GRACE_MS);
}

static void on_lease_over(void *arg)
{
    cancel_exec(arg, OUTCOME_LEASE_EXPIRED);
}

/* Most handlers write nothing, or a log; only what begins as an object or an array is kept. */
static void on_out(void *arg, struct slice bytes)
{
    struct exec *x = arg;

    while (!x->out.n && bytes.n && strchr(" \t\r\n", bytes.p[0]) && bytes.p[0])
        bytes = slice_make(bytes.p + 1, bytes.n - 1);
    if (!x->out.n && bytes.n && bytes.p[0] != '{' && bytes.p[0] != '[')
        x->no_calls = true;
    if (x->no_calls || x->overflowed || !bytes.n)
        return;
    if (x->out.n + bytes.n <= OUTPUT_MAX) {
        buf_add_slice(&x->out, bytes);
        return;
    }
    struct buf head = BUF_EMPTY;
    buf_add(&head, x->out.p, x->out.n < OUTPUT_HEAD ? x->out.n : OUTPUT_HEAD);
    buf_free(&x->out);
    x->out = head;
    x->overflowed = true;
}

/* An output that is too large may be a log of JSON lines: it counts as calls only if it begins like one. */
static void gather_stdout(struct exec *x, struct gather *g)
{
    if (!x->overflowed)
        gather_output(g, buf_slice(&x->out));
    else if (memmem(x->out.p, x->out.n, "\"method\"", 8))
        gather_refused(g, slice_str("application/json"), buf_slice(&x->out),
                       "the calls on standard output are larger than 8 MiB; this is how they begin");
}

static void on_err(void *arg, struct slice bytes)
{
    struct exec *x = arg;

    errline_add(&x->err, bytes);
}

static bool has_answered(void *arg, int status)
{
    (void)arg;
    return WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == EXIT_REJECTED);
}

/* Section 4's rows for exec. */
static enum outcome_kind outcome_of(const struct exec *x)
{
    int status = child_status(x->child);

    if (x->cancelled)
        return x->cancelled_as;
    if (child_exec_errno(x->child))
        return OUTCOME_UNAVAILABLE;
    if (!WIFEXITED(status))
        return OUTCOME_RETRY;
    switch (WEXITSTATUS(status)) {
    case 0:
        return OUTCOME_DONE;
    case EXIT_REJECTED:
        return OUTCOME_REJECTED;
    case EXIT_UNAVAILABLE:
    case EXIT_CANNOT_RUN:
    case EXIT_NOT_FOUND:
        return OUTCOME_UNAVAILABLE;
    default:
        return OUTCOME_RETRY;
    }
}

/* The handler's last word, else how it ended. */
static void add_error(struct exec *x, enum outcome_kind kind, struct buf *out)
{
    struct slice last = errline_end(&x->err);

    if (kind == OUTCOME_DONE)
        return;
    if (last.n) {
        buf_add_slice(out, last);
    } else if (kind == OUTCOME_LEASE_EXPIRED) {
        buf_add_str(out, "the handler did not end within its lease");
    } else {
        if (child_exec_errno(x->child))
            buf_printf(out, "%s ", slot_config(x->slot)->command[0]);
        child_add_how(x->child, out);
    }
}

static void on_ended(void *arg)
{
    struct exec *x = arg;
    enum outcome_kind kind = outcome_of(x);
    struct buf error = BUF_EMPTY;

    add_error(x, kind, &error);
    timer_stop(&x->lease);
    child_free(x->child);
    x->child = NULL;
    if (kind == OUTCOME_DONE) {
        struct gather g = GATHER_EMPTY;
        gather_stdout(x, &g);
        slot_end_done(x->slot, &g.extras);
        gather_free(&g);
    } else {
        slot_end(x->slot, kind, x->err.after_ms, buf_slice(&error));
    }
    buf_free(&x->out);
    buf_free(&error);
}

static const struct child_events events = {on_out, on_err, has_answered, on_ended};

static struct child *spawn(struct exec *x)
{
    struct envelope envelope;
    struct proc_env env;

    slot_envelope(x->slot, &envelope);
    proc_env_init(&env);
    for (int f = 0; f < ENVELOPE_FIELDS; f++) {
        if (envelope.has[f])
            proc_env_set(&env, envelope_names[f].env, envelope.value[f]);
        else
            proc_env_unset(&env, envelope_names[f].env);
    }
    (void)FAILPOINT("exec.before_spawn");
    struct child *c = child_start(slot_loop(x->slot), slot_config(x->slot)->command, &env, &events, x);
    int why = errno;
    (void)FAILPOINT("exec.after_spawn");
    proc_env_free(&env);
    errno = why;
    return c;
}

static void start_exec(void *work)
{
    struct exec *x = work;
    const struct claim *claim = slot_claim(x->slot);

    errline_init(&x->err);
    x->no_calls = x->overflowed = false;
    x->cancelled = false;
    x->child = spawn(x);
    if (!x->child) {
        char *error =
            xasprintf("%s cannot be started: %s", slot_config(x->slot)->command[0], strerror(errno));
        slot_end(x->slot, OUTCOME_UNAVAILABLE, -1, slice_str(error));
        free(error);
        return;
    }
    timer_set(&x->lease, claim->deadline);
    (void)FAILPOINT("exec.before_give");
    child_write(x->child, claim->ev.payload);
    child_close_input(x->child);
    (void)FAILPOINT("exec.after_give");
}

static void *new_exec(struct slot *s, struct err *e)
{
    struct exec *x = xcalloc(1, sizeof(*x));

    (void)e;
    x->slot = s;
    timer_init(&x->lease, slot_loop(s), on_lease_over, x);
    return x;
}

static void stop_exec(void *work)
{
    (void)work; /* nothing runs without an event */
}

static bool quiet_exec(void *work)
{
    const struct exec *x = work;

    return !x->child;
}

static void free_exec(void *work)
{
    struct exec *x = work;

    timer_stop(&x->lease);
    child_free(x->child);
    buf_free(&x->out);
    free(x);
}

const struct deliverer deliverer_exec = {"exec",      true,      new_exec,   start_exec,
                                         cancel_exec, stop_exec, quiet_exec, free_exec};
