/* What Telegram was told about a bot before tgspool first took its updates, so that a handover can put it back. */
#ifndef INTAKE_BEFORE_H
#define INTAKE_BEFORE_H

#include <stdbool.h>
#include <stddef.h>

struct spool_box;
struct webhook_info;

struct before {
    char **allowed_updates; /* owned; NULL: Telegram's default list */
    size_t n_allowed;
    bool had_webhook;
};

bool before_is_known(struct spool_box *box);
/* Keeps it, unless something is kept already. Rides in the spool's batch. */
void before_keep(struct spool_box *box, const struct webhook_info *info);
/* Returns false if nothing is kept. before_free in both cases. */
bool before_read(struct spool_box *box, struct before *out);
void before_free(struct before *b);

#endif
