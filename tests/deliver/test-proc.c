/* proc/ by itself: starting, what is told of the end, the end of a group; with pidfd and with its fallback. */
#include "../unit/unit.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "proc/env.h"
#include "proc/group.h"
#include "proc/orphans.h"
#include "proc/proc.h"
#include "proc/stat.h"

static void nap(int64_t ms)
{
    int64_t until = clock_now() + ms;

    for (int64_t left = ms; left > 0; left = until - clock_now())
        poll(NULL, 0, (int)left); /* signals cut it short */
}

static void start(struct proc *p, const char *script)
{
    char *argv[] = {(char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c", (char *)(uintptr_t)script, NULL};
    struct proc_env env;

    proc_env_init(&env);
    assert_int_equal(proc_start(p, argv, env.vars), 0);
    proc_env_free(&env);
}

/* Waits for the exit descriptor as a loop would, at most 10 s. */
static void wait_for_exit(struct proc *p)
{
    int64_t give_up = clock_now() + 10000;

    while (!proc_reap(p)) {
        struct pollfd f = {p->exit.fd, POLLIN, 0};
        int64_t left = give_up - clock_now();
        assert_true(left > 0);
        int n = poll(&f, 1, (int)left);
        assert_true(n == 1 || (n < 0 && errno == EINTR)); /* the fallback is a signal handler */
    }
}

/* Waits until the script has said something: what is before that in it was done. */
static void wait_for_word(const struct proc *p)
{
    struct pollfd f = {p->out, POLLIN, 0};

    while (poll(&f, 1, 10000) < 0)
        assert_int_equal(errno, EINTR);
    assert_true(f.revents & POLLIN);
}

static void wait_for_stop(const struct proc *p)
{
    int64_t give_up = clock_now() + 10000;
    struct proc_stat st = {.state = 'R'};
    char pid[16];

    snprintf(pid, sizeof(pid), "%d", (int)p->pid);
    while (st.state != 'T') {
        assert_true(clock_now() < give_up);
        assert_int_equal(proc_stat_read(pid, &st), 0);
        nap(5);
    }
}

/* Ends as a loop would. Returns how long it took. */
static int64_t end(struct proc *p, int64_t grace)
{
    int64_t from = clock_now(), next = from;

    proc_end(p, grace, from);
    while (next != TIME_NEVER) {
        int64_t now = clock_now();
        assert_true(now < from + 20000);
        if (next > now)
            nap(next - now);
        next = proc_end_step(p, clock_now());
    }
    return clock_now() - from;
}

static void status_is_told(void **state)
{
    struct proc p;

    (void)state;
    start(&p, "exit 7");
    wait_for_exit(&p);
    assert_true(WIFEXITED(p.status) && WEXITSTATUS(p.status) == 7);
    assert_int_equal(p.exec_errno, 0);
    assert_false(group_alive(p.pid));
    proc_close(&p);
    start(&p, "kill -SEGV $$");
    wait_for_exit(&p);
    assert_true(WIFSIGNALED(p.status) && WTERMSIG(p.status) == SIGSEGV);
    proc_close(&p);
}

static void an_ignored_sigchld_does_not_lose_it(void **state)
{
    struct proc p;

    (void)state;
    signal(SIGCHLD, SIG_IGN);
    start(&p, "exit 7");
    wait_for_exit(&p);
    assert_true(WIFEXITED(p.status) && WEXITSTATUS(p.status) == 7);
    proc_close(&p);
}

/* Two at once: the wake-up of one is not taken for the other's. */
static void several_children(void **state)
{
    struct proc a, b, c;

    (void)state;
    start(&a, "sleep 0.4; exit 1");
    start(&b, "exit 2");
    start(&c, "sleep 0.2; exit 3");
    wait_for_exit(&a);
    wait_for_exit(&b);
    wait_for_exit(&c);
    assert_int_equal(WEXITSTATUS(a.status), 1);
    assert_int_equal(WEXITSTATUS(b.status), 2);
    assert_int_equal(WEXITSTATUS(c.status), 3);
    proc_close(&a);
    proc_close(&b);
    proc_close(&c);
}

static void failed_exec_is_told(void **state)
{
    char *none[] = {(char *)(uintptr_t) "/no/such/program", NULL},
         *dir[] = {(char *)(uintptr_t) "/tmp", NULL};
    char *unfound[] = {(char *)(uintptr_t) "no-such-program", NULL},
         *empty[] = {(char *)(uintptr_t) "", NULL};
    char *env[] = {(char *)(uintptr_t) "PATH=/nowhere:/bin", NULL};
    struct proc p;

    (void)state;
    assert_int_equal(proc_start(&p, none, env), 0);
    wait_for_exit(&p);
    assert_int_equal(p.exec_errno, ENOENT);
    proc_close(&p);
    assert_int_equal(proc_start(&p, dir, env), 0);
    wait_for_exit(&p);
    assert_int_equal(p.exec_errno, EACCES);
    proc_close(&p);
    assert_int_equal(proc_start(&p, unfound, env), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(proc_start(&p, empty, env), -1);
    assert_int_equal(errno, ENOENT);
}

static void unread_bytes_are_known_after_death(void **state)
{
    struct proc p;

    (void)state;
    start(&p, "head -c 3 >/dev/null; exit 0");
    assert_int_equal(write(p.in, "0123456789", 10), 10);
    wait_for_exit(&p);
    assert_in_range(proc_unread(&p), 0, 7); /* head may read more than it needs */
    proc_close(&p);
    start(&p, "exit 0");
    assert_int_equal(write(p.in, "0123456789", 10), 10);
    wait_for_exit(&p);
    assert_int_equal(proc_unread(&p), 10);
    proc_close(&p);
    start(&p, "cat >/dev/null");
    assert_int_equal(write(p.in, "0123456789", 10), 10);
    proc_close_fd(&p.in);
    wait_for_exit(&p);
    assert_int_equal(proc_unread(&p), 0);
    proc_close(&p);
}

static void groups_end(void **state)
{
    struct proc p;

    (void)state;
    start(&p, "sleep 100 & sleep 100");
    assert_in_range(end(&p, 5000), 0, 4900);
    assert_true(p.reaped && !group_alive(p.pid));
    proc_close(&p);
    start(&p, "trap '' TERM; echo; (sleep 100) & sleep 100; sleep 100"); /* ignored by all of them */
    wait_for_word(&p);
    assert_in_range(end(&p, 300), 295, 15000);
    assert_true(WIFSIGNALED(p.status) && WTERMSIG(p.status) == SIGKILL);
    proc_close(&p);
    start(&p, "kill -STOP $$");
    wait_for_stop(&p);
    assert_in_range(end(&p, 5000), 0, 4900);
    proc_close(&p);
}

/* The leader is gone first; the grace may be shortened later. */
static void what_a_leader_left(void **state)
{
    struct proc p;
    int64_t from = clock_now();

    (void)state;
    start(&p, "trap '' TERM; (sleep 100; sleep 100) & exit 0");
    wait_for_exit(&p);
    assert_true(group_alive(p.pid));
    proc_end(&p, 60000, from);
    assert_true(proc_end_step(&p, clock_now()) != TIME_NEVER);
    assert_in_range(end(&p, 200), 195, 15000);
    assert_false(group_alive(p.pid));
    proc_close(&p);
}

static void dropping_kills(void **state)
{
    struct proc p;

    (void)state;
    start(&p, "trap '' TERM; echo; sleep 100");
    wait_for_word(&p);
    pid_t pid = p.pid;
    proc_drop(&p);
    assert_int_equal(waitpid(pid, NULL, p.reaped ? WNOHANG : 0), p.reaped ? -1 : pid);
}

/* A zombie that nobody collects does not keep its group alive for ever. */
static void zombies_do_not_count(void **state)
{
    int told[2];
    pid_t zombie = 0;

    (void)state;
    assert_int_equal(pipe(told), 0);
    pid_t holder = fork();
    if (!holder) { /* has a child in a group of that child's own, and does not collect it */
        pid_t child = fork();
        if (!child)
            _exit(0);
        setpgid(child, child);
        siginfo_t ended;
        if (waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT) < 0 ||
            write(told[1], &child, sizeof(child)) < 0)
            _exit(1);
        pause();
    }
    assert_int_equal(read(told[0], &zombie, sizeof(zombie)), sizeof(zombie));
    assert_int_equal(kill(-zombie, 0), 0); /* the group is there ... */
    assert_false(group_alive(zombie));     /* ... but nothing in it runs */
    assert_true(group_alive(getpgid(holder)));
    kill(holder, SIGKILL);
    waitpid(holder, NULL, 0);
    close(told[0]);
    close(told[1]);
}

static void environment(void **state)
{
    struct proc_env env;
    bool kept = false;

    (void)state;
    setenv("TEST_A", "1", 1);
    setenv("TEST_AB", "2", 1);
    setenv("WATCHDOG_USEC", "3", 1);
    proc_env_hide("TEST_A");
    proc_env_init(&env);
    for (size_t i = 0; i < env.n; i++) {
        assert_true(strncmp(env.vars[i], "TEST_A=", 7) && strncmp(env.vars[i], "WATCHDOG_", 9));
        kept |= !strcmp(env.vars[i], "TEST_AB=2");
    }
    assert_true(kept);
    size_t n = env.n;
    proc_env_set(&env, "TEST_AB", "");
    assert_int_equal(env.n, n);
    proc_env_set(&env, "TEST_NEW", "x=y");
    assert_string_equal(env.vars[n], "TEST_NEW=x=y");
    assert_null(env.vars[n + 1]);
    proc_env_unset(&env, "TEST_AB");
    proc_env_unset(&env, "TEST_AB");
    assert_int_equal(env.n, n);
    assert_null(env.vars[n]);
    proc_env_free(&env);
    unsetenv("WATCHDOG_USEC");
}

/* From here on this process is as on a kernel without pidfd_open. */
static void take_pidfd_away(void **state)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {ARRAY_LEN(filter), filter};

    (void)state;
    assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
    assert_int_equal(syscall(SYS_pidfd_open, getpid(), 0), -1);
}

/* ---- orphans ------------------------------------------------------------------------------------------------------- */

static pid_t forked(void)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        pause();
        _exit(0);
    }
    return pid;
}

