#include "proc/orphans.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc/stat.h"

void orphans_adopt(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* One look at all processes. Returns whether one was ended: its children are ours then, and it takes another look. */
static bool end_some(void)
{
    DIR *proc = opendir("/proc");
    bool some = false;

    for (struct dirent *d; proc && (d = readdir(proc));) {
        struct proc_stat st;
        if (d->d_name[0] < '1' || d->d_name[0] > '9' || proc_stat_read(d->d_name, &st) ||
            st.parent != getpid() || st.session != getsid(0))
            continue;
        pid_t pid = atoi(d->d_name);
        if (kill(pid, SIGKILL) < 0)
            continue; /* it has become somebody else's */
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
        some = true;
    }
    if (proc)
        closedir(proc);
    return some;
}

void orphans_end(void)
{
    while (end_some())
        ;
}
