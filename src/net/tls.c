/* OpenSSL under a stream. Its socket BIO would raise SIGPIPE, so a BIO of our own sends and receives.
 * Configurations are shared, since the system's certificates take about a megabyte each time they are read.
 */
#include "net/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/list.h"
#include "base/mem.h"
#include "net/loop.h"
#include "net/stream.h"

struct tls_config {
    struct list link;
    unsigned users;
    char *ca_file;       /* NULL: the system's */
    struct stat read_as; /* a replaced file is another configuration */
    SSL_CTX *ctx;
};

struct tls_session {
    SSL_SESSION *known; /* NULL: none yet */
};

struct tls {
    struct stream *stream;
    SSL *ssl;
    char *host;
    struct tls_session *session;
    bool own_cas;
    long verify_error; /* X509_V_ERR_...: why the certificate was refused */
    char names[160];   /* that the refused certificate is for */
    char dates[64];    /* its end or start, where that is what is wrong */
    bool handshaking;
};

/* ---- the BIO
 * ------------------------------------------------------------------------------------------------------ */

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

/* ---- why a certificate is refused
 * -------------------------------------------------------------------------------- */

static void add_name(struct tls *t, const char *name)
{
    size_t n = strlen(t->names);

    snprintf(t->names + n, sizeof t->names - n, "%s%s", n ? ", " : "", name);
}

/* Peers choose these bytes: what is not a plain name is left out. */
static void add_dns_name(struct tls *t, const ASN1_STRING *s)
{
    char name[128];
    int n = ASN1_STRING_length(s);
    const unsigned char *p = ASN1_STRING_get0_data(s);

    if (n <= 0 || (size_t)n >= sizeof name)
        return;
    for (int i = 0; i < n; i++) {
        if (p[i] <= ' ' || p[i] > '~')
            return;
    }
    memcpy(name, p, (size_t)n);
    name[n] = '\0';
    add_name(t, name);
}

static void add_ip_name(struct tls *t, const ASN1_OCTET_STRING *s)
{
    char name[INET6_ADDRSTRLEN];
    int n = ASN1_STRING_length(s);

    if ((n == 4 || n == 16) &&
        inet_ntop(n == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(s), name, sizeof name))
        add_name(t, name);
}

/* Collects whom the certificate is for: its alternative names, or the common name of an old one. */
static void collect_names(struct tls *t, X509 *cert)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);

    t->names[0] = '\0';
    for (int i = 0; names && i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        if (name->type == GEN_DNS)
            add_dns_name(t, name->d.dNSName);
        else if (name->type == GEN_IPADD)
            add_ip_name(t, name->d.iPAddress);
    }
    GENERAL_NAMES_free(names);
    int at = X509_NAME_get_index_by_NID(X509_get_subject_name(cert), NID_commonName, -1);
    if (!t->names[0] && at >= 0)
        add_dns_name(t, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(X509_get_subject_name(cert), at)));
    if (!t->names[0])
        add_name(t, "no name at all");
}

static void keep_date(struct tls *t, const ASN1_TIME *time)
{
    struct tm tm;

    t->dates[0] = '\0';
    if (time && ASN1_TIME_to_tm(time, &tm))
        strftime(t->dates, sizeof t->dates, "%Y-%m-%d %H:%M UTC", &tm);
}

/* OpenSSL asks what to do about each check; we never overrule it, but keep what was wrong first. */
static int on_verify(int ok, X509_STORE_CTX *store)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct tls *t = SSL_get_app_data(ssl);
    X509 *cert = X509_STORE_CTX_get_current_cert(store);

    if (ok || t->verify_error)
        return ok;
    t->verify_error = X509_STORE_CTX_get_error(store);
    if (cert)
        collect_names(t, cert);
    if (cert && t->verify_error == X509_V_ERR_CERT_HAS_EXPIRED)
        keep_date(t, X509_get0_notAfter(cert));
    if (cert && t->verify_error == X509_V_ERR_CERT_NOT_YET_VALID)
        keep_date(t, X509_get0_notBefore(cert));
    return 0;
}

static void explain_certificate(struct tls *t)
{
    struct stream *s = t->stream;

    switch (t->verify_error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
        stream_set_error(
            s, 0,
            "the certificate of %s expired on %s; it must be renewed there, unless this machine's "
            "clock is wrong",
            t->host, t->dates);
        break;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        stream_set_error(s, 0, "the certificate of %s is valid only from %s; check this machine's clock",
                         t->host, t->dates);
        break;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        stream_set_error(s, 0, "the certificate shown by %s is not for it but for %.100s; check the address",
                         t->host, t->names);
        break;
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        stream_set_error(s, 0, "the certificate of %s is self-signed; if it is yours, name it in ca_file",
                         t->host);
        break;
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        stream_set_error(s, 0, "the certificate of %s is signed by none that is believed; %s", t->host,
                         t->own_cas ? "is ca_file the right one?"
                                    : "install ca-certificates, or name the signer's certificate in ca_file");
        break;
    default:
        stream_set_error(s, 0, "the certificate of %s was refused: %s", t->host,
                         X509_verify_cert_error_string(t->verify_error));
    }
}

/* ---- the stream's operations
 * ------------------------------------------------------------------------------------- */

