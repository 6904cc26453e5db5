/* HTTP/1.1 messages, around llhttp: one strict parser for requests and for responses, and the writing of
 * heads. Pure: the bytes come from and go to whoever owns the connection.
 *
 * Strict means: versions 1.0 and 1.1 only; lines end in CRLF; no folded lines; one Content-Length or one
 * Transfer-Encoding (chunked, nothing else), never both; a request of 1.1 has one Host. Whatever could be
 * read in two ways is refused. */
#ifndef WIRE_HTTP_H
#define WIRE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"

#define HTTP_MAX_HEAD \
    (16 * 1024) /* request or status line and headers; trailers and chunk headers have as much */
#define HTTP_MAX_FIELDS 100

struct http_field {
    struct slice name, value;
};

/* A message as far as it was read. The slices are valid until http_parser_next or _free. */
struct http_message {
    struct slice method, target; /* of a request */
    int status;                  /* of a response; interim ones (1xx) are skipped */
    int minor;                   /* HTTP/1.minor */
    const struct http_field *fields;
    size_t n_fields;
    bool head_done; /* everything above and below but the body is known */
    bool chunked;
    bool has_length; /* Content-Length was there: */
    uint64_t length;
    bool by_close; /* a response that ends with its connection: a cut one cannot be told from a whole one */
    bool expect_continue;  /* a request that waits for "100 Continue" before it sends its body */
    bool keep_alive;       /* once it is whole: the connection can carry another message */
    int64_t retry_after_s; /* Retry-After in seconds (capped at a year); -1: none, or a date */
    struct buf body;       /* without chunk headers; its owner may take bytes out between calls */
    uint64_t body_bytes;   /* how many of the body were read so far */
};

enum http_side { HTTP_PARSE_REQUESTS, HTTP_PARSE_RESPONSES };

/* MORE: needs more bytes; HEAD_DONE: only where http_parser_stop_at_head asked for it; DONE: the message is
 * whole; BAD: see http_parser_error, and nothing more can be read. */
enum http_progress { HTTP_MORE, HTTP_HEAD_DONE, HTTP_DONE, HTTP_BAD };

struct http_parser;

/* max_body: how many bytes message.body may hold at once, so one that is emptied while it comes has no limit.
 */
struct http_parser *http_parser_new(enum http_side side, size_t max_body);
void http_parser_free(struct http_parser *p);

/* Forgets the message and begins with the next; after DONE or to start all over on a new connection. */
void http_parser_next(struct http_parser *p);
/* From now on http_parser_feed returns HTTP_HEAD_DONE once for each message, behind its head. Feeding no bytes
 * then tells whether there is a body. */
void http_parser_stop_at_head(struct http_parser *p);
/* Sets max_body anew, also for the message under way. Returns -1 (BAD, 413) if its head says that it is longer.
 */
int http_parser_limit(struct http_parser *p, size_t max_body);
/* Bytes that the parser and what it read take up. */
size_t http_parser_held(const struct http_parser *p);
/* Takes message.body out, and gives its memory back (emptied): for one who must outlive the parser while it
 * looks at the bytes, and does not want to have them allocated anew for each piece. */
struct buf http_parser_lend_body(struct http_parser *p);
void http_parser_return_body(struct http_parser *p, struct buf *body);
/* The response that comes answers HEAD: it has no body. Until http_parser_next. */
void http_parser_no_body(struct http_parser *p);

/* Reads on; *used tells how many bytes were taken: all of them with MORE; with HEAD_DONE the rest belongs to the
 * body, or the next message; with DONE to the next message. */
enum http_progress http_parser_feed(struct http_parser *p, struct slice in, size_t *used);
/* The peer sent its last byte. DONE: that ended a response by_close. MORE: no message was begun. BAD: it was
 * cut. */
enum http_progress http_parser_eof(struct http_parser *p);

/* The message under way. */
struct http_message *http_parser_message(struct http_parser *p);
/* True once the first byte of a message was taken. */
bool http_parser_begun(const struct http_parser *p);
/* The value of the first field of that name, without regard to case; p is NULL if there is none. */
struct slice http_message_field(const struct http_message *m, const char *name);

/* After BAD: a short sentence without any byte of the peer's, and the status a server answers with: 400, 413
 * (body too large), 431 (head too large), 501 (method or coding unknown), 505 (version). */
const char *http_parser_error(const struct http_parser *p, int *status);

/* ---- writing ------------------------------------------------------------------------------------ */

const char *http_status_text(int status); /* "Not Found"; of an unknown one its class, e.g. "Client Error" */

/* "name: value" CRLF. Returns -1 and adds nothing if the name is no token or the value has control
 * characters. */
int http_add_field(struct buf *out, const char *name, struct slice value);

/* "METHOD target HTTP/1.1" CRLF. Returns -1 and adds nothing if either could break the line. */
int http_add_request_line(struct buf *out, const char *method, const char *target);

/* "HTTP/1.1 status text" CRLF. */
void http_add_status_line(struct buf *out, int status);

#endif
