/* GET /metrics: a row where a family has one sample a box, a function where it is otherwise. All is in memory, or one
 * look at the kernel, so that a scrape costs the loop little. Every counter is there from the start, at 0; a gauge only
 * while its value is known. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/process.h"
#include "core/histogram.h"
#include "serve/api_call.h"
#include "wire/metrics.h"

/* A box, as it is when the scrape comes. */
struct box_view {
    char bot[BOT_NAME_MAX +
             32]; /* the label: an orphan's name may be another bot's by now, so its id is added */
    const char *box;
    bool in;
    struct spool_box_status st;
    const struct histogram *handler_ms;
    bool has_intake;
    struct intake_standing intake;
};

struct view {
    const struct api *api;
    struct metrics_out m;
    int64_t now;
    struct box_view *boxes;
    size_t n;
};

#define LABELS(...) ((const struct metric_label[]){__VA_ARGS__, {NULL, NULL}})

/* ---- gathering ---------------------------------------------------------------------------------- */

static void look_at_box(const struct api *api, struct spool_box *b, struct box_view *out)
{
    const char *name = spool_box_bot(b);

    *out = (struct box_view){.box = box_name(spool_box_which(b)),
                             .in = spool_box_which(b) == BOX_IN,
                             .handler_ms = spool_handler_ms(b)};
    spool_box_status(b, &out->st);
    snprintf(out->bot, sizeof(out->bot), "%s", name);
    if (out->st.orphan)
        snprintf(out->bot, sizeof(out->bot), "%s@%" PRId64, name, spool_box_bot_id(b));
    out->has_intake = out->in && !out->st.orphan && api->hooks.intake_standing &&
                      api->hooks.intake_standing(api->hooks.arg, name, &out->intake) &&
                      out->intake.mode != INTAKE_NONE;
}

static void look(struct view *v, const struct api *api, struct buf *out)
{
    size_t i = 0;

    *v = (struct view){.api = api, .m = {.out = out}, .now = api_now(api)};
    for (struct spool_box *b = spool_next_box(api->sp, NULL); b; b = spool_next_box(api->sp, b))
        v->n++;
    v->boxes = xcalloc(v->n + 1, sizeof(*v->boxes));
    for (struct spool_box *b = spool_next_box(api->sp, NULL); b; b = spool_next_box(api->sp, b))
        look_at_box(api, b, &v->boxes[i++]);
}

/* ---- one sample a box --------------------------------------------------------------------------- */

static int64_t age(const struct view *v, int64_t since)
{
    return since && v->now > since ? v->now - since : 0;
}

#define COUNTER(field)                                                         \
    static int64_t get_##field(const struct view *v, const struct box_view *b) \
    {                                                                          \
        (void)v;                                                               \
        return (int64_t)b->st.counts.field;                                    \
    }
COUNTER(received)
COUNTER(duplicates)
COUNTER(delivered)
COUNTER(failures)
COUNTER(retries)
COUNTER(lease_expired)
COUNTER(gaps)

static int64_t get_oldest(const struct view *v, const struct box_view *b)
{
    return age(v, b->st.oldest_unfinished_at);
}

static int64_t get_last_received(const struct view *v, const struct box_view *b)
{
    (void)v;
    return b->st.last_received_at;
}

static int64_t get_dead_left(const struct view *v, const struct box_view *b)
{
    (void)v;
    return (int64_t)(b->st.counts.dead - b->st.counts.dead_settled);
}

static int64_t get_breaker(const struct view *v, const struct box_view *b)
{
    (void)v;
    return b->st.breaker.open;
}

static int64_t get_pending(const struct view *v, const struct box_view *b)
{
    (void)v;
    return b->intake.pending;
}

static int64_t get_asked_age(const struct view *v, const struct box_view *b)
{
    return age(v, b->intake.asked_at);
}

static int64_t get_failing(const struct view *v, const struct box_view *b)
{
    return age(v, b->intake.failing_since);
}

/* Before the first good poll: since the start. */
static int64_t get_poll_age(const struct view *v, const struct box_view *b)
{
    return age(v, b->intake.good_at ? b->intake.good_at : v->api->hooks.started_at);
}

enum whose {
    OF_BOXES,
    OF_BOTS,   /* of boxes in, labelled by the bot alone, as are those below */
    OF_INTAKE, /* where updates are taken in */
    OF_POLLS,
    OF_ASKED /* where Telegram has told what waits */
};

static bool applies(enum whose whose, const struct box_view *b)
{
    switch (whose) {
    case OF_BOXES:
        return true;
    case OF_BOTS:
        return b->in;
    case OF_INTAKE:
        return b->has_intake;
    case OF_POLLS:
        return b->has_intake && b->intake.mode == INTAKE_POLL;
    case OF_ASKED:
        return b->has_intake && b->intake.asked_at;
    }
    return false;
}

