/* The client's side of SOCKS5 (RFC 1928) with user name and password (RFC 1929), up to the CONNECT answer.
 * Pure: the bytes come from and go to whoever owns the connection. */
#ifndef WIRE_SOCKS5_H
#define WIRE_SOCKS5_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"

/* Where the proxy shall connect to. */
enum socks5_address { SOCKS5_IPV4 = 1, SOCKS5_NAME = 3, SOCKS5_IPV6 = 4 };

/* FAIL: see error and the members beside it; nothing more can be read. */
enum socks5_progress { SOCKS5_MORE, SOCKS5_DONE, SOCKS5_FAIL };

struct socks5 {
    enum { SOCKS5_METHOD, SOCKS5_AUTH, SOCKS5_REPLY, SOCKS5_ENDED } state;
    bool has_login;
    enum socks5_address type;
    struct slice address; /* 4 or 16 bytes, or a name; borrowed, as are these: */
    struct slice user, password;
    uint16_t port;
    bool login_refused; /* after FAIL: user name or password are wrong, or missing */
    int reply;          /* after FAIL: the proxy's reply code if it gave one (1..255), else 0 */
    char error[128];    /* after FAIL: what the proxy did, as in "... refused the password" */
};

/* Begins, and writes the first message to out. user.p NULL: no login is offered. Returns 0, or -1 with error
 * set: a name, user or password longer than 255 bytes, or an empty name. */
int socks5_start(struct socks5 *s, enum socks5_address type, struct slice address, uint16_t port,
                 struct slice user, struct slice password, struct buf *out);

/* Takes whole messages off the front of `in` (*used tells how many bytes) and writes what is to be sent next.
 * With DONE the rest of `in` is the target's. */
enum socks5_progress socks5_feed(struct socks5 *s, struct slice in, size_t *used, struct buf *out);

#endif
