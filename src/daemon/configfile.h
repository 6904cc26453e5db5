/* The config file and everything that it names: what `run`, `check` and a reload start from. */
#ifndef DAEMON_CONFIGFILE_H
#define DAEMON_CONFIGFILE_H

#include "core/config.h"
#include "daemon/secrets.h"

#define CONFIG_FILE_MAX (256 << 10)

/* A config with its secrets; made whole or not at all, so that a reload swaps one for the other. */
struct setup {
    struct config *config;
    struct bot_secrets *secrets; /* one for each of config->bots, in the same order */
    char *api_token;             /* of listen.api_token_file; NULL: none */
    struct alert_secrets alerts;
};

/* Reads and checks the file alone: enough for commands that only talk to the daemon. Returns a config, or
 * NULL and e: EX_CONFIG, also for a file that is missing or cannot be read. */
struct config *configfile_read(const char *path, struct err *e);

/* Reads the file and all its secrets, and refuses two bots of one bot id, and one secret
 * for two callers that must be told apart. Returns NULL and e (EX_CONFIG) on
 * any fault. Warnings are in ->config->warnings. */
struct setup *setup_load(const char *path, struct err *e);
void setup_free(struct setup *s);
/* Writes the config's warnings to the log. */
void setup_log_warnings(const struct setup *s);

#endif
