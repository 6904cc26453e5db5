/* SOCKS5: whole conversations, each fed at once and byte by byte from memory of its exact size, and what is sent. */
#include "unit.h"

#include "wire/socks5.h"

struct row {
    const char *name;
    bool login;
    const char *in;
    size_t n;
    enum socks5_progress end;
    size_t used; /* with DONE: the rest is the target's */
    int reply;
    bool login_refused;
    const char *error; /* part of it */
    const char *out;   /* of the target 1.2.3.4:443, the greeting included */
    size_t out_n;
};

#define TEXT(s) s, sizeof(s) - 1
#define HELLO "\5\1\0"
#define HELLO_LOGIN "\5\2\0\2"
#define LOGIN "\1\4user\4pass"
#define REQUEST "\5\1\0\1\1\2\3\4\1\273"
#define BOUND "\0\1\0\0\0\0\0\0"

static const struct row rows[] = {
    {"no login", false, TEXT("\5\0\5\0" BOUND), SOCKS5_DONE, 12, 0, false, "", TEXT(HELLO REQUEST)},
    {"what follows is left", false, TEXT("\5\0\5\0" BOUND "HTTP"), SOCKS5_DONE, 12, 0, false, "",
     TEXT(HELLO REQUEST)},
    {"login", true, TEXT("\5\2\1\0\5\0" BOUND), SOCKS5_DONE, 14, 0, false, "",
     TEXT(HELLO_LOGIN LOGIN REQUEST)},
    {"login offered, not wanted", true, TEXT("\5\0\5\0" BOUND), SOCKS5_DONE, 12, 0, false, "",
     TEXT(HELLO_LOGIN REQUEST)},
    {"login's version is not looked at", true, TEXT("\5\2\5\0\5\0" BOUND), SOCKS5_DONE, 14, 0, false, "",
     TEXT(HELLO_LOGIN LOGIN REQUEST)},
    {"bound to a name", false, TEXT("\5\0\5\0\0\3\2ab\0\0X"), SOCKS5_DONE, 11, 0, false, "",
     TEXT(HELLO REQUEST)},
    {"bound to IPv6", false,
     TEXT("\5\0\5\0\0\4"
          "0123456789abcdef"
          "\0\0"),
     SOCKS5_DONE, 24, 0, false, "", TEXT(HELLO REQUEST)},
    {"half an answer", false, TEXT("\5\0\5\0\0\1\0\0\0"), SOCKS5_MORE, 2, 0, false, "", TEXT(HELLO REQUEST)},
    {"nothing", false, TEXT(""), SOCKS5_MORE, 0, 0, false, "", TEXT(HELLO)},
    {"password refused", true, TEXT("\5\2\1\1"), SOCKS5_FAIL, 2, 0, true, "password",
     TEXT(HELLO_LOGIN LOGIN)},
    {"wants a login", false, TEXT("\5\377"), SOCKS5_FAIL, 0, 0, true, "wants a user name", TEXT(HELLO)},
    {"wants a login that was not offered", false, TEXT("\5\2"), SOCKS5_FAIL, 0, 0, true, "wants a user name",
     TEXT(HELLO)},
    {"takes no login", true, TEXT("\5\377"), SOCKS5_FAIL, 0, 0, true, "takes no user name",
     TEXT(HELLO_LOGIN)},
    {"GSSAPI", true, TEXT("\5\1"), SOCKS5_FAIL, 0, 0, false, "not offered", TEXT(HELLO_LOGIN)},
    {"HTTP", false, TEXT("HTTP/1.1 400"), SOCKS5_FAIL, 0, 0, false, "does not speak SOCKS5", TEXT(HELLO)},
    {"SOCKS4 later", false, TEXT("\5\0\4\0"), SOCKS5_FAIL, 2, 0, false, "does not speak SOCKS5",
     TEXT(HELLO REQUEST)},
    {"refused, cut", false, TEXT("\5\0\5\5"), SOCKS5_FAIL, 2, 5, false, "refused", TEXT(HELLO REQUEST)},
    {"rules", false, TEXT("\5\0\5\2" BOUND), SOCKS5_FAIL, 2, 2, false, "rules", TEXT(HELLO REQUEST)},
    {"unknown reply", false, TEXT("\5\0\5\377" BOUND), SOCKS5_FAIL, 2, 255, false, "unknown error",
     TEXT(HELLO REQUEST)},
    {"unknown kind of address", false, TEXT("\5\0\5\0\0\2\0\0\0\0"), SOCKS5_FAIL, 2, 0, false,
     "unknown kind of address", TEXT(HELLO REQUEST)},
};

