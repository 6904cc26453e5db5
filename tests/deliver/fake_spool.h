/* A scripted spool behind the verbs of spool/spool.h that deliver/ uses: events are put in by hand, claims
 * are handed over by fake_commit, outcomes are remembered. */
#ifndef TESTS_FAKE_SPOOL_H
#define TESTS_FAKE_SPOOL_H

#include "spool/spool.h"

#define FAKE_EVENTS 64

struct fake_outcome {
    uint64_t seq;
    enum outcome_kind kind;
    int64_t after_ms;
    char error[2048];
    int64_t at; /* clock_now() */
    char said
        [2048]; /* what a success records: "key K" and "METHOD lane:x BODY" lines; "once " or "refused: WHY " in front */
};

struct spool_box {
    struct {
        struct slice payload;
        bool claimed;
    } events[FAKE_EVENTS]; /* the event of seq n is events[n - 1]; its update_id is 100 + n */
    size_t n_events;
    enum box which;
    struct event call; /* of a box out: what the events are beside their payload */
    uint32_t interrupted;
    unsigned probed; /* spool_probe_now */
    int64_t lease_ms;
    const char *kind;   /* of all events */
    unsigned max_claim; /* given out at once */
    bool unhealthy;     /* extend and complete fail */
    struct fake_outcome outcomes[FAKE_EVENTS];
    size_t n_outcomes;
    unsigned extended;
    spool_claim_fn *fn;
    void *arg;
    struct claim *pending[FAKE_EVENTS];
    size_t n_pending;
};

void fake_init(struct spool_box *b);
/* Adds an event; the bytes are borrowed. Returns its seq. */
uint64_t fake_add(struct spool_box *b, struct slice payload);
void fake_commit(struct spool_box *b, bool ok);
/* The outcome of an event, or NULL. */
const struct fake_outcome *fake_outcome(const struct spool_box *b, uint64_t seq);

#endif
