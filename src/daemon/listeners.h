/* The listeners of the network, as the section `listen` of the config names them, and the certificate that they
 * share. The control socket is not among them. */
#ifndef DAEMON_LISTENERS_H
#define DAEMON_LISTENERS_H

#include "base/err.h"

struct api;
struct bots;
struct http_server;
struct loop;
struct network;
struct tls_server;

struct listeners {
    struct loop *loop;
    struct bots *bots;
    struct api *api;
    struct tls_server *tls;      /* NULL: they speak plain HTTP, on loopback */
    struct http_server *webhook; /* each: NULL: not configured */
    struct http_server *dropin;
    struct http_server *http;
    struct network *network; /* what http serves; owned */
};

/* Opens what the setup of the bots names. They and the api must outlive it. Returns -1 and e, with nothing left
 * open. */
int listeners_open(struct listeners *l, struct loop *loop, struct bots *bots, struct api *api, struct err *e);
/* Reads the certificate anew, for the connections to come. Returns -1 and e if it cannot be used: then the old
 * one stays. */
int listeners_reload(struct listeners *l, struct err *e);
/* The tokens are those of another configuration now. */
void listeners_check_callers(struct listeners *l);
/* No new connections; what is under way goes on. */
void listeners_stop(struct listeners *l);
void listeners_close(struct listeners *l);

#endif
