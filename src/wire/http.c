/* The HTTP parser. The head is gathered here, checked line by line, and then given to llhttp in one piece, so
 * that all its fields are slices of one buffer; the body passes through llhttp as it comes. llhttp as some
 * distributions build it skips bytes where a line end belongs; the checks of lines here hold whatever the
 * build. */
#include "wire/http.h"

#include <assert.h>
#include <ctype.h>
#include <llhttp.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"

#define MAX_INTERIM 16 /* interim responses (1xx) before a real one */
#define LONGEST_RETRY_AFTER (365 * 24 * 3600)

enum phase { PHASE_HEAD, PHASE_BODY, PHASE_DONE, PHASE_BAD };

struct http_parser {
    llhttp_t ll;
    enum http_side side;
    enum phase phase;
    size_t max_body;
    bool no_body, stop_at_head;
    unsigned interim;
    struct buf head;
    bool after_cr;       /* the last byte that was no body was a CR */
    bool line_empty;     /* no byte of the line under way was seen yet */
    size_t trailing_crs; /* how many bytes of CRLF must come next, behind a chunk's data */
    uint64_t framing;    /* bytes of the body that were chunk headers and trailers */
    uint64_t chunk_left;
    const char *framing_from; /* in the piece being fed: behind the last body byte */
    struct http_field fields[HTTP_MAX_FIELDS];
    struct http_message m;
    const char *why;
    int bad_status;
};

static int bad(struct http_parser *p, int status, const char *why)
{
    if (p->phase != PHASE_BAD) {
        p->phase = PHASE_BAD;
        p->bad_status = status;
        p->why = why;
        p->m.keep_alive = false;
    }
    return -1;
}

/* ---- what may stand where ----------------------------------------------------------------------- */

/* A name: RFC 9110, section 5.6.2. */
static bool is_token(struct slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!s.p[i] || (!isalnum((unsigned char)s.p[i]) && !strchr("!#$%&'*+-.^_`|~", s.p[i])))
            return false;
    return s.n > 0;
}

/* A field's value: no control characters but the tab. */
static bool is_value(struct slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if (((unsigned char)s.p[i] < 0x20 && s.p[i] != '\t') || s.p[i] == 0x7F)
            return false;
    return true;
}

/* A request's target: visible ASCII. */
static bool is_target(struct slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] <= 0x20 || (unsigned char)s.p[i] >= 0x7F)
            return false;
    return s.n > 0;
}

/* ---- lines -------------------------------------------------------------------------------------- */

/* Checks bytes that are no body: CR and LF only as a pair, and CRLF at once behind a chunk's data. */
static int check_framing(struct http_parser *p, const char *from, const char *to)
{
    for (; from < to; from++) {
        bool ends = p->after_cr;
        if (p->trailing_crs && *from != (p->trailing_crs == 2 ? '\r' : '\n'))
            return bad(p, 400, "a chunk is longer than it says");
        p->trailing_crs -= p->trailing_crs > 0;
        if (ends != (*from == '\n'))
            return bad(p, 400,
                       ends ? "a carriage return without a line feed"
                            : "a line feed without a carriage return");
        p->after_cr = *from == '\r';
        p->framing++;
    }
    /* A chunk header costs its sender at least five bytes for one of body: far more is an attack. */
    if (p->framing > HTTP_MAX_HEAD + 16 * p->m.body_bytes)
        return bad(p, 431, "chunk headers or trailers are too large");
    return 0;
}

/* Takes bytes of the head up to its empty line. Returns how many, -1 if bad; *whole tells whether that line
 * came. */
