/* The spool's directory. `create_if_missing` on a directory that lost its CURRENT would wipe it: so a
 * database is made only where the marker says that none ever was. */
#include "store/dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/tree.h"
#include "store/log_tail.h"
#include "store/marker.h"
#include "store/reserve.h"
#include "store/swap.h"

#define MARKER STORE_MARKER

static int io_error(struct err *e, const char *verb, const char *path)
{
    return err_set(e, errno == EACCES || errno == EPERM ? EX_NOPERM : EX_IOERR, "cannot %s %s: %s", verb,
                   path, strerror(errno));
}

/* The pid that the holder of a lock wrote, 0 if it is not there. */
static long lock_holder(int fd)
{
    char text[32] = "";
    int64_t pid;

    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    struct slice s = slice_make(text, n > 0 ? strcspn(text, "\n") : 0);
    return text_to_i64(s, 1, INT32_MAX, &pid) == 0 ? (long)pid : 0;
}

/* An open file description lock: gone with the process, not copied by fork and exec (O_CLOEXEC), and not lost
 * when some other part of the process closes the same file. */
static bool try_lock(int fd, short type)
{
    struct flock l = {.l_type = type, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_SETLK, &l) == 0;
}

int store_dir_lock(const char *dir, struct err *e)
{
    char *path = xasprintf("%s/lock", dir);
    char pid[32];
    bool ok = false;

    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        io_error(e, "open", path);
    } else if (!try_lock(fd, F_WRLCK)) {
        long holder = lock_holder(fd);
        if (holder)
            err_set(e, EX_TEMPFAIL, "%s is in use by process %ld; use that one, or end it first", dir,
                    holder);
        else
            err_set(e, EX_TEMPFAIL, "%s is in use by another process", dir);
    } else {
        int n = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
        if (ftruncate(fd, 0) < 0 || pwrite(fd, pid, (size_t)n, 0) != n)
            io_error(e, "write", path);
        else
            ok = true;
    }
    if (!ok && fd >= 0)
        close(fd);
    free(path);
    return ok ? fd : -1;
}

bool store_dir_is_aside(const char *name)
{
    return !strcmp(name, "lock") || !strcmp(name, STORE_ALERTED) || !strcmp(name, RESERVE_NAME);
}

/* What is looked through. */
struct place {
    const char *path;    /* of the spool */
    const char *db_path; /* of the database in it */
    char foreign[256];   /* a name in there that is none of RocksDB's; "": none */
};

/* Something other than the lock and what a half-made spool has. */
static int must_be_own(void *arg, const char *n, struct err *e)
{
    const struct place *p = arg;

    if (!strcmp(n, SWAP_PREPARING))
        return err_set(e, EX_CONFIG, "a `tgspool restore` or `repair` of %s did not end: run it again",
                       p->path);
    if (strcmp(n, "db") && strcmp(n, MARKER ".new") && strcmp(n, SWAP_READY) && !store_dir_is_aside(n))
        return err_set(
            e, EX_CONFIG,
            "%s is no spool and not empty (it holds \"%s\"); give spool.dir a directory of its own", p->path,
            n);
    return 0;
}

static int check_empty(const char *path, struct err *e)
{
    struct place p = {.path = path};

    return dir_each(path, must_be_own, &p, e);
}

/* Whether a file of the database holds rows: a table, or a log that was written to. */
static bool has_rows(const char *db_path, const char *name)
{
    const char *dot = strrchr(name, '.');
    struct stat st;

    if (!dot)
        return false;
    char *path = xasprintf("%s/%s", db_path, name);
    bool rows = !strcmp(dot, ".sst") || (!strcmp(dot, ".log") && (lstat(path, &st) < 0 || st.st_size > 0));
    free(path);
    return rows;
}

/* Whether a name is one that RocksDB gives its files. */
static bool is_rocksdb_name(const char *name)
{
    static const char *const starts[] = {"CURRENT", "IDENTITY", "LOCK", "LOG", "MANIFEST-", "OPTIONS-"};

    for (size_t i = 0; i < ARRAY_LEN(starts); i++)
        if (!strncmp(name, starts[i], strlen(starts[i])))
            return true;
    const char *dot = name + strspn(name, "0123456789");
    return dot > name && (!strcmp(dot, ".log") || !strcmp(dot, ".sst") || !strcmp(dot, ".dbtmp"));
}

/* A database without marker was never finished, and has no rows: nothing in it was ever acknowledged. One with rows has
 * lost its marker, and one with other files is not ours: both stay as they are. */
static int look_at_half_made(void *arg, const char *name, struct err *e)
{
    struct place *p = arg;

    if (!is_rocksdb_name(name))
        snprintf(p->foreign, sizeof(p->foreign), "%s", name);
    else if (has_rows(p->db_path, name))
        return err_set(e, EX_DATAERR,
                       "%s/" MARKER " is gone, but there is a spool's database with it: nothing was touched; "
                       "put that file back, or restore the spool from a backup",
                       p->path);
    return 0;
}

static int remove_half_made(void *arg, const char *name, struct err *e)
{
    const struct place *p = arg;
    char *path = xasprintf("%s/%s", p->db_path, name);
    int rc = is_rocksdb_name(name) && unlink(path) < 0 ? io_error(e, "remove", path) : 0;

    free(path);
    return rc;
}

