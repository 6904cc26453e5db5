/* A consumer of deliver: pull, on the control socket: it claims, acts and acknowledges, one request at a time. */
#include <stdlib.h>

#include "base/mem.h"
#include "drill/inside.h"
#include "net/http_client.h"
#include "wire/json.h"

#define CLAIM_WAIT_S 1
#define PATIENCE_MS 10000
#define AGAIN_MS 50 /* after no answer: the daemon is down, or not up yet */
#define ANSWER_MAX (4u << 20)

struct pull {
    struct drill *d;
    struct http_client *http;
    struct timer again;
    struct buf ack; /* for what was done of the claim that was answered; empty: claim next */
};

static void claimed(struct pull *p, struct slice body);

static void on_answer(void *arg, struct http_answer *a)
{
    struct pull *p = arg;
    bool good = a->fail == HTTP_OK && a->status == 200;

    if (p->ack.n || !good)
        buf_free(&p->ack); /* what was not acknowledged comes again by itself */
    else
        claimed(p, buf_slice(&a->body));
    timer_set(&p->again, loop_now(p->d->loop) + (good ? 0 : AGAIN_MS));
}

/* Acts on what was claimed, and puts together what is acknowledged. */
static void claimed(struct pull *p, struct slice body)
{
    struct json *root = json_parse(body, NULL);
    const struct json *events = json_get(root, "events");
    struct json_out j;
    bool any = false;

    json_start(&j, &p->ack);
    json_object(&j);
    json_key(&j, "events");
    json_array(&j);
    for (size_t i = 0; i < json_length(events); i++) {
        const struct json *ev = json_item(events, i), *update = json_get(ev, "update");
        int64_t id = 0, attempt = 0, chat = 0;
        (void)json_to_i64(json_get(ev, "update_id"), &id);
        (void)json_to_i64(json_get(ev, "attempt"), &attempt);
        (void)json_to_i64(json_get(json_get(json_get(update, "message"), "chat"), "id"), &chat);
        if (!consumer_act(p->d, id, attempt, json_string(json_get(ev, "key"))))
            continue;
        record_add(&p->d->record, DEED_END, id, attempt, 0);
        any = true;
        json_object(&j);
        json_kv_text(&j, "id", json_string(json_get(ev, "id")));
        json_kv_text(&j, "lease", json_string(json_get(ev, "lease")));
        if (p->d->calls) {
            struct buf call = BUF_EMPTY;
            drill_add_call(&call, id, chat);
            json_key(&j, "calls");
            json_array(&j);
            json_raw(&j, buf_slice(&call));
            json_array_end(&j);
            buf_free(&call);
        }
        json_object_end(&j);
    }
    json_array_end(&j);
    json_object_end(&j);
    json_end(&j);
    json_free(root);
    if (!any)
        buf_free(&p->ack);
}

static void send_next(void *arg)
{
    struct pull *p = arg;
    struct buf claim = BUF_EMPTY;
    struct http_request r = {.method = "POST",
                             .path = p->ack.n ? "/v1/ack" : "/v1/claim",
                             .body = buf_slice(&p->ack),
                             .deadline_ms = PATIENCE_MS};

    if (!p->ack.n) {
        buf_printf(&claim, "{\"bot\":\"%s\",\"max\":10,\"wait\":%d,\"consumer\":\"drill\"}",
                   p->d->o->bot->name, CLAIM_WAIT_S);
        r.body = buf_slice(&claim);
    }
    http_client_request(p->http, &r, on_answer, p);
    buf_free(&claim);
}

struct pull *pull_new(struct drill *d)
{
    char *url = xasprintf("unix:%s/sock", d->dir);
    const struct http_client_options o = {
        .base_url = url, .connect_timeout_ms = PATIENCE_MS, .max_body = ANSWER_MAX};
    struct pull *p = xcalloc(1, sizeof(*p));

    p->d = d;
    p->http = http_client_new(d->loop, &o, NULL);
    free(url);
    timer_init(&p->again, d->loop, send_next, p);
    if (p->http)
        timer_set(&p->again, clock_now());
    return p;
}

void pull_free(struct pull *p)
{
    if (!p)
        return;
    timer_stop(&p->again);
    http_client_free(p->http);
    buf_free(&p->ack);
    free(p);
}
