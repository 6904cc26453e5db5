/* Calls and keys out of answers. */
#include "spool/gather.h"

#include <stdlib.h>

#include "base/mem.h"
#include "wire/call.h"
#include "wire/json.h"

static const char json_type_text[] = "application/json";
static const char too_many[] = "more calls than one answer may hold: this and those behind it are not sent";
static const char no_method[] = "a call must be an object with \"method\"";

struct gathered {
    struct call call;
    char *content_type;
    struct buf owned; /* of a call that was part of something larger */
};

void gather_free(struct gather *g)
{
    for (size_t i = 0; i < g->extras.n_calls; i++) {
        free(g->calls[i]->content_type);
        buf_free(&g->calls[i]->owned);
        free(g->calls[i]);
    }
    free(g->calls);
    free(g->list);
    free(g->keys);
    *g = GATHER_EMPTY;
}

/* Takes owned; body is that, or borrowed. */
static void add(struct gather *g, const struct call *call, struct slice content_type, struct slice body,
                struct buf *owned, bool once)
{
    size_t n = g->extras.n_calls++;
    struct gathered *d = xcalloc(1, sizeof(*d));

    d->call = *call;
    d->content_type = xstrndup(content_type.n ? content_type.p : "", content_type.n);
    if (owned) {
        d->owned = *owned;
        *owned = BUF_EMPTY;
    }
    g->calls = xrealloc(g->calls, (n + 1) * sizeof(g->calls[0]));
    g->calls[n] = d;
    g->list = xrealloc(g->list, (n + 1) * sizeof(g->list[0]));
    g->list[n] = (struct spool_call){.method = d->call.method,
                                     .content_type = d->content_type,
                                     .body = body,
                                     .lane = d->call.lane,
                                     .has_chat = d->call.has_chat,
                                     .chat = d->call.chat,
                                     .once = once,
                                     .refused = d->call.refused};
    g->extras.calls = g->list;
}

void gather_refused(struct gather *g, struct slice content_type, struct slice body, const char *why)
{
    const struct call call = {.lane = {LANE_EVENT, 0, 0}, .refused = why};

    add(g, &call, content_type, body, NULL, false);
}

void gather_body(struct gather *g, struct slice content_type, struct slice body)
{
    struct call call;

    if (call_in_body(content_type, body, &call))
        add(g, &call, content_type, body, NULL, false);
}

/* A part of a tree as a call of its own. */
static void add_tree(struct gather *g, const struct call *call, const struct json *v)
{
    struct buf text = BUF_EMPTY;
    struct json_out j;

    json_start(&j, &text);
    json_write(&j, v);
    json_end(&j);
    struct slice body = buf_slice(&text);
    add(g, call, slice_str(json_type_text), body, &text, json_true(json_get(v, "once")));
}

/* What is beyond the limit, whole: nothing disappears in silence. */
static void add_rest(struct gather *g, const struct json *list, size_t from)
{
    const struct call call = {.lane = {LANE_EVENT, 0, 0}, .refused = too_many};
    struct buf text = BUF_EMPTY;
    struct json_out j;

    json_start(&j, &text);
    json_array(&j);
    for (size_t i = from; i < json_length(list); i++)
        json_write(&j, json_item(list, i));
    json_array_end(&j);
    json_end(&j);
    struct slice body = buf_slice(&text);
    add(g, &call, slice_str(json_type_text), body, &text, false);
}

/* others: what is no call is one that cannot be sent; else it says nothing. */
static void add_item(struct gather *g, const struct json *v, bool others)
{
    struct call call;

    if (!call_in_json(v, &call)) {
        if (!others)
            return;
        call.refused = no_method;
    }
    add_tree(g, &call, v);
}

static void add_all(struct gather *g, const struct json *v, bool others)
{
    if (json_type(v) != JSON_ARRAY) {
        add_item(g, v, others);
        return;
    }
    for (size_t i = 0; i < json_length(v); i++) {
        if (g->extras.n_calls == GATHER_CALLS_MAX) {
            add_rest(g, v, i);
            return;
        }
        add_item(g, json_item(v, i), others);
    }
}

void gather_calls(struct gather *g, const struct json *calls)
{
    if (json_type(calls) != JSON_NULL)
        add_all(g, calls, true);
}

void gather_output(struct gather *g, struct slice text)
{
    struct json *root = json_parse(text, NULL);

    if (json_type(root) == JSON_ARRAY || json_type(root) == JSON_OBJECT)
        add_all(g, root, false);
    json_free(root);
}

size_t gather_keys(struct gather *g, const struct json *keys)
{
    size_t n = json_length(keys), bad = 0;

    if (json_type(keys) != JSON_ARRAY)
        return json_type(keys) != JSON_NULL;
    g->keys = xrealloc(g->keys, (g->extras.n_keys + n + 1) * sizeof(g->keys[0]));
    g->extras.keys = g->keys;
    for (size_t i = 0; i < n; i++) {
        struct slice key = json_string(json_item(keys, i));
        if (key.n == 0 || key.n > SPOOL_KEY_MAX || g->extras.n_keys == GATHER_KEYS_MAX)
            bad++;
        else
            g->keys[g->extras.n_keys++] = key;
    }
    return bad;
}
