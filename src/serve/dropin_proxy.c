/* Calls passed on to the bot's own API root, body and answer in pieces, so that neither needs memory for its size. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "serve/dropin_bot.h"
#include "wire/http_hop.h"

#define CONNECTIONS_MAX 64
#define IDLE_MAX 8
#define KEEP_IDLE SECONDS(50)
#define CONNECT_TIMEOUT SECONDS(15)
/* A call's other end moves nothing for so long. A Bot API server may be long silent over a large file. */
#define IDLE_TIMEOUT MINUTES(5)
/* A client must take this much in this time while others wait for its connection. */
#define TAKE_BYTES 16384
#define TAKE_TIME SECONDS(1)
#define QUEUE_HIGH (256u << 10) /* bytes that wait for one end before the other is stopped */

struct upstream {
    unsigned refs;          /* the bot, and each relay */
    struct http_pool *pool; /* NULL: it cannot be made */
    bool crowded;           /* calls wait for a connection */
    char *api_root, *ca_file, *proxy_url;
    char ca_stamp[FILE_STAMP_MAX]; /* of ca_file, as it was */
    enum ip_mode ip;
};

struct relay {
    struct list link;
    struct upstream *up;
    struct http_exchange *x;
    struct http_call *call;
    bool client_paused, call_paused, begun;
    /* of a paused call: what its client had left to take, and when that was seen */
    size_t left_mark;
    int64_t marked_at;
};

/* ---- the server behind -------------------------------------------------------------------------- */

static char *copy(const char *s)
{
    return s ? xstrdup(s) : NULL;
}

struct upstream *upstream_get(struct loop *l, const struct dropin_bot_options *o, struct upstream *old)
{
    const struct bot_config *c = o->config;
    struct err e = ERR_NONE;
    char ca_stamp[FILE_STAMP_MAX];

    file_stamp(c->ca_file, ca_stamp);
    if (old && old->pool && text_same(old->api_root, c->api_root) && text_same(old->ca_file, c->ca_file) &&
        !strcmp(old->ca_stamp, ca_stamp) && text_same(old->proxy_url, o->proxy_url) && old->ip == c->ip)
        return old;
    const struct http_pool_options po = {.base_url = c->api_root,
                                         .ca_file = c->ca_file,
                                         .proxy_url = o->proxy_url,
                                         .ip = c->ip,
                                         .connect_timeout_ms = CONNECT_TIMEOUT,
                                         .max_connections = CONNECTIONS_MAX,
                                         .max_idle = IDLE_MAX,
                                         .keep_idle_ms = KEEP_IDLE};
    struct upstream *u = xcalloc(1, sizeof(*u));
    u->refs = 1;
    u->api_root = copy(c->api_root);
    u->ca_file = copy(c->ca_file);
    memcpy(u->ca_stamp, ca_stamp, sizeof(u->ca_stamp));
    u->proxy_url = copy(o->proxy_url);
    u->ip = c->ip;
    u->pool = http_pool_new(l, &po, &e);
    if (!u->pool)
        log_error(c->name, "calls of its program cannot be passed on: %s", e.text);
    if (old)
        upstream_release(old);
    return u;
}

void upstream_release(struct upstream *u)
{
    if (--u->refs)
        return;
    http_pool_free(u->pool);
    free(u->api_root);
    free(u->ca_file);
    free(u->proxy_url);
    free(u);
}

/* ---- a call's life ------------------------------------------------------------------------------ */

static void relay_free(struct relay *r)
{
    list_del(&r->link);
    upstream_release(r->up);
    free(r);
}

void relays_cut(struct list *relays)
{
    while (!list_empty(relays)) {
        struct relay *r = list_item(relays->next, struct relay, link);
        http_call_cancel(r->call);
        relay_free(r);
    }
}

/* ---- from the client to the server -------------------------------------------------------------- */

static void on_client_body(void *arg, struct slice piece)
{
    struct relay *r = arg;

    http_call_write(r->call, piece);
    if (!r->client_paused && http_call_queued(r->call) > QUEUE_HIGH) {
        r->client_paused = true;
        http_body_pause(r->x);
    }
}

static void on_client_end(void *arg)
{
    http_call_write_end(((struct relay *)arg)->call);
}

static void on_client_gone(void *arg)
{
    struct relay *r = arg;

    http_call_cancel(r->call);
    relay_free(r);
}

