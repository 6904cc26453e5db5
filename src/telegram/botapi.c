/* Calls of the Bot API, and the classes of their failures (models: telegram-bot-api's Query.cpp for the
 * answers).
 *
 * Only what is JSON of the Bot API's shape counts as Telegram's word. Everything else, whatever its status,
 * may come from a proxy, a load balancer or a captive portal on the way and is transient: no token is
 * declared dead and no update passed by because of an HTML page. */
#include "telegram/botapi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "core/kinds.h"
#include "wire/json.h"

/* Telegram's answers end near 4 MiB; a server of one's own may have other ideas. */
#define ANSWER_MAX ((size_t)16 << 20)
#define CONNECT_TIMEOUT_MS SECONDS(15)
#define RETRY_AFTER_MAX_S (365 * 24 * 3600) /* as of the header: whoever waits multiplies it */

struct botapi {
    struct http_client *client;
    struct buf token;
    struct buf path, body; /* of the call under way */
    bool wants_updates;
    botapi_fn *fn;
    void *arg;
};

struct botapi *botapi_new(struct loop *l, const struct botapi_options *o, struct err *e)
{
    size_t n = strlen(o->api_root);
    while (n > 0 && o->api_root[n - 1] == '/')
        n--;
    char *root = xstrndup(o->api_root, n);
    struct http_client_options ho = {
        .base_url = root,
        .ca_file = o->ca_file,
        .proxy_url = o->proxy_url,
        .ip = o->ip,
        .connect_timeout_ms = CONNECT_TIMEOUT_MS,
        .max_body = ANSWER_MAX,
    };
    struct http_client *client = http_client_new(l, &ho, e);

    free(root);
    if (!client)
        return NULL;
    struct botapi *a = xcalloc(1, sizeof(*a));
    a->client = client;
    botapi_set_token(a, o->token);
    return a;
}

void botapi_free(struct botapi *a)
{
    if (!a)
        return;
    http_client_free(a->client);
    buf_free(&a->token);
    buf_free(&a->path);
    buf_free(&a->body);
    free(a);
}

bool botapi_set_token(struct botapi *a, const char *token)
{
    if (slice_eq_secret(buf_slice(&a->token), slice_str(token)))
        return false;
    buf_clear(&a->token);
    buf_add_str(&a->token, token);
    return true;
}

void botapi_reply_moved(struct botapi_reply *r)
{
    r->updates = (struct update_answer){.updates = NULL};
    r->body = BUF_EMPTY;
}

void botapi_reply_free(struct botapi_reply *r)
{
    update_answer_free(&r->updates);
    buf_free(&r->body);
    botapi_reply_moved(r);
}

/* ---- what an answer means ----------------------------------------------------------------------- */

/* The cause of a 409, by its text (telegram.md; Client.cpp). */
static enum botapi_conflict conflict_of(const char *description)
{
    if (strstr(description, "terminated by other getUpdates"))
        return CONFLICT_OTHER_POLL;
    if (strstr(description, "terminated by setWebhook"))
        return CONFLICT_SET_WEBHOOK;
    if (strstr(description, "webhook is active"))
        return CONFLICT_WEBHOOK;
    return CONFLICT_UNKNOWN;
}

/* The class of an error that the Bot API itself reported. */
static enum botapi_class class_of(int code, bool migrates)
{
    switch (code) {
    case 400:
        return migrates ? BOTAPI_MIGRATED : BOTAPI_REJECTED;
    case 401:
        return BOTAPI_UNAUTHORIZED;
    case 404:
        return BOTAPI_NOT_FOUND;
    case 409:
        return BOTAPI_CONFLICT;
    case 429:
        return BOTAPI_LIMITED;
    default:
        return code >= 400 && code < 500 ? BOTAPI_REJECTED : BOTAPI_TRANSIENT;
    }
}

/* Fills in class and sentence from an answer with "ok":false. */
static void say_error(struct botapi_reply *r, const struct update_answer *a)
{
    int code = a->error_code ? a->error_code : r->status;

    r->class = class_of(code, a->migrate_to_chat_id != 0);
    snprintf(r->description, sizeof(r->description), "%s", a->description);
    r->conflict = conflict_of(a->description);
    r->migrate_to_chat_id = a->migrate_to_chat_id;
    if (a->retry_after >= 0)
        r->retry_after_s = a->retry_after < RETRY_AFTER_MAX_S ? a->retry_after : RETRY_AFTER_MAX_S;
    switch (r->class) {
    case BOTAPI_UNAUTHORIZED:
        snprintf(r->sentence, sizeof(r->sentence),
                 "the Bot API does not accept the token (401): it was revoked or is mistyped");
        break;
    case BOTAPI_NOT_FOUND:
        snprintf(r->sentence, sizeof(r->sentence),
                 "the Bot API knows no such token or method (404): see the token and api_root");
        break;
    case BOTAPI_LIMITED:
        snprintf(r->sentence, sizeof(r->sentence), "the Bot API asks for a pause of %lld s (429)",
                 (long long)r->retry_after_s);
        break;
    default:
        snprintf(r->sentence, sizeof(r->sentence), "the Bot API answered %d: %s", code,
                 a->description[0] ? a->description : "no description");
    }
}

