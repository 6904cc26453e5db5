/* The end of a process group. kill(2) with signal 0 finds out whether it has members; only if it has, /proc
 * tells whether they are more than zombies. */
#include "proc/group.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc/stat.h"

static bool only_zombies(pid_t pgid)
{
    DIR *proc = opendir("/proc");
    bool only = true, seen = false;

    if (!proc)
        return false;
    for (struct dirent *d; only && (d = readdir(proc));) {
        struct proc_stat st;
        if (d->d_name[0] < '1' || d->d_name[0] > '9' || proc_stat_read(d->d_name, &st) || st.group != pgid)
            continue;
        seen = true;
        only = st.state == 'Z' || st.state == 'X';
    }
    closedir(proc);
    /* None seen although kill says there is one: hidden (hidepid), so believe kill. */
    return only && seen;
}

bool group_alive(pid_t pgid)
{
    /* As PID 1 of a container, or as a subreaper, its orphans are ours to collect. */
    while (waitpid(-pgid, NULL, WNOHANG) > 0)
        ;
    if (kill(-pgid, 0) && errno == ESRCH)
        return false;
    return !only_zombies(pgid);
}
