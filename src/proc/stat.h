/* What /proc tells of a process. */
#ifndef PROC_STAT_H
#define PROC_STAT_H

#include <stdbool.h>
#include <sys/types.h>

struct proc_stat {
    char state; /* 'Z', 'X': it has ended */
    pid_t parent, group, session;
};

/* pid: as text, a name in /proc. Returns 0, or -1 if there is none, or it is hidden. */
int proc_stat_read(const char *pid, struct proc_stat *out);
/* Calls each with every process that is not hidden, until one returns false. Without /proc, with none. */
void proc_each(bool (*each)(void *arg, pid_t pid, const struct proc_stat *st), void *arg);

#endif
