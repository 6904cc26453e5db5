/* GET /healthz: the daemon is alive. GET /readyz: it also does its work; if not, the body says why. What a person paused
 * is as that person wants it, so it makes nothing unready. */
#include <stdio.h>

#include "base/clock.h"
#include "base/text.h"
#include "serve/api_call.h"

/* Alive: the loop turns and answers, whatever the store does. */
void api_healthz(struct api_call *c, const struct api_request *r, const struct params *p)
{
    (void)r;
    (void)p;
    api_answer(c, 200, slice_str("{\"ok\":true}"));
}

/* One entry of "reasons". bot, next: may be NULL. */
static void write_reason(struct json_out *j, const char *what, const char *bot, const char *message,
                         const char *next)
{
    json_object(j);
    json_kv_cstr(j, "what", what);
    json_kv_cstr(j, "bot", bot);
    json_kv_cstr(j, "message", message);
    json_kv_cstr(j, "next", next);
    json_object_end(j);
}

/* Intake of a bot; how much waits. Returns how many reasons. */
static unsigned write_bot(const struct api *api, struct json_out *j, struct spool_box *b)
{
    const char *bot = spool_box_bot(b);
    struct intake_standing intake;
    struct spool_box_status st;
    char message[320], next[96], text[32];
    unsigned n = 0;

    spool_box_status(b, &st);
    if (st.orphan)
        return 0;
    if (spool_box_which(b) == BOX_IN && !st.paused_intake && api->hooks.intake_standing &&
        api->hooks.intake_standing(api->hooks.arg, bot, &intake) && intake.failing_since) {
        write_reason(j, "intake", bot, intake.reason, "tgspool check");
        n++;
    }
    int64_t limit = api->hooks.oldest_limit ? api->hooks.oldest_limit(api->hooks.arg) : MINUTES(5);
    int64_t age = st.oldest_unfinished_at ? api_now(api) - st.oldest_unfinished_at : 0;
    if (limit && age > limit && !st.paused_deliver) {
        snprintf(message, sizeof(message), "the oldest unfinished event of box %s waits for %s",
                 box_name(spool_box_which(b)), text_age(age, text));
        snprintf(next, sizeof(next), "tgspool list --bot %s --box %s --state pending,processing --limit 5",
                 bot, box_name(spool_box_which(b)));
        write_reason(j, "oldest", bot, message, next);
        n++;
    }
    return n;
}

void api_readyz(struct api_call *c, const struct api_request *r, const struct params *p)
{
    const struct api *api = c->api;
    struct buf out = BUF_EMPTY, reasons = BUF_EMPTY;
    struct json_out j;
    char why[256] = "";
    unsigned n = 0;

    (void)r;
    (void)p;
    json_start(&j, &reasons);
    json_array(&j);
    if (!spool_healthy(api->sp, why)) {
        bool corrupt = spool_health(api->sp, NULL) == SPOOL_CORRUPT;
        write_reason(&j, corrupt ? "corruption" : "store", NULL, why, "tgspool check");
        n++;
    }
    if (spool_held(api->sp)) {
        write_reason(&j, "disk", NULL, spool_held(api->sp), "tgspool status");
        n++;
    }
    for (struct spool_box *b = spool_next_box(api->sp, NULL); b; b = spool_next_box(api->sp, b))
        n += write_bot(api, &j, b);
    json_array_end(&j);
    json_end(&j);
    json_start(&j, &out);
    json_object(&j);
    json_kv_bool(&j, "ready", n == 0);
    json_key(&j, "reasons");
    json_raw(&j, buf_slice(&reasons));
    json_object_end(&j);
    json_end(&j);
    api_answer(c, n ? 503 : 200, buf_slice(&out));
    buf_free(&reasons);
    buf_free(&out);
}
