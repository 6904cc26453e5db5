/* The scratch directory of a check, its config, and the daemon that runs by it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/tree.h"
#include "core/option_command.h"
#include "core/options.h"
#include "drill/inside.h"
#include "net/child.h"
#include "net/http_client.h"
#include "net/listen.h"
#include "proc/env.h"
#include "wire/json.h"

#define OWN_PROGRAM "/proc/self/exe"
#define STOP_GRACE_MS 10000
#define ASK_MS 10000
#define ASK_AGAIN_MS 50
#define EXPLAIN_MS 2000
#define LOG_MAX (4u << 20)

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

/* A port that nobody listens on now. */
static uint16_t free_port(void)
{
    uint16_t port = 0;
    struct err e = ERR_NONE;
    int fd = listen_tcp("127.0.0.1:0", &port, &e);

    if (fd >= 0)
        close(fd);
    return port;
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
    path = xasprintf("%s/alert.url", d->dir);
    buf_add_str(out, "alerts:\n");
    add_quoted(out, "  ", "url_file", path);
    free(path);
    buf_printf(out, "bots:\n  %s:\n", d->o->bot->name);
    path = xasprintf("%s/token", d->dir);
    add_quoted(out, "    ", "token_file", path);
    free(path);
    buf_printf(out, "    api_root: %s\n    intake: poll\n    poll_timeout: 1s\n", d->root);
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

/* What is ended takes its time, however impatient somebody is. */
static void end_daemon(struct drill *d)
{
    int64_t deadline = d->deadline;
    int signo = d->signo;

    d->signo = 0;
    d->deadline = clock_now() + STOP_GRACE_MS;
    child_kill(d->daemon);
    drill_turn(d, scratch_ended);
    d->deadline = deadline;
    d->signo = signo ? signo : d->signo;
}

void scratch_clear(struct drill *d)
{
    if (d->daemon)
        end_daemon(d);
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
    d->dir = NULL;
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

/* ---- the daemon --------------------------------------------------------------------------------- */

static void on_output(void *arg, struct slice bytes)
{
    struct drill *d = arg;

    if (bytes.n && d->log_fd >= 0 && write(d->log_fd, bytes.p, bytes.n) < 0)
        return; /* a log that cannot be written fails no check */
}

static void on_ended(void *arg)
{
    struct drill *d = arg;

    d->status = child_status(d->daemon);
    child_free(d->daemon);
    d->daemon = NULL;
    d->ended = true;
}

static const struct child_events daemon_events = {.out = on_output, .err = on_output, .ended = on_ended};

bool scratch_start(struct drill *d)
{
    char *config = xasprintf("%s/tgspool.yaml", d->dir);
    char *argv[] = {(char *)OWN_PROGRAM, (char *)"run", (char *)"-c", config, NULL};
    struct proc_env env;

    for (size_t i = 0; i < d->o->config->n_bots; i++)
        proc_env_hide(d->o->config->bots[i].token_env);
    proc_env_init(&env);
    proc_env_set(&env, "TGSPOOL_DRILL", "1");
    proc_env_set(&env, "TGSPOOL_API_ROOT", d->root);
    d->ended = false;
    d->daemon = child_start(d->loop, argv, &env, &daemon_events, d);
    int why = errno;
    proc_env_free(&env);
    free(config);
    if (!d->daemon)
        return drill_fail(d, "the daemon cannot be started: %s", strerror(why));
    child_close_input(d->daemon);
    consumer_start(d);
    return true;
}

static bool has_asked(struct drill *d)
{
    return server_state(d->server)->polls > d->mark;
}

bool scratch_start_ready(struct drill *d)
{
    d->mark = server_state(d->server)->polls;
    return scratch_start(d) && drill_wait(d, has_asked, "the daemon asks for updates");
}

bool scratch_ended(struct drill *d)
{
    return d->ended;
}

bool scratch_kill(struct drill *d)
{
    if (!d->daemon)
        return drill_fail(d, "the daemon ended by itself");
    child_kill(d->daemon);
    return drill_wait(d, scratch_ended, "the killed daemon is gone");
}

bool scratch_stop(struct drill *d)
{
    if (!d->daemon)
        return drill_fail(d, "the daemon ended by itself");
    child_end(d->daemon, STOP_GRACE_MS);
    if (!drill_wait(d, scratch_ended, "the daemon ends on SIGTERM"))
        return false;
    if (WIFEXITED(d->status) && WEXITSTATUS(d->status) == 0)
        return true;
    char *words = scratch_last_words(d);
    drill_fail(d, "the daemon did not end well on SIGTERM: %s", words);
    free(words);
    return false;
}

char *scratch_last_words(const struct drill *d)
{
    char *path = xasprintf("%s/log", d->dir), *save = NULL, *best = NULL, *last = NULL;
    struct buf text = BUF_EMPTY, clean = BUF_EMPTY;

    if (file_read(path, LOG_MAX, &text, NULL) == 0 && text.n)
        for (char *line = strtok_r(text.p, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
            last = line;
            if (strstr(line, " error ") || strstr(line, " warn ") || strncmp(line, "tgspool:", 8) == 0)
                best = line;
        }
    if (best || last)
        text_add_clean(&clean, slice_str(best ? best : last), 400, false);
    else
        buf_add_str(&clean, "it left no word");
    buf_free(&text);
    free(path);
    return buf_steal(&clean);
}

/* ---- asking it ---------------------------------------------------------------------------------- */

struct question {
    bool answered, good, again;
    struct buf *out;
    char why[300];
};

static bool has_answer(struct drill *d)
{
    return d->question->answered;
}

static void on_answer(void *arg, struct http_answer *a)
{
    struct question *q = arg;

    q->answered = true;
    q->good = a->fail == HTTP_OK && a->status >= 200 && a->status < 300;
    q->again = a->fail == HTTP_REFUSED;
    if (a->fail == HTTP_OK && !q->good)
        snprintf(q->why, sizeof(q->why), "status %d: %.200s", a->status, buf_str(&a->body));
    else
        snprintf(q->why, sizeof(q->why), "%s", a->error);
    buf_clear(q->out);
    buf_add_slice(q->out, buf_slice(&a->body));
}

/* Asks, again until the daemon has opened its socket, which it does last. */
static void put_question(struct drill *d, struct http_client *c, const struct http_request *r,
                         struct question *q)
{
    d->question = q;
    do {
        q->answered = q->again = false;
        snprintf(q->why, sizeof(q->why), "no answer");
        http_client_request(c, r, on_answer, q);
        if (!drill_turn(d, has_answer))
            http_client_cancel(c);
    } while (q->again && drill_sleep(d, ASK_AGAIN_MS));
    d->question = NULL;
}

static bool ask(struct drill *d, const char *method, const char *path, const char *body, struct question *q)
{
    char *url = xasprintf("unix:%s/sock", d->dir);
    const struct http_client_options o = {.base_url = url, .connect_timeout_ms = ASK_MS, .max_body = LOG_MAX};
    const struct http_request r = {
        .method = method, .path = path, .body = slice_str(body), .deadline_ms = ASK_MS};
    struct err e = ERR_NONE;
    struct http_client *c = http_client_new(d->loop, &o, &e);

    if (c)
        put_question(d, c, &r, q);
    else
        snprintf(q->why, sizeof(q->why), "%.290s", e.text);
    http_client_free(c);
    free(url);
    return q->good;
}

bool scratch_ask(struct drill *d, const char *method, const char *path, const char *body, struct buf *out)
{
    struct question q = {.out = out};

    return ask(d, method, path, body, &q) ? true : drill_fail(d, "%s %s: %s", method, path, q.why);
}

/* Words for an event as the API shows it. */
static void add_event(struct drill *d, const struct json *ev)
{
    struct slice state = json_string(json_get(ev, "state")), reason = json_string(json_get(ev, "reason"));
    struct slice error = json_string(json_get(ev, "error")), id = json_string(json_get(ev, "id"));
    int64_t attempts = 0;

    (void)json_to_i64(json_get(ev, "attempts"), &attempts);
    drill_see(d, "; %.*s is %.*s", (int)id.n, id.p, (int)state.n, state.p);
    if (reason.n)
        drill_see(d, " (%.*s)", (int)reason.n, reason.p);
    drill_see(d, ", failed tries: %lld", (long long)attempts);
    if (error.n)
        drill_see(d, ", last error: %.*s", error.n < 200 ? (int)error.n : 200, error.p);
}

/* The first event of the in-box in that state, as the API shows it, to be given to json_free by *root; NULL: none. */
static const struct json *find_event(struct drill *d, const char *state, struct buf *body, struct json **root)
{
    char *path = xasprintf("/v1/events?bot=%s&box=in&limit=1&state=%s", d->o->bot->name, state);
    struct question q = {.out = body};

    *root = NULL;
    if (d->daemon && ask(d, "GET", path, NULL, &q))
        *root = json_parse(buf_slice(body), NULL);
    free(path);
    return json_item(json_get(*root, "events"), 0);
}

bool scratch_has_dead(struct drill *d)
{
    struct buf body = BUF_EMPTY;
    struct json *root;
    bool found = find_event(d, "dead", &body, &root) != NULL;

    json_free(root);
    buf_free(&body);
    return found;
}

void scratch_explain(struct drill *d)
{
    static const char *const states[] = {"dead", "processing", "pending"};
    int64_t deadline = d->deadline;
    bool found = false;

    for (size_t i = 0; i < ARRAY_LEN(states) && !found; i++) {
        struct buf body = BUF_EMPTY;
        struct json *root;
        d->deadline = clock_now() + EXPLAIN_MS;
        const struct json *ev = find_event(d, states[i], &body, &root);
        found = ev != NULL;
        if (found)
            add_event(d, ev);
        json_free(root);
        buf_free(&body);
    }
    d->deadline = deadline;
}
