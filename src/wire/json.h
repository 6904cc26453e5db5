/* JSON helpers around yajl: a writer for what we send, a small tree for what we are sent. Updates are not
 * read by this but by core/update. */
#ifndef WIRE_JSON_H
#define WIRE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"

/* ---- writing: into a buffer, commas and quotes by the writer ------------------------------------ */

struct json_out {
    struct buf *out; /* borrowed */
    void *gen;       /* yajl's generator */
};

void json_start(struct json_out *j, struct buf *out);
void json_end(struct json_out *j); /* releases the writer; the buffer keeps what was written */
void json_object(struct json_out *j);
void json_object_end(struct json_out *j);
void json_array(struct json_out *j);
void json_array_end(struct json_out *j);
void json_key(struct json_out *j, const char *key);
void json_text(struct json_out *j, struct slice s); /* invalid UTF-8 becomes U+FFFD */
void json_cstr(struct json_out *j, const char *s);  /* NULL: null */
void json_int(struct json_out *j, int64_t v);
void json_uint(struct json_out *j, uint64_t v);
void json_bool(struct json_out *j, bool v);
void json_null(struct json_out *j);
void json_raw(struct json_out *j, struct slice json); /* JSON already, as it is */
/* As json_raw, with CR and LF turned to blanks, for a line of JSON. */
void json_raw_line(struct json_out *j, struct slice json);
/* A value of a tree, as read but for blanks, and for invalid UTF-8 in strings. */
struct json;
void json_write(struct json_out *j, const struct json *v);
/* key and value in one */
void json_kv_text(struct json_out *j, const char *key, struct slice s);
void json_kv_cstr(struct json_out *j, const char *key, const char *s);
void json_kv_int(struct json_out *j, const char *key, int64_t v);
void json_kv_uint(struct json_out *j, const char *key, uint64_t v);
void json_kv_bool(struct json_out *j, const char *key, bool v);

/* ---- reading ------------------------------------------------------------------------------------ */

/* A struct json is a value in a tree; borrowed from its root. */

/* Parses one JSON text: at most 64 levels deep, repeated names refused. Strings may hold invalid UTF-8, names not.
 * Returns the root, to be released by json_free, or NULL and a sentence in why (may be NULL). */
struct json *json_parse(struct slice text, char why[128]);
void json_free(struct json *root);

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };
enum json_type json_type(const struct json *v);
const char *json_type_name(enum json_type t);
/* NULL-tolerant: of a NULL or a value of another type they give NULL, an empty slice, false, -1. */
const struct json *json_get(const struct json *object, const char *key);
size_t json_length(const struct json *array_or_object);
const struct json *json_item(const struct json *array, size_t i);
struct slice json_name(const struct json *object, size_t i, const struct json **value);
struct slice json_string(const struct json *v);
bool json_true(const struct json *v);
int json_to_i64(const struct json *v, int64_t *out); /* -1: not a whole number in 64 bits */
struct slice json_number(const struct json *v);      /* as text */

/* The bytes of a member's value in a JSON object, as they stand. Returns 0; -1: no such member; -2: not a
 * JSON object. */
int json_member_bytes(struct slice object, const char *name, struct slice *out);

#endif
