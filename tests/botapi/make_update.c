/* See make_update.h. The shapes are those of https://core.telegram.org/bots/api#update, with the members that
 * tell chat, user and order. */
#include "make_update.h"

#include <string.h>

#include "base/mem.h"
#include "queue.h"

#define FIRST_CHAT INT64_C(5100000000) /* ids of chats need more than 32 bits */

static int64_t user_of(const struct make_spec *s)
{
    return FIRST_CHAT + s->n % (s->chats ? s->chats : 1);
}

/* A group for every third chat. */
static int64_t chat_of(const struct make_spec *s)
{
    int64_t user = user_of(s);
    return user % 3 == 0 ? -1000000000000 - user : user;
}

static void add_user(struct buf *b, const char *name, const struct make_spec *s)
{
    buf_printf(b, "\"%s\":{\"id\":%lld,\"is_bot\":false,\"first_name\":\"Ada\",\"language_code\":\"en\"}",
               name, (long long)user_of(s));
}

static void add_chat(struct buf *b, const struct make_spec *s, const char *type)
{
    int64_t id = chat_of(s);
    buf_printf(b, "\"chat\":{\"id\":%lld,\"type\":\"%s\",\"title\":\"Room %lld\"}", (long long)id,
               type     ? type
               : id < 0 ? "supergroup"
                        : "private",
               (long long)(id % 1000));
}

static void add_text(struct buf *b, const char *name, const struct make_spec *s, size_t before)
{
    buf_printf(b, "\"%s\":\"n=%u %s", name, s->n, s->text ? s->text : "");
    while (b->n - before + 2 < s->size)
        buf_add_char(b, "lorem ipsum dolor sit amet "[b->n % 27]);
    buf_add_char(b, '"');
}

/* A message with or without a sender. */
static void add_message(struct buf *b, const struct make_spec *s, const char *type, size_t before)
{
    buf_printf(b, "{\"message_id\":%u,", s->n + 1);
    if (!type) {
        add_user(b, "from", s);
        buf_add_char(b, ',');
    }
    add_chat(b, s, type);
    buf_printf(b, ",\"date\":%lld,", (long long)s->date);
    add_text(b, "text", s, before);
    buf_add_char(b, '}');
}

/* What has a query's id and a sender, then members of its own. */
static void add_query(struct buf *b, const struct make_spec *s)
{
    buf_printf(b, "{\"id\":\"%u\",", 70000000 + s->n);
    add_user(b, "from", s);
    buf_add_char(b, ',');
}

/* What happens to a member of a chat. */
static void add_membership(struct buf *b, const struct make_spec *s)
{
    buf_add_char(b, '{');
    add_chat(b, s, NULL);
    buf_add_char(b, ',');
    add_user(b, "from", s);
    buf_printf(b,
               ",\"date\":%lld,\"old_chat_member\":{\"status\":\"left\"},\"new_chat_member\":{\"status\":"
               "\"member\"}}",
               (long long)s->date);
}

void make_update(struct buf *b, const struct make_spec *s)
{
    const char *kind = update_kinds[s->kind].name;
    size_t before = b->n;

    buf_printf(b, "\"%s\":", kind);
    if (!strcmp(kind, "channel_post") || !strcmp(kind, "edited_channel_post")) {
        add_message(b, s, "channel", before);
    } else if (!strcmp(kind, "callback_query")) {
        add_query(b, s);
        buf_add_str(b, "\"message\":");
        add_message(b, s, "supergroup", before);
        buf_printf(b, ",\"chat_instance\":\"1\",\"data\":\"n=%u\"}", s->n);
    } else if (!strcmp(kind, "inline_query") || !strcmp(kind, "chosen_inline_result")) {
        add_query(b, s);
        add_text(b, "query", s, before);
        buf_add_str(b, ",\"offset\":\"\"}");
    } else if (!strcmp(kind, "shipping_query") || !strcmp(kind, "pre_checkout_query")) {
        add_query(b, s);
        add_text(b, "invoice_payload", s, before);
        buf_add_char(b, '}');
    } else if (!strcmp(kind, "poll")) {
        buf_printf(b, "{\"id\":\"%u\",", 90000000 + s->n % 7);
        add_text(b, "question", s, before);
        buf_add_str(b, ",\"options\":[],\"total_voter_count\":0,\"is_closed\":false}");
    } else if (!strcmp(kind, "poll_answer")) {
        buf_printf(b, "{\"poll_id\":\"%u\",", 90000000 + s->n % 7);
        add_user(b, "user", s);
        buf_add_str(b, ",\"option_ids\":[0]}");
    } else if (strstr(kind, "_member")) {
        add_membership(b, s);
    } else {
        add_message(b, s, NULL, before);
    }
}

int make_varied_kind(unsigned n)
{
    static const char *const round[] = {"message", "message",        "callback_query", "message",
                                        "message", "edited_message", "channel_post",   "message",
                                        "poll",    "my_chat_member", "inline_query",   "message"};
    return update_kind_find(slice_str(round[n % ARRAY_LEN(round)]));
}
