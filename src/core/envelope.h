/* The envelope of an event: what a handler is told beside the update (design.md section 9). One array of
 * fields, from which the environment of exec, the JSON of worker and claim, and the headers of http are made.
 */
#ifndef CORE_ENVELOPE_H
#define CORE_ENVELOPE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/event.h"

enum envelope_field {
    ENVELOPE_ID,
    ENVELOPE_BOT,
    ENVELOPE_UPDATE_ID,
    ENVELOPE_KIND,
    ENVELOPE_LANE,
    ENVELOPE_ATTEMPT,
    ENVELOPE_KEY,
    ENVELOPE_RECEIVED_AT,
    ENVELOPE_AGE,
    ENVELOPE_FIELDS
};

struct envelope_name {
    const char *env, *json;
    const char *header; /* NULL: not sent over http */
    bool number;        /* in JSON */
};

extern const struct envelope_name envelope_names[ENVELOPE_FIELDS];

#define ENVELOPE_VALUE_MAX 80

struct envelope {
    bool has[ENVELOPE_FIELDS]; /* update_id may be missing, nothing else is */
    char value[ENVELOPE_FIELDS][ENVELOPE_VALUE_MAX];
};

/* bot: its name, bot_id: Telegram's; attempt from 1; now in milliseconds since 1970. */
void envelope_make(struct envelope *e, const char *bot, int64_t bot_id, enum box box, const struct event *ev,
                   uint32_t attempt, int64_t now);

/* The value as a header may carry it: what is not printable ASCII (a kind is whatever Telegram, or someone in
 * its place, calls it) becomes '?'. Returns out. */
char *envelope_header_value(const struct envelope *e, enum envelope_field f, char out[ENVELOPE_VALUE_MAX]);

#endif
