/* The HTTP server. A connection is in one of five states:
 *
 *   READ    the parser takes bytes; with the request whole an exchange begins: WAIT
 *   WAIT    the handler has the exchange; http_reply ends it: WRITE
 *   WRITE   the answer goes out; then READ again, or if the connection cannot be kept: LINGER
 *   LINGER  we have ended our side and throw away what still comes, for a while, since closing with bytes
 * unread would reset the connection and could take the answer from the client CLOSED  to be freed at the end
 * of the loop's turn
 *
 * The next request of a connection is read only after the answer to the one before has left, so pipelined
 * answers keep their order and a client that does not read costs one answer. */
#include "net/http_server.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/listen.h"
#include "net/loop.h"
#include "net/stream.h"
#include "wire/http.h"
#include "wire/json.h"

#define LINGER_BYTES (16 * 1024 * 1024)
#define LINGER_MS SECONDS(5)
#define REFUSED_AT_ONCE 32 /* connections beyond the cap that are told so; more are just closed */
#define ACCEPTS_A_TURN 64
#define ACCEPT_PAUSE_MS SECONDS(1) /* when there are no descriptors left */
#define GONE_CHECK_MS SECONDS(1)   /* how often a half-closed client is looked at while it waits */
#define PIPELINED_MAX (64 * 1024)  /* bytes read ahead of the request under way */

struct http_server {
    struct loop *loop;
    struct http_server_options o; /* its strings are not kept */
    http_request_fn *fn;
    void *arg;
    struct listen_unix unix_socket;
    uint16_t port;
    int fd; /* -1: no longer listening */
    struct io *io;
    struct timer accept_again;
    struct list conns;
    unsigned n_conns;
    struct list exchanges; /* handed over and not answered yet */
};

enum state { READ, WAIT, WRITE, LINGER, CLOSED };
enum reading { IDLE, HEAD, BODY };

struct conn {
    struct list link;
    struct http_server *server;
    struct stream *stream;
    struct http_parser *parser;
    struct http_exchange *exchange; /* in WAIT */
    enum state state;
    enum reading reading; /* in READ: what the timer runs for */
    bool advancing;       /* advance() is at work further up the stack */
    bool eof;             /* the client sends no more */
    bool keep;            /* in WRITE: READ comes after it, else LINGER */
    bool continue_sent;
    uint64_t lingered;  /* bytes thrown away */
    size_t queued_last; /* in WRITE: when the timer was set */
    struct timer timer; /* of the state: time-outs, looking after a client, going on after an answer */
    long peer_uid, peer_pid;
};

struct http_exchange {
    struct list link;
    struct conn *conn;          /* NULL: the client went away unnoticed by the handler; then ... */
    struct http_parser *parser; /* ... this holds what `request` borrows */
    bool head_only;             /* HEAD */
    bool http_1_0, keep_alive;
    void (*gone)(void *arg);
    void *gone_arg;
    struct http_server_request request;
};

/* ---- connections -------------------------------------------------------------------------------------- */

static int64_t after(const struct conn *c, int64_t ms)
{
    return loop_now(c->server->loop) + ms;
}

static void conn_release(void *p)
{
    struct conn *c = p;

    http_parser_free(c->parser);
    free(c);
}

static void exchange_free(struct http_exchange *x)
{
    list_del(&x->link);
    http_parser_free(x->parser);
    free(x);
}

/* Closes at once. The exchange, if one waits, is told by its owner's callback or stays for an answer to
 * nowhere. */
static void conn_close(struct conn *c)
{
    struct http_exchange *x = c->exchange;

    if (c->state == CLOSED)
        return;
    c->state = CLOSED;
    c->exchange = NULL;
    timer_stop(&c->timer);
    stream_close(c->stream);
    list_del(&c->link);
    c->server->n_conns--;
    loop_free_later(c->server->loop, c, conn_release);
    if (!x)
        return;
    x->conn = NULL;
    if (x->gone) {
        x->gone(x->gone_arg);
        exchange_free(x);
    } else {
        x->parser = c->parser;
        c->parser = NULL;
    }
}

/* After the last answer: tells the client that no more comes, and waits for it to go. */
static void linger(struct conn *c)
{
    c->state = LINGER;
    stream_end(c->stream);
    if (c->eof) {
        conn_close(c);
        return;
    }
    c->lingered += stream_in(c->stream)->n;
    buf_clear(stream_in(c->stream));
    stream_resume(c->stream);
    timer_set(&c->timer, after(c, LINGER_MS));
}

