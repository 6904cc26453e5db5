/* How a command asks: over the control socket of a running daemon, or, when none runs, by opening the spool
 * itself and calling the same api. */
#ifndef CLI_REQUEST_H
#define CLI_REQUEST_H

#include "base/buf.h"
#include "base/err.h"
#include "cli/command.h"
#include "wire/json.h"

struct request; /* a way to ask, for any number of questions */

enum request_need {
    NEED_READ,   /* an existing spool, by the daemon or in-process; it is only looked at */
    NEED_SPOOL,  /* the same, to change something */
    NEED_MAKE,   /* the same; one is made if there is none */
    NEED_DAEMON, /* only the daemon can answer */
};

/* Returns NULL and e if neither works: EX_UNAVAILABLE with the command to run, EX_NOPERM, EX_TEMPFAIL, ... */
struct request *request_open(const struct cli *cli, enum request_need need, struct err *e);
/* Asks a directory that stands still (cli/still.h, a backup) in-process; it is only looked at. */
struct request *request_look(const char *dir, struct err *e);
void request_close(struct request *q); /* harmless with NULL */
bool request_in_process(const struct request *q);

struct answer {
    int status;
    struct buf body;
    struct json *root; /* of body, NULL if it is none */
};

/* Asks and waits. path with its query. Returns 0 and an answer of status 2xx, to be cleared; or -1 and e:
 * what the api said, or why there was no answer. */
int request_send(struct request *q, const char *method, const char *path, struct slice body, struct answer *a,
                 struct err *e);
void answer_clear(struct answer *a);

/* How long a request may stay unanswered: 30 seconds, beside what it asks to wait itself (wait=SECONDS in its query)
 * and what an import's chunk may take. */
int64_t request_patience_ms(const char *path);

/* The exit code for a status of the api that is not 2xx. */
int request_exit_code(int status);

/* A path with a query, piece by piece: values are percent-encoded. */
void query_add(struct buf *path, const char *name, const char *value);
/* Those of the command's filter options that were given. */
void query_add_filters(const struct cli *cli, struct buf *path);
/* The same as members of an open JSON object; returns whether there was any. */
bool json_add_filters(const struct cli *cli, struct json_out *j);

#define FILTER_OPTIONS                                                               \
    {"bot", "BOT", "of this bot"}, {"box", "in|out", "updates (in) or calls (out)"}, \
        {"state", "STATES", "pending, processing, done, dead; several with commas"}, \
        {"chat", "ID", "of this chat"}, {"user", "ID", "of this user"},              \
        {"kind", "KIND", "of this kind: message, callback_query, ..."},              \
        {"since", "TIME", "received since: 2h (ago), 2026-11-29, Unix seconds"},     \
        {"until", "TIME", "received until"},                                         \
    {                                                                                \
        "error", "TEXT", "whose error (not: reason) holds this text"                 \
    }

#endif
