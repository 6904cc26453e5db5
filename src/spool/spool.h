/* The spool: what happens to events between their arrival and their end. It knows no loop, no socket and no
 * clock: it is given `now` (milliseconds since 1970, never stepping back), and says when it wants to be
 * called next.
 *
 * A tick, as the daemon (or a test) drives it:
 *     spool_begin(sp, now);        reads from here on see the time `now`
 *     ... accept, complete, extend, replay, ... by whoever has something
 *     spool_work(sp);              due work: reaping, retries, barriers, retention
 *     ... spool_claim by whoever has a free slot
 *     spool_commit(sp);            one write, one sync if needed, then the callbacks
 *     wake up at spool_next_deadline(sp) at the latest
 * All reads of a tick see what the tick has written so far. Callbacks run inside spool_commit; they may call
 * any verb (which opens the next batch) but spool_commit itself.
 */
#ifndef SPOOL_SPOOL_H
#define SPOOL_SPOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/config.h"
#include "core/event.h"
#include "core/histogram.h"
#include "core/outcome.h"
#include "core/update.h"

struct spool;
struct spool_box; /* one bot's box: owned by the spool, valid until spool_close */

/* ---- opening ------------------------------------------------------------------------------------ */

struct spool_options {
    const char *dir; /* made (0700) if missing; must be empty or a spool */
    int64_t cache_bytes;
    enum sync_mode sync;
    int64_t sync_ms;
};

/* Opens and locks the directory. Everything that push deliverers of a dead process held is released (at most
 * 200 a tick, the rest by spool_work). On failure NULL and e: EX_TEMPFAIL if another process holds it (its
 * pid is named), EX_CONFIG for a newer schema or a foreign directory, EX_IOERR or EX_DATAERR (corruption)
 * otherwise. */
struct spool *spool_open(const struct spool_options *options, int64_t now, struct err *e);
/* Opens a checkpoint, a backup, or a spool whose lock the caller has, only to look at it: nothing is written, and no
 * verb but those of looking may be used. Of options dir and cache count. */
struct spool *spool_look(const struct spool_options *options, int64_t now, struct err *e);
/* Commits what is open and closes. Callbacks not yet run are run with ok = false. */
void spool_close(struct spool *sp);

/* Who it is: an instance (32 hex digits) that stays, and a generation that only grows and is new whenever the spool was
 * made, restored or repaired. */
void spool_identity(const struct spool *sp, char instance[33], uint64_t *generation);

/* ---- the tick ----------------------------------------------------------------------------------- */

void spool_begin(struct spool *sp, int64_t now);
void spool_work(struct spool *sp);
/* Writes the batch, syncs if anything in it must be durable (see sync), runs the callbacks. After a failed
 * write it closes the store and reopens it with backoff in later calls; see spool_healthy. */
void spool_commit(struct spool *sp);
bool spool_batch_full(const struct spool *sp);       /* 1,000 events or 4 MiB: commit before adding more */
int64_t spool_next_deadline(const struct spool *sp); /* TIME_NEVER: nothing to wait for */
/* While false, verbs fail or answer nothing; claims, leases and time stand still. why (may be NULL) gets a
 * sentence. */
bool spool_healthy(const struct spool *sp, char why[256]);
/* The same in more words. why (may be NULL) gets a sentence for all but SPOOL_OK. */
enum spool_health {
    SPOOL_OK,
    SPOOL_STALLED, /* RocksDB cannot keep up: intake waits, nothing is lost; it counts as healthy */
    SPOOL_FAILED,  /* a write or read failed, or the disk is full: it is opened again with backoff */
    SPOOL_CORRUPT  /* damage was read: it stays closed until a restart, and the directory as it is */
};
enum spool_health spool_health(const struct spool *sp, char why[256]);
const char *spool_health_name(enum spool_health h); /* "ok", "stalled", "failed", "corrupt" */

/* While there is no room, nothing new is to be taken in: intake and whoever brings calls or imports ask first. What is
 * accepted all the same is kept; claims and completions go on. why: a sentence, copied; NULL ends it. Lasts as long as
 * the process. */
void spool_hold(struct spool *sp, const char *why);
const char *spool_held(const struct spool *sp); /* why; NULL: it is not */

