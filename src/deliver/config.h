/* What of a bot's configuration deliverers go by, copied; shared by the slots that were made under it, because work
 * that runs goes on as it was begun when the configuration is reloaded. */
#ifndef DELIVER_CONFIG_H
#define DELIVER_CONFIG_H

#include "base/buf.h"
#include "base/file.h"
#include "core/config.h"

struct deliver_config {
    unsigned refs;
    char bot[BOT_NAME_MAX + 1];
    enum deliver_mode mode;
    char **command;                /* NULL-terminated; exec and worker */
    char *url;                     /* http */
    char *secret;                  /* NULL: none */
    char *ca_file;                 /* http and calls; NULL: the system's certificates */
    char ca_stamp[FILE_STAMP_MAX]; /* of that file, as it was */
    /* of a box out; the rest is NULL in a box in */
    bool calls;
    char *api_root, *token;
    char *proxy_url; /* NULL: direct */
    enum ip_mode ip;
    int (*reread_token)(void *arg, struct buf *out, struct err *e);
    void *reread_arg;
};

struct slots_calls;

/* With one reference, which is the caller's. */
struct deliver_config *deliver_config_new(const struct bot_config *bot, const char *secret);
struct deliver_config *deliver_config_new_calls(const struct slots_calls *c);
struct deliver_config *deliver_config_ref(struct deliver_config *c);
void deliver_config_unref(struct deliver_config *c); /* the last one wipes the secrets and frees */
/* Reads the token of a box out anew. Returns whether it is another one now. */
bool deliver_config_reread_token(struct deliver_config *c);
bool deliver_config_same(const struct deliver_config *a, const struct deliver_config *b);

#endif
