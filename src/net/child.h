/* A child process on the loop: its pipes are written and read as they can be, and its end, that of its whole
 * group, is told. For deliverers that talk to children, and for whoever starts a command. */
#ifndef NET_CHILD_H
#define NET_CHILD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "proc/env.h"

#define CHILD_GRACE_MS 5000 /* between SIGTERM and SIGKILL */

struct loop;
struct child;

/* In `out` and `err` the owner may do anything but free the child; in `ended` it must free it. */
struct child_events {
    void (*out)(void *arg, struct slice bytes); /* from its standard output; n = 0: it closed it */
    void (*err)(void *arg, struct slice bytes); /* from its standard error */
    /* The child has ended by itself, with this status of wait(2). Whether that is all: true leaves what it
     * started running; false ends its group before `ended` is called. NULL: false. */
    bool (*over)(void *arg, int status);
    void (*ended)(void *arg);
};

/* Returns NULL and errno if it cannot be started. events is borrowed. No event comes before this returned. */
struct child *child_start(struct loop *l, char *const *argv, const struct proc_env *env,
                          const struct child_events *events, void *arg);
/* Ends it at once if it lives (nobody waits for its end any more). */
void child_free(struct child *c);

/* Appends to what is written to its standard input, copied. A child that does not read it is no error. */
void child_write(struct child *c, struct slice bytes);
void child_close_input(struct child *c); /* when all is written */
/* Bytes given to child_write that the child has not read. */
size_t child_unread(const struct child *c);

/* SIGKILL, now and to the child alone: what a crash does. Its group is ended after it, as always. */
void child_kill(struct child *c);
/* Ends the group: SIGTERM, after grace_ms SIGKILL; then `ended` comes. Never calls back at once. */
void child_end(struct child *c, int64_t grace_ms);
/* Whether it ended or is being ended; asks the system, so that no event is given to one that just died. */
bool child_ending(struct child *c);
/* Whether the child itself has ended (its group may not have). */
bool child_exited(const struct child *c);

/* Of one that has exited: how. status of wait(2); exec_errno is not 0 if the program could not be started. */
int child_status(const struct child *c);
int child_exec_errno(const struct child *c);
int64_t child_lived_ms(const struct child *c);
/* The same as a phrase: "exit status 3", "killed by signal 11 (Segmentation fault)". */
void child_add_how(const struct child *c, struct buf *out);

#endif
