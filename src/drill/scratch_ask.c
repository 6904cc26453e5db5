/* Asks the daemon of a check, on its control socket. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "drill/inside.h"
#include "net/http_client.h"
#include "wire/json.h"

#define ASK_MS 10000
#define ASK_AGAIN_MS 50
#define EXPLAIN_MS 2000
#define ANSWER_MAX (4u << 20)

struct question {
    bool answered, good, again;
    struct buf *out;
    char why[300];
};

static bool has_answer(struct drill *d)
{
    return d->question->answered;
}

static void on_answer(void *arg, struct http_answer *a)
{
    struct question *q = arg;

    q->answered = true;
    q->good = a->fail == HTTP_OK && a->status >= 200 && a->status < 300;
    q->again = a->fail == HTTP_REFUSED;
    if (a->fail == HTTP_OK && !q->good)
        snprintf(q->why, sizeof(q->why), "status %d: %.200s", a->status, buf_str(&a->body));
    else
        snprintf(q->why, sizeof(q->why), "%s", a->error);
    buf_clear(q->out);
    buf_add_slice(q->out, buf_slice(&a->body));
}

/* Asks, again until the daemon has opened its socket, which it does last. */
static void put_question(struct drill *d, struct http_client *c, const struct http_request *r,
                         struct question *q)
{
    d->question = q;
    do {
        q->answered = q->again = false;
        snprintf(q->why, sizeof(q->why), "no answer");
        http_client_request(c, r, on_answer, q);
        if (!drill_turn(d, has_answer))
            http_client_cancel(c);
    } while (q->again && drill_rest(d, ASK_AGAIN_MS));
    d->question = NULL;
}

static bool ask(struct drill *d, const char *method, const char *path, const char *body, struct question *q)
{
    char *url = xasprintf("unix:%s/sock", d->dir);
    const struct http_client_options o = {
        .base_url = url, .connect_timeout_ms = ASK_MS, .max_body = ANSWER_MAX};
    const struct http_request r = {
        .method = method, .path = path, .body = slice_str(body), .deadline_ms = ASK_MS};
    struct err e = ERR_NONE;
    struct http_client *c = http_client_new(d->loop, &o, &e);

    if (c)
        put_question(d, c, &r, q);
    else
        snprintf(q->why, sizeof(q->why), "%.290s", e.text);
    http_client_free(c);
    free(url);
    return q->good;
}

bool scratch_ask(struct drill *d, const char *method, const char *path, const char *body, struct buf *out)
{
    struct question q = {.out = out};

    return ask(d, method, path, body, &q) ? true : drill_fail(d, "%s %s: %s", method, path, q.why);
}

/* Words for an event as the API shows it. */
static void add_event(struct drill *d, const struct json *ev)
{
    struct slice state = json_string(json_get(ev, "state")), reason = json_string(json_get(ev, "reason"));
    struct slice error = json_string(json_get(ev, "error")), id = json_string(json_get(ev, "id"));
    int64_t attempts = 0;
    char lease[32];

    (void)json_to_i64(json_get(ev, "attempts"), &attempts);
    drill_see(d, "; %.*s is %.*s", (int)id.n, id.p, (int)state.n, state.p);
    if (reason.n)
        drill_see(d, " (%.*s)", (int)reason.n, reason.p);
    drill_see(d, ", failed tries: %lld", (long long)attempts);
    if (error.n)
        drill_see(d, ", last error: %.*s", error.n < 200 ? (int)error.n : 200, error.p);
    if (slice_eq_str(reason, "expired"))
        drill_see(d, "; the config's expire ends updates that wait for another try so long");
    else if (d->o->run_handler && (!error.n || memmem(error.p, error.n, "lease", 5)))
        drill_see(d, "; a lease is %s here: if the handler needs longer, --lease gives it more",
                  text_from_ms(d->o->lease_ms, lease));
}

/* The first event of the in-box in that state, as the API shows it, to be given to json_free by *root; NULL: none. */
static const struct json *find_event(struct drill *d, const char *state, struct buf *body, struct json **root)
{
    char *path = xasprintf("/v1/events?bot=%s&box=in&limit=1&state=%s", d->o->bot->name, state);
    struct question q = {.out = body};

    *root = NULL;
    if (d->daemon && ask(d, "GET", path, NULL, &q))
        *root = json_parse(buf_slice(body), NULL);
    free(path);
    return json_item(json_get(*root, "events"), 0);
}

bool scratch_has_dead(struct drill *d)
{
    struct buf body = BUF_EMPTY;
    struct json *root;
    bool found = find_event(d, "dead", &body, &root) != NULL;

    json_free(root);
    buf_free(&body);
    return found;
}

void scratch_explain(struct drill *d)
{
    static const char *const states[] = {"dead", "processing", "pending"};
    int64_t deadline = d->deadline;
    bool found = false, late = clock_now() >= deadline;
    char share[32];

    d->deadline = clock_now() + EXPLAIN_MS;
    for (size_t i = 0; i < ARRAY_LEN(states) && !found; i++) {
        struct buf body = BUF_EMPTY;
        struct json *root;
        const struct json *ev = find_event(d, states[i], &body, &root);
        found = ev != NULL;
        if (found)
            add_event(d, ev);
        json_free(root);
        buf_free(&body);
    }
    d->deadline = deadline;
    if (late)
        drill_see(d, "; the %s of this check were over: --limit gives more",
                  drill_seconds(d->share_ms, share));
}
