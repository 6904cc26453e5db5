/* Who sent a request that came through proxies: X-Forwarded-For. Pure. */
#ifndef WIRE_FORWARDED_H
#define WIRE_FORWARDED_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/ip.h"

/* Walks from the peer backwards through the header's value (all fields of that name, in order, joined by commas;
 * empty: none) as long as the hop at hand is a trusted proxy, whose word on the hop before it is believed: *client
 * is the last one that is not trusted, or the farthest. Returns false if a trusted proxy names something that is no
 * address. */
bool forwarded_client(const struct ip_addr *peer, struct slice header, const struct ip_nets *trusted,
                      struct ip_addr *client);

#endif
