/* RFC 8305, "Happy Eyeballs": both families are asked for at once; IPv6 starts as soon as its answer is
 * there, IPv4 waits 50 ms for it; addresses alternate between the families; a new attempt starts 250 ms after
 * the one before, or at once when one fails; the first connection wins. A broken family so costs 250 ms, and
 * a missing answer 50 ms. */
#include "net/connect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/loop.h"
#include "net/tcp.h"

#define RESOLUTION_DELAY_MS 50
#define ATTEMPT_DELAY_MS 250
#define ATTEMPTS_MAX 32 /* as many as dns.c gives of both families */

struct attempt {
    struct connector *c;
    struct net_address to;
    int fd; /* -1: ended */
    struct io *io;
};

/* The addresses of one family, in the order in which they came. */
struct family {
    struct net_address addresses[ATTEMPTS_MAX / 2];
    size_t n, tried;
    bool answered;
};

struct connector {
    struct loop *loop;
    struct dns *dns;
    struct timer timer; /* the next attempt, or the end of the resolution delay */
    struct family v6, v4;
    bool v4_is_next; /* of the alternation */
    bool all_answered, started, done, dead;
    struct attempt attempts[ATTEMPTS_MAX];
    size_t n_attempts, open;
    char *host, *path;
    uint16_t port;
    enum ip_mode ip;
    char why[200]; /* the failures so far, for people */
    bool is_unix;
    connect_fn *fn;
    void *arg;
};

static void try_next(struct connector *c);

/* ---- the end ------------------------------------------------------------------------------------ */

static void attempt_end(struct attempt *a, bool keep_fd)
{
    if (a->fd < 0)
        return;
    io_free(a->io);
    if (!keep_fd)
        close(a->fd);
    a->fd = -1;
    a->c->open--;
}

static void give_up_all(struct connector *c)
{
    for (size_t i = 0; i < c->n_attempts; i++)
        attempt_end(&c->attempts[i], false);
    dns_free(c->dns);
    c->dns = NULL;
    timer_stop(&c->timer);
}

static void finish(struct connector *c, enum connect_result r, int fd, const char *error)
{
    give_up_all(c);
    c->done = true;
    c->fn(c->arg, r, fd, error);
}

static void fail(struct connector *c)
{
    static const char *const no_address[] = {
        [IP_ANY] = "it has no address", [IP_4] = "it has no IPv4 address", [IP_6] = "it has no IPv6 address"};
    char text[512];

    if (c->is_unix) {
        snprintf(text, sizeof text, "cannot connect to %s: %s", c->path, c->why);
        finish(c, CONNECT_NO_PEER, -1, text);
    } else if (c->n_attempts == 0) {
        snprintf(text, sizeof text, "the name %s could not be resolved: %s", c->host,
                 *c->why ? c->why : no_address[c->ip]);
        finish(c, CONNECT_NO_NAME, -1, text);
    } else {
        snprintf(text, sizeof text, "cannot connect to %s port %u: %s", c->host, c->port, c->why);
        finish(c, CONNECT_NO_PEER, -1, text);
    }
}

/* Adds to what will be said if nothing succeeds. Said twice, it is kept once. */
static void note(struct connector *c, const char *who, const char *what)
{
    char line[160];
    size_t n = strlen(c->why);

    snprintf(line, sizeof line, "%s%s%s", who, *who ? ": " : "", what);
    if (!strstr(c->why, line))
        snprintf(c->why + n, sizeof c->why - n, "%s%s", n ? "; " : "", line);
}

/* ---- attempts ----------------------------------------------------------------------------------- */

/* The attempt ended in an error: the next one needs not wait for its time. */
static void attempt_failed(struct attempt *a, int err_no)
{
    struct connector *c = a->c;
    char who[NET_ADDRESS_TEXT];

    attempt_end(a, false);
    note(c, c->is_unix ? "" : net_address_text(&a->to, who), strerror(err_no));
    try_next(c);
}

static void on_connected(void *arg, int events)
{
    struct attempt *a = arg;
    int err_no = 0, fd = a->fd;
    socklen_t length = sizeof err_no;

    (void)events;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err_no, &length) != 0)
        err_no = errno;
    if (err_no) {
        attempt_failed(a, err_no);
        return;
    }
    attempt_end(a, true);
    finish(a->c, CONNECT_OK, fd, NULL);
}

/* Returns 0 if the attempt is under way or won, or its errno. A connection that is there at once (Unix
 * sockets) is told by the loop like any other, as its descriptor is writable. */