static ssize_t gather_head(struct http_parser *p, struct slice in, bool *whole)
{
    size_t i = 0;

    *whole = false;
    /* One empty line before a message is to be ignored (RFC 9112, section 2.2). */
    for (; p->head.n == 0 && i < in.n && (in.p[i] == '\r' || p->after_cr); i++) {
        if (p->framing++ == 2 || p->after_cr != (in.p[i] == '\n'))
            return bad(p, 400, "empty lines before the message");
        p->after_cr = in.p[i] == '\r';
    }
    size_t start = i;
    for (; i < in.n && !*whole; i++) {
        char c = in.p[i];
        if (p->after_cr != (c == '\n'))
            return bad(p, 400, "a line of the head does not end in CRLF");
        if (p->line_empty && (c == ' ' || c == '\t'))
            return bad(p, 400, "a folded header line");
        *whole = p->line_empty && c == '\n';
        p->line_empty = c == '\n' || (p->line_empty && c == '\r');
        p->after_cr = c == '\r';
        if (p->head.n + (i - start) >= HTTP_MAX_HEAD)
            return bad(p, 431, "the head is too large");
    }
    buf_add(&p->head, in.p + start, i - start);
    return (ssize_t)i;
}

/* ---- llhttp's callbacks ------------------------------------------------------------------------- */

static struct http_parser *of(llhttp_t *ll)
{
    return ll->data;
}

static int on_method(llhttp_t *ll, const char *at, size_t n)
{
    if (of(ll)->side == HTTP_PARSE_REQUESTS)
        of(ll)->m.method = slice_make(at, n);
    return 0;
}

static int on_url(llhttp_t *ll, const char *at, size_t n)
{
    of(ll)->m.target = slice_make(at, n);
    return 0;
}

/* Trailers come here too, behind the head, and are forgotten: nobody may rely on them. */
static int on_field(llhttp_t *ll, const char *at, size_t n)
{
    struct http_parser *p = of(ll);

    if (p->m.head_done)
        return 0;
    if (p->m.n_fields == HTTP_MAX_FIELDS)
        return bad(p, 431, "too many header lines");
    p->fields[p->m.n_fields++] = (struct http_field){slice_make(at, n), slice_make("", 0)};
    return 0;
}

static int on_value(llhttp_t *ll, const char *at, size_t n)
{
    struct http_parser *p = of(ll);

    if (p->m.head_done)
        return 0;
    assert(p->m.n_fields > 0);
    while (n && (at[n - 1] == ' ' || at[n - 1] == '\t'))
        n--;
    p->fields[p->m.n_fields - 1].value = slice_make(at, n);
    return 0;
}

static int on_chunk_header(llhttp_t *ll)
{
    of(ll)->chunk_left = ll->content_length;
    return 0;
}

static int on_body(llhttp_t *ll, const char *at, size_t n)
{
    struct http_parser *p = of(ll);

    if (p->m.chunked) {
        if (check_framing(p, p->framing_from, at) < 0)
            return -1;
        p->framing_from = at + n;
        p->chunk_left -= n;
        if (p->chunk_left == 0)
            p->trailing_crs = 2;
    }
    if (n > p->max_body || p->m.body.n > p->max_body - n)
        return bad(p, 413, "the body is too large");
    buf_add(&p->m.body, at, n);
    p->m.body_bytes += n;
    return 0;
}

/* The sum of the fields of that name; *first gets the first one's value. */
static size_t count_fields(const struct http_message *m, const char *name, struct slice *first)
{
    size_t n = 0;

    for (size_t i = 0; i < m->n_fields; i++)
        if (slice_eq_nocase(m->fields[i].name, name) && n++ == 0 && first)
            *first = m->fields[i].value;
    return n;
}

