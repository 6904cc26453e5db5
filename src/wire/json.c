/* JSON around yajl: the writer is yajl's generator printing into a buffer; the reader builds a tree of
 * 16-byte values in one arena, so that hostile text costs a fixed factor of its length and is freed without
 * recursion. */
#include "wire/json.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <yajl/yajl_gen.h>
#include <yajl/yajl_parse.h>

#include "base/list.h"
#include "base/mem.h"
#include "base/text.h"
#include "core/yajl_memory.h"

#define MAX_DEPTH 64
#define MAX_VALUES 500000 /* some 24 MiB at the worst */

/* ---- writing ------------------------------------------------------------------------------------ */

static void print(void *ctx, const char *s, size_t n)
{
    buf_add(ctx, s, n);
}

void json_start(struct json_out *j, struct buf *out)
{
    j->out = out;
    j->gen = yajl_gen_alloc(&yajl_memory);
    yajl_gen_config(j->gen, yajl_gen_print_callback, print, out);
}

void json_end(struct json_out *j)
{
    yajl_gen_free(j->gen);
    j->gen = NULL;
}

/* Every failure is a mistake of the caller: two roots, a value where a name belongs, 128 levels. */
static void wrote(yajl_gen_status s)
{
    assert(s == yajl_gen_status_ok);
    (void)s;
}

void json_object(struct json_out *j)
{
    wrote(yajl_gen_map_open(j->gen));
}

void json_object_end(struct json_out *j)
{
    wrote(yajl_gen_map_close(j->gen));
}

void json_array(struct json_out *j)
{
    wrote(yajl_gen_array_open(j->gen));
}

void json_array_end(struct json_out *j)
{
    wrote(yajl_gen_array_close(j->gen));
}

void json_key(struct json_out *j, const char *key)
{
    json_text(j, slice_str(key));
}

void json_text(struct json_out *j, struct slice s)
{
    struct buf clean = BUF_EMPTY;
    size_t good = 0; /* how much of s, from its last fault on, is well-formed */

    for (size_t i = 0; i < s.n;) {
        size_t len = text_utf8_len(s.p + i, s.n - i);
        if (len == 0) {
            buf_add(&clean, s.p + good, i - good);
            buf_add_str(&clean, "\xEF\xBF\xBD");
            good = i + 1;
            len = 1;
        }
        i += len;
    }
    if (good) {
        buf_add(&clean, s.p + good, s.n - good);
        s = buf_slice(&clean);
    }
    wrote(yajl_gen_string(j->gen, (const unsigned char *)(s.n ? s.p : ""), s.n));
    buf_free(&clean);
}

void json_cstr(struct json_out *j, const char *s)
{
    if (s)
        json_text(j, slice_str(s));
    else
        json_null(j);
}

void json_int(struct json_out *j, int64_t v)
{
    wrote(yajl_gen_integer(j->gen, v));
}

void json_uint(struct json_out *j, uint64_t v)
{
    char digits[24];
    int n = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)v);

    wrote(yajl_gen_number(j->gen, digits, (size_t)n));
}

void json_bool(struct json_out *j, bool v)
{
    wrote(yajl_gen_bool(j->gen, v));
}

void json_null(struct json_out *j)
{
    wrote(yajl_gen_null(j->gen));
}

/* What yajl prints for a number is its text as it is. */
void json_raw(struct json_out *j, struct slice json)
{
    wrote(yajl_gen_number(j->gen, json.p, json.n));
}

void json_raw_line(struct json_out *j, struct slice json)
{
    size_t start = j->out->n;

    json_raw(j, json);
    for (size_t i = start; i < j->out->n; i++)
        if (j->out->p[i] == '\r' || j->out->p[i] == '\n')
            j->out->p[i] = ' ';
}

void json_kv_text(struct json_out *j, const char *key, struct slice s)
{
    json_key(j, key);
    json_text(j, s);
}

void json_kv_cstr(struct json_out *j, const char *key, const char *s)
{
    json_key(j, key);
    json_cstr(j, s);
}

void json_kv_int(struct json_out *j, const char *key, int64_t v)
{
    json_key(j, key);
    json_int(j, v);
}

void json_kv_uint(struct json_out *j, const char *key, uint64_t v)
{
    json_key(j, key);
    json_uint(j, v);
}

void json_kv_bool(struct json_out *j, const char *key, bool v)
{
    json_key(j, key);
    json_bool(j, v);
}

/* ---- the tree ----------------------------------------------------------------------------------- */

struct json {
    union {
        const char *text;         /* of a string or number */
        const struct json *items; /* of an array; of an object name and value in turn */
    };
    uint32_t n; /* bytes, or values in items */
    uint8_t type;
    bool truth;
};

struct block {
    struct block *next;
    size_t used, size;
    _Alignas(struct json) char bytes[];
};