/* An answer that is not the Bot API's JSON. A complete one that was meant to carry updates is `garbled`: its
 * reader may look for the update that spoils it. A page of somebody else's is not. */
static void say_unreadable(struct botapi_reply *r, const struct http_answer *a)
{
    struct slice b = buf_slice(&r->body);
    size_t i = 0;

    if (r->status == 429) {
        r->class = BOTAPI_LIMITED;
        snprintf(r->sentence, sizeof(r->sentence), "HTTP 429 with a body that is not the Bot API's");
        return;
    }
    r->class = BOTAPI_TRANSIENT;
    while (i < b.n && strchr(" \t\r\n", b.p[i]) && b.p[i])
        i++;
    r->garbled = r->status == 200 && a->complete_by_length && i < b.n && b.p[i] == '{' &&
                 memmem(b.p, b.n, "\"result\"", 8) != NULL;
    if (r->status >= 300 && r->status < 400)
        snprintf(r->sentence, sizeof(r->sentence), "HTTP %d, a redirection: api_root is not a Bot API server",
                 r->status);
    else
        snprintf(r->sentence, sizeof(r->sentence),
                 "HTTP %d with a body that is not the Bot API's JSON (%zu bytes%s)", r->status, b.n,
                 a->complete_by_length ? "" : ", cut short");
}

/* Reads the answer of a call other than getUpdates. The tree stays with the caller. */
static struct json *read_result(struct botapi_reply *r, struct update_answer *error)
{
    struct json *root = json_parse(buf_slice(&r->body), NULL);
    const struct json *ok = json_get(root, "ok");
    int64_t n;

    if (!ok || json_type(ok) != JSON_BOOL) {
        json_free(root);
        return NULL;
    }
    error->ok = json_true(ok);
    r->result = error->ok ? json_get(root, "result") : NULL;
    if (!json_to_i64(json_get(root, "error_code"), &n) && n > 0 && n < 1000)
        error->error_code = (int)n;
    struct slice d = json_string(json_get(root, "description"));
    struct buf clean = BUF_EMPTY;
    text_add_clean(&clean, d, sizeof(error->description) - 1, false);
    snprintf(error->description, sizeof(error->description), "%s", buf_str(&clean));
    buf_free(&clean);
    const struct json *parameters = json_get(root, "parameters");
    if (!json_to_i64(json_get(parameters, "retry_after"), &n) && n >= 0)
        error->retry_after = n;
    if (!json_to_i64(json_get(parameters, "migrate_to_chat_id"), &n))
        error->migrate_to_chat_id = n;
    return root;
}

/* The callback of the HTTP client. The caller's callback may start the next call or free the client: nothing
 * of `a` is touched after it. */
static void answered(void *arg, struct http_answer *h)
{
    struct botapi *a = arg;
    struct update_answer parsed = {.retry_after = -1};
    struct json *tree = NULL;
    struct botapi_reply r = {
        .class = BOTAPI_TRANSIENT,
        .conflict = CONFLICT_UNKNOWN,
        .fail = h->fail,
        .status = h->fail == HTTP_OK ? h->status : 0,
        .sent = h->sent,
        .waited_ms = h->waited_ms,
        .retry_after_s = h->retry_after_s,
        .body = h->body,
    };

    h->body = BUF_EMPTY;
    if (h->fail != HTTP_OK) {
        snprintf(r.sentence, sizeof(r.sentence), "%s", h->error);
    } else {
        bool read = a->wants_updates ? !update_answer_parse(buf_slice(&r.body), &parsed)
                                     : (tree = read_result(&r, &parsed)) != NULL;
        r.telegrams = read;
        if (!read)
            say_unreadable(&r, h);
        else if (!parsed.ok)
            say_error(&r, &parsed);
        else
            r.class = BOTAPI_OK;
    }
    if (r.class == BOTAPI_OK)
        r.updates = parsed;
    else
        update_answer_free(&parsed);
    a->fn(a->arg, &r);
    json_free(tree);
    botapi_reply_free(&r);
}

/* ---- calls -------------------------------------------------------------------------------------- */

