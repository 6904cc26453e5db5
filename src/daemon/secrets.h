/* Secrets: the bots' tokens, proxies, secrets of webhooks, and what is asked of callers here. They come out of private files,
 * systemd's credentials or the environment, and every one that is read is registered with the log, which
 * never shows it. */
#ifndef DAEMON_SECRETS_H
#define DAEMON_SECRETS_H

#include <stdint.h>

#include "base/err.h"
#include "base/file.h"
#include "core/config.h"

struct bot_secrets {
    char *token;
    int64_t bot_id;                /* the number in front of the token's colon */
    char *proxy_url;               /* NULL: direct */
    char *url_secret;              /* sent to the bot's handler; NULL: none */
    char *webhook_secret;          /* what Telegram must send; NULL: none is asked for */
    char *dropin_token;            /* the drop-in API's name for the bot beside its token; NULL: none */
    char *pull_token;              /* NULL: none */
    char ca_stamp[FILE_STAMP_MAX]; /* no secret: of ca_file, as it was when these were read */
};

struct alert_secrets {
    char *url;       /* that alerts are POSTed to; NULL: none */
    char *proxy_url; /* NULL: direct */
};

/* Reads all secrets of one bot. Returns 0, or -1 and an error with the option's place in the config and
 * nothing to free. May be called at any time: after Telegram refused a token, on reload. */
int secrets_read(const struct config *c, const struct bot_config *bot, struct bot_secrets *out,
                 struct err *e);
void secrets_clear(struct bot_secrets *s);

/* Reads the API's token; *out is to be freed, NULL if the config names none. Returns 0, or -1 and e. */
int secrets_read_api_token(const struct config *c, char **out, struct err *e);

/* Reads those of the section alerts. Returns 0, or -1 and e with nothing to free. */
int secrets_read_alerts(const struct config *c, struct alert_secrets *out, struct err *e);
void secrets_clear_alerts(struct alert_secrets *s);

/* Reads a token alone, the same way. *token is to be freed. */
int secrets_read_token(const struct config *c, const struct bot_config *bot, char **token, int64_t *bot_id,
                       struct err *e);

/* Whether text is a token: digits, ':', and 30 or more of A-Za-z0-9_-. Gives the bot id if so. */
bool secrets_parse_token(struct slice text, int64_t *bot_id);

#endif
