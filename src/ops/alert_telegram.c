/* Alerts to a chat of Telegram. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "ops/alert_channels.h"
#include "ops/alert_json.h"
#include "telegram/botapi.h"
#include "wire/json.h"

#define TIME_LIMIT SECONDS(15)

struct telegram {
    struct alert_channel channel; /* first */
    struct botapi *api;
    char *chat;
    struct buf text; /* of the alert under way */
    alert_token_fn *reread_token;
    void *reread_arg;
    int64_t moved_to; /* the group has this id now; 0: it has not moved */
};

static void send_text(struct telegram *t);

/* Whether the token's file has another one than Telegram just refused. */
static bool has_new_token(struct telegram *t)
{
    struct buf token = BUF_EMPTY;
    struct err ignored = ERR_NONE;
    bool is_new =
        t->reread_token(t->reread_arg, &token, &ignored) == 0 && botapi_set_token(t->api, buf_str(&token));

    if (token.p)
        explicit_bzero(token.p, token.cap);
    buf_free(&token);
    return is_new;
}

static void on_reply(void *arg, struct botapi_reply *r)
{
    struct telegram *t = arg;
    char why[400];

    if ((r->class == BOTAPI_UNAUTHORIZED || r->class == BOTAPI_NOT_FOUND) && has_new_token(t)) {
        send_text(t);
        return;
    }
    snprintf(why, sizeof(why), "%s", r->sentence);
    if (r->class == BOTAPI_MIGRATED && r->migrate_to_chat_id && !t->moved_to) {
        t->moved_to = r->migrate_to_chat_id;
        snprintf(why, sizeof(why), "the group has moved: put its new id, %" PRId64 ", into alerts.telegram",
                 t->moved_to);
    }
    alert_sender_tried(t->channel.sender, r->class == BOTAPI_OK,
                       r->class == BOTAPI_LIMITED && r->retry_after_s >= 0 ? SECONDS(r->retry_after_s) : -1,
                       why);
}

static void send_text(struct telegram *t)
{
    struct buf body = BUF_EMPTY;
    struct json_out j;
    int64_t id = t->moved_to;

    json_start(&j, &body);
    json_object(&j);
    if (id || text_to_i64(slice_str(t->chat), INT64_MIN, INT64_MAX, &id) == 0)
        json_kv_int(&j, "chat_id", id);
    else
        json_kv_cstr(&j, "chat_id", t->chat);
    json_kv_text(&j, "text", buf_slice(&t->text));
    json_kv_bool(&j, "disable_web_page_preview", true);
    json_object_end(&j);
    json_end(&j);
    botapi_call(t->api, "sendMessage", "application/json", buf_slice(&body), TIME_LIMIT, on_reply, t);
    buf_free(&body);
}

static void telegram_send(struct alert_channel *channel, const struct alert *a)
{
    struct telegram *t = (struct telegram *)channel;

    buf_clear(&t->text);
    alert_add_text(&t->text, a);
    send_text(t);
}

static void telegram_free_channel(struct alert_channel *channel)
{
    struct telegram *t = (struct telegram *)channel;

    botapi_free(t->api);
    buf_free(&t->text);
    free(t->chat);
    free(t);
}

struct alert_channel *alert_telegram_new(struct loop *l, const struct alert_telegram_options *o,
                                         struct err *e)
{
    const struct botapi_options ao = {
        .api_root = o->bot->api_root,
        .token = o->token,
        .ca_file = o->bot->ca_file,
        .proxy_url = o->proxy_url,
        .ip = o->bot->ip,
    };
    struct botapi *api = botapi_new(l, &ao, e);

    if (!api)
        return NULL;
    struct telegram *t = xcalloc(1, sizeof(*t));
    t->channel =
        (struct alert_channel){.name = "telegram", .send = telegram_send, .free = telegram_free_channel};
    t->api = api;
    t->chat = xstrdup(o->chat);
    t->reread_token = o->reread_token;
    t->reread_arg = o->reread_arg;
    return &t->channel;
}
