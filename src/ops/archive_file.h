/* One file of the archive: opened, looked through for its whole members, appended to. For ops/archive.c and its test. */
#ifndef OPS_ARCHIVE_FILE_H
#define OPS_ARCHIVE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/err.h"

/* What the extra field of each member's gzip header holds: an own sign, by which members are found. */
#define ARCHIVE_SIGN "tg\x08\0spool 1\n"
#define ARCHIVE_SIGN_BYTES 12

struct archive_file {
    char *path; /* owned; NULL: closed */
    int fd;
    dev_t dev;
    ino_t ino;
    int64_t good; /* bytes of whole members */
    /* while it is looked through */
    bool scanning;
    int64_t at;
    bool in_member;
    z_stream inflater;
};

enum scanned {
    SCAN_WHOLE,
    SCAN_MORE,
    SCAN_FOREIGN /* damaged, or not ours: to be left alone */,
    SCAN_FAILED
};

/* Opens or makes it (0600). Returns 0, or -1 and e. */
int archive_file_open(struct archive_file *f, const char *dir, const char *name, struct err *e);
void archive_file_close(struct archive_file *f);
/* Looks through a part of it, until the clock (clock_boot_us) passes until_us; at its end cuts off a torn last member. */
enum scanned archive_file_scan(struct archive_file *f, int64_t until_us, struct err *e);
/* Whether its name still leads to it, and it ends where it was left. */
bool archive_file_is_same(const struct archive_file *f);
/* Appends a member and syncs. On failure -1 and e, and nothing of it is left as far as that can be done. */
int archive_file_append(struct archive_file *f, struct slice member, struct err *e);

#endif
