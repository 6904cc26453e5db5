/* Who is calling, and from where; the rest is the api's. All is judged by the head alone, so that a stranger's body is
 * not even read. */
#include "serve/network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "serve/api_call.h"
#include "serve/browser.h"
#include "serve/exchange.h"
#include "serve/page.h"

#define WRONG_EVERY MINUTES(1) /* between two lines in the log about wrong tokens */

struct network {
    struct exchanges exchanges;
    struct network_hooks hooks;
    uint64_t wrong; /* tokens since the last line about them */
    int64_t wrong_told_at;
};

/* ---- the head ----------------------------------------------------------------------------------- */

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
    return token.n ? n->hooks.caller(n->hooks.arg, token, bot) : CALLER_UNKNOWN;
}

/* Somebody guesses, or a consumer has an old token: worth a line, but not one each. */
static void tell_wrong_token(struct network *n, const struct http_server_request *r)
{
    int64_t now = api_now(n->exchanges.api);

    n->wrong++;
    if (n->wrong_told_at && now - n->wrong_told_at < WRONG_EVERY)
        return;
    log_warn(NULL,
             "wrong token on listen.http from %s, %llu meanwhile; run: tgspool config | grep token_file",
             r->peer_text, (unsigned long long)n->wrong);
    n->wrong = 0;
    n->wrong_told_at = now;
}

void network_head(void *arg, struct http_exchange *x, const struct http_server_request *r)
{
    struct network *n = arg;
    const struct browser_head head = {.host = r->header(r, "Host"),
                                      .origin = r->header(r, "Origin"),
                                      .fetch_site = r->header(r, "Sec-Fetch-Site"),
                                      .tls = r->tls,
                                      .names = n->hooks.names(n->hooks.arg)};
    bool page = page_has(r->path);
    const char *bot, *code, *message;
    enum network_caller who = caller_of(n, r, &bot);
    bool program = who == CALLER_BOT && !browser_sent(&head);

    if (!program && !browser_may(&head, page, &code, &message)) {
        http_reply_error(x, 403, code, message);
    } else if (page) {
        page_serve(x, r);
    } else if (who == CALLER_UNKNOWN) {
        if (network_bearer(r->authorization).n)
            tell_wrong_token(n, r);
        refuse_stranger(x);
    } else {
        http_body_whole(x, API_BODY_MAX);
    }
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

struct network *network_new(struct api *api, const struct network_hooks *h)
{
    struct network *n = xcalloc(1, sizeof(*n));

    exchanges_init(&n->exchanges, api);
    n->hooks = *h;
    return n;
}

void network_free(struct network *n)
{
    if (!n)
        return;
    exchanges_end(&n->exchanges);
    free(n);
}
