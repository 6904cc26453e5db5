/* The status page at / of listen.http: a few files that are part of the program, the only thing there that needs no
 * token. All they show comes from the API, with the token that a person types in. */
#ifndef SERVE_PAGE_H
#define SERVE_PAGE_H

#include <stdbool.h>

#include "base/bytes.h"

struct http_exchange;
struct http_server_request;

/* Whether this path is of the page. */
bool page_has(struct slice path);
/* Answers a request for such a path; x is no more. */
void page_serve(struct http_exchange *x, const struct http_server_request *r);

#endif
