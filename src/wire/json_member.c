/* The bytes of one member of a JSON object, without a tree. */
#include <yajl/yajl_parse.h>

#include "core/yajl_memory.h"
#include "wire/json.h"

struct member_finder {
    yajl_handle parser;
    const char *name;
    struct slice object;
    int depth;
    bool wanted; /* the value that comes next at depth 1 */
    bool found;
    size_t from, to;
};

/* A value begins or is whole: for what stands at depth 1 under the wanted name, the place is remembered.
 * `size` of a scalar's text is not known to all callbacks, so that the start is that of the key's end, moved
 * over ':' and blanks. */
static int value_over(struct member_finder *f)
{
    if (f->depth == 1 && f->wanted) {
        f->to = yajl_get_bytes_consumed(f->parser);
        f->wanted = false;
        f->found = true;
    }
    return 1;
}

static int on_scalar(void *ctx)
{
    return value_over(ctx);
}

static int on_bool(void *ctx, int v)
{
    (void)v;
    return value_over(ctx);
}

static int on_text(void *ctx, const unsigned char *p, size_t n)
{
    (void)p;
    (void)n;
    return value_over(ctx);
}

static int on_number(void *ctx, const char *p, size_t n)
{
    (void)p;
    (void)n;
    return value_over(ctx);
}

static int on_open(void *ctx)
{
    struct member_finder *f = ctx;

    f->depth++;
    return 1;
}

static int on_close(void *ctx)
{
    struct member_finder *f = ctx;

    f->depth--;
    return value_over(f);
}

static int on_key(void *ctx, const unsigned char *p, size_t n)
{
    struct member_finder *f = ctx;

    if (f->depth != 1 || f->found || !slice_eq_str(slice_make(p, n), f->name))
        return 1;
    f->wanted = true;
    f->from = yajl_get_bytes_consumed(f->parser);
    return 1;
}

int json_member_bytes(struct slice object, const char *name, struct slice *out)
{
    static const yajl_callbacks callbacks = {on_scalar, on_bool, NULL,     NULL,    on_number, on_text,
                                             on_open,   on_key,  on_close, on_open, on_close};
    struct member_finder f = {.name = name, .object = object};

    f.parser = yajl_alloc(&callbacks, &yajl_memory, &f);
    yajl_config(f.parser, yajl_dont_validate_strings, 1);
    bool ok = yajl_parse(f.parser, (const unsigned char *)object.p, object.n) == yajl_status_ok &&
              yajl_complete_parse(f.parser) == yajl_status_ok;
    yajl_free(f.parser);
    size_t first = 0;
    while (first < object.n && yajl_is_blank(object.p[first]))
        first++;
    if (!ok || first == object.n || object.p[first] != '{')
        return -2;
    if (!f.found)
        return -1;
    while (f.from < f.to && (yajl_is_blank(object.p[f.from]) || object.p[f.from] == ':'))
        f.from++;
    *out = slice_make(object.p + f.from, f.to - f.from);
    return 0;
}
