#include "store/repair.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/tree.h"
#include "store/dir.h"
#include "store/log_filter.h"

#define CACHE (8 << 20)
/* Files are numbered from 1 on. Added ones come behind, and the logs behind all tables. */
#define TABLE_BASE 800000000
#define LOG_BASE 900000000

const char *repair_way_text(enum repair_way w)
{
    static const char *const texts[REPAIR_WAYS] = {"as it is", "without damaged records of the log",
                                                   "with the log up to its damage",
                                                   "with a new index of its tables"};
    return texts[w];
}

/* ---- copying ------------------------------------------------------------------------------------ */

struct copy {
    const char *from, *to;
};

static bool ends_with(const char *name, const char *ending)
{
    size_t n = strlen(name), m = strlen(ending);
    return n > m && !strcmp(name + n - m, ending);
}

static int copy_one(void *arg, const char *name, struct err *e)
{
    struct copy *c = arg;
    bool table = ends_with(name, ".sst");
    int rc = 0;

    if (!strcmp(name, "LOCK") || !strncmp(name, "LOG", 3) || ends_with(name, ".dbtmp"))
        return 0;
    char *from = xasprintf("%s/%s", c->from, name), *to = xasprintf("%s/%s", c->to, name);
    if (!table || file_link(from, to) < 0)
        rc = file_copy(from, to, e);
    free(from);
    free(to);
    return rc;
}

/* ---- CURRENT ------------------------------------------------------------------------------------ */

struct newest {
    int64_t number;
    char name[64];
};

static int look_for_manifest(void *arg, const char *name, struct err *e)
{
    static const char front[] = "MANIFEST-";
    struct newest *n = arg;
    int64_t number;

    (void)e;
    if (!strncmp(name, front, sizeof(front) - 1) &&
        text_to_i64(slice_str(name + sizeof(front) - 1), 0, INT64_MAX, &number) == 0 && number > n->number) {
        n->number = number;
        snprintf(n->name, sizeof(n->name), "%s", name);
    }
    return 0;
}

/* Whether CURRENT names an index that is there: 1, 0, or -1 and e where it cannot be read. */
static int current_is_good(const char *db, struct err *e)
{
    char *path = xasprintf("%s/CURRENT", db);
    struct buf text = BUF_EMPTY;
    struct err why = ERR_NONE;
    int good = 0;

    if (file_read(path, 256, &text, &why) < 0 && why.exit_code == EX_IOERR) {
        good = err_set(e, EX_IOERR, "%s", why.text);
    } else if (text.n > 1 && text.p[text.n - 1] == '\n') {
        text.p[text.n - 1] = '\0';
        char *manifest = xasprintf("%s/%s", db, buf_str(&text));
        good = !strncmp(buf_str(&text), "MANIFEST-", 9) && access(manifest, F_OK) == 0;
        free(manifest);
    }
    buf_free(&text);
    free(path);
    return good;
}

static int mend_current(const char *db, struct err *e)
{
    struct newest n = {.number = -1};
    int good = current_is_good(db, e);

    if (good)
        return good < 0 ? -1 : 0;
    if (dir_each(db, look_for_manifest, &n, e) < 0)
        return -1;
    if (n.number < 0)
        return err_set(e, EX_DATAERR, "the database has no MANIFEST");
    char *path = xasprintf("%s/CURRENT", db), *text = xasprintf("%s\n", n.name);
    int rc = file_replace(path, slice_str(text), e);
    free(text);
    free(path);
    return rc;
}

/* ---- ways --------------------------------------------------------------------------------------- */

/* Opening a copy for writing puts what its log holds into tables. */
static int open_once(const char *db, enum db_mode mode, struct err *e)
{
    struct db *h = db_open(db, mode, CACHE, e);

    if (!h)
        return -1;
    db_close(h);
    return 0;
}

struct filtering {
    const char *db;
    unsigned *lost;
};

static int filter_log(void *arg, const char *name, struct err *e)
{
    const struct filtering *f = arg;
    char *path = xasprintf("%s/%s", f->db, name);
    int rc = ends_with(name, ".log") ? log_filter(path, f->lost, e) : 0;

    free(path);
    return rc;
}

/* The log's files without what is damaged in them. */
static int filter_logs(const char *db, unsigned *lost, struct err *e)
{
    struct filtering f = {db, lost};

    return dir_each(db, filter_log, &f, e);
}

struct moving {
    const char *from, *to;
    const char *ending;
    int64_t base; /* added to the number in the name */
};

static int move_one(void *arg, const char *name, struct err *e)
{
    const struct moving *m = arg;
    int64_t number;
    int rc = 0;

    if (!ends_with(name, m->ending) ||
        text_to_i64(slice_make(name, strcspn(name, ".")), 0, TABLE_BASE - 1, &number) < 0)
        return 0;
    char *from = xasprintf("%s/%s", m->from, name);
    char *to = xasprintf("%s/%06lld%s", m->to, (long long)(m->base + number), m->ending);
    if (file_rename(from, to) < 0)
        rc = err_set(e, EX_IOERR, "cannot move %s: %s", from, strerror(errno));
    free(from);
    free(to);
    return rc;
}

