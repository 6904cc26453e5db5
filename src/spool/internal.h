/* What the files of this room share: the spool, its boxes, and typed access to the rows of the database. Not
 * for other rooms. */
#ifndef SPOOL_INTERNAL_H
#define SPOOL_INTERNAL_H

#include "base/clock.h"
#include "base/list.h"
#include "core/histogram.h"
#include "spool/spool.h"
#include "store/commit.h"
#include "wire/keys.h"
#include "wire/records.h"

#define WORK_PER_TICK 200 /* reaped, expired, woken, released events, together */
#define BATCH_EVENTS 1000
#define BATCH_BYTES (4u << 20)
#define LEASE_MAX_MS HOURS(12)
#define REAP_GRACE_MS SECONDS(30) /* after an open, for consumers that come back */

/* A claim that was handed over and has no outcome yet: what `tail` shows of it later. */
struct held {
    struct list link;
    uint64_t seq;
    bool push;
    unsigned char token[TOKEN_BYTES];
    bool has_update_id;
    int64_t update_id;
    char kind[UPDATE_KIND_MAX];
};

/* A run of events of which nothing is left: [from, to). */
struct retain_run {
    uint64_t before; /* where the run whose range was deleted last began; from: there was none */
    uint64_t from, to;
    unsigned rows; /* removed in it */
    int64_t at;    /* when it began */
};

/* How far retention is with a class. */
struct retain_front {
    uint64_t from; /* a lower bound, as below */
    int64_t at;    /* when to look; TIME_NEVER: the class is empty */
    struct retain_run run;
};

struct spool_box {
    struct list link; /* spool.boxes, by bot id and box */
    struct spool *sp;
    int64_t bot_id;
    enum box which;
    bool attached;
    bool draft;                  /* of spool_prepare: not there yet */
    char name[BOT_NAME_MAX + 1]; /* of the config's section, while attached */
    struct spool_policy policy;
    struct box_record rec; /* persistent; written with the batch if dirty */
    bool dirty;
    struct breaker breaker;
    struct list held;
    struct histogram handler_ms;
    bool
        after_restore; /* the newest update is the first since a restore, which told what is missing before it */

    /* Lower bounds, so that a scan does not cross the graves of what is gone. Only hints: 0 is always right.
     */
    int64_t due_from[2], next_due[2]; /* of DUE_LEASE and DUE_RETRY: where to scan, when to look */
    uint64_t ready_from;
    bool maybe_ready;
    uint64_t oldest_from;
    int64_t oldest_at; /* since when the event at oldest_from waits */
    bool oldest_known;
    struct {
        uint64_t first, last;
        int64_t at;
    } copies; /* the oldest that a person made in this process and that may wait still: from when on */
    struct spool_restored restored;
    bool restored_known;
    struct retain_front retain[CLASSES]; /* of the ended classes */
    /* work that goes on over ticks */
    bool releasing; /* push claims of a dead process, from release_from on */
    uint64_t release_from;
    bool cutting;        /* deadlines too far ahead, after a step of the wall clock, */
    int64_t cut_time[2]; /* on from here: of DUE_LEASE and DUE_RETRY */
    uint64_t cut_seq[2];
    bool lifting;   /* a barrier fell: heads of the next epoch become ready */
    bool unserving; /* served events are let go: their deliverer is another now */
    uint64_t unserve_from;
};

/* A claim in the open batch. */
struct claiming {
    struct list link; /* spool.claiming */
    struct claim *claim;
    spool_claim_fn *fn; /* NULL: its owner went away */
    void *arg;
    bool discarded; /* the event was, meanwhile */
};

/* An outcome that is not known to be durable. */
struct remembered {
    struct list link; /* spool.remembered, or spool.again */
    struct spool_box *box;
    uint64_t seq;
    unsigned char token[TOKEN_BYTES];
    enum outcome_kind kind;
    int64_t after_ms;
    struct buf error;
    struct extras *extras; /* owned; NULL: none */
};

