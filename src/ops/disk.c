/* Two marks, each with a margin before intake goes on, so that it does not flap. Numbers of the database's size come
 * from its directory: tables and log together. */
#include "ops/disk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "core/config.h"
#include "store/dir.h"
#include "store/reserve.h"

#define LOOK_ACTIVE SECONDS(1)
#define LOOK_IDLE SECONDS(10)
#define LOOKS_A_SCAN 5 /* the directory is read at every fifth look */
#define RESERVE_MOST (INT64_C(64) << 20)
#define RESERVE_STEP (INT64_C(8) << 20) /* a turn: tmpfs clears every page of it */

struct disk {
    char *dir, *db_path;
    disk_look_fn *look;
    int64_t min_free, max_db, reserve; /* of the config */
    struct disk_state state;
    int64_t look_at, looked_at;
    uint64_t written;
    unsigned looks;      /* until the next scan */
    bool blind;          /* the last look failed: told */
    bool no_reserve;     /* the file system cannot make one */
    bool reserve_failed; /* it could not be made the last time: told */
};

static int look_statvfs(const char *dir, struct disk_space *out)
{
    struct statvfs fs;

    if (statvfs(dir, &fs) < 0)
        return -1;
    errno = ENOTSUP;
    if (fs.f_blocks == 0) /* some file systems do not tell */
        return -1;
    out->free_bytes = (int64_t)fs.f_bavail * (int64_t)fs.f_frsize;
    out->total_bytes = (int64_t)fs.f_blocks * (int64_t)fs.f_frsize;
    return 0;
}

struct disk *disk_new(const char *dir, disk_look_fn *look)
{
    struct disk *d = xcalloc(1, sizeof(*d));

    d->dir = xstrdup(dir);
    d->db_path = xasprintf("%s/db", dir);
    d->look = look ? look : look_statvfs;
    return d;
}

void disk_free(struct disk *d)
{
    if (!d)
        return;
    free(d->dir);
    free(d->db_path);
    free(d);
}

void disk_configure(struct disk *d, const struct config *c)
{
    d->min_free = c->min_free;
    d->max_db = c->max_db;
    d->reserve = c->reserve;
    d->look_at = 0;
}

const struct disk_state *disk_state(const struct disk *d)
{
    return &d->state;
}

/* ---- looking ------------------------------------------------------------------------------------ */

static int look(struct disk *d)
{
    struct disk_space space;

    if (d->look(d->dir, &space) < 0) {
        if (!d->blind)
            log_warn(NULL, "cannot see how full the disk of %s is: %s; to see it, run: df %s", d->dir,
                     strerror(errno), d->dir);
        d->blind = true;
        return -1;
    }
    d->blind = false;
    d->state.known = true;
    d->state.free_bytes = space.free_bytes;
    d->state.total_bytes = space.total_bytes;
    d->state.reserve_bytes = reserve_size(d->dir);
    if (d->looks-- == 0) {
        d->state.db_bytes = store_dir_bytes(d->db_path);
        d->looks = LOOKS_A_SCAN - 1;
    }
    return 0;
}

/* ---- the reserve -------------------------------------------------------------------------------- */

static int64_t wanted_reserve(const struct disk *d)
{
    if (d->no_reserve)
        return 0;
    if (d->reserve != RESERVE_AUTO)
        return d->reserve;
    int64_t part = d->state.total_bytes / 20;
    return part < RESERVE_MOST ? part : RESERVE_MOST;
}

/* What must be free for intake: while it is held a tenth more. Where the reserve is still to be made, its room too, and
 * as much beside it: it was perhaps just given up, and is not to take that room away again. */
static int64_t needed(const struct disk *d)
{
    int64_t wanted = wanted_reserve(d), missing = wanted - d->state.reserve_bytes;
    int64_t needs = d->min_free + (d->state.low_since ? d->min_free / 10 : 0);

    if (missing <= 0)
        return needs;
    return (needs > wanted ? needs : wanted) + missing;
}