static int move_files(const char *from, const char *to, const char *ending, int64_t base, struct err *e)
{
    struct moving m = {from, to, ending, base};

    return dir_each(from, move_one, &m, e) ? -1 : 0;
}

/* Puts a row into every family, or takes it away: one that no other row is like. */
static int set_rows(const char *path, enum db_mode mode, bool there, struct err *e)
{
    const struct slice key = slice_make("", 1);
    struct db *db = db_open(path, mode, CACHE, e);

    if (!db)
        return -1;
    for (int f = 0; f < FAMILIES; f++)
        if (there)
            db_put(db, (enum family)f, key, slice_make("", 0));
        else
            db_delete(db, (enum family)f, key);
    int rc = db_write(db, true, e) == DB_WRITTEN ? 0 : -1;
    db_close(db);
    return rc;
}

/* A small table of each family, with the number that the family has in every spool. */
static int add_tables(const char *to, const char *db, struct err *e)
{
    char *other = xasprintf("%s/families", to);
    int rc = file_make_dir(other, 0700, e);

    if (rc == 0)
        rc = set_rows(other, DB_CREATE, true, e);
    if (rc == 0)
        rc = open_once(other, DB_OPEN, e);
    if (rc == 0)
        rc = move_files(other, db, ".sst", TABLE_BASE, e);
    if (tree_remove(other, rc == 0 ? e : NULL) < 0)
        rc = -1;
    free(other);
    return rc;
}

/* RocksDB's own repair knows the families only by their tables, and drops what the log holds of others. So the log is put
 * away, each family gets a table, the index is made, and then the log is read over it all. */
static int rebuild(const char *to, const char *db, unsigned *lost, struct err *e)
{
    char *aside = xasprintf("%s/logs", to);
    int rc = file_make_dir(aside, 0700, e);

    if (rc == 0)
        rc = move_files(db, aside, ".log", 0, e);
    if (rc == 0)
        rc = add_tables(to, db, e);
    if (rc == 0)
        rc = db_rebuild(db, e);
    if (rc == 0)
        rc = move_files(aside, db, ".log", LOG_BASE, e);
    if (rc == 0)
        rc = filter_logs(db, lost, e);
    if (rc == 0)
        rc = set_rows(db, DB_SKIP, false, e);
    if (rc == 0)
        rc = open_once(db, DB_OPEN, e);
    if (tree_remove(aside, rc == 0 ? e : NULL) < 0)
        rc = -1;
    free(aside);
    return rc ? -1 : 0;
}

static int open_way(const char *db, enum repair_way way, unsigned *lost, struct err *e)
{
    if (mend_current(db, e) < 0)
        return -1;
    if (way == REPAIR_SKIPPING && filter_logs(db, lost, e))
        return -1;
    *lost += way == REPAIR_TO_DAMAGE;
    return open_once(db, way == REPAIR_AS_IT_IS ? DB_OPEN : way == REPAIR_SKIPPING ? DB_SKIP : DB_POINT, e);
}

int repair_try(const char *dir, enum repair_way way, const char *to, unsigned *lost, struct err *e)
{
    char *from_db = xasprintf("%s/db", dir), *to_db = xasprintf("%s/db", to);
    struct copy c = {from_db, to_db};
    struct err none = ERR_NONE;
    int rc = file_make_dir(to_db, 0700, e);

    *lost = 0;
    int schema = 0;
    if (store_dir_schema(dir, &schema, &none) < 0 && none.exit_code == EX_IOERR)
        rc = err_set(e, EX_IOERR, "%s", none.text);
    else if (!schema)
        schema = STORE_SCHEMA; /* the marker is damaged, too */
    if (rc == 0)
        rc = dir_each(from_db, copy_one, &c, e);
    if (rc == 0)
        rc = way == REPAIR_REBUILT ? rebuild(to, to_db, lost, e) : open_way(to_db, way, lost, e);
    if (rc == 0)
        rc = store_dir_mark(to, schema, e);
    free(from_db);
    free(to_db);
    return rc ? -1 : 0;
}

void repair_count(const char *dir, struct repair_rows *out)
{
    char *path = xasprintf("%s/db", dir);
    struct err e = ERR_NONE;
    struct db *db = db_open(path, DB_LOOK, CACHE, &e);

    *out = (struct repair_rows){.opens = db != NULL};
    for (int f = 0; db && f < FAMILIES; f++)
        out->whole[f] = db_scan(db, (enum family)f, &out->n[f], &e) == 0;
    if (db)
        db_close(db);
    free(path);
}
