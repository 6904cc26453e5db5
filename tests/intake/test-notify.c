/* The datagrams to the service manager, read from a socket of our own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/notify.h"

static int manager;
static char got[512];

/* The next datagram, or "" if none is there. */
static const char *next(void)
{
    ssize_t n = recv(manager, got, sizeof(got) - 1, MSG_DONTWAIT);

    got[n > 0 ? n : 0] = 0;
    return got;
}

static void test_nobody_listens(void **state)
{
    (void)state;
    unsetenv("NOTIFY_SOCKET");
    setenv("WATCHDOG_USEC", "3000000", 1);
    notify_init();
    notify_ready();
    assert_int_equal(notify_watchdog_ms(), 0);
    assert_null(getenv("WATCHDOG_USEC"));
}

static void test_all_of_it(void **state)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    char name[64], pid[32];

    (void)state;
    snprintf(name, sizeof(name), "@tgspool-test-notify-%ld", (long)getpid());
    snprintf(pid, sizeof(pid), "%ld", (long)getpid());
    memcpy(a.sun_path + 1, name + 1, strlen(name) - 1);
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(manager, (struct sockaddr *)&a,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))),
                     0);
    setenv("NOTIFY_SOCKET", name, 1);
    setenv("WATCHDOG_USEC", "3000000", 1);
    setenv("WATCHDOG_PID", pid, 1);
    notify_init();
    assert_null(getenv("NOTIFY_SOCKET"));
    assert_null(getenv("WATCHDOG_USEC"));
    assert_null(getenv("WATCHDOG_PID"));
    assert_int_equal(notify_watchdog_ms(), 1500);
    assert_string_equal(next(), "");
    notify_ready();
    assert_string_equal(next(), "READY=1\n");
    notify_reloading();
    assert_memory_equal(next(), "RELOADING=1\nMONOTONIC_USEC=", 27);
    notify_stopping();
    assert_string_equal(next(), "STOPPING=1\n");
    notify_status("2 bots");
    assert_string_equal(next(), "STATUS=2 bots\n");
    notify_watchdog();
    assert_string_equal(next(), "WATCHDOG=1\n");
    notify_extend_timeout(2500);
    assert_string_equal(next(), "EXTEND_TIMEOUT_USEC=2500000\n");
    close(manager);
    notify_ready(); /* nobody is there any more: no harm */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_listens),
        cmocka_unit_test(test_all_of_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
