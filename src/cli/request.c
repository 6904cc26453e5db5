/* Requests of commands. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "cli/request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/mem.h"
#include "base/text.h"
#include "daemon/configfile.h"
#include "net/http_client.h"
#include "net/loop.h"
#include "serve/api.h"
#include "spool/spool.h"
#include "store/dir.h"
#include "store/reserve.h"
#include "wire/url.h"

#define ANSWER_MAX (64u << 20) /* a page with payloads is far smaller */
#define PATIENCE SECONDS(30)
#define IMPORT_EXTRA SECONDS(120) /* thousands of events are written to perhaps a slow disk */
#define LOOK_CACHE (4 << 20)
#define CONNECT_S 10 /* a daemon that is stopped takes some connections, then none */

struct request {
    struct config *config; /* NULL where only the socket was needed */
    char *socket;
    /* a daemon: */
    struct loop *loop;
    struct http_client *http;
    /* in-process: */
    struct spool *sp;
    struct api *api;
    char who[48];
    /* the answer under way */
    int64_t patience_ms;
    bool answered;
    struct answer *answer;
    struct err *e;
};

/* ---- opening ------------------------------------------------------------------------------------ */

/* Whether somebody listens there: 0, or the errno of connect(2). */
static int try_socket(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    const struct timeval patience = {.tv_sec = CONNECT_S};
    int fd, rc = 0;

    if (strlen(path) >= sizeof(a.sun_path))
        return ENAMETOOLONG;
    strcpy(a.sun_path, path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
        rc = errno;
    close(fd);
    return rc;
}

static int open_daemon(struct request *q, struct err *e)
{
    char *url = xasprintf("unix:%s", q->socket);
    const struct http_client_options o = {
        .base_url = url, .connect_timeout_ms = SECONDS(CONNECT_S), .max_body = ANSWER_MAX};

    q->loop = loop_new();
    q->http = http_client_new(q->loop, &o, e);
    free(url);
    return q->http ? 0 : -1;
}

/* The bots of the config, as far as the spool has them already. Tokens are not needed for that. Who only looks keeps
 * the policies of the daemon that ran last: a changed order would place its barrier, an expiry end events. */
static void attach_bots(struct request *q, bool only_look)
{
    for (size_t i = 0; i < q->config->n_bots; i++) {
        const struct bot_config *bot = &q->config->bots[i];
        struct spool_policy policy;
        struct spool_box *in = spool_find_box(q->sp, bot->name, BOX_IN);
        struct spool_box *out = spool_find_box(q->sp, bot->name, BOX_OUT);
        spool_policy_from(bot, &policy);
        if (in)
            spool_attach(q->sp, spool_box_bot_id(in), BOX_IN, bot->name, only_look ? NULL : &policy);
        if (out)
            spool_attach(q->sp, spool_box_bot_id(out), BOX_OUT, bot->name, NULL);
    }
}

static void start_api(struct request *q)
{
    const struct api_hooks hooks = {
        .version = PACKAGE_VERSION, .started_at = clock_now(), .now = clock_now, .us = clock_boot_us};

    q->api = api_new(q->sp, &hooks);
}

/* The daemon's ops/disk looks again and again; here once is enough. */
static void hold_if_low(struct request *q)
{
    int64_t is = reserve_free(q->config->dir);
    char why[100], free_bytes[32], need[32];

    if (is >= q->config->min_free)
        return;
    snprintf(why, sizeof(why), "the disk has %s free, needs %s", text_bytes(is, free_bytes),
             text_bytes(q->config->min_free, need));
    spool_hold(q->sp, why);
}

/* no_spool: where there is none yet, either; NULL: that was not looked at. */
static int no_daemon(const struct request *q, const char *no_spool, struct err *e)
{
    struct buf start = BUF_EMPTY;

    cli_add_command(&start, "tgspool run");
    err_set(e, EX_UNAVAILABLE, "no daemon listens on %s%s%s%s; start one: %s", q->socket,
            no_spool ? ", and there is no spool at " : "", no_spool ? no_spool : "", no_spool ? " yet" : "",
            buf_str(&start));
    buf_free(&start);
    return -1;
}

static int open_spool(struct request *q, enum request_need need, struct err *e)
{
    const struct config *c = q->config;
    const struct spool_options o = {.dir = c->dir, .cache_bytes = c->cache_bytes, .sync = SYNC_ALWAYS};
    int schema;
    long pid;

    if (store_dir_is_locked(c->dir, &pid))
        return err_set(
            e, EX_TEMPFAIL,
            "no daemon listens on %s, but process %ld uses the spool; wait if it starts or ends just "
            "now, else name its socket with --socket",
            q->socket, pid);
    if (need != NEED_MAKE && store_dir_look(c->dir, &schema, e) == 0 && !schema)
        return no_daemon(q, c->dir, e);
    if (e->exit_code)
        return -1;
    q->sp = spool_open(&o, clock_now(), e);
    if (!q->sp)
        return err_prefix(e, "no daemon listens on %s, and the spool cannot be opened", q->socket);
    snprintf(q->who, sizeof(q->who), "uid %ld (command)", (long)getuid());
    spool_begin(q->sp, clock_now());
    attach_bots(q, need == NEED_READ);
    hold_if_low(q);
    start_api(q);
    return 0;
}

static int open_any(struct request *q, const struct cli *cli, enum request_need need, struct err *e)
{
    if (cli->socket_path) {
        q->socket = xstrdup(cli->socket_path);
    } else {
        q->config = configfile_read(cli->config_path, e);
        if (!q->config)
            return -1;
        q->socket = xstrdup(q->config->socket);
    }
    int rc = try_socket(q->socket);
    if (rc == 0)
        return open_daemon(q, e);
    if (rc == EAGAIN)
        return err_set(e, EX_TEMPFAIL, "the daemon at %s takes no connections; is it stopped?", q->socket);
    if (rc != ENOENT && rc != ECONNREFUSED && rc != ENOTDIR)
        return err_set(
            e, rc == EACCES || rc == EPERM ? EX_NOPERM : EX_UNAVAILABLE,
            "cannot reach the daemon at %s: %s%s", q->socket, strerror(rc),
            rc == EACCES || rc == EPERM ? "; be of the group that listen.socket_group names, or root" : "");
    if (need == NEED_DAEMON)
        return no_daemon(q, NULL, e);
    if (!q->config)
        q->config = configfile_read(cli->config_path, e);
    return q->config ? open_spool(q, need, e) : -1;
}

struct request *request_open(const struct cli *cli, enum request_need need, struct err *e)
{
    struct request *q = xcalloc(1, sizeof(*q));

    if (open_any(q, cli, need, e) == 0)
        return q;
    request_close(q);
    return NULL;
}

struct request *request_look(const char *dir, struct err *e)
{
    struct request *q = xcalloc(1, sizeof(*q));
    const struct spool_options o = {.dir = dir, .cache_bytes = LOOK_CACHE};

    q->sp = spool_look(&o, clock_now(), e);
    if (!q->sp) {
        free(q);
        return NULL;
    }
    start_api(q);
    return q;
}

void request_close(struct request *q)
{
    if (!q)
        return;
    if (q->http)
        http_client_free(q->http);
    if (q->loop)
        loop_free(q->loop);
    if (q->sp)
        spool_commit(q->sp);
    api_free(q->api);
    if (q->sp)
        spool_close(q->sp);
    config_free(q->config);
    free(q->socket);
    free(q);
}

bool request_in_process(const struct request *q)
{
    return q->sp != NULL;
}

/* ---- asking ------------------------------------------------------------------------------------- */

int request_exit_code(int status)
{
    switch (status) {
    case 400:
    case 405:
    case 413:
    case 422:
        return EX_USAGE;
    case 401:
    case 403:
        return EX_NOPERM;
    case 404:
        return EX_NOINPUT;
    case 409:
    case 429:
    case 503:
        return EX_TEMPFAIL;
    default:
        return EX_SOFTWARE;
    }
}

static void on_reply(void *arg, int status, const char *type, struct slice body, int64_t retry_after_s)
{
    struct request *q = arg;

    (void)type;
    (void)retry_after_s;
    q->answered = true;
    q->answer->status = status;
    buf_add_slice(&q->answer->body, body);
}

static void on_http(void *arg, struct http_answer *a)
{
    struct request *q = arg;

    if (a->fail == HTTP_OK)
        on_reply(q, a->status, NULL, buf_slice(&a->body), -1);
    else if (a->fail == HTTP_TIMEOUT)
        err_set(
            q->e, EX_TEMPFAIL,
            "no answer from the daemon at %s within %lld s; is it stopped, or the disk slow? What was asked "
            "for may still be done",
            q->socket, (long long)q->patience_ms / 1000);
    else
        err_set(q->e, EX_UNAVAILABLE, "no answer from the daemon at %s: %s", q->socket, a->error);
    loop_stop(q->loop);
}

int64_t request_patience_ms(const char *path)
{
    const char *query = strchr(path, '?'), *wait = query ? strstr(query, "wait=") : NULL;
    int64_t seconds = 0;

    if (wait && (wait[-1] == '?' || wait[-1] == '&')) {
        wait += strlen("wait=");
        text_to_i64(slice_make(wait, strcspn(wait, "&")), 0, 3600, &seconds);
    }
    return PATIENCE + SECONDS(seconds) + (strcmp(path, "/v1/import") == 0 ? IMPORT_EXTRA : 0);
}

static void ask_daemon(struct request *q, const char *method, const char *path, struct slice body)
{
    const struct http_request r = {
        .method = method, .path = path, .body = body, .deadline_ms = q->patience_ms};

    http_client_request(q->http, &r, on_http, q);
    loop_run(q->loop, NULL, NULL);
}

/* Turns the ticks that a daemon's loop would, until the answer is there. */
static void ask_spool(struct request *q, const char *method, const char *path, struct slice body)
{
    const char *mark = strchr(path, '?');
    const struct api_request r = {.method = slice_str(method),
                                  .path = slice_make(path, mark ? (size_t)(mark - path) : strlen(path)),
                                  .query = slice_str(mark ? mark + 1 : NULL),
                                  .body = body,
                                  .who = q->who,
                                  .on_socket = true};
    int64_t give_up = clock_now() + q->patience_ms;

    spool_begin(q->sp, clock_now());
    struct api_call *call = api_handle(q->api, &r, on_reply, q);
    for (;;) {
        spool_work(q->sp);
        api_tick(q->api);
        spool_commit(q->sp);
        if (q->answered)
            return;
        int64_t now = clock_now();
        if (now >= give_up)
            break;
        if (api_next_deadline(q->api) > now) { /* only a failing store makes it wait */
            const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
            nanosleep(&pause, NULL);
        }
        spool_begin(q->sp, clock_now());
    }
    api_cancel(call);
    err_set(q->e, EX_TEMPFAIL, "the spool did not answer in time");
}

/* What the api says of a failure. */
static int refused(const struct answer *a, struct err *e)
{
    const struct json *error = json_get(a->root, "error");
    struct slice message = json_string(json_get(error, "message"));

    if (message.n == 0)
        return err_set(e, request_exit_code(a->status), "the daemon answered with status %d", a->status);
    struct buf hint = BUF_EMPTY;
    if (slice_eq_str(json_string(json_get(error, "code")), "unknown_bot")) {
        buf_add_str(&hint, "; `");
        cli_add_command(&hint, "tgspool status");
        buf_add_str(&hint, "` lists them");
    }
    err_set(e, request_exit_code(a->status), "%.*s%s", (int)message.n, message.p, buf_str(&hint));
    buf_free(&hint);
    return -1;
}

int request_send(struct request *q, const char *method, const char *path, struct slice body, struct answer *a,
                 struct err *e)
{
    *a = (struct answer){0};
    q->answered = false;
    q->answer = a;
    q->e = e;
    q->patience_ms = FAILPOINT("request.impatient") ? 200 : request_patience_ms(path);
    if (q->sp)
        ask_spool(q, method, path, body);
    else
        ask_daemon(q, method, path, body);
    if (!q->answered) {
        if (e && !e->exit_code)
            err_set(e, EX_UNAVAILABLE, "no answer from the daemon at %s", q->socket);
        return -1;
    }
    a->root = json_parse(buf_slice(&a->body), NULL);
    if (a->status >= 200 && a->status <= 299 && a->root)
        return 0;
    refused(a, e);
    if (q->sp && e && !spool_healthy(q->sp, NULL)) /* no daemon opens it again: to ask again would not help */
        e->exit_code = spool_health(q->sp, NULL) == SPOOL_CORRUPT ? EX_DATAERR : EX_IOERR;
    answer_clear(a);
    return -1;
}

void answer_clear(struct answer *a)
{
    json_free(a->root);
    buf_free(&a->body);
    a->root = NULL;
}

/* ---- filters ------------------------------------------------------------------------------------ */

static const char *const filters[] = {"bot",  "box",   "state", "chat",  "user",
                                      "kind", "since", "until", "error", NULL};

void query_add(struct buf *path, const char *name, const char *value)
{
    buf_printf(path, "%c%s=", path->n && memchr(path->p, '?', path->n) ? '&' : '?', name);
    percent_encode(path, slice_str(value));
}

void query_add_filters(const struct cli *cli, struct buf *path)
{
    for (size_t i = 0; filters[i]; i++)
        if (cli_option(cli, filters[i]))
            query_add(path, filters[i], cli_option(cli, filters[i]));
}

bool json_add_filters(const struct cli *cli, struct json_out *j)
{
    bool any = false;

    for (size_t i = 0; filters[i]; i++)
        if (cli_option(cli, filters[i])) {
            json_kv_cstr(j, filters[i], cli_option(cli, filters[i]));
            any = true;
        }
    return any;
}
