/* What a handler says shall be sent, against any bytes: the first line is a content type, the rest a body that may be a
 * call, a program's output, or the `calls` and `keys` of an answer. */
#include "fuzz.h"

#include "spool/gather.h"
#include "wire/call.h"
#include "wire/json.h"

static void check_call(const struct call *c)
{
    CHECK(c->refused || call_is_method(slice_str(c->method)));
    CHECK(strlen(c->method) <= CALL_METHOD_MAX);
    CHECK(c->has_chat == (c->lane.type == LANE_CHAT));
    CHECK(!c->has_chat || c->lane.a == c->chat);
    CHECK(c->lane.type == LANE_CHAT || c->lane.type == LANE_NAME || c->lane.type == LANE_EVENT);
}

static void try_body(struct slice type, struct slice body)
{
    struct call c, again;

    if (!call_in_body(type, body, &c))
        return;
    CHECK(call_is_type(type));
    check_call(&c);
    CHECK(c.refused || !call_is_forbidden(slice_str(c.method)));
    if (c.refused)
        return;
    call_of_method(slice_str(c.method), type, body, &again);
    CHECK(!again.refused && strcmp(again.method, c.method) == 0 && lane_eq(again.lane, c.lane));
}

/* Each call is bytes that read as it was written. */
static void check_gathered(const struct gather *g)
{
    CHECK(g->extras.n_calls <= GATHER_CALLS_MAX + 1);
    for (size_t i = 0; i < g->extras.n_calls; i++) {
        const struct spool_call *c = &g->extras.calls[i];
        struct json *v = json_parse(c->body, NULL);
        CHECK(v);
        CHECK(c->refused || slice_eq_str(json_string(json_get(v, "method")), c->method));
        json_free(v);
    }
}

static void try_gather(struct slice text)
{
    struct gather g = GATHER_EMPTY;
    struct json *v = json_parse(text, NULL);

    gather_output(&g, text);
    check_gathered(&g);
    gather_free(&g);
    gather_calls(&g, json_get(v, "calls"));
    check_gathered(&g);
    size_t bad = gather_keys(&g, json_get(v, "keys"));
    CHECK(g.extras.n_keys <= GATHER_KEYS_MAX);
    CHECK(bad + g.extras.n_keys == json_length(json_get(v, "keys")) || bad == 1);
    for (size_t i = 0; i < g.extras.n_keys; i++)
        CHECK(g.extras.keys[i].n > 0 && g.extras.keys[i].n <= SPOOL_KEY_MAX);
    gather_free(&g);
    json_free(v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct slice all = slice_make(data, n);
    const char *lf = n ? memchr(data, '\n', n) : NULL;

    if (lf) {
        size_t first = (size_t)(lf - all.p);
        try_body(slice_make(all.p, first), slice_make(lf + 1, n - first - 1));
        all = slice_make(lf + 1, n - first - 1);
    }
    try_gather(all);
    return 0;
}
