/* OpenSSL under a stream, whichever side we are. Its socket BIO would raise SIGPIPE, so a BIO of our own sends
 * and receives. */
#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "net/loop.h"
#include "net/stream.h"
#include "net/tls_stream.h"

/* ---- the BIO ------------------------------------------------------------------------------------ */

static int bio_result(BIO *b, ssize_t r)
{
    BIO_clear_retry_flags(b);
    if (r >= 0)
        return (int)r;
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
        return -2; /* the caller sets the retry flag of its direction */
    return -1;
}

static int bio_read(BIO *b, char *p, int n)
{
    struct stream *s = BIO_get_data(b);
    int r = bio_result(b, recv(stream_fd(s), p, (size_t)n, 0));

    if (r == -2)
        BIO_set_retry_read(b);
    if (r == 0)
        BIO_set_flags(b, BIO_FLAGS_IN_EOF);
    return r < 0 ? -1 : r;
}

static int bio_write(BIO *b, const char *p, int n)
{
    struct stream *s = BIO_get_data(b);
    int r = bio_result(b, send(stream_fd(s), p, (size_t)n, MSG_NOSIGNAL));

    if (r == -2)
        BIO_set_retry_write(b);
    return r < 0 ? -1 : r;
}

static long bio_ctrl(BIO *b, int command, long n, void *p)
{
    (void)n;
    (void)p;
    if (command == BIO_CTRL_FLUSH)
        return 1;
    if (command == BIO_CTRL_EOF)
        return BIO_test_flags(b, BIO_FLAGS_IN_EOF) != 0;
    return 0;
}

static BIO *bio_new(struct stream *s)
{
    static BIO_METHOD *method; /* one for the process's life */

    if (!method) {
        method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "stream");
        if (!method)
            abort();
        BIO_meth_set_read(method, bio_read);
        BIO_meth_set_write(method, bio_write);
        BIO_meth_set_ctrl(method, bio_ctrl);
    }
    BIO *b = BIO_new(method);
    if (!b)
        abort(); /* no memory */
    BIO_set_data(b, s);
    BIO_set_init(b, 1);
    return b;
}

/* ---- the stream's operations -------------------------------------------------------------------- */

/* What OpenSSL has to say beside certificates. */
static void explain_protocol(struct tls *t, unsigned long code)
{
    int reason = ERR_GET_REASON(code);

    if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST ||
        reason == SSL_R_PACKET_LENGTH_TOO_LONG)
        stream_set_error(t->stream, 0,
                         "%s does not speak TLS on this port; is it http:// instead of https://?", t->peer);
    else if (reason == SSL_R_UNSUPPORTED_PROTOCOL || reason == SSL_R_TLSV1_ALERT_PROTOCOL_VERSION)
        stream_set_error(t->stream, 0, "%s speaks no TLS 1.2 or newer", t->peer);
    else if (reason == SSL_R_UNEXPECTED_EOF_WHILE_READING)
        stream_set_error(t->stream, ECONNRESET, "closed by %s without the farewell of TLS", t->peer);
    else
        stream_set_error(t->stream, 0, "TLS with %s failed: %s", t->peer,
                         code ? ERR_reason_error_string(code) : "no reason was given");
}

/* Turns the result of an SSL_ call that did not succeed into a stream's. 0 stands for the peer's proper end.
 */
static int outcome(struct tls *t, int r, int err_no, int *want)
{
    unsigned long code = ERR_peek_error();

    switch (SSL_get_error(t->ssl, r)) {
    case SSL_ERROR_WANT_READ:
        *want = IO_READ;
        return STREAM_AGAIN;
    case SSL_ERROR_WANT_WRITE:
        *want = IO_WRITE;
        return STREAM_AGAIN;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    case SSL_ERROR_SYSCALL:
        if (err_no)
            stream_set_error(t->stream, err_no, "%s%s", t->handshaking ? "within the TLS handshake: " : "",
                             strerror(err_no));
        else
            stream_set_error(t->stream, ECONNRESET, "the connection was closed within TLS");
        return STREAM_BROKEN;
    default:
        if (!t->explain || !t->explain(t))
            explain_protocol(t, code);
        return STREAM_BROKEN;
    }
}

static int tls_handshake(struct stream *s, void *state, int *want)
{
    struct tls *t = state;

    (void)s;
    ERR_clear_error();
    errno = 0;
    int r = SSL_do_handshake(t->ssl);
    if (r == 1) {
        t->handshaking = false;
        return 0;
    }
    r = outcome(t, r, errno, want);
    if (r == 0) {
        stream_set_error(t->stream, 0, "%s ended the TLS handshake", t->peer);
        return STREAM_BROKEN;
    }
    return r;
}

static ssize_t tls_read(struct stream *s, void *state, void *p, size_t n, int *want)
{
    struct tls *t = state;
    size_t got = 0;

    (void)s;
    ERR_clear_error();
    errno = 0;
    *want = IO_READ;
    int r = SSL_read_ex(t->ssl, p, n, &got);
    return r == 1 ? (ssize_t)got : outcome(t, r, errno, want);
}

static ssize_t tls_write(struct stream *s, void *state, const void *p, size_t n, int *want)
{
    struct tls *t = state;
    size_t put = 0;

    ERR_clear_error();
    errno = 0;
    *want = IO_WRITE;
    int r = SSL_write_ex(t->ssl, p, n, &put);
    if (r == 1)
        return (ssize_t)put;
    r = outcome(t, r, errno, want);
    if (r == 0) {
        stream_set_error(s, EPIPE, "%s", strerror(EPIPE));
        return STREAM_BROKEN;
    }
    return r;
}

static int tls_end(struct stream *s, void *state, int *want)
{
    struct tls *t = state;

    ERR_clear_error();
    errno = 0;
    int r = SSL_shutdown(t->ssl);
    if (r < 0 && SSL_get_error(t->ssl, r) == SSL_ERROR_WANT_WRITE) {
        *want = IO_WRITE;
        return STREAM_AGAIN;
    }
    shutdown(stream_fd(s), SHUT_WR);
    return 0;
}

static void tls_release(void *state)
{
    struct tls *t = state;

    SSL_free(t->ssl);
    if (t->release)
        t->release(t);
    free(t->peer);
    free(t);
}

static const struct stream_ops tls_ops = {
    .handshake = tls_handshake, .read = tls_read, .write = tls_write, .end = tls_end, .free = tls_release};

struct tls *tls_start(struct stream *s, SSL_CTX *ctx, struct slice peer)
{
    struct tls *t = xcalloc(1, sizeof *t);

    t->stream = s;
    t->handshaking = true;
    t->peer = xstrndup(peer.p, peer.n);
    t->ssl = SSL_new(ctx);
    if (!t->ssl)
        abort(); /* no memory */
    SSL_set_app_data(t->ssl, t);
    BIO *b = bio_new(s);
    SSL_set_bio(t->ssl, b, b);
    stream_secure(s, &tls_ops, t);
    return t;
}

SSL_CTX *tls_context(const SSL_METHOD *method)
{
    SSL_CTX *ctx = SSL_CTX_new(method);

    if (!ctx)
        abort();
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    return ctx;
}