static void on_writable(void *arg)
{
    struct relay *r = arg;

    if (!r->client_paused)
        return;
    r->client_paused = false;
    http_body_resume(r->x);
}

/* ---- and back ----------------------------------------------------------------------------------- */

static void on_head(void *arg, const struct http_call_head *h)
{
    struct relay *r = arg;
    const struct http_answer_head head = {
        .status = h->status, .fields = h->fields, .n_fields = h->n_fields, .length = h->length};

    r->begun = true;
    http_begin(r->x, &head);
}

static void on_body(void *arg, struct slice piece)
{
    struct relay *r = arg;

    http_write(r->x, piece);
    if (!r->call_paused && http_queued(r->x) > QUEUE_HIGH) {
        r->call_paused = true;
        r->left_mark = SIZE_MAX;
        http_call_pause(r->call);
    }
}

static void on_drained(void *arg)
{
    struct relay *r = arg;

    if (!r->call_paused)
        return;
    r->call_paused = false;
    http_call_resume(r->call);
}

static void on_end(void *arg)
{
    struct relay *r = arg;

    http_end(r->x);
    relay_free(r);
}

static void on_fail(void *arg, enum http_fail fail, const char *error)
{
    struct relay *r = arg;
    struct buf text = BUF_EMPTY;

    if (r->begun) {
        http_abort(r->x);
    } else {
        buf_printf(&text, "Bad Gateway: tgspool cannot reach the Bot API server: %s", error);
        log_redact(&text);
        dropin_reply_error(r->x, fail == HTTP_TIMEOUT ? 504 : 502, buf_str(&text));
        buf_free(&text);
    }
    relay_free(r);
}

/* ---- when there are too many -------------------------------------------------------------------- */

static bool is_stuck(struct relay *r, int64_t now)
{
    size_t left = http_queued(r->x);

    if (!r->call_paused)
        return false;
    if (r->left_mark - left < TAKE_BYTES)
        return now - r->marked_at >= TAKE_TIME;
    r->left_mark = left;
    r->marked_at = now;
    return false;
}

int64_t relays_tick(struct list *relays, int64_t now)
{
    bool any = false;

    list_each(relays, it) {
        struct relay *r = list_item(it, struct relay, link);
        r->up->crowded = false;
    }
    list_each(relays, it) {
        struct relay *r = list_item(it, struct relay, link);
        any |= http_call_waits(r->call);
        r->up->crowded |= http_call_waits(r->call);
    }
    for (struct list *it = any ? relays->next : relays; it != relays;) {
        struct relay *r = list_item(it, struct relay, link);
        it = it->next;
        if (!r->up->crowded || !is_stuck(r, now))
            continue;
        http_abort(r->x);
        http_call_cancel(r->call);
        relay_free(r);
    }
    return any ? now + TAKE_TIME : TIME_NEVER;
}

/* ---- a call begins ------------------------------------------------------------------------------ */

void upstream_relay(struct upstream *u, struct list *relays, struct http_exchange *x,
                    const struct http_server_request *req, const char *path)
{
    static const struct http_stream_ops from_client = {
        .body = on_client_body, .body_end = on_client_end, .drained = on_drained, .gone = on_client_gone};
    static const struct http_call_ops from_server = {
        .writable = on_writable, .head = on_head, .body = on_body, .end = on_end, .fail = on_fail};
    struct http_field fields[HTTP_MAX_FIELDS];
    char method[16];

    if (!u->pool || req->method.n >= sizeof(method)) {
        dropin_reply_error(x, 502, "Bad Gateway: tgspool cannot pass this on; its log says why");
        return;
    }
    memcpy(method, req->method.p, req->method.n);
    method[req->method.n] = '\0';
    struct relay *r = xcalloc(1, sizeof(*r));
    r->up = u;
    u->refs++;
    r->x = x;
    list_add_tail(relays, &r->link);
    const struct http_call_request call = {.method = method,
                                           .path = path,
                                           .fields = fields,
                                           .n_fields = http_end_to_end(req->fields, req->n_fields, fields),
                                           .length = req->content_length,
                                           .secret_path = true,
                                           .idle_timeout_ms = IDLE_TIMEOUT};
    r->call = http_call_new(u->pool, &call, &from_server, r);
    http_body_stream(x, &from_client, r);
}