struct spool {
    struct store *store;
    bool look; /* only looked at: nothing is put */
    struct identity_record identity;
    bool identity_new;      /* not written yet */
    int64_t now, opened_at; /* opened_at: of the last (re)open */
    /* steps of the wall clock */
    struct clock_record clock;
    bool clock_worked;
    int64_t clock_saved_at, began; /* began: of this run */
    int64_t ahead_ms;              /* of the machine's clock, as was seen; below 0: behind it */
    int64_t set_back_ms;           /* by so much, between the run before and this one; 0: not so */
    int64_t gap_ms; /* so long it was not used before this run, if the clock is right; 0: not very long */
    int64_t retain_from; /* retention rests until then, */
    int64_t expire_from; /* and what only that gap makes too old waits until then */
    struct list boxes, claiming, remembered, again;
    bool broken; /* a read failed in this tick: spool_commit fails the store */
    struct err broken_why;
    char held_why[200]; /* "": not held */
    bool was_failed;
    unsigned work_left, expire_left; /* of this tick */
    uint64_t batch_events;
    uint32_t audit_number;
    int64_t marks_from, marks_due; /* expiry of keys: where to scan, when to look */
    struct spool_happening *happened;
    size_t n_happened, cap_happened;
    spool_happened_fn *watcher;
    void *watcher_arg;
    uint64_t events_committed;
    struct histogram commit_events;
    /* retention */
    bool retaining;
    struct spool_retention retention;
    int64_t audit_at; /* when to look at the audit log */
    uint64_t removed, archived;
    spool_archive_fn *archive_fn;
    void *archive_arg;
    struct retain_slice *slice; /* under way to the archive; NULL: none */
    unsigned archive_failures;
    int64_t archive_failing_since, archive_retry_at, archive_warn_at; /* 0: works */
    struct err archive_why;
};

/* ---- rows.c: typed access. Reads return 1, 0 (no such row) or -1 (the store is broken); writes to a broken
 * store do nothing.
 * ------------------------------------------------------------------------------------------------------- */

bool spool_usable(const struct spool *sp);
void spool_break(struct spool *sp, const struct err *e); /* a read failed, or a record cannot be decoded */

/* The one way to a row by its key; val may be NULL. */
int row_get(struct spool *sp, enum family f, struct key key, struct buf *val);
int row_event(struct spool_box *b, uint64_t seq, struct event *ev, struct buf *record);
void row_put_event(struct spool_box *b, const struct event *ev);
int row_state(struct spool_box *b, enum ended_class c, uint64_t seq, struct state_record *out);
void row_put_state(struct spool_box *b, enum ended_class c, uint64_t seq, const struct state_record *r);
void row_put_fresh_state(struct spool_box *b, uint64_t seq);
/* The state whatever its class. */
int row_find_state(struct spool_box *b, uint64_t seq, enum ended_class *c, struct state_record *out);
int row_lane(struct spool_box *b, uint32_t epoch, struct lane lane, struct lane_record *out);
void row_put_lane(struct spool_box *b, uint32_t epoch, struct lane lane, const struct lane_record *r);
int row_id(struct spool_box *b, const struct event *ev, uint64_t *seq);
void row_put_id(struct spool_box *b, const struct event *ev);
void row_delete_id(struct spool_box *b, const struct event *ev);
void row_put_due(struct spool_box *b, enum due_class c, int64_t time, uint64_t seq);
void row_put_order(struct spool_box *b, uint32_t epoch, struct lane lane, uint64_t seq);
void row_delete(struct spool_box *b, enum family f, struct key key);
void row_put_audit(struct spool_box *b, const char *act, const char *who, uint64_t seq, uint64_t copy);
enum ended_class class_of(enum state s);
/* A row that is damaged: breaks the spool. Returns -1. */
int row_undecodable(struct spool_box *b, enum family f, uint64_t seq);

/* Calls fn for the rows of one class of `states`, from a seq on and below `until`, until it returns false. Nothing may
 * be put or deleted in it. Returns 0 or -1. */
typedef bool state_row_fn(void *arg, uint64_t seq, struct slice value);
int rows_states(struct spool_box *b, enum ended_class c, uint64_t from, uint64_t until, state_row_fn *fn,
                void *arg);

