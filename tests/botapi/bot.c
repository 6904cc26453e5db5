/* See bot.h: getUpdates to the letter, the methods around it, and the recording of all others. */
#include "bot.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <yajl/yajl_tree.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"

#define POLL_TIMEOUT_MAX_S 50

static struct {
    struct bot **v;
    size_t n;
} bots;
static int64_t advanced_ms;

int64_t server_ms(void)
{
    static int64_t start;
    if (!start)
        start = clock_boot_ms();
    return clock_boot_ms() - start;
}

int64_t queue_ms(void)
{
    return server_ms() + __atomic_load_n(&advanced_ms, __ATOMIC_RELAXED);
}

void queue_advance(int64_t ms)
{
    __atomic_add_fetch(&advanced_ms, ms, __ATOMIC_RELAXED);
}

struct bot *bot_new(const char *token, int32_t first_id)
{
    struct bot *b = xcalloc(1, sizeof(*b));
    b->token = xstrdup(token);
    b->id = strtoll(token, NULL, 10);
    pthread_mutex_init(&b->lock, NULL);
    queue_init(&b->queue, first_id);
    b->sending = sender_defaults;
    list_init(&b->faults);
    b->last_poll_at = -SECONDS(3600);
    bots.v = xrealloc(bots.v, (bots.n + 1) * sizeof(*bots.v));
    bots.v[bots.n++] = b;
    return b;
}

struct bot *bot_by_token(struct slice token)
{
    for (size_t i = 0; i < bots.n; i++) {
        if (slice_eq_str(token, bots.v[i]->token))
            return bots.v[i];
    }
    return NULL;
}

struct bot *bot_by_id(int64_t id)
{
    for (size_t i = 0; i < bots.n; i++) {
        if (id == 0 || bots.v[i]->id == id)
            return bots.v[i];
    }
    return NULL;
}

struct bot *bot_next(struct bot *b)
{
    size_t i = 0;
    while (b && i < bots.n && bots.v[i++] != b)
        ;
    return i < bots.n ? bots.v[i] : NULL;
}

void bot_wake(struct bot *b, enum poll_end how)
{
    uint64_t one = 1;
    sender_wake(b->sender);
    if (!b->waiter)
        return;
    if (how != POLL_WAITS)
        b->waiter->ended = how;
    if (write(b->waiter->wake_fd, &one, sizeof(one)) < 0)
        abort();
    if (how != POLL_WAITS)
        b->waiter = NULL;
}

static void reply_error(struct reply *r, int code, const char *description)
{
    r->status = code;
    buf_clear(&r->body);
    buf_printf(&r->body, "{\"ok\":false,\"error_code\":%d,\"description\":", code);
    add_json_string(&r->body, slice_str(description));
    buf_add_char(&r->body, '}');
}

/* An answer of one value with an optional description. */
static void reply_result(struct reply *r, const char *value, const char *description)
{
    r->status = 200;
    buf_printf(&r->body, "{\"ok\":true,\"result\":%s", value);
    if (description) {
        buf_add_str(&r->body, ",\"description\":");
        add_json_string(&r->body, slice_str(description));
    }
    buf_add_char(&r->body, '}');
}

/* allowed_updates: absent, null or malformed leaves the remembered list; nothing known in it means the
 * default. */
static void remember_allowed(struct bot *b, const struct args *a)
{
    const struct arg *arg = args_find(a, "allowed_updates");
    yajl_val list = arg ? yajl_tree_parse(buf_str(&arg->value), NULL, 0) : NULL;

    if (YAJL_IS_ARRAY(list)) {
        uint32_t set = 0;
        for (size_t i = 0; i < list->u.array.len; i++) {
            const char *name = YAJL_GET_STRING(list->u.array.values[i]);
            int kind = name ? update_kind_find(slice_str(name)) : -1;
            set |= kind >= 0 ? UINT32_C(1) << kind : 0;
        }
        b->queue.allowed = set ? set : queue_default_kinds();
    }
    yajl_tree_free(list);
}