/* A child leaves one behind, of which it told. */
static pid_t forked_by_one_that_ended(void)
{
    pid_t left = 0;
    int fds[2], status;

    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        left = forked();
        _exit(write(fds[1], &left, sizeof(left)) != sizeof(left));
    }
    assert_int_equal(read(fds[0], &left, sizeof(left)), sizeof(left));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(fds[0]);
    close(fds[1]);
    return left;
}

/* In a process of its own, which adopts for good. A script may end with exec: what it had started is not ours to end. */
static int end_orphans(void)
{
    pid_t inherited = forked();
    orphans_adopt();
    pid_t child = forked(), orphan = forked_by_one_that_ended();

    orphans_end();
    bool well = kill(inherited, 0) == 0 && waitpid(inherited, NULL, WNOHANG) == 0;
    kill(inherited, SIGKILL);
    waitpid(inherited, NULL, 0);
    return well && kill(child, 0) < 0 && kill(orphan, 0) < 0;
}

static void orphans_are_ended_and_no_others(void **state)
{
    int status;
    pid_t pid = fork();

    (void)state;
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(end_orphans() ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

#define WITHOUT(test)                                  \
    {                                                  \
#test " without pidfd", test, NULL, NULL, NULL \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_is_told),
        cmocka_unit_test(an_ignored_sigchld_does_not_lose_it),
        cmocka_unit_test(several_children),
        cmocka_unit_test(failed_exec_is_told),
        cmocka_unit_test(unread_bytes_are_known_after_death),
        cmocka_unit_test(groups_end),
        cmocka_unit_test(what_a_leader_left),
        cmocka_unit_test(dropping_kills),
        cmocka_unit_test(zombies_do_not_count),
        cmocka_unit_test(orphans_are_ended_and_no_others),
        cmocka_unit_test(environment),
        cmocka_unit_test(take_pidfd_away),
        WITHOUT(status_is_told),
        WITHOUT(several_children),
        WITHOUT(failed_exec_is_told),
        WITHOUT(groups_end),
        WITHOUT(what_a_leader_left),
        WITHOUT(dropping_kills),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests_name("proc", tests, NULL, NULL);
}
