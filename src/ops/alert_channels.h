/* The ways by which alerts go out, each in its file. All are taken by alert_sender_new. */
#ifndef OPS_ALERT_CHANNELS_H
#define OPS_ALERT_CHANNELS_H

#include "base/buf.h"
#include "base/err.h"
#include "core/config.h"
#include "ops/alert_sender.h"

/* A command: the alert as a line of JSON on its standard input. Exit status 0: delivered. It has 30 s, then its
 * whole group is ended. What it writes is not read by anyone. argv is copied. */
struct alert_channel *alert_command_new(struct loop *l, char *const *argv);

/* A URL that the JSON is POSTed to; 2xx: delivered. The URL is a secret, and may hold user and password. Returns NULL
 * and e if it is wrong. */
struct alert_channel *alert_url_new(struct loop *l, const char *url, const char *proxy_url, struct err *e);

/* Reads the bot's token anew into out (empty). Returns -1 and e if there is none to use. */
typedef int alert_token_fn(void *arg, struct buf *out, struct err *e);

struct alert_telegram_options {
    const struct bot_config *bot; /* whose api_root, ca_file and ip are used; borrowed for the call */
    const char *token;
    const char *proxy_url;
    const char *chat; /* a number, or @NAME */
    alert_token_fn
        *reread_token; /* after Telegram refused it; what is asked with it must outlive the channel */
    void *reread_arg;
};
/* sendMessage of the Bot API, by itself: it goes neither through the box out nor over its breaker. */
struct alert_channel *alert_telegram_new(struct loop *l, const struct alert_telegram_options *o,
                                         struct err *e);

#endif
