#include "base/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/file.h"
#include "base/mem.h"

#define PIECE (256u << 10)

static int cannot(struct err *e, const char *verb, const char *path)
{
    int code = errno == EACCES || errno == EPERM ? EX_NOPERM : errno == ENOENT ? EX_NOINPUT : EX_IOERR;
    return err_set(e, code, "cannot %s %s: %s", verb, path, strerror(errno));
}

static int write_all(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t done = write(fd, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -1;
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

static int copy_bytes(int in, int out, const char *from, const char *to, struct err *e)
{
    char *piece = xmalloc(PIECE);
    int rc = 0;

    while (rc == 0) {
        ssize_t n = read(in, piece, PIECE);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            rc = cannot(e, "read", from);
        else if (n == 0)
            break;
        else if (write_all(out, piece, (size_t)n) < 0)
            rc = cannot(e, "write", to);
    }
    free(piece);
    return rc;
}

int file_copy(const char *from, const char *to, struct err *e)
{
    struct stat st;
    int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), out = -1, rc = -1;

    if (in < 0 || fstat(in, &st) < 0)
        cannot(e, "open", from);
    else if ((out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) < 0)
        cannot(e, "create", to);
    else
        rc = copy_bytes(in, out, from, to, e);
    if (rc == 0) {
        const struct timespec times[2] = {st.st_atim, st.st_mtim};
        if (fsync(out) < 0)
            rc = cannot(e, "write", to);
        else
            futimens(out, times); /* a file system that keeps none costs a copy, not the truth */
    }
    if (in >= 0)
        close(in);
    if (out >= 0 && close(out) < 0 && rc == 0)
        rc = cannot(e, "write", to);
    return rc;
}

int dir_sync(const char *path, struct err *e)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;

    if (fd < 0 || fsync(fd) < 0)
        rc = cannot(e, "sync the directory", path);
    if (fd >= 0)
        close(fd);
    return rc;
}

int file_rename(const char *from, const char *to)
{
    int why = FAILPOINT("file.rename"), rc = why ? -1 : rename(from, to);

    if (why)
        errno = why;
    if (rc == 0)
        (void)FAILPOINT("file.renamed");
    return rc;
}

int file_link(const char *from, const char *to)
{
    int why = FAILPOINT("file.link"), rc = why ? -1 : link(from, to);

    if (why)
        errno = why;
    if (rc == 0)
        (void)FAILPOINT("file.linked");
    return rc;
}

int file_replace(const char *path, struct slice content, struct err *e)
{
    char *new = xasprintf("%s.new", path), *dir = xstrdup(path), *slash = strrchr(dir, '/');
    int rc = -1;

    if (slash)
        *slash = '\0';
    if (unlink(new) < 0 && errno != ENOENT)
        cannot(e, "remove", new);
    else if (file_create(new, content, 0600, e) < 0)
        ;
    else if (file_rename(new, path) < 0)
        cannot(e, "rename", new);
    else
        rc = dir_sync(!slash ? "." : slash == dir ? "/" : dir, e);
    free(new);
    free(dir);
    return rc;
}

int dir_each(const char *path, int (*each)(void *arg, const char *name, struct err *e), void *arg,
             struct err *e)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    int rc = 0;

    if (!dir)
        return cannot(e, "read", path);
    for (errno = 0; rc == 0 && (entry = readdir(dir)) != NULL;
         errno = 0) /* which alone tells an error from the end */
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            rc = each(arg, entry->d_name, e);
    if (rc == 0 && errno)
        rc = cannot(e, "read", path);
    closedir(dir);
    return rc;
}

static int remove_entry(void *arg, const char *name, struct err *e)
{
    char *path = xasprintf("%s/%s", (const char *)arg, name);
    int rc = tree_remove(path, e);

    free(path);
    return rc;
}

int tree_remove(const char *path, struct err *e)
{
    struct stat st;
    char *own;

    if (lstat(path, &st) < 0)
        return errno == ENOENT ? 0 : cannot(e, "look at", path);
    if (S_ISDIR(st.st_mode)) {
        own = xstrdup(path);
        int rc = dir_each(own, remove_entry, own, e);
        free(own);
        if (rc < 0)
            return -1;
    }
    return remove(path) < 0 ? cannot(e, "remove", path) : 0;
}
