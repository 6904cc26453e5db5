/* The protocol of sd_notify(3): lines of NAME=VALUE in one datagram to a unix socket. What cannot be sent is
 * lost: the service manager is not worth waiting for. */
#include "daemon/notify.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"

static struct {
    int fd; /* -1: nobody listens */
    struct sockaddr_un to;
    socklen_t to_len;
    int64_t watchdog_ms;
} manager = {.fd = -1};

/* The address: a path, or with '@' in front a name in the abstract namespace. Returns 0 or -1. */
static int set_address(const char *name)
{
    size_t n = strlen(name);

    if ((name[0] != '/' && name[0] != '@') || n < 2 || n >= sizeof(manager.to.sun_path))
        return -1;
    manager.to.sun_family = AF_UNIX;
    memcpy(manager.to.sun_path, name, n);
    if (name[0] == '@')
        manager.to.sun_path[0] = 0;
    manager.to_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    return 0;
}

static void read_watchdog(void)
{
    const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    int64_t n;

    if (!usec || text_to_i64(slice_str(usec), 1, INT64_MAX, &n))
        return;
    int64_t whose;
    if (pid && (text_to_i64(slice_str(pid), 0, INT64_MAX, &whose) || whose != (int64_t)getpid()))
        return;
    manager.watchdog_ms = n / 1000 / 2;
    if (manager.watchdog_ms < 1)
        manager.watchdog_ms = 1;
}

void notify_init(void)
{
    const char *name = getenv("NOTIFY_SOCKET");

    if (name && !set_address(name))
        manager.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (manager.fd >= 0)
        read_watchdog();
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

static void tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void tell(const char *fmt, ...)
{
    char text[512];
    va_list ap;

    if (manager.fd < 0)
        return;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    size_t len = n < (int)sizeof(text) ? (size_t)n : sizeof(text) - 1;
    (void)!sendto(manager.fd, text, len, MSG_NOSIGNAL, (const struct sockaddr *)&manager.to, manager.to_len);
}

void notify_ready(void)
{
    tell("READY=1\n");
}

void notify_reloading(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t); /* systemd compares it with its own clock, which is this one */
    tell("RELOADING=1\nMONOTONIC_USEC=%lld\n", (long long)t.tv_sec * 1000000 + t.tv_nsec / 1000);
}

void notify_stopping(void)
{
    tell("STOPPING=1\n");
}

void notify_status(const char *sentence)
{
    tell("STATUS=%s\n", sentence);
}

void notify_watchdog(void)
{
    tell("WATCHDOG=1\n");
}

void notify_extend_timeout(int64_t ms)
{
    tell("EXTEND_TIMEOUT_USEC=%lld\n", (long long)ms * 1000);
}

int64_t notify_watchdog_ms(void)
{
    return manager.fd < 0 ? 0 : manager.watchdog_ms;
}
