/* Addresses, networks and where to listen, as they stand in a config or come from a peer. */
#include "base/ip.h"
#include "unit.h"

static struct ip_addr addr(const char *text)
{
    struct ip_addr a;

    if (!ip_parse(slice_str(text), &a))
        fail_msg("%s is no address", text);
    return a;
}

static void test_addresses(void **state)
{
    static const char *const bad[] = {"",          "1",
                                      "1.2.3",     "1.2.3.4.5",
                                      "1.2.3.256", " 1.2.3.4",
                                      "1.2.3.4 ",  "::1%lo",
                                      "[::1]",     "localhost",
                                      ":::",       "1:2:3:4:5:6:7:8:9",
                                      "0x7f.1",    "12345678901234567890123456789012345678901234567890"};
    struct ip_addr a, b = addr("::ffff:127.0.0.1");

    (void)state;
    a = addr("127.0.0.1");
    assert_memory_equal(&a, &b, sizeof(a));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        check_row(i, !ip_parse(slice_str(bad[i]), &a));
    assert_false(ip_parse(slice_make("1.2.3.4\0", 8), &a));
    assert_false(ip_parse(slice_make(NULL, 0), &a));
}

static void test_kinds(void **state)
{
    static const struct {
        const char *text;
        bool loopback, any;
    } rows[] = {
        {"127.0.0.1", true, false},
        {"127.255.255.255", true, false},
        {"::1", true, false},
        {"::ffff:127.9.9.9", true, false},
        {"126.255.255.255", false, false},
        {"128.0.0.0", false, false},
        {"::2", false, false},
        {"0.0.0.0", false, true},
        {"::", false, true},
        {"::ffff:0.0.0.0", false, true},
        {"0.0.0.1", false, false},
        {"1::", false, false},
        {"::1:0:0", false, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct ip_addr a = addr(rows[i].text);
        check_row(i, ip_is_loopback(&a) == rows[i].loopback);
        check_row(i, ip_is_any(&a) == rows[i].any);
    }
}

static void test_networks(void **state)
{
    static const struct {
        const char *net, *text, *in, *out;
    } rows[] = {
        {"149.154.160.0/20", "149.154.160.0/20", "149.154.175.255", "149.154.176.0"},
        {"91.108.4.0/22", "91.108.4.0/22", "::ffff:91.108.7.255", "91.108.3.255"},
        {"10.1.2.3/8", "10.0.0.0/8", "10.255.0.1", "11.0.0.0"},
        {"192.0.2.7", "192.0.2.7", "192.0.2.7", "192.0.2.6"},
        {"192.0.2.7/32", "192.0.2.7", "192.0.2.7", "192.0.2.6"},
        {"192.0.2.7/31", "192.0.2.6/31", "192.0.2.6", "192.0.2.8"},
        {"0.0.0.0/0", "0.0.0.0/0", "8.8.8.8", "2001:db8::1"},
        {"::/0", "::/0", "8.8.8.8", NULL},
        {"2001:db8:8000::/33", "2001:db8:8000::/33", "2001:db8:ffff::1", "2001:db8:7fff::1"},
        {"::ffff:10.0.0.0/104", "10.0.0.0/8", "10.1.1.1", "11.0.0.0"},
        {"fe80::1", "fe80::1", "fe80::1", "fe80::2"},
    };
    static const char *const bad[] = {"",      "10.0.0.0/",    "10.0.0.0/33", "10.0.0.0/-1", "::/129",
                                      "/8",    "10.0.0.0/8/8", "10.0.0.0/+8", "10.0.0.0/ 8", "::/0000",
                                      "host/8"};
    char text[IP_TEXT_MAX];
    struct ip_nets nets = {.n = 0};
    struct ip_net n;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        check_row(i, ip_net_parse(slice_str(rows[i].net), &n));
        struct ip_addr in = addr(rows[i].in);
        check_row(i, strcmp(ip_net_text(&n, text), rows[i].text) == 0);
        check_row(i, ip_net_has(&n, &in));
        if (!rows[i].out)
            continue;
        struct ip_addr out = addr(rows[i].out);
        check_row(i, !ip_net_has(&n, &out));
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        check_row(i, !ip_net_parse(slice_str(bad[i]), &n));
    struct ip_addr a = addr("91.108.4.1");
    assert_false(ip_nets_have(&nets, &a));
    for (; nets.n < 2; nets.n++)
        ip_net_parse(slice_str(rows[nets.n].net), &nets.net[nets.n]);
    assert_true(ip_nets_have(&nets, &a));
    a = addr("91.108.8.1");
    assert_false(ip_nets_have(&nets, &a));
}

static void test_ports(void **state)
{
    static const struct {
        const char *text, *host; /* NULL: refused */
        unsigned port;
    } rows[] = {
        {"127.0.0.1:80", "127.0.0.1", 80},
        {"localhost:65535", "127.0.0.1", 65535},
        {"[::1]:0", "::1", 0},
        {"[::]:443", "::", 443},
        {"LocalHost:1", "127.0.0.1", 1},
        {"", NULL, 0},
        {"80", NULL, 0},
        {":80", NULL, 0},
        {"*:80", NULL, 0},
        {"127.0.0.1", NULL, 0},
        {"127.0.0.1:", NULL, 0},
        {"127.0.0.1:x", NULL, 0},
        {"127.0.0.1:65536", NULL, 0},
        {"127.0.0.1:-0", NULL, 0},
        {"127.0.0.1:000080", NULL, 0},
        {"::1:80", NULL, 0},
        {"[::1]", NULL, 0},
        {"[::1", NULL, 0},
        {"[127.0.0.1]:80", NULL, 0},
        {"host:80", NULL, 0},
        {"[]:80", NULL, 0},
        {"[::1]x:80", NULL, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct ip_port p;
        const char *why = ip_port_parse(slice_str(rows[i].text), &p);
        check_row(i, (why == NULL) == (rows[i].host != NULL));
        if (why)
            continue;
        struct ip_addr a = addr(rows[i].host);
        check_row(i, p.port == rows[i].port && memcmp(&a, &p.addr, sizeof(a)) == 0);
    }
}

static void test_clashes(void **state)
{
    static const struct {
        const char *a, *b;
        bool clash;
    } rows[] = {
        {"127.0.0.1:80", "localhost:80", true},  {"127.0.0.1:80", "127.0.0.1:81", false},
        {"127.0.0.1:80", "127.0.0.2:80", false}, {"127.0.0.1:80", "0.0.0.0:80", true},
        {"[::]:80", "127.0.0.1:80", true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct ip_port a, b;
        check_row(i, !ip_port_parse(slice_str(rows[i].a), &a) && !ip_port_parse(slice_str(rows[i].b), &b));
        check_row(i, ip_port_clash(&a, &b) == rows[i].clash && ip_port_clash(&b, &a) == rows[i].clash);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses), cmocka_unit_test(test_kinds),   cmocka_unit_test(test_networks),
        cmocka_unit_test(test_ports),     cmocka_unit_test(test_clashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
