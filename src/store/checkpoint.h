/* Checkpoints: still copies of a spool, made of hard links, in DIR/checkpoints/ID. Each can be opened to be looked at as a
 * spool can (store_look). They cost no space but for what is removed from the spool meanwhile, so they are removed after
 * use. A spool holds few of them. */
#ifndef STORE_CHECKPOINT_H
#define STORE_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "store/commit.h"

#define CHECKPOINT_ID_SIZE 17

/* Two steps, so that the caller never waits long: begin, then make once ready says true (it also does when the store is
 * failed; make tells then). */
int checkpoint_begin(struct store *st, struct err *e);
bool checkpoint_ready(struct store *st);
/* Returns 0 and the id; or -1 and e, and nothing is left of it. */
int checkpoint_make(struct store *st, char id[CHECKPOINT_ID_SIZE], struct err *e);
char *checkpoint_path(const struct store *st, const char *id); /* to be freed */

/* One of another kind: DIR/NAME, which stays. Takes the place of an earlier one. Returns 0, or -1 and e. */
int checkpoint_make_at(struct store *st, const char *name, struct err *e);

/* Removes some files of DIR/NAME once it is as old as kept_ms says. Returns when to call again; TIME_NEVER: nothing is left. */
int64_t checkpoint_remove_old(const struct store *st, const char *name, int64_t kept_ms, int64_t now);

/* Removes some files of one. Returns true when nothing is left of it, or it cannot be removed (that is logged). */
bool checkpoint_remove_some(const struct store *st, const char *id);

/* Calls each with the id of every one there is, and when it was made (Unix ms, wall clock); removes what was not
 * finished. */
void checkpoints_each(const struct store *st, void (*each)(void *arg, const char *id, int64_t made_at),
                      void *arg);

#endif
