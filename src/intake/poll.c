/* The states of a poll, and the one dispatcher that moves between them:
 *
 *     WAITING -> ASKING -> ANSWERED -> STORING -> SAVING -> WAITING ...
 *        ^         |          |
 *        +- HELD <-+          +-> WAITING (an error, or nothing came)
 *
 * and at the end CONFIRMING -> STOPPED; in front of a bot's very first request NOTING. The callbacks of the Bot API client and of the spool only note what
 * happened; everything else is done in poll_tick, with the tick's time.
 *
 * The offset is always the last id of the batch at hand + 1, never the highest ever seen: ids start anew,
 * maybe lower, after a quiet week. It is used only once the batch is durable, since sending it makes Telegram
 * forget. */
#include "intake/poll.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "core/backoff.h"
#include "core/gaps.h"
#include "intake/before.h"
#include "intake/trouble.h"
#include "telegram/botapi.h"

#define LIMIT 100
#define DEADLINE_SLACK SECONDS(10)
#define CONFIRM_DEADLINE SECONDS(2)
#define PACE SECONDS(1)        /* between two answers that brought nothing */
#define IDLE_END SECONDS(10)   /* a connection that ends after so much silence is an empty answer */
#define TOKEN_WAIT SECONDS(60) /* before a token that was refused is tried again */
#define OFFSET_KEEPS HOURS(24) /* an offset is not sent when the newest update is older */
#define RETRY_FIRST SECONDS(1)
#define CONFLICT_FIRST SECONDS(3)
#define RETRY_CAP SECONDS(60)
#define LIMITED_CAP HOURS(24)

enum poll_state { WAITING, NOTING, ASKING, ANSWERED, STORING, SAVING, HELD, CONFIRMING, STOPPED };

static const char *const state_names[] = {"waiting", "asking", "asking",   "storing", "storing",
                                          "storing", "held",   "stopping", "stopped"};

/* Kinds of trouble beside the classes of botapi.h. */
enum { TROUBLE_TOKEN_FILE = 100, TROUBLE_GARBLED };

struct poll {
    struct spool *spool;
    struct spool_box *box;
    struct botapi *api;
    char bot[BOT_NAME_MAX + 1];
    char *api_root;
    char **allowed_updates;
    size_t n_allowed_updates;
    int timeout_s;
    poll_token_fn *reread_token;
    void *reread_arg;

    enum poll_state state;
    bool stopping;
    int64_t at; /* WAITING: when to ask again */
    int64_t asked_at;
    int64_t asked_offset;
    bool asked_single;
    bool after_batch; /* the next request confirms a batch */
    bool reread;      /* the token, before the next request */
    bool token_given; /* by a reload; ends a wait */
    bool started;
    bool noted; /* what Telegram was told before us is kept */

    struct poll_position position;   /* durable */
    struct poll_position next;       /* in the batch */
    struct botapi_reply reply;       /* ANSWERED, STORING */
    size_t stored;                   /* updates of it already accepted */
    size_t saved;                    /* of these, those that have a callback */
    size_t fresh;                    /* of these, new ones */
    unsigned unsaved;                /* callbacks of the spool still to come */
    bool lost;                       /* a part of the batch was not written */
    int64_t expected;                /* the id that comes next, within the batch; 0: not known */
    int64_t missing, missing_before; /* updates that the batch lacks; the latest of them before this id */

    unsigned garbled; /* whole but unreadable answers, in a row */
    int single;       /* requests still to be made with limit 1 */
    struct trouble trouble;
    int64_t answered_at;
    uint64_t errors[POLL_ERRORS];
};

static const char *held_by(const struct poll *p, char why[256]);
static bool step_waiting(struct poll *p, int64_t now);
static bool step_noting(struct poll *p, int64_t now);
static bool step_asking(struct poll *p, int64_t now);
static bool step_answered(struct poll *p, int64_t now);
static bool step_storing(struct poll *p, int64_t now);
static bool step_saving(struct poll *p, int64_t now);
static bool step_held(struct poll *p, int64_t now);
static bool step_idle(struct poll *p, int64_t now);

/* Each does what its state has to do and returns whether the state changed. */
static bool (*const steps[])(struct poll *p, int64_t now) = {
    [WAITING] = step_waiting,   [NOTING] = step_noting,   [ASKING] = step_asking,
    [ANSWERED] = step_answered, [STORING] = step_storing, [SAVING] = step_saving,
    [HELD] = step_held,         [CONFIRMING] = step_idle, [STOPPED] = step_idle,
};

