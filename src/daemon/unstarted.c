#include "daemon/unstarted.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "core/alerts.h"
#include "daemon/alerting.h"
#include "daemon/configfile.h"
#include "store/dir.h"

#define TIME_LIMIT SECONDS(15)
#define STAMPS 2

/* Where the stamp may be: the disk of the first may be the one that fails. */
static void stamp_paths(const struct config *c, char *out[STAMPS])
{
    const char *slash = strrchr(c->socket, '/');

    out[0] = xasprintf("%s/" STORE_ALERTED, c->dir);
    out[1] = xasprintf("%.*s/tgspool-" STORE_ALERTED, (int)(slash - c->socket), c->socket);
}

static bool was_told(char *const paths[STAMPS], int64_t repeat_ms)
{
    struct stat st;

    for (int i = 0; i < STAMPS; i++) {
        if (lstat(paths[i], &st) < 0)
            continue;
        int64_t age = clock_wall_ms() - SECONDS(st.st_mtim.tv_sec) - st.st_mtim.tv_nsec / 1000000;
        if (age >= 0 && age < repeat_ms)
            return true;
    }
    return false;
}

static void stamp(char *const paths[STAMPS])
{
    for (int i = 0; i < STAMPS; i++) {
        int fd = open(paths[i], O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
            continue;
        bool stamped = futimens(fd, NULL) == 0;
        close(fd);
        if (stamped)
            return;
    }
}

void unstarted_tell(struct setup *s, const struct err *e)
{
    char *paths[STAMPS];
    struct alert a;

    if (e->exit_code == EX_TEMPFAIL)
        return;
    stamp_paths(s->config, paths);
    /* a directory that is not ours is not written to; it is not tried again by itself either */
    if (e->exit_code == EX_CONFIG || !was_told(paths, s->config->alert_repeat_ms)) {
        if (e->exit_code != EX_CONFIG)
            stamp(paths);
        alert_make_unstarted(&a, e->exit_code == EX_DATAERR, e->text, clock_now());
        alerting_send_now(s, &a, TIME_LIMIT);
    }
    for (int i = 0; i < STAMPS; i++)
        free(paths[i]);
}

bool unstarted_is_over(const struct config *c)
{
    char *paths[STAMPS];
    bool told = false;

    stamp_paths(c, paths);
    for (int i = 0; i < STAMPS; i++) {
        told |= unlink(paths[i]) == 0;
        free(paths[i]);
    }
    return told;
}
