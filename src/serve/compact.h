/* POST and GET /v1/compact: one compaction of the whole database at a time, in the background. POST starts it, or joins the
 * one that runs; both answer when it is done (200), or after `wait` (202). */
#ifndef SERVE_COMPACT_H
#define SERVE_COMPACT_H

#include "serve/api_call.h"

struct compaction;
struct compaction *compaction_new(struct api *api);
void compaction_free(struct compaction *cp); /* RocksDB goes on with what it began */
void compaction_serve(struct compaction *cp);
int64_t compaction_next_deadline(const struct compaction *cp);

api_route_fn compact_post, compact_get;

#endif