static void converse(const struct row *r, size_t step)
{
    struct slice none = slice_make(NULL, 0);
    struct buf out = BUF_EMPTY;
    struct socks5 s;
    size_t at = 0, fed = 0, used;
    enum socks5_progress end = SOCKS5_MORE;

    assert_int_equal(socks5_start(&s, SOCKS5_IPV4, LIT("\1\2\3\4"), 443, r->login ? LIT("user") : none,
                                  r->login ? LIT("pass") : none, &out),
                     0);
    do { /* as a stream does: what was not taken comes again, with what arrived since */
        fed = r->n - fed < step ? r->n : fed + step;
        char *copy = xmemdup(r->in + at, fed - at);
        end = socks5_feed(&s, slice_make(copy, fed - at), &used, &out);
        free(copy);
        at += used;
    } while (end == SOCKS5_MORE && fed < r->n);
    if (end != r->end || at != r->used || s.reply != r->reply || s.login_refused != r->login_refused)
        fail_msg("%s (step %zu): end %d, used %zu, reply %d, login refused %d", r->name, step, end, at,
                 s.reply, s.login_refused);
    if (!strstr(s.error, r->error) || (end == SOCKS5_FAIL) != (s.error[0] != '\0'))
        fail_msg("%s: error \"%s\"", r->name, s.error);
    if (!slice_eq(buf_slice(&out), slice_make(r->out, r->out_n)))
        fail_msg("%s (step %zu): other bytes were sent", r->name, step);
    /* Once ended it stays so. */
    if (end != SOCKS5_MORE) {
        assert_int_equal(socks5_feed(&s, LIT("\5\0\5\0"), &used, &out), end);
        assert_int_equal(used, 0);
    }
    buf_free(&out);
}

static void test_conversations(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        for (size_t step = 1; step <= rows[i].n + 1; step++)
            converse(&rows[i], step);
    }
}

/* What is asked for, by kind of address. */
static void test_targets(void **state)
{
    const struct {
        enum socks5_address type;
        struct slice address, request;
    } targets[] = {
        {SOCKS5_NAME, LIT("api.example"), LIT("\5\1\0\3\13api.example\0P")},
        {SOCKS5_IPV6, LIT("0123456789abcdef"),
         LIT("\5\1\0\4"
             "0123456789abcdef"
             "\0P")},
    };
    struct slice none = slice_make(NULL, 0);

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        struct buf out = BUF_EMPTY;
        struct socks5 s;
        size_t used;
        assert_int_equal(socks5_start(&s, targets[i].type, targets[i].address, 80, none, none, &out), 0);
        buf_clear(&out);
        assert_int_equal(socks5_feed(&s, LIT("\5\0"), &used, &out), SOCKS5_MORE);
        check_row(i, slice_eq(buf_slice(&out), targets[i].request));
        buf_free(&out);
    }
}

static void test_lengths(void **state)
{
    char text[256];
    struct slice none = slice_make(NULL, 0), longest = slice_make(text, 255),
                 too_long = slice_make(text, 256);
    struct buf out = BUF_EMPTY;
    struct socks5 s;

    (void)state;
    memset(text, 'x', sizeof text);
    assert_int_equal(socks5_start(&s, SOCKS5_NAME, longest, 1, longest, longest, &out), 0);
    assert_int_equal(socks5_start(&s, SOCKS5_NAME, longest, 1, LIT("u"), LIT(""), &out), 0);
    buf_free(&out);
    assert_int_equal(socks5_start(&s, SOCKS5_NAME, too_long, 1, none, none, &out), -1);
    assert_int_equal(socks5_start(&s, SOCKS5_NAME, LIT(""), 1, none, none, &out), -1);
    assert_int_equal(socks5_start(&s, SOCKS5_NAME, LIT("a"), 1, too_long, LIT("p"), &out), -1);
    assert_int_equal(socks5_start(&s, SOCKS5_NAME, LIT("a"), 1, LIT("u"), too_long, &out), -1);
    assert_int_equal(socks5_start(&s, SOCKS5_NAME, LIT("a"), 1, LIT(""), LIT("p"), &out), -1);
    assert_int_equal(out.n, 0);
    assert_non_null(strstr(s.error, "255"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conversations),
        cmocka_unit_test(test_targets),
        cmocka_unit_test(test_lengths),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
