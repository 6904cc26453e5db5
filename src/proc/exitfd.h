/* A descriptor that becomes readable when a child may have ended: a pidfd, or where the kernel has none
 * (before 5.3, or hidden by a filter) a pipe that a SIGCHLD handler writes to. */
#ifndef PROC_EXITFD_H
#define PROC_EXITFD_H

#include <sys/types.h>

struct exitfd {
    int fd;   /* to be watched for reading */
    int wake; /* the fallback's other end; -1: fd is a pidfd */
};

/* Returns 0, or -1 and errno. To be called before the child can end unseen, so right after fork, with SIGCHLD
 * blocked. */
int exitfd_open(struct exitfd *x, pid_t pid);
/* After a wake-up that was not for this child. */
void exitfd_drain(struct exitfd *x);
void exitfd_close(struct exitfd *x);

#endif
