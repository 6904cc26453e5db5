#include "daemon/alerting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/alerts.h"
#include "daemon/configfile.h"
#include "net/loop.h"
#include "ops/alert_post.h"
#include "wire/json.h"

#define TRIAL_MS SECONDS(40) /* longer than any destination may take */
#define LOOK_MS 20

void alerting_policy(const struct setup *s, struct alert_policy *out)
{
    *out = (struct alert_policy){.oldest_ms = s->config->alert_oldest_ms,
                                 .dead = s->config->alert_dead,
                                 .repeat_ms = s->config->alert_repeat_ms};
}

/* By the configuration of that moment. */
static int reread_token(void *arg, struct buf *out, struct err *e)
{
    const struct setup *s = *(struct setup *const *)arg;
    const struct bot_config *bot = config_alert_bot(s->config, NULL);
    char *token;
    int64_t id;

    if (!bot)
        return err_set(e, EX_CONFIG, "alerts.telegram is gone from the config");
    if (secrets_read_token(s->config, bot, &token, &id, e) < 0)
        return -1;
    if (id == s->secrets[bot - s->config->bots].bot_id)
        buf_add_str(out, token);
    explicit_bzero(token, strlen(token));
    free(token);
    return out->n ? 0 : err_set(e, EX_CONFIG, "the token is another bot's now");
}

struct alert_post *alerting_post(struct loop *l, const struct setup *s, struct setup *const *current,
                                 bool once, struct err *e)
{
    const struct config *c = s->config;
    const char *chat;
    const struct bot_config *bot = config_alert_bot(c, &chat);
    struct alert_telegram_options telegram = {
        .bot = bot,
        .proxy_url = s->alerts.proxy_url,
        .chat = chat,
        .reread_token = reread_token,
        .reread_arg = (void *)(uintptr_t)current,
    };

    if (bot)
        telegram.token = s->secrets[bot - c->bots].token;
    const struct alert_destinations d = {
        .command = c->alert_command,
        .url = s->alerts.url,
        .telegram = bot ? &telegram : NULL,
        .proxy_url = s->alerts.proxy_url,
    };
    struct alert_post *p = alert_post_new(l, &d, once, e);
    if (!p)
        err_prefix(e, "alerts");
    return p;
}

/* ---- one alert, tried once ---------------------------------------------------------------------- */

struct alert_trial {
    struct loop *loop;
    struct alert_post *post;
    struct timer look;
    int64_t until;
    alert_told_fn *told;
    void *arg;
};

static void write_results(const struct alert_post *p, struct buf *out)
{
    struct alert_result r[ALERT_DESTINATIONS];
    size_t n = alert_post_results(p, r);
    struct json_out j;

    json_start(&j, out);
    json_object(&j);
    json_key(&j, "destinations");
    json_array(&j);
    for (size_t i = 0; i < n; i++) {
        struct buf why = BUF_EMPTY;
        buf_add_str(&why, r[i].ended ? r[i].why : "there was no answer in time");
        log_redact(&why);
        json_object(&j);
        json_kv_cstr(&j, "name", r[i].name);
        json_kv_bool(&j, "delivered", r[i].delivered);
        json_kv_cstr(&j, "why", r[i].delivered ? NULL : buf_str(&why));
        json_object_end(&j);
        buf_free(&why);
    }
    json_array_end(&j);
    json_object_end(&j);
    json_end(&j);
}

static void on_look(void *arg)
{
    struct alert_trial *t = arg;
    struct buf json = BUF_EMPTY;

    if (!alert_post_idle(t->post) && loop_now(t->loop) < t->until) {
        timer_set(&t->look, loop_now(t->loop) + LOOK_MS);
        return;
    }
    write_results(t->post, &json);
    t->told(t->arg, buf_slice(&json));
    buf_free(&json);
}

static struct alert_trial *trial_new(struct loop *l, struct setup *const *s, const struct alert *a,
                                     int64_t ms, alert_told_fn *told, void *arg, struct err *e)
{
    struct alert_post *post = alerting_post(l, *s, s, true, e);

    if (!post)
        return NULL;
    struct alert_trial *t = xcalloc(1, sizeof(*t));
    t->loop = l;
    t->post = post;
    t->until = loop_now(l) + ms;
    t->told = told;
    t->arg = arg;
    timer_init(&t->look, l, on_look, t);
    alert_post_add(post, a);
    timer_set(&t->look, loop_now(l) + LOOK_MS);
    return t;
}

struct alert_trial *alert_trial_new(struct loop *l, struct setup *const *s, int64_t wait_ms,
                                    alert_told_fn *told, void *arg, struct err *e)
{
    struct alert a;

    alert_make_test(&a, clock_now());
    return trial_new(l, s, &a, wait_ms, told, arg, e);
}

void alert_trial_free(struct alert_trial *t)
{
    if (!t)
        return;
    timer_stop(&t->look);
    alert_post_free(t->post);
    free(t);
}

/* ---- on a loop of its own ----------------------------------------------------------------------- */

struct alone {
    struct loop *loop;
    struct buf *json;
};

static void alone_told(void *arg, struct slice json)
{
    struct alone *a = arg;

    buf_add_slice(a->json, json);
    loop_stop(a->loop);
}

static int send_alone(struct setup *s, const struct alert *a, int64_t ms, struct buf *json, struct err *e)
{
    struct alone alone = {loop_new(), json};
    struct alert_trial *t = trial_new(alone.loop, &s, a, ms, alone_told, &alone, e);

    if (t)
        loop_run(alone.loop, NULL, NULL);
    alert_trial_free(t);
    loop_free(alone.loop);
    return t ? 0 : -1;
}

bool alerting_send_now(struct setup *s, const struct alert *a, int64_t ms)
{
    struct err e = ERR_NONE;
    struct buf json = BUF_EMPTY;
    bool arrived = false;

    log_error(NULL, "alert %s: %s; to look, run: %s", alert_name(a->kind), a->message, a->next);
    if (send_alone(s, a, ms, &json, &e) < 0)
        log_error(NULL, "the alert was not sent: %s", e.text);
    struct json *root = json_parse(buf_slice(&json), NULL);
    const struct json *all = json_get(root, "destinations");
    arrived = json_length(all) == 0;
    for (size_t i = 0; i < json_length(all); i++) {
        struct slice name = json_string(json_get(json_item(all, i), "name"));
        struct slice why = json_string(json_get(json_item(all, i), "why"));
        arrived |= json_true(json_get(json_item(all, i), "delivered"));
        if (why.n)
            log_error(NULL,
                      "the alert was not delivered to alerts.%.*s: %.*s; to try it, run: tgspool alert-test",
                      (int)name.n, name.p, (int)why.n, why.p);
    }
    json_free(root);
    buf_free(&json);
    return arrived;
}

int alerting_test(const char *config_path, struct buf *json, struct err *e)
{
    struct setup *s = setup_load(config_path, e);
    struct alert a;

    if (!s)
        return -1;
    alert_make_test(&a, clock_now());
    int rc = send_alone(s, &a, TRIAL_MS, json, e);
    setup_free(s);
    return rc;
}
