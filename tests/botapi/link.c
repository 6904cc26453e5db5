/* See link.h. */
#include "link.h"

#include <errno.h>
#include <llhttp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

/* ---- where to ----------------------------------------------------------------------------------- */

int link_target_parse(struct slice url, struct link_target *out)
{
    char *text = xstrndup(url.p ? url.p : "", url.n), *p = text, *at, *slash;
    int rc = -1;

    *out = (struct link_target){.tls = !strncasecmp(p, "https://", 8)};
    if (!out->tls && strncasecmp(p, "http://", 7))
        goto out;
    p += out->tls ? 8 : 7;
    slash = strchr(p, '/');
    out->path = xstrdup(slash ? slash : "/");
    if (slash)
        *slash = '\0';
    at = strrchr(p, '@');
    if (at) {
        *at = '\0';
        out->authorization = xcalloc(1, strlen(p) * 2 + 8);
        EVP_EncodeBlock((unsigned char *)out->authorization, (unsigned char *)p, (int)strlen(p));
        p = at + 1;
    }
    out->host_header = xstrdup(p);
    char *colon = strrchr(p, ':');
    if (colon)
        *colon = '\0';
    out->host = xstrdup(p);
    out->port = xstrdup(colon ? colon + 1 : out->tls ? "443" : "80");
    rc = *out->host ? 0 : -1;
out:
    if (rc)
        link_target_free(out);
    free(text);
    return rc;
}

void link_target_free(struct link_target *t)
{
    free(t->host);
    free(t->port);
    free(t->path);
    free(t->host_header);
    free(t->authorization);
    *t = (struct link_target){.tls = false};
}

/* ---- connecting --------------------------------------------------------------------------------- */

void link_close(struct link *l)
{
    SSL_free(l->ssl);
    l->ssl = NULL;
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
}

void link_reset(struct link *l)
{
    struct linger now = {1, 0};

    if (l->fd >= 0)
        setsockopt(l->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    link_close(l);
}

static SSL_CTX *client_context(void)
{
    static SSL_CTX *c;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&lock);
    if (!c) {
        c = SSL_CTX_new(TLS_client_method());
        SSL_CTX_set_default_verify_paths(c);
    }
    pthread_mutex_unlock(&lock);
    return c;
}