/* What OpenSSL has to say beside certificates. */
static void explain_protocol(struct tls *t, unsigned long code)
{
    int reason = ERR_GET_REASON(code);

    if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST ||
        reason == SSL_R_PACKET_LENGTH_TOO_LONG)
        stream_set_error(t->stream, 0,
                         "%s does not speak TLS on this port; is it http:// instead of https://?", t->host);
    else if (reason == SSL_R_UNSUPPORTED_PROTOCOL || reason == SSL_R_TLSV1_ALERT_PROTOCOL_VERSION)
        stream_set_error(t->stream, 0, "%s speaks no TLS 1.2 or newer", t->host);
    else if (reason == SSL_R_UNEXPECTED_EOF_WHILE_READING)
        stream_set_error(t->stream, ECONNRESET, "closed by %s without the farewell of TLS", t->host);
    else
        stream_set_error(t->stream, 0, "TLS with %s failed: %s", t->host,
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
        if (t->verify_error)
            explain_certificate(t);
        else
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
        stream_set_error(t->stream, 0, "%s ended the TLS handshake", t->host);
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
    free(t->host);
    free(t);
}

static const struct stream_ops tls_ops = {
    .handshake = tls_handshake, .read = tls_read, .write = tls_write, .end = tls_end, .free = tls_release};

/* The peer gave a session (TLS 1.3: some time after the handshake). Returns 1: we keep it. */
static int on_session(SSL *ssl, SSL_SESSION *session)
{
    struct tls *t = SSL_get_app_data(ssl);

    if (!t->session)
        return 0;
    SSL_SESSION_free(t->session->known);
    t->session->known = session;
    return 1;
}

struct tls_session *tls_session_new(void)
{
    return xcalloc(1, sizeof(struct tls_session));
}

void tls_session_free(struct tls_session *s)
{
    if (!s)
        return;
    SSL_SESSION_free(s->known);
    free(s);
}

void tls_start_client(struct stream *s, struct tls_config *c, const char *host, struct tls_session *session)
{
    struct tls *t = xcalloc(1, sizeof *t);
    struct in6_addr literal;
    size_t n = strlen(host);

    t->stream = s;
    t->session = session;
    t->own_cas = c->ca_file != NULL;
    t->handshaking = true;
    /* A name written with its root's dot is, in certificates, written without. */
    t->host = xstrndup(host, n > 1 && host[n - 1] == '.' ? n - 1 : n);
    t->ssl = SSL_new(c->ctx);
    if (!t->ssl)
        abort(); /* no memory */
    SSL_set_app_data(t->ssl, t);
    BIO *b = bio_new(s);
    SSL_set_bio(t->ssl, b, b);
    if (inet_pton(AF_INET, t->host, &literal) == 1 || inet_pton(AF_INET6, t->host, &literal) == 1) {
        X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(t->ssl), t->host);
    } else {
        SSL_set_hostflags(t->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
        SSL_set1_host(t->ssl, t->host);
        SSL_set_tlsext_host_name(t->ssl, t->host);
    }
    if (session && session->known)
        SSL_set_session(t->ssl, session->known);
    SSL_set_connect_state(t->ssl);
    stream_secure(s, &tls_ops, t);
}

/* ---- configurations
 * ----------------------------------------------------------------------------------------------- */

static struct list configs = {&configs, &configs};

static struct tls_config *find_config(const char *ca_file, const struct stat *st)
{
    list_each(&configs, it)
    {
        struct tls_config *c = list_item(it, struct tls_config, link);
        if (!ca_file && !c->ca_file)
            return c;
        if (ca_file && c->ca_file && strcmp(ca_file, c->ca_file) == 0 && c->read_as.st_ino == st->st_ino &&
            c->read_as.st_size == st->st_size && c->read_as.st_mtim.tv_sec == st->st_mtim.tv_sec &&
            c->read_as.st_mtim.tv_nsec == st->st_mtim.tv_nsec)
            return c;
    }
    return NULL;
}

static SSL_CTX *context_new(const char *ca_file, struct err *e)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

    if (!ctx)
        abort();
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, on_verify);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(ctx, on_session);
    ERR_clear_error();
    if (ca_file ? SSL_CTX_load_verify_file(ctx, ca_file) : SSL_CTX_set_default_verify_paths(ctx))
        return ctx;
    if (ca_file)
        err_set(e, EX_CONFIG, "%s holds no certificate in PEM form (ca_file)", ca_file);
    else
        err_set(e, EX_CONFIG, "the system's certificates cannot be read; install ca-certificates");
    ERR_clear_error();
    SSL_CTX_free(ctx);
    return NULL;
}

struct tls_config *tls_client_config(const char *ca_file, struct err *e)
{
    struct stat st = {0};

    if (ca_file && (access(ca_file, R_OK) != 0 || stat(ca_file, &st) != 0)) {
        err_set(e, EX_NOINPUT, "%s cannot be read (ca_file): %s", ca_file, strerror(errno));
        return NULL;
    }
    struct tls_config *c = find_config(ca_file, &st);
    if (!c) {
        SSL_CTX *ctx = context_new(ca_file, e);
        if (!ctx)
            return NULL;
        c = xcalloc(1, sizeof *c);
        c->ctx = ctx;
        c->ca_file = ca_file ? xstrdup(ca_file) : NULL;
        c->read_as = st;
        list_add_tail(&configs, &c->link);
    }
    c->users++;
    return c;
}

void tls_config_free(struct tls_config *c)
{
    if (!c || --c->users > 0)
        return;
    list_del(&c->link);
    SSL_CTX_free(c->ctx); /* a stream that is not released yet holds a reference of its own */
    free(c->ca_file);
    free(c);
}
