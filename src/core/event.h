/* The spool's record of an update (box in) or of a call (box out): what is written once, and its state. */
#ifndef CORE_EVENT_H
#define CORE_EVENT_H

#include "base/buf.h"
#include "base/bytes.h"
#include "core/lane.h"
#include "core/update.h"

enum box { BOX_IN = 0, BOX_OUT = 1 };
enum state { STATE_PENDING, STATE_PROCESSING, STATE_DONE, STATE_DEAD };
enum reason { REASON_NONE, REASON_ATTEMPTS, REASON_REJECTED, REASON_EXPIRED, REASON_DISCARDED };

#define TOKEN_BYTES 16 /* of a lease */
#define ERROR_MAX 512  /* bytes kept of a handler's error text */
#define CLAIMED_BY_MAX 64
#define HISTORY_MAX 8 /* tries remembered, the newest */
#define MARKS_MAX 16  /* idempotency keys that one event may hold */
#define MARK_BYTES 16 /* of the key's hash */
#define CONTENT_TYPE_MAX 256

/* Written once, at arrival. All times are milliseconds since 1970. */
struct event {
    uint64_t seq;
    bool has_update_id;
    int64_t update_id;
    int64_t received_at;
    char kind[UPDATE_KIND_MAX];
    struct update_place place;
    struct lane lane;
    uint32_t epoch;        /* of the `order` option; see doc/format.md, "Barriers" */
    uint64_t replay_of;    /* seq of the original, 0: none */
    unsigned char hash[8]; /* first bytes of the SHA-256 of the payload */
    struct slice payload;  /* borrowed from the record */
    /* of a call (box out): kind is its method, payload its body as it came */
    bool is_call;
    bool once;        /* not sent again when it may have been sent */
    uint64_t made_by; /* seq in box in; 0: by a person or a program */
    char content_type[CONTENT_TYPE_MAX];
};

struct try_record {
    int64_t at;
    unsigned char outcome; /* enum outcome_kind */
    char error[96];
};

struct event_state {
    enum state state;
    enum reason reason;
    uint32_t attempts;
    uint32_t interrupted;
    int64_t next_retry_at; /* 0: none set */
    int64_t claimed_at;    /* of the last claim; 0: never claimed */
    char claimed_by[CLAIMED_BY_MAX];
    bool push; /* held by a deliverer of this process, not by an outside consumer */
    unsigned char token[TOKEN_BYTES];
    int64_t deadline;
    int64_t finished_at;
    uint64_t replayed_as; /* seq of the newest copy; 0: none */
    int64_t served_id;    /* update_id under which the drop-in API handed it out; 0: not by it */
    unsigned char marks[MARKS_MAX][MARK_BYTES]; /* idempotency keys held while in processing */
    size_t n_marks;
    char error[ERROR_MAX + 1];              /* last error, scrubbed of tokens */
    struct try_record history[HISTORY_MAX]; /* oldest first */
    size_t n_history;
};

/* Whether a dead event asks no more of a person: it was replayed or discarded. (Those that
 * version 0.1 discarded do not tell.) */
bool state_is_settled(const struct event_state *st);
/* Whether a person may discard it: it is unfinished, or dead and neither settled nor discarded before. */
bool state_may_discard(const struct event_state *st);

const char *box_name(enum box b);       /* "in", "out" */
const char *state_name(enum state s);   /* "pending", ... */
const char *reason_name(enum reason r); /* "" for none */
int state_from_name(struct slice s, enum state *out);

/* Ids as people see them: BOT/UPDATE_ID, BOT/@SEQ, BOT/out/@SEQ. */
struct event_ref {
    char bot[33];
    enum box box;
    bool by_seq;
    uint64_t seq;
    int64_t update_id;
};

/* Returns 0, or -1 if the text is none of the three. */
int event_ref_parse(struct slice text, struct event_ref *out);
/* BOT/UPDATE_ID where the event has one and is in box in, else by seq. */
void event_ref_text(struct buf *out, const char *bot, enum box box, const struct event *ev);

/* BOTID:UPDATE_ID:HASH8, the idempotency key: HASH8 is 8 hex digits of the payload's hash, UPDATE_ID is "-"
 * where there is none. The same over retries, replay, import and restore. */
#define EVENT_KEY_MAX 64
char *event_key(int64_t bot_id, const struct event *ev, char out[EVENT_KEY_MAX]);

#endif