/* ---- life --------------------------------------------------------------------------------------- */

/* The position as the spool knows it, or a predecessor, whose batch may not be durable yet; one that belongs
 * to another api_root is none. */
static void load_position(struct poll *p, const struct poll *before)
{
    struct poll_position own = {.offset = 0};

    snprintf(own.api_root, sizeof(own.api_root), "%s", p->api_root);
    if (before)
        p->position = before->position;
    else
        spool_get_position(p->box, &p->position);
    if (strcmp(p->position.api_root, own.api_root) != 0) {
        if (p->position.offset)
            log_info(p->bot, "intake starts without an offset: api_root is another one than before");
        p->position = own;
    }
}

struct poll *poll_new(const struct poll_options *o, struct err *e)
{
    const struct bot_config *bot = o->bot;
    struct botapi_options ao = {
        .api_root = bot->api_root,
        .token = o->token,
        .ca_file = bot->ca_file,
        .proxy_url = o->proxy_url,
        .ip = bot->ip,
    };
    struct botapi *api = botapi_new(o->loop, &ao, e);

    if (!api)
        return NULL;
    struct poll *p = xcalloc(1, sizeof(*p));
    p->spool = spool_of(o->box);
    p->box = o->box;
    p->api = api;
    snprintf(p->bot, sizeof(p->bot), "%s", bot->name);
    p->api_root = xstrdup(bot->api_root);
    p->n_allowed_updates = bot->n_allowed_updates;
    p->allowed_updates = xcalloc(bot->n_allowed_updates + 1, sizeof(char *));
    for (size_t i = 0; i < bot->n_allowed_updates; i++)
        p->allowed_updates[i] = xstrdup(bot->allowed_updates[i]);
    p->timeout_s = (int)(bot->poll_timeout_ms / 1000);
    p->reread_token = o->reread_token;
    p->reread_arg = o->reread_arg;
    load_position(p, o->before);
    if (o->before)
        memcpy(p->errors, o->before->errors, sizeof(p->errors));
    p->noted = p->position.newest_update_at || before_is_known(o->box);
    return p;
}

void poll_free(struct poll *p)
{
    if (!p)
        return;
    botapi_free(p->api);
    spool_forget(p->spool, p);
    botapi_reply_free(&p->reply);
    for (size_t i = 0; i < p->n_allowed_updates; i++)
        free(p->allowed_updates[i]);
    free(p->allowed_updates);
    free(p->api_root);
    free(p);
}

int64_t poll_tick(struct poll *p, int64_t now)
{
    while (steps[p->state](p, now))
        ;
    return p->state == WAITING ? p->at : TIME_NEVER; /* what is with the spool goes on after its commit */
}

void poll_stop(struct poll *p)
{
    p->stopping = true;
}

bool poll_stopped(const struct poll *p)
{
    return p->state == STOPPED;
}

bool poll_rests(const struct poll *p)
{
    return (p->state == HELD || p->state == STOPPED) && !p->unsaved;
}

void poll_set_token(struct poll *p, const char *token)
{
    if (!botapi_set_token(p->api, token))
        return;
    p->reread = false;
    p->token_given = true;
}

void poll_status(const struct poll *p, struct poll_status *out)
{
    char why[256];
    const char *held = p->state == HELD ? held_by(p, why) : NULL;

    *out = (struct poll_status){
        .state = state_names[p->state],
        .trouble_since = p->trouble.since,
        .tries = p->trouble.tries,
        .next_at = p->state == WAITING ? p->at : 0,
        .answered_at = p->answered_at,
        .offset = p->position.offset,
    };
    snprintf(out->held, sizeof(out->held), "%s", held ? held : "");
    snprintf(out->trouble, sizeof(out->trouble), "%s", p->trouble.since ? p->trouble.text : "");
}

void poll_standing(const struct poll *p, struct intake_standing *out)
{
    bool fails = p->trouble.since && p->state != HELD;

    int kind = p->trouble.kind;

    out->failing_since = fails ? p->trouble.since : 0;
    out->for_a_person =
        fails && kind != BOTAPI_TRANSIENT && kind != BOTAPI_LIMITED && kind != TROUBLE_GARBLED;
    snprintf(out->reason, sizeof(out->reason), "%.*s", (int)sizeof(out->reason) - 1,
             fails ? p->trouble.text : "");
    out->good_at = p->answered_at;
    memcpy(out->errors, p->errors, sizeof(out->errors));
}

