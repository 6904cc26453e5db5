/* See conn.h. Requests are parsed by llhttp, a dependency of the project, but by none of its own code: the
 * server shall not share the faults of what it tests. */
#include "conn.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"

#define BODY_MAX (256 << 20) /* of a request; tests inject much at once */
#define IDLE_S 300

static int on_url(llhttp_t *p, const char *at, size_t n)
{
    struct conn *c = p->data;
    buf_add(&c->url, at, n);
    return c->url.n > 65536 ? -1 : 0;
}

static int on_field(llhttp_t *p, const char *at, size_t n)
{
    struct conn *c = p->data;
    buf_add(&c->field, at, n);
    return c->field.n > 65536 ? -1 : 0;
}

static int on_value(llhttp_t *p, const char *at, size_t n)
{
    struct conn *c = p->data;
    buf_add(&c->value, at, n);
    return c->value.n > 65536 ? -1 : 0;
}

static int on_header(llhttp_t *p)
{
    struct conn *c = p->data;
    if (slice_eq_nocase(buf_slice(&c->field), "content-type"))
        snprintf(c->content_type, sizeof(c->content_type), "%s", buf_str(&c->value));
    buf_clear(&c->field);
    buf_clear(&c->value);
    return 0;
}

static int on_body(llhttp_t *p, const char *at, size_t n)
{
    struct conn *c = p->data;
    buf_add(&c->body, at, n);
    return c->body.n > BODY_MAX ? -1 : 0;
}

static int on_complete(llhttp_t *p)
{
    struct conn *c = p->data;
    c->complete = true;
    c->is_post = llhttp_get_method(p) == HTTP_POST;
    c->keep_alive = llhttp_should_keep_alive(p);
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_url = on_url,
    .on_header_field = on_field,
    .on_header_value = on_value,
    .on_header_value_complete = on_header,
    .on_body = on_body,
    .on_message_complete = on_complete,
};

struct conn *conn_open(int fd, unsigned number, SSL_CTX *tls)
{
    struct conn *c = xcalloc(1, sizeof(*c));
    int on = 1;
    struct timeval idle = {IDLE_S, 0};

    c->fd = fd;
    c->number = number;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &idle, sizeof(idle));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &idle, sizeof(idle));
    llhttp_init(&c->parser, HTTP_REQUEST, &settings);
    c->parser.data = c;
    if (!tls)
        return c;
    c->ssl = SSL_new(tls);
    if (c->ssl && SSL_set_fd(c->ssl, fd) == 1 && SSL_accept(c->ssl) == 1)
        return c;
    ERR_clear_error();
    conn_close(c);
    return NULL;
}

static void release(struct conn *c)
{
    SSL_free(c->ssl);
    close(c->fd);
    buf_free(&c->in);
    buf_free(&c->url);
    buf_free(&c->body);
    buf_free(&c->field);
    buf_free(&c->value);
    free(c);
}

void conn_close(struct conn *c)
{
    if (c->ssl && SSL_is_init_finished(c->ssl))
        SSL_shutdown(c->ssl);
    ERR_clear_error();
    release(c);
}

void conn_reset(struct conn *c)
{
    struct linger now = {1, 0};
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    release(c);
}

/* Receives something more into c->in. */
static int receive(struct conn *c)
{
    char *to = buf_reserve(&c->in, 65536);
    ssize_t n = c->ssl ? SSL_read(c->ssl, to, 65536) : recv(c->fd, to, 65536, 0);
    ERR_clear_error();
    if (n <= 0)
        return -1;
    buf_added(&c->in, (size_t)n);
    return 0;
}

int conn_read(struct conn *c)
{
    buf_clear(&c->url);
    buf_free(&c->body);
    buf_clear(&c->field);
    buf_clear(&c->value);
    c->content_type[0] = '\0';
    c->complete = false;
    for (;;) {
        if (c->in.n) {
            llhttp_errno_t e = llhttp_execute(&c->parser, c->in.p, c->in.n);
            if (e == HPE_PAUSED && c->complete) {
                buf_drop(&c->in, (size_t)(llhttp_get_error_pos(&c->parser) - c->in.p));
                llhttp_resume(&c->parser);
                return 0;
            }
            if (e != HPE_OK)
                return -1;
            buf_clear(&c->in);
        }
        if (receive(c))
            return -1;
    }
}

int conn_write(struct conn *c, struct slice s)
{
    while (s.n) {
        size_t some = s.n > 1 << 20 ? 1 << 20 : s.n;
        ssize_t n = c->ssl ? SSL_write(c->ssl, s.p, (int)some) : send(c->fd, s.p, some, MSG_NOSIGNAL);
        if (n <= 0) {
            ERR_clear_error();
            return -1;
        }
        s = slice_make(s.p + n, s.n - (size_t)n);
    }
    return 0;
}

static const char *reason(int status)
{
    static const struct {
        int status;
        const char *text;
    } table[] = {{200, "OK"},
                 {400, "Bad Request"},
                 {401, "Unauthorized"},
                 {403, "Forbidden"},
                 {404, "Not Found"},
                 {409, "Conflict"},
                 {429, "Too Many Requests"},
                 {500, "Internal Server Error"},
                 {502, "Bad Gateway"},
                 {503, "Service Unavailable"},
                 {504, "Gateway Timeout"}};
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        if (table[i].status == status)
            return table[i].text;
    }
    return "Unknown";
}

void conn_head(const struct conn *c, const struct reply *r, size_t n, struct buf *out)
{
    buf_printf(out, "HTTP/1.1 %d %s\r\nServer: nginx/1.18.0\r\nContent-Type: %s\r\nContent-Length: %zu\r\n",
               r->status, reason(r->status), r->content_type ? r->content_type : "application/json", n);
    if (r->retry_after)
        buf_printf(out, "Retry-After: %d\r\n", r->retry_after);
    buf_printf(out, "Connection: %s\r\n\r\n", c->keep_alive && !r->close ? "keep-alive" : "close");
}

int conn_reply(struct conn *c, const struct reply *r)
{
    struct buf head = BUF_EMPTY;
    conn_head(c, r, r->body.n, &head);
    buf_add_slice(&head, buf_slice(&r->body));
    int rc = conn_write(c, buf_slice(&head));
    buf_free(&head);
    return rc || r->close || !c->keep_alive ? -1 : 0;
}

bool conn_wait(const struct conn *c, int wake_fd, int64_t ms)
{
    struct pollfd fds[] = {{c->fd, POLLRDHUP, 0}, {wake_fd, POLLIN, 0}};
    if (poll(fds, wake_fd < 0 ? 1 : 2, ms > 3600000 ? 3600000 : ms < 0 ? 0 : (int)ms) <= 0)
        return false;
    return fds[0].revents != 0;
}
