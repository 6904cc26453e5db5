/* The dispatcher of requests: the table of routes, how calls are answered, and the api's part of the tick. */
#include "serve/api.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/mem.h"
#include "base/text.h"
#include "serve/api_call.h"
#include "serve/checkpoint.h"
#include "serve/compact.h"
#include "serve/handover.h"
#include "serve/lease.h"
#include "serve/tail.h"

#define NO_ROOM_AFTER_S 30 /* Retry-After */

struct route {
    const char *method;
    const char *path; /* one that ends with '/' is a prefix; a '*' stands for one segment */
    api_route_fn *fn;
    const char *const
        *accepts; /* names of parameters; NULL: the route reads the body itself and takes no query */
    bool pull;    /* open to the holder of a bot's pull token */
};

static const char *const none[] = {NULL};
static const char *const claim_names[] = {"bot", "max", "wait", "lease", "consumer", NULL};
static const char *const ack_names[] = {"events", "id", "lease", "keys", "calls", NULL};
static const char *const nack_names[] = {"events", "id", "lease", "error", "retry_after", "dead", NULL};
static const char *const extend_names[] = {"events", "id", "lease", "by", NULL};
static const char *const keys_names[] = {"bot", "key", "ttl", "id", "lease", NULL};
static const char *const call_names[] = {"method", "body", "once", "key", NULL};
static const char *const list_names[] = {FILTER_NAMES, "limit", "after", "newest", "payload", NULL};
static const char *const event_names[] = {"payload", NULL};
static const char *const replay_names[] = {FILTER_NAMES, "id", "ids", "dry_run", "all", NULL};
static const char *const discard_names[] = {FILTER_NAMES, "id", "ids", "dry_run", "all", "force", NULL};
static const char *const pause_names[] = {"bot", "what", NULL};
static const char *const handover_names[] = {"wait", NULL};
static const char *const compact_names[] = {"wait", NULL};
static const char *const alert_names[] = {"wait", NULL};
static const char *const tail_names[] = {"after", "wait", "limit", "bot", NULL};

static const struct route routes[] = {
    {"POST", "/v1/claim", lease_claim, claim_names, true},
    {"POST", "/v1/ack", lease_ack, ack_names, true},
    {"POST", "/v1/nack", lease_nack, nack_names, true},
    {"POST", "/v1/extend", lease_extend, extend_names, true},
    {"POST", "/v1/keys", api_keys, keys_names, true},
    {"POST", "/v1/bots/*/calls", api_post_call, call_names, false},
    {"GET", "/v1/events", api_events, list_names, false},
    {"GET", "/v1/events/", api_event, event_names, false},
    {"POST", "/v1/replay", api_replay, replay_names, false},
    {"POST", "/v1/discard", api_discard, discard_names, false},
    {"GET", "/v1/jobs/", api_job, none, false},
    {"POST", "/v1/import", api_import, NULL, false},
    {"POST", "/v1/pause", api_pause, pause_names, false},
    {"POST", "/v1/resume", api_resume, pause_names, false},
    {"POST", "/v1/bots/*/handover", handover_post, handover_names, false},
    {"GET", "/v1/bots/*/handover", handover_get, handover_names, false},
    {"POST", "/v1/checkpoint", checkpoint_post, none, false},
    {"DELETE", "/v1/checkpoint/", checkpoint_delete, none, false},
    {"POST", "/v1/compact", compact_post, compact_names, false},
    {"GET", "/v1/compact", compact_get, compact_names, false},
    {"POST", "/v1/alert-test", api_alert_test, alert_names, false},
    {"GET", "/v1/status", api_status, none, false},
    {"GET", "/v1/tail", tail_get, tail_names, false},
    {"GET", "/metrics", api_metrics, none, false},
    {"GET", "/healthz", api_healthz, none, false},
    {"GET", "/readyz", api_readyz, none, false},
};

/* ---- answering ---------------------------------------------------------------------------------- */

static void call_free(struct api_call *c)
{
    if (c->drop)
        c->drop(c);
    list_del(&c->link);
    buf_free(&c->held);
    free(c);
}

static void answer(struct api_call *c, int status, const char *type, struct slice body, int64_t retry_after_s)
{
    api_reply_fn *fn = c->fn;
    void *arg = c->arg;

    if (c->answered)
        *c->answered = true;
    fn(arg, status, type, body, retry_after_s);
    call_free(c);
}

void api_answer(struct api_call *c, int status, struct slice body)
{
    answer(c, status, NULL, body, -1);
}

void api_answer_as(struct api_call *c, int status, const char *type, struct slice body)
{
    answer(c, status, type, body, -1);
}

void api_error_member(struct json_out *j, const char *code, const char *message)
{
    json_key(j, "error");
    json_object(j);
    json_kv_cstr(j, "code", code);
    json_kv_cstr(j, "message", message);
    json_object_end(j);
}

