#include "store/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/tree.h"
#include "store/backup_list.h"
#include "store/db.h"
#include "store/dir.h"

#define LOOK_CACHE (1 << 20)

struct backup {
    char *dir, *state_new;
    int lock_fd;
    struct backup_info old;
    struct backup_list old_files, files;
};

char *backup_state_path(const char *dir, unsigned number)
{
    return xasprintf("%s/state-%u", dir, number);
}

int backup_read(const char *dir, struct backup_info *out, struct err *e)
{
    return backup_list_read(dir, out, NULL, e);
}

int backup_check_files(const char *dir, struct err *e)
{
    struct backup_list l = {0};
    struct backup_info info;
    int rc = backup_list_read(dir, &info, &l, e);

    for (size_t i = 0; rc == 0 && i < l.n; i++) {
        struct stat st;
        char *path = xasprintf("%s/state-%u/%s", dir, info.number, l.files[i].name);
        if (lstat(path, &st) < 0)
            rc = errno == ENOENT || errno == ENOTDIR
                     ? err_set(e, EX_DATAERR, "%s is missing", path)
                     : err_set(e, EX_IOERR, "cannot look at %s: %s", path, strerror(errno));
        else if ((uint64_t)st.st_size != l.files[i].bytes)
            rc = err_set(e, EX_DATAERR, "%s has %llu bytes instead of %llu", path,
                         (unsigned long long)st.st_size, (unsigned long long)l.files[i].bytes);
        free(path);
    }
    backup_list_free(&l);
    return rc;
}

/* ---- beginning and ending ----------------------------------------------------------------------- */

/* Whether a name is one that a backup gives: state-NUMBER, BACKUP, either with .new behind it while it is made, and lock. */
static bool is_own_name(const char *name)
{
    static const char state[] = "state-";
    size_t n = strlen(name);

    if (n > 4 && !strcmp(name + n - 4, ".new"))
        n -= 4;
    if (!strncmp(name, state, sizeof(state) - 1) && n > sizeof(state) - 1)
        return strspn(name + sizeof(state) - 1, "0123456789") == n - (sizeof(state) - 1);
    return !strcmp(name, "lock") || (n == sizeof(BACKUP_FILE) - 1 && !strncmp(name, BACKUP_FILE, n));
}

static int is_ours(void *arg, const char *name, struct err *e)
{
    if (is_own_name(name))
        return 0;
    return err_set(e, EX_CANTCREAT,
                   "%s is no backup and not empty (it holds \"%s\"); name a directory of its own",
                   (const char *)arg, name);
}

/* Of ours all but BACKUP and its state. What somebody else put there stays. */
static int remove_leftover(void *arg, const char *name, struct err *e)
{
    const struct backup *b = arg;
    char state[32], *path;
    int rc;

    snprintf(state, sizeof(state), "state-%u", b->old.number);
    if (!is_own_name(name) || !strcmp(name, "lock") || !strcmp(name, BACKUP_FILE) ||
        (b->old.number && !strcmp(name, state)))
        return 0;
    path = xasprintf("%s/%s", b->dir, name);
    rc = tree_remove(path, e);
    free(path);
    return rc;
}

/* The directory is made, its parent is not: a parent that is missing is a disk that is not mounted, or a slip. */
static int need_parent(const char *dir, struct err *e)
{
    char *copy = xstrdup(dir), *parent = dirname(copy);
    int rc = 0;

    if (access(parent, F_OK) < 0)
        rc = err_set(e, EX_CANTCREAT, "%s: %s; mount it or make it first, then run this again", parent,
                     strerror(errno));
    free(copy);
    return rc;
}

static int begin(struct backup *b, struct err *e)
{
    struct err none = ERR_NONE;

    if (need_parent(b->dir, e) < 0 || file_make_dir(b->dir, 0700, e) < 0)
        return -1;
    if (backup_list_read(b->dir, &b->old, &b->old_files, &none) < 0) {
        if (none.exit_code == EX_DATAERR)
            return err_set(e, EX_CANTCREAT,
                           "nothing was changed: %.800s. For a new backup, move it away: mv %s %s.old",
                           none.text, b->dir, b->dir);
        if (none.exit_code != EX_NOINPUT) {
            *e = none;
            return err_prefix(e, "nothing was changed");
        }
        if (dir_each(b->dir, is_ours, b->dir, e))
            return -1;
    }
    b->lock_fd = store_dir_lock(b->dir, e);
    if (b->lock_fd < 0)
        return -1;
    backup_list_free(&b->old_files); /* once more, now that nobody changes it */
    b->old.number = 0;
    if (backup_list_read(b->dir, &b->old, &b->old_files, &none) < 0 && none.exit_code != EX_NOINPUT) {
        *e = none;
        return -1;
    }
    return dir_each(b->dir, remove_leftover, b, e) ? -1 : 0;
}

struct backup *backup_begin(const char *dir, struct err *e)
{
    struct backup *b = xcalloc(1, sizeof(*b));

    b->dir = xstrdup(dir);
    b->lock_fd = -1;
    if (begin(b, e) == 0) {
        b->state_new = xasprintf("%s/state-%u.new", dir, b->old.number + 1);
        return b;
    }
    backup_end(b);
    return NULL;
}

void backup_end(struct backup *b)
{
    struct err e = ERR_NONE;

    if (!b)
        return;
    if (b->state_new && tree_remove(b->state_new, &e) < 0)
        log_warn(NULL, "%s", e.text);
    if (b->lock_fd >= 0)
        close(b->lock_fd);
    backup_list_free(&b->old_files);
    backup_list_free(&b->files);
    free(b->state_new);
    free(b->dir);
    free(b);
}

