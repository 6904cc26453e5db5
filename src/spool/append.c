/* New events at the end of a box: what accept, replay and import have in common. */
#include <openssl/evp.h>
#include <stdlib.h>

#include "spool/internal.h"

void payload_hash(struct slice payload, unsigned char hash[8])
{
    static EVP_MD *md;
    unsigned char digest[EVP_MAX_MD_SIZE];

    if (!md)
        md = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (!md || EVP_Digest(payload.p ? payload.p : "", payload.n, digest, NULL, md, NULL) != 1)
        abort(); /* no SHA-256: nothing could be told from a duplicate */
    memcpy(hash, digest, 8);
}

static void append_rows(struct spool_box *b, struct event *ev)
{
    ev->seq = b->rec.next_seq++;
    ev->epoch = b->rec.epoch;
    if (!ev->is_call) /* whoever makes a call says where it belongs */
        ev->lane = lane_of(b->rec.order, &ev->place, ev->seq);
    else if (ev->lane.type == LANE_EVENT)
        ev->lane.a = (int64_t)ev->seq;
    row_put_event(b, ev);
    row_put_id(b, ev);
    b->dirty = true;
    b->sp->batch_events++;
}

void append_event(struct spool_box *b, struct event *ev)
{
    if (box_unfinished(b) == 0)
        b->oldest_known = false;
    append_rows(b, ev);
    row_put_fresh_state(b, ev->seq);
    box_add_unfinished(b, ev->epoch); /* first: it says which epoch is open */
    lane_join(b, ev->epoch, ev->lane, ev->seq);
}

void append_ended(struct spool_box *b, struct event *ev, const struct state_record *r)
{
    append_rows(b, ev);
    row_put_state(b, class_of(r->st.state), ev->seq, r);
    retain_note(b, ev->seq, r);
    box_count(b, r->st.state == STATE_DONE ? COUNT_DONE : COUNT_DEAD, 1);
}
