/* The server's side of TLS: one certificate with its key, read anew on demand. A context holds what one
 * reading gave; connections keep the one that they began with. Sessions are resumed by tickets, so that the
 * server remembers nothing. */
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/mem.h"
#include "net/tls.h"
#include "net/tls_stream.h"

#define FILE_MAX (256 * 1024)

struct tls_server {
    char *cert_file, *key_file;
    SSL_CTX *ctx;
    int64_t expires;
};

/* HTTP/1.1 is all we speak. A client that offers only what we do not know goes on without ALPN. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_n, const unsigned char *in,
                           unsigned in_n, void *arg)
{
    static const unsigned char ours[] = "\x08http/1.1";
    unsigned char *chosen;

    (void)ssl;
    (void)arg;
    if (SSL_select_next_proto(&chosen, out_n, ours, sizeof ours - 1, in, in_n) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_NOACK;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

/* OpenSSL would ask on the terminal. */
static int no_passphrase(char *p, int n, int writing, void *asked)
{
    (void)p;
    (void)n;
    (void)writing;
    *(bool *)asked = true;
    return -1;
}

static BIO *open_pem(const char *path, const char *option, struct buf *text, struct err *e)
{
    if (file_read(path, FILE_MAX, text, e) < 0) {
        err_prefix(e, "%s", option);
        return NULL;
    }
    BIO *b = BIO_new_mem_buf(buf_str(text), (int)text->n);
    if (!b)
        abort(); /* no memory */
    return b;
}

static int64_t end_of(X509 *cert)
{
    struct tm tm;

    return ASN1_TIME_to_tm(X509_get0_notAfter(cert), &tm) ? (int64_t)timegm(&tm) : 0;
}

/* The certificate and those after it. Returns 0, or -1 and e. */
static int read_certificates(SSL_CTX *ctx, const char *path, int64_t *expires, struct err *e)
{
    struct buf text = BUF_EMPTY;
    BIO *b = open_pem(path, "tls_cert", &text, e);
    X509 *cert = b ? PEM_read_bio_X509_AUX(b, NULL, NULL, NULL) : NULL;
    int r = -1;

    if (!b)
        goto out;
    if (!cert) {
        err_set(e, EX_CONFIG, "tls_cert: %s holds no certificate in PEM form", path);
        goto out;
    }
    if (SSL_CTX_use_certificate(ctx, cert) != 1) {
        err_set(e, EX_CONFIG, "tls_cert: the certificate in %s cannot be used: %s", path,
                ERR_reason_error_string(ERR_peek_last_error()));
        goto out;
    }
    *expires = end_of(cert);
    X509 *more;
    while ((more = PEM_read_bio_X509(b, NULL, NULL, NULL)) != NULL)
        SSL_CTX_add0_chain_cert(ctx, more);
    if (ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE)
        r = 0;
    else
        err_set(e, EX_CONFIG, "tls_cert: a certificate behind the first one in %s is damaged", path);
out:
    X509_free(cert);
    BIO_free(b);
    buf_free(&text);
    return r;
}

static int read_key(SSL_CTX *ctx, const struct tls_server *s, struct err *e)
{
    struct buf text = BUF_EMPTY;
    bool asked = false;
    BIO *b = open_pem(s->key_file, "tls_key", &text, e);
    EVP_PKEY *key = b ? PEM_read_bio_PrivateKey(b, NULL, no_passphrase, &asked) : NULL;
    int r = -1;

    if (!b)
        goto out;
    if (!key)
        err_set(e, EX_CONFIG, "tls_key: %s %s", s->key_file,
                asked ? "is protected by a passphrase, which nobody could type"
                      : "holds no private key in PEM form");
    else if (SSL_CTX_use_PrivateKey(ctx, key) != 1 || SSL_CTX_check_private_key(ctx) != 1)
        err_set(e, EX_CONFIG, "tls_key: the key in %s does not belong to the certificate in %s", s->key_file,
                s->cert_file);
    else
        r = 0;
out:
    EVP_PKEY_free(key);
    BIO_free(b);
    if (text.p)
        OPENSSL_cleanse(text.p, text.n);
    buf_free(&text);
    return r;
}

int tls_server_reload(struct tls_server *s, struct err *e)
{
    SSL_CTX *ctx = tls_context(TLS_server_method());
    int64_t expires = 0;
    int r;

    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(ctx, 1);
    SSL_CTX_set_options(ctx, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
    ERR_clear_error();
    r = read_certificates(ctx, s->cert_file, &expires, e);
    ERR_clear_error();
    if (r == 0)
        r = read_key(ctx, s, e);
    ERR_clear_error();
    if (r < 0) {
        SSL_CTX_free(ctx);
        return -1;
    }
    SSL_CTX_free(s->ctx); /* connections hold references of their own */
    s->ctx = ctx;
    s->expires = expires;
    return 0;
}

struct tls_server *tls_server_new(const char *cert_file, const char *key_file, struct err *e)
{
    struct tls_server *s = xcalloc(1, sizeof *s);

    s->cert_file = xstrdup(cert_file);
    s->key_file = xstrdup(key_file);
    if (tls_server_reload(s, e) == 0)
        return s;
    tls_server_free(s);
    return NULL;
}

int64_t tls_server_expires(const struct tls_server *s)
{
    return s->expires;
}

void tls_server_free(struct tls_server *s)
{
    if (!s)
        return;
    SSL_CTX_free(s->ctx);
    free(s->cert_file);
    free(s->key_file);
    free(s);
}

void tls_start_server(struct stream *stream, struct tls_server *s)
{
    struct tls *t = tls_start(stream, s->ctx, slice_str("the client"));

    SSL_set_accept_state(t->ssl);
}
