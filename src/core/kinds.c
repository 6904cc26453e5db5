/* The table of update kinds. Times are those after which Telegram's server drops an unfetched update. */
#include "core/kinds.h"

#include "base/clock.h"
#include "base/mem.h"

#define KEPT_DAY HOURS(24)

static const struct kind kinds[] = {
    {"message", PATH_CHAT, PATH_FROM, PATH_NONE, true, KEPT_DAY},
    {"edited_message", PATH_CHAT, PATH_FROM, PATH_NONE, true, KEPT_DAY},
    {"channel_post", PATH_CHAT, PATH_FROM, PATH_NONE, true, KEPT_DAY},
    {"edited_channel_post", PATH_CHAT, PATH_FROM, PATH_NONE, true, KEPT_DAY},
    {"business_connection", PATH_USER_CHAT, PATH_USER, PATH_NONE, true, KEPT_DAY},
    {"business_message", PATH_CHAT, PATH_FROM, PATH_NONE, true, KEPT_DAY},
    {"edited_business_message", PATH_CHAT, PATH_FROM, PATH_NONE, true, KEPT_DAY},
    {"deleted_business_messages", PATH_CHAT, PATH_NONE, PATH_NONE, true, KEPT_DAY},
    {"guest_message", PATH_CHAT, PATH_FROM, PATH_NONE, true, KEPT_DAY},
    {"message_reaction", PATH_CHAT, PATH_USER, PATH_NONE, false, KEPT_DAY},
    {"message_reaction_count", PATH_CHAT, PATH_NONE, PATH_NONE, false, KEPT_DAY},
    {"inline_query", PATH_NONE, PATH_FROM, PATH_NONE, true, SECONDS(30)},
    {"chosen_inline_result", PATH_NONE, PATH_FROM, PATH_NONE, true, SECONDS(600)},
    {"callback_query", PATH_MESSAGE_CHAT, PATH_FROM, PATH_NONE, true, SECONDS(150)},
    {"shipping_query", PATH_NONE, PATH_FROM, PATH_NONE, true, SECONDS(150)},
    {"pre_checkout_query", PATH_NONE, PATH_FROM, PATH_NONE, true, SECONDS(150)},
    {"purchased_paid_media", PATH_NONE, PATH_FROM, PATH_NONE, true, KEPT_DAY},
    {"poll", PATH_NONE, PATH_NONE, PATH_ID, true, KEPT_DAY},
    {"poll_answer", PATH_NONE, PATH_USER, PATH_POLL_ID, true, KEPT_DAY},
    {"my_chat_member", PATH_CHAT, PATH_FROM, PATH_NONE, true, KEPT_DAY},
    {"chat_member", PATH_CHAT, PATH_FROM, PATH_NONE, false, KEPT_DAY},
    {"chat_join_request", PATH_CHAT, PATH_FROM, PATH_NONE, true, KEPT_DAY},
    {"chat_boost", PATH_CHAT, PATH_NONE, PATH_NONE, true, KEPT_DAY},
    {"removed_chat_boost", PATH_CHAT, PATH_NONE, PATH_NONE, true, KEPT_DAY},
};

const struct kind *kind_find(struct slice name)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (slice_eq_str(name, kinds[i].name))
            return &kinds[i];
    return NULL;
}

const struct kind *kind_at(size_t i)
{
    return i < ARRAY_LEN(kinds) ? &kinds[i] : NULL;
}
