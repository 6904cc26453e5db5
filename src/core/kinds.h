/* The kinds of update that Telegram is known to send, and where chat and user stand in each
 * (https://core.telegram.org/bots/api#update). Kinds unknown here are carried all the same. */
#ifndef CORE_KINDS_H
#define CORE_KINDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

/* Where an id stands, seen from the payload of the update. */
enum id_path {
    PATH_NONE,
    PATH_CHAT,         /* .chat.id */
    PATH_MESSAGE_CHAT, /* .message.chat.id */
    PATH_FROM,         /* .from.id */
    PATH_USER,         /* .user.id */
    PATH_USER_CHAT,    /* .user_chat_id */
    PATH_ID,           /* .id, a poll's */
    PATH_POLL_ID       /* .poll_id */
};

struct kind {
    const char *name;
    enum id_path chat, user, poll;
    bool on_by_default; /* in the list that Telegram uses when asked for none */
    int64_t telegram_keeps_ms; /* how long Telegram keeps it unfetched; what `expire: auto` goes by */
};

/* The row of a kind, or NULL for one not in the table. */
const struct kind *kind_find(struct slice name);
/* Rows one by one: NULL past the end. */
const struct kind *kind_at(size_t i);

#endif
