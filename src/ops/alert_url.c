/* Alerts to a URL. */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "net/http_client.h"
#include "ops/alert_channels.h"
#include "ops/alert_json.h"

#define CONNECT_TIMEOUT SECONDS(10)
#define TIME_LIMIT SECONDS(15)
#define ANSWER_MAX ((size_t)64 << 10) /* nobody reads it */

struct url_channel {
    struct alert_channel channel; /* first */
    struct http_client *client;
};

static void on_answer(void *arg, struct http_answer *a)
{
    struct url_channel *u = arg;
    bool came = a->fail == HTTP_OK || a->too_large;
    int64_t after = came && a->retry_after_s >= 0 && a->retry_after_s < ALERT_KEPT_MS / 1000
                        ? SECONDS(a->retry_after_s)
                        : -1;
    char why[300];

    if (came)
        snprintf(why, sizeof(why), "the server answered HTTP %d", a->status);
    else
        snprintf(why, sizeof(why), "%s", a->error);
    alert_sender_tried(u->channel.sender, came && a->status >= 200 && a->status <= 299, after, why);
}

static void url_send(struct alert_channel *channel, const struct alert *a)
{
    struct url_channel *u = (struct url_channel *)channel;
    const struct http_header type = {slice_str("Content-Type"), slice_str("application/json")};
    struct buf body = BUF_EMPTY;

    alert_add_json(&body, a);
    const struct http_request r = {
        .method = "POST",
        .path = "",
        .headers = &type,
        .n_headers = 1,
        .body = buf_slice(&body),
        .secret_path = true,
        .deadline_ms = TIME_LIMIT,
    };
    http_client_request(u->client, &r, on_answer, u);
    buf_free(&body);
}

static void url_free_channel(struct alert_channel *channel)
{
    struct url_channel *u = (struct url_channel *)channel;

    http_client_free(u->client);
    free(u);
}

struct alert_channel *alert_url_new(struct loop *l, const char *url, const char *proxy_url, struct err *e)
{
    const struct http_client_options o = {
        .base_url = url,
        .proxy_url = proxy_url,
        .connect_timeout_ms = CONNECT_TIMEOUT,
        .max_body = ANSWER_MAX,
    };
    struct http_client *client = http_client_new(l, &o, e);

    if (!client)
        return NULL;
    struct url_channel *u = xcalloc(1, sizeof(*u));
    u->channel = (struct alert_channel){.name = "url", .send = url_send, .free = url_free_channel};
    u->client = client;
    return &u->channel;
}
