/* Waiting claims. Each claim call is a waiter; api_tick offers what is due to all waiters of a box in turn,
 * one event each, until none wants more or none is left. A claim is given out only after it is written, by
 * callback: a waiter whose client went away meanwhile stays behind for those callbacks alone, and releases
 * what they bring: nobody had it. */
#include "serve/lease.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/mem.h"
#include "base/text.h"
#include "spool/gather.h"
#include "wire/envelope_json.h"
#include "wire/event_json.h"

#define CLAIM_MAX 100
#define WAIT_MAX MINUTES(5)
#define LEASE_MIN SECONDS(1)
#define LEASE_MAX HOURS(12)

struct leases {
    struct api *api;
    struct list waiters; /* in order of arrival */
    struct list gone;    /* of clients that went away: waiting for callbacks only */
    bool again;          /* a claim came to nothing: there may be another event */
};

struct waiter {
    struct list link;
    struct leases *leases;
    struct api_call *call; /* NULL: gone */
    struct spool_box *box;
    unsigned want;     /* not claimed yet */
    unsigned expected; /* claimed; the callbacks are still to come */
    unsigned got;
    int64_t lease_ms, deadline;
    char consumer[CLAIMED_BY_MAX];
    struct buf out;
    struct json_out j;
};

char *lease_text(const unsigned char token[TOKEN_BYTES], uint64_t seq, char out[LEASE_TEXT_MAX])
{
    hex_encode(token, TOKEN_BYTES, out);
    snprintf(out + TOKEN_BYTES * 2, LEASE_TEXT_MAX - TOKEN_BYTES * 2, "-%llu", (unsigned long long)seq);
    return out;
}

int lease_parse(struct slice text, unsigned char token[TOKEN_BYTES], uint64_t *seq)
{
    const size_t n_hex = TOKEN_BYTES * 2;
    int64_t v;

    if (text.n < n_hex + 2 || text.p[n_hex] != '-' ||
        hex_decode(slice_make(text.p, n_hex), token, TOKEN_BYTES) < 0 ||
        text_to_i64(slice_make(text.p + n_hex + 1, text.n - n_hex - 1), 0, INT64_MAX, &v) < 0)
        return -1;
    *seq = (uint64_t)v;
    return 0;
}

/* ---- waiting ------------------------------------------------------------------------------------ */

static void waiter_free(struct waiter *w)
{
    list_del(&w->link);
    json_end(&w->j);
    buf_free(&w->out);
    free(w);
}

/* The call ends: answered, or its client went away. */
static void drop_waiter(struct api_call *c)
{
    struct waiter *w = c->state;

    w->call = NULL;
    if (!w->expected) {
        waiter_free(w);
        return;
    }
    list_del(&w->link);
    list_add_tail(&w->leases->gone, &w->link);
}

static void waiter_answer(struct waiter *w)
{
    json_array_end(&w->j);
    json_object_end(&w->j);
    (void)FAILPOINT("lease.before_answer");
    api_answer(w->call, 200, buf_slice(&w->out)); /* frees w by drop_waiter */
    (void)FAILPOINT("lease.after_answer");
}

/* Writes a claimed event into the answer. */
static void write_claim(struct waiter *w, const struct claim *c)
{
    struct envelope e;
    char lease[LEASE_TEXT_MAX];

    envelope_make(&e, spool_box_bot(c->box), spool_box_bot_id(c->box), spool_box_which(c->box), &c->ev,
                  c->attempt, api_now(w->leases->api));
    json_object(&w->j);
    envelope_json(&w->j, &e);
    json_kv_cstr(&w->j, "lease", lease_text(c->token, c->ev.seq, lease));
    event_write_time(&w->j, "deadline", c->deadline);
    if (c->ev.kind[0]) {
        json_key(&w->j, "update");
        json_raw_line(&w->j, c->ev.payload);
    } else { /* may be no JSON at all */
        event_write_payload(&w->j, "update", c->ev.payload);
    }
    json_object_end(&w->j);
}

