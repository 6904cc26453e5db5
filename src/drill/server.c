#include "drill/server.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"
#include "net/loop.h"
#include "wire/json.h"
#include "wire/url.h"

#define BODY_MAX (8u << 20)
#define GIVEN_MAX 100

struct server {
    struct loop *loop;
    struct http_server *http;
    server_post_fn *on_post;
    void *arg;
    struct server_state state;
    int64_t next_id;
    const char *hook;
    enum poll_fault fault;
    int64_t fault_above;
    struct http_exchange *waiting; /* a getUpdates that waits for updates */
    struct timer wait;
    struct http_exchange *hanging; /* one that gets no answer */
    bool limit_calls;
    int64_t limited_chat, limited_until;
};

static void reply(struct http_exchange *x, const char *text)
{
    http_reply(x, 200, NULL, -1, slice_str(text));
}

static void reply_limited(struct http_exchange *x, int wait_s)
{
    char *text =
        xasprintf("{\"ok\":false,\"error_code\":429,\"description\":\"Too Many Requests: retry after "
                  "%d\",\"parameters\":{\"retry_after\":%d}}",
                  wait_s, wait_s);
    http_reply(x, 429, NULL, wait_s, slice_str(text));
    free(text);
}

/* ---- arguments of a call: in the query, or in a JSON or urlencoded body ------------------------- */

static int64_t number_of(struct slice text)
{
    int64_t v;

    return text_to_i64(text, INT64_MIN, INT64_MAX, &v) == 0 ? v : 0;
}

/* A number; 0: it is not there. A chat's @name counts as 1. */
static int64_t argument(const struct http_server_request *r, const struct json *body, const char *name)
{
    const struct json *v = json_get(body, name);
    struct buf value = BUF_EMPTY;
    int64_t n = 0;

    if (v && json_to_i64(v, &n) == 0)
        return n;
    if (v && json_type(v) == JSON_STRING)
        buf_add_slice(&value, json_string(v));
    else if (query_get(r->query, name, &value) != 1)
        (void)query_get(r->body, name, &value);
    n = value.n && value.p[0] == '@' ? 1 : number_of(buf_slice(&value));
    buf_free(&value);
    return n;
}

/* ---- getUpdates --------------------------------------------------------------------------------- */

/* Answers with what is not confirmed; false: there is nothing. */
static bool give(struct server *s, struct http_exchange *x)
{
    struct buf out = BUF_EMPTY;
    unsigned n = 0;

    buf_add_str(&out, "{\"ok\":true,\"result\":[");
    for (size_t i = 0; i < s->state.n_updates && !s->state.withheld && n < GIVEN_MAX; i++)
        if (!s->state.updates[i].confirmed) {
            buf_printf(&out, "%s%s", n++ ? ",\n" : "", s->state.updates[i].text);
            s->state.updates[i].given++;
        }
    buf_add_str(&out, "]}");
    if (n)
        http_reply(x, 200, NULL, -1, buf_slice(&out));
    buf_free(&out);
    return n > 0;
}

static void waiter_left(void *arg)
{
    struct server *s = arg;

    s->waiting = NULL;
    s->state.waiting = false;
    timer_stop(&s->wait);
}

static void wait_over(void *arg)
{
    struct server *s = arg;
    struct http_exchange *x = s->waiting;

    waiter_left(s);
    reply(x, "{\"ok\":true,\"result\":[]}");
}

/* Something new is there. */
static void wake(struct server *s)
{
    struct http_exchange *x = s->waiting;

    if (x && give(s, x))
        waiter_left(s);
}

static void hanger_left(void *arg)
{
    struct server *s = arg;

    s->hanging = NULL;
    s->state.gave_up = true;
}

static void confirm(struct server *s, int64_t offset)
{
    if (offset > s->state.offset)
        s->state.offset = offset;
    for (size_t i = 0; i < s->state.n_updates; i++)
        if (s->state.updates[i].id < offset)
            s->state.updates[i].confirmed = true;
}

/* Returns whether the fault that was asked for took the request. */
static bool have_fault(struct server *s, struct http_exchange *x, int64_t offset)
{
    enum poll_fault fault = s->fault;

    if (fault == POLL_GOOD || (fault == POLL_LOST && offset <= s->fault_above))
        return false;
    s->fault = POLL_GOOD;
    s->state.faulted = true;
    s->state.faulted_at = clock_now();
    if (fault == POLL_LIMITED) {
        reply_limited(x, SERVER_POLL_WAIT_S);
    } else if (fault == POLL_CUT) {
        http_abort(x);
    } else if (fault == POLL_BAD) {
        http_reply(x, 502, "text/html", -1, slice_str("<html><body>502 Bad Gateway</body></html>"));
    } else {
        if (fault == POLL_HANGS)
            confirm(s, offset);
        if (s->hanging)
            http_abort(s->hanging);
        s->hanging = x;
        http_on_gone(x, hanger_left, s);
    }
    return true;
}