static const struct row {
    const char *name, *type, *help;
    int64_t (*value)(const struct view *v, const struct box_view *b);
    unsigned digits;
    enum whose whose;
} rows[] = {
    {"tgspool_oldest_unfinished_age_seconds", "gauge",
     "Age of the oldest unfinished event; 0: there is none.", get_oldest, 3, OF_BOXES},
    {"tgspool_dead_left", "gauge", "Dead events that nobody replayed or discarded since.", get_dead_left, 0, OF_BOXES},
    {"tgspool_last_received_timestamp_seconds", "gauge", "When the newest event came; 0: never.",
     get_last_received, 3, OF_BOXES},
    {"tgspool_received_total", "counter", "Updates (box in) and calls (box out) that were taken in.",
     get_received, 0, OF_BOXES},
    {"tgspool_duplicates_total", "counter", "Those that came again and were dropped at the door.",
     get_duplicates, 0, OF_BOXES},
    {"tgspool_delivered_total", "counter", "Events that ended done.", get_delivered, 0, OF_BOXES},
    {"tgspool_failures_total", "counter", "Tries that failed.", get_failures, 0, OF_BOXES},
    {"tgspool_retries_total", "counter", "Tries that failed, counted, and are repeated.", get_retries, 0,
     OF_BOXES},
    {"tgspool_lease_expired_total", "counter", "Leases that ran out before their holder told the outcome.",
     get_lease_expired, 0, OF_BOXES},
    {"tgspool_breaker_open", "gauge", "1 while deliveries only probe, because the handler fails.",
     get_breaker, 0, OF_BOXES},
    {"tgspool_upstream_gaps_total", "counter", "Updates that Telegram dropped before they could be taken in.",
     get_gaps, 0, OF_BOTS},
    {"tgspool_upstream_pending", "gauge", "Updates that wait at Telegram, as it said when last asked.",
     get_pending, 0, OF_ASKED},
    {"tgspool_upstream_asked_age_seconds", "gauge", "How long ago Telegram was asked that.", get_asked_age, 3,
     OF_ASKED},
    {"tgspool_intake_failing_seconds", "gauge",
     "For how long intake has been failing; 0: it works or is paused.", get_failing, 3, OF_INTAKE},
    {"tgspool_last_good_poll_age_seconds", "gauge", "Time since the last good poll, or since the start.",
     get_poll_age, 3, OF_POLLS},
};

static void write_rows(struct view *v)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct row *r = &rows[i];
        metrics_family(&v->m, r->name, r->type, r->help);
        for (const struct box_view *b = v->boxes; b < v->boxes + v->n; b++) {
            if (!applies(r->whose, b))
                continue;
            const struct metric_label *labels =
                r->whose == OF_BOXES ? LABELS({"bot", b->bot}, {"box", b->box}) : LABELS({"bot", b->bot});
            metrics_scaled(&v->m, labels, r->value(v, b), r->digits);
        }
    }
}

/* ---- several samples a box ---------------------------------------------------------------------- */

static void write_events(struct view *v)
{
    metrics_family(&v->m, "tgspool_events", "gauge", "Events that are kept now, by state.");
    for (const struct box_view *b = v->boxes; b < v->boxes + v->n; b++) {
        const uint64_t counts[] = {
            [STATE_PENDING] = b->st.counts.pending,
            [STATE_PROCESSING] = b->st.counts.processing,
            [STATE_DONE] = b->st.counts.done,
            [STATE_DEAD] = b->st.counts.dead,
        };
        for (size_t s = 0; s < ARRAY_LEN(counts); s++)
            metrics_uint(&v->m,
                         LABELS({"bot", b->bot}, {"box", b->box}, {"state", state_name((enum state)s)}),
                         counts[s]);
    }
}

static void write_dead(struct view *v)
{
    metrics_family(&v->m, "tgspool_dead_total", "counter", "Events that ended dead, by reason.");
    for (const struct box_view *b = v->boxes; b < v->boxes + v->n; b++)
        for (enum reason r = REASON_ATTEMPTS; r <= REASON_DISCARDED; r++)
            metrics_uint(&v->m, LABELS({"bot", b->bot}, {"box", b->box}, {"reason", reason_name(r)}),
                         b->st.counts.dead_by_reason[r]);
}

static void write_paused(struct view *v)
{
    metrics_family(&v->m, "tgspool_paused", "gauge", "1 while a person has paused it.");
    for (const struct box_view *b = v->boxes; b < v->boxes + v->n; b++) {
        if (b->in)
            metrics_uint(&v->m, LABELS({"bot", b->bot}, {"box", b->box}, {"what", "intake"}),
                         b->st.paused_intake);
        metrics_uint(&v->m, LABELS({"bot", b->bot}, {"box", b->box}, {"what", "deliver"}),
                     b->st.paused_deliver);
    }
}

