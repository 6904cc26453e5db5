/* Host, Origin and Sec-Fetch-Site. */
#include "serve/browser.h"

#include <limits.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/ip.h"
#include "base/text.h"

/* "HOST", "HOST:PORT", "[V6]:PORT": without the port and the brackets. Empty if it is none. */
static struct slice host_name(struct slice host)
{
    static const struct slice none = {"", 0};
    int64_t port;

    if (host.n && host.p[0] == '[') {
        const char *end = memchr(host.p, ']', host.n);
        if (!end)
            return none;
        struct slice behind = slice_make(end + 1, host.n - (size_t)(end + 1 - host.p));
        if (behind.n && (behind.p[0] != ':' ||
                         text_to_i64(slice_make(behind.p + 1, behind.n - 1), 0, UINT16_MAX, &port) < 0))
            return none;
        return slice_make(host.p + 1, (size_t)(end - host.p) - 1);
    }
    const char *colon = host.n ? memchr(host.p, ':', host.n) : NULL;
    if (!colon)
        return host;
    struct slice number = slice_make(colon + 1, host.n - (size_t)(colon + 1 - host.p));
    return text_to_i64(number, 0, UINT16_MAX, &port) < 0 ? none
                                                         : slice_make(host.p, (size_t)(colon - host.p));
}

static bool is_named(struct slice name, char *const *names)
{
    for (; names && *names; names++)
        if (slice_eq_nocase(name, *names))
            return true;
    return false;
}

bool browser_host_ok(const struct browser_head *h)
{
    struct slice name = host_name(h->host);
    char own[HOST_NAME_MAX + 1] = "";
    struct ip_addr ip;

    if (!name.n)
        return false;
    if (h->tls || ip_parse(name, &ip) || slice_eq_nocase(name, "localhost") || is_named(name, h->names))
        return true;
    return gethostname(own, sizeof(own) - 1) == 0 && own[0] && slice_eq_nocase(name, own);
}

/* Behind "http://" or "https://"; empty if it is neither, as "null". */
static struct slice origin_host(struct slice origin, bool *tls)
{
    for (int i = 0; i < 2; i++) {
        const char *scheme = i ? "https://" : "http://";
        size_t front = strlen(scheme);
        *tls = i;
        if (origin.n > front && strncasecmp(origin.p, scheme, front) == 0)
            return slice_make(origin.p + front, origin.n - front);
    }
    return slice_make("", 0);
}

bool browser_origin_ok(const struct browser_head *h)
{
    bool tls;
    struct slice host = origin_host(h->origin, &tls);

    if (!host.n)
        return false;
    if (is_named(host_name(host),
                 h->names)) /* a proxy in front may end its TLS, and name another host to us */
        return true;
    return tls == h->tls && host.n == h->host.n && strncasecmp(host.p, h->host.p, host.n) == 0;
}

bool browser_sent(const struct browser_head *h)
{
    return h->origin.p || h->fetch_site.p;
}

bool browser_may(const struct browser_head *h, bool navigation, const char **code, const char **message)
{
    if (!browser_host_ok(h)) {
        *code = "bad_host";
        *message =
            "the Host header names another host: ask by address, as localhost or by this machine's name, or "
            "add the name to listen.http_hosts";
        return false;
    }
    bool here = !h->fetch_site.p || slice_eq_nocase(h->fetch_site, "same-origin") ||
                slice_eq_nocase(h->fetch_site, "none");
    if ((h->origin.p && !browser_origin_ok(h)) || (!here && !navigation)) {
        *code = "bad_origin";
        *message =
            "pages of other hosts may not call this; if a proxy gives this one another name, add that to "
            "listen.http_hosts";
        return false;
    }
    return true;
}
