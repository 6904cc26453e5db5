/* Calls against a small Bot API server, which behaves as the method's name says: what each answer becomes, what is sent,
 * and that nothing is sent twice that says `once`. */
#include "../unit/unit.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "deliver/slots.h"
#include "rig.h"
#include "server.h"

/* What the server's processes tell. */
static struct shared {
    unsigned requests;
    char last[4096];
    size_t n_last;
} * shared;

static uint16_t port;
static char api_root[64];

/* ---- the server --------------------------------------------------------------------------------- */

#define OK "{\"ok\":true,\"result\":true}"
#define LIMITED "{\"ok\":false,\"error_code\":429,\"description\":\"Too Many Requests\""
#define MIGRATED                                                                                  \
    "{\"ok\":false,\"error_code\":400,\"description\":\"Bad Request: group chat was upgraded to " \
    "a supergroup chat\",\"parameters\":{\"migrate_to_chat_id\":-100777}}"

static const struct answer_row {
    const char *method;
    int status;
    const char *type, *headers, *body;
} answers[] = {
    {"sendOk", 200, "application/json", "", OK},
    {"limited", 429, "application/json", "", LIMITED ",\"parameters\":{\"retry_after\":17}}"},
    {"limitedForEver", 429, "application/json", "",
     LIMITED ",\"parameters\":{\"retry_after\":9223372036854775807}}"},
    {"limitedByHeader", 429, "text/html", "Retry-After: 9\r\n", "<html>"},
    {"limitedForSomeTime", 429, "application/json", "", LIMITED "}"},
    {"unauthorized", 401, "application/json", "",
     "{\"ok\":false,\"error_code\":401,\"description\":\"Unauthorized\"}"},
    {"unknownToken", 404, "application/json", "",
     "{\"ok\":false,\"error_code\":404,\"description\":\"Not Found\"}"},
    {"noSuchMethod", 404, "application/json", "",
     "{\"ok\":false,\"error_code\":404,\"description\":\"Not Found: method not found\"}"},
    {"migrated", 400, "application/json", "", MIGRATED},
    {"badRequest", 400, "application/json", "",
     "{\"ok\":false,\"error_code\":400,\"description\":\"Bad Request: chat not found\"}"},
    {"forbidden", 403, "application/json", "",
     "{\"ok\":false,\"error_code\":403,\"description\":\"Forbidden: bot was blocked by the user\"}"},
    {"internalError", 500, "application/json", "",
     "{\"ok\":false,\"error_code\":500,\"description\":\"Internal Server Error\"}"},
    {"badGateway", 502, "text/html", "", "<html>"},
    {"tooLarge", 413, "text/html", "", "<html>"},
    {"portal", 200, "text/html", "", "<html>log in"},
    {"redirected", 302, "text/html", "Location: http://127.0.0.1/\r\n", ""},
};

static bool serve(int fd, struct buf *b)
{
    char path[128], token[64], method[64];

    __atomic_add_fetch(&shared->requests, 1, __ATOMIC_SEQ_CST);
    shared->n_last = b->n < sizeof(shared->last) ? b->n : sizeof(shared->last) - 1;
    memcpy(shared->last, b->p, shared->n_last);
    shared->last[shared->n_last] = '\0';
    if (sscanf(b->p, "POST %127s", path) != 1 || sscanf(path, "/bot%63[^/]/%63s", token, method) != 2)
        _exit(1);
    if (strcmp(token, "4242:NEWTOKEN") == 0)
        strcpy(method, "sendOk");
    for (size_t i = 0; i < ARRAY_LEN(answers); i++)
        if (strcmp(method, answers[i].method) == 0) {
            server_answer(fd, answers[i].status, answers[i].type, answers[i].headers, answers[i].body);
            return true;
        }
    if (strcmp(method, "okOnceThenReset") == 0) {
        if (shared->requests == 1) {
            server_answer(fd, 200, "application/json", "", OK);
            return true;
        }
        server_reset(fd);
    } else if (strcmp(method, "hang") == 0) {
        pause();
    } else if (strcmp(method, "cut") == 0) {
        server_send(fd, "HTTP/1.1 200 X\r\nContent-Length: 100\r\n\r\n{\"ok\":true");
    } else {
        server_reset(fd);
    }
    return false;
}

static int start_server(void **state)
{
    (void)state;
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (server_start(serve, &port))
        return -1;
    snprintf(api_root, sizeof(api_root), "http://127.0.0.1:%u", (unsigned)port);
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    server_stop();
    return 0;
}

/* ---- the tests ---------------------------------------------------------------------------------- */

/* A rig with one call of this method. */
static void one_call(struct rig *r, const char *method, bool once)
{
    rig_init(r, DELIVER_PULL);
    r->box.kind = method;
    r->box.call.once = once;
    snprintf(r->box.call.content_type, sizeof(r->box.call.content_type), "application/json");
    r->box.lease_ms = strcmp(method, "hang") ? 20000 : 400;
    shared->requests = 0;
    fake_add(&r->box, LIT("{\"chat_id\":7}"));
}

