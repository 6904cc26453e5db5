/* URLs, HOST:PORT and query strings, all of one text. */
#include "fuzz.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = malloc(n + 1), *host = NULL;
    uint16_t port;

    if (n)
        memcpy(text, data, n);
    text[n] = '\0';
    try_url(text);
    if (url_split_host_port(text, &host, &port) == 0)
        CHECK(host[0]);
    free(host);
    try_query((struct slice){(const char *)data, n});
    free(text);
    return 0;
}
