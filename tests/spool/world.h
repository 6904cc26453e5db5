/* What every spool test stands on: a real store in a directory of its own, one bot, a clock that only the test moves, and
 * a deliverer that is a list of the claims it was given. Every helper fails the test when something is not as it must be.
 */
#ifndef TESTS_SPOOL_WORLD_H
#define TESTS_SPOOL_WORLD_H

#include "../unit/unit.h"

#include "base/clock.h"
#include "spool/spool.h"
#include "store/db.h"

#define BOT_ID INT64_C(123456789)
#define START INT64_C(1795974368000) /* some day in 2026 */
#define HELD_MAX 20000

/* How often what is sampled is repeated: one in so many, since all takes several times as long under AddressSanitizer. */
#ifdef __SANITIZE_ADDRESS__
#define ONE_IN 4
#else
#define ONE_IN 1
#endif
#define OFTEN(n) (((n) + ONE_IN - 1) / ONE_IN)

struct world {
    char dir[64];
    struct spool *sp;
    struct spool_box *box;
    struct spool_policy policy;
    struct spool_retention retention; /* if one of its times is set, of each open */
    enum sync_mode sync;              /* of the next open, as for the next; "always" at first */
    int64_t sync_ms;
    int64_t now;
    struct claim *held[HELD_MAX]; /* what was handed over and not ended, oldest first */
    size_t n_held;
    unsigned lost_claims;                           /* callbacks with NULL */
    unsigned happened[HAPPENED_BREAKER_CLOSED + 1]; /* what the watcher was told */
};

/* As cmocka fixtures; *state is the world. The policy: order chat, no jitter, 8 attempts, lease 60 s, 4 slots, no expiry.
 */
int world_setup(void **state);
int world_teardown(void **state);

/* The database of a spool's directory, behind the spool's back. */
struct db *world_db(const char *dir, enum db_mode mode);

/* Opens on w->dir at w->now. Claims from before are forgotten. */
void world_open(struct world *w);
void world_close(struct world *w);
/* Closes and opens again `gap_ms` later. */
void world_reopen(struct world *w, int64_t gap_ms);
/* Sets the policy again after a change of w->policy, within a tick of its own. */
void world_policy(struct world *w);
/* The same of the retention. */
void world_retain(struct world *w, int64_t done_ms, int64_t dead_ms, int64_t dedupe_ms);

void world_begin(struct world *w);
void world_commit(struct world *w); /* with a check that callbacks of this commit came */
/* A tick with nothing but due work. */
void world_step(struct world *w);
/* The clock goes on, without a tick. */
void world_wait(struct world *w, int64_t ms);

/* Makes a message of a chat; the text makes its bytes what they are. Returns JSON to be freed. */
char *world_message(int64_t update_id, int64_t chat, const char *text);
/* Accepts within an open tick. Returns the new seq; fails unless it is new. */
uint64_t world_accept(struct world *w, int64_t update_id, int64_t chat, const char *text);
enum accepted world_accept_json(struct world *w, const char *json, uint64_t *seq);
/* The same in a tick of its own. */
uint64_t world_arrive(struct world *w, int64_t update_id, int64_t chat);

enum { PULL = 0, PUSH = 1 };
/* Asks for claims within an open tick; they stand in held after the commit. */
unsigned world_claim(struct world *w, unsigned max, bool push);
/* A tick with due work and one claim. Returns it (it stays in held) or NULL. */
struct claim *world_take(struct world *w, bool push);
/* Asserts that the next claim is of this seq. */
struct claim *world_take_seq(struct world *w, bool push, uint64_t seq);
/* Ends a held claim within an open tick, and forgets it. */
enum completed world_complete(struct world *w, struct claim *c, enum outcome_kind kind, int64_t after_ms);
/* The same in a tick of its own; asserts COMPLETED. */
void world_end(struct world *w, struct claim *c, enum outcome_kind kind, int64_t after_ms);
struct claim *world_held(struct world *w, uint64_t seq); /* NULL: not held */
void world_drop(struct world *w, struct claim *c);       /* forgets it, as a consumer that died */

/* The state of an event; fails if there is none. */
struct event_state world_state(struct world *w, uint64_t seq);
struct spool_box_status world_status(struct world *w);
void world_expect(struct world *w, uint64_t seq, enum state state, enum reason reason, unsigned attempts);
/* The spool asks to be called in the future (no busy loop), and by then at the latest. */
void world_wakes_by(struct world *w, int64_t time);
/* spool_verify must find nothing. */
void world_verify(struct world *w);

#endif
