/* Name look-ups by c-ares, for one connection attempt each: resolv.conf and hosts are read afresh and no
 * answer is remembered, so that a changed network or address is seen by the next attempt. */
#ifndef NET_DNS_H
#define NET_DNS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/ip.h"

struct loop;
struct dns;

/* An address to connect to. */
struct net_address {
    socklen_t length;
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } at;
};

#define NET_ADDRESS_TEXT (INET6_ADDRSTRLEN)
const char *net_address_text(const struct net_address *a, char out[NET_ADDRESS_TEXT]); /* without the port */

/* What became of one family's question. addresses is borrowed. error: a few words if the question failed;
 * NULL with no addresses: the name has none of this family. */
struct dns_answer {
    int family; /* AF_INET, AF_INET6 */
    const struct net_address *addresses;
    size_t n;
    const char *error;
    bool last; /* no other family is still being asked */
};
typedef void dns_fn(void *arg, const struct dns_answer *a);

/* Asks for the addresses of each family that `ip` allows; each answer is told on its own, as it comes, from
 * the loop and never from inside this call. An address given as a name is answered as it is. */
struct dns *dns_new(struct loop *l, const char *name, uint16_t port, enum ip_mode ip, dns_fn *fn, void *arg);
/* Also cancels; may be called inside the callback. NULL is harmless. */
void dns_free(struct dns *d);

#endif
