/* The client's side of TLS: what it believes, and sentences for people about what it does not. Configurations
 * are shared, since the system's certificates take about a megabyte each time they are read. */
#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/list.h"
#include "base/mem.h"
#include "net/stream.h"
#include "net/tls.h"
#include "net/tls_stream.h"

struct tls_config {
    struct list link;
    unsigned users;
    char *ca_file;       /* NULL: the system's */
    bool and_system;     /* both */
    struct stat read_as; /* a replaced file is another configuration */
    SSL_CTX *ctx;
};

struct tls_session {
    SSL_SESSION *known; /* NULL: none yet */
};

struct client {
    struct tls_session *session;
    bool own_cas;
    long verify_error; /* X509_V_ERR_...: why the certificate was refused */
    char names[160];   /* that the refused certificate is for */
    char dates[64];    /* its end or start, where that is what is wrong */
};

/* ---- why a certificate is refused --------------------------------------------------------------- */

static void add_name(struct client *c, const char *name)
{
    size_t n = strlen(c->names);

    snprintf(c->names + n, sizeof c->names - n, "%s%s", n ? ", " : "", name);
}

/* Peers choose these bytes: what is not a plain name is left out. */
static void add_dns_name(struct client *c, const ASN1_STRING *s)
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
    add_name(c, name);
}

static void add_ip_name(struct client *c, const ASN1_OCTET_STRING *s)
{
    char name[INET6_ADDRSTRLEN];
    int n = ASN1_STRING_length(s);

    if ((n == 4 || n == 16) &&
        inet_ntop(n == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(s), name, sizeof name))
        add_name(c, name);
}

/* Collects whom the certificate is for: its alternative names, or the common name of an old one. */
static void collect_names(struct client *c, X509 *cert)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);

    c->names[0] = '\0';
    for (int i = 0; names && i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        if (name->type == GEN_DNS)
            add_dns_name(c, name->d.dNSName);
        else if (name->type == GEN_IPADD)
            add_ip_name(c, name->d.iPAddress);
    }
    GENERAL_NAMES_free(names);
    int at = X509_NAME_get_index_by_NID(X509_get_subject_name(cert), NID_commonName, -1);
    if (!c->names[0] && at >= 0)
        add_dns_name(c, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(X509_get_subject_name(cert), at)));
    if (!c->names[0])
        add_name(c, "no name at all");
}

static void keep_date(struct client *c, const ASN1_TIME *time)
{
    struct tm tm;

    c->dates[0] = '\0';
    if (time && ASN1_TIME_to_tm(time, &tm))
        strftime(c->dates, sizeof c->dates, "%Y-%m-%d %H:%M UTC", &tm);
}

/* OpenSSL asks what to do about each check; we never overrule it, but keep what was wrong first. */
static int on_verify(int ok, X509_STORE_CTX *store)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct client *c = ((struct tls *)SSL_get_app_data(ssl))->side;
    X509 *cert = X509_STORE_CTX_get_current_cert(store);

    if (ok || c->verify_error)
        return ok;
    c->verify_error = X509_STORE_CTX_get_error(store);
    if (cert)
        collect_names(c, cert);
    if (cert && c->verify_error == X509_V_ERR_CERT_HAS_EXPIRED)
        keep_date(c, X509_get0_notAfter(cert));
    if (cert && c->verify_error == X509_V_ERR_CERT_NOT_YET_VALID)
        keep_date(c, X509_get0_notBefore(cert));
    return 0;
}

static bool explain_certificate(struct tls *t)
{
    const struct client *c = t->side;
    struct stream *s = t->stream;

    if (!c->verify_error)
        return false;
    switch (c->verify_error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
        stream_set_error(
            s, 0,
            "the certificate of %s expired on %s; it must be renewed there, unless this machine's "
            "clock is wrong",
            t->peer, c->dates);
        break;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        stream_set_error(s, 0, "the certificate of %s is valid only from %s; check this machine's clock",
                         t->peer, c->dates);
        break;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        stream_set_error(s, 0, "the certificate shown by %s is not for it but for %.100s; check the address",
                         t->peer, c->names);
        break;
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        stream_set_error(s, 0, "the certificate of %s is self-signed; if it is yours, name it in ca_file",
                         t->peer);
        break;
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        stream_set_error(s, 0, "the certificate of %s is signed by none that is believed; %s", t->peer,
                         c->own_cas ? "is ca_file the right one?"
                                    : "install ca-certificates, or name the signer's certificate in ca_file");
        break;
    default:
        stream_set_error(s, 0, "the certificate of %s was refused: %s", t->peer,
                         X509_verify_cert_error_string(c->verify_error));
    }
    return true;
}

