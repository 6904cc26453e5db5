/* A connection of the HTTP server. It is in one of these states:
 *
 *   SHAKE   TLS is being set up
 *   READ    the parser takes bytes; with the head whole an exchange begins: OPEN
 *   OPEN    a handler has the exchange; the body is gathered or streamed to it, http_reply or http_end ends it:
 *           WRITE
 *   WRITE   the answer goes out; then READ again, or if the connection cannot be kept: LINGER
 *   LINGER  we have ended our side and throw away what still comes, for a while, since closing with bytes
 *           unread would reset the connection and could take the answer from the client
 *   CLOSED  to be freed at the end of the loop's turn
 *
 * The next request of a connection is read only after the answer to the one before has left, so pipelined
 * answers keep their order and a client that does not read costs one answer. */
#include <arpa/inet.h>
#include <assert.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/mem.h"
#include "net/http_conn.h"

#define LINGER_BYTES (16 * 1024 * 1024)
#define LINGER_MS SECONDS(5)
#define GONE_CHECK_MS SECONDS(1) /* how often a half-closed client is looked at while it waits */
#define READ_AHEAD 4096          /* bytes read ahead of the request under way */
#define WHOLE_AHEAD (16 * 1024)  /* the same of a body that is gathered */
#define STREAM_AHEAD (64 * 1024) /* the same of a streamed body */
#define STREAM_KEEP (256 * 1024) /* of the buffers meanwhile */

static int64_t after(const struct http_conn *c, int64_t ms)
{
    return loop_now(c->server->loop) + ms;
}

/* ---- ends --------------------------------------------------------------------------------------------- */

static void conn_release(void *p)
{
    struct http_conn *c = p;

    http_parser_free(c->parser);
    free(c);
}

void http_exchange_free(struct http_exchange *x)
{
    list_del(&x->link);
    http_parser_free(x->parser);
    free(x);
}

/* The exchange goes on without its connection: its owner is told, or will find out when it answers. */
static void orphan(struct http_exchange *x)
{
    struct http_conn *c = x->conn;
    void (*gone)(void *) = x->ops ? x->ops->gone : x->gone;
    void *arg = x->ops ? x->ops_arg : x->gone_arg;

    c->exchange = NULL;
    x->conn = NULL;
    if (!gone && x->given) {
        x->parser = c->parser;
        c->parser = NULL;
        return;
    }
    if (gone)
        gone(arg);
    http_exchange_free(x);
}

void http_conn_close(struct http_conn *c)
{
    if (c->state == CONN_CLOSED)
        return;
    if (c->state == CONN_SHAKE)
        http_server_shaken(c->server);
    c->state = CONN_CLOSED;
    timer_stop(&c->timer);
    timer_stop(&c->go);
    stream_close(c->stream);
    list_del(&c->link);
    c->server->n_conns--;
    c->server->held -= c->held;
    loop_free_later(c->server->loop, c, conn_release);
    if (c->exchange)
        orphan(c->exchange);
}

void http_conn_linger(struct http_conn *c)
{
    c->state = CONN_LINGER;
    stream_end(c->stream);
    if (c->eof) {
        http_conn_close(c);
        return;
    }
    c->lingered += stream_in(c->stream)->n;
    buf_clear(stream_in(c->stream));
    stream_resume(c->stream);
    timer_set(&c->timer, after(c, LINGER_MS));
}

bool http_conn_is_idle(const struct http_conn *c)
{
    return c->state == CONN_SHAKE || c->state == CONN_READ;
}

/* ---- time-outs of bytes ------------------------------------------------------------------------------- */

static uint64_t taken(const struct http_conn *c)
{
    return c->written - stream_queued(c->stream);
}

static uint64_t body_read(const struct http_conn *c)
{
    return c->parser ? http_parser_message(c->parser)->body_bytes : 0;
}

/* Whether the exchange waits for more of its body. */
static bool wants_body(const struct http_exchange *x)
{
    return !x->given && !x->paused && x->mode != BODY_UNDECIDED;
}

/* Sets the timer of an open exchange for whatever can come to its end. */
static void set_open_timer(struct http_conn *c)
{
    int64_t at = TIME_NEVER;

    if (wants_body(c->exchange) || stream_queued(c->stream))
        at = c->window_end;
    if (c->eof && after(c, GONE_CHECK_MS) < at)
        at = after(c, GONE_CHECK_MS);
    timer_set(&c->timer, at);
}

static void start_window(struct http_conn *c)
{
    c->taken_mark = taken(c);
    c->body_mark = body_read(c);
    c->window_end = after(c, c->server->o.body_timeout_ms);
}

void http_conn_watch(struct http_conn *c)
{
    start_window(c);
    set_open_timer(c);
}