/* Looks at what may stand in db/ without a marker; removes it if told to. */
static int half_made(const char *path, bool remove, struct err *e)
{
    char *db_path = xasprintf("%s/db", path);
    struct place p = {.path = path, .db_path = db_path};
    int rc = 0;

    if (access(db_path, F_OK) == 0 || errno != ENOENT)
        rc = dir_each(db_path, look_at_half_made, &p, e);
    if (rc == 0 && p.foreign[0])
        rc = err_set(e, EX_CONFIG,
                     "%s holds \"%s\", which is no part of a spool; give spool.dir a directory of its own",
                     db_path, p.foreign);
    if (rc == 0 && remove && access(db_path, F_OK) == 0)
        rc = dir_each(db_path, remove_half_made, &p, e);
    free(db_path);
    return rc;
}

/* The schema that the marker tells, 0 if there is no marker. */
int store_dir_schema(const char *dir, int *out, struct err *e)
{
    char *path = xasprintf("%s/" MARKER, dir);
    struct buf text = BUF_EMPTY;
    int schema, rc = -1;

    *out = 0;
    if (access(path, F_OK) < 0 && (errno == ENOENT || errno == ENOTDIR)) {
        rc = 0;
    } else if (file_read(path, 256, &text, e) == 0) {
        if (!marker_read(buf_slice(&text), &schema))
            err_set(e, EX_DATAERR, "%s is damaged; restore the spool from a backup", path);
        else if (schema > STORE_SCHEMA)
            err_set(e, EX_CONFIG,
                    "%s was written by a newer tgspool (schema %d, this one knows %d); nothing was "
                    "touched: install that version again",
                    dir, schema, STORE_SCHEMA);
        else
            *out = schema;
        rc = *out ? 0 : -1;
    }
    buf_free(&text);
    free(path);
    return rc;
}

int store_dir_open(const char *path, struct store_dir *out, struct err *e)
{
    *out = (struct store_dir){.path = xstrdup(path), .db_path = xasprintf("%s/db", path), .lock_fd = -1};
    int schema;
    if (file_make_dir(path, 0700, e) < 0 || (out->lock_fd = store_dir_lock(path, e)) < 0 ||
        swap_finish(path, NULL, e) < 0)
        goto fail;
    if (store_dir_schema(path, &schema, e) < 0)
        goto fail;
    out->fresh = !schema;
    out->schema = schema;
    if (out->fresh && (check_empty(path, e) < 0 || half_made(path, true, e) < 0))
        goto fail;
    if (mkdir(out->db_path, 0700) < 0 && errno != EEXIST) {
        io_error(e, "make", out->db_path);
        goto fail;
    }
    return 0;
fail:
    store_dir_close(out);
    return -1;
}

int store_dir_mark(const char *dir, int schema, struct err *e)
{
    char *path = xasprintf("%s/" MARKER, dir), text[MARKER_MAX];
    int rc;

    if (FAILPOINT("store.before_marker"))
        rc = err_set(e, EX_IOERR, "cannot write %s: failpoint", path);
    else
        rc = file_replace(path, slice_str(marker_text(schema, text)), e);
    free(path);
    return rc;
}

int store_dir_ready(struct store_dir *d, struct err *e)
{
    int rc = store_dir_mark(d->path, STORE_SCHEMA, e);

    d->fresh = rc != 0;
    d->schema = STORE_SCHEMA;
    return rc;
}

int store_dir_borrow(const char *path, struct store_dir *out, struct err *e)
{
    int schema;

    *out = (struct store_dir){.path = xstrdup(path), .db_path = xasprintf("%s/db", path), .lock_fd = -1};
    if (store_dir_schema(path, &schema, e) < 0)
        return -1;
    out->schema = schema;
    return schema ? 0 : err_set(e, EX_NOINPUT, "there is no spool here");
}

int store_dir_end_cut(const char *dir, struct err *e)
{
    char *path = xasprintf("%s/db", dir);
    int rc = log_tail_cut(path, e) < 0 ? -1 : 0;

    free(path);
    return rc;
}

void store_dir_close(struct store_dir *d)
{
    if (d->lock_fd >= 0)
        close(d->lock_fd);
    free(d->path);
    free(d->db_path);
    *d = (struct store_dir){.lock_fd = -1};
}

int store_dir_look(const char *path, int *schema, struct err *e)
{
    char *ready = xasprintf("%s/" SWAP_READY, path);
    int rc = store_dir_schema(path, schema, e);

    if (rc == 0 && !*schema) /* the next to open it moves that in place */
        rc = store_dir_schema(ready, schema, e);
    free(ready);
    if (rc < 0)
        return -1;
    if (*schema || (access(path, F_OK) < 0 && errno == ENOENT))
        return 0;
    return check_empty(path, e) < 0 ? -1 : half_made(path, false, e);
}

bool store_dir_is_locked(const char *path, long *pid)
{
    char *lock = xasprintf("%s/lock", path);
    int fd = open(lock, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    free(lock);
    if (fd < 0)
        return false;
    bool held = fcntl(fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
    if (pid)
        *pid = held ? lock_holder(fd) : 0;
    close(fd);
    return held;
}

int64_t store_dir_bytes(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    struct stat st;
    int64_t sum = 0;

    while (dir && (entry = readdir(dir)) != NULL)
        if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
            sum += st.st_size; /* not its blocks: RocksDB takes room ahead, 4 MB for the manifest alone */
    if (dir)
        closedir(dir);
    return sum;
}
