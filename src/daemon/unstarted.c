#include "daemon/unstarted.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "core/alerts.h"
#include "daemon/alerting.h"
#include "daemon/configfile.h"
#include "store/dir.h"

#define TIME_LIMIT SECONDS(15)
#define TRIES 4
#define PAUSE_S 5
#define STAMPS 2
#define TRY_AGAIN SECONDS(60) /* where it arrived nowhere: perhaps the network is not up yet */

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

/* As told so long ago that the next start may tell it after `rest`. */
static void stamp(char *const paths[STAMPS], int64_t repeat_ms, int64_t rest)
{
    int64_t at = clock_wall_ms() - (rest < repeat_ms ? repeat_ms - rest : 0);
    const struct timespec time = {.tv_sec = at / 1000, .tv_nsec = at % 1000 * 1000000};
    const struct timespec times[2] = {time, time};

    for (int i = 0; i < STAMPS; i++) {
        int fd = open(paths[i], O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
            continue;
        bool stamped = futimens(fd, times) == 0;
        close(fd);
        if (stamped)
            return;
    }
}

/* Where no supervisor starts it again (exits 65 and 78), nobody else tries again: at the start of a machine the network may be
 * up a little later. Returns whether it arrived. */
static bool tell(struct setup *s, const struct alert *a, bool last_chance)
{
    const struct timespec pause = {.tv_sec = PAUSE_S};

    for (int tries = last_chance ? TRIES : 1; tries-- > 0;) {
        if (alerting_send_now(s, a, TIME_LIMIT))
            return true;
        if (tries)
            nanosleep(&pause, NULL);
    }
    return false;
}

void unstarted_tell(struct setup *s, const struct err *e)
{
    char *paths[STAMPS];
    struct alert a;

    if (e->exit_code == EX_TEMPFAIL)
        return;
    stamp_paths(s->config, paths);
    /* a directory that is not ours is not written to; it is not tried again by itself either */
    int64_t repeat = s->config->alert_repeat_ms;
    if (e->exit_code == EX_CONFIG || !was_told(paths, repeat)) {
        alert_make_unstarted(&a, e->exit_code == EX_DATAERR, e->text, clock_now());
        bool arrived = tell(s, &a, e->exit_code == EX_CONFIG || e->exit_code == EX_DATAERR);
        if (e->exit_code != EX_CONFIG)
            stamp(paths, repeat, arrived ? repeat : TRY_AGAIN);
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
