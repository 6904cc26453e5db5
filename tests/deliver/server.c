/* One process a connection, so that a handler may do whatever it likes. */
#include "server.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t server;

void server_send(int fd, const char *text)
{
    if (write(fd, text, strlen(text)) < 0)
        _exit(1);
}

void server_answer(int fd, int status, const char *type, const char *more_headers, const char *body)
{
    struct buf b = BUF_EMPTY;

    buf_printf(&b, "HTTP/1.1 %d X\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s\r\n%s", status, type,
               strlen(body), more_headers, body);
    server_send(fd, buf_str(&b));
    buf_free(&b);
}

void server_reset(int fd)
{
    struct linger now = {1, 0};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

/* Reads one request with a Content-Length into b. Returns 0, or -1 if the client closed. */
static int read_request(int fd, struct buf *b)
{
    buf_clear(b);
    for (;;) {
        ssize_t n = read(fd, buf_reserve(b, 4096), 4096);
        if (n <= 0)
            return -1;
        buf_added(b, (size_t)n);
        if (b->p[0] == 0x16) /* a TLS handshake */
            return -1;
        const char *end = strstr(buf_str(b), "\r\n\r\n"), *length = strcasestr(buf_str(b), "content-length:");
        if (end && (!length || b->n >= (size_t)(end + 4 - b->p) + (size_t)atol(length + 15)))
            return 0;
    }
}

static _Noreturn void serve(int listener, server_fn *fn)
{
    struct buf b = BUF_EMPTY;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            while (read_request(fd, &b) == 0 && fn(fd, &b))
                ;
            _exit(0);
        }
        close(fd);
    }
}

int server_start(server_fn *fn, uint16_t *port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof(a);

    if (bind(fd, (struct sockaddr *)&a, n) || listen(fd, 16) || getsockname(fd, (struct sockaddr *)&a, &n))
        return -1;
    *port = ntohs(a.sin_port);
    server = fork();
    if (server == 0)
        serve(fd, fn);
    close(fd);
    return 0;
}

void server_stop(void)
{
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
}
