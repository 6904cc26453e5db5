/* Stages in their order, those that are not needed left out: the target's address (SOCKS5 without h only),
 * connection, proxy, TLS. Each ends in a function that starts the next one. */
#include "net/dial.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"
#include "net/connect.h"
#include "net/loop.h"
#include "net/proxy.h"
#include "net/stream.h"
#include "net/tls.h"

#define TARGETS_MAX 8 /* addresses of the target that a SOCKS5 proxy is asked for one after the other */

enum stage { STAGE_TARGET, STAGE_CONNECT, STAGE_PROXY, STAGE_TLS };

struct dial {
    struct loop *loop;
    struct dial_options o;
    enum stage stage;
    struct timer timeout;
    struct dns *dns;
    struct connector *connector;
    struct proxy_talk *talk;
    struct stream *stream;
    struct net_address targets[TARGETS_MAX];
    size_t n_targets, target;
    bool login_refused, dead;
    dial_fn *fn;
    void *arg;
};

static void start_connect(struct dial *d);

/* ---- the end ------------------------------------------------------------------------------------ */

/* Lets go of all that one try holds. */
static void clear(struct dial *d)
{
    dns_free(d->dns);
    d->dns = NULL;
    connect_free(d->connector);
    d->connector = NULL;
    proxy_talk_free(d->talk);
    d->talk = NULL;
    stream_close(d->stream);
    d->stream = NULL;
}