/* Blocking calls on the descriptor end after that long. */
static void set_limit(int fd, int64_t ms)
{
    struct timeval t = {ms / 1000, ms % 1000 * 1000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
}

static const char *start_tls(struct link *l, const struct link_target *to, bool verify)
{
    l->ssl = SSL_new(client_context());
    SSL_set_verify(l->ssl, verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
    SSL_set_tlsext_host_name(l->ssl, to->host);
    if (verify)
        SSL_set1_host(l->ssl, to->host);
    bool ok = SSL_set_fd(l->ssl, l->fd) == 1 && SSL_connect(l->ssl) == 1;
    ERR_clear_error();
    return ok ? NULL : verify ? "SSL error: certificate verify failed" : "SSL error";
}

static const char *open_link(struct link *l, const struct link_target *to, int64_t timeout_ms, bool verify)
{
    static unsigned numbers;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    int on = 1;

    if (getaddrinfo(to->host, to->port, &hints, &found))
        return "Failed to resolve host";
    l->fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    set_limit(l->fd, timeout_ms < 10000 ? timeout_ms : 10000);
    int rc = connect(l->fd, found->ai_addr, found->ai_addrlen);
    int why = errno;
    freeaddrinfo(found);
    if (rc)
        return why == ECONNREFUSED ? "Connection refused" : "Connection timed out";
    setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    l->number = __atomic_add_fetch(&numbers, 1, __ATOMIC_RELAXED);
    return to->tls ? start_tls(l, to, verify) : NULL;
}

/* Whether the server has closed the idle connection, or it was idle for too long. */
static bool is_stale(const struct link *l, int64_t idle_ms)
{
    struct pollfd p = {l->fd, POLLIN, 0};
    return clock_boot_ms() - l->used_at >= idle_ms || poll(&p, 1, 0) != 0;
}

/* ---- a request ---------------------------------------------------------------------------------- */

/* An answer as it is read. */
struct reading {
    struct link_answer *a;
    struct buf field, value;
    bool complete, keep_alive;
};

static int on_status(llhttp_t *p, const char *at, size_t n)
{
    struct reading *r = p->data;
    snprintf(r->a->reason, sizeof(r->a->reason), "%.*s", (int)n, at);
    return 0;
}

static int on_field(llhttp_t *p, const char *at, size_t n)
{
    struct reading *r = p->data;
    buf_add(&r->field, at, n);
    return r->field.n > 65536 ? -1 : 0;
}

static int on_value(llhttp_t *p, const char *at, size_t n)
{
    struct reading *r = p->data;
    buf_add(&r->value, at, n);
    return r->value.n > 65536 ? -1 : 0;
}

static int on_header(llhttp_t *p)
{
    struct reading *r = p->data;
    char *end;
    long s = strtol(buf_str(&r->value), &end, 10);

    if (slice_eq_nocase(buf_slice(&r->field), "retry-after") && !*end && r->value.n && s >= 0 && s <= 3600)
        r->a->retry_after_s = (int)s;
    buf_clear(&r->field);
    buf_clear(&r->value);
    return 0;
}

static int on_complete(llhttp_t *p)
{
    struct reading *r = p->data;
    r->complete = true;
    r->keep_alive = llhttp_should_keep_alive(p);
    return HPE_PAUSED;
}

static const char *write_all(struct link *l, struct slice s)
{
    while (s.n) {
        ssize_t n = l->ssl ? SSL_write(l->ssl, s.p, (int)s.n) : send(l->fd, s.p, s.n, MSG_NOSIGNAL);
        ERR_clear_error();
        if (n <= 0)
            return "Connection reset by peer";
        s = slice_make(s.p + n, s.n - (size_t)n);
    }
    return NULL;
}

static const char *read_answer(struct link *l, int64_t until, struct reading *r)
{
    static const llhttp_settings_t settings = {
        .on_status = on_status,
        .on_header_field = on_field,
        .on_header_value = on_value,
        .on_header_value_complete = on_header,
        .on_message_complete = on_complete,
    };
    llhttp_t parser;
    char in[8192];

    llhttp_init(&parser, HTTP_RESPONSE, &settings);
    parser.data = r;
    while (!r->complete) {
        int64_t left = until - clock_boot_ms();
        struct pollfd p = {l->fd, POLLIN, 0};
        if (left <= 0 || (!(l->ssl && SSL_pending(l->ssl)) && poll(&p, 1, (int)left) == 0))
            return "Read timeout expired";
        ssize_t n = l->ssl ? SSL_read(l->ssl, in, sizeof(in)) : recv(l->fd, in, sizeof(in), 0);
        ERR_clear_error();
        if (n <= 0)
            return "Connection closed";
        llhttp_errno_t e = llhttp_execute(&parser, in, (size_t)n);
        r->a->status = parser.status_code;
        if (e != HPE_OK && !(e == HPE_PAUSED && r->complete))
            return "Wrong response";
    }
    return NULL;
}

void link_exchange(struct link *l, const struct link_target *to, struct slice request, int64_t timeout_ms,
                   int64_t idle_ms, bool verify, struct link_answer *a)
{
    int64_t until = clock_boot_ms() + timeout_ms;
    struct reading r = {.a = a};

    if (l->fd >= 0 && is_stale(l, idle_ms))
        link_close(l);
    a->error = l->fd >= 0 ? NULL : open_link(l, to, timeout_ms, verify);
    if (!a->error) {
        set_limit(l->fd, timeout_ms);
        a->error = write_all(l, request);
    }
    if (!a->error)
        a->error = read_answer(l, until, &r);
    l->used_at = clock_boot_ms();
    if (a->error || !r.keep_alive)
        link_close(l);
    buf_free(&r.field);
    buf_free(&r.value);
}
