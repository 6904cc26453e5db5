/* The checks of what lies between Telegram and the spool: 1 and 3. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "drill/inside.h"
#include "wire/json.h"

#define UPDATES 4
#define CHATS 2
#define SETTLE_MS 300 /* in which a second hand-over would show */
#define SLACK_MS 30

static bool has_faulted(struct drill *d)
{
    return server_state(d->server)->faulted;
}

/* Of webhooks: each update was taken, and Telegram got none of the answers. */
static bool all_lost(struct drill *d)
{
    const struct server_state *s = server_state(d->server);

    for (size_t i = 0; i < s->n_updates; i++)
        if (!s->updates[i].lost)
            return false;
    return s->n_updates > 0;
}

/* How often each update was handed over: once, or says so. */
static bool all_once(struct drill *d)
{
    for (size_t i = 0; i < d->n_ids; i++) {
        unsigned n = record_count(&d->record, DEED_START, d->ids[i]);
        if (n != 1)
            return drill_fail(d, "update %lld was handed over %u times", (long long)d->ids[i], n);
    }
    return true;
}

/* Ends a sentence on updates that were handled: a handler of the user's may have failed and been tried again. */
static const char *handled_how_often(const struct drill *d)
{
    return d->o->run_handler ? "" : " once";
}

/* ---- 1 ------------------------------------------------------------------------------------------ */

/* How often the daemon has synced its log; -1: it does not say (told). */
static int64_t syncs(struct drill *d)
{
    static const char name[] = "\ntgspool_syncs_total ";
    struct buf body = BUF_EMPTY;
    int64_t n = -1;

    if (scratch_ask(d, "GET", "/metrics", NULL, &body)) {
        const char *at = strstr(buf_str(&body), name);
        n = at ? atoll(at + sizeof(name) - 1) : -1;
        if (n < 0)
            drill_fail(d, "the daemon does not tell how often it synced");
    }
    buf_free(&body);
    return n;
}

/* Delivery waits, so that nothing but intake is at work when the kill comes. */
static bool set_paused(struct drill *d, const char *path)
{
    struct buf body = BUF_EMPTY, answer = BUF_EMPTY;

    buf_printf(&body, "{\"bot\":\"%s\",\"what\":\"deliver\"}", d->o->bot->name);
    bool ok = scratch_ask(d, "POST", path, buf_str(&body), &answer);
    buf_free(&body);
    buf_free(&answer);
    return ok;
}

/* How many updates wait in the spool; -1: told. */
static long pending(struct drill *d)
{
    char *path = xasprintf("/v1/events?bot=%s&box=in&state=pending&limit=100", d->o->bot->name);
    struct buf body = BUF_EMPTY;
    long n = -1;

    if (scratch_ask(d, "GET", path, NULL, &body)) {
        struct json *root = json_parse(buf_slice(&body), NULL);
        n = (long)json_length(json_get(root, "events"));
        json_free(root);
    }
    buf_free(&body);
    free(path);
    return n;
}

/* Gives updates which the daemon writes; that it did never arrives at Telegram. */
static bool give_unconfirmed(struct drill *d)
{
    if (drill_by_webhook(d))
        sender_fault(d->sender, SEND_STOPS);
    drill_give(d, UPDATES, CHATS);
    if (drill_by_webhook(d))
        return drill_wait(d, all_lost, "the daemon answers 200 to what it took");
    server_fault(d->server, POLL_LOST, d->ids[0]);
    return drill_wait(d, has_faulted, "the daemon confirms what it took");
}

/* Up to the kill. */
static bool write_and_die(struct drill *d)
{
    if (!scratch_make(d, "", 0) || !scratch_start_ready(d) || !set_paused(d, "/v1/pause"))
        return false;
    int64_t before = syncs(d);
    if (before < 0)
        return false;
    if (!give_unconfirmed(d))
        return false;
    int64_t after = syncs(d);
    if (after < 0 || !scratch_kill(d))
        return false;
    if (after > before)
        return true;
    return drill_fail(
        d, "Telegram was told of updates that were not synced to disk: a power cut then loses them; set "
           "spool.sync to always");
}

/* By polling, the restarted daemon goes on behind what it stored, and Telegram has nothing to send again. */
static bool was_given_again(const struct drill *d)
{
    const struct server_state *s = server_state(d->server);

    for (size_t i = 0; i < s->n_updates; i++)
        if (s->updates[i].given > 1)
            return true;
    return false;
}

bool check_written(struct drill *d)
{
    if (!write_and_die(d))
        return false;
    server_withhold(d->server, true);
    if (drill_by_webhook(d))
        sender_fault(d->sender, SEND_GOOD);
    if (!scratch_start_ready(d))
        return false;
    long n = pending(d);
    if (n < 0)
        return false;
    if (n != UPDATES)
        return drill_fail(d, "%d updates were written before the exit, %ld are there after it", UPDATES, n);
    server_withhold(d->server, false);
    if (!drill_wait(d, drill_all_confirmed, "Telegram knows what was taken") ||
        !set_paused(d, "/v1/resume") || !drill_wait_handled(d, "all updates are handled") ||
        !drill_sleep(d, SETTLE_MS) || (!d->o->run_handler && !all_once(d)) || !drill_in_order(d))
        return false;
    drill_see(d,
              "%d updates written, the daemon killed before Telegram was told: all there after the restart, "
              "%s, and handled%s",
              UPDATES,
              was_given_again(d) ? "known again when Telegram sent them again" : "which told Telegram",
              handled_how_often(d));
    return true;
}

/* ---- 3 ------------------------------------------------------------------------------------------ */

static bool is_waiting(struct drill *d)
{
    return server_state(d->server)->waiting;
}

