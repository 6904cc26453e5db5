/* The flood: getUpdates answered from one prepared answer in which only the ids change, so that a benchmark
 * of intake measures the daemon and not this server. */
#ifndef BOTAPI_FLOOD_H
#define BOTAPI_FLOOD_H

#include "conn.h"

/* N updates of size bytes, at most batch in an answer; the ids start at 100000000. */
void flood_setup(unsigned n, unsigned size, unsigned batch);
bool flood_is_on(void);
/* Answers a getUpdates. Returns as conn_reply. */
int flood_serve(struct conn *c, struct slice query);

#endif
