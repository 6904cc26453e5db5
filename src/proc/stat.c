#include "proc/stat.h"

#include <fcntl.h>
#include <stdio.h>
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
