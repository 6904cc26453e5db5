/* What the HTTP server reads on a connection: heads, from each of which an exchange is made, and bodies, gathered
 * or passed on as they come. */
#include <arpa/inet.h>
#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "net/http_conn.h"

#define WHOLE_AHEAD (16 * 1024)  /* bytes read ahead of a body that is gathered */
#define STREAM_AHEAD (64 * 1024) /* the same of a streamed one */
#define STREAM_KEEP (256 * 1024) /* of the buffers meanwhile */

/* ---- bodies ------------------------------------------------------------------------------------- */

void http_conn_body_failed(struct http_conn *c, int status, const char *code, const char *why)
{
    if (c->exchange->begun) {
        http_conn_close(c);
        return;
    }
    struct http_exchange *x = c->exchange;
    x->given = false; /* whoever waits for the whole of it never had it */
    http_conn_orphan(x);
    if (c->state != CONN_CLOSED)
        http_refuse(c, status, code, why);
}

static const char *code_of(int status)
{
    switch (status) {
    case 413:
        return "too_large";
    case 431:
        return "head_too_large";
    case 501:
        return "not_implemented";
    case 505:
        return "version";
    default:
        return "bad_request";
    }
}

/* The parser refused what came. */
static void refuse_bad(struct http_conn *c)
{
    int status;
    const char *why = http_parser_error(c->parser, &status);

    if (c->exchange)
        http_conn_body_failed(c, status, code_of(status), why);
    else
        http_refuse(c, status, code_of(status), why);
}

/* The body is whole: its owner gets it, or its end. */
static void give_end(struct http_exchange *x)
{
    struct http_server *s = x->conn->server;

    x->given = true;
    stream_set_in_max(x->conn->stream, HTTP_READ_AHEAD);
    http_conn_arm(x->conn);
    if (x->mode == BODY_STREAM) {
        x->ops->body_end(x->ops_arg);
        return;
    }
    x->request.body = buf_slice(&http_parser_message(x->conn->parser)->body);
    s->fn(s->arg, x, &x->request);
}

/* Gives what the parser has of a streamed body. The callback may end it all, so the bytes are held here. */
static void give_piece(struct http_exchange *x)
{
    struct http_conn *c = x->conn;
    const struct http_parser *parser = c->parser;
    struct buf piece;

    if (http_parser_message(c->parser)->body.n == 0)
        return;
    piece = http_parser_lend_body(c->parser);
    x->ops->body(x->ops_arg, buf_slice(&piece));
    if (c->parser == parser)
        http_parser_return_body(c->parser, &piece);
    else
        buf_free(&piece);
}

/* Takes one step in reading a body. Returns false if more bytes must come first. */
static bool read_body(struct http_conn *c)
{
    struct http_exchange *x = c->exchange;
    struct buf *in = stream_in(c->stream);
    enum http_progress p;
    size_t used;

    if (x->too_long) {
        refuse_bad(c);
        return true;
    }
    if (x->read) {
        give_end(x);
        return true;
    }
    if (in->n) {
        p = http_parser_feed(c->parser, buf_slice(in), &used);
        buf_drop(in, used);
        x->read = p == HTTP_DONE;
    } else if (c->eof) {
        p = http_parser_eof(c->parser);
    } else {
        return false;
    }
    if (p == HTTP_BAD)
        refuse_bad(c);
    else if (x->mode == BODY_STREAM)
        give_piece(x);
    return true;
}

/* The handler wants bytes: they may be here already. */
static void go_on(struct http_conn *c)
{
    http_conn_watch(c);
    if (!c->advancing)
        timer_set(&c->go, loop_now(c->server->loop));
}

/* A client that waits to hear whether its body is wanted is told. */
static void say_continue(struct http_conn *c)
{
    const struct http_message *m = http_parser_message(c->parser);

    if (m->expect_continue && m->body_bytes == 0 && stream_in(c->stream)->n == 0)
        http_conn_write(c, slice_str("HTTP/1.1 100 Continue\r\n\r\n"));
}

void http_body_whole(struct http_exchange *x, size_t max)
{
    assert(x->mode == BODY_UNDECIDED);
    x->mode = BODY_WHOLE;
    x->too_long = http_parser_limit(x->conn->parser, max) < 0;
    stream_set_in_max(x->conn->stream, WHOLE_AHEAD);
    if (!x->too_long)
        say_continue(x->conn);
    go_on(x->conn);
}

void http_body_stream(struct http_exchange *x, const struct http_stream_ops *ops, void *arg)
{
    assert(x->mode == BODY_UNDECIDED);
    x->mode = BODY_STREAM;
    x->ops = ops;
    x->ops_arg = arg;
    stream_set_in_max(x->conn->stream, STREAM_AHEAD);
    stream_keep_buffers(x->conn->stream, STREAM_KEEP);
    say_continue(x->conn);
    go_on(x->conn);
}

void http_body_pause(struct http_exchange *x)
{
    x->paused = true;
    http_conn_arm(x->conn);
}

void http_body_resume(struct http_exchange *x)
{
    if (!x->paused)
        return;
    x->paused = false;
    go_on(x->conn);
}

/* ---- requests ----------------------------------------------------------------------------------- */

