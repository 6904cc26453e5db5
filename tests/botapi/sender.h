/* The webhook sender: takes a bot's updates out of its queue and POSTs them, as the official server does: updates
 * of one lane one after the other, up to max_connections at once, failures again until the update dies. */
#ifndef BOTAPI_SENDER_H
#define BOTAPI_SENDER_H

#include <stdbool.h>
#include <stdint.h>

#include "args.h"

struct bot;
struct sender;

/* How a test bends it; kept over setWebhook. */
struct sender_settings {
    int64_t timeout_ms; /* for an answer: 60 s */
    int64_t retry_ms;   /* after the second failure in a row, then doubled: 2 s */
    int64_t cap_ms;     /* up to this, or by chance up to twice as much: 60 s */
    int64_t idle_ms;    /* a connection that is idle for longer is closed: 60 s */
    int64_t
        lose_every; /* each so many-th answer is not waited for: the connection is reset, and the update goes
                           out again; 0: none */
    int64_t lose_after_ms; /* how long it is waited for */
    bool verify;           /* check certificates, by the system's */
};
extern const struct sender_settings sender_defaults;

/* One try, for the log. Times are milliseconds since the server's start. */
struct sent {
    int64_t at, ended_at;
    int32_t id;
    char lane[48];
    unsigned conn;     /* a number for each connection */
    unsigned failures; /* of this update before */
    int status;        /* 0: no answer */
    char error[128];   /* "": it was taken */
};

/* All of these are called with the bot's lock held. */

/* Begins to send as the arguments of setWebhook say. Returns NULL and a sentence if they are wrong. */
struct sender *sender_new(struct bot *b, const struct args *a, const char **wrong);
/* Ends it; what is in flight may still arrive. NULL is harmless. */
void sender_end(struct sender *s);
/* There are new updates, or other settings. NULL is harmless. */
void sender_wake(struct sender *s);
/* Appends its members of getWebhookInfo, each with a comma in front. */
void sender_add_info(const struct sender *s, struct buf *out);
/* Appends members of the control interface's state, likewise. NULL is harmless. */
void sender_add_state(const struct sender *s, struct buf *out);

#endif
