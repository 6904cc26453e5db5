/* Secrets of the bots: tokens, proxies, the webhook secret of deliver: http. They come out of private files,
 * systemd's credentials or the environment, and every one that is read is registered with the log, which
 * never shows it. */
#ifndef DAEMON_SECRETS_H
#define DAEMON_SECRETS_H

#include <stdint.h>

#include "base/err.h"
#include "core/config.h"

struct bot_secrets {
    char *token;
    int64_t bot_id;   /* the number in front of the token's colon */
    char *proxy_url;  /* NULL: direct */
    char *url_secret; /* NULL: none */
};

/* Reads all secrets of one bot. Returns 0, or -1 and an error with the option's place in the config and
 * nothing to free. May be called at any time: after Telegram refused a token, on reload. */
int secrets_read(const struct config *c, const struct bot_config *bot, struct bot_secrets *out,
                 struct err *e);
void secrets_clear(struct bot_secrets *s);

/* Reads a token alone, the same way. *token is to be freed. */
int secrets_read_token(const struct config *c, const struct bot_config *bot, char **token, int64_t *bot_id,
                       struct err *e);

/* Whether text is a token: digits, ':', and 30 or more of A-Za-z0-9_-. Gives the bot id if so. */
bool secrets_parse_token(struct slice text, int64_t *bot_id);

#endif
