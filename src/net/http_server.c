/* The HTTP server's listening side: who is let in, and who has to go when there are too many, or when those who
 * are in hold too much. What happens on a connection is http_conn's. */
#include "net/http_server.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "net/http_conn.h"
#include "net/tcp.h"

#define REFUSED_AT_ONCE 32 /* connections beyond the cap that are told so; more are just closed */
#define ACCEPTS_A_TURN 64
#define ACCEPT_PAUSE_MS SECONDS(1) /* when there are no descriptors left */
#define EVICT_AFTER_MS SECONDS(1)  /* a connection may be without a request for so long whatever the crowd */
#define SHAKES_AT_ONCE 32          /* TLS handshakes; more wait in the kernel's queue ... */
#define SHAKE_HURRY_MS 300         /* ... until the oldest took this long */
#define HELD_MAX (1024 * 1024)

/* ---- too many ----------------------------------------------------------------------------------- */

/* Closes the connection that has waited longest for a request, or for the rest of its head. Returns false if
 * none has for long. */
static bool evict_idle(struct http_server *s)
{
    int64_t before = loop_now(s->loop) - EVICT_AFTER_MS;

    list_each(&s->conns, it) {
        struct http_conn *c = list_item(it, struct http_conn, link);
        if (!http_conn_is_idle(c))
            continue;
        if (c->since > before)
            return false;
        http_conn_close(c);
        return true;
    }
    return false;
}

/* The two connections that hold most and can be done without: an unfinished request, or an answer nobody reads. */
static void find_largest(struct http_server *s, struct http_conn *most[2])
{
    most[0] = most[1] = NULL;
    list_each(&s->conns, it) {
        struct http_conn *c = list_item(it, struct http_conn, link);
        bool busy = c->state == CONN_OPEN && (c->exchange->given || c->exchange->mode != BODY_WHOLE);
        if (busy || !c->held)
            continue;
        if (!most[0] || c->held > most[0]->held) {
            most[1] = most[0];
            most[0] = c;
        } else if (!most[1] || c->held > most[1]->held) {
            most[1] = c;
        }
    }
}

/* Who has to go since all but the largest hold too much: that one may be as large as a body may be. NULL: nobody. */
static struct http_conn *find_victim(struct http_server *s)
{
    struct http_conn *most[2];

    if (s->held <= s->o.max_held)
        return NULL;
    find_largest(s, most);
    return most[0] && s->held - most[0]->held > s->o.max_held ? most[1] : NULL;
}

static void count_one(struct http_conn *c)
{
    if (c->state == CONN_CLOSED)
        return;
    c->server->held -= c->held;
    c->held = stream_in(c->stream)->cap + (c->parser ? http_parser_held(c->parser) : 0);
    c->server->held += c->held;
}

void http_server_count(struct http_conn *c)
{
    struct http_server *s = c->server;
    struct http_conn *victim;
    static const char too_many[] = "too many requests at once; try again";

    count_one(c);
    while ((victim = find_victim(s)) != NULL) {
        if (victim->state == CONN_READ)
            http_refuse(victim, 503, "busy", too_many);
        else if (victim->state == CONN_OPEN)
            http_conn_body_failed(victim, 503, "busy", too_many);
        else
            http_conn_close(victim);
        count_one(victim);
    }
}

/* Makes room for one more handshake, each of which takes some 50 KB. Returns false if those under way are all
 * young: then the kernel's queue is left alone until one has ended, or is old enough. */
static bool may_shake(struct http_server *s)
{
    if (!s->o.tls || s->n_shaking < SHAKES_AT_ONCE)
        return true;
    list_each(&s->conns, it) {
        struct http_conn *c = list_item(it, struct http_conn, link);
        int64_t old = c->since + SHAKE_HURRY_MS;
        if (c->state != CONN_SHAKE)
            continue;
        if (old <= loop_now(s->loop)) {
            http_conn_close(c);
            return true;
        }
        io_want(s->io, 0);
        timer_set(&s->accept_again, old);
        return false;
    }
    return true;
}

void http_server_shaken(struct http_server *s)
{
    if (s->n_shaking-- == SHAKES_AT_ONCE && s->io) {
        timer_stop(&s->accept_again);
        io_want(s->io, IO_READ);
    }
}

/* ---- accepting ---------------------------------------------------------------------------------- */

/* The address in its mapped form, so that IPv4 is the same over either kind of socket. */
static uint16_t read_address(const struct sockaddr_storage *a, struct ip_addr *ip)
{
    const struct sockaddr_in *v4 = (const void *)a;
    const struct sockaddr_in6 *v6 = (const void *)a;

    memset(ip, 0, sizeof *ip);
    if (a->ss_family == AF_INET6) {
        memcpy(ip->b, &v6->sin6_addr, 16);
        return ntohs(v6->sin6_port);
    }
    if (a->ss_family != AF_INET)
        return 0;
    ip->b[10] = ip->b[11] = 0xFF;
    memcpy(ip->b + 12, &v4->sin_addr, 4);
    return ntohs(v4->sin_port);
}

static void take_connection(struct http_server *s, int fd, const struct sockaddr_storage *a)
{
    bool too_many = s->n_conns >= s->o.max_connections && !evict_idle(s);
    struct ip_addr ip;
    uint16_t port = read_address(a, &ip);

    if (too_many && s->n_conns >= s->o.max_connections + REFUSED_AT_ONCE) {
        close(fd);
        return;
    }
    if (!s->unix_socket.path)
        tcp_set_options(fd);
    http_conn_new(s, fd, &ip, port, too_many);
}

static void on_accept(void *arg, int events)
{
    struct http_server *s = arg;

    (void)events;
    for (int i = 0; i < ACCEPTS_A_TURN; i++) {
        struct sockaddr_storage a = {.ss_family = AF_UNSPEC};
        socklen_t n = sizeof(a);
        if (!may_shake(s))
            return;
        int fd = accept4(s->fd, (struct sockaddr *)&a, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
            log_warn(NULL, "cannot accept a connection: %s", strerror(errno));
            io_want(s->io, 0);
            timer_set(&s->accept_again, loop_now(s->loop) + ACCEPT_PAUSE_MS);
        }
        /* What else may go wrong concerns that one connection, or there is none left. */
        if (fd < 0)
            return;
        take_connection(s, fd, &a);
    }
}

static void accept_again(void *arg)
{
    struct http_server *s = arg;

    io_want(s->io, IO_READ);
}

/* ---- the server --------------------------------------------------------------------------------- */

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
    if (s->o.max_held == 0)
        s->o.max_held = HELD_MAX;
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
    list_each(&s->conns, it) {
        struct http_conn *c = list_item(it, struct http_conn, link);
        if (c->state == CONN_SHAKE)
            http_conn_close(c);
        else if (c->state == CONN_READ && !c->parser && stream_in(c->stream)->n == 0)
            http_conn_linger(c);
    }
}

void http_server_free(struct http_server *s)
{
    if (!s)
        return;
    stop_listening(s);
    listen_unix_close(&s->unix_socket);
    list_each(&s->exchanges, it) {
        struct http_exchange *x = list_item(it, struct http_exchange, link);
        if (x->conn)
            x->conn->exchange = NULL;
        http_exchange_free(x);
    }
    list_each(&s->conns, it)
        http_conn_close(list_item(it, struct http_conn, link));
    loop_free_later(s->loop, s, free);
}
