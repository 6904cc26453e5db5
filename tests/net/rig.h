/* What the tests of the HTTP server stand on: a server whose handler answers by the path, over a unix socket or TCP, and
 * clients that share its loop. The loop's turns are run until what was expected has come.
 */
#ifndef TESTS_NET_RIG_H
#define TESTS_NET_RIG_H

#include "../unit/unit.h"

#include "base/clock.h"
#include "net/http_server.h"
#include "net/loop.h"

#define G "GET / HTTP/1.1\r\nHost: a\r\n"
#define POST "POST /echo HTTP/1.1\r\nHost: a\r\n"
#define PATIENCE SECONDS(60) /* a failure, not a measure */

struct fixture {
    struct loop *loop;
    struct http_server *server;
    char *dir, *path;
    struct http_exchange *held[8]; /* of /hold */
    size_t n_held;
    int gone, requests;
    long uid, pid;
};

/* Waiting: rig_tick stops the loop once fn is true or the time to give up has come. */
struct until {
    bool (*fn)(void *arg);
    void *arg;
    struct loop *loop;
    int64_t give_up;
    bool ok;
};

struct client {
    int fd;
    struct buf got;
    const char *wanted; /* text that must come; NULL: the end of file */
    bool eof, reset;
};

/* Paths: /echo, /query, /header (X-Test), /big (4,000,000 bytes), /hold (kept in `held`, told when the client goes),
 * /hold-deaf (kept, not told), /204; all others 404. */
void rig_on_request(void *arg, struct http_exchange *x, const struct http_server_request *r);

int64_t rig_tick(void *arg);
bool rig_run_until(struct fixture *f, bool (*fn)(void *arg), void *arg);
bool rig_holds_one(void *arg); /* of the fixture: so many exchanges are held */
bool rig_holds_two(void *arg);

/* Reads what is there. True when the wanted text, or end, has come. */
bool client_has(void *arg);
bool client_expect(struct fixture *f, struct client *c, const char *wanted);
struct client client_connect(struct fixture *f);
void client_send(struct client *c, const char *text);
void client_close(struct client *c);

struct http_server_options rig_options(const struct fixture *f);
void rig_start(struct fixture *f, const struct http_server_options *o);
void rig_start_default(struct fixture *f);

/* cmocka fixtures; *state is the fixture: with a path for a unix socket, or without one, for TCP. */
int rig_setup(void **state);
int rig_setup_tcp(void **state);
int rig_teardown(void **state);

#define OVER_UNIX(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)
#define OVER_TCP(fn)                                        \
    {                                                       \
#fn " (tcp)", fn, rig_setup_tcp, rig_teardown, NULL \
    }

#endif
