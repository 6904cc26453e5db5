/* TLS for streams, by OpenSSL 3: version 1.2 at least, the peer's certificate and name always checked. */
#ifndef NET_TLS_H
#define NET_TLS_H

#include "base/err.h"

struct stream;
struct tls_config;  /* what certificates are believed; shared by all who name the same file */
struct tls_session; /* what a client remembers of its peer, so that the next handshake is short */

/* ca_file: PEM certificates that are believed instead of the system's; NULL: the system's. Returns NULL and e
 * with EX_CONFIG or EX_NOINPUT. Released by tls_config_free, after every stream that uses it was closed. */
struct tls_config *tls_client_config(const char *ca_file, struct err *e);
void tls_config_free(struct tls_config *c);

struct tls_session *tls_session_new(void);
void tls_session_free(struct tls_session *s); /* after the streams that use it were closed */

/* Starts the handshake with a server that must prove to be `host`, a name or an IP address. STREAM_READY or
 * STREAM_FAILED comes; the latter's error is a sentence that says what is wrong and what to do about it.
 * Afterwards the peer's close without TLS's own farewell is a failure, as it may be forged. session is
 * borrowed. */
void tls_start_client(struct stream *s, struct tls_config *c, const char *host, struct tls_session *session);

#endif
