/* Faults: what the server does wrong on purpose, for the next so many requests of a method. */
#ifndef BOTAPI_FAULT_H
#define BOTAPI_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "conn.h"

enum fault_type {
    FAULT_NONE,
    FAULT_STATUS,        /* another answer: status, body, content_type, retry_after */
    FAULT_EMPTY,         /* an empty result at once */
    FAULT_RESET_BEFORE,  /* a reset before any byte of the answer */
    FAULT_CLOSE_BEFORE,  /* an end of file there */
    FAULT_HANG,          /* nothing ever comes; the connection stays open */
    FAULT_DELAY,         /* the answer comes ms later */
    FAULT_LOST,          /* the request is obeyed; a reset instead of the answer */
    FAULT_CUT,           /* the body ends after `at` bytes, with an end of file */
    FAULT_RESET_AFTER,   /* the same with a reset */
    FAULT_HALF_OPEN,     /* the same with silence */
    FAULT_DRIP,          /* a byte every ms milliseconds */
    FAULT_BAD_JSON,      /* an answer, complete by its length, that is no JSON */
    FAULT_BROKEN_UPDATE, /* the same, by the update that stands at `at` in the result */
    FAULT_TYPES
};

struct fault {
    struct list link;
    enum fault_type type;
    char method[32]; /* lower case; "" for any */
    int left;        /* how many requests more */
    int status, retry_after;
    char *content_type, *body; /* owned; NULL: the type's own */
    int64_t at, ms;
};

/* The type of that name ("reset_before", ...); FAULT_NONE if there is none. */
enum fault_type fault_type_find(struct slice name);
const char *fault_type_name(enum fault_type t);
/* Whether the request is never seen by the bot: the fault comes before any of its work. */
bool fault_is_in_front(enum fault_type t);

/* Takes the next fault for a method out of a list: a copy whose left is 1, to be freed by fault_free; NULL:
 * none. */
struct fault *fault_take(struct list *faults, const char *method);
void fault_free(struct fault *f);

/* Sends what is left of the reply under a fault (NULL: none). Closes or resets the connection where the fault
 * says so; returns -1 if the connection is to be closed, 1 if it is closed already, 0 to go on. */
int fault_reply(struct conn *c, struct reply *r, const struct fault *f);

#endif
