/* How it went to give a bot back to whoever had it before: told by intake, shown by the API. */
#ifndef CORE_GIVEN_BACK_H
#define CORE_GIVEN_BACK_H

#include <stdbool.h>
#include <stddef.h>

struct given_back {
    bool ok;
    bool had_webhook;   /* before us: the old bot has to set it again */
    bool kinds_known;   /* what it asked for before us was recorded, and is asked for again: */
    char *const *kinds; /* NULL: Telegram's default list */
    size_t n_kinds;
    const char *sentence; /* why not, for people; NULL if ok */
};
typedef void given_back_fn(void *arg, const struct given_back *r);

#endif
