/* Telegram's side of a webhook: sends each update that the server has, in order and one at a time, until it is answered
 * with 2xx. */
#include <stdlib.h>

#include "base/mem.h"
#include "drill/inside.h"
#include "net/http_client.h"

#define PATIENCE_MS 10000
#define AGAIN_MS 100 /* after a failure */
#define LOOK_MS 20   /* whether there is something to send */

struct sender {
    struct drill *d;
    struct http_client *http;
    struct timer again;
    enum send_fault fault;
    int64_t id; /* of the update that is being sent */
};

/* What is sent next; NULL: nothing now. */
static const struct server_update *next_update(const struct sender *s)
{
    const struct server_state *t = server_state(s->d->server);

    for (size_t i = 0; i < t->n_updates && !t->withheld; i++)
        if (!t->updates[i].confirmed && !(s->fault == SEND_STOPS && t->updates[i].lost))
            return &t->updates[i];
    return NULL;
}

static const struct server_update *find_update(const struct sender *s)
{
    const struct server_state *t = server_state(s->d->server);

    for (size_t i = 0; i < t->n_updates; i++)
        if (t->updates[i].id == s->id)
            return &t->updates[i];
    return NULL;
}

static void on_answer(void *arg, struct http_answer *a)
{
    struct sender *s = arg;
    const struct server_update *u = find_update(s);
    bool taken = a->fail == HTTP_OK && a->status >= 200 && a->status < 300;

    if (taken && u)
        server_taken(s->d->server, s->id, s->fault != SEND_GOOD && !u->lost);
    timer_set(&s->again, loop_now(s->d->loop) + (taken ? 0 : AGAIN_MS));
}

static void send_next(void *arg)
{
    struct sender *s = arg;
    const struct server_update *u = next_update(s);

    if (!u) {
        timer_set(&s->again, loop_now(s->d->loop) + LOOK_MS);
        return;
    }
    char *path = xasprintf("/hook/%s", s->d->o->bot->name);
    const struct http_header headers[] = {
        {slice_str("Content-Type"), slice_str("application/json")},
        {slice_str("X-Telegram-Bot-Api-Secret-Token"), slice_str(s->d->hook_secret)}};
    const struct http_request r = {.method = "POST",
                                   .path = path,
                                   .headers = headers,
                                   .n_headers = ARRAY_LEN(headers),
                                   .body = slice_str(u->text),
                                   .deadline_ms = PATIENCE_MS};
    s->id = u->id;
    http_client_request(s->http, &r, on_answer, s);
    free(path);
}

struct sender *sender_new(struct drill *d)
{
    char *url = xasprintf("http://127.0.0.1:%u", (unsigned)d->hook_port);
    const struct http_client_options o = {
        .base_url = url, .connect_timeout_ms = PATIENCE_MS, .max_body = 1 << 20};
    struct sender *s = xcalloc(1, sizeof(*s));

    s->d = d;
    s->http = http_client_new(d->loop, &o, NULL);
    free(url);
    timer_init(&s->again, d->loop, send_next, s);
    if (s->http)
        timer_set(&s->again, clock_now());
    return s;
}

void sender_free(struct sender *s)
{
    if (!s)
        return;
    timer_stop(&s->again);
    http_client_free(s->http);
    free(s);
}

void sender_fault(struct sender *s, enum send_fault fault)
{
    s->fault = fault;
}
