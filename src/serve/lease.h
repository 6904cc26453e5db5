/* Claims by consumers outside this process (deliver: pull): waiting for events, and ack, nack, extend. */
#ifndef SERVE_LEASE_H
#define SERVE_LEASE_H

#include "serve/api_call.h"

struct leases;

struct leases *leases_new(struct api *api);
/* After the spool's last commit: a claim that is still on its way then runs out with its lease. */
void leases_free(struct leases *l);

/* Gives waiting claims what is due, in turn, and ends those whose time is up. */
void leases_serve(struct leases *l);
int64_t leases_next_deadline(const struct leases *l);

/* Routes. */
api_route_fn lease_claim, lease_ack, lease_nack, lease_extend;

/* A lease as consumers hold it: the token in hex, '-', the event's seq. Opaque to them: the seq finds the
 * event even where a newer one bears its id. */
#define LEASE_TEXT_MAX 56
char *lease_text(const unsigned char token[TOKEN_BYTES], uint64_t seq, char out[LEASE_TEXT_MAX]);
int lease_parse(struct slice text, unsigned char token[TOKEN_BYTES], uint64_t *seq);

/* The box of an event, if it bears the id that came with a lease on seq and the caller may know of it: COMPLETED;
 * else COMPLETE_UNKNOWN or COMPLETE_FAILED. */
enum completed lease_find(const struct api_call *c, const struct event_ref *ref, uint64_t seq,
                          struct spool_box **box);

#endif
