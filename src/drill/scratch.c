/* The scratch directory of a check, and its config. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"
#include "core/option_command.h"
#include "core/options.h"
#include "drill/inside.h"
#include "net/listen.h"
#include "proc/orphans.h"

#define PORT_FIRST 20000u /* ip_local_port_range begins at 32768 */
#define PORTS 12000
#define PORT_TRIES 100

/* ---- the config --------------------------------------------------------------------------------- */

/* What the drill takes over from the user's config as it stands. */
static const struct {
    enum option_section section;
    const char *name;
} taken_over[] = {
    {SECTION_SPOOL, "sync"},  {SECTION_SPOOL, "cache"},       {SECTION_SPOOL, "max_children"},
    {SECTION_BOTS, "order"},  {SECTION_BOTS, "deliver"},      {SECTION_BOTS, "concurrency"},
    {SECTION_BOTS, "expire"}, {SECTION_BOTS, "max_attempts"},
};

static void add_taken_over(struct drill *d, struct buf *out, enum option_section section)
{
    for (size_t i = 0; i < ARRAY_LEN(taken_over); i++) {
        if (taken_over[i].section != section)
            continue;
        const struct option *o = option_find(section, slice_str(taken_over[i].name));
        struct option_value v;
        option_get(o, d->o->config, section == SECTION_BOTS ? d->o->bot : NULL, &v);
        buf_printf(out, "%s%s: ", section == SECTION_BOTS ? "    " : "  ", o->name);
        option_value_add_yaml(out, &v);
        buf_add_char(out, '\n');
        option_value_clear(&v);
    }
}

/* A value as a scalar in quotes. */
static void add_quoted(struct buf *out, const char *indent, const char *name, const char *value)
{
    buf_printf(out, "%s%s: '", indent, name);
    for (; *value; value++) {
        buf_add_char(out, *value);
        if (*value == '\'')
            buf_add_char(out, '\'');
    }
    buf_add_str(out, "'\n");
}

static void add_handler(struct drill *d, struct buf *out)
{
    const struct bot_config *bot = d->o->bot;

    if (bot->deliver == DELIVER_HTTP) {
        char *url = xasprintf("%s/handler", d->root);
        add_quoted(out, "    ", "url", url);
        free(url);
    } else if (bot->deliver == DELIVER_EXEC || bot->deliver == DELIVER_WORKER) {
        char *argv[] = {(char *)OWN_PROGRAM,
                        (char *)"drill",
                        (char *)"handler",
                        (char *)(bot->deliver == DELIVER_EXEC ? "exec" : "worker"),
                        d->dir,
                        NULL};
        struct buf command = BUF_EMPTY;
        command_join(&command, argv);
        if (d->o->run_handler) {
            buf_add_str(&command, " -- ");
            command_join(&command, bot->command);
        }
        add_quoted(out, "    ", "command", buf_str(&command));
        buf_free(&command);
    }
}

/* A port that nobody listens on now; not one of those that the kernel gives to whoever asks for any, since the
 * daemon takes it only later, and again after each restart. 0: none was found. */
static uint16_t free_port(void)
{
    for (int i = 0; i < PORT_TRIES; i++) {
        unsigned wanted = PORT_FIRST + (unsigned)random_below(PORTS);
        char address[32];
        uint16_t port;
        snprintf(address, sizeof(address), "127.0.0.1:%u", wanted);
        int fd = listen_tcp(address, &port, NULL);
        if (fd < 0)
            continue;
        close(fd);
        return port;
    }
    return 0;
}

static void add_intake(struct drill *d, struct buf *out)
{
    char *path = xasprintf("%s/hook", d->dir);

    if (drill_by_webhook(d)) {
        free(d->hook_url);
        d->hook_url = xasprintf("http://127.0.0.1:%u/hook/%s", (unsigned)d->hook_port, d->o->bot->name);
        server_set_hook(d->server, d->hook_url);
        buf_add_str(out, "    intake: webhook\n");
        add_quoted(out, "    ", "webhook_url", d->hook_url);
        add_quoted(out, "    ", "webhook_secret_file", path);
    } else {
        buf_add_str(out, "    intake: poll\n    poll_timeout: 1s\n");
    }
    free(path);
}

