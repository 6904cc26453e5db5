/* URLs: a reader for the few forms our configuration knows, stricter than RFC 3986, and percent-encoding. */
#include "wire/url.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"

static const struct {
    const char *name;
    uint16_t port;
} schemes[] = {
    [URL_HTTP] = {"http", 80},         [URL_HTTPS] = {"https", 443}, [URL_SOCKS5] = {"socks5", 1080},
    [URL_SOCKS5H] = {"socks5h", 1080}, [URL_UNIX] = {"unix", 0},
};

const char *url_scheme_name(enum url_scheme s)
{
    return schemes[s].name;
}

/* ---- percent-encoding --------------------------------------------------------------------------- */

static bool is_unreserved(char c)
{
    return isalnum((unsigned char)c) || c == '-' || c == '.' || c == '_' || c == '~';
}

int percent_decode(struct buf *out, struct slice s, bool plus)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == '%') {
            if (s.n - i < 3 || hex_decode(slice_make(s.p + i + 1, 2), &c, 1) < 0)
                return -1;
            i += 2;
        } else if (plus && c == '+') {
            c = ' ';
        }
        if (c == '\0')
            return -1;
        buf_add_char(out, c);
    }
    return 0;
}

void percent_encode(struct buf *out, struct slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if (is_unreserved(s.p[i]))
            buf_add_char(out, s.p[i]);
        else
            buf_printf(out, "%%%02X", (unsigned char)s.p[i]);
}

/* Cuts s at the first c: what is in front is returned, s keeps what is behind. Without c: all of it, and s
 * has a NULL pointer. */
static struct slice cut(struct slice *s, char c)
{
    const char *at = s->n ? memchr(s->p, c, s->n) : NULL;
    struct slice front = slice_make(s->p, at ? (size_t)(at - s->p) : s->n);

    *s = at ? slice_make(at + 1, s->n - front.n - 1) : slice_make(NULL, 0);
    return front;
}

int query_next(struct slice *rest, struct buf *name, struct buf *value)
{
    struct slice pair;

    buf_clear(name);
    buf_clear(value);
    do {
        if (rest->n == 0)
            return 0;
        pair = cut(rest, '&');
    } while (pair.n == 0);
    struct slice front = cut(&pair, '=');
    return percent_decode(name, front, true) < 0 || percent_decode(value, pair, true) < 0 ? -1 : 1;
}

int query_get(struct slice query, const char *name, struct buf *value)
{
    struct buf got = BUF_EMPTY;
    int r;

    do
        r = query_next(&query, &got, value);
    while (r == 1 && !slice_eq_str(buf_slice(&got), name));
    buf_free(&got);
    if (r != 1)
        buf_clear(value);
    return r;
}

/* ---- URLs --------------------------------------------------------------------------------------- */

static int bad(struct err *e, const char *why)
{
    return err_set(e, EX_CONFIG, "%s", why);
}

static int parse_port(struct slice s, uint16_t *port)
{
    int64_t n;

    if (s.n > 5 || text_to_i64(s, 1, 65535, &n) < 0 || s.p[0] == '-')
        return -1;
    *port = (uint16_t)n;
    return 0;
}

static bool is_host_name(struct slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!isalnum((unsigned char)s.p[i]) && s.p[i] != '-' && s.p[i] != '.' && s.p[i] != '_')
            return false;
    return s.n > 0 && s.n <= 253 && s.p[0] != '.' && s.p[0] != '-';
}

/* Digits, colons, dots of an embedded IPv4 address; whether it is an address is for the resolver to say. */
static bool is_ipv6(struct slice s)
{
    size_t colons = 0;

    for (size_t i = 0; i < s.n; i++) {
        if (!isxdigit((unsigned char)s.p[i]) && s.p[i] != ':' && s.p[i] != '.')
            return false;
        colons += s.p[i] == ':';
    }
    return s.n <= 45 && colons >= 2;
}

/* Splits "host", "host:port", "[v6]:port"; a missing port leaves *port as it was. */
static int split_authority(struct slice s, struct slice *host, bool *ipv6, uint16_t *port)
{
    *ipv6 = s.n > 0 && s.p[0] == '[';
    if (*ipv6) {
        s = slice_make(s.p + 1, s.n - 1);
        *host = cut(&s, ']');
        if (!s.p || !is_ipv6(*host))
            return -1;
        if (s.n == 0)
            return 0;
        if (*s.p != ':')
            return -1;
        s = slice_make(s.p + 1, s.n - 1);
    } else {
        *host = cut(&s, ':');
        if (!is_host_name(*host))
            return -1;
        if (!s.p)
            return 0;
    }
    return parse_port(s, port);
}

