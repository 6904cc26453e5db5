/* Status, pause and resume. */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "core/histogram.h"
#include "serve/api_call.h"
#include "wire/event_json.h"

/* ---- status ------------------------------------------------------------------------------------- */

static const char *cause_name(enum breaker_cause cause)
{
    switch (cause) {
    case BREAKER_UNAVAILABLE:
        return "unavailable";
    case BREAKER_LIMITED:
        return "limited";
    case BREAKER_FAILURES:
        return "failures";
    default:
        return NULL;
    }
}

static void write_counts(struct json_out *j, const struct spool_counts *n)
{
    json_kv_uint(j, "pending", n->pending);
    json_kv_uint(j, "processing", n->processing);
    json_kv_uint(j, "done", n->done);
    json_kv_uint(j, "dead", n->dead);
    json_kv_uint(j, "dead_replayed", n->dead_settled); /* or discarded since: no person need look */
    json_key(j, "since_made");
    json_object(j);
    json_kv_uint(j, "received", n->received);
    json_kv_uint(j, "duplicates", n->duplicates);
    json_kv_uint(j, "delivered", n->delivered);
    json_kv_uint(j, "failures", n->failures);
    json_kv_uint(j, "retries", n->retries);
    json_kv_uint(j, "lease_expired", n->lease_expired);
    json_kv_uint(j, "gaps", n->gaps);
    json_key(j, "dead");
    json_object(j);
    for (enum reason r = REASON_ATTEMPTS; r <= REASON_DISCARDED; r++)
        json_kv_uint(j, reason_name(r), n->dead_by_reason[r]);
    json_object_end(j);
    json_object_end(j);
}

void api_write_breaker(struct json_out *j, const struct breaker *b)
{
    json_key(j, "breaker");
    json_object(j);
    json_kv_bool(j, "open", b->open);
    json_kv_cstr(j, "cause", b->open ? cause_name(b->cause) : NULL);
    event_write_time(j, "since", b->open ? b->since : 0);
    event_write_time(j, "probe_at", b->open ? b->probe_at : 0);
    json_object_end(j);
}

/* missing is null as long as it is not known, and -1 if it never will be. */
static void write_restored(struct json_out *j, struct spool_box *b)
{
    struct spool_restored r;

    spool_restored(b, &r);
    json_key(j, "restored");
    if (!r.at) {
        json_null(j);
        return;
    }
    json_object(j);
    event_write_time(j, "at", r.at);
    event_write_time(j, "taken_at", r.taken_at);
    json_key(j, "missing");
    if (r.missing == RESTORED_UNKNOWN)
        json_null(j);
    else
        json_int(j, r.missing == RESTORED_NEVER ? -1 : r.missing);
    json_object_end(j);
}

/* How many values were at most so large, and larger than the bound before; buckets with nothing in them are left out. */
static void write_histogram(struct json_out *j, const char *key, const struct histogram *h)
{
    char bound[32];

    json_key(j, key);
    json_object(j);
    json_kv_uint(j, "count", h->count);
    json_kv_uint(j, "sum", h->sum);
    json_key(j, "up_to");
    json_object(j);
    for (size_t i = 0; i <= h->scale->n; i++) {
        if (i < h->scale->n)
            snprintf(bound, sizeof(bound), "%" PRIu64, h->scale->bounds[i]);
        if (h->counts[i])
            json_kv_uint(j, i < h->scale->n ? bound : "more", h->counts[i]);
    }
    json_object_end(j);
    json_object_end(j);
}

static void write_box(struct json_out *j, const struct api *api, struct spool_box *b)
{
    struct spool_box_status st;
    const char *bot = spool_box_bot(b);

    spool_box_status(b, &st);
    json_object(j);
    json_kv_cstr(j, "bot", bot);
    json_kv_int(j, "bot_id", spool_box_bot_id(b));
    json_kv_cstr(j, "box", box_name(spool_box_which(b)));
    json_kv_bool(j, "orphan", st.orphan);
    write_counts(j, &st.counts);
    event_write_time(j, "oldest_unfinished_at", st.oldest_unfinished_at);
    json_key(j, "oldest_unfinished_age");
    if (st.oldest_unfinished_at)
        json_int(j, (api_now(api) - st.oldest_unfinished_at) / 1000);
    else
        json_null(j);
    event_write_time(j, "last_received_at", st.last_received_at);
    write_histogram(j, "handler_ms", spool_handler_ms(b));
    api_write_breaker(j, &st.breaker);
    json_key(j, "paused");
    json_object(j);
    json_kv_bool(j, "intake", st.paused_intake);
    json_kv_bool(j, "deliver", st.paused_deliver);
    json_object_end(j);
    json_kv_bool(j, "behind_barrier", st.behind_barrier);
    if (spool_box_which(b) == BOX_IN)
        write_restored(j, b);
    if (spool_box_which(b) == BOX_IN && !st.orphan && api->hooks.intake_status) {
        json_key(j, "intake");
        api->hooks.intake_status(api->hooks.arg, bot, j);
    }
    if (spool_box_which(b) == BOX_IN && !st.orphan && api->hooks.consumer_status) {
        json_key(j, "consumer");
        api->hooks.consumer_status(api->hooks.arg, bot, j);
    }
    json_object_end(j);
}