/* The answer has left. */
static void written(struct conn *c)
{
    if (!c->keep) {
        linger(c);
        return;
    }
    c->state = READ;
    c->reading = IDLE;
    c->continue_sent = false;
    http_parser_next(c->parser);
    timer_set(&c->timer, after(c, c->server->o.idle_timeout_ms));
}

/* An answer was queued. */
static void start_writing(struct conn *c, bool keep)
{
    c->state = WRITE;
    c->keep = keep && c->server->fd >= 0;
    c->queued_last = stream_queued(c->stream);
    if (c->queued_last)
        timer_set(&c->timer, after(c, c->server->o.body_timeout_ms));
    else
        written(c);
}

/* ---- answers ------------------------------------------------------------------------------------------ */

static void add_date(struct buf *out)
{
    time_t now = (time_t)(clock_wall_ms() / 1000);
    struct tm tm;
    char date[40];

    if (gmtime_r(&now, &tm) && strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &tm))
        http_add_field(out, "Date", slice_str(date));
}

struct answer {
    int status;
    const char *content_type;
    int64_t retry_after_s;
    struct slice body;
    bool head_only, http_1_0, keep;
};

/* Queues a whole answer. */
static void write_answer(struct conn *c, const struct answer *a)
{
    bool no_body = a->status == 204 || a->status == 304;
    struct buf out = BUF_EMPTY;

    http_add_status_line(&out, a->status);
    add_date(&out);
    if (!no_body) {
        http_add_field(&out, "Content-Type",
                       slice_str(a->content_type ? a->content_type : "application/json"));
        buf_printf(&out, "Content-Length: %zu\r\n", a->body.n);
    }
    http_add_field(&out, "Cache-Control", slice_str("no-store"));
    if (a->status == 401)
        http_add_field(&out, "WWW-Authenticate", slice_str("Bearer"));
    if (a->retry_after_s >= 0)
        buf_printf(&out, "Retry-After: %lld\r\n", (long long)a->retry_after_s);
    if (!a->keep)
        http_add_field(&out, "Connection", slice_str("close"));
    else if (a->http_1_0)
        http_add_field(&out, "Connection", slice_str("keep-alive"));
    buf_add_str(&out, "\r\n");
    if (!no_body && !a->head_only)
        buf_add_slice(&out, a->body);
    stream_write(c->stream, buf_slice(&out));
    buf_free(&out);
}

static void error_body(struct buf *out, const char *code, const char *message)
{
    struct json_out j;

    json_start(&j, out);
    json_object(&j);
    json_key(&j, "error");
    json_object(&j);
    json_kv_cstr(&j, "code", code);
    json_kv_cstr(&j, "message", message);
    json_object_end(&j);
    json_object_end(&j);
    json_end(&j);
}

/* Answers what no handler gets to see, and ends the connection. */
static void refuse(struct conn *c, int status, const char *code, const char *message)
{
    struct buf body = BUF_EMPTY;

    error_body(&body, code, message);
    struct answer a = {.status = status, .retry_after_s = status == 503 ? 1 : -1, .body = buf_slice(&body)};
    write_answer(c, &a);
    buf_free(&body);
    start_writing(c, false);
}

void http_reply(struct http_exchange *x, int status, const char *content_type, int64_t retry_after_s,
                struct slice body)
{
    struct conn *c = x->conn;

    if (c) {
        struct answer a = {.status = status,
                           .content_type = content_type,
                           .retry_after_s = retry_after_s,
                           .body = body,
                           .head_only = x->head_only,
                           .http_1_0 = x->http_1_0,
                           .keep = x->keep_alive && c->server->fd >= 0};
        c->exchange = NULL;
        write_answer(c, &a);
        start_writing(c, a.keep);
        /* More requests may be here already: their handler is not to be called from inside this call. */
        if (c->state == READ && !c->advancing && (stream_in(c->stream)->n || c->eof))
            timer_set(&c->timer, loop_now(c->server->loop));
    }
    exchange_free(x);
}

void http_reply_error(struct http_exchange *x, int status, const char *code, const char *message)
{
    struct buf body = BUF_EMPTY;

    error_body(&body, code, message);
    http_reply(x, status, NULL, -1, buf_slice(&body));
    buf_free(&body);
}

/* ---- a client that goes away while it waits ----------------------------------------------------------- */

/* On a unix socket a client that only ended its sending side can be told from one that left. */
static bool has_left(const struct conn *c)
{
    struct pollfd p = {.fd = stream_fd(c->stream)};

    if (poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR)))
        return true;
    return !c->server->unix_socket.path && c->exchange->gone;
}

static void look_after(struct conn *c)
{
    if (has_left(c))
        conn_close(c);
    else
        timer_set(&c->timer, after(c, GONE_CHECK_MS));
}

