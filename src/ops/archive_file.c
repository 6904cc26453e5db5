#include "ops/archive_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/mem.h"

#define CHUNK (32u << 10)
#define GZIP_WINDOW (15 + 16) /* zlib's way to say: gzip */

static const unsigned char gzip_magic[] = {0x1f, 0x8b, 0x08, 0x04}; /* with an extra field */

static int fail(struct err *e, const char *verb, const char *path)
{
    return err_set(e, errno == EACCES || errno == EPERM ? EX_NOPERM : EX_IOERR, "cannot %s %s: %s", verb,
                   path, strerror(errno));
}

static int look(struct archive_file *f, int dir_fd, struct err *e)
{
    struct stat st;

    if (fstat(f->fd, &st) < 0)
        return fail(e, "look at", f->path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, EX_IOERR, "%s is no file", f->path);
    f->dev = st.st_dev;
    f->ino = st.st_ino;
    if (st.st_size == 0 && fsync(dir_fd) < 0) /* its name must last, too */
        return fail(e, "sync the directory of", f->path);
    memset(&f->inflater, 0, sizeof(f->inflater));
    if (inflateInit2(&f->inflater, GZIP_WINDOW) != Z_OK)
        return err_set(e, EX_SOFTWARE, "zlib cannot be used");
    f->scanning = true;
    return 0;
}

int archive_file_open(struct archive_file *f, const char *dir, const char *name, struct err *e)
{
    int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = -1;

    *f = (struct archive_file){.path = xasprintf("%s/%s", dir, name), .fd = -1};
    int pretend = FAILPOINT("archive.open");
    if (dir_fd < 0 || pretend) {
        errno = pretend ? pretend : errno;
        fail(e, "open", dir);
    } else {
        f->fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
        rc = f->fd < 0 ? fail(e, "open", f->path) : look(f, dir_fd, e);
    }
    if (dir_fd >= 0)
        close(dir_fd);
    if (rc < 0)
        archive_file_close(f);
    return rc;
}

void archive_file_close(struct archive_file *f)
{
    if (!f->path)
        return;
    if (f->scanning)
        inflateEnd(&f->inflater);
    if (f->fd >= 0)
        close(f->fd);
    free(f->path);
    *f = (struct archive_file){.fd = -1};
}

static int64_t size_of(const struct archive_file *f)
{
    struct stat st;
    return fstat(f->fd, &st) < 0 ? -1 : (int64_t)st.st_size;
}

/* ---- looking through ---------------------------------------------------------------------------- */

/* Fewer bytes than n only at the end: in front of a sector that cannot be read, the first read is short. */
static ssize_t read_at(const struct archive_file *f, void *out, size_t n, int64_t at)
{
    return lseek(f->fd, at, SEEK_SET) < 0 ? -1 : file_read_block(f->fd, out, n);
}

/* Whether a member of ours begins somewhere behind the first byte of what follows the whole members: then that is
 * damage in the middle. 1, 0 or -1. */
static int another_behind(const struct archive_file *f)
{
    char window[CHUNK];
    int64_t at = f->good + (int64_t)sizeof(gzip_magic) + ARCHIVE_SIGN_BYTES;

    for (;;) {
        ssize_t n = read_at(f, window, sizeof(window), at);
        if (n < 0)
            return -1;
        if (n < ARCHIVE_SIGN_BYTES)
            return 0;
        if (memmem(window, (size_t)n, ARCHIVE_SIGN, ARCHIVE_SIGN_BYTES))
            return 1;
        at += n - ARCHIVE_SIGN_BYTES + 1;
    }
}

/* What follows the whole members: cut off if it is what a crash leaves of a member, or zeros instead of it. */
static enum scanned cut(struct archive_file *f, struct err *e)
{
    unsigned char start[sizeof(gzip_magic)] = {0};
    static const unsigned char zeros[sizeof(gzip_magic)];
    ssize_t n = read_at(f, start, sizeof(start), f->good);
    int behind = n < 0 ? -1 : another_behind(f);

    if (behind < 0) {
        fail(e, "read", f->path);
        return SCAN_FAILED;
    }
    if (behind || (memcmp(start, gzip_magic, (size_t)n) && memcmp(start, zeros, (size_t)n)))
        return SCAN_FOREIGN;
    if (ftruncate(f->fd, f->good) < 0 || fsync(f->fd) < 0) {
        fail(e, "cut", f->path);
        return SCAN_FAILED;
    }
    return SCAN_WHOLE;
}

/* Reads on in what is in `chunk`. Returns false where it is no gzip. */
static bool scan_chunk(struct archive_file *f, unsigned char *chunk, size_t n)
{
    unsigned char out[CHUNK];
    z_stream *z = &f->inflater;

    z->next_in = chunk;
    z->avail_in = (unsigned)n;
    while (z->avail_in > 0) {
        z->next_out = out;
        z->avail_out = sizeof(out);
        f->in_member = true;
        int rc = inflate(z, Z_NO_FLUSH);
        if (rc != Z_OK && rc != Z_STREAM_END)
            return false;
        if (rc == Z_STREAM_END) {
            f->good = f->at + (int64_t)(n - z->avail_in);
            f->in_member = false;
            inflateReset(z);
        }
    }
    f->at += (int64_t)n;
    return true;
}

enum scanned archive_file_scan(struct archive_file *f, int64_t until_us, struct err *e)
{
    unsigned char chunk[CHUNK];
    enum scanned rc = SCAN_WHOLE;

    while (f->scanning) {
        ssize_t n = read_at(f, chunk, sizeof(chunk), f->at);
        if (n < 0) {
            fail(e, "read", f->path);
            return SCAN_FAILED;
        }
        if (n == 0 || !scan_chunk(f, chunk, (size_t)n)) {
            inflateEnd(&f->inflater);
            f->scanning = false;
            rc = n == 0 && !f->in_member ? SCAN_WHOLE : cut(f, e);
        } else if (clock_boot_us() >= until_us) {
            return SCAN_MORE;
        }
    }
    return rc;
}

/* ---- appending ---------------------------------------------------------------------------------- */

bool archive_file_is_same(const struct archive_file *f)
{
    struct stat st;

    return stat(f->path, &st) == 0 && st.st_dev == f->dev && st.st_ino == f->ino &&
           (f->scanning || st.st_size == f->good);
}

static int write_all(struct archive_file *f, struct slice s)
{
    int64_t at = f->good;

    while (s.n > 0) {
        int pretend = FAILPOINT("archive.write");
        size_t some = pretend ? s.n / 2 : s.n; /* the disk becomes full in the middle */
        ssize_t n = pwrite(f->fd, s.p, some, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0 || pretend) {
            errno = pretend ? pretend : n == 0 ? ENOSPC : errno;
            return -1;
        }
        s.p += n;
        s.n -= (size_t)n;
        at += n;
    }
    errno = FAILPOINT("archive.sync");
    return errno || fsync(f->fd) < 0 ? -1 : 0;
}

int archive_file_append(struct archive_file *f, struct slice member, struct err *e)
{
    if (write_all(f, member) < 0) {
        fail(e, "write", f->path);
        if (size_of(f) > f->good && ftruncate(f->fd, f->good) < 0)
            err_prefix(e, "cannot cut off what was written"); /* the next look does */
        return -1;
    }
    f->good += (int64_t)member.n;
    return 0;
}
