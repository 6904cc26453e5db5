/* What a success records beside its state, gathered from what a handler says: Bot API calls and idempotency keys.
 * Whatever is wrong with one of them never makes the event fail: a call that cannot be sent is kept with the reason
 * (the spool stores it dead), a key that is none is left out. */
#ifndef SPOOL_GATHER_H
#define SPOOL_GATHER_H

#include "spool/spool.h"

#define GATHER_CALLS_MAX 100 /* of one answer; what goes beyond is one call that cannot be sent */
#define GATHER_KEYS_MAX 100

struct json;
struct gathered; /* a call */

struct gather {
    struct spool_extras extras; /* what spool_complete_with takes; the rest is for this module */
    struct gathered **calls;
    struct spool_call *list;
    struct slice *keys;
};

#define GATHER_EMPTY ((struct gather){.calls = NULL})

void gather_free(struct gather *g);

/* A body that may be a call, as Telegram reads the answer to a webhook (wire/call.h). Borrowed until gather_free. */
void gather_body(struct gather *g, struct slice content_type, struct slice body);
/* The member `calls` of an answer: an array of objects (or one) with `method`, and perhaps `once`. NULL: nothing. */
void gather_calls(struct gather *g, const struct json *calls);
/* A program's output: a JSON object with `method`, or an array that holds such; anything else says nothing. */
void gather_output(struct gather *g, struct slice text);
/* One that cannot be sent, for a person to see. why is a constant; body borrowed. */
void gather_refused(struct gather *g, struct slice content_type, struct slice body, const char *why);
/* The member `keys`: an array of texts, which are borrowed. Returns how many of them are no keys, or too many. */
size_t gather_keys(struct gather *g, const struct json *keys);

#endif
