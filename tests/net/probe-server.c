/* A server by net/http_server that answers some paths itself and streams all else to another server by
 * net/http_pool: what the tests of both look at.
 *
 *     probe-server [OPTION VALUE]...
 *
 * Options: listen HOST:PORT, cert FILE, key FILE, upstream URL, max-connections N, pool N, header MS, body MS,
 * idle MS (time-outs), stall MS (of the upstream), log 1.
 *
 * Prints "port N". SIGHUP reads the certificate again and prints "reloaded" or the error. Paths:
 *     /local/echo    the body, up to 100,000 bytes, and then the path again once it was read as a whole
 *     /local/peer    address, "tls" or "plain"
 *     /local/refuse  401 without reading the body
 *     /local/hold    is never answered */
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "net/http_pool.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "net/tls.h"
#include "wire/http_hop.h"

#define QUEUE_MAX (64 * 1024)

struct probe {
    struct loop *loop;
    struct http_server *server;
    struct http_pool *pool;
    struct tls_server *tls;
    struct http_server_options options;
    struct http_pool_options pool_options;
    const char *cert, *key;
    int64_t stall_ms;
};

/* ---- a request that is passed on ---------------------------------------------------------------- */

struct relay {
    struct http_exchange *x;
    struct http_call *call;
    bool begun;
};

static void on_body(void *arg, struct slice piece)
{
    struct relay *r = arg;

    http_call_write(r->call, piece);
    if (http_call_queued(r->call) > QUEUE_MAX)
        http_body_pause(r->x);
}

static void on_body_end(void *arg)
{
    struct relay *r = arg;

    http_call_write_end(r->call);
}

static void on_drained(void *arg)
{
    struct relay *r = arg;

    http_call_resume(r->call);
}

static void on_gone(void *arg)
{
    struct relay *r = arg;

    http_call_cancel(r->call);
    free(r);
}

static const struct http_stream_ops stream_ops = {on_body, on_body_end, on_drained, on_gone};

static void on_writable(void *arg)
{
    struct relay *r = arg;

    http_body_resume(r->x);
}

static void on_answer_head(void *arg, const struct http_call_head *h)
{
    struct relay *r = arg;
    const struct http_answer_head head = {h->status, h->fields, h->n_fields, h->length};

    r->begun = true;
    http_begin(r->x, &head);
}

static void on_answer_body(void *arg, struct slice piece)
{
    struct relay *r = arg;

    http_write(r->x, piece);
    if (http_queued(r->x) > QUEUE_MAX)
        http_call_pause(r->call);
}

static void on_answer_end(void *arg)
{
    struct relay *r = arg;

    http_end(r->x);
    free(r);
}

static void on_fail(void *arg, enum http_fail fail, const char *error)
{
    struct relay *r = arg;

    if (r->begun)
        http_abort(r->x);
    else
        http_reply_error(r->x, fail == HTTP_TIMEOUT ? 504 : 502, "upstream", error);
    free(r);
}

static const struct http_call_ops call_ops = {on_writable, on_answer_head, on_answer_body, on_answer_end,
                                              on_fail};

static void pass_on(struct probe *p, struct http_exchange *x, const struct http_server_request *r)
{
    struct relay *relay = xcalloc(1, sizeof *relay);
    struct http_field fields[HTTP_MAX_FIELDS];
    char *path = xasprintf("%.*s%s%.*s", (int)r->path.n, r->path.p, r->query.n ? "?" : "", (int)r->query.n,
                           r->query.n ? r->query.p : "");
    char *method = xstrndup(r->method.p, r->method.n);
    const struct http_call_request request = {.method = method,
                                              .path = path,
                                              .fields = fields,
                                              .n_fields = http_end_to_end(r->fields, r->n_fields, fields),
                                              .length = r->content_length,
                                              .idle_timeout_ms = p->stall_ms};

    relay->x = x;
    relay->call = http_call_new(p->pool, &request, &call_ops, relay);
    http_body_stream(x, &stream_ops, relay);
    http_body_pause(x);
    if (r->content_length == 0)
        http_body_resume(x);
    free(path);
    free(method);
}

/* ---- what is answered here ---------------------------------------------------------------------- */

static void never(void *arg)
{
    (void)arg;
}

static void on_head(void *arg, struct http_exchange *x, const struct http_server_request *r)
{
    struct probe *p = arg;

    if (slice_eq_str(r->path, "/local/refuse"))
        http_reply_error(x, 401, "unauthorized", "no");
    else if (slice_eq_str(r->path, "/local/hold"))
        http_on_gone(x, never, NULL);
    else if (r->path.n > 7 && memcmp(r->path.p, "/local/", 7) == 0)
        http_body_whole(x, 100000);
    else if (p->pool)
        pass_on(p, x, r);
    else
        http_reply_error(x, 404, "not_found", "there is no upstream");
}

