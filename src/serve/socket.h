/* The control socket: an HTTP server on a unix socket, whose requests go to the api. */
#ifndef SERVE_SOCKET_H
#define SERVE_SOCKET_H

#include "base/err.h"
#include "serve/api.h"

struct loop;
struct socket_server;

struct socket_options {
    const char *path;
    unsigned mode;
    const char *group; /* NULL: the process's */
};

/* NULL and e if it cannot listen. The api must outlive it. */
struct socket_server *socket_new(struct loop *l, struct api *api, const struct socket_options *o,
                                 struct err *e);
/* Stops to accept; waiting calls go on. */
void socket_stop(struct socket_server *s);
/* Cuts what is open: its calls are cancelled. */
void socket_free(struct socket_server *s);

#endif
