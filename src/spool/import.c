/* Import: exported events come back, each once. */
#include "spool/internal.h"

enum imported spool_import(struct spool_box *b, const struct event *exported, const struct event_state *st)
{
    struct event ev = *exported;
    uint64_t known;

    if (!spool_usable(b->sp))
        return IMPORT_FAILED;
    if (!ev.is_call)
        payload_hash(ev.payload, ev.hash);
    ev.made_by = 0;
    ev.replay_of = 0; /* seqs of another spool mean nothing here, nor does that of the maker */
    int there = row_id(b, &ev, &known);
    if (there < 0)
        return IMPORT_FAILED;
    if (there)
        return IMPORT_KNOWN;
    if (st->state == STATE_DONE || st->state == STATE_DEAD) {
        struct state_record r = {.st = *st, .imported_at = b->sp->now};
        r.st.replayed_as = 0;
        r.st.push = false;
        append_ended(b, &ev, &r);
        if (state_is_settled(&r.st))
            box_count(b, COUNT_DEAD_SETTLED, 1);
    } else {
        append_event(b, &ev);
    }
    return spool_usable(b->sp) ? IMPORT_NEW : IMPORT_FAILED;
}