static void fail(struct api_call *c, int status, const char *code, int64_t retry_after_s, const char *message)
{
    struct buf out = BUF_EMPTY;
    struct json_out j;

    json_start(&j, &out);
    json_object(&j);
    api_error_member(&j, code, message);
    json_object_end(&j);
    json_end(&j);
    answer(c, status, NULL, buf_slice(&out), retry_after_s);
    buf_free(&out);
}

void api_fail(struct api_call *c, int status, const char *code, const char *fmt, ...)
{
    char message[640];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    fail(c, status, code, -1, message);
}

void api_fail_params(struct api_call *c, const struct param_error *e)
{
    fail(c, e->status, e->status == 422 ? "bad_value" : "bad_request", -1, e->text);
}

void api_fail_store(struct api_call *c)
{
    char why[256] = "", message[400];

    if (spool_healthy(c->api->sp, why))
        snprintf(why, sizeof(why), "the last write failed");
    snprintf(message, sizeof(message), "the store does not take this now: %s; ask again", why);
    fail(c, 503, "unavailable", 5, message);
}

bool api_has_room(struct api_call *c)
{
    const char *why = spool_held(c->api->sp);
    char message[400];

    if (!why)
        return true;
    snprintf(message, sizeof(message), "nothing new is taken now: %s; what is there goes on", why);
    fail(c, 503, "no_room", NO_ROOM_AFTER_S, message);
    return false;
}

static void drop_held(struct api_call *c)
{
    spool_forget(c->api->sp, c);
}

/* The batch with a held answer's doing is written, or lost. */
static void held_written(void *arg, bool ok)
{
    struct api_call *c = arg;

    c->drop = NULL;
    if (!ok) {
        api_fail_store(c);
        return;
    }
    (void)FAILPOINT("api.before_answer");
    answer(c, c->held_status, NULL, buf_slice(&c->held), -1);
    (void)FAILPOINT("api.after_answer");
}

void api_answer_durable(struct api_call *c, int status, struct buf *body)
{
    if (c->drop)
        c->drop(c);
    c->held = *body;
    *body = BUF_EMPTY;
    c->held_status = status;
    if (FAILPOINT("break.early_answer")) {
        answer(c, status, NULL, buf_slice(&c->held), -1);
        return;
    }
    c->drop = drop_held;
    spool_on_durable(c->api->sp, held_written, c);
}

int64_t api_now(const struct api *api)
{
    return api->hooks.now();
}

/* ---- asking ------------------------------------------------------------------------------------- */

static bool route_matches(const struct route *r, struct slice path)
{
    const char *p = path.p, *end = path.p + path.n, *pattern = r->path;

    for (; *pattern && p < end; pattern++) {
        if (*pattern == '*') {
            const char *from = p;
            while (p < end && *p != '/')
                p++;
            if (p == from)
                return false;
        } else if (*pattern != *p++) {
            return false;
        }
    }
    return !*pattern && (pattern[-1] == '/') == (p < end);
}

static void dispatch(struct api_call *c, const struct route *route, const struct api_request *r)
{
    struct params p = {0};
    struct param_error e;
    static const char *const no_names[] = {NULL};
    struct slice body = route->accepts ? r->body : slice_make(NULL, 0);

    if (params_read(r->query, body, route->accepts ? route->accepts : no_names, &p, &e) < 0)
        api_fail_params(c, &e);
    else
        route->fn(c, r, &p);
    params_free(&p);
}

/* Finds the route; tells a wrong method from an unknown path. */
static void start(struct api_call *c, const struct api_request *r)
{
    const char *other_method = NULL;

    for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
        if (!route_matches(&routes[i], r->path))
            continue;
        if (slice_eq_str(r->method, routes[i].method)) {
            if (c->only_bot[0] && !routes[i].pull)
                api_fail(c, 401, "unauthorized", "a pull token opens claim, ack, nack, extend and keys only");
            else
                dispatch(c, &routes[i], r);
            return;
        }
        other_method = routes[i].method;
    }
    if (other_method)
        api_fail(c, 405, "method", "this path is asked by %s", other_method);
    else
        api_fail(c, 404, "not_found", "there is nothing at this path");
}

struct api_call *api_handle(struct api *api, const struct api_request *r, api_reply_fn *fn, void *arg)
{
    struct api_call *c = xcalloc(1, sizeof(*c));
    bool answered = false;

    c->api = api;
    c->fn = fn;
    c->arg = arg;
    c->answered = &answered;
    c->on_socket = r->on_socket;
    snprintf(c->who, sizeof(c->who), "%s", r->who ? r->who : "");
    snprintf(c->only_bot, sizeof(c->only_bot), "%s", r->only_bot ? r->only_bot : "");
    list_add_tail(&api->calls, &c->link);
    unsigned max = slice_eq_str(r->path, "/v1/import") ? API_IMPORT_MAX : API_BODY_MAX;
    if (r->body.n > max)
        api_fail(c, 413, "too_large", "the body is larger than %u MiB; send it in parts", max >> 20);
    else
        start(c, r);
    if (answered)
        return NULL;
    c->answered = NULL;
    return c;
}

