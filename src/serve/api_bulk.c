/* Replay and discard: of named events at once, of those that pass a filter by a walk in slices. What takes
 * longer than its client should wait becomes a job, which goes on by itself and is asked about by GET
 * /v1/jobs/N. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "serve/api_call.h"

#define PATIENCE_MS 5000 /* then the answer is the job's number */
#define JOBS_KEPT 16     /* finished ones, for who asks late */
#define IDS_MAX 1000
#define PICK 32 /* events found before they are acted on */

/* What the two verbs differ in. */
struct act {
    const char *verb, *past;
    bool by_default[4]; /* states that a filter without `state` means, by enum state */
    bool on_ended;      /* acts on ended events: replay */
};

static const struct act replay = {"replay", "replayed", {[STATE_DEAD] = true}, true};
static const struct act discard = {
    "discard", "discarded", {[STATE_PENDING] = true, [STATE_PROCESSING] = true}, false};

struct job {
    struct api_work work;
    struct list kept; /* in api->jobs once it has a number */
    struct api *api;
    const struct act *act;
    char who[64];
    bool dry_run, force, finished, lost;
    int64_t number;
    int64_t started, patience;
    struct spool_filter filter;
    struct filter_bot bot;
    struct spool_cursor cursor;
    uint64_t matched, changed, skipped, busy;
    struct {
        struct spool_box *box;
        uint64_t seq;
        bool processing;
    } picked[PICK];
    unsigned n_picked, done_picked;
    bool at_end;
};

/* ---- acting on one ------------------------------------------------------------------------------ */

static enum acted act_on(struct api *api, const struct act *act, struct spool_box *b, uint64_t seq,
                         bool processing, bool force, const char *who, uint64_t *copy)
{
    if (act->on_ended)
        return spool_replay(b, seq, who, copy);
    /* One that a deliverer of ours works on ends as discarded when nothing of it runs any more: not before, since
     * the next of its lane would start beside it. */
    if (processing && force && api->hooks.kill_event &&
        api->hooks.kill_event(api->hooks.arg, spool_box_bot(b), spool_box_which(b), seq)) {
        enum acted rc = spool_discard_later(b, seq, who);
        return rc == ACT_BUSY ? ACTED : rc;
    }
    return spool_discard(b, seq, force, who);
}

/* ---- jobs --------------------------------------------------------------------------------------- */

static void job_free(struct job *job)
{
    spool_forget(job->api->sp, job);
    list_del(&job->work.link);
    list_del(&job->kept);
    free(job);
}

/* The client went away before there was a job to ask about, or it was answered. */
static void drop_job(struct api_call *c)
{
    struct job *job = c->state;

    job->work.call = NULL;
    if (!job->number)
        job_free(job);
}

static void job_write(const struct job *job, struct buf *out)
{
    struct json_out j;

    json_start(&j, out);
    json_object(&j);
    if (job->number)
        json_kv_int(&j, "job", job->number);
    if (job->number)
        json_kv_cstr(&j, "state", job->lost ? "failed" : job->finished ? "finished" : "running");
    json_kv_cstr(&j, "verb", job->act->verb);
    json_kv_bool(&j, "dry_run", job->dry_run);
    json_kv_uint(&j, "matched", job->matched);
    json_kv_uint(&j, job->act->past, job->changed);
    json_kv_uint(&j, "skipped", job->skipped);
    json_kv_uint(&j, "busy", job->busy);
    json_object_end(&j);
    json_end(&j);
}

static void job_answer(struct job *job, int status)
{
    struct buf out = BUF_EMPTY;

    job_write(job, &out);
    api_answer(job->work.call, status, buf_slice(&out)); /* may free the job */
    buf_free(&out);
}

/* Gives the job a number, by which it outlives its request; forgets the oldest finished one. */
static void job_keep(struct job *job)
{
    struct api *api = job->api;

    job->number = ++api->last_job;
    list_add_tail(&api->jobs, &job->kept);
    api->n_jobs++;
    list_each(&api->jobs, it) {
        struct job *old = list_item(it, struct job, kept);
        if (api->n_jobs <= JOBS_KEPT)
            break;
        if (!old->finished)
            continue;
        api->n_jobs--;
        job_free(old);
    }
    job_answer(job, 202);
}

static void job_written(void *arg, bool ok)
{
    struct job *job = arg;

    job->finished = true;
    job->lost = !ok;
    if (!job->work.call)
        return;
    if (ok)
        job_answer(job, 200);
    else
        api_fail_store(job->work.call);
}

/* The disk has no room for more copies. Those that were made stay, and a later replay passes them by. */
static void job_cut(void *arg, bool ok)
{
    struct job *job = arg;
    const char *why = spool_held(job->api->sp);

    job->finished = job->lost = true;
    if (job->work.call && ok && why && job->changed)
        api_fail(job->work.call, 503, "no_room",
                 "%llu were replayed, then it was stopped: %s; the same again goes on where there is room",
                 (unsigned long long)job->changed, why);
    else if (job->work.call && api_has_room(job->work.call))
        api_fail_store(job->work.call);
}

