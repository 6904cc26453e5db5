/* How a command asks Telegram on behalf of one bot: a call, and waiting for its answer. */
#ifndef CLI_ASK_H
#define CLI_ASK_H

#include "base/err.h"
#include "core/config.h"
#include "daemon/secrets.h"
#include "telegram/botapi.h"

struct ask;

/* bot and secrets are borrowed until ask_close. Returns NULL and e if they cannot be used as they are. */
struct ask *ask_open(const struct bot_config *bot, const struct bot_secrets *secrets, struct err *e);
void ask_close(struct ask *k); /* harmless with NULL */

/* Each waits for the answer, at most 20 seconds. Returns 0, or -1 and e, a sentence without secrets. */
int ask_me(struct ask *k, char **username, int64_t *id, struct err *e);
/* *out is to be given to webhook_info_free, also after -1. */
int ask_webhook_info(struct ask *k, struct webhook_info *out, struct err *e);
int ask_set_webhook(struct ask *k, const struct botapi_webhook *w,
                    struct err *e); /* w's deadline is not read */
int ask_delete_webhook(struct ask *k, struct err *e);

bool ask_failed(const struct ask *k); /* the last call */
/* What to do about it: a hint or a command. */
const char *ask_advice(const struct ask *k);

#endif
