/* Failpoints: what each action does and at which passes, and that a wrong spelling is no pass. The environment is read
 * once, so each case is a child. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "unit.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/failpoint.h"

#ifdef ENABLE_FAILPOINTS
#define PASSES 5
#define CRASHED 42
#define ABORTED (128 + 6)
#define ALL ((1 << PASSES) - 1)
#define WAIT_MS 30

/* What became of five passes of "a.b" in a child: a bit for each that gave the errno 28, the first the lowest; CRASHED, ABORTED. Of
 * those that gave none, so many waited. */
static int passes(const char *spec, int waits)
{
    int status, failed = 0, waited = 0;
    pid_t pid = fork();

    if (pid == 0) {
        setenv("TGSPOOL_FAILPOINTS", spec, 1);
        for (int i = 0; i < PASSES; i++) {
            int64_t begin = clock_boot_ms();
            failed |= (FAILPOINT("a.b") == 28) << i;
            waited += clock_boot_ms() - begin >= WAIT_MS - 1;
            if (FAILPOINT("a.other"))
                _exit(1);
        }
        _exit(waited >= waits ? failed : 1);
    }
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void an_errno(void **state)
{
    (void)state;
    assert_int_equal(passes("", 0), 0);
    assert_int_equal(passes("a.b=errno:28", 0), ALL);
    assert_int_equal(passes("a.b=errno:28@2", 0), 1 << 1);
    assert_int_equal(passes("a.b=errno:28@3+", 0), ALL - 3);
    assert_int_equal(passes("a.c=errno:5;a.b=errno:28@1;a.b=errno:28@5", 0), 1 << 4 | 1);
    assert_int_equal(passes("a.b=errno:28@6", 0), 0);
}

static void a_crash(void **state)
{
    (void)state;
    assert_int_equal(passes("a.b=crash", 0), CRASHED);
    assert_int_equal(passes("a.b=crash@5", 0), CRASHED);
    assert_int_equal(passes("a.b=crash@6", 0), 0);
}

static void a_delay(void **state)
{
    (void)state;
    assert_int_equal(passes("a.b=sleep:30", PASSES), 0);
    assert_int_equal(passes("a.b=sleep:30@2;a.b=errno:28@3", 1), 1 << 2);
}

static void one_for_each_row(void **state)
{
    (void)state;
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        setenv("TGSPOOL_FAILPOINTS", "a.before_lease_expired=crash", 1);
        (void)FAILPOINT_EACH("a.before_", "done");
        (void)FAILPOINT_EACH("a.before_", "lease expired");
        _exit(1);
    }
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    assert_int_equal(WEXITSTATUS(status), CRASHED);
}

static void a_wrong_spelling(void **state)
{
    static const char *const wrong[] = {"a.b", "a.b=crush", "a.b=errno", "a.c=crash;nothing"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        check_row(i, passes(wrong[i], 0) == ABORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_errno),         cmocka_unit_test(a_crash),          cmocka_unit_test(a_delay),
        cmocka_unit_test(one_for_each_row), cmocka_unit_test(a_wrong_spelling),
    };
    return cmocka_run_group_tests_name("failpoints", tests, NULL, NULL);
}
#else
static void none(void **state)
{
    (void)state;
    assert_int_equal(FAILPOINT("a.b"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(none)};

    return cmocka_run_group_tests_name("failpoints, without", tests, NULL, NULL);
}
#endif