/* A claim is written (or, NULL, was not). */
static void claimed(void *arg, struct claim *c)
{
    struct waiter *w = arg;
    const struct outcome returned = {.kind = OUTCOME_RETURNED, .after_ms = -1};

    w->expected--;
    if (c && w->call) {
        write_claim(w, c);
        w->got++;
    } else if (c) {
        spool_complete(c->box, c->ev.seq, c->token, &returned);
    } else {
        w->want++;
        w->leases->again = true;
    }
    if (c)
        claim_free(c);
    if (w->expected)
        return;
    if (!w->call)
        waiter_free(w);
    else if (w->got)
        waiter_answer(w);
}

static bool is_pulled(const struct api *api, const struct spool_box *box)
{
    const struct api_hooks *hooks = &api->hooks;

    return !hooks->pulled || hooks->pulled(hooks->arg, spool_box_bot(box));
}

/* Whether another waiter of the same box still wants something. */
static bool has_rival(const struct leases *l, const struct waiter *w)
{
    list_each(&l->waiters, it) {
        const struct waiter *other = list_item(it, struct waiter, link);
        if (other != w && other->box == w->box && other->want)
            return true;
    }
    return false;
}

static bool offer(struct waiter *w, unsigned max)
{
    struct claim_request r = {.by = w->consumer, .push = false, .max = max, .lease_ms = w->lease_ms};

    if (!w->want || !spool_claimable(w->box))
        return false;
    unsigned n = spool_claim(w->box, &r, claimed, w);
    w->expected += n;
    w->want -= n < w->want ? n : w->want;
    return n > 0;
}

/* One round over those who waited when it began. */
static bool offer_round(struct leases *l)
{
    bool any = false;

    list_each(&l->waiters, it) {
        struct waiter *w = list_item(it, struct waiter, link);
        any |= offer(w, has_rival(l, w) ? 1 : w->want);
    }
    return any;
}

void leases_serve(struct leases *l)
{
    int64_t now = api_now(l->api);

    l->again = false;
    /* A reload may have given the bot's events to a deliverer, beside which nobody may claim. */
    list_each(&l->waiters, it) {
        struct waiter *w = list_item(it, struct waiter, link);
        if (!w->expected && !is_pulled(l->api, w->box))
            waiter_answer(w);
    }
    while (!list_empty(&l->waiters) && !spool_batch_full(l->api->sp) && offer_round(l))
        ;
    list_each(&l->waiters, it) {
        struct waiter *w = list_item(it, struct waiter, link);
        if (w->expected || w->deadline > now)
            continue;
        if (spool_healthy(l->api->sp, NULL))
            waiter_answer(w);
        else /* that it is empty is not known */
            api_fail_store(w->call);
    }
}

int64_t leases_next_deadline(const struct leases *l)
{
    int64_t first = l->again ? 0 : TIME_NEVER;

    list_each(&l->waiters, it) {
        const struct waiter *w = list_item(it, struct waiter, link);
        if (!w->expected && spool_claimable(w->box)) /* something became ready since the last look */
            return 0;
        if (!w->expected && w->deadline < first)
            first = w->deadline;
    }
    return first;
}

struct leases *leases_new(struct api *api)
{
    struct leases *l = xcalloc(1, sizeof(*l));

    l->api = api;
    list_init(&l->waiters);
    list_init(&l->gone);
    return l;
}

void leases_free(struct leases *l)
{
    list_each(&l->gone, it) {
        struct waiter *w = list_item(it, struct waiter, link);
        spool_forget(l->api->sp, w);
        waiter_free(w);
    }
    free(l);
}