static void on_request(void *arg, struct http_exchange *x, const struct http_server_request *r)
{
    char peer[128];

    (void)arg;
    if (slice_eq_str(r->path, "/local/echo")) {
        http_reply(x, 200, "text/plain", -1, r->body);
    } else {
        snprintf(peer, sizeof peer, "%s %s", r->peer_text, r->tls ? "tls" : "plain");
        http_reply(x, 200, "text/plain", -1, slice_str(peer));
    }
}

/* ---- the program -------------------------------------------------------------------------------- */

static void on_signal(void *arg, int signo)
{
    struct probe *p = arg;
    struct err e = ERR_NONE;

    if (signo != SIGHUP) {
        loop_stop(p->loop);
        return;
    }
    puts(tls_server_reload(p->tls, &e) == 0 ? "reloaded" : e.text);
    fflush(stdout);
}

static bool take_option(struct probe *p, const char *name, const char *value)
{
    long long n = atoll(value);

    if (!strcmp(name, "listen"))
        p->options.address = value;
    else if (!strcmp(name, "cert"))
        p->cert = value;
    else if (!strcmp(name, "key"))
        p->key = value;
    else if (!strcmp(name, "upstream"))
        p->pool_options.base_url = value;
    else if (!strcmp(name, "ca"))
        p->pool_options.ca_file = value;
    else if (!strcmp(name, "max-connections"))
        p->options.max_connections = (unsigned)n;
    else if (!strcmp(name, "pool"))
        p->pool_options.max_connections = (unsigned)n;
    else if (!strcmp(name, "header"))
        p->options.header_timeout_ms = n;
    else if (!strcmp(name, "body"))
        p->options.body_timeout_ms = n;
    else if (!strcmp(name, "idle"))
        p->options.idle_timeout_ms = n;
    else if (!strcmp(name, "keep-idle"))
        p->pool_options.keep_idle_ms = n;
    else if (!strcmp(name, "stall"))
        p->stall_ms = n;
    else if (!strcmp(name, "log"))
        log_setup(LOG_DEBUG, LOG_TEXT, false);
    else
        return false;
    return true;
}

static int start(struct probe *p, struct err *e)
{
    if (p->cert) {
        p->tls = tls_server_new(p->cert, p->key, e);
        if (!p->tls)
            return -1;
        p->options.tls = p->tls;
    }
    if (p->pool_options.base_url) {
        p->pool = http_pool_new(p->loop, &p->pool_options, e);
        if (!p->pool)
            return -1;
    }
    p->server = http_server_new(p->loop, &p->options, on_request, p, e);
    return p->server ? 0 : -1;
}

int main(int argc, char **argv)
{
    struct probe p = {.options = {.address = "127.0.0.1:0",
                                  .on_head = on_head,
                                  .max_body = 100000,
                                  .max_connections = 256,
                                  .header_timeout_ms = SECONDS(10),
                                  .body_timeout_ms = SECONDS(20),
                                  .idle_timeout_ms = SECONDS(75)},
                      .pool_options = {.connect_timeout_ms = SECONDS(5),
                                       .max_connections = 16,
                                       .max_idle = 4,
                                       .keep_idle_ms = SECONDS(30)},
                      .stall_ms = SECONDS(20)};
    struct err e = ERR_NONE;
    int i = 1;

    mallopt(M_ARENA_MAX, 1);
    signal(SIGPIPE, SIG_DFL); /* it must never come */
    while (i + 1 < argc && take_option(&p, argv[i], argv[i + 1]))
        i += 2;
    if (i < argc) {
        fputs("usage: probe-server [OPTION VALUE]...\n", stderr);
        return EX_USAGE;
    }
    p.loop = loop_new();
    loop_on_signal(p.loop, SIGHUP, on_signal, &p);
    loop_on_signal(p.loop, SIGTERM, on_signal, &p);
    int r = start(&p, &e);
    if (r == 0) {
        printf("port %u\n", (unsigned)http_server_port(p.server));
        fflush(stdout);
        loop_run(p.loop, NULL, NULL);
    } else {
        puts(e.text);
    }
    http_server_free(p.server);
    http_pool_free(p.pool);
    tls_server_free(p.tls);
    loop_free(p.loop);
    return r == 0 ? 0 : e.exit_code;
}
