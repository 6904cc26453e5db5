/* A TCP connection to a name: look-up and racing of IPv6 and IPv4 after RFC 8305. Also a Unix socket's. */
#ifndef NET_CONNECT_H
#define NET_CONNECT_H

#include "net/dns.h"

struct loop;
struct connector;

enum connect_result { CONNECT_OK, CONNECT_NO_NAME, CONNECT_NO_PEER };

/* Called once, from the loop. fd is connected, non-blocking and the callee's; -1 if there is none: then
 * `error` is a sentence without a full stop. */
typedef void connect_fn(void *arg, enum connect_result r, int fd, const char *error);

/* It has no time-out of its own: connect_free is how to give up. connect_state then says what it waited for.
 */
struct connector *connect_tcp(struct loop *l, const char *host, uint16_t port, enum ip_mode ip,
                              connect_fn *fn, void *arg);
struct connector *connect_unix(struct loop *l, const char *path, connect_fn *fn, void *arg);
/* To be called also after the callback, or inside it. NULL is harmless. */
void connect_free(struct connector *c);

/* Whether the name is not resolved yet; *what gets a few words: who was asked and has not answered. */
bool connect_is_resolving(const struct connector *c, char *what, size_t size);

#endif