static bool has_given_up(struct drill *d)
{
    return server_state(d->server)->gave_up;
}

static bool has_polled(struct drill *d)
{
    return server_state(d->server)->polls > d->mark;
}

/* The next getUpdates fails in this way. */
static bool fail_next(struct drill *d, enum poll_fault fault, const char *what)
{
    server_fault(d->server, fault, 0);
    return drill_wait(d, has_faulted, what);
}

/* Calls that Telegram took. */
static size_t good_calls(const struct drill *d)
{
    const struct server_state *s = server_state(d->server);
    size_t n = 0;

    for (size_t i = 0; i < s->n_calls; i++)
        n += s->calls[i].chat && !s->calls[i].limited;
    return n;
}

static bool all_called(struct drill *d)
{
    return good_calls(d) >= d->n_ids;
}

/* Whether each call that was limited was made again and taken; says what was seen. */
static bool look_at_calls(struct drill *d, struct buf *said)
{
    const struct server_state *s = server_state(d->server);
    bool limited = false;

    for (size_t i = 0; i < s->n_calls; i++) {
        bool again = false;
        if (!s->calls[i].limited)
            continue;
        limited = true;
        for (size_t k = i + 1; k < s->n_calls && !again; k++)
            again = !s->calls[k].limited && s->calls[k].chat == s->calls[i].chat &&
                    strcmp(s->calls[k].method, s->calls[i].method) == 0;
        if (!again)
            return drill_fail(
                d,
                "%s got a 429 and was not made again, though its update counts as handled: a handler "
                "must wait as long as the 429 says, or fail, or leave its calls to tgspool",
                s->calls[i].method);
    }
    if (!d->o->run_handler && good_calls(d) != d->n_ids)
        return drill_fail(d, "%zu calls arrived, of %zu", good_calls(d), d->n_ids);
    buf_add_str(said, limited ? "; a call that got a 429 was made again" : "; the handler made no call");
    return true;
}

/* A webhook, of whose answers Telegram gets none at first. */
static bool check_webhook(struct drill *d)
{
    struct buf calls = BUF_EMPTY;

    if (!scratch_start_ready(d))
        return false;
    sender_fault(d->sender, SEND_LOSES);
    server_limit_calls(d->server);
    drill_give(d, UPDATES, UPDATES); /* each its own chat: a second call there is the first one made again */
    bool good = drill_wait(d, drill_all_confirmed, "the daemon takes what Telegram sends again") &&
                drill_wait_handled(d, "all updates are handled") &&
                (d->o->run_handler || drill_wait(d, all_called, "the calls are made")) &&
                drill_sleep(d, SECONDS(SERVER_CALL_WAIT_S) + SETTLE_MS) &&
                (d->o->run_handler || all_once(d)) && drill_in_order(d) && look_at_calls(d, &calls);
    if (good)
        drill_see(d, "no answer to a webhook arrived in time, each was sent again: %d updates handled%s%s",
                  UPDATES, handled_how_often(d), buf_str(&calls));
    buf_free(&calls);
    return good;
}

/* What goes wrong with getUpdates, up to an answer that waits; *wait gets how long a 429 was waited out. */
static bool fail_polls(struct drill *d, int64_t *wait)
{
    const struct server_state *s = server_state(d->server);
    char waited[32];

    server_fault(d->server, POLL_LIMITED, 0);
    if (!scratch_start(d) || !drill_wait(d, has_faulted, "the daemon asks for updates"))
        return false;
    int64_t limited_at = s->faulted_at;
    if (!fail_next(d, POLL_CUT, "the daemon asks again after a 429"))
        return false;
    *wait = s->faulted_at - limited_at;
    if (*wait < SECONDS(SERVER_POLL_WAIT_S) - SLACK_MS)
        return drill_fail(d, "after a 429 that says %d s the daemon asked again after %s", SERVER_POLL_WAIT_S,
                          drill_seconds(*wait, waited));
    return fail_next(d, POLL_BAD, "the daemon asks again after its connection was cut") &&
           drill_wait(d, is_waiting, "the daemon asks again after a 502");
}

static bool check_polls(struct drill *d)
{
    const struct server_state *s = server_state(d->server);
    struct buf calls = BUF_EMPTY;
    char waited[32], hung[32];
    int64_t wait;

    if (!fail_polls(d, &wait))
        return false;
    server_limit_calls(d->server);
    drill_give(d, UPDATES, UPDATES); /* each its own chat: a second call there is the first one made again */
    if (!fail_next(d, POLL_HANGS, "the daemon confirms what it took"))
        return false;
    int64_t hung_at = s->faulted_at;
    d->mark = s->polls;
    if (!drill_wait_handled(d, "all updates are handled, while Telegram does not answer") ||
        (!d->o->run_handler && !drill_wait(d, all_called, "the calls are made")) ||
        !drill_wait(d, has_given_up, "the daemon gives up a request without an answer"))
        return false;
    drill_seconds(clock_now() - hung_at, hung);
    bool good = drill_wait(d, has_polled, "the daemon asks again after a request without an answer") &&
                (d->o->run_handler || all_once(d)) && drill_in_order(d) && look_at_calls(d, &calls);
    if (good)
        drill_see(d,
                  "429: waited %s as told; cut, 502, no answer for %s: asked again; %d updates handled%s%s",
                  drill_seconds(wait, waited), hung, UPDATES, handled_how_often(d), buf_str(&calls));
    buf_free(&calls);
    return good;
}

bool check_telegram(struct drill *d)
{
    if (!scratch_make(d, "", 0) || !scratch_calls(d))
        return false;
    return drill_by_webhook(d) ? check_webhook(d) : check_polls(d);
}