/* Collects up to max keys' (time, seq) of one class of `due` from a key on, times up to `until`. Returns how
 * many, or -1. next (may be NULL): the time of the first one left out because it is later or behind max;
 * TIME_NEVER if none. */
struct due_item {
    int64_t time;
    uint64_t seq;
};
int rows_due(struct spool_box *b, enum due_class c, int64_t from_time, uint64_t from_seq, int64_t until,
             unsigned max, struct due_item *out, int64_t *next);

/* ---- spool.c ------------------------------------------------------------------------------------ */

/* The end of a tick, and the begin of another, for who has no loop: waits until all of it is written, and synced
 * if anything has to be. */
void commit_and_wait(struct spool *sp);

/* ---- box.c -------------------------------------------------------------------------------------- */

struct spool_box *box_find(struct spool *sp, int64_t bot_id, enum box which);
struct spool_box *box_new(struct spool *sp, int64_t bot_id, enum box which);
void box_free(struct spool_box *b);
/* (Re)reads every box from the store. Returns 0 or -1. */
int boxes_load(struct spool *sp);
/* Puts the records of changed boxes into the batch. */
void boxes_save(struct spool *sp);
void box_count(struct spool_box *b, enum box_counter c, int64_t by);
uint64_t box_unfinished(const struct spool_box *b);
uint32_t box_open_epoch(const struct spool_box *b); /* events of later epochs wait */
void box_add_unfinished(struct spool_box *b, uint32_t epoch);
void box_sub_unfinished(struct spool_box *b, uint32_t epoch);

/* ---- identity.c --------------------------------------------------------------------------------- */

int identity_load(struct spool *sp);   /* 0 or -1 */
void identity_save(struct spool *sp);  /* with the open batch */
void identity_renew(struct spool *sp); /* a new generation, with the open batch */

/* ---- stepped.c ---------------------------------------------------------------------------------- */

int stepped_load(struct spool *sp); /* 0 or -1 */
/* Keeps the time with the open batch, in which there is something else; not before the first spool_work, which goes by what
 * was kept. */
void stepped_save(struct spool *sp);
void stepped_close(struct spool *sp);
/* A time of the past, put right as far as is known: of a run whose time was behind, by how much; one that lies ahead, since
 * the clock was set back, is taken for when that was seen. */
int64_t stepped_past(const struct spool *sp, int64_t time);
/* Since when it is that time at the most, in ms, and at the least: between the two lies what the clock may be wrong by. */
int64_t stepped_age(const struct spool *sp, int64_t time);
int64_t stepped_age_least(const struct spool *sp, int64_t time);
/* Whether the time is not sure enough to remove by it; until when, as far as is known (TIME_NEVER). */
bool stepped_rests(const struct spool *sp);
int64_t stepped_rests_until(const struct spool *sp);

/* ---- migrate.c ---------------------------------------------------------------------------------- */

/* Brings rows of an older schema to ours. Returns 0, or -1: broken_why tells. */
int migrate(struct spool *sp);

/* ---- restored.c --------------------------------------------------------------------------------- */

void restored_saw(struct spool_box *b,
                  int64_t update_id); /* a new update: the first one tells what is missing */

/* ---- work.c ------------------------------------------------------------------------------------- */

/* Releases what is held, by whomever, at most 200. Returns whether there was any. */
bool release_any(struct spool_box *b);

/* ---- claim.c ------------------------------------------------------------------------------------ */

/* Whether the event is older than `expire` allows. MAYBE: if the clock is right, which sp->expire_from shows. */
enum expired { EXPIRED_NOT, EXPIRED_MAYBE, EXPIRED };
enum expired has_expired(const struct spool_box *b, const struct event *ev);
/* The event was discarded: if its claim is still on its way, nobody gets it. */
void claim_stop(struct spool_box *b, uint64_t seq);

/* ---- lanes.c ------------------------------------------------------------------------------------ */

/* Adds an event at the tail of its lane. */
void lane_join(struct spool_box *b, uint32_t epoch, struct lane lane, uint64_t seq);
/* Takes an event that ended out of its lane (its due entry is gone already); the next one becomes the head.
 */
