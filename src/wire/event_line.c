/* Lines of an export, read back. They come from a file that anyone may have changed. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/text.h"
#include "core/outcome.h"
#include "wire/call.h"
#include "wire/event_json.h"

static int fail(char why[256], const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int fail(char why[256], const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, 256, fmt, ap);
    va_end(ap);
    return -1;
}

static void copy_text(const struct json *o, const char *key, char *out, size_t size)
{
    struct slice s = json_string(json_get(o, key));
    struct buf clean = BUF_EMPTY;

    text_add_clean(&clean, s, size - 1, false);
    memcpy(out, buf_str(&clean), clean.n + 1);
    buf_free(&clean);
}

/* Absent and null leave *out as it is. */
static int read_time(const struct json *o, const char *key, int64_t *out, char why[256])
{
    const struct json *v = json_get(o, key);

    if (!v || json_type(v) == JSON_NULL)
        return 0;
    if (json_type(v) != JSON_NUMBER || text_seconds(json_number(v), out) < 0)
        return fail(why, "\"%s\" is no time in Unix seconds", key);
    return 0;
}

static int read_number(const struct json *o, const char *key, int64_t min, int64_t max, bool *has,
                       int64_t *out, char why[256])
{
    const struct json *v = json_get(o, key);
    int64_t n;

    if (!v || json_type(v) == JSON_NULL)
        return 0;
    if (json_to_i64(v, &n) < 0 || n < min || n > max)
        return fail(why, "\"%s\" is no whole number in its range", key);
    *out = n;
    if (has)
        *has = true;
    return 0;
}

static int read_history(const struct json *list, struct event_state *st, char why[256])
{
    size_t n = json_length(list), skip = n > HISTORY_MAX ? n - HISTORY_MAX : 0;

    for (size_t i = skip; i < n; i++) {
        const struct json *item = json_item(list, i);
        struct try_record *t = &st->history[st->n_history];
        unsigned k = 0;
        if (read_time(item, "at", &t->at, why) < 0)
            return -1;
        while (k < OUTCOME_KINDS &&
               !slice_eq_str(json_string(json_get(item, "outcome")), outcome_name((enum outcome_kind)k)))
            k++;
        if (k == OUTCOME_KINDS)
            return fail(why, "\"history\" holds an unknown outcome");
        t->outcome = (unsigned char)k;
        copy_text(item, "error", t->error, sizeof(t->error));
        st->n_history++;
    }
    return 0;
}

static int read_state(const struct json *o, struct event_state *st, char why[256])
{
    int64_t attempts = 0, interrupted = 0;
    struct slice reason = json_string(json_get(o, "reason"));

    if (state_from_name(json_string(json_get(o, "state")), &st->state) < 0)
        return fail(why, "\"state\" must be of pending, processing, done, dead");
    while (st->reason < REASON_DISCARDED && !slice_eq_str(reason, reason_name(st->reason)))
        st->reason++;
    if (!slice_eq_str(reason, reason_name(st->reason)) ||
        (st->state == STATE_DEAD) != (st->reason != REASON_NONE))
        return fail(why,
                    "\"reason\" must be of attempts, rejected, expired, discarded if \"state\" is dead, else "
                    "null");
    if (read_number(o, "attempts", 0, UINT32_MAX, NULL, &attempts, why) < 0 ||
        read_number(o, "interrupted", 0, UINT32_MAX, NULL, &interrupted, why) < 0 ||
        read_time(o, "claimed_at", &st->claimed_at, why) < 0 ||
        read_time(o, "finished_at", &st->finished_at, why) < 0 ||
        read_history(json_get(o, "history"), st, why) < 0)
        return -1;
    st->attempts = (uint32_t)attempts;
    st->interrupted = (uint32_t)interrupted;
    copy_text(o, "claimed_by", st->claimed_by, sizeof(st->claimed_by));
    copy_text(o, "error", st->error, sizeof(st->error));
    return 0;
}

static int read_head(const struct json *o, struct event_line *l, char why[256])
{
    struct slice bot = json_string(json_get(o, "bot")), box = json_string(json_get(o, "box"));
    bool has_bot_id = false;
    struct event *ev = &l->ev;

    if (!text_is_bot_name(bot))
        return fail(why, "\"bot\" is missing or no bot's name");
    memcpy(l->bot, bot.p, bot.n);
    if (read_number(o, "bot_id", 1, INT64_MAX, &has_bot_id, &l->bot_id, why) < 0)
        return -1;
    if (!has_bot_id)
        return fail(why, "\"bot_id\" is missing");
    if (!slice_eq_str(box, "in") && !slice_eq_str(box, "out"))
        return fail(why, "\"box\" must be in or out");
    l->box = slice_eq_str(box, "in") ? BOX_IN : BOX_OUT;
    copy_text(o, "kind", ev->kind, sizeof(ev->kind));
    if (read_number(o, "update_id", 0, INT64_MAX, &ev->has_update_id, &ev->update_id, why) < 0 ||
        read_number(o, "chat", INT64_MIN, INT64_MAX, &ev->place.has_chat, &ev->place.chat, why) < 0 ||
        read_number(o, "user", INT64_MIN, INT64_MAX, &ev->place.has_user, &ev->place.user, why) < 0 ||
        read_time(o, "received_at", &ev->received_at, why) < 0)
        return -1;
    if (ev->received_at <= 0)
        return fail(why, "\"received_at\" is missing");
    return 0;
}