void http_on_gone(struct http_exchange *x, void (*gone)(void *arg), void *arg)
{
    x->gone = gone;
    x->gone_arg = arg;
    if (gone && x->conn && x->conn->eof)
        timer_set(&x->conn->timer, loop_now(x->conn->server->loop));
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

/* The request is whole: hands it over. */
static void hand_over(struct conn *c)
{
    const struct http_message *m = http_parser_message(c->parser);
    struct http_exchange *x = xcalloc(1, sizeof(*x));

    list_add_tail(&c->server->exchanges, &x->link);
    x->conn = c;
    x->head_only = slice_eq_str(m->method, "HEAD");
    x->http_1_0 = m->minor == 0;
    x->keep_alive = m->keep_alive;
    x->request = (struct http_server_request){
        .method = m->method,
        .body = buf_slice(&m->body),
        .authorization = http_message_field(m, "Authorization"),
        .content_type = http_message_field(m, "Content-Type"),
        .header = find_header,
        .private = m,
        .peer_uid = c->peer_uid,
        .peer_pid = c->peer_pid,
    };
    c->state = WAIT;
    c->exchange = x;
    timer_stop(&c->timer);
    if (split_target(m->target, &x->request.path, &x->request.query) < 0)
        http_reply_error(x, 400, "bad_request", "the request's target is not a path");
    else
        c->server->fn(c->server->arg, x, &x->request);
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

static void refuse_bad(struct conn *c)
{
    int status;
    const char *why = http_parser_error(c->parser, &status);

    refuse(c, status, code_of(status), why);
}

/* A request was read in part: sets the time-out of the part it is in, once for each. */
static void wait_for_more(struct conn *c)
{
    const struct http_message *m = http_parser_message(c->parser);
    enum reading now = m->head_done ? BODY : http_parser_begun(c->parser) ? HEAD : IDLE;
    const struct http_server_options *o = &c->server->o;

    if (m->expect_continue && !c->continue_sent && m->head_done && m->body_bytes == 0) {
        c->continue_sent = true;
        stream_write(c->stream, slice_str("HTTP/1.1 100 Continue\r\n\r\n"));
    }
    if (now == c->reading)
        return;
    c->reading = now;
    timer_set(&c->timer, after(c, now == BODY ? o->body_timeout_ms : o->header_timeout_ms));
}

/* Reads as many requests as are there, while each is answered at once. */
static void advance(struct conn *c)
{
    bool was_full = stream_in(c->stream)->n >= PIPELINED_MAX;

    c->advancing = true;
    while (c->state == READ) {
        struct buf *in = stream_in(c->stream);
        enum http_progress p = HTTP_MORE;
        size_t used;

        if (in->n) {
            p = http_parser_feed(c->parser, buf_slice(in), &used);
            buf_drop(in, used);
        } else if (c->eof) {
            p = http_parser_eof(c->parser);
            if (p == HTTP_MORE) {
                linger(c);
                break;
            }
        } else {
            wait_for_more(c);
            break;
        }
        if (p == HTTP_BAD)
            refuse_bad(c);
        else if (p == HTTP_DONE)
            hand_over(c);
    }
    c->advancing = false;
    if (was_full && c->state != CLOSED)
        stream_resume(c->stream);
}

/* ---- events ------------------------------------------------------------------------------------------- */

static void on_data(struct conn *c)
{
    struct buf *in = stream_in(c->stream);

    if (c->state == READ) {
        advance(c);
    } else if (c->state == LINGER) {
        c->lingered += in->n;
        buf_clear(in);
        if (c->lingered > LINGER_BYTES)
            conn_close(c);
    }
}

static void on_eof(struct conn *c)
{
    c->eof = true;
    if (c->state == READ)
        advance(c);
    else if (c->state == LINGER)
        conn_close(c);
    else if (c->state == WAIT)
        look_after(c);
}

static void on_stream(void *arg, struct stream *s, enum stream_event ev)
{
    struct conn *c = arg;

    (void)s;
    switch (ev) {
    case STREAM_READY:
        break;
    case STREAM_DATA:
        on_data(c);
        break;
    case STREAM_DRAINED:
        if (c->state == WRITE) {
            written(c);
            advance(c);
        }
        break;
    case STREAM_EOF:
        on_eof(c);
        break;
    case STREAM_FAILED:
        conn_close(c);
        break;
    }
}

static void on_timer(void *arg)
{
    struct conn *c = arg;

    switch (c->state) {
    case READ:
        if (stream_in(c->stream)->n || c->eof)
            advance(c);
        else if (c->reading == IDLE)
            linger(c);
        else
            refuse(c, 408, "timeout", "the request took too long to come");
        break;
    case WAIT:
        look_after(c);
        break;
    case WRITE:
        if (stream_queued(c->stream) < c->queued_last)
            start_writing(c, c->keep);
        else
            conn_close(c);
        break;
    case LINGER:
        conn_close(c);
        break;
    case CLOSED:
        break;
    }
}

/* ---- listening ---------------------------------------------------------------------------------------- */

static void peer_credentials(struct conn *c, int fd)
{
    struct ucred cred;
    socklen_t n = sizeof(cred);

    c->peer_uid = c->peer_pid = -1;
    if (c->server->unix_socket.path && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) == 0) {
        c->peer_uid = (long)cred.uid;
        c->peer_pid = (long)cred.pid;
    }
}

static void take_connection(struct http_server *s, int fd)
{
    struct conn *c = xcalloc(1, sizeof(*c));
    int yes = 1;

    c->server = s;
    list_add_tail(&s->conns, &c->link);
    s->n_conns++;
    peer_credentials(c, fd);
    if (!s->unix_socket.path)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    timer_init(&c->timer, s->loop, on_timer, c);
    c->parser = http_parser_new(HTTP_PARSE_REQUESTS, s->o.max_body);
    c->stream = stream_new(s->loop, fd, on_stream, c);
    stream_set_in_max(c->stream, PIPELINED_MAX);
    if (s->n_conns > s->o.max_connections)
        refuse(c, 503, "busy", "too many connections; try again");
    else
        timer_set(&c->timer, after(c, s->o.idle_timeout_ms));
}

static void on_accept(void *arg, int events)
{
    struct http_server *s = arg;

    (void)events;
    for (int i = 0; i < ACCEPTS_A_TURN; i++) {
        int fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
            log_warn(NULL, "cannot accept a connection: %s", strerror(errno));
            io_want(s->io, 0);
            timer_set(&s->accept_again, loop_now(s->loop) + ACCEPT_PAUSE_MS);
        }
        /* What else may go wrong concerns that one connection, or there is none left. */
        if (fd < 0)
            return;
        if (s->n_conns >= s->o.max_connections + REFUSED_AT_ONCE)
            close(fd);
        else
            take_connection(s, fd);
    }
}

