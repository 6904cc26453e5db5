/* A loop, a scripted spool and the slots under test. */
#ifndef TESTS_RIG_H
#define TESTS_RIG_H

#include "fake_spool.h"

struct rig {
    struct loop *loop;
    struct slots *slots;
    struct spool_box box;
    struct bot_config bot;
    char *argv[8];
    bool (*until)(struct rig *r);
    size_t outcomes_wanted;
    int64_t give_up;
    const char *reread;
    unsigned rereads;
};

/* The helper program beside the test program. */
const char *handler_path(void);

/* Empty: the fields of bot and box may be changed before rig_open. */
void rig_init(struct rig *r, enum deliver_mode mode);
/* bot.command: a script for /bin/sh, or NULL and argv is set by rig_worker. */
void rig_script(struct rig *r, const char *script);
void rig_handler(struct rig *r, const char *mode);
void rig_open(struct rig *r, const char *secret);
/* The slots of a box out, on this api_root. The token is CALLS_TOKEN; reread: what its file holds later. */
#define CALLS_TOKEN "4242:TOKEN"
void rig_open_calls(struct rig *r, const char *api_root, const char *reread);
/* Runs until so many outcomes were given, or fails after 30 s. */
void rig_run(struct rig *r, size_t outcomes);
/* Runs until the function says true. */
void rig_run_until(struct rig *r, bool (*until)(struct rig *r));
/* Runs for so long. */
void rig_run_for(struct rig *r, int64_t ms);
void rig_close(struct rig *r);

#endif
