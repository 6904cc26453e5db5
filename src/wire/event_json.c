/* Events as JSON. */
#include "wire/event_json.h"

#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/text.h"
#include "core/config.h"
#include "core/outcome.h"

#define DEPTH_MAX 50    /* wire/json.h reads 64, and the document around takes some */
#define NEWLINES_MAX 32 /* more than that: base64 is shorter to read */

void event_write_time(struct json_out *j, const char *key, int64_t ms)
{
    char text[40];

    json_key(j, key);
    if (ms <= 0) {
        json_null(j);
        return;
    }
    snprintf(text, sizeof(text), "%lld.%03d", (long long)(ms / 1000), (int)(ms % 1000));
    json_raw(j, slice_str(text));
}

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* How deep JSON that is known to be valid is nested. */
static unsigned deepest(struct slice json)
{
    unsigned depth = 0, max = 0;
    bool in_string = false;

    for (size_t i = 0; i < json.n; i++) {
        char c = json.p[i];
        if (c == '"')
            in_string = !in_string;
        else if (in_string)
            i += c == '\\';
        else if (c == '{' || c == '[')
            max = ++depth > max ? depth : max;
        else if (c == '}' || c == ']')
            depth--;
    }
    return max;
}

/* Whether a payload can stand in a JSON document for everyone to read: no blanks around it (they would be lost), valid
 * UTF-8, no carriage return, few line feeds, and JSON that our own reader takes when it stands some levels deep. */
static bool embeddable(struct slice payload, size_t *newlines)
{
    struct buf tmp = BUF_EMPTY;

    *newlines = 0;
    for (size_t i = 0; i < payload.n; i++)
        *newlines += payload.p[i] == '\n';
    text_add_clean(&tmp, payload, SIZE_MAX, true);
    bool ok = payload.n > 0 && !blank(payload.p[0]) && !blank(payload.p[payload.n - 1]) &&
              *newlines <= NEWLINES_MAX && slice_eq(buf_slice(&tmp), payload);
    if (ok) {
        struct json *tree = json_parse(payload, NULL);
        ok = tree && deepest(payload) <= DEPTH_MAX;
        json_free(tree);
    }
    buf_free(&tmp);
    return ok;
}

static void write_base64(struct json_out *j, const char *name, struct slice payload)
{
    struct buf text = BUF_EMPTY;
    char key[64];

    base64_add(&text, payload);
    snprintf(key, sizeof(key), "%s_base64", name);
    json_kv_text(j, key, buf_slice(&text));
    buf_free(&text);
}

void event_write_payload(struct json_out *j, const char *name, struct slice payload)
{
    size_t newlines;

    if (!embeddable(payload, &newlines)) {
        write_base64(j, name, payload);
        return;
    }
    json_key(j, name);
    json_raw_line(j, payload);
    if (!newlines)
        return;
    json_key(j, "newlines");
    json_array(j);
    for (size_t i = 0; i < payload.n; i++)
        if (payload.p[i] == '\n')
            json_uint(j, i);
    json_array_end(j);
}

static void write_optional_i64(struct json_out *j, const char *key, bool has, int64_t v)
{
    json_key(j, key);
    if (has)
        json_int(j, v);
    else
        json_null(j);
}

static void write_history(struct json_out *j, const struct event_state *st)
{
    json_key(j, "history");
    json_array(j);
    for (size_t i = 0; i < st->n_history; i++) {
        json_object(j);
        event_write_time(j, "at", st->history[i].at);
        json_kv_cstr(j, "outcome", outcome_name((enum outcome_kind)st->history[i].outcome));
        json_kv_cstr(j, "error", st->history[i].error);
        json_object_end(j);
    }
    json_array_end(j);
}

static void write_state(struct json_out *j, const struct event_state *st)
{
    bool held = st->state == STATE_PROCESSING;

    json_kv_cstr(j, "state", state_name(st->state));
    json_kv_cstr(j, "reason", st->state == STATE_DEAD ? reason_name(st->reason) : NULL);
    json_kv_uint(j, "attempts", st->attempts);
    json_kv_uint(j, "interrupted", st->interrupted);
    event_write_time(j, "next_retry_at", st->state == STATE_PENDING ? st->next_retry_at : 0);
    event_write_time(j, "claimed_at", st->claimed_at);
    json_kv_cstr(j, "claimed_by", st->claimed_by[0] ? st->claimed_by : NULL);
    event_write_time(j, "deadline", held && !st->push ? st->deadline : 0);
    event_write_time(j, "finished_at", st->finished_at);
    write_optional_i64(j, "replayed_as", st->replayed_as != 0, (int64_t)st->replayed_as);
    json_kv_cstr(j, "error", st->error[0] ? st->error : NULL);
    write_history(j, st);
}

/* What only a call has. Its hash is no payload's, so it has to be told. */
static void write_call(struct json_out *j, const char *bot, const struct event *ev)
{
    char text[BOT_NAME_MAX + 32], hash[2 * sizeof(ev->hash) + 1];

    snprintf(text, sizeof(text), "%s/@%llu", bot, (unsigned long long)ev->made_by);
    hex_encode(ev->hash, sizeof(ev->hash), hash);
    json_kv_cstr(j, "method", ev->kind);
    json_kv_cstr(j, "content_type", ev->content_type);
    json_kv_bool(j, "once", ev->once);
    json_kv_cstr(j, "made_by", ev->made_by ? text : NULL);
    json_kv_cstr(j, "hash", hash);
}

void event_write(struct json_out *j, const char *bot, int64_t bot_id, enum box box, const struct event *ev,
                 const struct event_state *st, bool payload)
{
    const struct event by_number = {.seq = ev->seq};
    struct buf id = BUF_EMPTY, ref = BUF_EMPTY;
    char lane[LANE_TEXT_MAX], key[EVENT_KEY_MAX];

    event_ref_text(&id, bot, box, ev);
    event_ref_text(&ref, bot, box, &by_number);
    json_object(j);
    json_kv_text(j, "id", buf_slice(&id));
    json_kv_text(j, "ref", buf_slice(&ref)); /* names this event also where a newer one bears its id */
    json_kv_cstr(j, "bot", bot);
    json_kv_int(j, "bot_id", bot_id);
    json_kv_cstr(j, "box", box_name(box));
    json_kv_uint(j, "seq", ev->seq);
    write_optional_i64(j, "update_id", ev->has_update_id, ev->update_id);
    json_kv_cstr(j, "kind", ev->kind);
    write_optional_i64(j, "chat", ev->place.has_chat, ev->place.chat);
    write_optional_i64(j, "user", ev->place.has_user, ev->place.user);
    json_kv_cstr(j, "lane", lane_text(ev->lane, lane));
    json_kv_cstr(j, "key", event_key(bot_id, ev, key));
    event_write_time(j, "received_at", ev->received_at);
    write_optional_i64(j, "replay_of", ev->replay_of != 0, (int64_t)ev->replay_of);
    if (ev->is_call)
        write_call(j, bot, ev);
    write_state(j, st);
    if (payload)
        event_write_payload(j, "payload", ev->payload);
    json_object_end(j);
    buf_free(&id);
    buf_free(&ref);
}
