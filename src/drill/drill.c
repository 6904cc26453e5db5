/* The frame around the checks: the scratch directory, waiting, and one check after the other. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/random.h"
#include "base/tree.h"
#include "drill/inside.h"
#include "proc/orphans.h"

#define LOOK_MS 20       /* between two looks at what handlers wrote */
#define ASK_EVERY_MS 500 /* whether an update is dead */
#define SOCKET_ROOM 107  /* of a socket's path */
#define WEIGHTS_SUM 60

static const struct {
    const char *what;
    bool (*run)(struct drill *d);
    int weight; /* its share of the time, in sixtieths */
} checks[DRILL_CHECKS] = {
    {"exit right after the write", check_written, 8},
    {"killed while handling", check_killed, 7},
    {"Telegram's limits and time-outs", check_telegram, 24},
    {"a handler that hangs", check_lease, 7},
    {"the same update twice", check_twice, 7},
    {"disk full, database damaged", check_alarm, 7},
};

/* ---- waiting ------------------------------------------------------------------------------------ */

static int64_t tick(void *arg)
{
    struct drill *d = arg;
    int64_t now = loop_now(d->loop);

    record_read(&d->record);
    d->met = d->until && d->until(d);
    if (d->met || d->signo || now >= d->deadline || (d->ended && d->until != scratch_ended)) {
        loop_stop(d->loop);
        return TIME_NEVER;
    }
    int64_t next = now + LOOK_MS;
    return next < d->deadline ? next : d->deadline;
}

bool drill_turn(struct drill *d, bool (*until)(struct drill *d))
{
    d->until = until;
    loop_run(d->loop, tick, d);
    d->until = NULL;
    return d->met;
}

/* What was waited for did not come. */
static bool in_vain(struct drill *d, const char *what)
{
    if (d->signo)
        return drill_fail(d, "ended by a signal");
    if (d->ended) {
        char *words = scratch_last_words(d);
        drill_fail(d, "the daemon ended by itself; waited for was: %s; it said: %s", what, words);
        free(words);
        return false;
    }
    return drill_fail(d, "waited in vain: %s", what);
}

bool drill_wait(struct drill *d, bool (*until)(struct drill *d), const char *what)
{
    if (drill_turn(d, until))
        return true;
    in_vain(d, what);
    if (until != scratch_ended)
        scratch_explain(d);
    return false;
}

bool drill_rest(struct drill *d, int64_t ms)
{
    int64_t deadline = d->deadline, until = clock_now() + ms;

    if (until >= deadline)
        return false;
    d->deadline = until;
    loop_run(d->loop, tick, d);
    d->deadline = deadline;
    return !d->signo;
}

bool drill_sleep(struct drill *d, int64_t ms)
{
    return drill_rest(d, ms)
               ? true
               : drill_fail(d, d->signo ? "ended by a signal" : "the time for this check is over");
}

bool drill_fail(struct drill *d, const char *fmt, ...)
{
    va_list ap;

    buf_clear(&d->seen);
    va_start(ap, fmt);
    buf_vprintf(&d->seen, fmt, ap);
    va_end(ap);
    return false;
}

void drill_see(struct drill *d, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&d->seen, fmt, ap);
    va_end(ap);
}

char *drill_seconds(int64_t ms, char out[32])
{
    snprintf(out, 32, "%lld.%llds", (long long)(ms / 1000), (long long)(ms % 1000 / 100));
    return out;
}

static void on_signal(void *arg, int signo)
{
    struct drill *d = arg;

    d->signo = signo;
    loop_stop(d->loop);
}

/* ---- updates ------------------------------------------------------------------------------------ */

void drill_give(struct drill *d, size_t n, int64_t n_chats)
{
    d->n_ids = 0;
    server_withhold(d->server, true);
    for (size_t i = 0; i < n; i++)
        d->ids[d->n_ids++] = server_give(d->server, 1001 + (int64_t)i % n_chats);
    server_withhold(d->server, false);
}

static bool all_ended(struct drill *d)
{
    for (size_t i = 0; i < d->n_ids; i++)
        if (!record_count(&d->record, DEED_END, d->ids[i]))
            return false;
    return true;
}

bool drill_wait_handled(struct drill *d, const char *what)
{
    int64_t deadline = d->deadline;
    bool met = false, over = false;

    while (!met && !over) {
        int64_t next = clock_now() + ASK_EVERY_MS;
        d->deadline = next < deadline ? next : deadline;
        met = drill_turn(d, all_ended);
        d->deadline = deadline;
        over = d->signo || d->ended || next >= deadline || (!met && scratch_has_dead(d));
    }
    if (met)
        return true;
    in_vain(d, what);
    scratch_explain(d);
    return false;
}