/* Fills the reply with what an offset serves now. Returns how many. */
static int serve_updates(struct bot *b, struct asked *q, int limit, struct reply *r)
{
    queue_apply_offset(&b->queue, q->offset, queue_ms());
    buf_clear(&r->body);
    buf_add_str(&r->body, "{\"ok\":true,\"result\":[");
    q->n = queue_answer(&b->queue, limit, &r->body, &q->first, &q->last);
    buf_add_str(&r->body, "]}");
    r->status = 200;
    return q->n;
}

/* How a poll that was ended from outside answers. Returns -1 if its connection ends instead. */
static int end_poll(struct bot *b, enum poll_end how, struct reply *r)
{
    switch (how) {
    case POLL_CONFLICT:
        b->conflicts++;
        reply_error(r, 409,
                    "Conflict: terminated by other getUpdates request; make sure that only one bot "
                    "instance is running");
        return 0;
    case POLL_WEBHOOK:
        reply_error(r, 409, "Conflict: terminated by setWebhook request");
        return 0;
    default:
        return how == POLL_WAITS ? 0 : -1;
    }
}

/* Waits for updates, the lock held (and let go meanwhile). Returns -1 if the client went away or its
 * connection is to end; *how then says in which way. */
static int wait_for_updates(struct bot *b, struct conn *c, struct asked *q, int64_t timeout_ms, int limit,
                            struct reply *r, enum poll_end *how)
{
    struct poll_wait w = {eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), POLL_WAITS};
    int64_t until = clock_boot_ms() + timeout_ms;
    bool gone = false;

    bot_wake(b, POLL_CONFLICT); /* the newer has to wait: the older fails */
    b->waiter = &w;
    while (w.ended == POLL_WAITS && !gone && clock_boot_ms() < until) {
        uint64_t count;
        pthread_mutex_unlock(&b->lock);
        gone = conn_wait(c, w.wake_fd, until - clock_boot_ms());
        pthread_mutex_lock(&b->lock);
        if (read(w.wake_fd, &count, sizeof(count)) > 0 && w.ended == POLL_WAITS &&
            serve_updates(b, q, limit, r))
            break;
    }
    if (b->waiter == &w)
        b->waiter = NULL;
    close(w.wake_fd);
    *how = w.ended;
    return gone || end_poll(b, w.ended, r) ? -1 : 0;
}

/* getUpdates, the lock held. Returns 0, or -1: no answer. */
static int get_updates(struct bot *b, struct conn *c, const struct args *a, struct asked *q, struct reply *r,
                       enum poll_end *how)
{
    if (b->webhook.n) {
        reply_error(r, 409,
                    "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to "
                    "delete the webhook first");
        return 0;
    }
    remember_allowed(b, a);
    int64_t now = server_ms(), timeout = q->timeout;
    int limit = (int)q->limit;
    if (q->offset == b->last_offset && timeout < 3 && now < b->last_poll_at + 3000)
        timeout = 3;
    if (q->offset == b->last_offset && now < b->last_poll_at + 500)
        limit = 1;
    b->last_offset = q->offset;
    b->last_poll_at = now;
    if (serve_updates(b, q, limit, r) || timeout == 0)
        return 0;
    return wait_for_updates(b, c, q, timeout * 1000, limit, r, how);
}

static void set_webhook(struct bot *b, const struct args *a, bool remove, struct reply *r)
{
    struct slice url = remove ? slice_make(NULL, 0) : args_text(a, "url");
    bool had = b->webhook.n > 0;
    struct sender *sender = NULL;
    const char *wrong = NULL;

    if (url.n && !(sender = sender_new(b, a, &wrong))) {
        reply_error(r, 400, wrong);
        return;
    }
    if (!remove)
        remember_allowed(b, a);
    if (args_true(a, "drop_pending_updates"))
        queue_apply_offset(&b->queue, b->queue.tail, queue_ms());
    sender_end(b->sender);
    b->sender = sender;
    buf_clear(&b->webhook);
    buf_add_slice(&b->webhook, url);
    if (url.n)
        bot_wake(b, POLL_WEBHOOK);
    reply_result(r, "true",
                 url.n ? "Webhook was set"
                 : had ? "Webhook was deleted"
                       : "Webhook is already deleted");
}

