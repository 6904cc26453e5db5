/* Filling the envelope. */
#include "core/envelope.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const struct envelope_name envelope_names[ENVELOPE_FIELDS] = {
    [ENVELOPE_ID] = {"TGSPOOL_ID", "id", "X-Tgspool-Id", false},
    [ENVELOPE_BOT] = {"TGSPOOL_BOT", "bot", "X-Tgspool-Bot", false},
    [ENVELOPE_UPDATE_ID] = {"TGSPOOL_UPDATE_ID", "update_id", NULL, true},
    [ENVELOPE_KIND] = {"TGSPOOL_KIND", "kind", "X-Tgspool-Kind", false},
    [ENVELOPE_LANE] = {"TGSPOOL_LANE", "lane", "X-Tgspool-Lane", false},
    [ENVELOPE_ATTEMPT] = {"TGSPOOL_ATTEMPT", "attempt", "X-Tgspool-Attempt", true},
    [ENVELOPE_KEY] = {"TGSPOOL_KEY", "key", "Idempotency-Key", false},
    [ENVELOPE_RECEIVED_AT] = {"TGSPOOL_RECEIVED_AT", "received_at", "X-Tgspool-Received-At", true},
    [ENVELOPE_AGE] = {"TGSPOOL_AGE", "age", "X-Tgspool-Age", true},
};

static void set_text(struct envelope *e, enum envelope_field f, const char *text)
{
    e->has[f] = true;
    snprintf(e->value[f], ENVELOPE_VALUE_MAX, "%s", text);
}

static void set_number(struct envelope *e, enum envelope_field f, int64_t n)
{
    e->has[f] = true;
    snprintf(e->value[f], ENVELOPE_VALUE_MAX, "%" PRId64, n);
}

void envelope_make(struct envelope *e, const char *bot, int64_t bot_id, enum box box, const struct event *ev,
                   uint32_t attempt, int64_t now)
{
    char lane[LANE_TEXT_MAX], key[EVENT_KEY_MAX];
    struct buf id = BUF_EMPTY;

    memset(e, 0, sizeof(*e));
    event_ref_text(&id, bot, box, ev);
    set_text(e, ENVELOPE_ID, buf_str(&id));
    buf_free(&id);
    set_text(e, ENVELOPE_BOT, bot);
    if (ev->has_update_id)
        set_number(e, ENVELOPE_UPDATE_ID, ev->update_id);
    set_text(e, ENVELOPE_KIND, ev->kind);
    set_text(e, ENVELOPE_LANE, lane_text(ev->lane, lane));
    set_number(e, ENVELOPE_ATTEMPT, attempt);
    set_text(e, ENVELOPE_KEY, event_key(bot_id, ev, key));
    set_number(e, ENVELOPE_RECEIVED_AT, ev->received_at / 1000);
    set_number(e, ENVELOPE_AGE, now > ev->received_at ? (now - ev->received_at) / 1000 : 0);
}

char *envelope_header_value(const struct envelope *e, enum envelope_field f, char out[ENVELOPE_VALUE_MAX])
{
    size_t n = 0;

    for (const char *p = e->value[f]; *p; p++)
        out[n++] = *p >= 0x20 && *p < 0x7f ? *p : '?';
    out[n] = '\0';
    return out;
}