/* Called once when everything that was put into the open batch so far is written (and synced, as the options
 * say), or was lost (ok = false). */
typedef void spool_done_fn(void *arg, bool ok);
void spool_on_written(struct spool *sp, spool_done_fn *fn, void *arg);
/* The same, and the batch must be synced before. */
void spool_on_durable(struct spool *sp, spool_done_fn *fn, void *arg);
/* Forgets every callback with this arg that has not run yet: for an owner that goes away. */
void spool_forget(struct spool *sp, void *arg);

/* ---- boxes -------------------------------------------------------------------------------------- */

struct spool_policy {
    enum order order;
    struct outcome_policy outcome;
    int64_t lease_ms;
    unsigned concurrency;
    bool serve; /* by spool_serve: nothing is claimed; what it holds is let go when this becomes false */
    enum expire_mode expire;
    struct expire_rule expire_rules[EXPIRE_KINDS_MAX];
    size_t n_expire_rules;
};

void spool_policy_from(const struct bot_config *bot, struct spool_policy *out);
/* Of its box out. */
#define SPOOL_CALL_CONCURRENCY 4
#define SPOOL_CALL_LEASE_MS 120000 /* a file of 8 MiB on a slow line takes its time */
void spool_policy_calls(const struct bot_config *bot, struct spool_policy *out);

/* The box of a bot, made if it is not there. name: the config's section; shown. Calling it again renames it
 * and sets the policy (a changed order takes effect by a barrier). policy NULL: leave the policy. */
struct spool_box *spool_attach(struct spool *sp, int64_t bot_id, enum box box, const char *name,
                               const struct spool_policy *policy);
/* The same box, for parts that are made on it before it is known whether they will be used: nothing of it changes,
 * and what is new stays in memory until spool_attach. Else spool_unprepare. */
struct spool_box *spool_prepare(struct spool *sp, int64_t bot_id, enum box box);
void spool_unprepare(struct spool_box *b);
void spool_detach(struct spool_box *b); /* its bot left the config: kept, shown as orphan, not claimed from */
struct spool_box *spool_find_box(struct spool *sp, const char *bot, enum box box); /* NULL: none */
/* All boxes, one by one: NULL starts, NULL ends. */
struct spool_box *spool_next_box(struct spool *sp, struct spool_box *b);
const char *spool_box_bot(const struct spool_box *b);
int64_t spool_box_bot_id(const struct spool_box *b);
enum box spool_box_which(const struct spool_box *b);
uint64_t spool_box_next_seq(const struct spool_box *b);
struct spool *spool_of(struct spool_box *b);

struct spool_counts {
    uint64_t pending, processing, done, dead; /* now in each state */
    uint64_t dead_settled;                    /* of the dead: those that were replayed or discarded since */
    uint64_t received, duplicates, delivered, retries; /* since the spool was made */
    uint64_t failures, lease_expired;
    uint64_t gaps; /* updates that Telegram dropped before they came, likewise */
    uint64_t dead_by_reason[REASON_DISCARDED + 1];
};

struct spool_box_status {
    struct spool_counts counts;
    /* Since when the oldest unfinished event waits: its arrival; of a copy, its replay, or the start of this process if that
     * was later. 0: none. */
    int64_t oldest_unfinished_at;
    int64_t last_received_at; /* 0: never */
    bool orphan, paused_intake, paused_deliver;
    struct breaker breaker;
    bool behind_barrier; /* a changed order waits for older events to end */
};

void spool_box_status(struct spool_box *b, struct spool_box_status *out); /* O(1) */
/* How long its handlers took, in milliseconds from claim to outcome, since the start: of what ended well, badly, or with
 * its lease. */
const struct histogram *spool_handler_ms(const struct spool_box *b);
/* Its deliverer is another one now: an open breaker may try it at once, unless it waits for a time that was given. */
void spool_probe_now(struct spool_box *b);
/* Durable with the batch. what: "intake" or "deliver". */
void spool_pause(struct spool_box *b, bool intake, bool paused);

/* ---- intake ------------------------------------------------------------------------------------- */

enum accepted { ACCEPTED_NEW, ACCEPTED_DUPLICATE, ACCEPTED_FAILED /* store unhealthy */ };

