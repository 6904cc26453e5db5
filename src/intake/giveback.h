/* Gives a bot back: Telegram is told the last of what was taken, and what it was told before us. */
#ifndef INTAKE_GIVEBACK_H
#define INTAKE_GIVEBACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "core/config.h"

struct giveback;
struct loop;
struct spool_box;

struct giveback_options {
    struct loop *loop;
    struct spool_box *box;        /* must outlive it; its intake is at rest */
    const struct bot_config *bot; /* copied as far as it is needed */
    const char *token;            /* copied */
    const char *proxy_url;        /* NULL: direct; copied */
    int64_t now;
};

/* How it went. */
struct giveback_result {
    bool ok;
    bool had_webhook;   /* before us: the old bot has to set it again */
    bool kinds_known;   /* what it asked for before us was recorded, and is asked for again: */
    char *const *kinds; /* NULL: Telegram's default list */
    size_t n_kinds;
    const char *sentence; /* why not */
};
/* Called once, unless it was freed before. It may free the giveback. */
typedef void giveback_fn(void *arg, const struct giveback_result *r);

/* Begins. Returns NULL and e if the URLs or the CA file are wrong. */
struct giveback *giveback_new(const struct giveback_options *o, giveback_fn *fn, void *arg, struct err *e);
void giveback_free(struct giveback *g);

#endif
