/* Which lane an event belongs to, and how a lane is written for people. */
#include "core/lane.h"

#include <inttypes.h>
#include <stdio.h>

struct lane lane_of(enum order order, const struct update_place *place, uint64_t seq)
{
    if (order == ORDER_NONE)
        return (struct lane){LANE_EVENT, (int64_t)seq, 0};
    if (order == ORDER_BOT)
        return (struct lane){LANE_BOT, 0, 0};
    if (place->has_chat && order == ORDER_THREAD)
        return (struct lane){LANE_THREAD, place->chat, place->has_thread ? place->thread : 0};
    if (place->has_chat)
        return (struct lane){LANE_CHAT, place->chat, 0};
    if (place->has_user)
        return (struct lane){LANE_USER, place->user, 0};
    if (place->has_poll)
        return (struct lane){LANE_POLL, place->poll, 0};
    return (struct lane){LANE_EVENT, (int64_t)seq, 0};
}

bool lane_eq(struct lane a, struct lane b)
{
    return a.type == b.type && a.a == b.a && a.b == b.b;
}

char *lane_text(struct lane lane, char out[LANE_TEXT_MAX])
{
    switch (lane.type) {
    case LANE_EVENT:
        snprintf(out, LANE_TEXT_MAX, "event:%" PRId64, lane.a);
        break;
    case LANE_CHAT:
        snprintf(out, LANE_TEXT_MAX, "chat:%" PRId64, lane.a);
        break;
    case LANE_THREAD:
        snprintf(out, LANE_TEXT_MAX, "thread:%" PRId64 ":%" PRId64, lane.a, lane.b);
        break;
    case LANE_USER:
        snprintf(out, LANE_TEXT_MAX, "user:%" PRId64, lane.a);
        break;
    case LANE_POLL:
        snprintf(out, LANE_TEXT_MAX, "poll:%" PRId64, lane.a);
        break;
    case LANE_BOT:
        snprintf(out, LANE_TEXT_MAX, "bot");
        break;
    case LANE_NAME:
        snprintf(out, LANE_TEXT_MAX, "name:%016" PRIx64 "%016" PRIx64, (uint64_t)lane.a, (uint64_t)lane.b);
        break;
    }
    return out;
}
