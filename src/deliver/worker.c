/* worker: a long-lived child a slot. One event a line of JSON on its standard input, one line of answer on
 * its standard output (design.md section 9). It is started when the slot gets an event and none runs, so a
 * worker that dies at once is not started again and again for nothing.
 *
 * The child of an event is not always there at once: an old one may have died just now, and its process group
 * must be gone first. So a slot with an event is in one of two states: `given` (the line was written to the
 * child) or not. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/log.h"
#include "base/mem.h"
#include "deliver/answer.h"
#include "deliver/errline.h"
#include "deliver/slot.h"
#include "net/child.h"
#include "net/loop.h"
#include "spool/gather.h"
#include "wire/envelope_json.h"

#define QUICK_DEATH_MS 1000
#define QUICK_DEATHS 3 /* in a row: the worker is broken, not the event */
#define CLOSED_MS 1000 /* a worker without a standard output has this long to end */
#ifndef TAKES_MS       /* a test has less patience */
#define TAKES_MS 60000 /* a child that starts slowly has this long to read the event, whatever the lease */
#endif
#define LOOK_MS 250    /* between two looks whether it has */
#define LINE_KEPT 4096 /* buffer kept between lines */

struct worker {
    struct slot *slot;
    struct child *child; /* NULL: none runs */
    bool given;
    char id[ENVELOPE_VALUE_MAX]; /* of the event given */
    struct timer lease;
    int64_t lease_ms;
    bool late;           /* the lease passed with the event unread: it begins when the child takes it */
    struct timer closed; /* set while it lives without a standard output: it cannot answer any more */
    struct errline err;
    struct buf line; /* of its output, not yet whole */
    unsigned quick_deaths;
    bool complained; /* about this child's output */
    bool cancelled;
    enum outcome_kind cancelled_as;
    const char *cancelled_why; /* NULL: nothing to add */
};

/* ---- the end of a try --------------------------------------------------------------------------- */

static void forget_try(struct worker *w)
{
    timer_stop(&w->lease);
    w->given = w->cancelled = w->late = false;
}

static void end_try(struct worker *w, enum outcome_kind kind, int64_t after_ms, struct slice error)
{
    forget_try(w);
    slot_end(w->slot, kind, after_ms, error);
}

/* Ends the child; the try under way, if there is one, ends with it. */
static void end_child(struct worker *w, enum outcome_kind as, const char *why)
{
    if (slot_claim(w->slot) && !w->cancelled && !child_exited(w->child)) {
        w->cancelled = true;
        w->cancelled_as = as;
        w->cancelled_why = why;
    }
    child_end(w->child, CHILD_GRACE_MS);
}

static void cancel_worker(void *work, enum outcome_kind as)
{
    struct worker *w = work;

    if (w->given)
        end_child(w, as, NULL);
    else if (slot_claim(w->slot)) /* no child ever had it */
        end_try(w, as, -1, slice_str(NULL));
}

static void on_lease_over(void *arg)
{
    struct worker *w = arg;
    bool unread = w->given && !w->cancelled && child_unread(w->child);

    if (unread && child_lived_ms(w->child) < TAKES_MS) {
        w->late = true;
        timer_set(&w->lease, loop_now(slot_loop(w->slot)) + LOOK_MS);
    } else if (unread) {
        end_child(w, OUTCOME_UNAVAILABLE, "the worker does not read events");
    } else if (w->given && w->late) {
        w->late = false;
        timer_set(&w->lease, slot_extend(w->slot, w->lease_ms));
    } else if (w->given)
        end_child(w, OUTCOME_LEASE_EXPIRED, "the worker did not answer within the lease");
    else
        end_try(w, OUTCOME_UNAVAILABLE, -1, slice_str("the worker before this one does not end"));
}

/* ---- what the child says ------------------------------------------------------------------------ */

/* Success, with what the answer carries. */
static void end_done(struct worker *w, const struct answer *a)
{
    struct gather g = GATHER_EMPTY;

    gather_calls(&g, a->calls);
    size_t bad = gather_keys(&g, a->keys);
    if (bad)
        log_warn(slot_config(w->slot)->bot,
                 "%zu keys of an answer are not kept: each has 1 to %d bytes, an answer at most %d", bad,
                 SPOOL_KEY_MAX, GATHER_KEYS_MAX);
    forget_try(w);
    slot_end_done(w->slot, &g.extras);
    gather_free(&g);
}

