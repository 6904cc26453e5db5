/* What `restore` and `repair` have in common: a copy of a spool is made fit to go on, and its bots wait for a person. */
#ifndef CLI_REBORN_H
#define CLI_REBORN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct reborn {
    uint64_t unfinished, ended, generation;
    char **bots; /* names, each once */
    size_t n_bots;
};

/* Opens the copy, applies spool_restore, closes it, and leaves nothing in it but a marker and a database. Returns 0, or -1
 * and e. */
int reborn_make(char *dir, int64_t cache_bytes, int64_t taken_at, struct reborn *r, struct err *e);
/* Whether the spool in dir, whose lock the caller has, is what reborn_make made of a copy of that time, and nothing came
 * to it since. If so, r is filled. */
bool reborn_is(char *dir, int64_t cache_bytes, int64_t taken_at, struct reborn *r);
void reborn_free(struct reborn *r);
/* The command that lets each bot go on, a line each. */
void reborn_print_resume(const struct reborn *r);

#endif
