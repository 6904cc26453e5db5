/* The HTTP server over real sockets: requests and their answers, the cap on connections, stopping, and the sockets that it
 * makes and removes.
 */
#include "rig.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/listen.h"

/* ---- requests and answers ----------------------------------------------------------------------- */

struct row {
    const char *send;
    const char *wanted[4]; /* each must be in what comes */
    const char *absent;    /* and this must not */
    bool stays;            /* the connection can be used again */
};

static const struct row rows[] = {
    {G "\r\n",
     {"HTTP/1.1 404 Not Found\r\n", "\r\nContent-Type: application/json\r\n",
      "{\"error\":{\"code\":\"not_found\",\"message\":\"there is no such \\\"path\\\"\"}}"},
     "Connection:",
     true},
    {POST "Content-Length: 5\r\n\r\nhello",
     {"200 OK", "\r\nContent-Length: 5\r\n", "\r\n\r\nhello"},
     NULL,
     true},
    {POST "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
     {"200 OK", "\r\n\r\nhello"},
     NULL,
     true},
    {"GET /query?a=1&b=%32?x HTTP/1.1\r\nHost: a\r\n\r\n",
     {"\r\n\r\na=1&b=%32?x", "\r\nRetry-After: 7\r\n"},
     NULL,
     true},
    {"GET http://some.host/query?a HTTP/1.1\r\nHost: a\r\n\r\n", {"200 OK", "\r\n\r\na"}, NULL, true},
    {"GET /header HTTP/1.1\r\nHost: a\r\nX-TEST: v\r\n\r\n",
     {"401 ", "WWW-Authenticate: Bearer", "\r\n\r\nv"},
     NULL,
     true},
    {"HEAD /query?abc HTTP/1.1\r\nHost: a\r\n\r\n", {"200 OK", "\r\nContent-Length: 3\r\n"}, "abc", true},
    {"GET /204 HTTP/1.1\r\nHost: a\r\n\r\n", {"204 No Content"}, "nobody", true},
    {"GET / HTTP/1.0\r\n\r\n", {"404 ", "\r\nConnection: close\r\n"}, NULL, false},
    {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
     {"404 ", "\r\nConnection: keep-alive\r\n"},
     NULL,
     true},
    {G "Connection: close\r\n\r\n", {"404 ", "\r\nConnection: close\r\n"}, NULL, false},
    {"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", {"400 ", "\"code\":\"bad_request\""}, NULL, true},
    {POST "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
     {"400 ", "\"code\":\"bad_request\""},
     NULL,
     false},
    {POST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
     {"400 ", "\"bad_request\""},
     NULL,
     false},
    {POST "Transfer-Encoding: chunked\r\n\r\nzz\r\n", {"400 ", "\"bad_request\""}, NULL, false},
    {POST "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n", {"400 ", "\"bad_request\""}, NULL, false},
    {"GET / HTTP/1.1\r\n\r\n", {"400 ", "no Host header"}, NULL, false},
    {"NONSENSE\r\n\r\n", {"400 ", "\"bad_request\""}, NULL, false},
    {"BREW / HTTP/1.1\r\nHost: a\r\n\r\n", {"501 ", "\"not_implemented\""}, NULL, false},
    {"GET / HTTP/3.0\r\nHost: a\r\n\r\n", {"505 ", "\"version\""}, NULL, false},
    {POST "Content-Length: 100001\r\n\r\n", {"413 ", "\"too_large\""}, NULL, false},
};

static void check_rows(struct fixture *f)
{
    rig_start_default(f);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct row *r = &rows[i];
        struct client c = client_connect(f);
        client_send(&c, r->send);
        for (size_t k = 0; k < 4 && r->wanted[k]; k++)
            check_row(i, client_expect(f, &c, r->wanted[k]));
        check_row(i, !r->absent || !strstr(buf_str(&c.got), r->absent));
        check_row(i, (strstr(buf_str(&c.got), "Connection: close") == NULL) == r->stays);
        buf_clear(&c.got);
        if (r->stays) {
            client_send(&c, "GET /query?again HTTP/1.1\r\nHost: a\r\n\r\n");
            check_row(i, client_expect(f, &c, "again"));
        } else {
            check_row(i, client_expect(f, &c, NULL) && c.eof);
        }
        client_close(&c);
    }
}

static void test_rows(void **state)
{
    check_rows(*state);
}

static void test_peer(void **state)
{
    struct fixture *f = *state;
    struct client c = client_connect((rig_start_default(f), f));

    client_send(&c, G "\r\n");
    assert_true(client_expect(f, &c, "404"));
    assert_int_equal(f->uid, f->path ? (long)getuid() : -1);
    assert_int_equal(f->pid, f->path ? (long)getpid() : -1);
    client_close(&c);
}

