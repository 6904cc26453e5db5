/* What a client of the drop-in Bot API asks: its URL, and arguments from query and body. Pure. */
#ifndef SERVE_DROPIN_REQUEST_H
#define SERVE_DROPIN_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"

struct json;

#define DROPIN_METHOD_MAX 64

/* /bot<TOKEN>/<method>, /bot<TOKEN>/test/<method>, /file/bot<TOKEN>/<path>. */
struct dropin_target {
    struct buf token; /* decoded; owned. A secret, right or wrong */
    bool file, test;
    char method[DROPIN_METHOD_MAX + 1]; /* as it was written; letters, digits and '_' only; "" of a file */
    struct slice path;                  /* of a file: as it stands in the URL; borrowed */
};

/* Returns 0, or -1 for what is no such path. Whatever a server behind might take for another path (dot segments,
 * encoded letters in a method's name) is read as it would read it, or refused. dropin_target_free in both cases. */
int dropin_target_parse(struct slice path, struct dropin_target *out);
void dropin_target_free(struct dropin_target *t);
/* The path and query for the server behind, under this token. */
void dropin_target_write(const struct dropin_target *t, const char *token, struct slice query,
                         struct buf *out);

/* Arguments; they borrow from the request. */
struct dropin_args {
    struct slice query, content_type, body;
    struct json *root;  /* owned: of a JSON body */
    struct slice token; /* by which the request came: set by its reader, borrowed */
};

/* Returns 0, or -1 for a JSON body that is not an object. dropin_args_free in both cases. */
int dropin_args_read(struct slice query, struct slice content_type, struct slice body,
                     struct dropin_args *out);
void dropin_args_free(struct dropin_args *a);
/* An argument as text (of an array or object: its JSON) into value, emptied first. The query's comes before the body's,
 * and the first of a name counts. Returns whether it is there; JSON's null is not. */
bool dropin_arg(const struct dropin_args *a, const char *name, struct buf *value);
/* As Telegram reads a number: as far as it is one, else 0; put into min..max. missing: if it is not there. */
int64_t dropin_arg_int(const struct dropin_args *a, const char *name, int64_t missing, int64_t min,
                       int64_t max);
bool dropin_arg_true(const struct dropin_args *a, const char *name);

#endif