struct tree {
    struct json root; /* first, as it is what the caller holds */
    struct block *blocks;
};

struct parse {
    struct tree *tree;
    struct json *stack; /* finished values whose container is still open */
    size_t n_stack, cap_stack, n_values;
    size_t opened[MAX_DEPTH]; /* where in the stack each open container's values begin */
    size_t depth;
    const char *why; /* why our callbacks stopped */
};

static void *arena(struct tree *t, size_t n)
{
    size_t rounded = (n + _Alignof(struct json) - 1) & ~(_Alignof(struct json) - 1);
    struct block *b = t->blocks;

    if (!b || b->size - b->used < rounded) {
        size_t size = b ? 2 * b->size : 1024; /* doubling: no more than twice what is needed */
        if (size > 256 * 1024)
            size = 256 * 1024;
        if (size < rounded)
            size = rounded;
        b = xmalloc(sizeof(*b) + size);
        *b = (struct block){.next = t->blocks, .size = size};
        t->blocks = b;
    }
    void *p = b->bytes + b->used;
    b->used += rounded;
    return p;
}

static int stop(struct parse *s, const char *why)
{
    s->why = why;
    return 0;
}

static int add(struct parse *s, struct json v)
{
    if (++s->n_values > MAX_VALUES)
        return stop(s, "too many values");
    if (s->n_stack == s->cap_stack) {
        s->cap_stack = s->cap_stack ? 2 * s->cap_stack : 32;
        s->stack = xrealloc(s->stack, s->cap_stack * sizeof(s->stack[0]));
    }
    s->stack[s->n_stack++] = v;
    return 1;
}

static int add_text(struct parse *s, enum json_type type, const void *p, size_t n)
{
    if (n >= UINT32_MAX)
        return stop(s, "a string is too long");
    char *copy = arena(s->tree, n + 1);
    if (n)
        memcpy(copy, p, n);
    copy[n] = '\0';
    return add(s, (struct json){.text = copy, .n = (uint32_t)n, .type = type});
}

static int on_null(void *ctx)
{
    return add(ctx, (struct json){.type = JSON_NULL});
}

static int on_bool(void *ctx, int truth)
{
    return add(ctx, (struct json){.type = JSON_BOOL, .truth = truth != 0});
}

static int on_number(void *ctx, const char *p, size_t n)
{
    return add_text(ctx, JSON_NUMBER, p, n);
}

static int on_string(void *ctx, const unsigned char *p, size_t n)
{
    return add_text(ctx, JSON_STRING, p, n);
}

/* What is written of bytes that are no UTF-8 is U+FFFD: two names must not become one by that. */
static int on_name(void *ctx, const unsigned char *p, size_t n)
{
    for (size_t at = 0, len; at < n; at += len)
        if ((len = text_utf8_len(p + at, n - at)) == 0)
            return stop(ctx, "a name is not UTF-8");
    return add_text(ctx, JSON_STRING, (const char *)p, n);
}

static int on_open(void *ctx)
{
    struct parse *s = ctx;

    if (s->depth == MAX_DEPTH)
        return stop(s, "nested too deeply");
    s->opened[s->depth++] = s->n_stack;
    return 1;
}

static int compare_names(const void *a, const void *b)
{
    const struct json *x = *(const struct json *const *)a, *y = *(const struct json *const *)b;

    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    return memcmp(x->text, y->text, x->n);
}

static bool names_repeat(const struct json *items, size_t n)
{
    bool repeat = false;

    if (n < 4)
        return false;
    const struct json **names = xcalloc(n / 2, sizeof(names[0]));
    for (size_t i = 0; i < n / 2; i++)
        names[i] = &items[2 * i];
    qsort(names, n / 2, sizeof(names[0]), compare_names);
    for (size_t i = 1; i < n / 2 && !repeat; i++)
        repeat = compare_names(&names[i - 1], &names[i]) == 0;
    free(names);
    return repeat;
}

/* Moves the values of the innermost container from the stack into the arena. */
static int close_container(struct parse *s, enum json_type type)
{
    size_t first = s->opened[--s->depth], n = s->n_stack - first;
    struct json *items = arena(s->tree, n * sizeof(*items));

    if (n)
        memcpy(items, s->stack + first, n * sizeof(*items));
    s->n_stack = first;
    if (type == JSON_OBJECT && names_repeat(items, n))
        return stop(s, "a name is repeated in an object");
    return add(s, (struct json){.items = items, .n = (uint32_t)n, .type = type});
}

static int on_object_end(void *ctx)
{
    return close_container(ctx, JSON_OBJECT);
}

static int on_array_end(void *ctx)
{
    return close_container(ctx, JSON_ARRAY);
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_bool,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_open,
    .yajl_map_key = on_name,
    .yajl_end_map = on_object_end,
    .yajl_start_array = on_open,
    .yajl_end_array = on_array_end,
};

