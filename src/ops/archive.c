#include "ops/archive.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "ops/archive_file.h"

#define STEP_US 4000
#define CHUNK (16u << 10)     /* compressed between two looks at the clock */
#define NAMES_MAX 100         /* of a day: more damaged files than that, and it fails */
#define GZIP_WINDOW (15 + 16) /* zlib's way to say: gzip */

struct archive {
    char *dir;
    int64_t day;     /* days since 1970, of file */
    unsigned number; /* of the name: 0, or how many files of the day were left alone */
    struct archive_file file;
    /* the member in the making */
    bool packing;
    z_stream deflater;
    gz_header header;
    unsigned char sign[ARCHIVE_SIGN_BYTES];
    size_t packed; /* bytes of the lines */
    struct buf member;
};

static int check_dir(const char *dir, struct err *e)
{
    if (file_make_dir(dir, 0700, e) < 0) {
        e->exit_code = EX_CANTCREAT;
        return -1;
    }
    if (access(dir, R_OK | W_OK | X_OK) < 0)
        return err_set(e, errno == EACCES ? EX_NOPERM : EX_CANTCREAT, "cannot write in %s: %s", dir,
                       strerror(errno));
    return 0;
}

struct archive *archive_new(const char *dir, struct err *e)
{
    if (check_dir(dir, e) < 0)
        return NULL;
    struct archive *a = xcalloc(1, sizeof(*a));
    a->dir = xstrdup(dir);
    a->day = -1;
    a->file.fd = -1;
    return a;
}

static void drop_member(struct archive *a)
{
    if (a->packing)
        deflateEnd(&a->deflater);
    a->packing = false;
    buf_free(&a->member);
}

void archive_free(struct archive *a)
{
    if (!a)
        return;
    drop_member(a);
    archive_file_close(&a->file);
    free(a->dir);
    free(a);
}

static int open_day(struct archive *a, int64_t day, struct err *e)
{
    time_t t = (time_t)(day * 86400);
    char date[32], name[64], number[16] = "";
    struct tm tm;

    if (day != a->day)
        a->number = 0;
    a->day = day;
    gmtime_r(&t, &tm);
    strftime(date, sizeof(date), "%Y-%m-%d", &tm);
    if (a->number)
        snprintf(number, sizeof(number), ".%u", a->number);
    snprintf(name, sizeof(name), "%s%s.jsonl.gz", date, number);
    return archive_file_open(&a->file, a->dir, name, e);
}

/* The file of the day, ready to be appended to. */
static enum archived make_ready(struct archive *a, int64_t now, int64_t until_us, struct err *e)
{
    int64_t day = now / HOURS(24);

    if (a->file.path && (day != a->day || !archive_file_is_same(&a->file)))
        archive_file_close(&a->file);
    if (!a->file.path && open_day(a, day, e) < 0)
        return ARCHIVE_FAILED;
    switch (archive_file_scan(&a->file, until_us, e)) {
    case SCAN_WHOLE:
        return ARCHIVE_DONE;
    case SCAN_MORE:
        return ARCHIVE_BUSY;
    case SCAN_FAILED:
        return ARCHIVE_FAILED;
    case SCAN_FOREIGN:
        break;
    }
    if (a->number + 1 == NAMES_MAX) {
        err_set(e, EX_IOERR, "%s is damaged, as are %d others of the day", a->file.path, NAMES_MAX - 1);
        return ARCHIVE_FAILED;
    }
    log_warn(NULL, "%s is damaged, or not written by tgspool; it stays as it is, and another file is begun",
             a->file.path);
    archive_file_close(&a->file);
    a->number++;
    return ARCHIVE_BUSY;
}

static int pack_begin(struct archive *a, struct err *e)
{
    memset(&a->deflater, 0, sizeof(a->deflater));
    if (deflateInit2(&a->deflater, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return err_set(e, EX_SOFTWARE, "zlib cannot be used");
    memcpy(a->sign, ARCHIVE_SIGN, sizeof(a->sign));
    a->header = (gz_header){.extra = a->sign, .extra_len = sizeof(a->sign), .os = 255};
    deflateSetHeader(&a->deflater, &a->header);
    a->packing = true;
    a->packed = 0;
    return 0;
}

/* Compresses a part of the lines. Returns whether the member is whole. */
static bool pack_some(struct archive *a, struct slice lines, int64_t until_us)
{
    z_stream *z = &a->deflater;

    for (;;) {
        size_t n = lines.n - a->packed < CHUNK ? lines.n - a->packed : CHUNK;
        bool last = a->packed + n == lines.n;
        int rc;
        z->next_in = (unsigned char *)(uintptr_t)(lines.p + a->packed);
        z->avail_in = (unsigned)n;
        do {
            z->next_out = (unsigned char *)buf_reserve(&a->member, CHUNK);
            z->avail_out = CHUNK;
            rc = deflate(z, last ? Z_FINISH : Z_NO_FLUSH);
            buf_added(&a->member, CHUNK - z->avail_out);
        } while (z->avail_out == 0 && rc != Z_STREAM_END);
        a->packed += n;
        if (last)
            return true;
        if (clock_boot_us() >= until_us)
            return false;
    }
}

enum archived archive_step(void *arg, struct slice lines, int64_t now, struct err *e)
{
    struct archive *a = arg;
    int64_t until_us = clock_boot_us() + STEP_US;

    if (!a->packing) {
        enum archived ready = make_ready(a, now, until_us, e);
        if (ready == ARCHIVE_FAILED)
            archive_file_close(&a->file);
        if (ready != ARCHIVE_DONE)
            return ready;
        if (pack_begin(a, e) < 0)
            return ARCHIVE_FAILED;
    }
    if (!pack_some(a, lines, until_us))
        return ARCHIVE_BUSY;
    int rc = archive_file_append(&a->file, buf_slice(&a->member), e);
    drop_member(a);
    if (rc < 0) {
        archive_file_close(&a->file);
        return ARCHIVE_FAILED;
    }
    if (FAILPOINT("archive.after_sync")) {
        err_set(e, EX_IOERR, "failpoint after the sync");
        return ARCHIVE_FAILED;
    }
    return ARCHIVE_DONE;
}
