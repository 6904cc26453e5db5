/* Check 6: somebody is told when the disk is full and when the database is damaged. The drill itself is told: the
 * user's alerts go nowhere here, `tgspool alert-test` tries them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/tree.h"
#include "drill/inside.h"

#define ABOVE_FREE (INT64_C(1) << 30)
#define HELD_MS 500 /* in which an update that is taken all the same would show */
#define LEAST 64    /* a file of fewer bytes holds nothing worth damaging */

static bool has_alert(struct drill *d, const char *name)
{
    const struct server_state *s = server_state(d->server);

    for (size_t i = 0; i < s->n_alerts; i++)
        if (strcmp(s->alerts[i].name, name) == 0 && !s->alerts[i].over)
            return true;
    return false;
}

static bool disk_alert(struct drill *d)
{
    return has_alert(d, "disk");
}

/* ---- the disk is full --------------------------------------------------------------------------- */

static bool disk_full(struct drill *d)
{
    struct statvfs fs;

    if (d->o->config->min_free == 0)
        return drill_fail(d,
                          "spool.min_free is 0: nobody is told before the disk is full, when it is too late");
    if (statvfs(d->top, &fs) < 0)
        return drill_fail(d, "cannot look at the disk of %s: %s", d->top, strerror(errno));
    if (!scratch_make(d, "a", (int64_t)fs.f_bavail * (int64_t)fs.f_frsize + ABOVE_FREE) ||
        !scratch_start(d) || !drill_wait(d, disk_alert, "an alert: disk"))
        return false;
    drill_give(d, 1, 1);
    if (!drill_sleep(d, HELD_MS))
        return false;
    if (drill_any_confirmed(d) || d->record.n)
        return drill_fail(d, "updates are taken in with less free on the disk than spool.min_free");
    return scratch_stop(d);
}

/* ---- the database is damaged -------------------------------------------------------------------- */

/* Changes a bit in the middle of a file. */
static int flip(const char *path, struct err *e)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;
    char byte;

    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size >= LEAST && pread(fd, &byte, 1, st.st_size / 2) == 1) {
        byte ^= 1;
        if (pwrite(fd, &byte, 1, st.st_size / 2) != 1)
            err_set(e, EX_IOERR, "cannot write %s: %s", path, strerror(errno));
    } else if (fd < 0) {
        err_set(e, EX_IOERR, "cannot open %s: %s", path, strerror(errno));
    }
    if (fd >= 0)
        close(fd);
    return e->exit_code ? -1 : 0;
}

static int damage_file(void *arg, const char *name, struct err *e)
{
    const char *end = strrchr(name, '.');

    if (!end || (strcmp(end, ".sst") != 0 && strcmp(end, ".log") != 0))
        return 0;
    char *path = xasprintf("%s/%s", (const char *)arg, name);
    int rc = flip(path, e);
    free(path);
    return rc;
}

static bool damage(struct drill *d)
{
    char *db = xasprintf("%s/spool/db", d->dir);
    struct err e = ERR_NONE;
    int rc = dir_each(db, damage_file, db, &e);

    free(db);
    return rc == 0 ? true : drill_fail(d, "%s", e.text);
}

static bool corruption_alert(struct drill *d)
{
    return has_alert(d, "corruption");
}

static bool database_damaged(struct drill *d)
{
    if (!scratch_make(d, "b", 0) || !scratch_start_ready(d))
        return false;
    drill_give(d, 8, 4);
    if (!drill_wait_handled(d, "some updates are handled") || !scratch_stop(d) || !damage(d) ||
        !scratch_start(d))
        return false;
    bool told = drill_turn(d, corruption_alert); /* which comes before its end */
    if (!told && !d->ended)
        return drill_fail(d, d->signo ? "ended by a signal" : "the database is damaged, and no alert came");
    if (!drill_wait(d, scratch_ended, "the daemon refuses to start on a damaged database"))
        return false;
    if (!WIFEXITED(d->status) || WEXITSTATUS(d->status) != EX_DATAERR)
        return drill_fail(d, "on a damaged database the daemon ended with %s %d, not with exit status %d",
                          WIFEXITED(d->status) ? "exit status" : "signal",
                          WIFEXITED(d->status) ? WEXITSTATUS(d->status) : WTERMSIG(d->status), EX_DATAERR);
    if (!corruption_alert(d))
        return drill_fail(d, "the database is damaged, and no alert came");
    return true;
}

bool check_alarm(struct drill *d)
{
    if (!disk_full(d) || !database_damaged(d))
        return false;
    drill_see(d, "less free than min_free: intake stopped, alert disk; a bit flipped: start refused, alert "
                 "corruption");
    return true;
}
