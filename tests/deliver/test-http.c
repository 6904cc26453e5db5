/* http against a small server in a process of its own, which behaves as the path of the request says. */
#include "../unit/unit.h"

#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "deliver/slots.h"
#include "rig.h"
#include "server.h"

#define UPDATE LIT("{\"update_id\":101}")

static uint16_t port;

/* ---- the server --------------------------------------------------------------------------------- */

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

static const struct call_row {
    const char *path, *type, *body;
    const char *said; /* what is recorded of it */
} calls[] = {
    {"/call", "application/json", "{\"method\":\"sendMessage\",\"chat_id\":7}",
     "sendMessage chat:7 {\"method\":\"sendMessage\",\"chat_id\":7}\n"},
    {"/form", "application/x-www-form-urlencoded", "method=sendMessage&chat_id=%40a", NULL},
    {"/multipart", "multipart/form-data; boundary=b",
     "--b\r\nContent-Disposition: form-data; name=\"method\"\r\n\r\nsendPhoto\r\n"
     "--b\r\nContent-Disposition: form-data; name=\"photo\"; filename=\"a\"\r\n\r\nbytes\r\n--b--\r\n",
     NULL},
    {"/ok", "application/json", "{\"ok\":true}", ""},
    {"/plain", "text/plain", "{\"method\":\"sendMessage\"}", ""},
    {"/unreadable", "application/json",
     "{\"method\":", "refused: the answer's body cannot be read as a call  event:0 {\"method\":\n"},
    {"/forbidden", "application/json", "{\"method\":\"getMe\"}",
     "refused: this method is not taken from an answer getMe event:0 {\"method\":\"getMe\"}\n"},
};

static bool send_call(int fd, const char *path)
{
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        if (strcmp(path, calls[i].path))
            continue;
        server_answer(fd, 200, calls[i].type, "", calls[i].body);
        return true;
    }
    return false;
}

/* Returns whether the connection stays. */
static bool serve_request(int fd, struct buf *b)
{
    char path[128];
    int status = 0, after = -1;

    if (sscanf(b->p, "POST %127s", path) != 1)
        _exit(1);
    if (sscanf(path, "/status/%d/%d", &status, &after) >= 1) {
        char header[64] = "";
        if (after >= 0)
            snprintf(header, sizeof(header), "Retry-After: %d\r\n", after);
        server_answer(fd, status, "text/html", header, "<b/>");
        return true;
    }
    if (!strcmp(path, "/check?a=b")) {
        server_answer(fd, 500, "text/plain", "", what_is_missing(buf_str(b)));
        return true;
    }
    if (!strcmp(path, "/text"))
        server_answer(fd, 500, "application/json", "Connection: close\r\n", "\"boom\"");
    else if (!strcmp(path, "/huge-call"))
        server_send(fd,
                    "HTTP/1.1 200 X\r\nContent-Type: application/json\r\nContent-Length: 999999999\r\n\r\nx");
    else if (!strcmp(path, "/huge-error"))
        server_send(fd, "HTTP/1.1 503 X\r\nContent-Length: 999999999\r\n\r\nx");
    else if (send_call(fd, path))
        ;
    else if (!strcmp(path, "/cut"))
        server_send(fd, "HTTP/1.1 200 X\r\nContent-Length: 100\r\n\r\nhalf");
    else if (!strcmp(path, "/garbage"))
        server_send(fd, "SSH-2.0-OpenSSH_9.2\r\n\r\n");
    else if (!strcmp(path, "/huge"))
        server_send(fd, "HTTP/1.1 200 X\r\nContent-Length: 999999999\r\n\r\nx");
    else if (!strcmp(path, "/hang"))
        pause();
    else
        server_reset(fd);
    return false;
}

static int start_server(void **state)
{
    (void)state;
    return server_start(serve_request, &port);
}

static int stop_server(void **state)
{
    (void)state;
    server_stop();
    return 0;
}

/* ---- the tests ---------------------------------------------------------------------------------- */

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
        {"/huge", OUTCOME_DONE, -1, ""},
        {"/huge-call", OUTCOME_DONE, -1, ""},
        {"/huge-error", OUTCOME_UNAVAILABLE, -1, "the answer of "},
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

/* A call in the answer is kept as it came; one that cannot be sent, too; neither changes that the event is done. */
static void calls_in_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i <= ARRAY_LEN(calls); i++) {
        struct rig r;
        bool huge = i == ARRAY_LEN(calls);
        open_rig(&r, huge ? "/huge-call" : calls[i].path, NULL);
        fake_add(&r.box, UPDATE);
        rig_run(&r, 1);
        const struct fake_outcome *o = &r.box.outcomes[0];
        check_row(i, o->kind == OUTCOME_DONE);
        if (huge)
            assert_string_equal(o->said, "refused: the call in the answer is larger than 8 MiB  event:0 \n");
        else if (calls[i].said)
            assert_string_equal(o->said, calls[i].said);
        else
            check_row(i, strncmp(o->said, "send", 4) == 0 && strstr(o->said, calls[i].body));
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
        cmocka_unit_test(every_row_of_the_table),   cmocka_unit_test(calls_in_answers),
        cmocka_unit_test(no_handler_there),         cmocka_unit_test(the_request),
        cmocka_unit_test(events_one_after_another), cmocka_unit_test(shutdown_and_discard),
        cmocka_unit_test(a_bad_url_is_refused),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests_name("http", tests, start_server, stop_server);
}