/* Brings the reserve a step nearer to its size. Returns whether there is more to do. */
static bool tend_reserve(struct disk *d)
{
    int64_t wanted = wanted_reserve(d), is = d->state.reserve_bytes;
    struct err e = ERR_NONE;

    if (is == wanted || (is < wanted && d->state.free_bytes < needed(d)))
        return false;
    int64_t next = wanted - is > RESERVE_STEP ? is + RESERVE_STEP : wanted;
    if (reserve_set(d->dir, next, &e) < 0) {
        d->no_reserve = e.exit_code == EX_UNAVAILABLE;
        if (!d->reserve_failed)
            log_warn(NULL, "%s; a full disk may need your hand. To see how full it is, run: df -h %s", e.text,
                     d->dir);
        d->reserve_failed = true;
        return false;
    }
    d->reserve_failed = false;
    d->state.free_bytes -= next - is;
    d->state.reserve_bytes = next;
    return next != wanted;
}

/* ---- judging ------------------------------------------------------------------------------------ */

/* Notes since when something is so; returns whether that changed. */
static bool note(int64_t *since, bool is, int64_t now)
{
    bool was = *since != 0;

    if (is != was)
        *since = is ? now : 0;
    return is != was;
}

static void judge_free(struct disk *d, int64_t now)
{
    struct disk_state *s = &d->state;
    char is[32], need[32];
    bool changed = note(&s->low_since, s->free_bytes < needed(d), now);

    text_bytes(s->free_bytes, is);
    text_bytes(needed(d), need); /* with the margin, as it is held now */
    if (changed) {
        if (s->low_since)
            log_warn(
                NULL,
                "intake stops: the disk has %s free and needs %s; handlers go on. Make room; to see what "
                "takes it, run: df -h %s",
                is, need, d->dir);
        else
            log_info(NULL, "the disk has room again, %s", is);
    }
    if (s->low_since)
        snprintf(s->why, sizeof(s->why), "the disk has %s free, needs %s", is, need);
}

static void judge_size(struct disk *d, int64_t now)
{
    struct disk_state *s = &d->state;
    char is[32], most[32];
    int64_t tenth = d->max_db / 10, mark = s->full_since ? d->max_db - tenth / 2 : d->max_db;
    bool was_filling = s->filling_since != 0;

    text_bytes(s->db_bytes, is);
    text_bytes(d->max_db, most);
    note(&s->filling_since, d->max_db && s->db_bytes >= d->max_db - tenth, now);
    if (note(&s->full_since, d->max_db && s->db_bytes >= mark, now)) {
        if (s->full_since)
            log_warn(
                NULL,
                "intake stops: the database has %s, spool.max_db is %s; handlers go on. Raise max_db, or see "
                "what waits: run tgspool status",
                is, most);
        else
            log_info(NULL, "the database is small enough again, %s", is);
    } else if (s->filling_since && !was_filling) {
        log_warn(
            NULL,
            "the database has %s; intake stops at spool.max_db, %s. To see what waits, run: tgspool status",
            is, most);
    }
    if (s->full_since && !s->low_since)
        snprintf(s->why, sizeof(s->why), "the database has %s, spool.max_db is %s", is, most);
}

int64_t disk_tick(struct disk *d, uint64_t written, int64_t now)
{
    bool active = written != d->written;

    if (active && d->look_at > d->looked_at + LOOK_ACTIVE)
        d->look_at = d->looked_at + LOOK_ACTIVE; /* it was idle until now */
    if (now < d->look_at)
        return d->look_at;
    d->written = written;
    d->looked_at = now;
    d->look_at = now + LOOK_ACTIVE;
    if (look(d) < 0)
        return d->look_at;
    bool more = tend_reserve(d);
    d->state.why[0] = '\0';
    judge_free(d, now);
    judge_size(d, now);
    if (more)
        d->look_at = now;
    else if (!active && !d->state.why[0])
        d->look_at = now + LOOK_IDLE;
    return d->look_at;
}
