/* POST and DELETE /v1/checkpoint: still copies of the spool for `backup`, `export` and `verify`, which work on them in their
 * own process. Each is removed when its user says so, or after an hour. */
#ifndef SERVE_CHECKPOINT_H
#define SERVE_CHECKPOINT_H

#include "serve/api_call.h"

#define CHECKPOINT_KEPT_MS HOURS(1)
#define CHECKPOINTS_MAX 8

struct checkpoints;
struct checkpoints *
checkpoints_new(struct api *api); /* those that an earlier process left are removed in their time */
void checkpoints_free(struct checkpoints *cs); /* they stay on disk: their users may outlive us */
void checkpoints_serve(struct checkpoints *cs);
int64_t checkpoints_next_deadline(const struct checkpoints *cs);

api_route_fn checkpoint_post, checkpoint_delete;

#endif
