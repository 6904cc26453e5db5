/* Driving slots as the daemon does: tick, commit, sleep. */
#include "rig.h"

#include <assert.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "deliver/slots.h"
#include "net/loop.h"

#define PATIENCE SECONDS(30)

const char *handler_path(void)
{
    static char path[PATH_MAX + 16];
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    assert(n > 0);
    self[n] = '\0';
    snprintf(path, sizeof(path), "%s/handler", dirname(self));
    return path;
}

void rig_init(struct rig *r, enum deliver_mode mode)
{
    memset(r, 0, sizeof(*r));
    fake_init(&r->box);
    strcpy(r->bot.name, "shop");
    r->bot.deliver = mode;
    r->bot.concurrency = 1;
    r->bot.shutdown_wait_ms = 300;
    r->bot.command = r->argv;
}

void rig_script(struct rig *r, const char *script)
{
    r->argv[0] = (char *)(uintptr_t) "/bin/sh";
    r->argv[1] = (char *)(uintptr_t) "-c";
    r->argv[2] = (char *)(uintptr_t)script;
    r->argv[3] = NULL;
}

void rig_handler(struct rig *r, const char *mode)
{
    r->argv[0] = (char *)(uintptr_t)handler_path();
    r->argv[1] = (char *)(uintptr_t)mode;
    r->argv[2] = NULL;
}

void rig_open(struct rig *r, const char *secret)
{
    struct err e = ERR_NONE;

    r->loop = loop_new();
    r->slots = slots_new(r->loop, &r->box, &r->bot, secret, &e);
    if (!r->slots)
        fprintf(stderr, "%s\n", e.text);
    assert(r->slots);
}

static int reread(void *arg, struct buf *out, struct err *e)
{
    struct rig *r = arg;

    (void)e;
    r->rereads++;
    buf_add_str(out, r->reread ? r->reread : CALLS_TOKEN);
    return 0;
}

void rig_open_calls(struct rig *r, const char *api_root, const char *again)
{
    struct err e = ERR_NONE;
    const struct slots_calls calls = {
        .bot = &r->bot, .token = CALLS_TOKEN, .reread_token = reread, .reread_arg = r};

    r->bot.api_root = (char *)(uintptr_t)api_root;
    r->reread = again;
    r->box.which = BOX_OUT;
    r->loop = loop_new();
    r->slots = slots_new_calls(r->loop, &r->box, &calls, &e);
    assert(r->slots);
}

static int64_t tick(void *arg)
{
    struct rig *r = arg;

    slots_tick(r->slots);
    fake_commit(&r->box, true);
    if (r->until(r) || clock_now() >= r->give_up)
        loop_stop(r->loop);
    int64_t next = slots_next_deadline(r->slots);
    return next < r->give_up ? next : r->give_up;
}

static void run(struct rig *r, bool (*until)(struct rig *r), int64_t ms)
{
    r->until = until;
    r->give_up = clock_now() + ms;
    loop_run(r->loop, tick, r);
}

static bool has_outcomes(struct rig *r)
{
    return r->box.n_outcomes >= r->outcomes_wanted;
}

static bool never(struct rig *r)
{
    (void)r;
    return false;
}

void rig_run(struct rig *r, size_t outcomes)
{
    r->outcomes_wanted = outcomes;
    run(r, has_outcomes, PATIENCE);
    assert(has_outcomes(r));
}

void rig_run_until(struct rig *r, bool (*until)(struct rig *r))
{
    run(r, until, PATIENCE);
    assert(until(r));
}

void rig_run_for(struct rig *r, int64_t ms)
{
    run(r, never, ms);
}

void rig_close(struct rig *r)
{
    slots_free(r->slots);
    loop_free(r->loop);
}