/* One of the batches that a long job takes. */
static void job_batch(void *arg, bool ok)
{
    struct job *job = arg;

    if (ok)
        return;
    list_del(&job->work.link);
    spool_forget(job->api->sp, job);
    job_written(job, false);
}

static bool pick(void *arg, struct spool_box *b, const struct event *ev, const struct event_state *st)
{
    struct job *job = arg;

    job->matched++;
    /* Not again what was replayed before, nor a copy that this very job made and that has ended since. */
    bool takes = job->act->on_ended ? !st->replayed_as && st->finished_at <= job->started &&
                                          (st->state == STATE_DONE || st->state == STATE_DEAD)
                                    : state_may_discard(st);
    if (!takes) {
        job->skipped++;
        return true;
    }
    job->picked[job->n_picked].box = b;
    job->picked[job->n_picked].seq = ev->seq;
    job->picked[job->n_picked++].processing = st->state == STATE_PROCESSING;
    return job->n_picked < PICK;
}

/* Acts on what was picked, as far as the batch takes it. */
static void act_on_picked(struct job *job)
{
    for (; job->done_picked < job->n_picked; job->done_picked++) {
        unsigned i = job->done_picked;
        if (job->dry_run) {
            job->changed++;
            continue;
        }
        if (spool_batch_full(job->api->sp))
            return;
        uint64_t copy;
        switch (act_on(job->api, job->act, job->picked[i].box, job->picked[i].seq, job->picked[i].processing,
                       job->force, job->who, &copy)) {
        case ACTED:
            job->changed++;
            break;
        case ACT_FAILED: /* the store is away: it waits here */
            return;
        case ACT_BUSY:
            job->busy++;
            break;
        default:
            job->skipped++;
        }
    }
    job->done_picked = job->n_picked = 0;
}

static void job_slice(struct api_work *w, int64_t until_us)
{
    struct job *job = list_item(w, struct job, work);
    struct api *api = job->api;
    uint64_t changed = job->changed;

    if (job->act->on_ended && spool_held(api->sp)) {
        list_del(&job->work.link);
        spool_on_durable(api->sp, job_cut, job);
        return;
    }
    do {
        if (job->n_picked == 0 && !job->at_end) {
            job->at_end = spool_each(api->sp, &job->filter, &job->cursor, PICK, false, pick, job);
        }
        act_on_picked(job);
    } while ((!job->at_end || job->n_picked) && api->hooks.us() < until_us && !spool_batch_full(api->sp) &&
             spool_healthy(api->sp, NULL));
    if (job->at_end && !job->n_picked) {
        list_del(&job->work.link);
        spool_on_durable(api->sp, job_written, job);
        return;
    }
    if (changed != job->changed && !job->dry_run)
        spool_on_durable(api->sp, job_batch, job);
    if (job->work.call && api_now(api) >= job->patience) {
        if (spool_healthy(api->sp, NULL))
            job_keep(job);
        else
            api_fail_store(job->work.call);
    }
}

void api_jobs_free(struct api *api)
{
    list_each(&api->jobs, it)
        job_free(list_item(it, struct job, kept));
}

/* GET /v1/jobs/N */
void api_job(struct api_call *c, const struct api_request *r, const struct params *p)
{
    const size_t n_prefix = strlen("/v1/jobs/");
    struct buf out = BUF_EMPTY;
    int64_t number;

    (void)p;
    if (text_to_i64(slice_make(r->path.p + n_prefix, r->path.n - n_prefix), 1, INT64_MAX, &number) < 0)
        number = 0;
    list_each(&c->api->jobs, it) {
        const struct job *job = list_item(it, struct job, kept);
        if (job->number != number)
            continue;
        job_write(job, &out);
        api_answer(c, 200, buf_slice(&out));
        buf_free(&out);
        return;
    }
    api_fail(c, 404, "unknown_job", "there is no such job; finished ones are forgotten after a while");
}

/* ---- named events ------------------------------------------------------------------------------- */

struct fault {
    int status;
    const char *code, *message;
};

static const struct fault faults[] = {
    [ACTED] = {200, NULL, NULL},
    [ACT_UNKNOWN] = {404, "unknown_event", "there is no such event"},
    [ACT_NOT_ENDED] = {409, "not_ended", "it has not ended yet; only done and dead events can be replayed"},
    [ACT_ENDED] = {409, "ended", "it is done, or a person replayed or discarded it before"},
    [ACT_BUSY] = {409, "busy", "it is being processed; \"force\" ends that"},
    [ACT_FAILED] = {503, "unavailable", "the store does not write now; ask again"},
};

static enum acted act_on_id(struct api_call *c, const struct act *act, struct slice id, bool force,
                            uint64_t *copy, struct spool_box **box)
{
    struct event_ref ref;
    struct event ev;
    struct event_state st;
    struct buf record = BUF_EMPTY;
    uint64_t seq;

    if (event_ref_parse(id, &ref) < 0)
        return ACT_UNKNOWN;
    *box = spool_resolve(c->api->sp, &ref, &seq);
    if (!*box)
        return spool_healthy(c->api->sp, NULL) ? ACT_UNKNOWN : ACT_FAILED;
    bool processing = force && spool_get(*box, seq, &ev, &st, &record) == 0 && st.state == STATE_PROCESSING;
    buf_free(&record);
    return act_on(c->api, act, *box, seq, processing, force, c->who, copy);
}