static void get_updates(struct server *s, struct http_exchange *x, const struct http_server_request *r,
                        const struct json *body)
{
    int64_t offset = argument(r, body, "offset"), timeout = argument(r, body, "timeout");

    s->state.polls++;
    s->state.polled_at = clock_now();
    if (have_fault(s, x, offset))
        return;
    confirm(s, offset);
    if (give(s, x))
        return;
    if (s->waiting)
        wait_over(s);
    s->waiting = x;
    s->state.waiting = true;
    http_on_gone(x, waiter_left, s);
    timer_set(&s->wait, clock_now() + SECONDS(timeout > 0 && timeout < 50 ? timeout : 0));
}

/* ---- calls -------------------------------------------------------------------------------------- */

static void take_call(struct server *s, struct http_exchange *x, struct slice method, int64_t chat)
{
    int64_t now = clock_now();

    if (chat && s->limit_calls) {
        s->limit_calls = false;
        s->limited_chat = chat;
        s->limited_until = now + SECONDS(SERVER_CALL_WAIT_S);
    }
    bool limited = chat && chat == s->limited_chat && now < s->limited_until;
    s->state.calls = xrealloc(s->state.calls, (s->state.n_calls + 1) * sizeof(*s->state.calls));
    s->state.calls[s->state.n_calls++] =
        (struct server_call){now, xstrndup(method.p, method.n), chat, limited};
    if (limited) {
        reply_limited(x, SERVER_CALL_WAIT_S);
        return;
    }
    char *text = xasprintf("{\"ok\":true,\"result\":{\"message_id\":%zu,\"date\":%lld,\"chat\":{\"id\":%lld,"
                           "\"type\":\"private\"},\"text\":\"\"}}",
                           s->state.n_calls, (long long)(clock_wall_ms() / 1000), (long long)chat);
    reply(x, chat ? text : "{\"ok\":true,\"result\":true}");
    free(text);
}

static void reply_hook(struct server *s, struct http_exchange *x)
{
    char *text = xasprintf("{\"ok\":true,\"result\":{\"url\":\"%s\",\"has_custom_certificate\":false,"
                           "\"pending_update_count\":0}}",
                           s->hook ? s->hook : "");
    reply(x, text);
    free(text);
}

static void bot_api(struct server *s, struct http_exchange *x, const struct http_server_request *r,
                    struct slice method)
{
    struct json *body = json_parse(r->body, NULL);

    if (slice_eq_nocase(method, "getUpdates"))
        get_updates(s, x, r, body);
    else if (slice_eq_nocase(method, "getMe"))
        reply(x, "{\"ok\":true,\"result\":{\"id\":1,\"is_bot\":true,\"first_name\":\"drill\","
                 "\"username\":\"drill_bot\"}}");
    else if (slice_eq_nocase(method, "getWebhookInfo"))
        reply_hook(s, x);
    else if (slice_eq_nocase(method, "setWebhook") || slice_eq_nocase(method, "deleteWebhook"))
        reply(x, "{\"ok\":true,\"result\":true}");
    else
        take_call(s, x, method, argument(r, body, "chat_id"));
    json_free(body);
}

/* ---- alerts ------------------------------------------------------------------------------------- */

static char *text_of(const struct json *v)
{
    struct slice s = json_string(v);

    return xstrndup(s.n ? s.p : "", s.n);
}

static void take_alert(struct server *s, struct http_exchange *x, const struct http_server_request *r)
{
    struct json *body = json_parse(r->body, NULL);
    struct slice name = json_string(json_get(body, "alert"));

    if (name.n && name.n < sizeof(s->state.alerts->name)) {
        s->state.alerts = xrealloc(s->state.alerts, (s->state.n_alerts + 1) * sizeof(*s->state.alerts));
        struct server_alert *a = &s->state.alerts[s->state.n_alerts++];
        *a = (struct server_alert){.over = slice_eq_str(json_string(json_get(body, "state")), "over"),
                                   .message = text_of(json_get(body, "message"))};
        memcpy(a->name, name.p, name.n);
    }
    json_free(body);
    http_reply(x, 204, NULL, -1, slice_make(NULL, 0));
}

/* ---- the listener ------------------------------------------------------------------------------- */

/* The method of /bot<TOKEN>/<method>; empty: it is another path. */
static struct slice method_of(struct slice path)
{
    const char *end = path.p + path.n, *p = path.p;

