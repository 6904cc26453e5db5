/* Listening sockets: the control socket, made safely, and TCP. */
#ifndef NET_LISTEN_H
#define NET_LISTEN_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct listen_unix {
    char *path; /* NULL: none is open */
    int lock_fd;
    dev_t dev; /* the socket we made, so that we never remove another's */
    ino_t ino;
};

/* Makes the socket and listens; others may connect only once mode and group (a name or number; NULL: the
 * process's) are set. What is there already is replaced only if it is a socket on which nobody answers, and
 * under a lock (PATH.lock, held until listen_unix_close), so that two starting at once cannot take it from
 * each other. Returns a non-blocking descriptor, or -1 and e. */
int listen_unix_open(struct listen_unix *u, const char *path, mode_t mode, const char *group, struct err *e);
/* The group of that name or number; gid may be NULL. Returns 0, or -1 and e (EX_NOUSER). */
int listen_find_group(const char *name, gid_t *gid, struct err *e);
/* Removes the socket, if it is still ours, and lets go of the lock; the descriptor is the caller's to close.
 */
void listen_unix_close(struct listen_unix *u);

/* Listens on HOST:PORT; port 0 takes any free one, and *port is what was taken. The host is an address or
 * localhost, so no name server is asked. Returns a non-blocking descriptor, or -1 and e. */
int listen_tcp(const char *address, uint16_t *port, struct err *e);

#endif
