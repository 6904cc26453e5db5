/* Base64 (RFC 4648, section 4), with padding and without line breaks. */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include "base/buf.h"
#include "base/bytes.h"

void base64_add(struct buf *out, struct slice bytes);
/* Appends what the text stands for. Returns 0, or -1 for a text that is none; out may hold a part of it then. */
int base64_add_decoded(struct buf *out, struct slice text);

#endif