static void add_config(struct drill *d, struct buf *out, int64_t min_free)
{
    char *path = xasprintf("%s/spool", d->dir), lease[32];

    buf_add_str(out, "# Made by tgspool drill, for one of its checks.\nspool:\n");
    add_quoted(out, "  ", "dir", path);
    free(path);
    buf_printf(out, "  max_db: 0\n  min_free: %lld\n  reserve: off\n", (long long)min_free);
    add_taken_over(d, out, SECTION_SPOOL);
    path = xasprintf("%s/sock", d->dir);
    buf_add_str(out, "listen:\n");
    add_quoted(out, "  ", "socket", path);
    free(path);
    if (d->o->bot->deliver == DELIVER_DROPIN) {
        d->dropin_port = free_port();
        buf_printf(out, "  dropin: 127.0.0.1:%u\n", (unsigned)d->dropin_port);
    }
    if (drill_by_webhook(d)) {
        d->hook_port = free_port();
        buf_printf(out, "  webhook: 127.0.0.1:%u\n", (unsigned)d->hook_port);
    }
    path = xasprintf("%s/alert.url", d->dir);
    buf_add_str(out, "alerts:\n");
    add_quoted(out, "  ", "url_file", path);
    free(path);
    buf_printf(out, "bots:\n  %s:\n", d->o->bot->name);
    path = xasprintf("%s/token", d->dir);
    add_quoted(out, "    ", "token_file", path);
    free(path);
    buf_printf(out, "    api_root: %s\n", d->root);
    add_intake(d, out);
    buf_printf(out, "    lease: %s\n    retry: [" DRILL_RETRY "]\n    jitter: 0\n    shutdown_wait: 1s\n",
               text_from_ms(d->o->lease_ms, lease));
    add_taken_over(d, out, SECTION_BOTS);
    add_handler(d, out);
}

/* ---- the directory ------------------------------------------------------------------------------ */

static int make_file(struct drill *d, const char *name, struct slice content, struct err *e)
{
    char *path = xasprintf("%s/%s", d->dir, name);
    int rc = file_create(path, content, 0600, e);

    free(path);
    return rc;
}

static int make_text(struct drill *d, const char *name, char *text, struct err *e)
{
    int rc = make_file(d, name, slice_str(text), e);

    free(text);
    return rc;
}

static int make_all(struct drill *d, int64_t min_free, struct err *e)
{
    char *effects = xasprintf("%s/" DIR_EFFECTS, d->dir), *record = xasprintf("%s/" FILE_RECORD, d->dir);
    char *log = xasprintf("%s/log", d->dir);
    struct buf config = BUF_EMPTY;
    int rc = file_make_dir(d->dir, 0700, e);

    if (rc == 0)
        rc = file_make_dir(effects, 0700, e);
    if (rc == 0)
        rc = record_open(&d->record, record, e);
    if (rc == 0)
        rc = make_text(d, "token", xasprintf("%s\n", d->token), e);
    if (rc == 0)
        rc = make_text(d, "hook", xasprintf("%s\n", d->hook_secret), e);
    if (rc == 0)
        rc = make_text(d, "alert.url", xasprintf("%s/alert\n", d->root), e);
    if (rc == 0) {
        add_config(d, &config, min_free);
        rc = make_file(d, "tgspool.yaml", buf_slice(&config), e);
    }
    if (rc == 0) {
        d->log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        rc = d->log_fd < 0 ? err_set(e, EX_CANTCREAT, "cannot make %s: %s", log, strerror(errno)) : 0;
    }
    buf_free(&config);
    free(effects);
    free(record);
    free(log);
    return rc;
}

bool scratch_make(struct drill *d, const char *name, int64_t min_free)
{
    struct err e = ERR_NONE;

    scratch_clear(d);
    d->dir = xasprintf("%s/%d%s", d->top, d->number, name);
    return make_all(d, min_free, &e) == 0 ? true : drill_fail(d, "%s", e.text);
}

void scratch_clear(struct drill *d)
{
    if (d->daemon)
        scratch_end(d);
    if (!d->daemon)
        orphans_end(); /* the drill kills daemons, which then end no handler's children */
    consumer_stop(d);
    consumer_forget(d);
    record_close(&d->record);
    server_reset(d->server);
    if (d->log_fd >= 0)
        close(d->log_fd);
    d->log_fd = -1;
    d->hold = HOLD_NONE;
    d->calls = d->ended = false;
    d->n_ids = 0;
    free(d->dir);
    free(d->hook_url);
    d->dir = d->hook_url = NULL;
}

bool scratch_hold(struct drill *d, enum hold hold)
{
    char *path = xasprintf("%s/" FILE_HOLD, d->dir);
    struct err e = ERR_NONE;
    int rc = 0;

    d->hold = hold;
    if (unlink(path) < 0 && errno != ENOENT)
        rc = err_set(&e, EX_IOERR, "cannot remove %s: %s", path, strerror(errno));
    if (rc == 0 && hold != HOLD_NONE)
        rc = make_file(d, FILE_HOLD, slice_str(hold == HOLD_END ? HOLD_END_WORD : HOLD_FIRST_WORD), &e);
    free(path);
    return rc == 0 ? true : drill_fail(d, "%s", e.text);
}

bool scratch_calls(struct drill *d)
{
    struct err e = ERR_NONE;

    d->calls = true;
    return make_file(d, FILE_CALLS, slice_str(""), &e) == 0 ? true : drill_fail(d, "%s", e.text);
}
