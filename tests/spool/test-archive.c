/* The archive's files: what was answered DONE is in them and can be read by zcat, whatever a crash, a full disk or a person
 * did meanwhile; and nothing that is in them is ever lost. */
#include "../unit/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/tree.h"
#include "ops/archive.h"

#define NOON (INT64_C(20787) * HOURS(24) + HOURS(12)) /* of 2026-11-30 */
#define TODAY "2026-11-30.jsonl.gz"

struct stage {
    char dir[64], sub[80];
    struct archive *archive;
    int64_t now;
};

static void start(struct stage *s)
{
    struct err e = ERR_NONE;

    s->archive = archive_new(s->sub, &e);
    if (!s->archive)
        fail_msg("%s", e.text);
}

static void restart(struct stage *s)
{
    archive_free(s->archive);
    start(s);
}

static int setup(void **state)
{
    struct stage *s = xcalloc(1, sizeof(*s));

    log_setup(LOG_ERROR, LOG_TEXT, false);
    strcpy(s->dir, "/tmp/tgspool-archive-XXXXXX");
    if (!mkdtemp(s->dir))
        return -1;
    snprintf(s->sub, sizeof(s->sub), "%s/a", s->dir);
    s->now = NOON;
    start(s);
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    struct stage *s = *state;

    archive_free(s->archive);
    tree_remove(s->dir, NULL);
    free(s);
    return 0;
}

static enum archived keep(struct stage *s, const char *lines, struct err *e)
{
    enum archived rc;

    for (int i = 0; (rc = archive_step(s->archive, slice_str(lines), s->now, e)) == ARCHIVE_BUSY; i++)
        assert_true(i < 100000);
    return rc;
}

static void kept(struct stage *s, const char *lines)
{
    struct err e = ERR_NONE;

    if (keep(s, lines, &e) != ARCHIVE_DONE)
        fail_msg("%s", e.text);
}

static char *path_of(const struct stage *s, const char *name)
{
    return xasprintf("%s/%s", s->sub, name);
}

/* The file as zcat gives it. */
static void expect(const struct stage *s, const char *name, const char *text)
{
    char *path = path_of(s, name);
    struct buf got = BUF_EMPTY;
    int n;

    gzFile f = gzopen(path, "rb");
    if (!f)
        fail_msg("there is no %s", name);
    while ((n = gzread(f, buf_reserve(&got, 4096), 4096)) > 0)
        buf_added(&got, (size_t)n);
    assert_int_equal(n, 0);
    assert_int_equal(gzclose(f), Z_OK);
    assert_string_equal(buf_str(&got), text);
    buf_free(&got);
    free(path);
}

static off_t size_of(const struct stage *s, const char *name)
{
    char *path = path_of(s, name);
    struct stat st;
    int rc = stat(path, &st);

    free(path);
    return rc < 0 ? -1 : st.st_size;
}

static void change(const struct stage *s, const char *name, off_t at, const void *bytes, size_t n)
{
    char *path = path_of(s, name);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, n, at), n);
    close(fd);
    free(path);
}

static void shorten(const struct stage *s, const char *name, off_t size)
{
    char *path = path_of(s, name);

    assert_int_equal(truncate(path, size), 0);
    free(path);
}