bool poll_fails_softly(const struct poll *p)
{
    return p->trouble.since && (p->trouble.kind == BOTAPI_TRANSIENT || p->trouble.kind == BOTAPI_CONFLICT ||
                                p->trouble.kind == TROUBLE_GARBLED);
}

/* ---- waiting and asking ------------------------------------------------------------------------- */

/* Asks again at the given time. */
static bool wait_until(struct poll *p, int64_t at)
{
    p->at = at;
    p->state = WAITING;
    return true;
}

/* Notes a failure, and waits. */
static bool wait_out(struct poll *p, int kind, const char *sentence, int64_t wait_ms, int64_t now)
{
    trouble_met(&p->trouble, p->bot, kind, sentence, wait_ms, now);
    return wait_until(p, now + wait_ms);
}

/* The wait before the next try, growing with the failures of one kind in a row: who answers differently is
 * another matter than before. */
static int64_t growing_wait(const struct poll *p, int kind, int64_t first)
{
    uint32_t random = (uint32_t)random_below(UINT64_C(1) << 32);

    return backoff_wait(first, RETRY_CAP, trouble_run(&p->trouble, kind), random);
}

/* Why nothing may be taken in now; NULL if it may. */
static const char *held_by(const struct poll *p, char why[256])
{
    struct spool_box_status st;

    if (!spool_healthy(p->spool, why))
        return why;
    if (spool_held(p->spool))
        return spool_held(p->spool);
    spool_box_status(p->box, &st);
    if (!st.paused_intake)
        return NULL;
    snprintf(why, 256, "it is paused; to resume, run: tgspool resume %s intake", p->bot);
    return why;
}

static bool hold(struct poll *p, const char *why)
{
    log_info(p->bot, "intake stops: %s", why);
    botapi_cancel(p->api);
    p->state = HELD;
    return true;
}

static bool step_held(struct poll *p, int64_t now)
{
    char why[256];

    if (p->stopping) {
        p->state = STOPPED; /* whoever paused it may let another take the updates: no last request */
        return true;
    }
    if (held_by(p, why))
        return false;
    log_info(p->bot, "intake goes on");
    return wait_until(p, now);
}

static void saved(void *arg, bool ok)
{
    struct poll *p = arg;

    assert(p->unsaved > 0);
    p->unsaved--;
    if (!ok)
        p->lost = true;
}

static void save(struct poll *p)
{
    p->unsaved++;
    spool_on_durable(p->spool, saved, p);
}

/* The reply's callback: kept for the tick. */
static void replied(void *arg, struct botapi_reply *r)
{
    struct poll *p = arg;

    assert(p->state == ASKING || p->state == NOTING);
    p->reply = *r;
    p->reply.result = NULL;
    botapi_reply_moved(r);
    p->state = ANSWERED;
}

/* The same of what comes before the first request. */
static void before_came(void *arg, struct botapi_reply *r)
{
    struct poll *p = arg;
    struct webhook_info info;

    if (r->class != BOTAPI_OK && r->class != BOTAPI_REJECTED) {
        replied(p, r);
        return;
    }
    if (r->class == BOTAPI_OK && webhook_info_read(r->result, &info) == 0) {
        before_keep(p->box, &info);
        save(p);
        webhook_info_free(&info);
    }
}

/* The offset that may be sent now. When the newest update is a day old, ids may soon start anew, maybe lower:
 * then none, so that what comes is served from the head whatever its ids are. */
static int64_t usable_offset(const struct poll *p, int64_t now)
{
    return now - p->position.newest_update_at >= OFFSET_KEEPS ? 0 : p->position.offset;
}

/* Reads the token anew before another try. Returns false if there is none to use. */
static bool refresh_token(struct poll *p, int64_t now)
{
    struct buf token = BUF_EMPTY;
    struct err e = ERR_NONE;
    bool ok = !p->reread_token(p->reread_arg, &token, &e);

    p->reread = !ok;
    p->errors[POLL_ERROR_TOKEN] += !ok;
    if (!ok)
        wait_out(p, TROUBLE_TOKEN_FILE, e.text, TOKEN_WAIT, now);
    else if (botapi_set_token(p->api, buf_str(&token)))
        log_info(p->bot, "a new token was read");
    if (token.n)
        explicit_bzero(token.p, token.n);
    buf_free(&token);
    return ok;
}