static void test_byte_by_byte(void **state)
{
    static const char text[] = POST "Content-Length: 5\r\n\r\nhello";
    struct fixture *f = *state;
    struct client c = client_connect((rig_start_default(f), f));

    for (size_t i = 0; i < sizeof(text) - 1; i++) {
        char one[2] = {text[i], '\0'};
        client_send(&c, one);
        c.wanted = "";
        rig_run_until(f, client_has, &c);
    }
    assert_true(client_expect(f, &c, "\r\n\r\nhello"));
    assert_int_equal(f->requests, 1);
    client_close(&c);
}

/* Three requests in one piece: the second waits for the first's answer although it could be answered at once.
 */
static void test_pipelining(void **state)
{
    struct fixture *f = *state;
    struct client c = client_connect((rig_start_default(f), f));

    client_send(&c, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n" POST "Content-Length: 3\r\n\r\ntwo"
                    "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_true(rig_run_until(f, rig_holds_one, f));
    assert_int_equal(f->requests, 1);
    http_reply(f->held[0], 200, NULL, -1, LIT("one."));
    assert_int_equal(f->requests, 1); /* never from inside the call */
    assert_true(rig_run_until(f, rig_holds_two, f));
    assert_int_equal(f->requests, 3);
    http_reply(f->held[1], 200, NULL, -1, LIT("three."));
    assert_true(client_expect(f, &c, "three."));
    const char *one = strstr(c.got.p, "one."), *two = strstr(c.got.p, "two");
    assert_true(one && two && one < two);
    assert_int_equal(f->gone, 0);
    client_close(&c);
}

static void test_continue(void **state)
{
    struct fixture *f = *state;
    struct client c = client_connect((rig_start_default(f), f));

    client_send(&c, POST "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    assert_true(client_expect(f, &c, "HTTP/1.1 100 Continue\r\n\r\n"));
    assert_int_equal(f->requests, 0);
    client_send(&c, "hello");
    assert_true(client_expect(f, &c, "\r\n\r\nhello"));
    assert_string_equal(strstr(c.got.p + 10, "HTTP/1.1 "), strstr(c.got.p, "HTTP/1.1 200"));
    client_close(&c);

    c = client_connect(f);
    client_send(&c, POST "Content-Length: 500000\r\nExpect: 100-continue\r\n\r\n");
    assert_true(client_expect(f, &c, "HTTP/1.1 413 "));
    assert_null(strstr(c.got.p, "100 Continue"));
    client_close(&c);
}

/* ---- the cap, stopping, freeing ----------------------------------------------------------------- */

static void test_cap(void **state)
{
    struct fixture *f = *state;
    struct client c[4];

    rig_start_default(f);
    for (size_t i = 0; i < 4; i++) {
        c[i] = client_connect(f);
        client_send(&c[i], "GET /query?in HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_true(client_expect(f, &c[i], "\r\n\r\nin"));
    }
    struct client more = client_connect(f);
    client_send(&more, G "\r\n");
    assert_true(client_expect(f, &more, "HTTP/1.1 503 Service Unavailable\r\n"));
    assert_true(client_expect(f, &more, "\"code\":\"busy\""));
    assert_true(client_expect(f, &more, "Retry-After: 1\r\n"));
    assert_true(client_expect(f, &more, NULL) && more.eof);
    client_close(&more);
    client_close(&c[0]);
    c[1].wanted = "";
    rig_run_until(f, client_has, &c[1]); /* the server notices */
    more = client_connect(f);
    client_send(&more, G "\r\n");
    assert_true(client_expect(f, &more, " 404 "));
    client_close(&more);
    for (size_t i = 1; i < 4; i++)
        client_close(&c[i]);
}

static void test_stop_accepting(void **state)
{
    struct fixture *f = *state;

    rig_start_default(f);
    struct client idle = client_connect(f), busy = client_connect(f);
    client_send(&idle, "GET /query?x HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_true(client_expect(f, &idle, "\r\n\r\nx"));
    client_send(&busy, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_true(rig_run_until(f, rig_holds_one, f));
    http_server_stop_accepting(f->server);
    assert_true(client_expect(f, &idle, NULL) && idle.eof);
    http_reply(f->held[0], 200, NULL, -1, LIT("bye"));
    assert_true(client_expect(f, &busy, "bye"));
    assert_true(client_expect(f, &busy, "Connection: close"));
    assert_true(client_expect(f, &busy, NULL) && busy.eof);
    client_close(&idle);
    client_close(&busy);
}

static void test_free_with_open_exchanges(void **state)
{
    struct fixture *f = *state;

    rig_start_default(f);
    struct client a = client_connect(f), b = client_connect(f);
    client_send(&a, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
    client_send(&b, "GET /hold-deaf HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_true(rig_run_until(f, rig_holds_two, f));
    http_server_free(f->server);
    f->server = NULL;
    assert_true(client_expect(f, &a, NULL));
    assert_true(client_expect(f, &b, NULL));
    assert_int_equal(f->gone, 0);
    client_close(&a);
    client_close(&b);
}

/* ---- the unix socket ---------------------------------------------------------------------------- */

static void test_socket_modes(void **state)
{
    struct fixture *f = *state;
    struct http_server_options o = rig_options(f);
    struct stat st;
    mode_t old = umask(0022);
    char gid[24];

    snprintf(gid, sizeof(gid), "%lu", (unsigned long)getgid());
    o.unix_group = gid;
    o.unix_mode = 0620;
    rig_start(f, &o);
    assert_int_equal(umask(old), 0022);
    assert_int_equal(lstat(f->path, &st), 0);
    assert_true(S_ISSOCK(st.st_mode));
    assert_int_equal(st.st_mode & 07777, 0620);
    http_server_free(f->server);
    f->server = NULL;
    assert_int_equal(lstat(f->path, &st), -1);
}

static void refused(struct fixture *f, const char *part)
{
    struct http_server_options o = rig_options(f);
    struct err e = ERR_NONE;

    assert_null(http_server_new(f->loop, &o, rig_on_request, f, &e));
    assert_true(e.exit_code != 0);
    if (!strstr(e.text, part))
        fail_msg("wanted \"%s\" in: %s", part, e.text);
}

static void test_socket_in_the_way(void **state)
{
    struct fixture *f = *state;
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct stat st;

    snprintf(a.sun_path, sizeof(a.sun_path), "%s", f->path);
    /* a file: never touched */
    int fd = open(f->path, O_CREAT | O_WRONLY, 0600);
    close(fd);
    refused(f, "not a socket");
    assert_int_equal(lstat(f->path, &st), 0);
    unlink(f->path);
    /* a symbolic link, even to a socket of nobody */
    assert_int_equal(symlink("elsewhere", f->path), 0);
    refused(f, "not a socket");
    unlink(f->path);
    /* somebody else's, who answers */
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(fd, 0), 0);
    refused(f, "answers on");
    /* and whose queue our first question filled */
    refused(f, "answers on");
    /* left behind */
    close(fd);
    rig_start_default(f);
    struct client works = client_connect(f);
    client_send(&works, G "\r\n");
    assert_true(client_expect(f, &works, "404"));
    client_close(&works);
    /* a second one on the same path */
    refused(f, "another process holds");
}

/* The socket is removed only while it is ours. */
static void test_socket_replaced_by_another(void **state)
{
    struct fixture *f = *state;
    struct stat st;

    rig_start_default(f);
    unlink(f->path);
    int fd = open(f->path, O_CREAT | O_WRONLY, 0600);
    close(fd);
    http_server_free(f->server);
    f->server = NULL;
    assert_int_equal(lstat(f->path, &st), 0);
}

static void test_bad_addresses(void **state)
{
    static const char *const bad[] = {"", "127.0.0.1", "example.org:80", "127.0.0.1:99999", "300.1.1.1:1"};
    struct fixture *f = *state;
    struct http_server_options o = rig_options(f);
    struct err e;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        o.address = bad[i];
        e = ERR_NONE;
        check_row(i, http_server_new(f->loop, &o, rig_on_request, f, &e) == NULL && e.exit_code == EX_CONFIG);
    }
    rig_start_default(f);
    char taken[32];
    snprintf(taken, sizeof(taken), "localhost:%u", (unsigned)http_server_port(f->server));
    o.address = taken;
    assert_null(http_server_new(f->loop, &o, rig_on_request, f, &e));
    assert_int_equal(e.exit_code, EX_UNAVAILABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER_UNIX(test_rows),
        OVER_TCP(test_rows),
        OVER_UNIX(test_peer),
        OVER_TCP(test_peer),
        OVER_UNIX(test_byte_by_byte),
        OVER_UNIX(test_pipelining),
        OVER_TCP(test_pipelining),
        OVER_UNIX(test_continue),
        OVER_UNIX(test_cap),
        OVER_TCP(test_cap),
        OVER_UNIX(test_stop_accepting),
        OVER_UNIX(test_free_with_open_exchanges),
        OVER_UNIX(test_socket_modes),
        OVER_UNIX(test_socket_in_the_way),
        OVER_UNIX(test_socket_replaced_by_another),
        OVER_TCP(test_bad_addresses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