/* What the head says about the body's length: each way in which two readers could differ is refused. */
static int read_framing(struct http_parser *p)
{
    struct http_message *m = &p->m;
    struct slice length, coding;
    size_t lengths = count_fields(m, "Content-Length", &length);
    size_t codings = count_fields(m, "Transfer-Encoding", &coding);
    int64_t n;

    if (lengths > 1)
        return bad(p, 400, "two Content-Length headers");
    if (codings > 1 || (codings && lengths))
        return bad(p, 400,
                   lengths ? "Content-Length and Transfer-Encoding together"
                           : "two Transfer-Encoding headers");
    if (codings) {
        if (m->minor == 0)
            return bad(p, 400, "Transfer-Encoding in HTTP/1.0");
        if (!slice_eq_nocase(coding, "chunked"))
            return bad(p, 501, "a transfer coding other than chunked");
        m->chunked = true;
    }
    if (lengths) {
        if (text_to_i64(length, 0, INT64_MAX, &n) < 0 || length.p[0] == '-')
            return bad(p, 400, "a wrong Content-Length");
        m->has_length = true;
        m->length = (uint64_t)n;
    }
    return 0;
}

static int read_request_head(struct http_parser *p)
{
    struct http_message *m = &p->m;
    struct slice expect;
    size_t hosts = count_fields(m, "Host", NULL);

    if (!is_target(m->target))
        return bad(p, 400, "a wrong request target");
    if (slice_eq_str(m->method, "CONNECT"))
        return bad(p, 501, "CONNECT is not served"); /* its body, if any, could be read in two ways */
    if (hosts > 1 || (hosts == 0 && m->minor == 1))
        return bad(p, 400, hosts ? "two Host headers" : "no Host header");
    m->expect_continue = count_fields(m, "Expect", &expect) && slice_eq_nocase(expect, "100-continue") &&
                         m->minor == 1 && (m->chunked || m->length > 0);
    if (m->has_length && m->length > p->max_body)
        return bad(p, 413, "the body is too large");
    return 0;
}

static int read_response_head(struct http_parser *p)
{
    struct http_message *m = &p->m;
    struct slice after;
    int64_t seconds;

    if (m->status < 100 || m->status > 599)
        return bad(p, 400, "a wrong status");
    if (m->status == 101)
        return bad(p, 400, "a switch of protocols that was not asked for");
    if (m->status < 200)
        return 0;
    if (count_fields(m, "Retry-After", &after) && text_to_i64(after, 0, INT64_MAX, &seconds) == 0)
        m->retry_after_s = seconds < LONGEST_RETRY_AFTER ? seconds : LONGEST_RETRY_AFTER;
    bool bare = p->no_body || m->status == 204 || m->status == 304;
    m->by_close = !bare && !m->chunked && !m->has_length;
    if (m->has_length && !bare && m->length > p->max_body)
        return bad(p, 413, "the body is too large");
    return 0;
}

static int on_headers_complete(llhttp_t *ll)
{
    struct http_parser *p = of(ll);
    struct http_message *m = &p->m;

    m->status = p->side == HTTP_PARSE_RESPONSES ? ll->status_code : 0;
    m->minor = ll->http_minor;
    m->fields = p->fields;
    m->retry_after_s = -1;
    for (size_t i = 0; i < m->n_fields; i++)
        if (!is_token(m->fields[i].name) || !is_value(m->fields[i].value))
            return bad(p, 400, "a wrong header line");
    if (ll->http_major != 1 || ll->http_minor > 1)
        return bad(p, 505, "a version that is not HTTP/1.0 or 1.1");
    if (read_framing(p) < 0)
        return -1;
    if ((p->side == HTTP_PARSE_REQUESTS ? read_request_head(p) : read_response_head(p)) < 0)
        return -1;
    m->head_done = true;
    /* 1: llhttp is to expect no body. */
    return p->side == HTTP_PARSE_RESPONSES && (p->no_body || m->status == 204 || m->status == 304);
}

/* Stops llhttp behind the message; it is never resumed but initialised anew, so a CONNECT or an upgrade is a
 * message like any other to it. */
static int on_message_complete(llhttp_t *ll)
{
    struct http_parser *p = of(ll);

    p->phase = PHASE_DONE;
    p->m.keep_alive = llhttp_should_keep_alive(ll);
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_method = on_method,
    .on_url = on_url,
    .on_header_field = on_field,
    .on_header_value = on_value,
    .on_headers_complete = on_headers_complete,
    .on_chunk_header = on_chunk_header,
    .on_body = on_body,
    .on_message_complete = on_message_complete,
};

