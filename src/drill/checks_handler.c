/* The checks of what lies between the spool and the handler: 2, 4 and 5. */
#include "drill/inside.h"

#define SETTLE_MS 300
#define MIDDLE 4 /* a handler of the user's is killed so long after it began: this part of a lease */

static bool first_started(struct drill *d)
{
    return record_count(&d->record, DEED_START, d->ids[0]) > 0;
}

static bool first_acted(struct drill *d)
{
    return record_count(&d->record, DEED_ACTED, d->ids[0]) > 0;
}

/* ---- 2 ------------------------------------------------------------------------------------------ */

/* Who had begun before the kill begins twice, the others once. */
static bool count_starts(struct drill *d, size_t at_kill, unsigned *twice)
{
    *twice = 0;
    for (size_t i = 0; i < d->n_ids; i++) {
        const struct deed *start = record_find(&d->record, DEED_START, d->ids[i], 0);
        bool before = start && start < d->record.deeds + at_kill;
        unsigned n = record_count(&d->record, DEED_START, d->ids[i]);
        if (!d->o->run_handler && n != (before ? 2 : 1))
            return drill_fail(d, "update %lld was handed over %u times", (long long)d->ids[i], n);
        *twice += before;
    }
    return true;
}

bool check_killed(struct drill *d)
{
    unsigned twice;

    if (!scratch_make(d, "", 0) || !scratch_hold(d, HOLD_END) || !scratch_start_ready(d))
        return false;
    drill_give(d, 4, 2);
    if (!drill_wait(d, first_started, "the handler gets the first update") ||
        (d->o->run_handler && !drill_sleep(d, d->o->lease_ms / MIDDLE)) || !scratch_kill(d))
        return false;
    size_t at_kill = d->record.n;
    if (!scratch_hold(d, HOLD_NONE) || !scratch_start_ready(d) ||
        !drill_wait_handled(d, "all updates are handled after the restart") || !drill_sleep(d, SETTLE_MS) ||
        !drill_in_order(d) || !count_starts(d, at_kill, &twice))
        return false;
    drill_see(
        d,
        "daemon and handler killed: all %zu updates were handled after the restart%s; %u of them, under way "
        "then, began twice",
        d->n_ids, d->o->bot->order == ORDER_NONE ? "" : ", in order", twice);
    return true;
}

/* ---- 4 ------------------------------------------------------------------------------------------ */

bool check_lease(struct drill *d)
{
    bool dropin = d->o->bot->deliver == DELIVER_DROPIN;
    char text[32];

    if (!scratch_make(d, "", 0) || !scratch_hold(d, HOLD_FIRST) || !scratch_start_ready(d))
        return false;
    drill_give(d, 3, 2);
    if (!drill_wait(d, first_started, "the handler gets the first update") || !scratch_hold(d, HOLD_NONE) ||
        !drill_wait_handled(d, "what the handler hung with is handled by another try") || !drill_in_order(d))
        return false;
    const struct deed *first = record_find(&d->record, DEED_START, d->ids[0], 0);
    const struct deed *second =
        record_find(&d->record, DEED_START, d->ids[0], (size_t)(first - d->record.deeds) + 1);
    if (!second || second->attempt < 2)
        return drill_fail(d,
                          "the update that the handler hung with was not handed over again as another try");
    int64_t gap = second->at - first->at;
    if (!dropin &&
        gap < d->o->lease_ms / 2) /* it began when the handler was started, not when that told us */
        return drill_fail(d, "it was handed over again after %s, before its lease was over",
                          drill_seconds(gap, text));
    if (dropin)
        drill_see(d, "the bot hung with an update and asked again with its old offset: it got it once more");
    else
        drill_see(d, "the handler hung: handed over again after %s, as try %lld, and handled%s",
                  drill_seconds(gap, text), (long long)second->attempt,
                  d->o->bot->order == ORDER_NONE ? "" : "; what came behind it in its chat waited");
    return true;
}

/* ---- 5 ------------------------------------------------------------------------------------------ */

/* Telegram knows of all, and, where it is polled, has somebody to give the next to. */
static bool is_waiting(struct drill *d)
{
    return drill_by_webhook(d) ? drill_all_confirmed(d) : server_state(d->server)->waiting;
}

/* Gives one, and once more when it was handled and confirmed: it must be handed over once. */
static bool send_twice(struct drill *d)
{
    drill_give(d, 1, 1);
    if (!drill_wait_handled(d, "the update is handled") || !drill_wait(d, is_waiting, "it is confirmed"))
        return false;
    unsigned before = record_count(&d->record, DEED_START, d->ids[0]);
    server_give_again(d->server, d->ids[0]);
    if (!drill_wait(d, drill_all_confirmed, "the second copy is confirmed") || !drill_sleep(d, SETTLE_MS))
        return false;
    if (record_count(&d->record, DEED_START, d->ids[0]) != before)
        return drill_fail(d, "Telegram sent the update again, and it was handed over again");
    return true;
}

/* Gives one, and has it handed over twice: the daemon dies when the handler has acted. */
static bool hand_over_twice(struct drill *d)
{
    if (!scratch_hold(d, HOLD_END))
        return false;
    drill_give(d, 1, 1);
    if (!drill_wait(d, first_acted, "the handler does its work") || !scratch_kill(d) ||
        !scratch_hold(d, HOLD_NONE) || !scratch_start_ready(d) ||
        !drill_wait_handled(d, "it is handled again after the restart"))
        return false;
    unsigned n = record_count(&d->record, DEED_START, d->ids[0]);
    return n >= 2 ? true
                  : drill_fail(d, "it was handed over %u times, though nobody had told that it was done", n);
}

static bool judge_probe(struct drill *d, const int64_t count[3])
{
    long long once = count[1] - count[0], twice = count[2] - count[1];

    if (once < 1)
        return drill_fail(d, "the probe saw no effect of an update that was handled: %lld before, %lld after",
                          (long long)count[0], (long long)count[1]);
    if (twice != once)
        return drill_fail(
            d,
            "an update that was handed over twice had %lld effects, one that was handed over once "
            "had %lld: the handler must know again what it did, by TGSPOOL_KEY",
            twice, once);
    drill_see(d,
              "sent twice: handed over once; handed over twice, after a kill: as many effects (%lld) as once",
              once);
    return true;
}

static bool judge_builtin(struct drill *d)
{
    unsigned n = record_count(&d->record, DEED_EFFECT, d->ids[0]);

    if (n != 1)
        return drill_fail(d, "an update that was handed over twice had %u effects", n);
    drill_see(d, "sent twice: handed over once; handed over twice, after a kill: one effect, by its key");
    return true;
}

bool check_twice(struct drill *d)
{
    bool probe = d->o->probe != NULL;
    int64_t count[3] = {0};

    if (!scratch_make(d, "", 0) || !scratch_start_ready(d) || (probe && !probe_run(d, &count[0])) ||
        !send_twice(d) || (probe && !probe_run(d, &count[1])) || !hand_over_twice(d) ||
        (probe && !probe_run(d, &count[2])))
        return false;
    if (probe)
        return judge_probe(d, count);
    if (!d->o->run_handler)
        return judge_builtin(d);
    drill_see(
        d, "sent twice: handed over once. Handed over twice, after a kill: how often your handler then did "
           "its work was not counted; --probe COMMAND does that");
    return true;
}
