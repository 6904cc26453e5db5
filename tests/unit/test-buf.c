/* base/buf and base/mem: growth, the zero behind the content, dropping and stealing. */
#include "unit.h"

static void an_empty_one_is_usable(void **state)
{
    (void)state;
    struct buf b = BUF_EMPTY;

    assert_string_equal(buf_str(&b), "");
    buf_clear(&b);
    buf_trim(&b, 0);
    buf_drop(&b, 0);
    buf_added(&b, 0);
    assert_int_equal(buf_slice(&b).n, 0);
    buf_add(&b, NULL, 0);
    assert_string_equal(buf_str(&b), "");
    buf_free(&b);
    buf_free(&b);
    assert_null(b.p);
}

static void content_grows_and_ends_in_zero(void **state)
{
    (void)state;
    struct buf b = BUF_EMPTY;

    for (size_t i = 0; i < 5000; i++) {
        buf_add_char(&b, (char)('a' + i % 26));
        assert_int_equal(b.n, i + 1);
        assert_true(b.cap > b.n);
        assert_int_equal(b.p[b.n], 0);
    }
    for (size_t i = 0; i < 5000; i++)
        assert_int_equal(b.p[i], 'a' + (int)(i % 26));
    buf_free(&b);
}

static void pieces_are_appended(void **state)
{
    (void)state;
    struct buf b = BUF_EMPTY;

    buf_add_str(&b, "one ");
    buf_add_slice(&b, LIT("t\0o "));
    buf_printf(&b, "%d %s", 3, "four");
    assert_int_equal(b.n, 14);
    assert_memory_equal(b.p, "one t\0o 3 four", 15);
    buf_free(&b);
}

static void printf_longer_than_the_room(void **state)
{
    (void)state;
    struct buf b = BUF_EMPTY;

    buf_printf(&b, "%0200d|%s", 7, "");
    assert_int_equal(b.n, 201);
    assert_int_equal(b.p[199], '7');
    assert_string_equal(b.p + 200, "|");
    buf_printf(&b, "%s", "");
    assert_int_equal(b.n, 201);
    buf_free(&b);
}

static void reserved_room_is_written_in_place(void **state)
{
    (void)state;
    struct buf b = BUF_EMPTY;
    char *to = buf_reserve(&b, 63); /* exactly the first capacity with its zero */

    memset(to, 'x', 63);
    buf_added(&b, 63);
    assert_int_equal(b.cap, 64);
    assert_int_equal(b.p[63], 0);
    buf_add_char(&b, 'y');
    assert_true(b.cap > 64);
    assert_string_equal(b.p + 60, "xxxy");
    buf_free(&b);
}

static void drop_takes_from_the_front(void **state)
{
    (void)state;
    struct buf b = BUF_EMPTY;

    buf_add_str(&b, "abcdef");
    buf_drop(&b, 2);
    assert_string_equal(buf_str(&b), "cdef");
    buf_drop(&b, 4);
    assert_int_equal(b.n, 0);
    assert_string_equal(buf_str(&b), "");
    buf_free(&b);
}

static void clear_keeps_trim_gives_back(void **state)
{
    (void)state;
    struct buf b = BUF_EMPTY;

    buf_reserve(&b, 10000);
    buf_add_str(&b, "x");
    buf_trim(&b, 100); /* not empty: kept */
    assert_true(b.cap > 10000);
    buf_clear(&b);
    assert_string_equal(buf_str(&b), "");
    assert_true(b.cap > 10000);
    buf_trim(&b, 100000);
    assert_true(b.cap > 10000);
    buf_trim(&b, 100);
    assert_int_equal(b.cap, 0);
    buf_free(&b);
}

static void steal_hands_over(void **state)
{
    (void)state;
    struct buf b = BUF_EMPTY;
    char *p = buf_steal(&b);

    assert_string_equal(p, "");
    free(p);
    buf_add_str(&b, "mine");
    p = buf_steal(&b);
    assert_string_equal(p, "mine");
    assert_null(b.p);
    assert_int_equal(b.n + b.cap, 0);
    free(p);
}

static void memory_helpers_copy(void **state)
{
    (void)state;
    char *s = xstrndup("abcdef", 3), *t = xasprintf("%s-%d", "x", 1), *u = xstrdup("");
    int *zero = xcalloc(3, sizeof(int));

    assert_string_equal(s, "abc");
    assert_string_equal(t, "x-1");
    assert_string_equal(u, "");
    assert_int_equal(zero[0] | zero[1] | zero[2], 0);
    free(s);
    free(t);
    free(u);
    free(zero);
    free(xmalloc(0));
    free(xmemdup(NULL, 0));
    free(xrealloc(NULL, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_one_is_usable),
        cmocka_unit_test(content_grows_and_ends_in_zero),
        cmocka_unit_test(pieces_are_appended),
        cmocka_unit_test(printf_longer_than_the_room),
        cmocka_unit_test(reserved_room_is_written_in_place),
        cmocka_unit_test(drop_takes_from_the_front),
        cmocka_unit_test(clear_keeps_trim_gives_back),
        cmocka_unit_test(steal_hands_over),
        cmocka_unit_test(memory_helpers_copy),
    };
    return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}
