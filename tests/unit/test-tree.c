/* Directories as a whole: copied files, what takes the place of another, and removal that stays inside. */
#include "base/tree.h"

#include "unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

struct place {
    char dir[64];
    struct err e;
};

static char *in(const struct place *p, const char *name)
{
    return xasprintf("%s/%s", p->dir, name);
}

static int setup(void **state)
{
    struct place *p = xcalloc(1, sizeof(*p));

    strcpy(p->dir, "/tmp/tgspool-tree-XXXXXX");
    *state = p;
    return mkdtemp(p->dir) ? 0 : -1;
}

static int teardown(void **state)
{
    struct place *p = *state;
    int rc = tree_remove(p->dir, NULL);

    free(p);
    return rc;
}

static void expect_content(const char *path, const char *content)
{
    struct buf b = BUF_EMPTY;

    assert_int_equal(file_read(path, 1 << 20, &b, NULL), 0);
    assert_slice(buf_slice(&b), content);
    buf_free(&b);
}

static void a_copy_is_private_and_as_old(void **state)
{
    struct place *p = *state;
    char *from = in(p, "from"), *to = in(p, "to"), *link = in(p, "link");
    const struct timespec times[2] = {{1000, 5}, {2000, 123456789}};
    struct stat st;

    assert_int_equal(file_create(from, slice_str("text"), 0644, &p->e), 0);
    assert_int_equal(utimensat(AT_FDCWD, from, times, 0), 0);
    assert_int_equal(file_copy(from, to, &p->e), 0);
    expect_content(to, "text");
    assert_int_equal(stat(to, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(st.st_mtim.tv_sec, 2000);
    assert_int_equal(st.st_mtim.tv_nsec, 123456789);
    assert_int_equal(file_copy(from, to, &p->e), -1); /* over nothing */
    assert_int_equal(symlink(from, link), 0);
    char *other = in(p, "other");
    assert_int_equal(file_copy(link, other, &p->e), -1); /* through no link */
    assert_int_equal(access(other, F_OK), -1);
    char *none = in(p, "none");
    assert_int_equal(file_copy(none, other, &p->e), -1);
    assert_int_equal(p->e.exit_code, EX_NOINPUT);
    free(none);
    free(other);
    free(link);
    free(to);
    free(from);
}

static void one_file_takes_the_place_of_another(void **state)
{
    struct place *p = *state;
    char *path = in(p, "file"), *left = in(p, "file.new");

    assert_int_equal(file_create(left, slice_str("of a crash"), 0600, &p->e), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(file_replace(path, slice_str(i ? "second" : "first"), &p->e), 0);
        expect_content(path, i ? "second" : "first");
        assert_int_equal(access(left, F_OK), -1);
    }
    free(left);
    free(path);
}

static void removal_stays_inside(void **state)
{
    struct place *p = *state;
    char *kept = in(p, "kept"), *file = in(p, "kept/file"), *deep = in(p, "gone/a/b"),
         *link = in(p, "gone/a/link");
    char *gone = in(p, "gone");

    assert_int_equal(file_make_dir(kept, 0700, &p->e), 0);
    assert_int_equal(file_create(file, slice_str("x"), 0600, &p->e), 0);
    assert_int_equal(file_make_dir(deep, 0700, &p->e), 0);
    assert_int_equal(symlink(kept, link), 0);
    assert_int_equal(tree_remove(gone, &p->e), 0);
    assert_int_equal(access(gone, F_OK), -1);
    expect_content(file, "x");
    assert_int_equal(tree_remove(gone, &p->e), 0); /* it is gone already */
    free(gone);
    free(link);
    free(deep);
    free(file);
    free(kept);
}

#define tree_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        tree_test(a_copy_is_private_and_as_old),
        tree_test(one_file_takes_the_place_of_another),
        tree_test(removal_stays_inside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
