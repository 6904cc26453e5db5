/* What `verify` finds, for the commands that verify what they made. */
#ifndef CLI_VERIFY_H
#define CLI_VERIFY_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct verified {
    char instance[33];
    uint64_t generation;
    uint64_t unfinished, ended; /* events, as counted by their boxes */
    uint64_t highest_seq;       /* of any box */
    unsigned faults;
    char **told; /* the first of them, as sentences */
    size_t n_told;
};

/* Reads all of a directory that stands still. Returns 0 (there may be faults), or -1 and e: it cannot be opened. */
int verify_dir(const char *dir, struct verified *v, struct err *e);
void verified_free(struct verified *v);
void verify_tell(const struct verified *v); /* the faults, on standard error */

#endif
