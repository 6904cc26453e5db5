/* A connection of the webhook sender to the webhook's server: blocking, with a time limit. */
#ifndef BOTAPI_LINK_H
#define BOTAPI_LINK_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* Where an URL leads. */
struct link_target {
    bool tls;
    char *host, *port, *path; /* owned */
    char *host_header;        /* owned */
    char *authorization;      /* owned: of the URL's user and password, in base64; NULL: none */
};
int link_target_parse(struct slice url, struct link_target *out); /* 0, or -1 with nothing to free */
void link_target_free(struct link_target *t);

struct link {
    int fd; /* -1: not connected */
    SSL *ssl;
    unsigned number;
    int64_t used_at;
};

struct link_answer {
    int status; /* 0: none */
    char reason[64];
    int retry_after_s; /* -1: none */
    const char *error; /* NULL: a whole answer came */
};

/* Sends a request and reads the answer, on the old connection or a new one, within timeout_ms. After an error the
 * link is closed. */
void link_exchange(struct link *l, const struct link_target *to, struct slice request, int64_t timeout_ms,
                   int64_t idle_ms, bool verify, struct link_answer *a);
void link_close(struct link *l);
void link_reset(struct link *l);

#endif