    if (path.n < 5 || memcmp(p, "/bot", 4) != 0 || !(p = memchr(p + 4, '/', (size_t)(end - p - 4))))
        return slice_make("", 0);
    return slice_make(p + 1, (size_t)(end - p - 1));
}

static void on_request(void *arg, struct http_exchange *x, const struct http_server_request *r)
{
    struct server *s = arg;
    struct slice method = method_of(r->path);

    if (method.n)
        bot_api(s, x, r, method);
    else if (slice_eq_str(r->path, "/alert"))
        take_alert(s, x, r);
    else if (slice_eq_str(r->path, "/handler"))
        s->on_post(s->arg, x, r);
    else
        http_reply(x, 404, NULL, -1,
                   slice_str("{\"ok\":false,\"error_code\":404,\"description\":\"Not Found\"}"));
}

struct server *server_new(struct loop *l, server_post_fn *on_post, void *arg, struct err *e)
{
    const struct http_server_options o = {.address = "127.0.0.1:0",
                                          .max_body = BODY_MAX,
                                          .max_connections = 500,
                                          .header_timeout_ms = SECONDS(10),
                                          .body_timeout_ms = SECONDS(30),
                                          .idle_timeout_ms = MINUTES(5)};
    struct server *s = xcalloc(1, sizeof(*s));

    s->loop = l;
    s->on_post = on_post;
    s->arg = arg;
    s->next_id = 100000000 + (int64_t)random_below(100000000);
    timer_init(&s->wait, l, wait_over, s);
    s->http = http_server_new(l, &o, on_request, s, e);
    if (s->http)
        return s;
    server_free(s);
    return NULL;
}

void server_free(struct server *s)
{
    if (!s)
        return;
    server_reset(s);
    http_server_free(s->http);
    free(s);
}

uint16_t server_port(const struct server *s)
{
    return http_server_port(s->http);
}

const struct server_state *server_state(const struct server *s)
{
    return &s->state;
}

/* ---- what checks want --------------------------------------------------------------------------- */

void server_reset(struct server *s)
{
    struct server_state *t = &s->state;

    for (size_t i = 0; i < t->n_updates; i++)
        free(t->updates[i].text);
    for (size_t i = 0; i < t->n_calls; i++)
        free(t->calls[i].method);
    for (size_t i = 0; i < t->n_alerts; i++)
        free(t->alerts[i].message);
    free(t->updates);
    free(t->calls);
    free(t->alerts);
    if (s->waiting)
        http_abort(s->waiting);
    if (s->hanging)
        http_abort(s->hanging);
    timer_stop(&s->wait);
    *t = (struct server_state){0};
    s->waiting = s->hanging = NULL;
    s->fault = POLL_GOOD;
    s->limit_calls = false;
    s->hook = NULL;
    s->limited_chat = s->limited_until = 0;
}

int64_t server_give(struct server *s, int64_t chat)
{
    struct server_state *t = &s->state;
    int64_t id = s->next_id++;
    char *text =
        xasprintf("{\"update_id\":%lld,\n\"message\":{\"message_id\":%lld,\"from\":{\"id\":%lld,\"is_bot\":"
                  "false,\"first_name\":\"Drill\"},\"chat\":{\"id\":%lld,\"first_name\":\"Drill\",\"type\":"
                  "\"private\"},\"date\":%lld,\"text\":\"tgspool drill %lld\"}}",
                  (long long)id, (long long)id, (long long)chat, (long long)chat,
                  (long long)(clock_wall_ms() / 1000), (long long)id);

    t->updates = xrealloc(t->updates, (t->n_updates + 1) * sizeof(*t->updates));
    t->updates[t->n_updates++] = (struct server_update){.id = id, .chat = chat, .text = text};
    wake(s);
    return id;
}

void server_give_again(struct server *s, int64_t update_id)
{
    for (size_t i = 0; i < s->state.n_updates; i++)
        if (s->state.updates[i].id == update_id)
            s->state.updates[i].confirmed = false;
    wake(s);
}

void server_taken(struct server *s, int64_t update_id, bool lost)
{
    for (size_t i = 0; i < s->state.n_updates; i++)
        if (s->state.updates[i].id == update_id) {
            s->state.updates[i].given++;
            s->state.updates[i].confirmed = !lost;
            s->state.updates[i].lost |= lost;
        }
}

void server_set_hook(struct server *s, const char *url)
{
    s->hook = url;
}

void server_withhold(struct server *s, bool on)
{
    s->state.withheld = on;
    if (!on)
        wake(s);
}

void server_fault(struct server *s, enum poll_fault fault, int64_t above)
{
    s->fault = fault;
    s->fault_above = above;
    s->state.faulted = s->state.gave_up = false;
}

void server_limit_calls(struct server *s)
{
    s->limit_calls = true;
}
