/* The drill's own Bot API server, on loopback: it gives updates, takes calls, and has the faults that a check
 * wants. It is also where alerts come to, and where updates are POSTed to for deliver: http. It knows no token:
 * whatever stands in a path is taken. */
#ifndef DRILL_SERVER_H
#define DRILL_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "net/http_server.h"

struct loop;
struct server;

/* What becomes of the next getUpdates. */
enum poll_fault {
    POLL_GOOD,
    POLL_LIMITED, /* 429, to wait SERVER_POLL_WAIT_S */
    POLL_CUT,     /* the connection ends without an answer */
    POLL_BAD,     /* 502 with a page of HTML */
    POLL_HANGS,   /* no answer at all; the offset counts */
    POLL_LOST,    /* no answer; the offset does not count: it never came to Telegram */
};

#define SERVER_POLL_WAIT_S 2
#define SERVER_CALL_WAIT_S 1

struct server_update {
    int64_t id, chat;
    char *text;     /* the JSON */
    unsigned given; /* how often */
    bool confirmed; /* Telegram knows that it arrived */
    bool lost;      /* of a webhook: it was answered once, and Telegram did not get the answer */
};

struct server_call {
    int64_t at;
    char *method;
    int64_t chat; /* 0: none was named */
    bool limited; /* it got a 429 */
};

struct server_alert {
    char name[32];
    bool over;
    char *message;
};

/* All of it is for reading; what changes it are the functions below. */
struct server_state {
    struct server_update *updates;
    size_t n_updates;
    struct server_call *calls;
    size_t n_calls;
    struct server_alert *alerts;
    size_t n_alerts;
    unsigned polls;     /* getUpdates that came */
    int64_t polled_at;  /* the latest of them */
    int64_t offset;     /* the highest that counted */
    bool withheld;      /* nothing is given */
    bool waiting;       /* a getUpdates waits for updates */
    bool faulted;       /* the fault that was asked for has happened, ... */
    int64_t faulted_at; /* ... then */
    bool gave_up;       /* the client of POLL_HANGS closed its connection */
};

/* For deliver: http, at the path /handler. r is borrowed as in http_server.h. */
typedef void server_post_fn(void *arg, struct http_exchange *x, const struct http_server_request *r);

/* Listens on 127.0.0.1, on any free port. */
struct server *server_new(struct loop *l, server_post_fn *on_post, void *arg, struct err *e);
void server_free(struct server *s);
uint16_t server_port(const struct server *s);
const struct server_state *server_state(const struct server *s);

/* Forgets updates, calls and faults, and whoever waits: a check begins. Ids of updates go on. */
void server_reset(struct server *s);
/* Gives one message of that chat. Returns its update_id. */
int64_t server_give(struct server *s, int64_t chat);
/* Gives the same update again, with the same bytes, to whoever waits now. */
void server_give_again(struct server *s, int64_t update_id);
/* While on, no update is given. */
void server_withhold(struct server *s, bool on);
/* A webhook with this update was answered with 2xx; lost: Telegram did not get the answer. */
void server_taken(struct server *s, int64_t update_id, bool lost);
/* Where getWebhookInfo says that a webhook is; borrowed, NULL: nowhere. */
void server_set_hook(struct server *s, const char *url);
/* Of the next getUpdates; of POLL_LOST, of the next with an offset above `above`. */
void server_fault(struct server *s, enum poll_fault fault, int64_t above);
/* The next call that names a chat, and what follows within SERVER_CALL_WAIT_S to the same, gets a 429. */
void server_limit_calls(struct server *s);

#endif
