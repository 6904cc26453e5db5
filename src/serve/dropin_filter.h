/* A client's allowed_updates: what it wants of that which intake brought. Pure. */
#ifndef SERVE_DROPIN_FILTER_H
#define SERVE_DROPIN_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"

struct dropin_filter {
    enum { FILTER_ALL, FILTER_DEFAULT, FILTER_LIST } mode; /* ALL: no list was ever given */
    char **kinds;                                          /* owned; of FILTER_LIST */
    size_t n;
};

/* Takes over a list as clients send it: a JSON array of names. What is none leaves the filter as it is; an empty one,
 * or one without any known name, means Telegram's default. Returns whether it was a list. */
bool dropin_filter_set(struct dropin_filter *f, struct slice json);
void dropin_filter_clear(struct dropin_filter *f); /* back to FILTER_ALL */
/* Whether an update of this kind is for the client. */
bool dropin_filter_wants(const struct dropin_filter *f, const char *kind);

#endif
