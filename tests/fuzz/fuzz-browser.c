/* Whom a request is for and from, by lines: Host, Origin, Sec-Fetch-Site, X-Forwarded-For. What a page of somebody else's can
 * send must not come through; so the answer is looked at once more by plainer rules. */
#include "fuzz.h"

#include <strings.h>

#include "base/buf.h"
#include "serve/browser.h"
#include "wire/forwarded.h"

/* An empty line: there is none. */
static struct slice header(struct slice *rest)
{
    struct slice l = fuzz_line(rest);

    return l.n ? l : slice_make(NULL, 0);
}

static bool is_in(struct slice s, const char *word)
{
    for (size_t at = 0, n = strlen(word); at + n <= s.n; at++)
        if (strncasecmp(s.p + at, word, n) == 0)
            return true;
    return false;
}

/* Without TLS, and without names of its own, it is an address, localhost, or this machine's name, which is no "evil". */
static void try_head(struct browser_head h)
{
    const char *code = NULL, *message = NULL;

    for (int i = 0; i < 4; i++) {
        h.tls = i & 1;
        bool link = i & 2, may = browser_may(&h, link, &code, &message);
        CHECK(may || (code && message));
        if (!may)
            continue;
        CHECK(browser_host_ok(&h) && h.host.n);
        CHECK(!h.origin.p || browser_origin_ok(&h));
        CHECK(h.tls || !is_in(h.host, "evil"));
        CHECK(!h.origin.p || !is_in(h.origin, "evil") || (h.tls && is_in(h.host, "evil")));
        CHECK(link || !h.fetch_site.p || !slice_eq_str(h.fetch_site, "cross-site"));
    }
}

/* The hops are believed one by one, from the last on. */
static void try_forwarded(struct slice header)
{
    static struct ip_nets trusted = {.n = 2};
    struct ip_addr peer, other, client;

    CHECK(ip_net_parse(slice_str("127.0.0.1"), &trusted.net[0]));
    CHECK(ip_net_parse(slice_str("10.0.0.0/8"), &trusted.net[1]));
    CHECK(ip_parse(slice_str("127.0.0.1"), &peer) && ip_parse(slice_str("192.0.2.1"), &other));
    CHECK(forwarded_client(&other, header, &trusted, &client) && !memcmp(&client, &other, sizeof(other)));
    struct buf longer = BUF_EMPTY;
    buf_add(&longer, header.p, header.n);
    buf_add_str(&longer, ", 192.0.2.1");
    CHECK(forwarded_client(&peer, buf_slice(&longer), &trusted, &client) &&
          !memcmp(&client, &other, sizeof(other)));
    buf_free(&longer);
    if (!forwarded_client(&peer, header, &trusted, &client))
        CHECK(header.n > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct slice rest = slice_make(data, n);
    struct browser_head h = {.host = header(&rest)};

    h.origin = header(&rest);
    h.fetch_site = header(&rest);
    try_head(h);
    try_forwarded(rest);
    return 0;
}
