/* A line that a worker writes: its answer to an event, or a wish for more time (design.md section 9). Pure.
 */
#ifndef DELIVER_ANSWER_H
#define DELIVER_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

#define ANSWER_MAX (8 << 20) /* bytes of a line, which may carry calls */

struct json;

enum answer_kind { ANSWER_DONE, ANSWER_FAILED, ANSWER_EXTEND };

struct answer {
    enum answer_kind kind;
    struct slice id;
    struct slice error; /* of a failure; may be empty */
    int64_t after_ms;   /* of a failure: retry_after, a number of seconds or a text such as "5m"; -1: none */
    bool dead;
    int64_t extend_ms;
    const struct json *calls, *keys; /* of a success; NULL: none. What they hold was not looked at */
    struct json *root;               /* all borrow from it */
};

/* Returns 0, to be freed by answer_free, or -1 if the line is no such object. */
int answer_parse(struct slice line, struct answer *out);
void answer_free(struct answer *a);

#endif
