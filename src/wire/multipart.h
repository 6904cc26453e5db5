/* multipart/form-data (RFC 7578), walked part by part over a body that is there whole. */
#ifndef WIRE_MULTIPART_H
#define WIRE_MULTIPART_H

#include <stdbool.h>

#include "base/bytes.h"

struct multipart {
    struct slice rest;  /* behind the last delimiter */
    char delimiter[80]; /* CRLF "--" boundary */
    size_t n_delimiter;
    bool ended;
};

struct multipart_part {
    struct slice name;    /* of the form's field */
    struct slice content; /* borrowed from the body */
    bool is_file;         /* it has a file name */
};

/* Returns 0, or -1 if the content type is not multipart/form-data with a good boundary, or the body does not begin
 * with it. Borrows the body. */
int multipart_start(struct multipart *m, struct slice content_type, struct slice body);
/* The next part: 1; 0: the closing delimiter was reached; -1: malformed. */
int multipart_next(struct multipart *m, struct multipart_part *out);

/* The value of a parameter of a header value, such as boundary=... or name="...": case of the name does not matter;
 * quotes are taken off (a backslash in them is refused). Empty if it is not there. */
struct slice header_parameter(struct slice value, const char *name);
/* Whether a Content-Type is of this type, whatever its parameters and case. */
bool content_type_is(struct slice value, const char *type);

#endif