static void send_call(struct botapi *a, const char *method, const char *content_type, struct slice body,
                      int64_t deadline_ms, botapi_fn *fn, void *arg)
{
    const struct http_header type = {slice_str("Content-Type"), slice_str(content_type)};

    buf_clear(&a->path);
    buf_printf(&a->path, "/bot%s/%s", buf_str(&a->token), method);
    struct http_request r = {
        .method = "POST",
        .path = buf_str(&a->path),
        .headers = &type,
        .n_headers = 1,
        .body = body,
        .secret_path = true,
        .deadline_ms = deadline_ms,
    };
    a->fn = fn;
    a->arg = arg;
    http_client_request(a->client, &r, answered, a);
}

/* Sends what is in a->body as JSON. */
static void call(struct botapi *a, const char *method, bool wants_updates, int64_t deadline_ms, botapi_fn *fn,
                 void *arg)
{
    a->wants_updates = wants_updates;
    send_call(a, method, "application/json", buf_slice(&a->body), deadline_ms, fn, arg);
}

void botapi_call(struct botapi *a, const char *method, const char *content_type, struct slice body,
                 int64_t deadline_ms, botapi_fn *fn, void *arg)
{
    a->wants_updates = false;
    send_call(a, method, content_type, body, deadline_ms, fn, arg);
}

/* The list is sent with every call: what it leaves out Telegram does not even make. No kinds: every one that
 * is known. An empty list, as sent for `by_default`, means Telegram's own. */
static void add_allowed(struct json_out *j, char *const *kinds, size_t n, bool by_default)
{
    json_key(j, "allowed_updates");
    json_array(j);
    for (size_t i = 0; i < n && !by_default; i++)
        json_cstr(j, kinds[i]);
    for (size_t i = 0; !n && !by_default && kind_at(i); i++)
        json_cstr(j, kind_at(i)->name);
    json_array_end(j);
}

void botapi_get_updates(struct botapi *a, const struct botapi_poll *p, botapi_fn *fn, void *arg)
{
    struct json_out j;

    buf_clear(&a->body);
    json_start(&j, &a->body);
    json_object(&j);
    if (p->offset > 0)
        json_kv_int(&j, "offset", p->offset);
    json_kv_int(&j, "limit", p->limit);
    json_kv_int(&j, "timeout", p->timeout_s);
    add_allowed(&j, p->allowed_updates, p->n_allowed, p->default_updates);
    json_object_end(&j);
    json_end(&j);
    call(a, "getUpdates", true, p->deadline_ms, fn, arg);
}

/* A call without arguments. */
static void plain_call(struct botapi *a, const char *method, int64_t deadline_ms, botapi_fn *fn, void *arg)
{
    buf_clear(&a->body);
    buf_add_str(&a->body, "{}");
    call(a, method, false, deadline_ms, fn, arg);
}

void botapi_get_me(struct botapi *a, int64_t deadline_ms, botapi_fn *fn, void *arg)
{
    plain_call(a, "getMe", deadline_ms, fn, arg);
}

void botapi_get_webhook_info(struct botapi *a, int64_t deadline_ms, botapi_fn *fn, void *arg)
{
    plain_call(a, "getWebhookInfo", deadline_ms, fn, arg);
}

void botapi_set_webhook(struct botapi *a, const struct botapi_webhook *w, botapi_fn *fn, void *arg)
{
    struct json_out j;

    buf_clear(&a->body);
    json_start(&j, &a->body);
    json_object(&j);
    json_kv_cstr(&j, "url", w->url);
    if (w->secret)
        json_kv_cstr(&j, "secret_token", w->secret);
    if (w->max_connections)
        json_kv_uint(&j, "max_connections", w->max_connections);
    add_allowed(&j, w->allowed_updates, w->n_allowed, false);
    json_object_end(&j);
    json_end(&j);
    call(a, "setWebhook", false, w->deadline_ms, fn, arg);
}

void botapi_delete_webhook(struct botapi *a, int64_t deadline_ms, botapi_fn *fn, void *arg)
{
    plain_call(a, "deleteWebhook", deadline_ms, fn, arg);
}

void botapi_log_out(struct botapi *a, int64_t deadline_ms, botapi_fn *fn, void *arg)
{
    plain_call(a, "logOut", deadline_ms, fn, arg);
}

void botapi_close(struct botapi *a, int64_t deadline_ms, botapi_fn *fn, void *arg)
{
    plain_call(a, "close", deadline_ms, fn, arg);
}

bool botapi_busy(const struct botapi *a)
{
    return http_client_busy(a->client);
}

void botapi_cancel(struct botapi *a)
{
    if (http_client_busy(a->client))
        http_client_cancel(a->client);
}

void botapi_drop_connection(struct botapi *a)
{
    http_client_drop_connection(a->client);
}