static struct slice find_header(const struct http_server_request *r, const char *name)
{
    return http_message_field(r->private, name);
}

/* Splits the target into path and query. The absolute form is for proxies, yet every server must take it
 * (RFC 9112, section 3.2.2); its host says nothing to us. */
static int split_target(struct slice target, struct slice *path, struct slice *query)
{
    const char *p = target.p, *end = target.p + target.n;
    static const char *const schemes[] = {"http://", "https://"};

    for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
        size_t n = strlen(schemes[i]);
        if (target.n > n && slice_eq_nocase(slice_make(p, n), schemes[i])) {
            p = memchr(p + n, '/', target.n - n);
            break;
        }
    }
    if (!p || *p != '/' || memchr(p, '#', (size_t)(end - p)))
        return -1;
    const char *mark = memchr(p, '?', (size_t)(end - p));
    *path = slice_make(p, (size_t)((mark ? mark : end) - p));
    *query = mark ? slice_make(mark + 1, (size_t)(end - mark - 1)) : slice_make(NULL, 0);
    return 0;
}

static void name_peer(struct http_exchange *x)
{
    static const unsigned char mapped[12] = {[10] = 0xFF, [11] = 0xFF};
    const struct http_conn *c = x->conn;
    bool v4 = memcmp(c->peer_ip.b, mapped, sizeof mapped) == 0;

    if (c->server->unix_socket.path ||
        !inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? c->peer_ip.b + sizeof mapped : c->peer_ip.b, x->peer_text,
                   sizeof x->peer_text))
        x->peer_text[0] = '\0';
}

static struct http_exchange *exchange_new(struct http_conn *c)
{
    const struct http_message *m = http_parser_message(c->parser);
    struct http_exchange *x = xcalloc(1, sizeof(*x));

    list_add_tail(&c->server->exchanges, &x->link);
    x->conn = c;
    x->head_only = slice_eq_str(m->method, "HEAD");
    x->http_1_0 = m->minor == 0;
    name_peer(x);
    x->request = (struct http_server_request){
        .method = m->method,
        .authorization = http_message_field(m, "Authorization"),
        .content_type = http_message_field(m, "Content-Type"),
        .header = find_header,
        .private = m,
        .fields = m->fields,
        .n_fields = m->n_fields,
        .content_length = m->chunked ? -1 : (int64_t)m->length,
        .peer_uid = (long)c->peer_uid,
        .peer_pid = c->peer_pid,
        .peer_ip = c->peer_ip,
        .peer_port = c->peer_port,
        .peer_text = x->peer_text,
        .tls = c->server->o.tls != NULL,
    };
    return x;
}

/* The head is whole: an exchange begins. */
static void open_exchange(struct http_conn *c)
{
    const struct http_message *m = http_parser_message(c->parser);
    struct http_server *s = c->server;
    struct http_exchange *x = exchange_new(c);
    size_t used;

    c->state = CONN_OPEN;
    c->exchange = x;
    x->read = http_parser_feed(c->parser, slice_make("", 0), &used) == HTTP_DONE;
    timer_stop(&c->timer);
    if (split_target(m->target, &x->request.path, &x->request.query) < 0) {
        http_reply_error(x, 400, "bad_request", "the request's target is not a path");
    } else if (s->o.on_head) {
        s->o.on_head(s->arg, x, &x->request);
        assert(c->exchange != x || x->mode != BODY_UNDECIDED || x->gone || x->begun);
    } else {
        http_body_whole(x, s->o.max_body);
    }
}

/* Reads on in a head, or begins one. Returns false if more bytes must come first. */
static bool read_head(struct http_conn *c)
{
    struct buf *in = stream_in(c->stream);
    enum http_progress p;
    size_t used;

    if (!c->parser && in->n) {
        c->parser = http_parser_new(HTTP_PARSE_REQUESTS, SIZE_MAX);
        http_parser_stop_at_head(c->parser);
        timer_set(&c->timer, http_conn_after(c, c->server->o.header_timeout_ms));
    }
    if (in->n) {
        p = http_parser_feed(c->parser, buf_slice(in), &used);
        buf_drop(in, used);
    } else if (c->eof) {
        p = c->parser ? http_parser_eof(c->parser) : HTTP_MORE;
        if (p == HTTP_MORE)
            http_conn_linger(c);
    } else {
        return false;
    }
    if (p == HTTP_BAD)
        refuse_bad(c);
    else if (p == HTTP_HEAD_DONE && !http_unread_has_room(c->server))
        http_refuse(c, 503, "busy", http_unread_busy);
    else if (p == HTTP_HEAD_DONE)
        open_exchange(c);
    return true;
}

void http_conn_advance(struct http_conn *c)
{
    size_t before = stream_in(c->stream)->n;
    bool more = true;

    c->advancing = true;
    while (more) {
        if (c->state == CONN_READ)
            more = read_head(c);
        else if (c->state == CONN_OPEN && http_wants_body(c->exchange))
            more = read_body(c);
        else
            break;
    }
    c->advancing = false;
    if (c->state != CONN_CLOSED && stream_in(c->stream)->n < before)
        stream_resume(c->stream); /* it may have stopped for want of room */
    http_server_count(c);
}
