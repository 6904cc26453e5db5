#include "proc/orphans.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
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

static bool remember(pid_t pid)
{
    inherited.list = xrealloc(inherited.list, (inherited.n + 1) * sizeof(*inherited.list));
    inherited.list[inherited.n++] = pid;
    return true;
}

static bool is_inherited(pid_t pid)
{
    for (size_t i = 0; i < inherited.n; i++)
        if (inherited.list[i] == pid)
            return true;
    return false;
}

/* Calls each with the children of this process that are of its session and were not inherited. Returns whether one of these
 * calls did something. */
static bool each_child(bool (*each)(pid_t pid))
{
    DIR *proc = opendir("/proc");
    bool some = false;

    for (struct dirent *d; proc && (d = readdir(proc));) {
        struct proc_stat st;
        pid_t pid = d->d_name[0] < '1' || d->d_name[0] > '9' ? 0 : atoi(d->d_name);
        if (!pid || proc_stat_read(d->d_name, &st) || st.parent != getpid() || st.session != getsid(0) ||
            is_inherited(pid))
            continue;
        some |= each(pid);
    }
    if (proc)
        closedir(proc);
    return some;
}

void orphans_adopt(void)
{
    each_child(remember);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static bool end_one(pid_t pid)
{
    if (kill(pid, SIGKILL) < 0)
        return false; /* it has become somebody else's */
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return true;
}

void orphans_end(void)
{
    while (each_child(end_one)) /* the children of one that ended are ours then */
        ;
}