static bool ask(struct poll *p, int64_t now)
{
    struct botapi_poll q = {
        .offset = usable_offset(p, now),
        .limit = p->single > 0 ? 1 : LIMIT,
        .timeout_s = p->timeout_s,
        .allowed_updates = p->allowed_updates,
        .n_allowed = p->n_allowed_updates,
        .deadline_ms = SECONDS(p->timeout_s) + DEADLINE_SLACK,
    };

    bool confirms = p->after_batch;
    if (confirms)
        (void)FAILPOINT("poll.before_next");
    if (!p->started)
        log_info(p->bot, "intake starts at %s%s", p->api_root, q.offset ? "" : ", without an offset");
    p->started = true;
    p->after_batch = false;
    p->asked_at = now;
    p->asked_offset = q.offset;
    p->asked_single = q.limit == 1;
    p->state = ASKING;
    botapi_get_updates(p->api, &q, replied, p);
    if (confirms)
        (void)FAILPOINT("poll.after_next");
    return true;
}

static void confirmed(void *arg, struct botapi_reply *r)
{
    struct poll *p = arg;

    /* Where an earlier request bore the same offset, Telegram knows already, and may let us wait: it answers
     * the same offset within 3 s as if a time-out of 3 s had been asked for. */
    if (r->class != BOTAPI_OK && p->asked_offset != p->position.offset)
        log_info(p->bot,
                 "the last request failed (%s): what was taken may come once more, and is dropped then",
                 r->sentence);
    (void)FAILPOINT("poll.after_confirm");
    p->state = STOPPED;
}

/* Tells Telegram what was taken. The updates of the answer are thrown away: only a later offset confirms
 * them. */
static bool confirm(struct poll *p, int64_t now)
{
    struct botapi_poll q = {
        .offset = usable_offset(p, now),
        .limit = 1,
        .timeout_s = 0,
        .allowed_updates = p->allowed_updates,
        .n_allowed = p->n_allowed_updates,
        .deadline_ms = CONFIRM_DEADLINE,
    };

    botapi_cancel(p->api);
    if (!q.offset) {
        p->state = STOPPED;
        return true;
    }
    p->state = CONFIRMING;
    (void)FAILPOINT("poll.before_confirm");
    botapi_get_updates(p->api, &q, confirmed, p);
    return true;
}

/* The first request of all changes what Telegram sends this bot: what it was before is kept first, so that a
 * handover can put it back. */
static bool note_before(struct poll *p)
{
    p->state = NOTING;
    p->asked_single = false;
    botapi_get_webhook_info(p->api, SECONDS(30), before_came, p);
    return true;
}

static bool step_waiting(struct poll *p, int64_t now)
{
    char why[256];
    const char *held = held_by(p, why);

    if (held)
        return hold(p, held);
    if (p->stopping)
        return confirm(p, now);
    if (now < p->at && !p->token_given)
        return false;
    p->token_given = false;
    if (p->reread && !refresh_token(p, now))
        return true;
    return p->noted ? ask(p, now) : note_before(p);
}

static bool step_asking(struct poll *p, int64_t now)
{
    char why[256];
    const char *held = held_by(p, why);

    if (held)
        return hold(p, held);
    return p->stopping ? confirm(p, now) : false;
}

static bool step_noting(struct poll *p, int64_t now)
{
    char why[256];
    const char *held = held_by(p, why);

    if (held)
        return hold(p, held);
    if (p->stopping)
        return confirm(p, now);
    if (botapi_busy(p->api) || p->unsaved)
        return false;
    p->noted = !p->lost;
    p->lost = false;
    return wait_until(p, p->noted ? now : now + PACE);
}

static bool step_idle(struct poll *p, int64_t now)
{
    (void)p, (void)now;
    return false;
}

/* ---- answers ------------------------------------------------------------------------------------ */

static void drop_reply(struct poll *p)
{
    botapi_reply_free(&p->reply);
    p->stored = 0;
    p->fresh = 0;
}

