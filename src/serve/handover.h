/* Handing a bot back to the program that had it before, or to another: POST and GET /v1/bots/BOT/handover.
 *
 * POST stops intake (durably), and begins the wait until the in-box is empty; then Telegram is told the last of
 * what was taken, and what it was told before tgspool. It answers at once, or with `wait` when the handover is
 * over or that time is up; asking again goes on with the same handover, also after a restart. GET (with `wait`)
 * only looks. Resuming intake ends a handover. Both answer 200 and
 *     {"bot","state":"none" | "draining" | "telling" | "done","pending","processing","calls": unfinished ones,
 *      "deliver": "running" | "paused","trouble": sentence or null, "had_webhook": bool or null,
 *      "allowed_updates": what is asked for again: list, "default", or null: not known,
 *      "message": what is next, for people} */
#ifndef SERVE_HANDOVER_H
#define SERVE_HANDOVER_H

#include "serve/api_call.h"

struct handovers;

struct handovers *handovers_new(struct api *api);
void handovers_free(struct handovers *h);
/* Goes on with what is under way, and answers those who wait. */
void handovers_serve(struct handovers *h);
int64_t handovers_next_deadline(const struct handovers *h);

api_route_fn handover_post, handover_get;

#endif