/* ---- the parser --------------------------------------------------------------------------------- */

struct http_parser *http_parser_new(enum http_side side, size_t max_body)
{
    struct http_parser *p = xcalloc(1, sizeof(*p));

    p->side = side;
    p->max_body = max_body;
    http_parser_next(p);
    return p;
}

void http_parser_free(struct http_parser *p)
{
    if (!p)
        return;
    buf_free(&p->head);
    buf_free(&p->m.body);
    free(p);
}

/* Begins a message; what a large one needed is given back. */
static void begin(struct http_parser *p)
{
    struct buf body = p->m.body;

    buf_clear(&body);
    buf_trim(&body, 16 * 1024);
    buf_clear(&p->head);
    buf_trim(&p->head, 4 * 1024);
    p->m = (struct http_message){.body = body, .retry_after_s = -1};
    p->phase = PHASE_HEAD;
    p->after_cr = false;
    p->line_empty = true;
    p->trailing_crs = 0;
    p->framing = 0;
    llhttp_init(&p->ll, p->side == HTTP_PARSE_REQUESTS ? HTTP_REQUEST : HTTP_RESPONSE, &settings);
    p->ll.data = p;
}

void http_parser_next(struct http_parser *p)
{
    p->interim = 0;
    p->no_body = false;
    begin(p);
}

void http_parser_stop_at_head(struct http_parser *p)
{
    p->stop_at_head = true;
}

int http_parser_limit(struct http_parser *p, size_t max_body)
{
    p->max_body = max_body;
    if (p->phase == PHASE_BODY && p->m.has_length && p->m.length > max_body)
        return bad(p, 413, "the body is too large");
    return 0;
}

size_t http_parser_held(const struct http_parser *p)
{
    return sizeof(*p) + p->head.cap + p->m.body.cap;
}

struct buf http_parser_lend_body(struct http_parser *p)
{
    struct buf body = p->m.body;

    p->m.body = BUF_EMPTY;
    return body;
}

void http_parser_return_body(struct http_parser *p, struct buf *body)
{
    if (p->m.body.n == 0) {
        buf_clear(body);
        buf_free(&p->m.body);
        p->m.body = *body;
        *body = BUF_EMPTY;
    }
    buf_free(body);
}

void http_parser_no_body(struct http_parser *p)
{
    p->no_body = true;
}

/* Gives bytes to llhttp. Returns how many it took, or -1. */
static ssize_t execute(struct http_parser *p, struct slice in)
{
    llhttp_errno_t e;

    p->framing_from = in.p;
    e = llhttp_execute(&p->ll, in.p, in.n);
    if (p->phase == PHASE_BAD)
        return -1;
    const char *end = e == HPE_OK ? in.p + in.n : llhttp_get_error_pos(&p->ll);
    if (e != HPE_OK && p->phase != PHASE_DONE) {
        if (e == HPE_INVALID_METHOD)
            return bad(p, 501, "an unknown method");
        return bad(p, e == HPE_INVALID_VERSION ? 505 : 400, "not well-formed HTTP");
    }
    if (p->m.chunked && p->phase != PHASE_HEAD && p->framing_from < end &&
        check_framing(p, p->framing_from, end) < 0)
        return -1;
    return end - in.p;
}

/* llhttp knows other protocols of like shape (RTSP, ICE); we do not. */
static bool names_http(const struct http_parser *p)
{
    struct slice line = slice_make(p->head.p, strcspn(p->head.p, "\r"));

    if (p->side == HTTP_PARSE_RESPONSES)
        return line.n >= 5 && memcmp(line.p, "HTTP/", 5) == 0;
    return line.n > 9 && memcmp(line.p + line.n - 9, " HTTP/", 6) == 0;
}

