/* See args.h. */
#include "args.h"

#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_tree.h>

#include "base/mem.h"
#include "base/text.h"

const struct arg *args_find(const struct args *a, const char *name)
{
    for (size_t i = 0; i < a->n; i++) {
        if (!strcmp(a->v[i].name, name))
            return &a->v[i];
    }
    return NULL;
}

struct slice args_text(const struct args *a, const char *name)
{
    const struct arg *arg = args_find(a, name);
    return arg ? buf_slice(&arg->value) : slice_make(NULL, 0);
}

int64_t args_int(const struct args *a, const char *name, int64_t def, int64_t min, int64_t max)
{
    int64_t v;
    if (text_to_i64(args_text(a, name), INT64_MIN, INT64_MAX, &v))
        v = def;
    return v < min ? min : v > max ? max : v;
}

bool args_true(const struct args *a, const char *name)
{
    struct slice v = args_text(a, name);
    return slice_eq_nocase(v, "true") || slice_eq_nocase(v, "yes") || slice_eq_str(v, "1");
}

/* Takes the value's bytes; a name that is there already keeps its value. */
static void add(struct args *a, struct slice name, struct buf *value)
{
    char *copy = xstrndup(name.p, name.n);
    if (args_find(a, copy)) {
        free(copy);
        buf_free(value);
        return;
    }
    a->v = xrealloc(a->v, (a->n + 1) * sizeof(*a->v));
    a->v[a->n++] = (struct arg){copy, *value};
}

void args_free(struct args *a)
{
    for (size_t i = 0; i < a->n; i++) {
        free(a->v[i].name);
        buf_free(&a->v[i].value);
    }
    free(a->v);
    *a = (struct args){NULL, 0};
}

/* Splits s at the first separator; without one, all of it is the left part and *rest is empty. */
static struct slice cut(struct slice s, const char *sep, struct slice *rest)
{
    size_t n = strlen(sep);
    const char *at = s.n ? memmem(s.p, s.n, sep, n) : NULL;
    if (!at) {
        *rest = slice_make(NULL, 0);
        return s;
    }
    *rest = slice_make(at + n, (size_t)(s.p + s.n - at) - n);
    return slice_make(s.p, (size_t)(at - s.p));
}

void unescape_url(struct slice s, struct buf *out)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c == '%' && s.n - i > 2 && hex_decode(slice_make(s.p + i + 1, 2), &c, 1) == 0)
            i += 2;
        else if (c == '+')
            c = ' ';
        buf_add_char(out, (char)c);
    }
}

void args_add_urlencoded(struct args *a, struct slice text)
{
    while (text.n) {
        struct slice rest, value, pair = cut(text, "&", &rest);
        struct slice name = cut(pair, "=", &value);
        struct buf n = BUF_EMPTY, v = BUF_EMPTY;
        unescape_url(name, &n);
        unescape_url(value, &v);
        buf_reserve(&v, 1);
        add(a, slice_make(buf_str(&n), n.n), &v);
        buf_free(&n);
        text = rest;
    }
}

void add_json_string(struct buf *out, struct slice s)
{
    struct buf clean = BUF_EMPTY;
    text_add_clean(&clean, s, SIZE_MAX, true);
    buf_add_char(out, '"');
    for (size_t i = 0; i < clean.n; i++) {
        char c = clean.p[i];
        if (c == '"' || c == '\\')
            buf_add_char(out, '\\');
        if ((unsigned char)c < 0x20)
            buf_printf(out, "\\u%04x", (unsigned)c);
        else
            buf_add_char(out, c);
    }
    buf_add_char(out, '"');
    buf_free(&clean);
}

