/* TLS for streams, by OpenSSL 3: version 1.2 at least. A client always checks its peer's certificate and name;
 * a server shows one and asks for none. */
#ifndef NET_TLS_H
#define NET_TLS_H

#include <stdint.h>

#include "base/err.h"

struct stream;
struct tls_server;  /* what a server shows */
struct tls_config;  /* what certificates are believed; shared by all who name the same file */
struct tls_session; /* what a client remembers of its peer, so that the next handshake is short */

/* ca_file: PEM certificates that are believed instead of the system's; NULL: the system's. Returns NULL and e
 * with EX_CONFIG or EX_NOINPUT. Released by tls_config_free, after every stream that uses it was closed. */
struct tls_config *tls_client_config(const char *ca_file, struct err *e);
/* The same, believing the certificates of ca_file and the system's. */
struct tls_config *tls_client_config_also(const char *ca_file, struct err *e);
void tls_config_free(struct tls_config *c);

struct tls_session *tls_session_new(void);
void tls_session_free(struct tls_session *s); /* after the streams that use it were closed */

/* Starts the handshake with a server that must prove to be `host`, a name or an IP address. STREAM_READY or
 * STREAM_FAILED comes; the latter's error is a sentence that says what is wrong and what to do about it.
 * Afterwards the peer's close without TLS's own farewell is a failure, as it may be forged. session is
 * borrowed. */
void tls_start_client(struct stream *s, struct tls_config *c, const char *host, struct tls_session *session);

/* cert_file: the certificate, then those between it and the root, in PEM; key_file: its private key, without a
 * passphrase. Returns NULL and e, which says which file is wrong and why. */
struct tls_server *tls_server_new(const char *cert_file, const char *key_file, struct err *e);
/* Reads both files again, for the connections to come. Returns -1 and e if they cannot serve: then what was
 * read before stays. */
int tls_server_reload(struct tls_server *c, struct err *e);
/* When the certificate ends, in seconds since 1970. */
int64_t tls_server_expires(const struct tls_server *c);
/* Streams that use it live on. NULL is harmless. */
void tls_server_free(struct tls_server *c);

/* Starts the handshake with a client. STREAM_READY or STREAM_FAILED comes. */
void tls_start_server(struct stream *s, struct tls_server *c);

#endif
