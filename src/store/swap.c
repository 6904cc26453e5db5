#include "store/swap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/tree.h"
#include "store/dir.h"

char *swap_prepare(const char *dir, struct err *e)
{
    char *path = xasprintf("%s/" SWAP_PREPARING, dir);

    if (tree_remove(path, e) == 0 && file_make_dir(path, 0700, e) == 0)
        return path;
    free(path);
    return NULL;
}

/* Renames FROM/NAME to TO/NAME; what is not there is passed by. */
static int move(const char *from, const char *to, const char *name, struct err *e)
{
    char *a = xasprintf("%s/%s", from, name), *b = xasprintf("%s/%s", to, name);
    int rc = 0;

    if (file_rename(a, b) < 0 && errno != ENOENT)
        rc = err_set(e, EX_IOERR, "cannot move %s to %s: %s", a, b, strerror(errno));
    free(a);
    free(b);
    return rc;
}

static bool has(const char *dir, const char *name, struct stat *st)
{
    char *path = xasprintf("%s/%s", dir, name);
    bool there = lstat(path, st) == 0;

    free(path);
    return there;
}

/* The old spool's place, of the same name however often this is begun. */
static char *aside_of(const char *dir, const struct stat *marker)
{
    char text[32];
    struct tm tm;

    gmtime_r(&marker->st_mtim.tv_sec, &tm);
    strftime(text, sizeof(text), "%Y%m%dT%H%M%SZ", &tm);
    return xasprintf("%s/damaged-%s", dir, text);
}

/* Whether the old spool's place is free. A name that is there already, of a repair in the same second or before the clock
 * was set back, would mix the two: the marker's time moves on to a free one. */
static int choose_aside(const char *dir, const char *preparing, struct err *e)
{
    char *marker = xasprintf("%s/" STORE_MARKER, preparing);
    int fd = open(marker, O_RDONLY | O_CLOEXEC), rc = -1;
    struct stat st;

    for (bool taken = true; fd >= 0 && taken && fstat(fd, &st) == 0;) {
        struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = st.st_mtim.tv_sec + 1}};
        char *aside = aside_of(dir, &st);
        taken = access(aside, F_OK) == 0;
        free(aside);
        if (taken ? futimens(fd, times) < 0 : (rc = fsync(fd)) < 0)
            break;
    }
    if (rc < 0)
        err_set(e, EX_IOERR, "cannot make %s ready: %s", marker, strerror(errno));
    if (fd >= 0)
        close(fd);
    free(marker);
    return rc;
}

/* The marker goes first and comes last, so that what is in between is never taken for a spool. */
static int put_in_place(const char *dir, const char *ready, const char *aside, struct err *e)
{
    struct stat st;

    if (has(ready, "db", &st)) { /* else all but the marker is in place */
        bool old = has(dir, STORE_MARKER, &st) || has(dir, "db", &st);
        if (old && (file_make_dir(aside, 0700, e) < 0 || move(dir, aside, STORE_MARKER, e) < 0 ||
                    move(dir, aside, "db", e) < 0 || dir_sync(aside, e) < 0))
            return -1;
        if (FAILPOINT("swap.moved_aside"))
            return err_set(e, EX_IOERR, "cannot put the new spool in place: failpoint");
        if (move(ready, dir, "db", e) < 0)
            return -1;
    }
    if (FAILPOINT("swap.before_marker"))
        return err_set(e, EX_IOERR, "cannot put the new spool in place: failpoint");
    return move(ready, dir, STORE_MARKER, e) < 0 ? -1 : dir_sync(dir, e);
}

int swap_finish(const char *dir, char **aside, struct err *e)
{
    char *ready = xasprintf("%s/" SWAP_READY, dir), *old = NULL;
    struct stat st;
    bool there = access(ready, F_OK) == 0;
    int rc = 0;

    if (has(ready, STORE_MARKER, &st)) {
        old = aside_of(dir, &st);
        rc = put_in_place(dir, ready, old, e);
    }
    if (rc == 0)
        rc = tree_remove(ready, e);
    if (aside)
        *aside = old && rc == 0 && access(old, F_OK) == 0 ? xstrdup(old) : NULL;
    free(old);
    free(ready);
    return rc < 0 ? -1 : there;
}

int swap_commit(const char *dir, char **aside, struct err *e)
{
    char *preparing = xasprintf("%s/" SWAP_PREPARING, dir), *ready = xasprintf("%s/" SWAP_READY, dir);
    int rc = -1;

    if (FAILPOINT("swap.before_commit"))
        err_set(e, EX_IOERR, "cannot put the new spool in place: failpoint");
    else if (choose_aside(dir, preparing, e) < 0 || dir_sync(preparing, e) < 0)
        ;
    else if (file_rename(preparing, ready) < 0)
        err_set(e, EX_IOERR, "cannot rename %s: %s", preparing, strerror(errno));
    else if (dir_sync(dir, e) == 0)
        rc = swap_finish(dir, aside, e) < 0 ? -1 : 0;
    free(preparing);
    free(ready);
    return rc;
}
