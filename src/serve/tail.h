/* What happened lately: a ring of the last happenings, and the requests that wait for the next one. */
#ifndef SERVE_TAIL_H
#define SERVE_TAIL_H

#include "serve/api_call.h"

#define TAIL_RING 1000

struct tail;

struct tail *tail_new(struct api *api); /* begins to watch the spool */
void tail_free(struct tail *t);
/* Answers those who wait: with news, or empty when their time is up. */
void tail_serve(struct tail *t);
int64_t tail_next_deadline(const struct tail *t);

api_route_fn tail_get;

#endif
