/* The end of a process group. kill(2) with signal 0 finds out whether it has members; only if it has, /proc
 * tells whether they are more than zombies. */
#include "proc/group.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc/stat.h"

struct members {
    pid_t group;
    bool seen, running; /* some member, and one that has not ended */
};

static bool look_for_running(void *arg, pid_t pid, const struct proc_stat *st)
{
    struct members *m = arg;

    (void)pid;
    if (st->group == m->group) {
        m->seen = true;
        m->running = st->state != 'Z' && st->state != 'X';
    }
    return !m->running;
}

static bool only_zombies(pid_t pgid)
{
    struct members m = {.group = pgid};

    proc_each(look_for_running, &m);
    /* None seen although kill says there is one: hidden (hidepid), so believe kill. */
    return m.seen && !m.running;
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
