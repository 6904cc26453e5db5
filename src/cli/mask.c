/* Masking goes by a list of what may be shown: Telegram adds members all the time, and an unknown one is
 * hidden. */
#include "cli/mask.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

/* Members whose strings tell what something is, not what somebody said. File ids are left out: they give
 * access. */
static const char *const harmless[] = {
    "type",   "status",    "language_code", "currency",   "emoji_type",
    "source", "mime_type", "method",        "parse_mode", "action",
};

/* Members whose numbers tell of a person. */
static const char *const private_numbers[] = {"latitude", "longitude", "phone_number", "birthdate"};

static bool one_of(struct slice name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (slice_eq_str(name, list[i]))
            return true;
    return false;
}

/* Characters of UTF-8; of other bytes, some number of at most theirs. */
static size_t characters(struct slice s)
{
    size_t n = 0;

    for (size_t i = 0; i < s.n; i++)
        n += ((unsigned char)s.p[i] & 0xC0) != 0x80;
    return n;
}

static void write_string(struct json_out *j, struct slice s, struct slice member)
{
    char text[48];
    size_t n = characters(s);

    if (one_of(member, harmless, ARRAY_LEN(harmless))) {
        json_text(j, s);
        return;
    }
    snprintf(text, sizeof(text), "<%zu char%s>", n, n == 1 ? "" : "s");
    json_cstr(j, text);
}

static void write_value(struct json_out *j, const struct json *v, struct slice member, bool reveal);

static void write_object(struct json_out *j, const struct json *v, bool reveal)
{
    json_object(j);
    for (size_t i = 0; i < json_length(v); i++) {
        const struct json *item;
        struct slice name = json_name(v, i, &item);
        char *key = xstrndup(name.p ? name.p : "", name.n);
        json_key(j, key);
        write_value(j, item, name, reveal);
        free(key);
    }
    json_object_end(j);
}

static void write_value(struct json_out *j, const struct json *v, struct slice member, bool reveal)
{
    switch (json_type(v)) {
    case JSON_OBJECT:
        write_object(j, v, reveal);
        break;
    case JSON_ARRAY:
        json_array(j);
        for (size_t i = 0; i < json_length(v); i++)
            write_value(j, json_item(v, i), member, reveal);
        json_array_end(j);
        break;
    case JSON_STRING:
        if (reveal)
            json_text(j, json_string(v));
        else
            write_string(j, json_string(v), member);
        break;
    case JSON_NUMBER:
        if (!reveal && one_of(member, private_numbers, ARRAY_LEN(private_numbers)))
            json_cstr(j, "<number>");
        else
            json_raw(j, json_number(v));
        break;
    case JSON_BOOL:
        json_bool(j, json_true(v));
        break;
    case JSON_NULL:
        json_null(j);
    }
}

void mask_write(struct json_out *j, const struct json *v, bool reveal)
{
    write_value(j, v, slice_make(NULL, 0), reveal);
}