void http_conn_write(struct http_conn *c, struct slice bytes)
{
    http_conn_write_between(c, slice_make("", 0), bytes, slice_make("", 0));
}

void http_conn_write_between(struct http_conn *c, struct slice before, struct slice bytes,
                             struct slice behind)
{
    bool was_empty = stream_queued(c->stream) == 0;

    c->written += before.n + bytes.n + behind.n;
    stream_prepare(c->stream, before);
    if (behind.n)
        stream_prepare(c->stream, bytes);
    stream_write(c->stream, behind.n ? behind : bytes);
    if (was_empty && c->state == CONN_OPEN && c->exchange && stream_queued(c->stream))
        http_conn_watch(c);
}

/* ---- after an answer ---------------------------------------------------------------------------------- */

/* Waits for a request. */
static void become_idle(struct http_conn *c)
{
    c->state = CONN_READ;
    c->since = loop_now(c->server->loop);
    list_del(&c->link);
    list_add_tail(&c->server->conns, &c->link);
    timer_set(&c->timer, after(c, c->server->o.idle_timeout_ms));
}

/* The answer has left. */
static void written(struct http_conn *c)
{
    if (!c->keep) {
        http_conn_linger(c);
        return;
    }
    become_idle(c);
    stream_set_in_max(c->stream, READ_AHEAD);
    stream_keep_buffers(c->stream, 0);
    /* More requests may be here already: their handler is not to be called from inside a call. */
    if (!c->advancing && (stream_in(c->stream)->n || c->eof))
        timer_set(&c->go, loop_now(c->server->loop));
}

void http_conn_finish(struct http_conn *c, bool keep)
{
    c->exchange = NULL;
    c->state = CONN_WRITE;
    c->keep = keep;
    http_parser_free(c->parser); /* nobody looks at the request any more */
    c->parser = NULL;
    if (stream_queued(c->stream)) {
        start_window(c);
        timer_set(&c->timer, c->window_end);
    } else {
        written(c);
    }
}

/* ---- a client that goes away while it waits ----------------------------------------------------------- */

/* On a unix socket a client that only ended its sending side can be told from one that left. */
static bool has_left(const struct http_conn *c)
{
    const struct http_exchange *x = c->exchange;
    struct pollfd p = {.fd = stream_fd(c->stream)};

    if (poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR)))
        return true;
    return !c->server->unix_socket.path && (x->gone || x->ops) && !x->begun && !wants_body(x);
}

void http_on_gone(struct http_exchange *x, void (*gone)(void *arg), void *arg)
{
    x->gone = gone;
    x->gone_arg = arg;
    if (gone && x->conn && x->conn->eof)
        timer_set(&x->conn->timer, loop_now(x->conn->server->loop));
}

/* ---- bodies ------------------------------------------------------------------------------------------- */

/* The body will not be whole. A client that reads no answer yet is told why. */
static void body_failed(struct http_conn *c, int status, const char *code, const char *why)
{
    if (c->exchange->begun) {
        http_conn_close(c);
        return;
    }
    struct http_exchange *x = c->exchange;
    x->given = false; /* whoever waits for the whole of it never had it */
    orphan(x);
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
        body_failed(c, status, code_of(status), why);
    else
        http_refuse(c, status, code_of(status), why);
}

/* The body is whole: its owner gets it, or its end. */
static void give_end(struct http_exchange *x)
{
    struct http_server *s = x->conn->server;

    x->given = true;
    stream_set_in_max(x->conn->stream, READ_AHEAD);
    set_open_timer(x->conn);
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
    set_open_timer(x->conn);
}

void http_body_resume(struct http_exchange *x)
{
    if (!x->paused)
        return;
    x->paused = false;
    go_on(x->conn);
}

/* ---- requests ----------------------------------------------------------------------------------------- */

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
        timer_set(&c->timer, after(c, c->server->o.header_timeout_ms));
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
    else if (p == HTTP_HEAD_DONE)
        open_exchange(c);
    return true;
}

/* Reads as many requests as are there, while each is answered at once. */
static void advance(struct http_conn *c)
{
    size_t before = stream_in(c->stream)->n;
    bool more = true;

    c->advancing = true;
    while (more) {
        if (c->state == CONN_READ)
            more = read_head(c);
        else if (c->state == CONN_OPEN && wants_body(c->exchange))
            more = read_body(c);
        else
            break;
    }
    c->advancing = false;
    if (c->state != CONN_CLOSED && stream_in(c->stream)->n < before)
        stream_resume(c->stream); /* it may have stopped for want of room */
    http_server_count(c);
}

/* ---- events ------------------------------------------------------------------------------------------- */

static void on_data(struct http_conn *c)
{
    struct buf *in = stream_in(c->stream);

    if (c->state != CONN_LINGER) {
        advance(c);
        return;
    }
    c->lingered += in->n;
    buf_clear(in);
    if (c->lingered > LINGER_BYTES)
        http_conn_close(c);
}

