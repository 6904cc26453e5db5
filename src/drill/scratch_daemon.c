/* The daemon of a check: started, killed, ended, and its last words. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/text.h"
#include "drill/inside.h"
#include "net/child.h"
#include "proc/env.h"

#define STOP_GRACE_MS 10000
#define LOG_MAX (4u << 20)

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
    struct buf answer = BUF_EMPTY;

    d->mark = server_state(d->server)->polls;
    if (!scratch_start(d))
        return false;
    if (!drill_by_webhook(d))
        return drill_wait(d, has_asked, "the daemon asks for updates");
    bool up = scratch_ask(d, "GET", "/healthz", NULL, &answer);
    buf_free(&answer);
    return up;
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

/* What is ended takes its time, however impatient somebody is. */
void scratch_end(struct drill *d)
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