static void accept_again(void *arg)
{
    struct http_server *s = arg;

    io_want(s->io, IO_READ);
}

static void stop_listening(struct http_server *s)
{
    if (s->fd < 0)
        return;
    timer_stop(&s->accept_again);
    io_free(s->io);
    close(s->fd);
    s->io = NULL;
    s->fd = -1;
}

struct http_server *http_server_new(struct loop *l, const struct http_server_options *o, http_request_fn *fn,
                                    void *arg, struct err *e)
{
    struct listen_unix u = {.path = NULL};
    uint16_t port = 0;
    int fd = o->unix_path ? listen_unix_open(&u, o->unix_path, (mode_t)o->unix_mode, o->unix_group, e)
                          : listen_tcp(o->address, &port, e);

    if (fd < 0)
        return NULL;
    struct http_server *s = xcalloc(1, sizeof(*s));
    s->loop = l;
    s->o = *o;
    s->o.unix_path = s->o.unix_group = s->o.address = NULL;
    s->fn = fn;
    s->arg = arg;
    s->unix_socket = u;
    s->port = port;
    s->fd = fd;
    list_init(&s->conns);
    list_init(&s->exchanges);
    timer_init(&s->accept_again, l, accept_again, s);
    s->io = io_new(l, fd, on_accept, s);
    io_want(s->io, IO_READ);
    return s;
}

uint16_t http_server_port(const struct http_server *s)
{
    return s->port;
}

void http_server_stop_accepting(struct http_server *s)
{
    stop_listening(s);
    list_each(&s->conns, it)
    {
        struct conn *c = list_item(it, struct conn, link);
        if (c->state == READ && c->reading == IDLE && stream_in(c->stream)->n == 0)
            linger(c);
    }
}

static void server_release(void *p)
{
    free(p);
}

void http_server_free(struct http_server *s)
{
    if (!s)
        return;
    stop_listening(s);
    listen_unix_close(&s->unix_socket);
    list_each(&s->exchanges, it)
    {
        struct http_exchange *x = list_item(it, struct http_exchange, link);
        if (x->conn)
            x->conn->exchange = NULL;
        exchange_free(x);
    }
    list_each(&s->conns, it) conn_close(list_item(it, struct conn, link));
    loop_free_later(s->loop, s, server_release);
}
