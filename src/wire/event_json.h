/* Events as JSON, as the API gives, and `export` and the archive write them, and back (for `import`).
 *
 * Times are Unix seconds with three decimals. The payload's bytes are kept exactly: as the JSON they are,
 * where each line feed is a blank and its place is listed in "newlines" (so that an event is one line); or,
 * where they are no JSON of sane depth in UTF-8, in "payload_base64". */
#ifndef WIRE_EVENT_JSON_H
#define WIRE_EVENT_JSON_H

#include "core/event.h"
#include "wire/json.h"

/* Writes one object. payload: with its payload. */
void event_write(struct json_out *j, const char *bot, int64_t bot_id, enum box box, const struct event *ev,
                 const struct event_state *st, bool payload);
/* Writes the members that hold a payload into an open object. name: "payload" or "update". */
void event_write_payload(struct json_out *j, const char *name, struct slice payload);
void event_write_time(struct json_out *j, const char *key, int64_t ms); /* 0: null */

/* An exported line. ev.payload borrows from payload. */
struct event_line {
    char bot[33];
    int64_t bot_id;
    enum box box;
    struct event ev;
    struct event_state st;
    struct buf payload;
};
/* Reads one line. Unknown members are left alone (a newer export may hold more). Returns 0, or -1 and a
 * sentence. event_line_free in both cases. */
int event_line_read(struct slice line, struct event_line *out, char why[256]);
void event_line_free(struct event_line *l);

#endif
