/* Accept: an update comes in, once. */
#include "spool/internal.h"

/* What cannot be handed to a handler is kept for a person to see. */
static void accept_dead(struct spool_box *b, struct event *ev, const char *why)
{
    struct state_record r = {
        .st = {.state = STATE_DEAD, .reason = REASON_REJECTED, .finished_at = b->sp->now}};

    strncpy(r.st.error, why, sizeof(r.st.error) - 1);
    append_ended(b, ev, &r);
    box_count(b, COUNT_DEAD_REJECTED, 1);
    happen(b, HAPPENED_DEAD, ev->seq,
           &(struct spool_happening){.has_update_id = ev->has_update_id,
                                     .update_id = ev->update_id,
                                     .lane = ev->lane,
                                     .reason = REASON_REJECTED});
}

enum accepted spool_accept(struct spool_box *b, const struct update *u, bool broken, uint64_t *seq)
{
    struct event ev = {.has_update_id = u->has_id,
                       .update_id = u->has_id ? u->id : 0,
                       .received_at = b->sp->now,
                       .place = u->place,
                       .payload = u->bytes};
    uint64_t known = 0;

    if (!spool_usable(b->sp))
        return ACCEPTED_FAILED;
    memcpy(ev.kind, u->kind, sizeof(ev.kind));
    payload_hash(u->bytes, ev.hash);
    int there = row_id(b, &ev, &known);
    if (there < 0)
        return ACCEPTED_FAILED;
    if (there) {
        box_count(b, COUNT_DUPLICATES, 1);
        if (seq)
            *seq = known;
        return ACCEPTED_DUPLICATE;
    }
    b->after_restore = false;
    if (ev.has_update_id)
        restored_saw(b, ev.update_id);
    b->rec.last_received_at = b->sp->now;
    box_count(b, COUNT_RECEIVED, 1);
    if (broken) {
        accept_dead(b, &ev, "the update is not valid JSON");
    } else if (!ev.has_update_id) {
        accept_dead(b, &ev, "the update has no update_id");
    } else {
        append_event(b, &ev);
        struct spool_happening more = {.has_update_id = true, .update_id = ev.update_id, .lane = ev.lane};
        memcpy(more.kind, ev.kind, sizeof(more.kind));
        happen(b, HAPPENED_ACCEPTED, ev.seq, &more);
    }
    if (seq)
        *seq = ev.seq;
    return spool_usable(b->sp) ? ACCEPTED_NEW : ACCEPTED_FAILED;
}

bool spool_count_gap(struct spool_box *b, int64_t missing)
{
    if (missing <= 0 || b->after_restore)
        return false;
    box_count(b, COUNT_GAPS, missing);
    return true;
}

#define NEWEST_LOOK 32          /* webhooks come out of order: the highest is among so many, ... */
#define NEWEST_WITHIN HOURS(24) /* ... that came so close together, as Telegram delivers no later */

void spool_newest_update(struct spool_box *b, int64_t *next, int64_t *at)
{
    struct buf record = BUF_EMPTY;
    struct event ev;
    bool newest = false; /* the one that came last is among them; else what was imported hides it */

    *next = *at = 0;
    for (uint64_t seq = b->rec.next_seq - 1, n = 0; seq > 0 && n < NEWEST_LOOK && spool_usable(b->sp);
         seq--, n++) {
        buf_clear(&record);
        if (row_event(b, seq, &ev, &record) <= 0 || !ev.has_update_id || ev.replay_of ||
            ev.received_at < b->rec.last_received_at - NEWEST_WITHIN)
            continue;
        newest |= ev.received_at == b->rec.last_received_at;
        if (ev.update_id >= *next && ev.update_id < INT64_MAX)
            *next = ev.update_id + 1;
    }
    buf_free(&record);
    if (newest)
        *at = b->rec.last_received_at;
    else
        *next = 0;
}

void spool_set_position(struct spool_box *b, const struct poll_position *p)
{
    struct position_record r = {.offset = p->offset, .newest_update_at = p->newest_update_at};
    struct key k = key_position(b->bot_id);
    struct buf v = BUF_EMPTY;

    if (!spool_usable(b->sp))
        return;
    memcpy(r.api_root, p->api_root, sizeof(r.api_root));
    record_position(&v, &r);
    db_put(store_db(b->sp->store), FAMILY_META, key_slice(&k), buf_slice(&v));
    buf_free(&v);
}

void spool_get_position(struct spool_box *b, struct poll_position *out)
{
    struct position_record r = {.offset = 0};
    struct buf v = BUF_EMPTY;

    memset(out, 0, sizeof(*out));
    if (row_get(b->sp, FAMILY_META, key_position(b->bot_id), &v) > 0 &&
        record_position_decode(buf_slice(&v), &r) == 0) {
        memcpy(out->api_root, r.api_root, sizeof(out->api_root));
        out->offset = r.offset;
        out->newest_update_at = r.newest_update_at;
    }
    buf_free(&v);
}