void add_json_value(struct buf *out, const struct yajl_val_s *v)
{
    switch (v->type) {
    case yajl_t_string:
        add_json_string(out, slice_str(v->u.string));
        break;
    case yajl_t_number:
        buf_add_str(out, v->u.number.r);
        break;
    case yajl_t_object:
        buf_add_char(out, '{');
        for (size_t i = 0; i < v->u.object.len; i++) {
            buf_add_str(out, i ? "," : "");
            add_json_string(out, slice_str(v->u.object.keys[i]));
            buf_add_char(out, ':');
            add_json_value(out, v->u.object.values[i]);
        }
        buf_add_char(out, '}');
        break;
    case yajl_t_array:
        buf_add_char(out, '[');
        for (size_t i = 0; i < v->u.array.len; i++) {
            buf_add_str(out, i ? "," : "");
            add_json_value(out, v->u.array.values[i]);
        }
        buf_add_char(out, ']');
        break;
    default:
        buf_add_str(out, v->type == yajl_t_true ? "true" : v->type == yajl_t_false ? "false" : "null");
    }
}

static void add_json(struct args *a, struct slice body)
{
    char *text = xstrndup(body.p, body.n);
    yajl_val root = yajl_tree_parse(text, NULL, 0);
    free(text);
    if (YAJL_IS_OBJECT(root)) {
        for (size_t i = 0; i < root->u.object.len; i++) {
            struct buf value = BUF_EMPTY;
            yajl_val v = root->u.object.values[i];
            if (YAJL_IS_NULL(v))
                continue;
            if (YAJL_IS_STRING(v))
                buf_add_str(&value, v->u.string);
            else
                add_json_value(&value, v);
            add(a, slice_str(root->u.object.keys[i]), &value);
        }
    }
    yajl_tree_free(root);
}

/* Finds name="..." in a part's headers. */
static struct slice part_name(struct slice head)
{
    struct slice rest, end;
    cut(head, " name=", &rest);
    if (rest.n && rest.p[0] == '"') {
        rest = slice_make(rest.p + 1, rest.n - 1);
        return cut(rest, "\"", &end);
    }
    return cut(rest, "\r\n", &end);
}

static void add_multipart(struct args *a, const char *content_type, struct slice body)
{
    const char *b = strcasestr(content_type, "boundary=");
    if (!b)
        return;
    b += strlen("boundary=");
    b += *b == '"';
    char *sep = xasprintf("\r\n--%.*s", (int)strcspn(b, "\"; "), b);
    struct slice rest;

    cut(body, sep + 2, &rest);
    while (rest.n && strncmp(rest.p, "--", 2) != 0) {
        struct slice next, content, part = cut(rest, sep, &next);
        struct slice head = cut(part, "\r\n\r\n", &content);
        struct buf value = BUF_EMPTY;
        buf_add_slice(&value, content);
        add(a, part_name(head), &value);
        rest = next;
    }
    free(sep);
}

void args_add_body(struct args *a, const char *content_type, struct slice body)
{
    if (!strncasecmp(content_type, "application/json", 16))
        add_json(a, body);
    else if (!strncasecmp(content_type, "multipart/form-data", 19))
        add_multipart(a, content_type, body);
    else if (!strncasecmp(content_type, "application/x-www-form-urlencoded", 33))
        args_add_urlencoded(a, body);
}

void args_add_json(const struct args *a, struct buf *out)
{
    buf_add_char(out, '{');
    for (size_t i = 0; i < a->n; i++) {
        buf_add_str(out, i ? "," : "");
        add_json_string(out, slice_str(a->v[i].name));
        buf_add_char(out, ':');
        add_json_string(out, buf_slice(&a->v[i].value));
    }
    buf_add_char(out, '}');
}

int decode_base64(struct slice s, struct buf *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned bits = 0;
    int n = 0;

    for (size_t i = 0; i < s.n && s.p[i] != '='; i++) {
        const char *d = s.p[i] ? strchr(digits, s.p[i]) : NULL;
        if (!d)
            return -1;
        bits = bits << 6 | (unsigned)(d - digits);
        if ((n += 6) >= 8) {
            n -= 8;
            buf_add_char(out, (char)(bits >> n & 0xff));
        }
    }
    return 0;
}
