/* Words of the tests of keys, calls and serving, beside those of world.h. As there: what is not as it must be fails the
 * test. */
#ifndef TESTS_SPOOL_VERBS_H
#define TESTS_SPOOL_VERBS_H

#include "world.h"

#include "store/db.h"

/* Asks for a key within an open tick. c NULL: without an event. */
enum keyed verb_ask(struct world *w, const char *key, int64_t ttl_ms, const struct claim *c);
/* The same in a tick of its own, for the default time. */
enum keyed verb_key(struct world *w, const char *key, const struct claim *c);
/* Ends a held claim with an outcome and extras in a tick of its own, and forgets it. */
enum completed verb_end_with(struct world *w, struct claim *c, enum outcome_kind kind,
                             const struct spool_extras *extras);
/* A sendMessage into a chat; the body is borrowed. */
struct spool_call verb_call(int64_t chat, const char *body);
/* How many rows a family has. Not within a tick. */
unsigned verb_rows(struct world *w, enum family f);

/* As world_setup, but without its commits, which would be passes of a failpoint: no box yet. */
int verb_bare_setup(void **state);
/* A tick with due work and claims for a deliverer of ours from this box, which stand in held. Returns how many. */
unsigned verb_claim_from(struct world *w, struct spool_box *b, unsigned max);

/* Serves in a tick of its own: the seqs and served ids are in seen (which has room for max). Returns how many. */
struct seen {
    uint64_t seq;
    int64_t id;
};
unsigned verb_serve(struct world *w, unsigned max, struct seen *seen);
unsigned verb_confirm(struct world *w, int64_t offset);

#endif
