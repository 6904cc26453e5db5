/* `tgspool drill`: six checks to make before a bot goes live, each with a daemon of its own in a scratch directory
 * and a Bot API server of the drill's own on loopback. The daemon is this program, run as a child by a config made
 * of the bot's: what it says of order, delivery, tries and syncs, with short leases and retries, and with nothing
 * that leads to the real spool, the real Telegram, or the owner's alerts. */
#ifndef DRILL_DRILL_H
#define DRILL_DRILL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "core/config.h"

#define DRILL_CHECKS 6
#define DRILL_RETRY "100ms, 200ms, 500ms"
#define DRILL_LEASE_MS 2000
#define DRILL_LIMIT_MS 60000
#define DRILL_LIMIT_LEASES 26 /* a limit of fewer leases leaves no time to see one run out */

struct drill_result {
    int number;       /* 1 .. DRILL_CHECKS */
    const char *what; /* a few words */
    bool pass;
    const char *seen; /* one line: what was seen; of a check that failed, what was missed */
};

struct drill_options {
    const struct config *config;
    const struct bot_config *bot; /* of config */
    bool run_handler; /* the bot's own command instead of the built-in handler; for exec and worker */
    char **probe;     /* argv of a command that counts the handler's effects; NULL: none */
    int64_t lease_ms, limit_ms;    /* limit: all six checks together */
    bool wanted[DRILL_CHECKS + 1]; /* by number */
    bool keep;                     /* the scratch directory */
    void (*before)(void *arg, const char *dir,
                   const char *api_root);                    /* when it stands, before the first check */
    void (*result)(void *arg, const struct drill_result *r); /* after each; r is borrowed */
    void *arg;
};

struct drill_summary {
    unsigned passed, failed;
    int signo; /* ended early by this signal; 0: no */
    char *dir; /* the scratch directory if it was kept, NULL: it was removed. To be freed */
};

/* Runs the checks, one after the other. Returns 0, whatever their results, or -1 and e if there could be none. Ends
 * what it started, also after SIGINT, SIGTERM or SIGHUP. */
int drill_run(const struct drill_options *o, struct drill_summary *out, struct err *e);

/* The other side: what the scratch config runs as the bot's command. kind: "exec" or "worker"; dir: the check's
 * directory; own: argv of the user's handler, NULL: the built-in one. Returns the exit code. */
int drill_handler(const char *kind, const char *dir, char **own);

#endif