const char *backup_new_state(const struct backup *b)
{
    return b->state_new;
}

/* ---- copying ------------------------------------------------------------------------------------ */

struct copy {
    struct backup *b;        /* NULL: only copies */
    struct backup_list live; /* tables in use */
    bool reuse;
    const char *from, *to; /* directories */
    struct backup_amount *amount;
};

static void is_live(void *arg, const char *name, uint64_t bytes)
{
    backup_list_add(arg, name, bytes, 0);
}

/* The same table as in the last state: linked. */
static bool link_old(struct copy *c, const char *relative, const struct stat *st, const char *to)
{
    const struct backup_file *old = backup_list_find(&c->b->old_files, relative);
    struct stat have;
    bool linked = false;

    if (!c->reuse || !old || old->bytes != (uint64_t)st->st_size || old->mtime_ns != backup_mtime(st))
        return false;
    char *path = xasprintf("%s/state-%u/%s", c->b->dir, c->b->old.number, relative);
    if (lstat(path, &have) == 0 && have.st_size == st->st_size)
        linked = file_link(path, to) == 0; /* a file system without links: copied */
    free(path);
    return linked;
}

/* One file; relative: to the spool's directory. */
static int copy_file(struct copy *c, const char *relative, bool table, struct err *e)
{
    char *from = xasprintf("%s/%s", c->from, relative), *to = xasprintf("%s/%s", c->to, relative);
    struct stat st;
    int rc = 0;

    if (lstat(from, &st) < 0)
        rc = err_set(e, errno == ENOENT ? EX_NOINPUT : EX_NOPERM, "cannot look at %s: %s", from,
                     strerror(errno));
    int64_t mtime = rc == 0 ? backup_mtime(&st) : 0;
    bool linked = rc == 0 && table && c->b && link_old(c, relative, &st, to);
    if (rc == 0 && !linked)
        rc = file_copy(from, to, e);
    if (rc == 0 && FAILPOINT("backup.copied"))
        rc = err_set(e, EX_IOERR, "cannot copy: failpoint");
    if (rc == 0 && lstat(to, &st) < 0) /* a log may have grown */
        rc = err_set(e, EX_IOERR, "cannot look at %s: %s", to, strerror(errno));
    if (rc == 0 && c->b)
        backup_list_add(&c->b->files, relative, (uint64_t)st.st_size, mtime);
    if (rc == 0 && c->amount) {
        *(linked ? &c->amount->reused : &c->amount->copied) += 1;
        *(linked ? &c->amount->reused_bytes : &c->amount->copied_bytes) += (uint64_t)st.st_size;
    }
    free(from);
    free(to);
    return rc;
}

/* What RocksDB needs to open: no lock, no log of its own, no table that is not in use. */
static int copy_database_file(void *arg, const char *name, struct err *e)
{
    struct copy *c = arg;
    const char *dot = strrchr(name, '.');
    bool table = dot && !strcmp(dot, ".sst");

    if (!strcmp(name, "LOCK") || !strncmp(name, "LOG", 3) || (dot && !strcmp(dot, ".dbtmp")) ||
        (table && !backup_list_find(&c->live, name)))
        return 0;
    char *relative = xasprintf("db/%s", name);
    int rc = copy_file(c, relative, table, e);
    free(relative);
    return rc;
}

static int copy_all(struct copy *c, struct err *e)
{
    char *from_db = xasprintf("%s/db", c->from), *to_db = xasprintf("%s/db", c->to);
    struct db *db = db_open(from_db, DB_LOOK, LOOK_CACHE, e);
    int rc = -1;

    if (db) {
        db_table_files(db, is_live, &c->live);
        db_close(db);
        rc = file_make_dir(to_db, 0700, e);
    }
    if (rc == 0)
        rc = dir_each(from_db, copy_database_file, c, e);
    if (rc == 0)
        rc = dir_sync(to_db, e);
    if (rc == 0)
        rc = copy_file(c, STORE_MARKER, false, e);
    if (rc == 0)
        rc = dir_sync(c->to, e);
    backup_list_free(&c->live);
    free(from_db);
    free(to_db);
    return rc ? -1 : 0;
}

int backup_copy(struct backup *b, const char *spool_dir, bool reuse, struct backup_amount *amount,
                struct err *e)
{
    struct copy c = {.b = b, .reuse = reuse, .from = spool_dir, .to = b->state_new, .amount = amount};

    *amount = (struct backup_amount){0};
    backup_list_free(&b->files);
    if (tree_remove(b->state_new, e) < 0 || file_make_dir(b->state_new, 0700, e) < 0)
        return -1;
    return copy_all(&c, e);
}

int backup_copy_out(const char *state, const char *to, struct err *e)
{
    struct copy c = {.from = state, .to = to};

    return copy_all(&c, e);
}

/* ---- publishing --------------------------------------------------------------------------------- */

int backup_publish(struct backup *b, const struct backup_info *info, struct err *e)
{
    struct backup_info next = *info;
    int rc = -1;

    next.number = b->old.number + 1;
    char *state = backup_state_path(b->dir, next.number);
    if (FAILPOINT("backup.before_publish"))
        err_set(e, EX_IOERR, "cannot publish the backup: failpoint");
    else if (file_rename(b->state_new, state) < 0)
        err_set(e, EX_IOERR, "cannot rename %s: %s", b->state_new, strerror(errno));
    else if (dir_sync(b->dir, e) == 0)
        rc = backup_list_write(b->dir, &next, &b->files, e);
    if (rc == 0) {
        (void)FAILPOINT("backup.after_publish");
        b->old = next;
        dir_each(b->dir, remove_leftover, b, NULL); /* what stays is removed by the next run */
    }
    free(state);
    return rc;
}
