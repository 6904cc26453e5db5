/* Lasting trouble is told in few lines. Standard error is a file here, whose lines are counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "intake/trouble.h"

#define T0 INT64_C(1700000000000)

static FILE *lines;
static struct trouble t;
static char last[1024];

/* How many lines came since the last call; the last one is in `last`. */
static int new_lines(void)
{
    int n = 0;

    clearerr(lines);
    while (fgets(last, sizeof(last), lines))
        n++;
    return n;
}

static int file, saved; /* the descriptor of the file; standard error as it was */

static int set_up(void **state)
{
    (void)state;
    memset(&t, 0, sizeof(t));
    return dup2(file, STDERR_FILENO) < 0;
}

static int tear_down(void **state)
{
    (void)state;
    return dup2(saved, STDERR_FILENO) < 0;
}

static void test_growing_intervals(void **state)
{
    int n = 0;

    (void)state;
    trouble_met(&t, "shop", 1, "no network", 1000, T0);
    assert_int_equal(new_lines(), 1);
    assert_non_null(strstr(last, "intake fails: no network; next try in 1s"));
    for (int64_t s = 10; s <= 12 * 3600; s += 10) {
        trouble_met(&t, "shop", 1, "no network", 60000, T0 + SECONDS(s));
        n += new_lines();
    }
    /* after 1, 6 and 21 minutes, then every hour */
    assert_int_equal(n, 3 + 11);
    assert_non_null(strstr(last, "intake fails for 11h"));
    trouble_over(&t, "shop", T0 + HOURS(13));
    assert_int_equal(new_lines(), 1);
    assert_non_null(strstr(last, "works again"));
    assert_int_equal(t.since, 0);
    trouble_over(&t, "shop", T0 + HOURS(14));
    assert_int_equal(new_lines(), 0);
}

static void test_another_kind_is_told_soon(void **state)
{
    int n = 0;

    (void)state;
    trouble_met(&t, "shop", 1, "no network", 1000, T0);
    trouble_met(&t, "shop", 1, "no network", 1000, T0 + 11000);
    assert_int_equal(new_lines(), 1);
    trouble_met(&t, "shop", 2, "the token is refused", 60000, T0 + 12000);
    assert_int_equal(new_lines(), 1);
    assert_non_null(strstr(last, "the token is refused"));
    for (int i = 0; i < 100; i++) { /* two that alternate */
        trouble_met(&t, "shop", i % 2 ? 1 : 2, "so or so", 1000, T0 + 13000 + i * 1000);
        n += new_lines();
    }
    assert_in_range(n, 2, 11);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_growing_intervals, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_another_kind_is_told_soon, set_up, tear_down),
    };
    char path[] = "/tmp/tgspool-test-trouble-XXXXXX";

    file = mkstemp(path);
    saved = dup(STDERR_FILENO);
    lines = file < 0 ? NULL : fopen(path, "r");
    if (!lines || saved < 0)
        return 1;
    unlink(path);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
