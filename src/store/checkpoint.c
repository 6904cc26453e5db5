#include "store/checkpoint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/tree.h"
#include "store/dir.h"

#define FILES_A_TURN 16 /* removed at once */

char *checkpoint_path(const struct store *st, const char *id)
{
    return xasprintf("%s/checkpoints/%s", store_path(st), id);
}

static int not_now(struct err *e)
{
    return err_set(e, EX_TEMPFAIL, "the store is failed; no checkpoint can be made of it");
}

int checkpoint_begin(struct store *st, struct err *e)
{
    return store_db(st) ? db_flush_begin(store_db(st), e) : not_now(e);
}

bool checkpoint_ready(struct store *st)
{
    return !store_db(st) || !db_flushing(store_db(st));
}

/* Fills the new directory: the database, then the marker, which says that it is whole. */
static int fill(struct store *st, const char *path, struct err *e)
{
    char *db_path = xasprintf("%s/db", path);
    int rc = file_make_dir(path, 0700, e);

    if (rc == 0)
        rc = db_checkpoint(store_db(st), db_path, e);
    if (rc == 0 && FAILPOINT("checkpoint.before_marker"))
        rc = err_set(e, EX_IOERR, "cannot make a checkpoint: failpoint");
    if (rc == 0)
        rc = store_dir_mark(path, store_schema(st), e);
    free(db_path);
    return rc;
}

int checkpoint_make(struct store *st, char id[CHECKPOINT_ID_SIZE], struct err *e)
{
    unsigned char random[8];

    if (!store_db(st))
        return not_now(e);
    random_bytes(random, sizeof(random));
    for (size_t i = 0; i < sizeof(random); i++)
        snprintf(id + 2 * i, 3, "%02x", random[i]);
    char *path = checkpoint_path(st, id), *new = xasprintf("%s.new", path);
    int rc = fill(st, new, e);
    if (rc == 0 && file_rename(new, path) < 0)
        rc = err_set(e, EX_IOERR, "cannot rename %s: %s", new, strerror(errno));
    if (rc < 0)
        tree_remove(new, NULL);
    free(new);
    free(path);
    return rc;
}

int checkpoint_make_at(struct store *st, const char *name, struct err *e)
{
    char *path = xasprintf("%s/%s", store_path(st), name), *new = xasprintf("%s.new", path);
    int rc = tree_remove(path, e) < 0 || tree_remove(new, e) < 0 ? -1 : fill(st, new, e);

    if (rc == 0 && file_rename(new, path) < 0)
        rc = err_set(e, EX_IOERR, "cannot rename %s: %s", new, strerror(errno));
    if (rc == 0)
        rc = dir_sync(store_path(st), e);
    free(new);
    free(path);
    return rc;
}

/* ---- removing ----------------------------------------------------------------------------------- */

struct removal {
    char *path;
    unsigned left;
};

static int remove_file(void *arg, const char *name, struct err *e)
{
    struct removal *r = arg;
    char *path = xasprintf("%s/%s", r->path, name);
    int rc = tree_remove(path, e);

    free(path);
    return rc < 0 ? -1 : r->left-- == 1; /* 1: enough for now */
}

static bool remove_some(const char *path)
{
    struct removal r = {.path = xasprintf("%s/db", path), .left = FILES_A_TURN};
    struct err e = ERR_NONE;
    char *marker = xasprintf("%s/" STORE_MARKER, path);

    unlink(marker); /* first: what is left is nobody's checkpoint */
    int rc = access(r.path, F_OK) == 0 ? dir_each(r.path, remove_file, &r, &e) : 0;
    if (rc == 0)
        rc = tree_remove(path, &e);
    if (rc < 0)
        log_warn(NULL, "a checkpoint is left: %s; remove it: rm -r %s", e.text, path);
    free(marker);
    free(r.path);
    return rc <= 0;
}

bool checkpoint_remove_some(const struct store *st, const char *id)
{
    char *path = checkpoint_path(st, id);
    bool done = remove_some(path);

    free(path);
    return done;
}

int64_t checkpoint_remove_old(const struct store *st, const char *name, int64_t kept_ms, int64_t now)
{
    char *path = xasprintf("%s/%s", store_path(st), name), *marker = xasprintf("%s/" STORE_MARKER, path);
    int64_t next = TIME_NEVER;
    struct stat of_marker;

    if (stat(marker, &of_marker) == 0)
        next = (int64_t)of_marker.st_mtim.tv_sec * 1000 + kept_ms;
    else if (access(path, F_OK) == 0)
        next = now; /* its removal has begun */
    if (next <= now && remove_some(path)) {
        log_info(NULL, "%s is old: it is removed", name);
        next = TIME_NEVER;
    }
    free(marker);
    free(path);
    return next;
}

struct each {
    const struct store *st;
    void (*fn)(void *arg, const char *id, int64_t made_at);
    void *arg;
};

static int visit(void *arg, const char *name, struct err *e)
{
    const struct each *v = arg;
    char *path = checkpoint_path(v->st, name), *marker = xasprintf("%s/" STORE_MARKER, path);
    struct stat st;

    if (strlen(name) != CHECKPOINT_ID_SIZE - 1 || stat(marker, &st) < 0)
        tree_remove(path, e);
    else
        v->fn(v->arg, name, (int64_t)st.st_mtim.tv_sec * 1000);
    free(marker);
    free(path);
    return 0;
}

void checkpoints_each(const struct store *st, void (*each)(void *arg, const char *id, int64_t made_at),
                      void *arg)
{
    struct each v = {st, each, arg};
    char *path = xasprintf("%s/checkpoints", store_path(st));

    if (access(path, F_OK) == 0)
        dir_each(path, visit, &v, NULL);
    free(path);
}
