/* URLs, addresses, networks and query strings, all of one text. */
#include "fuzz.h"

#include "base/ip.h"
#include "wire/url.h"

static void try_url(const char *text)
{
    struct buf host = BUF_EMPTY;
    struct err e = ERR_NONE;
    struct url u;

    if (url_parse(text, &u, &e) < 0) {
        CHECK(e.exit_code == EX_CONFIG && e.text[0] && !u.host && !u.path && !u.user && !u.password);
        return;
    }
    CHECK(u.path && (u.path[0] == '/' || (u.path[0] == '\0' && u.scheme != URL_UNIX)));
    CHECK((u.host != NULL) == (u.scheme != URL_UNIX));
    CHECK((u.port != 0) == (u.scheme != URL_UNIX));
    CHECK(!u.password || u.user);
    url_add_host(&host, &u);
    CHECK(strcspn(buf_str(&host), " /?#@\r\n") == host.n);
    buf_free(&host);
    url_free(&u);
}

static void try_query(struct slice query)
{
    struct buf name = BUF_EMPTY, value = BUF_EMPTY, again = BUF_EMPTY, back = BUF_EMPTY;
    struct slice rest = query;

    while (query_next(&rest, &name, &value) == 1) {
        CHECK(strlen(buf_str(&name)) == name.n && strlen(buf_str(&value)) == value.n);
        CHECK(query_get(query, buf_str(&name), &again) == 1);
        buf_clear(&again);
        buf_clear(&back);
        percent_encode(&again, buf_slice(&value));
        CHECK(percent_decode(&back, buf_slice(&again), true) == 0);
        CHECK(slice_eq(buf_slice(&back), buf_slice(&value)));
    }
    buf_free(&name);
    buf_free(&value);
    buf_free(&again);
    buf_free(&back);
}

/* What is read as an address or a network comes back from its text. */
static void try_addresses(struct slice text)
{
    struct ip_port port;
    struct ip_addr a;
    struct ip_net net, back;
    char shown[IP_TEXT_MAX];

    if (!ip_port_parse(text, &port))
        CHECK(ip_port_clash(&port, &port));
    if (ip_parse(text, &a))
        CHECK(ip_net_parse(text, &net) && net.prefix == 128 && ip_net_has(&net, &a));
    if (!ip_net_parse(text, &net))
        return;
    CHECK(net.prefix <= 128 && ip_net_has(&net, &net.addr));
    CHECK(ip_net_parse(slice_str(ip_net_text(&net, shown)), &back));
    CHECK(memcmp(&net.addr, &back.addr, sizeof(net.addr)) == 0 && net.prefix == back.prefix);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = malloc(n + 1);

    if (n)
        memcpy(text, data, n);
    text[n] = '\0';
    try_url(text);
    try_addresses(slice_str(text));
    try_query((struct slice){(const char *)data, n});
    free(text);
    return 0;
}
