/* Who sent a request, through proxies that are trusted and others. */
#include "unit.h"
#include "wire/forwarded.h"

static const struct {
    const char *peer, *header, *client; /* client NULL: cannot be told */
} rows[] = {
    /* no proxy that we know: the header is whatever the client wrote */
    {"8.8.8.8", "", "8.8.8.8"},
    {"8.8.8.8", "149.154.167.220", "8.8.8.8"},
    {"8.8.8.8", "nonsense", "8.8.8.8"},
    /* a trusted one */
    {"10.0.0.1", "", "10.0.0.1"},
    {"10.0.0.1", "149.154.167.220", "149.154.167.220"},
    {"::ffff:10.0.0.1", "149.154.167.220", "149.154.167.220"},
    {"10.0.0.1", " 1.1.1.1 ,\t2.2.2.2 ", "2.2.2.2"},
    {"10.0.0.1", "1.1.1.1,2.2.2.2", "2.2.2.2"},
    {"fd00::1", "::ffff:149.154.167.220", "149.154.167.220"},
    {"fd00::1", "[2001:67c:4e8::1]:443", "2001:67c:4e8::1"},
    {"fd00::1", "[2001:67c:4e8::1]", "2001:67c:4e8::1"},
    {"fd00::1", "2001:67c:4e8::1", "2001:67c:4e8::1"},
    {"10.0.0.1", "149.154.167.220:4711", "149.154.167.220"},
    /* several of them */
    {"10.0.0.1", "9.9.9.9, 149.154.167.220, 10.2.3.4, 10.0.0.2", "149.154.167.220"},
    {"10.0.0.1", "149.154.167.220, 7.7.7.7, 10.2.3.4", "7.7.7.7"},
    {"10.0.0.1", "10.1.1.1, 10.2.2.2", "10.1.1.1"},
    /* what a trusted one says and we cannot read */
    {"10.0.0.1", "unknown", NULL},
    {"10.0.0.1", ",", NULL},
    {"10.0.0.1", "149.154.167.220, ", NULL},
    {"10.0.0.1", "149.154.167.220, _hidden, 10.2.3.4", NULL},
    {"10.0.0.1", "[2001:67c:4e8::1", NULL},
    {"10.0.0.1", "1.2.3.4.5", NULL},
    {"10.0.0.1", "[]", NULL},
};

static void test_clients(void **state)
{
    struct ip_nets trusted = {.n = 2};
    struct ip_addr peer, client, expected;

    (void)state;
    assert_true(ip_net_parse(slice_str("10.0.0.0/8"), &trusted.net[0]));
    assert_true(ip_net_parse(slice_str("fd00::/8"), &trusted.net[1]));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        check_row(i, ip_parse(slice_str(rows[i].peer), &peer));
        bool read = forwarded_client(&peer, slice_str(rows[i].header), &trusted, &client);
        check_row(i, read == (rows[i].client != NULL));
        if (!rows[i].client)
            continue;
        check_row(i, ip_parse(slice_str(rows[i].client), &expected));
        check_row(i, memcmp(&client, &expected, sizeof(client)) == 0);
    }
}

/* Nothing is trusted: the header says nothing. */
static void test_nobody_is_trusted(void **state)
{
    const struct ip_nets none = {.n = 0};
    struct ip_addr peer, client;

    (void)state;
    assert_true(ip_parse(slice_str("127.0.0.1"), &peer));
    assert_true(forwarded_client(&peer, slice_str("149.154.167.220"), &none, &client));
    assert_memory_equal(&client, &peer, sizeof(peer));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clients),
        cmocka_unit_test(test_nobody_is_trusted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
