/* The arguments of a Bot API request: from the query, and from an urlencoded, JSON or multipart body. Where a
 * name comes twice, the first wins. Also the few pieces of JSON that the server needs. */
#ifndef BOTAPI_ARGS_H
#define BOTAPI_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct arg {
    char *name;       /* owned */
    struct buf value; /* of a JSON body: a string's content, else the value's JSON text */
};

struct args {
    struct arg *v;
    size_t n;
};

/* Adds what is in the text of a query or an urlencoded body. */
void args_add_urlencoded(struct args *a, struct slice text);
/* Adds what is in a body; of a type unknown, nothing. */
void args_add_body(struct args *a, const char *content_type, struct slice body);
void args_free(struct args *a);

const struct arg *args_find(const struct args *a, const char *name); /* NULL: absent */
struct slice args_text(const struct args *a, const char *name);      /* empty: absent */
/* A whole number, or the default if it is absent or none; then clamped, as Telegram does. */
int64_t args_int(const struct args *a, const char *name, int64_t def, int64_t min, int64_t max);
bool args_true(const struct args *a, const char *name); /* "true", "yes", "1" */

/* Appends s as a JSON string; what is not UTF-8 becomes U+FFFD. */
void add_json_string(struct buf *out, struct slice s);
/* Appends all arguments as a JSON object of strings. */
void args_add_json(const struct args *a, struct buf *out);
/* Decodes base64. Returns 0, or -1. */
int decode_base64(struct slice s, struct buf *out);

/* Appends a part of an URL with its %XX and '+' undone. */
void unescape_url(struct slice s, struct buf *out);

struct yajl_val_s;
/* Appends a parsed value as JSON text again. */
void add_json_value(struct buf *out, const struct yajl_val_s *v);

#endif
