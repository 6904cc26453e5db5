/* Gives a bot back: Telegram is told the last of what was taken, and what it was told before us. */
#ifndef INTAKE_GIVEBACK_H
#define INTAKE_GIVEBACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "core/config.h"
#include "core/given_back.h"

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

/* Begins. Returns NULL and e if the URLs or the CA file are wrong. fn is called once, later, unless it was freed
 * before; it may free the giveback. */
struct giveback *giveback_new(const struct giveback_options *o, given_back_fn *fn, void *arg, struct err *e);
void giveback_free(struct giveback *g);

#endif
