/* Watching a child's end. The fallback's handler does not know whose child ended: it wakes all who wait, and
 * each asks waitpid for its own. */
#include "proc/exitfd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FALLBACK_MAX 256 /* children at once; more cannot be started */

/* Write ends, 0 where a place is free (no pipe of ours is descriptor 0). Read by the handler. */
static volatile int waiting[FALLBACK_MAX];

static void on_sigchld(int signo)
{
    int saved = errno;

    (void)signo;
    for (size_t i = 0; i < FALLBACK_MAX; i++)
        if (waiting[i] && write(waiting[i], "", 1) < 0)
            continue; /* full: it will wake up anyway */
    errno = saved;
}

static int open_fallback(struct exitfd *x)
{
    struct sigaction sa = {.sa_handler = on_sigchld, .sa_flags = SA_RESTART | SA_NOCLDSTOP};
    int ends[2];
    size_t i = 0;

    while (i < FALLBACK_MAX && waiting[i])
        i++;
    if (i == FALLBACK_MAX) {
        errno = EAGAIN;
        return -1;
    }
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
        return -1;
    sigemptyset(&sa.sa_mask);
    if (ends[1] == 0 || sigaction(SIGCHLD, &sa, NULL)) {
        close(ends[0]);
        close(ends[1]);
        return -1;
    }
    x->fd = ends[0];
    x->wake = waiting[i] = ends[1];
    return 0;
}

int exitfd_open(struct exitfd *x, pid_t pid)
{
    x->wake = -1;
    x->fd = (int)syscall(SYS_pidfd_open, pid, 0); /* always close-on-exec */
    return x->fd >= 0 ? 0 : open_fallback(x);
}

void exitfd_drain(struct exitfd *x)
{
    char sink[64];

    if (x->wake < 0)
        return;
    while (read(x->fd, sink, sizeof(sink)) > 0)
        ;
}

void exitfd_close(struct exitfd *x)
{
    for (size_t i = 0; x->wake >= 0 && i < FALLBACK_MAX; i++)
        if (waiting[i] == x->wake)
            waiting[i] = 0;
    if (x->wake >= 0)
        close(x->wake);
    if (x->fd >= 0)
        close(x->fd);
    x->fd = x->wake = -1;
}