static void webhook_info(struct bot *b, struct reply *r)
{
    struct buf v = BUF_EMPTY;
    queue_apply_offset(&b->queue, 0, queue_ms());
    buf_add_str(&v, "{\"url\":");
    add_json_string(&v, buf_slice(&b->webhook));
    buf_printf(&v, ",\"has_custom_certificate\":false,\"pending_update_count\":%zu", b->queue.n);
    if (b->sender)
        sender_add_info(b->sender, &v);
    if (b->queue.allowed != queue_default_kinds()) {
        buf_add_str(&v, ",\"allowed_updates\":[");
        const char *comma = "";
        for (int i = 0; i < n_update_kinds; i++) {
            if (!(b->queue.allowed & UINT32_C(1) << i))
                continue;
            buf_printf(&v, "%s\"%s\"", comma, update_kinds[i].name);
            comma = ",";
        }
        buf_add_char(&v, ']');
    }
    buf_add_char(&v, '}');
    reply_result(r, buf_str(&v), NULL);
    buf_free(&v);
}

static void get_me(struct bot *b, struct reply *r)
{
    char *v =
        xasprintf("{\"id\":%lld,\"is_bot\":true,\"first_name\":\"Test bot\",\"username\":\"test_%lld_bot\","
                  "\"can_join_groups\":true,\"can_read_all_group_messages\":false,"
                  "\"supports_inline_queries\":true}",
                  (long long)b->id, (long long)b->id);
    reply_result(r, v, NULL);
    free(v);
}

/* What sends a message answers with one; all else with true. */
static void other_method(struct bot *b, const char *method, const struct args *a, struct reply *r)
{
    static const char *const verbs[] = {"send",     "edit",    "delete",  "answer",  "forward", "copy",
                                        "get",      "set",     "pin",     "unpin",   "ban",     "unban",
                                        "restrict", "promote", "approve", "decline", "create",  "leave",
                                        "close",    "logout",  "stop",    "upload"};
    bool known = false;
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        known = known || !strncmp(method, verbs[i], strlen(verbs[i]));
    if (!known) {
        reply_error(r, 404, "Not Found: method not found");
        return;
    }
    if (strncmp(method, "send", 4) || !strcmp(method, "sendchataction")) {
        reply_result(r, "true", NULL);
        return;
    }
    struct buf v = BUF_EMPTY;
    int64_t chat = args_int(a, "chat_id", 0, INT64_MIN, INT64_MAX);
    buf_printf(&v,
               "{\"message_id\":%zu,\"from\":{\"id\":%lld,\"is_bot\":true,\"first_name\":\"Test bot\"},"
               "\"chat\":{\"id\":%lld,\"type\":\"private\"},\"date\":%lld,\"text\":",
               b->n_asked, (long long)b->id, (long long)chat, (long long)(clock_wall_ms() / 1000));
    add_json_string(&v, args_text(a, "text"));
    buf_add_char(&v, '}');
    reply_result(r, buf_str(&v), NULL);
    buf_free(&v);
}

/* Calls the method, in lower case; the lock is held. Returns 0, or -1: no answer. */
static int call(struct bot *b, struct conn *c, const char *method, const struct args *a, struct asked *q,
                struct reply *r, enum poll_end *how)
{
    if (!strcmp(method, "getupdates"))
        return get_updates(b, c, a, q, r, how);
    if (!strcmp(method, "getme"))
        get_me(b, r);
    else if (!strcmp(method, "getwebhookinfo"))
        webhook_info(b, r);
    else if (!strcmp(method, "setwebhook") || !strcmp(method, "deletewebhook"))
        set_webhook(b, a, method[0] == 'd', r);
    else
        other_method(b, method, a, r);
    return 0;
}

