/* base/file: what is refused and with which exit code; modes; secrets. */
#include "unit.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static char dir[64];

static const char *path_of(const char *name)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static int make_dir(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/tgspool-file-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    char *cmd = xasprintf("rm -rf '%s'", dir);
    int rc = system(cmd);
    free(cmd);
    return rc;
}

static void make_file(const char *name, struct slice content, mode_t mode)
{
    struct err e = ERR_NONE;

    if (file_create(path_of(name), content, mode, &e) < 0)
        fail_msg("%s", e.text);
}

static void a_file_comes_back(void **state)
{
    (void)state;
    struct buf b = BUF_EMPTY;
    struct err e = ERR_NONE;
    struct stat st;

    buf_add_str(&b, "before ");
    mode_t old = umask(0077);
    make_file("plain", LIT("a\0b\n"), 0644);
    umask(old);
    assert_int_equal(stat(path_of("plain"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0644); /* whatever the umask */
    assert_int_equal(file_read(path_of("plain"), 4, &b, &e), 0);
    assert_int_equal(b.n, 11);
    assert_memory_equal(b.p, "before a\0b\n", 12);
    buf_free(&b);
}

static void one_byte_too_many(void **state)
{
    (void)state;
    struct buf b = BUF_EMPTY;
    struct err e = ERR_NONE;
    static char big[10000];

    make_file("five", LIT("12345"), 0600);
    assert_int_equal(file_read(path_of("five"), 5, &b, &e), 0);
    assert_int_equal(file_read(path_of("five"), 4, &b, &e), -1);
    assert_int_equal(e.exit_code, EX_CONFIG);
    assert_non_null(strstr(e.text, "larger than the 4 bytes"));
    buf_free(&b);
    make_file("big", slice_make(big, sizeof(big)), 0600);
    assert_int_equal(file_read(path_of("big"), sizeof(big), &b, &e), 0);
    assert_int_equal(b.n, sizeof(big));
    buf_free(&b);
}

static void what_is_no_file(void **state)
{
    (void)state;
    struct buf b = BUF_EMPTY;
    struct err e = ERR_NONE;

    assert_int_equal(file_read(path_of("absent"), 100, &b, &e), -1);
    assert_int_equal(e.exit_code, EX_NOINPUT);
    assert_non_null(strstr(e.text, "absent"));
    assert_int_equal(file_read(dir, 100, &b, &e), -1);
    assert_int_equal(e.exit_code, EX_CONFIG);
    assert_non_null(strstr(e.text, "is a directory"));
    assert_int_equal(file_read("/dev/null", 100, &b, &e), -1);
    assert_non_null(strstr(e.text, "not a regular file"));
    assert_int_equal(mkfifo(path_of("fifo"), 0600), 0);
    assert_int_equal(file_read(path_of("fifo"), 100, &b, &e), -1); /* and does not hang */
    /* there, but not to be read, since nothing is mapped at 0: other than absent */
    assert_int_equal(file_read("/proc/self/mem", 100, &b, &e), -1);
    assert_int_equal(e.exit_code, EX_IOERR);
    assert_int_equal(b.n, 0);
    buf_free(&b);
}

static void secrets_are_trimmed(void **state)
{
    (void)state;
    struct buf b = BUF_EMPTY;
    struct err e = ERR_NONE;

    make_file("secret", LIT(" s3cret inside \t\r\n\n"), 0600);
    assert_int_equal(file_read_secret(path_of("secret"), &b, &e), 0);
    assert_string_equal(buf_str(&b), " s3cret inside");
    assert_int_equal(b.n, strlen(" s3cret inside"));
    buf_free(&b);
}

static void open_or_empty_secrets_are_refused(void **state)
{
    (void)state;
    struct buf b = BUF_EMPTY;
    struct err e = ERR_NONE;
    static const mode_t bad[] = {0640, 0604, 0620, 0602, 0610, 0644};

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        make_file("open", LIT("s3cret\n"), bad[i]);
        check_row(i, file_read_secret(path_of("open"), &b, &e) == -1);
        check_row(i, e.exit_code == EX_CONFIG && strstr(e.text, "chmod 600") && !strstr(e.text, "s3cret"));
        unlink(path_of("open"));
    }
    make_file("empty", LIT(" \n"), 0600);
    assert_int_equal(file_read_secret(path_of("empty"), &b, &e), -1);
    assert_int_equal(e.exit_code, EX_CONFIG);
    assert_non_null(strstr(e.text, "is empty"));
    assert_int_equal(b.n, 0);
    buf_free(&b);
}

static void a_file_is_never_overwritten(void **state)
{
    (void)state;
    struct err e = ERR_NONE;

    make_file("once", LIT("first"), 0600);
    assert_int_equal(file_create(path_of("once"), LIT("second"), 0600, &e), -1);
    assert_non_null(strstr(e.text, "once"));
    struct buf b = BUF_EMPTY;
    assert_int_equal(file_read(path_of("once"), 100, &b, &e), 0);
    assert_string_equal(buf_str(&b), "first");
    buf_free(&b);
}

static void directories_with_their_parents(void **state)
{
    (void)state;
    struct err e = ERR_NONE;
    struct stat st;
    mode_t old = umask(022);

    assert_int_equal(file_make_dir(path_of("a/b/c"), 0700, &e), 0);
    assert_int_equal(stat(path_of("a/b"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0755);
    assert_int_equal(stat(path_of("a/b/c"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(file_make_dir(path_of("a/b"), 0700, &e), 0); /* left as it is */
    assert_int_equal(stat(path_of("a/b"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0755);
    make_file("file", LIT("x"), 0600);
    assert_int_equal(file_make_dir(path_of("file/d"), 0700, &e), -1);
    assert_int_equal(e.exit_code, EX_CANTCREAT);
    umask(old);
}

/* Half a file would be taken for a whole one, and never be written over. */
static void what_is_not_whole_is_removed(void **state)
{
    (void)state;
    struct err e = ERR_NONE;
    struct rlimit was, small = {.rlim_cur = 2};

    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    small.rlim_max = was.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int rc = file_create(path_of("half"), LIT("12345"), 0600, &e);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    assert_int_equal(rc, -1);
    assert_int_equal(e.exit_code, EX_IOERR);
    assert_int_equal(access(path_of("half"), F_OK), -1);
}

static void what_lies_in_a_directory(void **state)
{
    (void)state;
    char *top = xstrdup(path_of("in")), *link = xstrdup(path_of("link"));

    assert_int_equal(mkdir(top, 0700), 0);
    assert_int_equal(symlink(top, link), 0);
    assert_true(file_is_in(top, top));
    assert_true(file_is_in(link, top));
    assert_true(file_is_in(path_of("in/not/there/yet"), top));
    assert_true(file_is_in(path_of("link/x"), top));
    assert_true(file_is_in(path_of("in/../in/x"), top));
    assert_true(file_is_in(path_of("in/x"), path_of("in/")));
    assert_true(file_is_in("/x", "/"));
    assert_true(file_is_in("/nowhere/a/b", "/nowhere/a"));
    assert_false(file_is_in("/nowhere/ab", "/nowhere/a"));
    assert_false(file_is_in(path_of("in2"), top));
    assert_false(file_is_in(dir, top));
    assert_int_equal(chdir(top), 0);
    assert_true(file_is_in("x", top));
    assert_false(file_is_in("../x", top));
    assert_int_equal(chdir("/"), 0);
    free(top);
    free(link);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_comes_back),
        cmocka_unit_test(one_byte_too_many),
        cmocka_unit_test(what_is_no_file),
        cmocka_unit_test(secrets_are_trimmed),
        cmocka_unit_test(open_or_empty_secrets_are_refused),
        cmocka_unit_test(a_file_is_never_overwritten),
        cmocka_unit_test(directories_with_their_parents),
        cmocka_unit_test(what_is_not_whole_is_removed),
        cmocka_unit_test(what_lies_in_a_directory),
    };
    return cmocka_run_group_tests_name("file", tests, make_dir, remove_dir);
}