/* A 409: what is the matter, and what to do about it. */
static void conflict_sentence(const struct poll *p, char *out, size_t size)
{
    switch (p->reply.conflict) {
    case CONFLICT_OTHER_POLL:
        snprintf(out, size,
                 "another program takes this bot's updates (409, terminated by other getUpdates request): "
                 "stop it; or, "
                 "to let it have them, run: tgspool pause %s intake",
                 p->bot);
        return;
    case CONFLICT_WEBHOOK:
    case CONFLICT_SET_WEBHOOK:
        snprintf(
            out, size,
            "a webhook %s (409), so that polling gets nothing; to remove it, run: tgspool webhook delete %s",
            p->reply.conflict == CONFLICT_WEBHOOK ? "is set for this bot" : "was just set for this bot",
            p->bot);
        return;
    default:
        snprintf(out, size, "%s; to see the bot and its webhook, run: tgspool check", p->reply.sentence);
    }
}

/* Stores an answer raw that cannot be read even with limit 1, and passes by it. */
static bool store_poison(struct poll *p, int64_t now)
{
    struct update u = {.bytes = buf_slice(&p->reply.body)};
    int64_t id;

    p->next = p->position;
    if (!update_guess_id(u.bytes, &id) && id >= 0 && id < INT64_MAX) {
        u.has_id = true;
        u.id = id;
        p->next.offset = id + 1;
    } else if (p->asked_offset) {
        p->next.offset = p->asked_offset + 1;
    }
    p->next.newest_update_at = now;
    enum accepted got = spool_accept(p->box, &u, true, NULL);
    if (got == ACCEPTED_NEW)
        log_warn(p->bot, "an update that cannot be read is dead: bytes=%zu; next: tgspool list --state dead",
                 u.bytes.n);
    p->fresh = got == ACCEPTED_NEW;
    p->lost = got == ACCEPTED_FAILED;
    p->garbled = 0;
    p->single = 0;
    if (!p->lost)
        spool_set_position(p->box, &p->next);
    save(p);
    botapi_reply_free(&p->reply);
    p->state = SAVING;
    return true;
}

/* A good answer: to be stored, or empty. */
static bool take_updates(struct poll *p, int64_t now)
{
    size_t n = p->reply.updates.n;

    trouble_over(&p->trouble, p->bot, now);
    p->garbled = 0;
    p->answered_at = now;
    if (p->single > 0)
        p->single = n ? p->single - 1 : 0;
    if (!n) {
        drop_reply(p);
        return wait_until(p, now - p->asked_at < PACE ? now + PACE : now);
    }
    p->next = p->position;
    p->next.newest_update_at = now;
    bool passed = false;
    for (size_t i = 0; i < n; i++)
        if (p->reply.updates.updates[i].has_id && p->reply.updates.updates[i].id < INT64_MAX) {
            p->next.offset = p->reply.updates.updates[i].id + 1;
            passed = true;
        }
    if (!passed && p->asked_offset)
        p->next.offset =
            p->asked_offset + 1; /* whatever stands there has an id, if only Telegram can read it */
    p->stored = p->saved = p->fresh = 0;
    p->expected = p->position.offset;
    p->missing = 0;
    p->lost = false;
    (void)FAILPOINT("poll.before_accept");
    p->state = STORING;
    return true;
}

/* What kind of failure an answer is. */
static enum poll_error error_of(const struct botapi_reply *r)
{
    switch (r->class) {
    case BOTAPI_UNAUTHORIZED:
        return POLL_ERROR_401;
    case BOTAPI_NOT_FOUND:
        return POLL_ERROR_404;
    case BOTAPI_CONFLICT:
        return POLL_ERROR_409;
    case BOTAPI_LIMITED:
        return POLL_ERROR_429;
    case BOTAPI_MIGRATED:
    case BOTAPI_REJECTED:
        return POLL_ERROR_4XX;
    default:
        break;
    }
    if (r->fail != HTTP_OK && r->fail != HTTP_BAD_ANSWER)
        return POLL_ERROR_NETWORK;
    return r->status >= 500 ? POLL_ERROR_5XX : POLL_ERROR_UNREADABLE;
}

