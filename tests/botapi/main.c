/* tgspool-botapi: a Bot API server for tests and for the demo. It behaves towards bots as the official server
 * does (queue.c, bot.c), does wrong what it is told to (fault.c), and is steered over HTTP (control.c). It
 * shares no code with the daemon but base/. One thread a connection.
 *
 * It prints its port as the first line of standard output, and ends on SIGTERM or when the process that
 * started it ends (--with-parent).
 */
#include <arpa/inet.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

#include "args.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/text.h"
#include "bot.h"
#include "control.h"
#include "flood.h"

static const char usage[] =
    "usage: tgspool-botapi [--listen ADDRESS:PORT] [--tls-cert FILE --tls-key FILE] [--token TOKEN]...\n"
    "                      [--first-id N] [--updates N --chats N] [--flood N --size BYTES --batch N]\n"
    "                      [--with-parent]\n"
    "The default address is 127.0.0.1:0 (any free port; it is printed), the default token "
    "123456:TEST-TOKEN-OF-THE-TEST-SERVER-01.\n";

static struct {
    const char *listen, *cert, *key;
    int64_t first_id, updates, chats, flood, size, batch;
    int n_tokens;
    SSL_CTX *tls;
} the = {.listen = "127.0.0.1:0", .chats = 5, .size = 1024, .batch = 100};

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "tgspool-botapi: %s\n", what);
    exit(EX_USAGE);
}

/* Answers one request. Returns 0 to go on, -1 to close, 1 if the connection is closed already. */
static int serve(struct conn *c)
{
    struct slice url = buf_slice(&c->url), query = slice_make(NULL, 0);
    const char *q = memchr(url.p, '?', url.n);
    static const char control[] = "/control/", bot[] = "/bot";
    struct buf path = BUF_EMPTY;
    int rc;

    if (q) {
        query = slice_make(q + 1, url.n - (size_t)(q - url.p) - 1);
        url.n = (size_t)(q - url.p);
    }
    unescape_url(url, &path);
    if (!strncmp(path.p, control, strlen(control))) {
        rc = control_serve(c, slice_str(path.p + strlen(control)));
    } else if (!strncmp(path.p, bot, strlen(bot))) {
        const char *method = strrchr(path.p, '/') + 1;
        rc = flood_is_on() && !strcasecmp(method, "getUpdates")
                 ? flood_serve(c, query)
                 : bot_serve(c, slice_str(path.p + strlen(bot)), query);
    } else {
        struct reply r = {.status = 404};
        buf_add_str(&r.body, "{\"ok\":false,\"error_code\":404,\"description\":\"Not Found\"}");
        rc = conn_reply(c, &r);
        buf_free(&r.body);
    }
    buf_free(&path);
    return rc;
}

struct accepted {
    int fd;
    unsigned number;
};

static void *run_connection(void *arg)
{
    struct accepted a = *(struct accepted *)arg;
    struct conn *c = conn_open(a.fd, a.number, the.tls);
    int rc = -1;

    free(arg);
    while (c && conn_read(c) == 0 && (rc = serve(c)) == 0)
        rc = -1;
    if (c && rc != 1)
        conn_close(c);
    return NULL;
}

static SSL_CTX *load_tls(void)
{
    SSL_CTX *t = SSL_CTX_new(TLS_server_method());
    if (!t || SSL_CTX_use_certificate_chain_file(t, the.cert) != 1 ||
        SSL_CTX_use_PrivateKey_file(t, the.key, SSL_FILETYPE_PEM) != 1)
        die("the certificate or its key cannot be used");
    return t;
}

/* Listens and prints the port. */
static int start_listening(void)
{
    struct sockaddr_in sa = {.sin_family = AF_INET};
    socklen_t n = sizeof(sa);
    char host[64];
    const char *colon = strrchr(the.listen, ':');
    int64_t port;
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (!colon || text_to_i64(slice_str(colon + 1), 0, 65535, &port))
        die("--listen wants ADDRESS:PORT");
    snprintf(host, sizeof(host), "%.*s", (int)(colon - the.listen), the.listen);
    if (inet_pton(AF_INET, host, &sa.sin_addr) != 1)
        die("--listen wants an IPv4 address");
    sa.sin_port = htons((uint16_t)port);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, (struct sockaddr *)&sa, n) || listen(fd, 128) || getsockname(fd, (struct sockaddr *)&sa, &n))
        die("cannot listen there");
    printf("%d\n", ntohs(sa.sin_port));
    fflush(stdout);
    return fd;
}

static int64_t number(const char *text)
{
    int64_t v;
    if (text_to_i64(slice_str(text), 0, 2000000000, &v))
        die("not a number");
    return v;
}

static void parse_options(int argc, char **argv)
{
    static const struct option options[] = {
        {"listen", 1, NULL, 'l'}, {"tls-cert", 1, NULL, 'c'},    {"tls-key", 1, NULL, 'k'},
        {"token", 1, NULL, 't'},  {"first-id", 1, NULL, 'i'},    {"updates", 1, NULL, 'u'},
        {"chats", 1, NULL, 'a'},  {"flood", 1, NULL, 'f'},       {"size", 1, NULL, 's'},
        {"batch", 1, NULL, 'b'},  {"with-parent", 0, NULL, 'p'}, {"help", 0, NULL, 'h'},
        {NULL, 0, NULL, 0}};
    int64_t *const numbers[] = {['i'] = &the.first_id, ['u'] = &the.updates, ['a'] = &the.chats,
                                ['f'] = &the.flood,    ['s'] = &the.size,    ['b'] = &the.batch};
    const char *tokens[64];
    int o;

    while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (o == 'l')
            the.listen = optarg;
        else if (o == 'c')
            the.cert = optarg;
        else if (o == 'k')
            the.key = optarg;
        else if (o == 't' && the.n_tokens < 64)
            tokens[the.n_tokens++] = optarg;
        else if (o == 'p')
            prctl(PR_SET_PDEATHSIG, SIGTERM);
        else if (o == 'h' || o == '?' || o == 't') {
            fputs(usage, o == 'h' ? stdout : stderr);
            exit(o == 'h' ? 0 : EX_USAGE);
        } else
            *numbers[o] = number(optarg);
    }
    if (optind < argc || !the.cert != !the.key || the.batch > 100 || !the.batch)
        die("wrong arguments; see --help");
    if (!the.n_tokens)
        tokens[the.n_tokens++] = "123456:TEST-TOKEN-OF-THE-TEST-SERVER-01";
    for (int i = 0; i < the.n_tokens; i++)
        bot_new(tokens[i], (int32_t)(the.first_id ? the.first_id : 1 + (int64_t)random_below(1000000000)));
}

int main(int argc, char **argv)
{
    pthread_attr_t detached;

    parse_options(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    if (the.cert)
        the.tls = load_tls();
    if (the.flood)
        flood_setup((unsigned)the.flood, (unsigned)the.size, (unsigned)the.batch);
    control_generate_varied((unsigned)the.updates, (unsigned)the.chats);
    server_ms();

    int listener = start_listening();
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&detached, 512 << 10);
    for (unsigned n = 1;; n++) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        pthread_t thread;
        struct accepted *a = xmalloc(sizeof(*a));
        *a = (struct accepted){fd, n};
        if (fd < 0 || pthread_create(&thread, &detached, run_connection, a)) {
            free(a);
            if (fd >= 0)
                close(fd);
        }
    }
}
