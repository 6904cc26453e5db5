/* Calls that go out: appended to the bot's box out, by the batch that completes the event which made them, or by a
 * program. */
#include <stdio.h>

#include "base/random.h"
#include "spool/internal.h"

struct spool_box *box_out_of(struct spool_box *b)
{
    struct spool_box *out = box_find(b->sp, b->bot_id, BOX_OUT);

    if (out)
        return out;
    out = box_new(b->sp, b->bot_id, BOX_OUT);
    snprintf(out->rec.name, sizeof(out->rec.name), "%s", b->rec.name);
    out->dirty = true;
    return out;
}

static void happen_call(struct spool_box *out, enum happening what, const struct event *ev,
                        enum reason reason)
{
    struct spool_happening more = {.lane = ev->lane, .reason = reason};

    memcpy(more.kind, ev->kind, sizeof(more.kind));
    happen(out, what, ev->seq, &more);
}

void call_append(struct spool_box *out, const struct spool_call *call, uint64_t made_by, uint64_t *seq)
{
    struct event ev = {.received_at = out->sp->now,
                       .is_call = true,
                       .once = call->once,
                       .made_by = made_by,
                       .lane = call->lane,
                       .place = {.has_chat = call->has_chat, .chat = call->chat},
                       .payload = call->body};

    snprintf(ev.kind, sizeof(ev.kind), "%s", call->method);
    snprintf(ev.content_type, sizeof(ev.content_type), "%s", call->content_type);
    random_bytes(ev.hash, sizeof(ev.hash)); /* two equal calls are two calls */
    out->rec.last_received_at = out->sp->now;
    box_count(out, COUNT_RECEIVED, 1);
    if (call->refused) {
        struct state_record r = {
            .st = {.state = STATE_DEAD, .reason = REASON_REJECTED, .finished_at = out->sp->now}};
        snprintf(r.st.error, sizeof(r.st.error), "%s", call->refused);
        append_ended(out, &ev, &r);
        box_count(out, COUNT_DEAD_REJECTED, 1);
        happen_call(out, HAPPENED_DEAD, &ev, REASON_REJECTED);
    } else {
        append_event(out, &ev);
        happen_call(out, HAPPENED_ACCEPTED, &ev, REASON_NONE);
    }
    if (seq)
        *seq = ev.seq;
}

/* Keys of calls are a world of their own: a handler may use one text for its event and for the call it makes. */
static enum keyed call_key(struct spool_box *out, struct slice key)
{
    struct buf text = BUF_EMPTY;

    buf_add(&text, "call\0", 5);
    buf_add_slice(&text, key);
    enum keyed k = spool_key(out, buf_slice(&text), 0, 0, NULL);
    buf_free(&text);
    return k;
}

enum accepted spool_append_call(struct spool_box *out, const struct spool_call *call, struct slice key,
                                uint64_t *seq)
{
    if (!spool_usable(out->sp))
        return ACCEPTED_FAILED;
    if (key.n) {
        switch (call_key(out, key)) {
        case KEY_FIRST:
            break;
        case KEY_IS_DONE:
        case KEY_IS_HELD:
            box_count(out, COUNT_DUPLICATES, 1);
            return ACCEPTED_DUPLICATE;
        default:
            return ACCEPTED_FAILED;
        }
    }
    call_append(out, call, 0, seq);
    return spool_usable(out->sp) ? ACCEPTED_NEW : ACCEPTED_FAILED;
}
