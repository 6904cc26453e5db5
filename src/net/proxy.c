/* The two kinds of conversation behind one pair of functions. Every text of the proxy's own is left out of
 * what is shown: only its status or reply code counts. */
#include "net/proxy.h"

#include <arpa/inet.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/mem.h"
#include "wire/http.h"
#include "wire/socks5.h"
#include "wire/url.h"

struct proxy {
    struct url url;
    char *shown;
};

struct proxy_talk {
    const struct proxy *proxy;
    char *host; /* of the target */
    struct net_address address;
    struct socks5 socks;
    bool unstarted; /* socks5_start said no: the first feed tells */
    struct http_parser *http;
    bool login_refused, unreached;
    char error[256];
};

/* ---- as configured ------------------------------------------------------------------------------ */

struct proxy *proxy_new(const char *text, struct err *e)
{
    struct url u;

    if (url_parse(text, &u, e) != 0) {
        err_prefix(e, "the proxy's URL");
        return NULL;
    }
    const char *wrong = NULL;
    if (u.scheme != URL_HTTP && u.scheme != URL_SOCKS5 && u.scheme != URL_SOCKS5H)
        wrong = "must begin with http://, socks5:// or socks5h://";
    else if (u.path[0] && strcmp(u.path, "/") != 0)
        wrong = "must end after the port";
    else if (u.scheme == URL_HTTP && u.user && strchr(u.user, ':'))
        wrong = "has a ':' in the user name, which HTTP proxies cannot take";
    else if ((u.user && strlen(u.user) > 255) || (u.password && strlen(u.password) > 255))
        wrong = "has a user name or password of more than 255 bytes";
    if (wrong) {
        err_set(e, EX_CONFIG, "the proxy's URL %s", wrong);
        url_free(&u);
        return NULL;
    }
    struct proxy *p = xcalloc(1, sizeof *p);
    p->url = u;
    p->shown = xasprintf(u.ipv6 ? "[%s]:%u" : "%s:%u", u.host, u.port);
    return p;
}

void proxy_free(struct proxy *p)
{
    if (!p)
        return;
    url_free(&p->url);
    free(p->shown);
    free(p);
}

const char *proxy_host(const struct proxy *p)
{
    return p->url.host;
}

uint16_t proxy_port(const struct proxy *p)
{
    return p->url.port;
}

const char *proxy_shown(const struct proxy *p)
{
    return p->shown;
}

bool proxy_resolves(const struct proxy *p)
{
    return p->url.scheme != URL_SOCKS5;
}

void proxy_add_basic(struct buf *out, const char *user, const char *password)
{
    char *plain = xasprintf("%s:%s", user ? user : "", password ? password : "");
    size_t n = strlen(plain);

    buf_add_str(out, "Basic ");
    base64_add(out, slice_make(plain, n));
    OPENSSL_cleanse(plain, n);
    free(plain);
}

/* ---- CONNECT ------------------------------------------------------------------------------------ */

static void connect_start(struct proxy_talk *t, uint16_t port, struct buf *out)
{
    const struct url *u = &t->proxy->url;
    struct buf value = BUF_EMPTY;

    t->http = http_parser_new(HTTP_PARSE_RESPONSES, 0);
    http_parser_next(t->http);
    http_parser_no_body(t->http); /* after a 2xx comes the tunnel, and no other body is wanted */
    buf_printf(&value, strchr(t->host, ':') ? "[%s]:%u" : "%s:%u", t->host, port);
    http_add_request_line(out, "CONNECT", buf_str(&value));
    http_add_field(out, "Host", buf_slice(&value));
    if (u->user) {
        buf_clear(&value);
        proxy_add_basic(&value, u->user, u->password);
        http_add_field(out, "Proxy-Authorization", buf_slice(&value));
    }
    buf_add_str(out, "\r\n");
    OPENSSL_cleanse(value.p, value.n);
    buf_free(&value);
}

static enum proxy_progress connect_feed(struct proxy_talk *t, struct slice in, size_t *used)
{
    const char *shown = t->proxy->shown;
    enum http_progress progress = http_parser_feed(t->http, in, used);
    int status = http_parser_message(t->http)->status;

