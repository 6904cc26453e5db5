/* IP addresses out of the configuration and of peers: which families to use, networks, and where to listen. */
#ifndef BASE_IP_H
#define BASE_IP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum ip_mode { IP_ANY, IP_4, IP_6 };

#define IP_TEXT_MAX 64 /* bytes that any of these needs as text */
#define IP_NETS_MAX 32

/* Sixteen bytes in network order; an IPv4 address in its mapped form ::ffff:A.B.C.D (RFC 4291, 2.5.5.2), so
 * that a peer of a dual-stack socket compares like any other. */
struct ip_addr {
    unsigned char b[16];
};

struct ip_net {
    struct ip_addr addr; /* bits behind the prefix are zero */
    unsigned prefix;     /* of 128 bits */
};

struct ip_nets {
    struct ip_net net[IP_NETS_MAX];
    size_t n;
};

struct ip_port {
    struct ip_addr addr;
    uint16_t port;
};

/* An address without brackets or zone. Returns whether text is one. */
bool ip_parse(struct slice text, struct ip_addr *out);
bool ip_is_v4(const struct ip_addr *a); /* then the last four bytes are it */
/* 127.0.0.0/8 and ::1. */
bool ip_is_loopback(const struct ip_addr *a);
/* 0.0.0.0 and ::, by which one listens on every address. */
bool ip_is_any(const struct ip_addr *a);

/* "ADDRESS" or "ADDRESS/BITS"; bits set behind the prefix are dropped. Returns whether text is one. */
bool ip_net_parse(struct slice text, struct ip_net *out);
bool ip_net_has(const struct ip_net *net, const struct ip_addr *a);
bool ip_nets_have(const struct ip_nets *nets, const struct ip_addr *a);
/* The shortest text that parses back to the same. Returns out. */
char *ip_net_text(const struct ip_net *net, char out[IP_TEXT_MAX]);

/* Where to listen: "A.B.C.D:PORT", "[V6]:PORT" or "localhost:PORT", which is 127.0.0.1. The port may be 0.
 * Returns NULL, or what is wrong, as the end of a sentence ("names no port"). */
const char *ip_port_parse(struct slice text, struct ip_port *out);
/* Whether two listeners would want the same port of the same address. */
bool ip_port_clash(const struct ip_port *a, const struct ip_port *b);

#endif
