/* An update, as far as the spool must understand it: found in one pass of yajl over bytes that are kept as they
 * came. Invalid UTF-8, huge numbers, unknown kinds and deep nesting do not stop it. */
#ifndef CORE_UPDATE_H
#define CORE_UPDATE_H

#include "base/bytes.h"
#include "core/lane.h"

#define UPDATE_KIND_MAX 64
#define UPDATE_MAX_BYTES (1 << 20) /* Telegram's own limit is half of it */

struct update {
    struct slice bytes; /* borrowed: the update's JSON object, as it came, without blanks around it */
    bool has_id;        /* update_id is there and is a number that fits 64 bits, not negative */
    int64_t id;
    char kind[UPDATE_KIND_MAX]; /* name of its payload member; "" if there is none; cut if longer */
    struct update_place place;
};

/* Reads one update. Returns 0, or -1 if bytes is not one JSON object. */
int update_parse(struct slice bytes, struct update *out);

/* An answer of the Bot API to getUpdates. */
struct update_answer {
    bool ok;
    struct update *updates; /* owned; the slices in it borrow from the answer's bytes */
    size_t n;
    int error_code;
    char description[256]; /* cut, cleaned */
    int64_t retry_after;   /* seconds; -1: not given */
    int64_t migrate_to_chat_id;
};

/* Reads a whole answer. Returns 0, or -1 if bytes is not such an answer (not JSON, cut short, no "ok", no result
 * array in a success). An element of the result that is no object becomes an update without id. */
int update_answer_parse(struct slice bytes, struct update_answer *out);
void update_answer_free(struct update_answer *a);

/* Looks for the first "update_id":N in bytes that are not JSON. Returns 0, or -1 if there is none. */
int update_guess_id(struct slice bytes, int64_t *id);

#endif
