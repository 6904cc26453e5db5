/* A bot of deliver: dropin, which asks the drop-in Bot API with getUpdates as it would ask Telegram, and makes its
 * calls there. */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "drill/inside.h"
#include "net/http_client.h"
#include "wire/json.h"

#define POLL_S 1
#define PATIENCE_MS 10000
#define AGAIN_MS 50
#define HANGS_MS 1000 /* a bot that hung is started again after that, with the offset that it had */
#define ANSWER_MAX (4u << 20)

struct dropin_bot {
    struct drill *d;
    struct http_client *http;
    struct timer again;
    int64_t offset;
    int64_t call_id, call_chat; /* of a call to be made before it asks on; 0: none */
};

/* The rest of an answer, from the first that it has not seen to; it takes up where it stopped by the offset. */
static int64_t take_updates(struct dropin_bot *b, struct slice body)
{
    struct json *root = json_parse(body, NULL);
    const struct json *result = json_get(root, "result");
    int64_t wait = 0;

    for (size_t i = 0; i < json_length(result) && !b->call_id; i++) {
        const struct json *update = json_item(result, i);
        int64_t id = 0, chat = 0;
        char key[32];
        (void)json_to_i64(json_get(update, "update_id"), &id);
        (void)json_to_i64(json_get(json_get(json_get(update, "message"), "chat"), "id"), &chat);
        int64_t attempt = 1 + record_count(&b->d->record, DEED_START, id);
        snprintf(key, sizeof(key), "%lld", (long long)id);
        if (!consumer_act(b->d, id, attempt, slice_str(key))) {
            wait = HANGS_MS;
            break;
        }
        record_add(&b->d->record, DEED_END, id, attempt, 0);
        b->offset = id + 1;
        if (b->d->calls) {
            b->call_id = id;
            b->call_chat = chat;
        }
    }
    json_free(root);
    return wait;
}

static void on_answer(void *arg, struct http_answer *a)
{
    struct dropin_bot *b = arg;
    int64_t wait = AGAIN_MS;

    if (a->fail == HTTP_OK && a->status == 200) {
        if (b->call_id)
            b->call_id = wait = 0;
        else
            wait = take_updates(b, buf_slice(&a->body));
    } else if (a->fail == HTTP_OK && a->retry_after_s > 0) {
        wait = SECONDS(a->retry_after_s);
    }
    timer_set(&b->again, loop_now(b->d->loop) + wait);
}

static void send_next(void *arg)
{
    struct dropin_bot *b = arg;
    static const struct http_header json = {{"Content-Type", 12}, {"application/json", 16}};
    struct buf body = BUF_EMPTY;
    char *path = xasprintf("/bot%s/%s", b->d->token, b->call_id ? "sendMessage" : "getUpdates");

    if (b->call_id)
        buf_printf(&body, "{\"chat_id\":%lld,\"text\":\"drill %lld\"}", (long long)b->call_chat,
                   (long long)b->call_id);
    else
        buf_printf(&body, "{\"offset\":%lld,\"timeout\":%d}", (long long)b->offset, POLL_S);
    const struct http_request r = {.method = "POST",
                                   .path = path,
                                   .headers = &json,
                                   .n_headers = 1,
                                   .body = buf_slice(&body),
                                   .secret_path = true,
                                   .deadline_ms = PATIENCE_MS};
    http_client_request(b->http, &r, on_answer, b);
    buf_free(&body);
    free(path);
}

struct dropin_bot *dropin_bot_new(struct drill *d)
{
    char *url = xasprintf("http://127.0.0.1:%u", (unsigned)d->dropin_port);
    const struct http_client_options o = {
        .base_url = url, .connect_timeout_ms = PATIENCE_MS, .max_body = ANSWER_MAX};
    struct dropin_bot *b = xcalloc(1, sizeof(*b));

    b->d = d;
    b->http = http_client_new(d->loop, &o, NULL);
    free(url);
    timer_init(&b->again, d->loop, send_next, b);
    if (b->http)
        timer_set(&b->again, clock_now());
    return b;
}

void dropin_bot_free(struct dropin_bot *b)
{
    if (!b)
        return;
    timer_stop(&b->again);
    http_client_free(b->http);
    free(b);
}
