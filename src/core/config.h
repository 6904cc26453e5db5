/* The configuration as the daemon uses it: values checked, defaults filled in. Made by core/options from the
 * text of tgspool.yaml; secrets are not in it but in files that daemon/secrets reads. */
#ifndef CORE_CONFIG_H
#define CORE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/ip.h"
#include "base/log.h"
#include "core/backoff.h"
#include "core/lane.h"

enum sync_mode { SYNC_ALWAYS, SYNC_INTERVAL, SYNC_OFF };
enum intake_mode { INTAKE_POLL, INTAKE_WEBHOOK, INTAKE_NONE };
enum deliver_mode { DELIVER_EXEC, DELIVER_WORKER, DELIVER_HTTP, DELIVER_PULL, DELIVER_DROPIN };

enum expire_mode { EXPIRE_OFF, EXPIRE_AUTO, EXPIRE_KINDS };

#define RESERVE_AUTO (-1) /* the smaller of 64M and 5 % of the file system */
#define BOT_NAME_MAX 32
#define BOTS_MAX 256
#define EXPIRE_KINDS_MAX 32

/* A place in the config file, counted from 1; line 0: nowhere, so a default. */
struct config_mark {
    unsigned line, column;
};

struct expire_rule {
    char kind[64];
    int64_t ms;
};

struct bot_config {
    char name[BOT_NAME_MAX + 1];
    unsigned line, column;      /* of its section, for messages */
    struct config_mark *set_at; /* one for each row of the option table: where the file sets it */
    char *token_file, *token_credential, *token_env; /* exactly one is set */
    char *api_root;
    char *ca_file;    /* NULL: the system's */
    char *proxy_file; /* NULL: direct */
    enum ip_mode ip;
    enum intake_mode intake;
    char *webhook_url;         /* what Telegram is told; NULL: someone else tells it */
    char *webhook_secret_file; /* NULL: none, which goes on loopback only */
    char **allowed_updates; /* kinds, always spelled out, never empty unless INTAKE_NONE; NULL-terminated */
    size_t n_allowed_updates;
    int64_t poll_timeout_ms;
    enum order order;
    enum deliver_mode deliver;
    char **command; /* argv, NULL-terminated; exec and worker */
    char *url;      /* http */
    char *url_secret_file;
    char *dropin_token_file; /* NULL: the drop-in API knows the bot by its own token */
    char *pull_token_file;   /* NULL: its events are claimed on the socket or with the API token only */
    unsigned concurrency;
    int64_t lease_ms;
    struct retry_schedule retry;
    unsigned max_attempts;
    enum expire_mode expire;
    struct expire_rule expire_rules[EXPIRE_KINDS_MAX];
    size_t n_expire_rules;
    int64_t shutdown_wait_ms;
};

struct config {
    char *path; /* of the file, for messages */
    char *dir;
    enum sync_mode sync;
    int64_t sync_ms; /* for SYNC_INTERVAL */
    int64_t max_db, min_free; /* bytes; 0: no limit */
    int64_t reserve;          /* bytes; 0: none; or RESERVE_AUTO */
    int64_t retain_done_ms, retain_dead_ms; /* after the end */
    int64_t dedupe_ms;                      /* after the arrival */
    int64_t retain_audit_ms;
    char *archive_dir; /* NULL: none */
    int64_t cache_bytes;
    unsigned max_children; /* of exec and worker, all bots together */
    char *socket;
    unsigned socket_mode;
    char *socket_group; /* NULL: the process's */
    /* Listeners: text that ip_port_parse takes, with a port; NULL: none. */
    char *listen_http, *listen_webhook, *listen_dropin;
    char *api_token_file; /* set if listen_http is */
    char **http_hosts;    /* NULL-terminated; NULL: none */
    bool telegram_only;
    struct ip_nets trusted_proxy;
    char *tls_cert, *tls_key; /* both or neither; all three listeners speak TLS then */
    int64_t alert_oldest_ms;
    unsigned alert_dead;
    int64_t alert_repeat_ms;
    char **alert_command;   /* argv; NULL: none */
    char *alert_url_file;   /* NULL: none */
    char *alert_telegram;   /* as config_alert_bot reads it; NULL: none */
    char *alert_proxy_file; /* NULL: direct */
    enum log_level log_level;
    enum log_format log_format;
    struct bot_config *bots; /* in the file's order */
    size_t n_bots;
    struct config_mark *set_at; /* as in bot_config, for the rows of the other sections */
    char **warnings;            /* sentences, with place, about what is allowed but unwise */
    size_t n_warnings;
};

/* Parses and checks the text of a config file; touches no other file. `path` is for messages. Returns a
 * config to be freed, or NULL with EX_CONFIG and "PATH:LINE:COLUMN: what was wrong; what would be right". */
struct config *config_parse(const char *path, struct slice text, struct err *e);
void config_free(struct config *c);

/* Whether `new` may replace `old` in a running daemon; if not, -1 with the option's name and what to do. */
int config_check_reload(const struct config *old, const struct config *new, struct err *e);

const struct bot_config *config_bot(const struct config *c, const char *name);
/* The bot that alerts.telegram names, and its chat (borrowed, NULL is allowed); NULL: it is not set. */
const struct bot_config *config_alert_bot(const struct config *c, const char **chat);

#endif
