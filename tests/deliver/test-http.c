/* http against a small server in a process of its own, which behaves as the path of the request says. */
#include "../unit/unit.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "deliver/slots.h"
#include "rig.h"

#define UPDATE LIT("{\"update_id\":101}")

static uint16_t port;
static pid_t server;

/* ---- the server --------------------------------------------------------------------------------------- */

static void send_text(int fd, const char *text)
{
    if (write(fd, text, strlen(text)) < 0)
        _exit(1);
}

/* Reads one request with a Content-Length into b. Returns 0, or -1 if the client closed. */
static int read_request(int fd, struct buf *b)
{
    buf_clear(b);
    for (;;) {
        ssize_t n = read(fd, buf_reserve(b, 4096), 4096);
        if (n <= 0)
            return -1;
        buf_added(b, (size_t)n);
        if (b->p[0] == 0x16) /* a TLS handshake */
            return -1;
        const char *end = strstr(buf_str(b), "\r\n\r\n"), *length = strcasestr(buf_str(b), "content-length:");
        if (end && (!length || b->n >= (size_t)(end + 4 - b->p) + (size_t)atol(length + 15)))
            return 0;
    }
}

static void reset(int fd)
{
    struct linger now = {1, 0};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

/* The first thing expected of a request that is not there. */
static const char *what_is_missing(const char *request)
{
    static const char *const wanted[] = {"POST /check?a=b HTTP/1.1\r\n",
                                         "Content-Type: application/json\r\n",
                                         "X-Telegram-Bot-Api-Secret-Token: s3cret\r\n",
                                         "X-Tgspool-Id: shop/101\r\n",
                                         "X-Tgspool-Bot: shop\r\n",
                                         "X-Tgspool-Kind: odd??Evil: 1??\r\n",
                                         "X-Tgspool-Lane: chat:7\r\n",
                                         "X-Tgspool-Attempt: 2\r\n",
                                         "Idempotency-Key: 4242:101:deadbeef\r\n",
                                         "X-Tgspool-Received-At: 1",
                                         "X-Tgspool-Age: 3\r\n",
                                         "Content-Length: 17\r\n",
                                         "\r\n\r\n{\"update_id\":101}"};

    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        if (!strstr(request, wanted[i]))
            return wanted[i];
    return "nothing";
}

/* Returns whether the connection stays. */
static bool serve_request(int fd, struct buf *b)
{
    char path[128], answer[256];
    int status = 0, after = -1;

    if (sscanf(b->p, "POST %127s", path) != 1)
        _exit(1);
    if (sscanf(path, "/status/%d/%d", &status, &after) >= 1) {
        char header[64] = "";
        if (after >= 0)
            snprintf(header, sizeof(header), "Retry-After: %d\r\n", after);
        snprintf(answer, sizeof(answer),
                 "HTTP/1.1 %d X\r\nContent-Length: 4\r\nContent-Type: text/html\r\n%s\r\n<b/>", status,
                 header);
        send_text(fd, answer);
        return true;
    }
    if (!strcmp(path, "/check?a=b")) {
        const char *missing = what_is_missing(buf_str(b));
        snprintf(answer, sizeof(answer),
                 "HTTP/1.1 500 X\r\nContent-Length: %zu\r\nContent-Type: text/plain\r\n\r\n%s",
                 strlen(missing), missing);
        send_text(fd, answer);
        return true;
    }
    if (!strcmp(path, "/text"))
        send_text(fd,
                  "HTTP/1.1 500 X\r\nContent-Type: application/json\r\nContent-Length: 6\r\n\r\n\"boom\"");
    else if (!strcmp(path, "/call"))
        send_text(fd, "HTTP/1.1 200 X\r\nContent-Length: 24\r\n\r\n{\"method\":\"sendMessage\"} ");
    else if (!strcmp(path, "/cut"))
        send_text(fd, "HTTP/1.1 200 X\r\nContent-Length: 100\r\n\r\nhalf");
    else if (!strcmp(path, "/garbage"))
        send_text(fd, "SSH-2.0-OpenSSH_9.2\r\n\r\n");
    else if (!strcmp(path, "/huge"))
        send_text(fd, "HTTP/1.1 200 X\r\nContent-Length: 999999999\r\n\r\nx");
    else if (!strcmp(path, "/hang"))
        pause();
    else
        reset(fd);
    return false;
}

static _Noreturn void serve(int listener)
{
    struct buf b = BUF_EMPTY;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            while (read_request(fd, &b) == 0 && serve_request(fd, &b))
                ;
            _exit(0);
        }
        close(fd);
    }
}

static int start_server(void **state)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof(a);

    (void)state;
    if (bind(fd, (struct sockaddr *)&a, n) || listen(fd, 16) || getsockname(fd, (struct sockaddr *)&a, &n))
        return -1;
    port = ntohs(a.sin_port);
    server = fork();
    if (server == 0)
        serve(fd);
    close(fd);
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    return 0;
}

/* ---- the tests ---------------------------------------------------------------------------------------- */

/* after: what follows the server's port, or a whole URL. */
static void open_rig(struct rig *r, const char *after, const char *secret)
{
    static char text[256];

    if (strstr(after, "://"))
        snprintf(text, sizeof(text), "%s", after);
    else
        snprintf(text, sizeof(text), "http://127.0.0.1:%d%s", (int)port, after);
    rig_init(r, DELIVER_HTTP);
    r->bot.command = NULL;
    r->bot.url = text;
    rig_open(r, secret);
}