static int read_consumer(struct api_call *c, const struct params *p, struct waiter *w, struct param_error *e)
{
    const struct param *name = params_get(p, "consumer");
    struct buf clean = BUF_EMPTY;

    text_add_clean(&clean, name ? name->text : slice_str(c->who), sizeof(w->consumer) - 1, false);
    memcpy(w->consumer, buf_str(&clean), clean.n + 1);
    buf_free(&clean);
    if (name && (name->text.n == 0 || name->text.n >= sizeof(w->consumer)))
        return param_fail(e, 422, "\"consumer\" must be a text of 1 to %zu bytes", sizeof(w->consumer) - 1);
    return 0;
}

void lease_claim(struct api_call *c, const struct api_request *r, const struct params *p)
{
    struct waiter request = {.lease_ms = 0};
    struct param_error e;
    int64_t max = 1, wait = 0;

    (void)r;
    struct spool_box *box = api_box_of(c, p, BOX_IN);
    if (!box)
        return;
    if (!is_pulled(c->api, box)) {
        api_fail(c, 409, "not_pulled",
                 "this bot's events are handed to its handler; to claim them, set `deliver: pull`");
        return;
    }
    if (params_i64(p, "max", 1, CLAIM_MAX, &max, &e) < 0 ||
        params_ms(p, "wait", 0, WAIT_MAX, &wait, &e) < 0 ||
        params_ms(p, "lease", LEASE_MIN, LEASE_MAX, &request.lease_ms, &e) < 0 ||
        read_consumer(c, p, &request, &e) < 0) {
        api_fail_params(c, &e);
        return;
    }
    struct waiter *w = xmemdup(&request, sizeof(request));
    w->leases = c->api->leases;
    w->call = c;
    w->box = box;
    w->want = (unsigned)max;
    w->deadline = api_now(c->api) + wait;
    json_start(&w->j, &w->out);
    json_object(&w->j);
    json_key(&w->j, "events");
    json_array(&w->j);
    list_add_tail(&w->leases->waiters, &w->link);
    c->state = w;
    c->drop = drop_waiter;
}

/* ---- ack, nack, extend -------------------------------------------------------------------------- */

/* What is said of one event: its id, its lease, and the verb's own members. */
struct word {
    struct slice id, lease, error;
    int64_t after_ms, by_ms;
    bool dead;
    const struct json *keys, *calls; /* NULL: none */
};

struct verb {
    const char *const *members;
    enum completed (*apply)(struct spool_box *b, uint64_t seq, const unsigned char token[TOKEN_BYTES],
                            const struct word *w, int64_t *deadline);
};

static enum completed apply_ack(struct spool_box *b, uint64_t seq, const unsigned char token[TOKEN_BYTES],
                                const struct word *w, int64_t *deadline)
{
    const struct outcome o = {.kind = OUTCOME_DONE, .after_ms = -1};
    struct gather g = GATHER_EMPTY;

    (void)deadline;
    gather_keys(&g, w->keys);
    gather_calls(&g, w->calls);
    enum completed result = spool_complete_with(b, seq, token, &o, &g.extras);
    gather_free(&g);
    return result;
}

static enum completed apply_nack(struct spool_box *b, uint64_t seq, const unsigned char token[TOKEN_BYTES],
                                 const struct word *w, int64_t *deadline)
{
    const struct outcome o = {
        .kind = w->dead ? OUTCOME_REJECTED : OUTCOME_RETRY, .after_ms = w->after_ms, .error = w->error};

    (void)deadline;
    return spool_complete(b, seq, token, &o);
}

static enum completed apply_extend(struct spool_box *b, uint64_t seq, const unsigned char token[TOKEN_BYTES],
                                   const struct word *w, int64_t *deadline)
{
    return spool_extend(b, seq, token, w->by_ms, deadline);
}

static const char *const ack_members[] = {"id", "lease", "keys", "calls", NULL};
static const char *const nack_members[] = {"id", "lease", "error", "retry_after", "dead", NULL};
static const char *const extend_members[] = {"id", "lease", "by", NULL};
static const struct verb ack = {ack_members, apply_ack};
static const struct verb nack = {nack_members, apply_nack};
static const struct verb extend = {extend_members, apply_extend};