struct outcome_row {
    const char *method;
    enum outcome_kind kind;
    int64_t after_ms;
    const char *error; /* a part of it */
};

static void check_rows(const struct outcome_row *rows, size_t n, bool once)
{
    for (size_t i = 0; i < n; i++) {
        struct rig r;
        one_call(&r, rows[i].method, once);
        rig_open_calls(&r, api_root, NULL);
        rig_run(&r, 1);
        const struct fake_outcome *o = &r.box.outcomes[0];
        if (o->kind != rows[i].kind || o->after_ms != rows[i].after_ms || !strstr(o->error, rows[i].error))
            fail_msg("%s: %s after %ld: %s", rows[i].method, outcome_name(o->kind), (long)o->after_ms,
                     o->error);
        check_row(i, (o->kind == OUTCOME_DONE) == !o->error[0]);
        check_row(i, !strstr(o->error, "TOKEN"));
        check_row(i, slots_idle(r.slots));
        rig_close(&r);
    }
}

static void every_row_of_the_table(void **state)
{
    static const struct outcome_row rows[] = {
        {"sendOk", OUTCOME_DONE, -1, ""},
        {"limited", OUTCOME_LIMITED, 17000, "429"},
        {"limitedForEver", OUTCOME_LIMITED, INT64_C(365) * 24 * 3600 * 1000, "429"},
        {"limitedByHeader", OUTCOME_LIMITED, 9000, "429"},
        {"limitedForSomeTime", OUTCOME_LIMITED, 5000, "429"},
        {"unauthorized", OUTCOME_UNAVAILABLE, -1, "401"},
        {"unknownToken", OUTCOME_UNAVAILABLE, -1, "404"},
        {"noSuchMethod", OUTCOME_REJECTED, -1, "no method noSuchMethod"},
        {"migrated", OUTCOME_REJECTED, -1, "-100777"},
        {"badRequest", OUTCOME_REJECTED, -1, "400: Bad Request: chat not found"},
        {"forbidden", OUTCOME_REJECTED, -1, "blocked by the user"},
        {"internalError", OUTCOME_UNAVAILABLE, -1, "500"},
        {"badGateway", OUTCOME_UNAVAILABLE, -1, "502"},
        {"tooLarge", OUTCOME_REJECTED, -1, "413"},
        {"portal", OUTCOME_UNAVAILABLE, -1, "not the Bot API"},
        {"redirected", OUTCOME_UNAVAILABLE, -1, "302"},
        {"reset", OUTCOME_RETRY, -1, "; maybe sent"},
        {"cut", OUTCOME_RETRY, -1, "; maybe sent"},
        {"hang", OUTCOME_RETRY, -1, "; maybe sent"},
        {"deleteWebhook", OUTCOME_REJECTED, -1, "not sent"},
        {"../x", OUTCOME_REJECTED, -1, "no name of a method"},
    };

    (void)state;
    check_rows(rows, ARRAY_LEN(rows), false);
}

static void once_is_not_repeated(void **state)
{
    static const struct outcome_row rows[] = {
        {"sendOk", OUTCOME_DONE, -1, ""},
        {"limited", OUTCOME_LIMITED, 17000, "429"}, /* Telegram says that it did nothing */
        {"unauthorized", OUTCOME_UNAVAILABLE, -1, "401"},
        {"internalError", OUTCOME_REJECTED, -1, "maybe sent, not repeated"},
        {"badGateway", OUTCOME_REJECTED, -1, "maybe sent, not repeated"},
        {"reset", OUTCOME_REJECTED, -1, "maybe sent, not repeated"},
        {"cut", OUTCOME_REJECTED, -1, "maybe sent, not repeated"},
        {"hang", OUTCOME_REJECTED, -1, "maybe sent, not repeated"},
    };
    struct rig r;

    (void)state;
    check_rows(rows, ARRAY_LEN(rows), true);
    /* one that was being sent when its process was killed */
    one_call(&r, "sendOk", true);
    r.box.interrupted = 1;
    rig_open_calls(&r, api_root, NULL);
    rig_run(&r, 1);
    assert_int_equal(r.box.outcomes[0].kind, OUTCOME_REJECTED);
    assert_non_null(strstr(r.box.outcomes[0].error, "maybe sent, not repeated"));
    assert_int_equal(shared->requests, 0);
    rig_close(&r);
}