/* An error: what follows from its class. */
static bool take_error(struct poll *p, int64_t now)
{
    struct botapi_reply *r = &p->reply;
    char sentence[640];
    int kind = p->garbled ? TROUBLE_GARBLED : (int)r->class;
    int64_t wait = growing_wait(p, kind, RETRY_FIRST);

    snprintf(sentence, sizeof(sentence), "%s", r->sentence);
    switch (r->class) {
    case BOTAPI_LIMITED:
        if (r->retry_after_s >= 0)
            wait = r->retry_after_s < LIMITED_CAP / 1000 ? SECONDS(r->retry_after_s) : LIMITED_CAP;
        break;
    case BOTAPI_UNAUTHORIZED:
    case BOTAPI_NOT_FOUND:
        wait = TOKEN_WAIT;
        p->reread = true;
        break;
    case BOTAPI_CONFLICT:
        conflict_sentence(p, sentence, sizeof(sentence));
        botapi_drop_connection(p->api);
        wait = growing_wait(p, kind, CONFLICT_FIRST);
        break;
    default:
        break;
    }
    drop_reply(p);
    return wait_out(p, kind, sentence, wait, now);
}

/* An answer that came whole but cannot be read, or is too large: it may be one update that spoils it. */
static bool take_garbled(struct poll *p, int64_t now)
{
    p->garbled++;
    if (p->asked_single && p->reply.garbled)
        return store_poison(p, now);
    if (p->garbled >= 2 && !p->asked_single) {
        p->single = LIMIT;
        drop_reply(p);
        return wait_until(p, now);
    }
    return take_error(p, now);
}

static bool step_answered(struct poll *p, int64_t now)
{
    const struct botapi_reply *r = &p->reply;

    if (r->class == BOTAPI_OK)
        return take_updates(p, now);
    if (r->fail == HTTP_RESET && r->sent && r->waited_ms >= IDLE_END) {
        drop_reply(p); /* somebody on the way closes what is silent for long: an empty answer */
        return wait_until(p, now);
    }
    p->errors[error_of(r)]++;
    if (r->garbled || r->fail == HTTP_BAD_ANSWER)
        return take_garbled(p, now);
    p->garbled = 0;
    return take_error(p, now);
}

/* ---- storing ------------------------------------------------------------------------------------ */

/* Counts what is missing between the one before and this update. What is known already was counted with it. */
static void look_for_gap(struct poll *p, const struct update *u, bool fresh, int64_t now)
{
    if (!u->has_id || u->id == INT64_MAX)
        return;
    int64_t missing =
        fresh ? gaps_between(p->expected, p->stored ? now : p->position.newest_update_at, u->id, now) : 0;
    if (missing && spool_count_gap(p->box, missing)) {
        p->missing += missing;
        p->missing_before = u->id;
    }
    if (fresh || u->id >= p->expected)
        p->expected = u->id + 1; /* lower: ids began anew */
}

/* Once, when it is sure to be on record. */
static void tell_gap(struct poll *p)
{
    if (p->missing)
        log_warn(
            p->bot,
            "updates missing before update %lld: %lld; Telegram dropped them, as it keeps most for 24 hours; "
            "next: tgspool status",
            (long long)p->missing_before, (long long)p->missing);
    p->missing = 0;
}

/* Adds as much to the spool's batch as it takes. Every part has its callback: the offset moves only when all
 * were written. */
static bool step_storing(struct poll *p, int64_t now)
{
    size_t n = p->reply.updates.n;

    while (p->stored < n && !p->lost) {
        if (spool_batch_full(p->spool)) {
            /* once a part, however long it is full; what is lost is noticed by the same */
            if (p->saved < p->stored || !spool_healthy(p->spool, NULL))
                save(p);
            p->saved = p->stored;
            return false;
        }
        const struct update *u = &p->reply.updates.updates[p->stored];
        enum accepted got = spool_accept(p->box, u, false, NULL);
        p->lost = got == ACCEPTED_FAILED;
        p->fresh += got == ACCEPTED_NEW;
        if (!p->lost)
            look_for_gap(p, u, got == ACCEPTED_NEW, now);
        p->stored++;
    }
    if (!p->lost) {
        spool_set_position(p->box, &p->next);
        save(p);
    }
    (void)FAILPOINT("poll.after_accept");
    log_debug(p->bot, "%zu updates came, %zu of them new", n, p->fresh);
    botapi_reply_free(&p->reply); /* the bytes are in the batch: give the memory back now */
    p->state = SAVING;
    return false;
}

static bool step_saving(struct poll *p, int64_t now)
{
    size_t fresh = p->fresh;

    if (p->unsaved)
        return false;
    drop_reply(p);
    if (p->lost) { /* nothing is confirmed: the same updates come again */
        p->lost = false;
        return wait_until(p, now + PACE);
    }
    tell_gap(p);
    p->position = p->next;
    p->after_batch = true;
    return wait_until(p, fresh ? now : now + PACE);
}
