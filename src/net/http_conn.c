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

int64_t http_conn_after(const struct http_conn *c, int64_t ms)
{
    return loop_now(c->server->loop) + ms;
}

/* ---- ends --------------------------------------------------------------------------------------- */

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

void http_conn_orphan(struct http_exchange *x)
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
    http_unread_count(c);
    loop_free_later(c->server->loop, c, conn_release);
    if (c->exchange)
        http_conn_orphan(c->exchange);
}

/* Of those that could be closed it has waited the least. */
static void stand_last(struct http_conn *c)
{
    c->since = loop_now(c->server->loop);
    list_del(&c->link);
    list_add_tail(&c->server->conns, &c->link);
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
    stand_last(c);
    timer_set(&c->timer, http_conn_after(c, LINGER_MS));
}

bool http_conn_is_idle(const struct http_conn *c)
{
    return c->state == CONN_SHAKE || c->state == CONN_READ || c->state == CONN_LINGER;
}

/* ---- time-outs of bytes ------------------------------------------------------------------------- */

uint64_t http_conn_taken(const struct http_conn *c)
{
    return c->written - stream_queued(c->stream);
}

static uint64_t body_read(const struct http_conn *c)
{
    return c->parser ? http_parser_message(c->parser)->body_bytes : 0;
}

bool http_wants_body(const struct http_exchange *x)
{
    return !x->given && !x->paused && x->mode != BODY_UNDECIDED;
}

void http_conn_arm(struct http_conn *c)
{
    int64_t at = TIME_NEVER;

    if (http_wants_body(c->exchange) || stream_queued(c->stream))
        at = c->window_end;
    if (c->eof && http_conn_after(c, GONE_CHECK_MS) < at)
        at = http_conn_after(c, GONE_CHECK_MS);
    timer_set(&c->timer, at);
}

static void start_window(struct http_conn *c)
{
    c->taken_mark = http_conn_taken(c);
    c->body_mark = body_read(c);
    c->window_end = http_conn_after(c, c->server->o.body_timeout_ms);
}

void http_conn_watch(struct http_conn *c)
{
    start_window(c);
    http_conn_arm(c);
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
    http_unread_count(c);
    if (was_empty && c->state == CONN_OPEN && c->exchange && stream_queued(c->stream))
        http_conn_watch(c);
}

/* ---- after an answer ---------------------------------------------------------------------------- */

/* Waits for a request. */
static void become_idle(struct http_conn *c)
{
    c->state = CONN_READ;
    stand_last(c);
    timer_set(&c->timer, http_conn_after(c, c->server->o.idle_timeout_ms));
}

/* The answer has left. */
static void written(struct http_conn *c)
{
    if (!c->keep) {
        http_conn_linger(c);
        return;
    }
    become_idle(c);
    stream_set_in_max(c->stream, HTTP_READ_AHEAD);
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

/* ---- a client that goes away while it waits ----------------------------------------------------- */

/* On a unix socket a client that only ended its sending side can be told from one that left. */
static bool has_left(const struct http_conn *c)
{
    const struct http_exchange *x = c->exchange;
    struct pollfd p = {.fd = stream_fd(c->stream)};

    if (poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR)))
        return true;
    return !c->server->unix_socket.path && (x->gone || x->ops) && !x->begun && !http_wants_body(x);
}

void http_on_gone(struct http_exchange *x, void (*gone)(void *arg), void *arg)
{
    x->gone = gone;
    x->gone_arg = arg;
    if (gone && x->conn && x->conn->eof)
        timer_set(&x->conn->timer, loop_now(x->conn->server->loop));
}

/* ---- events ------------------------------------------------------------------------------------- */

static void on_data(struct http_conn *c)
{
    struct buf *in = stream_in(c->stream);

    if (c->state != CONN_LINGER) {
        http_conn_advance(c);
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
        http_conn_arm(c);
}

static void on_eof(struct http_conn *c)
{
    c->eof = true;
    http_conn_advance(c);
    if (c->state == CONN_LINGER)
        http_conn_close(c);
    else if (c->state == CONN_OPEN)
        look_after(c);
}

static void on_drained(struct http_conn *c)
{
    struct http_exchange *x = c->exchange;

    http_unread_count(c);
    if (c->state == CONN_WRITE) {
        written(c);
        http_conn_advance(c);
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

    if (stream_queued(c->stream) && http_conn_taken(c) - c->taken_mark < HTTP_PIECE)
        return false;
    return !x || !http_wants_body(x) || (x->mode == BODY_STREAM && body_read(c) - c->body_mark >= HTTP_PIECE);
}

static void on_open_timer(struct http_conn *c)
{
    struct http_exchange *x = c->exchange;

    if (c->eof && has_left(c)) {
        http_conn_close(c);
        return;
    }
    if (loop_now(c->server->loop) < c->window_end) {
        http_conn_arm(c);
    } else if (has_moved(c)) {
        http_conn_watch(c);
    } else if (http_wants_body(x) && !stream_queued(c->stream)) {
        http_conn_body_failed(c, 408, "timeout", "the request took too long to come");
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

    http_conn_advance(c);
}

/* ---- the beginning ------------------------------------------------------------------------------ */

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
    stream_set_in_max(c->stream, HTTP_READ_AHEAD);
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
    timer_set(&c->timer, http_conn_after(c, s->o.header_timeout_ms));
}
