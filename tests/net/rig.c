/* The server, its handler, the clients and the loop of rig.h. */
#include "rig.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- the handler -------------------------------------------------------------------------------- */

static void on_gone(void *arg)
{
    struct fixture *f = arg;

    f->gone++;
}

void rig_on_request(void *arg, struct http_exchange *x, const struct http_server_request *r)
{
    struct fixture *f = arg;
    struct buf big = BUF_EMPTY;

    f->requests++;
    f->uid = r->peer_uid;
    f->pid = r->peer_pid;
    if (slice_eq_str(r->path, "/echo")) {
        http_reply(x, 200, "text/plain", -1, r->body);
    } else if (slice_eq_str(r->path, "/query")) {
        http_reply(x, 200, "text/plain", 7, r->query);
    } else if (slice_eq_str(r->path, "/header")) {
        http_reply(x, 401, "text/plain", -1, r->header(r, "x-test"));
    } else if (slice_eq_str(r->path, "/big")) {
        memset(buf_reserve(&big, 4000000), 'b', 4000000);
        buf_added(&big, 4000000);
        http_reply(x, 200, "text/plain", -1, buf_slice(&big));
        buf_free(&big);
    } else if (slice_eq_str(r->path, "/hold") || slice_eq_str(r->path, "/hold-deaf")) {
        if (r->path.n == 5)
            http_on_gone(x, on_gone, f);
        f->held[f->n_held++] = x;
    } else if (slice_eq_str(r->path, "/204")) {
        http_reply(x, 204, NULL, -1, LIT("nobody sees this"));
    } else {
        http_reply_error(x, 404, "not_found", "there is no such \"path\"");
    }
}

/* ---- running the loop --------------------------------------------------------------------------- */

int64_t rig_tick(void *arg)
{
    struct until *u = arg;

    u->ok = u->fn(u->arg);
    if (u->ok || clock_now() >= u->give_up)
        loop_stop(u->loop);
    return clock_now() + 2;
}

bool rig_run_until(struct fixture *f, bool (*fn)(void *arg), void *arg)
{
    struct until u = {.fn = fn, .arg = arg, .loop = f->loop, .give_up = clock_now() + PATIENCE};

    loop_run(f->loop, rig_tick, &u);
    return u.ok;
}

/* ---- a client ----------------------------------------------------------------------------------- */

static void client_read(struct client *c)
{
    for (;;) {
        ssize_t n = recv(c->fd, buf_reserve(&c->got, 65536), 65536, MSG_DONTWAIT);
        if (n <= 0) {
            c->eof |= n == 0;
            c->reset |= n < 0 && errno != EAGAIN;
            return;
        }
        buf_added(&c->got, (size_t)n);
    }
}

bool client_has(void *arg)
{
    struct client *c = arg;

    client_read(c);
    return c->wanted ? strstr(buf_str(&c->got), c->wanted) != NULL : c->eof || c->reset;
}

bool client_expect(struct fixture *f, struct client *c, const char *wanted)
{
    c->wanted = wanted;
    if (rig_run_until(f, client_has, c))
        return true;
    print_error("wanted: %s\ngot: %.300s\n", wanted ? wanted : "the end", buf_str(&c->got));
    return false;
}

struct client client_connect(struct fixture *f)
{
    struct client c = {.fd = -1};

    if (f->path) {
        struct sockaddr_un a = {.sun_family = AF_UNIX};
        snprintf(a.sun_path, sizeof(a.sun_path), "%s", f->path);
        c.fd = socket(AF_UNIX, SOCK_STREAM, 0);
        assert_int_equal(connect(c.fd, (struct sockaddr *)&a, sizeof(a)), 0);
    } else {
        struct sockaddr_in a = {.sin_family = AF_INET,
                                .sin_port = htons(http_server_port(f->server)),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        c.fd = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(connect(c.fd, (struct sockaddr *)&a, sizeof(a)), 0);
    }
    return c;
}

void client_send(struct client *c, const char *text)
{
    assert_int_equal(send(c->fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

void client_close(struct client *c)
{
    close(c->fd);
    buf_free(&c->got);
}

/* ---- set-up ------------------------------------------------------------------------------------- */

struct http_server_options rig_options(const struct fixture *f)
{
    return (struct http_server_options){
        .unix_path = f->path,
        .unix_mode = 0660,
        .address = "127.0.0.1:0",
        .max_body = 100000,
        .max_connections = 4,
        .header_timeout_ms = SECONDS(30),
        .body_timeout_ms = SECONDS(30),
        .idle_timeout_ms = SECONDS(30),
    };
}

void rig_start(struct fixture *f, const struct http_server_options *o)
{
    struct err e = ERR_NONE;

    f->server = http_server_new(f->loop, o, rig_on_request, f, &e);
    if (!f->server)
        fail_msg("%s", e.text);
}

int rig_setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    const char *tmp = getenv("TMPDIR");

    f->dir = xasprintf("%s/tgspool-http.XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(f->dir))
        return -1;
    f->path = xasprintf("%s/s", f->dir);
    f->loop = loop_new();
    *state = f;
    return 0;
}

int rig_teardown(void **state)
{
    struct fixture *f = *state;

    http_server_free(f->server);
    loop_free(f->loop);
    if (f->path) {
        char *lock = xasprintf("%s.lock", f->path);
        unlink(f->path);
        unlink(lock);
        free(lock);
    }
    rmdir(f->dir);
    free(f->dir);
    free(f->path);
    free(f);
    return 0;
}

/* As rig_setup, over TCP. */
int rig_setup_tcp(void **state)
{
    int r = rig_setup(state);
    struct fixture *f = *state;

    free(f->path);
    f->path = NULL;
    return r;
}

void rig_start_default(struct fixture *f)
{
    struct http_server_options o = rig_options(f);

    rig_start(f, &o);
}

/* ---- what is waited for ------------------------------------------------------------------------- */

bool rig_holds_one(void *arg)
{
    const struct fixture *f = arg;

    return f->n_held == 1;
}

bool rig_holds_two(void *arg)
{
    const struct fixture *f = arg;

    return f->n_held == 2;
}
