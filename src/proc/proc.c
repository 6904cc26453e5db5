/* Starting a child and ending its group. RocksDB has threads, so between fork and exec only async-signal-safe
 * calls are made, and everything the child needs is prepared before. */
#include "proc/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/mem.h"
#include "proc/files.h"
#include "proc/group.h"

#define LOOK_FIRST_MS 5
#define LOOK_MAX_MS 100

/* ---- starting ----------------------------------------------------------------------------------- */

/* What the child needs between fork and exec. */
struct launch {
    const char *path;
    char *const *argv, *const *env;
    int in, out, err, report; /* the child's ends */
    pid_t parent;
};

/* A pipe whose ends are not 0, 1 or 2, so that dup2 in the child cannot overwrite one of them. */
static int open_pipe(int ends[2])
{
    int low[2];

    if (pipe2(low, O_CLOEXEC))
        return -1;
    for (int i = 0; i < 2; i++) {
        ends[i] = low[i] > 2 ? low[i] : fcntl(low[i], F_DUPFD_CLOEXEC, 3);
        if (ends[i] != low[i])
            close(low[i]);
    }
    if (ends[0] >= 0 && ends[1] >= 0)
        return 0;
    proc_close_fd(&ends[0]);
    proc_close_fd(&ends[1]);
    return -1;
}

static int set_nonblocking(int fd)
{
    return fcntl(fd, F_SETFL, O_NONBLOCK);
}

/* The program's path, to be freed, or NULL and errno. execvpe is not async-signal-safe, so PATH is searched
 * here. */
static char *find_program(const char *name, char *const *env)
{
    const char *dirs = "/usr/local/bin:/usr/bin:/bin";

    if (strchr(name, '/'))
        return xstrdup(name);
    for (size_t i = 0; env[i]; i++)
        if (!strncmp(env[i], "PATH=", 5))
            dirs = env[i] + 5;
    int why = ENOENT;
    for (const char *dir = dirs, *end; *name; dir = end + 1) {
        end = strchrnul(dir, ':');
        char *path = end == dir ? xasprintf("./%s", name) : xasprintf("%.*s/%s", (int)(end - dir), dir, name);
        if (!access(path, X_OK))
            return path;
        if (errno == EACCES)
            why = EACCES;
        free(path);
        if (!*end)
            break;
    }
    errno = why;
    return NULL;
}

/* The child, up to exec. Async-signal-safe calls only; never returns. */
static _Noreturn void run_child(const struct launch *l)
{
    struct sigaction dfl = {.sa_handler = SIG_DFL};
    sigset_t none;

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != l->parent)
        _exit(127); /* it died before prctl */
    sigemptyset(&dfl.sa_mask);
    for (int s = 1; s < NSIG; s++)
        sigaction(s, &dfl, NULL);
    if (dup2(l->in, 0) >= 0 && dup2(l->out, 1) >= 0 && dup2(l->err, 2) >= 0) {
        /* All of ours are close-on-exec; libraries' are made so. Not there in old kernels. */
        close_range(3, UINT_MAX, CLOSE_RANGE_CLOEXEC);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        proc_files_restore();
        execve(l->path, l->argv, l->env);
    }
    int why = errno;
    if (write(l->report, &why, sizeof(why)) < 0)
        _exit(126);
    _exit(127);
}

/* Forks with all signals blocked, so that no handler of ours runs in the child, and opens the exit watch
 * before SIGCHLD can pass by. */
static int fork_child(struct proc *p, const struct launch *l)
{
    sigset_t all, old;
    int why = FAILPOINT("proc.fork");

    if (why) {
        errno = why;
        return -1;
    }
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &old);
    p->pid = fork();
    if (p->pid == 0)
        run_child(l);
    why = errno;
    (void)FAILPOINT("proc.forked");
    if (p->pid > 0) {
        setpgid(p->pid, p->pid); /* whoever is first; it fails when the child has done both */
        if (exitfd_open(&p->exit, p->pid)) {
            why = errno;
            kill(p->pid, SIGKILL);
            waitpid(p->pid, NULL, 0);
            p->pid = -1;
        }
    }
    sigprocmask(SIG_SETMASK, &old, NULL);
    errno = why;
    return p->pid > 0 ? 0 : -1;
}