/* Adds an update to the batch, or finds that it is there already. One without id is stored dead, `rejected`
 * (under its hash), as is one whose bytes are not JSON (give it with kind "" and has_id as guessed, and
 * broken = true). Durable when spool_on_durable says so. seq may be NULL. */
enum accepted spool_accept(struct spool_box *b, const struct update *u, bool broken, uint64_t *seq);

/* Where polling stands; rides in the batch. */
struct poll_position {
    char api_root[256];
    int64_t offset;           /* the next getUpdates offset; 0: none */
    int64_t newest_update_at; /* when the newest update came; 0: never */
};
void spool_set_position(struct spool_box *b, const struct poll_position *p);
void spool_get_position(struct spool_box *b, struct poll_position *out);

/* Updates that Telegram dropped before they came (core/gaps.h), counted for good; rides in the batch. Returns whether it
 * was: what is missing in front of the first update of a restored spool is another matter, see spool_restored. */
bool spool_count_gap(struct spool_box *b, int64_t missing);
/* One above the highest update_id among the updates that came last, and when the newest came; 0, 0 if none is known. */
void spool_newest_update(struct spool_box *b, int64_t *next, int64_t *at);

/* A small text about the bot, kept by name (up to 24 bytes of a-z) until it is set anew; rides in the batch. get
 * appends it to out and returns whether there is one. */
#define SPOOL_NOTE_MAX 4096
void spool_set_note(struct spool_box *b, const char *name, struct slice text);
bool spool_get_note(struct spool_box *b, const char *name, struct buf *out);

/* ---- claim and complete ------------------------------------------------------------------------- */

struct claim {
    struct spool_box *box;
    struct event ev;      /* payload borrows from record */
    uint32_t attempt;     /* from 1 */
    uint32_t interrupted; /* tries that a kill or a shutdown ended: nobody knows what they did */
    unsigned char token[TOKEN_BYTES];
    int64_t deadline;
    struct buf record; /* owned */
};
void claim_free(struct claim *c);

/* Gets a claim that is written to the store (the callee owns it), or NULL if the write failed or the event was
 * discarded meanwhile. */
typedef void spool_claim_fn(void *arg, struct claim *c);

struct claim_request {
    const char *by; /* shown as claimed_by */
    bool push; /* by a deliverer of this process: never reaped, released at start if we died; its deadline is
                  the deliverer's business. Pull claims are reaped */
    unsigned max;
    int64_t lease_ms; /* 0: the policy's */
};

/* Claims up to max heads that are due; what policy.concurrency, breaker, pause and expiry allow. Returns how
 * many: fn will be called once for each, inside the next commit. */
unsigned spool_claim(struct spool_box *b, const struct claim_request *r, spool_claim_fn *fn, void *arg);
/* Whether spool_claim might give something now (cheap; may be wrong on the yes side). */
bool spool_claimable(const struct spool_box *b);

enum completed {
    COMPLETED,
    COMPLETE_LOST /* not held by this token any more */,
    COMPLETE_UNKNOWN /* no such event */,
    COMPLETE_FAILED /* store unhealthy: pull: tell the consumer; push: it is remembered and applied later */
};

/* A Bot API call that goes out: what wire/call makes of a handler's answer. All borrowed. */
struct spool_call {
    const char *method;
    const char *content_type;
    struct slice body; /* as it came */
    struct lane lane;  /* LANE_EVENT: it belongs to no chat */
    bool has_chat;
    int64_t chat;
    bool once;
    const char *refused; /* why it cannot be sent: it is stored dead, for a person to see; NULL: it can */
};

/* What a completion with OUTCOME_DONE records in the same batch. All borrowed, copied if needed. */
struct spool_extras {
    const struct slice *keys; /* idempotency keys that are now done */
    size_t n_keys;
    int64_t keys_ttl_ms; /* 0: the default */
    const struct spool_call *calls;
    size_t n_calls;
};

/* Ends a try with an outcome (copied). Always remembered over a failing store for push tokens. */
enum completed spool_complete(struct spool_box *b, uint64_t seq, const unsigned char token[TOKEN_BYTES],
                              const struct outcome *o);
/* The same, with what a success records. extras may be NULL. */
enum completed spool_complete_with(struct spool_box *b, uint64_t seq, const unsigned char token[TOKEN_BYTES],
                                   const struct outcome *o, const struct spool_extras *extras);