/* A reused connection that is reset is tried again at once, but not for what says `once`. */
static void a_reused_connection(void **state)
{
    (void)state;
    for (int once = 0; once < 2; once++) {
        struct rig r;
        one_call(&r, "okOnceThenReset", once);
        rig_open_calls(&r, api_root, NULL);
        rig_run(&r, 1);
        fake_add(&r.box, LIT("{}")); /* not before: it would go out beside the first */
        rig_run(&r, 2);
        assert_int_equal(r.box.outcomes[0].kind, OUTCOME_DONE);
        assert_int_equal(r.box.outcomes[1].kind, once ? OUTCOME_REJECTED : OUTCOME_RETRY);
        if (once)
            assert_int_equal(shared->requests, 2);
        rig_close(&r);
    }
}

static void the_request(void **state)
{
    struct rig r;

    (void)state;
    one_call(&r, "sendOk", false);
    snprintf(r.box.call.content_type, sizeof(r.box.call.content_type), "multipart/form-data; boundary=x");
    rig_open_calls(&r, api_root, NULL);
    rig_run(&r, 1);
    assert_int_equal(r.box.outcomes[0].kind, OUTCOME_DONE);
    assert_int_equal(strncmp(shared->last, "POST /bot" CALLS_TOKEN "/sendOk HTTP/1.1\r\n", 30), 0);
    assert_non_null(strstr(shared->last, "Content-Type: multipart/form-data; boundary=x\r\n"));
    assert_non_null(strstr(shared->last, "\r\n\r\n{\"chat_id\":7}"));
    assert_string_equal(r.box.outcomes[0].said, "");
    rig_close(&r);
}

/* No connection, and a name that does not resolve: nothing was sent, whatever it says. */
static void nobody_there(void **state)
{
    static const char *const roots[] = {"http://127.0.0.1:1", "http://nobody.invalid"};

    (void)state;
    for (size_t i = 0; i < 2 * ARRAY_LEN(roots); i++) {
        struct rig r;
        one_call(&r, "sendOk", i % 2);
        rig_open_calls(&r, roots[i / 2], NULL);
        rig_run(&r, 1);
        check_row(i, r.box.outcomes[0].kind == OUTCOME_UNAVAILABLE);
        rig_close(&r);
    }
}

/* A token that was replaced in its file is used from the next try on, by all slots. */
static void a_new_token(void **state)
{
    struct rig r;

    (void)state;
    one_call(&r, "unauthorized", false);
    rig_open_calls(&r, api_root, "4242:NEWTOKEN");
    rig_run(&r, 1);
    assert_int_equal(r.box.outcomes[0].kind, OUTCOME_UNAVAILABLE);
    assert_int_equal(r.rereads, 1);
    assert_non_null(strstr(r.box.outcomes[0].error, "holds another one"));
    fake_add(&r.box, LIT("{}"));
    rig_run(&r, 2);
    assert_int_equal(r.box.outcomes[1].kind, OUTCOME_DONE);
    assert_int_equal(r.rereads, 1);
    rig_close(&r);
}

static void shutdown_releases(void **state)
{
    struct rig r;

    (void)state;
    one_call(&r, "hang", false);
    r.box.lease_ms = 20000;
    r.bot.shutdown_wait_ms = 200;
    rig_open_calls(&r, api_root, NULL);
    rig_run_for(&r, 200);
    assert_int_equal(slots_busy(r.slots), 1);
    slots_shutdown(r.slots);
    rig_run(&r, 1);
    assert_int_equal(r.box.outcomes[0].kind, OUTCOME_RELEASED);
    assert_true(slots_idle(r.slots));
    rig_close(&r);
}

/* The same configuration changes nothing; another lets the breaker try at once. */
static void reload(void **state)
{
    struct rig r;
    struct err e = ERR_NONE;
    struct slots_calls calls;

    (void)state;
    one_call(&r, "sendOk", false);
    rig_open_calls(&r, api_root, NULL);
    calls = (struct slots_calls){.bot = &r.bot, .token = CALLS_TOKEN};
    assert_int_equal(slots_reconfigure_calls(r.slots, &calls, &e), 0);
    assert_int_equal(r.box.probed, 0);
    calls.token = "4242:NEWTOKEN";
    assert_int_equal(slots_reconfigure_calls(r.slots, &calls, &e), 0);
    assert_int_equal(r.box.probed, 1);
    rig_run(&r, 1);
    assert_non_null(strstr(shared->last, "/bot4242:NEWTOKEN/sendOk "));
    r.bot.api_root = (char *)(uintptr_t) "ftp://x";
    assert_int_equal(slots_reconfigure_calls(r.slots, &calls, &e), -1);
    assert_int_equal(r.box.probed, 1);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_the_table), cmocka_unit_test(once_is_not_repeated),
        cmocka_unit_test(a_reused_connection),    cmocka_unit_test(the_request),
        cmocka_unit_test(nobody_there),           cmocka_unit_test(a_new_token),
        cmocka_unit_test(shutdown_releases),      cmocka_unit_test(reload),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, start_server, stop_server);
}