static void write_commits(struct json_out *j, const struct spool *sp)
{
    struct spool_commit_stats s;

    spool_commit_stats(sp, &s);
    json_key(j, "commits");
    json_object(j);
    json_kv_uint(j, "commits", s.commits);
    json_kv_uint(j, "syncs", s.syncs);
    json_kv_uint(j, "events", s.events);
    json_kv_uint(j, "last_us", s.last_us);
    json_kv_uint(j, "max_us", s.max_us);
    json_kv_uint(j, "total_us", s.total_us);
    write_histogram(j, "us", s.us);
    write_histogram(j, "batch_events", s.batch_events);
    json_object_end(j);
}

/* What is removed by itself, and why not. */
static void write_retention(struct json_out *j, const struct spool *sp)
{
    struct spool_retention_status s;

    spool_retention_status(sp, &s);
    json_key(j, "retention");
    json_object(j);
    json_kv_uint(j, "removed", s.removed);
    json_kv_uint(j, "archived", s.archived);
    event_write_time(j, "failing_since", s.failing_since);
    json_kv_cstr(j, "trouble", s.failing_since ? s.trouble : NULL);
    json_object_end(j);
}

/* Returns the health that it tells. */
static enum spool_health write_status(struct buf *out, const struct api *api)
{
    struct json_out j;
    char why[256] = "", instance[33];
    uint64_t generation;

    enum spool_health health = spool_health(api->sp, why);
    spool_identity(api->sp, instance, &generation);
    json_start(&j, out);
    json_object(&j);
    json_kv_cstr(&j, "version", api->hooks.version);
    event_write_time(&j, "started_at", api->hooks.started_at);
    event_write_time(&j, "now", api_now(api));
    json_kv_cstr(&j, "instance", instance);
    json_kv_uint(&j, "generation", generation);
    json_kv_bool(&j, "healthy", health <= SPOOL_STALLED);
    json_kv_cstr(&j, "health", spool_health_name(health));
    json_kv_cstr(&j, "trouble", health != SPOOL_OK ? why : NULL);
    if (api->hooks.children_status) {
        json_key(&j, "children");
        api->hooks.children_status(api->hooks.arg, &j);
    }
    json_key(&j, "boxes");
    json_array(&j);
    for (struct spool_box *b = spool_next_box(api->sp, NULL); b; b = spool_next_box(api->sp, b))
        write_box(&j, api, b);
    json_array_end(&j);
    write_retention(&j, api->sp);
    write_commits(&j, api->sp);
    if (api->hooks.disk_status) {
        json_key(&j, "disk");
        api->hooks.disk_status(api->hooks.disk_arg, &j);
    }
    json_object_end(&j);
    json_end(&j);
    return health;
}

void api_status(struct api_call *c, const struct api_request *r, const struct params *p)
{
    struct buf out = BUF_EMPTY;

    (void)r;
    (void)p;
    if (write_status(&out, c->api) != spool_health(c->api->sp, NULL)) { /* what it read of the boxes failed */
        buf_clear(&out);
        write_status(&out, c->api);
    }
    api_answer(c, 200, buf_slice(&out));
    buf_free(&out);
}

/* ---- pause, resume ------------------------------------------------------------------------------ */

/* Without `what`: both. */
static void set_paused(struct api_call *c, const struct params *p, bool paused)
{
    const struct param *what = params_get(p, "what");
    bool intake = !what || slice_eq_str(what->text, "intake");
    bool deliver = !what || slice_eq_str(what->text, "deliver");
    struct buf out = BUF_EMPTY;
    struct json_out j;

    struct spool_box *in = api_box_of(c, p, BOX_IN);
    if (!in)
        return;
    if (!intake && !deliver) {
        api_fail(c, 422, "bad_value", "\"what\" must be intake or deliver; without it, both are meant");
        return;
    }
    if (!spool_healthy(c->api->sp, NULL)) {
        api_fail_store(c);
        return;
    }
    struct spool_box *calls = spool_find_box(c->api->sp, spool_box_bot(in), BOX_OUT);
    if (intake)
        spool_pause(in, true, paused);
    if (deliver)
        spool_pause(in, false, paused);
    if (deliver && calls)
        spool_pause(calls, false, paused);
    json_start(&j, &out);
    json_object(&j);
    json_kv_cstr(&j, "bot", spool_box_bot(in));
    if (intake)
        json_kv_cstr(&j, "intake", paused ? "paused" : "running");
    if (deliver)
        json_kv_cstr(&j, "deliver", paused ? "paused" : "running");
    json_object_end(&j);
    json_end(&j);
    api_answer_durable(c, 200, &out);
}

void api_pause(struct api_call *c, const struct api_request *r, const struct params *p)
{
    (void)r;
    set_paused(c, p, true);
}

void api_resume(struct api_call *c, const struct api_request *r, const struct params *p)
{
    (void)r;
    set_paused(c, p, false);
}
