/* Values of the database: explicitly encoded, each with a version in front, documented to the byte in
 * doc/format.md. Encoders append to a buffer; decoders return 0, or -1 for bytes that are no such record
 * (never reading past them). */
#ifndef WIRE_RECORDS_H
#define WIRE_RECORDS_H

#include "base/buf.h"
#include "core/breaker.h"
#include "core/event.h"

/* `events`. The seq is in the key: the decoder leaves it alone. The decoded payload borrows from s. */
void record_event(struct buf *out, const struct event *ev);
int record_event_decode(struct slice s, struct event *ev);

/* `states`, with the lane, so that a completion need not read the event. An empty value is the state of an
 * event that was never tried: pending, all zero, lane not known. */
struct state_record {
    struct event_state st;
    bool has_lane;
    uint32_t epoch;
    struct lane lane;
    uint64_t calls_from; /* of a done event: the first of the calls in box out that it made, */
    uint32_t n_calls;    /* which have seqs in a row */
    int64_t imported_at; /* of one that had ended when it was imported; 0: not so */
};
void record_state(struct buf *out, const struct state_record *r);
int record_state_decode(struct slice s, struct state_record *r);

/* `lanes`. */
struct lane_record {
    uint64_t head, tail;
};
void record_lane(struct buf *out, const struct lane_record *r);
int record_lane_decode(struct slice s, struct lane_record *r);

/* meta, of a box: everything about it that changes with its events. */
enum box_counter {
    COUNT_PROCESSING,
    COUNT_DONE,
    COUNT_DEAD,
    COUNT_RECEIVED,
    COUNT_DUPLICATES,
    COUNT_DELIVERED,
    COUNT_RETRIES,
    COUNT_FAILURES,
    COUNT_LEASE_EXPIRED,
    COUNT_DEAD_ATTEMPTS,
    COUNT_DEAD_REJECTED,
    COUNT_DEAD_EXPIRED,
    COUNT_DEAD_DISCARDED,
    COUNT_DEAD_SETTLED, /* now dead, and replayed or discarded since */
    COUNT_GAPS,         /* updates that Telegram dropped before they came */
    COUNTERS
};
struct epoch_count {
    uint32_t epoch;
    uint64_t unfinished;
};
struct box_record {
    char name[33];
    uint64_t next_seq;
    enum order order;
    uint32_t epoch;             /* of the order in force */
    struct epoch_count *epochs; /* owned; ascending; those with unfinished events */
    size_t n_epochs;
    uint64_t counters[COUNTERS];
    int64_t last_received_at;
    bool paused_intake, paused_deliver;
    bool breaker_open;
    enum breaker_cause breaker_cause;
    int64_t breaker_since;
    uint32_t breaker_probes;
    bool serving;           /* the drop-in API hands its events out, or did and may hold some */
    int64_t last_served_id; /* 0: none yet */
};
void record_box(struct buf *out, const struct box_record *r);
/* r->epochs is to be freed by the caller. */
int record_box_decode(struct slice s, struct box_record *r);

/* meta, where polling stands. */
struct position_record {
    char api_root[256];
    int64_t offset, newest_update_at;
};
void record_position(struct buf *out, const struct position_record *r);
int record_position_decode(struct slice s, struct position_record *r);

/* meta, who this spool is. */
struct identity_record {
    unsigned char instance[16]; /* random; stays over restore and repair */
    uint64_t generation;        /* only grows; new whenever the spool is made, restored or repaired */
};
void record_identity(struct buf *out, const struct identity_record *r);
int record_identity_decode(struct slice s, struct identity_record *r);

/* meta, by which steps of the wall clock are seen. */
struct clock_record {
    int64_t last;    /* when something was last written, to 10 s */
    int64_t unsure;  /* the same, later, while the clock might be wrong; 0: it was not */
    int64_t back_at; /* the latest open at which the clock had been set back, else the first */
    int64_t slow_from, slow_to, slow_by; /* the latest run in which the time was behind by so much, as was seen */
    int64_t rested; /* how long runs lasted, since the clock might be wrong; 0: it might not */
};
void record_clock(struct buf *out, const struct clock_record *r);
/* Of a shorter row, as they were before, the last fields are 0. */
int record_clock_decode(struct slice s, struct clock_record *r);

/* `audit`. */
struct audit_record {
    char who[64], act[32];
    int64_t bot;
    enum box box;
    uint64_t seq;
    uint64_t copy; /* of a replay; 0: none */
};
void record_audit(struct buf *out, const struct audit_record *r);
int record_audit_decode(struct slice s, struct audit_record *r);

/* `marks`: an idempotency key. */
struct mark_record {
    bool done;           /* else held by an event in processing */
    int64_t expiry, ttl; /* expiry: of a done one */
    enum box box;
    uint64_t seq; /* of the event; 0: recorded without one */
};
void record_mark(struct buf *out, const struct mark_record *r);
int record_mark_decode(struct slice s, struct mark_record *r);

/* A bare number (`ids`: the seq; meta/schema). */
void record_u64(struct buf *out, uint64_t v);
int record_u64_decode(struct slice s, uint64_t *v);

#endif
