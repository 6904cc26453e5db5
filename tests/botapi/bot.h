/* A bot as the Bot API server knows it: its queue, its poll under way, its webhook, and the log of what was
 * asked. */
#ifndef BOTAPI_BOT_H
#define BOTAPI_BOT_H

#include <pthread.h>

#include "args.h"
#include "base/list.h"
#include "conn.h"
#include "fault.h"
#include "queue.h"
#include "sender.h"

/* One request, for the log. Times are milliseconds since the server's start. */
struct asked {
    int64_t at, ended_at; /* ended_at: when its answer was ready; -1: it waits */
    unsigned conn;
    char method[48]; /* as it was written */
    char *args;      /* owned: a JSON object */
    bool has_offset;
    int64_t offset, limit, timeout; /* as given, limit and timeout clamped */
    char *allowed_updates;          /* owned; NULL: absent */
    int status;                     /* of the answer; 0: none was sent */
    int n;                          /* updates in it */
    int32_t first, last;
    const char *fault;
};

/* A getUpdates that waits. In the stack of its thread; the bot's lock guards it. */
struct poll_wait {
    int wake_fd; /* an eventfd */
    enum poll_end { POLL_WAITS, POLL_CONFLICT, POLL_WEBHOOK, POLL_EOF, POLL_RESET } ended;
};

struct bot {
    char *token;
    int64_t id;
    pthread_mutex_t lock; /* guards all below */
    struct queue queue;
    struct poll_wait *waiter; /* NULL: none */
    struct list faults;
    struct buf webhook;    /* empty: none */
    struct sender *sender; /* NULL: no webhook */
    struct sender_settings sending;
    struct sent *sent; /* all that was */
    size_t n_sent;
    int64_t last_offset, last_poll_at;
    unsigned serial;      /* of the updates made up */
    struct asked **asked; /* all that was asked */
    size_t n_asked;
    unsigned conflicts;
};

/* Milliseconds since the server's start, and the same as the queues see it, which a test may put forward. */
int64_t server_ms(void);
int64_t queue_ms(void);
void queue_advance(int64_t ms);

struct bot *bot_new(const char *token, int32_t first_id);
struct bot *bot_by_token(struct slice token); /* NULL: unknown */
struct bot *bot_by_id(int64_t id);            /* 0: the first */
struct bot *bot_next(struct bot *b);          /* NULL starts and ends */

/* Wakes the poll that waits: there are updates, or it is to end. The lock is held. */
void bot_wake(struct bot *b, enum poll_end how);

/* Answers a Bot API request on the path behind "/bot". Returns as fault_reply. */
int bot_serve(struct conn *c, struct slice path, struct slice query);

#endif