static void write_acted(struct json_out *j, const struct act *act, struct slice id, enum acted result,
                        struct spool_box *box, uint64_t copy)
{
    char as[BOT_NAME_MAX + 32];

    json_object(j);
    json_kv_text(j, "id", id);
    if (faults[result].code) {
        api_error_member(j, faults[result].code, faults[result].message);
    } else {
        json_kv_bool(j, "ok", true);
        if (act->on_ended) {
            snprintf(as, sizeof(as), "%s/%s@%llu", spool_box_bot(box),
                     spool_box_which(box) == BOX_OUT ? "out/" : "", (unsigned long long)copy);
            json_kv_cstr(j, "as", as);
        }
    }
    json_object_end(j);
}

/* "id": the answer's status tells what became of it. */
static void one_id(struct api_call *c, const struct act *act, struct slice id, bool force)
{
    struct buf out = BUF_EMPTY;
    struct json_out j;
    struct spool_box *box = NULL;
    uint64_t copy = 0;
    enum acted result = act_on_id(c, act, id, force, &copy, &box);

    if (faults[result].code) {
        api_fail(c, faults[result].status, faults[result].code, "%s", faults[result].message);
        return;
    }
    json_start(&j, &out);
    write_acted(&j, act, id, result, box, copy);
    json_end(&j);
    api_answer_durable(c, 200, &out);
}

/* "ids": one verdict each. */
static void many_ids(struct api_call *c, const struct act *act, const struct json *ids, bool force)
{
    struct buf out = BUF_EMPTY;
    struct json_out j;
    uint64_t changed = 0;

    if (json_type(ids) != JSON_ARRAY || json_length(ids) > IDS_MAX) {
        api_fail(c, 400, "bad_request", "\"ids\" must be an array of at most %d texts", IDS_MAX);
        return;
    }
    json_start(&j, &out);
    json_object(&j);
    json_key(&j, "events");
    json_array(&j);
    for (size_t i = 0; i < json_length(ids); i++) {
        struct slice id = json_string(json_item(ids, i));
        struct spool_box *box = NULL;
        uint64_t copy = 0;
        enum acted result = act_on_id(c, act, id, force, &copy, &box);
        changed += result == ACTED;
        write_acted(&j, act, id, result, box, copy);
    }
    json_array_end(&j);
    json_kv_uint(&j, act->past, changed);
    json_object_end(&j);
    json_end(&j);
    if (changed)
        api_answer_durable(c, 200, &out);
    else
        api_answer(c, 200, buf_slice(&out));
    buf_free(&out);
}

/* ---- by filter ---------------------------------------------------------------------------------- */

static void by_filter(struct api_call *c, const struct act *act, const struct params *p, bool force)
{
    struct job *job = xcalloc(1, sizeof(*job));
    struct param_error e;
    bool any = false, all = false;

    int rc = filter_read(p, api_now(c->api), &job->filter, &job->bot, &any, &e);
    if (rc == 0)
        rc = params_bool(p, "dry_run", &job->dry_run, &e);
    if (rc == 0)
        rc = params_bool(p, "all", &all, &e);
    if (rc == 0 && !any && !all)
        rc = param_fail(&e, 400, "name events by \"ids\", or give a filter, or \"all\": true");
    if (rc < 0) {
        free(job);
        api_fail_params(c, &e);
        return;
    }
    if (!api_knows_bot(c, &job->filter)) {
        free(job);
        return;
    }
    if (!params_get(p, "state"))
        memcpy(job->filter.states, act->by_default, sizeof(job->filter.states));
    list_init(&job->kept);
    job->api = c->api;
    job->work.call = c;
    job->act = act;
    job->force = force;
    memcpy(job->who, c->who, sizeof(job->who));
    job->started = api_now(c->api);
    job->patience = job->started + PATIENCE_MS;
    job->work.slice = job_slice;
    c->state = job;
    c->drop = drop_job;
    api_work_add(c->api, &job->work);
}

static void handle(struct api_call *c, const struct act *act, const struct params *p)
{
    const struct param *id = params_get(p, "id"), *ids = params_get(p, "ids");
    struct param_error e;
    bool force = false;

    if (params_bool(p, "force", &force, &e) < 0)
        api_fail_params(c, &e);
    else if ((id || ids) && p->n > 1u + (params_get(p, "force") != NULL))
        api_fail(c, 400, "bad_request", "\"id\" or \"ids\" stand alone, without filters");
    else if (id)
        one_id(c, act, id->text, force);
    else if (ids)
        many_ids(c, act, ids->json, force);
    else if (!act->on_ended || api_has_room(c)) /* each replay is a copy */
        by_filter(c, act, p, force);
}

void api_replay(struct api_call *c, const struct api_request *r, const struct params *p)
{
    (void)r;
    handle(c, &replay, p);
}

void api_discard(struct api_call *c, const struct api_request *r, const struct params *p)
{
    (void)r;
    handle(c, &discard, p);
}
