/* Reading a worker's line. */
#include "deliver/answer.h"

#include "base/text.h"
#include "wire/json.h"

/* A length of time: a number of seconds, or a text as in the configuration. Returns 0 or -1. */
static int read_time(const struct json *v, int64_t *ms)
{
    enum json_type type = v ? json_type(v) : JSON_NULL;

    if (type == JSON_NUMBER)
        return text_to_ms(json_number(v), ms);
    return type == JSON_STRING ? text_to_ms(json_string(v), ms) : -1;
}

static int read_members(struct answer *a)
{
    const struct json *id = json_get(a->root, "id"), *ok = json_get(a->root, "ok");
    const struct json *after = json_get(a->root, "retry_after"), *extend = json_get(a->root, "extend");

    if (!id || json_type(id) != JSON_STRING)
        return -1;
    a->id = json_string(id);
    if (!ok && extend) {
        a->kind = ANSWER_EXTEND;
        return read_time(extend, &a->extend_ms) || a->extend_ms <= 0 ? -1 : 0;
    }
    if (!ok || json_type(ok) != JSON_BOOL)
        return -1;
    a->kind = json_true(ok) ? ANSWER_DONE : ANSWER_FAILED;
    if (a->kind == ANSWER_DONE) {
        a->calls = json_get(a->root, "calls");
        a->keys = json_get(a->root, "keys");
        return 0;
    }
    a->error = json_string(json_get(a->root, "error"));
    a->dead = json_true(json_get(a->root, "dead"));
    if (read_time(after, &a->after_ms))
        a->after_ms = -1;
    return 0;
}

int answer_parse(struct slice line, struct answer *out)
{
    *out = (struct answer){.after_ms = -1};
    out->root = json_parse(line, NULL);
    if (out->root && json_type(out->root) == JSON_OBJECT && !read_members(out))
        return 0;
    answer_free(out);
    return -1;
}

void answer_free(struct answer *a)
{
    if (a->root)
        json_free(a->root);
    a->root = NULL;
}