/* The payload as it came: the line feeds go back to their places. */
static int read_payload(const struct json *o, struct slice raw, struct event_line *l, char why[256])
{
    const struct json *newlines = json_get(o, "newlines"), *base64 = json_get(o, "payload_base64");

    if (raw.n)
        buf_add_slice(&l->payload, raw);
    else if (!base64)
        return fail(why, "there is no payload; export with payloads");
    else if (json_string(base64).n > CALL_MAX_BYTES * 2 ||
             base64_add_decoded(&l->payload, json_string(base64)) < 0)
        return fail(why, "\"payload_base64\" is not base64");
    for (size_t i = 0; raw.n && i < json_length(newlines); i++) {
        int64_t at;
        if (json_to_i64(json_item(newlines, i), &at) < 0 || at < 0 || (size_t)at >= l->payload.n ||
            l->payload.p[at] != ' ')
            return fail(why,
                        "\"newlines\" does not fit the payload, which was written anew (as jq does); choose "
                        "whole lines, as grep does");
        l->payload.p[at] = '\n';
    }
    size_t max = l->box == BOX_IN ? UPDATE_MAX_BYTES : CALL_MAX_BYTES;
    if (l->payload.n > max)
        return fail(why, "the payload is larger than %zu bytes", max);
    l->ev.payload = buf_slice(&l->payload);
    return 0;
}

/* What only a call has: method and content type, and where it belongs, as the payload has it. */
static int read_call(const struct json *o, struct event_line *l, char why[256])
{
    struct event *ev = &l->ev;
    struct call call;

    ev->is_call = true;
    ev->has_update_id = false;
    ev->once = json_true(json_get(o, "once"));
    copy_text(o, "method", ev->kind, sizeof(ev->kind));
    copy_text(o, "content_type", ev->content_type, sizeof(ev->content_type));
    if (hex_decode(json_string(json_get(o, "hash")), ev->hash, sizeof(ev->hash)) < 0)
        return fail(why, "\"hash\" is missing, by which a call is known");
    call_of_method(slice_str(ev->kind), slice_str(ev->content_type), ev->payload, &call);
    if (call.refused && l->st.state != STATE_DEAD)
        return fail(why, "%s", call.refused);
    ev->lane = call.lane;
    ev->place = (struct update_place){.has_chat = call.has_chat, .chat = call.chat};
    return 0;
}

/* Kind, chat, user and thread as the payload has them: an export does not hold all, and a kind is trusted to mean that
 * the payload is JSON. */
static void read_place(struct event_line *l)
{
    struct update u;

    if (update_parse(l->ev.payload, &u) < 0) {
        l->ev.kind[0] = '\0';
        return;
    }
    l->ev.place = u.place;
    memcpy(l->ev.kind, u.kind, sizeof(l->ev.kind));
}

int event_line_read(struct slice line, struct event_line *out, char why[256])
{
    struct buf head = BUF_EMPTY;
    struct slice raw = {NULL, 0};
    char parse_why[128];

    memset(out, 0, sizeof(*out));
    int got = json_member_bytes(line, "payload", &raw);
    if (got == -2)
        return fail(why, "the line is not a JSON object");
    if (got == 0) { /* what the tree is made of is the line without the payload, which may be deep */
        buf_add(&head, line.p, (size_t)(raw.p - line.p));
        buf_add_str(&head, "null");
        buf_add(&head, raw.p + raw.n, line.n - (size_t)(raw.p + raw.n - line.p));
    } else {
        buf_add_slice(&head, line);
    }
    struct json *o = json_parse(buf_slice(&head), parse_why);
    buf_free(&head);
    if (!o)
        return fail(why, "the line is not JSON: %s", parse_why);
    int rc =
        read_head(o, out, why) < 0 || read_state(o, &out->st, why) < 0 || read_payload(o, raw, out, why) < 0
            ? -1
            : 0;
    if (rc == 0 && out->box == BOX_OUT)
        rc = read_call(o, out, why);
    else if (rc == 0)
        read_place(out);
    json_free(o);
    return rc;
}

void event_line_free(struct event_line *l)
{
    buf_free(&l->payload);
}