static void look_after(struct http_conn *c)
{
    if (has_left(c))
        http_conn_close(c);
    else
        set_open_timer(c);
}

static void on_eof(struct http_conn *c)
{
    c->eof = true;
    advance(c);
    if (c->state == CONN_LINGER)
        http_conn_close(c);
    else if (c->state == CONN_OPEN)
        look_after(c);
}

static void on_drained(struct http_conn *c)
{
    struct http_exchange *x = c->exchange;

    if (c->state == CONN_WRITE) {
        written(c);
        advance(c);
    } else if (c->state == CONN_OPEN && x->begun && x->ops && x->ops->drained) {
        x->ops->drained(x->ops_arg);
    }
}

static void on_ready(struct http_conn *c)
{
    if (c->state == CONN_SHAKE)
        http_server_shaken(c->server);
    become_idle(c);
    if (c->too_many)
        http_refuse(c, 503, "busy", "too many connections; try again");
}

static void on_stream(void *arg, struct stream *s, enum stream_event ev)
{
    struct http_conn *c = arg;

    switch (ev) {
    case STREAM_READY:
        on_ready(c);
        break;
    case STREAM_DATA:
        on_data(c);
        break;
    case STREAM_DRAINED:
        on_drained(c);
        break;
    case STREAM_EOF:
        on_eof(c);
        break;
    case STREAM_FAILED:
        if (c->state == CONN_SHAKE)
            log_debug(NULL, "a client's connection failed: %s", stream_error(s));
        http_conn_close(c);
        break;
    }
}

/* Whether those who must move bytes did, in the time that is over. */
static bool has_moved(const struct http_conn *c)
{
    const struct http_exchange *x = c->exchange;

    if (stream_queued(c->stream) && taken(c) - c->taken_mark < HTTP_PIECE)
        return false;
    return !x || !wants_body(x) || (x->mode == BODY_STREAM && body_read(c) - c->body_mark >= HTTP_PIECE);
}

static void on_open_timer(struct http_conn *c)
{
    struct http_exchange *x = c->exchange;

    if (c->eof && has_left(c)) {
        http_conn_close(c);
        return;
    }
    if (loop_now(c->server->loop) < c->window_end) {
        set_open_timer(c);
    } else if (has_moved(c)) {
        http_conn_watch(c);
    } else if (wants_body(x) && !stream_queued(c->stream)) {
        body_failed(c, 408, "timeout", "the request took too long to come");
    } else {
        http_conn_close(c);
    }
}

static void on_timer(void *arg)
{
    struct http_conn *c = arg;

    switch (c->state) {
    case CONN_READ:
        if (c->parser)
            http_refuse(c, 408, "timeout", "the request took too long to come");
        else
            http_conn_linger(c);
        break;
    case CONN_OPEN:
        on_open_timer(c);
        break;
    case CONN_WRITE:
        if (has_moved(c))
            http_conn_finish(c, c->keep);
        else
            http_conn_close(c);
        break;
    case CONN_SHAKE:
    case CONN_LINGER:
    case CONN_CLOSED:
        http_conn_close(c);
        break;
    }
}

static void on_go(void *arg)
{
    struct http_conn *c = arg;

    advance(c);
}

/* ---- the beginning ------------------------------------------------------------------------------------ */

static void peer_credentials(struct http_conn *c, int fd)
{
    struct ucred cred;
    socklen_t n = sizeof(cred);

    c->peer_uid = c->peer_pid = -1;
    if (c->server->unix_socket.path && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) == 0) {
        c->peer_uid = (int64_t)cred.uid;
        c->peer_pid = cred.pid;
    }
}

void http_conn_new(struct http_server *s, int fd, const struct ip_addr *ip, uint16_t port, bool too_many)
{
    struct http_conn *c = xcalloc(1, sizeof(*c));

    c->server = s;
    c->peer_ip = *ip;
    c->peer_port = port;
    c->too_many = too_many;
    list_init(&c->link);
    s->n_conns++;
    peer_credentials(c, fd);
    timer_init(&c->timer, s->loop, on_timer, c);
    timer_init(&c->go, s->loop, on_go, c);
    c->stream = stream_new(s->loop, fd, on_stream, c);
    stream_set_in_max(c->stream, READ_AHEAD);
    if (!s->o.tls) {
        c->state = CONN_READ;
        on_ready(c);
        return;
    }
    c->state = CONN_SHAKE;
    s->n_shaking++;
    c->since = loop_now(s->loop);
    list_add_tail(&s->conns, &c->link);
    tls_start_server(c->stream, s->o.tls);
    timer_set(&c->timer, after(c, s->o.header_timeout_ms));
}
