/* Lanes: the head of each is in `due`, those behind it in `order`. */
#include "spool/internal.h"

void lane_schedule(struct spool_box *b, uint32_t epoch, int64_t due, uint64_t seq)
{
    if (epoch != box_open_epoch(b))
        row_put_due(b, DUE_BARRIER, epoch, seq);
    else if (due > b->sp->now)
        row_put_due(b, DUE_RETRY, due, seq);
    else
        row_put_due(b, DUE_READY, 0, seq);
}

void lane_join(struct spool_box *b, uint32_t epoch, struct lane lane, uint64_t seq)
{
    struct lane_record r;
    int there = row_lane(b, epoch, lane, &r);

    if (there < 0)
        return;
    if (there) {
        row_put_order(b, epoch, lane, seq);
        r.tail = seq;
    } else {
        r = (struct lane_record){seq, seq};
        lane_schedule(b, epoch, b->sp->now, seq);
    }
    row_put_lane(b, epoch, lane, &r);
}

/* The first event of the lane behind seq. Returns 1, 0 (none) or -1. */
static int next_in_lane(struct spool_box *b, uint32_t epoch, struct lane lane, uint64_t seq, uint64_t *next)
{
    struct key lower = key_order(b->bot_id, b->which, epoch, lane, seq + 1);
    struct key upper = key_after_prefix(key_lane(b->bot_id, b->which, epoch, lane));
    struct err e = ERR_NONE;
    struct order_key k;
    int found = 0;

    if (!spool_usable(b->sp))
        return -1;
    struct db_iter *it =
        db_iter_new(store_db(b->sp->store), FAMILY_ORDER, key_slice(&lower), key_slice(&upper));
    if (db_iter_valid(it) && key_order_decode(db_iter_key(it), &k) == 0) {
        *next = k.seq;
        found = 1;
    }
    if (db_iter_free(it, &e) < 0) {
        spool_break(b->sp, &e);
        return -1;
    }
    return found;
}

void lane_leave(struct spool_box *b, uint32_t epoch, struct lane lane, uint64_t seq)
{
    struct lane_record r;
    uint64_t next;
    int found = 0;

    if (row_lane(b, epoch, lane, &r) <= 0)
        return;
    if (seq != r.head) { /* discarded while it waited; the tail may stay too high: it is only a bound */
        row_delete(b, FAMILY_ORDER, key_order(b->bot_id, b->which, epoch, lane, seq));
        return;
    }
    if (r.head != r.tail)
        found = next_in_lane(b, epoch, lane, seq, &next);
    if (found < 0)
        return;
    if (!found) {
        row_delete(b, FAMILY_LANES, key_lane(b->bot_id, b->which, epoch, lane));
        return;
    }
    row_delete(b, FAMILY_ORDER, key_order(b->bot_id, b->which, epoch, lane, next));
    r.head = next;
    row_put_lane(b, epoch, lane, &r);
    struct state_record st;
    if (b->rec.serving && row_state(b, CLASS_UNFINISHED, next, &st) > 0 && st.st.state == STATE_PROCESSING)
        row_put_due(b, DUE_LEASE, TIME_NEVER, next); /* served in the same run as the one before it */
    else
        lane_schedule(b, epoch, b->sp->now, next);
}
