/* The methods about webhooks, and those by which a bot leaves a server: answered here, since the upstream ones are
 * intake's own, and dropping updates there would be a loss. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "serve/dropin_answer.h"
#include "serve/dropin_bot.h"
#include "spool/spool.h"
#include "wire/json.h"

struct method {
    const char *name;
    void (*fn)(struct dropin_bot *b, struct http_exchange *x, const struct dropin_args *a, const char *who);
};

static void reply_true(struct http_exchange *x, const char *description)
{
    struct buf out = BUF_EMPTY;

    dropin_result(&out, "true", description);
    dropin_reply(x, 200, &out);
}

/* Answers, if asked so after discarding what is pending. */
static void done(struct dropin_bot *b, struct http_exchange *x, const struct dropin_args *a,
                 const char *description, const char *who)
{
    if (dropin_arg_true(a, "drop_pending_updates"))
        updates_drop(b, x, description, who);
    else
        reply_true(x, description);
}

static void delete_webhook(struct dropin_bot *b, struct http_exchange *x, const struct dropin_args *a,
                           const char *who)
{
    bool had = b->set_url != NULL;

    free(b->set_url);
    b->set_url = NULL;
    done(b, x, a, had ? "Webhook was deleted" : "Webhook is already deleted", who);
}

/* A bot behind `deliver: http` gets its updates as from Telegram, at the url of the config. Others are told. */
static void set_webhook(struct dropin_bot *b, struct http_exchange *x, const struct dropin_args *a,
                        const char *who)
{
    struct buf url = BUF_EMPTY;

    updates_remember_kinds(b, a);
    if (!dropin_arg(a, "url", &url) || url.n == 0) {
        delete_webhook(b, x, a, who);
    } else if (b->config->deliver != DELIVER_HTTP) {
        dropin_reply_error(x, 400,
                           "Bad Request: this is tgspool, from which updates are polled by getUpdates; for a "
                           "webhook set deliver: http and url in its config");
    } else {
        if (!b->set_url || strcmp(b->set_url, buf_str(&url)))
            log_info(b->name, "its program set a webhook; updates go to the url of the config");
        free(b->set_url);
        b->set_url = buf_steal(&url);
        done(b, x, a, "Webhook was set", who);
    }
    buf_free(&url);
}

static void webhook_info(struct dropin_bot *b, struct http_exchange *x, const struct dropin_args *a,
                         const char *who)
{
    struct spool_box_status st;
    struct buf value = BUF_EMPTY, out = BUF_EMPTY;
    struct json_out j;

    (void)a;
    (void)who;
    spool_box_status(b->box, &st);
    json_start(&j, &value);
    json_object(&j);
    json_kv_cstr(&j, "url", b->set_url ? b->set_url : "");
    json_kv_bool(&j, "has_custom_certificate", false);
    json_kv_uint(&j, "pending_update_count", st.counts.pending + st.counts.processing);
    json_object_end(&j);
    json_end(&j);
    dropin_result(&out, buf_str(&value), NULL);
    buf_free(&value);
    dropin_reply(x, 200, &out);
}

/* logOut and close: nothing here holds the bot to a server. */
static void leave(struct dropin_bot *b, struct http_exchange *x, const struct dropin_args *a, const char *who)
{
    (void)b;
    (void)a;
    (void)who;
    reply_true(x, NULL);
}

static const struct method methods[] = {
    {"getUpdates", updates_get},      {"setWebhook", set_webhook}, {"deleteWebhook", delete_webhook},
    {"getWebhookInfo", webhook_info}, {"logOut", leave},           {"close", leave},
};

static const struct method *find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if (slice_eq_nocase(slice_str(name), methods[i].name))
            return &methods[i];
    return NULL;
}

bool dropin_is_local(const char *method)
{
    return find(method) != NULL;
}

void dropin_answer_local(struct dropin_bot *b, struct http_exchange *x, const char *method,
                         const struct dropin_args *a, const char *who)
{
    find(method)->fn(b, x, a, who);
}