void api_cancel(struct api_call *call)
{
    call_free(call);
}

static void no_such_bot(struct api_call *c)
{
    api_fail(c, 404, "unknown_bot", "there is no bot of this name");
}

struct spool_box *api_box_of(struct api_call *c, const struct params *p, enum box box)
{
    const struct param *bot = params_get(p, "bot");
    char name[BOT_NAME_MAX + 1];

    if (!bot || bot->text.n == 0) {
        api_fail(c, 400, "bad_request", "\"bot\" is missing: the name of a bot");
        return NULL;
    }
    struct spool_box *b = NULL;
    if (text_is_bot_name(bot->text) && (!c->only_bot[0] || slice_eq_str(bot->text, c->only_bot))) {
        memcpy(name, bot->text.p, bot->text.n);
        name[bot->text.n] = '\0';
        b = spool_find_box(c->api->sp, name, box);
    }
    if (!b)
        no_such_bot(c);
    return b;
}

bool api_knows_bot(struct api_call *c, const struct spool_filter *f)
{
    if (!f->bot || spool_find_box(c->api->sp, f->bot, BOX_IN) || spool_find_box(c->api->sp, f->bot, BOX_OUT))
        return true;
    no_such_bot(c);
    return false;
}

struct spool_box *api_path_box(struct api_call *c, const struct api_request *r, enum box box)
{
    static const size_t front = sizeof("/v1/bots/") - 1;
    const char *name = r->path.p + front, *slash = memchr(name, '/', r->path.n - front);
    struct params p = {.n = 1};

    p.list[0] = (struct param){
        .name = slice_str("bot"),
        .text = slice_make(name, slash ? (size_t)(slash - name) : r->path.n - front),
    };
    return api_box_of(c, &p, box);
}

/* ---- the tick ----------------------------------------------------------------------------------- */

void api_work_add(struct api *api, struct api_work *w)
{
    list_add_tail(&api->work, &w->link);
}

/* Gives one stretch of time to the walks, in turn. While the store is failed there is nothing that they could do. */
static void run_work(struct api *api)
{
    int64_t until = api->hooks.us() + API_SLICE_US;

    api->work_failed = !spool_healthy(api->sp, NULL);
    if (api->work_failed) {
        list_each(&api->work, it) {
            struct api_work *w = list_item(it, struct api_work, link);
            if (w->call)
                api_fail_store(w->call); /* frees the work, or it goes on when the store does */
        }
        return;
    }
    while (!list_empty(&api->work) && !spool_batch_full(api->sp) && api->hooks.us() < until) {
        struct api_work *w = list_item(api->work.next, struct api_work, link);
        list_del(&w->link);
        list_add_tail(&api->work, &w->link);
        w->slice(w, until);
    }
}

void api_tick(struct api *api)
{
    leases_serve(api->leases);
    tail_serve(api->tail);
    handovers_serve(api->handovers);
    checkpoints_serve(api->checkpoints);
    compaction_serve(api->compaction);
    run_work(api);
}

int64_t api_next_deadline(const struct api *api)
{
    bool failed = !spool_healthy(api->sp, NULL);
    if (!list_empty(&api->work) && (failed ? !api->work_failed : !spool_batch_full(api->sp)))
        return 0; /* else the spool's own deadline comes first */
    const int64_t at[] = {leases_next_deadline(api->leases), tail_next_deadline(api->tail),
                          handovers_next_deadline(api->handovers),
                          checkpoints_next_deadline(api->checkpoints),
                          compaction_next_deadline(api->compaction)};
    int64_t first = TIME_NEVER;
    for (size_t i = 0; i < ARRAY_LEN(at); i++)
        first = at[i] < first ? at[i] : first;
    return first;
}

struct api *api_new(struct spool *sp, const struct api_hooks *hooks)
{
    struct api *api = xcalloc(1, sizeof(*api));

    api->sp = sp;
    api->hooks = *hooks;
    list_init(&api->calls);
    list_init(&api->work);
    list_init(&api->jobs);
    api->leases = leases_new(api);
    api->tail = tail_new(api);
    api->handovers = handovers_new(api);
    api->checkpoints = checkpoints_new(api);
    api->compaction = compaction_new(api);
    return api;
}

void api_free(struct api *api)
{
    if (!api)
        return;
    while (!list_empty(&api->calls))
        call_free(list_item(api->calls.next, struct api_call, link));
    api_jobs_free(api);
    checkpoints_free(api->checkpoints);
    compaction_free(api->compaction);
    handovers_free(api->handovers);
    tail_free(api->tail);
    leases_free(api->leases);
    free(api);
}