static char *decode_or_null(struct slice s)
{
    struct buf b = BUF_EMPTY;

    if (percent_decode(&b, s, false) < 0) {
        buf_free(&b);
        return NULL;
    }
    return buf_steal(&b);
}

/* "user", "user:password" in front of the '@'. */
static int parse_userinfo(struct slice s, struct url *u)
{
    struct slice user = cut(&s, ':');

    u->user = decode_or_null(user);
    u->password = s.p ? decode_or_null(s) : NULL;
    return !u->user || (s.p && !u->password) ? -1 : 0;
}

static int parse_unix(const char *path, struct url *u, struct err *e)
{
    /* Both unix:/PATH and unix:///PATH are seen in the wild. */
    if (path[0] == '/' && path[1] == '/')
        path += 2;
    if (path[0] != '/')
        return bad(e, "a unix address needs an absolute path, as in unix:/run/tgspool/tgspool.sock");
    u->path = xstrdup(path); /* a file's name: whatever stands in it */
    return 0;
}

static int parse_network(const char *text, struct url *u, struct err *e)
{
    if (text[0] != '/' || text[1] != '/')
        return bad(e, "the URL lacks \"//\" behind its scheme");
    struct slice authority = slice_make(text + 2, strcspn(text + 2, "/?#"));
    const char *path = authority.p + authority.n;
    const char *at = memrchr(authority.p, '@', authority.n);
    struct slice host;

    for (const char *c = text; *c; c++)
        if ((unsigned char)*c <= 0x20 || (unsigned char)*c >= 0x7F)
            return bad(e, "the URL has a blank or a character that must be percent-encoded");
    if (at) {
        if (parse_userinfo(slice_make(authority.p, (size_t)(at - authority.p)), u) < 0)
            return bad(e, "user or password of the URL are not well percent-encoded");
        authority = slice_make(at + 1, (size_t)(path - at - 1));
    }
    u->port = schemes[u->scheme].port;
    if (split_authority(authority, &host, &u->ipv6, &u->port) < 0)
        return bad(e, "the URL has no well-formed HOST, HOST:PORT or [IPv6]:PORT");
    if (strchr(path, '#'))
        return bad(e, "the URL has a fragment ('#')");
    if (*path == '?')
        return bad(e, "the URL lacks a path in front of its '?'");
    if (u->scheme >= URL_SOCKS5 && path[0] && strcmp(path, "/") != 0)
        return bad(e, "a SOCKS proxy's URL has no path");
    u->host = xstrndup(host.p, host.n);
    for (char *c = u->host; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    u->path = xstrdup(path);
    return 0;
}

int url_parse(const char *text, struct url *u, struct err *e)
{
    size_t n = strcspn(text, ":"), i = 0;

    *u = (struct url){0};
    while (i < ARRAY_LEN(schemes) && !slice_eq_nocase(slice_make(text, n), schemes[i].name))
        i++;
    if (i == ARRAY_LEN(schemes) || text[n] != ':')
        return bad(e, "the URL does not begin with http://, https://, socks5://, socks5h:// or unix:");
    u->scheme = (enum url_scheme)i;
    text += n + 1;
    int r = u->scheme == URL_UNIX ? parse_unix(text, u, e) : parse_network(text, u, e);
    if (r < 0)
        url_free(u);
    return r;
}

/* Passwords are wiped before the memory goes back. */
static void wipe(char *s)
{
    if (s)
        explicit_bzero(s, strlen(s));
    free(s);
}

void url_free(struct url *u)
{
    wipe(u->user);
    wipe(u->password);
    free(u->host);
    free(u->path);
    *u = (struct url){0};
}

void url_add_host(struct buf *out, const struct url *u)
{
    buf_printf(out, u->ipv6 ? "[%s]" : "%s", u->host ? u->host : "localhost");
    if (u->port != schemes[u->scheme].port)
        buf_printf(out, ":%u", (unsigned)u->port);
}
