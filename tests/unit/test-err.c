/* base/err: the sentence for a person, its exit code and its limits. */
#include "unit.h"

#include "base/err.h"

static void set_and_prefix(void **state)
{
    (void)state;
    struct err e = ERR_NONE;

    assert_int_equal(e.exit_code, 0);
    assert_int_equal(err_set(&e, EX_CONFIG, "%s is %d", "it", 5), -1);
    assert_int_equal(e.exit_code, EX_CONFIG);
    assert_string_equal(e.text, "it is 5");
    assert_int_equal(err_prefix(&e, "%s:%d", "file", 3), -1);
    assert_string_equal(e.text, "file:3: it is 5");
    assert_int_equal(e.exit_code, EX_CONFIG);
}

static void nobody_listens(void **state)
{
    (void)state;
    assert_int_equal(err_set(NULL, EX_USAGE, "x"), -1);
    assert_int_equal(err_prefix(NULL, "x"), -1);
}

static void long_ones_are_cut(void **state)
{
    (void)state;
    struct err e = ERR_NONE;

    err_set(&e, EX_IOERR, "%02000d", 1);
    assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
    err_prefix(&e, "%0400d", 2);
    assert_true(strlen(e.text) < sizeof(e.text));
    assert_non_null(strstr(e.text, ": 000"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_and_prefix),
        cmocka_unit_test(nobody_listens),
        cmocka_unit_test(long_ones_are_cut),
    };
    return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