/* One event's verdict: NULL code for success. */
struct verdict {
    int status;
    const char *code, *message;
    int64_t deadline;
};

static const struct verdict verdicts[] = {
    [COMPLETED] = {200, NULL, NULL, 0},
    [COMPLETE_LOST] = {409, "lost",
                       "this lease holds the event no longer: it ran out, or the event was answered", 0},
    [COMPLETE_UNKNOWN] = {404, "unknown_event", "there is no such event", 0},
    [COMPLETE_FAILED] = {503, "unavailable", "the store does not write now; send it again", 0},
};

/* Whether the event at seq bears the id that was sent with the lease. */
static bool id_fits(struct spool_box *b, const struct event_ref *ref, uint64_t seq)
{
    struct event ev;
    struct event_state st;
    struct buf record = BUF_EMPTY;

    if (ref->by_seq)
        return ref->seq == seq;
    bool fits =
        spool_get(b, seq, &ev, &st, &record) == 0 && ev.has_update_id && ev.update_id == ref->update_id;
    buf_free(&record);
    return fits;
}

enum completed lease_find(const struct api_call *c, const struct event_ref *ref, uint64_t seq,
                          struct spool_box **box)
{
    bool hidden = c->only_bot[0] && (strcmp(c->only_bot, ref->bot) || ref->box != BOX_IN);

    *box = hidden ? NULL : spool_find_box(c->api->sp, ref->bot, ref->box);
    if (*box && id_fits(*box, ref, seq))
        return COMPLETED;
    return !*box || spool_healthy(c->api->sp, NULL) ? COMPLETE_UNKNOWN : COMPLETE_FAILED;
}

static struct verdict judge(const struct api_call *c, const struct verb *verb, const struct word *w)
{
    static const struct verdict bad = {422, "bad_value",
                                       "\"id\" and \"lease\" must be as the claim gave them", 0};
    unsigned char token[TOKEN_BYTES];
    struct event_ref ref;
    struct spool_box *b;
    uint64_t seq;

    if (event_ref_parse(w->id, &ref) < 0 || lease_parse(w->lease, token, &seq) < 0)
        return bad;
    enum completed found = lease_find(c, &ref, seq, &b);
    if (found != COMPLETED)
        return verdicts[found];
    int64_t deadline = 0;
    struct verdict v = verdicts[verb->apply(b, seq, token, w, &deadline)];
    v.deadline = deadline;
    return v;
}

/* What a handler gives with its success. A call that is wrong in itself is kept as one that cannot be sent. */
static int read_extras(const struct params *p, struct word *w, struct param_error *e)
{
    const struct param *keys = params_get(p, "keys"), *calls = params_get(p, "calls");
    struct gather g = GATHER_EMPTY;

    w->keys = keys ? keys->json : NULL;
    w->calls = calls ? calls->json : NULL;
    size_t bad = gather_keys(&g, w->keys);
    gather_free(&g);
    if ((keys && !keys->json) || bad)
        return param_fail(e, 422, "\"keys\" must be an array of at most %d texts of 1 to %d bytes",
                          GATHER_KEYS_MAX, SPOOL_KEY_MAX);
    if (calls && json_type(w->calls) != JSON_ARRAY)
        return param_fail(e, 422, "\"calls\" must be an array of objects with \"method\"");
    return 0;
}

/* The members of one event, as parameters so that both forms are read by the same functions. */
static int read_word(const struct verb *verb, const struct params *p, struct word *w, struct param_error *e)
{
    const struct param *id = params_get(p, "id"), *lease = params_get(p, "lease"),
                       *error = params_get(p, "error");

    *w = (struct word){.after_ms = -1};
    if (!id || !lease)
        return param_fail(e, 400, "an event needs \"id\" and \"lease\"");
    w->id = id->text;
    w->lease = lease->text;
    w->error = error ? error->text : slice_make(NULL, 0);
    if (verb == &extend && !params_get(p, "by"))
        return param_fail(e, 400, "\"by\" is missing: how long from now");
    if (read_extras(p, w, e) < 0)
        return -1;
    if (params_ms(p, "retry_after", 0, INT64_MAX / 2, &w->after_ms, e) < 0 ||
        params_bool(p, "dead", &w->dead, e) < 0 || params_ms(p, "by", LEASE_MIN, LEASE_MAX, &w->by_ms, e) < 0)
        return -1;
    return 0;
}

