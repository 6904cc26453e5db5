/* Keys of the database: fixed width, numbers big-endian (signed ones with the sign bit flipped), so that the
 * order of bytes is the order of numbers. doc/format.md shows each byte. */
#ifndef WIRE_KEYS_H
#define WIRE_KEYS_H

#include "base/bytes.h"
#include "core/event.h"
#include "core/lane.h"

#define KEY_MAX 48

struct key {
    unsigned char b[KEY_MAX];
    size_t n;
};

static inline struct slice key_slice(const struct key *k)
{
    return slice_make(k->b, k->n);
}

/* Classes of `states`. */
enum ended_class { CLASS_UNFINISHED = 0, CLASS_DEAD = 1, CLASS_DONE = 2, CLASSES };

/* Classes of `due`. */
enum due_class {
    DUE_LEASE = 0,  /* time: the deadline of the lease; TIME_NEVER for push */
    DUE_RETRY = 1,  /* time: when it becomes ready */
    DUE_READY = 2,  /* time 0, so by seq */
    DUE_BARRIER = 3 /* time: the epoch whose turn it waits for */
};

struct key key_event(int64_t bot, enum box box, uint64_t seq);
struct key key_state(int64_t bot, enum box box, enum ended_class c, uint64_t seq);
struct key key_lane(int64_t bot, enum box box, uint32_t epoch, struct lane lane);
struct key key_order(int64_t bot, enum box box, uint32_t epoch, struct lane lane, uint64_t seq);
struct key key_due(int64_t bot, enum box box, enum due_class c, int64_t time, uint64_t seq);
/* update_id -1: none. */
struct key key_id(int64_t bot, int64_t update_id, const unsigned char hash[8]);
struct key key_audit(int64_t time, uint32_t number);
int key_audit_decode(struct slice s, int64_t *time);
/* `marks`, of an idempotency key by its hash, and the same by expiry. */
struct key key_mark(int64_t bot, const unsigned char hash[MARK_BYTES]);
struct key key_mark_expiry(int64_t expiry, int64_t bot, const unsigned char hash[MARK_BYTES]);
int key_mark_decode(struct slice s, int64_t *bot, unsigned char hash[MARK_BYTES]);
int key_mark_expiry_decode(struct slice s, int64_t *expiry, int64_t *bot, unsigned char hash[MARK_BYTES]);
struct key key_box(int64_t bot, enum box box);      /* meta: the box's record */
struct key key_position(int64_t bot);               /* meta: where polling stands */
struct key key_note(int64_t bot, const char *name); /* meta: a note about a bot */
struct key key_name(const char *name);              /* meta: anything else */

/* The key just above every key that starts with k (adds one to its last byte that is not 0xff). */
struct key key_after_prefix(struct key k);

/* Decoders: -1 if the key has not the width of its family. */
struct due_key {
    int64_t bot;
    enum box box;
    enum due_class class;
    int64_t time;
    uint64_t seq;
};
int key_due_decode(struct slice s, struct due_key *out);
struct order_key {
    int64_t bot;
    enum box box;
    uint32_t epoch;
    struct lane lane;
    uint64_t seq; /* not of a lane's key */
};
int key_order_decode(struct slice s, struct order_key *out);
int key_lane_decode(struct slice s, struct order_key *out);
struct state_key {
    int64_t bot;
    enum box box;
    enum ended_class class; /* not of an event's key */
    uint64_t seq;
};
int key_state_decode(struct slice s, struct state_key *out);
int key_event_decode(struct slice s, struct state_key *out);
int key_box_decode(struct slice s, int64_t *bot, enum box *box);
int key_id_decode(struct slice s, int64_t *bot, int64_t *update_id, unsigned char hash[8]);

#endif