/* yajl's sentence without its prefix and newline; it shows nothing of the text. */
static void explain(yajl_handle h, const char *ours, size_t at, char why[128])
{
    unsigned char *text = ours ? NULL : yajl_get_error(h, 0, NULL, 0);
    const char *said = ours ? ours : (const char *)text;
    const char *colon = ours ? NULL : strstr(said, ": ");

    if (colon)
        said = colon + 2;
    snprintf(why, 128, "%.*s, at byte %zu", (int)strcspn(said, "\n"), said, at);
    if (text)
        yajl_free_error(h, text);
}

struct json *json_parse(struct slice text, char why[128])
{
    struct parse s = {.tree = xcalloc(1, sizeof(*s.tree))};
    yajl_handle h = yajl_alloc(&callbacks, &yajl_memory, &s);
    struct json *root = NULL;

    yajl_config(h, yajl_dont_validate_strings, 1);
    yajl_status status = yajl_parse(h, (const unsigned char *)(text.n ? text.p : ""), text.n);
    size_t at = status == yajl_status_ok ? text.n : yajl_get_bytes_consumed(h);
    if (status == yajl_status_ok)
        status = yajl_complete_parse(h);
    if (status == yajl_status_ok && s.n_stack == 1) {
        s.tree->root = s.stack[0];
        root = &s.tree->root;
    } else {
        if (why)
            explain(h, status == yajl_status_ok ? "no value" : s.why, at, why);
        json_free(&s.tree->root);
    }
    yajl_free(h);
    free(s.stack);
    return root;
}

void json_free(struct json *root)
{
    struct tree *t = root ? list_item(root, struct tree, root) : NULL;

    for (struct block *b = t ? t->blocks : NULL, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(t);
}

/* ---- asking the tree ---------------------------------------------------------------------------- */

static bool is(const struct json *v, enum json_type t)
{
    return v && v->type == t;
}

enum json_type json_type(const struct json *v)
{
    return v ? v->type : JSON_NULL;
}

const char *json_type_name(enum json_type t)
{
    static const char *const names[] = {"null",     "true or false", "a number",
                                        "a string", "an array",      "an object"};

    return names[t];
}

const struct json *json_get(const struct json *object, const char *key)
{
    size_t n = strlen(key);

    for (size_t i = 0; is(object, JSON_OBJECT) && i < object->n; i += 2)
        if (object->items[i].n == n && memcmp(object->items[i].text, key, n) == 0)
            return &object->items[i + 1];
    return NULL;
}

size_t json_length(const struct json *v)
{
    return is(v, JSON_ARRAY) ? v->n : is(v, JSON_OBJECT) ? v->n / 2 : 0;
}

const struct json *json_item(const struct json *array, size_t i)
{
    return is(array, JSON_ARRAY) && i < array->n ? &array->items[i] : NULL;
}

struct slice json_name(const struct json *object, size_t i, const struct json **value)
{
    bool there = is(object, JSON_OBJECT) && i < object->n / 2;

    if (value)
        *value = there ? &object->items[2 * i + 1] : NULL;
    return there ? slice_make(object->items[2 * i].text, object->items[2 * i].n) : slice_make(NULL, 0);
}

struct slice json_string(const struct json *v)
{
    return is(v, JSON_STRING) ? slice_make(v->text, v->n) : slice_make(NULL, 0);
}

bool json_true(const struct json *v)
{
    return is(v, JSON_BOOL) && v->truth;
}

int json_to_i64(const struct json *v, int64_t *out)
{
    return is(v, JSON_NUMBER) ? text_to_i64(json_number(v), INT64_MIN, INT64_MAX, out) : -1;
}

struct slice json_number(const struct json *v)
{
    return is(v, JSON_NUMBER) ? slice_make(v->text, v->n) : slice_make(NULL, 0);
}

void json_write(struct json_out *j, const struct json *v)
{
    switch (json_type(v)) {
    case JSON_NULL:
        json_null(j);
        break;
    case JSON_BOOL:
        json_bool(j, v->truth);
        break;
    case JSON_NUMBER:
        json_raw(j, json_number(v));
        break;
    case JSON_STRING:
        json_text(j, json_string(v));
        break;
    case JSON_ARRAY:
        json_array(j);
        for (size_t i = 0; i < v->n; i++)
            json_write(j, &v->items[i]);
        json_array_end(j);
        break;
    case JSON_OBJECT:
        json_object(j);
        for (size_t i = 0; i < v->n; i += 2) {
            json_text(j, slice_make(v->items[i].text, v->items[i].n)); /* in the place of a name */
            json_write(j, &v->items[i + 1]);
        }
        json_object_end(j);
        break;
    }
}