/* The head is whole: llhttp reads it. */
static int read_head(struct http_parser *p)
{
    p->framing = 0;
    if (memchr(p->head.p, '\0', p->head.n))
        return bad(p, 400, "a zero byte in the head");
    if (!names_http(p))
        return bad(p, 400, "not HTTP/1.1");
    if (execute(p, buf_slice(&p->head)) < 0)
        return -1;
    if (p->side == HTTP_PARSE_RESPONSES && p->m.status < 200) {
        if (++p->interim > MAX_INTERIM)
            return bad(p, 400, "too many interim answers");
        begin(p);
    } else if (p->phase == PHASE_HEAD) {
        p->phase = PHASE_BODY;
    }
    return 0;
}

enum http_progress http_parser_feed(struct http_parser *p, struct slice in, size_t *used)
{
    *used = 0;
    while (*used < in.n && (p->phase == PHASE_HEAD || p->phase == PHASE_BODY)) {
        struct slice rest = slice_make(in.p + *used, in.n - *used);
        bool whole = false;
        ssize_t n = p->phase == PHASE_BODY ? execute(p, rest) : gather_head(p, rest, &whole);
        if (n < 0 || (whole && read_head(p) < 0))
            return HTTP_BAD;
        *used += (size_t)n;
        if (whole && p->stop_at_head && p->m.head_done)
            return HTTP_HEAD_DONE;
    }
    return p->phase == PHASE_DONE ? HTTP_DONE : p->phase == PHASE_BAD ? HTTP_BAD : HTTP_MORE;
}

enum http_progress http_parser_eof(struct http_parser *p)
{
    if (p->phase == PHASE_DONE)
        return HTTP_DONE;
    if (p->phase == PHASE_BODY && p->m.by_close) {
        p->phase = PHASE_DONE;
        return HTTP_DONE;
    }
    if (p->phase == PHASE_HEAD && p->head.n == 0 && p->interim == 0)
        return HTTP_MORE;
    bad(p, 400, "the message was cut off");
    return HTTP_BAD;
}

struct http_message *http_parser_message(struct http_parser *p)
{
    return &p->m;
}

bool http_parser_begun(const struct http_parser *p)
{
    return p->head.n > 0 || p->interim > 0 || p->phase == PHASE_BAD;
}

struct slice http_message_field(const struct http_message *m, const char *name)
{
    struct slice value = slice_make(NULL, 0);

    count_fields(m, name, &value);
    return value;
}

const char *http_parser_error(const struct http_parser *p, int *status)
{
    if (status)
        *status = p->bad_status;
    return p->why ? p->why : "";
}

/* ---- writing ------------------------------------------------------------------------------------ */

const char *http_status_text(int status)
{
    static const struct {
        int status;
        const char *text;
    } known[] = {
        {100, "Continue"},
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {410, "Gone"},
        {413, "Content Too Large"},
        {415, "Unsupported Media Type"},
        {422, "Unprocessable Content"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    };
    static const char *const classes[] = {"Informational", "Success", "Redirection", "Client Error",
                                          "Server Error"};

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (known[i].status == status)
            return known[i].text;
    return status >= 100 && status < 600 ? classes[status / 100 - 1] : "Unknown";
}

int http_add_field(struct buf *out, const char *name, struct slice value)
{
    if (!is_token(slice_str(name)) || !is_value(value))
        return -1;
    buf_printf(out, "%s: ", name);
    buf_add_slice(out, value);
    buf_add_str(out, "\r\n");
    return 0;
}

int http_add_request_line(struct buf *out, const char *method, const char *target)
{
    if (!is_token(slice_str(method)) || !is_target(slice_str(target)))
        return -1;
    buf_printf(out, "%s %s HTTP/1.1\r\n", method, target);
    return 0;
}

void http_add_status_line(struct buf *out, int status)
{
    buf_printf(out, "HTTP/1.1 %d %s\r\n", status, http_status_text(status));
}
