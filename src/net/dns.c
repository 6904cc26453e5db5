/* c-ares on the loop: its sockets are watched as it says, and one timer stands at the time that ares_timeout
 * names. c-ares calls back from inside ares_getaddrinfo and ares_process_fd, where its channel may not be
 * destroyed: so its callbacks only take the result, and the owner is told afterwards. */
#include "net/dns.h"

#include <ares.h>
#include <arpa/inet.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "base/mem.h"
#include "net/loop.h"

#define TIMEOUT_MS 2000 /* c-ares' own 5 s would leave no time for a second name server */
#define TRIES 3
#define ADDRESSES_MAX 16 /* of a family: nobody waits for more */

struct watched {
    struct dns *dns;
    ares_socket_t fd;
    struct io *io;
    struct watched *next;
};

struct question {
    struct dns *dns;
    int family;
    bool asked, answered, told;
    int status; /* of c-ares; ARES_SUCCESS is 0 */
    struct net_address addresses[ADDRESSES_MAX];
    size_t n;
};

struct dns {
    struct loop *loop;
    ares_channel channel;
    bool has_channel, dead;
    struct timer timer;
    struct watched *watched;
    struct question questions[2]; /* IPv6 first, as it is to be tried first */
    uint16_t port;
    dns_fn *fn;
    void *arg;
};

const char *net_address_text(const struct net_address *a, char out[NET_ADDRESS_TEXT])
{
    const void *at = a->at.any.sa_family == AF_INET6 ? (const void *)&a->at.v6.sin6_addr
                                                     : (const void *)&a->at.v4.sin_addr;
    if (!inet_ntop(a->at.any.sa_family, at, out, NET_ADDRESS_TEXT))
        memcpy(out, "?", 2);
    return out;
}

/* ---- results ------------------------------------------------------------------------------------ */

static void add_address(struct question *q, const struct sockaddr *sa, size_t length)
{
    struct net_address *a = &q->addresses[q->n];

    if (q->n == ADDRESSES_MAX || sa->sa_family != q->family || length > sizeof a->at)
        return;
    memset(a, 0, sizeof *a);
    memcpy(&a->at, sa, length);
    a->length = (socklen_t)length;
    if (q->family == AF_INET6)
        a->at.v6.sin6_port = htons(q->dns->port);
    else
        a->at.v4.sin_port = htons(q->dns->port);
    q->n++;
}

static void on_answer(void *arg, int status, int timeouts, struct ares_addrinfo *found)
{
    struct question *q = arg;

    (void)timeouts;
    q->answered = true;
    q->status = status;
    if (found && !q->dns->dead) {
        for (struct ares_addrinfo_node *it = found->nodes; it; it = it->ai_next)
            add_address(q, it->ai_addr, it->ai_addrlen);
    }
    if (found)
        ares_freeaddrinfo(found);
}

/* NULL: answered, be it that there is no such address. */
static const char *status_text(const struct question *q)
{
    switch (q->status) {
    case ARES_SUCCESS:
    case ARES_ENODATA:
        return NULL;
    case ARES_ENOTFOUND:
        return "no such name";
    case ARES_ETIMEOUT:
        return "no name server answered";
    case ARES_ECONNREFUSED:
        return "no name server is there, or none can answer"; /* c-ares 1.18: also for SERVFAIL */
    case ARES_ESERVFAIL:
        return "the name server failed";
    case ARES_EREFUSED:
        return "the name server refused to answer";
    case ARES_EBADNAME:
        return "this cannot be a name";
    default:
        return ares_strerror(q->status);
    }
}

/* Tells the owner what is answered and not told yet. Outside of c-ares, so that the owner may free d. */
static void tell(struct dns *d)
{
    for (int i = 0; i < 2 && !d->dead; i++) {
        struct question *q = &d->questions[i], *other = &d->questions[1 - i];
        if (!q->answered || q->told)
            continue;
        q->told = true;
        d->fn(d->arg, &(struct dns_answer){.family = q->family,
                                           .addresses = q->addresses,
                                           .n = q->n,
                                           .error = status_text(q),
                                           .last = !other->asked || other->told});
    }
}

/* ---- c-ares and the loop ------------------------------------------------------------------------ */

/* Sets the timer for c-ares' next deadline, or for now if something is to be told. */
static void arm(struct dns *d)
{
    struct timeval tv;

    if (d->dead)
        return;
    for (int i = 0; i < 2; i++) {
        if (d->questions[i].answered && !d->questions[i].told) {
            timer_set(&d->timer, loop_now(d->loop));
            return;
        }
    }
    if (d->has_channel && ares_timeout(d->channel, NULL, &tv))
        timer_set(&d->timer, loop_now(d->loop) + tv.tv_sec * 1000 + (tv.tv_usec + 999) / 1000);
    else
        timer_stop(&d->timer);
}