static void fail(struct dial *d, enum http_fail f, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void fail(struct dial *d, enum http_fail f, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    timer_stop(&d->timeout);
    clear(d);
    d->fn(d->arg, f, NULL, text);
}

static void succeed(struct dial *d)
{
    struct stream *s = d->stream;

    timer_stop(&d->timeout);
    d->stream = NULL;
    clear(d);
    d->fn(d->arg, HTTP_OK, s, NULL);
}

static void on_timeout(void *arg)
{
    struct dial *d = arg;
    char time[32], what[256] = "";

    text_from_ms(d->o.timeout_ms, time);
    switch (d->stage) {
    case STAGE_TARGET:
        fail(d, HTTP_RESOLVE, "the name %s could not be resolved within %s", d->o.host, time);
        break;
    case STAGE_CONNECT:
        if (connect_is_resolving(d->connector, what, sizeof what))
            fail(d, d->o.proxy ? HTTP_PROXY : HTTP_RESOLVE, "the name %s could not be resolved within %s: %s",
                 d->o.proxy ? proxy_host(d->o.proxy) : d->o.host, time, what);
        else
            fail(d, d->o.proxy ? HTTP_PROXY : HTTP_REFUSED, "no connection to %s within %s: %s",
                 d->o.proxy       ? proxy_shown(d->o.proxy)
                 : d->o.unix_path ? d->o.unix_path
                                  : d->o.host,
                 time, what);
        break;
    case STAGE_PROXY:
        fail(d, HTTP_PROXY, "the proxy %s gave no connection to %s within %s", proxy_shown(d->o.proxy),
             d->o.host, time);
        break;
    case STAGE_TLS:
        fail(d, HTTP_TLS, "%s did not finish the TLS handshake within %s", d->o.host, time);
        break;
    }
}

/* ---- TLS and proxy ------------------------------------------------------------------------------ */

static void start_tls(struct dial *d)
{
    if (!d->o.tls) {
        succeed(d);
        return;
    }
    d->stage = STAGE_TLS;
    tls_start_client(d->stream, d->o.tls, d->o.host, d->o.session);
}

static void start_proxy(struct dial *d)
{
    const struct net_address *address = proxy_resolves(d->o.proxy) ? NULL : &d->targets[d->target];
    struct buf out = BUF_EMPTY;

    d->stage = STAGE_PROXY;
    d->talk = proxy_talk_new(d->o.proxy, d->o.host, d->o.port, address, &out);
    stream_write(d->stream, buf_slice(&out));
    buf_free(&out);
}

static void proxy_failed(struct dial *d)
{
    char error[256];

    if (proxy_talk_unreached(d->talk) && d->target + 1 < d->n_targets) {
        d->target++;
        clear(d);
        start_connect(d);
        return;
    }
    d->login_refused = proxy_talk_login_refused(d->talk);
    snprintf(error, sizeof error, "%s", proxy_talk_error(d->talk)); /* fail() frees its owner */
    fail(d, HTTP_PROXY, "%s", error);
}

static void on_proxy_data(struct dial *d)
{
    struct buf out = BUF_EMPTY, *in = stream_in(d->stream);
    size_t used;

    enum proxy_progress progress = proxy_talk_feed(d->talk, buf_slice(in), &used, &out);
    buf_drop(in, used);
    stream_write(d->stream, buf_slice(&out));
    buf_free(&out);
    if (progress == PROXY_FAIL)
        proxy_failed(d);
    else if (progress == PROXY_DONE && in->n)
        fail(d, HTTP_PROXY, "the proxy %s sent something after its answer that nobody asked for",
             proxy_shown(d->o.proxy));
    else if (progress == PROXY_DONE)
        start_tls(d);
}

static void on_stream(void *arg, struct stream *s, enum stream_event ev)
{
    struct dial *d = arg;

    if (ev == STREAM_READY) {
        succeed(d);
    } else if (d->stage == STAGE_TLS) {
        if (ev == STREAM_FAILED)
            fail(d, HTTP_TLS, "%s", stream_error(s));
    } else if (ev == STREAM_DATA) {
        on_proxy_data(d);
    } else if (ev == STREAM_EOF || ev == STREAM_FAILED) {
        fail(d, HTTP_PROXY, "the proxy %s closed the connection%s%s", proxy_shown(d->o.proxy),
             *stream_error(s) ? ": " : "", stream_error(s));
    }
}

/* ---- connection and the target's address -------------------------------------------------------- */

static void on_connect(void *arg, enum connect_result r, int fd, const char *error)
{
    struct dial *d = arg;

    if (r != CONNECT_OK) {
        if (d->o.proxy)
            fail(d, HTTP_PROXY, "the proxy is out of reach: %s", error);
        else
            fail(d, r == CONNECT_NO_NAME ? HTTP_RESOLVE : HTTP_REFUSED, "%s", error);
        return;
    }
    d->stream = stream_new(d->loop, fd, on_stream, d);
    if (d->o.proxy)
        start_proxy(d);
    else
        start_tls(d);
}

static void start_connect(struct dial *d)
{
    const struct dial_options *o = &d->o;

    d->stage = STAGE_CONNECT;
    if (o->unix_path)
        d->connector = connect_unix(d->loop, o->unix_path, on_connect, d);
    else if (o->proxy)
        d->connector = connect_tcp(d->loop, proxy_host(o->proxy), proxy_port(o->proxy), o->ip, on_connect, d);
    else
        d->connector = connect_tcp(d->loop, o->host, o->port, o->ip, on_connect, d);
}

/* Through a proxy addresses cannot be raced, so the family that works nearly everywhere is preferred: IPv6 is
 * taken where there is no IPv4. */
static void on_target(void *arg, const struct dns_answer *a)
{
    struct dial *d = arg;

    if (a->n && (a->family == AF_INET || d->n_targets == 0)) {
        d->n_targets = 0;
        while (d->n_targets < a->n && d->n_targets < TARGETS_MAX) {
            d->targets[d->n_targets] = a->addresses[d->n_targets];
            d->n_targets++;
        }
    }
    if (d->n_targets && (a->last || a->family == AF_INET)) {
        dns_free(d->dns);
        d->dns = NULL;
        start_connect(d);
    } else if (a->last) {
        fail(d, HTTP_RESOLVE, "the name %s could not be resolved: %s", d->o.host,
             a->error ? a->error : "it has no address");
    }
}

/* ---- for owners --------------------------------------------------------------------------------- */

struct dial *dial_new(struct loop *l, const struct dial_options *o, dial_fn *fn, void *arg)
{
    struct dial *d = xcalloc(1, sizeof *d);

    d->loop = l;
    d->o = *o;
    d->fn = fn;
    d->arg = arg;
    timer_init(&d->timeout, l, on_timeout, d);
    timer_set(&d->timeout, loop_now(l) + o->timeout_ms);
    if (o->proxy && !proxy_resolves(o->proxy)) {
        d->stage = STAGE_TARGET;
        d->dns = dns_new(l, o->host, o->port, o->ip, on_target, d);
    } else {
        start_connect(d);
    }
    return d;
}

void dial_free(struct dial *d)
{
    if (!d || d->dead)
        return;
    d->dead = true;
    timer_stop(&d->timeout);
    clear(d);
    loop_free_later(d->loop, d, free);
}

bool dial_login_refused(const struct dial *d)
{
    return d->login_refused;
}

const char *dial_stage(const struct dial *d)
{
    static const char *const texts[] = {[STAGE_TARGET] = "while resolving the name",
                                        [STAGE_CONNECT] = "while connecting",
                                        [STAGE_PROXY] = "while the proxy was connecting",
                                        [STAGE_TLS] = "within the TLS handshake"};
    return texts[d->stage];
}