/* Once a child: what it writes is no answer to anything. Its text is not shown, for messages may be in it. */
static void complain(struct worker *w, const char *what)
{
    if (w->complained)
        return;
    w->complained = true;
    log_warn(slot_config(w->slot)->bot,
             "The worker wrote %s to its standard output, which is for answers; it is ignored", what);
}

static void take_answer(struct worker *w, const struct answer *a)
{
    if (!w->given || w->cancelled || !slice_eq_str(a->id, w->id)) {
        complain(w, "an answer to an event that it does not hold");
        return;
    }
    if (a->kind == ANSWER_EXTEND) {
        timer_set(&w->lease, slot_extend(w->slot, a->extend_ms));
        return;
    }
    w->quick_deaths = 0;
    if (a->kind == ANSWER_DONE)
        end_done(w, a);
    else
        end_try(w, a->dead ? OUTCOME_REJECTED : OUTCOME_RETRY, a->after_ms, a->error);
}

static void take_line(struct worker *w, struct slice line)
{
    struct answer a;

    if (!line.n || (line.n == 1 && line.p[0] == '\r'))
        return;
    if (answer_parse(line, &a)) {
        complain(w, "a line that is no answer");
        return;
    }
    take_answer(w, &a);
    answer_free(&a);
}

static void on_closed(void *arg)
{
    end_child(arg, OUTCOME_RETRY, "the worker closed its standard output");
}

static void on_out(void *arg, struct slice bytes)
{
    struct worker *w = arg;

    if (!bytes.n) /* a child that dies closes it too, a moment before its end is known */
        timer_set(&w->closed, loop_now(slot_loop(w->slot)) + CLOSED_MS);
    while (bytes.n) {
        const char *newline = memchr(bytes.p, '\n', bytes.n);
        size_t n = newline ? (size_t)(newline - bytes.p) : bytes.n;
        if (w->line.n + n > ANSWER_MAX) {
            buf_free(&w->line);
            end_child(w, OUTCOME_RETRY, "the worker wrote a line of more than 8 MiB");
            return;
        }
        buf_add(&w->line, bytes.p, n);
        if (!newline)
            return;
        take_line(w, buf_slice(&w->line));
        buf_clear(&w->line);
        buf_trim(&w->line, LINE_KEPT);
        bytes = slice_make(newline + 1, bytes.n - n - 1);
    }
}

static void on_err(void *arg, struct slice bytes)
{
    struct worker *w = arg;

    errline_add(&w->err, bytes);
}

/* ---- its death ---------------------------------------------------------------------------------- */

/* It died by itself with an event in hand. A line not read to its end was not had. */
static enum outcome_kind outcome_of_death(const struct worker *w)
{
    if (child_exec_errno(w->child) || child_unread(w->child) || w->quick_deaths >= QUICK_DEATHS)
        return OUTCOME_UNAVAILABLE;
    return OUTCOME_RETRY;
}

static void count_death(struct worker *w)
{
    if (child_lived_ms(w->child) >= QUICK_DEATH_MS)
        w->quick_deaths = 0;
    else if (!w->cancelled)
        w->quick_deaths++;
}

static void add_error(struct worker *w, struct buf *out)
{
    struct slice last = errline_end(&w->err);

    if (w->cancelled && w->cancelled_why) {
        buf_add_str(out, w->cancelled_why);
    } else if (!w->cancelled) {
        buf_add_str(out, child_exec_errno(w->child) ? slot_config(w->slot)->command[0] : "the worker died:");
        buf_add_char(out, ' ');
        child_add_how(w->child, out);
    }
    if (last.n && out->n)
        buf_add_str(out, ": ");
    buf_add_slice(out, last);
}

static void start_worker(void *work);