static void write_verdict(struct json_out *j, struct slice id, const struct verdict *v)
{
    json_object(j);
    json_kv_text(j, "id", id);
    if (v->code)
        api_error_member(j, v->code, v->message);
    else
        json_kv_bool(j, "ok", true);
    if (v->deadline)
        event_write_time(j, "deadline", v->deadline);
    json_object_end(j);
}

static void answer_one(struct api_call *c, const struct word *w, const struct verdict *v)
{
    struct buf out = BUF_EMPTY;
    struct json_out j;

    if (v->status == 503) {
        api_fail_store(c);
        return;
    }
    if (v->code) {
        api_fail(c, v->status, v->code, "%s", v->message);
        return;
    }
    json_start(&j, &out);
    write_verdict(&j, w->id, v);
    json_end(&j);
    api_answer_durable(c, 200, &out);
}

#define WORDS_MAX 1000

/* Reads all before anything is done, so that a mistake in the last one does not leave half of them done. */
static int read_words(const struct verb *verb, const struct json *list, struct word *words,
                      struct param_error *e)
{
    for (size_t i = 0; i < json_length(list); i++) {
        const struct json *item = json_item(list, i);
        struct params p = {0};
        if (params_check_object(item, verb->members, "an event", e) < 0)
            return -1;
        params_of_object(item, &p);
        if (read_word(verb, &p, &words[i], e) < 0)
            return -1;
    }
    return 0;
}

static void answer_batch(struct api_call *c, const struct verb *verb, const struct word *words, size_t n)
{
    struct buf out = BUF_EMPTY;
    struct json_out j;
    bool any = false;

    json_start(&j, &out);
    json_object(&j);
    json_key(&j, "events");
    json_array(&j);
    for (size_t i = 0; i < n; i++) {
        struct verdict v = judge(c, verb, &words[i]);
        any |= !v.code;
        write_verdict(&j, words[i].id, &v);
    }
    json_array_end(&j);
    json_object_end(&j);
    json_end(&j);
    if (any)
        api_answer_durable(c, 200, &out);
    else
        api_answer(c, 200, buf_slice(&out));
    buf_free(&out);
}

static void handle(struct api_call *c, const struct verb *verb, const struct params *p)
{
    const struct param *events = params_get(p, "events");
    struct param_error e;
    struct word one;

    if (!events) {
        if (read_word(verb, p, &one, &e) < 0) {
            api_fail_params(c, &e);
            return;
        }
        struct verdict v = judge(c, verb, &one);
        answer_one(c, &one, &v);
        return;
    }
    size_t n = json_length(events->json);
    if (p->n > 1 || json_type(events->json) != JSON_ARRAY || n > WORDS_MAX) {
        api_fail(c, 400, "bad_request", "\"events\" must be an array of at most %d, and stand alone",
                 WORDS_MAX);
        return;
    }
    struct word *words = xcalloc(n, sizeof(*words));
    if (read_words(verb, events->json, words, &e) < 0)
        api_fail_params(c, &e);
    else
        answer_batch(c, verb, words, n);
    free(words);
}

void lease_ack(struct api_call *c, const struct api_request *r, const struct params *p)
{
    (void)r;
    handle(c, &ack, p);
}

void lease_nack(struct api_call *c, const struct api_request *r, const struct params *p)
{
    (void)r;
    handle(c, &nack, p);
}

void lease_extend(struct api_call *c, const struct api_request *r, const struct params *p)
{
    (void)r;
    handle(c, &extend, p);
}
