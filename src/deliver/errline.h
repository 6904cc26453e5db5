/* What a handler writes to standard error: its last line is the error, a line `retry-after: N` the time after
 * which to try again. Constant memory, whatever comes. */
#ifndef DELIVER_ERRLINE_H
#define DELIVER_ERRLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "core/event.h"

struct errline {
    char line[ERROR_MAX]; /* the one that is coming; what is longer is cut */
    size_t n;
    char last[ERROR_MAX]; /* the last whole one that says something */
    size_t n_last;
    int64_t after_ms; /* -1: none was given */
};

void errline_init(struct errline *e);
void errline_add(struct errline *e, struct slice bytes);
/* The stream has ended: a line without its newline counts too. Returns the last line; it may be empty.
 * Borrowed. */
struct slice errline_end(struct errline *e);

#endif
