/* What the files of the drill share. A check runs in straight lines: it waits, by turning the loop, for what it
 * wants to see. */
#ifndef DRILL_INSIDE_H
#define DRILL_INSIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "drill/drill.h"
#include "drill/record.h"
#include "drill/server.h"
#include "net/loop.h"

#define OWN_PROGRAM "/proc/self/exe" /* in a child, before exec, too */

/* Files of a check's directory. */
#define FILE_HOLD "hold" /* one of these words; not there: HOLD_NONE */
#define HOLD_END_WORD "end"
#define HOLD_FIRST_WORD "first"
#define FILE_CALLS "calls"    /* there: handlers make a call */
#define FILE_RECORD "record"  /* of record.h */
#define DIR_EFFECTS "effects" /* a file for each key that had its effect */

/* What handlers do beside their work. */
enum hold {
    HOLD_NONE,
    HOLD_END,   /* all is done, nobody is told until the hold is over */
    HOLD_FIRST, /* the first try of an update hangs for good, before anything is done */
};

struct child;
struct question;

struct drill {
    const struct drill_options *o;
    struct loop *loop;
    struct server *server;
    struct record record;
    char *top;   /* the scratch directory */
    char *token; /* of the scratch bot */
    char *hook_secret;
    char *root; /* the server's address */
    int signo;

    /* the check under way */
    int number;
    int64_t share_ms; /* of the time, for this check, ... */
    int64_t deadline; /* ... which is over then */
    struct buf seen;
    char *dir;
    enum hold hold;
    bool calls;
    bool probing;
    char **keys; /* that had their effect, of handlers within this process */
    size_t n_keys;
    uint16_t dropin_port, hook_port;
    char *hook_url;       /* of intake: webhook */
    struct child *daemon; /* NULL: none runs */
    bool ended;           /* it did, ... */
    int status;           /* ... with this of wait(2) */
    int log_fd;
    struct pull *pull;         /* the consumer of deliver: pull */
    struct dropin_bot *dropin; /* ... and of dropin */
    struct sender *sender;     /* of intake: webhook */
    struct question *question; /* that was put to the daemon */
    bool met;                  /* of drill_turn */
    bool (*until)(struct drill *d);
    int64_t ids[8]; /* updates that were given */
    size_t n_ids;
    size_t from; /* a place in the record that `until` begins at */
    size_t mark; /* a count that `until` compares with */
};

/* ---- drill.c ------------------------------------------------------------------------------------ */

/* Turns the loop until `until` says true. Returns whether it did; if not, the check's time is over, the daemon ended
 * by itself, or a signal came. */
bool drill_turn(struct drill *d, bool (*until)(struct drill *d));
/* The same, and says in d->seen what was waited for in vain. */
bool drill_wait(struct drill *d, bool (*until)(struct drill *d), const char *what);
/* Turns the loop for so long; returns false where the time of the check is over, or a signal came. */
bool drill_rest(struct drill *d, int64_t ms);
/* The same, and says so in d->seen. */
bool drill_sleep(struct drill *d, int64_t ms);
/* Puts a sentence into d->seen in place of what is there. Returns false. */
bool drill_fail(struct drill *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void drill_see(struct drill *d, const char *fmt, ...) __attribute__((format(printf, 2, 3))); /* adds to it */
/* A length of time as a check tells it: "2.0s". Returns out. */
char *drill_seconds(int64_t ms, char out[32]);
/* Gives n updates, in turn to n_chats chats, whose ids go to d->ids. */
void drill_give(struct drill *d, size_t n, int64_t n_chats);
/* Waits until every update of d->ids was handled; in vain as soon as one is dead. */
bool drill_wait_handled(struct drill *d, const char *what);
bool drill_all_confirmed(struct drill *d); /* for drill_wait: Telegram knows of all that it gave */
bool drill_any_confirmed(const struct drill *d);
bool drill_by_webhook(const struct drill *d); /* else by polling */
/* Whether the updates of each chat began in order, none before the one before it had ended; says so if not. */
bool drill_in_order(struct drill *d);

/* Appends the call that a built-in handler makes, as JSON with its method. */
void drill_add_call(struct buf *out, int64_t update_id, int64_t chat);

/* ---- scratch.c, scratch_daemon.c, scratch_ask.c -------------------------------------------------- */

/* A directory for the check under way, with a config: min_free as given. Returns whether it worked. */
bool scratch_make(struct drill *d, const char *name, int64_t min_free);
/* Starts a daemon there. */
bool scratch_start(struct drill *d);
/* The same, and waits until it asks for updates, or takes webhooks. */
bool scratch_start_ready(struct drill *d);
bool scratch_kill(struct drill *d);  /* SIGKILL, and waits for its end */
bool scratch_stop(struct drill *d);  /* SIGTERM, and waits for its end with status 0 */
void scratch_end(struct drill *d);   /* SIGKILL, and waits whatever the time; one must run */
bool scratch_ended(struct drill *d); /* for drill_wait: it ended by itself or otherwise */
void scratch_clear(struct drill *d); /* ends what runs, forgets the check's directory (it stays) */
bool scratch_hold(struct drill *d, enum hold hold);
bool scratch_calls(struct drill *d);
/* Asks the daemon on its socket; body NULL: a GET. The answer's body in out. */
bool scratch_ask(struct drill *d, const char *method, const char *path, const char *body, struct buf *out);
bool scratch_has_dead(struct drill *d); /* asks the daemon */
/* Adds to d->seen what the daemon knows of the first update that is not done. */
void scratch_explain(struct drill *d);
/* The last line of the daemon's log that is an error or a warning, else the last; to be freed. */
char *scratch_last_words(const struct drill *d);

/* ---- consumer.c, pull.c, dropin.c: handlers within this process --------------------------------- */

/* What a handler does with an update up to telling that it is done. Returns false if it is to be left unanswered. */
bool consumer_act(struct drill *d, int64_t update_id, int64_t attempt, struct slice key);
void consumer_forget(struct drill *d); /* the keys that had their effect */
server_post_fn consumer_post;          /* arg: the drill */
/* What this process is to the daemon beside a Bot API server: a consumer, the sender of webhooks; begins, if it does
 * not run yet, and ends. */
void consumer_start(struct drill *d);
void consumer_stop(struct drill *d);

struct pull *pull_new(struct drill *d);
void pull_free(struct pull *p);
struct dropin_bot *dropin_bot_new(struct drill *d);
void dropin_bot_free(struct dropin_bot *b);

/* ---- sender.c: Telegram, where the bot's intake is by webhook ------------------------------------ */

enum send_fault {
    SEND_GOOD,
    SEND_LOSES, /* the first good answer to each update does not reach Telegram, which sends it again */
    SEND_STOPS, /* the same, and it is not sent again for now */
};

struct sender *sender_new(struct drill *d);
void sender_free(struct sender *s);
void sender_fault(struct sender *s, enum send_fault fault);

/* ---- probe.c ------------------------------------------------------------------------------------ */

/* Runs the probe; its number goes to *out. */
bool probe_run(struct drill *d, int64_t *out);

/* ---- checks ------------------------------------------------------------------------------------- */

bool check_written(struct drill *d);
bool check_killed(struct drill *d);
bool check_telegram(struct drill *d);
bool check_lease(struct drill *d);
bool check_twice(struct drill *d);
bool check_alarm(struct drill *d);

#endif
