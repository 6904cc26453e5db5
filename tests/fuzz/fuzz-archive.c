/* A file of the archive, of any bytes: it is looked through for its whole members. What is found to be good must be found so
 * again, and what is appended behind it must be read as one more member; what is none of ours must be left as it is. */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "fuzz.h"
#include "ops/archive_file.h"

/* As the archive writes it, of no line. */
static const char member[] = "\x1f\x8b\x08\x04\0\0\0\0\0\xff\x0c\0" ARCHIVE_SIGN;
static const char empty[] = "\x03\0\0\0\0\0\0\0\0\0"; /* deflated: nothing; its CRC-32, its length */

static int64_t size_of(int fd)
{
    struct stat st;

    CHECK(fstat(fd, &st) == 0);
    return st.st_size;
}

static void append(struct archive_file *f)
{
    struct buf m = BUF_EMPTY;
    struct err e = ERR_NONE;
    int64_t before = f->good;

    buf_add(&m, member, sizeof(member) - 1);
    buf_add(&m, empty, sizeof(empty) - 1);
    CHECK(archive_file_append(f, buf_slice(&m), &e) == 0);
    CHECK(f->good == before + (int64_t)m.n && size_of(f->fd) == f->good);
    buf_free(&m);
}

/* A file that is in memory only, by a descriptor of its own. */
static enum scanned scan(int fd, struct archive_file *f, int64_t until_us)
{
    *f = (struct archive_file){.path = strdup("file"), .fd = dup(fd), .scanning = true};
    CHECK(f->path && f->fd >= 0 && inflateInit2(&f->inflater, 15 + 16) == Z_OK);
    struct err e = ERR_NONE;
    enum scanned rc;
    while ((rc = archive_file_scan(f, until_us, &e)) == SCAN_MORE)
        ;
    CHECK(rc == SCAN_WHOLE || rc == SCAN_FOREIGN);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct archive_file f, again;
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    CHECK(fd >= 0 && write(fd, data, n) == (ssize_t)n);
    enum scanned rc = scan(fd, &f, INT64_MAX);
    CHECK(f.good >= 0 && f.good <= (int64_t)n);
    if (rc == SCAN_FOREIGN) {
        CHECK(size_of(fd) == (int64_t)n);
    } else {
        CHECK(size_of(fd) == f.good);
        append(&f);
        CHECK(scan(fd, &again, 0) == SCAN_WHOLE && again.good == f.good);
        archive_file_close(&again);
    }
    archive_file_close(&f);
    close(fd);
    return 0;
}
