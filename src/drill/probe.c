/* The user's command that counts the effects of the user's handler. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "drill/inside.h"
#include "net/child.h"
#include "proc/env.h"

#define OUTPUT_MAX 4096

struct probe {
    struct drill *d;
    struct child *child;
    struct buf out;
    int status, exec_errno;
};

static void on_out(void *arg, struct slice bytes)
{
    struct probe *p = arg;

    if (p->out.n + bytes.n <= OUTPUT_MAX)
        buf_add_slice(&p->out, bytes);
}

static void on_err(void *arg, struct slice bytes)
{
    (void)arg, (void)bytes;
}

static void on_ended(void *arg)
{
    struct probe *p = arg;

    p->status = child_status(p->child);
    p->exec_errno = child_exec_errno(p->child);
    child_free(p->child);
    p->child = NULL;
    p->d->probing = false;
}

static bool is_over(struct drill *d)
{
    return !d->probing;
}

static const struct child_events events = {.out = on_out, .err = on_err, .ended = on_ended};

bool probe_run(struct drill *d, int64_t *out)
{
    struct probe p = {.d = d};
    struct proc_env env;

    proc_env_init(&env);
    proc_env_set(&env, "TGSPOOL_DRILL", "1");
    p.child = child_start(d->loop, d->o->probe, &env, &events, &p);
    int why = errno;
    proc_env_free(&env);
    if (!p.child)
        return drill_fail(d, "the probe cannot be started: %s", strerror(why));
    child_close_input(p.child);
    d->probing = true;
    bool over = drill_wait(d, is_over, "the probe ends");
    child_free(p.child);
    size_t n = strcspn(buf_str(&p.out), "\n");
    int bad = text_to_i64(slice_make(p.out.p, n), INT64_MIN, INT64_MAX, out);
    buf_free(&p.out);
    if (!over)
        return false;
    if (p.exec_errno)
        return drill_fail(d, "the probe cannot be started: %s", strerror(p.exec_errno));
    if (p.status)
        return drill_fail(d, "the probe did not end with status 0");
    return bad ? drill_fail(d, "the first line that the probe prints is not a number alone") : true;
}