    if (progress == HTTP_MORE)
        return PROXY_MORE;
    if (progress == HTTP_BAD) {
        snprintf(t->error, sizeof t->error, "the proxy %s does not answer as an HTTP proxy does: %s", shown,
                 http_parser_error(t->http, &status));
        return PROXY_FAIL;
    }
    if (status >= 200 && status < 300)
        return PROXY_DONE;
    t->login_refused = status == 407 || status == 401; /* tinyproxy: 401 for a wrong one */
    t->unreached = status >= 502 && status <= 504;
    if (t->login_refused)
        snprintf(t->error, sizeof t->error, "the proxy %s %s", shown,
                 t->proxy->url.user ? "refused the user name or password"
                                    : "wants a user name and a password");
    else
        snprintf(t->error, sizeof t->error, "the proxy %s would not connect to %s: %d %s", shown, t->host,
                 status, http_status_text(status));
    return PROXY_FAIL;
}

/* ---- SOCKS5 ------------------------------------------------------------------------------------- */

/* The address's bytes, of one that was looked up or is written as the host. */
static enum socks5_address socks_target(struct proxy_talk *t, struct slice *bytes)
{
    struct net_address *a = &t->address;

    if (a->length == 0 && inet_pton(AF_INET, t->host, &a->at.v4.sin_addr) == 1)
        a->at.v4.sin_family = AF_INET;
    else if (a->length == 0 && inet_pton(AF_INET6, t->host, &a->at.v6.sin6_addr) == 1)
        a->at.v6.sin6_family = AF_INET6;
    switch (a->at.any.sa_family) {
    case AF_INET:
        *bytes = slice_make(&a->at.v4.sin_addr, 4);
        return SOCKS5_IPV4;
    case AF_INET6:
        *bytes = slice_make(&a->at.v6.sin6_addr, 16);
        return SOCKS5_IPV6;
    default:
        *bytes = slice_str(t->host);
        return SOCKS5_NAME;
    }
}

static void socks_start(struct proxy_talk *t, uint16_t port, struct buf *out)
{
    const struct url *u = &t->proxy->url;
    struct slice target, password = slice_str(u->password);
    enum socks5_address type = socks_target(t, &target);

    t->unstarted = socks5_start(&t->socks, type, target, port, slice_str(u->user), password, out) != 0;
}

static enum proxy_progress socks_feed(struct proxy_talk *t, struct slice in, size_t *used, struct buf *out)
{
    struct socks5 *s = &t->socks;
    enum socks5_progress progress = t->unstarted ? SOCKS5_FAIL : socks5_feed(s, in, used, out);

    if (progress == SOCKS5_MORE)
        return PROXY_MORE;
    if (progress == SOCKS5_DONE)
        return PROXY_DONE;
    t->login_refused = s->login_refused;
    t->unreached = s->reply == 1 || (s->reply >= 3 && s->reply <= 6) || s->reply == 8;
    snprintf(t->error, sizeof t->error, "the proxy %s would not connect to %s: %s", t->proxy->shown, t->host,
             s->error);
    return PROXY_FAIL;
}

/* ---- either ------------------------------------------------------------------------------------- */

struct proxy_talk *proxy_talk_new(const struct proxy *p, const char *host, uint16_t port,
                                  const struct net_address *address, struct buf *out)
{
    struct proxy_talk *t = xcalloc(1, sizeof *t);

    t->proxy = p;
    t->host = xstrdup(host);
    if (address)
        t->address = *address;
    if (p->url.scheme == URL_HTTP)
        connect_start(t, port, out);
    else
        socks_start(t, port, out);
    return t;
}

void proxy_talk_free(struct proxy_talk *t)
{
    if (!t)
        return;
    http_parser_free(t->http);
    free(t->host);
    free(t);
}

enum proxy_progress proxy_talk_feed(struct proxy_talk *t, struct slice in, size_t *used, struct buf *out)
{
    *used = 0;
    return t->http ? connect_feed(t, in, used) : socks_feed(t, in, used, out);
}

const char *proxy_talk_error(const struct proxy_talk *t)
{
    return t->error;
}

bool proxy_talk_login_refused(const struct proxy_talk *t)
{
    return t->login_refused;
}

bool proxy_talk_unreached(const struct proxy_talk *t)
{
    return t->unreached;
}
