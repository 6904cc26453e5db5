#include "copy.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file.h"
#include "store/log_piece.h"

char copy_dir[80];
char copy_db[84];

void copy_run(const char *what, const char *a, const char *b)
{
    char *command = xasprintf("%s %s %s", what, a, b);

    assert_int_equal(system(command), 0);
    free(command);
}

void copy_make(const struct world *w)
{
    snprintf(copy_dir, sizeof(copy_dir), "%s-copy", w->dir);
    snprintf(copy_db, sizeof(copy_db), "%s/db", copy_dir);
    copy_run("rm -rf", copy_dir, "");
    copy_run("cp -a", w->dir, copy_dir);
}

int copy_teardown(void **state)
{
    if (copy_dir[0])
        copy_run("rm -rf", copy_dir, "");
    copy_dir[0] = '\0';
    return world_teardown(state);
}

struct spool *copy_open(struct err *e)
{
    const struct spool_options o = {.dir = copy_dir, .cache_bytes = 1 << 20, .sync = SYNC_ALWAYS};

    *e = ERR_NONE;
    return spool_open(&o, START, e);
}

int64_t copy_size_of(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

size_t copy_files(const char *dir, const char *end, char paths[][COPY_PATH_MAX], size_t max)
{
    char *db = xasprintf("%s/db", dir);
    DIR *d = opendir(db);
    struct dirent *entry;
    size_t n = 0;

    assert_non_null(d);
    while ((entry = readdir(d)) != NULL) {
        size_t len = strlen(entry->d_name), n_end = strlen(end);
        if (len < n_end || strcmp(entry->d_name + len - n_end, end) != 0 || n == max)
            continue;
        snprintf(paths[n], COPY_PATH_MAX, "%s/%s", db, entry->d_name);
        n += copy_size_of(paths[n]) > 0;
    }
    closedir(d);
    free(db);
    qsort(paths, n, COPY_PATH_MAX, by_name);
    return n;
}

int64_t copy_piece_at(const char *path, unsigned number)
{
    struct buf log = BUF_EMPTY;
    struct err e = ERR_NONE;
    struct log_piece piece;
    size_t at = 0;

    assert_int_equal(file_read(path, LOG_BLOCK, &log, &e), 0);
    assert_true(log.n < LOG_BLOCK);
    for (unsigned i = 0; i < number; i++, at += piece.size) {
        assert_int_equal(log_piece_read((unsigned char *)log.p + at, log.n - at, &piece), LOG_PIECE_WHOLE);
        assert_int_equal(piece.type, PIECE_FULL);
    }
    buf_free(&log);
    return (int64_t)at;
}
