/* Idempotency keys, and calls that a program puts into the box out. */
#include <string.h>

#include "base/clock.h"
#include "serve/api_call.h"
#include "serve/lease.h"
#include "wire/call.h"
#include "wire/event_json.h"

#define TTL_MIN SECONDS(1)

/* ---- keys --------------------------------------------------------------------------------------- */

/* The event that asks; seq 0: none. */
struct asker {
    uint64_t seq;
    unsigned char token[TOKEN_BYTES];
};

static void answer_keyed(struct api_call *c, enum keyed k)
{
    struct buf out = BUF_EMPTY;
    struct json_out j;

    json_start(&j, &out);
    json_object(&j);
    json_kv_bool(&j, "first", k == KEY_FIRST);
    if (k != KEY_FIRST)
        json_kv_cstr(&j, "state", k == KEY_IS_DONE ? "done" : "held");
    json_object_end(&j);
    json_end(&j);
    /* also what others did counts only when it is durable: it may be in this very batch */
    api_answer_durable(c, k == KEY_FIRST ? 201 : 200, &out);
}

static void tell_keyed(struct api_call *c, enum keyed k)
{
    switch (k) {
    case KEY_FIRST:
    case KEY_IS_HELD:
    case KEY_IS_DONE:
        answer_keyed(c, k);
        break;
    case KEY_LOST:
        api_fail(c, 409, "lost",
                 "this lease holds the event no longer: it ran out, or the event was answered");
        break;
    case KEY_UNKNOWN:
        api_fail(c, 404, "unknown_event", "there is no such event");
        break;
    case KEY_TOO_MANY:
        api_fail(c, 422, "too_many", "an event holds at most %d keys", MARKS_MAX);
        break;
    case KEY_FAILED:
        api_fail_store(c);
    }
}

/* Id and lease: of an event in this box. Returns 0, or -1 after it answered. */
static int read_asker(struct api_call *c, const struct params *p, const struct spool_box *box,
                      struct asker *a)
{
    const struct param *id = params_get(p, "id"), *lease = params_get(p, "lease");
    struct spool_box *found;
    struct event_ref ref;

    if (!id && !lease)
        return 0;
    if (!id || !lease || event_ref_parse(id->text, &ref) < 0 ||
        lease_parse(lease->text, a->token, &a->seq) < 0) {
        api_fail(c, 422, "bad_value", "\"id\" and \"lease\" go together, as the claim gave them");
        return -1;
    }
    enum completed state = lease_find(c, &ref, a->seq, &found);
    if (state != COMPLETED) {
        tell_keyed(c, state == COMPLETE_UNKNOWN ? KEY_UNKNOWN : KEY_FAILED);
        return -1;
    }
    if (found == box)
        return 0;
    api_fail(c, 422, "bad_value", "\"id\" must be an update of the bot that \"bot\" names");
    return -1;
}

static int read_key(const struct params *p, bool needed, struct slice *key, struct param_error *e)
{
    const struct param *v = params_get(p, "key");

    if (!v && needed)
        return param_fail(e, 400, "\"key\" is missing");
    *key = v ? v->text : slice_make(NULL, 0);
    if (v && (v->text.n == 0 || v->text.n > SPOOL_KEY_MAX || (v->json && json_type(v->json) != JSON_STRING)))
        return param_fail(e, 422, "\"key\" must be a text of 1 to %d bytes", SPOOL_KEY_MAX);
    return 0;
}

void api_keys(struct api_call *c, const struct api_request *r, const struct params *p)
{
    struct asker asker = {.seq = 0};
    struct param_error e;
    struct slice key;
    int64_t ttl = 0;

    (void)r;
    struct spool_box *box = api_box_of(c, p, BOX_IN);
    if (!box)
        return;
    if (read_key(p, true, &key, &e) < 0 || params_ms(p, "ttl", TTL_MIN, SPOOL_KEY_TTL_MAX_MS, &ttl, &e) < 0) {
        api_fail_params(c, &e);
        return;
    }
    if (read_asker(c, p, box, &asker) == 0)
        tell_keyed(c, spool_key(box, key, ttl, asker.seq, asker.token));
}

/* ---- POST /v1/bots/BOT/calls -------------------------------------------------------------------- */

/* Everything in the body but the key. body: as it stands there. */
static int read_call(const struct api_request *r, const struct params *p, struct call *call,
                     struct slice *body, bool *once, struct param_error *e)
{
    const struct param *method = params_get(p, "method"), *arguments = params_get(p, "body");

    if (!method)
        return param_fail(e, 400, "\"method\" is missing: a method of the Bot API");
    if (!call_is_method(method->text) || call_is_forbidden(method->text))
        return param_fail(e, 422,
                          "\"method\" must be a method of the Bot API that sends something: not get*, "
                          "setWebhook, deleteWebhook, close or logOut");
    if (arguments && json_type(arguments->json) != JSON_OBJECT)
        return param_fail(e, 422, "\"body\" must be an object: the method's arguments");
    if (!arguments || json_member_bytes(r->body, "body", body) < 0)
        *body = slice_str("{}");
    call_of_method(method->text, slice_str("application/json"), *body, call);
    return params_bool(p, "once", once, e);
}

/* The box out of the bot; made if there is none, which happens without a daemon only. */
static struct spool_box *out_of(struct api_call *c, const struct api_request *r)
{
    struct spool_box *in = api_path_box(c, r, BOX_IN);
    struct spool_box *out = in ? spool_find_box(c->api->sp, spool_box_bot(in), BOX_OUT) : NULL;

    if (in && !out) {
        out = spool_attach(c->api->sp, spool_box_bot_id(in), BOX_OUT, spool_box_bot(in), NULL);
        spool_detach(out);
    }
    return out;
}

static void answer_call(struct api_call *c, struct spool_box *out, bool first, uint64_t seq)
{
    struct buf text = BUF_EMPTY, id = BUF_EMPTY;
    struct json_out j;

    event_ref_text(&id, spool_box_bot(out), BOX_OUT, &(struct event){.seq = seq});
    json_start(&j, &text);
    json_object(&j);
    json_kv_bool(&j, "first", first);
    if (first)
        json_kv_text(&j, "id", buf_slice(&id));
    json_object_end(&j);
    json_end(&j);
    buf_free(&id);
    api_answer_durable(c, first ? 201 : 200, &text);
}

void api_post_call(struct api_call *c, const struct api_request *r, const struct params *p)
{
    struct param_error e;
    struct slice body, key;
    struct call call;
    bool once = false;
    uint64_t seq = 0;

    struct spool_box *out = api_has_room(c) ? out_of(c, r) : NULL;
    if (!out)
        return;
    if (read_call(r, p, &call, &body, &once, &e) < 0 || read_key(p, false, &key, &e) < 0) {
        api_fail_params(c, &e);
        return;
    }
    const struct spool_call sent = {.method = call.method,
                                    .content_type = "application/json",
                                    .body = body,
                                    .lane = call.lane,
                                    .has_chat = call.has_chat,
                                    .chat = call.chat,
                                    .once = once};
    switch (spool_append_call(out, &sent, key, &seq)) {
    case ACCEPTED_NEW:
        answer_call(c, out, true, seq);
        break;
    case ACCEPTED_DUPLICATE:
        answer_call(c, out, false, 0);
        break;
    case ACCEPTED_FAILED:
        api_fail_store(c);
    }
}
