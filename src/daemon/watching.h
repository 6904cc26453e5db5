/* Looks at the bots and the store as they stand, at most once a second, makes alerts of what is wrong (core/alerts), and
 * sends them. */
#ifndef DAEMON_WATCHING_H
#define DAEMON_WATCHING_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

struct bots;
struct disk;
struct loop;
struct setup;
struct watching;

/* bots must outlive it. Nothing is watched before the first watching_switch. */
struct watching *watching_new(struct loop *l, struct bots *bots);
void watching_free(struct watching *w); /* NULL is harmless */
/* What is looked at beside the bots; borrowed. */
void watching_look_at(struct watching *w, const struct disk *disk);

/* A start had failed, and was told to; this one did not. */
void watching_tell_started(struct watching *w);

/* A reload, in two steps: what can fail is done by prepare (-1 and e: nothing has changed); then the new destinations
 * take over what waits at the old ones, or abandon drops them. */
int watching_prepare(struct watching *w, const struct setup *s, struct err *e);
void watching_switch(struct watching *w, const struct setup *s);
void watching_abandon(struct watching *w);

/* For the API (serve/api.h, struct api_hooks; arg: the struct watching). */
void *watching_test(void *arg, int64_t wait_ms, void (*told)(void *arg, struct slice json), void *told_arg,
                    char why[256]);
void watching_test_end(void *trial);

/* To be called in every tick, after the commit. Returns when it wants to be called again at the latest. */
int64_t watching_tick(struct watching *w, int64_t now);

#endif