static void a_member_a_slice(void **state)
{
    struct stage *s = *state;
    struct stat st;

    kept(s, "{\"a\":1}\n");
    kept(s, "{\"b\":2}\n{\"c\":3}\n");
    expect(s, TODAY, "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n");
    restart(s);
    kept(s, "{\"d\":4}\n");
    expect(s, TODAY, "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n{\"d\":4}\n");
    char *path = path_of(s, TODAY);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(stat(s->sub, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    free(path);
    s->now = NOON + HOURS(12) - 1;
    kept(s, "{\"e\":5}\n");
    s->now++;
    kept(s, "{\"f\":6}\n");
    expect(s, TODAY, "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n{\"d\":4}\n{\"e\":5}\n");
    expect(s, "2026-12-01.jsonl.gz", "{\"f\":6}\n");
}

/* Wherever a crash tears the last member. */
static void a_torn_member_is_cut_off(void **state)
{
    struct stage *s = *state;
    struct buf whole = BUF_EMPTY;

    kept(s, "first\n");
    buf_add_str(&whole, "first\n");
    for (off_t left = 1; left < 45; left++) {
        off_t good = size_of(s, TODAY);
        kept(s, "second, of which only a part reaches the disk\n");
        assert_true(good + left < size_of(s, TODAY));
        shorten(s, TODAY, good + left);
        restart(s);
        kept(s, "third\n");
        buf_add_str(&whole, "third\n");
        expect(s, TODAY, buf_str(&whole));
    }
    buf_free(&whole);
}

static void a_tail_of_zeros_is_cut_off(void **state)
{
    struct stage *s = *state;
    static const char zeros[100000];

    kept(s, "first\n");
    change(s, TODAY, size_of(s, TODAY), zeros, sizeof(zeros));
    restart(s);
    kept(s, "second\n");
    expect(s, TODAY, "first\nsecond\n");
}

static void damage_in_the_middle_stays(void **state)
{
    struct stage *s = *state;

    kept(s, "first of some length\n");
    kept(s, "second\n");
    off_t size = size_of(s, TODAY);
    change(s, TODAY, 30, "\xff\xff\xff", 3);
    restart(s);
    kept(s, "third\n");
    assert_int_equal(size_of(s, TODAY), size);
    expect(s, "2026-11-30.1.jsonl.gz", "third\n");
    restart(s);
    kept(s, "fourth\n");
    expect(s, "2026-11-30.1.jsonl.gz", "third\nfourth\n");
    s->now += HOURS(24);
    kept(s, "fifth\n");
    expect(s, "2026-12-01.jsonl.gz", "fifth\n");
}

static void what_is_not_ours_stays(void **state)
{
    struct stage *s = *state;

    change(s, TODAY, 0, "my notes", 8);
    change(s, "2026-11-30.1.jsonl.gz", 0, "\x1f\x8b", 2); /* as torn as can be: ours */
    kept(s, "first\n");
    assert_int_equal(size_of(s, TODAY), 8);
    expect(s, "2026-11-30.1.jsonl.gz", "first\n");
}

/* Recompressed, as people do: it is gzip all the same. */
static void another_gzip_goes_on(void **state)
{
    struct stage *s = *state;
    char *path = path_of(s, TODAY);
    gzFile f = gzopen(path, "wb");

    assert_int_equal(gzwrite(f, "first\n", 6), 6);
    gzclose(f);
    kept(s, "second\n");
    expect(s, TODAY, "first\nsecond\n");
    free(path);
}

static void a_person_takes_the_file_away(void **state)
{
    struct stage *s = *state;
    char *path = path_of(s, TODAY), *other = path_of(s, "mine");

    kept(s, "first\n");
    assert_int_equal(rename(path, other), 0);
    kept(s, "second\n");
    assert_int_equal(unlink(path), 0);
    kept(s, "third\n");
    expect(s, "mine", "first\n");
    expect(s, TODAY, "third\n");
    free(path);
    free(other);
}

static void a_write_that_fails_leaves_nothing(void **state)
{
    struct stage *s = *state;
    struct rlimit before, small;
    struct err e = ERR_NONE;
    char lines[4000];

    for (size_t i = 0; i < sizeof(lines) - 1; i++)
        lines[i] = (char)('a' + (i * i * i >> 5) % 26);
    lines[sizeof(lines) - 1] = '\0';
    kept(s, "first\n");
    off_t good = size_of(s, TODAY);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = (rlim_t)good + 50;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    enum archived rc = keep(s, lines, &e);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(rc, ARCHIVE_FAILED);
    assert_non_null(strstr(e.text, TODAY));
    assert_int_equal(size_of(s, TODAY), good);
    kept(s, "second\n");
    expect(s, TODAY, "first\nsecond\n");
}

static void a_directory_that_is_gone(void **state)
{
    struct stage *s = *state;
    struct err e = ERR_NONE;

    assert_int_equal(rmdir(s->sub), 0);
    assert_int_equal(keep(s, "first\n", &e), ARCHIVE_FAILED);
    assert_non_null(strstr(e.text, s->sub));
    assert_int_equal(mkdir(s->sub, 0700), 0);
    kept(s, "first\n");
    expect(s, TODAY, "first\n");
    assert_null(archive_new("/dev/null/x", &e));
    char *path = path_of(s, "2026-12-01.jsonl.gz");
    assert_int_equal(symlink("/tmp/elsewhere", path), 0); /* is not followed */
    s->now += HOURS(24);
    assert_int_equal(keep(s, "second\n", &e), ARCHIVE_FAILED);
    free(path);
}

/* Much of it: no call does all. */
static void in_small_steps(void **state)
{
    struct stage *s = *state;
    size_t n = 8 << 20;
    char *lines = xmalloc(n + 1);
    struct err e = ERR_NONE;
    uint64_t random = 1;
    int steps = 1;

    for (size_t i = 0; i < n; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        lines[i] = (char)('a' + (random >> 59) % 26);
    }
    lines[n - 1] = '\n';
    lines[n] = '\0';
    while (archive_step(s->archive, slice_make(lines, n), s->now, &e) == ARCHIVE_BUSY)
        steps++;
    assert_true(steps > 5);
    kept(s, "second\n");
    restart(s);
    for (steps = 1; archive_step(s->archive, LIT("third\n"), s->now, &e) == ARCHIVE_BUSY;)
        steps++;
    assert_true(steps > 2);
    char *all = xasprintf("%ssecond\nthird\n", lines);
    expect(s, TODAY, all);
    free(all);
    free(lines);
}

#define archive_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        archive_test(a_member_a_slice),
        archive_test(a_torn_member_is_cut_off),
        archive_test(a_tail_of_zeros_is_cut_off),
        archive_test(damage_in_the_middle_stays),
        archive_test(what_is_not_ours_stays),
        archive_test(another_gzip_goes_on),
        archive_test(a_person_takes_the_file_away),
        archive_test(a_write_that_fails_leaves_nothing),
        archive_test(a_directory_that_is_gone),
        archive_test(in_small_steps),
    };
    return cmocka_run_group_tests_name("archive", tests, NULL, NULL);
}
