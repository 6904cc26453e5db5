/* fallocate(2), not posix_fallocate(3): where the file system cannot allocate ahead, the latter writes every block,
 * which would take its time in the middle of the loop. */
#include "store/reserve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/mem.h"

static char *path_in(const char *dir)
{
    return xasprintf("%s/" RESERVE_NAME, dir);
}

int64_t reserve_size(const char *dir)
{
    char *path = path_in(dir);
    struct stat st;
    int rc = lstat(path, &st);

    free(path);
    return rc == 0 && S_ISREG(st.st_mode) ? st.st_size : 0;
}

static int resize(int fd, int64_t from, int64_t to)
{
    if (to <= from)
        return ftruncate(fd, to);
    if (fallocate(fd, 0, from, to - from) == 0)
        return 0;
    int why = errno;
    if (ftruncate(fd, from) == 0) /* some of it may have been found */
        errno = why;
    return -1;
}

int reserve_set(const char *dir, int64_t bytes, struct err *e)
{
    if (bytes == 0) {
        reserve_drop(dir);
        return 0;
    }
    int64_t now = reserve_size(dir);
    char *path = path_in(dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int rc = fd < 0 ? -1 : resize(fd, now, bytes);
    if (rc < 0)
        err_set(e, errno == EOPNOTSUPP || errno == ENOSYS ? EX_UNAVAILABLE : EX_IOERR,
                "cannot make the reserve %s: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    if (rc < 0 && now == 0)
        unlink(path);
    free(path);
    return rc;
}

int64_t reserve_free(const char *dir)
{
    struct statvfs fs;

    if (statvfs(dir, &fs) < 0 || fs.f_blocks == 0) /* some do not tell */
        return INT64_MAX;
    return (int64_t)(geteuid() == 0 ? fs.f_bfree : fs.f_bavail) * (int64_t)fs.f_frsize;
}

bool reserve_no_inodes(const char *dir)
{
    struct statvfs fs;

    return statvfs(dir, &fs) == 0 && fs.f_files > 0 && fs.f_favail == 0; /* 0 files: it has no such limit */
}

bool reserve_drop(const char *dir)
{
    char *path = path_in(dir);
    bool there = unlink(path) == 0;

    free(path);
    return there;
}
