/* The disk under the spool: how much room is free, how large the database is, and whether intake has to wait for
 * either. Below spool.min_free, at spool.max_db, and while the reserve is used up, nothing new is taken in; what is
 * there is delivered and ended, for which there must be room. */
#ifndef OPS_DISK_H
#define OPS_DISK_H

#include <stdbool.h>
#include <stdint.h>

struct config;
struct disk;

/* What a look at the disk finds. Returns 0, or -1 with errno. */
struct disk_space {
    int64_t free_bytes, total_bytes; /* of the file system; free: to whoever is not root */
};
typedef int disk_look_fn(const char *dir, struct disk_space *out);

struct disk_state {
    bool known; /* a look succeeded: the numbers are those of the latest */
    int64_t free_bytes, total_bytes;
    int64_t db_bytes;      /* what the files in db/ hold */
    int64_t reserve_bytes; /* what the reserve takes; 0: there is none */
    int64_t low_since;     /* too little is free; 0: there is enough */
    int64_t full_since;    /* the database is at max_db; 0: it is not */
    int64_t filling_since; /* it is above 90 % of max_db; 0: it is not */
    char why[200];         /* why intake is held; "": it is not */
};

/* dir: spool.dir, open (so that its marker is there). look NULL: statvfs(3). */
struct disk *disk_new(const char *dir, disk_look_fn *look);
void disk_free(struct disk *d); /* the reserve stays */
/* Takes over min_free, max_db and reserve, at the start and after a reload. */
void disk_configure(struct disk *d, const struct config *c);

/* Looks, if it is time: each second while something is written (`written` grows) or intake is held, else each ten.
 * Makes the reserve when there is room for it. Tells in the log what changed. Returns when it wants to be called
 * again at the latest. */
int64_t disk_tick(struct disk *d, uint64_t written, int64_t now);
const struct disk_state *disk_state(const struct disk *d);

#endif
