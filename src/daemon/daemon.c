/* Wiring, signals and the tick. Nothing here knows what an event is: the tick gives everyone a turn, in the
 * one order in which nothing is acknowledged before it is on disk. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "daemon/daemon.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "core/options.h"
#include "daemon/bots.h"
#include "daemon/configfile.h"
#include "daemon/happened.h"
#include "daemon/listeners.h"
#include "daemon/notify.h"
#include "daemon/reload.h"
#include "daemon/stepping.h"
#include "daemon/unstarted.h"
#include "daemon/watching.h"
#include "net/listen.h"
#include "net/loop.h"
#include "ops/archive.h"
#include "ops/disk.h"
#include "proc/files.h"
#include "serve/api.h"
#include "serve/socket.h"
#include "spool/spool.h"
#include "wire/json.h"

#define STATUS_EVERY SECONDS(10)
/* Beyond the bots' shutdown_wait: what a handler gets between SIGTERM and SIGKILL, and some seconds for us.
 */
#define STOP_SLACK SECONDS(15)

struct daemon {
    const char *config_path;
    struct loop *loop;
    struct spool *spool;
    struct bots bots;
    struct api *api;
    struct listeners listeners;
    struct socket_server *socket;
    struct archive *archive; /* NULL: none */
    struct disk *disk;
    struct watching *watching;
    struct happened happened;
    int64_t started_at;
    int64_t stop_by; /* TIME_NEVER: not stopping */
    bool reload, show_status, journal;
    enum spool_health health; /* as last told */
    int64_t watchdog_at, status_at;
    struct stepping stepping;
};

/* ---- signals ------------------------------------------------------------------------------------ */

static void on_stop(void *arg, int signo)
{
    struct daemon *d = arg;

    if (d->stop_by != TIME_NEVER) {
        log_warn(NULL, "a second signal: ends at once");
        loop_stop(d->loop);
        return;
    }
    int64_t wait = bots_shutdown_wait(&d->bots) + STOP_SLACK;
    char text[32];
    log_info(NULL, "%s: intake ends, handlers may finish (at most %s)",
             signo == SIGTERM ? "SIGTERM" : "SIGINT", text_age(wait, text));
    d->stop_by = loop_now(d->loop) + wait;
    notify_stopping();
    notify_extend_timeout(wait + STOP_SLACK);
    listeners_stop(&d->listeners);
    bots_stop(&d->bots);
}

static void on_reload(void *arg, int signo)
{
    (void)signo;
    ((struct daemon *)arg)->reload = true;
}

static void on_show_status(void *arg, int signo)
{
    (void)signo;
    ((struct daemon *)arg)->show_status = true;
}

/* ---- the tick ----------------------------------------------------------------------------------- */

/* One sentence on all boxes together. */
static void describe(struct daemon *d, char *out, size_t size)
{
    uint64_t waiting = 0, working = 0, dead = 0;
    unsigned open = 0;
    char why[256];

    for (struct spool_box *b = spool_next_box(d->spool, NULL); b; b = spool_next_box(d->spool, b)) {
        struct spool_box_status st;
        spool_box_status(b, &st);
        waiting += st.counts.pending;
        working += st.counts.processing;
        dead += st.counts.dead;
        open += st.breaker.open;
    }
    if (!spool_healthy(d->spool, why))
        snprintf(out, size, "the store fails: %s", why);
    else
        snprintf(out, size, "%zu bots, %" PRIu64 " events waiting, %" PRIu64 " in work, %" PRIu64 " dead%s",
                 bots_count(&d->bots), waiting, working, dead, open ? "; handlers fail" : "");
}

/* Tells systemd, and whoever sent SIGUSR1, how things are. Returns when to be called again. The watchdog is fed
 * from here, so only while the loop turns and the disk answers. A store that failed is no hang: it is opened again
 * and again; a restart would do no better, and end the handlers that run. */
static int64_t report(struct daemon *d, int64_t now)
{
    char text[400];
    int64_t every = notify_watchdog_ms();

    if (d->show_status || now >= d->status_at) {
        describe(d, text, sizeof(text));
        notify_status(text);
        if (d->show_status)
            log_info(NULL, "%s", text);
        d->show_status = false;
        d->status_at = now + STATUS_EVERY;
    }
    if (!every)
        return TIME_NEVER;
    if (now >= d->watchdog_at) {
        notify_watchdog();
        d->watchdog_at = now + every;
    }
    return d->watchdog_at;
}

