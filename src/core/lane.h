/* Lanes: what is kept in order. A lane is a fixed-width value, so that it can stand in a key. */
#ifndef CORE_LANE_H
#define CORE_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum lane_type {
    LANE_EVENT, /* its own: a is the event's seq */
    LANE_CHAT,  /* a: chat id */
    LANE_THREAD, /* a: chat id, b: message_thread_id */
    LANE_USER,  /* a: user id */
    LANE_POLL,  /* a: poll id */
    LANE_BOT,   /* everything of the bot */
    LANE_NAME   /* a, b: hash of a name, such as "@channel" */
};

struct lane {
    enum lane_type type;
    int64_t a, b;
};

/* What a bot's `order` option says. */
enum order { ORDER_CHAT, ORDER_THREAD, ORDER_BOT, ORDER_NONE };

/* What an update tells about where it belongs; each id with whether it is there. */
struct update_place {
    bool has_chat, has_user, has_thread, has_poll;
    int64_t chat, user, thread, poll;
};

/* The lane of an event: chat, else user, else poll, else its own (design.md section 2). */
struct lane lane_of(enum order order, const struct update_place *place, uint64_t seq);
bool lane_eq(struct lane a, struct lane b);

/* "chat:-100123", "thread:-100123:7", "user:42", "poll:1", "bot", "event:17", "name:0123...". Returns out. */
#define LANE_TEXT_MAX 64
char *lane_text(struct lane lane, char out[LANE_TEXT_MAX]);

#endif
