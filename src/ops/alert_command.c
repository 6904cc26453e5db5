/* Alerts to a command. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/mem.h"
#include "net/child.h"
#include "net/loop.h"
#include "ops/alert_channels.h"
#include "ops/alert_json.h"

#define TIME_LIMIT SECONDS(30)

struct command {
    struct alert_channel channel; /* first */
    struct loop *loop;
    char **argv;
    struct child *child; /* NULL: none runs */
    struct timer limit;
    bool too_long;
};

/* Its output may hold anything, so it is let go. */
static void on_output(void *arg, struct slice bytes)
{
    (void)arg;
    (void)bytes;
}

static void on_ended(void *arg)
{
    struct command *c = arg;
    struct buf why = BUF_EMPTY;
    bool ok = !c->too_long && !child_exec_errno(c->child) && child_status(c->child) == 0;

    timer_stop(&c->limit);
    if (c->too_long)
        buf_printf(&why, "the command took longer than %lld s and was ended", (long long)(TIME_LIMIT / 1000));
    else
        child_add_how(c->child, &why);
    child_free(c->child);
    c->child = NULL;
    alert_sender_tried(c->channel.sender, ok, -1, buf_str(&why));
    buf_free(&why);
}

static void on_limit(void *arg)
{
    struct command *c = arg;

    c->too_long = true;
    child_end(c->child, CHILD_GRACE_MS);
}

static void command_send(struct alert_channel *channel, const struct alert *a)
{
    static const struct child_events events = {on_output, on_output, NULL, on_ended};
    struct command *c = (struct command *)channel;
    struct proc_env env;
    struct buf line = BUF_EMPTY;

    proc_env_init(&env);
    c->too_long = false;
    c->child = child_start(c->loop, c->argv, &env, &events, c);
    int failed = errno;
    proc_env_free(&env);
    if (!c->child) {
        buf_printf(&line, "the command cannot be started: %s", strerror(failed));
        alert_sender_tried(channel->sender, false, -1, buf_str(&line));
    } else {
        alert_add_json(&line, a);
        buf_add_char(&line, '\n');
        child_write(c->child, buf_slice(&line));
        child_close_input(c->child);
        int64_t limit = FAILPOINT("alert.impatient") ? SECONDS(1) : TIME_LIMIT;
        timer_set(&c->limit, loop_now(c->loop) + limit);
    }
    buf_free(&line);
}

static void command_free_channel(struct alert_channel *channel)
{
    struct command *c = (struct command *)channel;

    timer_stop(&c->limit);
    child_free(c->child);
    for (char **p = c->argv; *p; p++)
        free(*p);
    free(c->argv);
    free(c);
}

struct alert_channel *alert_command_new(struct loop *l, char *const *argv)
{
    struct command *c = xcalloc(1, sizeof(*c));
    size_t n = 0;

    while (argv[n])
        n++;
    c->channel =
        (struct alert_channel){.name = "command", .send = command_send, .free = command_free_channel};
    c->loop = l;
    c->argv = xcalloc(n + 1, sizeof(*c->argv));
    for (size_t i = 0; i < n; i++)
        c->argv[i] = xstrdup(argv[i]);
    timer_init(&c->limit, l, on_limit, c);
    return &c->channel;
}