static void on_timer(void *arg)
{
    struct dns *d = arg;

    if (d->has_channel)
        ares_process_fd(d->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    tell(d);
    arm(d);
}

static void on_io(void *arg, int events)
{
    struct watched *w = arg;
    struct dns *d = w->dns;
    ares_socket_t fd = w->fd; /* w may go while c-ares works */

    ares_process_fd(d->channel, events & IO_READ ? fd : ARES_SOCKET_BAD,
                    events & IO_WRITE ? fd : ARES_SOCKET_BAD);
    tell(d);
    arm(d);
}

/* c-ares tells what it waits for; neither: it is about to close the socket. */
static void on_socket(void *arg, ares_socket_t fd, int readable, int writable)
{
    struct dns *d = arg;
    struct watched **at = &d->watched;

    while (*at && (*at)->fd != fd)
        at = &(*at)->next;
    struct watched *w = *at;
    if (!readable && !writable) {
        if (w) {
            *at = w->next;
            io_free(w->io);
            free(w);
        }
        return;
    }
    if (!w) {
        w = xcalloc(1, sizeof *w);
        w->dns = d;
        w->fd = fd;
        w->io = io_new(d->loop, fd, on_io, w);
        w->next = d->watched;
        d->watched = w;
    }
    io_want(w->io, (readable ? IO_READ : 0) | (writable ? IO_WRITE : 0));
}

static int open_channel(struct dns *d)
{
    char lookups[] = "fb"; /* the hosts file, then name servers, whatever nsswitch.conf has for others */
    struct ares_options o = {.timeout = TIMEOUT_MS,
                             .tries = TRIES,
                             .lookups = lookups,
                             .sock_state_cb = on_socket,
                             .sock_state_cb_data = d};
    int mask = ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB;

    int status = ares_init_options(&d->channel, &o, mask);
    d->has_channel = status == ARES_SUCCESS;
    return status;
}

static void answer_v4(struct dns *d, struct in_addr address)
{
    struct net_address a = {.length = sizeof a.at.v4, .at.v4 = {.sin_family = AF_INET, .sin_addr = address}};

    add_address(&d->questions[1], &a.at.any, a.length);
}

static void answer_v6(struct dns *d, struct in6_addr address)
{
    struct net_address a = {.length = sizeof a.at.v6,
                            .at.v6 = {.sin6_family = AF_INET6, .sin6_addr = address}};

    add_address(&d->questions[0], &a.at.any, a.length);
}

/* An address written as a name needs no name server, nor does localhost (RFC 6761, section 6.3), for which
 * c-ares 1.18 loses a few bytes each time. Returns whether it was one. */
static bool answer_here(struct dns *d, const char *name)
{
    struct in_addr v4;
    struct in6_addr v6;

    if (inet_pton(AF_INET, name, &v4) == 1) {
        answer_v4(d, v4);
    } else if (inet_pton(AF_INET6, name, &v6) == 1) {
        answer_v6(d, v6);
    } else if (strcmp(name, "localhost") == 0) {
        answer_v4(d, (struct in_addr){htonl(INADDR_LOOPBACK)});
        answer_v6(d, in6addr_loopback);
    } else {
        return false;
    }
    for (int i = 0; i < 2; i++)
        d->questions[i].answered = d->questions[i].asked;
    return true;
}

struct dns *dns_new(struct loop *l, const char *name, uint16_t port, enum ip_mode ip, dns_fn *fn, void *arg)
{
    struct dns *d = xcalloc(1, sizeof *d);
    int status;

    d->loop = l;
    d->port = port;
    d->fn = fn;
    d->arg = arg;
    timer_init(&d->timer, l, on_timer, d);
    d->questions[0] = (struct question){.dns = d, .family = AF_INET6, .asked = ip != IP_4};
    d->questions[1] = (struct question){.dns = d, .family = AF_INET, .asked = ip != IP_6};
    if (!answer_here(d, name)) {
        status = open_channel(d);
        for (int i = 0; i < 2; i++) {
            struct question *q = &d->questions[i];
            /* ENVHOSTS: the environment's CARES_HOSTS may name another hosts file. */
            struct ares_addrinfo_hints hints = {
                .ai_family = q->family, .ai_socktype = SOCK_STREAM, .ai_flags = ARES_AI_ENVHOSTS};
            if (!q->asked)
                continue;
            if (d->has_channel)
                ares_getaddrinfo(d->channel, name, NULL, &hints, on_answer, q);
            else
                on_answer(q, status, 0, NULL);
        }
    }
    arm(d);
    return d;
}

void dns_free(struct dns *d)
{
    if (!d || d->dead)
        return;
    d->dead = true;
    timer_stop(&d->timer);
    if (d->has_channel)
        ares_destroy(d->channel); /* calls back for what is open, and closes its sockets through on_socket */
    loop_free_later(d->loop, d, free);
}