/* Who starts us may have told the kernel to collect children by itself; then their status would be lost. */
static void keep_zombies(void)
{
    struct sigaction sa;

    if (!sigaction(SIGCHLD, NULL, &sa) && (sa.sa_handler == SIG_IGN || (sa.sa_flags & SA_NOCLDWAIT)))
        signal(SIGCHLD, SIG_DFL);
}

int proc_start(struct proc *p, char *const *argv, char *const *env)
{
    enum { IN, OUT, ERR, REPORT, PIPES };
    int pipes[PIPES][2], opened = 0, result = -1;
    char *path = find_program(argv[0], env);

    *p = (struct proc){.pid = -1, .in = -1, .out = -1, .err = -1, .exit = {-1, -1}, .report = -1};
    if (!path)
        return -1;
    keep_zombies();
    while (opened < PIPES && !open_pipe(pipes[opened]))
        opened++;
    if (opened == PIPES && !set_nonblocking(pipes[IN][1]) && !set_nonblocking(pipes[OUT][0]) &&
        !set_nonblocking(pipes[ERR][0]) && !set_nonblocking(pipes[REPORT][0])) {
        struct launch l = {path,    argv, env, pipes[IN][0], pipes[OUT][1], pipes[ERR][1], pipes[REPORT][1],
                           getpid()};
        result = fork_child(p, &l);
    }
    int why = errno;
    for (int i = 0; i < opened; i++) {
        int ours = i == IN ? 1 : 0;
        close(pipes[i][!ours]);
        if (result)
            close(pipes[i][ours]);
    }
    if (!result) {
        p->in = pipes[IN][1];
        p->out = pipes[OUT][0];
        p->err = pipes[ERR][0];
        p->report = pipes[REPORT][0];
    }
    free(path);
    errno = why;
    return result;
}

/* ---- ending ------------------------------------------------------------------------------------- */

bool proc_reap(struct proc *p)
{
    if (p->reaped)
        return true;
    pid_t got = waitpid(p->pid, &p->status, WNOHANG);
    if (got == 0 || (got < 0 && errno == EINTR)) {
        exitfd_drain(&p->exit);
        return false;
    }
    if (got < 0)
        p->status = SIGKILL; /* someone else collected it: how it ended is lost, so it did not end well */
    p->reaped = true;
    int why;
    if (read(p->report, &why, sizeof(why)) == (ssize_t)sizeof(why))
        p->exec_errno = why;
    return true;
}

void proc_end(struct proc *p, int64_t grace_ms, int64_t now)
{
    int64_t kill_at = now + grace_ms;

    if (p->ending) {
        p->kill_at = kill_at < p->kill_at ? kill_at : p->kill_at;
        return;
    }
    p->ending = true;
    p->kill_at = kill_at;
    p->look_ms = LOOK_FIRST_MS;
    if (!p->reaped || group_alive(p->pid)) {
        kill(-p->pid, SIGTERM);
        kill(-p->pid, SIGCONT); /* a stopped one would not see it */
    }
}

int64_t proc_end_step(struct proc *p, int64_t now)
{
    if (proc_reap(p) && !group_alive(p->pid))
        return TIME_NEVER;
    if (now >= p->kill_at)
        kill(-p->pid, SIGKILL);
    int64_t next = now + p->look_ms;
    if (p->look_ms < LOOK_MAX_MS)
        p->look_ms *= 2;
    return now < p->kill_at && next > p->kill_at ? p->kill_at : next;
}

void proc_close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void proc_close(struct proc *p)
{
    proc_close_fd(&p->in);
    proc_close_fd(&p->out);
    proc_close_fd(&p->err);
    proc_close_fd(&p->report);
    exitfd_close(&p->exit);
}

void proc_drop(struct proc *p)
{
    if (p->pid > 0 && (!p->reaped || group_alive(p->pid))) {
        kill(-p->pid, SIGKILL);
        proc_reap(p);
    }
    proc_close(p);
}

size_t proc_unread(const struct proc *p)
{
    int n = 0;

    /* Works on the writing end of a pipe too, and also when no reader is left. */
    if (p->in < 0 || ioctl(p->in, FIONREAD, &n))
        return 0;
    return n > 0 ? (size_t)n : 0;
}