/* Moves the deadline of a held event to now + by_ms (at most 12 h). */
enum completed spool_extend(struct spool_box *b, uint64_t seq, const unsigned char token[TOKEN_BYTES],
                            int64_t by_ms, int64_t *deadline);

/* ---- idempotency keys and calls ----------------------------------------------------------------- */

#define SPOOL_KEY_MAX 256                 /* bytes of a key */
#define SPOOL_KEY_TTL_MS (72 * 3600000LL) /* kept so long where no time is given */
#define SPOOL_KEY_TTL_MAX_MS (90 * 24 * 3600000LL)

enum keyed {
    KEY_FIRST,
    KEY_IS_HELD,
    KEY_IS_DONE,
    KEY_LOST, /* the event is not held by this token */
    KEY_UNKNOWN,
    KEY_TOO_MANY, /* an event holds at most MARKS_MAX */
    KEY_FAILED
};
/* Asks for a key on behalf of an event in processing: held by it from then on, done with it, let go when its try
 * ends otherwise. seq 0: without an event, recorded as done at once. The answer counts once the batch is durable. */
enum keyed spool_key(struct spool_box *b, struct slice key, int64_t ttl_ms, uint64_t seq,
                     const unsigned char token[TOKEN_BYTES]);

/* Puts a call into the bot's box out. key: of idempotency, empty: none; a known one is ACCEPTED_DUPLICATE. */
enum accepted spool_append_call(struct spool_box *out, const struct spool_call *call, struct slice key,
                                uint64_t *seq);

/* ---- the drop-in Bot API: updates served in order of arrival, as one run from the oldest -------- */

struct served {
    uint64_t seq;
    int64_t served_id; /* only ever grows */
    struct event ev;   /* payload borrows from record */
    struct buf record; /* owned */
};
/* Hands out up to max (at most 100) of the oldest unfinished events (about max_bytes of payload at most), those
 * handed out before first. wanted (may be NULL) says whether the client asked for this kind; what it did not is done
 * at once, and what is older than `expire` allows is dead. out has room for max; the caller frees each record. To be
 * shown only after spool_on_written. Returns how many. */
typedef bool spool_wanted_fn(void *arg, const char *kind);
unsigned spool_serve(struct spool_box *b, unsigned max, size_t max_bytes, spool_wanted_fn *wanted, void *arg,
                     struct served *out);
/* An offset confirms what was handed out below it, and nothing else. Returns how many. */
unsigned spool_serve_confirm(struct spool_box *b, int64_t offset);
/* The last served id given; 0: none yet. */
int64_t spool_last_served(const struct spool_box *b);
/* Discards all but the last keep unfinished events, at most 200 a call. Returns true when there is no more to do. */
bool spool_serve_drop(struct spool_box *b, uint64_t keep, const char *who);

/* ---- people ------------------------------------------------------------------------------------- */

enum acted {
    ACTED,
    ACT_UNKNOWN,
    ACT_NOT_ENDED /* replay */,
    ACT_ENDED /* discard */,
    ACT_BUSY /* processing */,
    ACT_FAILED
};

/* who: for the audit log, e.g. "uid 0 (socket)". */
enum acted spool_replay(struct spool_box *b, uint64_t seq, const char *who, uint64_t *copy);
enum acted spool_discard(struct spool_box *b, uint64_t seq, bool force, const char *who);

/* Of one that a deliverer works on and is about to give up: durable from the batch on. It is discarded when its try ends
 * otherwise than done, or at the next start. ACT_BUSY: it is not in processing. */
enum acted spool_discard_later(struct spool_box *b, uint64_t seq, const char *who);

/* Into the audit log: what a person did to an event by other means than these verbs. */
void spool_audit(struct spool_box *b, const char *act, const char *who, uint64_t seq);

/* One whole event. record is filled with bytes that ev->payload borrows from. Returns 0, or -1: no such
 * event. */
int spool_get(struct spool_box *b, uint64_t seq, struct event *ev, struct event_state *st,
              struct buf *record);
/* Resolves a reference (the newer one of two with one update_id). Returns the box or NULL; *seq gets the seq.
 */
struct spool_box *spool_resolve(struct spool *sp, const struct event_ref *ref, uint64_t *seq);