static void write_intake_errors(struct view *v)
{
    metrics_family(&v->m, "tgspool_poll_errors_total", "counter",
                   "Polls that failed since the start, by kind.");
    for (const struct box_view *b = v->boxes; b < v->boxes + v->n; b++)
        for (enum poll_error e = 0; e < POLL_ERRORS && applies(OF_POLLS, b); e++)
            metrics_uint(&v->m, LABELS({"bot", b->bot}, {"code", poll_error_name(e)}), b->intake.errors[e]);
    metrics_family(&v->m, "tgspool_webhooks_total", "counter",
                   "Webhooks since the start, by the status they were answered with.");
    for (const struct box_view *b = v->boxes; b < v->boxes + v->n; b++)
        for (enum hook_answer a = 0; a < HOOK_ANSWERS && b->has_intake && b->intake.mode == INTAKE_WEBHOOK;
             a++)
            metrics_uint(&v->m, LABELS({"bot", b->bot}, {"code", hook_answer_name(a)}), b->intake.answers[a]);
}

static void write_handler_times(struct view *v)
{
    metrics_family(&v->m, "tgspool_handler_seconds", "histogram",
                   "Time from claim to outcome, of tries that a handler or its lease ended.");
    for (const struct box_view *b = v->boxes; b < v->boxes + v->n; b++)
        metrics_histogram(&v->m, LABELS({"bot", b->bot}, {"box", b->box}), b->handler_ms, 3);
}

/* ---- of the daemon ------------------------------------------------------------------------------ */

static void write_one(struct view *v, const char *name, const char *type, const char *help, int64_t value,
                      unsigned digits)
{
    metrics_family(&v->m, name, type, help);
    metrics_scaled(&v->m, NULL, value, digits);
}

static void write_store(struct view *v)
{
    const struct api *api = v->api;
    struct spool_commit_stats s;
    int64_t free_bytes, db_bytes;

    spool_commit_stats(api->sp, &s);
    write_one(v, "tgspool_store_healthy", "gauge", "1 while the store can be written.",
              spool_healthy(api->sp, NULL), 0);
    write_one(v, "tgspool_store_corrupt", "gauge", "1 while it stays closed because damage was read.",
              spool_health(api->sp, NULL) == SPOOL_CORRUPT, 0);
    write_one(v, "tgspool_intake_held", "gauge", "1 while nothing new is taken in for want of room.",
              spool_held(api->sp) != NULL, 0);
    metrics_family(&v->m, "tgspool_commit_seconds", "histogram",
                   "Time a write to the store took, with its sync.");
    metrics_histogram(&v->m, NULL, s.us, 6);
    metrics_family(&v->m, "tgspool_commit_events", "histogram", "Events changed by one write.");
    metrics_histogram(&v->m, NULL, s.batch_events, 0);
    write_one(v, "tgspool_syncs_total", "counter", "Syncs of the store.", (int64_t)s.syncs, 0);
    if (!api->hooks.disk_numbers || !api->hooks.disk_numbers(api->hooks.disk_arg, &free_bytes, &db_bytes))
        return;
    write_one(v, "tgspool_db_bytes", "gauge", "What the database takes on the disk.", db_bytes, 0);
    write_one(v, "tgspool_disk_free_bytes", "gauge", "What is free on the spool's file system.", free_bytes,
              0);
}

static void write_process(struct view *v)
{
    struct process_usage u;

    process_usage(&u);
    metrics_family(&v->m, "tgspool_build_info", "gauge", "Always 1; the version is in the label.");
    metrics_uint(&v->m, LABELS({"version", v->api->hooks.version}), 1);
    write_one(v, "process_start_time_seconds", "gauge", "When the daemon started.", v->api->hooks.started_at,
              3);
    if (u.cpu_ms >= 0)
        write_one(v, "process_cpu_seconds_total", "counter", "CPU time, user and system.", u.cpu_ms, 3);
    if (u.resident_bytes >= 0)
        write_one(v, "process_resident_memory_bytes", "gauge", "Memory that is resident.", u.resident_bytes,
                  0);
    if (u.open_fds >= 0)
        write_one(v, "process_open_fds", "gauge", "Open file descriptors.", u.open_fds, 0);
    if (u.max_fds >= 0)
        write_one(v, "process_max_fds", "gauge", "How many may be open.", u.max_fds, 0);
}

void api_metrics(struct api_call *c, const struct api_request *r, const struct params *p)
{
    struct buf out = BUF_EMPTY;
    struct view v;

    (void)r;
    (void)p;
    look(&v, c->api, &out);
    write_process(&v);
    write_store(&v);
    write_events(&v);
    write_rows(&v);
    write_dead(&v);
    write_paused(&v);
    write_intake_errors(&v);
    write_handler_times(&v);
    free(v.boxes);
    api_answer_as(c, 200, METRICS_TYPE, buf_slice(&out));
    buf_free(&out);
}
