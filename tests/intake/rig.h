/* What the tests of the poll stand on: a clock that the test moves, a scripted Bot API client that holds one request until
 * the test replies, and a scripted spool whose commit the test makes. Every helper fails the test when something is not
 * as it must be.
 */
#ifndef TESTS_INTAKE_RIG_H
#define TESTS_INTAKE_RIG_H

#include "../unit/unit.h"

#include "base/clock.h"
#include "intake/poll.h"
#include "telegram/botapi.h"

#define T0 INT64_C(1700000000000)

/* The client: what it was asked last, and how often what was. */
struct botapi {
    bool busy;
    struct botapi_poll asked;
    botapi_fn *fn;
    void *arg;
    unsigned calls, cancels, drops, infos;
    char token[64];
};

extern struct botapi api;

struct accepted_update {
    bool has_id, broken;
    int64_t id;
};

struct fake_spool {
    struct accepted_update got[256];
    size_t n_got;
    int64_t known[256]; /* ids that are duplicates */
    size_t n_known;
    size_t batch, batch_max;
    struct poll_position stored, open;
    bool open_set;
    spool_done_fn *fns[16];
    void *args[16];
    size_t n_fns;
    bool sick, paused, fail_accept;
    const char *held; /* why there is no room */
    struct buf note, open_note; /* what is kept of before */
    unsigned forgotten;
    int64_t missing, open_missing; /* gaps that were counted */
};

extern struct fake_spool sp;

extern struct poll *p;
extern int64_t now;
extern char token_in_file[64];
extern bool token_unreadable;
extern unsigned token_reads;
extern struct bot_config bot;

/* cmocka fixtures: a spool that has a note, and a poll on it. */
int set_up(void **state);
int tear_down(void **state);
void start_poll(void);

/* A tick as the daemon makes it; ok: whether its commit succeeds. Returns the poll's deadline. */
int64_t tick_with(bool ok);
int64_t tick(void);
void commit(bool ok);

/* Answers to the request that is under way. */
void reply(struct botapi_reply r);
void reply_ids(size_t n, const int64_t *ids);
void reply_error(enum botapi_class class);
void reply_network(enum http_fail fail, bool sent, int64_t waited);
void reply_garbled(const char *body);
#define REPLY_IDS(...) reply_ids(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

void expect_wait(int64_t wait);
void expect_asked(int64_t offset, int limit);
/* What poll_status says is wrong. */
const char *trouble(void);

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

#endif
