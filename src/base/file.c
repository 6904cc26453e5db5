#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

static int fail(struct err *e, int code, const char *verb, const char *path)
{
    if (errno == EACCES || errno == EPERM)
        code = EX_NOPERM;
    return err_set(e, code, "cannot %s %s: %s", verb, path, strerror(errno));
}

/* A file that is there and cannot be read is none that is not there: callers would make a new one in its place. */
static int cannot(struct err *e, const char *verb, const char *path)
{
    bool absent = errno == ENOENT || errno == ENOTDIR;

    return fail(e, absent ? EX_NOINPUT : EX_IOERR, verb, path);
}

ssize_t file_read_block(int fd, void *out, size_t n)
{
    size_t done = 0;

    while (done < n) {
        ssize_t some = read(fd, (char *)out + done, n - done);
        if (some < 0 && errno == EINTR)
            continue;
        if (some < 0)
            return -1;
        if (some == 0)
            break;
        done += (size_t)some;
    }
    return (ssize_t)done;
}

static int read_all(int fd, const char *path, size_t max, struct buf *out, struct err *e)
{
    size_t start = out->n;

    for (;;) {
        ssize_t n = file_read_block(fd, buf_reserve(out, 4096), 4096);
        if (n < 0)
            return cannot(e, "read", path);
        buf_added(out, (size_t)n);
        if (out->n - start > max)
            return err_set(e, EX_CONFIG, "%s is larger than the %zu bytes that such a file may have", path,
                           max);
        if (n < 4096)
            return 0;
    }
}

static bool is_below(const char *path, const char *dir)
{
    size_t n = dir ? strlen(dir) : 0;

    return n && strncmp(path, dir, n) == 0 && path[n] == '/' && !strstr(path + n, "/../");
}

/* Whether systemd made the file (LoadCredential=). It keeps those directories private, but the files' bits for the
 * group are the mask of an access list by which the service's user reads them. */
static bool is_credential(const char *path)
{
    return is_below(path, "/run/credentials") || is_below(path, getenv("CREDENTIALS_DIRECTORY"));
}

static int read_checked(const char *path, size_t max, bool secret, struct buf *out, struct err *e)
{
    struct stat st;
    int fd, rc = -1;

    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return cannot(e, "open", path);
    if (fstat(fd, &st) < 0)
        cannot(e, "look at", path);
    else if (S_ISDIR(st.st_mode))
        err_set(e, EX_CONFIG, "%s is a directory; a file is needed here", path);
    else if (!S_ISREG(st.st_mode))
        err_set(e, EX_CONFIG, "%s is not a regular file", path);
    else if (secret && (st.st_mode & 077) && !is_credential(path))
        err_set(e, EX_CONFIG, "%s can be read by others (mode %04o); make it private: chmod 600 %s", path,
                (unsigned)(st.st_mode & 07777), path);
    else
        rc = read_all(fd, path, max, out, e);
    close(fd);
    return rc;
}

int file_read(const char *path, size_t max, struct buf *out, struct err *e)
{
    return read_checked(path, max, false, out, e);
}

int file_read_secret(const char *path, struct buf *out, struct err *e)
{
    size_t start = out->n;

    if (read_checked(path, 4096, true, out, e) < 0) {
        struct err why = e ? *e : ERR_NONE;
        if (why.exit_code == EX_NOPERM)
            err_set(e, EX_NOPERM,
                    "%.900s; it should belong to the daemon's user, and this be run as that one", why.text);
        return -1;
    }
    while (out->n > start && strchr(" \t\r\n", out->p[out->n - 1]))
        out->p[--out->n] = '\0';
    if (out->n == start)
        return err_set(e, EX_CONFIG, "%s is empty; the secret should be its only line", path);
    return 0;
}

int file_create(const char *path, struct slice content, mode_t mode, struct err *e)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0)
        return fail(e, EX_CANTCREAT, "create", path);
    fchmod(fd, mode); /* whatever the umask */
    bool bad = false;
    for (size_t done = 0; !bad && done < content.n;) {
        ssize_t n = write(fd, content.p + done, content.n - done);
        if (n >= 0)
            done += (size_t)n;
        else
            bad = errno != EINTR;
    }
    bad = bad || fsync(fd) < 0;
    if (bad) {
        fail(e, EX_IOERR, "write", path);
        unlink(path);
    }
    close(fd);
    return bad ? -1 : 0;
}

/* A new name in a directory lasts through a power cut only when the directory is synced. */
static int sync_parent(const char *path, struct err *e)
{
    char *parent = xstrdup(path), *slash = strrchr(parent, '/');
    int rc = 0;

    if (slash)
        slash[slash == parent] = '\0';
    int fd = open(slash ? parent : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0)
        rc = fail(e, EX_IOERR, "sync the directory", slash ? parent : ".");
    if (fd >= 0)
        close(fd);
    free(parent);
    return rc;
}

int file_make_dir(const char *path, mode_t mode, struct err *e)
{
    char *part = xstrdup(path);
    int rc = 0;

    for (char *p = part + 1; rc == 0; p++) {
        if (*p != '/' && *p != '\0')
            continue;
        char end = *p;
        *p = '\0';
        if (mkdir(part, end ? 0755 : mode) == 0)
            rc = sync_parent(part, e);
        else if (errno != EEXIST)
            rc = fail(e, EX_CANTCREAT, "make the directory", part);
        *p = end;
        if (!end)
            break;
    }
    free(part);
    return rc;
}

char *file_resolve(const char *path)
{
    char *start = xstrdup(path), *whole = realpath(path, NULL);

    for (size_t n = strlen(start); !whole && n--;) {
        if (n && path[n] != '/')
            continue;
        start[n] = '\0';
        char *there = realpath(n ? start : *path == '/' ? "/" : ".", NULL);
        if (there)
            whole = xasprintf("%s/%s", strcmp(there, "/") ? there : "", path + n + (path[n] == '/'));
        free(there);
    }
    free(start);
    return whole ? whole : xstrdup(path);
}

bool file_is_in(const char *path, const char *dir)
{
    char *p = file_resolve(path), *d = file_resolve(dir);
    size_t n = strlen(d);

    while (n > 0 && d[n - 1] == '/')
        n--;
    bool in = strncmp(p, d, n) == 0 && (p[n] == '/' || !p[n]);
    free(p);
    free(d);
    return in;
}

void file_stamp(const char *path, char out[FILE_STAMP_MAX])
{
    struct stat st;

    if (!path || stat(path, &st) < 0)
        snprintf(out, FILE_STAMP_MAX, "none");
    else
        snprintf(out, FILE_STAMP_MAX, "%llu %llu %lld %lld.%09ld", (unsigned long long)st.st_dev,
                 (unsigned long long)st.st_ino, (long long)st.st_size, (long long)st.st_mtim.tv_sec,
                 st.st_mtim.tv_nsec);
}