struct spool_filter {
    const char *bot; /* NULL: all */
    int box;         /* enum box, or -1: both */
    bool states[4];  /* by enum state; all false: all */
    bool has_chat, has_user;
    int64_t chat, user;
    char kind[UPDATE_KIND_MAX]; /* "": all */
    int64_t since, until;       /* received_at, inclusive; 0: no limit */
    char error[128];            /* substring of the last error; "": all */
    bool newest;                /* no filter, but the order: by seq downwards */
};

/* A walk over the events that pass a filter, in slices: bots by id, boxes, then by seq (or down by it), whatever the state. A
 * cursor is a point to go on from; it stays valid for ever. Zeroed: from the start. */
struct spool_cursor {
    int64_t bot_id;
    int box;
    uint64_t seq; /* the last one seen */
    bool started;
};
/* Returns false from fn to stop after this event. ev and st are borrowed for the call; with_payload false
 * leaves ev->payload empty. */
typedef bool spool_each_fn(void *arg, struct spool_box *b, const struct event *ev,
                           const struct event_state *st);
/* Visits at most `scan` records. Returns true when the walk is at its end. */
bool spool_each(struct spool *sp, const struct spool_filter *f, struct spool_cursor *cursor, unsigned scan,
                bool with_payload, spool_each_fn *fn, void *arg);
/* Cursor as text of [0-9a-z.-], for people's hands. out holds 64 bytes. */
void spool_cursor_text(const struct spool_cursor *c, char out[64]);
int spool_cursor_parse(struct slice text, struct spool_cursor *out);

/* Puts back an exported event: known (same bot, update_id and hash): nothing. Ended ones keep state, times
 * and history; others become pending at their lane's tail. In st only state, reason, attempts, times, error
 * and history count. */
enum imported { IMPORT_NEW, IMPORT_KNOWN, IMPORT_FAILED };
enum imported spool_import(struct spool_box *b, const struct event *ev, const struct event_state *st);

/* ---- retention ---------------------------------------------------------------------------------- */

struct spool_retention {
    int64_t done_ms, dead_ms; /* an event is kept so long after it ended, or was imported as ended, */
    int64_t dedupe_ms; /* and after it arrived; a done one also until the calls that it made have ended */
    int64_t audit_ms;  /* rows of the audit log; they go within an hour of it */
};
/* From now on, what ended is removed by and by in spool_work. Before the first call all is kept. */
void spool_set_retention(struct spool *sp, const struct spool_retention *r);
/* By how many ms `now` is ahead of the machine's clock, which was set since the open; below 0: behind it. While it is too far
 * ahead, nothing is removed. Nor is it for an hour after an open at which the spool had not been used for a day. */
#define SPOOL_CLOCK_TOO_FAR_MS (60 * 60 * 1000)
void spool_clock_ahead(struct spool *sp, int64_t ms);

enum archived { ARCHIVE_DONE /* safe on disk */, ARCHIVE_BUSY /* call again */, ARCHIVE_FAILED /* and e */ };
/* Keeps lines, each an event as `export` writes them, before these events are removed. Called once a tick, with the
 * same lines (borrowed) as long as it answers BUSY; should not take longer than 5 ms. */
typedef enum archived spool_archive_fn(void *arg, struct slice lines, int64_t now, struct err *e);
/* fn NULL: events are removed without. What was begun with an earlier one is forgotten. */
void spool_set_archiver(struct spool *sp, spool_archive_fn *fn, void *arg);

struct spool_retention_status {
    bool on, archives;
    uint64_t removed, archived; /* events since the spool was opened */
    int64_t failing_since;      /* the archive fails, so nothing is removed; 0: it does not */
    char trouble[256];          /* why */
};
void spool_retention_status(const struct spool *sp, struct spool_retention_status *out);

/* ---- looking on --------------------------------------------------------------------------------- */

/* What happened, for `tail` and later alerts: called after the batch with it was written. */
enum happening {
    HAPPENED_ACCEPTED,
    HAPPENED_CLAIMED,
    HAPPENED_DONE,
    HAPPENED_RETRY,
    HAPPENED_DEAD,
    HAPPENED_RELEASED,
    HAPPENED_BREAKER_OPEN,
    HAPPENED_BREAKER_CLOSED
};
struct spool_happening {
    enum happening what;
    struct spool_box *box;
    uint64_t seq;
    bool has_update_id;
    int64_t update_id;
    char kind[UPDATE_KIND_MAX];
    struct lane lane;
    uint32_t attempt;
    enum reason reason;
    enum outcome_kind outcome;
    int64_t at, due; /* due: of a retry */
};
typedef void spool_happened_fn(void *arg, const struct spool_happening *h);
void spool_watch(struct spool *sp, spool_happened_fn *fn, void *arg); /* one watcher; NULL: none */