bool drill_all_confirmed(struct drill *d)
{
    const struct server_state *s = server_state(d->server);

    for (size_t i = 0; i < s->n_updates; i++)
        if (!s->updates[i].confirmed)
            return false;
    return s->n_updates > 0;
}

bool drill_any_confirmed(const struct drill *d)
{
    const struct server_state *s = server_state(d->server);

    for (size_t i = 0; i < s->n_updates; i++)
        if (s->updates[i].confirmed)
            return true;
    return false;
}

bool drill_by_webhook(const struct drill *d)
{
    return d->o->bot->intake == INTAKE_WEBHOOK;
}

static int64_t chat_of(const struct drill *d, int64_t id)
{
    const struct server_state *s = server_state(d->server);

    for (size_t i = 0; i < s->n_updates; i++)
        if (s->updates[i].id == id)
            return s->updates[i].chat;
    return 0;
}

bool drill_in_order(struct drill *d)
{
    enum order order = d->o->bot->order;

    for (size_t i = 0; order != ORDER_NONE && i < d->n_ids; i++)
        for (size_t k = i + 1; k < d->n_ids; k++) {
            if (order != ORDER_BOT && chat_of(d, d->ids[i]) != chat_of(d, d->ids[k]))
                continue;
            const struct deed *end = record_find(&d->record, DEED_END, d->ids[i], 0);
            const struct deed *start = record_find(&d->record, DEED_START, d->ids[k], 0);
            if (end && start && start < end)
                return drill_fail(d, "update %lld was handed over before update %lld of its chat had ended",
                                  (long long)d->ids[k], (long long)d->ids[i]);
        }
    return true;
}

/* ---- one check, and all ------------------------------------------------------------------------- */

static void run_check(struct drill *d, int number, struct drill_summary *out)
{
    struct drill_result r = {.number = number, .what = checks[number - 1].what};

    d->number = number;
    d->share_ms = d->o->limit_ms * checks[number - 1].weight / WEIGHTS_SUM;
    d->deadline = clock_now() + d->share_ms;
    buf_clear(&d->seen);
    r.pass = checks[number - 1].run(d);
    scratch_clear(d);
    if (d->signo)
        return;
    r.seen = buf_str(&d->seen);
    out->passed += r.pass;
    out->failed += !r.pass;
    d->o->result(d->o->arg, &r);
}

/* Below $TMPDIR, unless its path is too long for a socket in it. */
static char *make_top(struct err *e)
{
    const char *tmp = getenv("TMPDIR");

    if (!tmp || tmp[0] != '/' || strlen(tmp) > SOCKET_ROOM - sizeof("/tgspool-drill-XXXXXX/6b/sock"))
        tmp = "/tmp";
    char *top = xasprintf("%s/tgspool-drill-XXXXXX", tmp);
    if (mkdtemp(top))
        return top;
    err_set(e, EX_CANTCREAT,
            "cannot make a scratch directory in %s: %s; set TMPDIR to one that can be written", tmp,
            strerror(errno));
    free(top);
    return NULL;
}

static char *make_secret(const char *before)
{
    unsigned char random[20];
    char hex[2 * sizeof(random) + 1];

    random_bytes(random, sizeof(random));
    hex_encode(random, sizeof(random), hex);
    return xasprintf("%s%s", before, hex);
}

int drill_run(const struct drill_options *o, struct drill_summary *out, struct err *e)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct drill d = {.o = o, .record = RECORD_EMPTY, .log_fd = -1};
    int rc = -1;

    *out = (struct drill_summary){0};
    if (!(d.top = make_top(e)))
        return -1;
    d.token = make_secret("1000000001:");
    d.hook_secret = make_secret("");
    orphans_adopt();
    d.loop = loop_new();
    for (size_t i = 0; i < ARRAY_LEN(signals); i++)
        loop_on_signal(d.loop, signals[i], on_signal, &d);
    d.server = server_new(d.loop, consumer_post, &d, e);
    if (d.server) {
        rc = 0;
        d.root = xasprintf("http://127.0.0.1:%u", (unsigned)server_port(d.server));
        o->before(o->arg, d.top, d.root);
        for (int n = 1; n <= DRILL_CHECKS && !d.signo; n++)
            if (o->wanted[n])
                run_check(&d, n, out);
        scratch_clear(&d);
    }
    out->signo = d.signo;
    server_free(d.server);
    loop_free(d.loop);
    if (o->keep || out->failed)
        out->dir = xstrdup(d.top);
    else if (tree_remove(d.top, e) < 0)
        rc = -1;
    buf_free(&d.seen);
    free(d.top);
    free(d.token);
    free(d.hook_secret);
    free(d.root);
    return rc;
}
