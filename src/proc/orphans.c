#include "proc/orphans.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "proc/stat.h"

/* Children of who was this process before exec. Nobody waits for their ends, so that their pids stay theirs. */
static struct {
    pid_t *list;
    size_t n;
} inherited;

static bool is_inherited(pid_t pid)
{
    for (size_t i = 0; i < inherited.n; i++)
        if (inherited.list[i] == pid)
            return true;
    return false;
}

/* A child of this process that is of its session and was not inherited. */
static bool is_ours(pid_t pid, const struct proc_stat *st)
{
    return st->parent == getpid() && st->session == getsid(0) && !is_inherited(pid);
}

static bool remember(void *arg, pid_t pid, const struct proc_stat *st)
{
    (void)arg;
    if (is_ours(pid, st)) {
        inherited.list = xrealloc(inherited.list, (inherited.n + 1) * sizeof(*inherited.list));
        inherited.list[inherited.n++] = pid;
    }
    return true;
}

void orphans_adopt(void)
{
    proc_each(remember, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* arg: set if there was one to end; one that cannot be killed has become somebody else's. */
static bool end_one(void *arg, pid_t pid, const struct proc_stat *st)
{
    if (!is_ours(pid, st) || kill(pid, SIGKILL) < 0)
        return true;
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    *(bool *)arg = true;
    return true;
}

void orphans_end(void)
{
    bool some;

    do { /* the children of one that ended are ours then */
        some = false;
        proc_each(end_one, &some);
    } while (some);
}
