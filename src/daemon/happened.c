/* Lines of the log about events. */
#include "daemon/happened.h"

#include <inttypes.h>

#include "base/log.h"
#include "base/text.h"

#define DEAD_LINES_A_MINUTE 10

static void log_dead(struct happened *w, const struct spool_happening *h, const char *id)
{
    const char *bot = spool_box_bot(h->box);
    int64_t minute = h->at / 60000;

    if (minute != w->minute) {
        if (w->withheld)
            log_warn(NULL, "%u more events died; to see them, run: tgspool list --state dead", w->withheld);
        *w = (struct happened){.minute = minute};
    }
    if (w->told == DEAD_LINES_A_MINUTE) {
        w->withheld++;
        return;
    }
    w->told++;
    log_warn(bot, "%s is dead (%s, attempt %" PRIu32 "); to see why, run: tgspool show %s", id,
             reason_name(h->reason), h->attempt, id);
}

static void log_breaker_open(const struct spool_happening *h)
{
    static const char *const causes[] = {
        [BREAKER_NONE] = "the handler fails",
        [BREAKER_UNAVAILABLE] = "the handler is not available",
        [BREAKER_LIMITED] = "the handler asks for a pause",
        [BREAKER_FAILURES] = "the handler fails on everything",
    };
    struct spool_box_status st;

    spool_box_status(h->box, &st);
    log_warn(spool_box_bot(h->box), "%s: events wait, one at a time is tried; next: tgspool status",
             causes[st.breaker.cause]);
}

void happened_log(void *arg, const struct spool_happening *h)
{
    static const char *const names[] = {
        [HAPPENED_ACCEPTED] = "accepted", [HAPPENED_CLAIMED] = "claimed",
        [HAPPENED_DONE] = "done",         [HAPPENED_RETRY] = "will be tried again",
        [HAPPENED_DEAD] = "dead",         [HAPPENED_RELEASED] = "released",
    };
    const char *bot = spool_box_bot(h->box);
    struct buf id = BUF_EMPTY;
    struct event ev = {.seq = h->seq, .has_update_id = h->has_update_id, .update_id = h->update_id};

    event_ref_text(&id, bot, spool_box_which(h->box), &ev);
    switch (h->what) {
    case HAPPENED_DEAD:
        log_dead(arg, h, buf_str(&id));
        break;
    case HAPPENED_BREAKER_OPEN:
        log_breaker_open(h);
        break;
    case HAPPENED_BREAKER_CLOSED:
        log_info(bot, "the handler works again");
        break;
    default:
        log_debug(bot, "%s %s", buf_str(&id), names[h->what]);
    }
    buf_free(&id);
}