/* The peer gave a session (TLS 1.3: some time after the handshake). Returns 1: we keep it. */
static int on_session(SSL *ssl, SSL_SESSION *session)
{
    const struct client *c = ((struct tls *)SSL_get_app_data(ssl))->side;

    if (!c->session)
        return 0;
    SSL_SESSION_free(c->session->known);
    c->session->known = session;
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

static void client_release(struct tls *t)
{
    free(t->side);
}

void tls_start_client(struct stream *s, struct tls_config *config, const char *host,
                      struct tls_session *session)
{
    struct client *c = xcalloc(1, sizeof *c);
    struct in6_addr literal;
    size_t n = strlen(host);

    c->session = session;
    c->own_cas = config->ca_file != NULL;
    /* A name written with its root's dot is, in certificates, written without. */
    struct tls *t = tls_start(s, config->ctx, slice_make(host, n > 1 && host[n - 1] == '.' ? n - 1 : n));
    t->explain = explain_certificate;
    t->release = client_release;
    t->side = c;
    if (inet_pton(AF_INET, t->peer, &literal) == 1 || inet_pton(AF_INET6, t->peer, &literal) == 1) {
        X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(t->ssl), t->peer);
    } else {
        SSL_set_hostflags(t->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
        SSL_set1_host(t->ssl, t->peer);
        SSL_set_tlsext_host_name(t->ssl, t->peer);
    }
    if (session && session->known)
        SSL_set_session(t->ssl, session->known);
    SSL_set_connect_state(t->ssl);
}

/* ---- configurations ----------------------------------------------------------------------------- */

static struct list configs = {&configs, &configs};

static struct tls_config *find_config(const char *ca_file, bool and_system, const struct stat *st)
{
    list_each(&configs, it) {
        struct tls_config *c = list_item(it, struct tls_config, link);
        if (!ca_file && !c->ca_file)
            return c;
        if (ca_file && c->ca_file && c->and_system == and_system && strcmp(ca_file, c->ca_file) == 0 && c->read_as.st_ino == st->st_ino &&
            c->read_as.st_size == st->st_size && c->read_as.st_mtim.tv_sec == st->st_mtim.tv_sec &&
            c->read_as.st_mtim.tv_nsec == st->st_mtim.tv_nsec)
            return c;
    }
    return NULL;
}

static SSL_CTX *context_new(const char *ca_file, bool and_system, struct err *e)
{
    SSL_CTX *ctx = tls_context(TLS_client_method());

    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, on_verify);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(ctx, on_session);
    ERR_clear_error();
    bool system_read = (ca_file && !and_system) || SSL_CTX_set_default_verify_paths(ctx);
    if (system_read && (!ca_file || SSL_CTX_load_verify_file(ctx, ca_file)))
        return ctx;
    if (system_read)
        err_set(e, EX_CONFIG, "%s holds no certificate in PEM form (ca_file)", ca_file);
    else
        err_set(e, EX_CONFIG, "the system's certificates cannot be read; install ca-certificates");
    ERR_clear_error();
    SSL_CTX_free(ctx);
    return NULL;
}

static struct tls_config *config_of(const char *ca_file, bool and_system, struct err *e)
{
    struct stat st = {0};

    if (ca_file && (access(ca_file, R_OK) != 0 || stat(ca_file, &st) != 0)) {
        err_set(e, EX_NOINPUT, "%s cannot be read (ca_file): %s", ca_file, strerror(errno));
        return NULL;
    }
    struct tls_config *c = find_config(ca_file, and_system, &st);
    if (!c) {
        SSL_CTX *ctx = context_new(ca_file, and_system, e);
        if (!ctx)
            return NULL;
        c = xcalloc(1, sizeof *c);
        c->ctx = ctx;
        c->ca_file = ca_file ? xstrdup(ca_file) : NULL;
        c->and_system = and_system;
        c->read_as = st;
        list_add_tail(&configs, &c->link);
    }
    c->users++;
    return c;
}

struct tls_config *tls_client_config(const char *ca_file, struct err *e)
{
    return config_of(ca_file, false, e);
}

struct tls_config *tls_client_config_also(const char *ca_file, struct err *e)
{
    return config_of(ca_file, ca_file != NULL, e);
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
