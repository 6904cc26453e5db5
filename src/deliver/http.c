/* http: a POST as Telegram's webhook would send it, so that webhook bots work unchanged. One client, and so
 * one connection, a slot. The lease is the request's deadline. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/mem.h"
#include "deliver/slot.h"
#include "net/http_client.h"
#include "net/loop.h"
#include "spool/gather.h"
#include "wire/call.h"
#include "wire/url.h"

#define CONNECT_TIMEOUT_MS SECONDS(10)
#define BODY_MAX CALL_MAX_BYTES
#define BODY_IN_ERROR 300 /* bytes of a failure's text that are kept */

struct http {
    struct slot *slot;
    struct http_client *client;
    char *path;
};

/* What a status means: section 4's rows for http. */
static enum outcome_kind outcome_of_status(int status)
{
    if (status >= 200 && status <= 299)
        return OUTCOME_DONE;
    switch (status) {
    case 410:
        return OUTCOME_REJECTED;
    case 429:
        return OUTCOME_LIMITED;
    case 502:
    case 503:
    case 504:
        return OUTCOME_UNAVAILABLE;
    default:
        return OUTCOME_RETRY;
    }
}

/* Without a whole answer it counts whether the handler had the event. */
static enum outcome_kind outcome_of_failure(const struct http_answer *a)
{
    switch (a->fail) {
    case HTTP_RESOLVE:
    case HTTP_REFUSED:
    case HTTP_PROXY:
    case HTTP_TLS:
        return OUTCOME_UNAVAILABLE;
    case HTTP_TIMEOUT:
        return a->sent ? OUTCOME_LEASE_EXPIRED : OUTCOME_UNAVAILABLE;
    case HTTP_RESET:
        return a->sent ? OUTCOME_RETRY : OUTCOME_UNAVAILABLE;
    default:
        return OUTCOME_RETRY;
    }
}

/* The status, and the beginning of a short plain text or JSON that came with it (not of an HTML page). */
static void add_error(const struct http_answer *a, struct buf *out)
{
    if (a->fail != HTTP_OK) {
        buf_add_str(out, a->error);
        return;
    }
    buf_printf(out, "HTTP status %d", a->status);
    bool worth =
        !strncmp(a->content_type, "text/plain", 10) || !strncmp(a->content_type, "application/json", 16);
    if (worth && a->body.n) {
        buf_add_str(out, ": ");
        buf_add(out, a->body.p, a->body.n < BODY_IN_ERROR ? a->body.n : BODY_IN_ERROR);
    }
}

/* What any failure may name. */
static int64_t retry_after(const struct http_answer *a)
{
    if (a->fail != HTTP_OK || a->retry_after_s < 0)
        return -1;
    return a->retry_after_s < RETRY_AFTER_MAX_MS / 1000 ? SECONDS(a->retry_after_s) : RETRY_AFTER_MAX_MS;
}

/* Success; its body may be a call. */
static void end_done(struct http *h, const struct http_answer *a)
{
    struct gather g = GATHER_EMPTY;
    struct slice type = slice_str(a->content_type);

    if (!a->too_large)
        gather_body(&g, type, buf_slice(&a->body));
    else if (call_is_type(type))
        gather_refused(&g, type, slice_str(NULL), "the call in the answer is larger than 8 MiB");
    slot_end_done(h->slot, &g.extras);
    gather_free(&g);
}

static void on_answer(void *arg, struct http_answer *a)
{
    struct http *h = arg;
    bool whole = a->fail == HTTP_OK || a->too_large;
    enum outcome_kind kind = whole ? outcome_of_status(a->status) : outcome_of_failure(a);

    if (kind == OUTCOME_DONE) {
        end_done(h, a);
        return;
    }
    struct buf error = BUF_EMPTY;
    add_error(a, &error);
    slot_end(h->slot, kind, retry_after(a), buf_slice(&error));
    buf_free(&error);
}

static void start_http(void *work)
{
    struct http *h = work;
    const struct claim *claim = slot_claim(h->slot);
    const char *secret = slot_config(h->slot)->secret;
    struct envelope envelope;
    char values[ENVELOPE_FIELDS][ENVELOPE_VALUE_MAX];
    struct http_header headers[ENVELOPE_FIELDS + 2];
    size_t n = 0;

    headers[n++] = (struct http_header){slice_str("Content-Type"), slice_str("application/json")};
    if (secret)
        headers[n++] = (struct http_header){slice_str("X-Telegram-Bot-Api-Secret-Token"), slice_str(secret)};
    slot_envelope(h->slot, &envelope);
    for (int f = 0; f < ENVELOPE_FIELDS; f++)
        if (envelope.has[f] && envelope_names[f].header)
            headers[n++] = (struct http_header){slice_str(envelope_names[f].header),
                                                slice_str(envelope_header_value(&envelope, f, values[f]))};
    int64_t left = claim->deadline - loop_now(slot_loop(h->slot));
    struct http_request r = {.method = "POST",
                             .path = h->path,
                             .headers = headers,
                             .n_headers = n,
                             .body = claim->ev.payload,
                             .secret_path = true, /* webhook paths often hold the bot's token */
                             .deadline_ms = left > 0 ? left : 1};
    (void)FAILPOINT("http.before_request");
    http_client_request(h->client, &r, on_answer, h);
    (void)FAILPOINT("http.after_request");
}

static void cancel_http(void *work, enum outcome_kind as)
{
    struct http *h = work;

    http_client_cancel(h->client);
    slot_end(h->slot, as, -1, slice_str("the request was ended"));
}

static void stop_http(void *work)
{
    struct http *h = work;

    http_client_drop_connection(h->client);
}

static bool quiet_http(void *work)
{
    const struct http *h = work;

    return !http_client_busy(h->client);
}

static void free_http(void *work)
{
    struct http *h = work;

    if (h->client)
        http_client_free(h->client);
    free(h->path);
    free(h);
}

/* The URL up to its path, to be freed; *path gets the path, which is "/" if there is none. NULL and e if it
 * is none. */
static char *split_url(const char *text, char **path, struct err *e)
{
    struct url u;

    if (url_parse(text, &u, e))
        return NULL;
    size_t n = strlen(text), n_path = strlen(u.path);
    if (n_path <= n && !strcmp(text + n - n_path, u.path))
        n -= n_path;
    *path = u.path[0] == '/' ? xstrdup(u.path) : xasprintf("/%s", u.path);
    url_free(&u);
    return xstrndup(text, n);
}

static void *new_http(struct slot *s, struct err *e)
{
    struct http *h = xcalloc(1, sizeof(*h));
    char *base = split_url(slot_config(s)->url, &h->path, e);

    h->slot = s;
    if (base) {
        struct http_client_options o = {.base_url = base,
                                        .also_ca_file = slot_config(s)->ca_file,
                                        .ip = IP_ANY,
                                        .connect_timeout_ms = CONNECT_TIMEOUT_MS,
                                        .max_body = BODY_MAX};
        h->client = http_client_new(slot_loop(s), &o, e);
    }
    free(base);
    if (h->client)
        return h;
    free_http(h);
    return NULL;
}

const struct deliverer deliverer_http = {"http",      false,     new_http,   start_http,
                                         cancel_http, stop_http, quiet_http, free_http};
