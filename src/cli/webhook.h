/* How a bot's webhook stands at Telegram, against its config. */
#ifndef CLI_WEBHOOK_H
#define CLI_WEBHOOK_H

#include "base/buf.h"
#include "core/config.h"
#include "telegram/botapi.h"

enum webhook_verdict { WEBHOOK_GOOD, WEBHOOK_DOUBTFUL, WEBHOOK_BAD };

/* Says how things are as one sentence appended to `text`, and if they are not good, what to do in `next`: a
 * command or a hint. No secrets: of an address that is not the config's only the host is shown. now in
 * milliseconds since 1970. */
enum webhook_verdict webhook_judge(const struct bot_config *bot, const struct webhook_info *i, int64_t now,
                                   struct buf *text, struct buf *next);

#endif
