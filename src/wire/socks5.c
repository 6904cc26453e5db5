/* SOCKS5's three exchanges: method, login, request. Every answer has a length known after a few bytes, so
 * nothing is stored here: a message is left with the caller until it is whole. */
#include "wire/socks5.h"

#include <stdio.h>
#include <string.h>

#define VERSION 5
#define LOGIN_VERSION 1 /* RFC 1929 counts on its own */
#define METHOD_NONE 0
#define METHOD_LOGIN 2
#define METHOD_UNACCEPTABLE 0xff
#define COMMAND_CONNECT 1

static int refuse(struct socks5 *s, const char *what)
{
    s->state = SOCKS5_ENDED;
    snprintf(s->error, sizeof s->error, "%s", what);
    return -1;
}

/* One byte of length, then the bytes. */
static void add_counted(struct buf *out, struct slice v)
{
    buf_add_char(out, (char)(unsigned char)v.n);
    buf_add_slice(out, v);
}

int socks5_start(struct socks5 *s, enum socks5_address type, struct slice address, uint16_t port,
                 struct slice user, struct slice password, struct buf *out)
{
    memset(s, 0, sizeof *s);
    s->has_login = user.p != NULL;
    s->type = type;
    s->address = address;
    s->port = port;
    s->user = user;
    s->password = password;
    if (type == SOCKS5_NAME && (address.n == 0 || address.n > 255))
        return refuse(s, "a SOCKS5 proxy takes a host name of 1 to 255 bytes");
    /* RFC 1929 wants 1 to 255 bytes of each; an empty password is sent as such, servers take it. */
    if (s->has_login && (user.n == 0 || user.n > 255 || password.n > 255))
        return refuse(s, "a SOCKS5 proxy takes a user name of 1 to 255 bytes and a password of up to 255");

    buf_add_char(out, VERSION);
    if (s->has_login)
        buf_add(out, (const char[]){2, METHOD_NONE, METHOD_LOGIN}, 3);
    else
        buf_add(out, (const char[]){1, METHOD_NONE}, 2);
    s->state = SOCKS5_METHOD;
    return 0;
}

static void add_login(const struct socks5 *s, struct buf *out)
{
    buf_add_char(out, LOGIN_VERSION);
    add_counted(out, s->user);
    add_counted(out, s->password);
}

static void add_request(const struct socks5 *s, struct buf *out)
{
    buf_add(out, (const char[]){VERSION, COMMAND_CONNECT, 0, (char)s->type}, 4);
    if (s->type == SOCKS5_NAME)
        add_counted(out, s->address);
    else
        buf_add_slice(out, s->address);
    put_be16(buf_reserve(out, 2), s->port);
    buf_added(out, 2);
}

/* Each read_ function returns the bytes it took, 0 if the message is not whole, or -1 after refuse(). */

static int read_method(struct socks5 *s, const unsigned char *p, size_t n, struct buf *out)
{
    if (p[0] != VERSION)
        return refuse(s, "it does not speak SOCKS5");
    if (n < 2)
        return 0;
    if (p[1] == METHOD_LOGIN && s->has_login) {
        add_login(s, out);
        s->state = SOCKS5_AUTH;
        return 2;
    }
    if (p[1] == METHOD_NONE) {
        add_request(s, out);
        s->state = SOCKS5_REPLY;
        return 2;
    }
    if (p[1] == METHOD_UNACCEPTABLE || p[1] == METHOD_LOGIN) {
        s->login_refused = true;
        return refuse(s, s->has_login ? "it takes no user name and password"
                                      : "it wants a user name and a password");
    }
    return refuse(s, "it chose a login method that was not offered");
}

static int read_login(struct socks5 *s, const unsigned char *p, size_t n, struct buf *out)
{
    if (n < 2)
        return 0;
    /* Some servers answer with SOCKS's version in the first byte: only the second one means anything. */
    if (p[1] != 0) {
        s->login_refused = true;
        return refuse(s, "it refused the user name or password");
    }
    add_request(s, out);
    s->state = SOCKS5_REPLY;
    return 2;
}

static const char *reply_text(int code)
{
    static const char *const texts[] = {
        [1] = "it failed without saying why",
        [2] = "its rules do not allow this connection",
        [3] = "it cannot reach the network of the target",
        [4] = "it cannot reach the target or resolve its name",
        [5] = "the target refused its connection",
        [6] = "its connection to the target timed out",
        [7] = "it does not do CONNECT",
        [8] = "it does not support this kind of address",
    };
    if (code > 0 && code < (int)(sizeof texts / sizeof *texts))
        return texts[code];
    return "it answered with an unknown error";
}

static int read_reply(struct socks5 *s, const unsigned char *p, size_t n)
{
    size_t length;

    if (p[0] != VERSION)
        return refuse(s, "it does not speak SOCKS5");
    if (n < 2)
        return 0;
    if (p[1] != 0) { /* some servers cut what follows an error */
        s->reply = p[1];
        return refuse(s, reply_text(p[1]));
    }
    if (n < 5)
        return 0;
    switch (p[3]) {
    case SOCKS5_IPV4:
        length = 4 + 4 + 2;
        break;
    case SOCKS5_IPV6:
        length = 4 + 16 + 2;
        break;
    case SOCKS5_NAME:
        length = 4 + 1 + (size_t)p[4] + 2;
        break;
    default:
        return refuse(s, "it answered with an unknown kind of address");
    }
    if (n < length)
        return 0;
    s->state = SOCKS5_ENDED;
    return (int)length;
}

enum socks5_progress socks5_feed(struct socks5 *s, struct slice in, size_t *used, struct buf *out)
{
    *used = 0;
    while (s->state != SOCKS5_ENDED) {
        const unsigned char *p = (const unsigned char *)in.p + *used;
        size_t n = in.n - *used;
        int took = 0;

        if (n == 0)
            return SOCKS5_MORE;
        if (s->state == SOCKS5_METHOD)
            took = read_method(s, p, n, out);
        else if (s->state == SOCKS5_AUTH)
            took = read_login(s, p, n, out);
        else
            took = read_reply(s, p, n);
        if (took == 0)
            return SOCKS5_MORE;
        if (took > 0)
            *used += (size_t)took;
    }
    return s->error[0] ? SOCKS5_FAIL : SOCKS5_DONE;
}