static void every_row_of_the_table(void **state)
{
    static const struct {
        const char *path;
        enum outcome_kind kind;
        int64_t after_ms;
        const char *error; /* how it begins */
    } rows[] = {
        {"/status/200", OUTCOME_DONE, -1, ""},
        {"/status/201", OUTCOME_DONE, -1, ""},
        {"/status/299/5", OUTCOME_DONE, -1, ""},
        {"/call", OUTCOME_DONE, -1, ""},
        {"/status/410", OUTCOME_REJECTED, -1, "HTTP status 410"},
        {"/status/429/17", OUTCOME_LIMITED, 17000, "HTTP status 429"},
        {"/status/429", OUTCOME_LIMITED, -1, "HTTP status 429"},
        {"/status/502", OUTCOME_UNAVAILABLE, -1, "HTTP status 502"},
        {"/status/503/9", OUTCOME_UNAVAILABLE, 9000, "HTTP status 503"},
        {"/status/504/0", OUTCOME_UNAVAILABLE, 0, "HTTP status 504"},
        {"/status/301", OUTCOME_RETRY, -1, "HTTP status 301"},
        {"/status/400", OUTCOME_RETRY, -1, "HTTP status 400"},
        {"/status/401", OUTCOME_RETRY, -1, "HTTP status 401"},
        {"/status/404", OUTCOME_RETRY, -1, "HTTP status 404"},
        {"/status/500/30", OUTCOME_RETRY, 30000, "HTTP status 500"},
        {"/text", OUTCOME_RETRY, -1, "HTTP status 500: \"boom\""},
        {"/reset", OUTCOME_RETRY, -1, ""},
        {"/cut", OUTCOME_RETRY, -1, ""},
        {"/garbage", OUTCOME_RETRY, -1, ""},
        {"/huge", OUTCOME_RETRY, -1, ""},
        {"/hang", OUTCOME_LEASE_EXPIRED, -1, ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct rig r;
        open_rig(&r, rows[i].path, NULL);
        r.box.lease_ms = strcmp(rows[i].path, "/hang") ? 20000 : 500;
        fake_add(&r.box, UPDATE);
        rig_run(&r, 1);
        struct fake_outcome *o = &r.box.outcomes[0];
        if (o->kind != rows[i].kind || o->after_ms != rows[i].after_ms)
            fail_msg("row %zu: %s after %ld: %s", i, outcome_name(o->kind), (long)o->after_ms, o->error);
        check_row(i, !strncmp(o->error, rows[i].error, strlen(rows[i].error)));
        check_row(i, (o->kind == OUTCOME_DONE) == !o->error[0]);
        check_row(i, slots_idle(r.slots));
        rig_close(&r);
    }
}

static void no_handler_there(void **state)
{
    /* a port that nobody listens on: bound, then let go */
    char tls[64];
    const char *const urls[] = {"http://127.0.0.1:1/", "http://nobody.invalid/hook", tls};

    (void)state;
    snprintf(tls, sizeof(tls), "https://127.0.0.1:%d/", (int)port);
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        struct rig r;
        open_rig(&r, urls[i], NULL);
        fake_add(&r.box, UPDATE);
        rig_run(&r, 1);
        check_row(i, r.box.outcomes[0].kind == OUTCOME_UNAVAILABLE);
        check_row(i, r.box.outcomes[0].error[0]);
        rig_close(&r);
    }
}

static void the_request(void **state)
{
    struct rig r;

    (void)state;
    open_rig(&r, "/check?a=b", "s3cret");
    r.box.kind = "odd\r\nEvil: 1\xc3\xa4";
    fake_add(&r.box, UPDATE);
    rig_run(&r, 1);
    assert_string_equal(r.box.outcomes[0].error, "HTTP status 500: nothing");
    rig_close(&r);
}

/* One connection for several events, also after an answer that was a failure. */
static void events_one_after_another(void **state)
{
    struct rig r;

    (void)state;
    open_rig(&r, "/status/200", NULL);
    for (int i = 0; i < 20; i++)
        fake_add(&r.box, UPDATE);
    rig_run(&r, 20);
    for (int i = 0; i < 20; i++)
        assert_int_equal(r.box.outcomes[i].kind, OUTCOME_DONE);
    rig_close(&r);
}

static bool is_idle(struct rig *r)
{
    return slots_idle(r->slots);
}

static void shutdown_and_discard(void **state)
{
    struct rig r;

    (void)state;
    open_rig(&r, "/hang", NULL);
    uint64_t first = fake_add(&r.box, UPDATE);
    rig_run_for(&r, 50);
    assert_true(slots_kill_event(r.slots, first));
    assert_int_equal(fake_outcome(&r.box, first)->kind, OUTCOME_DISCARDED);
    uint64_t second = fake_add(&r.box, UPDATE);
    rig_run_for(&r, 50);
    slots_shutdown(r.slots);
    rig_run_until(&r, is_idle);
    assert_int_equal(fake_outcome(&r.box, second)->kind, OUTCOME_RELEASED);
    rig_close(&r);
}

static void a_bad_url_is_refused(void **state)
{
    struct rig r;
    struct err e = ERR_NONE;

    (void)state;
    open_rig(&r, "/status/200", NULL);
    r.bot.url = (char *)(uintptr_t) "gopher://example.org/";
    assert_int_equal(slots_reconfigure(r.slots, &r.bot, NULL, &e), -1);
    assert_true(e.text[0]);
    fake_add(&r.box, UPDATE); /* the old one still serves */
    rig_run(&r, 1);
    assert_int_equal(r.box.outcomes[0].kind, OUTCOME_DONE);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_the_table),
        cmocka_unit_test(no_handler_there),
        cmocka_unit_test(the_request),
        cmocka_unit_test(events_one_after_another),
        cmocka_unit_test(shutdown_and_discard),
        cmocka_unit_test(a_bad_url_is_refused),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests_name("http", tests, start_server, stop_server);
}