static struct asked *record(struct bot *b, const struct conn *c, struct slice method, const struct args *a)
{
    struct asked *q = xcalloc(1, sizeof(*q));
    struct buf args = BUF_EMPTY;
    const struct arg *allowed = args_find(a, "allowed_updates");

    args_add_json(a, &args);
    q->at = server_ms();
    q->ended_at = -1;
    q->conn = c->number;
    snprintf(q->method, sizeof(q->method), "%.*s", (int)method.n, method.p);
    q->args = buf_steal(&args);
    q->has_offset = args_find(a, "offset") != NULL;
    q->offset = args_int(a, "offset", 0, INT32_MIN, INT32_MAX);
    q->limit = args_int(a, "limit", 100, 1, 100);
    q->timeout = args_int(a, "timeout", 0, 0, POLL_TIMEOUT_MAX_S);
    q->allowed_updates = allowed ? xstrdup(buf_str(&allowed->value)) : NULL;
    b->asked = xrealloc(b->asked, (b->n_asked + 1) * sizeof(struct asked *));
    b->asked[b->n_asked++] = q;
    return q;
}

/* Serves a request of a known bot. */
static int serve(struct bot *b, struct conn *c, struct slice name, const struct args *a)
{
    struct reply r = {0};
    enum poll_end how = POLL_WAITS;
    char method[48];
    int rc = 0;

    snprintf(method, sizeof(method), "%.*s", (int)name.n, name.p);
    for (char *p = method; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    pthread_mutex_lock(&b->lock);
    struct asked *q = record(b, c, name, a);
    struct fault *f = fault_take(&b->faults, method);
    q->fault = f ? fault_type_name(f->type) : NULL;
    if (!f || !fault_is_in_front(f->type))
        rc = call(b, c, method, a, q, &r, &how);
    q->ended_at = server_ms();
    q->status = rc ? 0 : f && f->type == FAULT_STATUS ? f->status : r.status;
    pthread_mutex_unlock(&b->lock);
    if (rc == 0)
        rc = fault_reply(c, &r, f);
    else if (how == POLL_RESET) {
        conn_reset(c);
        rc = 1;
    }
    fault_free(f);
    buf_free(&r.body);
    return rc;
}

/* Whether a token is DIGITS:SECRET at all; if not, Telegram says 404 and not 401. */
static bool is_token(struct slice t)
{
    size_t i = 0;
    while (i < t.n && isdigit((unsigned char)t.p[i]))
        i++;
    return i > 0 && i + 1 < t.n && t.p[i] == ':';
}

int bot_serve(struct conn *c, struct slice path, struct slice query)
{
    const char *slash = memchr(path.p, '/', path.n);
    struct slice token = slice_make(path.p, slash ? (size_t)(slash - path.p) : path.n);
    struct slice name = slash ? slice_make(slash + 1, path.n - token.n - 1) : slice_make("", 0);
    struct bot *b = bot_by_token(token);
    struct args a = {NULL, 0};
    int rc;

    if (name.n > 5 && !memcmp(name.p, "test/", 5))
        name = slice_make(name.p + 5, name.n - 5);
    if (!b || !name.n) {
        struct reply r = {0};
        bool malformed = !is_token(token) || !name.n;
        reply_error(&r, malformed ? 404 : 401, malformed ? "Not Found" : "Unauthorized");
        rc = conn_reply(c, &r);
        buf_free(&r.body);
        return rc;
    }
    args_add_urlencoded(&a, query);
    args_add_body(&a, c->content_type, buf_slice(&c->body));
    rc = serve(b, c, name, &a);
    args_free(&a);
    return rc;
}