static int attempt_start(struct connector *c, const struct sockaddr *to, socklen_t length)
{
    struct attempt *a = &c->attempts[c->n_attempts++];

    if (c->n_attempts == 1)
        c->why[0] = '\0'; /* the name is resolved: what became of one family's question is no news */
    a->c = c;
    a->fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (a->fd < 0)
        return errno;
    a->io = io_new(c->loop, a->fd, on_connected, a);
    c->open++;
    if (to->sa_family != AF_UNIX)
        tcp_set_options(a->fd);
    if (connect(a->fd, to, length) != 0 && errno != EINPROGRESS) {
        int err_no = errno;
        attempt_end(a, false);
        return err_no;
    }
    io_want(a->io, IO_WRITE);
    return 0;
}

/* ---- which is next ------------------------------------------------------------------------------ */

/* The next address by alternation, or of the family that still has one. */
static const struct net_address *next_address(struct connector *c)
{
    struct family *f = c->v4_is_next ? &c->v4 : &c->v6;

    if (f->tried == f->n)
        f = f == &c->v4 ? &c->v6 : &c->v4;
    if (f->tried == f->n)
        return NULL;
    c->v4_is_next = f == &c->v6;
    return &f->addresses[f->tried++];
}

/* Starts attempts until one is under way; then the next has its time. */
static void try_next(struct connector *c)
{
    const struct net_address *to;
    char who[NET_ADDRESS_TEXT];

    c->started = true;
    while ((to = next_address(c)) != NULL) {
        size_t number = c->n_attempts;
        int err_no = attempt_start(c, &to->at.any, to->length);
        c->attempts[number].to = *to;
        if (err_no == 0) {
            timer_set(&c->timer, loop_now(c->loop) + ATTEMPT_DELAY_MS);
            return;
        }
        note(c, net_address_text(to, who), strerror(err_no));
    }
    if (c->open == 0 && c->all_answered)
        fail(c);
}

static void on_timer(void *arg)
{
    try_next(arg);
}

static void on_names(void *arg, const struct dns_answer *answer)
{
    struct connector *c = arg;
    struct family *f = answer->family == AF_INET6 ? &c->v6 : &c->v4;

    f->answered = true;
    c->all_answered = answer->last;
    for (size_t i = 0; i < answer->n && f->n < ARRAY_LEN(f->addresses); i++)
        f->addresses[f->n++] = answer->addresses[i];
    if (answer->error && c->n_attempts == 0)
        note(c, "", answer->error);
    if (c->started) {
        if (c->open == 0)
            try_next(c); /* all before have failed, so nothing is to be waited for */
        else if (f->n > f->tried && c->timer.deadline == TIME_NEVER)
            timer_set(&c->timer, loop_now(c->loop)); /* the last attempt has had its 250 ms */
        return;
    }
    if (answer->last || answer->family == AF_INET6) {
        if (c->v6.n || c->v4.n || c->all_answered)
            try_next(c);
    } else if (c->v4.n) {
        timer_set(&c->timer, loop_now(c->loop) + RESOLUTION_DELAY_MS);
    }
}

/* ---- for owners --------------------------------------------------------------------------------- */

static struct connector *connector_new(struct loop *l, connect_fn *fn, void *arg)
{
    struct connector *c = xcalloc(1, sizeof *c);

    c->loop = l;
    c->fn = fn;
    c->arg = arg;
    return c;
}

struct connector *connect_tcp(struct loop *l, const char *host, uint16_t port, enum ip_mode ip,
                              connect_fn *fn, void *arg)
{
    struct connector *c = connector_new(l, fn, arg);

    c->host = xstrdup(host);
    c->port = port;
    c->ip = ip;
    timer_init(&c->timer, l, on_timer, c);
    c->dns = dns_new(l, host, port, ip, on_names, c);
    return c;
}

/* A refusal is known at once, but told by the timer. */
static void on_unix_refused(void *arg)
{
    fail(arg);
}

struct connector *connect_unix(struct loop *l, const char *path, connect_fn *fn, void *arg)
{
    struct connector *c = connector_new(l, fn, arg);
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int err_no = ENAMETOOLONG;

    c->is_unix = c->started = c->all_answered = true;
    c->path = xstrdup(path);
    timer_init(&c->timer, l, on_unix_refused, c);
    if (strlen(path) < sizeof to.sun_path) {
        memcpy(to.sun_path, path, strlen(path));
        err_no = attempt_start(c, (struct sockaddr *)&to, sizeof to);
    }
    if (err_no) {
        note(c, "", strerror(err_no));
        timer_set(&c->timer, loop_now(l));
    }
    return c;
}

static void release(void *p)
{
    struct connector *c = p;

    free(c->host);
    free(c->path);
    free(c);
}

void connect_free(struct connector *c)
{
    if (!c || c->dead)
        return;
    c->dead = true;
    give_up_all(c);
    loop_free_later(c->loop, c, release);
}

bool connect_is_resolving(const struct connector *c, char *what, size_t size)
{
    if (c->n_attempts) {
        snprintf(what, size, "%s%s%s", c->why, *c->why ? "; " : "", c->open ? "no answer" : "");
        return false;
    }
    snprintf(what, size, "no name server answered");
    return true;
}
