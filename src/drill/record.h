/* What handlers and consumers did with the drill's updates, in the order in which it was seen. Handlers that are
 * processes of their own write lines into a file, which is read on here; consumers within this process add theirs
 * directly. */
#ifndef DRILL_RECORD_H
#define DRILL_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

enum deed_kind {
    DEED_START,  /* it has the update */
    DEED_EFFECT, /* the built-in handler had its effect, which it has once for a key */
    DEED_ACTED,  /* all is done, but nobody was told yet */
    DEED_FAILED, /* it did not do it */
    DEED_END,    /* success is about to be told */
    DEED_KINDS
};

struct deed {
    enum deed_kind kind;
    int64_t update_id;
    int64_t attempt; /* from 1 */
    int64_t detail;  /* of DEED_FAILED: the exit status, -1: none */
    int64_t at;      /* clock_now() when it was seen */
};

struct record {
    struct deed *deeds;
    size_t n;
    int fd; /* of the file of handlers; -1: none */
    char tail[256];
    size_t n_tail; /* of a line that is not whole yet */
};

#define RECORD_EMPTY ((struct record){NULL, 0, -1, "", 0})

/* Begins anew: makes the file at path, empty. */
int record_open(struct record *r, const char *path, struct err *e);
void record_close(struct record *r);
void record_add(struct record *r, enum deed_kind kind, int64_t update_id, int64_t attempt, int64_t detail);
/* Takes in what handlers wrote since. */
void record_read(struct record *r);
/* Appends one line to the file at path, as a handler does: a whole one, whoever else writes. Returns 0 or -1. */
int record_write(const char *path, enum deed_kind kind, int64_t update_id, int64_t attempt, int64_t detail);

unsigned record_count(const struct record *r, enum deed_kind kind, int64_t update_id);
/* The first of that kind and update from place `from` on; NULL: none. */
const struct deed *record_find(const struct record *r, enum deed_kind kind, int64_t update_id, size_t from);

#endif
