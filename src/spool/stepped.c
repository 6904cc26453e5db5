/* Steps of the wall clock between two runs, and while one lasts. The row `clock` says when the spool was last used, so that the
 * next open sees whether the clock was set back, or stands so much later that it may be wrong: machines without a battery start
 * in some year, and learn the right time from the network a little later.
 *
 * Set back: what waits keeps the rest of its wait (work.c); what ended or came in the future, as it now seems, counts as if it
 * had at this open, so that it goes in the end. Far ahead: retention rests for an hour, since what it removed is gone, and so do
 * idempotency keys; what only this gap makes older than `expire` allows waits for ten minutes, with its lane. Both times are of
 * running, so that restarts do not make them longer. If the machine's clock is set back meanwhile, ages go by that.
 *
 * Set forward while a run lasts, which goes on by the old time: what came, ended or was recorded in it is younger than it seems
 * to the next run. The row says from when to when that was, and by how much. If the next run is by the old time, too, that was
 * the right one. */
#include "base/log.h"
#include "base/text.h"
#include "spool/internal.h"

#define SAVE_EVERY SECONDS(10)
#define FAR_AHEAD HOURS(24)
#define REST HOURS(1)
#define EXPIRE_REST MINUTES(10)
#define TELL SECONDS(60)

static struct key clock_key(void)
{
    return key_name("clock");
}

static int64_t put_right(const struct clock_record *c, int64_t time)
{
    return time >= c->slow_from && time <= c->slow_to ? time + c->slow_by : time;
}

/* It was not used for long, as it seems. */
static void rest(struct spool *sp)
{
    struct clock_record *c = &sp->clock;
    char age[32], still[32], wait[32];

    if (!c->unsure || sp->now - c->unsure > FAR_AHEAD)
        c->rested = 0;
    if (c->rested >= REST)
        return;
    int64_t waits = c->rested < EXPIRE_REST ? EXPIRE_REST - c->rested : 0;
    sp->retain_from = sp->now + REST - c->rested;
    sp->expire_from = sp->now + waits;
    log_info(NULL,
             "last used %s ago: in case that the clock is wrong, nothing is removed for %s, and what has "
             "expired waits for %s",
             text_age(sp->gap_ms, age), text_age(REST - c->rested, still), text_age(waits, wait));
}

static void judge(struct spool *sp)
{
    struct clock_record *c = &sp->clock;
    int64_t latest = c->unsure > c->last ? c->unsure : c->last, back = latest - sp->now;
    char age[32];

    if (put_right(c, latest) - sp->now >= TELL)
        c->slow_by = 0;
    int64_t last = put_right(c, c->last);
    if (back >= SECONDS(1)) {
        sp->set_back_ms = back;
        c->last = last = c->last < sp->now ? c->last : sp->now;
        c->unsure = 0;
        c->back_at = sp->now;
        if (back >= TELL)
            log_warn(
                NULL,
                "the clock stands %s before the time at which this spool was last used; what waits keeps the "
                "rest of its wait; next: date",
                text_age(back, age));
    }
    if (sp->now - last > FAR_AHEAD) {
        sp->gap_ms = sp->now - last;
        rest(sp);
    }
}

/* Read as a walk of one row. Returns 1, 0 or -1. */
static int read_row(struct spool *sp, struct err *e)
{
    struct key lower = clock_key(), upper = key_after_prefix(lower);
    struct db_iter *it = db_iter_new(store_db(sp->store), FAMILY_META, key_slice(&lower), key_slice(&upper));
    bool there = db_iter_valid(it), bad = there && record_clock_decode(db_iter_value(it), &sp->clock) < 0;

    if (db_iter_free(it, e) < 0)
        return -1;
    return bad ? err_set(e, EX_DATAERR, "the record of the clock cannot be decoded") : there;
}

int stepped_load(struct spool *sp)
{
    struct err e = ERR_NONE;

    sp->clock = (struct clock_record){.last = sp->now, .back_at = sp->now};
    int rc = read_row(sp, &e);
    if (rc < 0)
        spool_break(sp, &e);
    else if (rc > 0 && !sp->look)
        judge(sp);
    return rc < 0 ? -1 : 0;
}

static bool rests(const struct spool *sp)
{
    return sp->now < sp->retain_from;
}

void stepped_save(struct spool *sp)
{
    struct key k = clock_key();
    struct buf v = BUF_EMPTY;

    if (!sp->clock_worked || sp->now < sp->clock_saved_at + SAVE_EVERY || !spool_usable(sp))
        return;
    *(rests(sp) ? &sp->clock.unsure : &sp->clock.last) = sp->now;
    if (!rests(sp))
        sp->clock.unsure = 0;
    struct clock_record c = sp->clock; /* in which the run before this one is still that one */
    c.rested = rests(sp) ? c.rested + sp->now - sp->began : 0;
    if (sp->ahead_ms <= -TELL) {
        c.slow_from = sp->began;
        c.slow_to = sp->now + SAVE_EVERY;
        c.slow_by = -sp->ahead_ms;
    }
    record_clock(&v, &c);
    db_put(store_db(sp->store), FAMILY_META, key_slice(&k), buf_slice(&v));
    sp->clock_saved_at = sp->now;
    buf_free(&v);
}

void stepped_close(struct spool *sp)
{
    sp->clock_saved_at = INT64_MIN / 2;
    stepped_save(sp);
}

int64_t stepped_past(const struct spool *sp, int64_t time)
{
    if (time > sp->now)
        return sp->clock.back_at;
    time = put_right(&sp->clock, time);
    return time < sp->now ? time : sp->now; /* by how much was known to some seconds */
}

/* Less what is known to be too much: of this run, all is by the same clock. */
int64_t stepped_age(const struct spool *sp, int64_t time)
{
    int64_t past = stepped_past(sp, time);
    bool before = past < sp->began && sp->ahead_ms > 0;

    return sp->now - past - (before ? sp->ahead_ms : 0);
}

int64_t stepped_age_least(const struct spool *sp, int64_t time)
{
    bool unsure = rests(sp) && stepped_past(sp, time) < sp->began;

    return stepped_age(sp, time) - (unsure ? sp->gap_ms : 0);
}

static bool too_far_ahead(const struct spool *sp)
{
    return sp->ahead_ms > SPOOL_CLOCK_TOO_FAR_MS;
}

bool stepped_rests(const struct spool *sp)
{
    return rests(sp) || too_far_ahead(sp);
}

int64_t stepped_rests_until(const struct spool *sp)
{
    return too_far_ahead(sp) ? TIME_NEVER : sp->retain_from;
}

void spool_clock_ahead(struct spool *sp, int64_t ms)
{
    sp->ahead_ms = ms;
}
