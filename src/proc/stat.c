#include "proc/stat.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "pid (name) state ppid pgrp session ...". The name may hold anything, so what follows its last ')' counts. */
int proc_stat_read(const char *pid, struct proc_stat *out)
{
    char path[300], text[512];

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
    return end && sscanf(end + 1, " %c %d %d %d", &out->state, &out->parent, &out->group, &out->session) == 4
               ? 0
               : -1;
}

void proc_each(bool (*each)(void *arg, pid_t pid, const struct proc_stat *st), void *arg)
{
    DIR *proc = opendir("/proc");
    struct dirent *d;
    bool more = true;

    while (proc && more && (d = readdir(proc))) {
        struct proc_stat st;
        if (d->d_name[0] >= '1' && d->d_name[0] <= '9' && proc_stat_read(d->d_name, &st) == 0)
            more = each(arg, atoi(d->d_name), &st);
    }
    if (proc)
        closedir(proc);
}
