/* What a proxy passes on of a message's headers: RFC 9110, section 7.6.1. */
#ifndef WIRE_HTTP_HOP_H
#define WIRE_HTTP_HOP_H

#include "wire/http.h"

/* Copies to out, which has room for n, the fields that are meant for the other end: not Connection and what it
 * names, Keep-Alive, Proxy-*, TE, Trailer, Transfer-Encoding, Upgrade; nor Host, Content-Length and Expect,
 * which whoever writes the new message sets by himself. Returns how many. Slices stay borrowed. */
size_t http_end_to_end(const struct http_field *fields, size_t n, struct http_field *out);

#endif