/* Checks every invariant of doc/format.md by a full scan; report is called with a sentence for each fault.
 * Returns the number of faults; or -1 and e where the disk failed, so that nobody knows of the rest. Only between commit and
 * begin. */
typedef void spool_fault_fn(void *arg, const char *sentence);
int spool_verify(struct spool *sp, spool_fault_fn *report, void *arg, struct err *e);

/* ---- a spool that was put back from an older copy ------------------------------------------------ */

/* Makes it fit to go on: a new generation, next seqs and served ids raised by 1,000,000, whatever was held is released,
 * delivery of every box is paused. taken_at: when the copy was made. Commits by itself. Returns 0, or -1 and e. */
int spool_restore(struct spool *sp, int64_t taken_at, const char *who, struct err *e);

#define RESTORED_UNKNOWN (-1) /* nothing came since */
#define RESTORED_NEVER (-2)   /* cannot be told: ids started anew */
struct spool_restored {
    int64_t at, taken_at; /* at 0: it never was */
    int64_t newest;       /* the newest update_id in the copy; -1: none */
    int64_t missing; /* updates that came after the copy and went with what was lost, or one of the above */
};
void spool_restored(struct spool_box *b, struct spool_restored *out);

/* What salvage saved of one box. */
struct spool_salvaged {
    char bot[33];
    enum box box;
    bool record_known; /* what was set and counted for the box could be read */
    uint64_t counted;  /* events that it had by its counters */
    uint64_t waiting, ended;
    uint64_t unknown; /* of the waiting: whose state could not be read; they may have ended */
};
typedef void spool_salvaged_fn(void *arg, const struct spool_salvaged *s);
/* Beside events: in how many places some could not be read. */
struct spool_salvaged_rest {
    uint64_t position_faults, note_faults, key_faults, audit_faults;
};
/* Puts what can be read of a damaged spool (a directory that opens, see store/repair.h) into a new, empty one: events under
 * their numbers, keys, positions, the audit log. Commits by itself. Returns 0, or -1 and e. */
int spool_salvage(struct spool *to, const char *dir, spool_salvaged_fn *told, void *arg,
                  struct spool_salvaged_rest *rest, struct err *e);
/* How many events could be read. Returns 0, or -1 and e: it does not open. */
int spool_salvageable(const char *dir, uint64_t *events, struct err *e);

/* ---- checkpoints: see store/checkpoint.h -------------------------------------------------------- */

#define SPOOL_CHECKPOINT_ID 17
int spool_checkpoint_begin(struct spool *sp, struct err *e);
bool spool_checkpoint_ready(struct spool *sp);
int spool_checkpoint_make(struct spool *sp, char id[SPOOL_CHECKPOINT_ID], struct err *e);
char *spool_checkpoint_path(struct spool *sp, const char *id); /* to be freed */
bool spool_checkpoint_remove_some(struct spool *sp, const char *id);
void spool_checkpoints_each(struct spool *sp, void (*each)(void *arg, const char *id, int64_t made_at),
                            void *arg);

/* Removes some of what a migration left, once that is a week old. Returns when to call again. */
int64_t spool_remove_old(struct spool *sp, int64_t now);

/* Compaction of everything, in the background: see db_compact. Fails while the store is closed. */
int spool_compact(struct spool *sp, unsigned *round, struct err *e);
int64_t spool_database_bytes(const struct spool *sp); /* of all its files; reads the directory */

/* Commit times and sizes since start, for metrics. */
struct spool_commit_stats {
    uint64_t commits, syncs, events;
    uint64_t last_us, max_us, total_us;
    const struct histogram *us;           /* of a write, with its sync */
    const struct histogram *batch_events; /* in a write, of those that have any */
};
void spool_commit_stats(const struct spool *sp, struct spool_commit_stats *out);

#endif