void lane_leave(struct spool_box *b, uint32_t epoch, struct lane lane, uint64_t seq);
/* Makes a head claimable at `due` (at or before now: at once). */
void lane_schedule(struct spool_box *b, uint32_t epoch, int64_t due, uint64_t seq);

/* ---- append.c ----------------------------------------------------------------------------------- */

/* Stores a new unfinished event at its lane's tail: gives it seq, epoch and lane. */
void append_event(struct spool_box *b, struct event *ev);
/* Stores an event that has ended already, in no lane: gives it a seq. */
void append_ended(struct spool_box *b, struct event *ev, const struct state_record *r);
void payload_hash(struct slice payload, unsigned char hash[8]);

/* ---- finish.c ----------------------------------------------------------------------------------- */

/* Where the event's due entry is when its try ends. */
enum due_place { AT_LEASE, AT_READY, AT_ANY /* look everywhere; or it is no head */ };

/* Applies an outcome to an unfinished event: the only way into another state. r is its state (changed); lane
 * known. */
/* Remembers how a try ended, or a discard; st->error is o's text. */
void history_add(struct event_state *st, const struct outcome *o, int64_t now);
void finish_try(struct spool_box *b, uint64_t seq, struct state_record *r, const struct outcome *o,
                enum due_place place);
/* Fills lane and epoch of a state that does not have them, from the event. Returns 0 or -1. */
int state_need_lane(struct spool_box *b, uint64_t seq, struct state_record *r);
void happen(struct spool_box *b, enum happening what, uint64_t seq, const struct spool_happening *more);
struct held *held_find(struct spool_box *b, uint64_t seq);
void held_free(struct held *h); /* NULL: nothing */

/* ---- remember.c --------------------------------------------------------------------------------- */

/* An owned copy of what a success records. */
struct extras;
struct extras *extras_copy(const struct spool_extras *e); /* NULL for NULL or nothing in it */
void extras_free(struct extras *x);

/* Keeps an outcome until it is known durable. Takes extras. */
void remember(struct spool_box *b, uint64_t seq, const unsigned char token[TOKEN_BYTES],
              const struct outcome *o, struct extras *extras, bool applied);
/* After a reopen: applies what was not durable. */
void remembered_apply(struct spool *sp);
void remembered_free(struct spool *sp);
/* The state of an event that is held by this token, lane known. */
enum completed held_state(struct spool_box *b, uint64_t seq, const unsigned char token[TOKEN_BYTES],
                          struct state_record *r);

/* ---- marks.c ------------------------------------------------------------------------------------ */

/* Puts a mark, and the row of its expiry if it is done. */
void mark_put(struct spool *sp, int64_t bot, const unsigned char hash[MARK_BYTES], const struct mark_record *r);

/* The keys that an event holds become done, or are let go. */
void marks_settle(struct spool_box *b, uint64_t seq, struct event_state *st, bool done);
void mark_done(struct spool_box *b, struct slice key, int64_t ttl_ms, uint64_t seq);
/* Forgets keys whose time is up; part of the tick's work. */
void marks_expire(struct spool *sp);

/* ---- calls.c ------------------------------------------------------------------------------------ */

/* Appends a call to the bot's box out (made if it is not there). */
void call_append(struct spool_box *out, const struct spool_call *call, uint64_t made_by, uint64_t *seq);
struct spool_box *box_out_of(struct spool_box *b);

/* ---- retain.c, retain_archive.c ----------------------------------------------------------------- */

/* An event has ended. */
void retain_note(struct spool_box *b, uint64_t seq, const struct state_record *r);
/* Nothing is known of the box's ended events. */
void retain_reset(struct spool_box *b);
/* Part of the tick's work, behind all that is due by itself. */
void retain_work(struct spool *sp);
int64_t retain_deadline(const struct spool *sp);
void retain_free(struct spool *sp);

/* ---- serve.c ------------------------------------------------------------------------------------ */

/* Lets go what was served and not confirmed, in slices. */
void unserve(struct spool_box *b);

#endif
