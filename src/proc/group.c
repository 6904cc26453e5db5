/* The end of a process group. kill(2) with signal 0 finds out whether it has members; only if it has, /proc
 * tells whether they are more than zombies. */
#include "proc/group.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Reads state and group of a process from /proc/PID/stat: "pid (name) state ppid pgrp ...". The name may hold
 * anything, so what follows its last ')' counts. Returns 0 or -1. */
static int read_stat(const char *pid, char *state, int *pgrp)
{
    char path[300], text[512];
    int ppid;

    snprintf(path, sizeof(path), "/proc/%s/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (n <= 0)
        return -1;
    text[n] = '\0';
    const char *end = strrchr(text, ')');
    return end && sscanf(end + 1, " %c %d %d", state, &ppid, pgrp) == 3 ? 0 : -1;
}

static bool only_zombies(pid_t pgid)
{
    DIR *proc = opendir("/proc");
    bool only = true, seen = false;

    if (!proc)
        return false;
    for (struct dirent *d; only && (d = readdir(proc));) {
        char state;
        int pgrp;
        if (d->d_name[0] < '1' || d->d_name[0] > '9' || read_stat(d->d_name, &state, &pgrp) || pgrp != pgid)
            continue;
        seen = true;
        only = state == 'Z' || state == 'X';
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
