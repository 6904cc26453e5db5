/* The JSON tree and writer: what was read is written and read again, and must be the same. */
#include "fuzz.h"

#include "wire/json.h"

static void write_value(struct json_out *j, const struct json *v);

static void write_container(struct json_out *j, const struct json *v)
{
    const struct json *item;

    if (json_type(v) == JSON_ARRAY) {
        json_array(j);
        for (size_t i = 0; i < json_length(v); i++)
            write_value(j, json_item(v, i));
        json_array_end(j);
        return;
    }
    json_object(j);
    for (size_t i = 0; i < json_length(v); i++) {
        json_text(j, json_name(v, i, &item));
        write_value(j, item);
    }
    json_object_end(j);
}

/* At most 64 levels, so recursion does no harm. */
static void write_value(struct json_out *j, const struct json *v)
{
    switch (json_type(v)) {
    case JSON_NULL:
        json_null(j);
        break;
    case JSON_BOOL:
        json_bool(j, json_true(v));
        break;
    case JSON_NUMBER:
        json_raw_line(j, json_number(v));
        break;
    case JSON_STRING:
        json_text(j, json_string(v));
        break;
    default:
        write_container(j, v);
    }
}

static void print(struct buf *out, const struct json *v)
{
    struct json_out j;

    json_start(&j, out);
    write_value(&j, v);
    json_end(&j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char why[128] = "";
    struct json *v = json_parse((struct slice){(const char *)data, n}, why), *w;
    struct buf once = BUF_EMPTY, twice = BUF_EMPTY;

    if (!v) {
        CHECK(why[0] && !strchr(why, '\n'));
        return 0;
    }
    print(&once, v);
    w = json_parse(buf_slice(&once), why);
    CHECK(w);
    print(&twice, w);
    CHECK(slice_eq(buf_slice(&once), buf_slice(&twice)));
    json_free(v);
    json_free(w);
    buf_free(&once);
    buf_free(&twice);
    return 0;
}
