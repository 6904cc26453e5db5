/* Turns the loop until the answer is there. */
#include "cli/ask.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/show.h"
#include "net/loop.h"

#define ASK_MS SECONDS(20)

struct ask {
    struct loop *loop;
    struct botapi *api;
    /* of the last answer */
    enum botapi_class class;
    enum http_fail fail;
    char sentence[400];
    /* where its result goes; NULL: nowhere */
    void (*take)(void *arg, const struct json *result);
    void *take_arg;
};

struct ask *ask_open(const struct bot_config *bot, const struct bot_secrets *secrets, struct err *e)
{
    const struct botapi_options o = {.api_root = bot->api_root,
                                     .token = secrets->token,
                                     .ca_file = bot->ca_file,
                                     .proxy_url = secrets->proxy_url,
                                     .ip = bot->ip};
    struct ask *k = xcalloc(1, sizeof(*k));

    k->loop = loop_new();
    k->api = botapi_new(k->loop, &o, e);
    if (k->api)
        return k;
    ask_close(k);
    return NULL;
}

void ask_close(struct ask *k)
{
    if (!k)
        return;
    botapi_free(k->api);
    loop_free(k->loop);
    free(k);
}

static void on_answer(void *arg, struct botapi_reply *r)
{
    struct ask *k = arg;

    k->class = r->class;
    k->fail = r->fail;
    snprintf(k->sentence, sizeof(k->sentence), "%s", r->sentence);
    if (r->class == BOTAPI_OK && k->take)
        k->take(k->take_arg, r->result);
    loop_stop(k->loop);
}

/* Waits for the call that was begun. */
static int await(struct ask *k, struct err *e)
{
    loop_run(k->loop, NULL, NULL);
    if (k->class == BOTAPI_OK)
        return 0;
    return err_set(e, k->class == BOTAPI_LIMITED ? EX_TEMPFAIL : EX_UNAVAILABLE, "%s", k->sentence);
}

struct me {
    char *username;
    int64_t id;
};

static void take_me(void *arg, const struct json *result)
{
    struct me *me = arg;

    me->username = show_text(result, "username");
    me->id = show_number(result, "id");
}

int ask_me(struct ask *k, char **username, int64_t *id, struct err *e)
{
    struct me me = {NULL, 0};

    k->take = take_me;
    k->take_arg = &me;
    botapi_get_me(k->api, ASK_MS, on_answer, k);
    int rc = await(k, e);
    *username = me.username;
    *id = me.id;
    return rc;
}

static void take_webhook_info(void *arg, const struct json *result)
{
    webhook_info_read(result, arg);
}

int ask_webhook_info(struct ask *k, struct webhook_info *out, struct err *e)
{
    *out = (struct webhook_info){0};
    k->take = take_webhook_info;
    k->take_arg = out;
    botapi_get_webhook_info(k->api, ASK_MS, on_answer, k);
    int rc = await(k, e);
    if (rc == 0 && !out->url)
        return err_set(e, EX_PROTOCOL, "the answer to getWebhookInfo cannot be read");
    return rc;
}

int ask_set_webhook(struct ask *k, const struct botapi_webhook *w, struct err *e)
{
    struct botapi_webhook timed = *w;

    timed.deadline_ms = ASK_MS;
    k->take = NULL;
    botapi_set_webhook(k->api, &timed, on_answer, k);
    return await(k, e);
}

int ask_delete_webhook(struct ask *k, struct err *e)
{
    k->take = NULL;
    botapi_delete_webhook(k->api, ASK_MS, on_answer, k);
    return await(k, e);
}

bool ask_failed(const struct ask *k)
{
    return k->class != BOTAPI_OK;
}

const char *ask_advice(const struct ask *k)
{
    switch (k->class) {
    case BOTAPI_UNAUTHORIZED:
    case BOTAPI_NOT_FOUND:
        return "compare the token with @BotFather's, and api_root with the server's address";
    case BOTAPI_LIMITED:
        return "wait a moment, then the same command";
    case BOTAPI_REJECTED:
        return "correct what Telegram does not like, in the config";
    default:
        break;
    }
    switch (k->fail) {
    case HTTP_PROXY:
        return "look at proxy_file: address, user, password; is the proxy running?";
    case HTTP_TLS:
        return "look at the clock, at ca_file, and at who answers for api_root";
    case HTTP_RESOLVE:
        return "look at /etc/resolv.conf and api_root; behind a wall, set proxy_file";
    default:
        return "look at the network and api_root; behind a wall, set proxy_file";
    }
}
