/* A child process: started with pipes, in a process group of its own, which is ended and known to be gone as
 * a whole. Knows no loop: the owner watches the descriptors and gives the time (milliseconds). */
#ifndef PROC_PROC_H
#define PROC_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "proc/exitfd.h"

struct proc {
    pid_t pid; /* and the group's id */
    /* Our ends, non-blocking, -1 when closed: closed early by proc_close_fd. */
    int in, out, err;
    struct exitfd exit; /* exit.fd is readable when proc_reap has news */
    int report;         /* where the child told why exec failed */
    bool reaped;
    int status;     /* of wait(2), when reaped */
    int exec_errno; /* when reaped: not 0 if the program could not be started */
    bool ending;
    int64_t kill_at;
    int64_t look_ms; /* how long until the next look whether the group is gone */
};

/* Starts argv[0] (sought in env's PATH if it holds no slash) with argv and exactly env. Our own death kills
 * it. Returns 0, or -1 and errno if nothing was started. That exec failed is known only when the child is
 * reaped. */
int proc_start(struct proc *p, char *const *argv, char *const *env);

/* Collects the child's end. Returns whether it has ended; then status and exec_errno are set. */
bool proc_reap(struct proc *p);

/* Begins to end the whole group: SIGTERM now, SIGKILL after grace_ms. Again: only shortens. */
void proc_end(struct proc *p, int64_t grace_ms, int64_t now);
/* Goes on with it. Returns when to call again, or TIME_NEVER when the child is reaped and nothing of its
 * group lives. */
int64_t proc_end_step(struct proc *p, int64_t now);

/* Closes one of in, out, err (by its address in p); harmless if closed. */
void proc_close_fd(int *fd);
/* Closes everything of a child that was reaped; what is left of its group lives on. */
void proc_close(struct proc *p);
/* Kills what may still live, without waiting for it, and closes everything. A child not yet reaped stays a
 * zombie until we end, so owners end first. */
void proc_drop(struct proc *p);

/* Bytes in the pipe to the child that it has not read; also after its death. */
size_t proc_unread(const struct proc *p);

#endif
