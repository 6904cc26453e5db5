/* Parts of salvage, for salvage.c alone. */
#ifndef SPOOL_SALVAGE_H
#define SPOOL_SALVAGE_H

#include "spool/internal.h"

__extension__ typedef unsigned __int128 salvage_place;
/* Whether a walk from there on can begin. */
typedef bool salvage_begins_fn(void *arg, salvage_place at);
/* The first place behind a bad one, and below end, from which a walk can begin; end: none. By strides, and halving. */
salvage_place salvage_search(salvage_place bad, salvage_place end, salvage_begins_fn *begins, void *arg);

/* Puts *at to the next key behind it, below upper, from which a walk can begin; false: there is none. */
bool salvage_behind(struct db *from, enum family f, struct key *at, struct slice upper);

/* What is done with a row. */
typedef void salvage_row_fn(struct spool *to, enum family f, struct slice key, struct slice value);

/* Goes over the rows from lower up to upper that can be read, and commits. Returns in how many places some could not. */
uint64_t salvage_rows(struct spool *to, struct db *from, enum family f, struct key lower, struct key upper,
                      salvage_row_fn *each);

#endif