static void on_ended(void *arg)
{
    struct worker *w = arg;
    struct buf error = BUF_EMPTY;
    enum outcome_kind kind = OUTCOME_RELEASED;

    count_death(w);
    if (w->given) {
        kind = w->cancelled ? w->cancelled_as : outcome_of_death(w);
        add_error(w, &error);
    }
    timer_stop(&w->closed);
    child_free(w->child);
    w->child = NULL;
    buf_free(&w->line);
    if (w->given)
        end_try(w, kind, w->err.after_ms, buf_slice(&error));
    else if (slot_claim(w->slot))
        start_worker(w); /* the event that waited for this end */
    buf_free(&error);
}

static const struct child_events events = {on_out, on_err, NULL, on_ended};

/* ---- a try -------------------------------------------------------------------------------------- */

static struct child *spawn(struct worker *w)
{
    struct proc_env env;

    proc_env_init(&env);
    for (int f = 0; f < ENVELOPE_FIELDS; f++)
        if (f != ENVELOPE_BOT)
            proc_env_unset(&env, envelope_names[f].env);
    proc_env_set(&env, envelope_names[ENVELOPE_BOT].env, slot_config(w->slot)->bot);
    (void)FAILPOINT("worker.before_spawn");
    struct child *c = child_start(slot_loop(w->slot), slot_config(w->slot)->command, &env, &events, w);
    int why = errno;
    (void)FAILPOINT("worker.after_spawn");
    proc_env_free(&env);
    errno = why;
    return c;
}

/* The event as one line of JSON. */
static void give(struct worker *w)
{
    struct envelope envelope;
    struct buf line = BUF_EMPTY;
    struct json_out j;

    slot_envelope(w->slot, &envelope);
    memcpy(w->id, envelope.value[ENVELOPE_ID], sizeof(w->id));
    json_start(&j, &line);
    json_object(&j);
    envelope_json(&j, &envelope);
    json_key(&j, "update");
    json_raw_line(&j, slot_claim(w->slot)->ev.payload);
    json_object_end(&j);
    json_end(&j);
    buf_add_char(&line, '\n');
    errline_init(&w->err);
    w->given = true;
    (void)FAILPOINT("worker.before_give");
    child_write(w->child, buf_slice(&line));
    (void)FAILPOINT("worker.after_give");
    buf_free(&line);
}

/* Gives the event to the child, once there is one. Also called when the child before has ended. */
static void start_worker(void *work)
{
    struct worker *w = work;

    timer_set(&w->lease, slot_claim(w->slot)->deadline);
    w->lease_ms = slot_claim(w->slot)->deadline - loop_now(slot_loop(w->slot));
    if (w->child && w->closed.deadline != TIME_NEVER)
        child_end(w->child, CHILD_GRACE_MS); /* it could not answer */
    if (w->child && child_ending(w->child))
        return; /* on_ended comes back */
    if (!w->child) {
        w->complained = false;
        w->child = spawn(w);
    }
    if (w->child) {
        give(w);
        return;
    }
    char *error = xasprintf("%s cannot be started: %s", slot_config(w->slot)->command[0], strerror(errno));
    end_try(w, OUTCOME_UNAVAILABLE, -1, slice_str(error));
    free(error);
}

/* ---- the slot's life ---------------------------------------------------------------------------- */

static void *new_worker(struct slot *s, struct err *e)
{
    struct worker *w = xcalloc(1, sizeof(*w));

    (void)e;
    w->slot = s;
    errline_init(&w->err);
    timer_init(&w->lease, slot_loop(s), on_lease_over, w);
    timer_init(&w->closed, slot_loop(s), on_closed, w);
    return w;
}

static void stop_worker(void *work)
{
    struct worker *w = work;

    if (w->child)
        child_end(w->child, CHILD_GRACE_MS);
}

static bool quiet_worker(void *work)
{
    const struct worker *w = work;

    return !w->child;
}

static void free_worker(void *work)
{
    struct worker *w = work;

    timer_stop(&w->lease);
    timer_stop(&w->closed);
    child_free(w->child);
    buf_free(&w->line);
    free(w);
}

const struct deliverer deliverer_worker = {"worker",      true,        new_worker,   start_worker,
                                           cancel_worker, stop_worker, quiet_worker, free_worker};
