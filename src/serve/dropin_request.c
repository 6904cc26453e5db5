/* URLs and arguments as bot libraries send them. */
#include "serve/dropin_request.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "wire/event_json.h"
#include "wire/json.h"
#include "wire/multipart.h"
#include "wire/url.h"

/* ---- the URL ------------------------------------------------------------------------------------ */

/* Takes a prefix off the front. */
static bool take(struct slice *s, const char *prefix)
{
    size_t n = strlen(prefix);

    if (s->n < n || memcmp(s->p, prefix, n) != 0)
        return false;
    *s = slice_make(s->p + n, s->n - n);
    return true;
}

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The method's name is decoded before it is judged: the server behind does so too. */
static int read_method(struct slice raw, struct dropin_target *t)
{
    struct buf name = BUF_EMPTY;
    int rc = percent_decode(&name, raw, false);

    if (name.n == 0 || name.n > DROPIN_METHOD_MAX)
        rc = -1;
    for (size_t i = 0; rc == 0 && i < name.n; i++)
        if (!is_name_char(name.p[i]))
            rc = -1;
    if (rc == 0)
        memcpy(t->method, name.p, name.n + 1);
    buf_free(&name);
    return rc;
}

/* Whether a decoded path leads out of its folder. */
static bool has_dot_segment(struct slice path)
{
    for (size_t i = 0; i < path.n;) {
        const char *end = memchr(path.p + i, '/', path.n - i);
        size_t n = end ? (size_t)(end - path.p) - i : path.n - i;
        struct slice segment = slice_make(path.p + i, n);
        if (slice_eq_str(segment, ".") || slice_eq_str(segment, ".."))
            return true;
        i += n + 1;
    }
    return false;
}

static int read_file(struct slice raw, struct dropin_target *t)
{
    struct buf path = BUF_EMPTY;
    int rc = percent_decode(&path, raw, false);

    if (path.n == 0 || has_dot_segment(buf_slice(&path)))
        rc = -1;
    t->path = raw;
    buf_free(&path);
    return rc;
}

int dropin_target_parse(struct slice path, struct dropin_target *out)
{
    *out = (struct dropin_target){.token = BUF_EMPTY};
    out->file = take(&path, "/file/bot");
    if (!out->file && !take(&path, "/bot"))
        return -1;
    const char *slash = path.n ? memchr(path.p, '/', path.n) : NULL;
    if (!slash)
        return -1;
    struct slice token = slice_make(path.p, (size_t)(slash - path.p));
    if (percent_decode(&out->token, token, false) < 0)
        return -1;
    path = slice_make(slash + 1, path.n - token.n - 1);
    if (out->file)
        return read_file(path, out);
    out->test = take(&path, "test/");
    return read_method(path, out);
}

void dropin_target_free(struct dropin_target *t)
{
    buf_free(&t->token);
}

void dropin_target_write(const struct dropin_target *t, const char *token, struct slice query,
                         struct buf *out)
{
    buf_printf(out, "%s/bot%s/%s", t->file ? "/file" : "", token, t->test ? "test/" : "");
    if (t->file)
        buf_add_slice(out, t->path);
    else
        buf_add_str(out, t->method);
    if (query.n) {
        buf_add_char(out, '?');
        buf_add_slice(out, query);
    }
}

/* ---- arguments ---------------------------------------------------------------------------------- */

int dropin_args_read(struct slice query, struct slice content_type, struct slice body,
                     struct dropin_args *out)
{
    *out = (struct dropin_args){.query = query, .content_type = content_type, .body = body};
    if (body.n == 0 || !content_type_is(content_type, "application/json"))
        return 0;
    out->root = json_parse(body, NULL);
    return json_type(out->root) == JSON_OBJECT ? 0 : -1;
}

void dropin_args_free(struct dropin_args *a)
{
    json_free(a->root);
    a->root = NULL;
}

static bool json_arg(const struct dropin_args *a, const char *name, struct buf *value)
{
    const struct json *v = json_get(a->root, name);
    struct slice raw;

    if (!v)
        return false;
    switch (json_type(v)) {
    case JSON_NULL:
        return false;
    case JSON_BOOL:
        buf_add_str(value, json_true(v) ? "true" : "false");
        return true;
    case JSON_NUMBER:
        buf_add_slice(value, json_number(v));
        return true;
    case JSON_STRING:
        buf_add_slice(value, json_string(v));
        return true;
    default:
        if (json_member_bytes(a->body, name, &raw) < 0)
            return false;
        buf_add_slice(value, raw);
        return true;
    }
}

static bool multipart_arg(const struct dropin_args *a, const char *name, struct buf *value)
{
    struct multipart m;
    struct multipart_part part;

    if (multipart_start(&m, a->content_type, a->body) < 0)
        return false;
    while (multipart_next(&m, &part) > 0)
        if (!part.is_file && slice_eq_str(part.name, name)) {
            buf_add_slice(value, part.content);
            return true;
        }
    return false;
}

bool dropin_arg(const struct dropin_args *a, const char *name, struct buf *value)
{
    buf_clear(value);
    if (query_get(a->query, name, value) > 0)
        return true;
    buf_clear(value);
    if (a->root)
        return json_arg(a, name, value);
    if (content_type_is(a->content_type, "application/x-www-form-urlencoded"))
        return query_get(a->body, name, value) > 0;
    return content_type_is(a->content_type, "multipart/form-data") && multipart_arg(a, name, value);
}

int64_t dropin_arg_int(const struct dropin_args *a, const char *name, int64_t missing, int64_t min,
                       int64_t max)
{
    struct buf text = BUF_EMPTY;
    int64_t v = missing;

    if (dropin_arg(a, name, &text))
        v = strtoll(buf_str(&text), NULL, 10);
    buf_free(&text);
    return v < min ? min : v > max ? max : v;
}

bool dropin_arg_true(const struct dropin_args *a, const char *name)
{
    static const char *const yes[] = {"true", "yes", "1"};
    struct buf text = BUF_EMPTY;
    bool v = false;

    if (dropin_arg(a, name, &text))
        for (size_t i = 0; i < ARRAY_LEN(yes); i++)
            v |= slice_eq_nocase(buf_slice(&text), yes[i]);
    buf_free(&text);
    return v;
}
