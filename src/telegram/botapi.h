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
    bool telegrams;               /* an answer of the Bot API's own shape came */
    char description[256];        /* what the Bot API said of its error; "" if nothing */
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
    bool default_updates; /* instead of these: what Telegram sends unless it is told otherwise */
    int64_t deadline_ms;  /* for the whole call */
};

void botapi_get_updates(struct botapi *a, const struct botapi_poll *p, botapi_fn *fn, void *arg);
void botapi_get_me(struct botapi *a, int64_t deadline_ms, botapi_fn *fn, void *arg);
void botapi_get_webhook_info(struct botapi *a, int64_t deadline_ms, botapi_fn *fn, void *arg);

/* Any other call, its arguments as they stand. The reply has no updates. */
void botapi_call(struct botapi *a, const char *method, const char *content_type, struct slice body,
                 int64_t deadline_ms, botapi_fn *fn, void *arg);

struct botapi_webhook {
    const char *url;
    const char *secret;           /* sent with every update; NULL: none */
    unsigned max_connections;     /* 1..100; 0: Telegram's default */
    char *const *allowed_updates; /* as of botapi_poll */
    size_t n_allowed;
    int64_t deadline_ms;
};

/* Neither ever drops pending updates. */
void botapi_set_webhook(struct botapi *a, const struct botapi_webhook *w, botapi_fn *fn, void *arg);
void botapi_delete_webhook(struct botapi *a, int64_t deadline_ms, botapi_fn *fn, void *arg);
/* Before a bot moves: from the cloud to a server of one's own, and between two of these. */
void botapi_log_out(struct botapi *a, int64_t deadline_ms, botapi_fn *fn, void *arg);
void botapi_close(struct botapi *a, int64_t deadline_ms, botapi_fn *fn, void *arg);

/* The result of getWebhookInfo (https://core.telegram.org/bots/api#webhookinfo). Texts are cleaned. */
struct webhook_info {
    char *url; /* owned; "": no webhook is set. May hold secrets: not for logs */
    bool has_custom_certificate;
    int64_t pending;       /* updates that wait at Telegram */
    char ip_address[64];   /* "": not given */
    int64_t last_error_at; /* Unix seconds; 0: none */
    char last_error[256];  /* of the latest delivery that failed */
    int64_t last_sync_error_at;
    int64_t max_connections; /* 0: not given */
    char **allowed_updates;  /* owned; NULL: Telegram's default list */
    size_t n_allowed;
};
/* Returns 0, or -1 if result is none; webhook_info_free in both cases. */
int webhook_info_read(const struct json *result, struct webhook_info *out);
void webhook_info_free(struct webhook_info *i);

bool botapi_busy(const struct botapi *a);
/* Ends the call under way; its callback will not be called. */
void botapi_cancel(struct botapi *a);
/* The next call makes a new connection. */
void botapi_drop_connection(struct botapi *a);

#endif
