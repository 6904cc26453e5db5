/* Proxies: HTTP CONNECT (RFC 9110 section 9.3.6), SOCKS5, and SOCKS5h, which is SOCKS5 with the target's name
 * resolved by the proxy. CONNECT is asked for plain http:// targets too, so a proxy never sees a request.
 * Pure conversation: the bytes are the caller's to move. */
#ifndef NET_PROXY_H
#define NET_PROXY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "net/dns.h"

struct proxy;

/* http://, socks5:// or socks5h://[USER:PASSWORD@]HOST[:PORT]. Returns NULL and e, which never shows the URL.
 */
struct proxy *proxy_new(const char *url, struct err *e);
void proxy_free(struct proxy *p);
const char *proxy_host(const struct proxy *p);
uint16_t proxy_port(const struct proxy *p);
const char *proxy_shown(const struct proxy *p); /* "HOST:PORT", for people */
/* Whether the target's name is given to the proxy; else an address must be. */
bool proxy_resolves(const struct proxy *p);

/* The conversation on one connection. */
struct proxy_talk;
enum proxy_progress { PROXY_MORE, PROXY_DONE, PROXY_FAIL };

/* Writes the first message to out. host is the target; address is NULL where proxy_resolves. Both are copied,
 * p is borrowed. */
struct proxy_talk *proxy_talk_new(const struct proxy *p, const char *host, uint16_t port,
                                  const struct net_address *address, struct buf *out);
void proxy_talk_free(struct proxy_talk *t);
/* Takes *used bytes; what is to be sent next goes to out. DONE: the rest of `in` is the target's. */
enum proxy_progress proxy_talk_feed(struct proxy_talk *t, struct slice in, size_t *used, struct buf *out);

/* After FAIL: a sentence that names the proxy; whether user or password are wrong or missing; whether another
 * address of the target may do better. */
const char *proxy_talk_error(const struct proxy_talk *t);
bool proxy_talk_login_refused(const struct proxy_talk *t);
bool proxy_talk_unreached(const struct proxy_talk *t);

/* Appends "Basic " and the two in base64 (RFC 7617). NULL counts as empty. */
void proxy_add_basic(struct buf *out, const char *user, const char *password);

#endif
