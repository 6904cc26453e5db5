/* A client for calls of the Bot API (https://core.telegram.org/bots/api): makes the request, and says in one
 * word and one sentence how it ended. It decides nothing: waiting and trying again are the caller's business.
 * One call at a time. */
#ifndef TELEGRAM_BOTAPI_H
#define TELEGRAM_BOTAPI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/config.h"
#include "core/update.h"
#include "net/http_client.h"

struct loop;
struct json;
struct botapi;

struct botapi_options {
    const char *api_root;  /* without a slash at its end, or with */
    const char *token;     /* goes into the path, nowhere else */
    const char *ca_file;   /* NULL: the system's */
    const char *proxy_url; /* NULL: direct */
    enum ip_mode ip;
};

/* All strings are copied. Returns NULL and e if an URL is wrong or the CA file cannot be read. */
struct botapi *botapi_new(struct loop *l, const struct botapi_options *o, struct err *e);
void botapi_free(struct botapi *a);
/* From the next call on. Returns whether it is another one than before. */
bool botapi_set_token(struct botapi *a, const char *token);

enum botapi_class {
    BOTAPI_OK,
    BOTAPI_TRANSIENT,    /* network, 5xx, HTML, cut short, not JSON: will pass */
    BOTAPI_LIMITED,      /* 429: retry_after_s */
    BOTAPI_UNAUTHORIZED, /* 401: the token is not valid any more */
    BOTAPI_NOT_FOUND,    /* 404: no such token or method */
    BOTAPI_CONFLICT,     /* 409: see conflict */
    BOTAPI_MIGRATED,     /* 400: the group has another chat id: migrate_to_chat_id */
    BOTAPI_REJECTED      /* any other 4xx */
};

enum botapi_conflict {
    CONFLICT_OTHER_POLL,  /* another getUpdates with this token */
    CONFLICT_WEBHOOK,     /* a webhook is set */
    CONFLICT_SET_WEBHOOK, /* a webhook was set meanwhile */
    CONFLICT_UNKNOWN
};

struct botapi_reply {
    enum botapi_class class;
    enum botapi_conflict conflict;
    enum http_fail fail;   /* HTTP_OK: an answer came, whatever it says */
    int status;            /* of HTTP, 0: none */
    bool garbled;          /* looks like a whole answer with updates, but cannot be read: see botapi.c */
    bool sent;             /* the whole request had been written */
    int64_t waited_ms;     /* from the request's end to the answer's start, or the failure */
    int64_t retry_after_s; /* -1: not given */
    int64_t migrate_to_chat_id;
    char sentence[400];           /* for people; "" if ok */
    const struct json *result;    /* of an ok call other than getUpdates; borrowed for the callback */
    struct update_answer updates; /* of an ok getUpdates; borrows from body */
    struct buf body;
};

/* Called once a call, unless it is cancelled or the client freed. To keep updates and body, copy the struct
 * and call botapi_reply_moved. */
typedef void botapi_fn(void *arg, struct botapi_reply *r);
void botapi_reply_moved(struct botapi_reply *r);
/* Gives back what the reply owns. */
void botapi_reply_free(struct botapi_reply *r);

struct botapi_poll {
    int64_t offset;               /* 0: none is sent. Never negative: that would delete updates */
    int limit;                    /* 1..100 */
    int timeout_s;                /* 0..50 */
    char *const *allowed_updates; /* always sent; with n_allowed 0: every kind that is known */
    size_t n_allowed;
    int64_t deadline_ms; /* for the whole call */
};

void botapi_get_updates(struct botapi *a, const struct botapi_poll *p, botapi_fn *fn, void *arg);
void botapi_get_me(struct botapi *a, int64_t deadline_ms, botapi_fn *fn, void *arg);
void botapi_get_webhook_info(struct botapi *a, int64_t deadline_ms, botapi_fn *fn, void *arg);

bool botapi_busy(const struct botapi *a);
/* Ends the call under way; its callback will not be called. */
void botapi_cancel(struct botapi *a);
/* The next call makes a new connection. */
void botapi_drop_connection(struct botapi *a);

#endif