/* A store that fails or recovers is told once. */
static void watch_health(struct daemon *d)
{
    char why[256];
    enum spool_health health = spool_health(d->spool, why);
    bool was_sick = d->health > SPOOL_STALLED;

    if (health == d->health)
        return;
    d->health = health;
    d->status_at = 0;
    if (health == SPOOL_CORRUPT)
        log_error(NULL, "the store is damaged: %s; nothing is taken or handed over; next: tgspool status",
                  why);
    else if (health == SPOOL_FAILED)
        log_error(NULL, "the store fails: %s; intake and deliveries stand still until it works again", why);
    else if (was_sick)
        log_warn(NULL, "the store works again");
}

/* What ended is removed by the times of the configuration in force. */
static void set_retention(struct daemon *d)
{
    const struct config *c = d->bots.setup->config;
    const struct spool_retention r = {.done_ms = c->retain_done_ms,
                                      .dead_ms = c->retain_dead_ms,
                                      .dedupe_ms = c->dedupe_ms,
                                      .audit_ms = c->retain_audit_ms};

    spool_set_retention(d->spool, &r);
}

static void reload(struct daemon *d)
{
    d->reload = false;
    if (d->stop_by != TIME_NEVER)
        return;
    struct err e = ERR_NONE;
    notify_reloading();
    if (listeners_reload(&d->listeners, &e) < 0)
        log_error(NULL, "reload refused, the old certificate and configuration stay: %s", e.text);
    else if (reload_from_file(&d->bots, d->watching, d->config_path)) {
        const struct config *c = d->bots.setup->config;
        log_setup(c->log_level, c->log_format, d->journal);
        disk_configure(d->disk, c);
        set_retention(d);
        listeners_check_callers(&d->listeners);
    }
    notify_ready();
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The turn's clock was read: whatever its callbacks put into the batch happens at this time. */
static void on_wake(void *arg)
{
    struct daemon *d = arg;

    spool_begin(d->spool, loop_now(d->loop));
}

/* Looks at the disk if it is time; intake is held while there is no room. Returns when to be called again. */
static int64_t watch_disk(struct daemon *d, int64_t now)
{
    struct spool_commit_stats st;

    spool_commit_stats(d->spool, &st);
    int64_t at = disk_tick(d->disk, st.commits, now);
    const char *why = disk_state(d->disk)->why;
    spool_hold(d->spool, why[0] ? why : NULL);
    return at;
}

static int64_t tick(void *arg)
{
    struct daemon *d = arg;
    int64_t now = loop_now(d->loop);

    if (d->reload)
        reload(d);
    int64_t disk_at = watch_disk(d, now);
    spool_work(d->spool);
    bots_tick(&d->bots, now);
    api_tick(d->api);
    spool_commit(d->spool);

    loop_update_now(d->loop); /* the commit may have taken its time */
    now = loop_now(d->loop);
    spool_begin(d->spool, now);
    int64_t deadline = bots_after_commit(&d->bots, now);
    watch_health(d);
    if (bots_stopped(&d->bots)) {
        loop_stop(d->loop);
    } else if (now >= d->stop_by) {
        log_warn(NULL, "not all handlers ended in time: what they held is released at the next start");
        loop_stop(d->loop);
    }
    deadline = earlier(deadline, report(d, now));
    deadline = earlier(deadline, d->stop_by);
    deadline = earlier(deadline, disk_at);
    deadline = earlier(deadline, stepping_tick(&d->stepping, d->spool, now));
    deadline = earlier(deadline, watching_tick(d->watching, now));
    deadline = earlier(deadline, api_next_deadline(d->api));
    return earlier(deadline, spool_next_deadline(d->spool));
}

/* ---- start and end ------------------------------------------------------------------------------ */

/* Whether standard error goes to the journal (systemd.exec(5), JOURNAL_STREAM). */
static bool to_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    struct stat st;
    char own[64];

    if (!stream || fstat(STDERR_FILENO, &st))
        return false;
    snprintf(own, sizeof(own), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    return slice_eq_str(slice_str(stream), own);
}

static int open_spool(struct daemon *d, const struct config *c, struct err *e)
{
    struct spool_options o = {
        .dir = c->dir,
        .cache_bytes = c->cache_bytes,
        .sync = c->sync,
        .sync_ms = c->sync_ms,
    };

    d->spool = spool_open(&o, d->started_at, e);
    if (!d->spool)
        return -1;
    spool_begin(d->spool, d->started_at);
    d->disk = disk_new(c->dir, NULL);
    disk_configure(d->disk, c);
    watch_disk(d, d->started_at);
    return 0;
}

static int open_archive(struct daemon *d, const struct config *c, struct err *e)
{
    if (!c->archive_dir)
        return 0;
    d->archive = archive_new(c->archive_dir, e);
    if (!d->archive)
        return option_err_prefix(e, c, NULL, "archive_dir");
    spool_set_archiver(d->spool, archive_step, d->archive);
    return 0;
}

/* For the API: the value of "disk" in the status. */
static void write_disk(void *arg, struct json_out *j)
{
    const struct disk_state *s = disk_state(arg);

    json_object(j);
    json_kv_int(j, "free", s->free_bytes);
    json_kv_int(j, "total", s->total_bytes);
    json_kv_int(j, "db", s->db_bytes);
    json_kv_int(j, "reserve", s->reserve_bytes);
    json_kv_bool(j, "low", s->low_since != 0);
    json_kv_bool(j, "filling", s->filling_since != 0);
    json_kv_bool(j, "full", s->full_since != 0);
    json_kv_cstr(j, "held", s->why[0] ? s->why : NULL);
    json_object_end(j);
}

/* The same for its metrics. */
static bool disk_numbers(void *arg, int64_t *free_bytes, int64_t *db_bytes)
{
    const struct disk_state *s = disk_state(arg);

    *free_bytes = s->free_bytes;
    *db_bytes = s->db_bytes;
    return s->known;
}

static int start_api(struct daemon *d, const struct config *c, struct err *e)
{
    struct api_hooks hooks = {
        .version = PACKAGE_VERSION,
        .started_at = d->started_at,
        .now = clock_now,
        .us = clock_boot_us,
        .intake_status = bots_intake_status,
        .intake_standing = bots_standing,
        .oldest_limit = bots_oldest_limit,
        .consumer_status = bots_consumer_status,
        .children_status = bots_children_status,
        .kill_event = bots_kill_event,
        .pulled = bots_pulled,
        .intake_rests = bots_intake_rests,
        .give_back = bots_give_back,
        .give_back_end = bots_give_back_end,
        .arg = &d->bots,
        .disk_status = write_disk,
        .disk_numbers = disk_numbers,
        .disk_arg = d->disk,
        .alert_test = watching_test,
        .alert_test_end = watching_test_end,
        .alert_arg = d->watching,
        .happened = happened_log,
        .happened_arg = &d->happened,
    };
    struct socket_options o = {.path = c->socket, .mode = c->socket_mode, .group = c->socket_group};

    d->api = api_new(d->spool, &hooks);
    if (listeners_open(&d->listeners, d->loop, &d->bots, d->api, e) < 0)
        return -1;
    d->socket = socket_new(d->loop, d->api, &o, e);
    return d->socket ? 0 : -1;
}

static void stop_all(struct daemon *d)
{
    socket_free(d->socket);
    listeners_close(&d->listeners);
    api_free(d->api);
    watching_free(d->watching);
    bots_clear(&d->bots);
    if (d->spool)
        spool_close(d->spool);
    archive_free(d->archive);
    disk_free(d->disk);
    loop_free(d->loop);
}

int daemon_run(const char *config_path, struct err *e)
{
    struct daemon d = {.config_path = config_path, .stop_by = TIME_NEVER};
    struct setup *setup = setup_load(config_path, e);

    if (!setup)
        return -1;
    const struct config *c = setup->config;
    if (c->socket_group && listen_find_group(c->socket_group, NULL, e) < 0) {
        e->exit_code = EX_CONFIG;
        option_err_prefix(e, c, NULL, "socket_group");
        setup_free(setup);
        return -1;
    }
    umask(077);
    notify_init();
    d.journal = to_journal();
    log_setup(c->log_level, c->log_format, d.journal);
    setup_log_warnings(setup);
    proc_files_raise();
    d.started_at = clock_now();
    d.loop = loop_new();
    bots_init(&d.bots, d.loop);
    if (open_spool(&d, c, e)) {
        unstarted_tell(setup, e);
        goto failed;
    }
    bots_open(&d.bots, d.spool);
    d.watching = watching_new(d.loop, &d.bots);
    watching_look_at(d.watching, d.disk);
    log_info(NULL, "tgspool " PACKAGE_VERSION " starts: %zu %s, spool in %s", c->n_bots,
             c->n_bots == 1 ? "bot" : "bots", c->dir);
    if (open_archive(&d, c, e) || watching_prepare(d.watching, setup, e) || reload_apply(&d.bots, setup, e))
        goto failed;
    watching_switch(d.watching, setup);
    setup = NULL; /* the bots' now */
    set_retention(&d);
    if (start_api(&d, c, e))
        goto failed;
    loop_on_wake(d.loop, on_wake, &d);
    loop_on_signal(d.loop, SIGTERM, on_stop, &d);
    loop_on_signal(d.loop, SIGINT, on_stop, &d);
    loop_on_signal(d.loop, SIGHUP, on_reload, &d);
    loop_on_signal(d.loop, SIGUSR1, on_show_status, &d);
    if (unstarted_is_over(c))
        watching_tell_started(d.watching);
    notify_ready();
    loop_run(d.loop, tick, &d);
    stop_all(&d);
    log_info(NULL, "tgspool has ended");
    return 0;
failed:
    setup_free(setup);
    stop_all(&d);
    return -1;
}
