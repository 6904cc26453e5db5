/* URLs and query strings. */
#include "unit.h"

#include "wire/url.h"

struct good_row {
    const char *text;
    enum url_scheme scheme;
    const char *user, *password, *host;
    unsigned port;
    const char *path, *host_header;
};

static const struct good_row good[] = {
    {"https://api.telegram.org", URL_HTTPS, NULL, NULL, "api.telegram.org", 443, "", "api.telegram.org"},
    {"http://127.0.0.1:8081/", URL_HTTP, NULL, NULL, "127.0.0.1", 8081, "/", "127.0.0.1:8081"},
    {"HTTP://Example.ORG/A/b?c=d", URL_HTTP, NULL, NULL, "example.org", 80, "/A/b?c=d", "example.org"},
    {"http://[::1]:80/x", URL_HTTP, NULL, NULL, "::1", 80, "/x", "[::1]"},
    {"https://[2001:DB8::1]", URL_HTTPS, NULL, NULL, "2001:db8::1", 443, "", "[2001:db8::1]"},
    {"socks5h://u:p@proxy:9050", URL_SOCKS5H, "u", "p", "proxy", 9050, "", "proxy:9050"},
    {"socks5://proxy", URL_SOCKS5, NULL, NULL, "proxy", 1080, "", "proxy"},
    {"http://us%65r:p%40%3a%2F@h:3128", URL_HTTP, "user", "p@:/", "h", 3128, "", "h:3128"},
    {"http://user@h", URL_HTTP, "user", NULL, "h", 80, "", "h"},
    {"http://:pw@h", URL_HTTP, "", "pw", "h", 80, "", "h"},
    {"http://a@b:c@h", URL_HTTP, "a@b", "c", "h", 80, "", "h"},
    {"unix:/run/tgspool.sock", URL_UNIX, NULL, NULL, NULL, 0, "/run/tgspool.sock", "localhost"},
    {"unix:/run/a b/%41 \xc3\xa9?#.sock", URL_UNIX, NULL, NULL, NULL, 0, "/run/a b/%41 \xc3\xa9?#.sock",
     "localhost"},
    {"unix:///run/x", URL_UNIX, NULL, NULL, NULL, 0, "/run/x", "localhost"},
};

static bool same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static void test_good(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        const struct good_row *r = &good[i];
        struct buf host = BUF_EMPTY;
        struct err e = ERR_NONE;
        struct url u;
        check_row(i, url_parse(r->text, &u, &e) == 0);
        check_row(i, u.scheme == r->scheme && u.port == r->port);
        check_row(i, same(u.user, r->user) && same(u.password, r->password));
        check_row(i, same(u.host, r->host) && same(u.path, r->path));
        check_row(i, u.ipv6 == (r->host && strchr(r->host, ':')));
        url_add_host(&host, &u);
        check_row(i, same(buf_str(&host), r->host_header));
        buf_free(&host);
        url_free(&u);
    }
}

static void test_bad(void **state)
{
    static const char *const rows[] = {
        "",
        "https",
        "https:",
        "https:/x.sekret",
        "ftp://sekret",
        "httpss://sekret",
        "http://",
        "http:///sekret",
        "http://sekret:",
        "http://sekret:0",
        "http://sekret:65536",
        "http://sekret:-1",
        "http://sekret:1x",
        "http://sekret:99999999999999999999",
        "http://[::1",
        "http://[::1]sekret",
        "http://[sekret]",
        "http://[]",
        "http://::1/",
        "http://sek ret/",
        "http://h/sek\nret",
        "http://h/s\xC3\xA9kret",
        "http://h#sekret",
        "http://h/x#sekret",
        "http://h?sekret",
        "http://sekret:%zz@h",
        "http://sekret:%0@h",
        "http://sekret%00:x@h",
        "http://u:sekret@",
        "http://u:sekret@:80",
        "http://-sekret",
        "http://sekret!",
        "socks5://h:1/sekret",
        "unix:sekret",
        "unix://sekret",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err e = ERR_NONE;
        struct url u;
        check_row(i, url_parse(rows[i], &u, &e) == -1);
        check_row(i, e.exit_code == EX_CONFIG && e.text[0] && !strstr(e.text, "sek"));
        check_row(i, !u.host && !u.path && !u.user && !u.password);
    }
}

static void test_percent(void **state)
{
    struct buf b = BUF_EMPTY, back = BUF_EMPTY;
    char all[255];

    (void)state;
    for (size_t i = 0; i < sizeof(all); i++)
        all[i] = (char)(i + 1);
    percent_encode(&b, slice_make(all, sizeof(all)));
    assert_int_equal(percent_decode(&back, buf_slice(&b), true), 0);
    assert_true(slice_eq(buf_slice(&back), slice_make(all, sizeof(all))));
    assert_int_equal(percent_decode(&back, LIT("%"), false), -1);
    assert_int_equal(percent_decode(&back, LIT("a%4"), false), -1);
    assert_int_equal(percent_decode(&back, LIT("%00"), false), -1);
    assert_int_equal(percent_decode(&back, LIT("%-1"), false), -1);
    buf_clear(&back);
    assert_int_equal(percent_decode(&back, LIT("a+b%2B"), false), 0);
    assert_slice(buf_slice(&back), "a+b+");
    buf_free(&b);
    buf_free(&back);
}

static void test_query(void **state)
{
    struct slice q = LIT("bot=shop&&state=a+b%26c&flag&state=second&empty=&x=1=2");
    struct buf name = BUF_EMPTY, value = BUF_EMPTY;
    size_t n = 0;

    (void)state;
    assert_int_equal(query_get(q, "state", &value), 1);
    assert_string_equal(value.p, "a b&c");
    assert_int_equal(query_get(q, "flag", &value), 1);
    assert_slice(buf_slice(&value), "");
    assert_int_equal(query_get(q, "x", &value), 1);
    assert_slice(buf_slice(&value), "1=2");
    assert_int_equal(query_get(q, "none", &value), 0);
    assert_slice(buf_slice(&value), "");
    assert_int_equal(query_get(LIT("a=%zz&b=1"), "b", &value), -1);
    assert_slice(buf_slice(&value), "");
    assert_int_equal(query_get(slice_make(NULL, 0), "b", &value), 0);
    while (query_next(&q, &name, &value) == 1)
        n++;
    assert_int_equal(n, 6);
    buf_free(&name);
    buf_free(&value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_percent),
        cmocka_unit_test(test_query),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
