/* Who is calling, and from where; the rest is the api's. All is judged by the head alone, so that a stranger's body is
 * not even read. */
#include "serve/network.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/ip.h"
#include "base/mem.h"
#include "base/text.h"
#include "serve/exchange.h"

struct network {
    struct exchanges exchanges;
    network_caller_fn *caller;
    void *arg;
};

/* ---- the head ----------------------------------------------------------------------------------- */

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

bool network_host_ok(struct slice host, bool tls)
{
    struct slice name = host_name(host);
    char own[HOST_NAME_MAX + 1] = "";
    struct ip_addr ip;

    if (!name.n)
        return false;
    if (tls || ip_parse(name, &ip) || slice_eq_nocase(name, "localhost"))
        return true;
    return gethostname(own, sizeof(own) - 1) == 0 && own[0] && slice_eq_nocase(name, own);
}

bool network_origin_ok(struct slice origin, struct slice host, bool tls)
{
    const char *scheme = tls ? "https://" : "http://";
    size_t front = strlen(scheme);

    return origin.n == front + host.n && strncasecmp(origin.p, scheme, front) == 0 &&
           strncasecmp(origin.p + front, host.p, host.n) == 0;
}

struct slice network_bearer(struct slice authorization)
{
    struct slice s = authorization;

    if (s.n < 7 || strncasecmp(s.p, "Bearer ", 7) != 0)
        return slice_make("", 0);
    s = slice_make(s.p + 7, s.n - 7);
    while (s.n && s.p[0] == ' ')
        s = slice_make(s.p + 1, s.n - 1);
    while (s.n && s.p[s.n - 1] == ' ')
        s.n--;
    return s;
}

static void refuse_stranger(struct http_exchange *x)
{
    static const char text[] =
        "{\"error\":{\"code\":\"unauthorized\",\"message\":\"this needs the header Authorization: "
        "Bearer TOKEN, with the API's token or a bot's pull token\"}}";
    const struct http_field fields[] = {{slice_str("WWW-Authenticate"), slice_str("Bearer")},
                                        {slice_str("Content-Type"), slice_str("application/json")}};
    const struct http_answer_head head = {
        .status = 401, .fields = fields, .n_fields = ARRAY_LEN(fields), .length = sizeof(text) - 1};

    http_begin(x, &head);
    http_write(x, slice_make(text, sizeof(text) - 1));
    http_end(x);
}

static enum network_caller caller_of(const struct network *n, const struct http_server_request *r,
                                     const char **bot)
{
    struct slice token = network_bearer(r->authorization);

    *bot = NULL;
    return token.n ? n->caller(n->arg, token, bot) : CALLER_UNKNOWN;
}

void network_head(void *arg, struct http_exchange *x, const struct http_server_request *r)
{
    struct network *n = arg;
    struct slice host = r->header(r, "Host"), origin = r->header(r, "Origin");
    const char *bot;

    if (!network_host_ok(host, r->tls))
        http_reply_error(x, 400, "bad_host",
                         "the Host header must be an address, localhost or this machine's name");
    else if (origin.p && !network_origin_ok(origin, host, r->tls))
        http_reply_error(x, 401, "bad_origin", "pages of other hosts may not call this API");
    else if (caller_of(n, r, &bot) == CALLER_UNKNOWN)
        refuse_stranger(x);
    else
        http_body_whole(x, API_BODY_MAX);
}

void network_request(void *arg, struct http_exchange *x, const struct http_server_request *r)
{
    struct network *n = arg;
    char who[64];
    const char *bot;

    switch (caller_of(n, r, &bot)) { /* again: tokens may have changed while the body came */
    case CALLER_UNKNOWN:
        refuse_stranger(x);
        return;
    case CALLER_API:
        snprintf(who, sizeof(who), "API token, %s", r->peer_text);
        break;
    case CALLER_BOT:
        snprintf(who, sizeof(who), "pull token, %s", r->peer_text);
        break;
    }
    exchange_start(&n->exchanges, x, r, &(struct api_request){.who = who, .only_bot = bot});
}

static bool still_allowed(void *arg, struct http_exchange *x, const struct http_server_request *r,
                          const char *only_bot)
{
    const char *bot;

    if (caller_of(arg, r, &bot) != CALLER_UNKNOWN && !strcmp(bot ? bot : "", only_bot))
        return true;
    refuse_stranger(x);
    return false;
}

void network_check(struct network *n)
{
    exchanges_check(&n->exchanges, still_allowed, n);
}

struct network *network_new(struct api *api, network_caller_fn *caller, void *arg)
{
    struct network *n = xcalloc(1, sizeof(*n));

    exchanges_init(&n->exchanges, api);
    n->caller = caller;
    n->arg = arg;
    return n;
}

void network_free(struct network *n)
{
    if (!n)
        return;
    exchanges_end(&n->exchanges);
    free(n);
}
