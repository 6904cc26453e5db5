/* A database made beside the one in use, put in its place as if in one step. Whoever restores or repairs fills
 * DIR/preparing with a marker and a database; swap_commit makes that the spool. What was there before stays, in
 * DIR/damaged-TIME. A crash before the commit changes nothing; after it, the next open of the directory goes on. The caller
 * holds the directory's lock. */
#ifndef STORE_SWAP_H
#define STORE_SWAP_H

#include "base/err.h"

#define SWAP_PREPARING "preparing"
#define SWAP_READY "incoming"

/* The new, empty DIR/preparing; to be freed. NULL and e on failure. */
char *swap_prepare(const char *dir, struct err *e);
/* aside (may be NULL): where the old one went, to be freed; NULL if there was none. Returns 0, or -1 and e. */
int swap_commit(const char *dir, char **aside, struct err *e);
/* Goes on with a commit that was cut short, if there is one. Returns 1 if it did, 0 if there was none, or -1 and e. */
int swap_finish(const char *dir, char **aside, struct err *e);

#endif
